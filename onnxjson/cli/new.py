"""``onnxjson new`` and ``split``: create a model; split a model into pieces."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from onnxjson.cli import options, output
from onnxjson.cli.convert import write_stdout
from onnxjson.cli.paths import ENDINGS, STDOUT, FilePath, stem
from onnxjson.editing.annotations import SetIrVersion
from onnxjson.editing.composing import split_at, split_by_size
from onnxjson.editing.new_models.operator_model import OperatorSpec, components, make_operator, parts
from onnxjson.editing.new_models.operator_model import component as find_component
from onnxjson.editing.opsets import convert
from onnxjson.editing.script import Script
from onnxjson.editing.spelling import json_or_text
from onnxjson.editing.values import ValueMistakeError
from onnxjson.editing.workspace import Workspace
from onnxjson.model.document import Model
from onnxjson.model.errors import OutputError
from onnxjson.model.operators import all_operators
from onnxjson.storage import external_files, files
from onnxjson.storage.files import Format


def _operators() -> list[str]:
    return sorted({op_type for _, op_type, _ in all_operators()})


@options.command("new")
@click.argument("op_type", metavar="[NAME]", required=False, type=options.Parsed("name", str, _operators))
@options.option("--opset N", "Version of the operator set; default: 21.", type=click.IntRange(min=1))
@options.option(
    "--ir-version N", "Version of ONNX's format; default: the oldest that is needed.", type=click.IntRange(min=1)
)
@options.option(
    "--domain NAME", "Domain of the operator, if several have one of that name, or if onnx does not know it."
)
@options.several(
    "--input NAME:TYPE",
    "Declare an input, such as x:float32[1,3]: the operator's input of this name, else the next one. NAME:TYPE=VALUES "
    "declares a constant, - omits an optional input. Default: typical inputs.",
    "inputs",
)
@options.several("--output-name NAME[:TYPE]", "Name an output; its type is inferred if possible.", "outputs")
@options.several("--attr NAME=VALUE", "Set an attribute; VALUE is JSON.", "attributes")
@options.several(
    "--type-constraint NAME=TYPE",
    "Type that the default inputs use for a type constraint of the operator, such as T=float16.",
    "types",
)
@options.option("--name NAME", "Name of the node.")
@options.option(
    "--component NAME",
    "Create this ready-made component; --list shows all.",
    type=options.Parsed("name", str, lambda: [each.name for each in components()]),
)
@options.option("--all DIR", "Create every version of every operator.", "catalogue")
@options.option("--list", "List the components and operators.", "lists")
@options.out("Write the model to OUT; - is standard output.")
@options.to()
def new_command(
    op_type: str | None,
    *,
    opset: int | None,
    ir_version: int | None,
    attributes: tuple[str, ...],
    types: tuple[str, ...],
    component: str | None,
    catalogue: Path | None,
    lists: bool,
    destination: Path | None,
    target: Format | None,
    **given: Any,
) -> None:
    """Create a model of one operator, or a ready-made component.

    NAME is an operator type, such as Conv. Inputs, shapes, required attributes and subgraphs that you do not set are
    generated from its schema. The model is checked by onnx, and not written if it is invalid.

    \b
    onnxjson new Conv -o conv.onnx
    onnxjson new Softmax --input x:float16[2,3] --attr axis=0 -o softmax.onnx
    onnxjson new --component nms-yolact -o nms.onnx
    onnxjson new --all operators --opset 21
    """
    chosen = [op_type is not None, component is not None, catalogue is not None, lists]
    if sum(chosen) != 1:
        raise click.UsageError("choose one thing to create: an operator, --component or --all; --list shows them")
    if lists:
        _list()
        return
    if catalogue is not None:
        if destination is not None:
            raise click.UsageError("--all names the folder itself; leave out -o")
        if ir_version is not None:
            raise click.UsageError("--all uses the version that each operator needs; leave out --ir-version")
        _create_all(catalogue, opset, target or "onnx")
        return
    if destination is None:
        raise click.UsageError("choose where the model goes: -o OUT, or -o - for standard output")
    if component is not None:
        if attributes or types or any(given.values()):
            raise click.UsageError("a component is created as it is; change it with `onnxjson rewrite`")
        model = find_component(component).model
        _write(model if opset is None else convert(model, opset).model, destination, target, ir_version)
        return
    given["attributes"] = _pairs(attributes, "--attr NAME=VALUE", as_json=True)
    given["types"] = _pairs(types, "--type-constraint NAME=TYPE", as_json=False)
    _write(make_operator(OperatorSpec(op_type=op_type or "", opset=opset, **given)), destination, target, ir_version)


def _pairs(texts: tuple[str, ...], form: str, *, as_json: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise click.UsageError(f"{output.quoted(text)} is not of the form {form}")
        if key in found:
            raise click.UsageError(f"{output.quoted(key)} is given twice")
        try:
            found[key] = json_or_text(value) if as_json else value
        except ValueMistakeError as mistake:
            raise click.UsageError(f"{key}: {mistake}") from mistake
    return found


def _write(model: Model, destination: Path, target: Format | None, ir_version: int | None) -> None:
    if ir_version is not None:
        workspace = Workspace(model)
        SetIrVersion(version=ir_version).change(workspace)
        model = workspace.model
    if str(destination) == STDOUT:
        write_stdout(model, target or "json")
        return
    files.save(model, destination, target)
    output.wrote(destination)


def _create_all(folder: Path, opset: int | None, form: Format) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} exists and is not empty; choose another folder, or remove it")
    created = 0
    with output.working("creating all operators"):
        for part in parts(opset):
            if part.model is None:
                if part.reason != "deprecated":
                    output.warn(f"{part.path}: {part.reason}")
                continue
            place = folder / f"{part.path}{ENDINGS[form]}"
            place.parent.mkdir(parents=True, exist_ok=True)
            files.save(part.model, place, form)
            created += 1
    output.talk(f"wrote {output.counted(created, 'model')} to {folder}")


def _list() -> None:
    for each in components():
        output.data(f"{each.number}  {each.name:<26}  {each.summary}")
    versions: dict[tuple[str, str], list[str]] = {}
    for domain, op_type, version in all_operators():
        versions.setdefault((domain, op_type), []).append(str(version))
    for (domain, op_type), numbers in versions.items():
        output.data(f"{domain or 'ai.onnx'}  {op_type:<26}  {', '.join(numbers)}")


class _PiecePlace(NamedTuple):
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
    with output.reading(path):
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
        _PiecePlace(folder / f"{name}.part{number}{ENDINGS[form]}", folder / f"{name}.part{number}.data")
        for number in range(1, len(pieces.pieces) + 1)
    ]
    script = folder / f"{name}.join.json"
    is_outside = bool(external_files.locations(loaded.model))
    for place in [*[each.model for each in places], script, *([each.data for each in places] if is_outside else [])]:
        if os.path.lexists(place):
            raise OutputError(f"{place} already exists; remove it, or choose another folder with -o")
    with ExitStack() as unfinished:
        _create_folder(folder, unfinished)
        for piece, where in zip(pieces.pieces, places, strict=True):
            _write_piece(piece.model, where, form, path, is_outside=is_outside)
            for written in [where.model, *([where.data] if is_outside else [])]:
                unfinished.callback(written.unlink, missing_ok=True)
        if len(places) > 1:
            Script(pieces.script([each.model.name for each in places])).save(script)
        unfinished.pop_all()
    for piece, where in zip(pieces.pieces, places, strict=True):
        names = ", ".join(piece.inputs) or "nothing"
        nodes = output.counted(len(piece.model.graph.node) if piece.model.graph else 0, "node")
        output.data(f"{where.model}: {nodes}, from {names} to {', '.join(piece.outputs)}")
    if len(places) > 1:
        output.talk(f"wrote {script}; to join the pieces: onnxjson apply {script} {places[0].model} -o OUT")


def _create_folder(folder: Path, unfinished: ExitStack) -> None:
    """Create a folder, and the folders around it, that are removed if the pieces in it cannot be written."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(new):
        unfinished.callback(_remove_empty, each)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _write_piece(model: Model, place: _PiecePlace, form: Format, source: Path, *, is_outside: bool) -> None:
    with output.working(f"writing {place.model}"), ExitStack() as stack:
        if is_outside:
            inside = external_files.internalize(model, source.parent, model_file=source)
            result = external_files.externalize(inside, place.data)
            model = result.model
            if result.new_files:
                stack.enter_context(external_files.removed_on_failure(place.data, place.model))
        files.save(model, place.model, form, replace=False)
