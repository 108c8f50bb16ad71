"""What an outline calls a block, and what it shows as operators."""

import pytest

from tests.outline.written import lines, outline

NUMBERS = (
    "float half = {0.5}, float one = {1.0}, float two = {2.0}, float three = {3.0}, float six = {6.0}, float zero = "
    "{0.0}, float root = {1.4142135}, float inverse = {0.70710678}, float eps = {0.00001}, int64[1] last = {-1}, "
    "float[8] w = ., float[8] b = ., float[8,8] k = .,float sixth = {0.16666667}, float cubic = {0.044715}, "
    "float tanh = {0.7978846}, float steep = {1.702}"
)

CENTRED, SCALED = "m = ReduceMean(x, last) c = Sub(x, m)", "g = Mul(d, w) out = Add(g, b)"
INNER = "c = Mul(p, cubic) s = Add(x, c) t = Mul(s, tanh)"
ROWS = "r = Reshape(x, rows) p = MatMul(r, k) g = Relu(p)"
VARIANCE = "s = Pow(c, two) v = ReduceMean(s, last) e = Add(v, eps) r = Sqrt(e)"
QUICK = "g = Mul(x, cubic) p = Mul(g, x) s = Add(p, one) m = Mul(x, tanh) t = Mul(m, s)"
MEAN_SQUARE = "s = Pow(x, two) m = ReduceMean(s, last) e = Add(m, eps) r = Sqrt(e)"


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (f"{MEAN_SQUARE} q = Div(x, r) out = Mul(w, q)", "RMSNorm(x)"),
        (f"{MEAN_SQUARE} i = Reciprocal(r) q = Mul(x, i) out = Mul(w, q)", "RMSNorm(x)"),
        (f"{MEAN_SQUARE} i = Div(one, r) q = Mul(x, i) out = Mul(q, w)", "RMSNorm(x)"),
        (
            f"{CENTRED} s = Pow(c, two) v = ReduceMean(s, last) e = Add(v, eps) r = Sqrt(e) d = Div(c, r) {SCALED}",
            "LayerNorm(x)",
        ),
        (f"{CENTRED} {VARIANCE} i = Reciprocal(r) d = Mul(c, i) {SCALED}", "LayerNorm(x)"),
        (f"{CENTRED} {VARIANCE} i = Div(c, r) d = Cast<to = 1>(i) {SCALED}", "LayerNorm(x)"),
        ("out = LayerNormalization<epsilon = 0.001>(x, w, b)", "LayerNorm(x, eps=0.001)"),
        ("d = Div(x, root) e = Erf(d) a = Add(e, one) m = Mul(x, a) out = Mul(m, half)", "Gelu(x)"),
        ("d = Mul(x, inverse) e = Erf(d) a = Add(one, e) h = Mul(half, x) out = Mul(h, a)", "Gelu(x)"),
        (
            f"p = Pow(x, three) {INNER} u = Tanh(t) a = Add(u, one) h = Mul(x, half) out = Mul(h, a)",
            "Gelu(x, tanh)",
        ),
        (f"{QUICK} u = Tanh(t) a = Add(u, one) h = Mul(x, half) out = Mul(h, a)", "Gelu(x, tanh)"),
        ("out = Gelu(x)", "Gelu(x)"),
        ("s = Sigmoid(x) out = Mul(x, s)", "SiLU(x)"),
        ("m = Mul(x, steep) s = Sigmoid(m) out = Mul(s, x)", "QuickGelu(x)"),
        ("s = Softplus(x) t = Tanh(s) out = Mul(x, t)", "Mish(x)"),
        ("a = Add(x, three) c = Clip(a, zero, six) m = Mul(x, c) out = Div(m, six)", "HardSwish(x)"),
        ("a = Add(x, three) c = Clip(a, zero, six) out = Div(c, six)", "HardSigmoid(x, alpha=0.166667)"),
        ("m = MatMul(x, k) out = Add(b, m)", "x @ k"),
        ("out = MatMul(x, k)", "x @ k"),
        ("m = MatMul(x, k) a = Add(b, m) out = Mul(a, w)", "x @ k"),
        ("m = MatMul(x, k) out = Mul(m, two)", "x @ k * 2"),
        ("d = Div(x, root) e = Erf(d) a = Add(e, one) out = Mul(x, a)", "DoubleGelu(x)"),
        ("d = Div(x, three) e = Erf(d) a = Add(e, one) out = Mul(x, a)", "x * (Erf(x / 3) + 1)"),
    ],
)  # fmt: skip
def test_a_block_is_named_if_its_pattern_matches(nodes: str, line: str) -> None:
    assert lines(nodes, NUMBERS) == [f"out = {line}"]


