"""What is sent to a terminal turns one frame into the next, and is little where little differs."""

import random
import re

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from onnxjson.rendering.tables import cells
from onnxjson_tui.shell.frames import Frames

WIDTH, HEIGHT = 30, 6
STYLES = [
    Style.null(),
    Style(bold=True),
    Style(bold=True, dim=True, italic=True),
    Style(color="color(9)", bgcolor="color(17)"),
    Style(reverse=True, color="color(10)"),
    Style(underline=True, bgcolor="color(17)"),
    Style(color="default", bgcolor="default"),
]
SEQUENCE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|(.)", re.S)
ENDS = {"22": "12", "23": "3", "24": "4", "27": "7", "29": "9"}
NAMES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "reverse": "7", "strike": "9"}
Cell = tuple[str, str]


class Screen:
    """A terminal that knows what the program uses; it adds a return to a line feed, or does not."""

    def __init__(self, *, returns: bool = True, fills: bool = True) -> None:
        self.cells: dict[tuple[int, int], Cell] = {}
        self._x = self._y = 0
        self._attributes: set[str] = set()
        self._colors = {"3": "", "4": ""}
        self._returns, self._fills = returns, fills

    def write(self, data: str) -> None:
        """Shows a sequence."""
        for parameters, command, character in SEQUENCE.findall(data):
            match command or character:
                case "H":
                    self._y, self._x = [int(each) - 1 for each in parameters.split(";")]
                case "G":
                    self._x = int(parameters) - 1
                case "m":
                    self._set(parameters)
                case "K":
                    back = self._colors["4"] if self._fills else ""
                    self.cells |= {(self._y, x): _cell(" ", set(), "", back) for x in range(self._x, WIDTH)}
                case "\r":
                    self._x = 0
                case "\n":
                    self._y, self._x = self._y + 1, 0 if self._returns else self._x
                case _:
                    shown = _cell(character, self._attributes, self._colors["3"], self._colors["4"])
                    self.cells[self._y, self._x] = shown
                    for more in range(1, cells(character)):
                        self.cells[self._y, self._x + more] = "", shown[1]
                    self._x += cells(character)
        assert not self._attributes
        assert not any(self._colors.values())

    def _set(self, parameters: str) -> None:
        for part in re.findall(r"[34]8;[25](?:;\d+)+?(?=;|$)|\d+|^$|^(?=;)", parameters):
            if part in ("", "0"):
                self._attributes.clear()
                self._colors = {"3": "", "4": ""}
            elif part in ENDS:
                self._attributes -= set(ENDS[part])
            elif len(part) == 1:
                self._attributes.add(part)
            elif part[0] in "91":
                self._colors["3" if part[0] == "9" else "4"] = str(int(part[-1]) + 8)
            else:
                self._colors[part[0]] = "" if part[1:] == "9" else part.rpartition(";")[2] if ";" in part else part[1:]


def _cell(character: str, attributes: set[str], front: str, back: str) -> Cell:
    """What is seen of a cell: of a blank one only some attributes, and the background."""
    if character == " " and not attributes & set("479"):
        return " ", back
    return character, f"{''.join(sorted(attributes))},{front},{back}"


def _seen(strips: list[Strip]) -> dict[tuple[int, int], Cell]:
    """The cells of lines, without sequences."""
    found = {}
    for y, strip in enumerate(strips):
        x = 0
        for text, style, _ in strip:
            assert style is not None
            front, back = [
                "" if each is None or each.number is None else str(each.number) for each in (style.color, style.bgcolor)
            ]
            attributes = {code for name, code in NAMES.items() if getattr(style, name)}
            for character in text:
                found[y, x] = _cell(character, attributes, front, back)
                for more in range(1, cells(character)):
                    found[y, x + more] = "", found[y, x][1]
                x += cells(character)
    return found


def _strip(rng: random.Random) -> Strip:
    segments: list[Segment] = []
    width = 0
    while width < WIDTH:
        text = rng.choice(["abc", "x", "──", "界", " " * 7, "12345"])
        if width + cells(text) > WIDTH:
            text = " " * (WIDTH - width)
        segments.append(Segment(text, rng.choice(STYLES)))
        width += cells(text)
    return Strip(segments)


@pytest.mark.parametrize(("returns", "fills"), [(True, True), (False, False)])
def test_any_frame_follows_any_other(returns: bool, fills: bool) -> None:
    rng = random.Random(3)
    frames, screen = Frames(fills=fills), Screen(returns=returns, fills=fills)
    strips = [_strip(rng) for _ in range(HEIGHT)]
    for _ in range(200):
        strips = [_strip(rng) if rng.random() < 0.3 else strip for strip in strips]
        screen.write(frames.changed(strips, ColorSystem.TRUECOLOR))
        assert screen.cells == _seen(strips)


def test_codes_are_short() -> None:
    strip = Strip([Segment("a", Style(color="#ff8700", bgcolor="#000000")), Segment(" " * (WIDTH - 1))])
    assert Frames().changed([strip], ColorSystem.TRUECOLOR) == "\x1b[1;1H\x1b[38;5;208;48;5;16ma\x1b[49m\x1b[K\x1b[m"
    default = Style(color="default", bgcolor="default")
    assert Frames().changed([Strip([Segment("a" * WIDTH, default)])], None) == "\x1b[1;1H" + "a" * WIDTH


def test_equal_cells_are_not_sent_and_all_are_after_another_program() -> None:
    frames = Frames()
    strips = [Strip([Segment("a" * WIDTH)])] * HEIGHT
    assert len(frames.changed(strips, None)) > WIDTH * HEIGHT
    assert frames.changed([Strip([Segment("a" * WIDTH)])] * HEIGHT, None) == ""
    other = [*strips[:-1], Strip([Segment("a" * 10 + "b" + "a" * (WIDTH - 11))])]
    assert frames.changed(other, None) == f"\x1b[{HEIGHT};11Hb"
    frames.forget()
    assert len(frames.changed(other, None)) > WIDTH * HEIGHT


def test_another_size_is_drawn_from_the_beginning() -> None:
    frames = Frames()
    frames.changed([Strip([Segment("a" * WIDTH)])] * HEIGHT, None)
    assert frames.changed([Strip([Segment("a" * 10)])] * 2, None).count("a") == 20
