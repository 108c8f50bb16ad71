"""What nodes consume, and the order that follows from it."""

from onnxjson.model.dataflow import consumed_names, is_ordered, producers_among, sort_nodes, topological_order
from onnxjson.model.document import Attribute, Graph, Node, SparseTensor, Tensor, ValueInfo
from onnxjson.model.index import Index
from tests.editing.graphs import model_of

BRANCHES = """g (float[4] x, bool c) => (float[4] y) {
    a = Relu(x)
    d = Neg(x)
    b = If(c) <
        then_branch = t () => (float[4] p) { p = Abs(a) },
        else_branch = e () => (float[4] q) { r = Neg(a)  q = Exp(r) }
    >
    y = Add(b, b)
}"""


def node(inputs: str, output: str) -> Node:
    return Node(op_type="Op", input=tuple(inputs.split()), output=(output,))


def test_ancestors_and_descendants_go_through_subgraphs() -> None:
    index = Index(model_of(BRANCHES))
    main = index.scopes[0]
    assert index.main is main
    assert index.scope("/graph") is main
    assert index.ancestors(main, ["y"]) == {0, 2, 3}
    assert index.ancestors(main, ["x"]) == set()
    assert index.descendants(main, 0) == {0, 2, 3}
    assert index.descendants(main, 1) == {1}
    assert list(index.consuming_nodes(main, "a")) == [2, 2]
    assert list(index.consuming_nodes(main, "y")) == [None]


def test_names_that_a_subgraph_defines_are_not_consumed() -> None:
    graph = Graph(
        node=(node("own sparse given made outer", "made2"), node("x", "made")),
        input=(ValueInfo(name="given"),),
        initializer=(Tensor(name="own"),),
        sparse_initializer=(SparseTensor(values=Tensor(name="sparse")),),
        output=(ValueInfo(name="made"), ValueInfo(name="around")),
    )
    owner = Node(op_type="If", input=("c", ""), attribute=(Attribute(name="body", type=5, g=graph),))
    assert consumed_names(owner) == ["c", "outer", "x", "around"]


def test_nodes_are_sorted_near_their_old_places() -> None:
    nodes = (node("b", "c"), node("x", "a"), node("a", "b"), node("x", "d"))
    assert sort_nodes(nodes) == (nodes[1], nodes[2], nodes[0], nodes[3])
    ordered = sort_nodes(nodes)
    assert ordered is not None
    assert sort_nodes(ordered) is ordered


def test_cycles_have_no_order() -> None:
    nodes = (node("b", "a"), node("a", "b"), node("x", "c"), node("b", "d"))
    needs = producers_among(nodes)
    assert needs == [{1}, {0}, set(), {1}]
    assert topological_order(needs) == [2]
    assert sort_nodes(nodes) is None
    assert not is_ordered((node("a", "a"),))
