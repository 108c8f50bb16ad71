"""Which values are constants, and what they hold; quantized weights.

This is the one place that decides whether a value is a constant: an initializer, a sparse initializer, the output of a
node Constant (`find_constant`), or a value that is computed from constants alone (`is_constant`), whose elements are
known if it is a copy (`copied_constant`). Nothing is evaluated. An operator counts in the default domain alone, which
is written as absent, "" or "ai.onnx"; one of any other domain may compute anything.

The elements of a quantized weight stand for numbers, through the scales of the node that uses it. Known are MatMulNBits
and GatherBlockQuantized of onnxruntime, and DequantizeLinear: for a tensor, an axis, or blocks.
"""

import struct
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from onnxjson.model import tensors
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import counted
from onnxjson.model.document import (
    Attribute,
    Dimension,
    Function,
    Graph,
    Node,
    SparseTensor,
    Tensor,
    TensorShape,
    TensorType,
    Type,
)
from onnxjson.model.dtypes import BITS, DATA_TYPES, STRING
from onnxjson.model.elements import element_count
from onnxjson.model.operators import operator_key, plain_domain
from onnxjson.model.payloads import Data
from onnxjson.model.scopes import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOAT32: Final = DATA_TYPES["float32"]
_INT64: Final = DATA_TYPES["int64"]

Read = Callable[[Tensor], Data | None]
"""Function that returns the elements of a tensor as ``raw_data`` would have them; None if they are not available."""

_UINT8: Final = DATA_TYPES["uint8"]
_SLOTS: Final = {"MatMulNBits": (1, 2, 3), "GatherBlockQuantized": (0, 2, 3), "DequantizeLinear": (0, 1, 2)}
"""Inputs of operators: the elements, their scales and their zero points."""

