"""The walk through all records of a model."""

from onnxjson.model.document import Attribute, Graph, Model, Node, Tensor, TrainingInfo
from onnxjson.model.walking import walk


def test_walk_finds_records_of_a_kind_wherever_they_stand_in_order() -> None:
    inner = Graph(initializer=(Tensor(name="inner"),))
    nodes = (Node(attribute=(Attribute(t=Tensor(name="attribute")), Attribute(g=inner))), Node(op_type="Relu"))
    model = Model(
        graph=Graph(node=nodes, initializer=(Tensor(name="outer"),)),
        training_info=(TrainingInfo(algorithm=Graph(initializer=(Tensor(name="training"),))),),
    )
    assert [tensor.name for tensor in walk(model, Tensor)] == ["attribute", "inner", "outer", "training"]
    assert list(walk(model, Node)) == list(nodes)
    assert list(walk(model, Model)) == [model]
    assert list(walk(nodes[1], Tensor)) == []


def test_walk_of_deep_subgraphs_needs_no_stack() -> None:
    graph = Graph()
    for _ in range(3000):
        graph = Graph(node=(Node(attribute=(Attribute(g=graph),)),))
    assert sum(1 for _ in walk(graph, Graph)) == 3001
