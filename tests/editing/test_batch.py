"""set-batch-size: acceptance of what sbi4onnx is for."""

from collections.abc import Sequence
from typing import Any

import numpy
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

import onnxjson
from onnxjson.editing.applying import apply, plan, run
from onnxjson.editing.batch import SetBatchSize
from onnxjson.editing.batch_axes import BATCH, BlockedError, Factor, axis_of, regroup, resized
from onnxjson.editing.shapes import SetDim, SetShape
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.tensors import from_numpy
from onnxjson.model.types import format_type, shown_type
from onnxjson.model.walking import walk
from tests.editing.batch_graphs import random_model
from tests.editing.graphs import exported, model_of, require_same_results, require_valid, sample_inputs
from tests.editing.graphs import run as computed


def _types(model: Model) -> list[str | None]:
    assert model.graph is not None
    return [format_type(each.type) for each in (*model.graph.input, *model.graph.output) if each.type]


def _require_rows(before: Model, after: Model, samples: int, axis: int = 0, old: int = 1) -> None:
    """Fails where a sample comes out otherwise in a batch than alone."""
    alone = [sample_inputs(before, {"batch": 1, "length": 5}, seed=seed) for seed in range(samples)]
    together = {name: numpy.concatenate([each[name][:1] for each in alone]) for name in alone[0]}
    results = computed(after, together)[0]
    assert results.shape[axis] == samples
    for place, inputs in enumerate(alone):
        single = computed(before, {name: numpy.repeat(value[:1], old, 0) for name, value in inputs.items()})[0]
        numpy.testing.assert_allclose(numpy.take(results, place, axis), numpy.take(single, 0, axis), 1e-5, 1e-6)


@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize("name", ["mobile_dynamo.onnx", "mobile_ts.onnx", "encoder_dynamo.onnx", "encoder_ts.onnx"])
def test_sbi4onnx_three_samples_of_an_export_are_what_each_is_alone(name: str, size: int | str) -> None:
    before = exported(name)
    after = apply(before, SetBatchSize(size=size))
    require_valid(after)
    _require_rows(before, after, 3)
    assert (_types(after)[0] or "").split("[")[1].startswith(f"{size},")


ATTENTION = """g (float[1,6,8] x) => (float[1,6,8] y)
<int64[4] heads = {1,6,2,4}, int64[4] other = {1,-1,2,4}, int64[3] back = {1,6,8}, int64[2] rows = {6,8},
 float[1,6,8] position = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,
   24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47}> {
   p = Add(x, position)
   q = Reshape(p, heads)
   k = Reshape(p, other)
   qt = Transpose <perm = [0,2,1,3]> (q)
   kt = Transpose <perm = [0,2,3,1]> (k)
   a = MatMul(qt, kt)
   s = Softmax <axis = -1> (a)
   v = MatMul(s, qt)
   m = Transpose <perm = [0,2,1,3]> (v)
   flat = Reshape(m, rows)
   g = Sigmoid(flat)
   y = Reshape(g, back)
}"""


@pytest.mark.parametrize("size", [3, "N"])
def test_sbi4onnx_only_the_numbers_of_the_batch_change(size: int | str) -> None:
    before = model_of(ATTENTION)
    result = run(before, SetBatchSize(size=size))
    require_valid(result.model)
    _require_rows(before, result.model, 3)
    from onnxjson.model.tensors import to_numpy

    graph = result.model.graph
    assert graph is not None
    values = {tensor.name: to_numpy(tensor).reshape(-1).tolist() for tensor in graph.initializer[:4]}
    if size == 3:
        assert values == {"heads": [3, 6, 2, 4], "other": [3, -1, 2, 4], "back": [3, 6, 8], "rows": [18, 8]}
    else:
        assert values == {"heads": [0, 6, 2, 4], "other": [0, -1, 2, 4], "back": [-1, 6, 8], "rows": [-1, 8]}
    assert graph.node == before.graph.node  # type: ignore[union-attr]
    assert "constants that changed" in result.outcomes[0].notes[0]


def test_sbi4onnx_old_size_changes_nothing_and_back_gives_the_function() -> None:
    before = model_of(ATTENTION)
    same = run(before, SetBatchSize(size=1))
    assert same.model is before
    assert same.outcomes[0].notes == ("the batch size is already 1",)
    back = apply(before, [SetBatchSize(size=3), SetBatchSize(size=1)])
    require_same_results(before, back, sample_inputs(before))
    there = apply(before, SetBatchSize(size="N"))
    require_same_results(before, there, sample_inputs(before))
    assert plan(before, SetBatchSize(size="N")).invert().apply(there) == before


def test_sbi4onnx_shape_with_a_minus_one_keeps_only_one() -> None:
    before = model_of(
        """g (float[1,4,6] x) => (float[1,24] y) <int64[2] s = {1,-1}, int64[3] t = {1,-1,3}> {
           z = Reshape(x, t) y = Reshape(z, s)
        }"""
    )
    for size in (3, "N"):
        after = apply(before, SetBatchSize(size=size))
        require_valid(after)
        _require_rows(before, after, 3)


def test_sbi4onnx_constant_of_two_users_is_copied_for_the_one_that_needs_another() -> None:
    before = model_of(
        """g (float[1,4] x, float[4] w) => (float[1,2,2] y, float[1,2,2] z) <int64[3] s = {1,2,2}> {
           y = Reshape(x, s) z = Reshape(w, s)
        }"""
    )
    after = apply(before, SetBatchSize(size=3))
    require_valid(after)
    assert _types(after) == ["float32[3,4]", "float32[4]", "float32[3,2,2]", "float32[1,2,2]"]
    assert [each.name for each in after.graph.initializer] == ["s", "s_1"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "graph",
    [
        """g (float[1,4] x, int64[3] s = {1,2,2}) => (float[1,2,2] y) { y = Reshape(x, s) }""",
        """g (float[1,4] x, float[4] w = {1,2,3,4}, int64[3] s = {1,2,2}) => (float[1,2,2] y, float[1,2,2] z) {
           y = Reshape(x, s) z = Reshape(w, s)
        }""",
        "g (float[1,4] x, float[1,2] h = {1,2}) => (float[1,6] y) { y = Concat <axis = 1> (x, h) }",
    ],
)
def test_constants_of_old_models_follow_although_they_are_inputs(graph: str) -> None:
    before = model_of('<ir_version: 3, opset_import: ["" : 8]> ' + graph)
    after = apply(before, SetBatchSize(size=3))
    require_valid(after)
    _require_rows(before, after, 3)


