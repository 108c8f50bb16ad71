"""Conflicts of a merge as rows: what there is to decide, and what each side has, beside or below each other."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.merging.resolving import Choice
from onnxjson.merging.settling import SIDES, Place, Settling, Shown
from onnxjson.rendering.line_changes import changes
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import cells, clipped, padded, shortened
from onnxjson_tui.rows.element_text import broken

BESIDE: Final = 100
"""Columns from which the three sides stand beside each other."""

_KEYS: Final[dict[Choice, str]] = {"base": "b", "ours": "o", "theirs": "t"}
_NOTHING: Final = "(nothing stands here)"
_MOST: Final = 2_000
"""Lines of one side that are shown."""


class ConflictRows:
    """What there is to decide, and what was decided."""

    def __init__(self, settling: Settling) -> None:
        self._settling = settling

    def __len__(self) -> int:
        return len(self._settling.conflicts)

    def line(self, number: int, width: int) -> Line:
        """A mark, what was chosen, where it is."""
        shown = self._settling.conflicts[number]
        choice = self._settling.choices.get(shown.id)
        mark, style = ("  stands ", "bad") if choice is None else (f"  {choice:<6} ", "good")
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
    """Whether the base has not this line."""


def place_rows(shown: Shown, choice: Choice | None, width: int) -> list[Line]:
    """What each side has of one conflict.

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


def _below(place: Place, choice: Choice | None, width: int) -> Iterator[Line]:
    """One side below the other."""
    for side in SIDES:
        yield (Span(_label(side, choice), "good" if side == choice else "title"),)
        for cell in _cells(place, side):
            for text in broken(cell.text, width - 2):
                yield (Span(f"{'~' if cell.is_other else ' '} {text}", "changed" if cell.is_other else "plain"),)


def _beside(place: Place, choice: Choice | None, width: int) -> Iterator[Line]:
    """The three sides in columns."""
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


def _column(place: Place, side: Choice, column: int) -> Iterator[tuple[str, bool]]:
    for cell in _cells(place, side):
        for text in broken(cell.text, column - 2):
            yield f"{'~' if cell.is_other else ' '} {text}", cell.is_other


def _cells(place: Place, side: Choice) -> list[_Cell]:
    """The lines of a side, each with whether it is another one than the base has."""
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


def named(conflict: Shown) -> str:
    """A conflict for a message."""
    return visible(conflict.places[0].title, 200)
