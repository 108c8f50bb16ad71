"""Parts of a model as separate models: some nodes with their inputs and constants."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from onnxjson.model import document as d
from onnxjson.model.constants import RANDOM, is_constant_node, value_of_node
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import visible
from onnxjson.model.index import Index, Scope
from onnxjson.model.limits import PART_CONSTANT_BYTES
from onnxjson.model.operators import operator_key, plain_domain
from onnxjson.model.payloads import Data, Digest, whole
from onnxjson.model.tensors import is_external, raw_bytes
from onnxjson.model.walking import called_functions, replace_records, walk

IR_VERSION: Final = 10
"""IR version of parts: new enough for every operator set, old enough for every engine."""

_PAYLOADS: Final = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")

Elements = Callable[[d.Tensor], Data | None]
"""Function that reads the elements of a tensor from an external file; None if that is impossible."""

KnownType = tuple[int, int | None]


class NotRunError(Exception):
    """A part cannot be evaluated; the message has the reason, made visible."""


class UnsettledError(NotRunError):
    """A part cannot be evaluated alone, but perhaps together with adjacent nodes."""


class ModelPart(NamedTuple):
    """Some nodes as a model."""

    model: d.Model
    inputs: tuple[str, ...]
    """Names of the values that it consumes as inputs."""
    outputs: tuple[str, ...]
    """New names of the requested outputs, in their order."""
    requested: tuple[str, ...]
    """Names of these outputs in the graph."""


def extract_part(
    model: d.Model,
    scope: Scope,
    positions: Sequence[int],
    inputs: Mapping[str, KnownType],
    outputs: Sequence[str],
    elements: Elements,
) -> ModelPart:
    """Extract some nodes of a graph as a model.

    Raises:
        NotRunError: the part cannot be evaluated on its own.
    """
    cut = _Cut(scope, [scope.graph.node[position] for position in positions], inputs)
    for name in outputs:
        cut.need(name)
    fresh = _fresh_names(cut.nodes, len(outputs))
    copies = [
        d.Node(op_type="Identity", input=(name,), output=(new,)) for name, new in zip(outputs, fresh, strict=True)
    ]
    functions = called_functions(model.functions, cut.nodes)
    opsets = _opsets(model, scope)
    inner = [node for outer in cut.nodes for node in walk(outer, d.Node)]
    for attribute in [attribute for node in inner for attribute in node.attribute if attribute.ref_attr_name]:
        name = visible(attribute.name or "")
        raise NotRunError(f'attribute "{name}" refers to one of the function around it, so it has no value here')
    called = [node for function in functions for node in walk(function, d.Node)]
    default = next((each.version or 0 for each in opsets if plain_domain(each.domain) == ""), 0)
    _require_deterministic([*inner, *called], default, cut.all_constants())
    bare = {"metadata_props": (), "doc_string": None, "device_configurations": ()}
    graph = d.Graph(
        name="part",
        node=(*[msgspec.structs.replace(node, **bare) for node in cut.nodes], *copies),
        initializer=tuple(cut.constants),
        sparse_initializer=tuple(cut.sparse_constants),
        input=tuple([_value(name, inputs[name]) for name in cut.consumed_inputs]),
        output=tuple([d.ValueInfo(name=name) for name in fresh]),
    )
    made = d.Model(ir_version=IR_VERSION, opset_import=opsets, graph=graph, functions=functions)
    return ModelPart(_with_elements(made, elements), tuple(cut.consumed_inputs), tuple(fresh), tuple(outputs))


class _Cut:
    def __init__(self, scope: Scope, nodes: Sequence[d.Node], inputs: Mapping[str, KnownType]) -> None:
        self._scope = scope
        self._inputs = inputs
        self._made = {name for node in nodes for name in node.output if name}
        self.nodes: list[d.Node] = []
        self.constants: list[d.Tensor] = []
        self.sparse_constants: list[d.SparseTensor] = []
        self.consumed_inputs: dict[str, None] = {}
        self._known: set[str] = set()
        for node in nodes:
            for name in consumed_names(node):
                self.need(name)
        self.nodes += nodes

    def need(self, name: str) -> None:
        """Add the source of a value that is not an output of the nodes."""
        # Identity nodes may form long chains.
        found: list[d.Node] = []
        while name not in self._made and name not in self._known:
            self._known.add(name)
            if name in self._inputs:
                self.consumed_inputs[name] = None
                break
            node = self._constant_or_alias(name)
            if node is None:
                break
            found.append(node)
            if not node.input:
                break
            name = node.input[0]
        self.nodes += reversed(found)

    def all_constants(self) -> dict[str, d.Tensor]:
        found = {tensor.name or "": tensor for tensor in self.constants}
        values = [
            (node.output[0], value_of_node(node)) for node in self.nodes if is_constant_node(node) and node.output
        ]
        return found | {name: value for name, value in values if isinstance(value, d.Tensor)}

    def _constant_or_alias(self, name: str) -> d.Node | None:
        """Record an initializer, or return the Constant or Identity node that outputs a value."""
        defining = Index.defining_scope(self._scope, name)
        if defining is not None:
            constant = defining.initializer(name)
            if isinstance(constant, d.Tensor):
                self.constants.append(msgspec.structs.replace(constant, metadata_props=(), doc_string=None))
                return None
            if constant is not None:
                self.sparse_constants.append(constant)
                return None
            producer = defining.producer(name)
            if producer is not None and operator_key(producer.node)[:2] in {("", "Constant"), ("", "Identity")}:
                return producer.node
        raise UnsettledError(f'its input "{visible(name)}" is not defined around it')


def _value(name: str, known: KnownType) -> d.ValueInfo:
    data_type, rank = known
    shape = None if rank is None else d.TensorShape(dim=(d.Dimension(),) * rank)
    return d.ValueInfo(name=name, type=d.Type(tensor_type=d.TensorType(elem_type=data_type, shape=shape)))


def _fresh_names(nodes: Sequence[d.Node], count: int) -> list[str]:
    used = {name for each in nodes for node in walk(each, d.Node) for name in (*node.input, *node.output)}
    names = (f"result_{number}" for number in range(len(used) + count))
    return [name for name in names if name not in used][:count]


def _opsets(model: d.Model, scope: Scope) -> tuple[d.OperatorSetId, ...]:
    """Return the operator sets of a graph; those of a function override those of the model."""
    graph = scope.root.graph
    own = graph.opset_import if isinstance(graph, d.Function) else ()
    known = {plain_domain(each.domain) for each in own}
    return (*own, *[each for each in model.opset_import if plain_domain(each.domain) not in known])


def _require_deterministic(nodes: Iterable[d.Node], opset: int, constants: Mapping[str, d.Tensor]) -> None:
    """Raise NotRunError if the results of a node are random."""
    for node in nodes:
        if plain_domain(node.domain) == "" and (
            node.op_type in RANDOM or (node.op_type == "Dropout" and _is_training(node, opset, constants))
        ):
            raise NotRunError(f"{visible(node.op_type or '')} returns random results")


def _is_training(dropout: d.Node, opset: int, constants: Mapping[str, d.Tensor]) -> bool:
    """Whether a Dropout drops elements, or may do so."""
    if opset < 7:
        is_test = next((each.i for each in dropout.attribute if each.name == "is_test"), None)
        return not is_test
    mode = dropout.input[2] if len(dropout.input) > 2 else ""
    if opset < 12 or not mode:
        return False
    stored = raw_bytes(constants[mode]) if mode in constants else None
    return stored is None or whole(stored[0]) != b"\0"


def _with_elements(model: d.Model, elements: Elements) -> d.Model:
    total = 0

    def with_elements(tensor: d.Tensor) -> d.Tensor:
        nonlocal total
        name = f'"{visible(tensor.name)}"' if tensor.name else "a constant"
        if is_external(tensor):
            data = elements(tensor)
            if data is None:
                raise NotRunError(f"the elements of {name} are in an external file that cannot be read")
            tensor = msgspec.structs.replace(tensor, raw_data=data, external_data=(), data_location=None)
        payloads = [getattr(tensor, field) or b"" for field in _PAYLOADS]
        if any(isinstance(each, Digest) for each in payloads):
            raise NotRunError(f"only the sha256 of {name} is stored")
        total += sum(map(len, payloads))
        if total > PART_CONSTANT_BYTES:
            raise NotRunError(f"its constants have more than {PART_CONSTANT_BYTES >> 20} MiB")
        return tensor

    return replace_records(model, d.Tensor, with_elements)
