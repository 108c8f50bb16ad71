"""Patterns of structure: their text, what they match, and why something does not match."""

import json
import random
import re
from pathlib import Path

import pytest
from onnx import parser

import onnxjson
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError, SelectorError
from onnxjson.model.limits import PATTERN_DEPTH
from onnxjson.patterns import matching
from onnxjson.patterns.expression import (
    Anything,
    AttributeValue,
    Bound,
    Call,
    Condition,
    Either,
    Elements,
    Number,
    Operator,
    Pattern,
    Text,
    ValuePattern,
)
from onnxjson.patterns.expression import Path as Way
from onnxjson.patterns.generalising import pattern_of
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.misses import nearest_misses
from onnxjson.patterns.searching import find
from tests.cli.running import run

GELU = "Mul(Mul($x, Add(Erf(Div($x, 1.41421)), 1)), 0.5)"

MODEL = """
<ir_version: 9, opset_import: ["" : 19, "com.microsoft" : 1]>
agraph (float[2,8] x, float[8,8] w, bool c) => (float[2,8] y, float[2,8] z, float[2,8] p, float[2,8] q)
<float root = {1.4142135}, float one = {1.0}, float[1] half = {0.5}, int64[2] split = {4, 4}, float[8,8] k = {ZEROS}>
{
    [d] d = Div(x, root)
    [e] e = Erf(d)
    [a] a = Add(one, e)
    [m] m = Mul(a, x)
    same = Identity(half)
    [g] g = Mul(m, same)
    [mm] mm = MatMul(g, k)
    [r] r = Relu(mm)
    [s] y = Softmax <axis = -1> (r)
    [cut] left, right = Split <axis = 1> (x, split)
    [cat] z = Concat <axis = 1> (right, left)
    [mg] p = com.microsoft.Gelu(x)
    [if] q = If (c) <
        then_branch = t () => (float[2,8] t) { [inner] t = Softmax(p) },
        else_branch = f () => (float[2,8] f) { f = Add(x, x) }
    >
}
""".replace("ZEROS", ", ".join(["0"] * 64))


CYCLE = """
<ir_version: 9, opset_import: ["" : 19]> g (float[2] x) => (float[2] y) { a = Add(x, b) b = Neg(a) y = Tanh(b) }
"""


def model_of(text: str) -> Model:
    return onnxjson.from_proto(parser.parse_model(text))


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(MODEL)


def names(model: Model, pattern: str, *, overlapping: bool = False) -> list[list[str]]:
    return [[ref.node.name or "" for ref in match.nodes] for match in find(model, pattern, overlapping=overlapping)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (GELU, [["g", "m", "a", "e", "d"]]),
        ("Softmax", [["s"], ["inner"]]),
        ("Softmax<axis=-1>($x)", [["s"], ["inner"]]),
        ("Softmax<axis=1>($x)", []),
        ("Softmax<axis=*>", [["s"], ["inner"]]),
        ("MatMul($x, ?w)", [["mm"]]),
        ("MatMul(?w, $x)", []),
        ("MatMul($x) -> ...{0,1} -> Softmax", []),
        ("MatMul -> ...{0,1} -> Softmax", [["s", "mm"]]),
        ("MatMul -> Softmax", []),
        ("MatMul -> ...{2,3} -> Softmax", []),
        ("Div -> ... -> Softmax", [["s", "d"]]),
        ("(Add|Div)($a, $b)", [["d"], ["a"], [""]]),
        ("Add($a, $a)", [[""]]),
        ("com.microsoft::Gelu($x)", [["mg"]]),
        ("Gelu($x)", []),
        ("Split($x).1", [["cut"]]),
        ("Split($x).2", []),
        ("Split($x, [4, *])", [["cut"]]),
        ("Split($x, [*])", []),
        ("Concat(Split($x).1, Split($x))", [["cat", "cut"]]),
        ("Concat(Split($x), Split($x).1)", []),
        ("Concat($a)", []),
        ("Concat($a, ...)", [["cat"]]),
        ("*(Erf($x), 1)", [["a", "e"]]),
        ("Erf($x) where users($x) = 1", [["e"]]),
        ("Div($x, _) where users($x) >= 4 and dtype($x) = float32", [["d"]]),
        ("Div($x, _) where rank($x) = 2 and shape($x) = [*, 8] and size($x) < 1k", [["d"]]),
        ("Div($x, _) where rank($x) != 2", []),
        ("Relu($x) where $x = op:MatMul", [["r"]]),
        ("Relu($x) where $x != op:MatMul", []),
        ("Softmax<axis=$n>($x) where $n < 0", [["s"], ["inner"]]),
        ("Add($a, $b) where $a != $b", [["a"]]),
        ("Div($x, ?k) where $k = 1.41421", [["d"]]),
        ("Div($x, ?k) where $k != 1.41421", []),
        ("Div($x, ?k) where $k > 1.4", [["d"]]),
        ("Div($x, ?k) where $k > 100", []),
        ("Div($x, _) where $x < 100", []),
        ("Concat(?a, $b, ...) where $a > 1", []),
    ],
)  # fmt: skip
def test_pattern_finds(model: Model, pattern: str, found: list[list[str]]) -> None:
    assert names(model, pattern) == found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("MatMul($x, ?w)", [["mm"]]), ("MatMul($x, Transpose(?w))", [["mm", "t"]]), ("Add($x, ?b)", [["add"]]),
        ("Add($x, 2)", []), ("Mul($x, 3)", [["mul"]]), ("Mul(?a, ?b)", []),
    ],
)  # fmt: skip
def test_values_computed_from_constants_are_constants(pattern: str, found: list[list[str]]) -> None:
    model = model_of("""<ir_version: 9, opset_import: ["" : 19]>
        g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 2, 3, 4}, float two = {2}, float three = {3}> {
            [t] v = Transpose(w)
            [mm] m = MatMul(x, v)
            [neg] n = Neg(two)
            [add] a = Add(n, m)
            [same] s = Identity(three)
            [mul] y = Mul(a, s)
        }""")
    assert names(model, pattern) == found


