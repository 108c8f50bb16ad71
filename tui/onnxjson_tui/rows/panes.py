"""Rows of models side by side, two of a diff or three of a merge: corresponding nodes share a row.

A model without such a node has a gap.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Final, NamedTuple

from onnxjson.diffing.changes import Place
from onnxjson.diffing.difference import Diff, diff_models
from onnxjson.diffing.events import Event, Member
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.diffing.taking import Taking
from onnxjson.merging.conflicted_files import ResolutionSession, ShownConflict
from onnxjson.model.addresses import SIDES, Choice
from onnxjson.model.conflicts import Conflict
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Node
from onnxjson.model.index import Index, Scope
from onnxjson.rendering.diff_report import EFFECTS
from onnxjson.rendering.diff_text import place_of
from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened, shortened_name
from onnxjson_tui.rows.beside_nodes import Glyphs
from onnxjson_tui.rows.difference import SIGNS
from onnxjson_tui.rows.nodes import NodeRows, node_spans
from onnxjson_tui.rows.side_texts import NOTHING_HERE

NOTHING: Final = -1  # position of a node that a side does not have
_CONTEXT: Final = 3  # unchanged rows around a change that are not folded
_ALIKE: Final = 4  # consecutive rows with the same changes that are folded to one
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
    nodes: Sequence[Sequence[NodeRows | None]]  # by pair of graphs and side
    gap: str

    @classmethod
    def of(cls, found: Diff, glyphs: Glyphs) -> "Panes":
        """Align both models, and measure their nodes; big models take a second."""
        nodes = [[_measured(each, glyphs) for each in (pair.base, pair.target)] for pair in found.alignment.graphs]
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


def _with_alike(rows: Sequence[PaneRow], found: Diff) -> Iterator[PaneRow]:
    """Yield the rows; a run of rows with the same changes, such as 80 removed Identity nodes, is one."""
    for events, run in groupby(rows, lambda row: tuple(dict.fromkeys([event for event, _ in row.places]))):
        alike = list(run)
        if not events or len(alike) < _ALIKE or any(row.text for row in alike):
            yield from alike
            continue
        kinds = [found.events[event] for event in events]
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
        gap: str,
        differs: Callable[[PaneRow], bool] | None,
    ) -> None:
        """Show all rows, or with `differs` each long run of rows that do not as one; `nodes` are by graph and side."""
        self.rows = list(rows if differs is None else folded_rows(rows, differs))
        self._nodes, self._gap = nodes, gap

    def __len__(self) -> int:
        return len(self.rows)

    def _node(self, row: PaneRow, side: int, width: int, style: Style) -> Line:
        """Return a node in its column, in the colours of lists or in one style; a gap where a model has none."""
        rows, position = self._nodes[row.graph][side], row.nodes[side]
        if rows is None or position < 0:
            return (Span(self._gap * width, "quiet"),)
        columns = rows.columns(width)
        name = rows.short_name(position, columns.name) if columns.name else ""
        spans = (Span(f"{position:>{columns.digits}} "), *node_spans(rows.row(position), name, columns))
        return spans if style == "plain" else tuple([Span(span.text, style) for span in spans])


class PaneRows(SideRows):
    """The rows of both models of a diff, each pane in half of the width."""

    def __init__(self, panes: Panes, *, folded: bool = True, quiet: bool = True) -> None:
        """Show all rows, or long runs without changes as one; `quiet` counts changes that change no result."""
        self.diff, rows, nodes, gap = panes
        events = self.diff.events
        loud = {number for number, event in enumerate(events) if quiet or EFFECTS[event.kind] != "quiet"}
        if not quiet:
            rows = [row for row in rows if row.graph >= 0 or _is_changed(row, loud)]
        if folded:
            rows = list(_with_alike(rows, self.diff))
        super().__init__(rows, nodes, gap, (lambda row: _is_changed(row, loud)) if folded else None)
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


_NODE: Final = re.compile("(.*)/node/[0-9]+")
"""Start of the address of a conflict: the address of the innermost node, which begins with that of its graph."""

_Place = tuple[int, int]  # numbers of a conflict, and of a slot of it


class _Graph:
    """A graph of ours with its counterparts in the base and in theirs."""

    def __init__(self, scopes: Sequence[Scope | None], to_ours: Sequence[Sequence[int]]) -> None:
        """Use the scopes by side, and for each node of a side the position of its counterpart in ours."""
        self.scopes = scopes
        self._to_ours = to_ours

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield positions by side, in the order of ours; a node that ours lacks follows its own predecessor."""
        positions = [{ours: at for at, ours in enumerate(found) if ours >= 0} for found in self._to_ours]
        alone: list[dict[int, list[int]]] = []
        for found in self._to_ours:
            last, after = NOTHING, dict[int, list[int]]()
            for at, ours in enumerate(found):
                last = ours if ours >= 0 else last
                if ours < 0:
                    after.setdefault(last, []).append(at)
            alone.append(after)
        partners = {self._outputs(2, at): at for found in alone[2].values() for at in found}
        shared = {at: partners.pop(self._outputs(0, at), NOTHING) for found in alone[0].values() for at in found}
        taken = set(shared.values())
        for ours in range(NOTHING, len(self._to_ours[1])):
            if ours >= 0:
                yield tuple([each.get(ours, NOTHING) for each in positions])
            yield from ((at, NOTHING, shared[at]) for at in alone[0].get(ours, ()))
            yield from ((NOTHING, NOTHING, at) for at in alone[2].get(ours, ()) if at not in taken)

    def _outputs(self, side: int, at: int) -> tuple[str, ...]:
        scope = self.scopes[side]
        return scope.graph.node[at].output if scope is not None else ()

    def lacking(self, row: Sequence[int]) -> tuple[str, ...]:
        """Return the outputs of the node of a row that ours lacks."""
        side = 0 if row[0] >= 0 else 2
        return self._outputs(side, row[side])


