"""A hand-made change as a rewrite script that makes it again, also on the next version of the model."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import msgspec
import pytest

import onnxjson
from onnxjson.diffing.difference import diff
from onnxjson.editing.annotations import SetDoc, SetMetadata
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.edits import Edit, Script, apply
from onnxjson.editing.expressing import Expressed, express
from onnxjson.editing.interface import AddOutput, RemoveOutput
from onnxjson.editing.names import NameNodes, Prefix, Rename, SetName
from onnxjson.editing.nodes import AddNode, ReplaceNode, Rewire
from onnxjson.editing.opsets import StampOpset
from onnxjson.editing.script import write_script
from onnxjson.editing.shapes import SetShape
from onnxjson.editing.tensor_values import SetTensor
from onnxjson.model.document import Graph, Model
from tests.editing.graphs import exported, model_of
from tests.seeds import portions

MODELS = ["encoder_ts.onnx", "encoder_dynamo.onnx", "mobile_ts.onnx", "mobile_dynamo.onnx"]


def graph_of(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def said(base: Model, target: Model) -> Expressed:
    return express(base, target, diff(base, target).alignment)


def require_said(base: Model, target: Model) -> tuple[Edit, ...]:
    found = said(base, target)
    assert found.reason == ""
    again = Script.loads(write_script(found.edits))
    assert again.edits == found.edits
    assert apply(base, again) == target, found.left_out
    return found.edits


def first(model: Model, op_type: str) -> str:
    """A name of the second node of an operator."""
    node = [node for node in graph_of(model).node if node.op_type == op_type][1]
    return node.name or f"output:{node.output[0]}"


def changes(model: Model) -> list[tuple[str, Sequence[Edit]]]:
    conv = "Conv" if any(node.op_type == "Conv" for node in graph_of(model).node) else "LayerNormalization"
    attribute, value = ("group", 1) if conv == "Conv" else ("epsilon", 0.25)
    node = first(model, conv)
    output = graph_of(model).output[0].name or ""
    middle = [each for each in graph_of(model).node if each.op_type == conv][1].output[0]
    return [
        ("attribute", [SetAttribute(node=node, attribute=attribute, value=value)]),
        ("attribute gone", [RemoveAttribute(node=node, attribute=attribute)]),
        ("metadata", [SetMetadata(key="a", value="b"), SetMetadata(key="k", value="v", node=node)]),
        ("opset", [StampOpset(version=19), StampOpset(version=1, domain="com.example")]),
        ("output", [AddOutput(tensor=middle)]),
        ("renamed output", [Rename(kind="output", from_=output, to="result")]),
        ("inserted", [AddNode(op_type="Relu", input=(middle,), output=("new_relu",), name="new", insert=True)]),
        (
            "everything",
            [
                SetAttribute(node=node, attribute=attribute, value=value),
                AddNode(op_type="Neg", input=(middle,), output=("negative",), name="negation"),
                AddOutput(tensor="negative"),
                Rename(kind="output", from_=output, to="result"),
                SetMetadata(key="note", value="edited by hand"),
            ],
        ),
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("which", range(8))
def test_edits_of_exports_are_found_again(name: str, which: int) -> None:
    base = exported(name)
    _, edits = changes(base)[which]
    target = apply(base, edits)
    if target != base:
        assert require_said(base, target)


CHAIN = """g (float[N,4] x) => (float[N,4] y) <float[4] k = {1, 2, 3, 4}>
{ a = Relu (x)  b = Mul (a, k)  c = Neg (b)  y = Abs (c) }"""


NESTED = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[4] x, bool c) => (float[4] y) {
    d = local.both(x)
    y = If(c) <then_branch = t () => (float[4] p) { p = Exp(d) }, else_branch = f () => (float[4] q) { q = Neg(d) }>
}
<domain: "local", opset_import: ["" : 20]> both (s) => (t) { u = Relu(s) t = Add(u, u) }"""


def chain() -> Model:
    return apply(model_of(CHAIN), NameNodes())