def test_sbi4onnx_batch_that_is_merged_with_an_axis_comes_apart_again() -> None:
    before = model_of(
        """g (float[2,5,4] x) => (float[2,5,3] y) <int64[2] s = {10,4}, int64[3] t = {2,5,3}> {
           w = RandomUniform <shape = [4,3], seed = 1.0> ()
           f = Reshape(x, s) z = MatMul(f, w) y = Reshape(z, t)
        }"""
    )
    for size in (3, "N"):
        after = apply(before, SetBatchSize(size=size))
        require_valid(after)
        assert computed(after, {"x": numpy.ones((3, 5, 4), numpy.float32)})[0].shape == (3, 5, 3)


RECURRENT = """g (float[1,5,4] x) => (float[5,1,1,3] y) <float[1,1,3] h = {0,0,0}> {
   t = Transpose <perm = [1,0,2]> (x)
   w = RandomUniform <shape = [1,12,4], seed = 1.0> ()
   r = RandomUniform <shape = [1,12,3], seed = 2.0> ()
   y = LSTM <hidden_size = 3> (t, w, r, , , h, h)
}"""


@pytest.mark.parametrize("size", [3, "N"])
def test_state_of_a_recurrent_layer_follows(size: int | str) -> None:
    before = model_of(RECURRENT)
    after = apply(before, SetBatchSize(size=size))
    require_valid(after)
    assert _types(after) == [f"float32[{size},5,4]", f"float32[5,1,{size},3]"]
    inputs = sample_inputs(before)
    one = computed(before, inputs)[0]
    three = computed(after, {"x": numpy.repeat(inputs["x"], 3, 0)})[0]
    assert one.shape == (5, 1, 1, 3)
    assert three.shape == (5, 1, 3, 3)


def test_state_that_is_not_zero_is_repeated() -> None:
    before = model_of(RECURRENT.replace("{0,0,0}", "{0,1,0}"))
    for size in (3, "N"):
        after = apply(before, SetBatchSize(size=size))
        require_valid(after)
        _require_rows(before, after, 3, axis=2)


def test_rows_of_a_constant_are_for_all_samples_where_they_are_alike() -> None:
    text = """g (float[2,3] x) => (float[2,3] y) <float[2,3] w = {1,2,3,1,2,3}> { y = Mul(x, w) }"""
    after = apply(model_of(text), SetBatchSize(size="N"))
    require_valid(after)
    _require_rows(model_of(text), after, 3, old=2)
    with pytest.raises(EditError, match="a different row for each of the 2 samples"):
        apply(model_of(text.replace("1,2,3,1", "1,2,4,1")), SetBatchSize(size="N"))


def test_class_token_gets_a_row_for_each_sample() -> None:
    text = (
        """g (float[1,4,2] x) => (float[1,5,2] y) <float[1,1,2] token = {7,8}> { y = Concat <axis = 1> (token, x) }"""
    )
    for before in (model_of(text), model_of(f'<ir_version: 8, opset_import: ["": 13]> {text}')):
        for size in (3, "N"):
            after = apply(before, SetBatchSize(size=size))
            require_valid(after)
            _require_rows(before, after, 3)


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        # A class token that is expanded by a constant shape.
        ("1,5,2", "<int64[3] s = {1,1,2}, float[1,1,2] c = {7,8}> { e = Expand(c, s) y = Concat <axis = 1> (e, x) }"),
        # Windows: the batch times 2, and the -1 at another axis.
        ("1,2,4", """<int64[4] s = {2,2,2,-1}, int64[3] b = {1,2,-1}>
        { d = Concat <axis = 2> (x, x) w = Reshape(d, s) r = Softmax <axis = -1> (w) t = Reshape(r, b)
          i = Constant <value = int64[4] {0,1,2,3}> () y = Gather <axis = 2> (t, i) }"""),
        # A mask of windows, of computed size, that is repeated for as many samples as the windows are of.
        ("1,4,2", """<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] i = {0}, int64[3] ones = {1,1,1},
         int64[3] windows = {2,2,2}, int64[3] mask = {2,2,1}, int64[3] flat = {-1,2,1}, int64[3] back = {1,4,2}>
        { d = Reshape(x, windows) s = Shape(x) n = Gather(s, one) r = Range(zero, n, one) f = Cast <to = 1> (r)
          m = Reshape(f, mask) t = Shape(d) c = Gather(t, zero) k = Div(c, two) u = Unsqueeze(k, i)
          p = Concat <axis = 0> (u, ones) h = Unsqueeze(m, i) e = Expand(h, p) g = Reshape(e, flat) a = Add(d, g)
          y = Reshape(a, back) }"""),
        # A number that another shape needs as it is.
        ("1,2,4", """<int64 n = {1}, int64[1] z = {0}, int64[1] four = {4}, int64[1] two = {2},
         float[8] w = {1,2,3,4,5,6,7,8}>
        { u = Unsqueeze(n, z) s = Concat <axis = 0> (u, two, four) t = Concat <axis = 0> (u, four, two)
          c = Reshape(w, t) a = Add(x, c) y = Reshape(a, s) }"""),
        # The constants of a branch.
        ("1,2,4", """<bool c = {1}, int64[3] s = {1,2,-1}, int64[3] t = {1,4,2}, float[1,1,2] k = {7,8}> {
        y = If (c) <then_branch = then () => (float[1,2,4] a) { z = Expand(k, t) p = Concat <axis = 1> (x, z)
                    i = Constant <value = int64[4] {0,1,2,3}> () q = Gather <axis = 1> (p, i) a = Reshape(q, s) },
        else_branch = other () => (float[1,2,4] b) { b = Reshape(x, s) }> }"""),
    ],
)  # fmt: skip
def test_sizes_are_computed_where_no_number_can_follow_a_name(shape: str, body: str) -> None:
    before = model_of(f"g (float[1,4,2] x) => (float[{shape}] y) {body}")
    after = apply(before, SetBatchSize(size="N"))
    require_valid(after)
    for samples in (1, 2, 5):
        _require_rows(before, after, samples)


