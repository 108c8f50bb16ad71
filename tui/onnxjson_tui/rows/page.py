"""A graph on one page: rows of folded lines with what is in them and the type of their value, and of unfolded nodes."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened
from onnxjson_tui.rows.beside_nodes import COLUMN, DIFFERENCE, cell, shown
from onnxjson_tui.rows.folding import Fold, Row, rows_of
from onnxjson_tui.rows.nodes import NodeLines, NodeRows, family, most_of, short_type
from onnxjson_tui.session.following import SavedNodes
from onnxjson_tui.session.session import Session

_LEAST_TEXT: Final = 40  # columns of the text of a line before types get any
_INDENT: Final = "  "
_MARKS: Final = ("▸ ", "▾ ")  # of a folded line, and of an unfolded one
_WORDS: Final = re.compile(r"(\b[A-Z]\w*)(?=\()|^repeat \d+")
"""Calls of blocks and operators, and repeats."""
_BLOCKS: Final[dict[str, Style]] = {
    **dict.fromkeys(("Linear", "Embedding"), "compute"),
    **dict.fromkeys(("SiLU", "HardSwish", "Gelu"), "activation"),
    **dict.fromkeys(("LayerNorm", "RMSNorm", "GroupNorm", "Pool"), "norm"),
    "Rearrange": "shaping",
}


class PageLines(NodeLines):
    """The lines of one graph, and the nodes of those that are unfolded."""

    def __init__(
        self,
        rows: NodeRows,
        session: Session,
        saved: SavedNodes | None,
        folds: Sequence[Fold],
        toggled: Collection[str],
    ) -> None:
        """Use rows of all nodes of the graph, and its lines, unfolded as their default is unless `toggled`."""
        super().__init__(rows, session, saved)
        self._all = rows
        self.folds = folds
        self.fold_again(toggled)

    def fold_again(self, toggled: Collection[str]) -> None:
        """Fold and unfold lines."""
        self.listed: list[Row] = rows_of(self.folds, toggled)
        self._numbers = {row.position: number for number, row in enumerate(self.listed) if _is_node(row)}
        self._types: int | None = None
        self._count = len(f"{len(self._all.scope.graph.node):,}") + 1
        """Columns of the number of nodes in a line."""
        self._texts = max([cells(row.fold.text) + 2 * row.level for row in self.listed if row.fold], default=0)

    def __len__(self) -> int:
        return len(self.listed)

    def line(self, number: int, width: int) -> Line:
        """Marks, the number of a node or nothing, the text of a line or the columns of a node, the type at the end."""
        row = self.listed[number]
        if row.fold is None:
            return self.node_line(row.position, width, _INDENT * row.level, self._type_column(width))
        return self._fold_line(row, row.fold, width)

    def _fold_line(self, row: Row, fold: Fold, width: int) -> Line:
        rows, places, figures = self._all, self._session.places, self._session.figures
        titles, start = shown(figures, width), f"{rows.scope.address}/node/"
        numbers = fold.positions
        is_selected = bool(places.selected) and any([f"{start}{each}" in places.selected for each in numbers])
        severities = {places.flagged.get(f"{start}{each}") for each in numbers} if places.flagged else set()
        severity = "error" if "error" in severities else max(map(str, severities - {None}), default="")
        marks = {self._saved.mark(each) for each in numbers} - {""} if self._saved is not None else set()
        mark = "" if not marks else "+" if marks == {"+"} and len(numbers) == 1 else "~"
        change, is_wrong = self._change(fold)
        types = self._type_column(width)
        digits = len(str(len(rows.scope.graph.node)))
        glyph = _MARKS[row.is_open] if fold.is_foldable else "  "
        number = str(numbers[0]) if len(numbers) == 1 else ""
        count = f"{len(numbers):,}" if len(numbers) > 1 else ""
        lead = (mark or " ") + _INDENT * row.level
        room = max(width - 1 - digits - cells(lead) - 2 - types - bool(types) - COLUMN * len(titles), 1)
        counted = self._count if cells(fold.text) <= room - self._count else 0
        flag: Style = "bad" if severity == "error" else "changed" if is_selected or severity else "quiet"
        text = padded(shortened(fold.text, room - counted), room - counted)
        kind, is_inferred = (
            (change, False) if change else rows.type_of(fold.result) if fold.result >= 0 else ("", False)
        )
        style: Style = "bad" if is_wrong else "changed" if change else "quiet" if is_inferred else "plain"
        return (
            Span("*" if is_selected else "!" if severity else " ", flag),
            Span(f"{number:>{digits}}", "quiet"),
            Span(lead, "changed" if mark else "quiet"),
            Span(glyph, "title"),
            *([Span(text, "bad")] if is_wrong else _tinted(text)),
            *([Span(padded(count, counted, right=True), "quiet")] if counted else []),
            *([Span(f" {padded(short_type(kind, types), types)}", style)] if types else []),
            *[cell(title, _figure(title, figures[title], start, numbers)) for title in titles],
        )

    def _change(self, fold: Fold) -> tuple[str, bool]:
        """Return how an edit that is being typed would change the type of a line, or break a node in it."""
        flow, start = self._session.places.flow, f"{self._all.scope.address}/node/"
        if not flow:
            return "", False
        broken = next(
            (flow[f"{start}{each}"] for each in fold.positions if flow.get(f"{start}{each}", ("", 0))[1]), None
        )
        return broken or flow.get(f"{start}{fold.result}", ("", False))

    def _type_column(self, width: int) -> int:
        if self._types is None:
            kinds = [self._all.type_of(row.position)[0] for row in self.listed if row.position >= 0]
            self._types = most_of([cells(kind) for kind in kinds if kind])
        rest = width - len(str(len(self._all.scope.graph.node))) - 5 - self._count
        return max(min(self._types, max(rest - self._texts, rest // 4)), 0) if rest > _LEAST_TEXT else 0

    def light(self, position: int | None) -> bool:
        """Highlight nothing: folded lines have no lanes."""
        return False

    def position(self, number: int) -> int | None:
        """Return the position of the node of a row, for a line that of the node that produces its value."""
        position = self.listed[number].position if 0 <= number < len(self.listed) else -1
        return None if position < 0 else position

    def number_of(self, position: int) -> int | None:
        """Return the row of a node; None if it is in a folded line."""
        return self._numbers.get(position)

    def number_around(self, position: int) -> int:
        """Return the row of a node, or of the innermost visible line that contains it."""
        found = self._numbers.get(position)
        if found is not None:
            return found
        around = [number for number, row in enumerate(self.listed) if row.fold and position in row.fold.positions]
        return around[-1] if around else 0

    def number_of_key(self, key: str) -> int | None:
        """Return the row of the line with a key, if it is visible."""
        return next((number for number, row in enumerate(self.listed) if row.fold and row.fold.key == key), None)

    def fold_at(self, number: int) -> Fold | None:
        """Return the line of a row that contains several nodes; None for that of a single node."""
        fold = self.listed[number].fold if 0 <= number < len(self.listed) else None
        return fold if fold is not None and len(fold.positions) != 1 else None

    def cut_text(self, number: int, width: int) -> str:
        """See `NodeLines.cut_text`."""
        fold = self.listed[number].fold if 0 <= number < len(self.listed) else None
        if fold is None or fold.text in "".join([span.text for span in self.line(number, width)]):
            return ""
        return fold.text

    def line_around(self, number: int) -> int:
        """Return the row of the line in which a row is; the row itself at the outermost level."""
        level = self.listed[number].level
        return next((each for each in range(number, -1, -1) if self.listed[each].level < level), number)


def _is_node(row: Row) -> bool:
    return row.position >= 0 and (row.fold is None or len(row.fold.positions) == 1)


def _tinted(text: str) -> list[Span]:
    """Return the text of a line with calls in the colours of the families of their operators."""
    spans: list[Span] = []
    last = 0
    for match in _WORDS.finditer(text):
        if match.start() > last:
            spans.append(Span(text[last : match.start()]))
        word = match.group()
        spans.append(Span(word, (_BLOCKS.get(word) or family(word)) if match[1] else "title"))
        last = match.end()
    return [*spans, Span(text[last:])]


def _figure(title: str, found: Mapping[str, float | str], start: str, positions: Sequence[int]) -> float | str | None:
    """Return the number of a line: the sum of those of its nodes, or the largest difference."""
    known = [value for each in positions if (value := found.get(f"{start}{each}")) is not None]
    numbers = [value for value in known if not isinstance(value, str)]
    if len(known) < 2 or not numbers:
        return known[0] if len(known) == 1 else None
    return max(numbers) if title == DIFFERENCE else sum(numbers)
