"""The rules of the package: each finds its case and not what is nearly that; its replacement computes the same."""

# ruff: noqa: E501 - a case on a line is easier to compare

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy
import onnxruntime
import pytest
from onnx import parser

import onnxjson
from onnxjson import edits
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, MissingInputError
from onnxjson.patterns.misses import nearest_misses
from onnxjson.patterns.rule_files import SHIPPED, Block, Rule, pattern_text, read_rules
from onnxjson.patterns.searching import find
from tests.cli.running import run
from tests.patterns.laws import MODELS
from tests.patterns.recall import counts

RULES = {rule.id: rule for rule in read_rules(SHIPPED)}

CONSTANTS = (
    (
        "float half = {0.5}, float one = {1.0}, float zero = {0.0}, float two = {2.0}, float three = {3.0}, "
        "float six = {6.0}, float root = {1.4142135}, float inverse = {0.70710678}, float cubic = {0.044715}, "
        "float tanh_factor = {0.7978846}, float quick = {1.702}, float small = {0.00001}, float other = {1.25}, "
        "float[8] v = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, int64[1] last = {-1}, int64[1] first = {0}, "
        "int64[1] four = {4}, int64[1] end = {100}, int64[3] flat = {2, 3, 32}, int64 second = {1}, "
        "int64[1] minus = {-1}, uint8 offset = {128}, float[8,8] w = {WEIGHT}, float[3,3,1,1] k = {KERNEL}, "
        "uint8[8,2] w8 = {INTEGERS}, uint8[1,3,1,1] k8 = {1, 2, 3}, "
        "float[3] c = {1.0, 2.0, 3.0}, float[3,1,1] c1 = {1.0, 2.0, 3.0}"
    )
    .replace("WEIGHT", ", ".join([str(n / 50) for n in range(64)]))
    .replace("INTEGERS", ", ".join(["3"] * 16))
    .replace("KERNEL", ", ".join(["0.5"] * 9))
)

MEAN = "m = ReduceMean(x, last) d = Sub(x, m) "
VARIANCE = MEAN + "p = Pow(d, two) q = ReduceMean(p, last) a = Add(q, small) s = Sqrt(a) "
SQUARES = "p = Pow(x, two) q = ReduceMean(p, last) a = Add(q, small) s = Sqrt(a) "
SCORES = "t = Transpose <perm = [0, 1, 3, 2]> (z) s = MatMul(x, t) "
SCALED = "t = Transpose <perm = [0, 1, 3, 2]> (z) a = Mul(x, half) d = Mul(t, half) s = MatMul(a, d) "
ROTATED = "a = Slice(x, four, end, last) b = Slice(x, first, four, last) n = Neg(a) "
PARTIAL = "p = Slice(x, first, four, last) q = Slice(x, four, end, last) " + ROTATED.replace("(x", "(p")
NEIGHBOURS = (
    "a = Slice(x, first, end, last) b1 = Slice(x, four, end, last) n = Neg(b1) p = Unsqueeze(n, last) "
    "q = Unsqueeze(a, last) "
)
DYNAMIC = "q, s, p = DynamicQuantizeLinear(x)"
SQUEEZED = "m = GlobalAveragePool(x) d = Conv(m, k)"


class Case(NamedTuple):
    """A graph that a rule finds, and one that it does not; x and z are float[2,3,4,8], b is bool[2,3,4,8]."""

    found: str
    near: str
    opset: int = 20


