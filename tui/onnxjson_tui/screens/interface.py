"""The inputs and outputs of the model in a list, with keys for what can be done to them."""

from typing import ClassVar, Final, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from onnxjson.display import counted
from onnxjson.rendering.spans import Span
from onnxjson_tui.rows.interface import InterfaceRows, Port
from onnxjson_tui.screens.dialog import Dialog
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.lines import LineList

WAYS: Final = {
    "s": ("shape", "shape"),
    "x": ("dimension", "size"),
    "r": ("rename", "rename"),
    "d": ("remove", "remove"),
    "a": ("add-input", "add in"),
    "A": ("add-output", "add out"),
}
"""Keys, what they are given back as, and a word for them."""

_NEED_PORT: Final = frozenset({"shape", "dimension", "rename", "remove"})


class Wish(NamedTuple):
    """What is to be done, and to which input or output."""

    way: str
    port: Port | None
    number: int
    """Of the row."""


class InterfaceScreen(Dialog[Wish | None]):
    """Gives back what a person wants done; None where they are done."""

    BINDINGS: ClassVar = []

    def __init__(self, ports: list[Port], *, cursor: int = 0, readonly: bool = False) -> None:
        super().__init__()
        self._ports = ports
        self._cursor = cursor
        self._readonly = readonly

    def compose(self) -> ComposeResult:
        """Title, list, keys."""
        with Vertical(classes="dialog tall wide"):
            yield Bar(id="dialog-title")
            yield LineList(id="dialog-rows")
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """The list has the focus."""
        inputs = sum(port.kind == "input" for port in self._ports)
        title = f"{counted(inputs, 'input')}, {counted(len(self._ports) - inputs, 'output')}"
        self.query_one("#dialog-title", Bar).show((Span(title, "title"),))
        spans: list[Span] = []
        for key, (_, word) in {} if self._readonly else WAYS.items():
            spans += [Span(key, "title"), Span(f" {word}  ", "quiet")]
        self.query_one("#dialog-hint", Bar).show((*spans, Span("esc", "title"), Span(" close", "quiet")))
        lines = self.query_one(LineList)
        lines.show(InterfaceRows(self._ports), self._cursor)
        lines.focus()

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Twice with the mouse is the shape."""
        self._wish("shape")

    def on_key(self, event: events.Key) -> None:
        """Move, choose what to do, close."""
        event.stop()
        event.prevent_default()
        pressed = event.character if event.is_printable else event.key
        match pressed:
            case "escape" | "q" | "i" | "ctrl+c":
                self.dismiss(None)
            case "enter":
                self._wish("shape")
            case str() if pressed in WAYS:
                self._wish(WAYS[pressed][0])
            case _:
                self.query_one(LineList).take_key(pressed)

    def _wish(self, way: str) -> None:
        number = self.query_one(LineList).cursor
        port = self._ports[number] if number < len(self._ports) else None
        if not self._readonly and (port is not None or way not in _NEED_PORT):
            self.dismiss(Wish(way, port, number))
