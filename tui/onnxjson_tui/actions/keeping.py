"""Undo, redo, save, open, export, leave."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from onnxjson.display import counted, visible
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import shortened
from onnxjson_tui.action import Action, Given
from onnxjson_tui.answers import Changed
from onnxjson_tui.path_completion import expanded
from onnxjson_tui.screens import saving
from onnxjson_tui.screens.choosing import ConfirmScreen
from onnxjson_tui.session import Session

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_LOOKED: Final = 0.05
"""Seconds between two looks at whether a save is done."""

_SHOWN: Final = 10
"""Steps that are listed when a person leaves."""


def undo(bench: "Workbench", given: Given) -> None:
    """Takes steps back."""
    _go(bench, bench.session.undo, given.number or 1, "undone", "nothing to undo")


def redo(bench: "Workbench", given: Given) -> None:
    """Makes steps again."""
    _go(bench, bench.session.redo, given.number or 1, "done again", "nothing to redo")


def _go(bench: "Workbench", step: Callable[[], Changed | None], count: int, word: str, nothing: str) -> None:
    last: Changed | None = None
    is_restructured = False
    done = 0
    while done < count and (changed := step()) is not None:
        last, is_restructured, done = changed, is_restructured or changed.is_restructured, done + 1
    if last is None:
        bench.say(nothing)
        return
    bench.changed(last._replace(is_restructured=is_restructured))
    bench.say(f"{word}: {last.step.title}" + (f"  ({counted(done, 'step')})" if done > 1 else ""))


async def save(bench: "Workbench", given: Given) -> None:
    """Saves over what was opened, or to the path that is given."""
    if given.text:
        await saving.save(bench, expanded(given.text))
        return
    if not bench.session.is_changed and bench.session.opened.path is not None:
        bench.say(f"{bench.session.opened.name} is saved already; :save-as writes another file")
        return
    await saving.save(bench)


async def save_as(bench: "Workbench", given: Given) -> None:
    """Saves under another name; the ending says the form."""
    here = bench.session.opened.path
    path = expanded(given.text) if given.text else None
    if path is None:
        path = await saving.ask_path(bench, "save as (.onnx, .onnx.json)", "" if here is None else str(here), ())
    if path is not None:
        await saving.save(bench, path)


async def save_and_quit(bench: "Workbench", given: Given) -> None:
    """Saves, and leaves if that went well."""
    if not bench.session.is_changed or await saving.save(bench):
        _end(bench)


async def leave(bench: "Workbench", given: Given) -> None:
    """Ends the program; asks where something is not saved."""
    if await may_leave(bench, "leave"):
        _end(bench)


def discard_and_quit(bench: "Workbench", given: Given) -> None:
    """Ends the program without saving."""
    if bench.session.is_saving:
        bench.say("the model is being saved; leave when that is done", "changed")
        return
    bench.session.discard()
    bench.app.exit(0)


def _end(bench: "Workbench") -> None:
    bench.session.close()
    bench.app.exit(0)


async def may_leave(bench: "Workbench", word: str) -> bool:
    """Whether the session may end; asks where it has changes, saves or discards them if that is the answer.

    Args:
        bench: whose session.
        word: what is done with it: "leave", "open the other file".
    """
    session = bench.session
    while session.is_saving:
        await asyncio.sleep(_LOOKED)
    if not session.is_changed:
        return True
    answer = await bench.app.push_screen_wait(
        ConfirmScreen(
            f"{shortened(visible(session.opened.name, None), 36)} has changes that are not saved",
            [("s", "stay", "stay"), ("w", f"save and {word}", "save"), ("D", f"discard them and {word}", "discard")],
            lines=_unsaved(bench),
        )
    )
    if answer == "save":
        return await saving.save(bench)
    if answer == "discard":
        session.discard()
    return answer == "discard"


def _unsaved(bench: "Workbench") -> list[Line]:
    """The steps since the last save; what undo takes back is listed last."""
    history = bench.session.history
    made = history.made
    since = made[history.saved :] if history.saved is not None and history.saved < len(made) else made
    if not since:
        return [(Span("Steps that were saved are undone.", "quiet"),)]
    lines: list[Line] = []
    if len(since) > _SHOWN:
        lines.append((Span(f"{counted(len(since) - _SHOWN, 'step')} before these:", "quiet"),))
    return [*lines, *[(Span(f"  {visible(step.title, 300)}"),) for step in since[-_SHOWN:]]]


async def open_other(bench: "Workbench", given: Given) -> None:
    """Another file in the place of this one."""
    from onnxjson_tui.entering import enter, opened
    from onnxjson_tui.screens.opening import OpeningScreen

    name: str | None = given.text
    if not name:
        name = await bench.app.push_screen_wait(OpeningScreen(bench.session.opened.folder))
    if not name:
        return
    wanted = str(expanded(name)) if name.startswith("~") else name
    readonly = bench.session.readonly
    found = await bench.jobs.awaited("open", "opening", partial(opened, wanted, readonly=readonly))
    if await may_leave(bench, "open the other file"):
        bench.jobs.drop_all()
        enter(bench.app, found, readonly=readonly, left=bench.session)
    elif isinstance(found, Session):
        found.close()


async def export(bench: "Workbench", given: Given) -> None:
    """The steps of the session as a rewrite script."""
    session = bench.session
    if not session.history.made:
        bench.say("there are no edits to export")
        return
    exported = await bench.jobs.awaited("export", "putting the steps into edits", session.export_script)
    if not exported.script.edits:
        await saving.tell_no_script(bench, exported.left_out)
        return
    if given.text:
        path = expanded(given.text)
    else:
        asked = await saving.ask_path(bench, "export edits to (.json, .py)", "edits.json")
        if asked is None:
            return
        path = asked
    await saving.write_edits(bench, path, exported.script, exported.left_out)


def copy_row(bench: "Workbench", given: Given) -> None:
    """What the page has to be copied of the row."""
    from onnxjson_tui.actions.copying import copy_text

    page = bench.drawer.page
    text = "" if page is None else page.copied(bench.drawer.lines.cursor)
    if text:
        copy_text(bench, text, "the row")
    else:
        bench.say("there is nothing to copy in this row")


def suspend(bench: "Workbench", given: Given) -> None:
    """Gives the terminal back to the shell until ``fg``."""
    bench.session.sync()
    bench.app.action_suspend_process()


ACTIONS: Final = (
    Action("undo", "take the last step back", ("u",), undo, "Edit", changes=True, footer="undo"),
    Action("redo", "make it again", ("ctrl+r", "U"), redo, "Edit", changes=True),
    Action("save", "save", ("ctrl+s",), save, "Keep", changes=True, footer="save", argument="[PATH]"),
    Action(
        "save-as", "save under another name", (), save_as, "Keep", changes=True, argument="[PATH]",
        help="The ending says the form.",
    ),
    Action("open", "open another file", ("ctrl+l",), open_other, "Keep", argument="[PATH]"),
    Action(
        "export", "export the edits of this session as a rewrite script", ("ctrl+e",), export, "Keep", argument="[PATH]"
    ),
    Action("copy-row", "copy what the row says", ("y",), copy_row, "Keep", "drawer"),
    Action("suspend", "back to the shell until fg", ("ctrl+z",), suspend, "Keep"),
    Action("quit", "leave; asks where something is not saved", ("q", "ctrl+q"), leave, "Keep", footer="quit"),
    Action("save-quit", "save, and leave", (), save_and_quit, "Keep", changes=True),
    Action("discard-quit", "leave without saving", (), discard_and_quit, "Keep"),
)  # fmt: skip
