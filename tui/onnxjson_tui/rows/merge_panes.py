"""Rows of a merge: corresponding nodes of the base and both sides share a row, with their conflicts."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.difference import diff_models
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.merging.conflicted_files import ResolutionSession, ShownConflict
from onnxjson.model.addresses import SIDES, Choice
from onnxjson.model.conflicts import Conflict
from onnxjson.model.display import visible
from onnxjson.model.document import Node
from onnxjson.model.index import Index, Scope
from onnxjson.rendering.tables import Line, Span, Style, padded, shortened
from onnxjson_tui.rows.nodes import NodeRows
from onnxjson_tui.rows.panes import NOTHING, PaneRow, SideRows, measured
from onnxjson_tui.rows.side_texts import NOTHING_HERE

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
        positions = [{ours: at for at, ours in enumerate(to_ours) if ours >= 0} for to_ours in self._to_ours]
        alone: list[dict[int, list[int]]] = []
        for to_ours in self._to_ours:
            last, after = NOTHING, dict[int, list[int]]()
            for at, ours in enumerate(to_ours):
                last = ours if ours >= 0 else last
                if ours < 0:
                    after.setdefault(last, []).append(at)
            alone.append(after)
        partners = {self._outputs(2, at): at for run in alone[2].values() for at in run}
        shared = {at: partners.pop(self._outputs(0, at), NOTHING) for run in alone[0].values() for at in run}
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

    @classmethod
    def of(cls, resolution: ResolutionSession) -> "MergePanes":
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
        nodes = [[measured(scope) for scope in each.scopes] for each in graphs]
        return cls(_merge_rows(graphs, resolution.conflicts, conflicts), nodes)


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
    unaddressed = [place for place in others if not shown[place[0]].places[place[1]].address]
    graph_rows: list[PaneRow] = []
    for number, graph in enumerate(graphs):
        address = graph.scopes[1].address if graph.scopes[1] is not None else ""
        rows: list[PaneRow] = []
        for row in graph.rows():
            key = f"{address}/node/{row[1]}"
            places = by_node.get(key, []) if row[1] >= 0 else by_output.get((address, graph.lacking(row)), [])
            places = places or (unaddressed if NOTHING in row else [])
            rows.append(PaneRow(number, row, tuple(dict.fromkeys(places))))
            for place in places:
                others.pop(place, None)
        if not number or any([row.places for row in rows]):
            graph_rows += [PaneRow(number, text=visible(address, 300)), *rows]
    outside = [
        row
        for conflict, slot in others
        for row in (PaneRow(text=shown[conflict].places[slot].title), PaneRow(places=((conflict, slot),)))
    ]
    return [*outside, *(graph_rows if len(graphs) > 1 else graph_rows[1:])]


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