@pytest.mark.parametrize(
    ("nodes", "inputs", "line"),
    [
        ("f = Flatten<axis = 2>(x) g = Gather(f, at) out = Reshape(g, s)", "", "GatherND(x, [...])"),
        ("f = Flatten<axis = 2>(x) g = Gather(f, at) r = Reshape(g, a) out = Reshape(r, s)", "", "GatherND(x, [...])"),
        ("out = GatherND(x, pairs)", "", "GatherND(x, [...])"),
        ("f = Flatten(x) g = Gather(f, a) out = Reshape(g, a)", "", "Reshape(Gather(Flatten(x, [...]), -1), [3,2])"),
        (
            "f = Flatten<axis = 2>(x) g = Gather(f, i) out = Reshape(g, s)", ", int64[6] i",
            "Reshape(Gather(Flatten(x, [...], axis=2), i), [3,2])",
        ),
        ("d = Cast<to = 7>(x) c = CumSum(d, one) out = Cast<to = 6>(c)", "", "CumSum(x, 1)"),
    ],
)  # fmt: skip
def test_what_exporters_write_for_an_operator_is_shown_as_it(nodes: str, inputs: str, line: str) -> None:
    weights = (
        "int64 one = {1}, int64[6] at = {1, 0, 2, 3, 5, 4}, int64[1] a = {-1}, int64[2] s = {3, 2}, int64[3,2,2] "
        "pairs = {0, 1, 0, 0, 0, 2, 1, 0, 1, 2, 1, 1}"
    )
    (found,) = lines(nodes, weights, f"int32[2,3] x{inputs}", "int32[3,2] out")
    assert found.partition(" = ")[2].partition(":")[0] == line


def test_a_block_whose_inner_value_is_used_elsewhere_is_shown_as_operators() -> None:
    found = lines("s = Sigmoid(x) m = Mul(x, s) out = Add(m, s)", NUMBERS)
    assert found == ["h = Sigmoid(x)", "out = h + x * h"]


def test_a_convolution_shows_what_is_not_usual_and_what_follows_it() -> None:
    text = (
        "c = Conv<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], group = 4>(x, w) "
        "n = BatchNormalization(c, s, s, s, s) out = Relu(n)"
    )
    found = lines(text, "float[4,1,3,3] w = ., float[4] s = .", "float[1,4,8,8] x", "float[1,4,4,4] out")
    assert found == ["out = Conv(x, 3x3, out=4, stride=2, depthwise, act=relu): float32[1,4,4,4]"]


def test_a_gate_from_the_means_of_a_value_is_squeeze_and_excitation() -> None:
    text = "p = GlobalAveragePool(x) d = Conv(p, down) r = Relu(d) u = Conv(r, up) s = Sigmoid(u) out = Mul(x, s)"
    found = lines(text, "float[2,4,1,1] down = ., float[4,2,1,1] up = .", "float[1,4,8,8] x", "float[1,4,8,8] out")
    assert found == ["out = SqueezeExcite(x): float32[1,4,8,8]"]


def test_rows_whose_axes_have_names_are_not_shown() -> None:
    text = "r = Reshape(x, rows) g = Gemm(r, k, b) t = Reshape(g, shape) out = Relu(t)"
    weights = f"{NUMBERS}, int64[2] rows = {{-1, 8}}"
    for sizes, found in (("N,S", "Relu(x @ k)"), ("N,T", "Relu(Reshape(x @ k, [N,T,8]))")):
        typed, inputs = f"float[{sizes},8] t, float[unk__1,8] r", "float[N,S,8] x, int64[3] shape"
        assert lines(text, f"{weights}, {typed}", inputs, "float[N,S,8] out") == [f"out = {found}: float32[N,S,8]"]


