"""Undo, redo, save, leave."""

from typing import TYPE_CHECKING, Final

from onnxjson_tui.actions.declaration import Action, Given
from onnxjson_tui.answers import SaveAnswer
from onnxjson_tui.screens.choosing import ConfirmScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


def undo(bench: "Workbench", given: Given) -> None:
    """Takes steps back."""
    for _ in range(given.number or 1):
        changed = bench.session.undo()
        if changed is None:
            bench.say("nothing to undo")
            return
        bench.changed(changed)
        bench.say(f"undone: {changed.step.title}")


def redo(bench: "Workbench", given: Given) -> None:
    """Makes steps again."""
    for _ in range(given.number or 1):
        changed = bench.session.redo()
        if changed is None:
            bench.say("nothing to redo")
            return
        bench.changed(changed)
        bench.say(f"done again: {changed.step.title}")


def save(bench: "Workbench", given: Given) -> None:
    """Saves over what was opened."""
    bench.jobs.start("save", "saving", lambda: bench.session.save(), lambda answer: _saved(bench, answer))


def _saved(bench: "Workbench", answer: SaveAnswer) -> None:
    if answer.kind == "saved":
        bench.say(f"saved {answer.path}", "good")
    else:
        bench.say(answer.message, "bad")
    for page in bench.drawer.pages.values():
        page.model_changed()
    bench.draw_chrome()


async def leave(bench: "Workbench", given: Given) -> None:
    """Ends the program; asks where something is not saved."""
    if not bench.session.is_changed:
        bench.session.close()
        bench.app.exit(0)
        return
    answer = await bench.app.push_screen_wait(
        ConfirmScreen(
            "There are changes that are not saved.", [("s", "stay", "stay"), ("d", "discard them", "discard")]
        )
    )
    if answer == "discard":
        bench.session.discard()
        bench.app.exit(0)


ACTIONS: Final = (
    Action("undo", "take the last step back", ("u",), undo, "Edit", changes=True, footer="undo"),
    Action("redo", "make it again", ("ctrl+r", "U"), redo, "Edit", changes=True),
    Action("save", "save", ("ctrl+s",), save, "Keep", changes=True, footer="save"),
    Action("quit", "leave; asks where something is not saved", ("q", "ctrl+q"), leave, "Keep", footer="quit"),
)
