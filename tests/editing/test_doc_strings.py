"""set-doc: what elements of a model are said to be."""

import pytest
from msgspec.structs import replace

from onnxjson import dumps
from onnxjson.editing.edits import SetDoc, apply, plan, run
from onnxjson.model.addresses import resolve
from onnxjson.model.document import Model, SparseTensor, Tensor, TrainingInfo, ValueInfo
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.types import parse_type
from onnxjson.model.walking import walk
from tests.editing.graphs import model_of

TEXT = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[4] x, bool c, float[4] w) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float[4] k = {1, 2, 3, 4}> {
    a = LeakyRelu <alpha = 0.5> (x)
    b = Mul(a, k)
    v = Mul(b, w)
    d = local.both(v)
    y = If(c) <then_branch = t () => (float[4] p) { p = Exp(d) }, else_branch = f () => (float[4] q) { q = Neg(d) }>
}
<domain: "local", opset_import: ["" : 20]> both (s) => (t) { u = Relu(s) t = Add(u, u) }"""


def model() -> Model:
    model = model_of(TEXT)
    graph = model.graph
    assert graph is not None
    sparse = SparseTensor(values=Tensor((1,), 1, raw_data=bytes(4), name="thin"), dims=(4,))
    said = (ValueInfo("b", parse_type("float32[4]")),)
    step = replace(graph, node=(), input=(), output=(), initializer=(), name="step")
    graph = replace(graph, value_info=said, sparse_initializer=(sparse,))
    return replace(model, graph=graph, training_info=(TrainingInfo(algorithm=step),))


PLACES = [
    (SetDoc(text="t"), "/doc_string"),
    (SetDoc(text="t", graph="/graph"), "/graph/doc_string"),
    (SetDoc(text="t", graph="/functions/0"), "/functions/0/doc_string"),
    (SetDoc(text="t", node="output:b"), "/graph/node/1/doc_string"),
    (SetDoc(text="t", node="output:p"), "/graph/node/4/attribute/then_branch/g/node/0/doc_string"),
    (SetDoc(text="t", tensor="k"), "/graph/initializer/1/doc_string"),
    (SetDoc(text="t", tensor="w"), "/graph/initializer/0/doc_string"),
    (SetDoc(text="t", tensor="thin"), "/graph/sparse_initializer/0/values/doc_string"),
    (SetDoc(text="t", tensor="x"), "/graph/input/0/doc_string"),
    (SetDoc(text="t", tensor="y"), "/graph/output/0/doc_string"),
    (SetDoc(text="t", tensor="b"), "/graph/value_info/0/doc_string"),
    *[
        (SetDoc(text="t", address=address), f"{address}/doc_string")
        for address in (
            "",
            "/graph",
            "/graph/input/2",
            "/graph/initializer/0",
            "/graph/node/0",
            "/graph/node/0/attribute/alpha",
            "/graph/node/4/attribute/then_branch",
            "/graph/node/4/attribute/then_branch/g",
            "/graph/node/4/attribute/then_branch/g/node/0",
            "/functions/0/node/1",
            "/training_info/0/algorithm",
        )
    ],
    (SetDoc(text="t", address="@/graph/output/0"), "/graph/output/0/doc_string"),
]


@pytest.mark.parametrize(("edit", "address"), PLACES, ids=[address for _, address in PLACES])
def test_a_doc_string_is_set_in_one_place_and_taken_away_again(edit: SetDoc, address: str) -> None:
    before = model()
    result = run(before, edit)
    assert result.matches == 1
    assert resolve(result.model, address) == "t"
    assert dumps(result.model).count('"doc_string": "t"') == 1
    assert plan(before, edit).invert().apply(result.model) == before
    assert apply(result.model, replace(edit, text="")) == before
    assert apply(result.model, replace(edit, text="two\nlines")) != result.model


def test_nodes_inside_of_others_get_theirs_together() -> None:
    after = apply(model(), SetDoc(text="t", node="!op:Nothing"))
    assert {node.doc_string for node in walk(after, type(after.graph.node[0]))} == {"t"}  # type: ignore[union-attr]


def test_nodes_without_one_are_not_counted_where_it_is_taken_away() -> None:
    one = apply(model(), SetDoc(text="t", node="output:b"))
    assert run(one, SetDoc(text="", node="op:Mul")).matches == 1
    nothing = run(model(), SetDoc(text="", node="op:Mul"))
    assert (nothing.model, nothing.matches) == (model(), 0)
    assert nothing.outcomes[0].notes == ("there is no doc string to remove",)
    assert run(model(), SetDoc(text="")).outcomes[0].notes == ("there is no doc string to remove",)


def test_what_is_not_text_in_utf_8_stays_what_it_is() -> None:
    after = apply(model(), SetDoc(text="\udcff", graph="/graph"))
    assert after.graph is not None
    assert after.graph.doc_string == "\udcff"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (SetDoc(text="t", node="output:b", graph="/graph"), "give at most one of them"),
        (SetDoc(text="t", address="/graph", graph="/graph"), "give at most one of them"),
        (SetDoc(text="t", graph="/grap"), 'there is no graph at /grap; did you mean "/graph"?'),
        (SetDoc(text="t", node="op:Mull"), 'no node has op:Mull; did you mean "op:Mul"?'),
        (SetDoc(text="t", tensor="a"), '"a" has no value_info that could store a doc string; infer-shapes'),
        (SetDoc(text="t", address="/graph/input/9"), "/graph/input has 3 members"),
        (SetDoc(text="t", address="/graph/node"), "/graph/node has no doc string; name a graph, function, node"),
        (SetDoc(text="t", address="/opset_import/0"), "/opset_import/0 has no doc string"),
    ],
)
def test_what_cannot_be_meant_is_refused(edit: SetDoc, message: str) -> None:
    with pytest.raises(OnnxJsonError, match=message):
        apply(model(), edit)
