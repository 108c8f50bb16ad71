"""The table of all actions."""

from typing import Final

from onnxjson_tui.actions import (
    commanding,
    comparing,
    editing,
    editor,
    finding,
    forms,
    graph,
    helping,
    inspection,
    inspector,
    interface,
    moving,
    persistence,
    selecting,
)
from onnxjson_tui.keys.action import Action
from onnxjson_tui.shell.bench import Bench

ACTIONS: Final[tuple[Action[Bench], ...]] = (
    *moving.ACTIONS,
    *inspector.ACTIONS,
    *finding.ACTIONS,
    *graph.ACTIONS,
    *commanding.ACTIONS,
    *forms.ACTIONS,
    *editing.ACTIONS,
    *forms.INSERTIONS,
    *interface.ACTIONS,
    *selecting.ACTIONS,
    *editor.ACTIONS,
    *inspection.ACTIONS,
    *comparing.ACTIONS,
    *persistence.ACTIONS,
    *helping.ACTIONS,
)
"""In the order of the palette, the help, the page of keys and the footer."""