@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize(
    ("shape", "result", "body"),
    [
        # A mask without the batch, of which indices that count the samples select: the mask of DETR.
        ("1,4,2", "1,4,2", """<int64 zero = {0}, int64 one = {1}, float[1,4] mask = {1,2,3,4}, int64 four = {4},
         int64[1] last = {1}>
        { s = Shape(x) n = Gather(s, zero) r = Range(zero, n, one) u = Unsqueeze(r, last) p = Mul(u, four)
          m = Gather(s, one) k = Range(zero, m, one) at = Add(p, k) a = Neg(mask) flat = Flatten <axis = 2> (a)
          g = Gather(flat, at) y = Add(x, g) }"""),
        ("1,4,2", "1,4,2", """<int64 zero = {0}, int64 one = {1}, float[1,4] mask = {1,2,3,4}, int64[1] last = {1},
         int64[2] both = {1,2}, int64[1,1] column = {2}>
        { s = Shape(x) n = Gather(s, zero) r = Range(zero, n, one) u = Unsqueeze(r, last) z = Mul(u, zero)
          c = Add(z, column) at = Concat <axis = 1> (u, c) a = Neg(mask) g = GatherND(a, at) h = Unsqueeze(g, both)
          y = Add(x, h) }"""),
        # Types of tokens at their positions: the embedding of RoBERTa.
        ("1,4,2", "1,4", """<float[1,8] rows = {1,2,3,4,5,6,7,8}, int64[1] l = {2}>
        { m = ArgMax <axis = 2, keepdims = 0> (x) a = Neg(rows) g = GatherElements <axis = 1> (a, m)
          f = ReduceSum <keepdims = 0> (x, l) y = Add(f, g) }"""),
        # Heads of all samples, with keys and indices that all samples share: the attention of DeBERTa.
        ("1,4,4", "1,2,2,4", """<int64[3] heads = {2,2,4}, float[1,4,4] keys = {1,2,3,4,5,6,7,8,8,7,6,5,4,3,2,1},
         int64[3] two = {2,1,1}, int64[4] back = {1,2,2,4}>
        { h = Reshape(x, heads) a = Neg(keys) b = Tile(a, two) q = MatMul(h, b) y = Reshape(q, back) }"""),
        ("1,4,4", "1,2,2,2", """<int64[3] heads = {-1,2,4}, int64[2,2,2] at = {0,1,3,2,1,1,2,0},
         int64[4] back = {1,2,2,2}>
        { h = Reshape(x, heads) i = Identity(at) q = GatherElements <axis = 2> (h, i) y = Reshape(q, back) }"""),
    ],
)  # fmt: skip
def test_what_all_samples_share_is_repeated_where_it_meets_all_of_them(
    shape: str, result: str, body: str, size: int | str
) -> None:
    before = model_of(f"g (float[{shape}] x) => (float[{result}] y) {body}")
    after = apply(before, SetBatchSize(size=size))
    require_valid(after)
    _require_rows(before, after, 3)


def test_heads_of_all_samples_are_stacked_as_attention_of_pytorch_does() -> None:
    before = model_of(
        """g (float[1,6,8] x) => (float[1,6,8] y)
        <int64[3] split = {6,2,4}, int64[3] join = {1,6,8}, int64[2] flat = {6,8}, int64[3] back = {6,1,8}> {
           t = Transpose <perm = [1,0,2]> (x) h = Reshape(t, split) k = Transpose <perm = [1,0,2]> (h)
           kt = Transpose <perm = [0,2,1]> (k) a = MatMul(k, kt) s = Softmax <axis = -1> (a) v = MatMul(s, k)
           u = Transpose <perm = [1,0,2]> (v) f = Reshape(u, flat) b = Reshape(f, back)
           y = Transpose <perm = [1,0,2]> (b)
        }"""
    )
    for size in (3, "N"):
        after = apply(before, SetBatchSize(size=size))
        require_valid(after)
        _require_rows(before, after, 3)


@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize(
    "body",
    [
        """<int64[1,1,5,2] at = {0,4,0,3,0,2,0,1,0,0}> { y = GatherND(x, at) }""",
        """<int64[1,1,5] at = {0,3,2,-1,0}> { flat = Flatten <axis = 2> (x) g = Gather(flat, at)
           s = Shape(at) l = Constant <value = int64[1] {-1}> () f = Reshape(g, l) y = Reshape(f, s) }""",
        """<int64[1] zero = {0}, int64[1] width = {5}, int64[1] last = {-1}, int64[1] ones = {1}> {
           most = ArgMax <axis = 1, keepdims = 0> (x) start = Mul(zero, width) place = Add(most, start)
           flat = Reshape(x, last) g = Gather(flat, place) y = Unsqueeze(g, ones) }""",
        """<int64[1,1] zero = {0}, int64[1] ones = {1}> {
           most = ArgMax <axis = 1, keepdims = 1> (x) at = Concat <axis = 1> (zero, most)
           g = GatherND(x, at) y = Unsqueeze(g, ones) }""",
    ],
)
def test_indices_of_one_sample_become_those_of_all(body: str, size: int | str) -> None:
    types = {"y = GatherND": "float[1,1,5] y", "y = Reshape": "float[1,1,5] y"}
    result = next((types[key] for key in types if key in body), "float[1,1] y")
    before = model_of(f"g (float[1,5] x) => ({result}) {body}")
    after = apply(before, SetBatchSize(size=size))
    require_valid(after)
    _require_rows(before, after, 3)


