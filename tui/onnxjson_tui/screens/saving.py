"""How a session is saved, with every question that it takes: the file exists, was changed, cannot be written."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnxjson.display import counted, visible
from onnxjson.edits.script import Script
from onnxjson.errors import EncodeError, OnnxJsonError
from onnxjson.files import Format, format_for
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import size, wrapped
from onnxjson.saving import require_savable
from onnxjson_tui.answers import SaveAnswer
from onnxjson_tui.jobs import said
from onnxjson_tui.path_completion import complete_path, expanded
from onnxjson_tui.screens.choosing import ConfirmScreen
from onnxjson_tui.widgets.bars import Tone

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_WIDTH: Final = 66
"""Columns of the text of a question."""

_NAMED: Final = 8
"""Files that are named in a question."""

_FORMS: Final[dict[Format, str]] = {"onnx": "binary ONNX", "json": "text", "protojson": "proto-JSON"}

_SCRIPTS: Final = (".json", ".py")


def paragraphs(text: str) -> list[str]:
    """A sentence as lines of a question."""
    return wrapped(text, _WIDTH, indent=0)


async def ask_path(bench: "Workbench", mark: str, text: str, endings: Sequence[str] = _SCRIPTS) -> Path | None:
    """The path that a person types, with tab for what there is; None where they gave up."""
    answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def answered(typed: str | None) -> None:
        if not answer.done():
            answer.set_result(typed)

    bench.prompt.ask(f"{mark}: ", answered, text=text, complete=lambda typed: complete_path(typed, endings))
    typed = await answer
    bench.nodes.focus()
    return expanded(typed.strip()) if typed and typed.strip() else None


async def save(bench: "Workbench", path: Path | None = None, *, overwrite: bool = False) -> bool:
    """Saves, asks what has to be asked, and says what came of it; whether the model is in a file.

    Args:
        bench: whose session is saved.
        path: another file than that which was opened.
        overwrite: replace what stands there without asking.
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
                bench.say(f"not saved; {visible(str(answer.path), 200)} stays as it is", "changed")
                return False


def _tell_saved(bench: "Workbench", answer: SaveAnswer, seconds: float) -> None:
    written = size(answer.path.stat().st_size)
    form = bench.session.opened.format
    # Of an ending that says no form people expect others.
    said_by_name = answer.path.name.lower().endswith((".onnx", ".json", ".onnxjson")) and form == format_for(
        answer.path
    )
    shown = "" if said_by_name else f" as {_FORMS[form]}"
    bench.say(f"saved {written}{shown} in {seconds:.2f} s, read back and compared: {answer.path}", "good")
    bench.draw_marks()
    for page in bench.drawer.pages.values():
        page.model_changed()


async def _after_error(bench: "Workbench", error: OnnxJsonError, path: Path | None) -> Path | None:
    """Another path to save to; None where the person does something else."""
    lines = paragraphs(said(error))
    if isinstance(error, EncodeError):
        lines += [each for finding in error.findings[:20] for each in paragraphs(str(finding))]
    kept = bench.session.trouble or "The file is as it was. Nothing is lost: your edits are in the journal."
    lines += ["", *paragraphs(kept)]
    answer = await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved", [("b", "back to the model", "back"), ("a", "save under another name", "as")], lines=lines
        )
    )
    if answer != "as":
        bench.say(f"not saved: {said(error)}", "bad")
        return None
    here = path or bench.session.opened.path
    return await ask_path(bench, "save as", "" if here is None else str(here), ())


async def _changed(bench: "Workbench", answer: SaveAnswer) -> str:
    lines = paragraphs(
        f"{visible(str(answer.path), None)} is not the file that you opened any more: another program wrote to it. "
        "Merging keeps what both changed, and shows what comes of it first."
    )
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved: the file was changed meanwhile",
            [
                ("s", "stay", "stay"),
                ("m", "merge", "merge"),
                ("a", "save as", "save-as"),
                ("O", "overwrite (a backup is kept)", "overwrite"),
            ],
            lines=lines,
        )
    )


async def _takes_back(bench: "Workbench", answer: SaveAnswer) -> str:
    lines = paragraphs(
        f"{visible(str(answer.path), None)} has what another program saved to it. You merged that, and the merge is "
        "undone, so saving takes it back. ctrl+r makes an undone step again, as long as no other edit was made since."
    )
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved: this takes back what another program saved",
            [
                ("s", "stay", "stay"),
                ("a", "save as", "save-as"),
                ("O", "save, and take it back (a backup is kept)", "take-back"),
            ],
            lines=lines,
        )
    )


async def _exists(bench: "Workbench", answer: SaveAnswer) -> str:
    lines = paragraphs(f"{visible(str(answer.path), None)} is there already, and is not the file that you opened.")
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Not saved: there is such a file",
            [("s", "stay", "stay"), ("a", "another name", "save-as"), ("R", "replace (a backup is kept)", "overwrite")],
            lines=lines,
        )
    )


