"""Why places nearly match: what is there instead, said first, once for all places that differ alike."""

from pathlib import Path

import pytest
from onnx import parser

import onnxjson
from onnxjson.model.document import Model
from onnxjson.patterns.misses import Miss, nearest_misses
from tests.cli.running import run

ATTENTION = "MatMul(Softmax(Add(Div(MatMul($q, $k), ?s), $m)), $v)"
ROPE = "Add(Mul($x, $c), Mul(Concat(Neg(Slice($x, ...)), Slice($x, ...)), $s))"


def model_of(body: str, opset: int = 20) -> Model:
    text = (
        f'<ir_version: 9, opset_import: ["" : {opset}]> g (float[2,8] x, float[2,8] z, bool[2,8] b) => (float[] y) '
        "<float[8,8] w = {WEIGHT}, float two = {2.0}, float[2,8] c = {SCALE}, float[2,8] s = {SCALE}, "
        "int64[1] zero = {0}, int64[1] four = {4}, int64[1] end = {8}, int64[1] one = {1}> { BODY }"
    )
    numbers = {"WEIGHT": ", ".join(["1"] * 64), "SCALE": ", ".join(["1"] * 16), "BODY": body}
    for word, number in numbers.items():
        text = text.replace(word, number)
    return onnxjson.from_proto(parser.parse_model(text))


def layer(number: int, inside: str) -> str:
    """An attention with something instead of its mask and scale; its input and output have the numbers."""
    body = f"q = MatMul(i, w) t = Transpose(q) [scores] p = MatMul(q, t) {inside} [product] o = MatMul(f, q)"
    names = ("q", "t", "p", "d", "m", "e", "f", "scores", "product", "extra")
    words = body.replace("i,", f"o{number - 1}," if number else "x,").split(" ")
    made = []
    for word in words:
        for name in names:
            word = word.replace(f"({name},", f"({name}{number},").replace(f"[{name}]", f"[{name}{number}]")
            word = word.replace(f"({name})", f"({name}{number})")
            word = f"{name}{number}" if word == name else word
            word = f"{name}{number})" if word == f"{name})" else word
            word = f"{name}{number}," if word == f"{name}," else word
        made.append(f"o{number}" if word == "o" else word)
    return " ".join(made)


GOOD = "d = Div(p, two) m = Add(d, two) f = Softmax(m)"


def misses(body: str, pattern: str) -> list[Miss]:
    return nearest_misses(model_of(body), pattern)


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("d = Div(p, two) m = Sub(d, two) f = Softmax(m)", '"m0" comes from Sub "m0"; the pattern needs Add'),
        ("d = Div(p, two) m = Add(d, two) [extra] e = Relu(m) f = Softmax(e)",
         'Relu "extra0" is between Add "m0" and Softmax "f0"; the pattern has no node there'),
        ("m = Add(p, two) f = Softmax(m)", 'nothing is between MatMul "scores0" and Add "m0"; the pattern needs Div'),
        ("d = Div(p, two) m = Add(d, two) [extra] e = Neg(m) f = Softmax(e)", '"extra0"'),
        ("d = Div(p, z) m = Add(d, two) f = Softmax(m)", '"z" is not a constant; the pattern needs one (?s)'),
    ],
)  # fmt: skip
def test_the_first_reason_is_what_is_there_instead(inside: str, reason: str) -> None:
    first, *_ = misses(f"{layer(0, inside)} y = Relu(o0)", ATTENTION)
    assert reason in first.reasons[0]
    assert len(first.reasons) == 1
    assert first.root.node.name == "product0"


def test_places_that_differ_alike_are_one_and_matches_are_none() -> None:
    removed = "m = Add(p, two) f = Softmax(m)"
    body = " ".join([layer(0, GOOD), layer(1, removed), layer(2, removed), layer(3, removed), "y = Relu(o3)"])
    model = model_of(body)
    assert [match.root.node.name for match in onnxjson.find(model, ATTENTION)] == ["product0"]
    first, *others = nearest_misses(model, ATTENTION)
    assert (first.root.node.name, [ref.node.name for ref in first.alike]) == ("product1", ["product2", "product3"])
    matched = {ref.position for ref in onnxjson.find(model, ATTENTION)[0].nodes}
    assert not matched & {ref.position for each in (first, *others) for ref in (each.root, *each.alike)}


def test_the_command_says_it_once_with_the_number(tmp_path: Path) -> None:
    removed = "m = Add(p, two) f = Softmax(m)"
    onnxjson.save(
        model_of(" ".join([layer(0, removed), layer(1, removed), "g = Div(o1, two) y = Relu(g)"])), tmp_path / "m.onnx"
    )
    lines = run("find", tmp_path / "m.onnx", ATTENTION, "--why").stdout.splitlines()
    assert lines[:3] == [
        "nearest misses",
        'nothing is between MatMul "scores0" and Add "m0"; the pattern needs Div',
        "    /graph/node/5  MatMul product0  4 of 5 operators found, and 1 place like it",
    ]


def test_commutative_inputs_are_paired_so_that_most_fits() -> None:
    body = "a = Slice(x, four, end, one) n = Neg(a) h = Slice(x, zero, four, one) r = Concat <axis = 1> (h, n) "
    first, *_ = misses(body + "u = Mul(r, s) v = Mul(x, c) y = Add(u, v)", ROPE)
    assert first.matched >= 5
    assert "Concat" not in first.reasons[0] or "the pattern needs Concat" not in first.reasons[0]
    assert all("Mul" not in reason for reason in first.reasons)


def test_a_path_names_the_first_node_that_does_not_fit() -> None:
    body = "p = MatMul(x, w) d = Div(p, two) [extra] e = Where(b, d, two) y = Softmax(e)"
    first, *_ = misses(body, "MatMul -> Div -> Softmax")
    assert first.reasons == ('Where "extra" is between Div "d" and Softmax "y"; the pattern has no node there',)
    first, *_ = misses("p = MatMul(x, w) d = Mul(p, two) y = Softmax(d)", "MatMul -> Div -> Softmax")
    assert first.reasons == ('"d" comes from Mul "d"; the pattern needs Div',)


def test_a_missing_last_operator_is_named_at_its_place() -> None:
    first, *_ = misses("p = MatMul(x, w) d = Div(p, two) y = Tanh(d)", "Softmax(Div(MatMul($x, ?w), ?s))")
    assert first.reasons == ('Tanh "y": the pattern needs Softmax here',)
    first, *_ = misses("p = MatMul(x, w) y = Div(p, two)", "Softmax(Div(MatMul($x, ?w), ?s))")
    assert first.reasons == ('nothing is after Div "y"; the pattern needs Softmax',)


def test_nothing_is_near_when_only_one_of_many_operators_is_there() -> None:
    body = f"{layer(0, GOOD)} r = Mul(o0, two) y = Add(r, two)"
    assert nearest_misses(model_of(body), ATTENTION) == []