def test_indices_that_very_many_nodes_compute_are_refused() -> None:
    copies = " ".join([f"i{number + 1} = Identity(i{number})" for number in range(400)])
    head = "g (float[1,4,3] x, int64[1] i0) => (float[1,1] y)"
    model = model_of(f"{head} {{ {copies} f = Flatten <axis = 2> (x) y = Gather(f, i400) }}")
    with pytest.raises(EditError, match="too many nodes to be followed"):
        apply(model, SetBatchSize(size=2, inputs={"x": 0}))


def test_sizes_that_are_computed_out_of_constants_change_where_they_come_from() -> None:
    before = model_of(
        """g (float[1,4,6] x) => (float[1,24] y) <int64[1] one = {1}, int64[1] i = {1}, int64[1] j = {2}> {
           s = Shape(x) a = Gather(s, i) b = Gather(s, j) c = Mul(a, b)
           k = Concat <axis = 0> (one, c) y = Reshape(x, k)
        }"""
    )
    for size in (3, "N"):
        after = apply(before, SetBatchSize(size=size))
        _require_rows(before, after, 3)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y = ReduceMean <axes = [0], keepdims = 0> (x)", "ReduceMean.*combines samples with each other"),
        ("y = Softmax <axis = 0> (x)", "Softmax.*combines samples with each other"),
        ("y = Squeeze <axes = [0]> (x)", "Squeeze.*removes that dimension"),
        ("t = Transpose(x) y = MatMul(x, t)", "MatMul.*pairs each sample with all others"),
        ("n = Abs(x) t = Transpose(n) y = Gemm(x, t)", "Gemm.*pairs each sample with all others"),
        ("a = Unsqueeze <axes = [0]> (x) b = Unsqueeze <axes = [1]> (x) y = Sub(a, b)", r"Sub\).*pairs each sample"),
        ("a = ReduceSum <axes = [1]> (x) b = Transpose(a) y = Add(a, b)", r"Add\).*pairs each sample"),
        (
            "b = ReduceSum <axes = [1]> (x) a = ReduceSum <axes = [1], keepdims = 0> (x) y = Add(b, a)",
            r"Add\).*pairs each sample",
        ),
        ("i = ArgMax <axis = 1, keepdims = 0> (x) y = Gather <axis = 1> (x, i)", "Gather.*pairs each sample"),
        ("t = Transpose(x) y = MatMul(t, x)", "MatMul.*combines samples with each other"),
        ("y = local.Op(x)", "local:Op"),
        ("y = Concat <axis = 0> (x, x)", "Concat.*combines samples with each other"),
        ("i = Constant <value = int64[1] {0}> () y = Gather <axis = 0> (x, i)", "Gather.*selects some of the samples"),
        ("y = NonZero(x)", "NonZero"),
        ("s = Constant <value = float[2] {2.0, 1.0}> () y = Resize(x, , s)", "Resize.*scales the number of samples"),
        ("p = Constant <value = int64[4] {1, 0, 0, 0}> () y = Pad(x, p)", "Pad.*adds samples"),
        ("r = Constant <value = int64[2] {2, 1}> () y = Tile(x, r)", "Tile.*repeats the samples"),
    ],
)
def test_sbi4onnx_what_cannot_be_followed_is_listed_and_nothing_changes(body: str, words: str) -> None:
    model = model_of(
        f'<ir_version: 10, opset_import: ["" : 12, "local" : 1]> g (float[1,4] x) => (float[?,?] y) {{ {body} }}'
    )
    with pytest.raises(EditError, match=words):
        apply(model, SetBatchSize(size=3))
    result = run(model, SetBatchSize(size=3, partial=True))
    assert _types(result.model)[0] == "float32[3,4]"
    assert any(note.startswith("not followed: /graph/node/") for note in result.outcomes[0].notes)


def test_two_inputs_of_samples_are_not_paired() -> None:
    model = model_of("g (float[1,4] x, float[1,4] t) => (float[1,1] y) { u = Transpose(t) y = MatMul(x, u) }")
    for size in (3, "N"):
        with pytest.raises(EditError, match=r"/graph/node/1 \(MatMul\): it pairs each sample with all others"):
            apply(model, SetBatchSize(size=size))


def test_random_numbers_that_all_samples_share_are_noted() -> None:
    model = model_of("g (float[1,4] x) => (float[1,4] y) { r = RandomNormal <shape = [1, 4]> () y = Add(x, r) }")
    notes = run(model, SetBatchSize(size="N")).outcomes[0].notes
    assert "/graph/node/0 (RandomNormal) draws one set of random numbers for all samples" in notes


BLOCKED = """then_branch = t () => (float[1,4] r) { r = Softmax <axis = 0> (x) },
                       else_branch = e () => (float[1,4] o) { o = Neg(x) }"""


@pytest.mark.parametrize(
    "node",
    [
        f"c = Constant <value = bool {{1}}> () y = If (c) <{BLOCKED}>",
        """c = Constant <value = int64 {2}> () y = Loop (c, , x) <body = b (int64 i, bool g, float[1,4] v) => (bool h,
           float[1,4] w) { h = Identity(g) w = Softmax <axis = 0> (v) }>""",
    ],
)
def test_a_node_is_not_blamed_for_one_in_its_body(node: str) -> None:
    with pytest.raises(EditError) as raised:
        apply(model_of(f"g (float[1,4] x) => (float[1,4] y) {{ {node} }}"), SetBatchSize(size="N"))
    text = str(raised.value)
    assert "(Softmax): it combines samples with each other" in text
    assert "of its body" not in text
    assert "branches" not in text


