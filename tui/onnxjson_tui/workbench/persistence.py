"""Undo and redo, save, open another file, export a script, leave."""

import asyncio
from functools import partial
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.model.errors import ParameterError
from onnxjson.rendering.tables import Line, Span, shortened
from onnxjson_tui.screens import saving
from onnxjson_tui.session.opening import expanded
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments

_LOOKED: Final = 0.05  # seconds between two checks whether a save is done
_SHOWN: Final = 10  # unsaved steps that are listed when the user leaves


def _step(workbench: Workbench, count: int, word: str, nothing: str) -> None:
    """Redo as many steps as the count, or undo them for a negative count."""
    last, done = workbench.step(count)
    if last is None:
        workbench.say(nothing)
    else:
        workbench.say(f"{word}: {last.step.title}" + (f"  ({counted(done, 'step')})" if done > 1 else ""))


def _undo(workbench: Workbench, arguments: Arguments) -> None:
    _step(workbench, -(arguments.number or 1), "undone", "nothing to undo")


def _redo(workbench: Workbench, arguments: Arguments) -> None:
    _step(workbench, arguments.number or 1, "redone", "nothing to redo")


async def save(workbench: Workbench, arguments: Arguments) -> None:
    """Save to the opened file, or to a given path."""
    if arguments.text:
        await saving.save(workbench, expanded(arguments.text))
        return
    if not workbench.session.is_changed and workbench.session.opened.path is not None:
        workbench.say(f"{workbench.session.opened.name} is already saved; :save PATH writes another file")
        return
    await saving.save(workbench)


async def _leave(workbench: Workbench, arguments: Arguments) -> None:
    match arguments.text:
        case "save":
            is_done = not workbench.session.is_changed or await saving.save(workbench)
        case "discard" if workbench.session.is_saving:
            workbench.say("the model is being saved; leave afterwards", "changed")
            return
        case "discard":
            workbench.session.discard()
            is_done = True
        case "":
            is_done = await may_leave(workbench, "leave")
        case _:
            raise ParameterError(f"quit save or quit discard, not {visible(arguments.text, 40)}")
    if is_done:
        workbench.session.close()
        workbench.app.exit(0)


async def may_leave(workbench: Workbench, word: str) -> bool:
    """Return whether the session may end; ask first if it has changes, and save or discard them."""
    session = workbench.session
    while session.is_saving:
        await asyncio.sleep(_LOOKED)
    if not session.is_changed:
        return True
    answer = await workbench.confirm(
        f"{shortened(visible(session.opened.name, None), 36)} has unsaved changes",
        [("s", "stay", "stay"), ("w", f"save and {word}", "save"), ("D", f"discard them and {word}", "discard")],
        lines=_unsaved(workbench),
    )
    if answer == "save":
        return await saving.save(workbench)
    if answer == "discard":
        session.discard()
    return answer == "discard"


def _unsaved(workbench: Workbench) -> list[Line]:
    """Return the steps since the last save, the newest last."""
    history = workbench.session.history
    made = history.made
    since = made[history.saved :] if history.saved is not None and history.saved < len(made) else made
    if not since:
        return [(Span("You undid steps that are saved.", "quiet"),)]
    lines: list[Line] = []
    if len(since) > _SHOWN:
        lines.append((Span(f"{counted(len(since) - _SHOWN, 'step')} before these:", "quiet"),))
    return [*lines, *[(Span(f"  {visible(step.title, 300)}"),) for step in since[-_SHOWN:]]]


async def _open_other(workbench: Workbench, arguments: Arguments) -> None:
    from onnxjson_tui.screens.opening import OpeningScreen
    from onnxjson_tui.shell.terminal import enter, opened

    name: str | None = arguments.text
    if not name:
        name = await workbench.app.push_screen_wait(OpeningScreen(workbench.session.opened.folder))
    if not name:
        return
    readonly = workbench.session.readonly
    opened_model = await workbench.jobs.awaited("open", "opening", partial(opened, name, readonly=readonly))
    if await may_leave(workbench, "open the other file"):
        workbench.jobs.drop_all()
        enter(workbench.app, opened_model, readonly=readonly, left=workbench.session)
    elif isinstance(opened_model, Session):
        opened_model.close()


async def _export(workbench: Workbench, arguments: Arguments) -> None:
    session = workbench.session
    if not session.history.made:
        workbench.say("there are no edits to export")
        return
    changes = await workbench.jobs.awaited("export", "converting the steps", session.export)
    path = await saving.ask_path(workbench, "export edits to (.json)", "edits.json", given=arguments.text)
    if path is not None:
        await saving.write_changes(workbench, path, changes)


def _suspend(workbench: Workbench, arguments: Arguments) -> None:
    workbench.session.sync()
    workbench.app.action_suspend_process()


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action("undo", "undo a step", ("u",), _undo, "Edit", changes=True, footer="undo"),
    Action("redo", "redo a step", ("ctrl+r",), _redo, "Edit", changes=True),
    Action(
        "save", "save", ("ctrl+s",), save, "Keep", changes=True, footer="save", argument="[PATH]",
        help=":save PATH saves under another name; its ending chooses the format.",
    ),
    Action("open", "open another file", ("ctrl+l",), _open_other, "Keep", argument="[PATH]"),
    Action(
        "export", "export the edits", ("ctrl+e",), _export, "Keep", argument="[PATH]",
        help="The steps of this session as a script that onnxjson apply repeats.",
    ),
    Action("suspend", "to the shell, until fg", ("ctrl+z",), _suspend, "Keep"),
    Action(
        "quit", "quit", ("q", "ctrl+q"), _leave, "Keep", footer="quit", argument="[save|discard]",
        help="Asks about unsaved changes; :quit save and :quit discard do not ask.",
    ),
)  # fmt: skip
