"""Models that a command changes: to another file, in place with a copy kept, or only shown as a diff."""

import shlex
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from onnxjson.cli import external_data, failures, findings, output, paging
from onnxjson.cli.paths import DestinationPath, FilePath, refuse_sources
from onnxjson.errors import EditError, OnnxJsonError, SelectorError, WeightsMissingError

if TYPE_CHECKING:
    from onnxjson.canonical.payload_forms import WeightsMode
    from onnxjson.document import Model
    from onnxjson.files import Format, Loaded

_STDOUT: Final = "-"
_ENDINGS: Final = (".onnx.json", ".onnxjson", ".onnx", ".json")


class Changed(NamedTuple):
    """A model after the change, and what a person should hear."""

    model: "Model"
    notes: tuple[str, ...] = ()
    beside: "Callable[[Path | None], AbstractContextManager[None]] | None" = None
    """Writes other files, and takes them away again if the model is not written; gets the place of the model."""
    is_part: bool = False
    """Whether it is a part of the model, which takes along what it needs of weights in other files."""


class Request(NamedTuple):
    """What is to become of the changed models."""

    paths: tuple[Path, ...]
    destination: Path | None
    in_place: bool
    target: "Format | None"
    weights_from: Path | None
    dry_run: bool

    def check(self) -> None:
        """Do nothing if the options fit each other.

        Raises:
            click.UsageError: they do not.
        """
        if self.dry_run:
            if self.destination is not None or self.in_place:
                raise click.UsageError("--dry-run writes nothing; leave out -o and -i")
            return
        if self.destination is None and not self.in_place:
            raise click.UsageError("say where the result goes: -o OUT for a file, or -i to change MODEL itself")
        if self.destination is not None and self.in_place:
            raise click.UsageError("-o OUT writes another file, -i changes MODEL itself; give one of them")
        if len(self.paths) > 1 and not self.in_place and not self._is_folder():
            raise click.UsageError(
                f"{len(self.paths)} models cannot all become {self.destination}; "
                "-i changes each in place, -o FOLDER writes each there"
            )
        self._check_names()
        if self.target is not None and self.in_place:
            raise click.UsageError("-i keeps the form of MODEL; for another one write it with -o OUT")

    def _check_names(self) -> None:
        if not self._is_folder():
            return
        known: dict[str, Path] = {}
        for path in self.paths:
            if path.name in known:
                others, place = f"{known[path.name]} and {path}", self.place(path)
                raise click.UsageError(f"{others} cannot both become {place}; write them to two folders")
            known[path.name] = path

    def _is_folder(self) -> bool:
        return self.destination is not None and self.destination.is_dir()

    def place(self, path: Path) -> Path | None:
        """The file that the changed model of `path` is written to; None where that is standard output, or nowhere."""
        if self.in_place:
            return path
        if self.destination is None or str(self.destination) == _STDOUT:
            return None
        return self.destination / path.name if self._is_folder() else self.destination


def options(*, dry_run: bool, long_output: bool = True) -> list[click.Option]:
    """The options that become a `Request`, called like its fields.

    Args:
        dry_run: whether ``--dry-run`` is one of them.
        long_output: whether ``-o`` is also ``--output``.
    """
    found = [
        click.Option(
            ["-o", *(["--output"] if long_output else []), "destination"],
            metavar="OUT",
            type=DestinationPath(allow_dash=True),
            help="Write the result to OUT, over the file that is there or into the folder; - is standard output.",
        ),
        click.Option(
            ["-i", "--in-place"],
            is_flag=True,
            help="Change the models themselves; a copy of each is kept first.",
        ),
        click.Option(
            ["--format", "target"],
            type=click.Choice(["onnx", "json", "protojson"]),
            help="With -o: the form to write; else the ending of OUT decides.",
        ),
        click.Option(
            ["--weights-from"],
            metavar="MODEL",
            type=FilePath(),
            help="The model that has the bytes of tensors of which only the sha256 is known.",
        ),
    ]
    if dry_run:
        found.insert(2, click.Option(["--dry-run"], is_flag=True, help="Write nothing; show what would change."))
    return found


Change = Callable[[Path, "Loaded"], Changed]
"""Changes one model that was read from a path."""


def run(request: Request, change: Change, after: Callable[[Path], None] | None = None) -> int:
    """Changes every model that is asked for; of several, one that fails keeps no other from being changed.

    Args:
        request: see there; `check` was called.
        change: makes the change.
        after: is told the place of every file that was written.

    Returns:
        The exit code.
    """
    if len(request.paths) == 1:
        _one(request, request.paths[0], change, after)
        return 0
    code = 0
    for path in request.paths:
        try:
            _one(request, path, change, after)
        except OnnxJsonError as error:
            code = failures.report(_of_model(error, path))
    return code