def test_branches_are_followed() -> None:
    before = model_of(
        """g (float[1,4] x, bool c) => (float[1,2,2] y) <int64[3] s = {1,2,2}> {
           y = If (c) <then_branch = t () => (float[1,2,2] r) <int64[3] q = {1,2,2}> { r = Reshape(x, q) },
                       else_branch = e () => (float[1,2,2] o) { n = Neg(x) o = Reshape(n, s) }>
        }"""
    )
    for size in (3, "N"):
        after = apply(before, SetBatchSize(size=size, inputs={"x": 0}))
        require_valid(after)
        for choice in (True, False):
            inputs = {"x": numpy.arange(12, dtype=numpy.float32).reshape(3, 4), "c": numpy.array(choice)}
            assert computed(after, inputs)[0].shape == (3, 2, 2)


def test_a_condition_that_samples_decide_is_refused() -> None:
    branches = (
        "<then_branch = t () => (float[1,1] r) { r = Neg(x) }, else_branch = e () => (float[1,1] o) { o = Abs(x) }>"
    )
    model = model_of(f"g (float[1,1] x, float[1,1] z) => (float[1,1] y) {{ c = Greater(x, z) y = If (c) {branches} }}")
    with pytest.raises(EditError, match=r"/graph/node/1 \(If\): it has one condition for all samples"):
        apply(model, SetBatchSize(size="N"))


LOOP = """g (float[1,4] x, int64 n) => (float[1,4] y, float[?,1,2,2] z) <bool yes = {1}, int64[3] s = {1,2,2}> {
   y, z = Loop <body = b (int64 i, bool c, float[1,4] v) => (bool c2, float[1,4] w, float[1,2,2] q)
                      { c2 = Identity(c) w = Add(v, x) q = Reshape(w, s) }> (n, yes, x)
}"""

SCAN = """g (float[1,4] h, float[5,1,4] x) => (float[1,4] y, float[5,1,4] z) {
   y, z = Scan <num_scan_inputs = 1, body = b (float[1,4] s, float[1,4] e) => (float[1,4] t, float[1,4] o)
                                     { t = Add(s, e) o = Neg(t) }> (h, x)
}"""


@pytest.mark.parametrize("size", [3, "N"])
def test_loops_are_followed(size: int | str) -> None:
    before = model_of(LOOP)
    after = apply(before, SetBatchSize(size=size, inputs={"x": 0}))
    require_valid(after)
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    together = computed(after, {"x": x, "n": numpy.array(2)})
    alone = [computed(before, {"x": x[place : place + 1], "n": numpy.array(2)}) for place in range(3)]
    assert together[0].tobytes() == numpy.concatenate([each[0] for each in alone]).tobytes()
    assert together[1].tobytes() == numpy.concatenate([each[1] for each in alone], 1).tobytes()


@pytest.mark.parametrize("size", [3, "N"])
def test_scans_are_followed(size: int | str) -> None:
    before = model_of(SCAN)
    after = apply(before, SetBatchSize(size=size, inputs={"h": 0, "x": 1}))
    require_valid(after)
    assert _types(after)[1:] == [f"float32[5,{size},4]", f"float32[{size},4]", f"float32[5,{size},4]"]
    inputs = {"h": numpy.ones((3, 4), numpy.float32), "x": numpy.ones((5, 3, 4), numpy.float32)}
    assert [each.shape for each in computed(after, inputs)] == [(3, 4), (5, 3, 4)]
    with pytest.raises(EditError, match="moves that dimension of a carried value to another axis"):
        apply(before, SetBatchSize(size=size, inputs={"x": 1}))


def test_inputs_without_the_batch_are_named_and_can_be_chosen() -> None:
    before = model_of("g (float[1,4] x, float[4,1] state) => (float[1,4] y) { t = Transpose(state) y = Add(x, t) }")
    with pytest.raises(EditError):
        apply(before, SetBatchSize(size=3, inputs={"x": 0, "state": 0}))
    after = apply(before, SetBatchSize(size=3, inputs={"x": 0, "state": 1}))
    assert _types(after) == ["float32[3,4]", "float32[4,3]", "float32[3,4]"]
    alone = run(before, SetBatchSize(size=3))
    assert alone.outcomes[0].notes == (
        'the output "y" changed from float32[1,4] to float32[3,4]',
        '"state" is assumed to have no batch',
    )
    with pytest.raises(SelectorError):
        apply(before, SetBatchSize(size=3, inputs={"other": 0}))
    for wrong in ({"x": 2}, {}, {"y": 0}):
        with pytest.raises(EditError):
            apply(before, SetBatchSize(size=3, inputs=wrong))


def test_a_batch_of_unknown_size_gets_one() -> None:
    before = model_of(
        """g (float[a,4] x, float[a,4] state) => (float[a,4] y) <int64[2] rows = {-1,4}> {
           t = Reshape(state, rows) y = Add(x, t) }"""
    )
    unknown = apply(before, SetDim(dim="a", size="b"))
    for name in ("x", "state"):
        unknown = apply(unknown, SetDim(tensor=name, axis=0, size="?"))
    assert _types(unknown)[:2] == ["float32[?,4]"] * 2
    assert _types(apply(unknown, SetBatchSize(size=3))) == ["float32[3,4]"] * 3
    assert _types(apply(unknown, SetBatchSize(size="N")))[:2] == ["float32[N,4]"] * 2
    proto = onnxjson.to_proto(unknown)
    for value in proto.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = -1  # as Paddle and Keras write it
    assert _types(apply(onnxjson.from_proto(proto), SetBatchSize(size="N")))[:2] == ["float32[N,4]"] * 2
    fixed = model_of("g (float[?,4] x) => (float[1,4] y) <int64[2] rows = {1,4}> { y = Reshape(x, rows) }")
    with pytest.raises(EditError):
        apply(fixed, SetBatchSize(size=3))


