"""After an edit, stated types are those that follow from the new model, or are removed, or the edit is refused."""

import random

import pytest

from onnxjson import edits
from onnxjson.editing.applying import run
from onnxjson.editing.declaration import Edit
from onnxjson.editing.inference import infer
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index
from onnxjson.model.types import format_type
from tests.editing import batch_graphs, random_models
from tests.editing.graphs import exported, model_of, require_valid
from tests.editing.shape_laws import law
from tests.seeds import seeds

CHAIN = """g (float[2,3,4] x) => (float[3,2,4] y) <float[3,2,4] a, float[3,2,4] b> {
   [t] a = Transpose <perm = [1,0,2]> (x) b = Relu(a) y = Neg(b)
}"""
CONV = """g (float[N,3,H,W] x) => (float[N,4,H2,W2] y, float[N,4,1,1] z) <float[N,4,H2,W2] a> {
   w = RandomNormal <shape = [4,3,3,3]> () [c] a = Conv <pads = [1,1,1,1]> (x, w)
   y = LeakyRelu <alpha = 0.1> (a) z = GlobalAveragePool(y)
}"""
RESHAPE = "g (float[2,6] x) => (float[3,4] y) <int64[2] s = {3,4}, float[3,4] a> { a = Reshape(x, s) y = Relu(a) }"
BRANCHES = """g (float[2,3] x, bool c) => (float[2,3] y) {
   i = If(c) <then_branch = t () => (float[2,3] p) { p = Relu(x) },
              else_branch = e () => (float[2,3] q) { q = Transpose <perm = [0,1]> (x) }>
   y = Neg(i)
}"""
CUSTOM = """g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float[2,3] a, float[2,3] b> {
   a = local.Unknown(x) b = LeakyRelu(x) y = Add(a, b) z = Neg(a)
}"""


def types(model: Model) -> dict[str | None, str | None]:
    """The stated types of the main graph."""
    assert model.graph is not None
    values = (*model.graph.input, *model.graph.output, *model.graph.value_info)
    return {each.name: format_type(each.type) if each.type else None for each in values}


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        (CHAIN, edits.SetAttribute(node="t", attribute="perm", value=[2, 1, 0]), {"a": "4,3,2", "y": "4,3,2"}),
        (CHAIN, edits.RemoveAttribute(node="t", attribute="perm"), {"a": "4,3,2", "b": "4,3,2", "y": "4,3,2"}),
        (CHAIN, edits.DeleteNode(node="t"), {"b": "2,3,4", "y": "2,3,4"}),
        (CHAIN, edits.ReplaceNode(node="t", op_type="Relu"), {"a": "2,3,4", "b": "2,3,4", "y": "2,3,4"}),
        (
            CHAIN,
            edits.AddNode(op_type="Flatten", input=("a",), output=("f",), insert=True),
            {"a": "3,2,4", "b": "3,8", "y": "3,8"},
        ),
        (CHAIN, edits.Rewire(node="op:Neg", input=0, tensor="x"), {"b": "3,2,4", "y": "2,3,4"}),
        (CHAIN, edits.Rewire(node="output:y", input=0, tensor="x"), {"b": "3,2,4", "y": "2,3,4"}),
        (RESHAPE, edits.SetTensor(tensor="s", value=[4, 3]), {"a": "4,3", "y": "4,3"}),
        (CONV, edits.SetAttribute(node="c", attribute="strides", value=[2, 2]), {"a": "N,4,H2,W2", "z": "N,4,1,1"}),
        (
            CONV,
            edits.SetAttribute(node="c", attribute="pads", value=[2, 2, 0, 0]),
            {"a": "N,4,H2,W2", "y": "N,4,H2,W2"},
        ),
        (CONV, edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5), {"y": "N,4,H2,W2"}),
        (CUSTOM, edits.SetAttribute(node="op:Unknown", attribute="k", value=1), {"b": "2,3", "z": "?,?"}),
        (CUSTOM, edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5), {"a": "2,3", "y": "2,3"}),
        (CHAIN, edits.SetShape(tensor="x", shape=(2, 5, "N")), {"a": "5,2,N", "b": "5,2,N", "y": "5,2,N"}),
        (CHAIN, edits.SetDim(tensor="x", axis=1, size="?"), {"a": "?,2,4", "y": "?,2,4"}),
        (CONV, edits.SetDim(dim="N", size=2), {"x": "2,3,H,W", "a": "2,4,H2,W2", "z": "2,4,1,1"}),
    ],
)
def test_types_after_the_edited_node_follow(text: str, edit: Edit, expected: dict[str, str]) -> None:
    before = model_of(text)
    result = run(before, edit)
    require_valid(result.model)
    found = types(result.model)
    assert {name: found.get(name) for name in expected} == {name: f"float32[{dims}]" for name, dims in expected.items()}
    changed = [name for name in ("y", "z") if name in found and found[name] != types(before)[name]]
    assert [
        name for name in changed if any([f'the output "{name}" changed' in each for each in result.outcomes[-1].notes])
    ] == (changed)