def _of_model(error: OnnxJsonError, path: Path) -> OnnxJsonError:
    """The error of an edit with the model that it is about, where it is one of several."""
    text = f"{path}: {error}"
    if str(error).startswith(f"{path}: "):
        return error
    match error:
        case EditError():
            return type(error)(text, error.address, error.position)
        case SelectorError():
            return type(error)(text)
        case _:
            return error


def _one(request: Request, path: Path, change: Change, after: Callable[[Path], None] | None) -> None:
    from onnxjson import files

    with output.working(f"reading {path}"):
        loaded = files.load(path)
    output.findings(loaded.warnings, limit=failures.SHOWN)
    weights = None if request.weights_from is None else files.load(request.weights_from).model
    whole = loaded if weights is None else loaded._replace(model=_with_weights(loaded.model, weights))
    with output.working(f"changing {path}"):
        changed = change(path, whole)
    for note in changed.notes:
        output.talk(f"{path}: {note}" if len(request.paths) > 1 else note)
    model = changed.model
    if request.dry_run:
        _show(path, loaded.model, model)
        return
    if weights is not None:
        model = files.bound(model, folder=None, weights_from=weights)
    with nullcontext() if changed.beside is None else changed.beside(request.place(path)):
        place = (
            _in_place(path, loaded, model)
            if request.in_place
            else _written(request, path, loaded, changed._replace(model=model))
        )
    if place is not None and after is not None:
        after(place)


def _with_weights(model: "Model", weights: "Model") -> "Model":
    """`model` with the bytes of its digests, or as it is where `weights` lacks some: the change may have those."""
    from onnxjson import files

    try:
        return files.bound(model, folder=None, weights_from=weights)
    except WeightsMissingError:
        return model


def _in_place(path: Path, loaded: "Loaded", model: "Model") -> Path | None:
    from onnxjson import files

    if model is loaded.model or model == loaded.model:
        output.talk(f"nothing changes; {path} stays as it is")
        return None
    weights: WeightsMode = "keep" if loaded.format == "json" else "inline"
    with findings.of_failed_writing(path, loaded), output.working(f"writing {path}"):
        files.save(model, path, loaded.format, weights=weights, expect=loaded.identity, backup=True)
    output.talk(f"changed {path} ({output.size(path)}); to undo: onnxjson undo-save {shlex.quote(str(path))}")
    return path


def _written(request: Request, path: Path, loaded: "Loaded", changed: Changed) -> Path | None:
    """Writes a changed model to another file, or to standard output."""
    from onnxjson import external_files, files

    model = changed.model
    place = request.place(path)
    if place is None:
        form = request.target or loaded.format
        if form == "onnx" and paging.is_terminal(sys.stdout):
            raise click.UsageError("a binary model is not for a terminal; send it on, or write it with -o OUT")
        with findings.of_failed_writing(path, loaded):
            files.write(model, output.Stdout(), form)
        return None
    refuse_sources(place, path, loaded.model, request.weights_from)
    form = request.target or files.format_for(place)
    is_beside = place.parent.resolve() == path.parent.resolve()
    weights: WeightsMode = "keep" if form == loaded.format == "json" and is_beside else "inline"
    takes = changed.is_part and not is_beside and bool(external_files.locations(model))
    moves = external_data.Moves(takes, takes, None, None, False, False, False)
    moved = external_data.moved(model, path, place, form, moves, data_name=f"{_stem(place.name)}.data")
    with findings.of_failed_writing(path, loaded), moved as ready:
        with output.working(f"writing {place}"):
            files.save(ready, place, form, weights=weights)
        output.talk(f"wrote {place} ({output.size(place)})")
    return place


def _stem(name: str) -> str:
    """The name of a file without the ending that says its form."""
    return next((name.removesuffix(each) for each in _ENDINGS if name.endswith(each)), name)


def _show(path: Path, before: "Model", after: "Model") -> None:
    """What would change, as ``onnxjson diff`` says it."""
    if before is after or before == after:
        output.talk(f"nothing would change in {path}")
        return
    from onnxjson.diffing.difference import diff_models
    from onnxjson.rendering.diff_report import report
    from onnxjson.rendering.diff_text import diff_lines

    with output.working("comparing"):
        found = diff_models(before, after, paths=(path, path))
    width = paging.width()
    lines: Iterable[str] = (
        paging.styled(each, coloured=paging.is_coloured("auto"))
        for each in diff_lines(report(found, str(path), "after the change"), width, details=True)
    )
    paging.show(lines)
