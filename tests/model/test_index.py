"""The use-def index: who makes a value, who takes it, over all graphs of a model."""

import pytest
from msgspec.structs import replace

from onnxjson.codecs.serde import parse
from onnxjson.model.document import (
    Attribute,
    Dimension,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    Tensor,
    TensorShape,
    TensorType,
    TrainingInfo,
    Type,
    ValueInfo,
)
from onnxjson.model.index import Index, NodeRef, Scope, Use
from onnxjson.model.walking import walk
from tests.editing.graphs import model_of
from tests.generation.messages import generate, size_of

FLOAT = Type(tensor_type=TensorType(elem_type=1))


def _if(*branches: Graph, condition: str = "c") -> Node:
    attributes = tuple(Attribute(name=f"branch{number}", type=5, g=graph) for number, graph in enumerate(branches))
    return Node(op_type="If", input=(condition,), output=("chosen",), attribute=attributes)


DEEP = Graph(node=(Node(op_type="Neg", input=("x",), output=("n",)),), output=(ValueInfo(name="n"),))
THEN = Graph(
    node=(Node(op_type="Abs", input=("made",), output=("a",)), _if(DEEP, condition="a")), output=(ValueInfo(name="w"),)
)
ELSE = Graph(node=(Node(op_type="Exp", input=("x",), output=("x",)),), input=(ValueInfo(name="x"),))
MAIN = Graph(
    node=(
        Node(op_type="Relu", input=("x", ""), output=("made", "")),
        _if(THEN, ELSE, condition="made"),
        Node(op_type="Add", input=("made", "made"), output=("sum",)),
    ),
    input=(ValueInfo(name="x", type=FLOAT), ValueInfo(name="w")),
    output=(ValueInfo(name="sum"), ValueInfo(name="made")),
    initializer=(Tensor(name="w"),),
    sparse_initializer=(SparseTensor(values=Tensor(name="s")), SparseTensor()),
)
BODY = Function(name="f", input=("x",), output=("y",), node=(Node(op_type="Sin", input=("x",), output=("y",)),))
MODEL = Model(
    graph=MAIN, functions=(BODY,), training_info=(TrainingInfo(algorithm=Graph(node=(Node(input=("made",)),))),)
)


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(MODEL)


def _scope(index: Index, address: str) -> Scope:
    return next(scope for scope in index.scopes if scope.address == address)


def test_every_graph_has_its_kind_and_address_the_outer_before_the_inner(index: Index) -> None:
    text = "/graph/node/1/attribute/branch0/g"
    assert [(scope.kind, scope.address) for scope in index.scopes] == [
        ("main", "/graph"),
        ("subgraph", text),
        ("subgraph", f"{text}/node/1/attribute/branch0/g"),
        ("subgraph", "/graph/node/1/attribute/branch1/g"),
        ("function", "/functions/0"),
        ("training", "/training_info/0/algorithm"),
    ]


def test_nodes_come_as_in_the_file_those_of_subgraphs_after_the_node_that_has_them(index: Index) -> None:
    operators = [ref.node.op_type for ref in index.nodes()]
    assert operators == ["Relu", "If", "Abs", "If", "Neg", "Exp", "Add", "Sin", None]
    assert [ref.address for ref in index.nodes()][2] == "/graph/node/1/attribute/branch0/g/node/0"


def test_consumers_of_a_value_include_outputs_and_the_graphs_inside(index: Index) -> None:
    main = index.scopes[0]
    assert [use.address for use in index.consumers(main, "made")] == [
        "/graph/node/1/input/0",
        "/graph/node/2/input/0",
        "/graph/node/2/input/1",
        "/graph/output/1",
        "/graph/node/1/attribute/branch0/g/node/0/input/0",
        "/training_info/0/algorithm/node/0/input/0",
    ]
    assert [use.address for use in index.consumers(main, "w")] == ["/graph/node/1/attribute/branch0/g/output/0"]


def test_name_belongs_to_the_innermost_graph_that_defines_it(index: Index) -> None:
    main = index.scopes[0]
    deep = _scope(index, "/graph/node/1/attribute/branch0/g/node/1/attribute/branch0/g")
    other = _scope(index, "/graph/node/1/attribute/branch1/g")
    assert index.defining_scope(deep, "x") is main
    assert index.defining_scope(other, "x") is other
    assert [use.scope for use in index.consumers(main, "x")] == [main, deep]
    assert index.consumers(other, "x") == (Use(other, 0, 0),)
    assert index.defining_scope(_scope(index, "/functions/0"), "made") is None
    assert index.defining_scope(deep, "nowhere") is None


def test_producer_is_the_node_and_none_for_what_no_node_makes(index: Index) -> None:
    main = index.scopes[0]
    scope = _scope(index, "/graph/node/1/attribute/branch0/g")
    assert index.producer(scope, "made") == NodeRef(main, 0)
    assert index.producer(scope, "w") is None
    assert index.producer(scope, "s") is None
    assert index.producer(scope, "x") is None
    assert index.producer(scope, "nowhere") is None