def test_a_deleted_node_is_a_bypass() -> None:
    base = chain()
    assert require_said(base, apply(base, DeleteNode(node="Neg_0"))) == (DeleteNode(node="Neg_0"),)
    edits = require_said(base, apply(base, DeleteNode(node="Mul_0", bypass=0)))
    assert DeleteNode(node="Mul_0", bypass=0) in edits


def test_a_deleted_last_node_leaves_the_name_of_the_output() -> None:
    base = chain()
    assert DeleteNode(node="Abs_0") in require_said(base, apply(base, DeleteNode(node="Abs_0")))


def test_neighbours_that_go_together_are_deleted() -> None:
    base = chain()
    target = apply(base, [DeleteNode(node="Mul_0", bypass=0), DeleteNode(node="Neg_0")])
    assert {edit.node for edit in require_said(base, target) if isinstance(edit, DeleteNode)} == {"Mul_0", "Neg_0"}


def test_replaced_rewired_and_changed_constants() -> None:
    base = chain()
    for edits in (
        [ReplaceNode(node="Neg_0", op_type="Exp")],
        [Rewire(node="Neg_0", input=0, tensor="a")],
        [SetTensor(tensor="k", value=[9, 8, 7, 6])],
        [SetTensor(tensor="k", value=[1], type="float32[1]")],
        [SetShape(tensor="x", shape=(2, 4), propagate=False)],
        [AddOutput(tensor="b"), RemoveOutput(tensor="y")],
        [Rename(kind="tensor", names={"a": "b", "b": "a"})],
        [Rename(kind="node", from_="Neg_0", to="negation")],
    ):
        require_said(base, apply(base, edits))


def test_names_of_nodes_that_had_none_or_shared_one() -> None:
    base = model_of(CHAIN)
    named = apply(base, [SetName(node="output:b", name="product"), SetName(node="output:y", name="last")])
    assert require_said(base, named) == (
        SetName(node="output:b", name="product"),
        SetName(node="output:y", name="last"),
    )
    assert require_said(named, base) == (SetName(node="product", name=""), SetName(node="last", name=""))
    nodes = tuple([msgspec.structs.replace(node, name="twin") for node in graph_of(base).node])
    twins = msgspec.structs.replace(base, graph=msgspec.structs.replace(graph_of(base), node=nodes))
    assert require_said(twins, apply(twins, SetName(node="output:b", name="other"))) == (
        SetName(node="output:b", name="other"),
    )
    together = apply(twins, Rename(kind="node", from_="twin", to="same"))
    assert require_said(twins, together) == (Rename(kind="node", names={"twin": "same"}, within="/graph"),)


def test_names_that_move_from_node_to_node() -> None:
    base = apply(chain(), SetName(node="output:a", name=""))
    moves: list[Edit] = [
        SetName(node="Abs_0", name=""),
        Rename(kind="node", from_="Neg_0", to="Abs_0"),
        SetName(node="output:a", name="Neg_0"),
        Rename(kind="tensor", from_="a", to="start"),
        DeleteNode(node="Mul_0", bypass=0),
    ]
    require_said(base, apply(base, moves))


def test_doc_strings_of_everything_that_stays_or_comes() -> None:
    base = apply(chain(), SetDoc(text="old", node="Neg_0"))
    edits = (
        SetDoc(text="of the model"),
        SetDoc(text="of the graph", graph="/graph"),
        SetDoc(text="two\nlines", node="Mul_0"),
        SetDoc(text="", node="Neg_0"),
        SetDoc(text="of a constant", tensor="k"),
        SetDoc(text="of an input", tensor="x"),
        SetDoc(text="of an output", tensor="y"),
    )
    assert require_said(base, apply(base, edits)) == edits
    more = [
        *edits,
        Rename(kind="tensor", names={"x": "image", "b": "between"}),
        AddNode(op_type="Relu", input=("between",), output=("new",), name="new", insert=True),
        SetDoc(text="comes", node="new"),
    ]
    found = require_said(base, apply(base, more))
    assert SetDoc(text="comes", node="new") in found
    assert SetDoc(text="of an input", tensor="image") in found


