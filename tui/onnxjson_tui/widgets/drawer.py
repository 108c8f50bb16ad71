"""Drawer at the bottom of the screen, which shows one of several pages."""

from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Vertical

from onnxjson.rendering.spans import Span
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.lines import LineList

if TYPE_CHECKING:
    from onnxjson_tui.widgets.page import Page


class Drawer(Vertical):
    """A line of tabs and the rows of the open page."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.pages: dict[str, Page[Any]] = {}
        self.page: Page[Any] | None = None
        self._cursors: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        """Compose the tabs and the rows."""
        yield Bar(id="drawer-tabs")
        yield LineList(id="drawer-rows")

    @property
    def lines(self) -> LineList:
        """The list widget of the open page."""
        return self.query_one("#drawer-rows", LineList)

    @property
    def is_open(self) -> bool:
        """Whether the drawer is visible."""
        return bool(self.display)

    def open(self, name: str) -> "Page[Any]":
        """Open a page."""
        self.remember()
        before, self.page = self.page, self.pages[name]
        self.display = True
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

    def remember(self) -> None:
        """Remember the cursor of the open page for the next time it is opened."""
        if self.page is not None:
            self._cursors[self.page.name] = self.lines.cursor

    def page_changed(self, page: "Page[Any]", cursor: int | None = None) -> None:
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
        self.query_one("#drawer-tabs", Bar).show(tuple(spans))
