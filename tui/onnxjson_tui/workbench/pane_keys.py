"""Keys that mean the same in every pane, each on what the pane shows: open, edit, delete, left and right."""

from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from onnxjson_tui.session.edited_model import READ_ONLY
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments, Run
from onnxjson_tui.workbench.editing import delete
from onnxjson_tui.workbench.graph import enter
from onnxjson_tui.workbench.inspection import edit_tensor, scroll
from onnxjson_tui.workbench.inspector import edit_entry, open_entry, remove_entry, to_inspector
from onnxjson_tui.workbench.moving import choose_in_drawer, fold, unfold


def by_pane(otherwise: Run[Workbench], **runs: Run[Workbench]) -> Run[Workbench]:
    """Return the action that runs what is named like the pane with the focus, or else `otherwise`."""
    return lambda workbench, arguments: runs.get(workbench.pane, otherwise)(workbench, arguments)


def _writing(run: Run[Workbench]) -> Run[Workbench]:
    """Return the action that refuses to change a read-only model."""

    def run_unless_readonly(workbench: Workbench, arguments: Arguments) -> Coroutine[Any, Any, None] | None:
        if not workbench.session.readonly:
            return run(workbench, arguments)
        workbench.say(READ_ONLY, "bad")
        return None

    return run_unless_readonly


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "open-row", "open, or go there", ("enter", "g s"),
        by_pane(enter, inspector=open_entry, drawer=choose_in_drawer), "Edit", footer="open",
        help="Unfolds a line; enters the graph or the function of a node, else its fields; elsewhere goes where the "
        "row leads.",
    ),
    Action(
        "edit", "edit", ("e",), by_pane(to_inspector, inspector=_writing(edit_entry), drawer=_writing(edit_tensor)),
        "Edit", footer="edit",
        help="The fields of the node, a row of the inspector, an element of a tensor; 4e edits four of its row.",
    ),
    Action(
        "remove", "delete", ("d", "delete"), by_pane(delete, inspector=remove_entry), "Edit", changes=True,
        help="The node, or the selected ones; in the inspector an attribute, an entry or an optional input.",
    ),
    Action("right", "unfold; cell to the right", ("l", "right"),
           by_pane(unfold, drawer=partial(scroll, step=1)), "Move"),
    Action("left", "fold; cell to the left", ("h", "left"),
           by_pane(fold, drawer=partial(scroll, step=-1)), "Move"),
)  # fmt: skip
