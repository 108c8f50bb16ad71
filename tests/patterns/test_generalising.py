"""The edit of one match, as a replacement for all matches."""

import pytest
from onnx import parser

import onnxjson
from onnxjson import edits
from onnxjson.editing.declaration import Edit
from onnxjson.model.document import Model
from onnxjson.model.errors import SelectorError
from onnxjson.patterns.generalising import Generalised, generalise

GELU = "Mul(Mul($x, Add(Erf(Div($x, 1.41421)), 1)), 0.5)"

TEXT = """<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,8] y)
<float root = {1.4142135}, float one = {1.0}, float half = {0.5}, float[8,8] w = {WEIGHT}>
{ d = Div(x, root) e = Erf(d) a = Add(one, e) m = Mul(a, x) [first] g = Mul(m, half)
  s = Softmax<axis=1>(g)
  d2 = Div(s, root) e2 = Erf(d2) a2 = Add(e2, one) m2 = Mul(s, a2) [second] g2 = Mul(half, m2)
  t = Softmax<axis=0>(g2) y = MatMul(t, w) }""".replace("WEIGHT", ", ".join(["0.1"] * 64))


def generalised(pattern: str, *steps: Edit) -> tuple[Generalised, Model]:
    before = onnxjson.from_proto(parser.parse_model(TEXT))
    after = before
    for each in steps:
        after = after.rewrite(each)
    found = generalise(before, after, pattern)
    edit = edits.ReplacePattern(
        pattern=found.pattern, replacement=found.replacement, node=found.others or None, keep=True
    )
    return found, after.rewrite(edit)


def operators(model: Model) -> str:
    return " ".join([node.op_type or "" for node in model.graph.node])  # type: ignore[union-attr]


def test_another_operator_inside_a_match_uses_the_constants_that_are_there() -> None:
    found, after = generalised(GELU, edits.ReplaceNode(node="e", op_type="Tanh"))
    assert found.pattern == "Mul(Mul($x, Add(Erf(Div($x, 1.41421) as $v), 1)), 0.5)"
    assert found.replacement == "Mul(Mul(Add(1, Tanh($v)), $x), 0.5)"
    assert "d2" in [name for node in after.graph.node for name in node.output]  # type: ignore[union-attr]
    assert operators(after) == "Div Tanh Add Mul Mul Softmax Div Tanh Add Mul Mul Softmax MatMul"
    assert [name for node in after.graph.node for name in node.input].count("root") == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pattern", "edit", "named", "replacement"),
    [
        ("Softmax<axis=$a>($x)", edits.SetAttribute(node="s", attribute="axis", value=-1), None,
         "Softmax<axis=-1>($x)"),
        ("Softmax($x)", edits.ReplaceNode(node="s", op_type="LogSoftmax"), "Softmax<axis=$axis>($x)",
         "LogSoftmax<axis=$axis>($x)"),
        ("Softmax", edits.AddNode(op_type="Relu", input=("s",), output=("r",), insert=True), "Softmax<axis=$axis>($v)",
         "Relu(Softmax<axis=$axis>($v))"),
        (GELU, edits.ReplacePattern(pattern=GELU, replacement="Gelu($x)", node="first"), None, "Gelu($x)"),
        ("Softmax(_)", edits.DeleteNode(node="s"), "Softmax<axis=$axis>($v)", "$v"),
        ("Erf(Div)", edits.Rewire(node="e", input=0, tensor="x"), "Erf(Div($v, ?v2))", "Erf($v)"),
        ("(Softmax|Erf)($x)", edits.ReplaceNode(node="s", op_type="LogSoftmax"), "Softmax<axis=$axis>($x)",
         "LogSoftmax<axis=$axis>($x)"),
        ("Mul(Mul($x, Add), 0.5)", edits.ReplaceNode(node="a", op_type="Sub"), "Mul(Mul($x, Add(?v, $v2)), 0.5)",
         "Mul(Mul(Sub(?v, $v2), $x), 0.5)"),
    ],
)  # fmt: skip
def test_edits_of_one_match(pattern: str, edit: Edit, named: str | None, replacement: str) -> None:
    found, after = generalised(pattern, edit)
    assert (found.pattern, found.replacement, found.places) == (named or pattern, replacement, 1)
    assert not [each for each in onnxjson.check(after) if each.severity == "error"]
    assert after.graph is not None
    assert after.graph.output[0].name == "y"


def test_what_is_not_edited_stays_with_its_names() -> None:
    _, after = generalised(GELU, edits.Rewire(node="first", input=1, tensor="one"))
    assert after.graph is not None
    assert [node.input for node in after.graph.node if node.name == "second"] == [("m2", "one")]
    assert {"d2", "e2", "a2", "m2"} <= {name for node in after.graph.node for name in node.output}


def test_an_edited_place_that_still_matches_is_left_as_it_is() -> None:
    found, after = generalised("Softmax", edits.AddNode(op_type="Relu", input=("s",), output=("r",), insert=True))
    assert found.others == "op:* !output:s"
    assert operators(after).count("Relu") == 2


@pytest.mark.parametrize(
    ("pattern", "steps", "text"),
    [
        ("Softmax($x)", [], "no match was edited"),
        ("Softmax($x)", [edits.ReplaceNode(node="e", op_type="Tanh")], "no match was edited"),
        ("Softmax($x)", [edits.Rewire(node="s", input=0, tensor="w")], 'uses "w", which the pattern does not name'),
        ("Div -> Erf", [edits.ReplaceNode(node="e", op_type="Tanh")], "replaced with :replace-pattern"),
    ],
)
def test_what_cannot_be_generalised_is_explained(pattern: str, steps: list[Edit], text: str) -> None:
    with pytest.raises(SelectorError, match=text):
        generalised(pattern, *steps)
