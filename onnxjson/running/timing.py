"""Time models inside the sandboxed process: node by node with a profile, or several models side by side."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.running import tasks
from onnxjson.running.engines import Onnxruntime, message_of, open_model, write_optimized
from onnxjson.running.tasks import Emit, Sanitizer, Settings, Subject
from onnxjson.running.values import Values, unpacked_values

_KERNEL: Final = "_kernel_time"

_SECONDS: Final = 1.0
"""Time after which results are reported and another session continues."""

_OFF: Final = "off"

_STARTS_SECONDS: Final = 1.0
"""Seconds after which sessions are opened no more: the times of slow starts differ little."""

_BLOCKS: Final = 5
"""Number of turns of each session, if only one is open at a time."""


def profiles(subject: Subject, settings: Settings, values: Values, runs: int) -> Iterator[tasks.Profiled]:
    """Yield the times of all nodes of the optimized graph in the runs so far, and the events of the last session.

    A session writes its measurements when it ends, and at most a million events; so several sessions take turns. The
    first run of each session, which allocates memory, is not counted. The profiles are files in the current folder.
    """
    total: dict[str, tasks.NodeTime] = {}
    done = 0
    while done < runs:
        model = Onnxruntime(subject, settings, (), Path.cwd() / "profile")
        once = model.repeated(values)
        once()
        until = time.monotonic() + _SECONDS
        for _ in range(runs - done):
            once()
            done += 1
            if time.monotonic() > until:
                break
        events = model.events()
        for node_time in _node_times(json.loads(events)):
            before = total.get(node_time.name)
            total[node_time.name] = node_time if before is None else msgspec.structs.replace(
                node_time, calls=before.calls + node_time.calls, seconds=before.seconds + node_time.seconds
            )  # fmt: skip
        del model, once
        nodes = tuple(sorted(total.values(), key=lambda each: -each.seconds))
        yield tasks.Profiled(runs=done, nodes=nodes, events=events)


def _node_times(events: Sequence[Mapping[str, Any]]) -> Iterator[tasks.NodeTime]:
    ends = [event["ts"] + event["dur"] for event in events if event.get("name") == "model_run"]
    first = min(ends, default=0)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(_KERNEL) and event["ts"] >= first:
            arguments = event.get("args", {})
            yield tasks.NodeTime(
                name=event["name"].removesuffix(_KERNEL),
                operator=arguments.get("op_name", ""),
                provider=arguments.get("provider", ""),
                calls=1,
                seconds=event["dur"] / 1e6,
            )


def run_race(task: tasks.RaceTask, emit: Emit, sanitize: Sanitizer) -> None:
    """Time all models of a race, and report each time immediately.

    A model that fails is reported once and left out. Sessions with several threads are open one at a time: their
    threads keep spinning between runs and would slow down the others.
    """
    alone = any([each.settings.threads != 1 or each.settings.parallel for each in task.runners])
    numbers: list[int] = []
    racing: dict[int, Callable[[], object]] = {}
    for number in range(len(task.runners)):
        once = _open_runner(task, number, emit, sanitize)
        if once is not None:
            numbers.append(number)
            if not alone:
                racing[number] = once
        del once
    _time_starts(task, numbers, emit, sanitize)
    if alone:
        _race_in_blocks(task, numbers, emit, sanitize)
    else:
        _race(task, racing, emit)


def _open_runner(task: tasks.RaceTask, number: int, emit: Emit, sanitize: Sanitizer) -> Callable[[], object] | None:
    """Return a function that runs a model once; if it fails, report that and return None."""
    runner = task.runners[number]
    try:
        started = time.perf_counter()
        model = open_model(runner.subject, runner.settings, sanitize)
        seconds = time.perf_counter() - started
        once = model.repeated(unpacked_values(runner.feed))
        once()
    except MemoryError:
        raise
    except Exception as error:
        emit(tasks.Failed(run=number, problem=message_of(error, sanitize)))
        return None
    emit(tasks.Opened(side=number, engine=model.engine, seconds=seconds, providers=model.providers))
    return once


def timed(once: Callable[[], object]) -> float:
    """Call a function and return the seconds that it ran."""
    started = time.perf_counter()
    once()
    return time.perf_counter() - started


def _race(task: tasks.RaceTask, racing: dict[int, Callable[[], object]], emit: Emit) -> None:
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
            emit(tasks.Timed(runner=number, seconds=timed(racing[number])))


def _race_in_blocks(task: tasks.RaceTask, numbers: list[int], emit: Emit, sanitize: Sanitizer) -> None:
    """Run each model several times in turn, with only one session open."""
    order = list(numbers)
    chance = random.Random(task.seed)
    blocks = min(_BLOCKS, task.rounds)
    share = task.seconds / max(blocks * len(order), 1)
    for block in range(blocks):
        laps = task.rounds * (block + 1) // blocks - task.rounds * block // blocks
        chance.shuffle(order)
        for number in order:
            runner = task.runners[number]
            model = open_model(runner.subject, runner.settings, sanitize)
            once = model.repeated(unpacked_values(runner.feed))
            for _ in range(task.warm_up):
                once()
            until = time.monotonic() + share
            for lap in range(laps):
                if (lap or block) and time.monotonic() > until:
                    break
                emit(tasks.Timed(runner=number, seconds=timed(once)))
            del model, once


def _time_starts(task: tasks.RaceTask, numbers: list[int], emit: Emit, sanitize: Sanitizer) -> None:
    if not task.starts:
        return
    offline = {number: _offline(task.runners[number], Path(f"offline-{number}.onnx")) for number in numbers}
    until = time.monotonic() + _STARTS_SECONDS
    for lap in range(task.starts):
        if lap and time.monotonic() > until:
            break
        for number in numbers:
            emit(tasks.Started(runner=number, seconds=_start(task.runners[number], sanitize), offline=False))
            before = offline[number]
            if before is not None:
                emit(tasks.Started(runner=number, seconds=_start(before, sanitize), offline=True))


def _start(runner: tasks.Runner, sanitize: Sanitizer) -> float:
    started = time.perf_counter()
    opened = open_model(runner.subject, runner.settings, sanitize)
    seconds = time.perf_counter() - started
    del opened  # which also takes time
    return seconds


def _offline(runner: tasks.Runner, path: Path) -> tasks.Runner | None:
    """Return the model optimized in advance; None if nothing is optimized or the result cannot be opened."""
    settings = runner.settings
    if settings.level == _OFF or runner.subject.data_folder is not None or "onnxruntime" not in settings.engines:
        return None
    try:
        write_optimized(runner.subject, settings, path)
        offline = tasks.Runner(
            subject=Subject(model=path.read_bytes()),
            settings=msgspec.structs.replace(settings, level=_OFF, engines=("onnxruntime",)),
            feed=runner.feed,
        )
        open_model(offline.subject, offline.settings, str)
    except MemoryError:
        raise
    except Exception:
        return None
    return offline
