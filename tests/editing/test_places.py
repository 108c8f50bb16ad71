"""Nodes and tensors at their places, and their changes: `Model.select`, `Model.edit`, and constructors of records."""

import numpy
import pytest
from numpy.typing import ArrayLike
from onnx import TensorProto, helper

import onnxjson
from onnxjson import EditError, Model, ParameterError, SelectorError, edits
from onnxjson.example import make_example


@pytest.fixture
def model() -> Model:
    return onnxjson.from_proto(make_example())


def _operators(model: Model) -> list[str | None]:
    assert model.graph is not None
    return [node.op_type for node in model.graph.node]


def _nested() -> Model:
    """An If whose branches use a value of the main graph, between two Identity nodes."""
    branches = [
        helper.make_graph(
            [helper.make_node(operator, ["x"], ["y"], name=operator)],
            operator,
            [],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        )
        for operator in ("Relu", "LeakyRelu")
    ]
    nodes = [
        helper.make_node("Identity", ["a"], ["x"], name="first"),
        helper.make_node("If", ["condition"], ["z"], name="if", then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Identity", ["z"], ["out"], name="last"),
    ]
    inputs = [
        helper.make_tensor_value_info("a", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
    return onnxjson.from_proto(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs)))


def test_place_knows_its_surroundings(model: Model) -> None:
    place = model.node("op:Gemm")
    assert (place.address, place.node.name, place.graph) == ("/graph/node/4", "/fc", model.graph)
    assert [None if each is None else each.node.name for each in place.producers] == ["/flatten", None, None]
    assert [each.node.name for each in place.consumers] == ["/softmax"]
    assert repr(place) == "<Place /graph/node/4: Gemm /fc>"


def test_places_are_a_sequence_in_the_order_of_the_file(model: Model) -> None:
    places = model.select("op:*")
    assert [each.node for each in places] == list(model.graph.node)  # type: ignore[union-attr]
    assert (len(places), places[1].node.op_type, places[-1].node.op_type) == (6, "LeakyRelu", "Softmax")
    assert [each.node.op_type for each in places[:2]] == ["Conv", "LeakyRelu"]


def test_some_places_are_changed_together(model: Model) -> None:
    places = model.select("op:*")
    changed = onnxjson.Places(each for each in places if each.node.op_type != "Conv").update(doc_string="other")
    assert [node.doc_string for node in changed.graph.node] == [None, *["other"] * 5]  # type: ignore[union-attr]
    with pytest.raises(EditError, match="there are no nodes to change"):
        onnxjson.Places().delete()


def test_consumers_in_subgraphs_are_found() -> None:
    assert [each.node.name for each in _nested().node("first").consumers] == ["LeakyRelu", "Relu"]


def test_selecting_nothing_or_too_much_is_an_error(model: Model) -> None:
    with pytest.raises(SelectorError):
        model.select("op:Convv")
    with pytest.raises(SelectorError):
        model.node("op:*")


def test_change_returns_a_new_model_and_shares_the_rest(model: Model) -> None:
    changed = model.select("op:LeakyRelu").set_attribute("alpha", 0.2)
    assert changed.node("op:LeakyRelu").node.attributes["alpha"] == pytest.approx(0.2)
    assert model.node("op:LeakyRelu").node.attributes["alpha"] == pytest.approx(0.01)
    assert changed.graph.node[0] is model.graph.node[0]  # type: ignore[union-attr]


def test_each_change_of_a_place(model: Model) -> None:
    conv, leaky = model.node("op:Conv"), model.node("op:LeakyRelu")
    assert "alpha" not in leaky.remove_attribute("alpha").node("op:LeakyRelu").node.attributes
    assert _operators(leaky.delete())[:2] == ["Conv", "MaxPool"]
    assert conv.update(name="first").node("first").node.op_type == "Conv"
    relu = onnxjson.node("Relu", leaky.node.input, leaky.node.output)
    assert leaky.replace(relu).node("op:Relu").node == relu
    two = (onnxjson.node("Relu", "features", "between"), onnxjson.node("Neg", "between", "active"))
    assert _operators(leaky.replace(*two))[:3] == ["Conv", "Relu", "Neg"]


def test_change_that_would_break_the_model_is_refused(model: Model) -> None:
    with pytest.raises(EditError, match="the model would be broken"):
        model.node("op:LeakyRelu").replace()
    with pytest.raises(EditError, match="the model would be broken"):
        model.node("op:LeakyRelu").update(input=["nothing"])


def test_editor_makes_one_patch_of_many_changes() -> None:
    model = onnxjson.from_proto(make_example(unfused=True))
    with model.edit() as editor:
        for add in editor.select("op:Add"):
            matmul = add.producers[0]
            assert matmul is not None
            gemm = onnxjson.node("Gemm", [*matmul.node.input, add.node.input[1]], add.node.output)
            add.replace(gemm, fused=[matmul])
            assert (add.node, add.address) == (gemm, "/graph/node/4")
        editor.tensor("image").rename("picture")
        editor.rewrite(edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.1), [edits.NameNodes()])
    assert _operators(editor.model)[-2:] == ["Gemm", "Softmax"]
    assert editor.patch.apply(model) == editor.model