RANDOM: Final = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators with different results each time."""

_KNOWN: Final[WeakKeyDictionary[Scope, tuple[list[Graph | Function], set[str]]]] = WeakKeyDictionary()
"""For each graph the names of its constants, as long as it and those around it are the same records."""

_FIELDS: Final = {
    "value": "t", "value_float": "f", "value_floats": "floats", "value_int": "i", "value_ints": "ints",
    "value_string": "s", "value_strings": "strings",
}  # fmt: skip
"""Attributes of Constant and the fields that hold their values."""

_FIELDS_BY_TYPE: Final = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}


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


def copied_constant(scope: Scope, name: str) -> Constant | None:
    """Return the constant that a value is, directly or through Identity nodes; None for other values."""
    passed: set[tuple[Scope, str]] = set()
    while (defining := next((each for each in scope.chain() if each.defines(name)), None)) is not None:
        if (found := own_constant(defining, name)) is not None:
            return found
        producer = defining.producer(name)
        if producer is None or operator_key(producer.node)[:2] != ("", "Identity") or (defining, name) in passed:
            return None
        passed.add((defining, name))
        scope, name = defining, "".join(producer.node.input[:1])
    return None


def is_constant(scope: Scope, name: str) -> bool:
    """Whether a value that is used in a graph is a constant or computed from constants alone; defaults are neither."""
    if scope.outer is None:
        return bool(name) and name in constant_values(scope)
    defining = next((each for each in scope.chain() if each.defines(name)), None)
    return defining is not None and name in constant_values(defining)


def constant_nodes(scope: Scope) -> set[int]:
    """Return the positions of nodes of a sorted graph that use constants only and produce none of its outputs."""
    return set(_computing(scope, set(filter(None, scope.output_names)), set()))


def constant_values(scope: Scope) -> Collection[str]:
    """Return the names of the values of a sorted graph for which `is_constant` holds, and ""."""
    known, values = _KNOWN.get(scope, ([], set()))
    if scope.outer is None and known and known[0] is scope.graph:
        return values
    graphs = [each.graph for each in scope.chain()]
    if [id(each) for each in known] != [id(each) for each in graphs]:
        values = set()
        for _ in _computing(scope, set(), values):
            pass
        _KNOWN[scope] = graphs, values
    return values


def _computing(scope: Scope, kept: Collection[str], known: set[str]) -> Iterator[int]:
    """Yield the nodes that compute from constants alone, in order, and add the constants to `known`.

    A node with one of the outputs in `kept` does not count.
    """
    known.update({"", *scope.initializers, *scope.sparse_initializers}.difference(scope.defaults))
    outer = scope.outer
    for position, node in enumerate(scope.graph.node):
        # Asked first, since it fails for most nodes.
        if not all([name in known or (outer is not None and _is_outer(scope, name)) for name in node.input]):
            continue
        if _is_computing(node, known, scope) and not any([name in kept for name in node.output]):
            known.update(node.output)
            yield position


def _is_outer(scope: Scope, name: str) -> bool:
    return not scope.defines(name) and scope.outer is not None and is_constant(scope.outer, name)


def _is_computing(node: Node, known: Collection[str], scope: Scope) -> bool:
    """Whether a node with constant inputs has the same outputs each time, with what its subgraphs compute."""
    pending = [node]
    while pending:
        inner = pending.pop()
        if plain_domain(inner.domain) or inner.op_type in RANDOM or inner.op_type == "Dropout":
            return False
        for part in inner.attribute:
            for graph in (part.g, *part.graphs):
                pending += graph.node if graph is not None else ()
    is_plain = not any([part.g or part.graphs for part in node.attribute])
    return is_plain or all([name in known or _is_outer(scope, name) for name in consumed_names(node)])


def constant_outputs(scope: Scope) -> Iterator[str]:
    """Yield the outputs of the nodes Constant of a graph, in the order of the file."""
    nodes = scope.graph.node
    constants = [at for at, node in enumerate(nodes) if node.op_type == "Constant" and is_constant_node(node)]
    return (name for at in constants for name in nodes[at].output if name and scope.producers[name][0] == at)


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


def constant_value(attribute: Attribute) -> Tensor | None:
    """Return the tensor that an attribute of Constant defines, or None for a sparse value and for wrong attributes."""
    field = _FIELDS.get(attribute.name or "")
    return None if field is None else _field_tensor(attribute, field)


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


class QuantizedWeight(NamedTuple):
    """A quantized weight."""

    node: Node
    """The node that uses it."""
    elements: Tensor
    """Its elements, with their own dtype instead of packed bytes; blocks are filled up."""
    scales: Tensor
    zeros: Tensor | None
    zero: float
    """Zero point without `zeros`."""
    shape: tuple[int, ...]
    axis: int
    block: int
    """Elements along the axis with the same scale; 0 if each index along the axis, or the tensor, has one."""

    @property
    def text(self) -> str:
        """Return ``4 bits, block 32``."""
        bits = counted(BITS[self.elements.data_type or 0], "bit")
        return f"{bits}, block {self.block}" if self.block else bits

    def arrays(self, read: Read) -> Iterator["NDArray[Any]"]:
        """Yield the numbers that the elements stand for, in pieces of float64; none if bytes are not available."""
        import numpy

        data, scales, zeros = read(self.elements), _numbers(self.scales, read), self._zeros(read)
        if data is None or scales is None or zeros is None:
            return
        length, stored = self.shape[self.axis], self.elements.dims[self.axis]
        inner = element_count(self.shape[self.axis + 1 :])
        start = 0
        for array in tensors.arrays(self.elements.data_type or 0, data, element_count(self.elements.dims)):
            place = numpy.arange(start, start + array.size)
            start += array.size
            along = place // inner % stored
            group = along
            if self.block:
                blocks = -(-stored // self.block)
                group = (place // (inner * stored) * blocks + along // self.block) * inner + place % inner
            each = [values[group] if values.size > 1 else values for values in (zeros, scales)]
            yield ((array.astype(numpy.float64) - each[0]) * each[1])[along < length]

    def _zeros(self, read: Read) -> "NDArray[Any] | None":
        import numpy

        if self.zeros is None:
            return numpy.array([self.zero])
        bits = BITS[self.elements.data_type or 0]
        if self.zeros.data_type != _UINT8 or bits == 8:
            return _numbers(self.zeros, read)
        # Several in a byte; each row begins with a new byte.
        blocks = -(-self.elements.dims[-1] // self.block)
        rows, width = element_count(self.elements.dims[:-1]), -(-blocks * bits // 8) * 8 // bits
        found = _numbers(replace(self.zeros, data_type=self.elements.data_type, dims=(rows, width)), read)
        return None if found is None else found.reshape(rows, width)[:, :blocks].reshape(-1)


def _numbers(tensor: Tensor, read: Read) -> "NDArray[Any] | None":
    import numpy

    data, count = read(tensor), element_count(tensor.dims)
    if data is None or not count:
        return None
    pieces = tensors.arrays(tensor.data_type or 0, data, count)
    return numpy.concatenate([each.astype(numpy.float64) for each in pieces])


def has_quantized_weights(scope: Scope) -> bool:
    """Whether `quantized_weight` can find any."""
    return any([node.op_type in _SLOTS for node in scope.graph.node])


def quantized_weight(scope: Scope, name: str) -> QuantizedWeight | None:
    """Return the weight of which a constant is the elements, the scales or the zero points; None for others."""
    for position, slot in scope.uses(name):
        node = scope.graph.node[position] if position is not None else Node()
        slots = _SLOTS.get(node.op_type or "", ())
        if slot not in slots or bool(plain_domain(node.domain)) == (node.op_type == "DequantizeLinear"):
            continue
        names = [node.input[each] if each < len(node.input) else "" for each in slots]
        held = [find_constant(scope, each) if each else None for each in names]
        elements, scales, zeros = [None if each is None else each.tensor for each in held]
        if elements is not None and scales is not None and (zeros is not None or not names[2]):
            found = _weight(node, elements, scales, zeros)
            if found is not None and tensors.needed_bytes(found.elements) == tensors.needed_bytes(elements):
                return found
    return None


def _weight(node: Node, elements: Tensor, scales: Tensor, zeros: Tensor | None) -> QuantizedWeight | None:
    given = {each.name: each.i or 0 for each in node.attribute}
    shape, zero, bits = elements.dims, 0, given.get("bits", 4)
    if node.op_type == "DequantizeLinear":
        axis, block = given.get("axis", 1), given.get("block_size", 0)
    else:
        default = 0 if node.op_type == "MatMulNBits" else 128
        axis, block = given.get("quantize_axis", 1), given.get("block_size", default)
        if not block or not shape or bits not in (2, 4, 8):
            return None
        if elements.data_type == _UINT8:
            zero = 1 << (bits - 1)
            shape = (*shape[:-1], shape[-1] * 8 // bits)
            if node.op_type == "MatMulNBits":
                rows, length = given.get("N", 0), given.get("K", 0)
                shape, axis = (rows, -(-length // block) * block), 1
            elements = replace(elements, data_type=DATA_TYPES[f"uint{bits}"], dims=shape)
            shape = (rows, length) if node.op_type == "MatMulNBits" else shape
    axis = axis + len(shape) if axis < 0 else axis
    if not 0 <= axis < len(shape):
        axis, shape, elements = 0, (element_count(shape),), replace(elements, dims=(element_count(shape),))
    dims = elements.dims
    scaled = (*dims[:axis], -(-dims[axis] // block), *dims[axis + 1 :]) if block else ()
    groups = [element_count(scaled)] if block else [1, shape[axis]]
    known = BITS.get(elements.data_type or 0, 0)
    if not known or element_count(scales.dims) not in groups:
        return None
    return QuantizedWeight(node, elements, scales, zeros, zero, shape, axis, block)
