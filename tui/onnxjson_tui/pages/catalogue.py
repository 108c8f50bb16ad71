"""The pages of the drawer, in the order of their tabs."""

from typing import Final

from onnxjson_tui.pages.declaration import Page
from onnxjson_tui.pages.history import HistoryPage

PAGES: Final[tuple[type[Page], ...]] = (HistoryPage,)
