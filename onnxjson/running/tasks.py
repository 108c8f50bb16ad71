"""Tasks for the sandboxed process, and the reports that it writes while it executes them.

Reports go to a file, each preceded by its length. So all results up to a crash, a kill or an interruption are kept.
"""

import os
import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Literal

import msgspec

from onnxjson.running.comparisons import Comparison, Tolerance

Engine = Literal["onnxruntime", "reference"]
"""Evaluator of models: onnxruntime, or the reference evaluator of onnx."""

ENGINES: Final[tuple[Engine, ...]] = ("onnxruntime", "reference")

Level = Literal["off", "basic", "extended", "layout", "all"]
"""Level of optimization by onnxruntime before a run; each level includes the ones before it."""

REPORTS: Final = "reports"
"""Name of the file of reports, in the folder of the task."""

_LENGTH: Final = struct.Struct(">Q")

Sanitizer = Callable[[str], str]
"""Function that turns a message of native code into one line that is safe to print."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for the evaluation of models."""

    engines: tuple[Engine, ...] = ENGINES
    """The first one that supports a model evaluates it."""
    level: Level = "off"
    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    """Execution providers of onnxruntime, best first, some with options: ``CUDAExecutionProvider:device_id=1``."""
    threads: int = 1
    """Threads within an operator; 0 lets onnxruntime choose."""
    parallel: int = 0
    """Threads that run operators in parallel; 0 runs operators one after the other."""
    session: tuple[tuple[str, str], ...] = ()
    """Entries of the session configuration of onnxruntime, such as ``session.disable_prepacking=1``."""
    binding: bool = False
    """Whether timed runs keep inputs and outputs in buffers of the provider (I/O binding)."""
    memory: int = 768 << 20
    """Bytes that the process may allocate, more for larger models: see `onnxjson.running.sandbox.execute`."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A model to evaluate."""

    model: bytes
    data_folder: str | None = None
    """Folder of its external data; None if all tensors are inside the model."""
    data_files: tuple[str, ...] = ()
    """Absolute paths of its external data files."""
    seed: int = 1


