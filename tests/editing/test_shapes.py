"""set-shape and set-dim: acceptance of what sio4onnx is for."""

import numpy
import pytest
from msgspec.structs import replace

from onnxjson.editing.applying import apply, run
from onnxjson.editing.reshaped_sizes import regrouped
from onnxjson.editing.shapes import SetDim, SetShape
from onnxjson.model.dimensions import substitute
from onnxjson.model.document import Dimension, Model
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.types import format_type
from tests.editing.batch_graphs import random_model
from tests.editing.graphs import exported, model_of, require_same_results, require_valid, sample_inputs
from tests.editing.graphs import run as computed


def _types(model: Model) -> dict[str | None, str | None]:
    assert model.graph is not None
    values = (*model.graph.input, *model.graph.output, *model.graph.value_info)
    return {each.name: format_type(each.type) if each.type else None for each in values}


@pytest.mark.parametrize("name", ["mobile_dynamo.onnx", "mobile_ts.onnx"])
def test_sio4onnx_image_of_another_size_goes_all_the_way(name: str) -> None:
    before = exported(name)
    result = run(before, SetShape(tensor="image", shape=(1, 3, 64, 48)))
    require_valid(result.model)
    types = _types(result.model)
    assert types["image"] == "float32[1,3,64,48]"
    stale = [text for text in types.values() if text and text.endswith(",32,32]")]
    assert not stale
    assert computed(result.model, sample_inputs(result.model))[0].shape == (1, 10)
    assert len(result.model.graph.node) == len(before.graph.node)  # type: ignore[union-attr]


def test_sio4onnx_types_in_between_follow() -> None:
    after = apply(exported("mobile_dynamo.onnx"), SetShape(tensor="image", shape=("N", 3, 64, "W")))
    types = _types(after)
    assert types["image"] == "float32[N,3,64,W]"
    assert types["linear"] == "float32[N,10]"
    require_valid(after)
    values = {"image": numpy.zeros((2, 3, 64, 40), numpy.float32)}
    assert computed(after, values)[0].shape == (2, 10)


FLAT = """g (float[1,3,8,8] x) => (float[1,5] y) {
   [flat] f = Flatten(x)
   w = ConstantOfShape <value = float[1] {1}> (s)
   [fc] y = Gemm(f, w)
}"""


def _flat() -> Model:
    return model_of(FLAT.replace("(float[1,5] y)", "(float[1,5] y) <int64[2] s = {192, 5}>"))


def test_sio4onnx_node_that_blocks_is_named() -> None:
    with pytest.raises(EditError, match='Gemm "fc"'):
        apply(_flat(), SetShape(tensor="x", shape=(1, 3, 16, 16)))
    forced = run(_flat(), SetShape(tensor="x", shape=(1, 3, 16, 16), anyway=True))
    assert any("Gemm" in note for note in forced.outcomes[0].notes)
    assert _types(forced.model)["x"] == "float32[1,3,16,16]"


@pytest.mark.parametrize(
    ("text", "shape", "operator"),
    [
        ("g (float[2,6] x) => (float[3,4] y) <int64[2] s = {3,4}> { y = Reshape(x, s) }", (2, 5), "Reshape"),
        ("g (float[2,6] x) => (float[3,4] y) <int64[2] s = {3,4}> { y = Reshape(x, s) }", ("N", 6), "Reshape"),
        (
            "g (float[2,6] x) => (float[2,3] y) { w = RandomNormal <shape = [6,3]> () y = MatMul(x, w) }",
            (2, 5),
            "MatMul",
        ),
        (
            "g (float[1,3,8,8] x) => (float[1,4,6,6] y) { w = RandomNormal <shape = [4,3,3,3]> () y = Conv(x, w) }",
            (1, 4, 8, 8),
            "Conv",
        ),
        ("g (float[2,6] x) => (float[2,6] y) { w = RandomNormal <shape = [2,6]> () y = Add(x, w) }", (2, 5), "Add"),
    ],
)
def test_sio4onnx_sizes_that_do_not_fit_are_found(text: str, shape: tuple[int | str, ...], operator: str) -> None:
    with pytest.raises(EditError, match=f"shape inference fails at {operator}"):
        apply(model_of(text), SetShape(tensor="x", shape=shape))