CASES = {
    "gelu-erf": Case(
        "d = Div(x, root) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)",
        "d = Div(x, other) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)",
    ),
    "erf-gate": Case(
        "d = Div(x, root) e = Erf(d) a = Add(e, one) y = Mul(x, a)",
        "d = Div(x, other) e = Erf(d) a = Add(e, one) y = Mul(x, a)",
    ),
    "gelu-tanh": Case(
        "p = Pow(x, three) c3 = Mul(p, cubic) s = Add(x, c3) t = Mul(s, tanh_factor) h = Tanh(t) a = Add(h, one) "
        "x2 = Mul(x, half) y = Mul(x2, a)",
        "p = Pow(x, two) c3 = Mul(p, cubic) s = Add(x, c3) t = Mul(s, tanh_factor) h = Tanh(t) a = Add(h, one) "
        "x2 = Mul(x, half) y = Mul(x2, a)",
    ),
    "quick-gelu": Case("m = Mul(x, quick) s = Sigmoid(m) y = Mul(x, s)", "m = Mul(x, quick) s = Sigmoid(m) y = Mul(z, s)"),
    "silu": Case("s = Sigmoid(x) y = Mul(s, x)", "s = Sigmoid(x) y = Mul(s, z)"),
    "swiglu": Case("s = Sigmoid(x) g = Mul(x, s) y = Mul(g, z)", "s = Sigmoid(x) g = Mul(x, s) y = Mul(g, x)"),
    "mish": Case("s = Softplus(x) t = Tanh(s) y = Mul(x, t)", "s = Softplus(x) t = Tanh(s) y = Add(x, t)"),
    "hard-swish": Case(
        "s = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul(x, s)", "s = HardSigmoid(x) y = Mul(x, s)"
    ),
    "hard-sigmoid": Case(
        "a = Add(x, three) c6 = Clip(a, zero, six) y = Div(c6, six)",
        "a = Add(x, three) c6 = Clip(a, zero, two) y = Div(c6, six)",
    ),
    "sigmoid-by-hand": Case(
        "n = Neg(x) e = Exp(n) a = Add(one, e) y = Reciprocal(a)", "n = Neg(x) e = Exp(n) a = Add(two, e) y = Reciprocal(a)"
    ),
    "layer-norm": Case(
        VARIANCE + "f = Div(d, s) g = Mul(f, v) y = Add(g, v)", VARIANCE + "f = Div(d, s) g = Mul(f, z) y = Add(g, v)"
    ),
    "layer-norm-plain": Case(VARIANCE + "y = Div(d, s)", VARIANCE + "y = Div(x, s)"),
    "layer-norm-scale": Case(VARIANCE + "f = Div(d, s) y = Mul(f, v)", VARIANCE + "f = Div(d, s) y = Mul(f, z)"),
    "group-norm": Case(
        "g = Reshape(x, flat) n = InstanceNormalization(g, c, c) r = Reshape(n, eight) m = Mul(r, v) y = Add(m, v)",
        "g = Reshape(x, flat) n = InstanceNormalization(g, c, c) r = Reshape(n, eight) m = Mul(r, r) y = Add(m, v)",
    ),
    "group-norm-scale": Case(
        "g = Reshape(x, flat) n = InstanceNormalization(g, c, c) r = Reshape(n, eight) y = Mul(r, v)",
        "n = InstanceNormalization(x, c, c) y = Mul(n, v)",
    ),
    "group-norm-plain": Case(
        "g = Reshape(x, flat) n = InstanceNormalization(g, c, c) y = Reshape(n, eight)",
        "n = InstanceNormalization(x, c, c) y = Reshape(n, flat)",
    ),
    "nan-guard": Case(
        "p = Softmax(x) n = IsNaN(p) y = Where(n, zero, p)", "p = Softmax(x) n = IsNaN(p) y = Where(n, one, p)"
    ),
    "index-by-position": Case(
        "f = Flatten <axis = 4> (x) g = Gather(f, first) y = Reshape(g, last)",
        "f = Flatten <axis = 4> (x) g = Gather <axis = 1> (f, first) y = Reshape(g, last)",
    ),
    "cumsum-between-casts": Case(
        "w6 = Cast <to = 7> (x) s = CumSum(w6, second) y = Cast <to = 6> (s)",
        "w6 = Cast <to = 7> (x) s = CumSum <exclusive = 1> (w6, second) y = Cast <to = 6> (s)",
    ),
    "linear": Case("o = MatMul(x, w) y = Add(o, v)", "o = MatMul(x, z1) y = Add(o, v)"),
    "rms-norm": Case(
        SQUARES + "r = Reciprocal(s) n = Mul(x, r) y = Mul(v, n)", SQUARES + "r = Reciprocal(s) n = Mul(z, r) y = Mul(v, n)"
    ),
    "rms-norm-plain": Case(SQUARES + "y = Div(x, s)", SQUARES + "y = Div(s, x)"),
    "skip-layer-norm": Case(
        "a = Add(x, z) y = LayerNormalization(a, v)", "a = Mul(x, z) y = LayerNormalization(a, v)"
    ),
    "bias-gelu": Case("a = Add(x, v) y = Gelu(a)", "a = Add(x, half) y = Gelu(a)"),
    "attention": Case(
        SCORES + "d = Div(s, root) p = Softmax(d) y = MatMul(p, x)", SCORES + "d = Div(root, s) p = Softmax(d) y = MatMul(p, x)"
    ),
    "attention-mask": Case(
        SCORES + "d = Div(s, root) m = Add(d, half) p = Softmax(m) y = MatMul(p, x)",
        SCORES + "d = Div(s, root) m = Sub(d, half) p = Softmax(m) y = MatMul(p, x)",
    ),
    "rotary-embedding": Case(
        ROTATED + "r = Concat <axis = -1> (n, b2) f = Mul(r, v) e = Mul(x, v) y = Add(e, f)",
        ROTATED + "r = Concat <axis = -1> (b2, n) f = Mul(r, v) e = Mul(x, v) y = Add(e, f)",
    ),
    "rotary-embedding-partial": Case(
        PARTIAL + "r = Concat <axis = -1> (n, b2) f = Mul(r, half) e = Mul(p, half) o = Add(e, f) y = Concat <axis = -1> (o, q)",
        PARTIAL + "r = Concat <axis = -1> (n, b2) f = Mul(r, half) e = Mul(p, half) o = Add(e, f) y = Concat <axis = -1> (o, b2)",
    ),
    "rotary-embedding-interleaved": Case(
        NEIGHBOURS + "r = Concat <axis = -1> (p, q) t = Reshape(r, eight) f = Mul(t, v) e = Mul(x, v) y = Add(e, f)",
        NEIGHBOURS + "r = Concat <axis = -1> (q, p) t = Reshape(r, eight) f = Mul(t, v) e = Mul(x, v) y = Add(e, f)",
    ),
    "conv-batch-norm": Case(
        "o = Conv(x, k) y = BatchNormalization(o, c, c, c, c)", "o = Relu(x) y = BatchNormalization(o, c, c, c, c)"
    ),
    "conv-scale": Case("o = Conv(x, k) y = Mul(o, c1)", "o = Conv(x, k) y = Mul(o, z)"),
    "conv-bias": Case("o = Conv(x, k) y = Add(o, c1)", "o = Relu(x) y = Add(o, c1)"),
    "matmul-add": Case("r = Reshape(x, minus8) o = MatMul(r, w) y = Add(o, v)", "o = MatMul(x, w) y = Add(o, v)"),
    "log-softmax": Case("s = Softmax <axis = 1> (x) y = Log(s)", "s = Softmax(x) y = Exp(s)"),
    "softmax-by-hand": Case("e = Exp(x) s = ReduceSum(e, last) y = Div(e, s)", "e = Exp(x) s = ReduceSum(x, last) y = Div(e, s)"),
    "max-zero": Case("y = Max(zero, x)", "y = Max(half, x)"),
    "square": Case("y = Pow(x, two)", "y = Pow(x, three)"),
    "reciprocal-square-root": Case("a = Abs(x) s = Sqrt(a) y = Div(one, s)", "a = Abs(x) s = Sqrt(a) y = Div(s, one)"),
    "double-relu": Case("r = Relu(x) y = Relu(r)", "r = Relu(x) y = Neg(r)"),
    "relu-clip": Case("r = Relu(x) y = Clip(r, zero, six)", "r = Clip(x, zero, six) y = Relu(r)"),
    "double-negation": Case("n = Neg(x) y = Neg(n)", "n = Neg(x) y = Abs(n)"),
    "not-not": Case("n = Not(b) o = Not(n) y = Where(o, x, z)", "n = Not(b) y = Where(n, x, z)"),
    "where-not": Case("n = Not(b) y = Where(n, x, z)", "y = Where(b, x, z)"),
    "identity": Case("i = Identity(x) y = Neg(i)", "y = Neg(x)"),
    "dropout": Case("y = Dropout(x)", "y = Relu(x)"),
    "multiply-by-one": Case("y = Mul(x, one)", "y = Mul(x, half)"),
    "add-zero": Case("y = Add(zero, x)", "y = Add(one, x)"),
    "divide-by-one": Case("y = Div(x, one)", "y = Div(one, x)"),
    "transpose-back": Case(
        "t = Transpose <perm = [0, 2, 1, 3]> (x) u = Transpose <perm = [0, 2, 1, 3]> (t) y = Neg(u)",
        "t = Transpose <perm = [0, 2, 1, 3]> (x) u = Transpose <perm = [0, 1, 3, 2]> (t) y = Neg(u)",
    ),
    "transpose-to-and-fro": Case(
        "t = Transpose <perm = [0, 3, 1, 2]> (x) u = Transpose <perm = [0, 2, 3, 1]> (t) y = Neg(u)",
        "t = Transpose <perm = [0, 3, 1, 2]> (x) u = Transpose <perm = [0, 3, 1, 2]> (t) y = Neg(u)",
    ),
    "double-transpose": Case("t = Transpose(x) y = Transpose(t)", "t = Transpose(x) y = Neg(t)"),
    "double-reshape": Case("r = Reshape(x, flat) y = Reshape(r, minus)", "r = Reshape(x, flat) y = Neg(r)"),
    "double-unsqueeze": Case("r = Unsqueeze(x, first) y = Unsqueeze(r, last)", "y = Unsqueeze(x, last)"),
    "unsqueeze-squeeze": Case(
        "r = Unsqueeze(x, first) s = Squeeze(r, first) y = Neg(s)", "r = Unsqueeze(x, first) s = Squeeze(r, first1) y = Neg(s)"
    ),
    "double-cast": Case("h = Cast <to = 10> (x) y = Cast <to = 1> (h)", "h = Cast <to = 10> (x) f = Neg(h) y = Cast <to = 1> (f)"),
    "cast-to-same": Case("f = Cast <to = 1> (x) y = Neg(f)", "f = Cast <to = 1> (b) y = Neg(f)"),
    "quantize-dequantize": Case(
        "q = QuantizeLinear(x, half, offset) y = DequantizeLinear(q, half, offset)",
        "q = QuantizeLinear(x, half, offset) y = DequantizeLinear(q, one, offset)",
    ),
    "dequantize-computed": Case(
        "q = Cast <to = 2> (x) y = DequantizeLinear(q, half, offset)",
        "q = QuantizeLinear(x, half, offset) y = DequantizeLinear(q, half, offset)",
    ),
    "quantized-product": Case(f"{DYNAMIC} i = MatMulInteger(q, w8, p) f = Cast <to = 1> (i) t = Mul(s, half) y = Mul(f, t)",
        f"{DYNAMIC} i = MatMulInteger(q, w8, p) f = Cast <to = 1> (i) y = Mul(f, s)"),
    "quantized-convolution": Case(f"{DYNAMIC} i = ConvInteger(q, k8, p) f = Cast <to = 1> (i) t = Mul(s, half) y = Mul(t, f)",
        f"{DYNAMIC} i = ConvInteger(q, k8, offset) f = Cast <to = 1> (i) t = Mul(s, half) y = Mul(f, t)"),
    "roll": Case("a = Slice(x, four, end, last) n = Slice(x, first, four, last) y = Concat <axis = -1> (a, n)",
        "a = Slice(x, four, end, last) n = Slice(z, first, four, last) y = Concat <axis = -1> (a, n)"),
    "squeeze-excite": Case(f"{SQUEEZED} r = Relu(d) u = Conv(r, k) g = Sigmoid(u) y = Mul(x, g)",
        f"{SQUEEZED} r = Relu(d) u = Conv(r, k) g = Sigmoid(u) y = Mul(z, g)"),
    "squeeze-excite-silu": Case(f"{SQUEEZED} a = Sigmoid(d) r = Mul(d, a) u = Conv(r, k) g = Sigmoid(u) y = Mul(x, g)",
        f"{SQUEEZED} a = Sigmoid(d) r = Mul(d, half) u = Conv(r, k) g = Sigmoid(u) y = Mul(x, g)"),
    "squeeze-excite-hard-sigmoid": Case(f"{SQUEEZED} r = Relu(d) u = Conv(r, k) g = HardSigmoid(u) y = Mul(x, g)",
        f"{SQUEEZED} r = Relu(d) u = Conv(r, k) g = HardSigmoid <alpha = 0.3> (u) y = Mul(x, g)"),
    "squeeze-excite-hard-swish": Case(
        f"{SQUEEZED} r = Relu(d) u = Conv(r, k) a = Add(u, three) c6 = Clip(a, zero, six) g = Div(c6, six) y = Mul(x, g)",
        f"{SQUEEZED} r = Relu(d) u = Conv(r, k) a = Add(u, three) c6 = Clip(a, zero, two) g = Div(c6, six) y = Mul(x, g)"),
    "shape-from-constants": Case(
        "s = Concat <axis = 0> (minus, four) y = Reshape(x, s)", "h = Shape(x) s = Concat <axis = 0> (minus) y = Reshape(x, s)"
    ),
    "dimension-lookup": Case(
        "h = Shape(x) g = Gather(h, second) f = Cast <to = 1> (g) y = Mul(x, f)", "h = Shape(x) f = Cast <to = 1> (h) y = Neg(f)"
    ),
    "concat-one": Case("r = Concat <axis = 0> (x) y = Neg(r)", "y = Concat <axis = 0> (x, z)"),
}  # fmt: skip

