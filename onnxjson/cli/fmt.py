"""``onnxjson fmt`` and ``undo-save``: texts in canonical form, and files restored from their backup."""

from pathlib import Path

import click

from onnxjson.cli import failures, options, output
from onnxjson.cli.paths import FilePath
from onnxjson.model.errors import EncodeError, OnnxJsonError
from onnxjson.storage import files
from onnxjson.storage.pruning import prune_blobs
from onnxjson.storage.state import undo_save


@options.command("fmt")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@options.option("--check", "Write nothing; list the files that would change and exit 1.", "only_check")
@options.option("--prune-blobs", "Delete blobs that no text in the folder refers to.", "prunes")
@options.drop_orphans
@click.pass_context
def fmt_command(
    ctx: click.Context, paths: tuple[Path, ...], *, only_check: bool, prunes: bool, drop_orphans: bool
) -> None:
    """Format texts of models canonically.

    Changes files in place and keeps a backup of each; `onnxjson undo-save` restores it. A canonical file is left
    alone. The model stays the same, bit for bit; comments are dropped.

    \b
    onnxjson fmt m.onnx.json
    onnxjson fmt --check models/*.onnx.json
    """
    if only_check and prunes:
        raise click.UsageError("--check writes nothing, and --prune-blobs deletes files; choose one of them")
    code = 0
    for path in paths:
        try:
            if _format(path, only_check=only_check, drop_orphans=drop_orphans) and only_check:
                code = code or 1
            for blob in prune_blobs(path) if prunes else ():
                output.talk(f"removed {blob}")
        except OnnxJsonError as error:
            code = failures.report(error)
    ctx.exit(code)


def _format(path: Path, *, only_check: bool, drop_orphans: bool) -> bool:
    """Format one file, or only check it; return whether it was not canonical."""
    with output.working(f"reading {path}"):
        loaded = files.load(path, drop_orphans=drop_orphans, bind=False)
    if loaded.format != "json":
        kind = "a binary model" if loaded.format == "onnx" else "proto-JSON"
        raise EncodeError(f"{path} is {kind}, and fmt formats .onnx.json; first run: onnxjson convert {path}")
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


@options.command("undo-save")
@click.argument("path", metavar="MODEL", type=FilePath())
def undo_save_command(path: Path) -> None:
    """Restore a file as it was before its last change in place.

    The present content is kept as the new backup, so a second undo-save undoes the first. Works after every command
    that changes a file in place, also if the file has been deleted since.

    \b
    onnxjson fmt m.onnx.json
    onnxjson undo-save m.onnx.json
    """
    undo_save(path)
    output.talk(f"restored {path} ({output.size(path)})")
