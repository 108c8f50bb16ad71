"""ctrl+p: does what was found by a part of its name, or goes there."""

from typing import TYPE_CHECKING, Final

from onnxjson.display import visible
from onnxjson.edits.catalogue import NAMES
from onnxjson.edits.spelling import summary
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.commanding import MARK, action_of, ask, run_line
from onnxjson_tui.key_list import all_keys, sentence
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.palette import PaletteScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_MOST_RECENT: Final = 20
"""Lines typed before that are offered."""


async def open_palette(bench: "Workbench", given: Given) -> None:
    """Asks what to do or where to go, and does it."""
    chosen = await bench.app.push_screen_wait(PaletteScreen(bench, commands(bench)))
    if chosen is not None:
        _do(bench, chosen)


def commands(bench: "Workbench") -> list[Choice]:
    """Actions, edits and earlier commands, as choices."""
    readonly = bench.session.readonly
    refused = "the model is opened to be read only"
    found = [
        Choice(f"action {each.id}", sentence(each.title), all_keys(each), refused if readonly and each.changes else "")
        for each in bench.actions
        if each.scope in ("everywhere", bench.pane) and each.id != "palette"
    ]
    found += [
        Choice(f"edit {name}", name, visible(summary(edit), 200), refused if readonly else "")
        for name, edit in NAMES.items()
    ]
    recent = bench.prompt.kept(MARK)[::-1][:_MOST_RECENT]
    return [*found, *[Choice(f"line {line}", f":{visible(line, 300)}", "typed before") for line in recent]]


def _do(bench: "Workbench", chosen: str) -> None:
    kind, _, what = chosen.partition(" ")
    if kind == "go":
        if bench.go(what):
            bench.focus_pane("nodes")
    elif kind == "line":
        run_line(bench, what)
    elif kind == "edit":
        form = action_of(bench, "edit-form")
        if form is None:
            ask(bench, f"{what} ")
        else:
            bench.do(form, Given(text=what))
    else:
        _do_action(bench, what)


def _do_action(bench: "Workbench", name: str) -> None:
    action = next(each for each in bench.actions if each.id == name)
    if action.takes_letter:
        ask(bench, f"{action.id} ")
    else:
        bench.do(action)


ACTIONS: Final = (
    Action("palette", "find an action, an edit, a node, a constant", ("ctrl+p",), open_palette, "Help", footer="find"),
)
