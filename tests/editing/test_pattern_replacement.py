"""The edit replace-pattern."""

from typing import Any

import numpy
import onnxruntime
import pytest
from onnx import parser

import onnxjson
from onnxjson import edits
from onnxjson.editing.applying import run
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError, NoMatchError, OnnxJsonError, ParameterError

GELU = "Mul(Mul($x, Add(Erf(Div($x, 1.41421)), 1)), 0.5)"

TWO = """
<ir_version: 9, opset_import: ["" : 20]>
agraph (float[2,8] x) => (float[2,8] y)
<float root = {1.4142135}, float one = {1.0}, float half = {0.5}>
{
    d = Div(x, root)
    e = Erf(d)
    a = Add(one, e)
    m = Mul(a, x)
    [first] g = Mul(m, half)
    t = Transpose <perm = [1, 0]> (g)
    u = Transpose <perm = [1, 0]> (t)
    c = Constant <value = float {0.5}> ()
    d2 = Div(u, root)
    e2 = Erf(d2)
    a2 = Add(e2, one)
    m2 = Mul(u, a2)
    [second] y = Mul(c, m2)
}
"""


def model_of(text: str) -> Model:
    return onnxjson.from_proto(parser.parse_model(text))


def outputs(model: Model) -> list[numpy.ndarray]:
    session = onnxruntime.InferenceSession(onnxjson.to_proto(model).SerializeToString())
    values = numpy.linspace(-3, 3, 16, dtype=numpy.float32).reshape(2, 8)
    return list(session.run(None, {"x": values}))


def operators(model: Model) -> list[str]:
    return [node.op_type or "" for node in model.graph.node]  # type: ignore[union-attr]


def replaced(model: Model, pattern: str, replacement: str, **more: Any) -> Model:
    return model.rewrite(edits.ReplacePattern(pattern=pattern, replacement=replacement, **more))


def test_every_match_is_replaced_and_the_outputs_stay() -> None:
    before = model_of(TWO)
    after = replaced(before, GELU, "Gelu($x)")
    assert operators(after) == ["Gelu", "Transpose", "Transpose", "Gelu"]  # nothing uses the Constant any more
    assert [node.name for node in after.graph.node if node.op_type == "Gelu"] == ["first", "second"]  # type: ignore[union-attr]
    numpy.testing.assert_allclose(outputs(before), outputs(after), rtol=1e-5, atol=1e-6)


def test_what_was_unused_before_stays_unused() -> None:
    text = '<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,8] y) '
    unused = text + "{ half = Constant<value = float {0.5}>() dead = Abs(x) a = Mul(x, half) y = Neg(a) }"
    assert operators(replaced(model_of(unused), "Neg(Mul($x, 0.5))", "Tanh($x)")) == ["Abs", "Tanh"]


def test_a_value_can_take_the_place_of_a_match() -> None:
    before = model_of(TWO)
    after = replaced(before, "Transpose(Transpose($x))", "$x")
    assert "Transpose" not in operators(after)
    numpy.testing.assert_array_equal(outputs(before), outputs(after))


def test_chain_of_matches_and_an_output_of_the_graph() -> None:
    before = model_of(
        '<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,8] y) '
        "{ a = Neg(x) b = Neg(a) c = Neg(b) y = Neg(c) }"
    )
    after = replaced(before, "Neg(Neg($x))", "$x")
    assert operators(after) == ["Identity"]
    numpy.testing.assert_array_equal(outputs(before), outputs(after))


def test_numbers_lists_and_attributes_are_carried_over() -> None:
    before = model_of(
        '<ir_version: 9, opset_import: ["" : 20]> g (float16[2,8] x) => (float16[4,4] y) '
        "<int64[2] s = {4, 4}> { a = Softmax <axis = 0> (x) y = Reshape(a, s) }"
    )
    pattern = "Reshape(Softmax<axis=$n>($x), $s)"
    after = replaced(before, pattern, "Reshape(Mul(Softmax<axis=$n>($x), 0.5), [2, -1, 4])")
    made = {node.op_type: node for node in after.graph.node if node.op_type != "Constant"}  # type: ignore[union-attr]
    constants = [node.attributes["value"] for node in after.graph.node if node.op_type == "Constant"]  # type: ignore[union-attr]
    assert [(each.dtype, each.numpy().tolist()) for each in constants] == [("float16", 0.5), ("int64", [2, -1, 4])]
    assert made["Softmax"].attributes == {"axis": 0}
    assert [str(each) for each in (after.graph.output[0].shape or ())] == ["2", "2", "4"]  # type: ignore[union-attr]


