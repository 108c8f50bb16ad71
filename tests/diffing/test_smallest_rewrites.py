"""Rewrites are as small as what is known of them allows, whatever the names are."""

import pytest

from onnxjson.diffing.difference import diff
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
