"""Saving a session and exporting its edits, with all questions: the file exists, has changed, cannot be written."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from onnxjson.editing.script import Script
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import EncodeError, OnnxJsonError
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import size, wrapped
from onnxjson.storage.files import Format, format_for
from onnxjson.storage.saving import require_savable
from onnxjson_tui.names.completion import complete_path, expanded
from onnxjson_tui.screens.dialogs import ConfirmScreen
from onnxjson_tui.session.answers import SaveAnswer
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.widgets.bars import Tone

_WIDTH: Final = 66
"""Columns of the text of a question."""

_NAMED: Final = 8
"""Files that are named in a question."""

_FORMS: Final[dict[Format, str]] = {"onnx": "binary ONNX", "json": "text", "protojson": "proto-JSON"}

_SCRIPTS: Final = (".json", ".py")


def paragraphs(text: str) -> list[str]:
    """Wrap a text for a question."""
    return wrapped(text, _WIDTH, indent=0)


async def ask_path(bench: Bench, mark: str, text: str, endings: Sequence[str] = _SCRIPTS) -> Path | None:
    """Ask for a path, completed by tab; return None if the user cancels."""
    answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def answered(typed: str | None) -> None:
        if not answer.done():
            answer.set_result(typed)

    bench.prompt.ask(f"{mark}: ", answered, text=text, complete=lambda typed: complete_path(typed, endings))
    typed = await answer
    bench.nodes.focus()
    return expanded(typed.strip()) if typed and typed.strip() else None


async def save(bench: Bench, path: Path | None = None, *, overwrite: bool = False) -> bool:
    """Save with all necessary questions and report the result; return whether the model was saved.

    Args:
        bench: the workbench of the session.
        path: another file than the opened one.
        overwrite: replace an existing file without a question.
    """
    session = bench.session
    if path is None and session.opened.path is None:
        path = await ask_path(bench, "save as", _name_of_revision(session.opened.name), ())
        if path is None:
            return False
    copy: bool | None = None
    take_back = False
    while True:
        started = time.monotonic()
        try:
            work = partial(session.save, path, overwrite=overwrite, take_back=take_back, copy_external=copy)
            answer = await bench.jobs.awaited("save", "saving", work, holds_keys=False)
        except OnnxJsonError as error:
            path = await _after_error(bench, error, path)
            if path is None:
                return False
            overwrite, copy = False, None
            continue
        if answer.kind == "saved":
            _tell_saved(bench, answer, time.monotonic() - started)
            return True
        ask = {
            "changed-on-disk": _changed,
            "takes-back": _takes_back,
            "exists": _exists,
            "weights-elsewhere": _weights_elsewhere,
        }[answer.kind]
        match await ask(bench, answer):
            case "copy" | "leave" as wanted:
                copy = wanted == "copy"
            case "overwrite":
                overwrite = True
            case "take-back":
                take_back = True
            case "merge":
                return await _merge(bench)
            case "save-as":
                path = await ask_path(bench, "save as", str(answer.path), ())
                if path is None:
                    return False
                overwrite, copy = False, None
            case _:
                bench.say(f"not saved; {visible(str(answer.path), 200)} is unchanged", "changed")
                return False


def _tell_saved(bench: Bench, answer: SaveAnswer, seconds: float) -> None:
    written = size(answer.path.stat().st_size)
    form = bench.session.opened.format
    # The form is named if the extension does not determine it.
    is_obvious = answer.path.name.lower().endswith((".onnx", ".json", ".onnxjson")) and form == format_for(answer.path)
    shown = "" if is_obvious else f" as {_FORMS[form]}"
    bench.say(f"saved {written}{shown} in {seconds:.2f} s, read back and compared: {answer.path}", "good")
    bench.draw_marks()
    for page in bench.drawer.pages.values():
        page.model_changed()


async def _after_error(bench: Bench, error: OnnxJsonError, path: Path | None) -> Path | None:
    """Ask for another path after an error; return None if the user does not want one."""
    lines = paragraphs(error_text(error))
    if isinstance(error, EncodeError):
        lines += [each for finding in error.findings[:20] for each in paragraphs(str(finding))]
    kept = bench.session.trouble or "The file is unchanged. Nothing is lost: your edits are in the journal."
    lines += ["", *paragraphs(kept)]
    answer = await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved", [("b", "back to the model", "back"), ("a", "save under another name", "as")], lines=lines
        )
    )
    if answer != "as":
        bench.say(f"not saved: {error_text(error)}", "bad")
        return None
    here = path or bench.session.opened.path
    return await ask_path(bench, "save as", "" if here is None else str(here), ())


async def _changed(bench: Bench, answer: SaveAnswer) -> str:
    lines = paragraphs(
        f"Another program changed {visible(str(answer.path), None)} since you opened it. "
        "Merging combines both changes and shows the result first."
    )
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved: the file has changed",
            [
                ("s", "stay", "stay"),
                ("m", "merge", "merge"),
                ("a", "save as", "save-as"),
                ("O", "overwrite (a backup is kept)", "overwrite"),
            ],
            lines=lines,
        )
    )


async def _takes_back(bench: Bench, answer: SaveAnswer) -> str:
    lines = paragraphs(
        f"{visible(str(answer.path), None)} contains changes of another program. You merged them and then undid the "
        "merge, so saving would revert them. ctrl+r redoes the merge unless you have made another edit since."
    )
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved: this would revert changes of another program",
            [
                ("s", "stay", "stay"),
                ("a", "save as", "save-as"),
                ("O", "save and revert them (a backup is kept)", "take-back"),
            ],
            lines=lines,
        )
    )


async def _exists(bench: Bench, answer: SaveAnswer) -> str:
    lines = paragraphs(f"{visible(str(answer.path), None)} exists and is not the file that you opened.")
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved: the file exists",
            [("s", "stay", "stay"), ("a", "another name", "save-as"), ("R", "replace (a backup is kept)", "overwrite")],
            lines=lines,
        )
    )


async def _weights_elsewhere(bench: Bench, answer: SaveAnswer) -> str:
    shown = [f"  {visible(each, 200)}" for each in answer.locations[:_NAMED]]
    more = len(answer.locations) - len(shown)
    lines = [
        *paragraphs(f"The weights of the model are in files that must be in its folder: {_at(answer.path)}"),
        *shown,
        *([f"  and {more:,} more"] if more else []),
    ]
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Copy the weights too?",
            [
                ("s", "stay", "stay"),
                ("c", "copy them and save", "copy"),
                ("w", "save without them", "leave"),
                ("a", "another name", "save-as"),
            ],
            lines=lines,
        )
    )


def _at(path: Path) -> str:
    return visible(str(path.resolve().parent), None)


async def _merge(bench: Bench) -> bool:
    """Merge with the file that another program wrote, show the result, and save it if the user agrees."""
    session = bench.session
    answer = await bench.jobs.awaited("save", "merging", session.merge_with_disk)
    lines: list[Line] = []
    if answer.conflicts:
        lines += [(Span(f"{counted(len(answer.conflicts), 'conflict')}; your value would be kept:", "changed"),)]
        lines += [(Span(f"  {visible(each.id, 200)}"),) for each in answer.conflicts]
    else:
        lines += [(Span("No conflicts.", "good"),)]
    lines += [(Span(""),), (Span("Changes from the file to your model:", "title"),)]
    lines += await bench.jobs.awaited("save", "computing the changes", lambda: _merged_lines(bench, answer.preview))
    wanted = await bench.app.push_screen_wait(
        ConfirmScreen(
            "Use the merged model?",
            [("b", "back, change nothing", "back"), ("t", "use it", "take"), ("s", "use it and save", "save")],
            lines=lines,
        )
    )
    if wanted == "back":
        bench.say("not merged and not saved", "changed")
        return False
    try:
        changed = session.accept_merge(answer)
    except OnnxJsonError as error:
        bench.failed(error)
        return False
    bench.changed(changed)
    bench.draw_marks()
    bench.say(f"merged with {visible(session.opened.name, 200)}; not saved yet", "good")
    bench.draw_chrome()
    return await save(bench) if wanted == "save" else False


def _merged_lines(bench: Bench, preview: "object") -> list[Line]:
    from onnxjson.rendering.diff_report import report
    from onnxjson.rendering.diff_text import diff_lines
    from onnxjson_tui.session.answers import Preview

    assert isinstance(preview, Preview)
    if not preview.patch:
        return [(Span("  nothing", "quiet"),)]
    return list(diff_lines(report(preview.difference(), "yours", "merged"), _WIDTH))


def _name_of_revision(name: str) -> str:
    """Return the file name of a model of a revision."""
    return name.rpartition(":")[2]


async def tell_no_script(bench: Bench, left_out: Sequence[str]) -> None:
    """Report that there is nothing to export, and why."""
    text = "no script was written: no step can be expressed as edits"
    question = ConfirmScreen(text.capitalize(), [("o", "ok", "ok")], lines=_reasons(left_out))
    await bench.app.push_screen_wait(question)
    bench.say(text, "bad")


def _reasons(left_out: Sequence[str]) -> list[str]:
    return [part for each in left_out for part in paragraphs(f"- {each}")]


async def write_edits(bench: Bench, path: Path, script: Script, left_out: Sequence[str]) -> None:
    """Write a rewrite script, or Python for the extension .py, and report the steps that it lacks."""
    if path.is_dir():
        bench.say(f"{path} is a folder; name a file", "bad")
        return
    if path.name.endswith((".onnx", ".onnx.json")):
        bench.say(f"{path} is a name for models; use .json or .py for a script, such as edits.json", "bad")
        return
    try:
        require_savable(path)
    except OnnxJsonError as error:
        bench.say(f"no script was written: {error_text(error)}", "bad")
        return
    if path.exists():
        question = ConfirmScreen(
            "Not written: the file exists",
            [("k", "keep it", "keep"), ("R", "replace it (no backup is kept)", "replace")],
            lines=paragraphs(f"{visible(str(path), None)} exists."),
        )
        if await bench.app.push_screen_wait(question) != "replace":
            bench.say(f"no script was written; {path} is unchanged", "changed")
            return
    try:
        await bench.jobs.awaited("export", "writing", lambda: _write_edits(path, script), holds_keys=False)
    except (OnnxJsonError, OSError) as error:
        bench.say(f"no script was written: {error_text(error)}", "bad")
        return
    count = counted(len(script.edits), "edit")
    if left_out:
        lines = [f"{count} in {visible(str(path), None)}; it lacks these steps, which are not edits:", ""]
        lines += _reasons(left_out)
        await bench.app.push_screen_wait(ConfirmScreen("The script is incomplete", [("o", "ok", "ok")], lines=lines))
    left = f"; {counted(len(left_out), 'step')} left out" if left_out else ""
    them = "it" if len(script.edits) == 1 else "these" if left_out else "them"
    tone: Tone = "changed" if left_out else "good"
    bench.say(f"{path}: {count}{left}; onnxjson apply {path.name} MODEL repeats {them}", tone)


def _write_edits(path: Path, script: Script) -> None:
    if path.suffix != ".py":
        script.save(path)
        return
    from onnxjson.storage.saving import save_file
    from onnxjson_tui.session.answers import python_script

    source = python_script(script.edits).encode("utf-8")
    save_file(path, lambda output: output.write(source))
