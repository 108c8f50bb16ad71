"""``onnxjson split``: a model in pieces."""

import os
from pathlib import Path
from typing import NamedTuple

import click

from onnxjson.cli import options, output
from onnxjson.cli.paths import ENDINGS, FilePath, stem
from onnxjson.editing.composing import split_at, split_by_size
from onnxjson.editing.script import Script
from onnxjson.model.document import Model
from onnxjson.model.errors import OutputError
from onnxjson.storage import external_files, files
from onnxjson.storage.files import Format


class _Place(NamedTuple):
    """Destination of one piece."""

    model: Path
    data: Path
    """Its weights, if the whole model has them in other files."""


@options.command("split")
@click.argument("path", metavar="MODEL", type=FilePath())
@options.several("--at NAME", "Cut at this value; can be repeated.", "cuts")
@options.option("--size SIZE", "Cut before the constants of a piece exceed this size, such as 100M.")
@options.out(
    "Write the pieces to the folder OUT; created if it does not exist.",
    required=True,
    type=FilePath(),
    parameter="folder",
)
@options.to("Form of the pieces; default: that of MODEL.")
def split_command(path: Path, *, cuts: tuple[str, ...], size: int | None, folder: Path, target: Format | None) -> None:
    """Split a model into pieces that run one after the other.

    Each piece is a whole model: its inputs are inputs of MODEL and values of earlier pieces. Also writes a script with
    which `onnxjson apply` joins the pieces again. If MODEL has external data, each piece gets one data file with the
    weights that it needs.

    \b
    onnxjson split m.onnx --at features -o pieces
    onnxjson split big.onnx --size 500M -o pieces
    onnxjson apply pieces/m.join.json pieces/m.part1.onnx -o again.onnx
    """
    if bool(cuts) == (size is not None):
        raise click.UsageError("choose where to cut: --at NAME, which can be repeated, or --size SIZE")
    with output.working(f"reading {path}"):
        loaded = files.load(path)
    output.findings(loaded.warnings, limit=output.SHOWN)
    with output.working(f"splitting {path}"):
        model, source = loaded.model, path.parent
        pieces = split_at(model, cuts, source) if size is None else split_by_size(model, size, source)
    for note in pieces.notes:
        output.talk(note)
    form = target or loaded.format
    name = stem(path.name)
    places = [
        _Place(folder / f"{name}.part{number}{ENDINGS[form]}", folder / f"{name}.part{number}.data")
        for number in range(1, len(pieces.pieces) + 1)
    ]
    script = folder / f"{name}.join.json"
    is_outside = bool(external_files.locations(loaded.model))
    for place in [*[each.model for each in places], script, *([each.data for each in places] if is_outside else [])]:
        if os.path.lexists(place):
            raise OutputError(f"{place} already exists; remove it, or choose another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    for piece, where in zip(pieces.pieces, places, strict=True):
        _write(piece.model, where, form, path, is_outside=is_outside)
        names = ", ".join(piece.inputs) or "nothing"
        nodes = output.counted(len(piece.model.graph.node) if piece.model.graph else 0, "node")
        output.data(f"{where.model}: {nodes}, from {names} to {', '.join(piece.outputs)}")
    if len(places) > 1:
        Script(pieces.script([each.model.name for each in places])).save(script)
        output.talk(f"wrote {script}; to join the pieces: onnxjson apply {script} {places[0].model} -o OUT")


def _write(model: Model, place: _Place, form: Format, source: Path, *, is_outside: bool) -> None:
    with output.working(f"writing {place.model}"):
        if not is_outside:
            files.save(model, place.model, form, replace=False)
            return
        inside = external_files.internalize(model, source.parent, model_file=source)
        result = external_files.externalize(inside, place.data)
        if not result.moved:
            files.save(result.model, place.model, form, replace=False)
            return
        with external_files.removed_on_failure(place.data, place.model):
            files.save(result.model, place.model, form, replace=False)
