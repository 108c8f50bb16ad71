"""transpose-input: acceptance of what scc4onnx is for."""

from typing import Any

import numpy
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from onnxjson.editing.applying import apply, plan
from onnxjson.editing.shapes import TransposeInput
from onnxjson.model.document import Model, StringStringEntry, TensorAnnotation
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.types import format_type
from tests.editing.graphs import exported, model_of, require_valid, sample_inputs
from tests.editing.graphs import run as computed

IMAGES = """g (float[N,3,4,5] image, bool c) => (float[N,3,4,5] y, float[N,5,4,3] z) {
   a = Relu(image)
   b = Neg(image)
   y = If (c) <then_branch = t () => (float[N,3,4,5] r) { r = Add(image, b) },
               else_branch = e () => (float[N,3,4,5] s) { s = Mul(image, a) }>
   z = Transpose <perm = [0,3,2,1]> (image)
}"""


def _types(model: Model) -> list[str | None]:
    assert model.graph is not None
    return [format_type(each.type) for each in (*model.graph.input, *model.graph.output) if each.type]


def _images() -> dict[str, NDArray[Any]]:
    numbers = numpy.random.default_rng(3)
    return {"image": numbers.standard_normal((2, 3, 4, 5)).astype(numpy.float32), "c": numpy.array(True)}


def _same(one: list[NDArray[Any]], other: list[NDArray[Any]]) -> bool:
    return [each.tobytes() for each in one] == [each.tobytes() for each in other]


def test_scc4onnx_input_with_many_consumers_takes_another_layout() -> None:
    before = model_of(IMAGES)
    after = apply(before, TransposeInput(tensor="image", perm=(0, 3, 1, 2)))
    require_valid(after)
    assert _types(after)[0] == "float32[N,4,5,3]"
    for choice in (True, False):
        values = _images() | {"c": numpy.array(choice)}
        turned = values | {"image": numpy.ascontiguousarray(values["image"].transpose(0, 2, 3, 1))}
        assert _same(computed(before, values), computed(after, turned))


@pytest.mark.parametrize("axis", [1, -3])
def test_scc4onnx_channels_turn_round_with_one_gather(axis: int) -> None:
    before = model_of(IMAGES)
    after = apply(before, TransposeInput(tensor="image", reverse=axis))
    require_valid(after)
    assert [node.op_type for node in after.graph.node][:2] == ["Gather", "Relu"]  # type: ignore[union-attr]
    values = _images()
    turned = values | {"image": numpy.ascontiguousarray(values["image"][:, ::-1])}
    assert _same(computed(before, values), computed(after, turned))


def test_scc4onnx_both_at_once_is_numpys_transpose_and_flip() -> None:
    before = model_of(IMAGES)
    after = apply(before, TransposeInput(tensor="image", perm=(0, 3, 1, 2), reverse=1))
    require_valid(after)
    assert [node.op_type for node in after.graph.node][:2] == ["Transpose", "Gather"]  # type: ignore[union-attr]
    values = _images()
    turned = values | {"image": numpy.ascontiguousarray(values["image"].transpose(0, 2, 3, 1)[..., ::-1])}
    assert _same(computed(before, values), computed(after, turned))


def test_scc4onnx_outputs_take_another_layout_too() -> None:
    before = model_of(IMAGES)
    after = apply(before, TransposeInput(tensor="y", perm=(0, 2, 3, 1), reverse=1))
    require_valid(after)
    assert _types(after)[2:] == ["float32[N,4,5,3]", "float32[N,5,4,3]"]
    values = _images()
    y, z = computed(before, values)
    turned, same = computed(after, values)
    assert turned.tobytes() == numpy.ascontiguousarray(y[:, ::-1].transpose(0, 2, 3, 1)).tobytes()
    assert same.tobytes() == z.tobytes()


@pytest.mark.parametrize("name", ["mobile_dynamo.onnx", "mobile_ts.onnx"])
def test_scc4onnx_export_takes_nhwc_and_bgr(name: str) -> None:
    before = exported(name)
    after = apply(before, TransposeInput(tensor="image", perm=(0, 3, 1, 2), reverse=1))
    require_valid(after)
    values = sample_inputs(before)
    turned = {"image": numpy.ascontiguousarray(values["image"].transpose(0, 2, 3, 1)[..., ::-1])}
    assert _same(computed(before, values), computed(after, turned))
    assert (
        plan(before, TransposeInput(tensor="image", reverse=1))
        .invert()
        .apply(apply(before, TransposeInput(tensor="image", reverse=1)))
        == before
    )


def test_inverse_layout_gives_the_function_back() -> None:
    before = model_of(IMAGES)
    there = TransposeInput(tensor="image", perm=(0, 3, 1, 2), reverse=1)
    back = TransposeInput(tensor="image", perm=(0, 2, 3, 1), reverse=3)
    after = apply(before, [there, back])
    require_valid(after)
    assert _types(after) == _types(before)
    assert _same(computed(before, _images()), computed(after, _images()))


def test_annotation_stays_with_what_it_was_about() -> None:
    before = model_of(IMAGES)
    annotation = TensorAnnotation("image", (StringStringEntry("SCALE_TENSOR", "a"),))
    before = replace(before, graph=replace(before.graph, quantization_annotation=(annotation,)))  # type: ignore[type-var]
    after = apply(before, TransposeInput(tensor="image", reverse=1))
    assert after.graph is not None
    assert after.graph.quantization_annotation[0].tensor_name == after.graph.node[0].output[0]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (TransposeInput(tensor="image", perm=(0, 1, 2)), "has 4 axes"),
        (TransposeInput(tensor="image", perm=(0, 1, 1, 2)), "it must contain each of"),
        (TransposeInput(tensor="image", reverse=4), "none at 4"),
        (TransposeInput(tensor="image", reverse=0), "is not known"),
        (TransposeInput(tensor="image"), "needs `perm`"),
    ],
)
def test_layout_that_does_not_fit_is_refused(edit: TransposeInput, words: str) -> None:
    with pytest.raises(EditError, match=words):
        apply(model_of(IMAGES), edit)


def test_scc4onnx_unknown_and_inner_names_are_refused() -> None:
    for name in ("imag", "a"):
        with pytest.raises(SelectorError, match="no input or output"):
            apply(model_of(IMAGES), TransposeInput(tensor=name, reverse=1))


def test_old_models_get_a_node_for_the_order() -> None:
    model = model_of('<ir_version: 3, opset_import: ["" : 9]> g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }')
    after = apply(model, TransposeInput(tensor="x", reverse=1))
    require_valid(after)
    assert [node.op_type for node in after.graph.node] == ["Constant", "Gather", "Relu"]  # type: ignore[union-attr]