def test_a_cast_changes_the_dtypes_after_it() -> None:
    model = model_of("g (float[2,3] x) => (float[2,3] y) <float[2,3] a> { a = Cast <to = 1> (x) y = Transpose(a) }")
    after = run(model, edits.SetAttribute(node="op:Cast", attribute="to", value=10))
    assert types(after.model) == {"x": "float32[2,3]", "y": "float16[3,2]"}
    assert after.outcomes[0].notes == ('the output "y" changed from float32[2,3] to float16[3,2]',)


def test_an_edit_in_a_branch_reaches_the_graph_around_it() -> None:
    after = run(model_of(BRANCHES), edits.SetAttribute(node="op:Transpose", attribute="perm", value=[1, 0]))
    require_valid(after.model)
    assert types(after.model)["y"] == "float32[?,?]"
    assert "not all of it is known after If @/graph/node/0" in after.outcomes[0].notes[0]


def test_a_number_such_as_epsilon_changes_no_type() -> None:
    """The inference does not know what the exporter stated."""
    text = """g (float[2,3] x) => (float[2,3] y) <float[2,3] a> {
       a = local.Unknown(x) [n] y = LayerNormalization <epsilon = 0.1> (a, s) }"""
    text = text.replace("(float[2,3] x)", "(float[2,3] x, float[3] s)")
    result = run(model_of(text), edits.SetAttribute(node="n", attribute="epsilon", value=0.5))
    assert result.outcomes[-1].notes == ()
    assert types(result.model)["y"] == "float32[2,3]"


def test_calls_of_a_changed_function_are_followed() -> None:
    model = model_of(
        """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y) { a = local.f(x) y = Neg(a) }
        <domain: "local", opset_import: ["" : 20]> f (p) => (r) { q = Relu(p) r = Abs(q) }"""
    )
    after = run(model, edits.ReplaceNode(node="op:Abs", op_type="Transpose")).model
    require_valid(after)
    assert types(after)["y"] == "float32[3,2]"


@pytest.mark.parametrize(
    ("text", "edit", "node"),
    [
        (RESHAPE, edits.SetTensor(tensor="s", value=[5, 3]), "Reshape"),
        (
            CHAIN.replace("Relu(a)", "Softmax <axis = 2> (a)"),
            edits.SetAttribute(node="op:Softmax", attribute="axis", value=3),
            "Softmax",
        ),
        (CONV, edits.SetAttribute(node="c", attribute="group", value=2), 'Conv "c"'),
    ],
)
def test_an_edit_that_a_node_cannot_have_is_refused_and_names_it(text: str, edit: Edit, node: str) -> None:
    with pytest.raises(EditError, match=f"shape inference fails at {node}"):
        run(model_of(text), edit)


def test_one_reason_at_several_nodes_is_told_once() -> None:
    text = """g (float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] c) {
        a = Softmax(x) b = Softmax(x) c = Softmax(x) }"""
    with pytest.raises(EditError) as caught:
        run(model_of(text), edits.SetAttribute(node="op:Softmax", attribute="axis", value=99))
    assert str(caught.value).count("must be in") == 1
    assert "is: 99 (and 2 more nodes); if the change" in str(caught.value)


def test_edits_that_fit_only_together_are_made_in_one_script() -> None:
    first, second = edits.SetTensor(tensor="s", value=[2, 2]), edits.SetShape(tensor="x", shape=(2, 2))
    model = model_of(RESHAPE)
    for alone in (first, second):
        with pytest.raises(EditError, match="write both into one script"):
            run(model, alone)
    after = run(model, [first, second]).model
    require_valid(after)
    assert types(after)["y"] == "float32[2,2]"


def test_a_mistake_that_was_there_before_stops_no_edit() -> None:
    model = model_of(
        "g (float[2,3] x) => (float[2,3] y) { w = RandomNormal <shape = [5]> () a = LeakyRelu(x) y = Add(a, w) }"
    )
    assert run(model, edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5)).model != model


def test_an_edit_of_names_keeps_types_that_the_inference_does_not_know() -> None:
    after = run(model_of(CONV), edits.Rename(kind="tensor", from_="a", to="conv")).model
    assert types(after)["conv"] == "float32[N,4,H2,W2]"


def test_a_constant_that_only_moves_changes_no_type() -> None:
    """The inference does not know all of what the exporter stated."""
    model = model_of(
        """g (float[2,3] x) => (float[2,3] y) {
           a = local.Unknown(x) s = Constant <value = int64[2] {2, -1}> () y = Reshape(a, s) }"""
    )
    moved = run(model, edits.ConstantsToInitializers())
    assert types(moved.model)["y"] == "float32[2,3]"
    assert types(run(moved.model, edits.InitializersToConstants()).model)["y"] == "float32[2,3]"
    changed = run(moved.model, edits.SetTensor(tensor="s", value=[3, -1])).model
    assert types(changed)["y"] == "float32[?,?]"


