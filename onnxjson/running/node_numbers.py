"""Numbers about the nodes of a model: how long each runs, what it computes, and how that differs in another model.

The figures of a node are those of its first output. All runs are without optimization, which would fuse nodes.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.model.constants import is_constant_node
from onnxjson.model.document import Model
from onnxjson.model.errors import EvaluationError
from onnxjson.model.index import Index, Scope
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import InputOptions
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.loading import MarkedNodes
from onnxjson.running.locating import batches, locate, value_sizes
from onnxjson.running.model_run import run_cases
from onnxjson.running.tasks import Measured, Report, Settings
from onnxjson.running.verification import Plan, Verifier
from onnxjson.running.worker import Worker

_RUNS: Final = 10
"""Number of profiled runs."""

_TELLS: Final = 1.0
"""Seconds between numbers that are shown while a model runs."""

Numbers = dict[str, dict[str, float]]
"""What is measured -> address of a node -> number."""


class Difference(NamedTuple):
    """The values of a model compared with those of another one."""

    numbers: dict[str, float]
    """Largest absolute differences by the address of the node; infinite where values have another shape."""
    first: str | None
    """Address of the node at which the models begin to differ."""
    inputs: DataSet
    """The values of the inputs of the target."""


def node_numbers(
    model: Model,
    folder: Path | None,
    worker: Worker,
    sets: Sequence[DataSet],
    dims: Mapping[str, int],
    on_numbers: Callable[[Numbers], None] = lambda _: None,
) -> tuple[Numbers, str]:
    """Run a model; return the numbers of the nodes of its main graph, and what failed, "" if nothing.

    Args:
        sets: values of inputs, of which the first are used; others are random.
        dims: sizes of open dimensions, 1 by default.
        on_numbers: gets those that are known so far, about once a second, in the thread of the caller.

    Raises:
        EvaluationError: no engine supports the model, or it fails on these values.
        FeedError: values do not fit its inputs.
    """
    index, marked = Index(model), MarkedNodes(model)
    scope = index.main
    if scope is None:
        raise EvaluationError("the model has no graph to run")
    computing = [(place, node) for place, node in enumerate(scope.graph.node) if not is_constant_node(node)]
    values = {node.output[0]: place for place, node in computing if node.output and node.output[0]}
    sizes = value_sizes(InferredTypes(index, worker), scope, values, dims)
    order = list(values)
    columns: Numbers = {"ms": {}, "min": {}, "max": {}, "mean": {}, "NaN": {}}
    told = time.monotonic()

    def listen(report: Report) -> None:
        nonlocal told
        if not isinstance(report, Measured):
            return
        address = _address(scope, values[report.name])
        figures = {"min": report.minimum, "max": report.maximum, "mean": report.mean, "NaN": float(report.nan)}
        for title, value in figures.items():
            if value is not None:
                columns[title][address] = value
        if time.monotonic() > told + _TELLS:
            on_numbers(_copied(columns))
            told = time.monotonic()

    result = run_cases(
        marked.model, folder, sets[:1] or [DataSet("seed 0", {}, {})],
        input_options=InputOptions(dims=dims), settings=Settings(), profile=_RUNS, worker=worker,
        measured=[[order[number] for number in batch] for batch in batches(sizes)], on_report=listen,
    )  # fmt: skip
    if result.cases[0].problem:
        raise EvaluationError(f"the model fails on these values: {result.cases[0].problem}")
    addresses = {_address(scope, place) for place in range(len(scope.graph.node))}
    for each in result.profile:
        if (address := marked.read(each.name)[1]) in addresses:
            columns["ms"][address] = 1e3 * each.seconds / result.profiled_runs
    return _copied(columns), result.problem


def _copied(columns: Numbers) -> Numbers:
    return {title: dict(numbers) for title, numbers in columns.items() if numbers}


def differences(models: TwoModels, worker: Worker, sets: Sequence[DataSet], dims: Mapping[str, int]) -> Difference:
    """Run two models on the same values; return how the nodes of the target differ from those of the base.

    Raises:
        EvaluationError: no engine supports one of the models, or the base fails on all values.
        FeedError: random values for an input cannot be generated.
    """
    sets = [each._replace(outputs={}) for each in sets[:1]]
    with Verifier(models, Plan(seeds=1, sets=sets, input_options=InputOptions(dims=dims)), worker=worker) as verifier:
        location = locate(verifier, verifier.result())
    scope = models.indices[1].scopes[0]
    if location.problem:
        raise EvaluationError(location.problem)
    largest: dict[str, float] = {}
    first = next((address for place in location.places for address in place.target), None)
    for name, comparison in location.values:
        if name in scope.producers:
            address = _address(scope, scope.producers[name][0])
            number = math.inf if comparison.problem or comparison.nonfinite else comparison.largest_absolute or 0.0
            largest[address] = max(number, largest.get(address, 0.0))
            first = first or (None if comparison.close else address)
    return Difference(largest, first, DataSet(location.run, verifier.trials[0].feeds[1], {}))


def _address(scope: Scope, place: int) -> str:
    return f"{scope.address}/node/{place}"
