"""The options of ``convert`` for weights in files next to the model, and moving these files."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from onnxjson.cli import options, output
from onnxjson.codecs.wire_writing import message_size
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of
from onnxjson.storage import external_files
from onnxjson.storage.files import Format


class Moves(NamedTuple):
    """Options for weights in other files."""

    internalize: bool = False
    externalize: bool = False
    threshold: int | None = None
    data_name: str | None = None
    shard_size: int | None = None
    with_external: bool = False
    trust_links: bool = False
    allow_sparse: bool = False


def _checked(**values: Any) -> Moves:
    moves = Moves(**values)
    described = (moves.threshold, moves.data_name, moves.shard_size)
    if not moves.externalize and any([each is not None for each in described]):
        raise click.UsageError("--threshold, --shard-size and --data-file describe a data file; add --externalize")
    if moves.internalize and moves.with_external:
        raise click.UsageError("--internalize leaves no other files to copy; leave out --with-external")
    if moves.data_name in ("", ".", "..") or (moves.data_name is not None and "/" in moves.data_name):
        raise click.UsageError("--data-file is a name without a folder: data files are next to the model")
    return moves


with_external: Final = options.option("--with-external", "Copy weights in other files to the folder of OUT.")

moves_options: Final = options.gathered(
    options.together(
        options.option("--internalize", "Move weights from other files into the model."),
        options.option("--externalize", "Move big tensors to one new data file next to OUT."),
        options.option(
            "--threshold SIZE",
            "With --externalize: size of the smallest tensor to move, such as 4k; default: 1024 bytes.",
        ),
        options.option(
            "--data-file NAME",
            "With --externalize: name of the data file, perhaps .safetensors; default: that of OUT with .data.",
            "data_name",
        ),
        options.option("--shard-size SIZE", "With --externalize: write data files of at most SIZE, such as 5G."),
        with_external,
        options.trust_links,
        options.option("--allow-sparse", "Read weights even if most of their file is holes."),
    ),
    _checked,
    "moves",
)


def internalize_for_stdout(model: Model, source: Path, moves: Moves) -> Model:
    """The model for standard output, which has no file next to it; options that require one are a click.UsageError."""
    if moves.externalize or moves.with_external:
        raise click.UsageError("standard output has no files next to it; name a file with -o OUT")
    return _internalize(model, source, moves)


@contextmanager
def moved(model: Model, source: Path, place: Path, form: Format, moves: Moves, *, data_name: str) -> Iterator[Model]:
    """Provide the model to save at `place`, after writing the files that it refers to.

    A data file written for it, `data_name` unless the options name one, is removed if the body fails to save the model.
    """
    changed = _internalize(model, source, moves)
    if not moves.externalize:
        _check_size(changed, place, form, moves)
        _copy(changed, source, place, moves)
        yield changed
    else:
        data_file = place.with_name(moves.data_name or data_name)
        if os.path.realpath(data_file) == os.path.realpath(place):
            raise click.UsageError(f"{data_file} would be both the model and its data; choose another --data-file")
        threshold = external_files.THRESHOLD if moves.threshold is None else moves.threshold
        with output.working(f"writing {data_file}", writes=lambda: output.weight_bytes(changed)):
            result = external_files.externalize(changed, data_file, threshold=threshold, shard_size=moves.shard_size)
        with ExitStack() as stack:
            for each in result.new_files:
                stack.enter_context(external_files.removed_on_failure(each, place))
            if result.moved:
                _check_size(result.model, place, form, moves)
            _copy(changed, source, place, moves)
            yield result.model
        if result.moved:
            for each in result.new_files or [data_file]:
                count = "" if moves.shard_size else f", {output.counted(result.moved, 'tensor')}"
                output.talk(f"wrote {each} ({output.size(each)}{count})")
        else:
            output.talk(f"no raw tensor has {threshold:,} bytes or more, so {data_file} was not written")
        if result.left:
            stay = "tensor stays" if result.left == 1 else "tensors stay"
            output.talk(f"{result.left:,} big {stay} in the model: the data are not raw bytes of its type and shape")
        if outside := sum([is_external(tensor) for tensor in tensors_of(changed)]):
            output.talk(f"{output.counted(outside, 'constant')} already in other files; --internalize moves them too")
    if not moves.with_external:
        for location in external_files.left_behind(changed, source, place):
            output.warn(
                f"weights of the model remain in {output.quoted(location)} next to {source}; "
                f"copy that file to {place.parent}/, or add --with-external"
            )


def _internalize(model: Model, source: Path, moves: Moves) -> Model:
    if not moves.internalize:
        return model
    return external_files.internalize(
        model, source.parent, model_file=source, trust_links=moves.trust_links, allow_sparse=moves.allow_sparse
    )


def _check_size(model: Model, place: Path, form: Format, moves: Moves) -> None:
    """Raise, before anything is written, unless the model fits into a file of its form."""
    if form != "onnx" or not (moves.internalize or moves.with_external):
        return
    size = message_size(model)
    if size > MESSAGE_BYTES:
        raise LimitError(
            f"{place} would have {size:,} bytes, and protobuf reads at most {MESSAGE_BYTES:,}; "
            "leave the weights in other files (without --internalize, or with --externalize too)"
        )


def _copy(model: Model, source: Path, place: Path, moves: Moves) -> None:
    if not moves.with_external or place.parent.resolve() == source.parent.resolve():
        return
    with output.working(f"copying weights to {place.parent}", writes=lambda: output.weight_bytes(model)):
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
