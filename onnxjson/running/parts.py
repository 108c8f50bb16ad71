"""Parts of a model as models of their own: some nodes, with what they take as inputs or constants."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from onnxjson.diffing.regions import taken_names
from onnxjson.display import visible
from onnxjson.document import (
    Dimension,
    Function,
    Graph,
    Model,
    Node,
    OperatorSetId,
    SparseTensor,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.index import Index, Scope
from onnxjson.operators import function_key, operator_key, plain_domain
from onnxjson.payloads import Data, Digest, whole
from onnxjson.tensor_replacement import replace_tensors
from onnxjson.tensors import is_external, raw_bytes
from onnxjson.walking import walk

IR_VERSION: Final = 10
"""Of the models made here: new enough for every operator set, old enough for every evaluator."""

MOST_BYTES: Final = 256 << 20
"""Of the constants of a part."""

RANDOM: Final = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators that give other results each time."""

_PAYLOADS: Final = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")

Elements = Callable[[Tensor], Data | None]
"""Where the elements of a tensor in another file are found; None where they cannot be had."""

KnownType = tuple[int, int | None]
"""Data type, and rank where that is known."""


class NotRunError(Exception):
    """Something cannot be evaluated; the text says why, made visible."""


class UnsettledError(NotRunError):
    """What cannot be evaluated alone, but perhaps together with the nodes around it."""


class Part(NamedTuple):
    """Some nodes as a model."""

    model: Model
    inputs: tuple[str, ...]
    """Those of the offered inputs that it takes."""
    outputs: tuple[str, ...]
    """In the order asked for; names of their own."""
    asked: tuple[str, ...]
    """What the outputs are called in the graph."""


def part(
    model: Model,
    scope: Scope,
    positions: Sequence[int],
    inputs: Mapping[str, KnownType],
    outputs: Sequence[str],
    elements: Elements,
) -> Part:
    """Some nodes of a graph as a model.

    Args:
        model: where the graph is.
        scope: the graph.
        positions: of the nodes.
        inputs: values around the nodes that become inputs of the part.
        outputs: values that are asked for: made by the nodes, inputs, or constants.
        elements: finds the elements of tensors in other files.

    Raises:
        NotRunError: the part cannot be evaluated on its own.
    """
    cut = _Cut(scope, [scope.graph.node[position] for position in positions], inputs)
    for name in outputs:
        cut.need(name)
    fresh = _fresh_names(cut.nodes, len(outputs))
    copies = [Node(op_type="Identity", input=(name,), output=(new,)) for name, new in zip(outputs, fresh, strict=True)]
    functions = tuple(_called_functions(model, cut.nodes))
    opsets = _opsets(model, scope)
    inner = [node for outer in cut.nodes for node in walk(outer, Node)]
    _require_no_reference(inner)
    called = [node for function in functions for node in walk(function, Node)]
    default = next((each.version or 0 for each in opsets if plain_domain(each.domain) == ""), 0)
    _require_settled([*inner, *called], default, cut.all_constants())
    graph = Graph(
        name="part",
        node=(*[_plain(node) for node in cut.nodes], *copies),
        initializer=tuple(cut.constants),
        sparse_initializer=tuple(cut.sparse_constants),
        input=tuple([_value(name, inputs[name]) for name in cut.taken]),
        output=tuple([ValueInfo(name=name) for name in fresh]),
    )
    made = Model(ir_version=IR_VERSION, opset_import=opsets, graph=graph, functions=functions)
    return Part(_with_elements(made, elements), tuple(cut.taken), tuple(fresh), tuple(outputs))


class _Cut:
    """The nodes of a part with everything that they take."""

    def __init__(self, scope: Scope, nodes: Sequence[Node], inputs: Mapping[str, KnownType]) -> None:
        self._scope = scope
        self._inputs = inputs
        self._made = {name for node in nodes for name in node.output if name}
        self.nodes: list[Node] = []
        self.constants: list[Tensor] = []
        self.sparse_constants: list[SparseTensor] = []
        self.taken: dict[str, None] = {}
        self._known: set[str] = set()
        for node in nodes:
            for name in taken_names(node):
                self.need(name)
        self.nodes += nodes

    def need(self, name: str) -> None:
        """Provide for a value that is not made by the nodes."""
        # Identity nodes stand in chains of any length.
        found: list[Node] = []
        while name not in self._made and name not in self._known:
            self._known.add(name)
            if name in self._inputs:
                self.taken[name] = None
                break
            node = self._constant_or_alias(name)
            if node is None:
                break
            found.append(node)
            if not node.input:
                break
            name = node.input[0]
        self.nodes += reversed(found)

    def all_constants(self) -> dict[str, Tensor]:
        """The constants by name, Constant nodes with a tensor among them."""
        found = {tensor.name or "": tensor for tensor in self.constants}
        for node in self.nodes:
            if node.op_type == "Constant" and node.output:
                for attribute in node.attribute:
                    if attribute.t is not None:
                        found[node.output[0]] = attribute.t
        return found

    def _constant_or_alias(self, name: str) -> Node | None:
        """Note a constant; else the node that is one, or that gives another name to a value."""
        home = Index.home(self._scope, name)
        if home is not None:
            constant = home.initializer(name)
            if isinstance(constant, Tensor):
                self.constants.append(msgspec.structs.replace(constant, metadata_props=(), doc_string=None))
                return None
            if constant is not None:
                self.sparse_constants.append(constant)
                return None
            if name in home.makers and name not in home.inputs:
                node = home.graph.node[home.makers[name][0]]
                if node.op_type in {"Constant", "Identity"} and plain_domain(node.domain) == "":
                    return node
        raise UnsettledError(f'"{visible(name)}", which it takes, is no value around it')


