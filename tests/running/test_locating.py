"""A perturbation planted in an exported transformer of six layers is found at its node, optimised or not."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from onnxjson import Model
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.rendering.verification_report import location_lines
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.locating import Location, locate
from onnxjson.running.verification import Plan, Verifier
from onnxjson.running.worker import Worker
from tests.outline import written
from tests.running.small_models import model, scaled

MODELS = Path(__file__).parent.parent / "models"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline() as started:
        yield started


def located(base: Model, target: Model, worker: Worker) -> Location:
    with Verifier(TwoModels(base, target), Plan(seeds=1), worker=worker) as verifier:
        found = verifier.result()
        assert found.failed, "the perturbation shows in the output"
        return locate(verifier, found)


def optimized(model: Model, step: str | None, pipeline: Pipeline) -> Model:
    if step is None:
        return model
    (done,) = pipeline.run(model, [parse_step(step)])
    assert done.is_changed
    return done.after.model


def planted(path: Path, position: int) -> Model:
    """An exported model in which one node computes something else: another weight, or another function."""
    proto = onnx.load(path)
    node = proto.graph.node[position]
    weights = {tensor.name: tensor for tensor in proto.graph.initializer}
    taken = [weights[name] for name in node.input if name in weights]
    if taken:
        array = numpy_helper.to_array(taken[0]) * np.float32(1.05)
        taken[0].CopyFrom(numpy_helper.from_array(array, taken[0].name))
    else:
        node.op_type = {"Erf": "Tanh", "Softmax": "Sigmoid"}[node.op_type]
        del node.attribute[:]
    return onnxjson.from_proto(proto)


STEPS = [None, "onnxsim", "onnxruntime{level=extended}"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("name", "kind", "turn"),
    [
        ("encoder_ts", "MatMul", 17),
        pytest.param("encoder_ts", "Softmax", 3, marks=pytest.mark.exhaustive),
        pytest.param("encoder_ts", "Erf", 4, marks=pytest.mark.exhaustive),
        ("encoder_dynamo", "Softmax", 2),
        pytest.param("encoder_dynamo", "MatMul", 9, marks=pytest.mark.exhaustive),
    ],
)
def test_a_perturbation_is_found_at_its_node(
    name: str, kind: str, turn: int, step: str | None, worker: Worker, pipeline: Pipeline
) -> None:
    path = MODELS / f"{name}.onnx"
    base = onnxjson.load(path)
    assert base.graph is not None
    weights = {tensor.name for tensor in base.graph.initializer}
    positions = [
        position
        for position, node in enumerate(base.graph.node)
        if node.op_type == kind and (kind != "MatMul" or weights.intersection(node.input))
    ]
    target = optimized(planted(path, positions[turn]), step, pipeline)
    found = located(base, target, worker)
    assert [place.base[0] for place in found.places] == [f"/graph/node/{positions[turn]}"]
    assert found.compared == found.pairs > 100


def test_of_nodes_that_were_fused_the_one_whose_constant_is_gone_comes_first(
    worker: Worker, pipeline: Pipeline
) -> None:
    path = MODELS / "encoder_dynamo.onnx"
    proto = onnx.load(path)
    position = [place for place, node in enumerate(proto.graph.node) if node.op_type == "LayerNormalization"][6]
    node = proto.graph.node[position]
    # Exporters store equal weights once, so another one gets another name.
    weight = next(tensor for tensor in proto.graph.initializer if tensor.name == node.input[1])
    other = numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.05), "another")
    proto.graph.initializer.append(other)
    node.input[1] = other.name
    target = optimized(onnxjson.from_proto(proto), "onnxruntime{level=extended}", pipeline)
    (place,) = located(onnxjson.load(path), target, worker).places
    assert place.base[0] == f"/graph/node/{position}"
    assert len(place.nodes) > 1
    assert place.lost == (weight.name,)
    assert place.target_nodes[0].startswith("SkipLayerNormalization")
    shown = [
        "".join(span.text for span in line)
        for line in location_lines(Location(places=(place,), compared=1, pairs=1, run=""), 80)
    ]
    assert f"  one of these {len(place.nodes)} nodes, the likeliest first" in shown
    assert max(map(len, shown)) <= 80


def test_the_place_says_what_is_apart_and_by_how_much(worker: Worker) -> None:
    found = located(scaled(2), scaled(3), worker)
    (place,) = found.places
    assert place.nodes == ("Mul mul",)
    assert place.value == ("m", "m")
    assert place.constants == (("factor", "factor"),)
    assert place.comparison.outside == 8
    assert place.before == 0


def test_a_difference_that_comes_to_nothing_is_no_place(worker: Worker) -> None:
    def clipped(low: float, shift: float) -> Model:
        return model(
            [
                helper.make_node("Add", ["x", "low"], ["a"], name="shift"),
                helper.make_node("Mul", ["a", "zero"], ["b"]),
                helper.make_node("Add", ["x", "other"], ["c"], name="late"),
                helper.make_node("Add", ["b", "c"], ["y"]),
            ],
            {"x": (TensorProto.FLOAT, [8])},
            ["y"],
            {"low": np.float32(low), "zero": np.float32(0), "other": np.float32(shift)},
        )

    found = located(clipped(1, 1), clipped(5, 2), worker)
    assert [place.nodes for place in found.places] == [("Add late",)]


def test_two_branches_that_part_are_two_places(worker: Worker) -> None:
    def branches(one: float, other: float) -> Model:
        return model(
            [
                helper.make_node("Mul", ["x", "one"], ["a"], name="left"),
                helper.make_node("Add", ["x", "other"], ["b"], name="right"),
                helper.make_node("Sub", ["a", "b"], ["y"]),
            ],
            {"x": (TensorProto.FLOAT, [8])},
            ["y"],
            {"one": np.float32(one), "other": np.float32(other)},
        )

    found = located(branches(1.5, 2), branches(1.6, 3), worker)
    assert sorted(place.nodes for place in found.places) == [("Add right",), ("Mul left",)]


def test_values_of_other_shapes_everywhere_are_named_by_the_first(worker: Worker) -> None:
    def pooled(stride: int) -> Model:
        pool = helper.make_node("MaxPool", ["a"], ["b"], name="pool", kernel_shape=[1], strides=[stride])
        nodes = [helper.make_node("Neg", ["x"], ["a"]), pool, helper.make_node("Neg", ["b"], ["y"])]
        return model(nodes, {"x": (TensorProto.FLOAT, [1, 1, 8])}, ["y"], {})

    found = located(pooled(1), pooled(2), worker)
    assert (found.places, found.compared, found.pairs) == ((), 1, 3)
    assert found.reshaped.startswith("the first value with another shape is computed by MaxPool pool  @/graph/node/1: ")


def test_values_are_compared_in_batches_of_bounded_size(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson.running import locating

    monkeypatch.setattr(locating, "BATCH_VALUES", 1)
    found = located(scaled(2), scaled(3), worker)
    assert found.compared == 2
    assert [place.nodes for place in found.places] == [("Mul mul",)]


def test_the_line_of_the_place_is_that_of_types_that_are_inferred(worker: Worker) -> None:
    base, target = [
        written.model(f"a = Tanh(x) b = Cast<to = 1>(a) out = LeakyRelu<alpha = {alpha}>(b)") for alpha in (0.1, 0.3)
    ]
    (place,) = located(base, target, worker).places
    (line,) = place.lines
    assert line in str(base.outline(infer=True))
    assert line not in str(base.outline())
