"""``onnxjson apply``: a patch or a script of edits, made on one or many models."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from onnxjson.cli import changing, output
from onnxjson.cli.paths import FilePath
from onnxjson.display import visible
from onnxjson.errors import DecodeError, EditError, OutputError, PatchError, SelectorError

if TYPE_CHECKING:
    from onnxjson.edits.python_script import PythonScript
    from onnxjson.edits.script import Script
    from onnxjson.files import Format, Loaded
    from onnxjson.patching import Patch

_FORMAT: Final = re.compile(rb'"format"\s*:\s*"([^"\\]{1,80})"')
_SEARCHED: Final = 1 << 16
_PATCH: Final = "onnxjson-patch/"
_SCRIPT: Final = "onnxjson-rewrite/"
_ORDER: Final = "the order is onnxjson apply CHANGE MODEL"


@click.command("apply")
@click.argument("change", metavar="CHANGE", type=FilePath())
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@click.option("--reverse", is_flag=True, help="Take a patch back: make the model before it of the one after it.")
@click.option("--same-base", is_flag=True, help="Refuse any model but the very one that a patch was made for.")
@click.pass_context
def command(
    ctx: click.Context,
    change: Path,
    paths: tuple[Path, ...],
    *,
    destination: Path | None,
    in_place: bool,
    dry_run: bool,
    target: "Format | None",
    reverse: bool,
    same_base: bool,
    weights_from: Path | None,
) -> None:
    """Make a stored change again, on one or many models.

    CHANGE is a patch, onnxjson-patch/1, as `onnxjson diff --format patch` writes it, or a script of edits,
    onnxjson-rewrite/1; see `onnxjson rewrite --list`. A patch fits every model in which all that it changes is as it
    says. A script is made as a whole or not at all. A model that a change does not fit stays as it is.

    A file that ends with .py is run: its function rewrite(model) gives a model, or edits to be made.

    \b
    onnxjson apply change.json m.onnx -o new.onnx
    onnxjson apply rewrite.json models/*.onnx -i
    onnxjson apply change.json new.onnx --reverse -o old.onnx
    """
    request = changing.Request(paths, destination, in_place, target, weights_from, dry_run)
    request.check()
    _refuse_change(request, change)
    found = _read_change(change)
    if reverse or same_base:
        _require_patch(found, change, "--reverse" if reverse else "--same-base")
    made = _Change(found, reverse=reverse, same_base=same_base)
    ctx.exit(changing.run(request, made, made.say_what_is_missing))


command.params[2:2] = changing.options(dry_run=True)


def _refuse_change(request: changing.Request, change: Path) -> None:
    """Do nothing if no result is written over the change itself.

    Raises:
        OutputError: one would be.
    """
    for path in () if request.in_place else request.paths:
        place = request.place(path)
        if place is not None and place.exists() and change.exists() and place.samefile(change):
            raise OutputError(f"{place} is the change itself; name another file")


def _require_patch(found: "Patch | Script | PythonScript", path: Path, option: str) -> None:
    from onnxjson.patching import Patch

    if not isinstance(found, Patch):
        raise click.UsageError(
            f"{option} is for patches, and {path} is a script; `onnxjson diff --format patch` makes one"
        )


class _Change:
    """A change that was read, made on models."""

    def __init__(self, change: "Patch | Script | PythonScript", *, reverse: bool, same_base: bool) -> None:
        self._change = change.invert() if reverse else change  # type: ignore[union-attr]
        self._same_base = same_base

    def __call__(self, path: Path, loaded: "Loaded") -> changing.Changed:
        """See `changing.Change`."""
        from onnxjson.patching import Patch

        change = self._change
        try:
            if isinstance(change, Patch):
                return changing.Changed(change.apply(loaded.model, same_base=self._same_base))
            from onnxjson.edits import applying
            from onnxjson.edits.script import Script

            result = (
                applying.run(loaded.model, change, model_folder=path.parent)
                if isinstance(change, Script)
                else change.run(loaded.model, path.parent)
            )
        except PatchError as error:
            raise PatchError(f"{path}: {error}", error.address, error.expected, error.found) from error
        except EditError as error:
            raise type(error)(f"{path}: {error}", error.address, error.position) from error
        except SelectorError as error:
            raise type(error)(f"{path}: {error}") from error
        return changing.Changed(
            result.model, tuple(_notes(result)), lambda place: applying.files_written(result, place)
        )

    def say_what_is_missing(self, place: Path) -> None:
        """A patch names the files that hold weights of the result, and carries none of them."""
        from onnxjson.patching import Patch
        from onnxjson.patching.external_list import missing_files

        if not isinstance(self._change, Patch):
            return
        for file in missing_files(self._change.external, place.parent):
            known = f" with the sha256 {file.sha256}" if file.sha256 else ""
            output.warn(f"{place} needs {output.quoted(file.location)}{known} beside it; the change does not carry it")


def _notes(result: object) -> list[str]:
    from onnxjson.edits.applying import Result

    assert isinstance(result, Result)
    several = len(result.outcomes) > 1
    return [
        f"edit {position}: {note}" if several else note
        for position, outcome in enumerate(result.outcomes, 1)
        for note in outcome.notes
    ]


def _read_change(path: Path) -> "Patch | Script | PythonScript":
    """The change in a file, by what it says of itself; Python by its ending.

    Raises:
        DecodeError: it is no change that this version knows.
    """
    from onnxjson.identity import open_source
    from onnxjson.text_file import looks_like_text

    if path.suffix == ".py":
        from onnxjson.edits.python_script import PythonScript

        return PythonScript(path)
    source = open_source(path)
    head = source.read_at(0, min(source.size, _SEARCHED))
    if not looks_like_text(head):
        raise DecodeError(f"{path} is no change: it is no JSON; {_ORDER}")
    name = _format(head)
    with output.working(f"reading {path}"):
        if name.startswith(_PATCH):
            from onnxjson.patching.loading import read_patch

            return read_patch(source)
        if name.startswith(_SCRIPT):
            from onnxjson.edits.script import Script

            return Script.load(path)
    known = "onnxjson-patch/1 and onnxjson-rewrite/1 are known"
    raise DecodeError(f"{path} is no change: its format is {visible(name)}, and {known}; {_ORDER}")


def _format(head: bytes) -> str:
    """The format that a text says it has; that of a patch where it says none, whose reader says so."""
    found = _FORMAT.search(head)
    if found is None:
        return _SCRIPT if b'"edits"' in head else _PATCH
    return found[1].decode("utf-8", "replace")