FORMS = [
    ("gelu-erf", "h = Mul(half, x) d = Div(x, root) e = Erf(d) a = Add(one, e) y = Mul(h, a)"),
    ("gelu-erf", "d = Mul(x, inverse) e = Erf(d) a = Add(e, one) h = Mul(a, half) y = Mul(x, h)"),
    ("rms-norm", SQUARES + "n = Div(x, s) y = Mul(n, v)"),
    ("rms-norm", SQUARES + "r = Div(one, s) n = Mul(x, r) y = Mul(n, v)"),
    ("rms-norm", SQUARES.replace("Pow(x, two)", "Mul(x, x)") + "r = Div(one, s) n = Mul(x, r) y = Mul(n, v)"),
    ("rms-norm", SQUARES + "r = Div(one, s) n = Mul(x, r) h = Cast <to = 1> (n) y = Mul(h, v)"),
    ("layer-norm", VARIANCE.replace("Pow(d, two)", "Mul(d, d)") + "f = Div(d, s) g = Mul(f, v) y = Add(g, v)"),
    ("silu", "m = Mul(x, one) s = Sigmoid(m) y = Mul(x, s)"),
    ("hard-swish", "a = Add(x, three) c6 = Clip(a, zero, six) m = Mul(x, c6) y = Div(m, six)"),
    (
        "squeeze-excite",
        SQUEEZED.replace("GlobalAveragePool(x)", "ReduceMean(x, last)")
        + " b3 = Add(d, c1) r = Relu(b3) u = Conv(r, k) g = Sigmoid(u) y = Mul(x, g)",
    ),
    (
        "quantized-convolution",
        DYNAMIC
        + " i = ConvInteger(q, k8, p) t = Mul(s, half) e = Div(c, t) n = Floor(e) o = Cast <to = 6> (n) r = Reshape(o, flat) a = Add(i, r) f = Cast <to = 1> (a) y = Mul(f, t)",
    ),
    ("attention", SCORES + "d = Mul(s, half) p = Softmax(d) y = MatMul(p, x)"),
    ("attention", SCORES + "p = Softmax(s) y = MatMul(p, x)"),
    ("attention", SCALED + "p = Softmax(s) y = MatMul(p, x)"),
    ("attention", SCORES + "p = Softmax(s) n = IsNaN(p) g = Where(n, zero, p) y = MatMul(g, x)"),
    ("attention", SCORES + "p = Softmax(s) r = Dropout(p) y = MatMul(r, x)"),
    ("attention-mask", SCORES + "m = Add(half, s) p = Softmax(m) y = MatMul(p, x)"),
    ("attention-mask", SCORES + "m = Add(half, s) p = Softmax(m) n = IsNaN(p) g = Where(n, zero, p) y = MatMul(g, x)"),
    (
        "attention-mask",
        SCORES + "d = Mul(s, half) h = Less(d, zero) m = Where(h, d, small) p = Softmax(m) y = MatMul(p, x)",
    ),
    ("attention-mask", SCORES + "h = Less(s, zero) m = Where(h, small, s) p = Softmax(m) y = MatMul(p, x)"),
    ("attention-mask", SCALED + "m = Add(s, half) p = Softmax(m) y = MatMul(p, x)"),
]
"""Further forms that a rule with alternatives finds."""