def test_empty_names_are_neither_made_nor_taken(index: Index) -> None:
    main = index.scopes[0]
    assert not main.defines("")
    assert index.consumers(main, "") == ()


def test_initializers_dense_and_sparse_are_found_by_name(index: Index) -> None:
    main = index.scopes[0]
    assert main.initializer("w") == Tensor(name="w")
    assert main.initializer("s") == SparseTensor(values=Tensor(name="s"))
    assert main.initializer("x") is None
    assert _scope(index, "/functions/0").initializer("x") is None


def test_types_are_those_that_the_nearest_graph_around_says(index: Index) -> None:
    deep = _scope(index, "/graph/node/1/attribute/branch0/g/node/1/attribute/branch0/g")
    other = _scope(index, "/graph/node/1/attribute/branch1/g")
    assert index.type_of(deep, "x") is FLOAT
    assert index.type_of(other, "x") is None


def test_of_two_definitions_the_first_counts() -> None:
    nodes = (Node(op_type="A", output=("y", "y")), Node(op_type="B", output=("y",)))
    index = Index(Model(graph=Graph(node=nodes)))
    assert index.scopes[0].producers == {"y": (0, 0)}


def test_graphs_in_lists_and_in_defaults_of_functions_are_found() -> None:
    graphs = (Graph(name="p"), Graph(name="q"))
    node = Node(attribute=(Attribute(name="a/b", graphs=graphs),))
    default = Attribute(name="body", g=Graph(name="r", node=(Node(input=("x",)),)))
    function = Function(node=(node,), input=("x",), attribute_proto=(default,))
    index = Index(Model(functions=(function,)))
    assert [scope.address for scope in index.scopes] == [
        "/functions/0",
        "/functions/0/attribute_proto/0/g",
        "/functions/0/node/0/attribute/a~1b/graphs/0",
        "/functions/0/node/0/attribute/a~1b/graphs/1",
    ]
    assert len(index.consumers(index.scopes[0], "x")) == 1


@pytest.mark.parametrize("seed", range(30))
def test_any_model_has_an_index_of_all_its_nodes(seed: int) -> None:
    model = parse(generate(seed, size_of(seed))).model
    index = Index(model)
    assert sorted(id(ref.node) for ref in index.nodes()) == sorted(id(node) for node in walk(model, Node))
    for scope in index.scopes:
        for name in scope.consumers:
            home = index.defining_scope(scope, name)
            if home is not None:
                assert any(use.scope is scope for use in index.consumers(home, name))


def test_deep_subgraphs_need_no_stack() -> None:
    graph = Graph(node=(Node(input=("x",)),))
    for _ in range(2000):
        graph = Graph(node=(Node(attribute=(Attribute(name="g", g=graph),)),))
    index = Index(Model(graph=graph))
    assert sum(1 for _ in index.nodes()) == 2001


@pytest.mark.timeout(120)
def test_100_000_nodes_are_indexed_in_a_moment() -> None:
    nodes = tuple(Node(op_type="Add", input=(f"v{n}", f"v{n // 2}"), output=(f"v{n + 1}",)) for n in range(100_000))
    index = Index(Model(graph=Graph(node=nodes)))
    assert len(index.consumers(index.scopes[0], "v5")) == 3
    assert index.producer(index.scopes[0], "v100000") == NodeRef(index.scopes[0], 99_999)


def test_an_index_takes_over_what_holds_for_the_next_model_too() -> None:
    model = model_of("g (float[N] x) => (float[N] y) <float[4] w = {1, 2, 3, 4}> {\n  a = Relu(x)\n  y = Add(a, w)\n}")
    before = Index(model)
    before.scopes[0].find_names()
    assert before.scopes[0].knows_names
    graph = model.graph
    assert graph is not None
    fewer = replace(model, graph=replace(graph, node=graph.node[1:]))
    after = Index(fewer)
    after.take_over(before)
    assert after.scopes[0].knows_types
    assert not after.scopes[0].knows_names
    assert after.scopes[0].types == Index(fewer).scopes[0].types
    assert after.scopes[0].producers == {"y": (0, 0)}
    other = Index(replace(model, graph=replace(graph, input=())))
    other.take_over(before)
    assert not other.scopes[0].knows_types
    assert other.scopes[0].inputs == {}
    assert other.scopes[0].initializers == {"w": 0}


@pytest.mark.parametrize(
    ("sizes", "is_stated"), [(("N", 0), True), (("N", None), False), ((-1, 2), False), (None, False)]
)
def test_types_are_stated_if_all_sizes_are(sizes: tuple[int | str | None, ...] | None, is_stated: bool) -> None:
    dims = [Dimension(dim_param=each) if isinstance(each, str) else Dimension(dim_value=each) for each in sizes or ()]
    shape = None if sizes is None else TensorShape(dim=tuple(dims))
    values = (ValueInfo(name="y", type=Type(tensor_type=TensorType(elem_type=1, shape=shape))),)
    graph = Graph(node=(Node(op_type="Relu", input=("x",), output=("y",)),), value_info=values)
    assert Index(Model(graph=graph)).states_types() == is_stated
    assert not Index(Model(graph=replace(graph, value_info=()))).states_types()