def test_rows_that_get_other_axes_are_shown() -> None:
    text = "r = Reshape(x, rows) g = Gemm(r, k, b) t = Reshape(g, shape) out = Relu(t)"
    for sizes, after in (("2,?,8", "2,?,4"), ("N,N,8", "?,5,8")):
        typed = f"int64[2] rows = {{-1, 8}}, float[L,8] r, float[L,8] g, float[{after}] t"
        found = lines(text, f"{NUMBERS}, {typed}", f"float[{sizes}] x, int64[3] shape", f"float[{after}] out")
        assert f"Relu(Reshape(x @ k, [{after.replace('?', '...')}]))" in found[0]


def test_rows_of_a_product_are_not_shown() -> None:
    text = "r = Reshape(x, rows) g = Gemm(r, k, b) a = Relu(g) h = Gemm(a, k, b) out = Reshape(h, back)"
    found = lines(text, f"{NUMBERS}, int64[2] rows = {{-1, 8}}, int64[3] back = {{2, 6, 8}}")
    assert found == ["out = Relu(x @ k) @ k"]


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        (f"{ROWS} a = Add(r, g) out = Reshape(a, back)", "x + Relu(x @ k)"),
        (f"{ROWS} z = Reshape(g, back) c = Reshape(z, rows) m = Erf(c) out = Reshape(m, back)", "Erf(Relu(x @ k))"),
        (f"{ROWS} t = Reshape(g, heads) out = Relu(t)", "Relu(Reshape(Relu(x @ k), [2,6,2,4]))"),
        (f"{ROWS} t = Transpose(g) out = Reshape(t, back)", "Rearrange(Relu(Reshape(x, [12,8]) @ k), [2,6,8])"),
        (f"{ROWS} a = Add(g, table) out = Reshape(a, back)", "Reshape(Relu(Reshape(x, [12,8]) @ k) + table, [2,6,8])"),
        (
            f"{ROWS} s = Softmax<axis = 0>(g) out = Reshape(s, back)",
            "Reshape(Softmax(Relu(Reshape(x, [12,8]) @ k), axis=0), [2,6,8])",
        ),
    ],
)  # fmt: skip
def test_rows_are_not_shown_where_each_is_computed_by_itself(nodes: str, found: str) -> None:
    weights = (
        "int64[2] rows = {12, 8}, int64[3] back = {2, 6, 8}, int64[4] heads = {2, 6, 2, 4}, float[12,8] table = ., "
        "float[12,8] g, float[12,8] a, float[2,6,8] z"
    )
    assert lines(nodes, f"{NUMBERS}, {weights}") == [f"out = {found}"]


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("a = Concat<axis = 1>(x, y) out = Concat<axis = 1>(y, a)", "Concat(y, x, y, axis=1)"),
        ("a = Concat<axis = 0>(x, y) out = Concat<axis = 1>(y, a)", "Concat(y, Concat(x, y, axis=0), axis=1)"),
        ("a = Slice(x, i, j, i) out = Slice(a, i, j, j)", "Slice(x, axis 0 :1, axis 1 :1)"),
        (
            "a = Slice(x, i, j, i) b = Slice(a, i, j, j) c = Slice(a, i, k, k) out = Concat<axis = 0>(b, c)",
            "Concat(Slice(x, axis 0 :1, axis 1 :1), Slice(x, axis 0 :1, axis 2 :2), axis=0)",
        ),
        ("a = Slice(x, i, j, i) out = Slice(a, i, j, i)", "Slice(Slice(x, axis 0 :1), axis 0 :1)"),
    ],
)
def test_concats_and_slices_in_each_other_are_one(nodes: str, line: str) -> None:
    found = lines(nodes, "int64[1] i = {0}, int64[1] j = {1}, int64[1] k = {2}", "float[2,6,8] x, float[2,6,8] y")
    assert found == [f"out = {line}"]


