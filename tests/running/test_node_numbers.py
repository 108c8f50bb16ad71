"""Numbers of the nodes of a model: times, figures of what they compute, differences to another model."""

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from onnxjson.model.document import Model
from onnxjson.model.errors import EvaluationError
from onnxjson.running import locating
from onnxjson.running.input_files import DataSet, given_sets
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.node_numbers import differences, node_numbers
from onnxjson.running.values import as_value
from onnxjson.running.worker import Worker
from tests.editing.graphs import model_of

CHAIN = """g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 4}> {
    a = Add(x, w)
    c = Log(a)
    i = Shape(c)
    b = Sqrt(c)
    y = Mul(b, w)
}"""
X = np.array([[0.0, -5.0], [2.0, 3.0]], np.float32)
GIVEN = [DataSet("x", {"x": as_value(X)}, {})]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def test_numbers_are_told_while_the_model_runs(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.running.node_numbers._TELLS", -1.0)
    told: list[int] = []
    numbers, _ = node_numbers(
        model_of(CHAIN), None, worker, GIVEN, {}, lambda partly: told.append(len(partly.get("max", {})))
    )
    assert told == [1, 2, 3, 4, 5]
    assert len(numbers["max"]) == 5


def _with_names(model: Model, names: list[str]) -> Model:
    assert model.graph is not None
    nodes = [msgspec.structs.replace(node, name=name) for node, name in zip(model.graph.node, names, strict=True)]
    return msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, node=tuple(nodes)))


@pytest.mark.parametrize("names", [[""] * 5, ["same"] * 5, ["a", "node 4", "b", "c", ""]])
def test_each_node_has_its_numbers_whatever_its_name(
    names: list[str], worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locating, "BATCH_VALUES", 2)
    numbers, problem = node_numbers(_with_names(model_of(CHAIN), names), None, worker, GIVEN, {})
    assert not problem
    figures = {title: [found.get(f"/graph/node/{place}") for place in range(5)] for title, found in numbers.items()}
    assert figures["min"][0] == -1.0
    assert figures["max"] == pytest.approx([7.0, math.log(7), 2.0, math.sqrt(math.log(7)), 4 * math.sqrt(math.log(7))])
    assert figures["mean"][2] == 2.0
    assert figures["NaN"] == [0, 1, 0, 1, 1]
    assert list(numbers) == ["ms", "min", "max", "mean", "NaN"]
    # onnxruntime computes the shape of known sizes in advance.
    assert all(found is not None and found > 0 for place, found in enumerate(figures["ms"]) if place != 2)


def test_differences_begin_at_the_changed_node(worker: Worker) -> None:
    base = model_of(CHAIN)
    target = model_of(CHAIN.replace("c = Log(a)", "c = Log(w)"))
    found = differences(TwoModels(base, target), worker, [], {})
    assert found.first == "/graph/node/1"
    assert found.numbers["/graph/node/0"] == 0.0
    assert found.numbers["/graph/node/1"] > 0
    same = differences(TwoModels(base, base), worker, GIVEN, {})
    assert same.first is None
    assert not any(same.numbers.values())


def test_a_model_that_fails_is_refused_with_the_reason(worker: Worker) -> None:
    model = model_of("g (float[2] x, int64[1] s) => (float[K] y) { y = Reshape(x, s) }")
    with pytest.raises(EvaluationError, match="fails on these values"):
        node_numbers(model, None, worker, [DataSet("s", {"s": as_value(np.array([7]))}, {})], {})


def test_a_model_without_a_graph_is_refused(worker: Worker) -> None:
    with pytest.raises(EvaluationError, match="no graph to run"):
        node_numbers(Model(), None, worker, [], {})


def test_inputs_are_read_from_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    (found,) = given_sets(model_of(CHAIN), [f"x={tmp_path / 'x.npy'}"])
    assert list(found.inputs) == ["x"]
