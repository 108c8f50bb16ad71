"""Attention in the forms that exporters and libraries write."""

import re

import pytest

from tests.outline.written import lines, outline

WEIGHTS = (
    "float[8,8] wq = ., float[8,8] wk = ., float[8,8] wv = ., float[8,8] wo = ., float[8,24] qkv = ., "
    "float[8,4] half = ., float[8,4] half2 = ., "
    "float scale = {0.5}, float far = {-10000.0}, float zero = {0.0}, float[1,2,6,6] near = NEAR, "
    "float[1,1,1,6] none = ., "
    "int64[4] split = {2, 6, 2, 4}, int64[4] joint = {2, 6, 1, 4}, int64[5] groups = {2, 1, 2, 6, 4}, "
    "int64[3] join = {2, 6, 8}, "
    "int64[1] two = {2}, int64[3] thirds = {8, 8, 8}"
).replace("NEAR", f"{{{', '.join(['0.5'] * 72)}}}")

PAST = f"{{{', '.join(['0.0, -1e9, 0.0'] * 4)}}}"

SPLIT = """
a = MatMul(x, wq) a4 = Reshape(a, split) q = Transpose<perm = [0, 2, 1, 3]>(a4)
b = MatMul(x, wk) b4 = Reshape(b, split) k = Transpose<perm = [0, 2, 3, 1]>(b4)
c = MatMul(x, wv) c4 = Reshape(c, split) v = Transpose<perm = [0, 2, 1, 3]>(c4)
"""
JOIN = "o = MatMul(p, v) o4 = Transpose<perm = [0, 2, 1, 3]>(o) oj = Reshape(o4, join) out = MatMul(oj, wo)"


@pytest.mark.parametrize(
    ("between", "text"),
    [
        ("s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t)", "Attention(x, heads=2) @ wo"),
        ("s = MatMul(q, k) t = Div(s, two2) p = Softmax(t)", "Attention(x, heads=2) @ wo"),
        ("s = MatMul(q, k) p = Softmax(s)", "Attention(x, heads=2, scale=1) @ wo"),
        ("s = MatMul(q, k) t = Add(s, near) p = Softmax(t)", "Attention(x, bias=near, heads=2, scale=1) @ wo"),
        (
            "s = MatMul(q, k) g = Div(m, two2) t = Add(s, g) p = Softmax(t)",
            "Attention(x, bias=m / 2, heads=2, scale=1) @ wo",
        ),
        ("s = MatMul(q, k) t = Add(s, none) p = Softmax(t)", "Attention(x, heads=2, scale=1) @ wo"),
        ("s = MatMul(q, k) t = Add(s, past) p = Softmax(t)", "Attention(x, mask=past, heads=2, scale=1) @ wo"),
        ("s = MatMul(q, k) t = Mul(s, scale) u = Add(t, m) p = Softmax(u)", "Attention(x, mask=m, heads=2) @ wo"),
        (
            "s = MatMul(q, k) t = Mul(s, scale) u = Where(c1, t, far) p = Softmax(u)",
            "Attention(x, mask=c1, heads=2) @ wo",
        ),
        ("q1 = Mul(q, root) k1 = Mul(k, root) s = MatMul(q1, k1) p = Softmax(s)", "Attention(x, heads=2) @ wo"),
        (
            "s = MatMul(q, k) t = Mul(s, scale) u = Softmax(t) n = IsNaN(u) p = Where(n, zero, u)",
            "Attention(x, heads=2) @ wo",
        ),
    ],
)
def test_scales_and_masks_are_arguments(between: str, text: str) -> None:
    weights = f"{WEIGHTS}, float two2 = {{2.0}}, float root = {{0.70710678}}, float[2,1,1,6] past = {PAST}"
    found = lines(f"{SPLIT} {between} {JOIN}", weights, "float[2,6,8] x, float[2,1,6,6] m, bool[2,1,6,6] c1")
    assert found == [f"out = {text}"]


