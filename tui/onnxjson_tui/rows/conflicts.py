"""Conflicts of a merge as rows: the list of conflicts, and the three sides next to or below each other."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from onnxjson.diffing.line_changes import changes
from onnxjson.merging.resolution_session import SIDES, ConflictSlot, ResolutionSession, ShownConflict
from onnxjson.merging.resolving import Choice
from onnxjson.model.display import visible
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import cells, clipped, padded, shortened
from onnxjson_tui.rows.element_text import broken

BESIDE: Final = 100
"""Minimum width for the three sides next to each other."""

_KEYS: Final[dict[Choice, str]] = {"base": "b", "ours": "o", "theirs": "t"}
_NOTHING: Final = "(nothing here)"
_MOST: Final = 2_000
"""Maximum lines of one side that are shown."""


class ConflictRows:
    """The conflicts and their resolutions."""

    def __init__(self, settling: ResolutionSession) -> None:
        self._settling = settling

    def __len__(self) -> int:
        return len(self._settling.conflicts)

    def line(self, number: int, width: int) -> Line:
        """Return a mark, the chosen side, and the place."""
        shown = self._settling.conflicts[number]
        choice = self._settling.choices.get(shown.id)
        mark, style = ("  open   ", "bad") if choice is None else (f"  {choice:<6} ", "good")
        digits = len(str(len(self)))
        start = f" {number + 1:>{digits}} "
        more = f" and {len(shown.places) - 1:,} more places" if len(shown.places) > 1 else ""
        room = width - cells(start) - cells(mark) - cells(more)
        return (
            Span(start, "quiet"),
            Span("x" if choice is None else "*", style),  # type: ignore[arg-type]
            Span(mark[1:], style),  # type: ignore[arg-type]
            Span(shortened(shown.places[0].title, max(room, 8))),
            Span(more, "quiet"),
        )


class _Cell(NamedTuple):
    text: str
    is_other: bool
    """Whether the base lacks this line."""


def place_rows(shown: ShownConflict, choice: Choice | None, width: int) -> list[Line]:
    """Return the three sides of a conflict.

    Args:
        shown: the conflict.
        choice: the side that was chosen.
        width: columns of the terminal.
    """
    lines: list[Line] = []
    for number, place in enumerate(shown.places):
        if number:
            lines.append(())
        if len(shown.places) > 1:
            lines.append((Span(clipped(place.title, width), "title"),))
        lines += _beside(place, choice, width) if width >= BESIDE else _below(place, choice, width)
    return lines


def _label(side: Choice, choice: Choice | None) -> str:
    return f"{_KEYS[side]} {side}{' *' if side == choice else ''}"


def _below(place: ConflictSlot, choice: Choice | None, width: int) -> Iterator[Line]:
    """Yield the sides below each other."""
    for side in SIDES:
        yield (Span(_label(side, choice), "good" if side == choice else "title"),)
        for cell in _cells(place, side):
            for text in broken(cell.text, width - 2):
                yield (Span(f"{'~' if cell.is_other else ' '} {text}", "changed" if cell.is_other else "plain"),)


def _beside(place: ConflictSlot, choice: Choice | None, width: int) -> Iterator[Line]:
    """Yield the three sides in columns."""
    column = (width - 6) // 3
    heads: list[Span] = []
    for number, side in enumerate(SIDES):
        heads += [Span(" | ", "quiet")] if number else []
        heads.append(Span(padded(clipped(_label(side, choice), column), column), _head_style(side, choice)))
    yield tuple(heads)
    parts = [list(_column(place, side, column)) for side in SIDES]
    for row in zip_longest(*parts):
        spans: list[Span] = []
        for number, cell in enumerate(row):
            spans += [Span(" | ", "quiet")] if number else []
            text, other = ("", False) if cell is None else cell
            spans.append(Span(padded(text, column), "changed" if other else "plain"))
        yield tuple(spans)


def _head_style(side: Choice, choice: Choice | None) -> Style:
    return "good" if side == choice else "title"


def _column(place: ConflictSlot, side: Choice, column: int) -> Iterator[tuple[str, bool]]:
    for cell in _cells(place, side):
        for text in broken(cell.text, column - 2):
            yield f"{'~' if cell.is_other else ' '} {text}", cell.is_other


def _cells(place: ConflictSlot, side: Choice) -> list[_Cell]:
    """Return the lines of a side, each with whether it differs from the base."""
    mine, base = place.values[side], place.values["base"]
    if mine is None:
        return [_Cell(_NOTHING, base is not None)]
    left = len(mine) - _MOST
    if left > 0:
        mine = (*mine[:_MOST], f"... and {left:,} more lines")
    other = set(range(len(mine))) if base is None and side != "base" else set(_changed(base or (), mine, side))
    return [_Cell(text, number in other) for number, text in enumerate(mine)]


def _changed(base: Sequence[str], mine: Sequence[str], side: Choice) -> Iterator[int]:
    if side == "base":
        return
    for change in changes([each.encode() for each in base], [each.encode() for each in mine]):
        yield from range(change.new_start, change.new_end)


def named(conflict: ShownConflict) -> str:
    """Return the title of a conflict for a message."""
    return visible(conflict.places[0].title, 200)