class MergePanes(NamedTuple):
    """All rows of a merge; the places of a row are conflicts and their slots."""

    rows: Sequence[PaneRow]
    nodes: Sequence[Sequence[NodeRows | None]]  # by graph and side
    gap: str

    @classmethod
    def of(cls, resolution: ResolutionSession, glyphs: Glyphs) -> "MergePanes":
        """Align the base and both sides; big models take seconds."""
        models, conflicts = resolution.sides()
        ours, paths = models["ours"], (resolution.path, resolution.path)
        alignments: list[Alignment | None] = []
        for other in (models.get("base"), models.get("theirs")):
            if other is None:
                alignments.append(None)
            else:
                alignments.append(diff_models(ours, other, paths=paths, weights="skip", is_edited=True).alignment)
        graphs: list[_Graph] = []
        for scope in Index(ours).scopes:
            base, theirs = [None if each is None else each.by_base.get(scope.address) for each in alignments]
            scopes = (base.target if base else None, scope, theirs.target if theirs else None)
            own = range(len(scope.graph.node))
            graphs.append(_Graph(scopes, (base.base_of if base else (), own, theirs.base_of if theirs else ())))
        nodes = [[_measured(scope, glyphs) for scope in each.scopes] for each in graphs]
        return cls(_merge_rows(graphs, resolution.conflicts, conflicts), nodes, GAPS[glyphs])


def _measured(scope: Scope | None, glyphs: Glyphs) -> NodeRows | None:
    if scope is None:
        return None
    rows = NodeRows(scope, range(len(scope.graph.node)), glyphs=glyphs)
    assert rows.widths
    return rows