def test_a_mask_that_chooses_between_two_constants_is_its_condition_in_all_attentions_that_share_it() -> None:
    layer = f"{SPLIT} s = MatMul(q, k) t = Mul(s, scale) u = Add(t, n) p = Softmax(u) {JOIN}"
    parts = []
    for number, (start, end) in enumerate([("x", "y"), ("y", "z"), ("z", "out")]):
        text = re.sub(r"\b(a|a4|q|b|b4|k|c|c4|v|s|t|u|p|o|o4|oj)\b", rf"\1_{number}", layer)
        parts.append(text.replace("(x, ", f"({start}, ").replace("out = ", f"{end} = "))
    found = lines(
        f"e = Expand(c1, sizes) n = Where(e, zero, far) {' '.join(parts)}",
        f"{WEIGHTS}, int64[4] sizes = {{2, 1, 6, 6}}",
        "float[2,6,8] x, bool[2,1,1,6] c1",
    )
    assert found == ["repeat 3  (h = x, out = h)", "  h = Attention(h, mask=c1, heads=2) @ same wo"]


def test_keys_of_groups_are_repeated_inside() -> None:
    text = """
    a = MatMul(x, wq) a4 = Reshape(a, split) q = Transpose<perm = [0, 2, 1, 3]>(a4)
    b = MatMul(x, half) b4 = Reshape(b, joint) b5 = Transpose<perm = [0, 2, 1, 3]>(b4) bu = Unsqueeze(b5, two)
    be = Expand(bu, groups) b6 = Reshape(be, grouped) k = Transpose<perm = [0, 1, 3, 2]>(b6)
    c = MatMul(x, half2) c4 = Reshape(c, joint) c5 = Transpose<perm = [0, 2, 1, 3]>(c4) cu = Unsqueeze(c5, two)
    ce = Expand(cu, groups) v = Reshape(ce, grouped)
    s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t)
    """
    found = lines(f"{text} {JOIN}", f"{WEIGHTS}, int64[4] grouped = {{2, 2, 6, 4}}")
    assert found == ["out = Attention(x, heads=2, kv_heads=1) @ wo"]


def test_one_product_for_queries_keys_and_values_is_inside() -> None:
    text = """
    a = MatMul(x, qkv) a1, b1, c1 = Split<axis = 2>(a, thirds)
    a4 = Reshape(a1, split) q = Transpose<perm = [0, 2, 1, 3]>(a4)
    b4 = Reshape(b1, split) k = Transpose<perm = [0, 2, 3, 1]>(b4)
    c4 = Reshape(c1, split) v = Transpose<perm = [0, 2, 1, 3]>(c4)
    s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t)
    """
    assert lines(f"{text} {JOIN}", WEIGHTS) == ["out = Attention(x, heads=2) @ wo"]


def test_keys_and_values_of_another_sequence_are_a_second_operand() -> None:
    text = SPLIT.replace("MatMul(x, wk)", "MatMul(memory, wk)").replace("MatMul(x, wv)", "MatMul(memory, wv)")
    text += f"s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t) {JOIN}"
    found = lines(text, WEIGHTS, "float[2,6,8] x, float[2,6,8] memory")
    assert found == ["out = Attention(x, memory, heads=2) @ wo"]


def test_rotated_queries_and_keys_are_a_mark() -> None:
    rotation = """
    qa = Slice(q0, start, middle, axis) qb = Slice(q0, middle, end, axis) qn = Neg(qb) qr = Concat<axis = 3>(qn, qa)
    qc = Mul(q0, cos) qs = Mul(qr, sin) q = Add(qc, qs)
    ka = Slice(k0, start, middle, axis) kb = Slice(k0, middle, end, axis) kn = Neg(kb) kr = Concat<axis = 3>(kn, ka)
    kc = Mul(k0, cos) ks = Mul(kr, sin) k1 = Add(kc, ks) k = Transpose<perm = [0, 1, 3, 2]>(k1)
    """
    text = (
        SPLIT.replace("q = Transpose", "q0 = Transpose")
        .replace("k = Transpose", "k0 = Transpose")
        .replace("3, 1]", "1, 3]")
    )
    weights = f"{WEIGHTS}, int64[1] start = {{0}}, int64[1] middle = {{2}}, int64[1] end = {{4}}, int64[1] axis = {{3}}"
    found = lines(
        f"{text} {rotation} s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t) {JOIN}",
        weights,
        "float[2,6,8] x, float[6,4] cos, float[6,4] sin",
    )
    assert found == ["out = Attention(x, cos=cos, sin=sin, heads=2, rope) @ wo"]


