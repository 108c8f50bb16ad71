"""Every edit as a form."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from onnxjson.display import visible
from onnxjson.edits.catalogue import EDITS, NAMES, edit_named
from onnxjson.edits.declaration import name_of
from onnxjson.edits.spelling import summary
from onnxjson_tui.action import Action, Given
from onnxjson_tui.answers import Preview
from onnxjson_tui.forms.filling import Filling
from onnxjson_tui.forms.looking import Also
from onnxjson_tui.forms.prefilled import prefilled
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.choosing import PickerScreen
from onnxjson_tui.screens.form import FormScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_GROUPS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("nodes", ("add-node", "delete-node", "replace-node", "rewire", "swap-inputs", "name-nodes", "inline-functions")),
    ("attributes", ("set-attribute", "remove-attribute")),
    ("constants", ("set-tensor", "cast-tensor", "deduplicate-initializers", "constants-to-initializers",
                   "initializers-to-constants", "initializers-to-inputs")),
    ("interface", ("add-input", "remove-input", "add-output", "remove-output", "transpose-input")),
    ("shapes", ("set-shape", "set-dim", "set-batch-size", "infer-shapes")),
    ("names", ("rename", "set-name", "prefix", "set-metadata", "set-doc", "strip")),
    ("model", ("extract", "combine", "prune", "convert-opset", "stamp-opset")),
)  # fmt: skip


def edit_choices() -> list[Choice]:
    """Every edit, those of one kind together."""
    groups = {name: group for group, names in _GROUPS for name in names}
    order = {name: place for place, name in enumerate(groups)}
    names = sorted([name_of(edit) for edit in EDITS], key=lambda name: order.get(name, len(order)))
    return [
        Choice(name, name, f"{groups.get(name, 'other'):<11}{visible(summary(NAMES[name]), 200)}") for name in names
    ]


async def choose_edit(bench: "Workbench", given: Given) -> None:
    """Picks an edit and opens its form."""
    chosen = await bench.app.push_screen_wait(PickerScreen("Edits", edit_choices(), is_wide=True))
    if chosen is not None:
        await fill_in(bench, chosen)


async def edit_form(bench: "Workbench", given: Given) -> None:
    """Opens the form of the edit that is named; without a name they are all offered."""
    if given.text:
        await fill_in(bench, given.text.split()[0])
    else:
        await choose_edit(bench, given)


async def fill_in(
    bench: "Workbench",
    name: str,
    texts: Mapping[str, str] | None = None,
    *,
    focus: str = "",
    also: Also | None = None,
    title: str = "",
) -> Preview | None:
    """Asks for an edit by its form and makes it; what was made, None where the person gave up.

    Args:
        bench: on whose model it is made.
        name: of the edit.
        texts: what stands in fields, in place of what the cursor says.
        focus: the field that is asked for first.
        also: what else is done in the same step.
        title: in place of the name of the edit.

    Raises:
        ParameterError: there is no edit of that name.
    """
    edit = edit_named(name)
    session, here = bench.session, bench.here
    if bench.is_big:
        known = await bench.jobs.run("edit", "filling in the form", lambda: prefilled(session, edit, here))
    else:
        known = prefilled(session, edit, here)
    filling = Filling(edit, known | dict(texts or {}))
    preview = await bench.app.push_screen_wait(FormScreen(bench, filling, focus=focus, also=also, title=title))
    if preview is not None:
        bench.accept(preview)
    return preview


ACTIONS: Final = (
    Action(
        "edits", "choose an edit and fill in its form", ("a",), choose_edit, "Edit", changes=True, footer="all edits"
    ),
    Action(
        "edit-form",
        "the form of an edit that is named: :edit-form set-tensor",
        (),
        edit_form,
        "Edit",
        changes=True,
        argument="EDIT",
    ),
)
