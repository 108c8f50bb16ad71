"""``onnxjson split``: a model in pieces."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from onnxjson.cli import external_data, failures, output
from onnxjson.cli.paths import FilePath
from onnxjson.errors import OutputError

if TYPE_CHECKING:
    from onnxjson.document import Model
    from onnxjson.edits.splitting import Pieces
    from onnxjson.files import Format

_ENDINGS: Final[dict["Format", str]] = {"onnx": ".onnx", "json": ".onnx.json", "protojson": ".onnxjson"}
_KNOWN_ENDINGS: Final = (".onnx.json", ".onnxjson", ".onnx", ".json", ".pb")


class _Place(NamedTuple):
    """Where one piece goes."""

    model: Path
    data: Path
    """Its weights, where the whole has them in other files."""


@click.command("split")
@click.argument("path", metavar="MODEL", type=FilePath())
@click.option("--at", "cuts", metavar="TENSOR", multiple=True, help="Cut at this value; may stand several times.")
@click.option(
    "--size",
    type=external_data.size,
    metavar="SIZE",
    help="Cut where the constants of a piece would have more bytes than this; 100M, 1G.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    required=True,
    type=FilePath(),
    help="The folder for the pieces; it is made if it is not there.",
)
@click.option(
    "--format",
    "target",
    type=click.Choice(["onnx", "json", "protojson"]),
    help="The form of the pieces; else that of MODEL.",
)
def command(path: Path, *, cuts: tuple[str, ...], size: int | None, folder: Path, target: "Format | None") -> None:
    """Take a model apart into pieces that run one after the other.

    Each piece is a whole model: its inputs are inputs of MODEL and values of earlier pieces. A rewrite script is
    written beside them that makes one model of them again. Weights that MODEL has in other files go to one file for
    each piece, and only those that it needs.

    \b
    onnxjson split m.onnx --at features -o pieces
    onnxjson split big.onnx --size 500M -o pieces
    onnxjson apply pieces/m.join.json pieces/m.part1.onnx -o again.onnx
    """
    if bool(cuts) == (size is not None):
        raise click.UsageError("say where to cut: --at TENSOR, once or several times, or --size SIZE")
    from onnxjson import external_files, files
    from onnxjson.edits.script import Script

    with output.working(f"reading {path}"):
        loaded = files.load(path)
    output.findings(loaded.warnings, limit=failures.SHOWN)
    with output.working(f"taking {path} apart"):
        pieces = _pieces(loaded.model, cuts, size, path.parent)
    for note in pieces.notes:
        output.talk(note)
    form = target or loaded.format
    stem = next((path.name.removesuffix(each) for each in _KNOWN_ENDINGS if path.name.endswith(each)), path.name)
    places = [
        _Place(folder / f"{stem}.part{number}{_ENDINGS[form]}", folder / f"{stem}.part{number}.data")
        for number in range(1, len(pieces.pieces) + 1)
    ]
    script = folder / f"{stem}.join.json"
    is_outside = bool(external_files.locations(loaded.model))
    _refuse_present([*[each.model for each in places], script, *([each.data for each in places] if is_outside else [])])
    folder.mkdir(parents=True, exist_ok=True)
    for piece, place in zip(pieces.pieces, places, strict=True):
        _write(piece.model, place, form, path, is_outside=is_outside)
        names = ", ".join(piece.inputs) or "nothing"
        nodes = output.counted(len(piece.model.graph.node) if piece.model.graph else 0, "node")
        output.data(f"{place.model}: {nodes}, from {names} to {', '.join(piece.outputs)}")
    if len(places) > 1:
        Script(pieces.script([each.model.name for each in places])).save(script)
        output.talk(f"wrote {script}; to make one model again: onnxjson apply {script} {places[0].model} -o OUT")


def _pieces(model: "Model", cuts: tuple[str, ...], size: int | None, folder: Path) -> "Pieces":
    from onnxjson.edits.splitting import split_at, split_by_size

    return split_at(model, cuts, folder) if size is None else split_by_size(model, size, folder)


def _refuse_present(paths: list[Path]) -> None:
    for path in paths:
        if os.path.lexists(path):
            raise OutputError(f"{path} is already there; remove it, or name another folder with -o")


def _write(model: "Model", place: _Place, form: "Format", source: Path, *, is_outside: bool) -> None:
    from onnxjson import external_files, files

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
