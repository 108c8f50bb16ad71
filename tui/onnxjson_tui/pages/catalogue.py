"""The pages of the drawer, in the order of their tabs."""

from typing import Final

from onnxjson_tui.pages.changes import ChangesPage
from onnxjson_tui.pages.declaration import Page
from onnxjson_tui.pages.history import HistoryPage
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.pages.tensor import TensorPage

PAGES: Final[tuple[type[Page], ...]] = (ProblemsPage, ChangesPage, TensorPage, HistoryPage)
