"""Rewrites are as small as what is known of them allows, whatever the names are."""

import pytest

from onnxjson.diffing.difference import diff
from onnxjson.diffing.events import Detail
from onnxjson.model.document import Model
from tests.diffing.mutations import mutated
from tests.editing.graphs import model_of

WEIGHTS = """<float[4,4] w1 = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4] b1 = {1,2,3,4},
    float[4,4] w2 = {16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1}, float[4] b2 = {4,3,2,1}, int64[2] s = {4,4}>"""

LAYERS = f"""g (float[4,4] x) => (float[4,4] y) {WEIGHTS} {{
    m1 = MatMul(x, w1)
    a1 = Add(m1, b1)
    h = Tanh(a1)
    m2 = MatMul(h, w2)
    a2 = Add(m2, b2)
    y = Relu(a2)
}}"""

TRANSPOSED = """<float[4,4] t1 = {1,5,9,13,2,6,10,14,3,7,11,15,4,8,12,16}, float[4] c1 = {2,4,6,8},
    float[4,4] t2 = {16,12,8,4,15,11,7,3,14,10,6,2,13,9,5,1}, float[4] c2 = {8,6,4,2}, int64[2] s = {4,4}>"""

KEPT_BETWEEN = f"""g (float[4,4] x) => (float[4,4] y) {TRANSPOSED} {{
    r1 = Reshape(x, s)
    g1 = Gemm<transB = 1, beta = 0.5>(r1, t1, c1)
    a1 = Reshape(g1, s)
    h = Tanh(a1)
    r2 = Reshape(h, s)
    g2 = Gemm<transB = 1, beta = 0.5>(r2, t2, c2)
    a2 = Reshape(g2, s)
    y = Relu(a2)
}}"""

FUSED = f"""g (float[4,4] x) => (float[4,4] y) {WEIGHTS} {{
    h = local.FusedGemm(x, w1, b1)
    a2 = local.FusedGemm(h, w2, b2)
    y = Relu(a2)
}}"""


def rewrites(base: Model, target: Model) -> dict[str, int]:
    """The patterns of events with nodes on both sides, and how often each is found."""
    found = diff(base, target)
    return {each.pattern: each.count for each in found.events if each.members[0].base and each.members[0].target}


@pytest.mark.parametrize("scrambles", [False, True])
def test_a_node_that_stays_between_two_rewrites_separates_them(scrambles: bool) -> None:
    base, target = model_of(LAYERS), model_of(KEPT_BETWEEN)
    moved = mutated(target, rename=scrambles, shuffle=scrambles).target
    found = {pattern: count for pattern, count in rewrites(base, moved).items() if "->" in pattern}
    assert found == {"MatMul+Add -> Reshape+Gemm+Reshape": 2}
    assert diff(base, moved).alignment.matched == 2


@pytest.mark.parametrize("scrambles", [False, True])
def test_rewrites_that_follow_one_another_are_several(scrambles: bool) -> None:
    base = model_of(LAYERS)
    moved = mutated(model_of(FUSED), rename=scrambles, shuffle=scrambles).target
    found = {pattern: count for pattern, count in rewrites(base, moved).items() if "->" in pattern}
    assert found == {"MatMul+Add+Tanh -> local::FusedGemm": 1, "MatMul+Add -> local::FusedGemm": 1}


def test_of_two_nodes_of_one_operator_the_one_that_kept_its_name_stays() -> None:
    base = model_of(LAYERS.replace("h = Tanh(a1)", "p = Mul(a1, b1)\n h = Mul(p, b1)"))
    target = model_of(LAYERS.replace("h = Tanh(a1)", "h = Mul(a1, b1)"))
    found = diff(base, target)
    gone = [member.base for event in found.events for member in event.members if event.kind == "eliminated"]
    assert gone == [("/graph/node/2",)]


