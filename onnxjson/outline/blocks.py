"""Blocks that the shipped rules describe: norms, activations, rotary embeddings, products that quantize a value."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias

from onnxjson.model.document import Model, Node
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.index import Index
from onnxjson.model.scopes import Scope
from onnxjson.outline.flow import LONG, Flow, Kept
from onnxjson.outline.units import DEFAULT_EPSILON, Unit, attribute_text, window
from onnxjson.outline.values import operator
from onnxjson.patterns.expression import Pattern
from onnxjson.patterns.finding import Match, matches
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.nodes import TOLERANCE, Nodes, Value
from onnxjson.patterns.rule_files import SHIPPED, NamedBlock, read_rules
from onnxjson.patterns.searching import matchers

_Keywords: TypeAlias = Sequence[tuple[str, str]]

_SHARED: Final = "DynamicQuantizeLinear"
"""The operator of nodes that several blocks may have; such a node belongs to the first of them."""


@cache
def _blocks() -> list[tuple[Pattern, NamedBlock]]:
    """The blocks of the shipped rules, larger ones before those that they contain."""
    found = [(parse(rule.pattern_text), rule.block) for rule in read_rules(SHIPPED) if rule.block is not None]
    return sorted(found, key=lambda each: -max([len(variant.calls) for variant in each[0].variants]))


def block_units(model: Model, index: Index, flows: Mapping[Scope, Flow]) -> Iterator[tuple[Scope, Unit]]:
    """Yield the blocks of all graphs as units; no inner value is used elsewhere, no node but `_SHARED` is in two."""
    taken: dict[Scope, set[int]] = {scope: set() for scope in flows}
    nodes = Nodes(model, index, TOLERANCE)
    for pattern, block in _blocks():
        for match in matches(matchers(model, index, pattern, nodes=nodes), overlapping=True):
            scope = match.root.scope
            flow = flows.get(scope)
            unit = None if flow is None else _unit(flow, block, match)
            if unit is not None and taken[scope].isdisjoint(unit.nodes):
                taken[scope].update([ref.position for ref in match.nodes if operator(ref.node) != _SHARED])
                yield scope, unit


def _unit(flow: Flow, block: NamedBlock, match: Match) -> Unit | None:
    """The unit of a match, or None if a value inside it is used elsewhere, or one that is not shown comes in."""
    root, nodes = match.root.position, flow.nodes
    inside = {ref.position for ref in match.nodes if ref.position not in flow.constant_nodes}
    if any([ref.scope is not flow.scope for ref in match.nodes]) or root not in inside:
        return None
    inner = [(at, name) for at in inside - {root} for name in nodes[at].output]
    for at, name in inner:
        users = [user for user, _ in flow.uses.get(name, ()) if user not in inside and user not in flow.shape_nodes]
        if users and (operator(nodes[at]) != _SHARED or -1 in users):
            return None
    is_product = block.name == "Linear"
    operands = [flow.alias(_bound_name(match, name)) for name in block.operands]
    computed = [flow.alias(_bound_name(match, name)) for name in block.computed]
    operands += [name for name in computed if not flow.is_operand(name)]
    entering = {name for at in inside for name in nodes[at].input if name}.difference([name for _, name in inner])
    if not all([flow.is_operand(name) or flow.alias(name) in operands for name in entering]):
        return None
    open_keywords = _OPEN[block.name](flow, match) if block.name in _OPEN else ()
    if open_keywords is None:
        return None
    keywords = [*open_keywords, *[(key, _number(flow, match, name)) for key, name in block.keywords.items()]]
    return Unit(
        (*sorted(inside - {root}), root), tuple(nodes[root].output[:1]), "@" if is_product else block.name,
        tuple(operands), tuple([each for each in keywords if each != DEFAULT_EPSILON]), is_infix=is_product,
        block=block.name, has_options=block.name in ("Conv", "SqueezeExcite"),
    )  # fmt: skip


def _nodes(match: Match, *operators: str) -> list[Node]:
    """The nodes of a match that call one of some operators."""
    return [ref.node for ref in match.nodes if operator(ref.node) in operators]


def _bound_name(match: Match, name: str) -> str:
    bound = match.bindings[name]
    return bound.name if isinstance(bound, Value) else ""


def _number(flow: Flow, match: Match, name: str) -> str:
    """The number of a name of the pattern; other texts as they are."""
    bound = match.bindings.get(name)
    if not isinstance(bound, Value):
        return name if bound is None else attribute_text(bound)
    elements: Sequence[object] | None = flow.elements(bound.name)
    return f"{elements[0]:.6g}" if elements and isinstance(elements[0], float) else "..."


def _axes(flow: Flow, match: Match) -> _Keywords | None:
    """The axes of all means of a norm, if not the last one alone.

    None if they differ or are not kept, or if its weights are not along them.
    """
    dims = flow.dims(_bound_name(match, "x"))
    reduced: set[tuple[int, ...]] = set()
    for node in _nodes(match, "ReduceMean"):
        numbers = flow.numbers(node, 1, "axes")
        is_dropped = any([each.name == "keepdims" and not each.i for each in node.attribute])
        if not numbers or is_dropped or (dims is None and max(numbers) >= 0):
            return None
        reduced.add(tuple(sorted([axis if axis < 0 else axis - len(dims or ()) for axis in numbers])))
    axes = reduced.pop()
    known = flow.sizes(_bound_name(match, "x"))
    for sizes in [flow.sizes(_bound_name(match, name)) for name in ("w", "b") if name in match.bindings]:
        is_along = all([axis in sizes and not _differ(sizes[axis], known.get(axis)) for axis in axes])
        if reduced or not is_along or any([sizes[axis] != 1 for axis in sizes.keys() - axes]):
            return None
    shown = [str(axis + len(dims) if dims else axis) for axis in axes]
    return None if reduced else () if axes == (-1,) else [("axes", f"[{','.join(shown)}]")]


def _differ(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _groups(flow: Flow, match: Match) -> _Keywords | None:
    """The number of groups; None unless a norm is over parts of single pictures, which it leaves as they were."""
    (norm,) = _nodes(match, "InstanceNormalization")
    (last,) = [node for node in _nodes(match, "Reshape") if norm.output[0] in node.input]
    x, groups, out = [flow.dims(name) or () for name in (_bound_name(match, "x"), norm.input[0], last.output[0])]
    is_back = len(x) == len(out) or not (x and out)
    is_each = flow.producer(norm.input[0]) in flow.without_effect  # a group for each channel: an InstanceNorm
    is_same = is_back and not is_each and not any([*map(_differ, x, out), *map(_differ, x[:1], groups)])
    return [("num_groups", str(flow.sizes(_bound_name(match, "g")).get(-1, "...")))] if is_same else None


def _of_positions(flow: Flow, match: Match) -> _Keywords | None:
    """None unless a Gather takes single elements, and no further Reshape follows."""
    users = [operator(flow.nodes[user]) for user, _ in flow.uses.get(match.root.node.output[0], ()) if user >= 0]
    is_single = _number(flow, match, "axis") == str(flow.rank(_bound_name(match, "x")))
    return () if is_single and "Reshape" not in users else None


def _parts(flow: Flow, slices: Sequence[Node]) -> list[Kept]:
    """What two Slices keep of one axis; nothing if that is not known."""
    one, other = [flow.kept(node) for node in slices]
    return [*one, *other] if len(one) == len(other) == 1 and one[0].axis == other[0].axis else []


def _rotation(flow: Flow, match: Match) -> _Keywords | None:
    """Of how many numbers of each head a rotation is, if not of all; None for what is not a rotation."""
    slices = [ref.node for ref in match.calls if operator(ref.node) == "Slice"]
    if len(slices) == 2:
        return () if _is_rotation(flow, match, slices, "x") else None
    front, *inner, rest = slices  # the others are beside the result
    parts, (name, out) = _parts(flow, [front, rest]), (_bound_name(match, "x"), match.root.node.output[0])
    if not parts or not _is_rotation(flow, match, inner, "p"):
        return None
    axes = {parts[0].axis, *[each.i for each in match.root.node.attribute if each.name == "axis"]}
    is_last = all([axis is not None and flow.is_last_axis(axis, [name, out]) for axis in axes])
    is_front = [part[1:] for part in parts] == [(0, parts[0].end, 1), (parts[0].end, LONG, 1)]
    return [(f"first {parts[0].end}", "")] if is_last and is_front and parts[0].end is not None else None


def _is_rotation(flow: Flow, match: Match, slices: Sequence[Node], name: str) -> bool:
    """Whether the first Slice, which is negated, is the second half, and the other the first; or each second number."""
    if not (parts := _parts(flow, slices)):
        return False
    (axis, middle, _, step), (_, start, cut, other_step) = parts
    if joins := _nodes(match, "Reshape"):
        sizes = [flow.dims(each) or () for each in (_bound_name(match, name), joins[0].output[0])]
        if any([_differ(one, other) for one, other in zip(*sizes, strict=False)]):
            return False
        return (start, middle, step, other_step) == (0, 1, 2, 2)
    size = flow.size(_bound_name(match, name), axis)
    is_half = start == 0 != middle and (None in (cut, middle) or cut == middle)
    return is_half and step == other_step == 1 and (middle is None or not _differ(2 * middle, size))


def _shift(flow: Flow, match: Match) -> _Keywords | None:
    """The axis and distance of a Roll; None unless the end of a value along one axis is put before its start."""
    if not (parts := _parts(flow, [ref.node for ref in match.calls[1:]])) or (by := parts[0].start) is None:
        return None
    axis = parts[0].axis
    size = flow.size(_bound_name(match, "x"), axis)
    is_roll = parts == [(axis, by, LONG, 1), (axis, 0, by, 1)] and _number(flow, match, "axis") == str(axis)
    shift = size - by if isinstance(size, int) and 2 * by > size else -by
    return [("", f"axis {axis} by {shift}")] if is_roll else None


def _of_bytes(flow: Flow, match: Match) -> _Keywords | None:
    """None unless a value is rounded to 8 bits, with one zero point."""
    zeros = {"".join(node.input[2:3]) for node in _nodes(match, "QuantizeLinear", "DequantizeLinear")}
    return () if len(zeros) == 1 and flow.dtype(zeros.pop()) in (DATA_TYPES["uint8"], DATA_TYPES["int8"]) else None


def _of_points(flow: Flow, match: Match) -> _Keywords | None:
    """None unless means, convolutions and sums have one point for each channel."""
    sizes = {name: flow.dims(_bound_name(match, name)) for name in "wubc" if name in match.bindings}
    rank = len(sizes["w"] or ())
    means = [sorted(flow.numbers(node, 1, "axes") or ()) for node in _nodes(match, "ReduceMean")]
    pads = [each.ints for node in _nodes(match, "Conv") for each in node.attribute if each.name == "pads"]
    ends = [None if dims is None else {*dims[2 if name in "wu" else 2 - rank :]} for name, dims in sizes.items()]
    are_points = all([each is not None and each <= {1} for each in ends]) and not any(map(any, pads))
    return () if are_points and (not means or (rank == 4 and means[0] in ([2, 3], [-2, -1]))) else None


_OPEN: Final[dict[str, Callable[[Flow, Match], _Keywords | None]]] = {
    "Conv": lambda flow, match: window(flow, _nodes(match, "ConvInteger")[0]),
    "CumSum": lambda flow, match: () if flow.dtype(_bound_name(match, "x")) == DATA_TYPES["int32"] else None,
    "GatherND": _of_positions, "GroupNorm": _groups,
    "LayerNorm": _axes, "RMSNorm": _axes, "Roll": _shift, "SqueezeExcite": _of_points, "q8": _of_bytes,
    "rope": _rotation,
}  # fmt: skip
"""By the name of a block, what its pattern leaves open: further keywords, or None if it is not that block."""