def test_layout_of_a_value_is_shown_once() -> None:
    text = "a = Transpose(x) b = Transpose(x) c = Transpose<perm = [1, 0, 2]>(x) d = Relu(a) e = Tanh(b) f = Erf(c) "
    found = outline(f"{text} out = Sum(d, e, f)").lines[1:]
    assert [line.text for line in found] == [
        "h = Transpose(x)",
        "out = Sum(Relu(h), Tanh(h), Erf(Transpose(x, perm=[1,0,2]))): float32[2,6,8]",
    ]
    assert sorted([len(line.nodes) for line in found]) == [1, 6]


def test_a_padding_of_zeros_that_is_computed_from_constants_is_not_shown() -> None:
    text = "m = Mod<fmod = 0>(size, side) u = Unsqueeze(m, first) z = Sub(u, u) p = Concat<axis = 0>(ones, z, u)"
    text += " a = Pad(x, p) out = Relu(a)"
    weights = "int64 size = {6}, int64 side = {3}, int64[1] first = {0}, int64[4] ones = {0, 0, 0, 0}"
    assert lines(text, weights) == ["out = Relu(x)"]
    assert lines(text, weights.replace("{3}", "{5}")) == ["out = Relu(Pad(x, [0,0,0,0,0,1]))"]


def test_a_value_of_which_only_the_size_is_used_is_part_of_the_arithmetic_of_shapes() -> None:
    text = "y = Relu(x) r = Reshape(y, rows) s = Shape(r) e = Expand(b, s) out = Add(e, x)"
    found = outline(text, f"{NUMBERS}, int64[3] rows = {{2, 6, 8}}").lines[1:]
    assert [(line.text, len(line.nodes)) for line in found] == [("out = x + sizes(...): float32[2,6,8]", 5)]


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("a = Transpose(x) g = Reshape(a, rows) out = Transpose(g)", "Rearrange(x, [2,6,8])"),
        ("a = Reshape(x, rows) g = Unsqueeze(a, last) out = Reshape(g, back)", "Reshape(x, [2,6,8])"),
        ("a = Transpose(x) out = Reshape(a, back)", "Rearrange(x, [2,6,8])"),
        (
            "a = Unsqueeze(x, last) g = Transpose<perm = [0, 3, 1, 2]>(a) out = Reshape(g, back)",
            "Rearrange(x, [2,6,8])",
        ),
        ("out = Squeeze(four, third)", "Reshape(four, [2,6,8])"),
        ("a = Transpose<perm = [0, 2, 1, 3]>(four) out = Squeeze(a, second)", "Reshape(four, [2,6,8])"),
        ("a = Transpose(x) g = Reshape(a, rows) c = Transpose(g) out = Add(c, g)", "h + Transpose(h)"),
        (
            "a = Transpose<perm = [1, 2, 0]>(x) g = Transpose<perm = [2, 0, 1]>(a) out = Reshape(g, rows)",
            "Reshape(x, [2,6,8])",
        ),
    ],
)
def test_chains_of_layout_are_one_line(nodes: str, line: str) -> None:
    weights = f"{NUMBERS}, int64[2] rows = {{-1, 8}}, int64[3] back = {{2, 6, 8}}, int64[1] third = {{2}}"
    found = lines(nodes, f"{weights}, int64[1] second = {{1}}", "float[2,6,8] x, float[2,6,1,8] four")
    assert f"out = {line}" in found


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("out = Slice(x, [begin], [long])", "Slice(x, axis 0 1:)"),
        ("out = Slice(x, begin, end, last)", "Slice(x, axis -1 1:-2)"),
        ("out = Slice(x, begin, end, axis1, two2)", "Slice(x, axis 1 1:-2:2)"),
        ("out = Slice(x, none, long)", "x"),
        ("out = Slice(x, begin, ends)", "Slice(x, begin, ends)"),
    ],
)
def test_a_slice_shows_what_it_keeps(nodes: str, line: str) -> None:
    numbers = "int64[1] begin = {1}, int64[1] end = {-2}, int64[1] long = {9223372036854775807}, int64[1] none = {0}"
    more = "int64[1] axis1 = {1}, int64[1] two2 = {2}, int64[2] ends = {1, 2}"
    nodes = nodes.replace("[", "").replace("]", "")
    found = lines(nodes, f"{NUMBERS}, {numbers}, {more}")
    assert found == [f"out = {line.replace('begin, ends', '1, [1,2]')}"]


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("a = Add(x, zero) out = Relu(a)", "Relu(x)"),
        ("a = Mul(x, one) g = Div(a, one) out = Relu(g)", "Relu(x)"),
        ("a = Sub(x, one) out = Relu(a)", "Relu(x - 1)"),
        ("a = Add(x, zeros) out = Relu(a)", "Relu(x + 0)"),
        ("a = Concat<axis = 1>(x) out = Relu(a)", "Relu(x)"),
    ],
)
def test_arithmetic_without_effect_is_not_shown(nodes: str, line: str) -> None:
    assert lines(nodes, f"{NUMBERS}, float[1,1,1,1] zeros = {{0.0}}") == [f"out = {line}"]


