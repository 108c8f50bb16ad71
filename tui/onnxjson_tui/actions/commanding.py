"""The line after ``:``: edits spelled as on the command line, and every action by its name."""

import shlex
from typing import TYPE_CHECKING, Final

from onnxjson.edits.catalogue import EDITS
from onnxjson.edits.declaration import name_of
from onnxjson.edits.spelling import parse_line
from onnxjson_tui.actions.declaration import Action, Given

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


def command(bench: "Workbench", given: Given) -> None:
    """Asks for a command."""
    bench.prompt.ask(":", lambda text: _answered(bench, text))


def _answered(bench: "Workbench", text: str | None) -> None:
    bench.nodes.focus()
    if text and text.strip():
        run_line(bench, text.strip())


def run_line(bench: "Workbench", line: str) -> None:
    """Does what a line says: an edit, or an action by its name."""
    from onnxjson_tui.actions.catalogue import ACTIONS

    word = line.split()[0]
    action = next((each for each in ACTIONS if each.id == word), None)
    if action is not None and shlex.split(line) == [word]:
        bench.do(action)
        return
    if any(name_of(edit) == word for edit in EDITS):
        try:
            edit = parse_line(line)
        except Exception as error:
            bench.failed(error)
            return
        bench.perform(edit)
        return
    bench.say(f"{word} is no command and no edit; ? lists the keys", "bad")


ACTIONS: Final = (Action("command", "type a command", (":",), command, "Edit", footer="command"),)
