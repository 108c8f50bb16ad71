"""Where the time of a model goes: what each node takes of the graph that onnxruntime really runs.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.running.engines import Onnxruntime
from onnxjson.running.tasks import NodeTime, Settings, Subject
from onnxjson.running.values import Values

_KERNEL: Final = "_kernel_time"

_SECONDS: Final = 1.0
"""After which what was profiled is told, and another session goes on."""


def profiles(
    subject: Subject, settings: Settings, values: Values, runs: int
) -> Iterator[tuple[int, tuple[NodeTime, ...]]]:
    """What each node of the graph that onnxruntime runs took, the slowest first; ever more of `runs`, and how many.

    A session writes what it measured when it ends, and a million events at most; so several of them take turns. The
    first run of each, in which memory is allotted, is not counted. Files of the current folder hold the profiles.
    """
    total: dict[str, NodeTime] = {}
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
        for each in _node_times(model.events()):
            before = total.get(each.name)
            total[each.name] = each if before is None else msgspec.structs.replace(
                each, calls=before.calls + each.calls, seconds=before.seconds + each.seconds
            )  # fmt: skip
        del model, once
        yield done, tuple(sorted(total.values(), key=lambda each: -each.seconds))


def _node_times(events: Sequence[Mapping[str, Any]]) -> Iterator[NodeTime]:
    ends = [event["ts"] + event["dur"] for event in events if event.get("name") == "model_run"]
    first = min(ends, default=0)
    found: dict[str, list[Any]] = {}
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith(_KERNEL) or event["ts"] < first:
            continue
        arguments = event.get("args", {})
        row = found.setdefault(
            event["name"].removesuffix(_KERNEL), [arguments.get("op_name", ""), arguments.get("provider", ""), 0, 0.0]
        )
        row[2] += 1
        row[3] += event["dur"] / 1e6
    for name, (operator, provider, calls, seconds) in found.items():
        yield NodeTime(name=name, operator=operator, provider=provider, calls=calls, seconds=seconds)