def test_norms_without_a_bias_are_norms() -> None:
    centred = f"{CENTRED} s = Pow(c, two) v = ReduceMean(s, last) e = Add(v, eps) r = Sqrt(e) d = Div(c, r)"
    assert lines(f"{centred} out = Mul(d, w)", NUMBERS) == ["out = LayerNorm(x)"]
    text = "g = Reshape(x, groups) n = InstanceNormalization(g, s, s) r = Reshape(n, back) out = Mul(r, w)"
    weights = "int64[3] groups = {2, 2, -1}, float[2] s = ., int64[3] back = {2, 6, 8}, float[6,1] w = ."
    assert lines(text, weights) == ["out = GroupNorm(x, num_groups=2)"]
    bare = "g = Reshape(x, groups) n = InstanceNormalization(g, s, s) out = Reshape(n, back)"
    assert lines(bare, weights) == ["out = GroupNorm(x, num_groups=2)"]
    assert lines(bare, weights, outputs="float[12,8] out")[0].startswith("out = Reshape(InstanceNorm(Reshape(x")
    each = f"{weights.replace('2, 2, -1', '2, 6, 8')}, float[2,6,8] g, float[2,6,8] n, float[2,6,8] r"
    for form in (text, "n = InstanceNormalization(x, s, s) out = Mul(n, w)"):
        assert lines(form, each) == ["out = InstanceNorm(x)"]
    assert lines("n = InstanceNormalization(x, s, s) out = Mul(n, s)", each) == ["out = InstanceNorm(x) * [0,0]"]


def test_a_block_into_which_a_value_comes_that_it_does_not_show_is_operators() -> None:
    text = "q = QuantizeLinear(x, {0}, none) y = DequantizeLinear(q, {0}, none) out = Relu(y)"
    weights, inputs = f"{NUMBERS}, uint8 none = {{0}}", "float[2,6,8] x, float scale"
    assert lines(text.format("half"), weights, inputs) == ["out = Relu(q8(x))"]
    found = lines(text.format("scale"), weights, inputs)
    assert found == ["out = Relu(DequantizeLinear(QuantizeLinear(x, scale, 0), scale, 0))"]


def test_a_norm_of_groups_shows_its_epsilon_unless_it_is_usual() -> None:
    text = "g = Reshape(x, groups) n = InstanceNormalization<epsilon = 0.1>(g, s, s) out = Reshape(n, back)"
    weights = "int64[3] groups = {2, 2, -1}, float[2] s = ., int64[3] back = {2, 6, 8}"
    assert lines(text, weights) == ["out = GroupNorm(x, num_groups=2, eps=0.1)"]


def test_a_lookup_of_single_numbers_is_no_embedding() -> None:
    weights, inputs = "float[9] row = ., float[9,8] table = .", "int64[2,6,8] ids"
    assert lines("out = Gather(row, ids)", weights, inputs) == ["out = Gather(row, ids)"]
    assert lines("g = Gather(table, ids) out = ReduceSum(g)", weights, inputs) == [
        "out = ReduceSum(Embedding(ids, table))"
    ]


@pytest.mark.parametrize(
    "nodes",
    [
        'out = Transpose<perm = "x">(x)',
        "out = Where(x, half)",
        "c = Cast<to = 1>() out = Mul(x, c)",
        "c = Conv(x) out = Add(c, w)",
        "out = Gather()",
        "g = Reshape(x, last) n = InstanceNormalization(g) r = Reshape(n, last) out = Mul(r, w)",
    ],
)
def test_nodes_that_no_runtime_could_run_are_shown(nodes: str) -> None:
    assert lines(nodes, NUMBERS)[-1].startswith("out = ")


