"""Passes of users: an edit, a rewrite script, a Python file given on the command line, an entry point of a package.

Edits and rewrite scripts are code of this package and run in this process.

A file defines ``def optimize(model: onnx.ModelProto, **options) -> onnx.ModelProto``; a rewrite script in Python, with
``rewrite`` or ``rules``, is run as well. A package offers such a function as an entry point of the group
``onnxjson.passes``.
"""

import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Final, Self

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.editing.applying import Result, run
from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.script import Script, parse_edit, write_edit
from onnxjson.editing.values import write_value
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, EditError, ParameterError
from onnxjson.optimizing.passes.declaration import Changed, PartStage, Pass, proto_of
from onnxjson.running.box import readable_by_script

GROUP: Final = "onnxjson.passes"

_FUNCTION: Final = "optimize"
_LONGEST: Final = 500
"""Maximum length of the message of an error of the user's code."""

_SCRIPT_NAMES: Final = ("rewrite", "rules")


class UserPass(Pass, frozen=True, kw_only=True, eq=False, tag="user"):
    """Run the function optimize(model) of a Python file, or a rewrite script in Python."""

    is_own_code: ClassVar = True
    constants: ClassVar = "files"

    file: Annotated[str, Role("file"), about("The Python file.", min_length=1)]
    options: Annotated[dict[str, Any], about("Keyword arguments of the function.")] = msgspec.field(
        default_factory=dict
    )

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file

    def reads(self) -> tuple[str, ...]:
        """See `Pass.reads`; a link to the file leads to another folder."""
        path = Path(self.file).absolute()
        return str(path), readable_by_script(str(path))

    def run(self, model: bytes, folder: Path) -> bytes:
        path = Path(self.file)
        module = ModuleType("user_pass")
        module.__file__ = str(path)
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # the user asked to run this file
            if callable(function := getattr(module, _FUNCTION, None)):
                return _result(function, model, self.options)
        except MemoryError:
            raise  # the limit of the process, which is reported elsewhere
        except Exception as error:
            raise _failed(path, error) from error
        if not any([hasattr(module, name) for name in _SCRIPT_NAMES]):
            raise EditError(f"{path} defines none of `def optimize(model)`, `def rewrite(model)` and `rules`")
        if self.options:
            raise EditError(f"{path} is a rewrite script, which has no options")
        from onnxjson.editing.python_script import PythonScript

        return message_bytes(PythonScript(path).run(serde.parse(model).model).model)

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: for a rewrite script, one stage per edit or rule."""
        from onnxjson.editing.python_script import PythonScript

        try:
            script = PythonScript(Path(self.file))
        except EditError:
            return  # it defines optimize, which has no parts
        for name, made in script.prefixes(serde.parse(model).model):
            yield PartStage(name, message_bytes(made))


class PluginPass(Pass, frozen=True, kw_only=True, eq=False, tag="plugin"):
    """Run an entry point of another package."""

    is_own_code: ClassVar = True
    constants: ClassVar = "files"

    entry: Annotated[str, about("Name of the entry point.", min_length=1)]
    options: Annotated[dict[str, Any], about("Keyword arguments of the function.")] = msgspec.field(
        default_factory=dict
    )

    @property
    def name(self) -> str:
        """Name of the entry point."""
        return self.entry

    def run(self, model: bytes, folder: Path) -> bytes:
        return _result(plugins()[self.entry].load(), model, self.options)


def plugins() -> dict[str, metadata.EntryPoint]:
    """Return entry points of other packages by name, without importing them."""
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def user_pass(file: str, options: dict[str, Any]) -> UserPass:
    """Return the pass of a Python file."""
    if not Path(file).is_file():
        raise ParameterError(f"{visible(file)} does not exist; a pass NAME.py is a file with optimize(model)")
    return UserPass(file=file, options=options)


def _result(function: Callable[..., Any], model: bytes, options: dict[str, Any]) -> bytes:
    given = proto_of(model)
    output = function(given, **options)
    if isinstance(output, type(given)):
        return bytes(output.SerializeToString())
    if isinstance(output, bytes):
        return output
    what = "nothing" if output is None else f"a {type(output).__name__}"
    raise TypeError(f"optimize returned {what}; it must return an onnx.ModelProto")


def _failed(path: Path, error: Exception) -> EditError:
    """Return an error with the line of the file that failed."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    place = f"{path}:{line}" if line else str(path)
    message = error.msg if isinstance(error, SyntaxError) else str(error)  # its text repeats the place
    return EditError(f"{place}: {type(error).__name__}: {message[:_LONGEST]}")  # made visible where it is shown


class EditPass(Pass, frozen=True, kw_only=True, eq=False, tag="edit"):
    """Make an edit."""

    is_sandboxed: ClassVar = False

    step: Annotated[Any, about('The edit as in a script: {"edit": "prune"}.')]
    folder: Annotated[str | None, about("Folder that must contain the files it names.")] = None

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
        return msgspec.structs.replace(self, folder=str(folder))

    def change(self, model: Model, model_folder: Path | None) -> Changed:
        if self.folder is None:
            return _changed(run(model, self.edit, folder=Path(), model_folder=model_folder))
        return _changed(run(model, Script((self.edit,), Path(self.folder)), model_folder=model_folder))


class ScriptPass(Pass, frozen=True, kw_only=True, eq=False, tag="script"):
    """Make the edits of a rewrite script, all of them or none."""

    is_sandboxed: ClassVar = False

    file: Annotated[str, Role("file"), about("Rewrite script, onnxjson-rewrite/1.", min_length=1)]

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file

    def change(self, model: Model, model_folder: Path | None) -> Changed:
        return _changed(run(model, Script.load(self.file), model_folder=model_folder))


def edit_pass(edit: Edit) -> EditPass:
    """Return the pass that makes an edit."""
    return EditPass(step=msgspec.json.decode(write_edit(edit)))


def _changed(result: Result) -> Changed:
    notes = tuple([note for outcome in result.outcomes for note in outcome.notes])
    return Changed(result.model, notes, result.new_files())
