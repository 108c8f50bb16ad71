"""``onnxjson diff``: what differs between two models."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxjson.cli import output, paging
from onnxjson.cli.paths import FilePath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnxjson.rendering.unified import DiffLine


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
    exit_zero: bool,
    color: paging.Colour,
    no_pager: bool,
) -> None:
    """Say what differs between two models.

    A and B are .onnx, .onnx.json or proto-JSON, in any combination. Tensors of more than 64 elements are compared by
    their sha256. Exits 0 if the models are the same, 1 if they differ, with another code if one cannot be read.

    \b
    onnxjson diff before.onnx after.onnx
    onnxjson diff m.onnx m.onnx.json -U 0 --exit-zero
    """
    lines = _unified(one, other, context)
    first = next(lines, None)
    if first is None:
        return
    coloured = paging.is_coloured(color)
    paging.show(
        (paging.diff_line(line, coloured=coloured) for line in itertools.chain([first], lines)), pager=not no_pager
    )
    ctx.exit(0 if exit_zero else 1)


def _unified(one: Path, other: Path, context: int) -> "Iterator[DiffLine]":
    from onnxjson.rendering import unified

    old, new = (_text(path) for path in (one, other))
    return unified.diff_texts(old, new, str(one), str(other), context=context)


def _text(path: Path) -> bytes:
    from onnxjson import files
    from onnxjson.rendering.unified import digest_text

    with output.working(f"reading {path}"):
        # Blobs need not be there: their names are the sha256 that is compared.
        return digest_text(files.load(path, bind=False).model)