GELU = """d = Div(a1, r)
    e = Erf(d)
    o = Add(e, one)
    p = Mul(a1, o)
    h = Mul(p, half)"""

SCALARS = "float r = {1.4142135}, float one = {1}, float half = {0.5}"


@pytest.mark.parametrize("scrambles", [False, True])
def test_an_activation_without_weights_is_a_rewrite_of_its_own(scrambles: bool) -> None:
    base = model_of(LAYERS.replace("h = Tanh(a1)", GELU).replace("<float[4,4] w1", f"<{SCALARS}, float[4,4] w1"))
    target = model_of(
        f"""g (float[4,4] x) => (float[4,4] y) {WEIGHTS} {{
        r1 = Reshape(x, s)
        g1 = Gemm(r1, w1, b1)
        a1 = Reshape(g1, s)
        h = local.Gelu(a1)
        r2 = Reshape(h, s)
        g2 = Gemm(r2, w2, b2)
        a2 = Reshape(g2, s)
        y = Relu(a2)
    }}"""
    )
    moved = mutated(target, rename=scrambles, shuffle=scrambles).target
    found = {pattern: count for pattern, count in rewrites(base, moved).items() if "->" in pattern}
    assert found == {"MatMul+Add -> Reshape+Gemm+Reshape": 2, "Div+Erf+Add+2 Mul -> local::Gelu": 1}


@pytest.mark.parametrize("scrambles", [False, True])
def test_an_identity_of_a_weight_is_no_part_of_the_rewrite(scrambles: bool) -> None:
    text = LAYERS.replace("m1 = MatMul(x, w1)", "c = Identity(b1)\n m1 = MatMul(x, w1)")
    base = model_of(text.replace("Add(m1, b1)", "Add(m1, c)"))
    target = model_of(
        f"""g (float[4,4] x) => (float[4,4] y) {WEIGHTS} {{
        a1 = Gemm(x, w1, b1)
        h = Tanh(a1)
        m2 = MatMul(h, w2)
        a2 = Add(m2, b2)
        y = Relu(a2)
    }}"""
    )
    found = diff(base, mutated(target, rename=scrambles, shuffle=scrambles).target)
    told = [(each.kind, each.pattern, each.members[0].base) for each in found.events if each.members[0].base]
    assert [each for each in told if each[0] not in ("renamed", "reordered")] == [
        ("eliminated", "Identity", ("/graph/node/0",)),
        ("fused", "MatMul+Add -> Gemm", ("/graph/node/1", "/graph/node/2")),
    ]


def test_a_name_is_followed_past_nodes_that_went() -> None:
    base = model_of(
        LAYERS.replace("h = Tanh(a1)", "p = Reshape(a1, s)\n h = Reshape(p, s)\n n = Neg(h)\n q = Neg(n)").replace(
            "(h, w2)", "(q, w2)"
        )
    )
    target = model_of(LAYERS.replace("h = Tanh(a1)", "h = Reshape(a1, s)\n n = Neg(h)").replace("(h, w2)", "(n, w2)"))
    found = diff(base, target)
    gone = [member.base for event in found.events for member in event.members if event.kind == "eliminated"]
    assert gone == [("/graph/node/2",), ("/graph/node/5",)]


def test_a_factor_that_is_part_of_the_weights_now_is_told_as_such() -> None:
    base = model_of(LAYERS.replace("h = Tanh(a1)", "f = Mul(a1, b2)\n h = Tanh(f)"))
    scaled = "<float[4,4] v = {4,6,6,4,20,18,14,8,36,30,22,12,52,42,30,16}, float[4] c = {4,6,6,4}, "
    text = LAYERS.replace("<float[4,4] w1", scaled + "float[4,4] w1").replace("a1 = Add(m1, b1)", "")
    target = model_of(text.replace("m1 = MatMul(x, w1)", "r = Reshape(x, s)\n g = Gemm(r, v, c)\n a1 = Reshape(g, s)"))
    found = next(each for each in diff(base, target).events if each.kind == "replaced")
    assert found.pattern == "MatMul+Add+Mul -> Reshape+Gemm+Reshape"
    assert found.members[0].details == (
        Detail("Mul folded into weights of Gemm", "b2", "input 1 of Gemm, input 2 of Gemm"),
    )


