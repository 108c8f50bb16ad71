"""Passes of users: a Python file given on the command line, or an entry point of another package.

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
from msgspec import Meta

from onnxjson.editing.parameters import Role
from onnxjson.model.display import visible
from onnxjson.model.errors import EditError, ParameterError
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.stages import PartStage
from onnxjson.running.box import readable_by_script

GROUP: Final = "onnxjson.passes"
"""Group of entry points."""

_FUNCTION: Final = "optimize"
_LONGEST: Final = 500
"""Maximum length of the message of an error of the user's code."""

_SCRIPT_NAMES: Final = ("rewrite", "rules")


class UserPass(Pass, frozen=True, kw_only=True, eq=False, tag="user"):
    """Run the function optimize(model) of a Python file, or a rewrite script in Python."""

    is_own_code: ClassVar = True

    file: Annotated[str, Role("file"), Meta(min_length=1, description="The Python file.")]
    options: Annotated[dict[str, Any], Meta(description="Keyword arguments of the function.")] = msgspec.field(
        default_factory=dict
    )

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return msgspec.structs.replace(self, file=str(folder / self.file))

    def reads(self) -> tuple[str, ...]:
        """See `Pass.reads`; a link to the file leads to another folder."""
        path = Path(self.file).absolute()
        return str(path), readable_by_script(str(path))

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        path = Path(self.file)
        module = ModuleType("user_pass")
        module.__file__ = str(path)
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # the user asked to run this file
        except MemoryError:
            raise  # the limit of the process, which is reported elsewhere
        except Exception as error:
            raise _failed(path, error) from error
        function = getattr(module, _FUNCTION, None)
        if callable(function):
            try:
                return _result(function, model, self.options)
            except MemoryError:
                raise
            except Exception as error:
                raise _failed(path, error) from error
        if not any([hasattr(module, name) for name in _SCRIPT_NAMES]):
            raise EditError(f"{path} defines none of `def optimize(model)`, `def rewrite(model)` and `rules`")
        if self.options:
            raise EditError(f"{path} is a rewrite script, which has no options")
        return _rewritten(path, model)

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: for a rewrite script, one stage per edit or rule."""
        from onnxjson.codecs import serde
        from onnxjson.codecs.wire_writing import message_bytes
        from onnxjson.editing.python_script import PythonScript

        path = Path(self.file)
        try:
            script = PythonScript(path)
        except EditError:
            return  # it defines optimize, which has no parts
        for name, made in script.prefixes(serde.parse(model).model):
            yield PartStage(name, message_bytes(made))


class PluginPass(Pass, frozen=True, kw_only=True, eq=False, tag="plugin"):
    """Run an entry point of another package."""

    is_own_code: ClassVar = True

    entry: Annotated[str, Meta(min_length=1, description="Name of the entry point.")]
    options: Annotated[dict[str, Any], Meta(description="Keyword arguments of the function.")] = msgspec.field(
        default_factory=dict
    )

    @property
    def name(self) -> str:
        """Name of the entry point."""
        return self.entry

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        return _result(plugins()[self.entry].load(), model, self.options)


def plugins() -> dict[str, metadata.EntryPoint]:
    """Return entry points of other packages by name, without importing them."""
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def user_pass(file: str, options: dict[str, Any]) -> UserPass:
    """Return the pass of a Python file.

    Raises:
        ParameterError: the file does not exist.
    """
    if not Path(file).is_file():
        raise ParameterError(f"{visible(file)} does not exist; a pass NAME.py is a file with optimize(model)")
    return UserPass(file=file, options=options)


def _result(function: Callable[..., Any], model: bytes, options: dict[str, Any]) -> bytes:
    import onnx

    made = function(onnx.ModelProto.FromString(model), **options)
    if isinstance(made, onnx.ModelProto):
        return bytes(made.SerializeToString())
    if isinstance(made, bytes):
        return made
    what = "nothing" if made is None else f"a {type(made).__name__}"
    raise TypeError(f"optimize returned {what}; it must return an onnx.ModelProto")


def _rewritten(path: Path, model: bytes) -> bytes:
    from onnxjson.codecs import serde
    from onnxjson.codecs.wire_writing import message_bytes
    from onnxjson.editing.python_script import PythonScript

    return message_bytes(PythonScript(path).run(serde.parse(model).model).model)


def _failed(path: Path, error: Exception) -> EditError:
    """Return an error with the line of the file that failed."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    place = f"{path}:{line}" if line else str(path)
    message = error.msg if isinstance(error, SyntaxError) else str(error)  # its text repeats the place
    return EditError(f"{place}: {type(error).__name__}: {message[:_LONGEST]}")  # made visible where it is shown


__all__ = ["GROUP", "PluginPass", "UserPass", "plugins", "user_pass"]