def test_a_recurrent_layer_is_a_block() -> None:
    found = outline(
        "y, h, c = LSTM<hidden_size = 4>(x, w, r) out = Relu(y)", "float[1,16,8] w = ., float[1,16,4] r = ."
    )
    assert found.lines[-1].blocks == ("LSTM",)
    assert "LSTM(x, hidden_size=4)" in found.lines[-1].text


def test_of_long_constant_indices_it_is_shown_that_they_are_there() -> None:
    found = lines(
        "g = Gather(x, near) out = Gather(g, many)", "int64[2] near = {1, 0}, int64[5] many = {0, 1, 1, 0, 0}"
    )
    assert found == ["out = Gather(Gather(x, [1,0]), [...])"]


MEANS = "s = Pow(x, two) m = ReduceMean{}(s, {}) e = Add(m, eps) r = Sqrt(e) q = Div(x, r) out = Mul(q, {})"
DEVIATIONS = (
    "m = ReduceMean(x, {}) c = Sub(x, m) s = Mul(c, c) v = ReduceMean(s, {}) e = Add(v, eps) r = Sqrt(e) d = Div(c, r) "
    "g = Mul(d, {}) out = Add(g, b)"
)


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (MEANS.format("", "third", "w"), "RMSNorm(x)"),
        (MEANS.format("", "second", "w"), "RMSNorm(x, axes=[1]) * w"),
        (MEANS.format("", "both", "matrix"), "RMSNorm(x, axes=[1,2])"),
        (MEANS.format("", "both", "w"), "RMSNorm(x, axes=[1,2]) * w"),
        (MEANS.format("", "last", "rows"), "RMSNorm(x) * rows"),
        (MEANS.format("", "last", "two"), "RMSNorm(x) * 2"),
        (
            MEANS.format("<keepdims = 0>", "first", "w"),
            "x / Sqrt(ReduceMean(Square(x), axes=[0], keepdims=0) + 1e-05) * w",
        ),
        (DEVIATIONS.format("third", "last", "w"), "LayerNorm(x)"),
        (
            DEVIATIONS.format("second", "last", "w"),  # the first h is the difference, which is no part of a norm
            "x - ReduceMean(x, axes=[1]) / Sqrt(ReduceMean(Square(h), axes=[-1]) + 1e-05) * w + b",
        ),
        (DEVIATIONS.format("second", "second", "w"), "LayerNorm(x, axes=[1]) * w + b"),
        (DEVIATIONS.format("both", "both", "w"), "LayerNorm(x, axes=[1,2]) * w + b"),
        (DEVIATIONS.format("last", "last", "rows"), "LayerNorm(x) * rows + b"),
        ("out = LayerNormalization<axis = 2>(x, w)", "LayerNorm(x)"),
        ("out = LayerNormalization<axis = 1>(x, matrix)", "LayerNorm(x, axes=1:)"),
    ],
)
def test_a_norm_shows_its_axes_unless_they_are_the_last_and_has_weights_along_them(nodes: str, line: str) -> None:
    axes = "int64[1] first = {0}, int64[1] second = {1}, int64[1] third = {2}, int64[2] both = {1, 2}"
    found = lines(nodes, f"{NUMBERS}, {axes}, float[6,1] rows = ., float[6,8] matrix = .")
    text = found.pop().removeprefix("out = ")
    while found:  # each line is the first h of the next one
        text = text.replace("h", found.pop().removeprefix("h = "), 1)
    assert text == line