def model_of(body: str, opset: int) -> Model:
    body = body.replace("b2", "bb").replace("b = Slice", "bb = Slice")
    constants = CONSTANTS + ", int64[2] minus8 = {-1, 8}, int64[1] first1 = {0}"
    text = (
        f'<ir_version: 9, opset_import: ["" : {opset}]> g '
        f"(float[2,3,4,8] x, float[2,3,4,8] z, bool[2,3,4,8] b) => (float[] y) <{constants}> {{ {body} }}"
    )
    return onnxjson.from_proto(parser.parse_model(text)).rewrite(edits.InferShapes())


def outputs(model: Model) -> list[numpy.ndarray]:
    session = onnxruntime.InferenceSession(onnxjson.to_proto(model).SerializeToString())
    rng = numpy.random.default_rng(1)
    values = {
        "x": rng.normal(size=(2, 3, 4, 8)).astype("float32"),
        "z": rng.normal(size=(2, 3, 4, 8)).astype("float32"),
    }
    values["b"] = values["z"] > 0
    return list(session.run(None, {each.name: values[each.name] for each in session.get_inputs()}))


def test_every_rule_has_a_case() -> None:
    assert sorted(CASES) == sorted(RULES)
    assert len(RULES) >= 40


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule_finds_its_case_and_not_the_near_one(name: str) -> None:
    rule, case = RULES[name], CASES[name]
    model = model_of(case.found, case.opset)
    assert len(find(model, rule.pattern_text)) == 1
    near = model_of(case.near, case.opset)
    assert find(near, rule.pattern_text) == []
    misses = nearest_misses(near, rule.pattern_text)
    assert all(miss.reasons for miss in misses)
    operators = {ref.node.op_type for ref in near.index.nodes()}
    assert (
        misses or rule.pattern_text.partition("(")[0] not in operators or "(" not in rule.pattern_text.partition("(")[2]
    )