def test_sio4onnx_any_subset_and_several_at_once() -> None:
    before = model_of("g (float[2,3] a, float[2,3] b) => (float[2,3] y) { y = Add(a, b) }")
    with pytest.raises(EditError, match="Add"):
        apply(before, SetShape(tensor="a", shape=(4, 3)))
    after = apply(before, SetShape(shapes={"a": (4, 3), "b": (4, 3)}))
    assert set(_types(after).values()) == {"float32[4,3]"}


def test_shape_of_an_output_or_value_must_be_what_is_made() -> None:
    before = model_of("g (float[N,3] x) => (float[N,3] y) { a = Relu(x) y = Neg(a) }")
    after = apply(before, SetShape(tensor="y", shape=("M", 3)))
    assert _types(after)["y"] == "float32[M,3]"
    for shape in (("N", 4), ("N",)):
        with pytest.raises(EditError, match=r"has the shape \[N,3\]"):
            apply(before, SetShape(tensor="y", shape=shape))
    with pytest.raises(EditError, match='the dtype of "a" is not known'):
        apply(before, SetShape(tensor="a", shape=("N", 3)))


def test_stale_types_are_opened_where_nobody_knows() -> None:
    before = model_of(
        """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float[2,3] a, float[2,3] b> {
           a = local.Unknown(x) b = Relu(x) y = Neg(a) z = Neg(b)
        }"""
    )
    result = run(before, SetShape(tensor="x", shape=(4, 3)))
    assert _types(result.model) == {"x": "float32[4,3]", "y": "float32[?,?]", "z": "float32[4,3]", "b": "float32[4,3]"}
    assert any("Unknown" in note for note in result.outcomes[0].notes)


def test_shape_alone_changes_if_nothing_is_to_follow() -> None:
    before = _flat()
    after = apply(before, SetShape(tensor="x", shape=(1, 3, 16, 16), propagate=False))
    assert after.graph is not None
    assert before.graph is not None
    assert replace(after.graph, input=before.graph.input) == before.graph


def test_denotations_of_dimensions_stay() -> None:
    before = model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    assert before.graph is not None
    value = before.graph.input[0]
    assert value.type is not None
    assert value.type.tensor_type is not None
    assert value.type.tensor_type.shape is not None
    dims = (Dimension(dim_value=2, denotation="DATA_BATCH"), Dimension(dim_value=3, denotation="DATA_CHANNEL"))
    tensor = replace(value.type.tensor_type, shape=replace(value.type.tensor_type.shape, dim=dims))
    value = replace(value, type=replace(value.type, tensor_type=tensor))
    after = apply(replace(before, graph=replace(before.graph, input=(value,))), SetShape(tensor="x", shape=("N", 3)))
    shape = after.graph.input[0].type.tensor_type.shape  # type: ignore[union-attr]
    assert shape is not None
    assert [(each.dim_param, each.denotation) for each in shape.dim] == [("N", "DATA_BATCH"), (None, "DATA_CHANNEL")]


def test_body_of_a_loop_follows() -> None:
    before = exported("branches_ts.onnx")
    after = apply(before, SetShape(tensor="numbers", shape=(5,)))
    require_valid(after)
    values = {"numbers": numpy.arange(5, dtype=numpy.float32), "rounds": numpy.array(2)}
    assert computed(after, values)[0].shape == (5,)


