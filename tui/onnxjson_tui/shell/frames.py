"""What a terminal must be sent so that it shows the next frame: only the cells that differ, and styles that change.

Textual sends all regions that were drawn again, with the full style of each piece. Over a slow line most of that is
what the terminal shows already.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from onnxjson.rendering.tables import cells

_GAP: Final = 6  # equal cells between two changed ones that are sent again, since moving the cursor costs as many bytes

_Cell = tuple[str, Style]  # character and style; "" after a wide character

_ATTRIBUTES: Final = (
    ("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("reverse", "7"), ("strike", "9"),
)  # fmt: skip


class _Codes(NamedTuple):
    """Parameters of SGR sequences of a style."""

    attributes: tuple[str, ...]
    foreground: tuple[str, ...]
    background: tuple[str, ...]


_PLAIN: Final = _Codes((), (), ())


@lru_cache(1024)
def _codes(style: Style, system: ColorSystem | None) -> _Codes:
    colors = [style.color, style.bgcolor]
    codes = [
        () if system is None or color is None else color.downgrade(system).get_ansi_codes(foreground=not place)
        for place, color in enumerate(colors)
    ]
    return _Codes(tuple([code for name, code in _ATTRIBUTES if getattr(style, name)]), codes[0], codes[1])


class Frames:
    """The frames of one terminal."""

    def __init__(self) -> None:
        self._rows: list[list[_Cell]] = []
        self._strips: list[Strip] = []

    def forget(self) -> None:
        """Send the whole next frame, since the terminal shows something else."""
        self._rows, self._strips = [], []

    def changed(self, strips: Sequence[Strip], system: ColorSystem | None) -> str:
        """Return the sequences that turn the last frame into one of these lines."""
        if len(strips) != len(self._strips) or any(
            strip.cell_length != old.cell_length for strip, old in zip(strips, self._strips, strict=True)
        ):
            self._rows = [[] for _ in strips]
            self._strips = [Strip([])] * len(strips)
        parts: list[str] = []
        codes_before = _PLAIN
        for y, strip in enumerate(strips):
            if strip is self._strips[y]:
                continue
            row = list(_row(strip))
            for start, end in _spans(self._rows[y], row):
                parts.append(f"\x1b[{y + 1};{start + 1}H")
                text = ""
                for character, style in row[start:end]:
                    codes = _codes(style, system)
                    if codes != codes_before:
                        parts.append(text + _change(codes_before, codes))
                        text, codes_before = "", codes
                    text += character
                parts.append(text)
            self._rows[y], self._strips[y] = row, strip
        if codes_before != _PLAIN:
            parts.append("\x1b[0m")
        return "".join(parts)


def _row(strip: Strip) -> Iterator[_Cell]:
    blank = Style.null()
    segment: Segment
    for segment in strip:
        style = segment.style or blank
        if segment.control:
            continue
        if segment.text.isascii():
            yield from [(character, style) for character in segment.text]
            continue
        for character in segment.text:
            yield character, style
            yield from [("", style)] * (cells(character) - 1)


def _spans(before: Sequence[_Cell], after: Sequence[_Cell]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of cells to send; a wide character is sent as a whole."""
    if len(before) != len(after):
        yield 0, len(after)
        return
    start = end = -1
    for x, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        if start >= 0 and x - end > _GAP:
            yield start, end
            start = -1
        if start < 0:
            start = x
            while start and not after[start][0]:
                start -= 1
        end = x + 1
        while end < len(after) and not after[end][0]:
            end += 1
    if start >= 0:
        yield start, end


def _change(old: _Codes, new: _Codes) -> str:
    """Return the sequence from one style to another."""
    is_reset = any(
        [
            not set(old.attributes) <= set(new.attributes),
            old.foreground and not new.foreground,
            old.background and not new.background,
        ]
    )
    old = _PLAIN if is_reset else old
    codes = ["0"] if is_reset else []
    codes += [code for code in new.attributes if code not in old.attributes]
    codes += new.foreground if new.foreground != old.foreground else ()
    codes += new.background if new.background != old.background else ()
    return f"\x1b[{';'.join(codes)}m" if codes else ""