@pytest.mark.parametrize(("name", "body"), FORMS)
def test_rule_finds_all_forms_once(name: str, body: str) -> None:
    assert len(find(model_of(body, 20), RULES[name].pattern_text)) == 1


WITH_REPLACEMENT = [(name, CASES[name].found) for name, rule in RULES.items() if rule.replacement]


@pytest.mark.parametrize(
    ("name", "body"), [*sorted(WITH_REPLACEMENT), *[form for form in FORMS if RULES[form[0]].replacement]]
)
def test_replacement_of_a_rule_computes_the_same(name: str, body: str) -> None:
    rule = RULES[name]
    before = model_of(body, CASES[name].opset)
    after = before.rewrite(edits.ReplacePattern(pattern=rule.pattern_text, replacement=rule.replacement_text or ""))
    assert find(after, rule.pattern_text) == []
    assert not [each for each in onnxjson.check(after) if each.severity == "error"]
    for one, other in zip(outputs(before), outputs(after), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def test_rules_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="does not exist"):
        read_rules(tmp_path / "none")
    with pytest.raises(MissingInputError, match="has no rules"):
        read_rules(tmp_path)
    path = tmp_path / "r.json"
    for text, message in (
        ("{", "not a rule"), ('{"id": "a", "message": "b"}', "pattern"),
        ('{"id": "a", "message": "b", "pattern": "Relu("}', "r.json: pattern:1:6"),
        ('{"id": "a", "message": "b", "pattern": "Relu", "colour": "red"}', "colour"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(DecodeError, match=r"r\.json") as caught:
            read_rules(tmp_path)
        assert message in str(caught.value)


def test_command_runs_a_folder_of_rules(tmp_path: Path) -> None:
    onnxjson.save(model_of(CASES["gelu-erf"].found, 20), tmp_path / "m.onnx")
    found = run("find", tmp_path / "m.onnx", "--rules", SHIPPED)
    assert found.exit_code == 0
    assert "info[gelu-erf]: Gelu with erf, in five operators\n/graph/node/4  Mul" in found.stdout


def test_the_rules_of_the_package_are_the_default_and_each_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnxjson.save(model_of(CASES["gelu-erf"].found, 20), path)
    for words in (["--rules"], ["--rules", "builtin"], ["--rules", SHIPPED]):
        counted = run("find", path, *words, "--count")
        assert (counted.exit_code, counted.stdout) == (0, "     1  erf-gate\n     1  gelu-erf\n")
    assert run("find", "--rules", path, "--count").stdout == counted.stdout
    objects = json.loads(run("find", path, "--rules", "--count", "--json").stdout)
    assert {each["rule"]: each["count"] for each in objects} == dict.fromkeys(RULES, 0) | {"gelu-erf": 1, "erf-gate": 1}
    assert f"{path}:     1  gelu-erf\n" in run("find", path, path, "--rules", "--count").stdout
    assert run("find", path, "--rules", "none").exit_code == 66
    said = run("find", path, "--rules", "relu").stderr
    assert said == "onnxjson: error[66]: no rule or file is called 'relu'; did you mean \"relu-clip\"?\n"


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def test_rules_find_what_is_counted_without_them(path: Path) -> None:
    found = counts(path)
    assert all(ours == all_ for ours, all_ in found.values()), found
    assert path.stem.startswith("encoder") == any(all_ for _, all_ in found.values())


def test_a_layer_norm_is_no_rms_norm() -> None:
    scaled = model_of(VARIANCE + "f = Div(d, s) y = Mul(f, v)", 20)
    assert len(find(scaled, RULES["layer-norm-plain"].pattern_text)) == 1
    assert find(scaled, RULES["rms-norm"].pattern_text) == []


def test_replacement_where_possible_leaves_what_the_operator_set_lacks(tmp_path: Path) -> None:
    old, rule = model_of(CASES["gelu-erf"].found, 17), RULES["gelu-erf"]
    onnxjson.save(old, tmp_path / "old.onnx")
    words = (rule.pattern_text, rule.replacement_text or "", "--where-possible", "-o", tmp_path / "same.onnx")
    done = run("rewrite", "replace-pattern", tmp_path / "old.onnx", *words)
    assert "1 place not replaced" in done.stderr
    assert onnxjson.load(tmp_path / "same.onnx") == old


def test_passes_explain_shows_what_nearly_was_fused(tmp_path: Path) -> None:
    onnxjson.save(model_of(CASES["gelu-erf"].near, 20), tmp_path / "m.onnx")
    shown = run("passes", "explain", "onnxruntime", tmp_path / "m.onnx", "--fusion", "Gelu")
    assert shown.exit_code == 1
    assert 'input 1 of Div "d" is 1.25; the pattern needs 1.41421' in shown.stdout
    assert run("passes", "explain", "onnxruntime", tmp_path / "m.onnx", "--fusion", "unknown").exit_code == 2
    shown = run("passes", "explain", "float16", tmp_path / "m.onnx", "--fusion", "gelu")
    assert shown.exit_code == 2
    assert "the pass float16 fuses no nodes" in shown.stderr


def test_two_rules_with_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(msgspec.json.encode(Rule(id="twice", message="", pattern="Relu($x)")))
    with pytest.raises(DecodeError, match="2 rules have the id 'twice'; rename them"):
        read_rules(tmp_path)


SHARED = """
<ir_version: 9, opset_import: ["" : 20]>
g (float[2,3,4,8] x, float[2,3,4,8] z) => (float[2,3,4,8] y)
<float[8,8] wa = {WEIGHT}, float[8,8] wb = {WEIGHT}, float half = {0.5}>
{ a = MatMul(x, wa) b = MatMul(x, wb) t = Tanh(a) u = Mul(b, z) y = Add(t, u) }
""".replace("WEIGHT", ", ".join([str(n / 50) for n in range(64)]))

BLOCKS = """{"id": "joined", "message": "Two products of one value",
"pattern": [{"op_type": "MatMul", "input": ["$x", "?v"], "output": ["$a"]},
            {"op_type": "MatMul", "input": ["$x", "?w"], "output": ["$b"]}],
"where": "rank($v) = 2 and rank($w) = 2",
"replacement": [{"op_type": "Concat", "input": ["$v", "$w"], "output": ["$both"], "attribute": {"axis": 1}},
                {"op_type": "MatMul", "input": ["$x", "$both"], "output": ["$product"]},
                {"op_type": "Split", "input": ["$product"], "output": ["$a", "$b"],
                 "attribute": {"axis": -1, "num_outputs": 2}}]}"""


def test_rule_with_blocks_replaces_several_outputs(tmp_path: Path) -> None:
    (tmp_path / "joined.json").write_text(BLOCKS)
    rule = read_rules(tmp_path)[0]
    assert rule.pattern_text == ("MatMul($x, ?v) as $a; MatMul($x, ?w) as $b where rank($v) = 2 and rank($w) = 2")
    before = onnxjson.from_proto(parser.parse_model(SHARED))
    assert [[ref.position for ref in match.nodes] for match in find(before, rule.pattern_text)] == [[0, 1]]
    assert len(find(before, rule.pattern_text, overlapping=True)) == 1
    onnxjson.save(before, tmp_path / "m.onnx")
    shown = run("find", tmp_path / "m.onnx", "--rules", tmp_path / "joined.json", "--json")
    assert '"bindings"' in shown.stdout
    after = before.rewrite(edits.ReplacePattern(pattern=rule.pattern_text, replacement=rule.replacement_text or ""))
    assert after.graph is not None
    assert [each.op_type for each in after.graph.node] == ["Concat", "MatMul", "Split", "Tanh", "Mul", "Add"]
    assert after.graph.node[2].output == ("a", "b")
    assert not [each for each in onnxjson.check(after) if each.severity == "error"]
    for one, other in zip(outputs(before), outputs(after), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def test_value_computed_too_late_for_a_replacement_is_refused() -> None:
    late = SHARED.replace("t = Tanh(a) u = Mul(b, z)", "t = Tanh(a) u = Mul(b, t)")
    model = onnxjson.from_proto(parser.parse_model(late))
    edit = edits.ReplacePattern(
        pattern="MatMul($x, ?v) as $a; Mul(MatMul($x, ?w), $z) as $b", replacement="Add($x, $z) as $a; Neg($z) as $b"
    )
    with pytest.raises(onnxjson.EditError, match=r"/graph/node/2 uses the replaced value before \$z is computed"):
        model.rewrite(edit)


def test_replacement_follows_the_last_of_its_inputs() -> None:
    text = SHARED.replace("b = MatMul(x, wb) t = Tanh(a) u = Mul(b, z)", "n = Neg(z) b = MatMul(n, wb) u = Mul(b, z)")
    before = onnxjson.from_proto(parser.parse_model(text.replace("Add(t, u)", "Add(a, u)")))
    pattern, made = "MatMul($x, ?v) as $a; MatMul($z, ?w) as $b", "Neg(Neg(MatMul($x, $v))) as $a; MatMul($z, $w) as $b"
    after = before.rewrite(edits.ReplacePattern(pattern=pattern, replacement=made))
    assert after.graph is not None
    assert [each.op_type for each in after.graph.node] == ["Neg", "MatMul", "Neg", "Neg", "MatMul", "Mul", "Add"]
    for one, other in zip(outputs(before), outputs(after), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def test_two_outputs_of_a_call_are_outputs_of_one_node() -> None:
    text = """<ir_version: 9, opset_import: ["" : 20]> g (float[4,8] x) => (float[2,8] y, float[2,8] z) {
    a, b = Split <num_outputs = 2> (x) c, d = Split <num_outputs = 2> (x) y = Mul(a, b) z = Mul(a, d) }"""
    model = onnxjson.from_proto(parser.parse_model(text))
    (match,) = find(model, "Mul(Split($x) as $a, Split($x).1) where users($a) = 2")
    assert match.root.address == "/graph/node/2"
    blocks = '{"op_type": "Split", "input": ["$x"], "output": ["$a", "$b"]}'
    made = pattern_text(msgspec.json.decode(f"[{blocks}]", type=list[Block]))
    assert made == "Split($x) as $a; Split($x).1 as $b"
    assert len(find(model, made)) == 2


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ('[{"op_type": "Relu", "input": ["$x"], "output": ["y"]}]', "has no $"),
        ('[{"op_type": "Relu", "input": ["x"], "output": ["$y"]}]', "none of"),
        ('[{"op_type": "Relu", "input": ["$y"], "output": ["$y"]}]', "another block"),
        ('[{"op_type": "Relu", "output": ["$y"]}, {"op_type": "Tanh", "output": ["$y"]}]', "twice"),
        ('[{"op_type": "Add", "input": ["$z"], "output": ["$y"]}, {"op_type": "Sub", "input": ["$y"], "output": ["$z", "$u"]}]', "from itself"),
    ],
)  # fmt: skip
def test_blocks_that_are_no_pattern_are_refused(tmp_path: Path, blocks: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(f'{{"id": "a", "message": "b", "pattern": {blocks}}}')
    with pytest.raises(DecodeError, match=r"r\.json") as caught:
        read_rules(path)
    assert message in str(caught.value)


def test_texts_of_a_rule_are_made_visible(tmp_path: Path) -> None:
    onnxjson.save(model_of("y = Neg(x)", 20), tmp_path / "m.onnx")
    rule = {"id": "a\x1b[31m", "message": "b\n\x1b]0;c\x07", "pattern": "Neg"}
    (tmp_path / "r.json").write_bytes(msgspec.json.encode(rule))
    found = run("find", tmp_path / "m.onnx", "--rules", tmp_path / "r.json")
    assert found.stdout.startswith("info[a\\u{1b}[31m]: b\\u{a}\\u{1b}]0;c\\u{7}\n/graph/node/0")


ONE_OUTPUT = """{"id": "a", "message": "b",
 "pattern": [{"op_type": "Sigmoid", "input": ["$x"], "output": ["$s"]},
             {"op_type": "Mul", "input": ["$x", "$s"], "output": ["$y"]}],
 "replacement": [{"op_type": "Neg", "input": ["$x"], "output": ["$n"]},
                 {"op_type": "Exp", "input": ["$n"], "output": ["$e"]},
                 {"op_type": "Add", "input": ["$e", 1], "output": ["$a"]},
                 {"op_type": "Div", "input": ["$x", "$a"], "output": ["$y"]}]}"""


def test_rule_with_blocks_replaces_one_output(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(ONE_OUTPUT)
    onnxjson.save(model_of("s = Sigmoid(x) y = Mul(x, s)", 20), tmp_path / "m.onnx")
    found = run("find", tmp_path / "m.onnx", "--rules", tmp_path / "r.json", "--json")
    assert '"y": "y"' in found.stdout
    rule = read_rules(tmp_path)[0]
    made = edits.ReplacePattern(pattern=rule.pattern_text, replacement=rule.replacement_text or "")
    graph = onnxjson.load(tmp_path / "m.onnx").rewrite(made).graph
    assert graph is not None
    assert [node.op_type for node in graph.node] == ["Neg", "Exp", "Constant", "Add", "Div"]


def test_fused_operators_that_onnx_does_not_know_keep_the_types_after_them(tmp_path: Path) -> None:
    """Six layers, since each round of the inference would settle one operator only."""
    layers = "".join(
        f"d{n} = Div(x{n}, root) e{n} = Erf(d{n}) a{n} = Add(e{n}, one) m{n} = Mul(x{n}, a{n}) h{n} = Mul(m{n}, half) "
        f"x{n + 1} = MatMul(h{n}, w) "
        for n in range(6)
    )
    text = f"""<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[2,8] x0) => (float[2,8] y)
    <float root = {{1.4142135}}, float one = {{1.0}}, float half = {{0.5}}, float[8,8] w = {{{",".join(["1"] * 64)}}}>
    {{ {layers} y = Relu(x6) }}"""
    before = onnxjson.from_proto(parser.parse_model(text))
    typed = before.rewrite(edits.InferShapes())
    for model, infos in ((before, 6), (typed, 12)):
        gelu = edits.ReplacePattern(
            pattern="Mul(Mul($x, Add(Erf(Div($x, 1.41421)), 1)), 0.5)", replacement="com.microsoft::Gelu($x)"
        )
        after = model.rewrite(gelu)
        assert after.graph is not None
        assert model.graph is not None
        assert after.graph.output == model.graph.output
        assert len(after.graph.value_info) == infos
        onnxjson.save(after, tmp_path / "m.onnx")
        assert run("check", tmp_path / "m.onnx", "--deep").exit_code == 0
