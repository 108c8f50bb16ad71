"""``onnxjson apply``: a stored change, made again on a model."""

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from onnxjson.cli import external_data, failures, findings, output
from onnxjson.cli.paths import DestinationPath, FilePath, refuse_sources
from onnxjson.display import visible
from onnxjson.errors import DecodeError, OnnxJsonError, PatchError

if TYPE_CHECKING:
    from onnxjson.canonical.payload_forms import WeightsMode
    from onnxjson.document import Model
    from onnxjson.files import Format, Loaded
    from onnxjson.patching import Patch

_STDOUT: Final = "-"
_FORMAT: Final = re.compile(rb'"format"\s*:\s*"([^"\\]{1,80})"')
_PATCH: Final = "onnxjson-patch/"


@click.command("apply")
@click.argument("change", metavar="CHANGE", type=FilePath())
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="OUT",
    type=DestinationPath(allow_dash=True),
    help="Write the result to OUT, replacing the file that is there; - is standard output.",
)
@click.option("-i", "--in-place", is_flag=True, help="Change the models themselves; a copy of each is kept first.")
@click.option(
    "--format",
    "target",
    type=click.Choice(["onnx", "json", "protojson"]),
    help="With -o: the form to write; else the ending of OUT decides.",
)
@click.option("--reverse", is_flag=True, help="Take the change back: make the model before it of the one after it.")
@click.option("--same-base", is_flag=True, help="Refuse any model but the very one that the change was made for.")
@click.option(
    "--weights-from",
    metavar="MODEL",
    type=FilePath(),
    help="The model that has the bytes of tensors of which only the sha256 is known.",
)
@click.pass_context
def command(
    ctx: click.Context,
    change: Path,
    paths: tuple[Path, ...],
    *,
    destination: Path | None,
    in_place: bool,
    target: "Format | None",
    reverse: bool,
    same_base: bool,
    weights_from: Path | None,
) -> None:
    """Make a stored change again, on one or many models.

    CHANGE is a patch, onnxjson-patch/1, as `onnxjson diff --format patch` writes it. It fits every model in which all
    that it changes is as it says; any other is refused with the first place that differs, and stays as it is.

    \b
    onnxjson apply change.json m.onnx -o new.onnx
    onnxjson apply change.json models/*.onnx -i
    onnxjson apply change.json new.onnx --reverse -o old.onnx
    """
    _check_usage(paths, destination, target, in_place=in_place)
    patch = _read_change(change)
    if reverse:
        patch = patch.invert()
    if destination is not None:
        _write(patch, paths[0], destination, target, weights_from, same_base=same_base)
        return
    code = 0
    for path in paths:
        try:
            _change(patch, path, weights_from, same_base=same_base)
        except OnnxJsonError as error:
            code = failures.report(error)
    ctx.exit(code)


def _check_usage(paths: tuple[Path, ...], destination: Path | None, target: object, *, in_place: bool) -> None:
    if destination is None and not in_place:
        raise click.UsageError("say where the result goes: -o OUT for a file, or -i to change MODEL itself")
    if destination is not None and in_place:
        raise click.UsageError("-o OUT writes another file, -i changes MODEL itself; give one of them")
    if len(paths) > 1 and not in_place:
        raise click.UsageError(f"{len(paths)} models cannot all become {destination}; -i changes each in place")
    if target is not None and in_place:
        raise click.UsageError("-i keeps the form of MODEL; for another one write it with -o OUT")


def _read_change(path: Path) -> "Patch":
    """The change in a file, by what it says of itself.

    Raises:
        DecodeError: it is no change that this version knows.
    """
    from onnxjson.identity import open_source
    from onnxjson.patching.loading import read_patch
    from onnxjson.text_file import looks_like_text

    source = open_source(path)
    head = source.read_at(0, min(source.size, 4096))
    if not looks_like_text(head):
        raise DecodeError(f"{path} is no change: it is no JSON; the order is onnxjson apply CHANGE MODEL")
    found = _FORMAT.search(head)
    name = found[1].decode("utf-8", "replace") if found else _PATCH
    if not name.startswith(_PATCH):
        reason = f"{path} is no change: its format is {visible(name)}, and onnxjson-patch/1 is known"
        raise DecodeError(f"{reason}; the order is onnxjson apply CHANGE MODEL")
    with output.working(f"reading {path}"):
        return read_patch(source)


def _changed(patch: "Patch", path: Path, weights_from: Path | None, *, same_base: bool) -> "tuple[Loaded, Model]":
    """A model as it was read, and as it is after the change."""
    from onnxjson import files

    with output.working(f"reading {path}"):
        loaded = files.load(path)
    output.findings(loaded.warnings, limit=failures.SHOWN)
    try:
        model = patch.apply(loaded.model, same_base=same_base)
    except PatchError as error:
        raise PatchError(f"{path}: {error}", error.address, error.expected, error.found) from error
    if weights_from is not None:
        model = files.bound(model, folder=None, weights_from=weights_from)
    return loaded, model


def _change(patch: "Patch", path: Path, weights_from: Path | None, *, same_base: bool) -> None:
    """Change one model in place."""
    from onnxjson import files

    loaded, model = _changed(patch, path, weights_from, same_base=same_base)
    if not patch:
        output.talk(f"the change is empty; {path} stays as it is")
        return
    weights: WeightsMode = "keep" if loaded.format == "json" else "inline"
    with findings.of_failed_writing(path, loaded), output.working(f"writing {path}"):
        files.save(model, path, loaded.format, weights=weights, expect=loaded.identity, backup=True)
    output.talk(f"changed {path} ({output.size(path)}); to undo: onnxjson undo-save {shlex.quote(str(path))}")
    _say_what_is_missing(patch, path)


def _write(
    patch: "Patch",
    path: Path,
    destination: Path,
    target: "Format | None",
    weights_from: Path | None,
    *,
    same_base: bool,
) -> None:
    """Write the changed model to another file, or to standard output."""
    from onnxjson import files

    loaded, model = _changed(patch, path, weights_from, same_base=same_base)
    if str(destination) == _STDOUT:
        form = target or loaded.format
        if form == "onnx" and sys.stdout.isatty():
            raise click.UsageError("a binary model is not for a terminal; send it on, or write it with -o OUT")
        with findings.of_failed_writing(path, loaded):
            files.write(model, output.Stdout(), form)
        return
    place = destination / path.name if destination.is_dir() else destination
    refuse_sources(place, path, loaded.model, weights_from)
    form = target or files.format_for(place)
    is_beside = place.parent.resolve() == path.parent.resolve()
    weights: WeightsMode = "keep" if form == loaded.format == "json" and is_beside else "inline"
    stay = external_data.Moves(False, False, None, None, False, False, False)
    moved = external_data.moved(model, path, place, form, stay, data_name="")
    with findings.of_failed_writing(path, loaded), moved as ready:
        with output.working(f"writing {place}"):
            files.save(ready, place, form, weights=weights)
        output.talk(f"wrote {place} ({output.size(place)})")
    _say_what_is_missing(patch, place)


def _say_what_is_missing(patch: "Patch", place: Path) -> None:
    """A patch names the files that hold weights of the result, and carries none of them."""
    from onnxjson.patching.external_list import missing_files

    for file in missing_files(patch.external, place.parent):
        known = f" with the sha256 {file.sha256}" if file.sha256 else ""
        output.warn(f"{place} needs {output.quoted(file.location)}{known} beside it; the change does not carry it")
