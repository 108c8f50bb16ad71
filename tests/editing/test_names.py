"""rename, name-nodes, prefix. Acceptance of what sor4onnx and sng4onnx are for."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.editing.applying import apply, run
from onnxjson.editing.names import NameNodes, Prefix, Rename
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    NodeDeviceConfiguration,
    OperatorSetId,
    ShardingSpec,
    StringStringEntry,
    Tensor,
    TensorAnnotation,
    TrainingInfo,
    ValueInfo,
)
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Index
from onnxjson.model.types import format_type, parse_type
from onnxjson.model.walking import walk
from tests.editing.graphs import EXPORTED, exported, model_of, require_same_results, require_valid, sample_inputs

CHAIN = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> {
   [first] a = Mul(x, w)
   [second] b = Relu(a)
   [third] y = Add(b, a)
}"""


def _renamed(model: Model, kind: str, old: str, new: str) -> Model:
    return apply(model, Rename(kind=kind, from_=old, to=new))  # type: ignore[arg-type]


def _names(model: Model) -> set[str]:
    return {name for node in walk(model, Node) for name in (*node.input, *node.output)}


def test_tensor_takes_another_name_wherever_it_is_used() -> None:
    model = _renamed(model_of(CHAIN), "tensor", "a", "scaled")
    assert [(node.input, node.output) for node in model.graph.node] == [  # type: ignore[union-attr]
        (("x", "w"), ("scaled",)),
        (("scaled",), ("b",)),
        (("b", "scaled"), ("y",)),
    ]
    require_valid(model)


def test_every_occurrence_in_names_of_tensors_and_nodes_is_replaced() -> None:
    before = model_of("""g (float[2] x_x) => (float[2] y) { [x_node] x_a_x = Abs(x_x) [other] y = Neg(x_a_x) }""")
    after = apply(before, Rename(kind="any", from_="x", to="z", parts=True))
    require_valid(after)
    assert [(node.name, node.output) for node in walk(after, Node)] == [("z_node", ("z_a_z",)), ("other", ("y",))]
    assert after.graph is not None
    assert before.graph is not None
    assert [each.type for each in after.graph.output] == [each.type for each in before.graph.output]
    only_nodes = apply(before, Rename(kind="any", from_="other", to="last"))
    assert [node.name for node in walk(only_nodes, Node)] == ["x_node", "last"]
    with pytest.raises(SelectorError, match='no node is called "nothing"'):
        apply(before, Rename(kind="any", from_="nothing", to="z"))
    with pytest.raises(EditError, match="leave out re:"):
        apply(before, Rename(kind="any", from_="re:x", to="z", parts=True))


@pytest.mark.parametrize(("kind", "old"), [("input", "x"), ("output", "y"), ("tensor", "w"), ("tensor", "x")])
def test_interface_and_constants_take_other_names(kind: str, old: str) -> None:
    before = model_of(CHAIN)
    after = _renamed(before, kind, old, "other")
    require_valid(after)
    assert old not in _names(after)
    inputs = sample_inputs(before)
    require_same_results(before, after, inputs, **({"x": "other"} if old == "x" else {}))


def test_inner_tensor_is_no_input_and_no_output() -> None:
    for kind in ("input", "output"):
        with pytest.raises(SelectorError, match=f'no {kind} is called "a"'):
            _renamed(model_of(CHAIN), kind, "a", "b2")


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("a", "x"), ("a", "w"), ("y", "a")])
def test_sor4onnx_two_names_never_become_one(old: str, new: str) -> None:
    with pytest.raises(EditError, match="collide"):
        _renamed(model_of(CHAIN), "tensor", old, new)


def test_collisions_are_all_listed() -> None:
    with pytest.raises(EditError) as caught:
        apply(model_of(CHAIN), Rename(kind="tensor", from_="re:[ab]", to="x"))
    assert '"a"' in str(caught.value)
    assert '"b"' in str(caught.value)


def test_two_names_can_be_exchanged() -> None:
    before = model_of(CHAIN)
    after = apply(before, Rename(kind="tensor", names={"a": "b", "b": "a"}))
    require_valid(after)
    require_same_results(before, after, sample_inputs(before))


