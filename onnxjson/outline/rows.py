"""Layout: Reshapes around products of rows say nothing, and are not shown; longer chains are one Rearrange.

Optimizers write a product with a weight of rank 2 and its bias as Gemm, which needs a matrix.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from onnxjson.outline.flow import Flow
from onnxjson.outline.heads import order_of
from onnxjson.outline.units import Unit, Units

_ROW_WISE: Final = frozenset(
    [
        "", "Cast", "DoubleGelu", "Elu", "Erf", "Gelu", "HardSwish", "LayerNorm", "Mish", "QuickGelu", "RMSNorm",
        "Relu", "SiLU", "Sigmoid", "Softmax", "Tanh", "q8",
    ]
)  # fmt: skip
"""Blocks and operators that compute each row by itself."""

_LAYOUT: Final = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"})


def merge_layout(graph: Units) -> None:
    """Make one unit of chains of layout operators: a Reshape, or a Rearrange if the order changes."""
    units = graph.units
    for number, unit in enumerate(units):
        last = unit
        chain, kept = dict[int, None](), list[Unit]()
        at = number
        while _is_layout(graph, at) and at not in chain:
            order = order_of(units[at])
            if kept and order and [*map(dict(enumerate(order)).get, order_of(kept[-1]))] == sorted(order):
                kept.pop()  # a Transpose to and fro
            else:
                kept.append(units[at])
            chain[at], last = None, units[at]
            at = graph.only_user(last.outputs[0])
        if len(chain) > 1 and kept:
            moves = any([each.head == "Transpose" for each in kept])
            shape = last.keywords[0] if last.head == "Reshape" else ("", graph.flow.shape_text(last.outputs[0], ()))
            merged = kept[0] if len(kept) == 1 else Unit((), (), "Rearrange" if moves else "Reshape", (), (shape,))
            graph.merge([*chain], merged._replace(operands=unit.operands, outputs=last.outputs))


def _is_layout(graph: Units, number: int) -> bool:
    unit = graph.units[number]
    return number >= 0 and number not in graph.changes and unit.head in _LAYOUT and len(unit.operands) == 1


def merge_rows(graph: Units) -> None:
    """Leave out each Reshape to the rows of a value and back, where all between them computes each row by itself."""
    flow, units = graph.flow, graph.units
    regions: dict[str, int] = {}
    """By value, the region of all that is computed from the same rows; one that joined another leads to that."""
    leads: list[int] = []
    starts: list[list[int]] = []
    ends: list[list[int]] = []
    broken: list[int] = []

    def region(number: int) -> int:
        while leads[number] != number:
            leads[number] = number = leads[leads[number]]
        return number

    for number, unit in enumerate(units):
        inner = [region(regions[name]) for name in (*unit.operands, *unit.captured) if name in regions]
        if unit.head == "Reshape" and inner:
            ends[inner[0]].append(number)
        elif unit.head == "Reshape" and unit.keywords[0][1].count(",") == 1:
            regions[unit.outputs[0]] = len(leads)
            leads.append(len(leads))
            starts.append([number])
            ends.append([])
        elif inner:
            for other in {*inner} - {inner[0]}:
                leads[other] = inner[0]
                starts[inner[0]] += starts[other]
                ends[inner[0]] += ends[other]
            if _is_row_wise(flow, unit, regions):
                regions[unit.outputs[0]] = inner[0]
            else:
                broken.append(inner[0])
    broken += [regions[name] for name in flow.outputs if name in regions]
    same: dict[str, str] = {}
    nodes: dict[str, tuple[int, ...]] = {}
    for number in {*map(region, leads)} - {*map(region, broken)}:
        for name, source, at in _left_out(graph, starts[number], ends[number]):
            same[name], nodes[name], graph.changes[at] = source, units[at].nodes, None
    for number, unit in enumerate(units if same else ()):
        if number not in graph.changes and not same.keys().isdisjoint((*unit.operands, *unit.outputs)):
            before = [node for name in unit.operands for node in nodes.pop(name, ())]
            after = nodes.pop(unit.outputs[0], ())
            operands, outputs = [
                tuple([_renamed(same, each) for each in names]) for names in (unit.operands, unit.outputs)
            ]
            graph.changes[number] = unit._replace(
                nodes=(*before, *unit.nodes, *after), operands=operands, outputs=outputs
            )


def _renamed(same: Mapping[str, str], name: str) -> str:
    while name in same:
        name = same[name]
    return name


def _left_out(graph: Units, starts: Sequence[int], ends: Sequence[int]) -> list[tuple[str, str, int]]:
    """Return the Reshapes of a region that are left out, each after a value and the one that is in its place."""
    units, flow = graph.units, graph.flow
    axes: dict[int, list[str]] = {}
    known: list[list[str]] = []
    for number in (*starts, *ends):
        unit = units[number]
        sizes = [flow.shape_text(unit.operands[0], ()), unit.keywords[0][1]]
        rows, outer = [text.strip("[]").split(",") for text in (sizes if number in ends else sizes[::-1])]
        axes[number] = outer[:-1] if len(outer) > 2 and rows[-1] in (outer[-1], "...") else []
        known += [axes[number]] if rows[-1] == outer[-1] else []
    # Those without an axis for heads.
    usual = min(filter(None, known), key=lambda each: (len(each), -known.count(each)), default=[])
    counts = {count for number in starts if (count := units[number].keywords[0][1].strip("[").split(",")[0]).isdigit()}
    if not usual or len(counts) > 1:
        return []
    left_out: dict[str, tuple[str, int]] = {}
    results = {units[number].outputs[0] for number in starts}
    for number in (*starts, *ends):
        before, after = units[number].operands[0], units[number].outputs[0]
        is_alike = _are_alike(axes[number], usual)
        if is_alike and number in starts:
            left_out[after] = before, number
        elif number in starts:
            columns = units[number].keywords[0][1].rpartition(",")[2]
            graph.changes[number] = units[number]._replace(keywords=(("", f"[{','.join(usual)},{columns}"),))
        elif is_alike and before not in results and before not in left_out:
            left_out[before] = after, number
        elif is_alike and before in left_out and after not in flow.outputs:
            left_out[after] = before, number
    return [(name, *other) for name, other in left_out.items()]


def _is_row_wise(flow: Flow, unit: Unit, regions: Collection[str]) -> bool:
    """Whether a unit computes each row of the values of some regions by itself."""
    others = [name for name in unit.operands if name not in regions]
    ranks = [len(flow.dims(name) or (0, 0)) if flow.is_weight(name) else 2 for name in others]
    if unit.block == "Linear":
        return others == [*unit.operands[1:]] and ranks == [2]
    if unit.is_infix:
        return unit.head != "@" and max(ranks, default=0) < 2
    return unit.head in _ROW_WISE and not others and not any([key[:2] == "ax" for key, _ in unit.keywords])


def _are_alike(one: Sequence[str], two: Sequence[str]) -> bool:
    """Whether axes have the same sizes, as far as they are known; one unknown size follows from the others."""
    unknown = [pair for pair in zip(one, two, strict=False) if pair[0] != pair[1] or "..." in pair]
    return len(one) == len(two) > 0 and len(unknown) < 2 and all(["..." in pair for pair in unknown])