@pytest.mark.parametrize(
    "edit",
    [
        SetShape(tensor="x"),
        SetShape(tensor="x", shape=(1,), shapes={"y": (1,)}),
        SetShape(tensor="x", shape=(-1, 3)),
        SetShape(tensor="x", shape=("", 3)),
        SetShape(tensor="w", shape=(1,)),
    ],
)
def test_shapes_that_are_none_are_refused(edit: SetShape) -> None:
    with pytest.raises(EditError):
        apply(model_of("g (float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}> { y = Add(x, w) }"), edit)


@pytest.mark.parametrize("name", ["encoder_dynamo.onnx", "encoder_ts.onnx"])
def test_dimension_is_fixed_everywhere_and_freed_again(name: str) -> None:
    before = exported(name)
    fixed = apply(before, [SetDim(dim="batch", size=2), SetDim(dim="length", size=5)])
    require_valid(fixed)
    assert _types(fixed)["words"] == _types(fixed)["mask"] == "int64[2,5]"
    assert _types(fixed)["states"] == "float32[2,5,24]"
    require_same_results(before, fixed, sample_inputs(before, {"batch": 2, "length": 5}))
    freed = apply(fixed, [SetDim(tensor=each, axis=0, size="batch") for each in ("words", "mask")])
    require_valid(freed)
    require_same_results(before, freed, sample_inputs(before, {"batch": 2, "length": 5}))


def test_every_type_of_an_export_follows_a_fixed_dimension() -> None:
    after = apply(exported("encoder_dynamo.onnx"), SetDim(dim="batch", size=4))
    texts = [text for text in _types(after).values() if text]
    assert not [text for text in texts if "batch" in text]
    assert len(texts) == len(_types(exported("encoder_dynamo.onnx")))


def test_size_that_a_node_cannot_take_is_refused() -> None:
    model = model_of("g (float[N,3] x) => (float[2,3] y) { w = RandomNormal <shape = [2,3]> () y = Add(x, w) }")
    with pytest.raises(EditError, match="Add"):
        apply(model, SetDim(dim="N", size=5))
    assert _types(apply(model, SetDim(dim="N", size=2)))["x"] == "float32[2,3]"


def test_unknown_dimensions_are_refused() -> None:
    model = model_of("g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }")
    with pytest.raises(SelectorError, match='did you mean "batch"'):
        apply(model, SetDim(dim="bach", size=5))
    for edit in (SetDim(tensor="x", axis=2, size=5), SetDim(size=5), SetDim(dim="batch", size="?")):
        with pytest.raises(EditError):
            apply(model, edit)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("N", 4), ("2*N", 8), ("(N + 1)//2 - 1", 1), ("N*M", "4*M"), ("N//0", "4//0"), ("N/2", 2), ("N/3", "4/3"),
        ("N/0", "4/0"), ("-N", "-4"), ("NM", "NM"), ("N**2", "4**2"), ("(" * 60 + "N" + ")" * 60, 4),
        ("(" * 400 + "N" + ")" * 400, "(" * 400 + "4" + ")" * 400), ("max(N, 2)", "max(4, 2)"),
        ("floor(N/2 - 1/2) + 1", 2), ("floor(floor(7*N/2 - 1/2)/2)", 6),
        ("ceiling(N/3)*Mod(N + 3, 4) - Max(1, N) + Min(N, 9)", 6),
        ("(floor(N/3) + 1)*(floor(M/3) + 1)", "2*(floor(M/3) + 1)"), ("M - (N + 1)", "M - 5"), ("ä*(N - 1)", "ä*3"),
        ("N/3*M", "4/3*M"), ("floor(N, 2)", "floor(4, 2)"), ("floor", "floor"), ("2N", "2N"),
    ],
)  # fmt: skip
def test_names_in_expressions_become_sizes(text: str, result: int | str) -> None:
    assert substitute(text, {"N": 4}) == result