def test_sor4onnx_renaming_does_not_happen_twice() -> None:
    model = model_of(CHAIN)
    once = apply(model, Rename(kind="tensor", from_="re:a", to="abbb"))
    assert _names(once) == {"x", "w", "abbb", "b", "y"}
    with pytest.raises(SelectorError):
        apply(once, Rename(kind="tensor", from_="re:a", to="abbb"))


def test_sor4onnx_regular_expressions_have_groups_and_special_characters_are_theirs_alone() -> None:
    model = model_of("g (float x) => (float y) { a.1 = Relu(x) axb = Relu(a.1) y = Relu(axb) }".replace("a.1", "a_1"))
    model = _renamed(model, "tensor", "a_1", "a.b")
    model = _renamed(model, "tensor", "a.b", "block.1")
    assert "axb" in _names(model)
    model = _renamed(model, "tensor", r"re:(?P<kind>block)\.(\d+)", r"\2/\g<kind>\\")
    assert "1/block\\" in _names(model)


def test_group_that_is_not_there_is_said() -> None:
    with pytest.raises(EditError, match="not a group of the pattern"):
        _renamed(model_of(CHAIN), "tensor", "re:(a)", r"\2")


IF = """g (bool c, float[2] x) => (float[2] y) {
   a = Relu(x)
   y = If (c) <then_branch = t () => (float[2] r) { n = Neg(a) r = Abs(n) },
               else_branch = e () => (float[2] r) { a2 = Exp(a) r = Sin(a2) }>
}"""


def test_subgraphs_follow_a_name_of_the_graph_around_them() -> None:
    model = _renamed(model_of(IF), "tensor", "a", "outer")
    assert "a" not in _names(model)
    assert sum(name == "outer" for node in walk(model, Node) for name in node.input) == 2
    require_valid(model)


def test_name_that_a_subgraph_has_itself_is_not_taken_from_around_it() -> None:
    with pytest.raises(EditError, match="collide"):
        _renamed(model_of(IF), "tensor", "a", "n")
    with pytest.raises(EditError, match="collide"):
        _renamed(model_of(IF), "tensor", "a2", "x")


def test_one_name_of_several_graphs_changes_in_all_or_within_one() -> None:
    both = run(model_of(IF), Rename(kind="tensor", from_="r", to="s"))
    assert both.matches == 2
    require_valid(both.model)
    one = run(model_of(IF), Rename(kind="tensor", from_="r", to="s", within="/graph/node/1/attribute/then_branch/g"))
    assert one.matches == 1
    require_valid(one.model)


FUNCTION = """g (float[2] x) => (float[2] y) { a = local.twice(x) y = Relu(a) }
<domain: "local", opset_import: ["" : 20]> twice (x) => (a) { z = Neg(x) a = Add(z, x) }"""


def test_functions_have_names_of_their_own() -> None:
    before = model_of(FUNCTION)
    after = apply(before, Rename(kind="tensor", from_="x", to="given", within="/functions/0"))
    assert after.functions[0].input == ("given",)
    assert after.functions[0].node[1].input == ("z", "given")
    assert after.graph is before.graph
    require_same_results(before, after, sample_inputs(before))
    both = apply(before, Rename(kind="tensor", from_="x", to="given"))
    require_valid(both)
    assert "x" not in _names(both)


def _all_references() -> Model:
    spec = NodeDeviceConfiguration(configuration_id="d", sharding_spec=(ShardingSpec(tensor_name="w"),))
    node = Node(op_type="Mul", input=("x", "w"), output=("y",), device_configurations=(spec,))
    annotations = (
        TensorAnnotation("w", (StringStringEntry("SCALE_TENSOR", "s"),)),
        TensorAnnotation("y", (StringStringEntry("SCALE_TENSOR", "w"),)),
    )
    graph = Graph(
        node=(node,),
        name="g",
        input=(ValueInfo("x", parse_type("float32[2]")),),
        output=(ValueInfo("y", parse_type("float32[2]")),),
        initializer=(Tensor((2,), 1, raw_data=bytes(8), name="w"), Tensor((), 1, raw_data=bytes(4), name="s")),
        value_info=(ValueInfo("w", parse_type("float32[2]")),),
        quantization_annotation=annotations,
    )
    step = Graph(node=(Node(op_type="Neg", input=("w",), output=("w_new",)),), name="a", output=(ValueInfo("w_new"),))
    training = TrainingInfo(algorithm=step, update_binding=(StringStringEntry("w", "w_new"),))
    return Model(ir_version=10, graph=graph, opset_import=(OperatorSetId("", 20),), training_info=(training,))


