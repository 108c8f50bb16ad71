"""What is not usual is shown: no line hides a computation or calls it what it is not."""

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.outline.lines import outline_of
from tests.outline.test_attention import JOIN, SPLIT, WEIGHTS
from tests.outline.written import lines, model, outline

MORE = (
    f"{WEIGHTS}, float[8,4] half3 = ., float five = {{5.0}}, float low = {{-5.0}}, float cap = {{30.0}}, "
    f"float[6,6] slope = {{{', '.join(['0.5'] * 36)}}}, int64[4] tiles = {{1, 2, 1, 1}}, int64[1] last = {{-1}}, "
    "float[6] g = ., float[4] g4 = ., float[6,6,1] one = ., float[6,6,3] three = ., float[2,6,1] down = ., "
    "float[6,2,1] up = ., float[16,16] wide = ., float half_one = {0.5}, int64[1] zeroth = {0}, "
    "int64[1] ones = {1}, int64 first = {1}"
)
SCORES = "s = MatMul(q, k) t = Mul(s, scale)"
OUTPUTS = "float[2,6,8] out, float[2,6,8] other"
INPUTS = "float[2,6,8] x, float[2,1,6,6] m, bool[2,1,6,6] c1"


@pytest.mark.parametrize(
    ("between", "arguments"),
    [
        ("u = Where(c1, t, far) p = Softmax(u)", "mask=c1, heads=2"),
        ("u = Where(c1, far, t) p = Softmax(u)", "mask=not c1, heads=2"),
        ("n = Where(c1, far, zero) u = Add(t, n) p = Softmax(u)", "mask=not c1, heads=2"),
        ("u = Where(c1, t, zero) p = Softmax(u)", ""),  # no mask: the step keeps a weight
        ("n = Where(c1, five, zero) u = Add(t, n) p = Softmax(u)", "mask=Where(c1, 5, 0), heads=2"),
        ("u = Clip(t, low, five) p = Softmax(u)", "heads=2, clip=[-5,5]"),
        ("u = Max(t, low) p = Softmax(u)", "heads=2, min=-5"),
        ("n = Add(t, m) u = Clip(n, low, five) p = Softmax(u)", ""),  # bounds what a mask made low
        ("u = Max(t, m) p = Softmax(u)", ""),
        ("l = Div(t, cap) n = Tanh(l) u = Mul(n, cap) p = Softmax(u)", "heads=2, softcap=30"),
        ("n = Tanh(t) u = Mul(n, cap) p = Softmax(u)", "heads=2, softcap=30, scale=15"),
        ("u = Add(t, slope) p = Softmax(u)", "bias=slope, heads=2"),
        ("n = Add(t, slope) u = Mul(n, scale) p = Softmax(u)", ""),  # scales the bias, too
        ("h = Shape() n = Slice(h, zeroth, ones) u = Mul(t, n) p = Softmax(u)", "heads=2, scale=sizes(...)"),
        ("h = Shape(x) n = Gather(h, first) f = Cast<to = 1>(n) l = Log(f) u = Mul(t, l) p = Softmax(u)", ""),
        ("n = Softmax(t) p = Softmax(n)", ""),
        ("n = Softmax(t) p = Mul(n, scale)", ""),
        ("n = ReduceMax(t, last) u = Sub(t, n) p = Softmax(u)", ""),
    ],
)
def test_scores_of_an_attention_are_those_that_its_arguments_say(between: str, arguments: str) -> None:
    found = "".join(lines(f"{SPLIT} {SCORES} {between} {JOIN}", MORE, INPUTS))
    assert f"Attention(x, {arguments}) @ wo" in found if arguments else "Attention" not in found


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("MatMul(x, wk)", "Identity(a)"), "out = Attention(h, h, x @ wv, heads=2) @ wo"),  # one projection for two
        (("wk)", "wq)"), "out = Attention(x @ wq, x @ wq, x @ wv, heads=2) @ wo"),  # two, with one weight
        (("wv)", "wk)"), "out = Attention(x @ wq, x @ wk, x @ wk, heads=2) @ wo"),
    ],
)
def test_projections_that_share_a_weight_are_shown(change: tuple[str, str], line: str) -> None:
    assert line in lines(f"{SPLIT.replace(*change)} {SCORES} p = Softmax(t) {JOIN}", MORE)


