"""``onnxjson new``: create a model."""

from pathlib import Path
from typing import Any

import click

from onnxjson.cli import options, output, reports
from onnxjson.cli.convert import write_stdout
from onnxjson.cli.paths import ENDINGS, STDOUT
from onnxjson.editing.annotations import SetIrVersion
from onnxjson.editing.new_models.operator_model import OperatorSpec, components, make_operator, parts
from onnxjson.editing.new_models.operator_model import component as find_component
from onnxjson.editing.opsets import convert
from onnxjson.editing.spelling import json_or_text
from onnxjson.editing.values import ValueMistakeError
from onnxjson.editing.workspace import Workspace
from onnxjson.model.document import Model
from onnxjson.model.errors import OutputError
from onnxjson.model.operators import all_operators
from onnxjson.storage import files
from onnxjson.storage.files import Format


def _operators() -> list[str]:
    return sorted({op_type for _, op_type, _ in all_operators()})


@options.command("new")
@reports.with_json
@click.argument("op_type", metavar="[NAME]", required=False, type=options.Parsed("name", str, _operators))
@options.option("--opset N", "Version of the operator set; default: 21.", type=click.IntRange(min=1))
@options.option(
    "--ir-version N", "Version of the ONNX format; default: the oldest that suffices.", type=click.IntRange(min=1)
)
@options.option(
    "--domain NAME", "Domain of the operator, if several domains have one of that name or onnx does not know it."
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
    generated from its schema. onnx checks the model; an invalid model is not written.

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
    pairs: dict[str, Any] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise click.UsageError(f"{output.quoted(text)} is not of the form {form}")
        if key in pairs:
            raise click.UsageError(f"{output.quoted(key)} is given twice")
        try:
            pairs[key] = json_or_text(value) if as_json else value
        except ValueMistakeError as mistake:
            raise click.UsageError(f"{key}: {mistake}") from mistake
    return pairs


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
