"""Models evaluated in the sandboxed process, values of every dtype in and out."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson import Model
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.errors import WorkerError
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.running import sandbox, tasks
from onnxjson.running.random_values import random_array
from onnxjson.running.sandbox import Outcome, execute, execute_all
from onnxjson.running.values import Value, Values, packed_values, unpacked_values
from onnxjson.running.worker import Worker

TYPES = [number for number in DATA_TYPE_NAMES if number]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def model(nodes: Sequence[onnx.NodeProto], data_type: int = TensorProto.FLOAT, *, opset: int = 25) -> Model:
    x = helper.make_tensor_value_info("x", data_type, [None])
    graph = helper.make_graph(list(nodes), "g", [x], [onnx.ValueInfoProto(name="y")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnxjson.from_proto(made)


def identity(data_type: int) -> Model:
    return model([helper.make_node("Identity", ["x"], ["y"])], data_type)


RELU = model([helper.make_node("Relu", ["x"], ["y"])])
X = {"x": from_numpy(np.array([-1, 2], np.float32))}

# A trip count of 2 ** 62.
ENDLESS = model(
    [
        helper.make_node("Constant", [], ["count"], value_int=2**62),
        helper.make_node(
            "Loop",
            ["count", "", "x"],
            ["y"],
            body=helper.make_graph(
                [
                    helper.make_node("Identity", ["go"], ["still"]),
                    helper.make_node("Add", ["state", "state"], ["next"]),
                ],
                "body",
                [
                    helper.make_tensor_value_info("number", TensorProto.INT64, []),
                    helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                    helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
                ],
                [
                    helper.make_tensor_value_info("still", TensorProto.BOOL, []),
                    helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
                ],
            ),
        ),
    ]
)

HUNGRY = model(
    [
        helper.make_node("Constant", [], ["shape"], value_ints=[1 << 20, 1 << 20]),
        helper.make_node("ConstantOfShape", ["shape"], ["z"]),
        helper.make_node("ReduceSum", ["z"], ["y"]),
    ]
)


def array_of(value: Value) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    assert isinstance(value, Tensor)
    return to_numpy(value)


def task_of(
    evaluated: Model, runs: Sequence[Values], *, engines: Sequence[tasks.Engine] = tasks.ENGINES
) -> tasks.RunTask:
    return tasks.RunTask(
        subject=tasks.Subject(model=message_bytes(evaluated)),
        settings=tasks.Settings(engines=tuple(engines)),
        feeds=tuple(map(packed_values, runs)),
    )


def evaluated(worker: Worker, *series: tasks.RunTask) -> list[Outcome]:
    return execute_all(worker, series, timeout=3.0, memory=2 << 30)


def outputs(outcome: Outcome) -> list[Value]:
    """The output y of each run that succeeded."""
    return [unpacked_values(each.values)["y"] for each in outcome.all(tasks.Output)]


def engine_of(outcome: Outcome) -> str | None:
    opened = outcome.first(tasks.Opened)
    return None if opened is None else opened.engine


def refusal(outcome: Outcome) -> str:
    refused = outcome.first(tasks.Refused)
    assert refused is not None
    return refused.problem


@pytest.mark.parametrize("engine", tasks.ENGINES)
def test_either_engine_evaluates(worker: Worker, engine: tasks.Engine) -> None:
    (outcome,) = evaluated(worker, task_of(RELU, [X, X], engines=[engine]))
    assert engine_of(outcome) == engine
    assert [array_of(each).tolist() for each in outputs(outcome)] == [[0, 2], [0, 2]]


def test_every_dtype_goes_in_and_out_bit_for_bit(worker: Worker) -> None:
    values = {number: from_numpy(random_array(number, (5,), np.random.default_rng(number))) for number in TYPES}
    series = [task_of(identity(number), [{"x": tensor}]) for number, tensor in values.items()]
    for number, outcome in zip(TYPES, evaluated(worker, *series), strict=True):
        assert outputs(outcome), (DATA_TYPE_NAMES[number], outcome)
        given, found = values[number], outputs(outcome)[0]
        assert isinstance(found, Tensor)
        assert (found.raw_data, found.string_data, found.dims) == (given.raw_data, given.string_data, given.dims)


def test_what_onnxruntime_cannot_compute_is_left_to_the_reference(worker: Worker) -> None:
    half = model([helper.make_node("Abs", ["x"], ["y"])], TensorProto.BFLOAT16, opset=21)
    given = {"x": from_numpy(np.array([-1, 2], ml_dtypes.bfloat16))}
    (outcome,) = evaluated(worker, task_of(half, [given]))
    assert engine_of(outcome) == "reference", outcome


def test_operator_set_that_no_engine_knows_is_a_problem_of_both(worker: Worker) -> None:
    (outcome,) = evaluated(worker, task_of(model([helper.make_node("Relu", ["x"], ["y"])], opset=999), [X]))
    assert "onnxruntime: " in refusal(outcome)
    assert "reference: " in refusal(outcome)


def test_model_that_is_wrong_is_not_left_to_a_more_lenient_engine(worker: Worker) -> None:
    (outcome,) = evaluated(worker, task_of(model([helper.make_node("Gemm", ["x", "x"], ["y"])]), [X]))
    assert "ShapeInferenceError" in refusal(outcome)
    assert "reference" not in refusal(outcome)


def test_run_that_fails_does_not_stop_the_next(worker: Worker) -> None:
    gather = model([helper.make_node("Gather", ["x", "x"], ["y"])], TensorProto.INT64)
    feeds = [{"x": from_numpy(np.array(each))} for each in ([9], [0], [-9])]
    (outcome,) = evaluated(worker, task_of(gather, feeds))
    assert [each.run for each in outcome.all(tasks.Output)] == [1]
    failed = outcome.all(tasks.Failed)
    assert [each.run for each in failed] == [0, 2]
    assert "indices element out of data bounds" in failed[0].problem


@pytest.mark.parametrize(("trouble", "said"), [(ENDLESS, "does not finish"), (HUNGRY, "memory|alloc")])
def test_evaluation_that_hangs_or_fills_the_memory_costs_the_others_nothing(
    worker: Worker, trouble: Model, said: str
) -> None:
    series = [task_of(each, [X], engines=["onnxruntime"]) for each in (RELU, trouble, RELU)]
    outcomes = evaluated(worker, *series)
    assert [array_of(outputs(outcomes[number])[0]).tolist() for number in (0, 2)] == [[0, 2], [0, 2]]
    found = outcomes[1].problem or outcomes[1].all(tasks.Failed)[0].problem
    assert any(word in found.lower() for word in said.split("|"))


def test_crash_is_named(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson.running import server_process

    crashing = server_process.START.replace(
        "main()\n",
        "import os\nfrom onnxjson.running import executing\nexecuting.execute_task = lambda *_: os.abort()\nmain()\n",
    )
    monkeypatch.setattr(server_process, "START", crashing)
    with Worker() as fragile:
        outcomes = evaluated(fragile, *[task_of(RELU, [X])] * 2)
    assert [engine_of(each) for each in outcomes] == [None, None]
    assert all("crashed" in each.problem and "SIGABRT" in each.problem for each in outcomes)


def test_outputs_that_are_sequences_come_out_too(worker: Worker) -> None:
    sequence = model([helper.make_node("SequenceConstruct", ["x", "x"], ["y"])])
    (items,) = outputs(*evaluated(worker, task_of(sequence, [X])))
    assert isinstance(items, tuple)
    assert [array_of(each).tolist() for each in items] == [[-1, 2], [-1, 2]]


def test_two_models_are_compared_among_other_tasks(worker: Worker) -> None:
    compared = tasks.CompareTask(
        base=tasks.Subject(model=message_bytes(identity(1))),
        target=tasks.Subject(model=message_bytes(RELU)),
        settings=tasks.Settings(),
        feeds=((packed_values(X), packed_values(X)),),
        pairs=(("y", "y"),),
        batches=((0,),),
        tolerances={},
    )
    found = execute_all(worker, [task_of(RELU, [X]), compared, task_of(RELU, [X])], timeout=3.0, memory=2 << 30)
    assert [each.first(tasks.Compared) is None for each in found] == [True, False, True]
    assert found[1].all(tasks.Compared)[0].comparison.unequal == 1


def test_nothing_is_evaluated_in_this_process() -> None:
    import subprocess
    import sys

    code = (
        "import sys, onnxjson.running.proof, onnxjson.running.sandbox\n"
        "assert not {'onnx', 'onnxruntime'} & set(sys.modules), 'evaluators are loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def answering(error: BaseException) -> Worker:
    def run_contained(*_: object) -> None:
        raise error

    return SimpleNamespace(run_contained=run_contained)  # type: ignore[return-value]


def test_an_interruption_keeps_what_was_reported() -> None:
    subject = tasks.Subject(model=b"")
    race = tasks.RaceTask(runners=(tasks.Runner(subject=subject, settings=tasks.Settings(), feed=b""),))
    assert execute(answering(KeyboardInterrupt()), race) == ((), "", True)


def test_tasks_that_cannot_be_started_say_so_and_an_interruption_ends_all() -> None:
    series = [task_of(identity(1), [])] * 2
    found = execute_all(answering(WorkerError("no process")), series)
    assert [each.problem for each in found] == ["could not be started: no process"] * 2
    with pytest.raises(KeyboardInterrupt):
        execute_all(answering(KeyboardInterrupt()), series)


def test_tasks_share_a_process_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    series = [task_of(identity(1), [])] * 2
    assert sandbox._batch(series) == series
    monkeypatch.setattr(sandbox, "_BATCH_BYTES", 1)
    assert sandbox._batch(series) == series[:1]


def test_reports_outside_a_task_and_times_are_no_results() -> None:
    timed = tasks.Timed(seconds=1.0)
    assert sandbox._by_task([timed, tasks.Began(task=0), timed]) == [(timed,)]
