"""Recovery of a killed session: recover its edits, show, keep, export or delete them."""

import time
from pathlib import Path
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import wrapped
from onnxjson_tui.screens.saving import ask_path, tell_no_script, write_edits
from onnxjson_tui.session.recovery import Abandoned
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.dialogs import ConfirmScreen, TextScreen, preview_lines

_WIDTH: Final = 68
"""Columns of the text of the dialog."""

_HOUR: Final = 3600


async def offer_recovery(bench: Bench) -> None:
    """Ask what to do with the journals of sessions on this model that ended without saving, newest first."""
    session = bench.session
    journals, session.abandoned = session.abandoned, ()
    if journals and session.readonly:
        for journal in journals:
            journal.release()
        bench.say("an earlier session has unsaved edits; open without --readonly to recover them", "changed")
        return
    for number, journal in enumerate(journals):
        try:
            if await _settle(bench, journal, len(journals) - number - 1) == "recover":
                # The other journals apply only to the file without these edits; they are kept.
                for other in journals[number + 1 :]:
                    other.release()
                return
        except BaseException:
            for each in journals[number:]:
                each.release()
            raise


async def _settle(bench: Bench, journal: Abandoned, others: int) -> str:
    reason = bench.session.why_not(journal)
    while True:
        answer = await bench.app.push_screen_wait(recovery_question(journal, reason, others))
        match answer:
            case "recover":
                await _recover(bench, journal)
            case "drop":
                question = f"Delete {counted(len(journal.commands), 'edit')} for good?"
                if await bench.confirm(question, [("k", "keep", "keep"), ("d", "delete", "drop")]) != "drop":
                    continue
                journal.discard()
                bench.say("the edits of the earlier session are deleted")
            case "export":
                await _export(bench, journal)
                continue
            case "show":
                await _show(bench, journal)
                continue
            case _:
                journal.release()
                bench.say("the edits of the earlier session are kept and offered again when you open the model")
        return answer


async def _recover(bench: Bench, journal: Abandoned) -> None:
    session = bench.session
    replay = await bench.jobs.awaited("recovery", "repeating the edits", lambda: session.recover(journal))
    bench.build(0)
    for page in bench.drawer.pages.values():
        page.model_changed()
    said = f"{counted(len(replay.made), 'step')} recovered, not saved yet; u undoes one, f6 shows the changes"
    bench.say(f"{said}; {replay.trouble}" if replay.trouble else said, "bad" if replay.trouble else "good")


async def _show(bench: Bench, journal: Abandoned) -> None:
    """Show the diff that the journal would make."""

    def found() -> list[Line]:
        preview, trouble = bench.session.preview_recovery(journal)
        lines = preview_lines(preview, "file", "recovered", bench.size.width - 8)
        return [*lines, (Span(visible(trouble, 500), "bad"),)] if trouble else lines

    lines = await bench.jobs.awaited("recovery", "computing the changes", found)
    await bench.app.push_screen_wait(TextScreen("What recovering would change", lines))


async def _export(bench: Bench, journal: Abandoned) -> None:
    script, left_out = journal.script()
    if not script.edits:
        await tell_no_script(bench, left_out)
        return
    path = await ask_path(bench, "export to", f"{Path(journal.header.name).name or 'model'}.edits.json")
    if path is not None:
        await write_edits(bench, path, script, left_out)


def recovery_question(journal: Abandoned, reason: str, others: int) -> ConfirmScreen:
    """Return the question about one journal: recover, show, keep, export or delete; escape keeps it.

    Args:
        journal: the journal of an ended session.
        reason: why it cannot be recovered; "" if it can.
        others: the number of other journals.
    """
    rest = [("e", "export as a script", "export"), ("D", "delete", "drop")]
    answers = (
        [("k", "keep for later", "keep"), *rest]
        if reason
        else [
            ("r", "recover", "recover"),
            ("s", "show what would change", "show"),
            *rest,
            ("k", "open without them, keep", "keep"),
        ]
    )
    lines = _lines(journal, reason, others)
    return ConfirmScreen("Unsaved edits", answers, lines=lines, escape="keep")


def _lines(journal: Abandoned, reason: str, others: int) -> list[Line]:
    header = journal.header
    when = f"{ago(time.time() - header.started / 1e9)} ago" if header.started else "at an unknown time"
    commands = journal.commands
    found: list[Line] = [
        (Span(each),)
        for each in wrapped(
            f"A session on {visible(header.name, 200) or 'this model'} that began {when} ended without saving "
            f"{counted(len(commands), 'edit')}, oldest first:",
            _WIDTH,
            indent=0,
        )
    ]
    found += [(Span(f"  {visible(each, 300)}"),) for each in commands]
    for text in (journal.damage, f"They cannot be recovered here: {reason}." if reason else ""):
        found += [(Span(each, "bad"),) for each in wrapped(text, _WIDTH, indent=0)]
    if others:
        found.append((Span(f"There is also {counted(others, 'older session')}.", "quiet"),))
    return found


def ago(seconds: float) -> str:
    """Return a duration in a suitable unit, such as ``3 hours``."""
    if seconds < 2 * 60:
        return counted(max(int(seconds), 0), "second")
    if seconds < 2 * _HOUR:
        return counted(int(seconds / 60), "minute")
    return counted(int(seconds / _HOUR), "hour") if seconds < 48 * _HOUR else counted(int(seconds / 86_400), "day")