def test_annotations_training_and_sharding_follow() -> None:
    model = _renamed(_all_references(), "tensor", "w", "weight")
    assert '"w"' not in onnxjson.dumps(model)
    assert onnxjson.dumps(model).count('"weight"') == onnxjson.dumps(_all_references()).count('"w"')
    model = _renamed(model, "tensor", "w_new", "updated")
    assert model.training_info[0].update_binding[0].value == "updated"
    require_valid(model, deep=False)


def test_dimension_takes_another_name_everywhere_and_in_expressions() -> None:
    before = model_of("g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }")
    graph = before.graph
    assert graph is not None
    info = ValueInfo("z", parse_type("float32['2*N + M',N]"))
    before = replace(before, graph=replace(graph, value_info=(info,)))
    after = _renamed(before, "dim", "N", "batch")
    assert after.graph is not None
    assert format_type(after.graph.value_info[0].type) == "float32['2*batch + M',batch]"  # type: ignore[arg-type]
    assert [format_type(each.type) for each in (*after.graph.input, *after.graph.output)] == ["float32[batch,4]"] * 2  # type: ignore[arg-type]
    with pytest.raises(EditError, match="collide"):
        _renamed(model_of("g (float[N,M] x) => (float[N,M] y) { y = Relu(x) }"), "dim", "N", "M")
    with pytest.raises(SelectorError, match='no dimension is called "K"'):
        _renamed(before, "dim", "K", "L")


def test_keys_of_metadata_take_other_names() -> None:
    entries = (StringStringEntry("a", "1"), StringStringEntry("b", "2"))
    model = Model(ir_version=8, graph=Graph(name="g", metadata_props=entries), metadata_props=entries[:1])
    after = run(model, Rename(kind="metadata", from_="a", to="c"))
    assert after.matches == 2
    assert [each.key for each in after.model.graph.metadata_props] == ["c", "b"]  # type: ignore[union-attr]
    with pytest.raises(EditError, match="collide"):
        _renamed(model, "metadata", "a", "b")


def test_node_takes_another_name_and_refuses_that_of_its_neighbour() -> None:
    model = _renamed(model_of(CHAIN), "node", "re:(first|second)", r"block/\1")
    assert [node.name for node in model.graph.node] == ["block/first", "block/second", "third"]  # type: ignore[union-attr]
    with pytest.raises(EditError, match="collide"):
        _renamed(model, "node", "third", "block/first")


def test_table_of_names_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text('a,"x, scaled"\nb,rectified\n', encoding="utf-8")
    edit = Rename(kind="tensor", mapping="names.csv")
    model = apply(model_of(CHAIN), edit, folder=tmp_path)
    assert {"x, scaled", "rectified"} <= _names(model)
    (tmp_path / "names.csv").write_text("a,b\na,c\n", encoding="utf-8")
    with pytest.raises(EditError, match='line 2 repeats "a"'):
        apply(model_of(CHAIN), edit, folder=tmp_path)
    with pytest.raises(EditError, match="no file is read"):
        apply(model_of(CHAIN), edit)


def test_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(SelectorError, match='did you mean "first"'):
        _renamed(model_of(CHAIN), "node", "frist", "x")


@pytest.mark.parametrize("name", ["encoder_dynamo.onnx", "mobile_ts.onnx", "branches_ts.onnx"])
def test_renaming_every_tensor_of_an_export_keeps_its_function(name: str) -> None:
    before = exported(name)
    after = apply(before, Rename(kind="tensor", from_="re:(.*)", to=r"renamed/\1"))
    require_valid(after)
    inputs = sample_inputs(before, {"batch": 2, "length": 5})
    require_same_results(before, after, inputs, **{each: f"renamed/{each}" for each in inputs})
    assert apply(after, Rename(kind="tensor", from_="re:renamed/(.*)", to=r"\1")) == before