def test_heads_that_are_tiled_are_no_groups() -> None:
    keys = "b = MatMul(x, half) b4 = Reshape(b, joint) b5 = Transpose<perm = [0, 2, 1, 3]>(b4) bt = Tile(b5, tiles)"
    values = "c = MatMul(x, half3) c4 = Reshape(c, joint) c5 = Transpose<perm = [0, 2, 1, 3]>(c4) v = Tile(c5, tiles)"
    text = f"{SPLIT.splitlines()[1]} {keys} k = Transpose<perm = [0, 1, 3, 2]>(bt) {values}"
    found = lines(f"{text} {SCORES} p = Softmax(t) {JOIN}", MORE)
    assert sum(["Tile(" in line for line in found]) == 2
    assert not any(["heads=" in line for line in found])


def test_norms_of_queries_and_keys_are_marks_with_their_kind_and_number() -> None:
    text = SPLIT.replace("q = Transpose", "q0 = Transpose").replace(
        "k = Transpose<perm = [0, 2, 3", "k0 = Transpose<perm = [0, 2, 1"
    )
    text = text.replace("1, 1]>(b4)", "1, 3]>(b4)") + "q = RMSNormalization<epsilon = 0.1>(q0, g4) "
    text += "k1 = RMSNormalization<epsilon = 0.1>(k0, g4) k = Transpose<perm = [0, 1, 3, 2]>(k1)"
    typed = "float[2,2,6,4] q0, float[2,2,6,4] q, float[2,2,6,4] k0, float[2,2,6,4] k1, float[2,2,4,6] k"
    found = lines(f"{text} {SCORES} p = Softmax(t) {JOIN}", f"{MORE}, {typed}")
    assert found == ["out = Attention(x, heads=2, qk_norm=RMSNorm(eps=0.1)) @ wo"]


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("out = Dropout(x, half_one, c)", "Dropout(x, 0.5, c)"),
        ("d = Dropout(x, half_one, no) out = Relu(d)", "Relu(x)"),
        ("out, a, b = BatchNormalization<training_mode = 1>(x, g, g, g, g)", "BatchNorm(x, training_mode=1)"),
        ("w = Relu(y) out = Conv(x, w)", "Conv(x, Relu(y))"),
        ("out = InstanceNormalization(x, z, z)", "InstanceNorm(x, z, z)"),
        ("out = GroupNormalization<num_groups = 3>(x, g, g)", "GroupNorm(x, num_groups=3)"),
        (
            (
                "c1 = Conv(x, one) n = BatchNormalization(c1, g, g, g, g) r = Relu(n) "
                "out = BatchNormalization(r, g, g, g, g)"
            ),
            "Conv(x, 1, out=6, act=relu, bn)",
        ),
        ("c1 = Conv(x, one) out = LeakyRelu<alpha = 0.3>(c1)", "Conv(x, 1, out=6, act=leakyrelu(alpha=0.3))"),
        ('c1 = Conv(x, one) out = Gelu<approximate = "tanh">(c1)', "Conv(x, 1, out=6, act=gelu(tanh))"),
        ("p = Pad(x, channels) out = Conv(p, one)", "Conv(Pad(x, [0,1,0,0,1,0]), 1, out=6)"),
        ("p = Pad(x, sides) out = Conv(p, three)", "Conv(x, 3, out=6, pad=2)"),
        ("out = Conv<pads = [1, 1]>(x, three)", "Conv(x, 3, out=6)"),
        ("out = Conv(x, three)", "Conv(x, 3, out=6, pad=0)"),
        (
            'p = Pad<mode = "reflect">(x, sides) out = Conv(p, one)',
            "Conv(Pad(x, [0,0,2,0,0,2], mode=reflect), 1, out=6)",
        ),
        ("out = MaxPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)", "MaxPool(x, 2, stride=2, ceil_mode=1)"),
        ("out = Gather<axis = 1>(wide, ids)", "Gather(wide, ids, axis=-1)"),
        ("n = IsNaN(x) f = Where(n, zero, x) out = Relu(f)", "Relu(Where(IsNaN(x), 0, x))"),
        (
            "r = Reshape(x, mixed) f = MatMul(r, wide) out = Reshape(f, back)",
            "Reshape(Reshape(x, [6,16]) @ wide, [2,6,8])",
        ),
        (
            (
                "a = GlobalAveragePool(x) d = Conv<pads = [1, 1]>(a, down) r = Relu(d) u = Conv(r, up) s = Sigmoid(u) "
                "p = Mul(x, s) out = Relu(p)"
            ),
            "Relu(x * Conv(h, 1, out=6, act=sigmoid))",
        ),
        (
            "a = ReduceMean(x, ones) d = Conv(a, down) r = Relu(d) u = Conv(r, up) s = Sigmoid(u) out = Mul(x, s)",
            "x * Conv(h, 1, out=6, act=sigmoid)",
        ),
        (
            (
                "a = GlobalAveragePool(x) d = Conv(a, down) r = Relu(d) u = Conv(r, up) "
                "s = HardSigmoid<alpha = 0.16666667>(u) out = Mul(x, s)"
            ),
            "SqueezeExcite(x, gate=hardsigmoid(alpha=0.166667))",
        ),
    ],
)
def test_attributes_and_operands_that_are_not_usual_are_shown(nodes: str, line: str) -> None:
    weights = f"{MORE}, int64[6] channels = {{0, 1, 0, 0, 1, 0}}, int64[6] sides = {{0, 0, 2, 0, 0, 2}}, "
    weights += "bool no = {0}, int64[2] mixed = {6, 16}, int64[3] back = {2, 6, 8}, int64[1] ones = {1}"
    inputs = "float[2,6,8] x, float[6,6,1] y, float[6] z, bool c, int64[4] ids"
    assert lines(nodes, weights, inputs)[-1] == f"out = {line}"


