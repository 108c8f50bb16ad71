"""Base class of the pages of the drawer."""

from typing import Any, ClassVar, Generic, Protocol, TypeVar

from onnxjson_tui.widgets.lines import Rows, TextRows


class PageList(Protocol):
    """The drawer as its pages see it."""

    def page_changed(self, page: "Page[Any]", cursor: int | None = None) -> None:
        """Redraw the rows of a page."""


class PageOwner(Protocol):
    """The screen that has the drawer."""

    @property
    def drawer(self) -> PageList:
        """The drawer at the bottom."""
        ...


_Bench = TypeVar("_Bench", bound=PageOwner)


class Page(Generic[_Bench]):
    """One page of the drawer: it is notified of events and provides its rows."""

    name: ClassVar[str]
    """Identifier for actions and tests."""
    title: ClassVar[str]
    """Text of the tab."""
    hints: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys and their labels for the footer while the page has the focus."""

    def __init__(self, bench: _Bench) -> None:
        self.bench = bench

    @property
    def rows(self) -> Rows:
        """The rows to show now."""
        return TextRows([])

    @property
    def note(self) -> str:
        """Text after the title, such as a number; "" for none."""
        return ""

    def shown(self) -> None:
        """Handle that the page becomes visible; expensive computations start here."""

    def hidden(self) -> None:
        """Handle that the page is no longer visible."""

    def model_changed(self) -> None:
        """Handle that the model changed or was saved."""

    def settled(self) -> None:
        """Handle that the cursor has rested on another node for a moment."""

    def copied(self, number: int) -> str:
        """Return the text to copy for a row; "" for none."""
        return ""

    def choose(self, number: int) -> None:
        """Handle enter on a row."""

    def sideways(self, step: int) -> None:
        """Scroll to the right, or to the left for a negative step."""

    def redraw(self, cursor: int | None = None) -> None:
        """Show `rows` again if the page is visible; for pages with new results."""
        self.bench.drawer.page_changed(self, cursor)
