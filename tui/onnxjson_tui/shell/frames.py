"""What a terminal must be sent so that it shows the next frame: only the cells that differ, and styles that change.

Textual sends all regions that were drawn again, with the full style of each piece. Over a slow line most of that is
what the terminal shows already. Colours are those of the palette of 256, whose codes are half as long as others.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from onnxjson.rendering.tables import cells

_GAP: Final = 5  # equal cells between two changed ones that are sent again, since moving the cursor costs as many bytes

_ERASE: Final = "\x1b[K"  # erases the rest of a line

_ATTRIBUTES: Final = (
    ("bold", "1", "22"), ("dim", "2", "22"), ("italic", "3", "23"), ("underline", "4", "24"), ("reverse", "7", "27"),
    ("strike", "9", "29"),
)  # fmt: skip
"""Attributes of styles, and the codes that set and end them."""

_END: Final = {code: end for _, code, end in _ATTRIBUTES}

_SEEN_ON_BLANKS: Final = frozenset("479")


class _Codes(NamedTuple):
    """Parameters of SGR sequences of a style; none for the colours of the terminal itself."""

    attributes: frozenset[str]
    foreground: tuple[str, ...]
    background: tuple[str, ...]


_PLAIN: Final = _Codes(frozenset(), (), ())

_Cell = tuple[str, _Codes]  # character and style; "" after a wide character


@lru_cache(1024)
def _codes(style: Style, system: ColorSystem | None) -> _Codes:
    if system is not None and system > ColorSystem.EIGHT_BIT:
        system = ColorSystem.EIGHT_BIT
    colors = [
        () if system is None or color is None or color.is_default else color.downgrade(system).get_ansi_codes(is_front)
        for color, is_front in ((style.color, True), (style.bgcolor, False))
    ]
    return _Codes(frozenset([code for name, code, _ in _ATTRIBUTES if getattr(style, name)]), *colors)


class Frames:
    """The frames of one terminal."""

    def __init__(self, *, fills: bool = False) -> None:
        """Create the frames of a terminal that shows nothing yet; with `fills`, it erases with the background."""
        self._fills = fills
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
        codes_before, line_before = _PLAIN, -2
        for y, strip in enumerate(strips):
            if strip is self._strips[y]:
                continue
            row = list(_row(strip, system))
            blank_from = _blank_from(row, fills=self._fills)
            for start, end in _spans(self._rows[y], row):
                parts.append(_move(line_before, y, start))
                line_before = y
                sent = row[start:end]
                if end - max(start, blank_from) > len(_ERASE):
                    sent = [*row[start:blank_from], (_ERASE, row[-1][1])]
                for text, codes in _pieces(sent, codes_before):
                    parts += (_change(codes_before, codes), text)
                    codes_before = codes
            self._rows[y], self._strips[y] = row, strip
        if codes_before != _PLAIN:
            parts.append("\x1b[m")
        return "".join(parts)


def _row(strip: Strip, system: ColorSystem | None) -> Iterator[_Cell]:
    segment: Segment
    for segment in strip:
        if segment.control:
            continue
        codes = _codes(segment.style or Style.null(), system)
        blank = codes
        if not codes.attributes & _SEEN_ON_BLANKS:
            blank = _Codes(frozenset(), (), codes.background)  # what is not seen need not be sent
        if segment.text.isascii():
            yield from [(character, blank if character == " " else codes) for character in segment.text]
            continue
        for character in segment.text:
            yield character, blank if character == " " else codes
            yield from [("", codes)] * (cells(character) - 1)


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


def _move(line: int, y: int, x: int) -> str:
    """Return the sequence from a line that was written to a cell."""
    if line == y:
        return f"\x1b[{x + 1}G"
    if line == y - 1:
        # Terminals may be set to return to the first column after each line feed; it does not matter here.
        return f"\n\x1b[{x + 1}G" if x else "\n\r"
    return f"\x1b[{y + 1};{x + 1}H"


def _blank_from(row: Sequence[_Cell], *, fills: bool) -> int:
    """Return the place from which on erasing the rest of a line draws it."""
    last = row[-1]
    if last[0] != " " or last[1].attributes or (last[1].background and not fills):
        return len(row)
    return next((at for at in range(len(row), 0, -1) if row[at - 1] != last), 0)


def _pieces(row: Sequence[_Cell], codes: _Codes) -> Iterator[tuple[str, _Codes]]:
    """Yield texts of one style; `codes`, and then those of the text before, are kept for blanks that look alike."""
    text = ""
    for character, wanted in row:
        if character in (" ", _ERASE) and not (wanted.attributes or codes.attributes & _SEEN_ON_BLANKS):
            wanted = codes._replace(background=wanted.background)
        if wanted != codes:
            if text:
                yield text, codes
            text, codes = "", wanted
        text += character
    yield text, codes


def _change(old: _Codes, new: _Codes) -> str:
    """Return the shortest sequence from one style to another."""
    if old == new:
        return ""
    ends = sorted({_END[code] for code in old.attributes - new.attributes})
    kept = {code for code in old.attributes if _END[code] not in ends}
    steps = [*ends, *sorted(new.attributes - kept)]
    for before, after, default in ((old[1], new[1], "39"), (old[2], new[2], "49")):
        if before != after:
            steps += after or (default,)
    anew = ["", *sorted(new.attributes), *new.foreground, *new.background]
    return f"\x1b[{min(';'.join(anew), ';'.join(steps), key=len)}m"
