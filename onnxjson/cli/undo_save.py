"""``onnxjson undo-save``: a file as it was before its last changes in place."""

import time
from collections.abc import Iterator
from pathlib import Path

import click

from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import FilePath
from onnxjson.diffing.difference import diff_models
from onnxjson.model.errors import OnnxJsonError
from onnxjson.rendering.diff_text import changes_text
from onnxjson.rendering.tables import size
from onnxjson.storage import files
from onnxjson.storage.state import History, history, restore


@options.command("undo-save")
@click.argument("path", metavar="MODEL", type=FilePath())
@options.option(
    "--list", "List the kept versions, newest first, and what changed in each; * is the present one.", "lists"
)
@options.option("--to N", "Restore version N of --list.", "number", type=click.IntRange(min=1))
@options.option("--redo", "Restore the next newer version.")
def undo_save_command(path: Path, *, lists: bool, number: int | None, redo: bool) -> None:
    """Restore a file as it was before its last changes in place.

    Called again, it restores the version before; --redo goes forward again. The present content is kept, so nothing is
    lost. Works after every command that changes a file in place, even if the file has been deleted since.

    \b
    onnxjson fmt m.onnx.json
    onnxjson undo-save m.onnx.json
    onnxjson undo-save m.onnx.json --list
    """
    if sum([lists, number is not None, redo]) > 1:
        raise click.UsageError("--list, --to and --redo exclude each other")
    found = history(path)
    if lists:
        reports.show(map(output.line, _lines(path, found)))
        return
    position = found.neighbour(1 if redo else -1) if number is None else number - 1
    if position == found.present and found.sha256:
        output.talk(f"{path} is version {number} already")
        return
    if position >= len(found.kept):
        raise click.UsageError(f"there is no version {number}; --list shows {len(found.kept)}")
    changes = _changes(path, path, found.kept[position].file) if found.sha256 else ""
    restore(found, position)
    version = f"version {position + 1} of {len(history(path).kept)}"
    output.talk(f"restored {path} ({output.size(path)}), {version}{changes and ': '}{changes}")


def _lines(path: Path, found: History) -> Iterator[str]:
    """Yield a line for each version, newest first; the present content is one even if no backup has it."""
    places = [backup.file for backup in found.kept]
    replaced = [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(backup.time_ns / 1e9)) for backup in found.kept]
    if found.sha256 and found.present == len(places):
        places.append(path)
        replaced.append("not replaced")
    yield "     replaced                  size  change"
    for number in range(len(places), 0, -1):
        place = places[number - 1]
        change = _changes(path, places[number - 2], place) if number > 1 else "oldest"
        mark = "*" if number - 1 == found.present and found.sha256 else " "
        yield f"{mark} {number:>2}  {replaced[number - 1]:<19}  {size(place.stat().st_size):>9}  {change}"


def _changes(path: Path, one: Path, other: Path) -> str:
    """Return what changed between two versions of a model, in one line."""
    with output.working(f"comparing versions of {path}"):
        try:
            base, target = (files.load(place, bind=False).model for place in (one, other))
        except OnnxJsonError:
            return "not readable as a model"
        return changes_text(diff_models(base, target, paths=(path, path)).events) or "only the form of the text"
