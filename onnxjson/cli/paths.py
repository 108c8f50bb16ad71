"""Paths as a person writes them on the command line, with what `pathlib` would forget about them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onnxjson.cli import output
from onnxjson.errors import OutputError

if TYPE_CHECKING:
    from onnxjson.document import Model


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


def refuse_sources(destination: Path, source: Path, model: "Model", weights_from: Path | None) -> None:
    """Do nothing if writing `destination` leaves alone all that `model` was read from, and what its tensors stand in.

    Raises:
        OutputError: it is the source, the model that has the weights, or a file that holds weights.
    """
    from onnxjson import external_files, weights

    if not destination.exists():
        return
    if destination.samefile(source):
        raise OutputError(f"{destination} is the source itself; name another file")
    if weights_from is not None and destination.samefile(weights_from):
        raise OutputError(f"{destination} is the model that has the weights; name another file")
    folder = source.parent
    if external_files.is_data_of(destination, model, folder) or weights.is_blob_of(destination, model, folder):
        raise OutputError(f"{destination} holds weights of {source}; name another file")
