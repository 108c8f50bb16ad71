"""What nodes say of the sharding of tensors follows edits that have them take and make others."""

import msgspec

from onnxjson.editing.edits import AddNode, DeleteNode, Edit, Rewire, SwapInputs, apply
from onnxjson.model.document import Model, NodeDeviceConfiguration, ShardingSpec
from tests.editing.graphs import model_of

TEXT = """g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {
    a = Relu(x)
    b = Neg(a)
    c = Add(b, a)
    d = Mul(b, w)
    e = Sub(d, c)
    y = Identity(e)
}"""


def sharded() -> Model:
    """A model of which every node says the device of each tensor: as many as the position of the node."""
    model = model_of(TEXT)
    graph = model.graph
    assert graph is not None
    nodes = []
    for position, node in enumerate(graph.node):
        specs = [ShardingSpec(tensor_name=name, device=(position,)) for name in (*node.input, *node.output)]
        device = NodeDeviceConfiguration(configuration_id="d", sharding_spec=tuple(specs))
        nodes.append(msgspec.structs.replace(node, device_configurations=(device,)))
    return msgspec.structs.replace(model, graph=msgspec.structs.replace(graph, node=tuple(nodes)))


def said(model: Model) -> dict[str, list[tuple[str, int]]]:
    """The tensors that each node says something of, and the devices, by what the node makes."""
    graph = model.graph
    assert graph is not None
    return {
        node.output[0]: [
            (spec.tensor_name or "", spec.device[0])
            for device in node.device_configurations
            for spec in device.sharding_spec
        ]
        for node in graph.node
    }


def after(*edits: Edit) -> dict[str, list[tuple[str, int]]]:
    found = said(apply(sharded(), edits))
    before = said(sharded())
    return {name: specs for name, specs in found.items() if before.get(name) != specs}


def test_who_takes_what_a_deleted_node_took_says_it_of_that() -> None:
    # Add says it of a already: its own word on a counts.
    assert after(DeleteNode(node="op:Neg")) == {"c": [("a", 2), ("c", 2)], "d": [("a", 3), ("w", 3), ("d", 3)]}


def test_an_output_that_takes_the_name_of_one_of_the_graph_keeps_what_is_said() -> None:
    assert after(DeleteNode(node="op:Identity")) == {"y": [("d", 4), ("c", 4), ("y", 4)]}


def test_an_inserted_node_changes_of_whom_it_is_said() -> None:
    found = after(AddNode(op_type="Abs", input=("b",), output=("n",), insert=True))
    assert found == {"n": [], "c": [("n", 2), ("a", 2), ("c", 2)], "d": [("n", 3), ("w", 3), ("d", 3)]}
    last = after(AddNode(op_type="Abs", input=("y",), output=("n",), insert=True))
    assert last == {"n": [("e", 5), ("n", 5)], "y": []}


def test_a_rewired_node_says_it_of_what_it_takes_now() -> None:
    assert after(Rewire(node="op:Mul", input=0, tensor="x")) == {"d": [("x", 3), ("w", 3), ("d", 3)]}
    assert after(Rewire(node="op:Mul", input=0, tensor="w")) == {"d": [("w", 3), ("d", 3)]}
    still = Rewire(node="op:Add", input=1, tensor="b"), Rewire(node="op:Add", input=0, tensor="x")
    assert after(*still) == {"c": [("b", 2), ("c", 2)]}
    assert after(SwapInputs(node="op:Sub")) == {}