def test_an_input_that_uses_an_equal_constant_now_absorbs_no_neighbour() -> None:
    text = LAYERS.replace(
        "<float[4,4] w1", "<float[4] o = {5,6,7,8}, float[4] p = {5,6,7,8}, float[4] z = {0,0,0,0}, float[4,4] w1"
    )
    base = model_of(text.replace("h = Tanh(a1)", "k = Div(a1, o)\n d = Div(k, p)\n e = Add(d, z)\n h = Tanh(e)"))
    gone = text.replace("float[4] p = {5,6,7,8}, float[4] z = {0,0,0,0}, ", "")
    target = model_of(gone.replace("h = Tanh(a1)", "k = Div(a1, o)\n d = Div(k, o)\n h = Tanh(d)"))
    assert {(each.kind, each.pattern) for each in diff(base, target).events} == {
        ("eliminated", "Add"),
        ("merged", "constants"),
    }


TAIL = ("Neg", "Sin", "Cos", "Abs", "Tanh", "Erf", "Sigmoid")


def test_a_name_is_followed_where_another_node_of_the_operator_was_inserted() -> None:
    tail = "\n".join(f"t{number} = {operator}(t{number - 1})" for number, operator in enumerate(TAIL, 1))
    layers = LAYERS.replace("y = Relu(a2)", f"t0 = Exp(a2)\n {tail}\n y = Relu(t{len(TAIL)})")
    base = model_of(layers.replace("h = Tanh(a1)", "p = Reshape(a1, s)\n h = Reshape(p, s)"))
    text = layers.replace("h = Tanh(a1)", "h = Reshape(a1, s)\n r = Reshape(h, s)").replace("m2 = MatMul(h, w2)", "")
    target = model_of(text.replace("a2 = Add(m2, b2)", "a2 = Gemm(r, w2, b2)"))
    assert ("/graph/node/3", "/graph/node/2") in diff(base, target).matches


def test_values_that_end_a_rewrite_in_several_ways_are_no_cut() -> None:
    weights = "<float[4] w = {1,2,3,4}, float[4] v = {5,6,7,8}>"
    head = f"g (float[4] x, float[4] y) => (float[4] z) {weights}"
    base = model_of(f"{head} {{a = Mul(x, w) b = Neg(a) c = Abs(a) d = Add(b, v) e = Sub(c, y) z = Mul(d, e)}}")
    target = model_of(f"{head} {{a = local.Fused(x, w) z = local.More(a, v, y)}}")
    for one, other in ((base, target), (target, base)):
        assert len(diff(one, other).events) == 1


def test_a_bias_is_not_the_counterpart_of_what_it_is_added_to() -> None:
    """Exporters write ``Add(bias, product)`` with an Identity before the bias, optimizers ``Add(product, bias)``."""
    base = model_of(f"""g (float[4,4] x) => (float[4,4] y, float[4,4] z) {WEIGHTS} {{
        i = Identity(b1)
        m = MatMul(x, w1)
        y = Add(i, m)
        z = Add(x, i)
    }}""")
    target = model_of(f"""g (float[4,4] x) => (float[4,4] y, float[4,4] z) {TRANSPOSED} {{
        r = Reshape(x, s)
        p = Gemm<transB = 1>(r, t1)
        m = Reshape(p, s)
        y = Add(m, c1)
        z = Add(x, c1)
    }}""")
    patterns = rewrites(base, target)
    assert "MatMul -> Reshape+Gemm+Reshape" in patterns
    assert not any("constant" in pattern or pattern.startswith("Identity ->") for pattern in patterns), patterns
