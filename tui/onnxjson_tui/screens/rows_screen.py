"""The base of screens that show changes: rows, and details of the row under the cursor."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from textual import events, getters
from textual.app import ComposeResult

from onnxjson.model.document import Model
from onnxjson.model.index import Index
from onnxjson_tui.rows.nodes import NodeRows
from onnxjson_tui.rows.panes import show_types
from onnxjson_tui.session.reading import inferred
from onnxjson_tui.shell.keyed import KeyedScreen, screen_key
from onnxjson_tui.widgets.lines import LineList, TextRows

_T = TypeVar("_T")
CHANGE_KEYS: Final = (
    screen_key(("] c", "}"), "next change", lambda screen, given: screen.to_change(given.number or 1), "next"),
    screen_key(("[ c", "{"), "previous change", lambda screen, given: screen.to_change(-(given.number or 1))),
    screen_key(("z R", "+"), "unfold everything", lambda screen, _: screen.fold(folded=False)),
    screen_key(("z M", "_"), "fold everything", lambda screen, _: screen.fold(folded=True)),
)
"""Keys of every screen that shows changes."""


class RowsScreen(KeyedScreen[_T]):
    """Rows with changes among them, and below them details of the one under the cursor."""

    AUTO_FOCUS = "#rows"

    def body(self) -> ComposeResult:
        """The rows, and details of one."""
        yield LineList(id="rows")
        yield LineList(id="about", has_cursor=False)

    rows = getters.query_one("#rows", LineList)  # the rows
    about = getters.query_one("#about", LineList)  # details of the row under the cursor

    def show_details(self) -> None:
        """Show details of the row under the cursor."""

    def infer_types(
        self,
        nodes: Sequence[Sequence[NodeRows | None]],
        models_of: Callable[[], Sequence[tuple[Model | None, Path | None]]],
    ) -> None:
        """Infer the types of models, by side with their files, in a thread, and show them in rows of nodes."""

        def work() -> list[Index | None]:
            return [inferred(model, path and path.parent) if model else None for model, path in models_of()]

        def done(indices: Sequence[Index | None]) -> None:
            show_types(nodes, indices)
            self.rows.refresh()

        self.jobs.start("types", "inferring types", work, done)

    @property
    def starts(self) -> Sequence[int]:
        """The first rows of changes, ascending."""
        return getattr(self.rows.rows, "starts", ())

    def to_change(self, count: int) -> None:
        """Move the cursor by a number of changes, up for a negative count."""
        starts, here = self.starts, self.rows.cursor
        ahead = starts[bisect_right(starts, here) :] if count > 0 else starts[: bisect_left(starts, here)][::-1]
        if ahead:
            self.rows.move_to(ahead[min(abs(count), len(ahead)) - 1])
        elif starts:
            self.say("that was the last change" if count > 0 else "that was the first change")

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Update the lower list when the cursor rests."""
        if event.lines is self.rows:
            self.after_rest(self.show_details)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines at the bottom to the new width, unless there is only a message above."""
        super().on_resize(event)
        if not isinstance(self.rows.rows, TextRows):
            self.call_after_refresh(self.show_details)
