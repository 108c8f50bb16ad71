"""Edits and rewrite scripts as passes; as code of this package, they run in this process."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from onnxjson.editing.applying import Result, run
from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.parameters import Role
from onnxjson.editing.script import Script, parse_edit, write_edit
from onnxjson.editing.values import write_value
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import DecodeError, ParameterError
from onnxjson.optimizing.passes.declaration import Changed, Pass
from onnxjson.optimizing.passes.new_files import NewFile


class EditPass(Pass, frozen=True, kw_only=True, eq=False, tag="edit"):
    """Make an edit."""

    is_guarded: ClassVar = False

    step: Annotated[Any, Meta(description='The edit as in a script: {"edit": "prune"}.')]
    folder: Annotated[str | None, Meta(description="Folder that must contain the files it names.")] = None

    @property
    def edit(self) -> Edit:
        """The declared edit."""
        try:
            return parse_edit(write_value(self.step))
        except DecodeError as error:
            raise ParameterError(str(error)) from error

    @property
    def name(self) -> str:
        """Name of the edit."""
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

    file: Annotated[str, Role("file"), Meta(min_length=1, description="Rewrite script, onnxjson-rewrite/1.")]

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return msgspec.structs.replace(self, file=str(folder / self.file))

    def change(self, model: Model, model_folder: Path | None) -> Changed:
        """See `Pass.change`."""
        return _changed(run(model, Script.load(self.file), model_folder=model_folder))


def edit_pass(edit: Edit) -> EditPass:
    """Return the pass that makes an edit."""
    return EditPass(step=msgspec.json.decode(write_edit(edit)))


def _changed(result: Result) -> Changed:
    notes = tuple([note for outcome in result.outcomes for note in outcome.notes])
    return Changed(result.model, notes, tuple([_new_file(path, tensor) for path, tensor in result.files.items()]))


def _new_file(path: Path, tensor: Tensor) -> NewFile:
    from onnxjson.storage.constant_writing import write_npy

    return NewFile(path, lambda sink: write_npy(tensor, sink))


__all__ = ["EditPass", "ScriptPass", "edit_pass"]
