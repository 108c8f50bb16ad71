"""What an edit would change, before it is made: the diff in groups, to accept or to drop."""

from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from onnxjson.display import counted, visible
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.spans import Line, Span, plain
from onnxjson.rendering.tables import wrapped
from onnxjson_tui.answers import Preview
from onnxjson_tui.jobs import said
from onnxjson_tui.screens.dialog import Dialog
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.lines import LineList, TextRows

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_FEWEST: Final = 60
"""Columns that a diff needs; narrower terminals cut its lines."""

_GROUP: Final = "preview"


class PreviewScreen(Dialog[bool]):
    """Shows a change that is not made yet; gives back whether it is to be made."""

    BINDINGS: ClassVar = []

    def __init__(self, bench: "Workbench", preview: Preview, title: str = "") -> None:
        """Prepares the screen.

        Args:
            bench: where the change would be made.
            preview: the change.
            title: what it is called; else how many places it changes.
        """
        super().__init__()
        self._bench = bench
        self._preview = preview
        self._title = title or f"This changes {counted(preview.matches, 'place')}."
        self._details = False

    def compose(self) -> ComposeResult:
        """Title, diff, keys."""
        with Vertical(classes="dialog tall wide"):
            yield Bar(id="dialog-title")
            yield LineList(id="dialog-rows", has_cursor=False)
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """Find out what changes."""
        self.query_one("#dialog-title", Bar).show((Span(visible(self._title, 300), "title"),))
        self.query_one("#dialog-hint", Bar).show((
            Span("enter", "title"), Span(" make the change   ", "quiet"), Span("esc", "title"),
            Span(" leave the model as it is   ", "quiet"), Span("d", "title"), Span(" details", "quiet"),
        ))  # fmt: skip
        self.query_one(LineList).focus()
        self.query_one(LineList).show(TextRows([*self._notes(), (Span("looking for the difference ...", "quiet"),)]))
        self._start()

    def _start(self) -> None:
        width, details, preview = max(self.app.size.width - 8, _FEWEST), self._details, self._preview

        def find() -> list[Line]:
            found = report(preview.difference(), "before", "after")
            # What the two sides are called is clear here, and nothing is proved before it is made.
            lines = list(diff_lines(found, min(width, 104), details=details))[1:]
            return [line for line in lines if "--prove" not in plain(line)]

        self._bench.jobs.start(_GROUP, "looking for the difference", find, self._show, self._failed)

    def _show(self, lines: list[Line]) -> None:
        if self.is_mounted:
            self.query_one(LineList).show(TextRows([*self._notes(), *lines]))

    def _failed(self, error: BaseException) -> None:
        if self.is_mounted:
            self.query_one(LineList).show(TextRows([*self._notes(), (Span(visible(said(error), 1000), "bad"),)]))

    def _notes(self) -> list[Line]:
        width = max(min(self.app.size.width - 8, 104), 40)
        lines = [line for note in self._preview.notes for line in wrapped(note, width, indent=0)]
        return [*[(Span(line, "changed"),) for line in lines], *([()] if lines else [])]

    def on_key(self, event: events.Key) -> None:
        """Make it, drop it, scroll."""
        event.stop()
        event.prevent_default()
        pressed = event.character if event.is_printable else event.key
        match pressed:
            case "enter" | "y":
                self._leave(made=True)
            case "escape" | "q" | "n" | "ctrl+c":
                self._leave(made=False)
            case "d":
                self._details = not self._details
                self._start()
            case _:
                self.query_one(LineList).take_key(pressed)

    def _leave(self, *, made: bool) -> None:
        self._bench.jobs.drop(_GROUP)
        self.dismiss(made)
