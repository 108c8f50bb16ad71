"""What a page of the drawer is."""

from typing import TYPE_CHECKING, ClassVar

from onnxjson_tui.widgets.lines import Rows, TextRows

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


class Page:
    """One page of the drawer; it is told what happens, and says what is to be seen."""

    name: ClassVar[str]
    """In actions and tests."""
    title: ClassVar[str]
    """On its tab."""
    hints: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys and a word for each, for the bar at the bottom while the page has the focus."""

    def __init__(self, bench: "Workbench") -> None:
        self.bench = bench

    @property
    def rows(self) -> Rows:
        """What is to be seen now."""
        return TextRows([])

    @property
    def note(self) -> str:
        """A word after the title, such as a number; "" for none."""
        return ""

    def shown(self) -> None:
        """The page can be seen from now on; what it costs to know begins here."""

    def hidden(self) -> None:
        """The page is no longer seen."""

    def model_changed(self) -> None:
        """The model is another one, or it was saved."""

    def settled(self) -> None:
        """The cursor has stood on another node for a moment."""

    def copied(self, number: int) -> str:
        """What is copied of a row; "" for nothing."""
        return ""

    def choose(self, number: int) -> None:
        """Enter was pressed on a row."""

    def sideways(self, step: int) -> None:
        """To the right, or to the left for a negative number."""

    def redraw(self, cursor: int | None = None) -> None:
        """Shows `rows` anew, if the page is seen; for pages that found something out."""
        self.bench.drawer.page_changed(self, cursor)
