"""``onnxjson undo-save``: what a file held before it was changed in place."""

from pathlib import Path

import click

from onnxjson.cli import output
from onnxjson.cli.paths import FilePath


@click.command("undo-save")
@click.argument("path", metavar="FILE", type=FilePath())
def command(path: Path) -> None:
    """Give a file back what it held before it was changed in place.

    What it holds now is kept in turn, so that a second undo-save undoes the first. Works after edit and fmt, and when
    the file itself is gone.

    \b
    onnxjson fmt m.onnx.json
    onnxjson undo-save m.onnx.json
    """
    from onnxjson.state import undo_save

    undo_save(path)
    output.talk(f"restored {path} ({output.size(path)})")