@pytest.mark.parametrize(
    ("split", "line"),
    [
        ("Split<axis = 2, num_outputs = 2>(x)", "Split(x, axis=-1)"),
        ("Split<axis = -1>(x, fours)", "Split(x, axis=-1)"),
        ("Split<axis = -1>(x, uneven)", "Split(x, [2,6], axis=-1)"),
        ("Split<axis = -2, num_outputs = 4>(x)", "Split(x, axis=1, num_outputs=4)"),  # the last part is smaller
    ],
)
def test_parts_of_one_size_are_shown_alike(split: str, line: str) -> None:
    outputs = ", ".join("abcd"[: 4 if "4" in split else 2])
    weights = "int64[2] fours = {4, 4}, int64[2] uneven = {2, 6}"
    found = lines(f"{outputs} = {split} c1 = Relu(b) c2 = Exp(a) e = Tanh(b) o = Mul(c1, c2) out = Add(o, e)", weights)
    assert found[0].partition(" = ")[2] == line


@pytest.mark.parametrize(
    ("second", "line"),
    [
        ("Slice(x, four, far1, last)", "h, y = Split(x, axis=-1)"),
        ("Slice(x, six, far1, last)", ""),
        ("Slice(x, four, six, last)", ""),
        ("Slice(x, four, far1, last, two2)", ""),
    ],
)
def test_slices_that_cut_a_value_into_parts_are_a_split(second: str, line: str) -> None:
    weights = "int64[1] zero1 = {0}, int64[1] four = {4}, int64[1] six = {6}, int64[1] far1 = {9223372036854775807}, "
    weights += "int64[1] last = {-1}, int64[1] two2 = {2}"
    found = lines(f"a = Slice(x, zero1, four, last) b = {second} c1 = Softmax(b) out = MatMul(a, c1)", weights)
    assert [each for each in found if "Split" in each] == [line] * bool(line)


def test_sizes_of_an_expand_are_shown_where_all_of_them_are_known() -> None:
    weights = "int64[3] s = {2, 6, 8}, float[2,N!,8] e".replace("N!", "unk__1")
    assert lines("e = Expand(x, s) f = Softmax(e) out = Mul(f, e)", "int64[3] s = {2, 6, 8}", "float[6,1] x")[
        0
    ].endswith("Expand(x, [2,6,8])")
    assert lines("e = Expand(x, s) f = Softmax(e) out = Mul(f, e)", weights, "float[6,1] x")[0].endswith(
        "Expand(x, [...])"
    )


def test_a_resize_shows_its_sizes() -> None:
    text, weights = "out = Resize<mode = 'cubic'>(x, , scales)".replace("'", '"'), "float[3] scales = {1.0, 1.0, 3.0}"
    assert lines(text, weights) == ["out = Resize(x, [2,6,8], mode=cubic)"]


def test_a_softmax_of_an_old_opset_is_over_all_axes_from_its_own_on() -> None:
    written = model("out = Softmax<axis = 1>(x)")
    old = replace(written, opset_import=(replace(written.opset_import[0], version=11),))
    assert outline_of(old).texts()[1] == "out = Softmax(x, axes=1:): float32[2,6,8]"


