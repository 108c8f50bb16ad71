"""What is sent to a terminal turns one frame into the next, and is little where little differs."""

import random
import re

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
    Style(color="#ff0000", bgcolor="#000010"),
    Style(reverse=True, color="#00ff00"),
]
SEQUENCE = re.compile(r"\x1b\[([\d;]*)([Hm])|(.)", re.S)


class Screen:
    """A terminal that knows what the program uses."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, str]] = {}
        self._x = self._y = 0
        self._style: set[str] = set()

    def write(self, data: str) -> None:
        """Shows a sequence."""
        for parameters, command, character in SEQUENCE.findall(data):
            if command == "H":
                self._y, self._x = [int(each) - 1 for each in parameters.split(";")]
            elif command == "m":
                self._set(parameters)
            else:
                self.cells[self._y, self._x] = character, self.shown
                for more in range(1, cells(character)):
                    self.cells[self._y, self._x + more] = "", self.shown
                self._x += cells(character)
        assert not self._style

    def _set(self, parameters: str) -> None:
        for part in re.findall(r"[34]8;2;\d+;\d+;\d+|\d+", parameters):
            if part == "0":
                self._style.clear()
            else:
                self._style = {each for each in self._style if each[:4] != part[:4] or len(part) < 4} | {part}

    @property
    def shown(self) -> str:
        """The style, written in one way."""
        return ",".join(sorted(self._style))


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


def _written(strips: list[Strip]) -> Screen:
    found = Screen()
    found.write(Frames().changed(strips, ColorSystem.TRUECOLOR))
    return found


def test_any_frame_follows_any_other() -> None:
    rng = random.Random(3)
    frames, screen = Frames(), Screen()
    strips = [_strip(rng) for _ in range(HEIGHT)]
    for _ in range(200):
        strips = [_strip(rng) if rng.random() < 0.3 else strip for strip in strips]
        screen.write(frames.changed(strips, ColorSystem.TRUECOLOR))
        assert screen.cells == _written(strips).cells


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
