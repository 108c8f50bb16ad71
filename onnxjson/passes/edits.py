"""Edits and rewrite scripts as passes. They are code of this package, so they run in this process."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from onnxjson.document import Model, Tensor
from onnxjson.edits.applying import Result, run
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.parameters import Role
from onnxjson.edits.script import Script, parse_edit, write_edit
from onnxjson.edits.values import write_value
from onnxjson.errors import DecodeError, ParameterError
from onnxjson.passes.declaration import Changed, Pass
from onnxjson.passes.new_files import NewFile


class EditPass(Pass, frozen=True, kw_only=True, eq=False, tag="edit"):
    """Make an edit."""

    is_guarded: ClassVar = False

    step: Annotated[Any, Meta(description='As it stands in a script: {"edit": "prune"}.')]
    folder: Annotated[str | None, Meta(description="Where files that it names must stand.")] = None

    @property
    def edit(self) -> Edit:
        """The edit itself."""
        try:
            return parse_edit(write_value(self.step))
        except DecodeError as error:
            raise ParameterError(str(error)) from error

    @property
    def name(self) -> str:
        """The name of the edit."""
        return name_of(self.edit)

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return msgspec.structs.replace(self, folder=str(folder))

    def change(self, model: Model, model_folder: Path | None) -> Changed:
        """See `Pass.change`."""
        if self.folder is None:
            return _changed(run(model, self.edit, folder=Path(), model_folder=model_folder))
        return _changed(run(model, Script((self.edit,), Path(self.folder)), model_folder=model_folder))


class ScriptPass(Pass, frozen=True, kw_only=True, eq=False, tag="script"):
    """Make the edits of a rewrite script, all of them or none."""

    is_guarded: ClassVar = False

    file: Annotated[str, Role("file"), Meta(min_length=1, description="The script, onnxjson-rewrite/1.")]

    @property
    def name(self) -> str:
        """The file."""
        return self.file

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return msgspec.structs.replace(self, file=str(folder / self.file))

    def change(self, model: Model, model_folder: Path | None) -> Changed:
        """See `Pass.change`."""
        return _changed(run(model, Script.load(self.file), model_folder=model_folder))


def edit_pass(edit: Edit) -> EditPass:
    """The pass that makes an edit."""
    return EditPass(step=msgspec.json.decode(write_edit(edit)))


def _changed(result: Result) -> Changed:
    notes = tuple([note for outcome in result.outcomes for note in outcome.notes])
    return Changed(result.model, notes, tuple([_new_file(path, tensor) for path, tensor in result.files.items()]))


def _new_file(path: Path, tensor: Tensor) -> NewFile:
    from onnxjson.constants.archives import write_npy

    return NewFile(path, lambda sink: write_npy(tensor, sink))


__all__ = ["EditPass", "ScriptPass", "edit_pass"]