@pytest.mark.parametrize(
    ("together", "line"),
    [("4, 6, 4", "q2, k2, x @ wv, heads=2"), ("4, 3, 8", "q2, Rearrange(k2, [2,2,4,6]), h, k_transposed")],
)
def test_steps_and_sizes_of_keys_may_be_exchanged_with_batch_and_heads_together(together: str, line: str) -> None:
    keys = "j = Reshape(k2, together) jt = Transpose<perm = [0, 2, 1]>(j) k = Reshape(jt, apart) "
    (values,) = [row for row in SPLIT.splitlines() if row.startswith("c =")]
    _, middle, last = together.split(", ")
    typed = f"float[{together}] j, float[2,2,4,6] k, float[4,{last},{middle}] jt"
    weights = f"{WEIGHTS}, int64[3] together = {{{together}}}, int64[4] apart = {{2, 2, 4, 6}}, {typed}"
    inputs = "float[2,6,8] x, float[2,2,6,4] q2, float[2,2,6,4] k2"
    found = lines(f"{keys} {values} s = MatMul(q2, k) t = Mul(s, scale) p = Softmax(t) {JOIN}", weights, inputs)
    assert f" = Attention({line})" in "".join(found)


def test_keys_whose_rows_a_reshape_breaks_are_not_those_of_the_projection() -> None:
    turn = "j = Reshape(k0, broken) jt = Transpose<perm = [0, 2, 1]>(j) k = Reshape(jt, apart) "
    text = SPLIT.replace("k = Transpose<perm = [0, 2, 3, 1]>", "k0 = Transpose<perm = [0, 2, 1, 3]>") + turn
    typed = "float[2,2,6,4] k0, float[4,4,6] j, float[4,6,4] jt, float[2,2,4,6] k"
    weights = f"{WEIGHTS}, int64[3] broken = {{4, 4, 6}}, int64[4] apart = {{2, 2, 4, 6}}, {typed}"
    found = lines(f"{text} s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t) {JOIN}", weights)
    assert "Attention(x, heads=2)" not in " ".join(found)


def test_scores_that_are_used_elsewhere_are_operators() -> None:
    text = f"{SPLIT} s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t) {JOIN} kept = Identity(t)"
    found = lines(text, WEIGHTS, outputs="float[2,6,8] out, float[2,2,6,6] kept")
    assert not any("Attention" in line for line in found)
    assert any("Softmax" in line for line in found)


def test_rows_before_some_of_the_projections_are_inside() -> None:
    rows = SPLIT.replace("MatMul(x, wq)", "MatMul(r, wq)").replace("MatMul(x, wv)", "MatMul(r, wv)")
    found = lines(
        f"r = Reshape(x, rows) {rows} s = MatMul(q, k) p = Softmax(s) {JOIN}", f"{WEIGHTS}, int64[2] rows = {{-1, 8}}"
    )
    assert found == ["out = Attention(x, heads=2, scale=1) @ wo"]


@pytest.mark.parametrize(
    ("between", "join"),
    [
        ("p = Softmax<axis = 2>(s)", JOIN),
        ("p = Softmax<axis = 1>(s)", JOIN),
        ("p = Softmax<axis = 0>(s)", JOIN),
        ("w = Softmax(s) p = Transpose<perm = [0, 1, 3, 2]>(w)", JOIN),
        ("t = Transpose<perm = [0, 1, 3, 2]>(s) p = Softmax(t)", JOIN),
    ],
)
def test_weights_that_are_not_those_of_the_queries_are_operators(between: str, join: str) -> None:
    found = lines(f"{SPLIT} s = MatMul(q, k) {between} {join}", WEIGHTS)
    assert not any("Attention" in line for line in found)
    assert any("Softmax" in line for line in found)


def test_the_axis_of_a_softmax_is_shown_unless_it_is_the_last() -> None:
    assert lines("out = Softmax<axis = 2>(x)") == lines("out = Softmax(x)") == ["out = Softmax(x)"]
    assert lines("out = Softmax<axis = 1>(x)") == ["out = Softmax(x, axis=1)"]


