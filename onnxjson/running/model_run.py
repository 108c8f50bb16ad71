"""Run models on given or random inputs, in the sandboxed process; report outputs, times and execution providers."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from onnxjson.model.brief import Brief
from onnxjson.model.by_name import Named
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import EvaluationError, FeedError
from onnxjson.model.index import Index
from onnxjson.model.methods import Reported
from onnxjson.running.comparisons import Comparison, Tolerance, compare_values
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import InputOptions, free_inputs, inputs_of
from onnxjson.running.random_values import Spread
from onnxjson.running.sandbox import TIMEOUT, Listener, Outcome, execute, pack_model
from onnxjson.running.tasks import (
    Failed,
    NodeTime,
    Opened,
    Output,
    Placed,
    Profiled,
    Refused,
    RunTask,
    Settings,
    Timed,
)
from onnxjson.running.values import Value, as_array, as_value, dtype_of, packed_values, unpacked_values
from onnxjson.running.worker import Worker
from onnxjson.storage.api import model_and_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT = Settings(level="all")
"""Default settings of onnxruntime, but with one thread."""


class PlacedNode(msgspec.Struct, frozen=True):
    """One node of the optimized graph."""

    name: str
    operator: str
    provider: str
    address: str | None
    """Its node in the model; None if onnxruntime made it from several nodes, or from none."""
    origins: tuple[str, ...] = ()
    """All nodes of the model that it computes."""


class Placement(msgspec.Struct, frozen=True):
    """Where the nodes of a model run."""

    providers: dict[str, int]
    """Nodes of each execution provider."""
    cuts: int
    """Values that one provider computes and another one uses; each is copied or waited for."""
    kept_off: dict[str, int]
    """Operators of nodes that the first requested provider did not get, most nodes first."""
    removed: int
    """Nodes of the model that the basic optimizations removed."""
    nodes: tuple[PlacedNode, ...]


def placement_of(
    index: Index, placed: Iterable[Sequence[str]], wanted: str, origins: Mapping[str, Sequence[str]] | None = None
) -> Placement:
    """Return the placement of a model.

    Args:
        placed: name, operator and execution provider of each node of the optimized graph.
        wanted: the execution provider that was requested first.
        origins: the nodes of the model behind nodes of the optimized graph, by name; by default those of the same name.
    """
    nodes = []
    for name, operator, provider in placed:
        named = [ref.address for ref in index.nodes_with("name", name)] if name else []
        found = tuple((origins or {}).get(name) or named[:1] * (len(named) == 1))
        nodes.append(PlacedNode(name, operator, provider, found[0] if len(found) == 1 else None, found))
    provider_of = {address: each.provider for each in nodes for address in each.origins}
    crossing = set()
    for ref in index.node_refs:
        for name in ref.node.input:
            producer = index.producer(ref.scope, name) if name else None
            ends = None if producer is None else (provider_of.get(producer.address), provider_of.get(ref.address))
            if ends is not None and None not in ends and ends[0] != ends[1]:
                crossing.add((producer, name, ends[1]))
    off = Counter(each.operator for each in nodes if each.provider != wanted)
    return Placement(
        dict(Counter(each.provider for each in nodes)),
        len(crossing),
        dict(off.most_common()),
        len(index.node_refs) - len(provider_of),
        tuple(nodes),
    )


class RecordedComparison(NamedTuple):
    """Comparison of an output with the recorded one."""

    name: str
    dtype: str
    comparison: Comparison


class Case(NamedTuple):
    """Result of one run."""

    name: str
    """Source of its values: "seed 0", or the name of a folder."""
    inputs: dict[str, Value]
    outputs: dict[str, Value]
    seconds: float | None
    problem: str
    """Why the run failed; made visible."""
    expected: tuple[RecordedComparison, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether the run succeeded and its outputs are close to the recorded ones."""
        return not self.problem and all(each.comparison.close for each in self.expected)