def test_match_says_what_its_names_stand_for(model: Model) -> None:
    (match,) = onnxjson.find(model, "Softmax<axis=$n>(Relu(MatMul($x, ?w)))")
    assert match.names == {"n": -1, "x": "g", "w": "k"}
    assert match.root.address == "/graph/node/8"


def test_name_of_a_tensor_in_an_attribute_is_its_kind() -> None:
    text = '<ir_version: 9, opset_import: ["" : 19]> g () => (float y) { y = Constant <value = float {2.0}> () }'
    (match,) = find(model_of(text), "Constant<value=$v>")
    assert match.names == {"v": "tensor"}


def test_constants_are_the_same_in_every_form() -> None:
    forms = ["c = Constant <value_float = 2.0> ()", "c = Constant <value = float {2.0}> ()", "c = Identity(two)"]
    for form in forms:
        text = "<ir_version: 9, opset_import: ['' : 19]> g (float[2] x) => (float[2] y) <float[1] two = {2.0}>"
        assert len(find(model_of(text.replace("'", '"') + f" {{ {form} y = Mul(c, x) }}"), "Mul($x, 2)")) == 1


def test_matches_that_share_nodes_are_listed_once_or_all() -> None:
    model = model_of(
        '<ir_version: 9, opset_import: ["" : 19]> g (float[2] x) => (float[2] y) '
        "{ [a] a = Relu(x) [b] b = Relu(a) [c] y = Relu(b) }"
    )
    assert names(model, "Relu(Relu($x))") == [["b", "a"]]
    assert names(model, "Relu(Relu($x))", overlapping=True) == [["b", "a"], ["c", "b"]]


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("", "1:1", "expected an operator"),
        ("Softmax($x", "1:11", 'expected "," or ")", found the end'),
        ("$x", "1:1", "expected an operator, such as"),
        ("Add($a\n  $b)", "2:3", 'found "$"'),
        ("Relu($x) where foo($x) = 1", "1:16", "expected one of dtype"),
        ("Relu($x) where rank($y) = 1", "1:21", "a name of the pattern ($x)"),
        ("Relu($x) when", "1:10", '"where"'),
        ("A -> ...{3,1} -> B", "1:12", "at least 3"),
        ("Softmax(MatMul(, Transpose($k)))", "1:16", "in a shell, single quotes keep $names"),
        ("Concat(..., $x)", "1:11", '")" after "..."'),
        ("Relu($x) where dtype($x) < float16", "1:26", "= or !="),
        ("Relu($x) where dtype($x) = floatish", "1:28", 'did you mean "float'),
        ("Relu($x) where $x = op:Nope bad(", "1:21", "a name in quotes"),
        ("Relu($x) where $x = attr:", "1:21", "nothing follows"),
    ],
)
def test_mistake_in_a_pattern_is_located(text: str, place: str, hint: str) -> None:
    with pytest.raises(SelectorError, match="pattern") as caught:
        parse(text)
    assert str(caught.value).startswith(f"pattern:{place}: ")
    assert hint in str(caught.value)