def _merge_rows(
    graphs: Sequence[_Graph], shown: Sequence[ShownConflict], conflicts: Sequence[Conflict]
) -> list[PaneRow]:
    """Return the conflicts outside of nodes, then the nodes of the main graph, and of others with a conflict."""
    numbers = {conflict.id: number for number, conflict in enumerate(shown)}
    seen: dict[str, int] = {}
    by_node: dict[str, list[_Place]] = {}
    by_output: dict[tuple[str, tuple[str, ...]], list[_Place]] = {}
    others: dict[_Place, None] = {}
    for conflict in conflicts:
        slot = seen[conflict.id] = seen.get(conflict.id, -1) + 1
        place = (numbers[conflict.id], slot)
        others[place] = None
        node = _NODE.match(conflict.at)
        if node is None:
            continue
        if conflict.ours is not None or node.group() != conflict.at:
            by_node.setdefault(node.group(), []).append(place)
        for value in (conflict.base, conflict.theirs) if conflict.ours is None else ():
            if isinstance(value, Node):
                by_output.setdefault((node.group(1), value.output), []).append(place)
    whole = [place for place in others if not shown[place[0]].places[place[1]].address]
    found: list[PaneRow] = []
    for number, graph in enumerate(graphs):
        address = graph.scopes[1].address if graph.scopes[1] is not None else ""
        rows: list[PaneRow] = []
        for row in graph.rows():
            key = f"{address}/node/{row[1]}"
            places = by_node.get(key, []) if row[1] >= 0 else by_output.get((address, graph.lacking(row)), [])
            places = places or (whole if NOTHING in row else [])
            rows.append(PaneRow(number, row, tuple(dict.fromkeys(places))))
            for place in places:
                others.pop(place, None)
        if not number or any([row.places for row in rows]):
            found += [PaneRow(number, text=visible(address, 300)), *rows]
    outside = [
        row
        for conflict, slot in others
        for row in (PaneRow(text=shown[conflict].places[slot].title), PaneRow(places=((conflict, slot),)))
    ]
    return [*outside, *(found if len(graphs) > 1 else found[1:])]


def column_width(width: int) -> int:
    """Return the columns of each side: a third of the width, without the mark of a row and the bars."""
    return max((width - 4) // 3, 1)


class MergeRows(SideRows):
    """The rows of a merge, a third of the width for each side."""

    def __init__(self, panes: MergePanes, resolution: ResolutionSession, *, folded: bool = True) -> None:
        """Show all rows, or fold each long run without conflicts into one."""
        super().__init__(*panes, (lambda row: bool(row.places) or NOTHING in row.nodes) if folded else None)
        self._resolution = resolution
        self._first: dict[int, int] = {}
        for number, row in enumerate(self.rows):
            for conflict, _ in row.places:
                self._first.setdefault(conflict, number)
        self.order = [*self._first]

    def conflict_at(self, row: int) -> int | None:
        """Return the number of the conflict of a row; the first one that is open if there are several."""
        choices, conflicts = self._resolution.choices, self._resolution.conflicts
        found = [conflict for conflict, _ in self.rows[row].places] if row < len(self.rows) else []
        return next((each for each in found if conflicts[each].id not in choices), found[0] if found else None)

    def row_of(self, conflict: int) -> int:
        """Return the first row of a conflict."""
        return self._first.get(conflict, 0)

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        row, column = self.rows[number], column_width(width)
        if row.text:
            return (Span(shortened(f"  {row.text}", width), "quiet"),)
        conflict = self.conflict_at(number)
        shown = None if conflict is None else self._resolution.conflicts[conflict]
        choice = None if shown is None else self._resolution.choices.get(shown.id)
        mark = Span("  ") if shown is None else Span("! ", "bad") if choice is None else Span("* ", "good")
        spans = [mark]
        for at, side in enumerate(SIDES):
            style: Style = "plain"
            if shown is not None:
                open_style: Style = "plain" if side == "base" else "changed"
                style = open_style if choice is None else "good" if choice == side else "quiet"
            spans += [Span("|", "quiet")] if at else []
            if row.nodes:
                spans += self._node(row, at, column, style)
            else:
                spans.append(Span(self._text(row.places[0], side, column), style))
        return tuple(spans)

    def _text(self, place: _Place, side: Choice, width: int) -> str:
        """Return what a side has at a place outside of nodes."""
        lines = self._resolution.conflicts[place[0]].places[place[1]].values[side] or (NOTHING_HERE,)
        return padded(shortened(" ".join([line.strip() for line in lines]), width), width)