def test_the_node_is_named_where_inputs_with_different_sizes_meet() -> None:
    before = model_of(
        "g (float[1,4] x, float[2,4] state) => (float[2,4] y) { a = Abs(x) b = Abs(state) y = Add(a, b) }"
    )
    with pytest.raises(EditError, match=r'/graph/node/2 \(Add\): .*sizes: "x" has 1, "state" has 2'):
        apply(before, SetBatchSize(size=3, inputs={"x": 0, "state": 0}))


@pytest.mark.parametrize("size", [0, -1, "", "?"])
def test_sizes_that_are_none_are_refused(size: int | str) -> None:
    with pytest.raises(EditError):
        apply(model_of(ATTENTION), SetBatchSize(size=size))


@pytest.mark.parametrize(
    ("axes", "sizes", "batch", "result"),
    [
        ([(BATCH,), (16,), (32,)], [1, 16, 2, 16], 1, [(BATCH,), (16,), (2,), (16,)]),
        ([(BATCH,), (16,), (32,)], [16, 32], 1, [(BATCH, 16), (32,)]),
        ([(BATCH, 16), (96,)], [1, 16, 96], 1, [(BATCH,), (16,), (96,)]),
        ([(25,), (BATCH,), (37,)], [25, 37], 1, [(25, BATCH), (37,)]),
        ([(), (BATCH,), (8,)], [1, 1, 8], 1, [(), (BATCH,), (8,)]),
        ([(4,), (BATCH,), (4,)], [2, 8], 1, [(2,), (2, BATCH, 4)]),
        ([(BATCH,), (6,)], [4, 3], 2, [(BATCH, 2), (3,)]),
        ([(BATCH,), ("n",), (24,)], [1, "n", 4, 6], 1, [(BATCH,), ("n",), (4,), (6,)]),
        ([(BATCH,), (16,), (32,)], [16, 1, 32], 1, None),
        ([(BATCH,), (3,)], [3, 2], 2, None),
    ],
)
def test_batch_stays_in_its_place_among_the_factors(
    axes: Sequence[tuple[Factor, ...]], sizes: list[int | str | None], batch: int, result: Sequence[Any] | None
) -> None:
    if result is None:
        with pytest.raises(BlockedError):
            regroup(tuple(axes), sizes, batch)
    else:
        assert list(regroup(tuple(axes), sizes, batch)) == list(result)


def test_axes_with_the_batch_are_called_by_its_name() -> None:
    assert resized((BATCH,), "N") == "N"
    assert resized((16, BATCH), "N") == "16*N"
    assert resized((16, BATCH), 3) == 48
    assert resized(("n", BATCH), 3) == "3*n"
    assert resized((BATCH, "\0x"), 3) is None
    assert axis_of([2, 1, 3, "n", 1, 4]) == (6, "n", 4)