SHARED = """
<ir_version: 9, opset_import: ["" : 20]>
agraph (float[2,8] x) => (float[2,8] y, float[2,8] z) { [s] s = Sigmoid(x) y = Mul(x, s) z = Neg(s) }
"""


def test_value_used_elsewhere_is_refused_or_kept() -> None:
    before = model_of(SHARED)
    with pytest.raises(EditError, match=r'"s" inside a match is used by Neg "z"; with keep, its producer stays'):
        replaced(before, "Mul($x, Sigmoid($x))", "Tanh($x)")
    after = replaced(before, "Mul($x, Sigmoid($x))", "HardSwish($x)", keep=True)
    assert operators(after) == ["Sigmoid", "HardSwish", "Neg"]


@pytest.mark.parametrize(
    ("pattern", "replacement", "error", "text"),
    [
        ("Tanh($q)", "$q", NoMatchError, "`onnxjson find MODEL 'Tanh($q)' --why`"),
        ("Mul($x, $y)", "Gelu($q)", ParameterError, "$q of the replacement is not in the pattern"),
        ("Mul($x, $y)", "Gelu", ParameterError, "names all inputs"),
        ("Mul($x, $y)", "(Add|Sub)($x, $y)", ParameterError, "one operator"),
        ("Mul($x, $y)", "Softmax<axis=$x>($y)", ParameterError, "not an attribute"),
        ("Mul($x, $y)", "Gelu($x", ParameterError, "replacement:1:8"),
        ("Mul($x, $y)", "$x.1", ParameterError, "replacement:1:3: expected the end after $x"),
        ("Mul($x, $y)", "Gelo($x)", EditError, "Gelu"),
        ("Mul($x, $y)", "Gelu($x, $y)", EditError, "input"),
        ("Mul -> Transpose", "Gelu(Gelu)", ParameterError, "names all inputs"),
        ("Neg(Sigmoid)", "Gelu(1)", EditError, "does not mention"),
    ],
)
def test_what_cannot_be_done_is_refused(pattern: str, replacement: str, error: type[OnnxJsonError], text: str) -> None:
    before = model_of(SHARED)
    with pytest.raises(error) as caught:
        replaced(before, pattern, replacement, keep=True)
    assert text in str(caught.value)


def notes_of(model: Model, **fields: object) -> tuple[str, ...]:
    (outcome,) = run(model, [edits.ReplacePattern(prove=True, **fields)]).outcomes  # type: ignore[arg-type]
    return outcome.notes


def test_proof_runs_both_sides_of_each_replacement() -> None:
    note, removed = notes_of(model_of(TWO), pattern=GELU, replacement="Gelu($x)")
    assert removed == "4 values removed that nothing used afterwards"
    assert note.startswith("2 replacements proved: ")
    assert "random inputs" in note
    (note,) = notes_of(model_of(TWO), pattern="Transpose(Transpose($x))", replacement="$x")
    assert note.startswith("1 replacement proved: same results")
    with pytest.raises(EditError, match=r"/graph/node/4: .* elements of \"g\" differ"):
        notes_of(model_of(TWO), pattern=GELU, replacement='Gelu<approximate="tanh">(Mul($x, 1.01))')


def test_proof_that_cannot_run_is_a_note() -> None:
    text = '<ir_version: 9, opset_import: ["" : 20, "my.own" : 1]> g (float[2,8] x) => (float[2,8] y) '
    model = model_of(text + "{ a = my.own.Odd(x) y = Neg(a) }")
    (note,) = notes_of(model, pattern="Neg(my.own::Odd($x))", replacement="Abs($x)")
    assert note.startswith("1 replacement not run: ")


def test_only_matches_of_chosen_nodes_are_replaced() -> None:
    after = replaced(model_of(TWO), GELU, "Gelu($x)", node="second")
    assert operators(after) == ["Div", "Erf", "Add", "Mul", "Mul", "Transpose", "Transpose", "Gelu"]
    with pytest.raises(NoMatchError):
        replaced(model_of(TWO), GELU, "Gelu($x)", node="op:Transpose")


def test_values_inside_a_match_that_the_replacement_uses_stay() -> None:
    before = model_of(
        '<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,8] y) '
        "{ a = Neg(x) b = Abs(a) y = Exp(b) }"
    )
    pattern = "Exp(Abs(Neg($x) as $n) as $h)"
    assert operators(replaced(before, pattern, "Tanh($h)")) == ["Neg", "Abs", "Tanh"]
    assert operators(replaced(before, pattern, "Tanh($n)")) == ["Neg", "Tanh"]
    assert operators(replaced(before, pattern, "$h")) == ["Neg", "Abs", "Identity"]