def test_patterns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "PATTERN_STEPS", 20_000)
    with pytest.raises(LimitError, match="nested"):
        parse("Relu(" * (PATTERN_DEPTH + 1) + "$x" + ")" * (PATTERN_DEPTH + 1))
    with pytest.raises(LimitError, match="nested"):
        parse(" -> ".join(["Relu"] * 1000))
    with pytest.raises(SelectorError, match="a number of nodes"):
        parse("Relu -> ...{" + "9" * 5000 + ",} -> Relu")
    assert str(parse("Relu($x) where size($x) > 1e400M").conditions[0]).endswith("> inf")
    with pytest.raises(LimitError, match="comparisons"):
        find(model_of(CYCLE), "Neg -> ...{999999999,} -> Tanh")
    doubled = " ".join([f"v{each + 1} = Add(v{each}, v{each})" for each in range(30)])
    text = f'<ir_version: 9, opset_import: ["" : 19]> g (float a) => (float v30) {{ v0 = Relu(a) {doubled} }}'
    with pytest.raises(LimitError, match="comparisons"):  # each of 25 sums fits in both orders
        find(model_of(text), "Add(" * 25 + "Relu($x)" + ", $y)" * 25)
    with pytest.raises(LimitError, match="characters"):
        parse("Relu($x)" + " " * 30_000)


def _random_value(seed: random.Random, depth: int) -> ValuePattern:
    kind = seed.randrange(8 if depth else 4)
    if kind == 0:
        return Anything()
    if kind == 1:
        return Bound(seed.choice("abc"), seed.random() < 0.3)
    if kind == 2:
        return Number(seed.choice([0, -1, 0.5, 1e-05, 1e30, 1.41421, float("inf")]))
    if kind == 3:
        return Elements(tuple([seed.choice([None, 1, -2, 0.25, "x y"]) for _ in range(seed.randrange(4))]))
    if kind == 4:
        least = seed.randrange(3)
        most = seed.choice([None, least, least + 2])
        return Way(_random_value(seed, depth - 1), least, most, _random_call(seed, depth - 1))
    if kind == 5:
        first = _random_call(seed, depth - 1)._replace(inputs=(Bound("a"),))  # not only names of operators
        return Either((first, *[_random_value(seed, depth - 1) for _ in range(seed.randrange(1, 3))]))
    return _random_call(seed, depth - 1)


def _random_call(seed: random.Random, depth: int) -> Call:
    operators = seed.choice([
        (Operator("Add"),), (Operator("Gelu", "com.microsoft"),), (Operator("Add"), Operator("Sub")), (Operator("*"),),
        (Operator("a b"),),
    ])  # fmt: skip
    values: list[AttributeValue] = [
        Anything(), Bound("g"), Number(3), Elements((1, None)), Text("SAME_UPPER"), Text("a b"),
    ]  # fmt: skip
    attributes = tuple([(f"attr{n}", seed.choice(values)) for n in range(seed.randrange(3))])
    inputs = tuple([_random_value(seed, depth) for _ in range(seed.randrange(3))])
    is_open = seed.random() < 0.3
    return Call(operators, attributes, None if not inputs and not is_open else inputs, is_open, seed.choice([0, 0, 2]))