@pytest.mark.parametrize(
    ("turned", "name"),
    [("odd, even", "rope(x, c, s, interleaved)"), ("even, odd", "Neg")],
)
def test_a_rotation_of_neighbours_is_interleaved(turned: str, name: str) -> None:
    negated, other = turned.split(", ")
    text = (
        "even = Slice(x, zeroth, end, last, step) odd = Slice(x, begin, end, last, step) "
        f"n = Neg({negated}) a = Unsqueeze(n, last) b = Unsqueeze({other}, last) f = Concat<axis = -1>(a, b) "
        "t = Reshape(f, back) p = Mul(x, c) q = Mul(t, s) out = Add(p, q)"
    )
    weights = (
        f"{MORE}, int64[1] begin = {{1}}, int64[1] end = {{8}}, int64[1] step = {{2}}, int64[3] back = {{2, 6, 8}}"
    )
    assert name in "".join(lines(text, weights, "float[2,6,8] x, float[6,8] c, float[6,8] s"))
    mixed = lines(text, weights.replace("back = {2, 6, 8}", "back = {6, 2, 8}") + ", float[6,2,8] t")
    assert "rope" not in "".join(mixed)


def test_angles_from_constants_are_not_shown() -> None:
    text = (
        "front = Slice(x, zeroth, middle, last) back = Slice(x, middle, end, last) n = Neg(back) "
        "t = Concat<axis = -1>(n, front) p = Mul(x, c) q = Mul(t, s) out = Add(p, q)"
    )
    weights = f"{MORE}, int64[1] middle = {{4}}, int64[1] end = {{8}}, float[6,8] c = ., float[6,8] s = ."
    assert lines(text, weights) == ["out = rope(x)"]


def test_a_rounding_to_other_than_8_bits_is_not_called_so() -> None:
    text = "q = QuantizeLinear(x, scale, zero16) y = DequantizeLinear(q, scale, zero16) out = Relu(y)"
    assert "QuantizeLinear(x, 0.5, 0)" in lines(text, f"{MORE}, int16 zero16 = {{0}}")[0]
    assert lines(text.replace("16", "8"), f"{MORE}, int8 zero8 = {{0}}") == ["out = Relu(q8(x))"]


def test_outputs_of_graphs_inside_are_in_their_order() -> None:
    text = """
    a, b = If (c) <
        then_branch = t () => (float[2,6,8] p, float[2,6,8] q) { p = Relu(x) q = Tanh(x) },
        else_branch = f () => (float[2,6,8] q1, float[2,6,8] p1) { p1 = Relu(x) q1 = Tanh(x) }>
    out = Sub(a, b)
    """
    inputs = "float[2,6,8] x, bool c"
    assert lines(text, inputs=inputs)[0] == "h, y = If(c, then=(Relu(x), Tanh(x)), else=(Tanh(x), Relu(x)))"
    longer = lines(text.replace("q = Tanh(x)", "q = Tanh(p)").replace("q1 = Tanh(x)", "q1 = Tanh(p1)"), inputs=inputs)
    assert [line.strip() for line in longer if "->" in line] == ["then_branch -> p, q:", "else_branch -> q1, p1:"]


def test_of_many_operands_some_are_named_and_the_rest_counted() -> None:
    parts = [f"float[2,6,8] i{number}" for number in range(20)]
    text = f"out = Concat<axis = 0>({', '.join([part.split()[1] for part in parts])})"
    assert lines(text, inputs=", ".join(parts)) == ["out = Concat(i0, i1, i2, i3, i4, i5, i6, i7, and 12 more, axis=0)"]


def test_padding_that_an_exporter_computes_from_constants_is_that_of_the_convolution() -> None:
    text = (
        "z = ConstantOfShape<value = int64[1] {0}>(four) all = Concat<axis = 0>(sides, z) "
        "pairs = Reshape(all, two_each) turned = Slice(pairs, from_end, to_start, zeroth, last) "
        "t = Transpose<perm = [1, 0]>(turned) flat = Reshape(t, last) pads = Cast<to = 7>(flat) p = Pad(x, pads) "
        "out = Conv(p, three)"
    )
    weights = (
        f"{MORE}, int64[1] four = {{4}}, int64[2] sides = {{1, 1}}, int64[2] two_each = {{-1, 2}}, "
        "int64[1] from_end = {-1}, int64[1] to_start = {-9223372036854775807}"
    )
    assert lines(text, weights) == ["out = Conv(x, 3, out=6)"]
    others = (("(four)", "(four_)"), ("{0}>(four)", "{1}>(four)"), ("perm = [1, 0]", "perm = [0, 1]"))
    for old, new in (*others, ("from_end, to_start", "to_start, from_end")):
        changed = lines(text.replace(old, new), weights, "float[2,6,8] x, int64[1] four_")
        assert changed != ["out = Conv(x, 3, out=6)"]