def test_editor_checks_the_model_at_the_end(model: Model) -> None:
    with pytest.raises(EditError, match="the model would be broken"), model.edit() as editor:
        editor.node("op:LeakyRelu").replace()
    with model.edit() as editor:
        editor.node("op:LeakyRelu").replace()
        editor.node("op:Conv").update(output=["active"])


def test_places_of_an_editor_follow_their_nodes() -> None:
    model = _nested()
    with model.edit() as editor:
        first, inner, last = (editor.node(name) for name in ("first", "LeakyRelu", "last"))
        first.replace(onnxjson.node("Abs", "a", "b"), onnxjson.node("Identity", "b", "x"))
        assert inner.address == "/graph/node/2/attribute/else_branch/g/node/0"
        inner.update(name="inner")
        inner.set_attribute("alpha", 0.5)
        inner.set_attribute("alpha", 2)
        last.update(name="end")
        assert (last.address, last.node.name) == ("/graph/node/3", "end")
        assert (inner.node.name, dict(inner.node.attributes)) == ("inner", {"alpha": 2.0})
        editor.tensor("x").insert("Exp")
        assert [each.node.op_type for each in inner.producers if each is not None] == ["Exp"]
    assert editor.patch.apply(model) == editor.model


def test_deleted_place_says_so(model: Model) -> None:
    with model.edit() as editor:
        place = editor.node("op:LeakyRelu")
        place.delete()
        with pytest.raises(EditError, match="is no longer in the model"):
            place.update(name="x")


def test_many_places_are_deleted_one_by_one() -> None:
    nodes = [helper.make_node("Identity", [f"v{i}"], [f"v{i + 1}"]) for i in range(50)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("v0", "v50")]
    model = onnxjson.from_proto(helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:])))
    with model.edit() as editor:
        for place in editor.select("op:*")[:-1]:
            place.delete()
    assert _operators(editor.model) == ["Identity"]


def test_tensor_knows_its_surroundings(model: Model) -> None:
    value = model.tensor("features")
    assert value.producer is not None
    assert (value.producer.node.op_type, [each.node.op_type for each in value.consumers]) == ("Conv", ["LeakyRelu"])
    assert (value.tensor, value.type) == (None, None)
    assert str(model.tensor("image").type) == "float32[N,1,8,8]"
    with pytest.raises(EditError, match='"features" is not a constant'):
        value.numpy()


def test_each_change_of_a_tensor(model: Model) -> None:
    bias = model.tensor("fc.bias")
    doubled = bias.set_values(bias.numpy() * 2)
    assert (doubled.tensor("fc.bias").numpy() == bias.numpy() * 2).all()
    assert doubled.tensor("fc.bias").tensor.name == "fc.bias"  # type: ignore[union-attr]
    assert bias.set_values([1.5] * 10).tensor("fc.bias").numpy().dtype == numpy.float32
    with pytest.raises(EditError, match="are float32 and float16"):
        bias.set_values([0.1] * 10, "float16")
    with pytest.raises(EditError, match=r"0\.1"):
        bias.set_values(numpy.full(10, 0.1))
    with pytest.raises(EditError, match=r"^set-tensor: fc\.bias: the array has the shape \[2\], the"):
        bias.set_values([1, 2])
    single = bias.set_values([1], "float32[1]")
    assert single.tensor("fc.bias").set_values(0.25).tensor("fc.bias").numpy().tolist() == [0.25]
    assert bias.rename("b").node("op:Gemm").node.input[2] == "b"
    inserted = model.tensor("features").insert("Clip", output="clipped")
    assert inserted.tensor("clipped").producer.node.input == ("features",)  # type: ignore[union-attr]
    assert inserted.node("op:LeakyRelu").node.input == ("clipped",)


