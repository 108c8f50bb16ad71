"""Score a model with a script of the user, for example by loss and metric.

The script defines ``def evaluate(run)``, where ``run({"x": array})`` returns the outputs by name. It returns
``{"loss": 0.1, "metric": 0.98}``, or these two numbers; further numbers are allowed.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.running.worker_server`.
"""

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from onnxjson.model.dtypes import WIDE_FLOATS
from onnxjson.model.tensors import numpy_dtype
from onnxjson.running.engines import open_model
from onnxjson.running.tasks import Failed, Report, Scored, ScoreTask
from onnxjson.running.values import Value, as_array, as_value

_FUNCTION: Final = "evaluate"
_NAMES: Final = ("loss", "metric")


class ScriptError(Exception):
    """The script is not valid."""


def run_script(task: ScoreTask, emit: Callable[[Report], None], sanitize: Callable[[str], str]) -> None:
    """Run the script in its own folder, and report its scores or its failure."""
    path = Path(task.script)
    try:
        model = open_model(task.subject, task.settings, sanitize)
        os.chdir(path.parent)
        sys.path.insert(0, str(path.parent))

        def run(values: Mapping[str, Any]) -> dict[str, Any]:
            inputs = dict([_input(task, name, value) for name, value in values.items()])
            return {task.outputs.get(name, name): as_array(value) for name, value in model.run(inputs).items()}

        emit(Scored(scores=_scores(_function(path)(run))))
    except MemoryError:
        raise
    except ScriptError as error:
        emit(Failed(run=0, problem=sanitize(f"{path.name}: {error}")))
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        place = f"{path.name}:{lines[-1]}: " if lines else ""
        emit(Failed(run=0, problem=sanitize(f"{place}{type(error).__name__}: {error}")))


def _input(task: ScoreTask, name: str, value: Any) -> tuple[str, Value]:
    """Convert an input of the script to one of the model; a variant may have float16 instead of float32."""
    import numpy

    name, data_type = task.inputs.get(name, (name, 0))
    if data_type in WIDE_FLOATS and isinstance(value, numpy.ndarray) and value.dtype.kind == "f":
        value = value.astype(numpy_dtype(data_type))
    return name, as_value(value)


def _function(path: Path) -> Callable[[Any], Any]:
    module = ModuleType("scores")
    module.__file__ = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # the user asked to run it
    function = getattr(module, _FUNCTION, None)
    if not callable(function):
        raise ScriptError(f"it defines no `def {_FUNCTION}(run)`")
    return function  # type: ignore[no-any-return] # it is callable


def _scores(result: Any) -> dict[str, float]:
    if isinstance(result, tuple | list) and len(result) == len(_NAMES):
        result = dict(zip(_NAMES, result, strict=True))
    if not isinstance(result, Mapping) or not result:
        name = type(result).__name__
        raise ScriptError(f'{_FUNCTION} returns a {name}; it has to return {{"loss": ..., "metric": ...}}')
    try:
        return {str(name): float(value) for name, value in result.items()}
    except (TypeError, ValueError) as error:
        raise ScriptError(f"{_FUNCTION} returns something that is not a number: {error}") from None