def test_text_of_any_pattern_parses_into_it() -> None:
    seed = random.Random(1)
    conditions = (
        Condition("rank", "a", "=", Number(2)), Condition("dtype", "a", "!=", Text("float16")),
        Condition("shape", "a", "=", Elements((1, None, "N"))), Condition("", "a", "=", Text('op:Conv name:"a and b"')),
        Condition("", "a", "!=", Bound("a")),
    )  # fmt: skip
    for _ in range(2000):
        root = _random_call(seed, 3)._replace(inputs=(Bound("a"), _random_value(seed, 3)))
        pattern = Pattern(root, tuple(seed.sample(conditions, seed.randrange(3))))
        assert parse(str(pattern)) == pattern, str(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (GELU.replace("1.41421", "1.5"), 'input 1 of Div "d" is 1.414214; the pattern needs 1.5'),
        ("Softmax<axis=1>(Relu(MatMul))", 'axis of Softmax "s" is -1; the pattern needs 1'),
        ("Softmax(Tanh(MatMul($x, ?w)))", '"r" comes from Relu "r"; the pattern needs Tanh'),
        ("LogSoftmax(Relu(MatMul($x, ?w)))", 'Softmax "s": the pattern needs LogSoftmax here'),
        ("Softmax(MatMul($x, ?w))", 'Relu "r" is between MatMul "mm" and Softmax "s"; the pattern has no node there'),
        ("Softmax(Relu(Tanh(MatMul)))", 'nothing is between MatMul "mm" and Relu "r"; the pattern needs Tanh'),
        ("MatMul -> Softmax", 'Relu "r" is between MatMul "mm" and Softmax "s"; the pattern has no node there'),
        ("Relu(MatMul(?x, ?w))", '"g" is not a constant; the pattern needs one (?x)'),
        ("Erf(Div($x, _)) where users($x) = 1", 'users of "x" is'),
        ("Concat(Split($x), Split($x).1)", 'output 1 of Split "cut" is used; the pattern needs output 0'),
        ("Concat($a)", 'Concat "cat" has 2 inputs; the pattern mentions only 1'),
        ("Erf(Div($x, ?k)) where $k < 1", '"root" is 1.414214; the pattern needs $k < 1'),
        ("Erf(Div($x, $k)) where $x > 1", '"x" is not a constant; the pattern needs $x > 1'),
        ("Relu($x) where $x = mmm", '"mm" does not fit mmm: nothing is called "mmm"; did you mean "mm"?'),
        ("MatMul -> ...{2,3} -> Softmax", '"y" is not computed from MatMul over 2 to 3 nodes'),
    ],
)
def test_nearest_miss_names_what_differs(model: Model, pattern: str, reason: str) -> None:
    miss = nearest_misses(model, pattern)[0]
    assert reason in miss.reasons[0]


def test_selector_aims_an_edit_with_a_pattern(model: Model) -> None:
    changed = model.rewrite(
        onnxjson.edits.SetAttribute(node="match:'Softmax(Relu(MatMul($x, ?w)))'", attribute="axis", value=0)
    )
    assert [ref.node.attributes.get("axis") for ref in changed.select("op:Softmax")] == [0, None]
    with pytest.raises(SelectorError, match="find --why"):
        model.select("match:'Tanh($x)'")


def test_command(tmp_path: Path, model: Model) -> None:
    path = tmp_path / "m.onnx"
    onnxjson.save(model, path)
    found = run("find", path, "Softmax($x)", "--json")
    assert json.loads(found.stdout) == [
        {"model": str(path), "nodes": ["/graph/node/8"], "bindings": {"x": "r"}},
        {"model": str(path), "nodes": ["/graph/node/12/attribute/then_branch/g/node/0"], "bindings": {"x": "p"}},
    ]
    assert run("find", path, "Softmax($x)", "--count").stdout == "2\n"
    assert run("find", path, path, "Tanh", "--count").stdout == f"{path}:0\n{path}:0\n"
    assert run("find", path, "Tanh").exit_code == 1
    missing = run("find", path, "missing.onnx", "Tanh")
    assert (missing.exit_code, "1 model: 0 matches" in missing.stderr) == (66, True)
    assert "match" not in run("find", "missing.onnx", "Tanh").stderr
    why = run("find", path, "--why", "Softmax(Tanh($x))")
    assert why.exit_code == 1
    assert "the pattern needs Tanh" in why.stdout
    assert run("find", path, "Softmax(").exit_code == 2
    assert "then the pattern" in run("find", path, path).stderr
    near = json.loads(run("find", path, "Softmax(Cos(Relu($x)))", "--why", "--json").stdout)
    assert near[0] == {"model": str(path), "absent": ["Cos"]}
    assert near[1]["reasons"]
    assert run("find", path, "--why", "Relu(" * 50 + "$x" + ")" * 50).exit_code == 1