@pytest.mark.parametrize(("negated", "other", "name"), [("far", "near", "rope(x, c, s)"), ("near", "far", "Neg")])
def test_a_rotation_negates_the_second_half(negated: str, other: str, name: str) -> None:
    text = (
        "near = Slice(x, start, middle, last) far = Slice(x, middle, end, last) "
        f"n = Neg({negated}) t = Concat<axis = -1>(n, {other}) p = Mul(x, c) q = Mul(t, s) out = Add(p, q)"
    )
    weights = f"{NUMBERS}, int64[1] start = {{0}}, int64[1] middle = {{4}}, int64[1] end = {{8}}"
    found = "".join(lines(text, weights, "float[2,6,8] x, float[6,8] c, float[6,8] s"))
    assert name in found
    assert ("rope" in found) == ("rope" in name)


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("m = MatMul(x, k) out = Add(m, w)", "x @ k"),
        ("m = MatMul(x, k) out = Add(m, two)", "x @ k + 2"),
        ("m = MatMul(x, k) out = Add(m, rows)", "x @ k + rows"),
        ("m = MatMul(x, k) out = Add(m, each)", "x @ k + each"),
        ("m = MatMul(x, column) out = Add(m, w)", "x @ column + w"),
        ("f = Flatten<axis = 2>(x) m = Gemm(f, k, w) out = Reshape(m, back)", "x @ k"),
        ("f = Flatten<axis = 2>(x) out = Gemm(f, k, two)", "Gemm(Flatten(x, [...], axis=2), k, 2)"),
        ("f = Flatten<axis = 2>(x) out = Gemm(f, k, f)", "Gemm(h, k, h)"),
    ],
)
def test_a_bias_has_a_number_for_each_column(nodes: str, line: str) -> None:
    weights = (
        f"{NUMBERS}, float[6,1] rows = ., float[1,6,8] each = ., float[8,1] column = ., int64[3] back = {{2, 6, 8}}"
    )
    assert lines(nodes, weights)[-1] in (
        f"out = {line}",
        f"out = Reshape({line.replace('x', 'Flatten(x, [...], axis=2)')}, [2,6,8])",
    )


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("m = Mod(ids, three3) p = Mul(m, three3) out = Gather(table, p)", ["out = Embedding(Mod(ids, 3) * 3, table)"]),
        (
            "a = ArgMax<axis = 2, keepdims = 0>(x) s = Squeeze(a) out = Gather<axis = 1>(x, s)",
            ["out = Gather(x, Squeeze(ArgMax(x, axis=-1, keepdims=0)), axis=1)"],
        ),
        (
            "s = Shape(x) n = Gather(s, begin) e = Sub(n, begin) out = Slice(x, begin, e)",
            ["out = Slice(x, axis 0 1:5)"],
        ),
        (
            "s = Shape(ids) n = Gather(s, zero) u = Unsqueeze(n, none) e = Mul(u, two2) out = Slice(x, begin, e)",
            ["out = Slice(x, axis 0 1:4)"],
        ),
        (
            "s = Shape(ids) n = Gather(s, begin) e = Div(n, three3) out = Slice(x, begin, e)",
            ["out = Slice(x, axis 0 1:...)"],
        ),
    ],
)
def test_indices_from_data_are_shown_and_arithmetic_of_shapes_is_not(nodes: str, found: list[str]) -> None:
    weights = "int64 three3 = {3}, int64[1] begin = {1}, float[20,8] table = ., int64[1] none = {0}, int64 two2 = {2}"
    weights += ", int64 zero = {0}"
    assert lines(nodes, weights, "float[6,6,8] x, int64[2,N] ids", "float[2,6,8] out") == found


QUANTIZED = "uint8[6,4] w = {WEIGHTS}, uint8 wz = {0}, float ws = {0.5}, float other = {0.25}, float[4] b = .".replace(
    "WEIGHTS", ", ".join(["1"] * 24)
)
DYNAMIC = (
    "q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, z, wz) f = Cast<to = 1>(i) "
    "sw = Mul(s, ws) p = Mul(f, sw) "
)


def test_a_product_that_is_quantized_when_the_model_runs_is_one_block() -> None:
    assert lines(f"{DYNAMIC} y = Add(p, b) out = Relu(y)", QUANTIZED) == ["out = Relu(x @ q8(w))"]
    second = "i2 = MatMulInteger(q, w, z, wz) f2 = Cast<to = 1>(i2) sw2 = Mul(s, ws) p2 = Mul(sw2, f2)"
    found = outline(f"{DYNAMIC} {second} g = Relu(p) out = Mul(g, p2)", QUANTIZED)
    assert found.texts()[1:] == ["out = Relu(x @ q8(w)) * (x @ q8(w)): float32[2,6,8]"]
    assert len(found.lines[1].nodes) == 11


