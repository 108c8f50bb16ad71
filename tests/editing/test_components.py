"""The ready components: canonical texts, valid, and they compute what they say."""

from importlib import resources
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest

import onnxjson
from onnxjson.editing.new_models.operator_model import Component, component, components
from onnxjson.model.errors import ParameterError

NUMBERS = [f"Z{number:03}" for number in range(1, 11)]


def run(name: str, **inputs: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(onnxjson.to_proto(component(name).model).SerializeToString())
    found: list[Any] = session.run(None, inputs)
    return found


def random(*shape: int) -> Any:
    return numpy.random.default_rng(5).uniform(0, 255, shape).astype(numpy.float32)


def test_there_are_ten() -> None:
    assert [each.number for each in components()] == NUMBERS


@pytest.mark.parametrize("each", components(), ids=lambda each: each.number)
def test_component_is_a_canonical_text_and_valid(each: Component) -> None:
    folder = resources.files("onnxjson.editing.new_models") / "components"
    text = (folder / f"{each.number}-{each.name}.onnx.json").read_text(encoding="utf-8")
    assert onnxjson.dumps(each.model) == text
    onnx.checker.check_model(onnxjson.to_proto(each.model), full_check=True)
    assert each.summary


def test_unknown_component_names_near_ones() -> None:
    with pytest.raises(ParameterError, match='there is no component "nms-yolakt"; did you mean "nms-yolact"'):
        component("nms-yolakt")


@pytest.mark.parametrize(("name", "step"), [("Z001", 1), ("Z002", -1)])
def test_images_are_normalised(name: str, step: int) -> None:
    mean, deviation = numpy.array([0.485, 0.456, 0.406])[::step], numpy.array([0.229, 0.224, 0.225])[::step]
    images = random(2, 3, 4, 5)
    (found,) = run(name, **{"rgb" if step > 0 else "bgr": images})
    expected = (images / 255 - mean.reshape(1, 3, 1, 1)) / deviation.reshape(1, 3, 1, 1)
    numpy.testing.assert_allclose(found, expected, atol=1e-5)


BOXES = numpy.array([[[0, 0, 10, 10], [0, 1, 10, 11], [20, 20, 30, 30], [50, 50, 60, 60]]], numpy.float32)


def test_of_overlapping_boxes_the_best_stays() -> None:
    boxes, scores = run("Z003", boxes=BOXES, scores=numpy.array([[[0.6, 0.9, 0.8, 0.1]]], numpy.float32))
    assert boxes.tolist() == [[0, 1, 10, 11], [20, 20, 30, 30]]
    numpy.testing.assert_allclose(scores, [0.9, 0.8])


def test_yolact_keeps_class_score_and_mask_of_each_box() -> None:
    scores = numpy.array([[[0.9, 0.5, 0.0, 0.0], [0.0, 0.0, 0.7, 0.1]]], numpy.float32)
    masks = random(1, 4, 32)
    boxes, classes, found, kept = run("Z004", boxes=BOXES, scores=scores, masks=masks)
    assert boxes.tolist() == [[0, 0, 10, 10], [20, 20, 30, 30]]
    assert classes.tolist() == [0, 1]
    numpy.testing.assert_allclose(found, [0.9, 0.7])
    assert kept.tolist() == masks[0][[0, 2]].tolist()


@pytest.mark.parametrize(
    ("name", "value", "shape"),
    [("Z005", "images", (2, 4, 3, 5)), ("Z006", "image", (1, 3, 224, 224)), ("Z008", "images", (2, 4, 224, 224))],
)
def test_images_are_resized(name: str, value: str, shape: tuple[int, ...]) -> None:
    images = random(1, 3, 6, 10) if name == "Z006" else random(2, 4, 6, 10)
    (found,) = run(name, **{value: images})
    assert found.shape == shape
    assert images.min() <= found.min() <= found.max() <= images.max()
    if name == "Z005":
        numpy.testing.assert_allclose(found, images.reshape(2, 4, 3, 2, 5, 2).mean((3, 5)), rtol=1e-5)


def test_myriad_selection_is_that_of_the_operator() -> None:
    corner = numpy.random.default_rng(2).uniform(0, 100, (1, 896, 2))
    boxes = numpy.concatenate([corner, corner + 30], axis=2).astype(numpy.float32)
    scores = numpy.random.default_rng(3).uniform(size=(1, 1, 896)).astype(numpy.float32)
    (selected,) = run("Z007", boxes=boxes, scores=scores)
    assert selected.dtype == numpy.int64
    assert selected[0].tolist() == [0, 0, int(scores.argmax())]


def test_gathernd_of_plain_operators_is_gathernd() -> None:
    data = random(8, 16, 4)
    indices = numpy.array([[0, 0], [7, 15], [3, 9]])
    (found,) = run("Z009", data=data, indices=indices)
    assert found.tolist() == data[indices[:, 0], indices[:, 1]].tolist()


def test_split_of_slices_is_split() -> None:
    x = random(3, 16, 8)
    assert [each.tolist() for each in run("Z010", x=x)] == [each.tolist() for each in numpy.split(x, 2, axis=1)]
