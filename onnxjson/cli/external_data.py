"""The options of ``convert`` for tensors in files beside the model."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from onnxjson.cli import output
from onnxjson.errors import LimitError

if TYPE_CHECKING:
    from onnxjson.document import Model
    from onnxjson.files import Format

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int:
    """A number of bytes: 4096, 4k, 1M.

    Raises:
        click.BadParameter: it is none.
    """
    found = re.fullmatch(r"([0-9]{1,15})([kmg]?)", text.lower(), re.ASCII)
    if not found:
        raise click.BadParameter(f"{output.quoted(text)} is no size; write bytes, or 4k, 1M, 2G (units of 1024)")
    return int(found[1]) * _UNITS[found[2]]


class Moves(NamedTuple):
    """What is to be done with tensors in other files, or for them."""

    internalize: bool
    externalize: bool
    threshold: int | None
    data_name: str | None
    with_external: bool
    trust_links: bool
    allow_sparse: bool

    def check(self) -> None:
        """Do nothing if the options fit each other.

        Raises:
            click.UsageError: they do not.
        """
        if not self.externalize and (self.threshold is not None or self.data_name is not None):
            raise click.UsageError("--threshold and --file say how to write a data file; add --externalize")
        if self.internalize and self.with_external:
            raise click.UsageError("--internalize leaves no other files to copy; leave out --with-external")
        if self.data_name in ("", ".", "..") or (self.data_name is not None and "/" in self.data_name):
            raise click.UsageError("--file is a name without a folder: data stand beside the model")


def options(command: Callable[..., None]) -> Callable[..., None]:
    """The options as parameters that are called like the fields of `Moves`."""
    for option in reversed(
        (
            click.option("--internalize", is_flag=True, help="Take tensors that stand in other files into the model."),
            click.option("--externalize", is_flag=True, help="Put big tensors into one new data file beside DST."),
            click.option(
                "--threshold",
                type=size,
                metavar="SIZE",
                help="With --externalize: the smallest tensor to move, 1024 bytes if not given; 4k, 1M.",
            ),
            click.option(
                "--file",
                "data_name",
                metavar="NAME",
                help="With --externalize: the name of the data file; else that of DST with .data.",
            ),
            click.option(
                "--with-external",
                is_flag=True,
                help="Copy the files that tensors stand in to the folder of DST too.",
            ),
            click.option(
                "--trust-links",
                is_flag=True,
                help="Read such files through links too, as long as they lead to the folder of SRC.",
            ),
            click.option(
                "--allow-sparse",
                is_flag=True,
                help="Read such files even where most of their bytes are holes, not on the disk.",
            ),
        )
    ):
        command = option(command)
    return command


def taken_in(model: "Model", source: Path, moves: Moves) -> "Model":
    """The model for standard output, where no file can stand beside it.

    Raises:
        click.UsageError: one is asked for.
    """
    if moves.externalize or moves.with_external:
        raise click.UsageError("other files go beside a file; name one with -o DST")
    return _internalized(model, source, moves)


@contextmanager
def moved(
    model: "Model", source: Path, place: Path, form: "Format", moves: Moves, *, data_name: str
) -> Iterator["Model"]:
    """The model as it is to be saved at `place`, with every file that it names there ready.

    A data file that was written for it, `data_name` if the options name none, goes again if the body fails to save it.
    """
    from onnxjson import external_files

    changed = _internalized(model, source, moves)
    still_elsewhere = external_files.locations(changed)
    if not moves.externalize:
        _check_size(changed, place, form, moves)
        _copy(changed, source, place, moves)
        yield changed
    else:
        data_file = place.with_name(moves.data_name or data_name)
        if os.path.realpath(data_file) == os.path.realpath(place):
            raise click.UsageError(f"{data_file} is to be both the model and its data; name another file with --file")
        threshold = external_files.THRESHOLD if moves.threshold is None else moves.threshold
        with output.working(f"writing {data_file}"):
            result = external_files.externalize(changed, data_file, threshold=threshold)
        if result.moved:
            with external_files.removed_on_failure(data_file, place):
                _check_size(result.model, place, form, moves)
                _copy(changed, source, place, moves)
                yield result.model
            output.talk(f"wrote {data_file} ({output.size(data_file)}, {output.counted(result.moved, 'tensor')})")
        else:
            _copy(changed, source, place, moves)
            yield result.model
            output.talk(f"no raw tensor has {threshold:,} bytes or more, so there is no {data_file}")
        if result.left:
            stay = "tensor stays" if result.left == 1 else "tensors stay"
            output.talk(f"{result.left:,} big {stay} in the model: not raw bytes that fit type and shape")
    if still_elsewhere and not moves.with_external:
        _say_what_must_go_along(source, still_elsewhere, place)


def _internalized(model: "Model", source: Path, moves: Moves) -> "Model":
    if not moves.internalize:
        return model
    from onnxjson import external_files

    return external_files.internalize(
        model, source.parent, model_file=source, trust_links=moves.trust_links, allow_sparse=moves.allow_sparse
    )


def _check_size(model: "Model", place: Path, form: "Format", moves: Moves) -> None:
    """Do nothing if the model fits into a file of its form; else say so before anything is written.

    Raises:
        LimitError: it does not.
    """
    if form != "onnx" or not (moves.internalize or moves.with_external):
        return
    from onnxjson.wire.varints import LARGEST_MESSAGE
    from onnxjson.wire.writing import message_size

    size = message_size(model)
    if size > LARGEST_MESSAGE:
        raise LimitError(
            f"{place} would have {size:,} bytes, and protobuf reads no more than {LARGEST_MESSAGE:,}; "
            "leave the weights in other files (without --internalize, or with --externalize too)"
        )


def _copy(model: "Model", source: Path, place: Path, moves: Moves) -> None:
    if not moves.with_external or _same_folder(source, place):
        return
    from onnxjson import external_files

    with output.working(f"copying weights to {place.parent}"):
        copied = external_files.copy_files(
            model,
            source.parent,
            place.parent,
            model_file=source,
            taken=place,
            trust_links=moves.trust_links,
            allow_sparse=moves.allow_sparse,
        )
    for path in copied:
        output.talk(f"copied {path} ({output.size(path)})")


def _say_what_must_go_along(source: Path, locations: tuple[str, ...], place: Path) -> None:
    """External data is found beside the model: elsewhere it is missing until somebody copies it."""
    if _same_folder(source, place):
        return
    for location in locations:
        if os.path.lexists(source.parent / location):
            output.warn(
                f"weights of the model stay in {output.quoted(location)} beside {source}; "
                f"copy that file to {place.parent}/, as `onnxjson convert --with-external` does"
            )


def _same_folder(source: Path, place: Path) -> bool:
    return place.parent.resolve() == source.parent.resolve()