def _samples(array: NDArray[Any], axis: int, before: int, samples: int) -> NDArray[Any]:
    """An array with the samples first."""
    dims = array.shape
    parted = array.reshape(*dims[:axis], before, samples, dims[axis] // before // samples, *dims[axis + 1 :])
    return numpy.moveaxis(parted, axis + 1, 0)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_graphs_are_refused_or_keep_samples_apart(start: int) -> None:
    """A batch is where the results of samples alone come out again: along one axis, within one of its factors."""
    count = 0
    for seed in range(start, start + 20):
        old = 1 + seed % 2
        before = random_model(seed, old, 6 + seed % 5)
        for size in (3, "N"):
            try:
                after = apply(before, SetBatchSize(size=size))
            except EditError:
                continue
            count += 1
            x = numpy.random.default_rng(seed).standard_normal((3, 4, 6)).astype(numpy.float32)
            together = computed(after, {"x": x})[0]
            alone = [computed(before, {"x": numpy.repeat(x[place : place + 1], old, 0)})[0] for place in range(3)]
            grown = [axis for axis in range(together.ndim) if together.shape[axis] != alone[0].shape[axis]]
            assert len(grown) == 1, seed
            rows = alone[0].shape[grown[0]] // old
            assert any(
                rows % before_rows == 0
                and all(
                    numpy.array_equal(
                        _samples(together, grown[0], before_rows, 3)[place],
                        _samples(alone[place], grown[0], before_rows, old)[0],
                        equal_nan=True,
                    )
                    for place in range(3)
                )
                for before_rows in range(1, rows + 1)
            ), seed
    assert count


def test_nothing_but_shapes_and_constants_changes() -> None:
    before = exported("encoder_dynamo.onnx")
    after = apply(before, SetBatchSize(size=2))
    assert before.graph is not None
    assert after.graph is not None
    assert after.graph.node == before.graph.node
    assert list(walk(after, Model)) == [after]


RECURRENT_SIZES = """g (float[{x}] x, float[{h}] h, int64[{n}] n) => (float y, float z)
    <float[1,{rows},4] w, float[1,{rows},3] r> {{
    y, z = {operator} <hidden_size = 3, layout = {layout}> (x, w, r, {inputs})
}}"""


def _recurrent(operator: str, layout: int, x: str, h: str = "1,1,3", inputs: str = ", , h", n: str = "1") -> Model:
    rows = {"LSTM": 12, "GRU": 9, "RNN": 3}[operator]
    text = RECURRENT_SIZES.format(x=x, h=h, n=n, rows=rows, operator=operator, layout=layout, inputs=inputs)
    constants = [numpy.full((1, rows, columns), 0.1, numpy.float32) for columns in (4, 3)]
    model = model_of(text.replace(f"float[1,{rows},4] w, float[1,{rows},3] r", ""))
    assert model.graph is not None
    named = [from_numpy(array, name) for name, array in zip("wr", constants, strict=True)]
    return replace(model, graph=replace(model.graph, initializer=tuple(named)))


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize("old", ["1", "steps", "?"])
def test_a_batch_on_the_time_axis_is_refused(operator: str, size: int | str, old: str) -> None:
    words = rf"/graph/node/0 \({operator}\): axis {{}} of its input is time"
    for layout, x in ((0, f"{old},1,4"), (1, f"1,{old},4")):
        model = _recurrent(operator, layout, x)
        with pytest.raises(EditError, match=words.format(layout)):
            apply(model, SetBatchSize(size=size, inputs={"x": layout}))


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize("old", ["1", "?"])
def test_initial_states_and_lengths_must_have_the_batch_of_the_input(operator: str, size: int | str, old: str) -> None:
    for layout, x, h in ((0, f"5,{old},4", f"1,{old},3"), (1, f"{old},5,4", f"{old},1,3")):
        model, axis = _recurrent(operator, layout, x, h), 1 - layout
        for inputs, other in (({"x": axis}, "h"), ({"h": axis}, "x")):
            with pytest.raises(EditError, match=f'must be that dimension, too; name the axis of the input "{other}"'):
                apply(model, SetBatchSize(size=size, inputs=inputs))
        assert _types(apply(model, SetBatchSize(size=size, inputs={"x": axis, "h": axis})))[1]
    lengths = _recurrent(operator, 0, f"5,{old},4", inputs=", n", n=old)
    with pytest.raises(EditError, match='name the axis of the input "n"'):
        apply(lengths, SetBatchSize(size=size, inputs={"x": 1}))
    apply(lengths, SetBatchSize(size=size, inputs={"x": 1, "n": 0}))


@pytest.mark.parametrize("old", ["1", "batch"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y, s, z = DynamicQuantizeLinear(x)", "it computes one scale for all samples"),
        ("a = Constant <value_int = 0> () y = CumSum(x, a)", "accumulates along this axis"),
        ("y, n, v = BatchNormalization <training_mode = 1> (x, w, w, w, w)", "the mean of all samples"),
        ("s, y = TopK <axis = 0> (x, k)", "it selects among all samples"),
        ("y = Unique(x)", "compares all samples with each other"),
        ("y = EyeLike(x)", "by their position along this axis"),
    ],
)
def test_operators_that_mix_samples_are_named_with_their_property(old: str, body: str, reason: str) -> None:
    weights = "<float[4] w = {1,1,1,1}, int64[1] k = {2}>"
    model = model_of(f"g (float[{old},4] x) => (float y) {weights} {{ {body} }}")
    with pytest.raises(EditError, match=reason):
        apply(model, SetBatchSize(size="N"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("z = Relu(x) y = Slice(z, n, e, a)", "Slice.*its input 1 is the same for all samples"),
        ("y, i = TopK(x, n)", "TopK.*its input 1 is the same for all samples"),
        (
            "y = Loop <body = b (int64 i, bool c, float[1,4] v) => (bool d, float[1,4] w) {d=Not(c) w=Neg(v)}>(n,,x)",
            "Loop.*it has one number of iterations for all samples",
        ),
    ],
)
def test_numbers_that_are_one_for_all_samples_cannot_be_inputs_of_them(body: str, reason: str) -> None:
    weights = "<int64[1] e = {9}, int64[1] a = {1}>"
    model = model_of(f"g (float[1,4] x, int64[1] n) => (float[?,?] y) {weights} {{ {body} }}")
    for size in (3, "N"):
        with pytest.raises(EditError, match=reason):
            apply(model, SetBatchSize(size=size))
    apply(model, SetBatchSize(size=3, inputs={"x": 0}))


@pytest.mark.parametrize(("body", "is_counted"), [("y = Cast<to = 1>(i)", True), ("y = MaxUnpool POOL (p, i)", False)])
def test_places_among_all_samples_are_refused_unless_they_are_undone(body: str, is_counted: bool) -> None:
    body = f"p, i = MaxPool POOL (x) {body}".replace("POOL", "<kernel_shape = [2], strides = [2]>")
    before = model_of(f"g (float[1,1,4] x) => (float[1,1,?] y) {{ {body} }}")
    if is_counted:
        with pytest.raises(EditError, match="its indices count through all samples"):
            apply(before, SetBatchSize(size="N"))
        return
    _require_rows(before, apply(before, SetBatchSize(size="N")), 3)


@pytest.mark.parametrize(
    "body",
    [
        "s = Shape(x) n = Gather(s, z) f = Cast<to = 1>(n) y = Div(x, f)",
        "n = Size(x) f = Cast<to = 1>(n) y = Mul(x, f)",
        "s = Shape(x) f = Cast<to = 1>(s) r = Sqrt(f) n = Gather(r, z) y = Mul(x, n)",
        "s = Shape(x) n = Gather(s, z) r = Range(z, n, o) f = Cast<to = 1>(r) c = Unsqueeze(f, a) y = Add(x, c)",
        "s = Shape(x) n = Gather(s, z) c = Equal(n, o) y = If(c) <then_branch = NEG, else_branch = ABS>",
    ],
)
def test_a_model_that_computes_with_the_number_of_samples_is_refused(body: str) -> None:
    for name in ("Neg", "Abs"):
        body = body.replace(name.upper(), f"{name} () => (float[1,4] {name}_y) {{ {name}_y = {name}(x) }}")
    weights = "<int64 z = {0}, int64 o = {1}, int64[1] a = {1}>"
    model = model_of(f"g (float[1,4] x) => (float[1,4] y) {weights} {{ {body} }}")
    for size in (3, "N"):
        with pytest.raises(EditError, match="uses the number of samples"):
            apply(model, SetBatchSize(size=size))


def test_the_number_of_samples_in_shapes_and_indices_is_followed() -> None:
    weights = "<int64 z = {0}, int64 o = {1}, int64[1] a = {0}, int64[1] k = {-1}>"
    body = "s = Shape(x) n = Gather(s, z) u = Unsqueeze(n, a) t = Concat<axis = 0>(u, k) y = Reshape(x, t)"
    before = model_of(f"g (float[1,2,2] x) => (float[1,4] y) {weights} {{ {body} }}")
    after = apply(before, SetBatchSize(size="N"))
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 2, 2)
    alone = [computed(before, {"x": x[place : place + 1]})[0] for place in range(3)]
    numpy.testing.assert_array_equal(computed(after, {"x": x})[0], numpy.concatenate(alone))


