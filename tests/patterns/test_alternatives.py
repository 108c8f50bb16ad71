"""Patterns with alternatives: ``(Reciprocal($a)|Div(1, $a))``."""

import json
from pathlib import Path

import pytest
from onnx import parser

import onnxjson
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError, SelectorError
from onnxjson.patterns.expression import MOST_VARIANTS, Either
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.misses import nearest_misses
from onnxjson.patterns.searching import absent_operators, find
from onnxjson.patterns.selectors import select_nodes
from tests.cli.running import run

INVERSE = "Mul($x, (Reciprocal(Sqrt($v))|Div(1, Sqrt($v))))"


@pytest.fixture
def model() -> Model:
    text = """
    <ir_version: 9, opset_import: ["" : 19]>
    agraph (float[4] x, float[4] v) => (float[4] p, float[4] q, float[4] r)
    <float one = {1.0}, float two = {2.0}>
    {
        [s1] a = Sqrt(v)
        [d] b = Div(one, a)
        [m1] p = Mul(x, b)
        [s2] c = Sqrt(v)
        [r] d = Reciprocal(c)
        [m2] q = Mul(d, x)
        [s3] e = Sqrt(v)
        [d2] f = Div(two, e)
        [m3] r = Mul(x, f)
    }
    """
    return onnxjson.from_proto(parser.parse_model(text))


def test_each_alternative_matches_in_the_order_of_the_file(model: Model) -> None:
    matches = find(model, INVERSE)
    assert [[ref.node.name for ref in match.nodes] for match in matches] == [["m1", "d", "s1"], ["m2", "r", "s2"]]
    assert [match.names for match in matches] == [{"x": "x", "v": "v"}] * 2
    assert [str(match.pattern) for match in matches] == [
        "Mul($x, Div(1, Sqrt($v)))",
        "Mul($x, Reciprocal(Sqrt($v)))",
    ]


def test_a_name_may_be_in_one_alternative_only(model: Model) -> None:
    found = find(model, "Mul($x, (Reciprocal($v)|Div($k, $v)))")
    assert [match.names.get("k") for match in found] == ["one", None, "two"]


def test_an_alternative_at_the_root_and_an_alternative_in_another(model: Model) -> None:
    found = find(model, "(Reciprocal(($x|Sqrt($v)))|Div((1|2), Sqrt($v)))", overlapping=True)
    assert [(match.root.node.name, len(match.nodes)) for match in found] == [("d", 2), ("r", 1), ("r", 2), ("d2", 2)]


def test_a_match_has_no_nodes_of_an_earlier_one(model: Model) -> None:
    assert [match.root.node.name for match in find(model, "(Div(1, $a)|Mul($x, Div(1, $a)))")] == ["d"]


def test_operators_in_parentheses_stay_one_call() -> None:
    assert not isinstance(parse("(Relu|Tanh)($x)").root, Either)
    assert isinstance(parse("(Relu($x)|Tanh)").root, Either)
    assert str(parse("( Relu($x) | Tanh )")) == "(Relu($x)|Tanh)"
    assert str(parse("((Relu($x)))")) == "Relu($x)"


@pytest.mark.parametrize(
    ("text", "place"), [("(Relu($x)|$y)", "1:1"), ("Neg((Relu($x)|))", "1:15"), ("Neg((Relu($x)|Tanh($x))", "1:24")]
)
def test_mistakes_are_located(text: str, place: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"pattern:{place}: ")


def test_combinations_are_bounded(model: Model) -> None:
    pattern = "Concat(" + ", ".join(["(Relu($x)|Tanh($x))"] * 9) + ")"
    with pytest.raises(LimitError, match=str(MOST_VARIANTS)):
        find(model, pattern)


def test_the_nearest_alternative_is_reported_and_places_that_match_are_not(model: Model) -> None:
    misses = nearest_misses(model, INVERSE)
    assert misses[0].root.node.name == "m3"
    assert "2" in misses[0].reasons[0]
    assert {"m1", "m2"}.isdisjoint([miss.root.node.name for miss in misses])
    assert absent_operators(onnxjson.Index(model), "(Tanh($x)|Relu(Tanh($x)))") == ["Tanh"]


def test_selectors_and_replacements_take_them(model: Model, tmp_path: Path) -> None:
    assert [ref.node.name for ref in select_nodes(model, onnxjson.Index(model), f"match:'{INVERSE}'")] == ["m1", "m2"]
    onnxjson.save(model, tmp_path / "m.onnx")
    done = run(
        "rewrite", "replace-pattern", tmp_path / "m.onnx", INVERSE, "Div($x, Sqrt($v))", "-o", tmp_path / "n.onnx"
    )
    assert done.exit_code == 0, done
    operators = sorted([ref.node.op_type or "" for ref in onnxjson.load(tmp_path / "n.onnx").index.node_refs])
    assert operators == ["Div", "Div", "Div", "Mul", "Sqrt", "Sqrt", "Sqrt"]


def test_rules_take_them(model: Model, tmp_path: Path) -> None:
    onnxjson.save(model, tmp_path / "m.onnx")
    rule = {"format": "onnxjson-rule/1", "id": "inverse", "message": "two ways", "pattern": INVERSE}
    (tmp_path / "rule.json").write_text(json.dumps(rule), encoding="utf-8")
    done = run("find", tmp_path / "m.onnx", "--rules", tmp_path / "rule.json")
    assert done.stdout.count("two ways") == 1
    assert done.stdout.count("/graph/node/") == 2
