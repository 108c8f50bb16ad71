"""Models timed side by side in one process: whatever else the machine does meets all of them alike.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.running.engines import OpenModel, opened, write_optimized
from onnxjson.running.tasks import Failed, Lap, Opened, RaceTask, Report, Runner, Started, Subject
from onnxjson.running.values import unpacked_values
from onnxjson.worker_evaluation import UnsupportedError

_OFF: Final = "off"


def raced(task: RaceTask, tell: Callable[[Report], None], told: Callable[[str], str]) -> None:
    """Times all models of a race, and tells every time at once.

    A model that fails is told once and left out.
    """
    racing: dict[int, Callable[[], object]] = {}
    for number, runner in enumerate(task.runners):
        try:
            started = time.perf_counter()
            model = opened(runner.subject, runner.settings, told)
            seconds = time.perf_counter() - started
            once = model.repeated(unpacked_values(runner.feed))
            once()
        except MemoryError:
            raise
        except Exception as error:
            text = str(error) if isinstance(error, UnsupportedError) else f"{type(error).__name__}: {error}"
            tell(Failed(run=number, problem=told(text)))
            continue
        tell(Opened(side=number, engine=model.engine, seconds=seconds, providers=model.providers))
        racing[number] = once
    _time_starts(task, list(racing), tell, told)
    order = list(racing)
    chance = random.Random(task.seed)
    until = time.monotonic() + task.seconds
    for lap in range(task.warm_up + task.rounds):
        if time.monotonic() > until:
            break
        chance.shuffle(order)
        for number in order:
            once = racing[number]
            started = time.perf_counter()
            once()
            seconds = time.perf_counter() - started
            if lap >= task.warm_up:
                tell(Lap(runner=number, seconds=seconds))


def _time_starts(
    task: RaceTask, numbers: list[int], tell: Callable[[Report], None], told: Callable[[str], str]
) -> None:
    if not task.starts:
        return
    offline = {number: _offline(task.runners[number], Path(f"offline-{number}.onnx")) for number in numbers}
    for _ in range(task.starts):
        for number in numbers:
            tell(Started(runner=number, seconds=_start(task.runners[number], told), offline=False))
            before = offline[number]
            if before is not None:
                tell(Started(runner=number, seconds=_start(before, told), offline=True))


def _start(runner: Runner, told: Callable[[str], str]) -> float:
    started = time.perf_counter()
    model: OpenModel = opened(runner.subject, runner.settings, told)
    seconds = time.perf_counter() - started
    del model
    return seconds


def _offline(runner: Runner, path: Path) -> Runner | None:
    """The model as it was optimised before; None where nothing is optimised, or the result does not open."""
    settings = runner.settings
    if settings.level == _OFF or runner.subject.data_folder is not None or "onnxruntime" not in settings.engines:
        return None
    try:
        write_optimized(runner.subject, settings, path)
        made = Runner(
            subject=Subject(model=path.read_bytes()),
            settings=msgspec.structs.replace(settings, level=_OFF, engines=("onnxruntime",)),
            feed=runner.feed,
        )
        opened(made.subject, made.settings, str)
    except MemoryError:
        raise
    except Exception:
        return None
    return made
