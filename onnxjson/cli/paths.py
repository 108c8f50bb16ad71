"""Paths as a person writes them on the command line, with what `pathlib` would forget about them."""

import os
from pathlib import Path
from typing import Any

import click

from onnxjson.cli import output
from onnxjson.errors import OutputError


class FilePath(click.Path):
    """A path; the empty text, which pathlib takes for the current folder, is none."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.Path.convert`."""
        if value == "":
            self.fail("it is empty, which names no file", param, ctx)
        return super().convert(value, param, ctx)


class DestinationPath(FilePath):
    """A file to write, or a folder to write it to; with a slash at its end it must be a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.Path.convert`.

        Raises:
            OutputError: it ends with a slash and is no folder.
        """
        if isinstance(value, str) and value.endswith("/") and not os.path.isdir(value):
            raise OutputError(
                f"there is no folder {output.quoted(value)}; make it first, or leave out the / at its end"
            )
        return super().convert(value, param, ctx)
