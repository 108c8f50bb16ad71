"""Forms without their screen: what stands in fields, what they offer, what they say."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson.editing.catalogue import EDITS, NAMES, edit_named
from onnxjson.editing.declaration import name_of
from onnxjson.editing.script import parse_edit
from onnxjson.editing.shapes import SetDim
from onnxjson.model.document import Model
from onnxjson.model.index import Index, NodeRef
from onnxjson_tui.names.form_filling import SELECTION, Filling, feedback, prefilled
from onnxjson_tui.names.offers import LEFT_OUT, Offers, slot_choices, value_choices
from onnxjson_tui.session.session import Session
from onnxjson_tui.workbench.forms import edit_choices
from tests.editing.graphs import model_of
from tests.tui.every_edit import edits_for, model
from tests.tui.filled_forms import filled
from tests.tui.sessions import opened, saved, small


def session_on(tmp_path: Path, found: Model | None = None) -> Session:
    return opened(saved(tmp_path / "m.onnx", found or model()))


def ref_of(session: Session, output: str) -> NodeRef:
    return session.index.nodes_with("output", output)[0]


def keys(session: Session, edit: str, field: str, **texts: str) -> list[str]:
    filling = Filling(edit_named(edit), texts)
    wanted = next(each for each in filling.fields if each.name == field)
    return [each.key for each in Offers(session, ref_of(session, "b")).of(filling, wanted)]


@pytest.mark.parametrize("example", [example for edit in EDITS for example in edit.examples])
def test_form_of_an_edit_makes_that_edit(example: str) -> None:
    edit = replace(parse_edit(example), expect=None, if_any=False)
    if isinstance(edit, SetDim) and edit.tensor is not None:  # in a form, one field says both
        edit = replace(edit, dim=f"{edit.tensor}:{edit.axis}", tensor=None, axis=None)
    filling = filled(edit)
    assert filling.edit() == edit
    assert not filling.missing()
    assert not any(filling.mistake(field.name) for field in filling.fields)


def test_every_edit_has_a_sample(tmp_path: Path) -> None:
    assert sorted([name_of(each) for each in edits_for(tmp_path)]) == sorted(NAMES)


@pytest.mark.parametrize(
    "edit",
    [
        '{"edit": "rewire", "node": "x", "input": 0, "tensor": ""}',
        '{"edit": "rewire", "node": "x", "input": "", "tensor": "a"}',
        '{"edit": "add-node", "op_type": "Clip", "input": ["a", "", "c"], "output": ["[b", "line\\nend"]}',
        '{"edit": "set-name", "node": "x", "name": ""}',
        '{"edit": "set-doc", "text": "two\\n\\nlines\\n"}',
        '{"edit": "rename", "kind": "node", "names": {"a=b": "c", "{d": "e"}}',
        '{"edit": "set-attribute", "node": "x", "attribute": "a", "value": "12"}',
        '{"edit": "set-attribute", "node": "x", "attribute": "a", "value": ""}',
        '{"edit": "set-shape", "tensor": "x", "shape": ["a,b", 1]}',
    ],
)
def test_odd_values_stand_in_fields_too(edit: str) -> None:
    found = parse_edit(edit)
    assert filled(found).edit() == found


def test_missing_and_wrong_fields_are_said_in_words() -> None:
    filling = Filling(edit_named("add-node"), {"attribute": "alpha"})
    assert [field.name for field in filling.missing()] == ["op_type", "output"]
    assert "NAME=VALUE" in filling.mistake("attribute")
    assert "an integer" in Filling(edit_named("delete-node"), {"bypass": "two"}).mistake("bypass")
    assert "JSON" in Filling(edit_named("set-tensor"), {"value": "[1,"}).mistake("value")


def test_look_counts_nodes_and_says_what_would_change(tmp_path: Path) -> None:
    with session_on(tmp_path) as session:
        filling = Filling(edit_named("set-attribute"), {"node": "op:LeakyRelu", "attribute": "alpha", "value": "0.5"})
        found = feedback(session, filling, is_trying=True)
        assert (found.text, found.tone) == ("would change 1 place", "good")
        assert found.notes["node"] == "LeakyRelu c"
        assert found.notes["value"] == "now 0.25; expects a number, such as 0.5; 0.01 by default"
        filling.texts["value"] = "linear"
        assert "value" in feedback(session, filling, is_trying=True).mistakes
        filling.texts |= {"node": "op:LeakyRelo"}
        assert "LeakyRelu" in feedback(session, filling, is_trying=True).mistakes["node"]
        filling.texts |= {"node": "op:Relu", "value": "0.5"}
        found = feedback(session, filling, is_trying=True)
        assert found.tone == "bad"
        assert "alpha" in found.text
        assert not session.history.made


def test_fields_offer_what_the_model_has(tmp_path: Path) -> None:
    with session_on(tmp_path) as session:
        assert keys(session, "rewire", "node")[:2] == ["name:sum", "op:Add"]
        assert keys(session, "rewire", "tensor")[:3] == ["b", "a", "w"]
        assert keys(session, "rewire", "input", node="sum") == ["0", "1"]
        assert keys(session, "set-attribute", "attribute", node="output:c") == ["alpha"]
        assert keys(session, "set-attribute", "value", node="output:c", attribute="alpha") == ["0.01", "0.25"]
        assert set(keys(session, "set-tensor", "tensor")) == {"w", "k", "same", "unused"}
        assert keys(session, "set-dim", "dim") == ["N"]
        assert keys(session, "remove-input", "tensor") == ["x", "spare"]
        assert keys(session, "remove-output", "tensor") == ["y", "z"]
        assert keys(session, "add-node", "graph") == ["/graph", "/functions/0"]
        assert "float16" in keys(session, "cast-tensor", "dtype")
        assert "float32[N,4]" in keys(session, "add-input", "type")
        operators = keys(session, "add-node", "op_type")
        assert operators[0] == "Add"
        assert "Gemm" in operators
        assert "Scatter" not in operators
        assert "twice" in keys(session, "add-node", "op_type", domain="local")
        assert keys(session, "rename", "from", kind="node") == ["sum"]
        assert "N" in keys(session, "rename", "from", kind="dim")
        assert keys(session, "rename", "from", kind="metadata") == ["author"]
        assert keys(session, "prefix", "kinds")[:2] == ["tensor", "node"]


def test_files_are_offered_folder_by_folder(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.npy").write_bytes(b"")
    with session_on(tmp_path) as session:
        session.edits_folder = tmp_path
        assert keys(session, "set-tensor", "file") == ["weights/", "m.onnx"]
        assert keys(session, "set-tensor", "file", file="weights/w") == ["weights/w.npy"]
        assert keys(session, "set-tensor", "file", file=f"{tmp_path}/we") == [f"{tmp_path}/weights/"]
        assert keys(session, "set-tensor", "file", file="none/") == []


def test_names_that_are_not_seen_are_offered_by_their_addresses(tmp_path: Path) -> None:
    odd = "\x1b[31m\u202e"
    graph = small().graph
    assert graph is not None
    nodes = [replace(graph.node[0], name=odd, output=(odd,)), replace(graph.node[1], input=(odd, "w"))]
    broken = replace(small(), graph=replace(graph, node=(*nodes, *graph.node[2:3]), output=()))
    with session_on(tmp_path, broken) as session:
        offers = Offers(session, None)
        for edit, field in (("rewire", "node"), ("rewire", "tensor"), ("add-node", "input")):
            filling = Filling(edit_named(edit))
            wanted = next(each for each in filling.fields if each.name == field)
            found = offers.of(filling, wanted)
            assert all(each.key.isprintable() and each.label.isprintable() for each in found)
            assert any(each.key.startswith("@/graph/node/0") for each in found)


def test_forms_begin_with_the_node_or_the_selection(tmp_path: Path) -> None:
    with session_on(tmp_path) as session:
        ref = ref_of(session, "b")
        assert prefilled(session, edit_named("rewire"), ref) == {"node": "name:sum"}
        assert prefilled(session, edit_named("set-name"), ref) == {"node": "name:sum"}
        # Without a node these two would be about the model, which nobody sees who has the cursor on a node.
        assert prefilled(session, edit_named("set-metadata"), ref) == {"node": "name:sum"}
        assert prefilled(session, edit_named("set-doc"), ref) == {"node": "name:sum"}
        assert prefilled(session, edit_named("constants-to-initializers"), ref) == {}
        assert prefilled(session, edit_named("set-tensor"), ref) == {"tensor": "w", "value": "[1.0, 2.0, 3.0, 4.0]"}
        assert prefilled(session, edit_named("add-output"), ref) == {"tensor": "b"}
        session.places.toggle(ref.address)
        assert prefilled(session, edit_named("delete-node"), ref) == {"node": SELECTION}
        assert prefilled(session, edit_named("set-doc"), ref) == {"node": SELECTION}


def test_values_for_an_input_are_ranked_and_those_that_do_not_fit_say_why() -> None:
    model = model_of(
        """g (float[N,4] x, int64[2] n, float[4] v) => (float[N,4] y) <float[N,4] w = {1, 2, 3, 4}> {
        a = Relu(x)
        b = Add(a, w)
        c = Neg(b)
        y = Add(c, b)
    }""".replace("<float[N,4] w", "<float[4] w")
    )
    index = Index(model)
    ref = index.nodes_with("output", "b")[0]
    choices = {each.key: each for each in value_choices(model, ref, 0)}
    order = [each.key for each in value_choices(model, ref, 0)]
    assert order[:2] == ["x", "v"] or order[0] == "x"
    assert not choices["x"].refused
    assert choices["n"].refused == 'Add needs one dtype for this one and "w", but they are int64 and float32'
    assert "cycle" in choices["c"].refused
    assert "cycle" in choices["y"].refused
    assert "current" in choices["a"].refused
    assert choices[LEFT_OUT].refused.startswith("Add needs")
    assert [each.key for each in slot_choices(model, ref)] == ["0", "1"]


def test_optional_inputs_can_be_left_out_and_added() -> None:
    model = model_of("g (float[N] x, float lo) => (float[N] y) { y = Clip(x, lo) }")
    ref = Index(model).node_refs[0]
    assert [each.key for each in slot_choices(model, ref)] == ["0", "1", "2"]
    assert not next(each for each in value_choices(model, ref, 1) if each.key == LEFT_OUT).refused


def test_names_of_edits_and_their_groups_are_whole() -> None:
    choices = edit_choices()
    assert {each.key for each in choices} == {name_of(edit) for edit in EDITS}
    assert not any(each.detail.startswith("other") for each in choices)
    assert json.dumps([each.label for each in choices])


def test_what_is_computed_is_offered_for_what_is_computed_and_constants_for_constants() -> None:
    model = model_of("""g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}, float[4] v = {1, 2, 3, 4}> {
        a = Relu(x)
        b = Neg(a)
        y = Add(b, w)
    }""")
    ref = Index(model).nodes_with("output", "y")[0]

    def offered(slot: int) -> list[str]:
        return [each.key for each in value_choices(model, ref, slot) if not each.refused]

    assert sorted(offered(0)[:2]) == ["a", "x"]
    assert offered(1)[0] == "v"
