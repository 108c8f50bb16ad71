"""Nodes that are alike are inferred once, and every type is what onnx infers for the whole model."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson import edits
from onnxjson.editing import alike_nodes
from onnxjson.editing.alike_nodes import Inference
from onnxjson.editing.inference import infer
from onnxjson.editing.partial_inference import Part
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index
from tests.editing.graphs import MODELS, model_of
from tests.editing.test_type_correction import types

LAYERS = 60


def layers(count: int, batch: str = "N", end: str = "") -> Model:
    """Layers of Conv, Relu and Add, each with its own weights, and other nodes at the end."""
    nodes, infos, weights, last = [], [], [], "x"
    for place in range(count):
        nodes += [
            f"c{place} = Conv <kernel_shape = [1, 1]> ({last}, w{place})",
            f"r{place} = Relu(c{place}) a{place} = Add(r{place}, c{place})",
        ]
        shape = f"float[{batch},2,4,4]"
        infos += [f"{shape} {letter}{place}" for letter in "cra"]
        weights.append(f"float[2,2,1,1] w{place} = {{{place},1,2,3}}")
        last = f"a{place}"
    inner, names = infos[:-1] + [infos[-1]] * bool(end), ", ".join(weights)
    output = f"{shape} y" if end else infos[-1]
    return model_of(f"g ({shape} x) => ({output}) <{names}, {', '.join(inner)}> {{{' '.join(nodes)} {end}}}")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes in each part that onnx infers; parts have few nodes."""
    sizes: list[int] = []
    made = Part.infer

    def counted(part: Part, *arguments: object) -> object:
        sizes.append(len(part._positions))
        return made(part, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Part, "infer", counted)
    monkeypatch.setattr(alike_nodes, "_FIRST_NODES", 4)
    return sizes


def test_few_nodes_of_many_that_are_alike_are_inferred(asked: list[int]) -> None:
    model = layers(LAYERS)
    after = onnxjson.apply(model, edits.SetShape(tensor="x", shape=(2, 2, 4, 4)))
    assert set(types(after).values()) == {"float32[2,2,4,4]"}
    assert sum(asked) < LAYERS


def test_a_mistake_is_found_in_a_node_that_is_like_no_other(asked: list[int]) -> None:
    model = layers(LAYERS, "3", "b = Constant <value = float[3,1,1,1] {1,2,3}> () y = Add(a59, b)")
    with pytest.raises(EditError, match=f"/graph/node/{3 * LAYERS + 1}.*Incompatible dimensions"):
        onnxjson.apply(model, edits.SetShape(tensor="x", shape=(2, 2, 4, 4)))
    assert sum(asked) < LAYERS


@pytest.mark.parametrize("path", ["encoder_dynamo.onnx", "decoders/decoder_ts.onnx", "mobile_ts.onnx"])
def test_types_are_those_of_one_inference(asked: list[int], path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxjson.load(Path(MODELS) / path)
    found = infer(model, None).model
    assert len(asked) > 1
    monkeypatch.setattr(alike_nodes, "_FIRST_NODES", 10**9)
    assert found == infer(model, None).model


def test_constants_that_decide_shapes_make_nodes_different(asked: list[int]) -> None:
    shapes = [(2, 8), (4, 4), (8, 2), (16, 1), (1, 16)] * 4
    nodes = " ".join([f"y{place} = Reshape(x, s{place}) z{place} = Neg(y{place})" for place in range(len(shapes))])
    constants = ", ".join([f"int64[2] s{place} = {{{a},{b}}}" for place, (a, b) in enumerate(shapes)])
    outputs = ", ".join([f"float[a,b] z{place}" for place in range(len(shapes))])
    index = Index(model_of(f"g (float[4,4] x) => ({outputs}) <{constants}> {{{nodes}}}"))
    assert index.main is not None
    found = Inference(index, None).infer(range(len(shapes) * 2), {}, {"/graph": index.main.producers})
    for place, shape in enumerate(shapes):
        assert found.types["/graph"][f"z{place}"].shape == shape
    assert sum(asked) < len(shapes) * 2


def test_long_lists_of_constant_nodes_make_nodes_different(asked: list[int]) -> None:
    sizes = [600, 700] * 8
    nodes = " ".join(
        [
            f"c{place} = Constant <value_ints = {[place] * size}> () z{place} = Neg(c{place})"
            for place, size in enumerate(sizes)
        ]
    )
    outputs = ", ".join([f"int64[a{place}] z{place}" for place in range(len(sizes))])
    index = Index(model_of(f"g () => ({outputs}) {{{nodes}}}"))
    assert index.main is not None
    found = Inference(index, None).infer(range(len(sizes) * 2), {}, {"/graph": index.main.producers})
    assert len(asked) > 1
    assert [found.types["/graph"][f"z{place}"].shape for place in range(len(sizes))] == [(size,) for size in sizes]
