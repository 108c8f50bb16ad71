"""Rows of models side by side: corresponding nodes share a row, models without such a node have a gap."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from onnxjson.diffing.changes import Place
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import Event, Member
from onnxjson.diffing.taking import Taking
from onnxjson.model.display import counted, visible
from onnxjson.rendering.diff_report import EFFECTS
from onnxjson.rendering.diff_text import place_of
from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened, shortened_name
from onnxjson_tui.rows.difference import SIGNS
from onnxjson_tui.rows.lanes import Glyphs
from onnxjson_tui.rows.nodes import NodeRows, node_spans

NOTHING: Final = -1  # position of a node that a side does not have
_CONTEXT: Final = 3  # unchanged rows around a change that are not folded
_LEAST: Final = 4  # unchanged rows that are folded to one
GAPS: Final[dict[Glyphs, str]] = {"unicode": "╌", "ascii": "-"}


class PaneRow(NamedTuple):
    """One row: nodes that correspond, a change of something else, a title, or folded rows."""

    graph: int = NOTHING  # number of the graphs that correspond; none for changes of the model
    nodes: tuple[int, ...] = ()  # by model, the position of the node; empty for other rows
    places: tuple[Place, ...] = ()  # the changes of the row
    text: str = ""


class Panes(NamedTuple):
    """All rows of a diff, and those of each model alone."""

    found: Diff
    rows: Sequence[PaneRow]
    nodes: Sequence[tuple[NodeRows, NodeRows]]
    gap: str

    @classmethod
    def of(cls, found: Diff, glyphs: Glyphs) -> "Panes":
        """Align both models, and measure their nodes; big models take a second."""
        nodes = []
        for pair in found.alignment.graphs:
            sides = [NodeRows(each, range(len(each.graph.node)), glyphs=glyphs) for each in (pair.base, pair.target)]
            assert all([each.widths for each in sides])
            nodes.append((sides[0], sides[1]))
        return cls(found, _rows(found), nodes, GAPS[glyphs])


def _rows(found: Diff) -> list[PaneRow]:
    """Return the rows of a diff: changes outside of nodes, then the nodes of each pair of graphs."""
    sides = Taking(found, 0).elements
    graphs: list[PaneRow] = []
    for number, pair in enumerate(found.alignment.graphs):
        if len(found.alignment.graphs) > 1:
            graphs.append(PaneRow(number, text=visible(pair.base.address, 300)))
        for left, right in _aligned(pair.target_of, pair.base_of):
            places: set[Place] = set()
            for side, scope, position in ((0, pair.base, left), (1, pair.target, right)):
                places |= sides[side].get(f"{scope.address}/node/{position}", set())
            graphs.append(PaneRow(number, (left, right), tuple(sorted(places))))
    known = {place for row in graphs for place in row.places}
    every = ((event, member) for event, each in enumerate(found.events) for member in range(len(each.members)))
    return [*[PaneRow(places=(place,)) for place in every if place not in known], *graphs]


def _aligned(target_of: Sequence[int], base_of: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs in the order of the right side; a node of the left side without a counterpart follows its neighbour.

    Nodes that only one side has share rows where they are at the same place.
    """
    alone: dict[int, list[int]] = {}
    last = NOTHING
    for position, there in enumerate(target_of):
        if there >= 0:
            last = there
        else:
            alone.setdefault(last, []).append(position)
    left, right = alone.get(NOTHING, []), list[int]()
    for position, here in enumerate(base_of):
        if here < 0:
            right.append(position)
            continue
        yield from zip_longest(left, right, fillvalue=NOTHING)
        yield here, position
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


class PaneRows:
    """The rows of both models, each pane in half of the width."""

    def __init__(self, panes: Panes, *, folded: bool = True, quiet: bool = True) -> None:
        """Show all rows, or long runs without changes as one; `quiet` counts changes that change no result."""
        self.diff, rows, self._nodes, self._gap = panes
        events = self.diff.events
        loud = {number for number, event in enumerate(events) if quiet or EFFECTS[event.kind] != "quiet"}
        if not quiet:
            rows = [row for row in rows if row.graph >= 0 or _is_changed(row, loud)]
        self.rows = list(folded_rows(rows, lambda row: _is_changed(row, loud))) if folded else rows
        self.starts = [
            number
            for number, row in enumerate(self.rows)
            if _is_changed(row, loud) and (not number or self.rows[number - 1].places != row.places)
        ]
        """The first rows of changes, ascending."""

    def __len__(self) -> int:
        return len(self.rows)

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
            return (Span(shortened(f" {row.text}", width), "quiet" if not row.places else "title"),)
        half = (width - 3) // 2
        sign, style = self.style(row)
        middle = Span(f" {sign} ", style)
        if not row.nodes:
            event, member = self.members(row)[0]
            texts = [padded(text, half) for text in _texts(event, member, half)]
            return Span(texts[0], style), middle, Span(texts[1], style)
        sides = zip(self._nodes[row.graph], row.nodes, strict=True)
        left, right = [node_cell(rows, position, half, style, self._gap) for rows, position in sides]
        return (*left, middle, *right)


def node_cell(rows: NodeRows, position: int, width: int, style: Style, gap: str) -> Line:
    """Return a node in one column, in the colours of lists or in one style; a gap where a model has no such node."""
    if position < 0:
        return (Span(gap * width, "quiet"),)
    columns = rows.columns(width)
    name = rows.short_name(position, columns.name) if columns.name else ""
    spans = (Span(f"{position:>{columns.digits}} "), *node_spans(rows.row(position), name, columns))
    return spans if style == "plain" else tuple([Span(span.text, style) for span in spans])


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
