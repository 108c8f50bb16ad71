"""The table of all actions."""

from typing import Final

from onnxjson_tui.actions import commanding, finding, forms, graph, keeping, knowing, moving
from onnxjson_tui.actions.declaration import Action

ACTIONS: Final[tuple[Action, ...]] = (
    *moving.ACTIONS,
    *finding.ACTIONS,
    *graph.ACTIONS,
    *commanding.ACTIONS,
    *forms.ACTIONS,
    *knowing.ACTIONS,
    *keeping.ACTIONS,
)
"""In the order of the palette, the help and the page of keys."""