@pytest.mark.parametrize("size", [3, "N"])
def test_lengths_of_a_reversed_sequence_follow_the_batch(size: int | str) -> None:
    before = model_of("g (float[5,1,4] x) => (float[5,1,4] y) <int64[1] n = {3}> { y = ReverseSequence(x, n) }")
    after = apply(before, SetBatchSize(size=size, inputs={"x": 1}))
    require_valid(after)
    x = numpy.arange(60, dtype=numpy.float32).reshape(5, 3, 4)
    alone = [computed(before, {"x": x[:, place : place + 1]})[0] for place in range(3)]
    numpy.testing.assert_array_equal(computed(after, {"x": x})[0], numpy.concatenate(alone, 1))
    with pytest.raises(EditError, match="it reverses the order along axis 0"):
        apply(before, SetBatchSize(size=size, inputs={"x": 0}))


def test_weights_that_have_the_batch_are_refused() -> None:
    model = model_of(
        "g (float[1,2,5] w) => (float y) <float[1,2,9] x> { y = Conv(x, w) }".replace("<float[1,2,9] x>", "")
    )
    assert model.graph is not None
    x = from_numpy(numpy.ones((1, 2, 9), numpy.float32), "x")
    model = replace(model, graph=replace(model.graph, initializer=(x,)))
    with pytest.raises(EditError, match="its input 1 is the same for all samples, but has that dimension"):
        apply(model, SetBatchSize(size=3))


def test_a_name_of_the_batch_on_another_axis_is_the_batch_too() -> None:
    model = model_of(
        "g (float[B,4] x, float[2,B,4] h) => (float[C,4] y) { s = ReduceSum <keepdims = 0> (h, a) y = Add(x, s) }"
    )
    assert model.graph is not None
    axes = from_numpy(numpy.array([0]), "a")
    model = replace(model, graph=replace(model.graph, initializer=(axes,)))
    result = run(model, SetBatchSize(size="N"))
    assert _types(result.model) == ["float32[N,4]", "float32[2,N,4]", "float32[N,4]"]
    assert not any("assumed" in note for note in result.outcomes[0].notes)


def test_an_input_that_may_have_the_batch_must_be_named_where_it_cannot_be_followed() -> None:
    model = model_of(
        """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
        g (float[?,4] x, float[2,?] h) => (float y) { y = local.Op(x, h) }"""
    )
    with pytest.raises(
        EditError, match=r'not known whether "h" has the batch.*local:Op on that dimension is not known'
    ):
        apply(model, SetBatchSize(size="N"))
    after = run(model, SetBatchSize(size="N", inputs={"x": 0, "h": 1}))
    assert _types(after.model)[:2] == ["float32[N,4]", "float32[2,N]"]
    assert any("so samples may be mixed: /graph/node/0" in note for note in after.outcomes[0].notes)


@pytest.mark.parametrize(("dims", "is_advised"), [("1,4,6", True), ("1,4,w", False)])
def test_folding_is_advised_only_where_it_helps(dims: str, is_advised: bool) -> None:
    model = model_of(f"""g (float[{dims}] x, float[1,4,6] z) => (float[A,B] y) {{
        s = Shape (x)
        f = Cast <to = 1> (s)
        h = Ceil (f)
        i = Cast <to = 7> (h)
        from = Constant <value_ints = [1]> ()
        to = Constant <value_ints = [3]> ()
        j = Slice (i, from, to)
        y = Reshape (x, j)
    }}""")
    with pytest.raises(EditError, match="its shape is computed in a way") as caught:
        apply(model, SetBatchSize(size="N"))
    assert ("fold constants first" in str(caught.value)) == is_advised
    assert "; `partial` changes the rest" in str(caught.value)


def test_folding_is_not_advised_for_other_reasons() -> None:
    body = "s = Constant <value_ints = [2, 2]> () h = Reshape (x, s) y = CumSum (h, h)"
    with pytest.raises(EditError) as caught:
        apply(model_of(f"g (float[1,4] x) => (float[2,2] y) {{ {body} }}"), SetBatchSize(size="N"))
    assert "fold" not in str(caught.value)


@pytest.mark.parametrize("old", ["1", "batch"])
def test_roots_of_the_number_of_samples_are_refused_whether_it_is_fixed_or_named(old: str) -> None:
    body = "s = Shape <start = 0, end = 1> (x) f = Cast <to = 1> (s) q = Sqrt (f) y = Mul (x, q)"
    with pytest.raises(EditError, match=r"/graph/node/3 \(Mul\): it uses the number of samples"):
        apply(model_of(f"g (float[{old},4] x) => (float[{old},4] y) {{ {body} }}"), SetBatchSize(size="N"))


def test_sizes_that_still_hold_stay_where_the_batch_was_open() -> None:
    model = model_of("""g (float[?,4] x, int64[2] s) => (float[?,4] y) <float[?,2] h> {
        h = Reshape (x, s)
        t = Constant <value_ints = [1, 2]> ()
        u = Mul (s, t)
        y = Reshape (h, u)
    }""")
    after = apply(model, SetBatchSize(size="N", inputs={"x": 0}))
    assert after.graph is not None
    assert [shown_type(each.type) for each in after.graph.output if each.type] == ["float32[?,4]"]
    assert [shown_type(each.type) for each in after.graph.value_info if each.type] == ["float32[?,2]"]
    # Another size of an axis that had one can change all others.
    resized = apply(model, SetShape(tensor="x", shape=(6, 2)))
    assert resized.graph is not None
    assert [shown_type(each.type) for each in resized.graph.output if each.type] == ["float32[?,?]"]