SINGLE = """
a = MatMul(x, wq) q = Reshape(a, one)
b = MatMul(x, wk) b4 = Reshape(b, one) k = Transpose<perm = [0, 1, 3, 2]>(b4)
c = MatMul(x, wv) v = Reshape(c, one)
s = MatMul(q, k) p = Softmax(s) o = MatMul(p, v) oj = Reshape(o, join) out = MatMul(oj, wo)
"""
PLAIN = f"{SPLIT} s = MatMul(q, k) p = Softmax(s) {JOIN}"


INNER = re.sub(r"2, 1, 3]>\(([ac])4", r"3, 1, 2]>(\g<1>4", PLAIN.replace("split", "inner"))


def test_one_head_beside_the_steps_needs_no_transpose() -> None:
    assert lines(SINGLE, f"{WEIGHTS}, int64[4] one = {{2, 1, 6, 8}}") == ["out = Attention(x, heads=1, scale=1) @ wo"]


def test_keys_of_sequences_before_the_batch_may_be_split_and_turned_at_once() -> None:
    text = "b = MatMul(x, wk) b4 = Reshape(b, split) k = Transpose<perm = [1, 2, 3, 0]>(b4) "
    for name, weight in (("q", "wq"), ("v", "wv")):
        text += f"{name}1 = MatMul(x, {weight}) {name}2 = Reshape({name}1, flat) "
        text += f"{name}3 = Transpose<perm = [1, 0, 2]>({name}2) {name} = Reshape({name}3, apart) "
    text += f"s = MatMul(q, k) p = Softmax(s) {JOIN.replace('0, 2, 1, 3', '2, 0, 1, 3')}"
    found = lines(text, f"{WEIGHTS}, int64[3] flat = {{2, 12, 4}}, int64[4] apart = {{6, 2, 2, 4}}")
    assert found == ["out = Attention(x, heads=2, scale=1) @ wo"]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(JOIN[24:], JOIN[24:].replace("[0, 2, 1, 3]", "[0, 2, 3, 1]")),  # joined in another order
        PLAIN.replace("[0, 2, 1, 3]>(c4)", "[0, 3, 1, 2]>(c4)"),  # values that are split in another order
        PLAIN.replace("2, 1, 3]", "1, 2, 3]").replace("2, 3, 1]", "1, 3, 2]"),  # steps attend to heads
        INNER.replace("2, 3, 1]>(b4)", "3, 2, 1]>(b4)"),  # heads beside each other in all sizes
        PLAIN.replace("join)", "mixed)"),  # joined heads are no sizes of one step
    ],
)  # fmt: skip
def test_an_unusual_split_into_heads_is_shown(text: str) -> None:
    weights = f"{WEIGHTS}, int64[4] inner = {{2, 6, 4, 2}}, int64[3] mixed = {{2, 4, 12}}"
    found = "".join(lines(text, weights))
    assert "heads=" not in found
    assert "Attention(x" not in found


def test_a_rotation_of_the_queries_alone_is_so_called() -> None:
    rotation = """
    qa = Slice(q0, start, middle, axis) qb = Slice(q0, middle, end, axis) qn = Neg(qb) qr = Concat<axis = 3>(qn, qa)
    qc = Mul(q0, cos) qs = Mul(qr, sin) q = Add(qc, qs)
    """
    weights = f"{WEIGHTS}, int64[1] start = {{0}}, int64[1] middle = {{2}}, int64[1] end = {{4}}, int64[1] axis = {{3}}"
    found = lines(
        f"{SPLIT.replace('q = Transpose', 'q0 = Transpose')} {rotation} s = MatMul(q, k) p = Softmax(s) {JOIN}",
        weights,
        "float[2,6,8] x, float[6,4] cos, float[6,4] sin",
    )
    assert found == ["out = Attention(x, cos=cos, sin=sin, heads=2, q_rope, scale=1) @ wo"]


def test_a_scale_that_is_computed_from_sizes_is_shown_as_far_as_it_is_known() -> None:
    text = "d = Shape(x) n = Slice(d, two, three) f = Cast<to = 1>(n) r = Sqrt(f)"
    split = "q = MatMul(x, wq) k0 = MatMul(x, wk) k = Transpose<perm = [0, 2, 1]>(k0) v = MatMul(x, wv)"
    text = f"{text} {split} s = MatMul(q, k) t = Div(s, r) p = Softmax(t) o = MatMul(p, v) out = Relu(o)"
    weights = f"{WEIGHTS}, int64[1] three = {{3}}"
    assert lines(text, weights) == ["out = Relu(Attention(x, scale=0.353553))"]
    found = lines(text, weights, "float[2,6,D] x", "float[2,6,D] out")
    assert found == ["out = Relu(Attention(x, scale=sizes(...))): float32[2,6,D]"]


