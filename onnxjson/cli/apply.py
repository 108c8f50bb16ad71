"""``onnxjson apply``: a patch or a script of edits, applied to one or many models."""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from onnxjson.cli import changing, options, output
from onnxjson.cli.paths import FilePath
from onnxjson.codecs.text_file import looks_like_text
from onnxjson.editing import applying
from onnxjson.editing.python_script import PythonScript
from onnxjson.editing.script import Script
from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, EditError, OutputError, PatchError, SelectorError
from onnxjson.patching.patch import Patch, missing_files
from onnxjson.patching.patch_text import read_patch
from onnxjson.storage.external_files import files_written
from onnxjson.storage.files import Loaded
from onnxjson.storage.identity import open_source

_FORMAT: Final = re.compile(rb'"format"\s*:\s*"([^"\\]{1,80})"')
_SEARCHED: Final = 1 << 16
_PATCH: Final = "onnxjson-patch/"
_SCRIPT: Final = "onnxjson-rewrite/"
_ORDER: Final = "the order is onnxjson apply CHANGE MODEL"


@options.command("apply")
@click.argument("change", metavar="CHANGE", type=FilePath())
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@changing.request_options()
@options.option("--reverse", "Apply the inverse of a patch, which restores the old model from the new one.")
@options.option("--same-base", "Refuse every model except the one that the patch was made from.")
@click.pass_context
def apply_command(
    ctx: click.Context, /, change: Path, paths: tuple[Path, ...], *, reverse: bool, same_base: bool, **given: Any
) -> None:
    """Apply a patch or a script of edits to one or many models.

    CHANGE is a patch (onnxjson-patch/1), which `onnxjson diff --format patch` writes, a script of edits
    (onnxjson-rewrite/1), or a Python file whose rewrite(model) returns a model or edits. A patch applies to any model
    that has the old values wherever the patch changes them; a script applies completely or not at all. If CHANGE does
    not apply to a model, that model stays unchanged.

    \b
    onnxjson apply change.json m.onnx -o new.onnx
    onnxjson apply rewrite.json models/*.onnx -i
    onnxjson apply change.json new.onnx --reverse -o old.onnx
    """
    request = changing.request(paths, given)
    for place in () if request.in_place else map(request.place, request.paths):
        if place is not None and place.exists() and change.exists() and place.samefile(change):
            raise OutputError(f"{place} is the change itself; name another file")
    read_change = _read_change(change)
    if (reverse or same_base) and not isinstance(read_change, Patch):
        option = "--reverse" if reverse else "--same-base"
        raise click.UsageError(
            f"{option} is for patches, but {change} is a script; `onnxjson diff --format patch` writes a patch"
        )
    applied = _Change(read_change.invert() if reverse and isinstance(read_change, Patch) else read_change, same_base)
    ctx.exit(changing.run(request, applied, applied.warn_of_missing_files))


@dataclass(frozen=True)
class _Change:
    change: Patch | Script | PythonScript
    same_base: bool

    def __call__(self, path: Path, loaded: Loaded) -> changing.Changed:
        change = self.change
        try:
            if isinstance(change, Patch):
                patched = change.apply(loaded.model, same_base=self.same_base)
                return changing.Changed(patched, is_judged=True)  # A patch is an exact change.
            result = (
                applying.run(loaded.model, change, model_folder=path.parent)
                if isinstance(change, Script)
                else change.run(loaded.model, path.parent)
            )
        except (PatchError, EditError, SelectorError) as error:
            error.add_place(str(path))
            if isinstance(error, PatchError) and self._is_applied(loaded):
                error.hint = "the model already has this change"
            raise
        several = len(result.outcomes) > 1
        notes = [
            f"edit {position}: {note}" if several else note
            for position, outcome in enumerate(result.outcomes, 1)
            for note in outcome.notes
        ]
        write = partial(files_written, result.new_files())
        return changing.Changed(result.model, tuple(notes), write)

    def _is_applied(self, loaded: Loaded) -> bool:
        if not isinstance(self.change, Patch):
            return False
        with suppress(PatchError):
            self.change.invert().apply(loaded.model)
            return True
        return False

    def warn_of_missing_files(self, place: Path) -> None:
        """Warn of weights in other files, which a patch refers to and does not contain."""
        if not isinstance(self.change, Patch):
            return
        for file in missing_files(self.change.external, place.parent):
            digest = f" with the sha256 {file.sha256}" if file.sha256 else ""
            output.warn(f"{place} needs {output.quoted(file.location)}{digest} next to it; a patch does not contain it")


def _read_change(path: Path) -> Patch | Script | PythonScript:
    """The change in a file, by its content; Python by its ending."""
    if path.suffix == ".py":
        return PythonScript(path)
    source = open_source(path)
    head = source.read_at(0, min(source.size, _SEARCHED))
    if not looks_like_text(head):
        raise DecodeError(f"{path} is not a change: it is not JSON; {_ORDER}")
    name = _format(head)
    with output.reading(path):
        if name.startswith(_PATCH):
            return read_patch(Patch, source)
        if name.startswith(_SCRIPT):
            return Script.load(path)
    known = "known formats are onnxjson-patch/1 and onnxjson-rewrite/1"
    raise DecodeError(f"{path} is not a change: its format is {visible(name)}; {known}; {_ORDER}")


def _format(head: bytes) -> str:
    """The format that a text states; without one that of a patch, whose reader reports what is missing."""
    stated = _FORMAT.search(head)
    if stated is None:
        return _SCRIPT if b'"edit' in head else _PATCH
    return stated[1].decode("utf-8", "replace")