@pytest.mark.parametrize(
    ("pattern", "warning"),
    [
        ("Sofmax($x)", 'no operator is called "Sofmax"; did you mean "Softmax"'),
        ("(Softmax|Foo)($x)", 'no operator is called "Foo"'),
        ("Softmax($x) where $x = op:Rellu", 'no operator is called "Rellu"; did you mean "Relu"'),
        ('Softmax($x) where $x != op:"Rel*"', 'no operator is called "Rel*"'),
        ("com.microsft::Gelu($x)", 'the operator is called "com.microsoft::Gelu", not "com.microsft::Gelu"'),
        ("Gelu($x)", 'the operator is called "com.microsoft::Gelu", not "Gelu"'),
        ("com.microsft::Gellu($x)", 'no node calls "com.microsft::Gellu"; did you mean "com.microsoft::Gelu"?'),
        ("Conv<groups=1>", 'no Conv has attribute "groups"; did you mean "group"?'),
        (
            "Softmax()",
            'Softmax has at least 1 input; the pattern has 0; "..." matches further inputs; in a shell, single',
        ),
        ("MatMul -> Add(?b)", 'Add has at least 2 inputs; the pattern has 1; "..." matches further inputs'),
        ("Reshape($x)", "Reshape has at least 2 inputs; the pattern has 1"),
        ("Softmax($x, $y)", "Softmax has at most 1 input; the pattern has 2"),
        ("Softmax($x).1", "Softmax has no output 1; outputs are counted from 0"),
        ("MatMul(x, ?w)", 'no operator is called "x"; write $x for any value'),
        ("Clip($x, _)", ""),
        ("Concat($a, $b, $c)", ""),
        ("(Softmax|Gelu|com.microsoft::Gelu)($x) where $x = op:Rel*", ""),
        ("com.microsoft::FastGelu<anything=1>($x)", ""),
        ("*<groups=1>($x) where $x = op:Gelu and $x = op:Conv", ""),
    ],
)
def test_parts_that_nothing_matches_are_told(tmp_path: Path, model: Model, pattern: str, warning: str) -> None:
    path = tmp_path / "m.onnx"
    onnxjson.save(model, path)
    found = run("find", path, pattern, "--count")
    assert warning in found.stderr if warning else not found.stderr
    if warning and found.exit_code:
        with pytest.raises(SelectorError, match=re.escape(warning)):
            model.select(f"match:'{pattern}'")
        edit = onnxjson.edits.ReplacePattern(pattern=pattern, replacement="Relu(1)")
        with pytest.raises(SelectorError, match=re.escape(warning)):
            model.rewrite(edit)


def test_pattern_of_nodes_finds_all_that_are_alike(model: Model) -> None:
    nodes = [ref for ref in model.index.nodes() if ref.node.name in ("g", "m", "a", "e", "d")]
    pattern = pattern_of(model.index, nodes)
    assert str(pattern).startswith("Mul(Mul(Add(1.0, Erf(Div($a, 1.41421")
    assert names(model, str(pattern)) == [["g", "m", "a", "e", "d"]]
    assert str(pattern_of(model.index, nodes[:1])).startswith("Div($a, 1.41421")
    with pytest.raises(SelectorError, match="2 of these nodes are not used"):
        pattern_of(model.index, [nodes[0], nodes[-1]])


def test_domain_with_a_hyphen_is_written_as_it_is() -> None:
    (call,) = parse("(my.dom-x::Foo|Relu)($x)->Tanh").calls[1:]
    assert call.operators == (Operator("Foo", "my.dom-x"), Operator("Relu"))


def test_attribute_of_the_function_around_is_named() -> None:
    model = model_of(
        '<ir_version: 9, opset_import: ["" : 19, "d" : 1]> g (float[2] x) => (float[2] y) { y = d.f <a = 2.0> (x) } '
        '<domain: "d", opset_import: ["" : 19]> f <a> (x) => (y) { y = LeakyRelu <alpha : float = @a> (x) }'
    )
    (match,) = find(model, "LeakyRelu<alpha=$v>($x)")
    assert match.names == {"v": "@a", "x": "x"}