PART = """
{0}a = Slice({0}0, start, two, axis) {0}b = Slice({0}0, rest, long, axis) {0}c = Slice({0}a, start, one, axis)
{0}d = Slice({0}a, one, two, axis) {0}e = Neg({0}d) {0}f = Concat<axis = 3>({0}e, {0}c) {0}g = Mul({0}a, cos)
{0}h = Mul({0}f, cos) {0}i = Add({0}g, {0}h) {0}1 = Concat<axis = -1>({0}i, {0}b)
"""


@pytest.mark.parametrize(("rest", "line"), [(2, "Attention(x, heads=2, rope=first 2) @ wo"), (1, "")])
def test_a_rotation_of_the_first_numbers_of_each_head_says_how_many(rest: int, line: str) -> None:
    split = SPLIT.replace("q = ", "q0 = ").replace("k = ", "k0 = ").replace("3, 1]", "1, 3]")
    turn = "k = Transpose<perm = [0, 1, 3, 2]>(k1) s = MatMul(q1, k) t = Mul(s, scale) p = Softmax(t)"
    numbers = "int64[1] start = {0}, int64[1] one = {1}, int64[1] axis = {3}, int64[1] long = {9223372036854775807}"
    weights = f"{WEIGHTS}, {numbers}, int64[1] rest = {{{rest}}}, float[6,2] cos = ., float[2,2,6,4] q0"
    found = lines(f"{split} {PART.format('q')} {PART.format('k')} {turn} {JOIN}", weights)
    assert found == [f"out = {line}"] if line else not any("first" in each for each in found)


@pytest.mark.parametrize(
    "parts",
    [
        "at = Transpose<perm = [0, 2, 1, 3]>(a4) q, k0, v = Split<axis = 3, num_outputs = 3>(at)",
        (
            "a5 = Reshape(a4, five) q0 = Gather<axis = 3>(a5, n0) k1 = Gather<axis = 3>(a5, n1) "
            "v0 = Gather<axis = 3>(a5, n2) q = Transpose<perm = [0, 2, 1, 3]>(q0) "
            "k0 = Transpose<perm = [0, 2, 1, 3]>(k1) v = Transpose<perm = [0, 2, 1, 3]>(v0)"
        ),
    ],
)  # fmt: skip
def test_one_product_may_be_split_into_heads_before_queries_keys_and_values(parts: str) -> None:
    turn = "k = Transpose<perm = [0, 1, 3, 2]>(k0) s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t)"
    numbers = "int64 n0 = {0}, int64 n1 = {1}, int64 n2 = {2}, int64[4] wide = {2, 6, 2, 12}"
    weights = f"{WEIGHTS}, {numbers}, int64[5] five = {{2, 6, 2, 3, 4}}, float[2,2,6,4] v, float[2,2,6,4] q"
    found = lines(f"a = MatMul(x, qkv) a4 = Reshape(a, wide) {parts} {turn} {JOIN}", weights)
    assert found == ["out = Attention(x, heads=2) @ wo"]


