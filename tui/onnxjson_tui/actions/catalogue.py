"""The table of all actions."""

from typing import Final

from onnxjson_tui.action import Action
from onnxjson_tui.actions import (
    commanding,
    comparing,
    copying,
    drawers,
    editing,
    editor,
    finding,
    finding_anything,
    forms,
    graph,
    helping,
    inserting,
    inspecting,
    interface,
    keeping,
    knowing,
    moving,
    selecting,
)

ACTIONS: Final[tuple[Action, ...]] = (
    *moving.ACTIONS,
    *inspecting.ACTIONS,
    *finding.ACTIONS,
    *graph.ACTIONS,
    *commanding.ACTIONS,
    *forms.ACTIONS,
    *editing.ACTIONS,
    *inserting.ACTIONS,
    *interface.ACTIONS,
    *selecting.ACTIONS,
    *copying.ACTIONS,
    *editor.ACTIONS,
    *knowing.ACTIONS,
    *drawers.ACTIONS,
    *comparing.ACTIONS,
    *keeping.ACTIONS,
    *finding_anything.ACTIONS,
    *helping.ACTIONS,
)
"""In the order of the palette, the help, the page of keys and the keys at the bottom."""
