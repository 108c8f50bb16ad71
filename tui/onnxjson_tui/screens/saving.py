"""Saving a session, exporting its edits and recovering those of a killed one, with all questions."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from onnxjson.editing.script import Script
from onnxjson.merging.conflict_text import conflict_lines
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import EncodeError, OnnxJsonError
from onnxjson.patching.patch import Patch
from onnxjson.rendering.tables import Line, Span, size, wrapped
from onnxjson.storage.files import Format, format_for
from onnxjson.storage.saving import require_savable
from onnxjson_tui.session.history import SaveAnswer
from onnxjson_tui.session.opening import complete_path, expanded
from onnxjson_tui.session.recovery import Abandoned
from onnxjson_tui.shell.dialogs import ConfirmScreen, TextScreen, preview_lines
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.lines import Tone

_WIDTH: Final = 66  # columns of the text of a question

_HOUR: Final = 3600

_NAMED: Final = 8  # files that are named in a question

_FORMS: Final[dict[Format, str]] = {"onnx": "binary ONNX", "json": "text", "protojson": "proto-JSON"}


def paragraphs(text: str) -> list[str]:
    """Wrap a text for a question."""
    return wrapped(text, _WIDTH, indent=0)


async def ask_path(
    workbench: Workbench, mark: str, text: str, endings: Sequence[str] = (".json",), *, given: str = ""
) -> Path | None:
    """Ask for a path, completed by tab, unless it is given; return None if the user cancels."""
    typed = given or await workbench.ask(f"{mark}: ", text=text, complete=lambda typed: complete_path(typed, endings))
    return expanded(typed.strip()) if typed and typed.strip() else None


async def save(workbench: Workbench, path: Path | None = None, *, overwrite: bool = False) -> bool:
    """Save with all necessary questions and report the result; return whether the model was saved."""
    session = workbench.session
    if path is None and session.opened.path is None:
        path = await ask_path(workbench, "save as", session.opened.name.rpartition(":")[2], ())
        if path is None:
            return False
    made = session.history.made[session.history.saved or 0 :]
    if any([step.is_forced for step in made]) and not await _confirm_broken(workbench):
        workbench.say("not saved; f5 lists the problems", "changed")
        return False
    copy: bool | None = None
    revert_others = unloadable = False
    while True:
        started = time.monotonic()
        try:
            work = partial(
                session.save, path,
                overwrite=overwrite, revert_others=revert_others, copy_external=copy, unloadable=unloadable,
            )  # fmt: skip
            answer = await workbench.jobs.awaited("save", "saving", work, holds_keys=False)
        except OnnxJsonError as error:
            path = await _after_error(workbench, error, path)
            if path is None:
                return False
            overwrite, copy = False, None
            continue
        if answer.kind == "saved":
            _report_saved(workbench, answer, time.monotonic() - started)
            return True
        match await workbench.app.push_screen_wait(save_question(answer)):
            case "copy" | "leave" as wanted:
                copy = wanted == "copy"
            case "overwrite":
                overwrite = True
            case "revert-others":
                revert_others = True
            case "unloadable":
                unloadable = True
            case "merge":
                return await _merge(workbench)
            case "save-as":
                path = await ask_path(workbench, "save as", str(answer.path), ())
                if path is None:
                    return False
                overwrite, copy = False, None
            case _:
                workbench.say(f"not saved; {visible(str(answer.path), 200)} is unchanged", "changed")
                return False


async def _confirm_broken(workbench: Workbench) -> bool:
    """Ask whether to save a model with nodes that an edit broke, unless they were corrected since."""
    note = workbench.drawer.pages["problems"].note
    if "error" not in note:
        return True
    answers = [("s", "stay", "stay"), ("O", "save it anyway", "save")]
    text = paragraphs("An edit broke nodes, and you have not corrected them. f5 lists them.")
    return await workbench.confirm(f"The model has {note}", answers, lines=text) == "save"


def _report_saved(workbench: Workbench, answer: SaveAnswer, seconds: float) -> None:
    written = size(answer.path.stat().st_size)
    form = workbench.session.opened.format
    # The form is named if the extension does not determine it.
    is_obvious = answer.path.name.lower().endswith((".onnx", ".json", ".onnxjson")) and form == format_for(answer.path)
    shown = "" if is_obvious else f" as {_FORMS[form]}"
    note = f"; {answer.message}" if answer.message else ""
    workbench.say(f"saved {written}{shown} in {seconds:.2f} s, read back and compared: {answer.path}{note}", "good")
    workbench.draw_marks()
    for page in workbench.drawer.pages.values():
        page.model_changed()


async def _after_error(workbench: Workbench, error: OnnxJsonError, path: Path | None) -> Path | None:
    lines = paragraphs(error_text(error))
    if isinstance(error, EncodeError):
        lines += [each for finding in error.findings[:20] for each in paragraphs(str(finding))]
    kept = workbench.session.trouble or "The file is unchanged. Nothing is lost: your edits are in the journal."
    lines += ["", *paragraphs(kept)]
    answers = [("b", "back to the model", "back"), ("a", "save under another name", "as")]
    answer = await workbench.confirm("Not saved", answers, lines=lines)
    if answer != "as":
        workbench.say(f"not saved: {error_text(error)}", "bad")
        return None
    here = path or workbench.session.opened.path
    return await ask_path(workbench, "save as", "" if here is None else str(here), ())


def save_question(answer: SaveAnswer) -> ConfirmScreen:
    """Return the question that must be answered before saving."""
    stay, save_as = ("s", "stay", "stay"), ("a", "save as", "save-as")
    name, lines = visible(str(answer.path), None), []
    match answer.kind:
        case "changed-on-disk":
            title = "Not saved: the file has changed"
            text = (
                f"Another program changed {name} since you opened it. "
                "Merging combines both changes and shows the result first."
            )
            answers = [stay, ("m", "merge", "merge"), save_as, ("O", "overwrite (a backup is kept)", "overwrite")]
        case "reverts-others":
            title = "Not saved: this would revert changes of another program"
            text = (
                f"{name} contains changes of another program. You merged them and then undid the merge, so saving "
                "would revert them. ctrl+r redoes the merge unless you have made another edit since."
            )
            answers = [stay, save_as, ("O", "save and revert them (a backup is kept)", "revert-others")]
        case "unloadable":
            title, text = "Not saved: onnxruntime no longer loads it", answer.message
            answers = [stay, ("O", "save it anyway", "unloadable")]
        case "exists":
            title, text = "Not saved: the file exists", f"{name} exists and is not the file that you opened."
            answers = [stay, ("a", "another name", "save-as"), ("R", "replace (a backup is kept)", "overwrite")]
        case _:
            title, folder = "Copy the weights too?", visible(str(answer.path.resolve().parent), None)
            text = f"The weights of the model are in files that must be in its folder: {folder}"
            lines = [f"  {visible(each, 200)}" for each in answer.locations[:_NAMED]]
            if len(answer.locations) > _NAMED:
                lines.append(f"  and {len(answer.locations) - _NAMED:,} more")
            answers = [
                stay,
                ("c", "copy them and save", "copy"),
                ("w", "save without them", "leave"),
                ("a", "another name", "save-as"),
            ]
    return ConfirmScreen(title, answers, lines=[*paragraphs(text), *lines])


async def _merge(workbench: Workbench) -> bool:
    session = workbench.session
    answer = await workbench.jobs.awaited("save", "merging", session.merge_with_disk)
    lines: list[Line] = []
    if answer.conflicts:
        lines += [
            (Span(f"{counted(len(answer.conflicts), 'conflict')}; ours is your value, and would be kept:", "changed"),)
        ]
        for each in conflict_lines(answer.preview.model, answer.conflicts):
            lines += [(Span(f"  {piece}"),) for piece in wrapped(each, _WIDTH - 2, indent=0)]
    else:
        lines += [(Span("No conflicts.", "good"),)]
    lines += [(Span(""),), (Span("Changes from the file to your model:", "title"),)]

    def merged() -> list[Line]:
        preview = answer.preview
        return preview_lines(preview, "yours", "merged", _WIDTH) if preview.patch else [(Span("  nothing", "quiet"),)]

    lines += await workbench.jobs.awaited("save", "computing the changes", merged)
    answers = [("b", "back, change nothing", "back"), ("t", "use it", "take"), ("s", "use it and save", "save")]
    wanted = await workbench.confirm("Use the merged model?", answers, lines=lines)
    if wanted == "back":
        workbench.say("not merged and not saved", "changed")
        return False
    try:
        changed = session.accept_merge(answer)
    except OnnxJsonError as error:
        workbench.failed(error)
        return False
    workbench.changed(changed)
    workbench.draw_marks()
    workbench.say(f"merged with {visible(session.opened.name, 200)}; not saved yet", "good")
    workbench.draw_bars()
    return await save(workbench) if wanted == "save" else False


async def report_no_script(workbench: Workbench, left_out: Sequence[str]) -> None:
    """Report that there is nothing to export, and why."""
    text = "no script was written: no step can be expressed as edits"
    await workbench.confirm(text.capitalize(), [("o", "ok", "ok")], lines=_reasons(left_out))
    workbench.say(text, "bad")


def _reasons(left_out: Sequence[str]) -> list[str]:
    return [part for each in left_out for part in paragraphs(f"- {each}")]


async def _may_write(workbench: Workbench, path: Path) -> bool:
    """Ask before a file is replaced; report why nothing is written."""
    if path.is_dir():
        workbench.say(f"{path} is a folder; name a file", "bad")
        return False
    if path.name.endswith((".onnx", ".onnx.json")):
        workbench.say(f"{path} is a name for models; use .json, such as edits.json", "bad")
        return False
    try:
        require_savable(path)
    except OnnxJsonError as error:
        workbench.say(f"nothing was written: {error_text(error)}", "bad")
        return False
    if path.exists() and not await workbench.confirm_replacing(paragraphs(f"{visible(str(path), None)} exists.")):
        workbench.say(f"nothing was written; {path} is unchanged", "changed")
        return False
    return True


async def write_changes(
    workbench: Workbench, path: Path, changes: Sequence[Script | Patch], left_out: Sequence[str] = ()
) -> None:
    """Write changes, several of them to numbered files, and report the steps that they lack."""
    paths = [path]
    if len(changes) > 1:
        paths = [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, len(changes) + 1)]
    for place in paths:
        if not await _may_write(workbench, place):
            return

    def write() -> None:
        for place, change in zip(paths, changes, strict=True):
            change.save(place)

    try:
        await workbench.jobs.awaited("export", "writing", write, holds_keys=False)
    except (OnnxJsonError, OSError) as error:
        workbench.say(f"not all edits were written: {error_text(error)}", "bad")
        return
    if left_out:
        lines = [f"{visible(str(path), None)} lacks these steps, which are not edits:", "", *_reasons(left_out)]
        await workbench.confirm("The script is incomplete", [("o", "ok", "ok")], lines=lines)
    left = f"; {counted(len(left_out), 'step')} left out" if left_out else ""
    tone: Tone = "changed" if left_out else "good"
    if len(paths) > 1:
        names = f"{paths[0]} to {paths[-1].name}"
        workbench.say(f"{names}: to repeat the steps, apply them in this order with onnxjson apply{left}", tone)
        return
    only = changes[0]
    what = counted(len(only.edits), "edit") if isinstance(only, Script) else "a patch"
    workbench.say(f"{path}: {what}{left}; onnxjson apply {path.name} MODEL repeats it", tone)


async def offer_recovery(workbench: Workbench) -> None:
    """Ask what to do with the journals of sessions on this model that ended without saving, newest first."""
    session = workbench.session
    journals, session.abandoned = session.abandoned, ()
    if journals and session.readonly:
        for journal in journals:
            journal.release()
        workbench.say("an earlier session has unsaved edits; open without --readonly to recover them", "changed")
        return
    for number, journal in enumerate(journals):
        try:
            if await _ask_about_journal(workbench, journal, len(journals) - number - 1) == "recover":
                # The other journals apply only to the file without these edits; they are kept.
                for other in journals[number + 1 :]:
                    other.release()
                return
        except BaseException:
            for each in journals[number:]:
                each.release()
            raise


async def _ask_about_journal(workbench: Workbench, journal: Abandoned, others: int) -> str:
    reason = workbench.session.why_not(journal)
    while True:
        answer = await workbench.app.push_screen_wait(recovery_question(journal, reason, others))
        match answer:
            case "recover":
                await _recover(workbench, journal)
            case "drop":
                question = f"Delete {counted(len(journal.commands), 'edit')} for good?"
                if await workbench.confirm(question, [("k", "keep", "keep"), ("d", "delete", "drop")]) != "drop":
                    continue
                journal.discard()
                workbench.say("the edits of the earlier session are deleted")
            case "export":
                await _export(workbench, journal)
                continue
            case "show":
                await _show(workbench, journal)
                continue
            case _:
                journal.release()
                workbench.say("the edits of the earlier session are kept and offered again when you open the model")
        return answer


async def _recover(workbench: Workbench, journal: Abandoned) -> None:
    session = workbench.session
    replay = await workbench.jobs.awaited("recovery", "repeating the edits", lambda: session.recover(journal))
    workbench.build(0)
    workbench.read_model()
    for page in workbench.drawer.pages.values():
        page.model_changed()
    message = f"{counted(len(replay.made), 'step')} recovered, not saved yet; u undoes one, c shows the changes"
    workbench.say(f"{message}; {replay.trouble}" if replay.trouble else message, "bad" if replay.trouble else "good")


async def _show(workbench: Workbench, journal: Abandoned) -> None:
    def found() -> list[Line]:
        preview, trouble = workbench.session.preview_recovery(journal)
        lines = preview_lines(preview, "file", "recovered", workbench.size.width - 8)
        return [*lines, (Span(visible(trouble, 500), "bad"),)] if trouble else lines

    lines = await workbench.jobs.awaited("recovery", "computing the changes", found)
    await workbench.app.push_screen_wait(TextScreen("What recovering would change", lines))


async def _export(workbench: Workbench, journal: Abandoned) -> None:
    script, left_out = journal.script()
    if not script.edits:
        await report_no_script(workbench, left_out)
        return
    path = await ask_path(workbench, "export to", f"{Path(journal.header.name).name or 'model'}.edits.json")
    if path is not None:
        await write_changes(workbench, path, [script], left_out)


def recovery_question(journal: Abandoned, reason: str, others: int) -> ConfirmScreen:
    """Return the question about one journal; escape keeps it. With a `reason`, it cannot be recovered."""
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
    lines: list[Line] = [
        (Span(each),)
        for each in wrapped(
            f"A session on {visible(header.name, 200) or 'this model'} that began {when} ended without saving "
            f"{counted(len(commands), 'edit')}, oldest first:",
            _WIDTH,
            indent=0,
        )
    ]
    lines += [(Span(f"  {visible(each, 300)}"),) for each in commands]
    for text in (journal.damage, f"They cannot be recovered here: {reason}." if reason else ""):
        lines += [(Span(each, "bad"),) for each in wrapped(text, _WIDTH, indent=0)]
    if others:
        lines.append((Span(f"There is also {counted(others, 'older session')}.", "quiet"),))
    return lines


def ago(seconds: float) -> str:
    """Return a duration in a suitable unit, such as ``3 hours``."""
    if seconds < 2 * 60:
        return counted(max(int(seconds), 0), "second")
    if seconds < 2 * _HOUR:
        return counted(int(seconds / 60), "minute")
    return counted(int(seconds / _HOUR), "hour") if seconds < 48 * _HOUR else counted(int(seconds / 86_400), "day")
