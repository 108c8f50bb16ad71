"""Evaluating many models in the guarded process: together while that goes well, else one by one."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.document import Model, Tensor
from onnxjson.errors import OnnxJsonError, WorkerError
from onnxjson.wire.writing import message_bytes
from onnxjson.worker import Worker
from onnxjson.worker_tasks import ENGINES, Engine, Evaluated, Evaluation, packed_values, unpacked_values

BATCH_BYTES: Final = 64 << 20
"""So many bytes of models and values go into one process, where that is more than one evaluation."""

BATCH_COUNT: Final = 16
"""So many evaluations at most."""

Values = Mapping[str, Tensor]


class Results(NamedTuple):
    """What came of the evaluation of a model."""

    engine: Engine | None
    """What evaluated it; None where nothing did."""
    problem: str
    """Why nothing did, for a person; made visible."""
    runs: tuple[Values | str, ...]
    """For each run the values of the outputs, or why there are none."""


def evaluation(
    model: Model, runs: Sequence[Values], *, engines: Sequence[Engine] = ENGINES, optimize: bool = False
) -> Evaluation:
    """A model to be evaluated, whose tensors all hold their elements.

    Args:
        model: stays as it is.
        runs: the values of its inputs, once or many times.
        engines: the first one that takes the model evaluates it.
        optimize: whether onnxruntime may rewrite it first.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is here.
        ChangedUnderneathError, FileError: their files cannot be read.
        LimitError: it is more than protobuf reads.
    """
    packed = tuple([packed_values(values) for values in runs])
    return Evaluation(model=message_bytes(model), runs=packed, engines=tuple(engines), optimize=optimize)


def evaluate_all(worker: Worker, evaluations: Sequence[Evaluation]) -> list[Results]:
    """The results of all evaluations, in their order.

    An evaluation that crashes, hangs or fills the memory costs the others nothing: those of its process are done again,
    each in one of its own.
    """
    results: list[Results] = []
    for batch in _batches(evaluations):
        try:
            results += map(_results, worker.evaluate(batch))
        except OnnxJsonError as error:
            if len(batch) == 1:
                results.append(Results(None, str(error), ()))
            else:
                results += [_alone(worker, each) for each in batch]
    return results


def _alone(worker: Worker, one: Evaluation) -> Results:
    try:
        return _results(*worker.evaluate([one]))
    except OnnxJsonError as error:
        return Results(None, str(error), ())


def _batches(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    batches: list[list[Evaluation]] = [[]]
    size = 0
    for each in evaluations:
        bytes_ = len(each.model) + sum(map(len, each.runs))
        if batches[-1] and (size + bytes_ > BATCH_BYTES or len(batches[-1]) == BATCH_COUNT):
            batches.append([])
            size = 0
        batches[-1].append(each)
        size += bytes_
    return [batch for batch in batches if batch]


def _results(found: Evaluated) -> Results:
    try:
        runs = [run.problem if run.problem is not None else unpacked_values(run.values) for run in found.runs]
    except OnnxJsonError as error:
        raise WorkerError(f"the evaluation gives no values that can be read: {error}") from error
    return Results(found.engine, found.problem, tuple(runs))
