"""Values are compared as precisely as the operators on the way to them compute."""

from typing import Any

import numpy
import onnx.parser
import pytest

import onnxjson
from onnxjson.model.document import Model
from onnxjson.running.comparisons import EXACT, TOLERANCES, Tolerance, compare
from onnxjson.running.precision import QUANTIZED, least_tolerances

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def parsed(text: str) -> Model:
    """A model of onnx's text format."""
    return onnxjson.from_proto(onnx.parser.parse_model(f"{HEAD} {text}"))


def least(text: str) -> Tolerance:
    """The least tolerance of y."""
    return least_tolerances(onnxjson.Index(parsed(text)), ["y"], TOLERANCES)[0]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("g (float[4] x) => (double[4] y) { a = Exp(x) y = Cast<to=11>(a) }", "float32"),
        ("g (float[4] x) => (double[4] y) { a = Cast<to=11>(x) b = Exp(a) y = Neg(b) }", "float64"),
        ("g (float[4] x) => (float[4] y) { a = Cast<to=10>(x) b = Exp(a) y = Cast<to=1>(b) }", "float16"),
        ("g (float[4] x) => (float[4] y) <float16[4] w = {1,2,3,4}> { a = Cast<to=1>(w) y = Add(x, a) }", "float32"),
    ],
)
def test_least_precise_dtype_that_a_node_computes_in(text: str, dtype: str) -> None:
    found = least(text)
    assert (found.relative, found.of_scale) == (TOLERANCES[dtype].relative, TOLERANCES[dtype].of_scale)


def test_copies_of_inputs_are_exact() -> None:
    assert least("g (float[4] x) => (float[4] y) { a = Identity(x) y = Neg(a) }").relative == 1e-4
    assert least("g (float[2,2] x) => (float[4] y) { a = Flatten(x) y = Identity(a) }") == EXACT


def test_activations_of_8_bits_are_as_precise_as_these() -> None:
    quantized = """g (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {128}> {
        a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) y = Exp(b)
    }"""
    assert least(quantized).of_scale == QUANTIZED.of_scale
    weights = """g (float[4] x) => (float[4] y) <float s = {0.1}, int8 z = {0}, int8[4] w = {1,2,3,4}> {
        a = DequantizeLinear(w, s, z) y = Add(x, a)
    }"""
    assert least(weights).of_scale == TOLERANCES["float32"].of_scale


def test_saturated_sigmoids_are_judged_by_their_range() -> None:
    base = numpy.full(2000, 1e-5, numpy.float32)
    other = base + numpy.float32(1.2e-7)
    own = least("g (float[4] x) => (float[4] y) { a = Sigmoid(x) y = Identity(a) }")
    assert not compare(base, other).close
    assert compare(base, other, own).close
    assert not compare(base, base * 2, own).close


@pytest.mark.parametrize("joined", ["x, s", "s, x"])
def test_values_that_are_joined_keep_the_floor_of_their_range(joined: str) -> None:
    alone = least("g (float[4] x) => (float[4] y) { y = Sigmoid(x) }")
    assert least(f"g (float[4] x) => (float[8] y) {{ s = Sigmoid(x) y = Concat<axis=0>({joined}) }}") == alone


def test_what_all_branches_return_has_their_range() -> None:
    branches = """g (float[4] x, bool c) => (float[4] y) {
        s = Sigmoid(x)
        y = If (c) <then_branch = t () => (float[4] a) { b = Tanh(x) a = Identity(b) },
                    else_branch = e () => (float[4] d) { d = %s }>
    }"""
    assert (
        least(branches % "Identity(s)").absolute == least("g (float[4] x) => (float[4] y) { y = Sigmoid(x) }").absolute
    )
    assert least(branches % "Exp(s)").absolute == 0


def test_one_element_of_many_may_be_somewhat_beyond_the_tolerance() -> None:
    base = numpy.ones(132_500, numpy.float32)
    tolerance = Tolerance(relative=1e-4)

    def changed(count: int, by: float) -> Any:
        other = base.copy()
        other[:count] += numpy.float32(by)
        return compare(base, other, tolerance)

    assert (changed(1, 3e-4).close, changed(1, 3e-4).stray) == (True, 1)
    assert not changed(1, 3e-3).close
    assert not changed(100, 3e-4).close
    assert not compare(base[:100], changed_few(base[:100]), tolerance).close


def changed_few(base: Any) -> Any:
    """One element of a small value changed a little."""
    other = base.copy()
    other[0] += numpy.float32(3e-4)
    return other


def test_verify_accepts_other_orders_of_float32_in_a_float64_output() -> None:
    text = "g (float[N,64] x) => (double[N,64] y) { a = %s y = Cast<to=11>(a) }"
    base, other = parsed(text % "Exp(x)"), parsed(text % "Exp(x)")
    assert onnxjson.verify(base, other).equal
    third = parsed("g (float[N,64] x) => (double[N,64] y) { b = Cast<to=11>(x) c = Exp(b) y = Identity(c) }")
    result = onnxjson.verify(base, third)
    assert result.equal
    assert result.outputs[0].tolerance.relative == 1e-4
    wrong = parsed("g (float[N,64] x) => (double[N,64] y) { b = Mul(x, x) y = Cast<to=11>(b) }")
    assert not onnxjson.verify(base, wrong).equal