def test_only_the_nodes_at_fault_are_named_not_those_around_and_behind_them() -> None:
    model = model_of(
        """g (float[2,4] x, bool c) => (float[2,4] y) <float[2,4] w = {1,1,1,1,1,1,1,1}> {
            a = Relu(x)
            z = If(c) <then_branch = t () => (float[2,4] p) { p = Add(a, w) },
                       else_branch = e () => (float[2,4] q) { q = Neg(a) }>
            y = Neg(z)
        }"""
    )
    with pytest.raises(EditError) as refused:
        apply(model, SetShape(tensor="x", shape=(3, 4)))
    said = str(refused.value)
    assert said.startswith(
        "shape inference fails at Add (/graph/node/1/attribute/then_branch/g/node/0): "
        "[ShapeInferenceError] Incompatible dimensions; set-batch-size also"
    )


PATCHES = """g (float[1,3,32,32] x) => (float[1,10] y)
<int64[3] s = {1,8,16}, int64[4] heads = {1,16,2,4}, int64[3] back = {1,16,8}, int64[1] axes = {1}> {
   w = RandomNormal <shape = [8,3,8,8], seed = 1.0> () position = RandomNormal <shape = [1,16,8], seed = 1.0> ()
   fc = RandomNormal <shape = [8,10], seed = 1.0> ()
   p = Conv <strides = [8,8]> (x, w) r = Reshape(p, s) t = Transpose <perm = [0,2,1]> (r)
   [embed] a = Add(t, position)
   h = Reshape(a, heads) q = Transpose <perm = [0,2,1,3]> (h) v = Softmax <axis = -1> (q)
   k = Transpose <perm = [0,2,1,3]> (v) b = Reshape(k, back) m = ReduceMean <keepdims = 0> (b, axes) y = MatMul(m, fc)
}"""
ANY_SIZE = PATCHES.replace("Add(t, position)", "Relu(t)")


def _runs(model: Model, rows: int, columns: int) -> None:
    values = {"x": numpy.ones((1, 3, rows, columns), numpy.float32)}
    assert computed(model, values)[0].shape == (1, 10)


def test_sio4onnx_sizes_are_followed_through_constant_shapes() -> None:
    result = run(model_of(ANY_SIZE), SetShape(tensor="x", shape=(1, 3, 96, 128)))
    require_valid(result.model)
    assert result.outcomes[0].notes == ('constants that changed: "s", "heads", "back"',)
    _runs(result.model, 96, 128)
    named = apply(model_of(ANY_SIZE), SetShape(tensor="x", shape=(1, 3, "H", "W")))
    require_valid(named)
    for rows, columns in ((32, 32), (64, 48), (96, 128)):
        _runs(named, rows, columns)
    _runs(apply(model_of(ANY_SIZE), SetDim(tensor="x", axis=2, size=64)), 64, 32)


@pytest.mark.parametrize("shape", [(1, 3, 96, 128), (1, 3, "H", "W")])
def test_sio4onnx_embedded_positions_refuse_other_sizes(shape: tuple[int | str, ...]) -> None:
    with pytest.raises(EditError, match='shape inference fails at Add "embed"'):
        apply(model_of(PATCHES), SetShape(tensor="x", shape=shape))
    forced = run(model_of(PATCHES), SetShape(tensor="x", shape=shape, anyway=True))
    assert any('shape inference fails at Add "embed"' in note for note in forced.outcomes[0].notes)
    assert (_types(forced.model)["x"] or "").endswith(",".join(map(str, shape)) + "]")


CHOSEN = """g (float[2,6] x, float[4,12] w) => (float[4,12] y)
<int64[2] minus = {-1,-1}, int64[2] wanted = {4,12}, int64[2] two = {2,2}, int64 zero = {0}, int64 one = {1},
 float[1,1] unit = {1}, float fill = {1}> {
  sizes = Shape(x)
  doubled = Mul(sizes, two)
  is_open = Equal(wanted, minus)
  target = Where(is_open, wanted, doubled)
  ones = Div(two, two)
  none = Sub(two, two)
  BODY
  numbers = Cast <to = 1> (made)
  y = Add(w, numbers)
}"""
"""A shape that Where chooses, which onnx does not compute: twice the shape of x."""


