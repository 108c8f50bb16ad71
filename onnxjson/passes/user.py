"""Passes that a person wrote: a Python file named on the command line, or what another package offers.

A file defines ``def optimize(model: onnx.ModelProto, **options) -> onnx.ModelProto``; a rewrite script in Python, with
``rewrite`` or ``rules``, is run as well. A package offers such a function as an entry point of the group
``onnxjson.passes``.
"""

import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from onnxjson.display import visible
from onnxjson.edits.parameters import Role
from onnxjson.errors import EditError, ParameterError
from onnxjson.passes.declaration import Pass
from onnxjson.passes.stages import PartStage

GROUP: Final = "onnxjson.passes"
"""The group of entry points."""

_FUNCTION: Final = "optimize"
_LONGEST: Final = 500
"""Characters of what a function raises."""

_SCRIPT_NAMES: Final = ("rewrite", "rules")


class UserPass(Pass, frozen=True, kw_only=True, eq=False, tag="user"):
    """Run the function optimize(model) of a Python file, or a rewrite script in Python."""

    file: Annotated[str, Role("file"), Meta(min_length=1, description="The file.")]
    options: Annotated[dict[str, Any], Meta(description="Named arguments of the function.")] = msgspec.field(
        default_factory=dict
    )

    @property
    def name(self) -> str:
        """The file."""
        return self.file

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return msgspec.structs.replace(self, file=str(folder / self.file))

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        path = Path(self.file)
        module = ModuleType("user_pass")
        module.__file__ = str(path)
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # named by the person to be run
        except MemoryError:
            raise  # the limit of the process, which says so itself
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
            raise EditError(f"{path} defines no `def optimize(model)`, and neither `def rewrite(model)` nor `rules`")
        if self.options:
            raise EditError(f"{path} is a rewrite script, which takes no options")
        return _rewritten(path, model)

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: of a rewrite script, each of its edits or rules on top of those before it."""
        from onnxjson import serde
        from onnxjson.edits.python_script import PythonScript
        from onnxjson.wire.writing import message_bytes

        path = Path(self.file)
        try:
            script = PythonScript(path)
        except EditError:
            return  # it defines optimize, which has no parts
        for name, made in script.prefixes(serde.parse(model).model):
            yield PartStage(name, message_bytes(made))


class PluginPass(Pass, frozen=True, kw_only=True, eq=False, tag="plugin"):
    """Run a function that another package offers for models."""

    entry: Annotated[str, Meta(min_length=1, description="The name of the entry point.")]
    options: Annotated[dict[str, Any], Meta(description="Named arguments of the function.")] = msgspec.field(
        default_factory=dict
    )

    @property
    def name(self) -> str:
        """The name of the entry point."""
        return self.entry

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        return _result(plugins()[self.entry].load(), model, self.options)


def plugins() -> dict[str, metadata.EntryPoint]:
    """What other packages offer, by name; nothing is imported."""
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def user_pass(file: str, options: dict[str, Any]) -> UserPass:
    """The pass of a Python file.

    Raises:
        ParameterError: there is no such file.
    """
    if not Path(file).is_file():
        raise ParameterError(f"{visible(file)} is not there; a pass that ends with .py is a file with optimize(model)")
    return UserPass(file=file, options=options)


def _result(function: Callable[..., Any], model: bytes, options: dict[str, Any]) -> bytes:
    import onnx

    made = function(onnx.ModelProto.FromString(model), **options)
    if isinstance(made, onnx.ModelProto):
        return bytes(made.SerializeToString())
    if isinstance(made, bytes):
        return made
    what = "nothing" if made is None else f"a {type(made).__name__}"
    raise TypeError(f"optimize gives {what}; it has to return an onnx.ModelProto")


def _rewritten(path: Path, model: bytes) -> bytes:
    from onnxjson import serde
    from onnxjson.edits.python_script import PythonScript
    from onnxjson.wire.writing import message_bytes

    return message_bytes(PythonScript(path).run(serde.parse(model).model).model)


def _failed(path: Path, error: Exception) -> EditError:
    """The error that says where in the file something went wrong."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    place = f"{path}:{line}" if line else str(path)
    said = error.msg if isinstance(error, SyntaxError) else str(error)  # its text has the place once more
    return EditError(f"{place}: {type(error).__name__}: {said[:_LONGEST]}")  # made visible where it is told


__all__ = ["GROUP", "PluginPass", "UserPass", "plugins", "user_pass"]
