"""Models evaluated in the guarded process, values of every dtype in and out."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson import Model
from onnxjson.names import DATA_TYPE_NAMES
from onnxjson.running.feeds import random_tensor
from onnxjson.running.sessions import Results, evaluate_all, evaluation
from onnxjson.tensors import from_numpy, to_numpy
from onnxjson.worker import Worker
from onnxjson.worker_protocol import Limits

TYPES = [number for number in DATA_TYPE_NAMES if number]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Limits(wall_seconds=3.0)) as started:
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


def first(results: Results) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    run = results.runs[0]
    assert not isinstance(run, str), run
    return to_numpy(run["y"])


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_either_engine_evaluates(worker: Worker, engine: str) -> None:
    (results,) = evaluate_all(worker, [evaluation(RELU, [X, X], engines=[engine])])  # type: ignore[list-item]
    assert results.engine == engine
    assert [to_numpy(run["y"]).tolist() for run in results.runs if not isinstance(run, str)] == [[0, 2], [0, 2]]


def test_every_dtype_goes_in_and_out_bit_for_bit(worker: Worker) -> None:
    values = {number: random_tensor(number, (5,), np.random.default_rng(number)) for number in TYPES}
    tasks = [evaluation(identity(number), [{"x": tensor}]) for number, tensor in values.items()]
    for number, results in zip(TYPES, evaluate_all(worker, tasks), strict=True):
        run = results.runs[0]
        assert not isinstance(run, str), (DATA_TYPE_NAMES[number], run)
        given, found = values[number], run["y"]
        assert (found.raw_data, found.string_data, found.dims) == (given.raw_data, given.string_data, given.dims)


def test_operator_set_that_onnxruntime_does_not_know_is_left_to_the_reference(worker: Worker) -> None:
    (results,) = evaluate_all(worker, [evaluation(model([helper.make_node("Relu", ["x"], ["y"])], opset=28), [X])])
    assert results.engine == "reference"
    (results,) = evaluate_all(worker, [evaluation(model([helper.make_node("Relu", ["x"], ["y"])], opset=999), [X])])
    assert results.engine is None
    assert "onnxruntime: " in results.problem
    assert "reference: " in results.problem


def test_model_that_is_wrong_is_not_left_to_a_more_lenient_engine(worker: Worker) -> None:
    wrong = model([helper.make_node("Gemm", ["x", "x"], ["y"])])
    (results,) = evaluate_all(worker, [evaluation(wrong, [X])])
    assert results.engine is None
    assert "ShapeInferenceError" in results.problem
    assert "reference" not in results.problem


def test_run_that_fails_does_not_stop_the_next(worker: Worker) -> None:
    gather = model([helper.make_node("Gather", ["x", "x"], ["y"])], TensorProto.INT64)
    feeds = [{"x": from_numpy(np.array(each))} for each in ([9], [0], [-9])]
    (results,) = evaluate_all(worker, [evaluation(gather, feeds)])
    assert [isinstance(run, str) for run in results.runs] == [True, False, True]
    assert "indices element out of data bounds" in str(results.runs[0])


@pytest.mark.parametrize(("trouble", "said"), [(ENDLESS, "does not come to an end"), (HUNGRY, "memory|alloc")])
def test_evaluation_that_hangs_or_fills_the_memory_costs_the_others_nothing(
    worker: Worker, trouble: Model, said: str
) -> None:
    results = evaluate_all(worker, [evaluation(each, [X], engines=["onnxruntime"]) for each in (RELU, trouble, RELU)])
    assert [first(results[number]).tolist() for number in (0, 2)] == [[0, 2], [0, 2]]
    found = results[1].problem or str(results[1].runs[0])
    assert any(word in found.lower() for word in said.split("|"))


def test_crash_is_named(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson import worker as worker_module

    crashing = worker_module._START.replace(
        "main()\n",
        "import os\nfrom onnxjson import worker_evaluation\n"
        "worker_evaluation.evaluated = lambda each, told: os.abort()\nmain()\n",
    )
    monkeypatch.setattr(worker_module, "_START", crashing)
    with Worker() as fragile:
        results = evaluate_all(fragile, [evaluation(RELU, [X])] * 2)
    assert [each.engine for each in results] == [None, None]
    assert all("crashed" in each.problem and "SIGABRT" in each.problem for each in results)


def test_outputs_that_are_no_tensors_are_said(worker: Worker) -> None:
    (results,) = evaluate_all(worker, [evaluation(model([helper.make_node("SequenceConstruct", ["x"], ["y"])]), [X])])
    assert "not a tensor" in str(results.runs[0])


def test_nothing_is_evaluated_in_this_process() -> None:
    import subprocess
    import sys

    code = (
        "import sys, onnxjson.running.proof, onnxjson.running.sessions as s\n"
        "assert not {'onnx', 'onnxruntime'} & set(sys.modules), 'evaluators are loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
