"""Execute tasks inside the sandboxed process: run, time, compare and score models; report each result immediately.

Models are scored by a script of the user. It defines ``def evaluate(run)``, where ``run({"x": array})`` returns the
outputs by name. It returns ``{"loss": 0.1, "metric": 0.98}``, or these two numbers; further numbers are allowed.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import STRING, WIDE_FLOATS
from onnxjson.model.elements import element_count
from onnxjson.model.tensor_statistics import statistics
from onnxjson.model.tensors import from_numpy, numpy_dtype, to_numpy
from onnxjson.running import tasks
from onnxjson.running.comparisons import EXACT, Comparison, compare_values
from onnxjson.running.engines import OpenModel, UnsupportedError, message_of, open_model, placement
from onnxjson.running.rounding import noise_of
from onnxjson.running.tasks import Emit, Sanitizer, Settings, Subject
from onnxjson.running.timing import profiles, run_race, timed
from onnxjson.running.values import Value, Values, as_array, as_value, dtype_of, packed_values, unpacked_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIDES: Final = (0, 1)

_COLLECTED: Final = 0.1

_FUNCTION: Final = "evaluate"
_NAMES: Final = ("loss", "metric")


def execute_task(task: bytes, sanitize: Sanitizer) -> None:
    """Execute a task and write reports to a file in the current folder."""
    decoded: tasks.Task = msgspec.msgpack.decode(task, type=tasks.Task)
    with (
        Path(tasks.REPORTS).open("ab", buffering=0) as file,
        collected(lambda report: tasks.write_report(report, file)) as emit,
    ):
        match decoded:
            case tasks.RunTask() | tasks.CompareTask():
                _execute(decoded, emit, sanitize)
            case tasks.SeriesTask():
                for number, single in enumerate(decoded.tasks):
                    emit(tasks.Began(task=number))
                    _execute(single, emit, sanitize)
            case tasks.RaceTask():
                run_race(decoded, emit, sanitize)
            case tasks.ScoreTask():
                run_script(decoded, emit, sanitize)


@contextmanager
def collected(write: Emit) -> Iterator[Emit]:
    """Yield a function that writes reports, those of timed runs later: writing would slow down the next run."""
    pending: list[tasks.Report] = []
    until = time.monotonic() + _COLLECTED

    def flush() -> None:
        while pending:
            write(pending.pop(0))

    def emit(report: tasks.Report) -> None:
        nonlocal until
        pending.append(report)
        if not isinstance(report, tasks.Timed) or time.monotonic() > until:
            flush()
            until = time.monotonic() + _COLLECTED

    try:
        yield emit
    finally:
        flush()


def _open(
    side: int, subject: Subject, settings: Settings, emit: Emit, sanitize: Sanitizer, added: Sequence[str] = ()
) -> OpenModel | None:
    """Open a model; if no engine supports it, report that and return None."""
    started = time.perf_counter()
    try:
        model = open_model(subject, settings, sanitize, added)
    except UnsupportedError as error:
        emit(tasks.Refused(side=side, problem=str(error)))
        return None
    seconds = time.perf_counter() - started
    emit(tasks.Opened(side=side, engine=model.engine, seconds=seconds, providers=model.providers))
    return model


def _execute(task: tasks.SingleTask, emit: Emit, sanitize: Sanitizer) -> None:
    if isinstance(task, tasks.RunTask):
        _run(task, emit, sanitize)
    else:
        _compare(task, emit, sanitize)


def _run(task: tasks.RunTask, emit: Emit, sanitize: Sanitizer) -> None:
    model = _open(0, task.subject, task.settings, emit, sanitize)
    if model is None:
        return
    if task.run_seconds is not None:
        ending = threading.Timer(task.run_seconds, os._exit, (0,))
        ending.daemon = True
        ending.start()
    has_run = False
    if task.placed and model.engine == "onnxruntime":
        placed = placement(task.subject, task.settings)
        if placed is not None:
            emit(tasks.Placed(nodes=placed))
    for number, feed in enumerate(task.feeds):
        try:
            started = time.perf_counter()
            outputs = model.run(unpacked_values(feed))
            seconds = time.perf_counter() - started
            emit(tasks.Output(run=number, values=packed_values(outputs), seconds=seconds))
            has_run = has_run or number == 0
        except MemoryError:
            raise
        except Exception as error:
            emit(tasks.Failed(run=number, problem=message_of(error, sanitize)))
    if not has_run:
        return
    values = unpacked_values(task.feeds[0])
    if task.repeat:
        once = model.repeated(values)
        for number in range(-task.warm_up, task.repeat):
            seconds = timed(once)
            if number >= 0:
                emit(tasks.Timed(seconds=seconds))
        del once
    for names in task.measured:
        _measure(task, names, values, emit, sanitize)
    if task.profiled and model.engine == "onnxruntime":
        del model
        for profile in profiles(task.subject, task.settings, values, task.profiled):
            emit(profile if task.events else msgspec.structs.replace(profile, events=b""))


def _measure(task: tasks.RunTask, names: Sequence[str], values: Values, emit: Emit, sanitize: Sanitizer) -> None:
    """Report figures of inner values."""
    model = _open(0, task.subject, task.settings, emit, sanitize, names)
    if model is None:
        return
    try:
        computed = model.run(values, names)
    except MemoryError:
        raise
    except Exception as error:
        emit(tasks.Failed(run=0, problem=message_of(error, sanitize)))
        return
    for name, value in computed.items():
        if isinstance(value, Tensor) and value.data_type != STRING:
            figures = statistics(value if value.raw_data is not None else from_numpy(to_numpy(value)), bins=1)
            infinite = figures.positive_infinity + figures.negative_infinity
            emit(
                tasks.Measured(
                    name=name,
                    minimum=figures.minimum,
                    maximum=figures.maximum,
                    mean=figures.mean,
                    nan=figures.nan,
                    infinite=infinite,
                )
            )


def _compare(task: tasks.CompareTask, emit: Emit, sanitize: Sanitizer) -> None:
    for batch in task.batches:
        names = [list(dict.fromkeys(task.pairs[number][side] for number in batch)) for side in _SIDES]
        models = []
        for side, subject in enumerate((task.base, task.target)):
            settings = (side and task.target_settings) or task.settings
            model = _open(side, subject, settings, emit, sanitize, names[side])
            if model is None:
                return
            models.append(model)
        rounded = task.rounding and _open(
            0, task.base, msgspec.structs.replace(task.settings, level=task.rounding), emit, sanitize, names[0]
        )
        for run, feeds in enumerate(task.feeds):
            results: list[dict[str, Value]] = []
            for side in _SIDES:
                try:
                    if not side or feeds[side] != feeds[0]:
                        fed = unpacked_values(feeds[side])
                    results.append(models[side].run(fed, names[side]))
                except MemoryError:
                    raise
                except Exception as error:
                    emit(tasks.Failed(run=run, side=side, problem=message_of(error, sanitize)))
            if len(results) < len(_SIDES):
                continue
            noise = noise_of(rounded, unpacked_values(feeds[0]), results[0], seed=run) if rounded else {}
            for number in batch:
                base, target = task.pairs[number]
                values = results[0][base], results[1][target]
                dtypes = dtype_of(values[0]), dtype_of(values[1])
                comparison = _compared(task, number, *values, noise.get(base))
                emit(tasks.Compared(run=run, pair=number, comparison=comparison, dtypes=dtypes))


def _compared(task: tasks.CompareTask, pair: int, one: Value, other: Value, noise: "NDArray[Any] | None") -> Comparison:
    least = task.least[pair] if task.least else EXACT
    if not (task.reshaped and isinstance(one, Tensor) and isinstance(other, Tensor) and _is_reshaped(one, other)):
        return compare_values(one, other, task.tolerances, least, noise)
    comparison = compare_values(one, msgspec.structs.replace(other, dims=one.dims), task.tolerances, least)
    # Equal numbers of elements also fit after a transposition, which moves them.
    return comparison if comparison.close else msgspec.structs.replace(comparison, problem="another shape")


def _is_reshaped(one: Tensor, other: Tensor) -> bool:
    return one.dims != other.dims and element_count(one.dims) == element_count(other.dims)


class ScriptError(Exception):
    """The script is not valid."""


def run_script(task: tasks.ScoreTask, emit: Emit, sanitize: Sanitizer) -> None:
    """Run the script in its own folder, and report its scores or its failure."""
    path = Path(task.script)
    try:
        model = open_model(task.subject, task.settings, sanitize)
        os.chdir(path.parent)
        sys.path.insert(0, str(path.parent))

        def run(values: Mapping[str, Any]) -> dict[str, Any]:
            inputs = dict([_input(task, name, value) for name, value in values.items()])
            return {task.outputs.get(name, name): as_array(value) for name, value in model.run(inputs).items()}

        emit(tasks.Scored(scores=_scores(_function(path)(run))))
    except MemoryError:
        raise
    except ScriptError as error:
        emit(tasks.Failed(run=0, problem=sanitize(f"{path.name}: {error}")))
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        place = f"{path.name}:{lines[-1]}: " if lines else ""
        emit(tasks.Failed(run=0, problem=sanitize(f"{place}{type(error).__name__}: {error}")))


def _input(task: tasks.ScoreTask, name: str, value: Any) -> tuple[str, Value]:
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
        raise ScriptError(f'{_FUNCTION} returns a {name}; it must return {{"loss": ..., "metric": ...}}')
    try:
        return {str(name): float(value) for name, value in result.items()}
    except (TypeError, ValueError) as error:
        raise ScriptError(f"{_FUNCTION} returns something that is not a number: {error}") from None
