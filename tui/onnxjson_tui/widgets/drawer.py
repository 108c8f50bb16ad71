"""Drawer at the bottom of the screen, which shows one of several pages, and the base class of these pages."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar, Generic, TypeVar

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Vertical

from onnxjson.rendering.tables import Span, cells
from onnxjson_tui.widgets.lines import Bar, LineList, Rows, TextRows, Tone

_Screen = TypeVar("_Screen")  # the screen that has the drawer


class Page(Generic[_Screen]):
    """One page of the drawer: it is notified of events and provides its rows."""

    name: ClassVar[str]  # identifier for actions and tests
    title: ClassVar[str]  # text of the tab
    hints: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys and their labels for the footer while the page has the focus."""

    def __init__(self, workbench: _Screen, drawer: "Drawer") -> None:
        self.workbench = workbench
        self.drawer = drawer

    @property
    def rows(self) -> Rows:
        """The rows to show now."""
        return TextRows([])

    @property
    def note(self) -> str:
        """Text after the title, such as a number; "" for none."""
        return ""

    @property
    def tone(self) -> Tone:
        """The style of the note in the title of the screen."""
        return "plain"

    def shown(self) -> None:
        """Handle that the page becomes visible; expensive computations start here."""

    def hidden(self) -> None:
        """Handle that the page is no longer visible."""

    def model_changed(self) -> None:
        """Handle that the model changed or was saved."""

    def copied(self, number: int) -> str:
        """Return the text to copy for a row; "" for none."""
        return ""

    def choose(self, number: int) -> None:
        """Handle enter on a row."""

    def sideways(self, step: int) -> None:
        """Scroll to the right, or to the left for a negative step."""

    def redraw(self, cursor: int | None = None) -> None:
        """Show `rows` again if the page is visible; for pages with new results."""
        self.drawer.page_changed(self, cursor)


_P = TypeVar("_P", bound=Page[Any])


class _Tabs(Bar):
    """The titles of the pages; a click opens one."""

    starts: Sequence[int] = ()  # column at which each title begins

    def on_click(self, event: events.Click) -> None:
        """Open the page whose title was clicked."""
        drawer, number = self.parent, bisect_right(self.starts, event.x) - 1
        if isinstance(drawer, Drawer) and 0 <= number < len(drawer.pages):
            drawer.open(list(drawer.pages)[number])


class Drawer(Vertical):
    """A line of tabs and the rows of the open page."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.pages: dict[str, Page[Any]] = {}
        self.page: Page[Any] | None = None
        self._cursors: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        """Compose the tabs and the rows."""
        yield _Tabs(id="drawer-tabs")
        yield LineList(id="drawer-rows")

    lines = getters.query_one("#drawer-rows", LineList)  # the list widget of the open page

    @property
    def is_open(self) -> bool:
        """Whether the drawer is visible."""
        return bool(self.display)

    def find(self, kind: type[_P]) -> _P:
        """Return the page of a class."""
        return next(page for page in self.pages.values() if isinstance(page, kind))

    def open(self, name: str) -> Page[Any]:
        """Open a page."""
        self.remember()
        before, self.page = self.page, self.pages[name]
        self.display = True
        self.screen.add_class("show-drawer")
        if before is not None and before is not self.page:
            before.hidden()
        self.page.shown()
        self.page_changed(self.page, self._cursors.get(name, 0))
        return self.page

    def close(self) -> None:
        """Close the drawer."""
        self.remember()
        if self.page is not None:
            self.page.hidden()
        self.page = None
        self.display = False
        self.screen.remove_class("show-drawer", "whole-drawer")

    def remember(self) -> None:
        """Remember the cursor of the open page for the next time it is opened."""
        if self.page is not None:
            self._cursors[self.page.name] = self.lines.cursor

    def page_changed(self, page: Page[Any], cursor: int | None = None) -> None:
        """Draw the rows of a page again after they changed."""
        self.draw_tabs()
        if page is self.page:
            self.lines.show(page.rows, cursor)

    def draw_tabs(self) -> None:
        """Draw the titles of the pages, with the open one marked."""
        spans = []
        for page in self.pages.values():
            is_open = page is self.page
            note = f" {page.note}" if page.note else ""
            spans.append(
                Span(f"[{page.title}{note}]" if is_open else f" {page.title}{note} ", "title" if is_open else "quiet")
            )
        tabs = self.query_one(_Tabs)
        tabs.starts = [0, *accumulate([cells(span.text) for span in spans])][:-1]
        tabs.show(tuple(spans))
