"""Loss and metric of a model, by a script of the person who asks for them.

The script defines ``def evaluate(run)``: ``run({"x": array})`` gives the outputs by name, and what it returns is
``{"loss": 0.1, "metric": 0.98}``, or those two numbers. It may say more numbers than these.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from onnxjson.names import DATA_TYPES
from onnxjson.running.engines import opened
from onnxjson.running.tasks import Failed, Report, Scored, ScoreTask
from onnxjson.running.values import Value, as_array, as_value
from onnxjson.tensors import numpy_dtype

_FUNCTION: Final = "evaluate"
_NAMES: Final = ("loss", "metric")
_FLOATS: Final = frozenset([DATA_TYPES[name] for name in ("float16", "bfloat16", "float32", "float64")])


class ScriptError(Exception):
    """The script is not what is wanted."""


def scored(task: ScoreTask, tell: Callable[[Report], None], told: Callable[[str], str]) -> None:
    """Runs the script, in its own folder, and tells what it says, or why it says nothing."""
    path = Path(task.script)
    try:
        model = opened(task.subject, task.settings, told)
        os.chdir(path.parent)
        sys.path.insert(0, str(path.parent))

        def run(values: Mapping[str, Any]) -> dict[str, Any]:
            given = dict([_given(task, name, value) for name, value in values.items()])
            return {task.outputs.get(name, name): as_array(value) for name, value in model.run(given).items()}

        tell(Scored(scores=_scores(_function(path)(run))))
    except MemoryError:
        raise
    except ScriptError as error:
        tell(Failed(run=0, problem=told(f"{path.name}: {error}")))
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        place = f"{path.name}:{lines[-1]}: " if lines else ""
        tell(Failed(run=0, problem=told(f"{place}{type(error).__name__}: {error}")))


def _given(task: ScoreTask, name: str, value: Any) -> tuple[str, Value]:
    """An input of the model by what the script says; a variant may want float16 where the original takes float32."""
    import numpy

    name, data_type = task.inputs.get(name, (name, 0))
    if data_type in _FLOATS and isinstance(value, numpy.ndarray) and value.dtype.kind == "f":
        value = value.astype(numpy_dtype(data_type))
    return name, as_value(value)


def _function(path: Path) -> Callable[[Any], Any]:
    module = ModuleType("scores")
    module.__file__ = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # named by the person to be run
    function = getattr(module, _FUNCTION, None)
    if not callable(function):
        raise ScriptError(f"it defines no `def {_FUNCTION}(run)`")
    return function  # type: ignore[no-any-return] # whatever it is, it can be called


def _scores(said: Any) -> dict[str, float]:
    if isinstance(said, tuple | list) and len(said) == len(_NAMES):
        said = dict(zip(_NAMES, said, strict=True))
    if not isinstance(said, Mapping) or not said:
        raise ScriptError(f'{_FUNCTION} gives a {type(said).__name__}; it has to return {{"loss": ..., "metric": ...}}')
    try:
        return {str(name): float(value) for name, value in said.items()}
    except (TypeError, ValueError) as error:
        raise ScriptError(f"{_FUNCTION} gives something that is no number: {error}") from None