def test_rewrite_applies_edits_scripts_and_patches(model: Model) -> None:
    edit = edits.DeleteNode(node="op:LeakyRelu")
    patch = edits.plan(model, edit)
    script = edits.Script((edit,))
    assert model.rewrite(edit) == model.rewrite(patch) == model.rewrite(script) == model.rewrite([edit])
    assert model.rewrite() == model


def test_index_is_the_same_as_long_as_it_is_used(model: Model) -> None:
    index = model.index
    assert model.index is index
    assert index.main is not None
    assert index.producer(index.main, "features") is not None


@pytest.mark.parametrize(
    ("attributes", "values"),
    [
        ({"pads": [1, 1], "auto_pad": "VALID"}, {"pads": (1, 1), "auto_pad": "VALID"}),
        ({"group": numpy.int64(2)}, {"group": 2}),
        ({"kernel_shape": numpy.array([3, 3])}, {"kernel_shape": (3, 3)}),
        ({"group": True}, {"group": 1}),
    ],
)  # fmt: skip
def test_node_has_the_types_of_its_operator(attributes: dict[str, object], values: dict[str, object]) -> None:
    node = onnxjson.node("Conv", ["x", "w"], "y", name="c", **attributes)  # type: ignore[arg-type]
    assert (node.input, node.output, node.name) == (("x", "w"), ("y",), "c")
    assert node.attributes == values


def test_node_of_an_unknown_operator_has_the_types_of_its_values() -> None:
    branch = onnxjson.Graph(name="g")
    node = onnxjson.node(
        "Own", domain="d", f=1.5, i=1, s="a", fs=[1, 0.5], ss=[b"\xff"], t=numpy.eye(2), g=branch, gs=[branch]
    )
    assert {each.name: each.type for each in node.attribute} == {
        "f": 1, "i": 2, "s": 3, "fs": 6, "ss": 8, "t": 4, "g": 5, "gs": 10
    }  # fmt: skip
    assert (node.attributes["fs"], node.attributes["ss"], node.attributes["g"]) == ((1.0, 0.5), (b"\xff",), branch)
    assert onnxjson.node("Own", attributes={"name": "x", "inputs": 2}).attributes == {"name": "x", "inputs": 2}


def test_node_with_a_tensor_attribute_takes_values() -> None:
    assert onnxjson.node("Constant", (), "c", value=[1, 2]).attributes["value"].numpy().tolist() == [1, 2]
    with pytest.raises(ParameterError, match="pads"):
        onnxjson.node("Conv", pads=1.5)


def test_tensor_and_value_are_made_of_python_values() -> None:
    values: tuple[ArrayLike, ...] = (1, 1.5, [True], "a", numpy.float64(1))
    assert [onnxjson.tensor("w", each).dtype for each in values] == [
        "int64", "float32", "bool", "string", "float64"
    ]  # fmt: skip
    half = onnxjson.tensor("w", [[0.1], [2]], "bfloat16")
    assert (half.name, half.dtype, half.shape) == ("w", "bfloat16", (2, 1))
    assert str(onnxjson.value("x", "float32", ["N", 3, None]).type) == "float32[N,3,?]"
    assert str(onnxjson.value("x", "seq(float32[N])").type) == "seq(float32[N])"


def test_records_are_put_together_to_a_model() -> None:
    graph = onnxjson.Graph(
        node=(onnxjson.node("Add", ["x", "one"], "y"),),
        name="g",
        initializer=(onnxjson.tensor("one", [1.0]),),
        input=(onnxjson.value("x", "float32", ["N"]),),
        output=(onnxjson.value("y", "float32", ["N"]),),
    )
    model = Model(ir_version=10, opset_import=(onnxjson.OperatorSetId("", 21),), graph=graph)
    assert onnxjson.run(model, {"x": numpy.array([1, 2], numpy.float32)}).arrays["y"].tolist() == [2, 3]
