"""Which errors of onnx are independent, and which only follow from another one.

Shape inference knows nothing about the results of a node that fails, so it reports the nodes after it, or says nothing
about them. Therefore it is asked again about copies of the model in which the failing nodes are inputs with the same
types, until it finds no other failing node.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from onnxjson.model.constants import type_of_constant
from onnxjson.model.document import Attribute, Model, Node, Tensor, TensorType, Type, ValueInfo
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.operator_checks import dtype_of_type, produced_dtype
from onnxjson.model.operators import plain_domain, table_signature
from onnxjson.model.walking import Body, rebuild

ONNX_CODES: Final = ("check-model", "check-shapes")
"""Codes of the findings of onnx."""

ROUNDS: Final = 20
"""How often onnx is asked about a copy with failing nodes replaced."""

_NODE: Final = re.compile(r"(.*)/node/([0-9]+)(?:/|\Z)")
_MAIN_NODE: Final = re.compile(r"/graph/node/([0-9]+)(?:/|\Z)")
_VALUE: Final = re.compile(r"(.*)/(initializer|value_info|input|output)/([0-9]+)")
_LACKS_TYPE: Final = "instead is null"
"""The end of a message about a node whose input has no type."""

LIKE_INPUT: Final = frozenset((
    "BatchNormalization", "Celu", "Clip", "CumSum", "Dropout", "Elu", "Gelu", "GroupNormalization", "HardSigmoid",
    "Hardmax", "Identity", "InstanceNormalization", "LRN", "LayerNormalization", "LeakyRelu", "LogSoftmax",
    "LpNormalization", "MeanVarianceNormalization", "RMSNormalization", "Relu", "Selu", "Sigmoid", "Softmax", "Tanh",
))  # fmt: skip
"""Operators whose first output has the type of the first input, whatever the attributes."""

Infer = Callable[[Model], tuple[Mapping[str, Type], Sequence[Finding]]]
"""Shape inference: a model -> the types of values of its graph, and the errors, each with the address of its node."""


def independent_errors(index: Index, found: Sequence[Finding], infer: Infer) -> tuple[Finding, ...]:
    """Return findings, and independent errors that are found behind them; what only follows from others is counted."""
    folded = Folded(index, found)
    mended: set[int] = set()
    with suppress(OnnxJsonError):  # Then the first findings remain.
        _add_beside(index, folded, infer)
        types = infer(index.model)[0] if folded.failing_nodes() else {}
        for _ in range(ROUNDS):
            if not folded.failing_nodes() - mended:
                return folded.findings()
            mended = folded.failing_nodes()
            inferred, errors = infer(_mended(index.model, mended, types))
            types = {**types, **inferred}
            folded.add_hidden(errors)
        if folded.failing_nodes() - mended:
            message = f"shape inference ran {ROUNDS} times, and other nodes failed each time; more nodes may fail"
            return (*folded.findings(), Finding(severity="warning", code="check-unfinished", message=message))
    return folded.findings()


def _add_beside(index: Index, folded: "Folded", infer: Infer) -> None:
    """Add the errors beside one in a subgraph: onnx ends the node around it there, and skips its other subgraphs."""
    replaced: set[tuple[Scope, int]] = set()
    for _ in range(ROUNDS):
        failing = folded.failing_inside()
        if failing <= replaced:
            return
        replaced |= failing
        folded.add_beside(infer(_without(index, replaced))[1], {_outermost_owner(scope) for scope, _ in replaced})


def _without(index: Index, replaced: set[tuple[Scope, int]]) -> Model:
    """Return a model in which some nodes compute nothing; positions stay."""

    def change(scope: Scope, graph: Body) -> Body:
        nodes = [_nothing(at) if (scope, at) in replaced else node for at, node in enumerate(graph.node)]
        return replace(graph, node=tuple(nodes))

    return rebuild(index, change)


def _nothing(position: int) -> Node:
    value = Attribute(name="value", type=ATTRIBUTE_TYPES["TENSOR"], t=Tensor(data_type=1, raw_data=bytes(4)))
    return Node(op_type="Constant", output=(f"replaced {position}",), attribute=(value,))


def _outermost_owner(scope: Scope) -> NodeRef | None:
    """Return the node of the main graph that a subgraph is in."""
    return next((each.owner for each in reversed([*scope.chain()]) if each.owner is not None), None)


def _mended(model: Model, positions: set[int], types: Mapping[str, Type]) -> Model:
    """Return a model in which some nodes of the main graph are replaced by inputs with the types of their outputs."""
    graph = model.graph
    assert graph is not None, "the graph has nodes"
    types = {**{each.name or "": type_of_constant(each) for each in graph.initializer}, **types}
    nodes = list(graph.node)
    inputs: dict[str, Type] = {}
    for position in sorted(positions):
        node = nodes[position]
        for slot, name in enumerate(node.output):
            known = [each for each in (types.get(name), _expected_type(model, node, slot, types)) if each is not None]
            if name and known:
                with_shape = [each for each in known if each.tensor_type is None or each.shape is not None]
                inputs[name] = types[name] = next(iter([*with_shape, *known]))
        nodes[position] = _nothing(position)
    others = {name for node in nodes for name in node.output} | {each.name for each in graph.input}
    added = [ValueInfo(name=name, type=known) for name, known in inputs.items() if name not in others]
    return replace(model, graph=replace(graph, node=tuple(nodes), input=(*graph.input, *added)))


def _expected_type(model: Model, node: Node, slot: int, types: Mapping[str, Type]) -> Type | None:
    """Return the type of an output of a node as far as it does not depend on what may be wrong with the node."""
    domain = plain_domain(node.domain)
    if slot == 0 and node.op_type in LIKE_INPUT and not domain and node.input:
        return types.get(node.input[0])
    opset = next((each.version for each in model.opset_import if plain_domain(each.domain) == domain), None)
    dtype = produced_dtype(node, table_signature(domain, node.op_type, opset or 0), slot)
    if isinstance(dtype, str):
        dtype = dtype_of_type(types.get(dtype))
    return None if not dtype else Type(tensor_type=TensorType(elem_type=dtype))


class Folded:
    """Findings without those of onnx that follow from an error, which are counted there."""

    def __init__(self, index: Index, findings: Sequence[Finding]) -> None:
        self._scopes = {scope.address: scope for scope in index.scopes}
        self._index = index
        self._kept: list[Finding] = []
        self._following: dict[str, tuple[int, int]] = {}
        """Addresses of findings that seem to follow from an error -> that error, and their number."""
        self._followed = _Followed(index)
        self._elements: dict[str, int] = {}
        self._add(findings, self._followed)

    def failing_nodes(self) -> set[int]:
        """Return the positions of the nodes of the main graph that have errors of their own, also inside."""
        found = [_MAIN_NODE.match(each.address) for each in self._kept if each.severity == "error"]
        return {int(each[1]) for each in found if each is not None}

    def failing_inside(self) -> set[tuple[Scope, int]]:
        """Return the nodes of subgraphs that have errors."""
        places = [self._place(each.address) for each in self._kept if each.severity == "error"]
        return {each for each in places if each is not None and _outermost_owner(each[0]) is not None}

    def _place(self, address: str) -> tuple[Scope, int] | None:
        node = _NODE.match(address)
        scope = None if node is None else self._scopes.get(node[1])
        return None if node is None or scope is None else (scope, int(node[2]))

    def add_beside(self, findings: Sequence[Finding], around: set[NodeRef | None]) -> None:
        """Add errors of a model in which nodes of subgraphs are replaced: those in other places in the nodes around."""
        kept = {each.address for each in self._kept}
        new: list[Finding] = []
        for finding in findings:
            place = self._place(finding.address)
            if place is None or finding.address in kept or self._cause(self._followed, finding.address) is not None:
                continue
            owner = _outermost_owner(place[0])
            new += [finding] if owner is not None and owner in around else []
        self._add(new, _Followed(self._index))

    def add_hidden(self, findings: Sequence[Finding]) -> None:
        """Add errors of a model in which the nodes with errors so far are replaced."""
        followed = _Followed(self._index)
        kept = {each.address for each in self._kept}  # Nodes of functions are never replaced, so they fail again.
        new = [each for each in findings if each.address and each.address not in kept]
        behind = [each for each in new if self._cause(self._followed, each.address) is not None]
        missing = [each for each in behind if each.message.endswith(_LACKS_TYPE)]
        for finding in missing:  # The type of a replaced node is not known.
            cause = self._cause(self._followed, finding.address)
            assert cause is not None
            self._following.setdefault(finding.address, (cause, 1))
        first = len(self._kept)
        self._add([each for each in behind if each not in missing], followed)
        for each in self._kept[first:]:
            self._following.pop(each.address, None)

    def findings(self) -> tuple[Finding, ...]:
        """Return the independent findings, with the numbers of others that follow."""
        counts: dict[int, int] = {}
        for cause, count in self._following.values():
            counts[cause] = counts.get(cause, 0) + count
        kept = list(self._kept)
        for number, count in counts.items():
            more = f"{kept[number].message} (and {count:,} more that follow{'s' if count == 1 else ''} from it)"
            kept[number] = replace(kept[number], message=more)
        return tuple(kept)

    def _cause(self, followed: "_Followed", address: str) -> int | None:
        place = self._place(address)
        return self._elements.get(address) if place is None else followed.cause(*place)

    def _add(self, found: Sequence[Finding], followed: "_Followed") -> None:
        for finding in found:
            cause = self._cause(followed, finding.address)
            if cause is None and finding.message.endswith(_LACKS_TYPE) and self._lacks_input(finding.address):
                cause = next((place for place, each in enumerate(self._kept) if each.code == "duplicate-output"), None)
                if cause is not None and (node := self._place(finding.address)) is not None:
                    followed.add(*node, cause=cause)
                    self._followed.add(*node, cause=cause)
            if cause is not None and finding.code in ONNX_CODES:
                self._following[finding.address] = (cause, self._following.get(finding.address, (0, 0))[1] + 1)
                continue
            if finding.severity == "error":
                for each in {id(each): each for each in (followed, self._followed)}.values():
                    self._follow(finding.address, each)
            self._kept.append(finding)

    def _lacks_input(self, address: str) -> bool:
        """Whether nothing produces an input of the node at an address."""
        place = self._place(address)
        names = () if place is None else place[0].graph.node[place[1]].input
        return any(
            name and place and not any(name in each.defined_names for each in place[0].chain()) for name in names
        )

    def _follow(self, address: str, followed: "_Followed") -> None:
        """Let what depends on the element of the next finding follow from it."""
        cause = len(self._kept)
        place, value = self._place(address), _VALUE.fullmatch(address)
        if place is not None:
            followed.add(*place, cause=cause)
        elif value is not None and value[1] in self._scopes:
            self._elements.setdefault(address, cause)
            followed.add_value(self._scopes[value[1]], value[2], int(value[3]), cause=cause)


class _Followed:
    """What depends on errors."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._affected: dict[tuple[Scope, int], int] = {}
        """Nodes with an error, nodes around them, and those that depend on them -> the cause."""
        self._after: set[tuple[Scope, int]] = set()
        """Those of them that depend on an error, with everything inside."""

    def cause(self, scope: Scope, position: int) -> int | None:
        """Return the error that a node depends on, itself included; None if there is none."""
        if (found := self._affected.get((scope, position))) is not None:
            return found
        owner = scope.owner
        while owner is not None:
            if (owner.scope, owner.position) in self._after:
                return self._affected[owner.scope, owner.position]
            owner = owner.scope.owner
        return None

    def add(self, scope: Scope, position: int, *, cause: int) -> None:
        at: tuple[Scope, int] | None = (scope, position)
        while at is not None:
            self._affected.setdefault(at, cause)
            self._follow(at[0], at[0].graph.node[at[1]].output, cause)
            owner = at[0].owner
            at = None if owner is None else (owner.scope, owner.position)

    def add_value(self, scope: Scope, field: str, position: int, *, cause: int) -> None:
        value = getattr(scope.graph, field)[position]
        self._follow(scope, [getattr(value, "name", value)], cause)

    def _follow(self, scope: Scope, names: Iterable[str | None], cause: int) -> None:
        pending = [each for each in names if each]
        while pending:
            for position in self._index.consuming_nodes(scope, pending.pop()):
                if position is not None and (scope, position) not in self._after:
                    self._after.add((scope, position))
                    self._affected.setdefault((scope, position), cause)
                    pending += filter(None, scope.graph.node[position].output)
