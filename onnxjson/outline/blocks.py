"""Blocks that the shipped rules describe: norms, activations, rotary embeddings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from onnxjson.model.document import Attribute, Model, Node
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.index import Index
from onnxjson.model.messages import value_of
from onnxjson.model.scopes import Scope
from onnxjson.outline.flow import Flow, operator
from onnxjson.outline.units import DEFAULT_EPSILON, Unit
from onnxjson.patterns.expression import Pattern
from onnxjson.patterns.finding import Match, matches
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.nodes import TOLERANCE, Nodes, Value
from onnxjson.patterns.rule_files import SHIPPED, NamedBlock, read_rules
from onnxjson.patterns.searching import matchers

_NORMS: Final = frozenset({"LayerNorm", "RMSNorm"})


@cache
def _blocks() -> list[tuple[Pattern, NamedBlock]]:
    """The blocks of the shipped rules, larger ones before those that they contain."""
    found = [(parse(rule.pattern_text), rule.block) for rule in read_rules(SHIPPED) if rule.block is not None]
    return sorted(found, key=lambda each: -max([len(variant.calls) for variant in each[0].variants]))


def block_units(model: Model, index: Index, flows: Mapping[Scope, Flow]) -> Iterator[tuple[Scope, Unit]]:
    """Yield the blocks of all graphs as units; no node is in two, and no inner value is used elsewhere."""
    taken: dict[Scope, set[int]] = {scope: set() for scope in flows}
    nodes = Nodes(model, index, TOLERANCE)
    for pattern, block in _blocks():
        for match in matches(matchers(model, index, pattern, nodes=nodes), overlapping=True):
            scope = match.root.scope
            flow = flows.get(scope)
            unit = None if flow is None else _unit(flow, block, match)
            if unit is not None and taken[scope].isdisjoint(unit.nodes):
                taken[scope].update(unit.nodes)
                yield scope, unit


def _unit(flow: Flow, block: NamedBlock, match: Match) -> Unit | None:
    """The unit of a match, or None if a value inside it is used elsewhere."""
    root = match.root.position
    nodes = {ref.position for ref in match.nodes if ref.position not in flow.constant_nodes}
    if any([ref.scope is not flow.scope for ref in match.nodes]) or root not in nodes:
        return None
    for position in nodes - {root}:
        for name in flow.nodes[position].output:
            if any([user not in nodes and user not in flow.shape_nodes for user, _ in flow.uses.get(name, ())]):
                return None
    axes = _axes(flow, match) if block.name in _NORMS else ()
    proof = _PROOFS.get(block.name)
    if axes is None or (proof is not None and not proof(flow, match)):
        return None
    operands = [flow.alias(bound.name) for name in block.operands if isinstance(bound := match.bindings[name], Value)]
    keywords = [(key, _number(flow, match.bindings[name]) if name else "") for key, name in block.keywords.items()]
    if block.name in _NORMS:
        shown = [("axes", f"[{','.join(map(str, axes))}]")] if axes else []
        keywords = [*shown, *[each for each in keywords if each != DEFAULT_EPSILON]]
    if block.name == "rope":
        operands += [name for each in "cs" if not flow.is_operand(name := flow.alias(_bound_name(match, each)))]
    if block.name == "GroupNorm":
        (norm,) = [ref.node for ref in match.nodes if operator(ref.node) == "InstanceNormalization"]
        keywords.append(("num_groups", ",".join(map(str, flow.dims(norm.input[1]) or ("...",)))))
    ordered = (*sorted(nodes - {root}), root)
    return Unit(
        ordered, tuple(flow.nodes[root].output[:1]), block.name, tuple(operands), tuple(keywords), block=block.name
    )  # fmt: skip


def _axes(flow: Flow, match: Match) -> tuple[int, ...] | None:
    """The axes of all means of a norm, none for the last one alone.

    None if they differ or are not kept, or if its weights are not along them.
    """
    dims = flow.dims(_bound_name(match, "x"))
    reduced: set[tuple[int, ...]] = set()
    for node in [ref.node for ref in match.nodes if operator(ref.node) == "ReduceMean"]:
        given = {each.name: each for each in node.attribute}
        axes = given["axes"].ints if "axes" in given else flow.elements(node.input[1]) if len(node.input) > 1 else None
        if not axes or ("keepdims" in given and not given["keepdims"].i) or (dims is None and max(axes) >= 0):
            return None
        reduced.add(tuple(sorted([axis if axis < 0 else axis - len(dims or ()) for axis in axes])))
    if len(reduced) != 1:
        return None
    (axes,) = reduced
    for sizes in [flow.dims(_bound_name(match, name)) for name in ("w", "b") if name in match.bindings]:
        along = [size for place, size in enumerate(sizes or (), -len(sizes or ())) if place not in axes]
        if not sizes or any([size != 1 for size in along]) or (dims and _differ(sizes[-1], dims[-1]) and -1 in axes):
            return None
        if len(axes) > 1 and any([len(sizes) < -axis or _differ(sizes[axis], dims[axis]) for axis in axes if dims]):
            return None
    return () if axes == (-1,) else tuple([axis + len(dims) if dims else axis for axis in axes])


def _differ(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _bound_name(match: Match, name: str) -> str:
    bound = match.bindings[name]
    return bound.name if isinstance(bound, Value) else ""


def _is_rotation(flow: Flow, match: Match) -> bool:
    """Whether the negated part of a rotation is the second half, and the other one the first; or each second number."""
    slices = {ref.node.output[0]: ref.node for ref in match.nodes if operator(ref.node) == "Slice"}
    negated = [ref.node.input[0] for ref in match.nodes if operator(ref.node) == "Neg"]
    if len(slices) != 2 or len(negated) != 1 or negated[0] not in slices:
        return False
    second = _bounds(flow, slices.pop(negated[0]))
    first = _bounds(flow, *slices.values())
    is_end = second[0] is None or second[1] is None or second[1][0] < 0 or second[1][0] >= 2 * second[0][0]
    if joins := [ref.node.output[0] for ref in match.nodes if operator(ref.node) == "Reshape"]:
        sizes = [flow.dims(name) or () for name in (_bound_name(match, "x"), *joins)]
        if any([_differ(one, other) for one, other in zip(*sizes, strict=False)]):
            return False
        return first[0] == [0] and second[0] == [1] and first[2] == second[2] == [2]
    is_whole = first[2] in (None, [1]) and second[2] in (None, [1])
    is_cut = first[0] == [0] != second[0] and (None in (first[1], second[0]) or first[1] == second[0])
    return is_whole and is_end and is_cut


def _is_after_softmax(flow: Flow, match: Match) -> bool:
    """Whether NaN is replaced where a mask leaves nothing to a Softmax."""
    producer = flow.producer(flow.alias(_bound_name(match, "x")))
    return producer >= 0 and operator(flow.nodes[producer]) == "Softmax"


def _is_of_bytes(flow: Flow, match: Match) -> bool:
    """Whether a value is rounded to 8 bits, with one zero point."""
    quantize, dequantize = sorted([ref.node for ref in match.nodes], key=lambda node: operator(node)[0] == "D")
    zeros = [node.input[2] if len(node.input) > 2 else "" for node in (quantize, dequantize)]
    kinds = [flow.dtype(name) for name in zeros if name]
    is_same = zeros[0] == zeros[1] or flow.elements(zeros[0]) == flow.elements(zeros[1]) is not None
    return is_same and all([kind in _BYTES for kind in kinds]) and (bool(kinds) or not quantize.attribute)


def _is_of_groups(flow: Flow, match: Match) -> bool:
    """Whether a norm of groups is over parts of single pictures, which it leaves as they were."""
    (norm,) = [ref.node for ref in match.nodes if operator(ref.node) == "InstanceNormalization"]
    (last,) = [ref.node for ref in match.nodes if operator(ref.node) == "Reshape" and norm.output[0] in ref.node.input]
    x, groups, out = [flow.dims(name) or () for name in (_bound_name(match, "x"), norm.input[0], last.output[0])]
    is_back = len(x) == len(out) or not (x and out)
    is_each = flow.producer(norm.input[0]) in flow.without_effect  # a group for each channel: an InstanceNorm
    return is_back and not is_each and not any([*map(_differ, x, out), *map(_differ, x[:1], groups)])


def _is_of_positions(flow: Flow, match: Match) -> bool:
    """Whether a Gather takes single elements at places that do not depend on data, and no further Reshape follows."""
    users = [operator(flow.nodes[user]) for user, _ in flow.uses.get(match.root.node.output[0], ()) if user >= 0]
    is_single = _number(flow, match.bindings["axis"]) == str(flow.rank(_bound_name(match, "x")))
    return is_single and flow.is_operand(_bound_name(match, "i")) and "Reshape" not in users


_BYTES: Final = (DATA_TYPES["uint8"], DATA_TYPES["int8"])

_PROOFS: Final[dict[str, Callable[[Flow, Match], bool]]] = {
    "rope": _is_rotation, "": _is_after_softmax, "q8": _is_of_bytes, "GatherND": _is_of_positions,
    "GroupNorm": _is_of_groups,
    "CumSum": lambda flow, match: flow.dtype(_bound_name(match, "x")) == DATA_TYPES["int32"],
}  # fmt: skip
"""By the name of a block, what its pattern leaves open."""


def _bounds(flow: Flow, node: Node) -> tuple[list[int] | None, list[int] | None, list[int] | None]:
    """The start, end and step of a Slice, as far as they are constants."""
    given = {each.name: list(each.ints or ()) for each in node.attribute}
    names = [*node.input[1:5], "", "", "", ""]
    start, end, step = [
        None if (elements := flow.elements(names[place])) is None else list(elements) for place in (0, 1, 3)
    ]
    return start or given.get("starts"), end or given.get("ends"), step


def _number(flow: Flow, bound: Value | Attribute) -> str:
    if isinstance(bound, Attribute):
        return str(value_of(bound))
    elements: Sequence[object] | None = flow.elements(bound.name)
    return f"{elements[0]:.6g}" if elements and isinstance(elements[0], float) else "..."
