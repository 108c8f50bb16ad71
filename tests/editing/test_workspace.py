"""The model while it is edited: what the index knows stays right, whatever is changed."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson.editing.workspace import Workspace
from onnxjson.model.document import Attribute, Function, Model, Node, Tensor
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.patterns.selectors import select_nodes
from tests.editing.graphs import EXPORTED, exported, model_of

NESTED = """g (float[N] x, bool c) => (float[N] y) <float[1] w = {1}> {
    a = Relu(x)
    b = If(c) <then_branch = t () => (float[N] p) { p = Add(a, w) },
               else_branch = e () => (float[N] q) {
                   inner = Mul(a, a)
                   q = If(c) <then_branch = tt () => (float[N] r) { r = Sub(inner, w) },
                              else_branch = ee () => (float[N] s) { s = Neg(a) }> }>
    y = Identity(b)
}"""


def facts(index: Index) -> dict[str, object]:
    """All that an index says."""
    said: dict[str, object] = {"addresses": [scope.address for scope in index.scopes]}
    for scope in index.scopes:
        names = {*scope.producers, *scope.inputs, *scope.initializers}
        said[scope.address] = (
            dict(scope.inputs),
            dict(scope.initializers),
            dict(scope.producers),
            {name: list(places) for name, places in scope.consumers.items()},
            {name: repr(kind) for name, kind in scope.types.items()},
            {name: [use.address for use in index.consumers(scope, name)] for name in names},
        )
    for ref in index.nodes():
        said[ref.address] = ref.node
    return said


def ask(workspace: Workspace) -> None:
    """Has the index find out everything that it may keep."""
    facts(workspace.index)
    for _ in range(12):
        for selector in ("op:Relu", "name:nothing", "input:a", "output:a"):
            try:
                workspace.select(selector)
            except SelectorError:
                continue


def changed(workspace: Workspace, scope: Scope, rng: random.Random) -> None:
    """Changes a node of a graph in place, takes one away, or puts one more."""
    position = rng.randrange(len(scope.graph.node))
    node = scope.graph.node[position]
    match rng.randrange(6):
        case 0:
            workspace.replace_nodes(scope, {position: replace(node, name=f"n{rng.randrange(9)}")})
        case 1:
            names = tuple([rng.choice(["a", "x", "w", each]) for each in node.input])
            workspace.replace_nodes(scope, {position: replace(node, input=names)})
        case 2:
            workspace.replace_nodes(
                scope, {position: replace(node, attribute=(*node.attribute, Attribute(name="z", type=2, i=1)))}
            )
        case 3:
            workspace.replace_nodes(scope, {position: replace(node, op_type=rng.choice(["Relu", "Neg"]))})
        case 4:
            workspace.replace_nodes(scope, {position: (node, replace(node, output=(f"o{rng.random()}",)))})
        case _:
            if len(scope.graph.node) > 1:
                workspace.replace_nodes(scope, {position: None})


def found(select: Callable[[], tuple[NodeRef, ...]]) -> list[str] | str:
    """The addresses of nodes, or what the error says."""
    try:
        return [ref.address for ref in select()]
    except SelectorError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(40))
def test_index_after_changes_is_that_of_a_new_model(seed: int) -> None:
    rng = random.Random(seed)
    workspace = Workspace(model_of(NESTED))
    for _ in range(8):
        if rng.random() < 0.7:
            ask(workspace)
        changed(workspace, rng.choice(workspace.index.scopes), rng)
        assert facts(workspace.index) == facts(Index(workspace.model))
        for selector in ("op:Relu", "op:Neg", "input:a", "input:w", "output:a", "re:n.", "n1", "*"):
            index = Index(workspace.model)
            assert found(lambda: workspace.select(selector)) == found(  # noqa: B023
                lambda: select_nodes(workspace.model, index, selector)  # noqa: B023
            )


def test_change_of_attributes_keeps_the_index_and_needs_no_check() -> None:
    workspace = Workspace(model_of(NESTED))
    index = workspace.index
    ref = workspace.one("op:Sub")
    workspace.replace_node(ref, replace(ref.node, doc_string="said"))
    assert workspace.index is index
    assert workspace.one("op:Sub").node.doc_string == "said"
    assert not workspace.can_be_wrong
    workspace.replace_node(ref, replace(ref.node, input=("inner", "inner")))
    assert workspace.index is index
    assert workspace.can_be_wrong


def test_nodes_in_several_graphs_are_changed_from_the_inside_out() -> None:
    workspace = Workspace(model_of(NESTED))
    main, *inner = workspace.index.scopes
    changes = {scope: {0: (scope.graph.node[0],)} for scope in inner}
    workspace.replace_nodes_in({main: {0: None, 2: None}, **changes})
    assert workspace.graph.node[0].op_type == "If"
    assert len(workspace.index.scopes) == 5


def test_graph_inside_one_that_moved_is_not_changed_by_mistake() -> None:
    workspace = Workspace(model_of(NESTED))
    main, inner = workspace.index.scopes[:2]
    workspace.replace_nodes(main, {0: None})
    with pytest.raises(AssertionError, match="inner graph is changed before"):
        workspace.replace_nodes(inner, {0: None})


def test_constants_and_values_are_found_by_name() -> None:
    workspace = Workspace(model_of(NESTED))
    found = workspace.tensor("w")
    assert isinstance(found.tensor, Tensor)
    workspace.replace_record(found.address, replace(found.tensor, doc_string="one"))
    again = workspace.tensor("w").tensor
    assert isinstance(again, Tensor)
    assert again.doc_string == "one"
    assert workspace.value("r")[1] == "r"
    with pytest.raises(SelectorError, match='nothing is called "inne"; did you mean "inner"'):
        workspace.value("inne")
    with pytest.raises(SelectorError, match="there is no graph at /graphs; did you mean"):
        workspace.scope("/graphs")


def test_fresh_name_is_none_that_any_graph_has() -> None:
    workspace = Workspace(model_of(NESTED))
    assert workspace.fresh_name("new") == "new"
    assert workspace.fresh_name("inner") == "inner_1"
    assert workspace.fresh_name("x", ["x_1"]) == "x_2"


def test_opset_is_that_of_the_function_within_a_function() -> None:
    model = model_of(NESTED)
    body = Function(
        name="f",
        domain="local",
        node=(Node(op_type="Relu"),),
        opset_import=(replace(model.opset_import[0], version=11),),
    )
    workspace = Workspace(replace(model, functions=(body,)))
    assert workspace.opset(workspace.scope("/functions/0"), "") == 11
    assert workspace.opset(workspace.main, "ai.onnx") == 20
    assert workspace.opset(None, "other") is None


def test_model_without_a_graph_says_so() -> None:
    workspace = Workspace(Model())
    for ask_for in (lambda: workspace.graph, lambda: workspace.main):
        with pytest.raises(EditError, match="the model has no graph"):
            ask_for()


def test_files_are_those_of_the_folder(tmp_path: Path) -> None:
    workspace = Workspace(Model())
    with pytest.raises(EditError, match="without a folder"):
        workspace.file("a.npy")


@pytest.mark.parametrize("name", EXPORTED)
def test_few_and_many_questions_have_the_same_answers(name: str) -> None:
    model = exported(name)
    index, often = Index(model), Index(model)
    for field, text in (("op_type", "Add"), ("name", "/a"), ("input", ""), ("output", "x")):
        for _ in range(12):
            found = often.nodes_with(field, text)
        assert list(found) != [] or not index.nodes_with(field, text)
        assert [ref.address for ref in found] == [ref.address for ref in index.nodes_with(field, text)]
    for scope, other in zip(index.scopes, often.scopes, strict=True):
        for value in [*scope.producers][:20]:
            assert list(scope.uses(value)) == list(other.consumers.get(value, ()))