@pytest.mark.parametrize(
    ("between", "line"),
    [
        ("n = Where(seen, zero, far) t = Add(s, n) p = Softmax(t)", "Attention(x, mask=seen, heads=2, scale=1)"),
        ("t = Mul(s, each) p = Softmax(t)", "Attention(x, scale=[0,0], heads=2)"),
        ("t = Mul(s, each) u = Add(t, m) p = Softmax(u)", "Attention(x, scale=[0,0], mask=m, heads=2)"),
        ("t = Add(s, m) u = Mul(t, each) p = Softmax(u)", "Softmax("),
        ("t = Mul(s, near) p = Softmax(t)", "Softmax("),
        (
            "t6 = Reshape(s, apart) u6 = Add(t6, rows) y = Reshape(u6, [joined]) p = Softmax(y)",
            "Attention(x, mask=rows, heads=2, scale=1)",
        ),
        ("t6 = Reshape(s, apart) u6 = Add(t6, rows) y = Reshape(u6, [broken]) p = Softmax(y)", "Softmax("),
    ],
)
def test_constant_masks_scales_of_heads_and_scores_that_are_split_for_a_sum(between: str, line: str) -> None:
    numbers = "bool[1,1,1,6] seen = {1, 1, 0, 0, 0, 0}, int64[6] apart = {2, 2, 2, 3, 2, 3}, float[2,1,1] each = ."
    shapes = "int64[4] joined = {2, 2, 6, 6}, int64[4] broken = {2, 4, 3, 6}, float[2,2,6,6] s"
    shapes += ", float[2,2,2,3,2,3] t6, float[2,2,2,3,2,3] u6"
    typed = f"float[2,{'4,3' if 'broken' in between else '2,6'},6] y"
    nodes = f"{SPLIT} s = MatMul(q, k) {between.replace('[', '').replace(']', '')} {JOIN}"
    inputs = "float[2,6,8] x, float[2,1,6,6] m, float[2,2,2,3,1,1] rows"
    assert line in "".join(lines(nodes, f"{WEIGHTS}, {numbers}, {shapes}, {typed}", inputs))


def test_queries_may_be_constants() -> None:
    text = "kt = Transpose<perm = [0, 2, 1]>(x) s = MatMul(latents, kt) p = Softmax(s) out = MatMul(p, x)"
    found = lines(text, "float[1,3,8] latents = .", outputs="float[2,3,8] out")
    assert found == ["out = Attention(latents, x, scale=1): float32[2,3,8]"]


def test_a_reshape_that_mixes_rows_before_heads_are_joined_is_shown() -> None:
    join = JOIN.replace("o4 = Transpose<perm = [0, 2, 1, 3]>(o)", "ob = Reshape(o, mixed) o4 = Transpose(ob)")
    text = f"{SPLIT} s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t) {join}".replace(
        "(ob)", "<perm = [0, 2, 1, 3]>(ob)"
    )
    weights = f"{WEIGHTS}, int64[4] mixed = {{2, 6, 2, 4}}, float[2,2,6,4] o, float[2,6,2,4] ob"
    assert not any("Attention(x" in line for line in lines(text, weights))


@pytest.mark.parametrize(
    ("node", "line"),
    [
        ("Attention<is_causal = 1>(q, k, v, m)", "Attention(q, k, v, mask=m, causal)"),
        ("Attention<scale = 0.5>(q, k, v)", "Attention(q, k, v)"),
        ("Attention<scale = 0.25>(q, k, v)", "Attention(q, k, v, scale=0.25)"),
    ],
)
def test_the_operator_attention_names_its_mask_and_an_unusual_scale(node: str, line: str) -> None:
    four = "float[2,2,6,4]"
    inputs = f"{four} q, {four} k, {four} v, float[2,1,6,6] m"
    found = outline(f"out = {node}", inputs=inputs, outputs=f"{four} out")
    assert [(each.text, each.block) for each in found.lines[1:]] == [(f"out = {line}: float32[2,2,6,4]", "Attention")]


def test_heads_of_sizes_that_are_not_known_follow_from_the_others() -> None:
    computed = SPLIT.replace("a4 = Reshape(a, split)", "a4 = Reshape(a, sizes)")
    text = f"{computed} s = MatMul(q, k) t = Mul(s, scale) p = Softmax(t) {JOIN}"
    inputs = "float[N,M,8] x, int64[4] sizes"
    for typed, line in (("float[N,M,8] a, float[N,M,?,4] a4", "heads=2"), ("float[N,M,8] a", "heads=2, scale=0.5")):
        assert f"Attention(x, {line}) @ wo" in "".join(lines(text, f"{WEIGHTS}, {typed}", inputs))
    grouped = computed.replace("b4 = Reshape(b, split)", "b4 = Reshape(b, sizes)")
    grouped = grouped.replace("c4 = Reshape(c, split)", "c4 = Reshape(c, sizes)")
    found = "".join(lines(f"{grouped} s = MatMul(q, k) p = Softmax(s) {JOIN}", WEIGHTS, inputs))
    assert "heads=..., scale=1)" in found