class RunTask(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """Run one model; report its outputs and times."""

    subject: Subject
    settings: Settings
    feeds: tuple[bytes, ...]
    """Values of its inputs for each run, written by `onnxjson.running.values.packed_values`; the first run is timed."""
    run_seconds: float | None = None
    """Seconds after which the process ends, counted from the opened model; the reports up to then are kept."""
    warm_up: int = 0
    repeat: int = 0
    profiled: int = 0
    events: bool = False
    """Whether the profile has its events, as onnxruntime writes them."""
    placed: bool = False
    """Whether to report the execution provider of each node."""
    measured: tuple[tuple[str, ...], ...] = ()
    """Values of the main graph whose figures in the first run are reported; those of an inner tuple in one run."""


class CompareTask(msgspec.Struct, frozen=True, kw_only=True, tag="compare"):
    """Run two models on the same values and compare their results."""

    base: Subject
    target: Subject
    settings: Settings
    feeds: tuple[tuple[bytes, bytes], ...]
    """For each run the values of the inputs of both models."""
    pairs: tuple[tuple[str, str], ...]
    """Names of the values to compare, in both main graphs; outputs or inner values."""
    batches: tuple[tuple[int, ...], ...]
    """Numbers of the pairs that are compared together, so that memory stays bounded."""
    reshaped: bool = False
    """Whether values of different shapes with equal numbers of elements are compared."""
    tolerances: dict[str, Tolerance]
    least: tuple[Tolerance, ...] = ()
    """The least tolerance of each pair; see `onnxjson.running.precision`."""
    target_settings: Settings | None = None
    rounding: Level | None = None
    """Level at which the base shows what rounding does to its results, which is then allowed; see
    `onnxjson.running.rounding`."""


SingleTask = RunTask | CompareTask


class SeriesTask(msgspec.Struct, frozen=True, kw_only=True, tag="series"):
    """Execute many tasks one after the other: a new process costs more than a small model."""

    tasks: tuple[SingleTask, ...]


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """A model in a race."""

    subject: Subject
    settings: Settings
    feed: bytes


class RaceTask(msgspec.Struct, frozen=True, kw_only=True, tag="race"):
    """Time several models: in each round every model runs once, in random order."""

    runners: tuple[Runner, ...]
    warm_up: int = 1
    rounds: int = 0
    starts: int = 0
    """Number of times each model is opened, both as it is and optimized in advance."""
    seconds: float = 1e9
    seed: int = 0


class ScoreTask(msgspec.Struct, frozen=True, kw_only=True, tag="score"):
    """Score a model with a script of the user."""

    subject: Subject
    settings: Settings
    script: str
    inputs: dict[str, tuple[str, int]] = {}
    """Name of an input in the script -> its name in the model and its data type, 0 if unknown."""
    outputs: dict[str, str] = {}
    """Name of an output in the model -> its name in the script."""


Task = RunTask | CompareTask | SeriesTask | RaceTask | ScoreTask


class Began(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    """The following reports are about this task of a series."""

    task: int


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """A model is ready to run."""

    side: int = 0
    engine: Engine
    seconds: float
    providers: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """No engine supports a model."""

    side: int = 0
    problem: str
    """Reason for the user; made visible."""


class Output(msgspec.Struct, frozen=True, kw_only=True, tag="output"):
    """Outputs of a run."""

    run: int
    values: bytes
    seconds: float


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """A run failed."""

    run: int
    side: int = 0
    problem: str
    """Reason for the user; made visible."""


class Timed(msgspec.Struct, frozen=True, kw_only=True, tag="timed"):
    """Time of one run, in a race of this runner."""

    runner: int = 0
    seconds: float


class NodeTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one node of the optimized graph, over all runs of a profile."""

    name: str
    operator: str
    provider: str
    calls: int
    seconds: float


class Profiled(msgspec.Struct, frozen=True, kw_only=True, tag="profiled"):
    """Times of nodes in all profiled runs so far; the last report of a task covers all runs."""

    runs: int
    nodes: tuple[NodeTime, ...]
    """Slowest first."""
    events: bytes = b""
    """Events of the last session that was profiled, in the JSON format of chrome://tracing."""


class Placed(msgspec.Struct, frozen=True, kw_only=True, tag="placed"):
    """The execution provider of each node after the basic optimizations: name, operator, provider."""

    nodes: tuple[tuple[str, str, str], ...]


class Compared(msgspec.Struct, frozen=True, kw_only=True, tag="compared"):
    """Comparison of two values of one run."""

    run: int
    pair: int
    comparison: Comparison
    dtypes: tuple[str, str]
    """Dtypes of both values, as `onnxjson.running.values.dtype_of` writes them."""


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag="measured"):
    """Figures of a tensor of numbers; None if no element is finite."""

    name: str
    minimum: float | None
    maximum: float | None
    mean: float | None
    nan: int
    """Number of elements that are NaN."""
    infinite: int


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """Time to open a model in a race."""

    runner: int
    seconds: float
    offline: bool
    """Whether the model was optimized in advance and not while it was opened."""


class Scored(msgspec.Struct, frozen=True, kw_only=True, tag="run_script"):
    """Scores of a model, computed by a script."""

    scores: dict[str, float]


Report = Began | Opened | Refused | Output | Failed | Timed | Profiled | Placed | Compared | Measured | Started | Scored


Emit = Callable[[Report], None]


def write_report(report: Report, file: BinaryIO) -> None:
    """Append a report to an unbuffered file."""
    data = msgspec.msgpack.encode(report)
    file.write(_LENGTH.pack(len(data)) + data)


def read_reports(file: BinaryIO) -> Iterator[Report]:
    """Yield the reports from the position of a file to the last complete one, and move the position after that."""
    while True:
        start = file.tell()
        head = file.read(_LENGTH.size)
        end = file.seek(0, os.SEEK_END)
        # The job may send a wrong length: memory is allocated only for bytes that exist.
        if len(head) < _LENGTH.size or _LENGTH.unpack(head)[0] > end - start - _LENGTH.size:
            file.seek(start)
            return
        file.seek(start + _LENGTH.size)
        data = file.read(_LENGTH.unpack(head)[0])
        try:
            yield msgspec.msgpack.decode(data, type=Report)
        except msgspec.MsgspecError:
            return