def test_a_doc_string_of_an_attribute_does_not_bring_its_value_to_the_next_version() -> None:
    base = apply(chain(), ReplaceNode(node="Neg_0", op_type="LeakyRelu", attribute={"alpha": 0.5}))
    edit = SetDoc(text="steep", address="/graph/node/2/attribute/alpha")
    assert require_said(base, apply(base, edit)) == (edit,)


def test_doc_strings_in_subgraphs_and_functions() -> None:
    base = model_of(NESTED)
    edits = (
        SetDoc(text="of a function", graph="/functions/0"),
        SetDoc(text="inside", node="output:p"),
        SetDoc(text="of a branch", graph="/graph/node/1/attribute/else_branch/g"),
        SetName(node="output:u", name="doubled"),
        SetName(node="output:q", name="negated"),
    )
    assert set(map(str, require_said(base, apply(base, edits)))) == set(map(str, edits))


def test_selectors_are_names_that_the_next_version_has_too() -> None:
    base = chain()
    edits = require_said(base, apply(base, ReplaceNode(node="Neg_0", op_type="Exp")))
    grown = apply(model_of(CHAIN.replace("a = Relu (x)", "z = Sigmoid (x)  a = Relu (z)")), NameNodes())
    replayed = apply(grown, edits)
    assert [node.op_type for node in graph_of(replayed).node] == ["Sigmoid", "Relu", "Mul", "Exp", "Abs"]


@pytest.mark.parametrize("name", MODELS)
def test_other_names_of_constants_do_not_bring_their_elements_to_the_next_version(name: str) -> None:
    base = exported(name)
    prefixed = apply(base, Prefix(prefix="p/"))
    found = require_said(base, prefixed)
    assert {type(edit) for edit in found} == {Rename}
    tensor = graph_of(base).initializer[-1]
    trained = msgspec.structs.replace(tensor, raw_data=bytes(len(tensor.raw_data or b"")))
    graph = msgspec.structs.replace(graph_of(base), initializer=(*graph_of(base).initializer[:-1], trained))
    following = msgspec.structs.replace(base, graph=graph)
    assert apply(following, Script(found)) == apply(following, Prefix(prefix="p/"))


def test_what_no_edit_says_is_for_a_patch() -> None:
    base = chain()
    target = msgspec.structs.replace(base, producer_name="somebody")
    assert said(base, target).reason.startswith("no edit expresses this part")
    constant = onnxjson.Tensor(name="new", data_type=1, dims=(4,), raw_data=bytes(16))
    graph = graph_of(base)
    node = msgspec.structs.replace(graph.node[1], op_type="Sub", output=("fresh",), input=("a", "new"), name="n")
    other = msgspec.structs.replace(
        graph,
        initializer=(*graph.initializer, constant),
        node=(*graph.node[:2], node, msgspec.structs.replace(graph.node[2], input=("fresh",)), graph.node[3]),
    )
    assert said(base, msgspec.structs.replace(base, graph=other)).edits == ()


def test_equal_models_need_no_edits() -> None:
    assert said(chain(), chain()) == Expressed(())


@pytest.mark.parametrize("portion", portions(8, always=4, size=4))
@pytest.mark.parametrize("name", MODELS)
def test_random_edits_are_found_again_or_left_to_a_patch(name: str, portion: range) -> None:
    base = exported(name)
    expressed = 0
    for seed in portion:
        random = Random(seed)
        target = base
        for step in range(3):
            position = random.randrange(len(graph_of(target).node))
            value = graph_of(target).node[position].output[0]
            edit = random.choice(
                [
                    DeleteNode(node=f"@/graph/node/{position}", bypass=0),
                    AddNode(op_type="Identity", input=(value,), output=(f"new_{step}",), insert=True),
                    AddNode(op_type="Identity", input=(value,), output=(f"new_{step}",), name=f"node_{step}"),
                    AddOutput(tensor=value),
                ]
            )
            with suppress(onnxjson.OnnxJsonError):
                target = apply(target, edit)
        found = said(base, target)
        assert bool(found.edits) == (not found.reason and target != base)
        if found.edits:
            expressed += 1
            again = apply(base, found.edits)
            assert {event.kind for event in diff(again, target).events} <= {"reordered", "value-info-changed"}
    assert expressed >= 2