class RunResult(Brief, Reported, msgspec.Struct, frozen=True):
    """Result of running a model."""

    verdict_name: ClassVar = ".problem, which is empty if nothing failed"

    engine: str
    """Engine that evaluated it: "onnxruntime" or "reference"."""
    providers: tuple[str, ...]
    settings: Settings
    opening_seconds: float
    """Time to open the model, including its optimization."""
    sizes: dict[str, int]
    """Sizes of dynamic dimensions, by name."""
    cases: tuple[Case, ...]
    times: tuple[float, ...]
    """Seconds of each timed run."""
    profile: tuple[NodeTime, ...]
    """Times of nodes, slowest first; empty without profile."""
    profiled_runs: int
    events: bytes
    """Events of the last profiled session, in the JSON format of chrome://tracing; empty if not requested."""
    placement: Placement | None
    """The execution provider of each node, if requested."""
    problem: str
    """Why the process failed; "" if it did not."""
    is_interrupted: bool

    @property
    def outputs(self) -> Named:
        """Outputs of the first run (`Value`) by name."""
        return Named(self.cases[0].outputs.items(), "a result does not change; dict(result.outputs) is a copy")

    @property
    def arrays(self) -> "dict[str, Any]":
        """Outputs of the first run as numpy arrays, lists of them, and dictionaries."""
        return {name: as_array(value) for name, value in self.outputs.items()}

    def __getitem__(self, name: str) -> Any:
        """An output of the first run as in `arrays`."""
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the outputs of the first run."""
        return iter(self.outputs)

    def __contains__(self, name: object) -> bool:
        return name in self.outputs

    @property
    def median(self) -> float | None:
        """Median time in seconds; None if nothing was timed."""
        return self.percentile(50)

    def percentile(self, share: float) -> float | None:
        """Return a percentile of the times in seconds; None if nothing was timed."""
        return percentile(self.times, share)


def percentile(times: Sequence[float], share: float) -> float | None:
    """Return a percentile, interpolated between two values; None if there are none."""
    if not times:
        return None
    import numpy

    return float(numpy.percentile(times, share))


def run(
    model: Model | str | Path,
    inputs: "Mapping[str, NDArray[Any] | Value] | Sequence[NDArray[Any]] | NDArray[Any] | None" = None,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    settings: Settings = DEFAULT,
    repeat: int = 0,
    warm_up: int = 1,
    profile: int = 0,
    timeout: float = TIMEOUT,
) -> RunResult:
    """Run a model in a sandboxed process.

    Args:
        model: the model, or its file.
        inputs: numpy arrays, lists of them for sequences, or tensors, by name; an array, or a list of arrays, is for
            the first inputs; missing inputs get random values.
        seed: seed of random values.
        dims: sizes of dynamic dimensions, by name; 1 by default.
        settings: level of optimization, threads, providers.
        repeat: number of timed runs.
        warm_up: number of runs before the timed runs.
        profile: number of profiled runs.
        timeout: time limit for everything, in seconds.

    Raises:
        EvaluationError: no engine supports the model, or it fails on these values.
        FeedError: values do not fit its inputs.
        MissingInputError, AccessDeniedError, FileError, DecodeError, LimitError: its file cannot be read as a model.
    """
    loaded, path = model_and_file(model)
    given = {name: as_value(value) for name, value in _by_name(loaded, inputs).items()}
    result = run_cases(
        loaded,
        None if path is None else path.parent,
        [DataSet(f"seed {seed}", given, {})],
        seed=seed,
        input_options=InputOptions(dims=dims or {}),
        settings=settings,
        repeat=repeat,
        warm_up=warm_up,
        profile=profile,
        timeout=timeout,
    )
    if result.cases[0].problem:
        raise EvaluationError(f"the model fails on these values: {result.cases[0].problem}")
    if result.problem:
        raise EvaluationError(result.problem)
    return result


def _by_name(model: Model, inputs: Any) -> Mapping[str, Any]:
    """Return values by the names of inputs; one array, or a list of arrays, is for the first inputs."""
    if inputs is None or isinstance(inputs, Mapping):
        return inputs or {}
    arrays = [inputs] if hasattr(inputs, "dtype") else list(inputs)
    names = list(free_inputs(model))
    if len(arrays) > len(names):
        raise FeedError(f"{counted(len(arrays), 'array')} given, but the model has {counted(len(names), 'input')}")
    return dict(zip(names, arrays, strict=False))


def run_cases(
    model: Model,
    folder: Path | None,
    sets: Sequence[DataSet],
    *,
    seed: int = 0,
    input_options: InputOptions | None = None,
    spread: Spread = "normal",
    settings: Settings = DEFAULT,
    tolerances: Mapping[str, Tolerance] | None = None,
    repeat: int = 0,
    warm_up: int = 1,
    profile: int = 0,
    events: bool = False,
    placement: bool = False,
    measured: Sequence[Sequence[str]] = (),
    timeout: float = TIMEOUT,
    trust_links: bool = False,
    worker: Worker | None = None,
    on_report: Listener | None = None,
) -> RunResult:
    """Run a model on several sets of values; see `run`. A failed run is reported in its case.

    Raises:
        EvaluationError: no engine supports the model, or the process crashed before the first run.
        FeedError: values do not fit its inputs.
    """
    sent = pack_model(model, folder, trust_links=trust_links)
    with nullcontext(worker) if worker is not None else Worker() as sandbox:
        until = time.monotonic() + timeout
        fed = _feeds(model, sandbox, input_options or InputOptions(), sets, (seed, spread, until))
        task = RunTask(
            subject=sent.subject,
            settings=settings,
            feeds=tuple(map(packed_values, fed.values)),
            warm_up=warm_up,
            repeat=repeat,
            profiled=profile,
            events=events,
            placed=placement,
            measured=tuple(map(tuple, measured)),
        )
        outcome = execute(
            sandbox, task, timeout=max(until - time.monotonic(), 0.1), on_report=on_report, size=sent.size
        )
    placed = outcome.first(Placed)
    place = (
        None if placed is None else placement_of(Index(model), placed.nodes, settings.providers[0].partition(":")[0])
    )
    return _result(outcome, fed, settings, tolerances, place)


class _Feeds(NamedTuple):
    sets: Sequence[DataSet]
    values: list[dict[str, Value]]
    sizes: dict[str, int]


def _feeds(
    model: Model, worker: Worker, options: InputOptions, sets: Sequence[DataSet], how: tuple[int, Spread, float]
) -> _Feeds:
    seed, spread, until = how
    fed = _Feeds(sets, [], {})
    for number, data_set in enumerate(sets):
        inputs = inputs_of(model, options, worker)
        unknown = [name for name in free_inputs(model) if name not in data_set.inputs]
        if data_set.outputs and unknown:
            raise FeedError(f'{data_set.name} has recorded outputs, but no value of "{visible(unknown[0])}"')
        fed.values.extend(inputs.feeds(data_set.inputs, (seed, number), spread=spread, until=until))
        if not number:
            fed.sizes.update(inputs.shapes.sizes((1,)))
    return fed


def _result(
    outcome: Outcome,
    fed: _Feeds,
    settings: Settings,
    tolerances: Mapping[str, Tolerance] | None,
    placement: Placement | None,
) -> RunResult:
    opened, refused = outcome.first(Opened), outcome.first(Refused)
    if refused is not None:
        raise EvaluationError(f"no engine runs this model: {refused.problem}")
    if opened is None and not outcome.interrupted:
        raise EvaluationError(f"the run {outcome.problem or 'reported nothing'}; nothing was run")
    outputs_of_run = {each.run: each for each in outcome.all(Output)}
    failed = {each.run: each.problem for each in outcome.all(Failed)}
    cases = []
    for number, (data_set, values) in enumerate(zip(fed.sets, fed.values, strict=True)):
        output = outputs_of_run.get(number)
        if output is None:
            ended = "interrupted before it" if outcome.interrupted else f"the run {outcome.problem}"
            cases.append(Case(data_set.name, values, {}, None, failed.get(number, ended)))
            continue
        outputs = unpacked_values(output.values)
        expected = tuple([
            RecordedComparison(name, dtype_of(value), compare_values(value, outputs.get(name), tolerances))
            for name, value in data_set.outputs.items()
        ])  # fmt: skip
        cases.append(Case(data_set.name, values, outputs, output.seconds, "", expected))
    profiles = outcome.all(Profiled)
    return RunResult(
        engine="" if opened is None else opened.engine,
        providers=() if opened is None else opened.providers,
        settings=settings,
        opening_seconds=0.0 if opened is None else opened.seconds,
        sizes=fed.sizes,
        cases=tuple(cases),
        times=tuple([each.seconds for each in outcome.all(Timed)]),
        profile=profiles[-1].nodes if profiles else (),
        profiled_runs=profiles[-1].runs if profiles else 0,
        events=profiles[-1].events if profiles else b"",
        placement=placement,
        problem=f"the run {outcome.problem}" if outcome.problem else "",
        is_interrupted=outcome.interrupted,
    )
