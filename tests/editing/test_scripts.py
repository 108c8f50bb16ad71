"""Rewrite scripts: read exactly, made as a whole or not at all."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.editing.python_script import PythonScript
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.errors import DecodeError, EditError, SelectorError
from onnxjson.patching.patch import Patch
from tests.editing.graphs import EXPORTED, exported, model_of

CHAIN = "g (float[N] x) => (float[N] y) { a = Relu(x) b = LeakyRelu<alpha=0.5>(a) y = Identity(b) }"


def script(*steps: str) -> str:
    """The text of a script, a step a line."""
    lines = ",\n".join(f"  {step}" for step in steps)
    return f'{{\n"format": "onnxjson-rewrite/1",\n"edits": [\n{lines}\n]\n}}\n'


ALPHA = '{"edit": "set-attribute", "node": "op:LeakyRelu", "attribute": "alpha", "value": 0.25}'
NAMED = '{"edit": "rename", "kind": "tensor", "from": "a", "to": "activated"}'


def test_canonical_script_is_written_as_it_was_read() -> None:
    text = script(ALPHA, NAMED)
    assert edits.Script.loads(text).dumps() == text
    empty = '{\n"format": "onnxjson-rewrite/1",\n"edits": []\n}\n'
    assert edits.Script.loads(empty).dumps() == empty


def test_comments_and_trailing_commas_are_taken_and_said_not_to_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(f'// why\n{{"format": "onnxjson-rewrite/1", "edits": [{ALPHA}, // that\n]}}')
    found = edits.Script.load(path)
    assert found.dumps() == script(ALPHA)
    assert found.folder == tmp_path
    assert str(found.warnings[0]).startswith(f"{path}:1:1: the text has 2 comments")


def test_saved_script_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    edits.Script.loads(script(ALPHA)).save(path)
    assert path.read_text() == script(ALPHA)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "1:1: found edits, expected a script"),
        ("{}", '1:1: the key "format" is missing'),
        ('{"format": "onnxjson-rewrite/2", "edits": []}', "1:12: the format is"),
        ('{"format": "onnxjson-rewrite/1"}', "1:1: the script has no edits"),
        ('{"format": "onnxjson-rewrite/1", "edits": {}}', "1:43: found an object, expected a list of edits"),
        ('{"format": "onnxjson-rewrite/1", "edits": [], "edit": []}', '1:47: a script has no key "edit"'),
        (script("3"), "4:3: found the number 3, expected an edit"),
        (script('{"node": "a"}'), "4:3: the step names no edit"),
        (script('{"edit": 3}'), "4:12: found the number 3, expected the name of an edit"),
        (script('{"edit": "set-atribute"}'), '4:12: there is no edit "set-atribute"; did you mean "set-attribute"'),
        (script('{"edit": "remove-attribute", "node": "a"}'), '4:3: remove-attribute needs "attribute"'),
        (script(ALPHA.replace('"value"', '"vlaue"')), 'no key "vlaue"; did you mean "value"?'),
        (script(ALPHA.replace('"op:LeakyRelu"', "7")), "4:37: found the number 7, expected a string"),
        (script(ALPHA.replace('"op:LeakyRelu"', "null")), "4:37: found null, expected a string"),
        (script('{"edit": "add-node", "op_type": "Relu", "output": ["a", 3]}'), "4:59: found the number 3, expected"),
        (
            script('{"edit": "add-node", "op_type": "Relu", "output": []}'),
            "4:53: found an empty list, expected at least",
        ),
        (script('{"edit": "prune", "expect": 1}'), '4:21: prune has no key "expect"'),
        (
            script('{"edit": "delete-node", "node": "a", "expect": -1}'),
            "4:50: found the number -1, expected an integer from 0",
        ),
        (script('{"edit": "prune", "edit": "strip"}'), '4:21: the key "edit"'),
        (script('{"edit": "prune"'), "4:3: this `{` is not closed"),
    ],
)
def test_mistake_is_named_with_its_line_and_column(text: str, says: str) -> None:
    with pytest.raises(DecodeError) as caught:
        edits.Script.loads(text)
    assert any(says in str(finding) for finding in caught.value.findings), list(map(str, caught.value.findings))


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(DecodeError) as caught:
        edits.Script.loads(script('{"edit": "nope"}', '{"edit": "prune", "a": 1}', '{"edit": "set-attribute"}'))
    assert [finding.line for finding in caught.value.findings] == [4, 5, 6, 6, 6]


def test_script_is_made_as_a_whole_or_not_at_all() -> None:
    model = model_of(CHAIN)
    good = edits.Script.loads(script(ALPHA, NAMED))
    after = onnxjson.apply(model, good)
    assert after != model
    bad = edits.Script.loads(script(ALPHA, '{"edit": "delete-node", "node": "op:Conv"}'))
    before = onnxjson.dumps(model)
    with pytest.raises(SelectorError) as caught:
        onnxjson.apply(model, bad)
    assert str(caught.value).startswith("edit 2 of 2 (delete-node): no node has op:Conv")
    assert onnxjson.dumps(model) == before


def test_expectation_that_fails_refuses_the_whole() -> None:
    model = model_of(CHAIN)
    onnxjson.apply(model, edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=1, expect=1))
    with pytest.raises(EditError, match="set-attribute: 1 match, but 2 expected; nothing is changed") as caught:
        onnxjson.apply(model, edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=1, expect=2))
    assert caught.value.position is None
    with pytest.raises(EditError, match=r"^edit 2 of 2 \(prune\): ") as caught:
        onnxjson.apply(model, [edits.NameNodes(), edits.Prune(expect=7)])
    assert caught.value.position == 1


def test_edits_patches_and_scripts_are_made_in_their_order() -> None:
    model = model_of(CHAIN)
    first = edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.25)
    patch = edits.plan(onnxjson.apply(model, first), edits.NameNodes())
    after = onnxjson.apply(model, [first, patch, edits.Script.loads(script(NAMED))])
    assert after == onnxjson.apply(
        model, [first, edits.NameNodes(), edits.Rename(kind="tensor", from_="a", to="activated")]
    )
    assert onnxjson.apply(model, []) is model
    assert onnxjson.apply(model, Patch()) is model


def test_text_is_no_change_by_itself() -> None:
    for wrong in ("prune", Path("r.json"), b"{}", 3):
        with pytest.raises(TypeError, match="edits, scripts and patches are applied"):
            onnxjson.apply(model_of(CHAIN), wrong)  # type: ignore[arg-type]


def test_edit_that_breaks_the_model_is_named_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(CHAIN)

    def break_it(_: edits.Prune, workspace: edits.Workspace) -> edits.Outcome:
        graph = workspace.graph
        workspace.replace_graph(workspace.main, replace(graph, node=graph.node[1:]))
        return edits.Outcome(1)

    monkeypatch.setattr(edits.Prune, "change", break_it)
    with pytest.raises(
        EditError, match=r"^edit 2 of 3 \(prune\): the model would be broken: /graph/node/0/input/0: nothing"
    ):
        onnxjson.apply(model, [edits.NameNodes(), edits.Prune(), edits.NameNodes()])
    with pytest.raises(EditError, match=r"^prune: the model would be broken"):
        onnxjson.apply(model, edits.Prune())


def test_broken_model_can_be_edited_and_its_own_faults_stay() -> None:
    model = model_of(CHAIN)
    assert model.graph is not None

    broken = replace(model, graph=replace(model.graph, node=model.graph.node[1:]))
    after = onnxjson.apply(broken, edits.NameNodes())
    assert after != broken


@pytest.mark.parametrize("name", EXPORTED)
def test_edit_of_one_node_shares_all_others(name: str) -> None:
    model = exported(name)
    assert model.graph is not None
    # One of the last: an edit of the first ones changes the shapes that others need.
    nodes = [place for place, node in enumerate(model.graph.node) if node.name and node.attribute]
    position = next(place for place in nodes[::-1] if model.graph.node[place].attribute[0].g is None)
    node = model.graph.node[position]
    attribute = node.attribute[0].name or ""
    patch = edits.plan(
        model, edits.SetAttribute(node=f"@/graph/node/{position}", attribute=attribute, value=_other(node))
    )
    after = patch.apply(model)
    assert after.graph is not None
    assert [a is b for a, b in zip(model.graph.node, after.graph.node, strict=True)].count(False) == 1
    assert patch.invert().apply(after) == model


def _other(node: onnxjson.Node) -> object:
    from onnxjson.editing.values import plain_value

    match node.attribute[0].type:
        case 2:
            return (node.attribute[0].i or 0) + 1
        case 7:
            return [*plain_value(node.attribute[0].ints), 7]
        case 3:
            return "other"
        case 4 if (tensor := node.attribute[0].t) is not None:
            # Of another shape, and of the same dtype, which those who take it need.
            dtype = DATA_TYPE_NAMES[tensor.data_type or 0]
            return (
                {"type": f"{dtype}[]", "values": False} if dtype == "bool" else {"type": f"{dtype}[1]", "values": [7]}
            )
        case _:
            return 0.125


def python(tmp_path: Path, text: str) -> PythonScript:
    """A Python script of this text."""
    path = tmp_path / "rewrite.py"
    path.write_text(text)
    return PythonScript(path)


@pytest.mark.parametrize(
    "body",
    [
        "return edits.SetAttribute(node='op:LeakyRelu', attribute='alpha', value=0.25)",
        "return [edits.SetAttribute(node='op:LeakyRelu', attribute='alpha', value=0.25)]",
        "return apply(model, edits.SetAttribute(node='op:LeakyRelu', attribute='alpha', value=0.25))",
        "return to_proto(apply(model, edits.SetAttribute(node='op:LeakyRelu', attribute='alpha', value=0.25)))",
        "return edits.plan(model, edits.SetAttribute(node='op:LeakyRelu', attribute='alpha', value=0.25))",
    ],
)
def test_python_script_gives_a_model_a_patch_or_edits(tmp_path: Path, body: str) -> None:
    model = model_of(CHAIN)
    result = python(tmp_path, f"from onnxjson import apply, edits, to_proto\n\ndef rewrite(model):\n    {body}\n").run(
        model
    )
    assert result.model == onnxjson.apply(model, edits.Script.loads(script(ALPHA)))
    assert result.matches == 1


def test_python_script_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    model = model_of(CHAIN)
    with pytest.raises(EditError, match=r"rewrite\.py:2: ZeroDivisionError: division by zero"):
        python(tmp_path, "def rewrite(model):\n    1 / 0\n").run(model)
    with pytest.raises(EditError, match=r"rewrite\.py:1: SyntaxError"):
        python(tmp_path, "def rewrite(model)\n    return model\n")
    with pytest.raises(EditError, match="defines neither `def rewrite"):
        python(tmp_path, "def change(model):\n    return model\n")
    with pytest.raises(EditError, match="rewrite returned nothing; it must return a model, edits, a patch"):
        python(tmp_path, "def rewrite(model):\n    pass\n").run(model)
    with pytest.raises(SelectorError, match="no node has op:Conv"):
        python(
            tmp_path, "from onnxjson import edits\ndef rewrite(model):\n    return edits.DeleteNode(node='op:Conv')\n"
        ).run(model)


def test_rules_of_onnxscript_are_made_and_keep_what_they_are_not_about(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    model = model_of("g (float[N] x) => (float[N] y) { a = Relu(x) b = Relu(a) y = Neg(b) }")
    assert model.graph is not None
    said = replace(model.graph.node[2], doc_string="said")
    model = replace(model, graph=replace(model.graph, node=(*model.graph.node[:2], said)))
    text = (
        "from onnxscript.rewriter import pattern\n"
        "rules = [pattern.RewriteRule(lambda op, x: op.Relu(op.Relu(x)), lambda op, x: op.Relu(x))]\n"
    )
    after = python(tmp_path, text).run(model).model
    assert after.graph is not None
    assert [node.op_type for node in after.graph.node] == ["Relu", "Neg"]
    assert after.graph.node[1].doc_string == "said"
    result = python(tmp_path, text).run(after)
    assert result.model == after
    assert result.outcomes[0].notes == ("no rule matched; nothing changed",)


def test_rules_without_onnxscript_say_what_to_install(tmp_path: Path) -> None:
    class Rule:
        """Something of onnxscript."""

    Rule.__module__ = "onnxscript.rewriter"
    found = python(tmp_path, "rules = []\n")
    found._rules = [Rule()]
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        with pytest.raises(EditError, match="onnxscript, which is not installed; pip install onnxscript"):
            found.run(model_of(CHAIN))
