"""Tensors replaced wherever they can stand."""

import msgspec

from onnxjson.model.document import Attribute, Function, Graph, Model, Node, Record, SparseTensor, Tensor, TrainingInfo
from onnxjson.model.messages import FIELDS
from onnxjson.model.walking import replace_records, tensors_of, walk


def renamed(tensor: Tensor) -> Tensor:
    return msgspec.structs.replace(tensor, name=f"{tensor.name}'")


def in_every_position() -> Model:
    """A model with a tensor in each field that can hold one, in each of the six places a graph or node can stand."""
    names = iter(range(1000))

    def tensor() -> Tensor:
        return Tensor(name=f"t{next(names)}", raw_data=b"x")

    def sparse() -> SparseTensor:
        return SparseTensor(values=tensor(), indices=tensor())

    def attributes(graph: Graph | None = None) -> tuple[Attribute, ...]:
        return (
            Attribute(name="t", t=tensor()),
            Attribute(name="tensors", tensors=(tensor(), tensor())),
            Attribute(name="sparse", sparse_tensor=sparse()),
            Attribute(name="several", sparse_tensors=(sparse(),)),
            Attribute(name="subgraph", g=graph),
            Attribute(name="subgraphs", graphs=() if graph is None else (graph,)),
        )

    def graph(inner: Graph | None = None) -> Graph:
        node = Node(op_type="If", attribute=attributes(inner))
        return Graph(node=(Node(op_type="Relu"), node), initializer=(tensor(),), sparse_initializer=(sparse(),))

    function = Function(name="f", node=(Node(attribute=attributes(graph())),), attribute_proto=attributes())
    training = TrainingInfo(initialization=graph(), algorithm=graph(graph()))
    return Model(graph=graph(graph(graph())), functions=(function,), training_info=(training,))


def test_a_tensor_is_replaced_in_every_field_that_can_hold_one() -> None:
    model = in_every_position()
    holders = {
        (type(record), field.name)
        for kind, fields in FIELDS.items()
        for field in fields
        if field.message is Tensor
        for record in walk(model, kind)
        if getattr(record, field.name)
    }
    assert holders == {
        (kind, field.name) for kind, fields in FIELDS.items() for field in fields if field.message is Tensor
    }
    before = [tensor.name for tensor in tensors_of(model)]
    after = replace_records(model, Tensor, renamed)
    assert [tensor.name for tensor in tensors_of(after)] == [f"{name}'" for name in before]
    assert (
        replace_records(after, Tensor, lambda tensor: msgspec.structs.replace(tensor, name=(tensor.name or "")[:-1]))
        == model
    )
    assert [tensor.name for tensor in tensors_of(model)] == before


def test_change_is_asked_in_the_order_of_the_walk() -> None:
    model = in_every_position()
    asked: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        asked.append(tensor)
        return tensor

    replace_records(model, Tensor, note)
    # Inner graphs stand in two attributes each, and a record is asked about once.
    assert asked == list({id(tensor): tensor for tensor in tensors_of(model)}.values())


def test_a_model_in_which_nothing_changes_is_given_back_itself() -> None:
    model = in_every_position()
    assert replace_records(model, Tensor, lambda tensor: tensor) is model
    empty = Model()
    assert replace_records(empty, Tensor, renamed) is empty


def test_records_that_hold_nothing_changed_are_shared() -> None:
    model = in_every_position()
    assert model.graph is not None
    target = model.graph.initializer[0]
    after = replace_records(model, Tensor, lambda tensor: renamed(tensor) if tensor is target else tensor)
    assert after.graph is not None
    assert after.graph.initializer[0].name == f"{target.name}'"
    assert after.graph.node is model.graph.node
    assert after.functions is model.functions
    assert after.training_info is model.training_info


def test_a_record_at_several_places_is_replaced_at_all_of_them_by_one_record() -> None:
    shared = Tensor(name="w")
    deep = Graph(initializer=(shared,))
    attributes = (
        Attribute(g=deep),
        Attribute(t=shared),
        Attribute(g=Graph(node=(Node(attribute=(Attribute(g=deep),)),))),
    )
    after = replace_records(
        Model(graph=Graph(node=(Node(attribute=attributes),), initializer=(shared,))), Tensor, renamed
    )
    found = list(tensors_of(after))
    assert [tensor.name for tensor in found] == ["w'"] * 4
    assert len({id(tensor) for tensor in found}) == 1


def test_a_tensor_below_thousands_of_subgraphs_is_replaced() -> None:
    graph = Graph(initializer=(Tensor(name="w"),))
    for _ in range(3000):
        graph = Graph(node=(Node(attribute=(Attribute(g=graph),)),))
    after = replace_records(Model(graph=graph), Tensor, renamed)
    assert [tensor.name for tensor in tensors_of(after)] == ["w'"]


def test_unknown_fields_of_what_is_rebuilt_stay() -> None:
    kept = b"\xf8\x07\x01"
    graph = Graph(initializer=(Tensor(name="w", unknown_fields=kept),), unknown_fields=kept)
    after = replace_records(Model(graph=graph, unknown_fields=kept), Tensor, renamed)
    records: list[Record] = [after, *walk(after, Graph), *tensors_of(after)]
    assert [getattr(record, "unknown_fields", None) for record in records] == [kept] * 3