@pytest.mark.parametrize(
    "body",
    [
        "made = Expand(unit, target)",
        "made = ConstantOfShape(target)",
        "made = Tile(unit, target)",
        "count = ReduceProd <keepdims = 0> (target) row = Range(zero, count, one) made = Reshape(row, target)",
        "rest = Sub(target, ones) ends = Concat <axis = 0> (none, rest) made = Pad(unit, ends, fill)",
        "many = Mul(target, two) big = Expand(unit, many) made = Slice(big, none, target)",
        'image = Expand(unit, two) made = Resize <mode = "nearest"> (image, , , target)',
    ],
    ids=["expand", "constant-of-shape", "tile", "range", "pad", "slice", "resize"],
)
def test_shapes_that_are_computed_are_followed(body: str) -> None:
    model = model_of(CHOSEN.replace("BODY", body))
    for shape in ((2, 5), ("N", 6)):
        with pytest.raises(EditError, match="shape inference fails at Add"):
            apply(model, SetShape(tensor="x", shape=shape))
    assert _types(apply(model, SetShape(shapes={"x": (3, 6), "w": (6, 12)})))["y"] == "float32[6,12]"


def test_sio4onnx_axis_that_is_split_is_not_guessed() -> None:
    model = model_of("g (float[1,64] x) => (float[8,8] y) <int64[2] s = {8,8}> { y = Reshape(x, s) }")
    for size in (32, "N"):
        with pytest.raises(EditError, match="shape inference fails at Reshape"):
            apply(model, SetShape(tensor="x", shape=(1, size)))


def test_sio4onnx_features_of_a_recurrent_layer_are_compared() -> None:
    model = model_of(
        """g (float[5,1,4] x) => (float[5,1,1,3] y) {
           w = RandomNormal <shape = [1,9,4]> () r = RandomNormal <shape = [1,9,3]> ()
           y = GRU <hidden_size = 3> (x, w, r)
        }"""
    )
    with pytest.raises(EditError, match="it expects 4 features, but its input has 6"):
        apply(model, SetShape(tensor="x", shape=(5, 1, 6)))


@pytest.mark.parametrize(
    ("old", "made", "new", "expected"),
    [
        ((1, 64, 14, 14), (1, 64, 196), (1, 64, 6, 8), [1, 64, 48]),
        ((1, 196, 64), (1, 14, 14, 64), (1, 48, 64), None),
        ((1, 64, 8, 8), (1, 8, 8, 8, 8), (1, 64, 4, 8), [1, 8, 8, 4, 8]),
        ((1, 14, 14, 8), (1, 196, 8), (2, 14, 14, 8), [2, 196, 8]),
        ((4, 1, 5), (20,), (4, 2, 5), None),
        ((4, 5), (1, 20, 1), (8, 5), [1, 40, 1]),
    ],
)
def test_sizes_after_a_reshape(
    old: tuple[int, ...], made: tuple[int, ...], new: tuple[int, ...], expected: list[int] | None
) -> None:
    assert regrouped(old, made, new) == expected


TOKENS = """g (float[1,6,4] x, float[1,6] mask) => (float[1,6,4] y, float[1,4] mean)
<int64[1,6] places = {0,1,2,3,4,5}, float[8,4] table = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,
   24,25,26,27,28,29,30,31}, float[1,1,6,6] causal = {0,-1e9,-1e9,-1e9,-1e9,-1e9,
   0,0,-1e9,-1e9,-1e9,-1e9,0,0,0,-1e9,-1e9,-1e9,0,0,0,0,-1e9,-1e9,
   0,0,0,0,0,-1e9,0,0,0,0,0,0}, int64[4] heads = {1,6,2,2}, int64[3] back = {1,6,4}, int64[2] axes = {1,2},
 int64[1] one = {1}, float six = {6}> {
   p = Gather(table, places)
   q = Add(x, p)
   h = Reshape(q, heads)
   t = Transpose <perm = [0,2,1,3]> (h)
   k = Transpose <perm = [0,2,3,1]> (h)
   s = MatMul(t, k)
   m = Unsqueeze(mask, axes)
   b = Add(m, causal)
   a = Add(s, b)
   w = Softmax <axis = -1> (a)
   v = MatMul(w, t)
   o = Transpose <perm = [0,2,1,3]> (v)
   y = Reshape(o, back)
   total = ReduceSum <keepdims = 0> (y, one)
   mean = Div(total, six)
}"""


