"""What the guarded process is asked to do with models, and what it tells while it does.

Reports go to a file, each with its length before it, so that whatever was found is there even where the process
crashes, is killed, or is interrupted by the person who waits for it.
"""

import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Literal

import msgspec

from onnxjson.running.tolerances import Comparison, Tolerance
from onnxjson.worker_tasks import ENGINES, Engine

Level = Literal["off", "basic", "extended", "layout", "all"]
"""How much onnxruntime optimises a graph before it runs; each level has those before it."""

REPORTS: Final = "reports"
"""The name of the file of reports, in the folder of the task."""

_LENGTH: Final = struct.Struct(">Q")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How models are evaluated."""

    engines: tuple[Engine, ...] = ENGINES
    """The first one that takes a model evaluates it."""
    level: Level = "off"
    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    """Execution providers of onnxruntime, best first."""
    threads: int = 1
    """Within an operator; 0 for as many as onnxruntime takes."""
    parallel: int = 0
    """Operators side by side, in so many threads; 0 for one after the other."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A model to evaluate."""

    model: bytes
    """Serialised."""
    data_folder: str | None = None
    """Where its external data is; None where every tensor stands in it."""
    seed: int = 1
    """Of the operators that give random results."""


class RunTask(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """Run one model; tell what it gives and how long that takes."""

    subject: Subject
    settings: Settings
    feeds: tuple[bytes, ...]
    """Values for its inputs, as `onnxjson.running.values.packed_values` writes them; the first ones are timed."""
    warm_up: int = 0
    repeat: int = 0
    """How many runs are timed."""
    profiled: int = 0
    """How many runs are profiled, in a session of their own."""


class CompareTask(msgspec.Struct, frozen=True, kw_only=True, tag="compare"):
    """Run two models on the same values and compare what they give."""

    base: Subject
    target: Subject
    settings: Settings
    feeds: tuple[tuple[bytes, bytes], ...]
    """For each run the values for both."""
    pairs: tuple[tuple[str, str], ...]
    """Values to compare, by their names in both main graphs; outputs or not."""
    batches: tuple[tuple[int, ...], ...]
    """The numbers of pairs that are compared together, so that memory stays bounded."""
    reshaped: bool = False
    """Whether values of another shape are compared all the same where they have as many elements."""
    tolerances: dict[str, Tolerance]
    target_settings: Settings | None = None
    """How the target is evaluated, where that is another way."""


class SeriesTask(msgspec.Struct, frozen=True, kw_only=True, tag="series"):
    """Run many models one after the other, since a new process costs more than a small model."""

    tasks: tuple[RunTask, ...]


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """A model in a race."""

    subject: Subject
    settings: Settings
    feed: bytes
    """Values for its inputs."""


class RaceTask(msgspec.Struct, frozen=True, kw_only=True, tag="race"):
    """Time models side by side: round for round each of them runs once, in an order of chance."""

    runners: tuple[Runner, ...]
    warm_up: int = 1
    rounds: int = 0
    starts: int = 0
    """How often each model is opened, as it is and as it was optimised before."""
    seconds: float = 1e9
    """No round begins later than that."""
    seed: int = 0
    """Of the order."""


class ScoreTask(msgspec.Struct, frozen=True, kw_only=True, tag="score"):
    """Let a script of the person who asks judge a model."""

    subject: Subject
    settings: Settings
    script: str
    """Its path; it defines ``evaluate(run)``."""
    inputs: dict[str, tuple[str, int]] = {}
    """What the script calls an input -> what the model calls it, and its data type, 0 where nobody knows it."""
    outputs: dict[str, str] = {}
    """What the model calls an output -> what the script calls it."""


Task = RunTask | CompareTask | SeriesTask | RaceTask | ScoreTask


class Began(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    """What follows is about this task of a series."""

    task: int


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """A model is ready to run."""

    side: int = 0
    engine: Engine
    seconds: float
    providers: tuple[str, ...] = ()
    """Those that onnxruntime uses."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """No engine takes a model."""

    side: int = 0
    problem: str
    """For a person; made visible."""


class Gave(msgspec.Struct, frozen=True, kw_only=True, tag="gave"):
    """What a run gave."""

    run: int
    values: bytes
    seconds: float


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """A run gave nothing."""

    run: int
    side: int = 0
    problem: str
    """For a person; made visible."""


class Timed(msgspec.Struct, frozen=True, kw_only=True, tag="timed"):
    """What one run took."""

    seconds: float


class NodeTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one node of the optimised graph took, in all runs of a profile."""

    name: str
    operator: str
    provider: str
    calls: int
    seconds: float


class Profiled(msgspec.Struct, frozen=True, kw_only=True, tag="profiled"):
    """Where the time went, in all runs until now; the last one of a task is about all of them."""

    runs: int
    nodes: tuple[NodeTime, ...]
    """The slowest first."""


class Compared(msgspec.Struct, frozen=True, kw_only=True, tag="compared"):
    """Two values of one run."""

    run: int
    pair: int
    comparison: Comparison
    dtypes: tuple[str, str]
    """Of both; "" for what has none."""


class Lap(msgspec.Struct, frozen=True, kw_only=True, tag="lap"):
    """What one run of a race took."""

    runner: int
    seconds: float


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """What it took to open a model of a race."""

    runner: int
    seconds: float
    offline: bool
    """Whether it was optimised before, so that it is not when it is opened."""


class Scored(msgspec.Struct, frozen=True, kw_only=True, tag="scored"):
    """What a script says of a model."""

    scores: dict[str, float]


Report = Began | Opened | Refused | Gave | Failed | Timed | Profiled | Compared | Lap | Started | Scored


Tell = Callable[[Report], None]
"""Is told every finding at once."""
Told = Callable[[str], str]
"""Makes a message of native code safe to print, on one line."""


def write_report(report: Report, file: BinaryIO) -> None:
    """Appends a report to an unbuffered file."""
    data = msgspec.msgpack.encode(report)
    file.write(_LENGTH.pack(len(data)) + data)


def read_reports(file: BinaryIO) -> Iterator[Report]:
    """The reports from where a file stands to the last whole one, which it stands behind then."""
    while True:
        start = file.tell()
        head = file.read(_LENGTH.size)
        data = file.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
        if len(head) < _LENGTH.size or len(data) < _LENGTH.unpack(head)[0]:
            file.seek(start)
            return
        try:
            yield msgspec.msgpack.decode(data, type=Report)
        except msgspec.MsgspecError:
            return