def _value(name: str, known: KnownType) -> ValueInfo:
    data_type, rank = known
    shape = None if rank is None else TensorShape(dim=(Dimension(),) * rank)
    return ValueInfo(name=name, type=Type(tensor_type=TensorType(elem_type=data_type, shape=shape)))


def _fresh_names(nodes: Sequence[Node], count: int) -> list[str]:
    used = {name for each in nodes for node in walk(each, Node) for name in (*node.input, *node.output)}
    names = (f"result_{number}" for number in range(len(used) + count))
    return [name for name in names if name not in used][:count]


def _plain(node: Node) -> Node:
    return msgspec.structs.replace(node, metadata_props=(), doc_string=None, device_configurations=())


def _called_functions(model: Model, nodes: Sequence[Node]) -> Iterator[Function]:
    """The functions that nodes call, and those that these call."""
    by_name = {function_key(each): each for each in model.functions}
    if not by_name:
        return
    pending = [inner for node in nodes for inner in walk(node, Node)]
    while pending:
        node = pending.pop()
        function = by_name.pop(operator_key(node), None)
        if function is not None:
            yield function
            pending += walk(function, Node)


def _opsets(model: Model, scope: Scope) -> tuple[OperatorSetId, ...]:
    """The operator sets of a graph; those of a function go before the model's."""
    *_, home = scope.chain()
    own = home.graph.opset_import if isinstance(home.graph, Function) else ()
    known = {plain_domain(each.domain) for each in own}
    return (*own, *[each for each in model.opset_import if plain_domain(each.domain) not in known])


def _require_settled(nodes: Iterable[Node], opset: int, constants: Mapping[str, Tensor]) -> None:
    """Refuse nodes of which the results are not the same each time."""
    for node in nodes:
        if plain_domain(node.domain) == "" and (
            node.op_type in RANDOM or (node.op_type == "Dropout" and _is_training(node, opset, constants))
        ):
            raise NotRunError(f"{visible(node.op_type or '')} gives random results")


def _require_no_reference(nodes: Iterable[Node]) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                name = visible(attribute.name or "")
                raise NotRunError(f'attribute "{name}" is that of the function around it, so it has no value here')


def _is_training(dropout: Node, opset: int, constants: Mapping[str, Tensor]) -> bool:
    """Whether a Dropout drops anything, or might."""
    if opset < 7:
        is_test = next((each.i for each in dropout.attribute if each.name == "is_test"), None)
        return not is_test
    mode = dropout.input[2] if len(dropout.input) > 2 else ""
    if opset < 12 or not mode:
        return False
    stored = raw_bytes(constants[mode]) if mode in constants else None
    return stored is None or whole(stored[0]) != b"\0"


def _with_elements(model: Model, elements: Elements) -> Model:
    """With all elements in the tensors themselves."""
    total = 0

    def taken_in(tensor: Tensor) -> Tensor:
        nonlocal total
        name = f'"{visible(tensor.name)}"' if tensor.name else "a constant"
        if is_external(tensor):
            data = elements(tensor)
            if data is None:
                raise NotRunError(f"the elements of {name} are in another file and cannot be had")
            tensor = msgspec.structs.replace(tensor, raw_data=data, external_data=(), data_location=None)
        payloads = [getattr(tensor, field) or b"" for field in _PAYLOADS]
        if any(isinstance(each, Digest) for each in payloads):
            raise NotRunError(f"only the sha256 of {name} is here")
        total += sum(map(len, payloads))
        if total > MOST_BYTES:
            raise NotRunError(f"its constants have more than {MOST_BYTES >> 20} MiB")
        return tensor

    return replace_tensors(model, taken_in)