@pytest.mark.parametrize("size", ["L", 4, 6])
def test_a_length_is_followed_through_positions_masks_and_attention(size: int | str) -> None:
    before = model_of(TOKENS)
    result = run(before, SetDim(tensor="x", axis=1, size=size, follow=True))
    require_valid(result.model)
    inputs = sample_inputs(before)
    for length in (6, 4, 1) if size == "L" else (size,):
        assert isinstance(length, int)
        part = {name: value[:, :length] for name, value in inputs.items()}
        # No token is computed from later ones.
        expected = computed(before, inputs)[0][:, :length]
        numpy.testing.assert_allclose(computed(result.model, part)[0], expected, 1e-4, 1e-4)
    notes = " ".join(result.outcomes[0].notes)
    assert '"mask" has the same dimension' in notes
    if size != 6:
        assert "stays 6; is it the old size, 6?" in notes
        assert _types(result.model)["y"] == f"float32[1,{size},4]"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("w = Constant <value = float[6,2] {1,2,3,4,5,6,7,8,9,10,11,12}> () y = MatMul(x, w)", "the other matrix"),
        ("e = Constant <value = float[1,1] {1}> () y = Concat <axis = 1> (x, e)", "joins that dimension with other"),
        ("i = Constant <value = int64[1] {5}> () y = Gather <axis = 1> (x, i)", "selects some"),
        (
            """m = Constant <value = int64 {6}> () c = Constant <value = bool {1}> ()
            y = Loop <body = b (int64 i, bool k, float[1,6] a) => (bool l, float[1,6] z) {
            l = Identity(k) z = Relu(a) }> (m, c, x)""",
            "runs 6 times",
        ),
    ],
)
def test_a_length_that_cannot_be_followed_is_refused_with_the_node(body: str, words: str) -> None:
    before = model_of(f"g (float[1,6] x) => (float[1,N] y) {{ {body} }}")
    with pytest.raises(EditError, match=f"the dimension cannot change: /graph/node/[12] .*{words}"):
        apply(before, SetDim(tensor="x", axis=1, size="L", follow=True))


def test_a_length_beyond_the_positions_of_a_model_is_refused() -> None:
    with pytest.raises(EditError, match="has elements for 6"):
        apply(model_of(TOKENS), SetDim(tensor="x", axis=1, size=7, follow=True))
    with pytest.raises(EditError, match="needs the axis of an input"):
        apply(model_of(TOKENS), SetDim(tensor="y", axis=1, size=7, follow=True))


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 100), marks=pytest.mark.exhaustive)])
def test_random_graphs_are_refused_or_follow_a_dimension(seeds: range) -> None:
    """With the old size the results are the same; with another one the model runs."""
    count = 0
    for seed in seeds:
        before = random_model(seed, 2, 6 + seed % 5)
        x = numpy.random.default_rng(seed).standard_normal((2, 4, 6)).astype(numpy.float32)
        for axis in (1, 2):
            try:
                after = apply(before, SetDim(tensor="x", axis=axis, size="L", follow=True))
            except EditError:
                continue
            count += 1
            numpy.testing.assert_array_equal(computed(after, {"x": x})[0], computed(before, {"x": x})[0])
            computed(after, {"x": numpy.take(x, range(x.shape[axis] - 1), axis)})
    assert count
