"""Rows of models side by side: corresponding nodes share a row; a model without such a node has a gap.

Here: what two models of a diff and three of a merge share, and the rows of a diff. Not here: those of a merge
(`merge_panes`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Final, NamedTuple

from onnxjson.diffing.changes import Place
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import Event, Member
from onnxjson.diffing.taking import Taking
from onnxjson.model.display import counted, visible
from onnxjson.model.index import Index, Scope
from onnxjson.rendering.diff_report import EFFECTS
from onnxjson.rendering.diff_text import place_of
from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened, shortened_name
from onnxjson_tui.rows.difference import SIGNS
from onnxjson_tui.rows.nodes import NodeRows, node_spans

NOTHING: Final = -1  # position of a node that a side does not have
_CONTEXT: Final = 3  # unchanged rows around a change that are not folded
_ALIKE: Final = 4  # consecutive rows with the same changes that are folded to one
_LEAST: Final = 4  # unchanged rows that are folded to one
_GAP: Final = "╌"


class PaneRow(NamedTuple):
    """One row: nodes that correspond, a change of something else, a title, or folded rows."""

    graph: int = NOTHING  # number of the graphs that correspond; none for changes of the model
    nodes: tuple[int, ...] = ()  # by model, the position of the node; empty for other rows
    places: tuple[Place, ...] = ()  # the changes of the row
    text: str = ""


class Panes(NamedTuple):
    """All rows of a diff, and those of each model alone."""

    diff: Diff
    rows: Sequence[PaneRow]
    nodes: Sequence[Sequence[NodeRows | None]]  # by pair of graphs and side

    @classmethod
    def of(cls, diff: Diff) -> "Panes":
        """Align both models, and measure their nodes; big models take a second."""
        nodes = [[measured(each) for each in (pair.base, pair.target)] for pair in diff.alignment.graphs]
        return cls(diff, _rows(diff), nodes)


def measured(scope: Scope | None) -> NodeRows | None:
    """Return the nodes of a graph with the widths of their columns; big graphs take a second."""
    if scope is None:
        return None
    rows = NodeRows(scope, range(len(scope.graph.node)))
    assert rows.widths
    return rows


def show_types(nodes: Sequence[Sequence[NodeRows | None]], indices: Sequence[Index | None]) -> None:
    """Show the types of models with inferred types, by side."""
    for graph in nodes:
        for rows, index in zip(graph, indices, strict=True):
            if rows is not None and index is not None:
                rows.infer(index.scope(rows.scope.address))


def _rows(diff: Diff) -> list[PaneRow]:
    """Return the rows of a diff: changes outside of nodes, then the nodes of each pair of graphs."""
    sides = Taking(diff, 0).elements
    graphs: list[PaneRow] = []
    for number, pair in enumerate(diff.alignment.graphs):
        if len(diff.alignment.graphs) > 1:
            graphs.append(PaneRow(number, text=visible(pair.base.address, 300)))
        for left, right in _aligned(pair.target_of, pair.base_of):
            places: set[Place] = set()
            for side, scope, position in ((0, pair.base, left), (1, pair.target, right)):
                places |= sides[side].get(f"{scope.address}/node/{position}", set())
            graphs.append(PaneRow(number, (left, right), tuple(sorted(places))))
    known = {place for row in graphs for place in row.places}
    every = ((event, member) for event, each in enumerate(diff.events) for member in range(len(each.members)))
    return [*[PaneRow(places=(place,)) for place in every if place not in known], *graphs]


def _aligned(target_of: Sequence[int], base_of: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs in the order of the right side; a node of the left side without a counterpart follows its neighbour.

    Nodes that only one side has share rows where they are at the same place.
    """
    alone: dict[int, list[int]] = {}
    last = NOTHING
    for position, target_position in enumerate(target_of):
        if target_position >= 0:
            last = target_position
        else:
            alone.setdefault(last, []).append(position)
    left, right = alone.get(NOTHING, []), list[int]()
    for position, base_position in enumerate(base_of):
        if base_position < 0:
            right.append(position)
            continue
        yield from zip_longest(left, right, fillvalue=NOTHING)
        yield base_position, position
        left, right = alone.get(position, []), []
    yield from zip_longest(left, right, fillvalue=NOTHING)


def _is_changed(row: PaneRow, events: Collection[int]) -> bool:
    return any(event in events for event, _ in row.places)


def folded_rows(rows: Sequence[PaneRow], differs: Callable[[PaneRow], bool]) -> Iterator[PaneRow]:
    """Yield the rows; each long run of rows that do not differ is folded."""
    near = bytearray(len(rows))
    for number, row in enumerate(rows):
        is_changed = differs(row)
        if is_changed or row.text:
            reach = _CONTEXT if is_changed else 0
            start, stop = max(number - reach, 0), min(number + reach + 1, len(rows))
            near[start:stop] = b"\1" * (stop - start)
    start = 0
    for number in range(len(rows) + 1):
        if number < len(rows) and not near[number]:
            continue
        if number - start > _LEAST:
            yield PaneRow(rows[start].graph, text=f"{counted(number - start, 'equal row')}")
        else:
            yield from rows[start:number]
        yield from rows[number : number + 1]
        start = number + 1


