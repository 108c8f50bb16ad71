"""Tasks executed inside the guarded process: models run, timed, compared; every finding is told at once.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.document import Tensor
from onnxjson.elements import element_count
from onnxjson.running.engines import OpenModel, opened
from onnxjson.running.profiling import profiles
from onnxjson.running.racing import raced
from onnxjson.running.scoring import scored
from onnxjson.running.tasks import (
    REPORTS,
    Began,
    Compared,
    CompareTask,
    Failed,
    Gave,
    Opened,
    Profiled,
    RaceTask,
    Refused,
    Report,
    RunTask,
    ScoreTask,
    SeriesTask,
    Settings,
    Subject,
    Task,
    Tell,
    Timed,
    Told,
    write_report,
)
from onnxjson.running.tolerances import Comparison
from onnxjson.running.value_comparison import compare_values, dtype_of
from onnxjson.running.values import Value, packed_values, unpacked_values
from onnxjson.worker_evaluation import UnsupportedError

_SIDES: Final = (0, 1)


def executed(task: bytes, told: Told) -> None:
    """Does what a task asks for, and writes reports into a file of the current folder.

    Raises:
        msgspec.MsgspecError: it is no task.
    """
    found: Task = msgspec.msgpack.decode(task, type=Task)
    with Path(REPORTS).open("ab", buffering=0) as file:

        def tell(report: Report) -> None:
            write_report(report, file)

        match found:
            case RunTask():
                _run(found, tell, told)
            case CompareTask():
                _Comparing(found, tell, told).run()
            case SeriesTask(tasks=tasks):
                for number, each in enumerate(tasks):
                    tell(Began(task=number))
                    _run(each, tell, told)
            case RaceTask():
                raced(found, tell, told)
            case ScoreTask():
                scored(found, tell, told)


def _open(
    side: int, subject: Subject, settings: Settings, tell: Tell, told: Told, added: Sequence[str] = ()
) -> OpenModel | None:
    """A model, ready to run; None where no engine takes it, which is told."""
    started = time.perf_counter()
    try:
        model = opened(subject, settings, told, added)
    except UnsupportedError as error:
        tell(Refused(side=side, problem=str(error)))
        return None
    seconds = time.perf_counter() - started
    tell(Opened(side=side, engine=model.engine, seconds=seconds, providers=model.providers))
    return model


def _run(task: RunTask, tell: Tell, told: Told) -> None:
    model = _open(0, task.subject, task.settings, tell, told)
    if model is None:
        return
    has_run = False
    for number, feed in enumerate(task.feeds):
        try:
            started = time.perf_counter()
            given = model.run(unpacked_values(feed))
            seconds = time.perf_counter() - started
            tell(Gave(run=number, values=packed_values(given), seconds=seconds))
            has_run = has_run or number == 0
        except MemoryError:
            raise
        except Exception as error:
            tell(Failed(run=number, problem=_said(error, told)))
    if not has_run:
        return
    values = unpacked_values(task.feeds[0])
    if task.repeat:
        _time(model.repeated(values), task, tell)
    if task.profiled and model.engine == "onnxruntime":
        del model
        for runs, nodes in profiles(task.subject, task.settings, values, task.profiled):
            tell(Profiled(runs=runs, nodes=nodes))


def _time(once: Callable[[], object], task: RunTask, tell: Tell) -> None:
    for _ in range(task.warm_up):
        once()
    for _ in range(task.repeat):
        started = time.perf_counter()
        once()
        tell(Timed(seconds=time.perf_counter() - started))


def _said(error: Exception, told: Told) -> str:
    return told(f"{type(error).__name__}: {error}" if not isinstance(error, UnsupportedError) else str(error))


class _Sides(NamedTuple):
    """Both models, ready to run."""

    base: OpenModel
    target: OpenModel


class _Comparing:
    """A comparison of two models, batch by batch."""

    def __init__(self, task: CompareTask, tell: Tell, told: Told) -> None:
        self._task = task
        self._tell = tell
        self._told = told

    def run(self) -> None:
        """Compare all batches."""
        for batch in self._task.batches:
            sides = self._opened(batch)
            if sides is None:
                return
            for run, feeds in enumerate(self._task.feeds):
                self._compare(run, feeds, sides, batch)

    def _opened(self, chosen: Sequence[int]) -> _Sides | None:
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
                self._tell(Failed(run=run, side=side, problem=_said(error, self._told)))
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
            # The elements of others have moved, too, as a transposition moves them.
            return comparison if comparison.close else _moved(comparison), dtypes
        return compare_values(one, other, self._task.tolerances), dtypes


def _is_reshaped(one: Tensor, other: Tensor) -> bool:
    return one.dims != other.dims and element_count(one.dims) == element_count(other.dims)


def _moved(comparison: Comparison) -> Comparison:
    return msgspec.structs.replace(comparison, problem="another shape")