def test_sng4onnx_every_node_gets_a_name_of_its_own() -> None:
    model = model_of(
        """g (bool c, float[2] x) => (float[2] y) {
           [Relu_0] a = Relu(x)
           b = Relu(a)
           y = If (c) <then_branch = t () => (float[2] r) { r = Relu(b) },
                       else_branch = e () => (float[2] s) { s = local.f(b) }>
        }
        <domain: "local", opset_import: ["" : 20]> f (x) => (y) { y = Relu(x) }"""
    )
    result = run(model, NameNodes())
    names = [node.name for node in walk(result.model, Node)]
    assert len(set(names)) == len(names) == 6
    assert "Relu_0" in names
    assert result.matches == 5
    assert apply(model, NameNodes()) == result.model
    assert run(result.model, NameNodes()) == (result.model, ((0, ("every node has a name",)),), {})
    bare = apply(result.model, Rename(kind="node", from_="re:(.*)", to=r"\1_"))
    assert bare.functions[0].domain == model.functions[0].domain
    require_valid(result.model)


@pytest.mark.parametrize("name", EXPORTED)
def test_sng4onnx_leaves_all_else_of_an_export(name: str) -> None:
    before = exported(name)
    after = apply(before, NameNodes(prefix="node/"))
    names = [node.name for node in walk(after, Node)]
    assert all(names)
    nodes = zip(walk(before, Node), walk(after, Node), strict=True)
    assert all(one.name == other.name or not one.name for one, other in nodes)


def test_prefix_stands_before_inner_names_and_leaves_the_interface() -> None:
    before = model_of(IF.replace("a = Relu(x)", "[relu] a = Relu(x)"))
    after = apply(before, Prefix(prefix="m/"))
    assert after.graph is not None
    assert [each.name for each in (*after.graph.input, *after.graph.output)] == ["c", "x", "y"]
    assert after.graph.node[0].output == ("m/a",)
    assert after.graph.node[0].name == "m/relu"
    require_valid(after)
    every = apply(before, Prefix(prefix="m/", kinds=("tensor", "node", "input", "output")))
    assert all(name.startswith("m/") for name in _names(every))
    assert apply(after, Prefix(prefix="m/")).graph.node[0].output == ("m/m/a",)  # type: ignore[union-attr]


def test_prefix_leaves_functions_alone() -> None:
    before = model_of(FUNCTION)
    after = apply(before, Prefix(prefix="m/", kinds=("tensor",)))
    assert after.functions is before.functions
    require_same_results(before, after, sample_inputs(before))


def test_default_of_a_functions_attribute_with_a_graph_follows() -> None:
    inner = Graph(node=(Node(op_type="Neg", input=("x",), output=("r",)),), name="d", output=(ValueInfo("r"),))
    function = Function(
        name="f",
        domain="local",
        input=("x",),
        output=("y",),
        attribute_proto=(Attribute(name="b", type=5, g=inner),),
        node=(Node(op_type="Relu", input=("x",), output=("y",)),),
        opset_import=(OperatorSetId("", 20),),
    )
    model = Model(ir_version=10, graph=Graph(name="g"), functions=(function,), opset_import=(OperatorSetId("", 20),))
    after = _renamed(model, "tensor", "x", "z")
    default = after.functions[0].attribute_proto[0].g
    assert default is not None
    assert default.node[0].input == ("z",)
    assert len(Index(after).scopes) == 3


def test_broken_model_can_be_renamed_and_stays_as_broken() -> None:
    nodes = (Node(op_type="Relu", input=("nowhere",), output=("y",)), Node(op_type="Neg", input=("y",), output=("y",)))
    model = Model(ir_version=10, graph=Graph(name="g", node=nodes, output=(ValueInfo("y"),)))
    after = _renamed(model, "tensor", "y", "z")
    assert _names(after) == {"nowhere", "z"}
    with pytest.raises(EditError, match="used and not defined"):
        _renamed(model, "tensor", "y", "nowhere")
