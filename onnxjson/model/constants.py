"""The constant with a name: an initializer, a sparse initializer or the output of a node Constant.

This is the one place that decides whether a value is a constant. A Constant counts in the default domain alone, which
is written as absent, "" or "ai.onnx"; an operator Constant of any other domain may compute anything.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson.model.document import Attribute, Dimension, Node, SparseTensor, Tensor, TensorShape, TensorType, Type
from onnxjson.model.dtypes import DATA_TYPES, STRING
from onnxjson.model.operators import plain_domain
from onnxjson.model.scopes import Scope

_FLOAT32: Final = DATA_TYPES["float32"]
_INT64: Final = DATA_TYPES["int64"]


class Constant(NamedTuple):
    """A value that the model itself defines."""

    scope: Scope
    """The graph that defines it."""
    name: str
    held: Tensor | SparseTensor | Node
    """The initializer, the sparse initializer or the node Constant."""
    is_default: bool
    """Whether it is the default of an input, which a caller may replace."""

    @property
    def value(self) -> Tensor | SparseTensor | None:
        """The elements; None for a node Constant whose value is missing or an attribute of its function."""
        return value_of_node(self.held) if isinstance(self.held, Node) else self.held

    @property
    def tensor(self) -> Tensor | None:
        """The elements of a dense constant; None for a sparse one, and where `value` is None."""
        value = self.value
        return value if isinstance(value, Tensor) else None


def find_constant(scope: Scope, name: str) -> Constant | None:
    """Return the constant with a name that is used in a graph, or None for other values and undefined names."""
    defining_scope = next((each for each in scope.chain() if each.defines(name)), None)
    return None if defining_scope is None else own_constant(defining_scope, name)


def own_constant(scope: Scope, name: str) -> Constant | None:
    """Return the constant that a graph defines under a name; graphs around it are not searched."""
    if name in scope.initializers or name in scope.sparse_initializers:
        found = scope.initializer(name)
        return (
            None if found is None else Constant(scope, name, found, name in scope.inputs and not scope.keeps_defaults)
        )
    producer = scope.producers.get(name)
    if producer is None or not is_constant_node(node := scope.graph.node[producer[0]]) or name in scope.inputs:
        return None
    return Constant(scope, name, node, False)


RANDOM: Final = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators with different results each time."""


def constant_nodes(scope: Scope) -> set[int]:
    """Return the positions of nodes of a sorted graph that use constants only and produce none of its outputs."""
    known = {"", *scope.initializers, *scope.sparse_initializers}.difference(scope.defaults)
    outputs = set(scope.output_names)
    found = set()
    for position, node in enumerate(scope.graph.node):
        may_vary = plain_domain(node.domain) or node.op_type in RANDOM or node.op_type == "Dropout"
        has_graphs = any([each.g is not None or each.graphs for each in node.attribute])
        if not may_vary and not has_graphs and known.issuperset(node.input) and outputs.isdisjoint(node.output):
            found.add(position)
            known.update(node.output)
    return found


def constant_outputs(scope: Scope) -> Iterator[str]:
    """Yield the outputs of the nodes Constant of a graph, in the order of the file."""
    constants = [position for position, node in enumerate(scope.graph.node) if is_constant_node(node)]
    return (
        name
        for position in constants
        for name in scope.graph.node[position].output
        if name and scope.producers[name][0] == position
    )


def is_constant_node(node: Node) -> bool:
    """Whether a node calls Constant of the default domain."""
    return node.op_type == "Constant" and not plain_domain(node.domain)


def constant_output(node: Node) -> str | None:
    """Return the output of a node Constant, or None for other nodes and for a Constant without exactly one output."""
    return node.output[0] if is_constant_node(node) and len(node.output) == 1 else None


def value_of_node(node: Node) -> Tensor | SparseTensor | None:
    """Return the value of a node Constant, or None unless exactly one of its attributes has a value."""
    if len(node.attribute) != 1 or node.attribute[0].ref_attr_name is not None:
        return None
    return node.attribute[0].sparse_tensor or constant_value(node.attribute[0])


_FIELDS: Final = {
    "value": "t",
    "value_float": "f",
    "value_floats": "floats",
    "value_int": "i",
    "value_ints": "ints",
    "value_string": "s",
    "value_strings": "strings",
}
"""Attributes of Constant and the fields that hold their values."""


def constant_value(attribute: Attribute) -> Tensor | None:
    """Return the tensor that an attribute of Constant defines, or None for a sparse value and for wrong attributes."""
    field = _FIELDS.get(attribute.name or "")
    return None if field is None else _field_tensor(attribute, field)


_FIELDS_BY_TYPE: Final = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}


def attribute_tensor(attribute: Attribute) -> Tensor | None:
    """Return the value of an attribute as a tensor; None for graphs, types, sparse tensors and lists of tensors."""
    if attribute.t is not None:
        return attribute.t
    field = _FIELDS_BY_TYPE.get(attribute.type or 0)
    return None if field is None else _field_tensor(attribute, field)


def _field_tensor(attribute: Attribute, field: str) -> Tensor | None:
    value = getattr(attribute, field)
    if value is None or field == "t":
        return value  # type: ignore[no-any-return]
    match field:
        case "s":
            return Tensor(data_type=STRING, string_data=(value,))
        case "strings":
            return Tensor(dims=(len(value),), data_type=STRING, string_data=value)
        case "f":
            return Tensor(data_type=_FLOAT32, raw_data=value)
        case "floats":
            return Tensor(dims=(len(value) // 4,), data_type=_FLOAT32, raw_data=value)
        case "i":
            return Tensor(data_type=_INT64, raw_data=struct.pack("<q", value))
        case _:
            return Tensor(dims=(len(value),), data_type=_INT64, raw_data=struct.pack(f"<{len(value)}q", *value))


def type_of_constant(constant: Tensor | SparseTensor) -> Type:
    """Return the type that value_info states for a constant: its dtype and dims."""
    shape = TensorShape(dim=tuple([Dimension(dim_value=size) for size in constant.dims]))
    if isinstance(constant, Tensor):
        return Type(tensor_type=TensorType(elem_type=constant.data_type, shape=shape))
    values = constant.values
    # Nodes consume the value of a sparse initializer as a dense tensor.
    return Type(tensor_type=TensorType(elem_type=None if values is None else values.data_type, shape=shape))
