"""``onnxjson diff``: what differs between two models."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxjson.cli import output, paging
from onnxjson.cli.paths import FilePath

if TYPE_CHECKING:
    from onnxjson.rendering.external_weights import Place


@click.command("diff")
@click.argument("one", metavar="A", type=FilePath())
@click.argument("other", metavar="B", type=FilePath())
@click.option(
    "--format",
    "form",
    type=click.Choice(["unified"]),
    default="unified",
    show_default=True,
    help="unified: the line diff of the two texts, weights as sha256.",
)
@click.option(
    "-U",
    "--unified",
    "context",
    metavar="N",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Lines shown around a change.",
)
@click.option(
    "--trust-links",
    is_flag=True,
    help="Follow links to weights in other files, within the folder of a model or of the file that it links to.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 for models that differ, too.")
@paging.options
@click.pass_context
def command(
    ctx: click.Context,
    one: Path,
    other: Path,
    *,
    form: str,
    context: int,
    trust_links: bool,
    exit_zero: bool,
    color: paging.Colour,
    no_pager: bool,
) -> None:
    """Say what differs between two models.

    A and B are .onnx, .onnx.json or proto-JSON, in any combination. Tensors of more than 64 elements are compared by
    their sha256, those in other files, too, in lines of their own behind the texts. Exits 0 if the models are the same,
    1 if they differ or if weights in other files could not be compared, with another code if a model cannot be read.

    \b
    onnxjson diff before.onnx after.onnx
    onnxjson diff m.onnx m.onnx.json -U 0 --exit-zero
    """
    from onnxjson.rendering import external_weights, unified

    old, new = _load(one), _load(other)
    names = [str(path) for path in (one, other)]
    with output.working("comparing weights in other files"):
        weights = external_weights.compare(old, new, trust_links=trust_links)
    texts = unified.diff_models(old.model, new.model, names[0], names[1], context=context)
    outside = [f"{name} (external data)" for name in names]
    lines = itertools.chain(
        texts, unified.diff_texts(weights.old, weights.new, outside[0], outside[1], context=context)
    )
    first = next(lines, None)
    if first is not None:
        coloured = paging.is_coloured(color)
        paging.show(
            (paging.diff_line(line, coloured=coloured) for line in itertools.chain([first], lines)), pager=not no_pager
        )
    for problem in weights.problems:
        output.warn(problem)
    ctx.exit(1 if weights.problems or (first is not None and not exit_zero) else 0)


def _load(path: Path) -> "Place":
    from onnxjson import files
    from onnxjson.rendering.external_weights import Place

    with output.working(f"reading {path}"):
        # Blobs need not be there: their names are the sha256 that is compared.
        return Place(files.load(path, bind=False).model, path)