@pytest.mark.parametrize(
    "changed",
    [
        DYNAMIC.replace("Mul(f, sw)", "Mul(f, ws)"),
        DYNAMIC.replace("Mul(s, ws)", "Mul(s, s)"),
        DYNAMIC.replace("i, w, z", "i, w, wz").replace("(q, w, z, wz)", "(q, w, wz, z)"),
        DYNAMIC.replace("<to = 1>", "<to = 7>"),
        f"{DYNAMIC} more = Neg(s)",
    ],
)
def test_a_product_of_integers_that_is_anything_else_is_shown(changed: str) -> None:
    end = "out = Add(p, more)" if "more" in changed else "out = Relu(p)"
    assert any(["DynamicQuantizeLinear(x)" in line for line in lines(f"{changed} {end}", QUANTIZED)])


@pytest.mark.parametrize(("step", "is_block"), [("ws", True), ("other", False)])
def test_a_bias_of_integers_is_part_of_a_quantized_convolution(step: str, is_block: bool) -> None:
    text = (
        f"q, s, z = DynamicQuantizeLinear(x) bs = Mul(s, {step}) d = Div(b, bs) r = Floor(d) c = Cast<to = 6>(r) "
        "n = Reshape(c, sides) i = ConvInteger(q, k, z, wz) t = Add(i, n) f = Cast<to = 1>(t) sw = Mul(s, ws) "
        "p = Mul(f, sw) out = Relu(p)"
    )
    weights = f"{QUANTIZED}, int64[3] sides = {{1, 4, 1}}, uint8[4,6,3] k = {{{', '.join(['1'] * 72)}}}"
    assert (lines(text, weights) == ["out = Conv(x, 3, out=4, pad=0, q8, act=relu)"]) == is_block


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (
            "a = Slice(x, one, far, at) b = Slice(x, none, one, at) out = Concat<axis = 1>(a, b)",
            "Roll(x, axis 1 by -2)",
        ),
        (
            "a = Slice(x, back, far, at) b = Slice(x, none, back, at) out = Concat<axis = 1>(a, b)",
            "Roll(x, axis 1 by 2)",
        ),
        (
            "a = Slice(x, four, six, at) b = Slice(x, none, four, at) out = Concat<axis = 1>(a, b)",
            "Roll(x, axis 1 by 2)",
        ),
        (
            "a = Slice(x, one, far, at) b = Slice(x, none, back, at) out = Concat<axis = 1>(a, b)",
            "Concat(Slice(x, axis 1 2:), Slice(x, axis 1 :-2), axis=1)",
        ),
        (
            "a = Slice(x, one, far, at) b = Slice(x, none, one, at) out = Concat<axis = 2>(a, b)",
            "Concat(y, h, axis=-1)",
        ),
        (
            "a = Slice(x, one, far, at) b = Slice(x, none, one, at) out = Concat<axis = 1>(b, a)",
            "Concat(h, y, axis=1)",
        ),
    ],
)
def test_the_end_of_a_value_before_its_start_is_a_roll(nodes: str, line: str) -> None:
    weights = "int64[1] one = {2}, int64[1] back = {-2}, int64[1] none = {0}, int64[1] at = {1}, "
    weights += "int64[1] four = {4}, int64[1] six = {6}, "
    found = lines(nodes, f"{weights} int64[1] far = {{9223372036854775807}}")
    assert found == [*["h, y = Split(x, [2,4], axis=1)"] * ("h" in line), f"out = {line}"]


def test_layout_of_which_only_the_size_is_used_is_not_shown() -> None:
    text = "t = Transpose<perm = [0, 2, 1]>(x) s = Shape(t) n = Neg(x) out = Reshape(n, s)"
    assert lines(text, outputs="float[2,8,6] out") == ["out = Reshape(Neg(x), [2,8,6]): float32[2,8,6]"]
    shown = lines(text, outputs="float[2,8,6] out, int64[3] s")
    assert "s = Shape(Transpose(x, perm=[0,2,1])): int64[3]" in shown
