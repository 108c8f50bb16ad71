"""Layout: Reshapes around products of rows say nothing, and are not shown; longer chains are one Rearrange.

Optimizers write a product with a weight of rank 2 and its bias as Gemm, which needs a matrix.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from math import prod
from typing import Final

from onnxjson.model.dimensions import INVENTED
from onnxjson.outline.flow import LONG, Flow, Kept
from onnxjson.outline.heads import order_of
from onnxjson.outline.units import Unit, Units, axis_text

_ROW_WISE: Final = frozenset(
    [
        "", "Cast", "DoubleGelu", "Elu", "Erf", "Gelu", "HardSwish", "LayerNorm", "Mish", "QuickGelu", "RMSNorm",
        "Relu", "SiLU", "Sigmoid", "Softmax", "Tanh",
    ]
)  # fmt: skip
"""Blocks and operators that compute each row by itself."""

_NESTED: Final = 32
"""Operands of Concats in each other, and users of a value that are looked at."""

_LAYOUT: Final = frozenset({"", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"})


def merge_layout(graph: Units) -> None:
    """Make one unit of chains of layout operators: a Reshape, or a Rearrange if the order changes."""
    flow, units = graph.flow, graph.units
    for number, unit in enumerate(units):
        follower = graph.only_user(unit.outputs[0]) if _is_layout(unit) else number
        if not _is_layout(unit) or (follower >= 0 and _is_layout(units[follower])):
            continue
        chain, kept = [number], list[Unit]()
        while (before := graph.producer(units[chain[0]].operands[0])) >= 0 and _is_layout(units[before]):
            if graph.uses[units[before].outputs[0]] != 1:
                break
            chain.insert(0, before)
        for layout in [units[at] for at in chain]:
            order = order_of(layout)
            if kept and order and [order[axis] for axis in order_of(kept[-1])] == sorted(order):
                kept.pop()  # a Transpose to and fro
            elif layout.head:
                kept.append(layout)
        moves = any([each.head == "Transpose" and _moves(flow, each) for each in kept])
        shape = unit.keywords[0][1] if unit.head == "Reshape" else flow.shape_text(unit.outputs[0], ())
        if kept and (len(chain) > 1 or (not moves and shape != "[...]")):
            merged = Unit((), (), "Rearrange" if moves else "Reshape", (), (("", shape),))
            merged = kept[0] if len(kept) == 1 and moves else merged
            graph.merge(chain, merged._replace(operands=units[chain[0]].operands, outputs=unit.outputs))


def _moves(flow: Flow, unit: Unit) -> bool:
    """Whether a Transpose changes the order of axes other than those of size 1."""
    order, dims = order_of(unit), dict(enumerate(flow.dims(unit.operands[0]) or ()))
    kept = [axis for axis in order if len(dims) != len(order) or dims.get(axis) != 1]
    return not order or kept != sorted(kept)


def _is_layout(unit: Unit) -> bool:
    return unit.head in _LAYOUT and len(unit.operands) == 1


def merge_rows(graph: Units) -> None:
    """Leave out each Reshape to the rows of a value and back, where all between them computes each row by itself."""
    same: dict[str, tuple[str, int]] = {}
    seen: set[str] = set()
    for unit in graph.units:
        if _is_to_rows(unit) and unit.outputs[0] not in seen and (found := _region(graph, unit.outputs[0], seen)):
            same.update(_left_out(graph, *found))
    _leave_out(graph, same)


def merge_copies(graph: Units) -> None:
    """Leave out layout of a value that is the same as another one of it."""
    first: dict[Hashable, str] = {}
    same: dict[str, tuple[str, int]] = {}
    kept = {*graph.flow.outputs, *[name for unit in graph.units for name in unit.captured]}
    for at, unit in enumerate(graph.units):
        if unit.head and _is_layout(unit) and unit.outputs[0] not in kept:
            other = first.setdefault(unit[2:5], unit.outputs[0])
            if other != unit.outputs[0] and not any(["..." in text for _, text in unit.keywords]):
                same[unit.outputs[0]] = other, at
    _leave_out(graph, same)


def _leave_out(graph: Units, same: Mapping[str, tuple[str, int]]) -> None:
    """Leave out units, by the value in whose place another one is; their nodes belong to what is beside them."""
    nodes = {name: graph.units[at].nodes for name, (_, at) in same.items()}
    graph.changes.update(dict.fromkeys([at for _, at in same.values()]))
    for number, unit in enumerate(graph.units if same else ()):
        if graph.changes.get(number, unit) is not None and not same.keys().isdisjoint((*unit.operands, *unit.outputs)):
            before = [node for name in unit.operands for node in nodes.pop(name, ())]
            inner = (*before, *unit.nodes, *nodes.pop(unit.outputs[0], ()))
            operands, outputs = [
                tuple([_renamed(same, each) for each in names]) for names in (unit.operands, unit.outputs)
            ]
            graph.changes[number] = unit._replace(nodes=inner, operands=operands, outputs=outputs)


def _is_to_rows(unit: Unit) -> bool:
    return unit.head == "Reshape" and unit.keywords[0][1].count(",") == 1


def _renamed(same: Mapping[str, tuple[str, int]], name: str) -> str:
    while name in same:
        name = same[name][0]
    return name


def _region(graph: Units, rows: str, seen: set[str]) -> tuple[dict[int, None], dict[int, None]] | None:
    """The Reshapes to rows and those from rows around all that is computed from the same rows.

    None if anything else uses or computes them. `seen` has the values of rows of all regions, also of those.
    """
    starts, ends, inner = dict[int, None](), dict[int, None](), set[str]()
    pending, is_closed = [rows], True
    while pending:
        name = pending.pop()
        producer, users = graph.producer(name), graph.users.get(name, [])
        count = sum([graph.units[user].operands.count(name) for user in users])
        if name in inner or name in seen or producer < 0 or count != graph.uses[name]:
            is_closed &= name in inner
            continue
        inner.add(name)
        for number in (*users, producer):
            unit = graph.units[number]
            if unit.head == "Reshape" and (number != producer or _is_to_rows(unit)):
                (starts if number == producer else ends)[number] = None
            else:
                operands = _rows_of(graph.flow, unit)
                pending += (*operands, *unit.outputs[: len(operands)])
                is_closed &= bool(operands) and not any([graph.uses[other] for other in unit.outputs[1:]])
    seen |= inner
    return (starts, ends) if is_closed else None


def _rows_of(flow: Flow, unit: Unit) -> list[str]:
    """The operands of whose rows a unit computes each by itself; none if it does not."""
    others = [name for name in unit.operands if not flow.is_weight(name)]
    ranks = [len(flow.dims(name) or (0, 0)) for name in unit.operands if flow.is_weight(name)]
    if unit.block == "Linear":
        return others if ranks == [2] and len(others) == 1 else []
    if unit.is_infix:
        return others if unit.head != "@" and max(ranks, default=0) < 2 else []
    is_alone = len(unit.operands) == 1 and not any([key[:2] == "ax" for key, _ in unit.keywords])
    return others if unit.head in _ROW_WISE and is_alone else []


def _left_out(graph: Units, starts: Collection[int], ends: Collection[int]) -> dict[str, tuple[str, int]]:
    """The Reshapes of a region that are left out, by the value in whose place another one is; the others change."""
    units, flow = graph.units, graph.flow
    sizes = {at: _sizes_around(flow, units[at]) for at in (*starts, *ends)}
    outer = {at: sizes[at][at in ends] for at in sizes}
    columns = {at: sizes[at][at in starts][-1] for at in sizes}
    known = [_axes(outer[at], columns[at]) for at in sizes if at in ends or outer[at][-1] == columns[at]]
    usual = min(filter(None, known), key=len, default=[])
    counts = {sizes[at][1][0] for at in starts if sizes[at][1][0].isdigit()}
    alike = [at for at in sizes if columns[at] in (outer[at][-1], "...") and _are_alike(outer[at][:-1], usual)]
    if not usual or len(counts) > 1:
        return {}
    left_out: dict[str, tuple[str, int]] = {}
    for at in alike:
        before, after = units[at].operands[0], units[at].outputs[0]
        if at in ends and before not in left_out and graph.producer(before) not in starts:
            left_out[before] = after, at
        elif at in starts or (before in left_out and after not in flow.outputs):
            left_out[after] = before, at
    for at in sorted({*starts} - {*alike}):
        shown = ["..." if size.startswith(INVENTED) else size for size in (*usual, columns[at])]
        changed = units[at]._replace(keywords=(("", f"[{','.join(shown)}]"),))
        equal = [other for other in graph.users[changed.operands[0]][:_NESTED] if units[other][2:5] == changed[2:5]]
        if equal and "..." not in shown:
            left_out[changed.outputs[0]] = units[equal[0]].outputs[0], at
        else:
            graph.changes[at] = changed
    return left_out


def _sizes_around(flow: Flow, reshape: Unit) -> tuple[list[str], list[str]]:
    """The sizes of what a Reshape takes and of what it returns."""
    ((_, text),) = reshape.keywords
    before, after = (
        flow.dims(reshape.operands[0]) or ("",),
        flow.dims(reshape.outputs[0]) or text.strip("[]").split(","),
    )
    return [str(size or "...") for size in before], [str(size or "...") for size in after]


def _axes(sizes: Sequence[str], columns: str) -> Sequence[str]:
    """The axes of rows, two or more, in those of a value; the others are the columns, perhaps split into heads."""
    for at in range(2, len(sizes)):
        rest = [int(size) if size.isdigit() else 0 for size in sizes[at:]]
        if columns != "..." and (str(prod(rest)) == columns or [*sizes[at:]] == [columns]):
            return sizes[:at]
    return []


def _are_alike(one: Sequence[str], two: Sequence[str]) -> bool:
    """Whether axes have the same sizes, as far as they are known; one unknown size follows from the others."""
    unknown = [pair for pair in zip(one, two, strict=False) if pair[0] != pair[1] or "..." in pair]
    return len(one) == len(two) and len(unknown) < 2 and all(["..." in pair for pair in unknown])


def merge_parts(graph: Units) -> None:
    """Make one Split of Slices that cut a value into parts, as some exporters write it."""
    flow, units = graph.flow, graph.units
    for name, users in graph.users.items():
        slices = [at for at in users[:_NESTED] if units[at].head == "Slice"] if len(users) > 1 else ()
        kept = [(flow.kept(flow.nodes[units[at].nodes[-1]]), at) for at in slices]
        parts = sorted([(part[0].start or 0, part[0].end or 0, at) for part, at in kept if _is_part(part, kept[0][0])])
        if len(parts) != graph.uses[name] or len(parts) < 2:
            continue
        starts, ends, numbers = [[part[place] for part in parts] for place in range(3)]
        axis = kept[0][0][0].axis
        size = flow.size(name, axis)
        if isinstance(size, int) and [*starts, LONG] == [0, *ends]:
            sizes = [end - start for start, end in zip(starts, [*ends[:-1], size], strict=True)]
            listed = [("", f"[{','.join(map(str, sizes))}]")] * (len({*sizes}) > 1)
            keywords = (*listed, ("axis", axis_text(flow, name, str(axis))))
            outputs = tuple([units[at].outputs[0] for at in numbers])
            graph.merge(numbers, Unit((), outputs, "Split", (name,), keywords))


def _is_part(kept: Sequence[Kept], other: Sequence[Kept]) -> bool:
    """Whether what a Slice keeps is known, of one axis, which is that of another one."""
    is_one = len(kept) == len(other) == 1 and kept[0].axis == other[0].axis
    return is_one and kept[0].step == 1 and kept[0].start is not None and kept[0].end is not None


def merge_nested(graph: Units) -> None:
    """Make one unit of Concats along one axis in each other, and of Slices along different ones."""
    units = graph.units
    shown: dict[int, Unit] = {}
    """Units that are in several, whose nodes belong to the first of these."""
    for number, unit in enumerate(units):
        for name in unit.operands if unit.head in ("Concat", "Slice") else ():
            at, outer = graph.producer(name), graph.changes.get(number) or unit
            inner = shown.get(at) or graph.changes.get(at, units[at]) if at >= 0 else None
            if inner is None or inner.head != unit.head or len(inner.operands) + len(outer.operands) > _NESTED:
                continue
            users = [units[user] for user in graph.users[name][:_NESTED]]
            if unit.head == "Slice" and len(users) == graph.uses[name]:
                keywords = _kept_by_both(inner, outer) if all([_kept_by_both(inner, each) for each in users]) else None
            else:
                keywords = outer.keywords if inner.keywords == outer.keywords and graph.uses[name] == 1 else None
            if keywords:
                place = outer.operands.index(name)
                operands = (*outer.operands[:place], *inner.operands, *outer.operands[place + 1 :])
                nodes = (*inner.nodes, *outer.nodes)
                graph.changes[at], shown[at] = None, inner._replace(nodes=())
                graph.changes[number] = outer._replace(nodes=nodes, operands=operands, keywords=keywords)


def _kept_by_both(inner: Unit, outer: Unit) -> tuple[tuple[str, str], ...] | None:
    """What two Slices after each other keep; None if they are along one axis, or that is not known."""
    parts = sorted([part for unit in (inner, outer) for _, text in unit.keywords for part in text.split(", ")])
    axes = {part.split()[1] for part in parts if part.startswith("axis ")}
    is_clear = len(axes) == len(parts) and len({axis[0] == "-" for axis in axes}) == 1 and inner.head == outer.head
    return (("", ", ".join(parts)),) if is_clear and len(inner.operands) == len(outer.operands) == 1 else None
