"""``onnxjson fmt``: the one canonical text."""

from pathlib import Path

import click

from onnxjson.cli import failures, output
from onnxjson.cli.paths import FilePath
from onnxjson.errors import EncodeError, OnnxJsonError


@click.command("fmt")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=FilePath())
@click.option("--check", "only_check", is_flag=True, help="Change nothing; print the files that would change, exit 1.")
@click.option("--prune-blobs", is_flag=True, help="Remove blobs that no text in the folder of the file names any more.")
@click.option("--drop-orphans", is_flag=True, help="Leave out metadata whose element is not there any more.")
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[Path, ...], *, only_check: bool, prune_blobs: bool, drop_orphans: bool
) -> None:
    """Write texts in their one canonical form.

    Files are changed in place, and a copy of each goes to the user's state folder first. A file that is canonical
    already is left as it is. The model stays the same, bit for bit; comments are not kept.

    \b
    onnxjson fmt m.onnx.json
    onnxjson fmt --check models/*.onnx.json
    """
    if only_check and prune_blobs:
        raise click.UsageError("--check changes nothing, and --prune-blobs removes files; give one of them")
    code = 0
    for path in paths:
        try:
            if _format(path, only_check=only_check, drop_orphans=drop_orphans) and only_check:
                code = code or 1
            if prune_blobs:
                _prune(path)
        except OnnxJsonError as error:
            code = failures.report(error)
    ctx.exit(code)


def _format(path: Path, *, only_check: bool, drop_orphans: bool) -> bool:
    """Format one file, or only find out; whether its text is another than the canonical one."""
    from onnxjson import files

    with output.working(f"reading {path}"):
        loaded = files.load(path, drop_orphans=drop_orphans, bind=False)
    if loaded.format != "json":
        kind = "a binary model" if loaded.format == "onnx" else "proto-JSON"
        raise EncodeError(f"{path} is {kind}, and fmt is for .onnx.json; first: onnxjson convert {path}")
    if files.is_canonical(path, loaded):
        return False
    output.findings(loaded.warnings, limit=failures.SHOWN)
    if only_check:
        output.data(str(path))
        return True
    with output.working(f"writing {path}"):
        files.save(loaded.model, path, "json", weights="keep", expect=loaded.identity, backup=True)
    output.talk(f"formatted {path}")
    return True


def _prune(path: Path) -> None:
    """Remove blobs that no text names, and say which."""
    from onnxjson.pruning import prune_blobs

    for blob in prune_blobs(path):
        output.talk(f"removed {blob}")