async def _weights_elsewhere(bench: "Workbench", answer: SaveAnswer) -> str:
    shown = [f"  {visible(each, 200)}" for each in answer.locations[:_NAMED]]
    more = len(answer.locations) - len(shown)
    lines = [
        *paragraphs(f"The model names files for its weights, and looks for them in its own folder: {_at(answer.path)}"),
        *shown,
        *([f"  and {more:,} more"] if more else []),
    ]
    return await bench.app.push_screen_wait(
        ConfirmScreen(
            "Take the weights along?",
            [
                ("s", "stay", "stay"),
                ("c", "copy them, and save", "copy"),
                ("w", "save without them", "leave"),
                ("a", "another name", "save-as"),
            ],
            lines=lines,
        )
    )


def _at(path: Path) -> str:
    return visible(str(path.resolve().parent), None)


async def _merge(bench: "Workbench") -> bool:
    """Merges with what another program wrote, shows it, and saves it if the person wants that."""
    session = bench.session
    answer = await bench.jobs.awaited("save", "merging", session.merge_with_disk)
    lines: list[Line] = []
    if answer.conflicts:
        lines += [(Span(f"{counted(len(answer.conflicts), 'conflict')}, in which yours would be kept:", "changed"),)]
        lines += [(Span(f"  {visible(each.id, 200)}"),) for each in answer.conflicts]
    else:
        lines += [(Span("No conflicts: both changed different things.", "good"),)]
    lines += [(Span(""),), (Span("What the file changes of your model:", "title"),)]
    lines += await bench.jobs.awaited("save", "finding out what changes", lambda: _merged_lines(bench, answer.preview))
    wanted = await bench.app.push_screen_wait(
        ConfirmScreen(
            "Take the merged model?",
            [("b", "back, change nothing", "back"), ("t", "take it", "take"), ("s", "take it and save", "save")],
            lines=lines,
        )
    )
    if wanted == "back":
        bench.say("nothing was merged, and nothing saved", "changed")
        return False
    try:
        changed = session.accept_merge(answer)
    except OnnxJsonError as error:
        bench.failed(error)
        return False
    bench.changed(changed)
    bench.draw_marks()
    bench.say(f"merged with what stands in {visible(session.opened.name, 200)}; not saved yet", "good")
    bench.draw_chrome()
    return await save(bench) if wanted == "save" else False


def _merged_lines(bench: "Workbench", preview: "object") -> list[Line]:
    from onnxjson.rendering.diff_report import report
    from onnxjson.rendering.diff_text import diff_lines
    from onnxjson_tui.answers import Preview

    assert isinstance(preview, Preview)
    if not preview.patch:
        return [(Span("  nothing", "quiet"),)]
    return list(diff_lines(report(preview.difference(), "yours", "merged"), _WIDTH))


def _name_of_revision(name: str) -> str:
    """A file's name for a model of a revision: that which it has in the repository."""
    return name.rpartition(":")[2]


async def tell_no_script(bench: "Workbench", left_out: Sequence[str]) -> None:
    """Says that there is nothing to write, and why."""
    text = "no script was written: none of the steps can be said in edits"
    question = ConfirmScreen(text.capitalize(), [("o", "ok", "ok")], lines=_reasons(left_out))
    await bench.app.push_screen_wait(question)
    bench.say(text, "bad")


def _reasons(left_out: Sequence[str]) -> list[str]:
    return [part for each in left_out for part in paragraphs(f"- {each}")]


async def write_edits(bench: "Workbench", path: Path, script: Script, left_out: Sequence[str]) -> None:
    """Writes a rewrite script, Python where the name ends so, and says what it does not have."""
    if path.is_dir():
        bench.say(f"{path} is a folder; name a file", "bad")
        return
    if path.name.endswith((".onnx", ".onnx.json")):
        bench.say(f"{path} is the name of a model; that of a script ends in .json or .py, such as edits.json", "bad")
        return
    try:
        require_savable(path)
    except OnnxJsonError as error:
        bench.say(f"no script was written: {said(error)}", "bad")
        return
    if path.exists():
        question = ConfirmScreen(
            "Not written: there is such a file",
            [("k", "keep it", "keep"), ("R", "replace it (no backup is kept)", "replace")],
            lines=paragraphs(f"{visible(str(path), None)} is there already."),
        )
        if await bench.app.push_screen_wait(question) != "replace":
            bench.say(f"no script was written; {path} stays as it is", "changed")
            return
    try:
        await bench.jobs.awaited("export", "writing", lambda: _write_edits(path, script), holds_keys=False)
    except (OnnxJsonError, OSError) as error:
        bench.say(f"no script was written: {said(error)}", "bad")
        return
    count = counted(len(script.edits), "edit")
    if left_out:
        lines = [f"{count} in {visible(str(path), None)}; these steps are no edits, and not in it:", ""]
        lines += _reasons(left_out)
        await bench.app.push_screen_wait(
            ConfirmScreen("The script does not have everything", [("o", "ok", "ok")], lines=lines)
        )
    left = f"; {counted(len(left_out), 'step')} left out" if left_out else ""
    again = "it" if len(script.edits) == 1 else "these" if left_out else "them"
    tone: Tone = "changed" if left_out else "good"
    bench.say(f"{path}: {count}{left}; onnxjson apply {path.name} MODEL makes {again} again", tone)


def _write_edits(path: Path, script: Script) -> None:
    if path.suffix != ".py":
        script.save(path)
        return
    from onnxjson.saving import save_file
    from onnxjson_tui.python_scripts import python_script

    source = python_script(script.edits).encode("utf-8")
    save_file(path, lambda output: output.write(source))
