"""The table of all actions."""

from typing import Final

from onnxjson_tui.actions import (
    commanding,
    editing,
    editor,
    finding,
    forms,
    graph,
    helping,
    inspection,
    inspector,
    measuring,
    moving,
    persistence,
)
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.widgets.actions import Action

ACTIONS: Final[tuple[Action[Bench], ...]] = (
    *moving.ACTIONS,
    *inspector.ACTIONS,
    *finding.ACTIONS,
    *graph.ACTIONS,
    *commanding.ACTIONS,
    *forms.ACTIONS,
    *editing.ACTIONS,
    *forms.INSERTIONS,
    *inspector.INTERFACE,
    *moving.SELECTING,
    *editor.ACTIONS,
    *measuring.ACTIONS,
    *inspection.ACTIONS,
    *persistence.ACTIONS,
    *helping.ACTIONS,
)
"""All actions, in the order of the palette, the help, the page of keys and the footer."""