HEAD = '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]> g '


def one_node(dtype: str) -> Model:
    return model_of(f"{HEAD}({dtype}[2,3] x) => ({dtype}[2,3] y) {{ y = Neg(x) }}")


def test_default_of_an_input_is_no_constant() -> None:
    text = HEAD + "(float[2,3] x, float c) => (float[2,3] y) <float c = {2.0}> { y = Pow(x, c) }"
    with pytest.raises(NoMatchError):
        replaced(model_of(text), "Pow($x, 2)", "Mul($x, $x)")
    with pytest.raises(NoMatchError):
        replaced(model_of(text), "Pow($x, ?w)", "Mul($x, $x)")
    with pytest.raises(EditError, match="elements"):
        replaced(model_of(text), "Pow($x, $w)", "Mul($x, $x)", prove=True)
    old = model_of(text.replace("ir_version: 9", "ir_version: 3"))
    assert operators(replaced(old, "Pow($x, 2)", "Mul($x, $x)", prove=True)) == ["Mul"]


@pytest.mark.parametrize(
    ("dtype", "replacement", "text"),
    [
        ("int64", "Mul($x, 0.5)", "0.5 cannot be int64: an element is an integer"),
        ("int64", "Mul($x, 9223372036854775808)", "cannot be int64"),
        ("float16", "Mul($x, 1e9)", "cannot be float16"),
        ("float", "Unsqueeze($x, 0)", r"input 1 of Unsqueeze is a list of integers: write \[0\]"),
        ("float", "Reshape($x, 6)", r"write \[6\]"),
    ],
)
def test_number_that_does_not_fit_is_refused(dtype: str, replacement: str, text: str) -> None:
    with pytest.raises(EditError, match=text):
        replaced(one_node(dtype), "Neg($x)", replacement)


@pytest.mark.parametrize(
    ("dtype", "replacement", "kind", "number"),
    [
        ("float16", "Mul($x, 1e999)", "float16", numpy.inf),
        ("int64", "Mul($x, 2.0)", "int64", 2),
        ("float", "Gather($x, 0)", "int64", 0),
        ("int64", "Where(Equal($x, $x), 3, $x)", "int64", 3),
    ],
)
def test_constant_has_the_type_that_its_operator_needs(dtype: str, replacement: str, kind: str, number: float) -> None:
    after = replaced(one_node(dtype), "Neg($x)", replacement)
    (made,) = [node.attributes["value"] for node in after.graph.node if node.op_type == "Constant"]  # type: ignore[union-attr]
    assert (made.dtype, made.numpy().item()) == (kind, number)


def test_attributes_of_custom_operators_are_written() -> None:
    replacement = 'com.microsoft::Q<a=1.0, b=1, c=tt, d=[1.5, 2], e=[1, 2], f=["a"], g=inf>($x)'
    after = replaced(one_node("float"), "Neg($x)", replacement)
    found = {each.name: each.type for each in after.graph.node[0].attribute}  # type: ignore[union-attr]
    assert found == {"a": 1, "b": 2, "c": 3, "d": 6, "e": 7, "f": 8, "g": 1}
    assert after.graph.node[0].attributes["g"] == numpy.inf  # type: ignore[union-attr]


def test_output_of_the_graph_that_would_be_lost_is_named() -> None:
    before = model_of(HEAD + "(float[2] x) => (float[2] y, bool[2] mask) { y, mask = Dropout(x) }")
    with pytest.raises(EditError, match=r'"mask" inside a match is used by an output of the graph$'):
        replaced(before, "Dropout($x)", "$x")


def test_the_domain_of_a_replacement_is_imported_when_told() -> None:
    model = onnxjson.from_proto(
        parser.parse_model(HEAD.replace(', "com.microsoft" : 1', "") + "(float[2] x) => (float[2] y) { y = Relu(x) }")
    )
    with pytest.raises(EditError, match="no opset_import"):
        model.rewrite(edits.ReplacePattern(pattern="Relu($x)", replacement="com.microsoft::Gelu($x)"))
    edit = edits.ReplacePattern(pattern="Relu($x)", replacement="com.microsoft::Gelu($x)", import_domain=True)
    after = model.rewrite(edit)
    assert [(each.domain, each.version) for each in after.opset_import] == [("", 20), ("com.microsoft", 1)]
    assert (
        after.rewrite(
            edits.ReplacePattern(pattern="com.microsoft::Gelu($x)", replacement="Relu($x)", import_domain=True)
        ).opset_import
        == after.opset_import
    )