PLANTED = """g (float[2,3] x, float[N,4] n, bool c)
    => (float[2,4] y1, float[3,2,1] y2, float[N,4] y3, float[5] y4, float[2,9] y5, int64[2,3] y6)
<float[2,7] a, float[3,3] b, float[2,3] u, float[2,8] v, int64[2] s = {3,2}, float[6] r> {
   a = Relu(x) y1 = Relu(x) b = Transpose(x) y2 = Transpose(x) y3 = Concat <axis = 0> (n, n)
   i = If(c) <then_branch = t () => (float[2,4] p) { p = Neg(x) }, else_branch = f () => (float[2,3] q) { q = Abs(x) }>
   u = local.Unknown(x) v = Relu(u) r = Reshape(x, s) y4 = Neg(r) y5 = Abs(u) y6 = Cast <to = 7> (x)
}"""


def test_ssi4onnx_every_conflict_is_reported_and_overwrite_replaces_it() -> None:
    model = model_of(PLANTED)
    found = infer(model, None)
    assert {each.name for each in found.conflicts} == {"p", "a", "b", "v", "r", "y1", "y2", "y4", "y5"}
    assert types(found.model)["y1"] == "float32[2,4]"
    result = run(model, edits.InferShapes(overwrite=True))
    require_valid(result.model)
    assert not infer(result.model, None).conflicts
    assert types(result.model)["y4"] == "float32[3,2]"
    assert types(result.model)["u"] == "float32[2,3]"


@pytest.mark.parametrize("seed", seeds(10, always=5))
def test_a_model_that_passes_the_full_check_passes_it_after_any_edit(seed: int) -> None:
    rng = random.Random(seed)
    results = []
    for number in range(15):
        made = random_models.random_model(rng) if number % 2 else batch_graphs.random_model(rng.randrange(999), 2, 8)
        result, edit = law(exported("branches_ts.onnx") if number % 5 == 0 else made, rng)
        results.append(result)
        assert result != "BROKEN", edit
    assert "made" in results


COMPUTED = """g (float[1,samples] x, int64[2] s) => (float[1,frames] y, float[samples,1] z) <float[1,frames] a> {
   [r] a = Reshape(x, s) y = Relu(a) z = Transpose(x)
}"""


def test_names_stay_where_the_inference_knows_less() -> None:
    before = model_of(COMPUTED)
    # A node that keeps the type of what it gets changes no type after it; nor does its removal.
    added = run(before, edits.AddNode(op_type="Abs", input=("x",), output=("n",), name="new", insert=True))
    assert types(added.model) == types(before)
    assert not added.outcomes[0].notes
    assert run(added.model, edits.DeleteNode(node="new")).model == before
    # The size of "y" may be another one, but still has a name of its own.
    cast = edits.AddNode(op_type="Flatten", input=("x",), output=("n",), attribute={"axis": 0}, insert=True)
    assert types(run(before, cast).model)["y"] == "float32[1,frames]"


def test_a_name_that_other_values_have_is_not_stated_for_a_size_that_may_differ() -> None:
    before = model_of(CONV.replace("H2,W2", "H,W"))
    after = run(before, edits.SetAttribute(node="c", attribute="strides", value=[2, 2])).model
    assert types(after)["y"] == "float32[N,4,?,?]"


def test_types_in_branches_are_restored_with_those_around_them() -> None:
    before = model_of(
        """g (float[1,n] x, int64[2] s, bool c) => (float[k,4] y) {
           a = Reshape(x, s)
           y = If(c) <then_branch = t () => (float[k,4] p) { p = Relu(a) },
                      else_branch = e () => (float[k,4] q) { q = Neg(a) }>
        }"""
    )
    added = run(before, edits.AddNode(op_type="Abs", input=("x",), output=("m",), name="new", insert=True)).model
    assert run(added, edits.DeleteNode(node="new")).model == before


OPEN = """g (bool c, float[?,?] x) => (float[M,3] y) <float[M,3] z> {
   z = If (c) <then_branch = t () => (float[?,3] a) <float[P,3] i> { i = Neg(x) a = Abs(i) },
               else_branch = e () => (float[?,3] b) { b = Abs(x) }>
   y = Relu(z)
}"""


def test_stated_sizes_stay_after_a_node_that_changes_no_shape_although_its_input_has_none() -> None:
    before = model_of(OPEN)
    added = run(before, edits.AddNode(op_type="Abs", input=("x",), output=("n",), name="n", insert=True))
    assert added.outcomes[0].notes == ()
    assert [each.types for each in Index(added.model).scopes[1:]] == [each.types for each in Index(before).scopes[1:]]
    assert run(added.model, edits.DeleteNode(node="n")).model == before
    turned = run(before, edits.AddNode(op_type="Transpose", input=("x",), output=("n",), insert=True)).model
    assert types(turned)["y"] == "float32[M,?]"
    assert format_type(Index(turned).scopes[1].types["i"]) == "float32[P,?]"