def test_what_is_computed_several_times_is_shown_once() -> None:
    text = "a = Relu(x) d = Abs(x) b = Relu(x) c = Cast<to = 1>(ids) e = Cast<to = 1>(ids) y = Mul(a, c) z = Mul(b, e)"
    found = outline(f"{text} u = Add(y, d) v = Sub(z, u) out = Tanh(v)", inputs="float[2,6,8] x, int64[8] ids")
    shown = ["h = Relu(x) * Cast(ids, to=float32)", "y = h + Abs(x)", "out = Tanh(h - y): float32[2,6,8]"]
    assert found.texts()[1:] == shown
    assert len({ref.position for line in found.lines for ref in line.nodes}) == 10


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ("a = RandomNormalLike(x) b = RandomNormalLike(x)", "RandomNormalLike(x) - RandomNormalLike(x)"),
        ("a = Elu<alpha = 0.5>(x) b = Elu<alpha = 0.7>(x)", "Elu(x, alpha=0.5) - Elu(x, alpha=0.7)"),
        ("a = Mul(x, half) b = Mul(x, other)", "x * 0.5 - x * 0.7"),
        ("a = Mul(x, half) b = Mul(x, same)", "h - h"),
    ],
)
def test_what_differs_is_shown_each_time(nodes: str, line: str) -> None:
    weights = "float half = {0.5}, float other = {0.7}, float same = {0.5}"
    assert lines(f"{nodes} c = Sub(a, b) out = Tanh(c)", weights)[-1] == f"out = Tanh({line})"


def test_constants_of_other_dtypes_and_values_that_are_dropped_at_random_are_shown_each_time() -> None:
    weights = "float half = {0.5}, float on = {1.0}, int32 whole = {1}, bool yes = {1}"
    text = "a = CastLike(x, on) b = CastLike(x, whole) c = CastLike(b, a) d = Add(a, c) out = Tanh(d)"
    assert str(outline(text, weights)).count("CastLike") == 3
    text = "a, m = Dropout(x, half, yes) b, n = Dropout(x, half, yes) c = Sub(a, b) d = Where(m, c, a)"
    assert str(outline(f"{text} out = Where(n, d, c)", weights)).count("Dropout") == 2


def test_an_output_that_another_value_equals_is_shown() -> None:
    assert "out = Relu(x)" in lines("a = Relu(x) out = Relu(x) b = Exp(a) other = Tanh(b)", "", outputs=OUTPUTS)


@pytest.mark.parametrize("call", ["Reshape", "Expand"])
def test_a_reshape_to_the_same_sizes_is_not_shown(call: str) -> None:
    back = "int64[3] back = {2, 6, 8}"
    for sizes, line in (("2,6,8", "Relu(x)"), ("2,6,N", f"Relu({call}(x, [2,6,8]))")):
        assert lines(f"r = {call}(x, back) out = Relu(r)", f"{back}, float[2,6,8] r", f"float[{sizes}] x") == [
            f"out = {line}"
        ]


def test_names_that_inference_invents_are_no_sizes() -> None:
    typed = "float[unk__0,2,4] r"
    found = lines("r = Reshape(x, back) out = Relu(r)", f"int64[3] back = {{-1, 2, 4}}, {typed}", "float[N,6,8] x")
    assert found == ["out = Relu(Reshape(x, [...,2,4]))"]


