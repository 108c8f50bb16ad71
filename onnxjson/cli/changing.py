"""Models that a command changes: written to another file, in place with a backup, or only shown as a diff."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from onnxjson.cli import convert, failures, options, output, reports
from onnxjson.cli.paths import STDOUT, refuse_sources, stem
from onnxjson.codecs.tensor_text import WeightsMode
from onnxjson.codecs.wire_writing import message_size
from onnxjson.diffing.difference import diff_models
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError, OnnxJsonError, SelectorError, UnloadableError, WeightsMissingError
from onnxjson.model.index import index_of
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.values import Json, as_json
from onnxjson.running import checking
from onnxjson.storage import files, named_files
from onnxjson.storage.files import Format, Loaded
from onnxjson.storage.saving import require_savable

_LARGEST: Final = 256 << 20
"""Bytes of a model with converted constants, up to which they stay in it."""


class Changed(NamedTuple):
    """A model after the change, and what to report."""

    model: Model
    notes: tuple[str, ...] = ()
    adjacent: Callable[[Path | None], AbstractContextManager[None]] | None = None
    """Writes other files, and removes them again if the model is not written; called with the place of the model."""
    is_part: bool = False
    """Whether it is a part of the model, which needs only some of the weights in other files."""
    is_big: bool = False
    """Whether constants that are in the model now belong in a data file."""
    details: dict[str, object] | None = None
    """Further properties for JSON."""
    is_judged: bool = False
    """Whether it may be written without `onnxjson.running.loading.require_loadable`: a pipeline asked it, or none may.
    """


class Request(NamedTuple):
    """Destination of the changed models."""

    paths: tuple[Path, ...]
    destination: Path | None
    in_place: bool
    target: Format | None
    weights_from: Path | None
    dry_run: bool
    view: reports.View
    with_external: bool = False
    unloadable: bool | None = False
    """Whether results that onnxruntime no longer loads are written too; None if the command has no option for that."""
    verbose: bool = False
    """Whether all remarks and, of a difference, all places are shown."""

    def check(self) -> None:
        """Raise click.UsageError or OutputError unless the options fit each other, and the result can be written.

        Changing the models, which follows, can take minutes.
        """
        if self.view.form == "json" and str(self.destination) == STDOUT:
            raise click.UsageError("-o - writes the model to standard output, and --json a report; choose one of them")
        if self.destination is not None and self.target is None:
            files.format_for(self.destination)
        for place in () if self.in_place else map(self.place, self.paths):
            if place is not None:
                require_savable(place)
        if self.dry_run:
            return
        if self.destination is None and not self.in_place:
            raise click.UsageError("choose where the result goes: -o OUT for a file, or -i to change MODEL itself")
        if self.destination is not None and self.in_place:
            raise click.UsageError("-o OUT writes another file, and -i changes MODEL itself; choose one of them")
        if len(self.paths) > 1 and not self.in_place and not self._is_folder():
            raise click.UsageError(
                f"{len(self.paths)} models cannot all be written to {self.destination}; "
                "-i changes each in place, -o DIR writes each to a folder"
            )
        known: dict[str, Path] = {}
        for path in self.paths if self._is_folder() else ():
            if path.name in known:
                others, place = f"{known[path.name]} and {path}", self.place(path)
                raise click.UsageError(f"{others} cannot both be written to {place}; use two folders")
            known[path.name] = path
        if self.target is not None and self.in_place:
            raise click.UsageError("-i keeps the format of MODEL; to write another format use -o OUT")

    def _is_folder(self) -> bool:
        return self.destination is not None and self.destination.is_dir()

    def place(self, path: Path) -> Path | None:
        """The file that the changed model of `path` is written to; None for standard output, and if none is written."""
        if self.in_place:
            return path
        if self.destination is None or str(self.destination) == STDOUT:
            return None
        return self.destination / path.name if self._is_folder() else self.destination


def request(paths: tuple[Path, ...], given: dict[str, Any]) -> Request:
    """Return the request in the options of `request_options`, which are removed from `given`; see `Request.check`."""
    form = given.pop("form", None) or "text"
    view = reports.View(form, color=given.pop("color"), pager=not given.pop("no_pager"))
    names = ("destination", "in_place", "dry_run", "verbose", "target", "weights_from", "with_external", "unloadable")
    found = Request(paths=paths, view=view, **{name: given.pop(name, None) for name in names})
    found.check()
    return found


def request_options(taken: AbstractSet[str] = frozenset()) -> options.Decorator:
    """Return the options of a `Request`; a command defines those that are `taken` itself."""
    return options.together(
        options.out(
            "Write the result to OUT, a file or an existing folder; - is standard output.", long="--output" not in taken
        ),
        options.option("-i, --in-place", "Change the models themselves, and keep a backup of each."),
        options.option("--dry-run", "Write nothing; show what would change, as `onnxjson diff` does."),
        options.option(
            "-v, --verbose", "Show all remarks and, with --dry-run, all places.", callback=options.be_verbose
        ),
        *([] if "--to" in taken else [options.to("With -o: format of the file; default: by the extension of OUT.")]),
        options.weights_from,
        options.max_nodes if "--timeout" in taken else options.limits_of_analysis,
        convert.with_external,
        options.option(UnloadableError.option, "Also write results that onnxruntime no longer loads."),
        reports.form_options(("text", "json"), "Format of the report on what was changed and written; default: text."),
        reports.color_options,
    )


Change = Callable[[Path, Loaded], Changed]


def run(request: Request, change: Change, after: Callable[[Path], None] | None = None) -> int:
    """Change every model, also after a failure of one; call `after` with each written file. Return the exit code."""
    code, outcomes = 0, list[dict[str, object]]()
    for path in output.numbered(request.paths):
        try:
            outcomes.append(_one(request, path, change, after))
        except Exception as error:
            if len(request.paths) == 1 or not (isinstance(error, OnnxJsonError) or failures.is_internal(error)):
                raise
            outcomes.append({"model": str(path), "error": str(error)})
            if isinstance(error, (EditError, SelectorError)):
                error.add_place(str(path))
            code = failures.report_failure(error)
    if request.view.form == "json":
        request.view.write([as_json(outcomes) + "\n"])
    return code


def _one(request: Request, path: Path, change: Change, after: Callable[[Path], None] | None) -> dict[str, object]:
    """Change one model; return what was done."""
    with output.reading(path):
        loaded = files.load(path)
    output.findings(loaded.warnings, limit=output.SHOWN)
    weights = None if request.weights_from is None else files.load(request.weights_from).model
    if (place := request.place(path)) is not None and not request.in_place:
        refuse_sources(place, path, loaded.model, request.weights_from)
    complete = loaded if weights is None else loaded._replace(model=_with_weights(loaded.model, weights))
    with output.working(f"changing {path}"):
        changed = change(path, complete)
    if not (changed.is_judged or request.unloadable):
        from onnxjson.editing.sandbox import worker
        from onnxjson.running.loading import require_loadable

        with output.working("loading the result in onnxruntime"):
            advice = "; nothing was written"
            if request.unloadable is not None:
                advice += f"; {UnloadableError.option} writes it anyway"
            tried = require_loadable(complete.model, changed.model, path.parent, worker(), advice=advice)
        changed = changed._replace(notes=(*changed.notes, *tried))
    most = len(changed.notes) if request.verbose else output.SHOWN
    for note in changed.notes[:most]:
        output.talk(f"{path}: {note}" if len(request.paths) > 1 else note)
    if changed.notes[most:]:
        output.talk(f"and {output.counted(len(changed.notes) - most, 'more remark')}; -v shows all")
    model, place = changed.model, None
    if request.dry_run and request.view.form == "text":
        _show(path, loaded.model, model, request)
    if not request.dry_run:
        if weights is not None:
            model = files.bind_digests(model, folder=None, weights_from=weights)
        with nullcontext() if changed.adjacent is None else changed.adjacent(request.place(path)):
            place = (
                _write_in_place(path, loaded, model)
                if request.in_place
                else _write(request, path, loaded, changed._replace(model=model))
            )
        if place is not None and after is not None:
            after(place)
    return _data(request, path, loaded.model, changed, place) if request.view.form == "json" else {}


def _data(request: Request, path: Path, before: Model, changed: Changed, place: Path | None) -> dict[str, object]:
    """Return what was done, or with --dry-run would be done, as JSON has it."""
    data: dict[str, object] = {"model": str(path), "written": None if place is None else str(place)}
    nodes = [len(index_of(each).node_refs) for each in (before, changed.model)]
    data |= {"changed": changed.model != before, "nodes": nodes, "notes": changed.notes, **(changed.details or {})}
    if request.dry_run:
        from onnxjson.rendering.reports import diff_json

        difference = report(diff_models(before, changed.model, paths=(path, path)), str(path), "after the change")
        data["diff"] = Json("".join(diff_json(difference)))
    return data


def _with_weights(model: Model, weights: Model) -> Model:
    """`model` with the bytes of its digests, or as it is if `weights` lacks some: the change may remove those."""
    try:
        return files.bind_digests(model, folder=None, weights_from=weights)
    except WeightsMissingError:
        return model


def _write_in_place(path: Path, loaded: Loaded, model: Model) -> Path | None:
    if model is loaded.model or model == loaded.model:
        output.talk(f"nothing changed in {path}")
        return None
    weights: WeightsMode = "keep" if loaded.format == "json" else "inline"
    with checking.of_failed_writing(path, loaded), output.writing(path, model):
        files.save(model, path, loaded.format, weights=weights, expect=loaded.identity, backup=True)
    output.talk(f"changed {path} ({output.size(path)}); {output.undo(path)}")
    return path


def _write(request: Request, path: Path, loaded: Loaded, changed: Changed) -> Path | None:
    model = changed.model
    place = request.place(path)
    if place is None:
        with checking.of_failed_writing(path, loaded):
            convert.write_stdout(model, request.target or loaded.format)
        return None
    form = request.target or files.format_for(place)
    is_adjacent = place.parent.resolve() == path.parent.resolve()
    weights: WeightsMode = "keep" if form == loaded.format == "json" and is_adjacent else "inline"
    brings = changed.is_part and not is_adjacent and bool(named_files.locations(model))
    largest = _LARGEST if changed.is_big else MESSAGE_BYTES
    moves_weights = form == "onnx" and message_size(model) > largest
    externalize = brings or moves_weights
    moves = convert.Moves(internalize=brings, externalize=externalize, with_external=request.with_external)
    moved = convert.moved(model, path, place, form, moves, data_name=f"{stem(place.name)}.data")
    with checking.of_failed_writing(path, loaded), moved as ready:
        with output.writing(place, ready):
            files.save(ready, place, form, weights=weights)
        output.wrote(place)
    return place


def _show(path: Path, before: Model, after: Model, request: Request) -> None:
    if before is after or before == after:
        output.talk(f"nothing would change in {path}")
        return
    with output.working("comparing"):
        found = diff_models(before, after, paths=(path, path))
    shown = report(found, str(path), "after the change")
    request.view.show(diff_lines(shown, reports.width(), details=request.verbose))
