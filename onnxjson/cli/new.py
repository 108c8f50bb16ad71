"""``onnxjson new``: a model made from nothing."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from onnxjson.cli import output
from onnxjson.cli.paths import DestinationPath
from onnxjson.errors import OutputError

if TYPE_CHECKING:
    from onnxjson.document import Model
    from onnxjson.files import Format

_STDOUT: Final = "-"


@click.command("new")
@click.argument("op_type", metavar="[OP]", required=False)
@click.option("--opset", type=click.IntRange(min=1), metavar="N", help="The version of the operator set.")
@click.option("--domain", metavar="DOMAIN", help="The domain of OP, where several have one of that name.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME:TYPE",
    help="An input, such as x:float32[1,3]; NAME:TYPE=VALUES is a constant, - one that is left out. In their order, or "
    "by the names that OP gives them. Without any the usual ones are made.",
)
@click.option(
    "--output-name",
    "outputs",
    multiple=True,
    metavar="NAME[:TYPE]",
    help="An output; types are inferred where they can be.",
)
@click.option("--attr", "attributes", multiple=True, metavar="NAME=VALUE", help="An attribute; VALUE as in a document.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="T=TYPE",
    help="The type of a set of types of OP, such as T=float16; for the usual inputs.",
)
@click.option("--name", metavar="NAME", help="The name of the node.")
@click.option("--component", metavar="Z000", help="A ready component instead of OP; --list shows them.")
@click.option("--all", "yard", metavar="FOLDER", type=DestinationPath(), help="Every version of every operator.")
@click.option("--list", "list_", is_flag=True, help="Print the operators and the components.")
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="OUT",
    type=DestinationPath(allow_dash=True),
    help="The file to write; - is standard output.",
)
@click.option(
    "--format",
    "target",
    type=click.Choice(["onnx", "json", "protojson"]),
    help="The form to write; else the ending of OUT decides.",
)
def command(
    op_type: str | None,
    *,
    opset: int | None,
    domain: str | None,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    attributes: tuple[str, ...],
    types: tuple[str, ...],
    name: str | None,
    component: str | None,
    yard: Path | None,
    list_: bool,
    destination: Path | None,
    target: "Format | None",
) -> None:
    """Make a model of one operator, or a ready component.

    What is not said is taken from the schema of the operator: inputs, shapes, required attributes, subgraphs. The model
    is checked by onnx; one that is not valid is refused, and no file is written.

    \b
    onnxjson new Conv -o conv.onnx
    onnxjson new Softmax --input x:float16[2,3] --attr axis=0 -o softmax.onnx
    onnxjson new --component nms-yolact -o nms.onnx
    onnxjson new --all parts
    """
    chosen = [op_type is not None, component is not None, yard is not None, list_]
    if sum(chosen) != 1:
        raise click.UsageError("name one thing to make: an operator, --component, or --all; --list shows what there is")
    if list_:
        _list()
        return
    if yard is not None:
        if destination is not None:
            raise click.UsageError("--all names the folder itself; leave out -o")
        _fill(yard, opset, target or "onnx")
        return
    details = bool(inputs or outputs or attributes or types or name or domain)
    if destination is None:
        raise click.UsageError("say where the model goes: -o OUT, or -o - for standard output")
    if component is not None:
        if details:
            raise click.UsageError("a component is made as it is; change it with `onnxjson rewrite`")
        _write(_component(component, opset), destination, target)
        return
    from onnxjson.making.operator_model import Wanted, make_operator

    wanted = Wanted(
        op_type=op_type or "",
        domain=domain,
        opset=opset,
        inputs=inputs,
        outputs=outputs,
        attributes=_pairs(attributes, "--attr NAME=VALUE", as_json=True),
        types=_pairs(types, "--type T=TYPE", as_json=False),
        name=name,
    )
    _write(make_operator(wanted), destination, target)


def _pairs(texts: tuple[str, ...], form: str, *, as_json: bool) -> dict[str, Any]:
    """Names and values of an option that may stand several times."""
    from onnxjson.edits.spelling import json_or_text
    from onnxjson.edits.values import ValueMistakeError

    found: dict[str, Any] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise click.UsageError(f"{output.quoted(text)} is not of the form {form}")
        if key in found:
            raise click.UsageError(f"{output.quoted(key)} stands twice")
        try:
            found[key] = json_or_text(value) if as_json else value
        except ValueMistakeError as mistake:
            raise click.UsageError(f"{key}: {mistake}") from mistake
    return found


def _component(which: str, opset: int | None) -> "Model":
    from onnxjson.edits.conversion import convert
    from onnxjson.making.ready import component

    model = component(which).model
    return model if opset is None else convert(model, opset).model


def _write(model: "Model", destination: Path, target: "Format | None") -> None:
    from onnxjson import files

    if str(destination) == _STDOUT:
        form = target or "json"
        if form == "onnx" and sys.stdout.isatty():
            raise click.UsageError("a binary model is not for a terminal; send it on, or write it with -o OUT")
        files.write(model, output.Stdout(), form)
        return
    files.save(model, destination, target)
    output.talk(f"wrote {destination} ({output.size(destination)})")


def _fill(folder: Path, opset: int | None, form: "Format") -> None:
    from onnxjson import files
    from onnxjson.making.yard import parts

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} is there and not empty; name another folder, or remove it")
    ending = {"onnx": ".onnx", "json": ".onnx.json", "protojson": ".onnxjson"}[form]
    made = 0
    with output.working("making all operators"):
        for part in parts(opset):
            if part.model is None:
                if part.reason != "deprecated":
                    output.warn(f"{part.path}: {part.reason}")
                continue
            place = folder / f"{part.path}{ending}"
            place.parent.mkdir(parents=True, exist_ok=True)
            files.save(part.model, place, form)
            made += 1
    output.talk(f"wrote {output.counted(made, 'model')} to {folder}")


def _list() -> None:
    from onnxjson.making.ready import components
    from onnxjson.operator_signatures import all_operators

    for each in components():
        output.data(f"{each.number}  {each.name:<26}  {each.summary}")
    versions: dict[tuple[str, str], list[str]] = {}
    for domain, op_type, version in all_operators():
        versions.setdefault((domain, op_type), []).append(str(version))
    for (domain, op_type), numbers in versions.items():
        output.data(f"{domain or 'ai.onnx'}  {op_type:<26}  {', '.join(numbers)}")
