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
from onnxjson.running.tasks import Failed, Lap, Opened, RaceTask, Runner, Started, Subject, Tell, Told
from onnxjson.running.values import unpacked_values
from onnxjson.worker_evaluation import UnsupportedError

_OFF: Final = "off"

_BLOCKS: Final = 5
"""How often the turn of a session comes that is timed alone."""


def raced(task: RaceTask, tell: Tell, told: Told) -> None:
    """Times all models of a race, and tells every time at once.

    A model that fails is told once and left out. Sessions with threads of their own are open one at a time, since these
    threads go on spinning between runs and would take the processor from the others.
    """
    alone = any([each.settings.threads != 1 or each.settings.parallel for each in task.runners])
    numbers: list[int] = []
    racing: dict[int, Callable[[], object]] = {}
    for number in range(len(task.runners)):
        once = _opened(task, number, tell, told)
        if once is not None:
            numbers.append(number)
            if not alone:
                racing[number] = once
        del once
    _time_starts(task, numbers, tell, told)
    if alone:
        _race_in_blocks(task, numbers, tell, told)
    else:
        _race(task, racing, tell)


def _opened(task: RaceTask, number: int, tell: Tell, told: Told) -> Callable[[], object] | None:
    """What runs a model once; None where that fails, which is told."""
    runner = task.runners[number]
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
        return None
    tell(Opened(side=number, engine=model.engine, seconds=seconds, providers=model.providers))
    return once


def _lap(number: int, once: Callable[[], object], tell: Tell) -> None:
    started = time.perf_counter()
    once()
    tell(Lap(runner=number, seconds=time.perf_counter() - started))


def _race(task: RaceTask, racing: dict[int, Callable[[], object]], tell: Tell) -> None:
    """Run for run in turn."""
    order = list(racing)
    chance = random.Random(task.seed)
    for _ in range(task.warm_up):
        for number in order:
            racing[number]()
    until = time.monotonic() + task.seconds
    for lap in range(task.rounds):
        if lap and time.monotonic() > until:
            break
        chance.shuffle(order)
        for number in order:
            _lap(number, racing[number], tell)


def _race_in_blocks(task: RaceTask, numbers: list[int], tell: Tell, told: Told) -> None:
    """Some runs of each in turn, with one session open."""
    order = list(numbers)
    chance = random.Random(task.seed)
    blocks = min(_BLOCKS, task.rounds)
    share = task.seconds / max(blocks * len(order), 1)
    for block in range(blocks):
        laps = task.rounds * (block + 1) // blocks - task.rounds * block // blocks
        chance.shuffle(order)
        for number in order:
            runner = task.runners[number]
            model = opened(runner.subject, runner.settings, told)
            once = model.repeated(unpacked_values(runner.feed))
            for _ in range(task.warm_up):
                once()
            until = time.monotonic() + share
            for lap in range(laps):
                if (lap or block) and time.monotonic() > until:
                    break
                _lap(number, once, tell)
            del model, once


def _time_starts(task: RaceTask, numbers: list[int], tell: Tell, told: Told) -> None:
    if not task.starts:
        return
    offline = {number: _offline(task.runners[number], Path(f"offline-{number}.onnx")) for number in numbers}
    for _ in range(task.starts):
        for number in numbers:
            tell(Started(runner=number, seconds=_start(task.runners[number], told), offline=False))
            before = offline[number]
            if before is not None:
                tell(Started(runner=number, seconds=_start(before, told), offline=True))


def _start(runner: Runner, told: Told) -> float:
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