def test_a_convolution_shows_the_size_of_a_computed_weight() -> None:
    weights = "float[4,6,3] v = ., float two = {2.0}, float[4,6,3] w"
    assert lines("w = Mul(v, two) out = Conv<pads = [1, 1]>(x, w)", weights) == ["out = Conv(x, 3, out=4)"]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (
            "a, i = TopK(x, k) b, omitted = TopK(x, k) c = Mul(a, b) d = Cast<to = 1>(i) e = Add(c, d)",
            "Clip(h * z + Cast(y, to=float32), _, cap)",
        ),
        ("a, omitted = Dropout(x) e = Relu(a)", "Clip(Relu(x), _, cap)"),
    ],
)
def test_outputs_that_are_left_out_equal_no_other_value(text: str, last: str) -> None:
    written = model(f"{text} out = Clip(e, , cap)", "int64[1] k = {2}", "float[2,6,8] x, float cap")
    proto = onnxjson.to_proto(written)
    for node in proto.graph.node:
        node.output[:] = ["" if name == "omitted" else name for name in node.output]
    assert f"out = {last}:" in str(outline_of(onnxjson.from_proto(proto)))


def test_graphs_inside_show_values_that_equal_others_by_their_names() -> None:
    inner = "If(c1) <then_branch = g1 () => (float[2,6,8] o1) { o1 = Neg(b) }, "
    inner += "else_branch = g2 () => (float[2,6,8] o2) { o2 = Abs(e) }>"
    within = "If(c1) <then_branch = g3 () => (float[2,6,8] o3) { d = Identity(b) q = Exp(d) "
    within += f"f = {inner.replace('e)', 'd)')} o3 = Add(q, f) }}, "
    within += "else_branch = g4 () => (float[2,6,8] o4) { o4 = Abs(b) }>"
    text = "a = Sigmoid(x) b = Sigmoid(x) e = Identity(a) r = Relu(a)"
    inputs, choice = "float[2,6,8] x, bool c1", "If(c1, then=Neg(h), else=Abs(h))"
    assert lines(f"{text} i = {inner} out = Add(r, i)", "", inputs)[-1] == f"out = Relu(h) + {choice}"
    found = lines(f"{text} i = {within} out = Add(r, i)", "", inputs)
    assert found[1] == f"out = Relu(h) + If(c1, then=Exp(h) + {choice}, else=Abs(h))"


def test_an_unknown_size_equals_no_other() -> None:
    named = model("r = Reshape(x, back) out = Relu(r)", "float[N,6,8] r", "float[N,6,8] x, int64[3] back")
    proto = onnxjson.to_proto(named)
    for stated in (proto.graph.input[0], proto.graph.value_info[0]):
        stated.type.tensor_type.shape.dim[0].dim_param = ""
    assert "Reshape" in str(outline_of(onnxjson.from_proto(proto)))


def test_a_convolution_may_have_no_keywords() -> None:
    found = lines("c = Conv(x, w) out = Relu(c)", "", "float[2,6,8] x, float[6,6,1] w")
    assert found == ["out = Conv(x, w, act=relu)"]


def test_values_in_blocks_that_others_equal_are_shown() -> None:
    weights = "int64[1] last = {-1}, float tiny = {0.001}"
    norm = "{0}s = Mul(x, x) {0}m = ReduceMean({0}s, last) {0}e = Add({0}m, tiny) {0}q = Sqrt({0}e) {0}n = Div(x, {0}q)"
    mean = "s = Mul(x, x) m = ReduceMean(s, last)"
    mean_line, block = "ReduceMean(Square(x), axes=[-1])", "RMSNorm(x, eps=0.001)"
    found = lines(f"{norm.format('a')} {mean} z = Exp(m) y = Add(an, z) out = Tanh(y)", weights)
    assert found == [f"out = Tanh({block} + Exp({mean_line}))"]
    twice = f"{norm.format('a')} {norm.format('b')} {mean} z = Mul(an, m) y = Sub(z, bn) out = Tanh(y)"
    assert lines(twice, weights) == [f"h = {block}", f"out = Tanh(h * {mean_line} - h)"]
    assert len({ref.position for line in outline(twice, weights).lines for ref in line.nodes}) == 15


def test_parts_without_elements_are_not_shown() -> None:
    weights = "int64[1] eight = {8}, int64[1] far1 = {9223372036854775807}, int64[1] at = {2}, float[2,6,0] e"
    text = "r = Relu(x) e = Slice(x, eight, far1, at) c1 = Concat<axis = 2>(r, e) out = Tanh(c1)"
    found = outline(text, weights)
    assert found.lines[-1].text.startswith("out = Tanh(Relu(x))")
    assert len(found.lines[-1].nodes) == 4
    assert "Concat" in lines(text, weights.replace("float[2,6,0] e", "float[2,6,1] e"))[-1]