def _with_alike(rows: Sequence[PaneRow], diff: Diff) -> Iterator[PaneRow]:
    """Yield the rows; a run of rows with the same changes, such as 80 removed Identity nodes, is one."""
    for events, run in groupby(rows, lambda row: tuple(dict.fromkeys([event for event, _ in row.places]))):
        alike = list(run)
        if not events or len(alike) < _ALIKE or any(row.text for row in alike):
            yield from alike
            continue
        kinds = [diff.events[event] for event in events]
        text = f"{counted(len(alike), 'row')}  " + "; ".join(
            [f"{each.kind} {visible(each.pattern, 100)}" for each in kinds]
        )
        yield PaneRow(alike[0].graph, places=tuple([place for row in alike for place in row.places]), text=text)


class SideRows:
    """The rows of several models, each in a column of its own."""

    def __init__(
        self,
        rows: Sequence[PaneRow],
        nodes: Sequence[Sequence[NodeRows | None]],
        differs: Callable[[PaneRow], bool] | None,
    ) -> None:
        """Show all rows, or with `differs` each long run of rows that do not as one; `nodes` are by graph and side."""
        self.rows = list(rows if differs is None else folded_rows(rows, differs))
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self.rows)

    def _node(self, row: PaneRow, side: int, width: int, style: Style) -> Line:
        """Return a node in its column, in the colours of lists or in one style; a gap where a model has none."""
        rows, position = self._nodes[row.graph][side], row.nodes[side]
        if rows is None or position < 0:
            return (Span(_GAP * width, "quiet"),)
        columns = rows.columns(width)
        name = rows.short_name(position, columns.name) if columns.name else ""
        spans = (Span(f"{position:>{columns.digits}} "), *node_spans(rows.row(position), name, columns))
        return spans if style == "plain" else tuple([Span(span.text, style) for span in spans])


class PaneRows(SideRows):
    """The rows of both models of a diff, each pane in half of the width."""

    def __init__(self, panes: Panes, *, folded: bool = True, quiet: bool = True) -> None:
        """Show all rows, or long runs without changes as one; `quiet` counts changes that change no result."""
        self.diff, rows, nodes = panes
        events = self.diff.events
        loud = {number for number, event in enumerate(events) if quiet or EFFECTS[event.kind] != "quiet"}
        if not quiet:
            rows = [row for row in rows if row.graph >= 0 or _is_changed(row, loud)]
        if folded:
            rows = list(_with_alike(rows, self.diff))
        super().__init__(rows, nodes, (lambda row: _is_changed(row, loud)) if folded else None)
        self.starts = [
            number
            for number, row in enumerate(self.rows)
            if _is_changed(row, loud) and (not number or self.rows[number - 1].places != row.places)
        ]
        """The first rows of changes, ascending."""
        loudest = [number for number in self.starts if not self._is_cleanup(self.rows[number])]
        self.first = next(iter([*loudest, *self.starts]), None)
        """The row of the first change that is more than cleanup."""

    def _is_cleanup(self, row: PaneRow) -> bool:
        """Whether a change leaves all results as they are, or only removes or adds nodes that copy a value."""
        events = [event for event, _ in self.members(row)]
        return all([EFFECTS[event.kind] in ("quiet", "rewritten") or "Identity" in event.pattern for event in events])

    def addresses(self, row: PaneRow) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the addresses of what a row shows of each model."""
        if not row.nodes:
            member = self.members(row)[0][1] if row.places else Member((), ())
            return member.base, member.target
        pair = self.diff.alignment.graphs[row.graph]
        sides = zip((pair.base, pair.target), row.nodes, strict=True)
        base, target = [(f"{scope.address}/node/{at}",) if at >= 0 else () for scope, at in sides]
        return base, target

    def members(self, row: PaneRow) -> list[tuple[Event, Member]]:
        """Return the changes of a row."""
        events = self.diff.events
        return [(events[event], events[event].members[member]) for event, member in row.places]

    def style(self, row: PaneRow) -> tuple[str, Style]:
        """Return the sign between the panes, and the style of changed rows."""
        if not row.places:
            return " ", "plain"
        if NOTHING in row.nodes:
            return ("+", "added") if row.nodes[0] < 0 else ("-", "removed")
        effects = {EFFECTS[event.kind] for event, _ in self.members(row)}
        effect = effects.pop() if len(effects) == 1 else "changed"
        return (SIGNS[effect], effect) if effect in ("quiet", "rewritten") else (SIGNS["changed"], "changed")

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        row = self.rows[number]
        if row.text:
            sign, style = self.style(row) if row.places else (" ", "quiet")
            return (Span(shortened(f"{sign} {row.text}", width), style),)
        half = (width - 3) // 2
        sign, style = self.style(row)
        middle = Span(f" {sign} ", style)
        if not row.nodes:
            event, member = self.members(row)[0]
            texts = [padded(text, half) for text in _texts(event, member, half)]
            return Span(texts[0], style), middle, Span(texts[1], style)
        return (*self._node(row, 0, half, style), middle, *self._node(row, 1, half, style))


def _texts(event: Event, member: Member, width: int) -> tuple[str, str]:
    """Return a change outside of nodes, as each side has it."""
    title = f"{event.kind} {visible(event.pattern, 200)}"
    detail = member.details[0] if member.details else None
    values = (None, None) if detail is None else (detail.base, detail.target)
    if values == (None, None):
        return shortened(title, width), shortened_name(place_of(member), width)
    return tuple([_valued(title, value, width) for value in values])  # type: ignore[return-value]


def _valued(title: str, value: str | None, width: int) -> str:
    text = "" if value is None else visible(value, 200) or '""'
    title = shortened(title, max(width - cells(text) - 2, width // 2))
    return f"{title}  {shortened(text, max(width - cells(title) - 2, 1))}" if value is not None else ""
