"""Execute tasks inside the guarded process: run, time, compare and score models; report each result immediately.

Models are scored by a script of the user. It defines ``def evaluate(run)``, where ``run({"x": array})`` returns the
outputs by name. It returns ``{"loss": 0.1, "metric": 0.98}``, or these two numbers; further numbers are allowed.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.running.worker_server`.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import WIDE_FLOATS
from onnxjson.model.elements import element_count
from onnxjson.model.tensors import numpy_dtype
from onnxjson.running.comparison import Comparison, compare_values, dtype_of
from onnxjson.running.engines import OpenModel, UnsupportedError, open_model
from onnxjson.running.tasks import (
    REPORTS,
    Began,
    Compared,
    CompareTask,
    Emit,
    Failed,
    Opened,
    Output,
    Profiled,
    RaceTask,
    Refused,
    Report,
    RunTask,
    Sanitizer,
    Scored,
    ScoreTask,
    SeriesTask,
    Settings,
    Subject,
    Task,
    Timed,
    write_report,
)
from onnxjson.running.timing import profiles, run_race
from onnxjson.running.values import Value, as_array, as_value, packed_values, unpacked_values

_SIDES: Final = (0, 1)


def execute_task(task: bytes, sanitize: Sanitizer) -> None:
    """Execute a task and write reports to a file in the current folder.

    Raises:
        msgspec.MsgspecError: the bytes are not a task.
    """
    found: Task = msgspec.msgpack.decode(task, type=Task)
    with Path(REPORTS).open("ab", buffering=0) as file:

        def emit(report: Report) -> None:
            write_report(report, file)

        match found:
            case RunTask():
                _run(found, emit, sanitize)
            case CompareTask():
                _Comparing(found, emit, sanitize).run()
            case SeriesTask(tasks=tasks):
                for number, each in enumerate(tasks):
                    emit(Began(task=number))
                    _run(each, emit, sanitize)
            case RaceTask():
                run_race(found, emit, sanitize)
            case ScoreTask():
                run_script(found, emit, sanitize)


def _open(
    side: int, subject: Subject, settings: Settings, emit: Emit, sanitize: Sanitizer, added: Sequence[str] = ()
) -> OpenModel | None:
    """Open a model; if no engine supports it, report that and return None."""
    started = time.perf_counter()
    try:
        model = open_model(subject, settings, sanitize, added)
    except UnsupportedError as error:
        emit(Refused(side=side, problem=str(error)))
        return None
    seconds = time.perf_counter() - started
    emit(Opened(side=side, engine=model.engine, seconds=seconds, providers=model.providers))
    return model


def _run(task: RunTask, emit: Emit, sanitize: Sanitizer) -> None:
    model = _open(0, task.subject, task.settings, emit, sanitize)
    if model is None:
        return
    has_run = False
    for number, feed in enumerate(task.feeds):
        try:
            started = time.perf_counter()
            outputs = model.run(unpacked_values(feed))
            seconds = time.perf_counter() - started
            emit(Output(run=number, values=packed_values(outputs), seconds=seconds))
            has_run = has_run or number == 0
        except MemoryError:
            raise
        except Exception as error:
            emit(Failed(run=number, problem=_message(error, sanitize)))
    if not has_run:
        return
    values = unpacked_values(task.feeds[0])
    if task.repeat:
        _time(model.repeated(values), task, emit)
    if task.profiled and model.engine == "onnxruntime":
        del model
        for runs, nodes in profiles(task.subject, task.settings, values, task.profiled):
            emit(Profiled(runs=runs, nodes=nodes))


def _time(once: Callable[[], object], task: RunTask, emit: Emit) -> None:
    for _ in range(task.warm_up):
        once()
    for _ in range(task.repeat):
        started = time.perf_counter()
        once()
        emit(Timed(seconds=time.perf_counter() - started))


def _message(error: Exception, sanitize: Sanitizer) -> str:
    return sanitize(f"{type(error).__name__}: {error}" if not isinstance(error, UnsupportedError) else str(error))


class _Sides(NamedTuple):
    """Both opened models."""

    base: OpenModel
    target: OpenModel


class _Comparing:
    """Comparison of two models, batch by batch."""

    def __init__(self, task: CompareTask, emit: Emit, sanitize: Sanitizer) -> None:
        self._task = task
        self._tell = emit
        self._told = sanitize

    def run(self) -> None:
        """Compare all batches."""
        for batch in self._task.batches:
            sides = self._open_runner(batch)
            if sides is None:
                return
            for run, feeds in enumerate(self._task.feeds):
                self._compare(run, feeds, sides, batch)

    def _open_runner(self, chosen: Sequence[int]) -> _Sides | None:
        models = []
        for side, subject in enumerate((self._task.base, self._task.target)):
            names = list(dict.fromkeys(self._task.pairs[number][side] for number in chosen))
            settings = (side and self._task.target_settings) or self._task.settings
            model = _open(side, subject, settings, self._tell, self._told, names)
            if model is None:
                return None
            models.append(model)
        return _Sides(*models)

    def _compare(self, run: int, feeds: tuple[bytes, bytes], sides: _Sides, chosen: Sequence[int]) -> None:
        found: list[dict[str, Value]] = []
        for side in _SIDES:
            names = list(dict.fromkeys(self._task.pairs[number][side] for number in chosen))
            try:
                found.append(sides[side].run(unpacked_values(feeds[side]), names))
            except MemoryError:
                raise
            except Exception as error:
                self._tell(Failed(run=run, side=side, problem=_message(error, self._told)))
        if len(found) < len(_SIDES):
            return
        for number in chosen:
            base, target = self._task.pairs[number]
            comparison, dtypes = self._compared(found[0][base], found[1][target])
            self._tell(Compared(run=run, pair=number, comparison=comparison, dtypes=dtypes))

    def _compared(self, one: Value, other: Value) -> tuple[Comparison, tuple[str, str]]:
        dtypes = dtype_of(one), dtype_of(other)
        if self._task.reshaped and isinstance(one, Tensor) and isinstance(other, Tensor) and _is_reshaped(one, other):
            other = msgspec.structs.replace(other, dims=one.dims)
            comparison = compare_values(one, other, self._task.tolerances)
            # Equal numbers of elements also fit after a transposition, which moves them.
            return comparison if comparison.close else _moved(comparison), dtypes
        return compare_values(one, other, self._task.tolerances), dtypes


def _is_reshaped(one: Tensor, other: Tensor) -> bool:
    return one.dims != other.dims and element_count(one.dims) == element_count(other.dims)


def _moved(comparison: Comparison) -> Comparison:
    return msgspec.structs.replace(comparison, problem="another shape")


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
