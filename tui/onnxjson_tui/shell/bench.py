"""The workbench as actions, pages and screens see it: two protocols, so that none of them imports what is above it."""

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from textual.app import App
from textual.geometry import Size
from textual.screen import Screen
from textual.timer import Timer

from onnxjson.editing.applying import Change
from onnxjson.model.index import NodeRef
from onnxjson_tui.keys.action import Action, Given, Pane
from onnxjson_tui.names.model_names import Names
from onnxjson_tui.session.answers import Changed, Preview
from onnxjson_tui.session.opening import Unreadable
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.finder import Finder, SearchedList
from onnxjson_tui.shell.node_marks import MarkedList, NodeMarks
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.bars import Tone
from onnxjson_tui.widgets.drawer import Drawer
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.widgets.prompt import Prompt


class KeyQueue(Protocol):
    """Queue of keys."""

    def drop(self) -> None:
        """Discard the waiting keys."""


class Program(Protocol):
    """The program that the screens are part of."""

    sessions: list[Session]
    """Sessions whose edits must reach the disk when the program is ended from outside."""
    failures: list[BaseException]
    """Errors of the program itself that were shown to the user."""

    @property
    def keys(self) -> KeyQueue:
        """Keys that are not handled yet."""
        ...

    def screen_for(self, found: Session | Unreadable, *, readonly: bool) -> Screen[Any]:
        """Return the screen for what was opened."""
        ...


class Bench(SearchedList, MarkedList, Protocol):
    """The workbench: what actions, pages of the drawer and other screens may use of it."""

    terminal: Terminal
    actions: Sequence[Action["Bench"]]
    """All actions, in the order of the palette and the help."""
    finder: Finder
    """The search in the list of nodes."""
    marks: NodeMarks
    """Which nodes differ from the saved model."""
    names: tuple[int, Names] | None
    """The names of the model at a revision, for the palette."""
    said: deque[tuple[str, Tone]]
    """Messages shown so far, newest last."""
    opened: set[str]
    """Keys of the open scopes and groups of the outline."""

    # Widgets

    @property
    def app(self) -> App[Any]:
        """The program, as Textual knows it."""
        ...

    @property
    def size(self) -> Size:
        """Columns and rows of the screen."""
        ...

    @property
    def nodes(self) -> LineList:
        """The list of nodes."""
        ...

    @property
    def outline(self) -> LineList:
        """The outline."""
        ...

    @property
    def inspector(self) -> LineList:
        """The fields of the node under the cursor."""
        ...

    @property
    def drawer(self) -> Drawer:
        """The drawer at the bottom."""
        ...

    @property
    def prompt(self) -> Prompt:
        """The input line."""
        ...

    @property
    def pane(self) -> Pane:
        """The pane that has the focus."""
        ...

    @property
    def lines(self) -> LineList:
        """The list that has the focus."""
        ...

    def focus_pane(self, pane: Pane) -> None:
        """Give a pane the focus."""

    def toggle_class(self, *names: str) -> object:
        """Switch classes of the style sheet on or off."""

    def call_after_refresh(self, callback: Callable[..., object], *arguments: Any) -> object:
        """Call a function after the next redraw."""

    def set_timer(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call a function after `delay` seconds."""
        ...

    # Position

    @property
    def here(self) -> NodeRef | None:
        """The node under the cursor, if there is one."""
        ...

    def position_of(self, number: int) -> int | None:
        """Return the position in the graph of the node in a row of the list."""

    def number_of(self, position: int) -> int | None:
        """Return the row of the node at a position, if it is listed."""

    def go(self, address: str, *, remember: bool = True) -> bool:
        """Go to an element; return whether it exists."""
        ...

    def show_only(self, text: str, positions: list[int] | None) -> None:
        """List the nodes that `text` found; all nodes for None."""

    # Drawing

    def build(self, position: int | None = None, *, is_alike: bool = False) -> None:
        """Rebuild the rows of the graph, with the cursor on the node at `position`."""

    def draw_outline(self) -> None:
        """Draw the outline again."""

    def draw_chrome(self) -> None:
        """Draw title and footer."""

    # Changes

    def preview(
        self,
        make: Callable[[], Preview],
        then: Callable[[Preview], object],
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Preview a change and pass the preview to `then`."""

    def accept(self, preview: Preview) -> Changed | None:
        """Make a previewed change and report it."""

    def changed(self, changed: Changed | None) -> None:
        """Show the model after a change."""

    def failed(self, error: BaseException) -> None:
        """Show an error in the footer."""

    # Actions

    def do(self, action: Action["Bench"], given: Given = ...) -> None:
        """Run an action."""

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; report the error it raises."""

    def perform(self, *changes: Change, title: str = "") -> None:
        """Make changes as one step and report it."""
