"""What is wrong with the structure of a model is found without onnx, at its address."""

import struct

import msgspec
import pytest

from onnxjson.model.addresses import walk
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    OperatorSetId,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TrainingInfo,
    ValueInfo,
)
from onnxjson.model.structure import check_structure
from onnxjson.model.tensors import tensor_mistakes

OPSETS = (OperatorSetId("", 20),)


def value(name: str) -> ValueInfo:
    return ValueInfo(name=name)


def node(op_type: str, inputs: str, outputs: str, *attributes: Attribute, domain: str | None = None) -> Node:
    return Node(
        op_type=op_type, input=tuple(inputs.split()), output=tuple(outputs.split()), attribute=attributes, domain=domain
    )


def found(graph: Graph | None, **keys: object) -> list[tuple[str, str]]:
    defaults = {"ir_version": 10, "opset_import": OPSETS, "graph": graph}
    model = Model(**{**defaults, **keys})  # type: ignore[arg-type]
    return [(finding.code, finding.address) for finding in check_structure(model)]


def graph_of(*nodes: Node, inputs: str = "x", outputs: str = "") -> Graph:
    return Graph(
        name="g",
        node=nodes,
        input=tuple(value(name) for name in inputs.split()),
        output=tuple(value(name) for name in outputs.split()),
    )


def branch(*nodes: Node, outputs: str = "") -> Attribute:
    return Attribute(name="body", type=5, g=graph_of(*nodes, inputs="", outputs=outputs))


def test_a_sound_graph_has_no_findings() -> None:
    assert found(graph_of(node("Relu", "x", "y"), node("Add", "x y", "z"), outputs="z")) == []
    assert found(graph_of(node("Dropout", "x", "y "), node("Clip", "y  ", "z"), outputs="z")) == []


def test_a_model_needs_a_graph_and_a_version() -> None:
    assert [code for code, _ in found(None, ir_version=None)] == ["no-ir-version", "no-graph"]


def test_names_that_nothing_makes_are_found() -> None:
    assert found(graph_of(node("Relu", "w", "y"), outputs="z")) == [
        ("undefined-input", "/graph/node/0/input/0"),
        ("undefined-output", "/graph/output/0"),
    ]


def test_the_nearest_names_are_told() -> None:
    model = Model(
        ir_version=10, opset_import=OPSETS, graph=graph_of(node("Relu", "fc/weigth", "y"), inputs="fc/weight")
    )
    assert check_structure(model)[0].hint == 'did you mean "fc/weight"?'


def test_a_name_made_twice_is_found() -> None:
    assert found(graph_of(node("Relu", "x", "y"), node("Neg", "x", "y"))) == [
        ("duplicate-output", "/graph/node/1/output/0")
    ]
    assert found(graph_of(node("Relu", "x", "x"))) == [("duplicate-output", "/graph/node/0/output/0")]
    assert found(graph_of(inputs="x x", outputs="x x")) == [
        ("duplicate-name", "/graph/input/1"),
        ("duplicate-name", "/graph/output/1"),
    ]


def test_an_initializer_may_have_the_name_of_an_input_but_not_of_another() -> None:
    tensor = Tensor(name="x", data_type=1, raw_data=bytes(4))
    sparse = SparseTensor(values=tensor)
    assert found(Graph(input=(value("x"),), initializer=(tensor,))) == []
    assert found(Graph(initializer=(tensor, tensor))) == [("duplicate-name", "/graph/initializer/1")]
    assert found(Graph(initializer=(tensor,), sparse_initializer=(sparse,))) == [
        ("duplicate-name", "/graph/sparse_initializer/0")
    ]
    assert found(Graph(sparse_initializer=(SparseTensor(),))) == [("missing-name", "/graph/sparse_initializer/0")]


def test_a_node_before_what_it_needs_is_found() -> None:
    assert found(graph_of(node("Relu", "y", "z"), node("Neg", "x", "y"), outputs="z")) == [
        ("not-sorted", "/graph/node/0/input/0")
    ]


def test_nodes_that_need_each_other_are_one_finding() -> None:
    ring = (node("A", "c", "a"), node("B", "a", "b"), node("C", "b", "c"), node("D", "x", "d"))
    assert found(graph_of(*ring)) == [("node-cycle", "/graph/node/0")]
    assert found(graph_of(node("A", "a", "a"))) == [("node-cycle", "/graph/node/0")]


def test_a_cycle_through_a_subgraph_is_found() -> None:
    inner = branch(node("Neg", "b", "n"), outputs="n")
    assert ("node-cycle", "/graph/node/0") in found(graph_of(node("A", "c", "b"), node("If", "x", "c", inner)))


def test_a_late_node_behind_a_cycle_is_told_on_its_own() -> None:
    nodes = (node("A", "b", "a"), node("B", "a", "b"), node("C", "d", "c"), node("D", "x", "d"))
    assert found(graph_of(*nodes)) == [("node-cycle", "/graph/node/0"), ("not-sorted", "/graph/node/2/input/0")]


def test_subgraphs_see_the_names_around_them_but_not_the_reverse() -> None:
    inner = branch(node("Neg", "x", "n"), outputs="n")
    assert found(graph_of(node("If", "x", "y", inner), outputs="y")) == []
    assert found(graph_of(node("If", "x", "y", inner), outputs="n")) == [("undefined-output", "/graph/output/0")]
    late = branch(node("Neg", "z", "n"), outputs="n")
    assert found(graph_of(node("If", "x", "y", late), node("Neg", "x", "z"))) == [
        ("not-sorted", "/graph/node/0/attribute/body/g/node/0/input/0")
    ]
    passed_on = branch(outputs="x")
    assert found(graph_of(node("If", "x", "y", passed_on))) == []


def test_functions_are_scopes_of_their_own() -> None:
    function = Function(
        name="f",
        domain="d",
        input=("a",),
        output=("b", "x"),
        node=(node("Neg", "a", "b"), node("Custom", "x", "c", domain="e")),
        opset_import=OPSETS,
    )
    assert found(graph_of(), functions=(function, function)) == [
        ("undefined-input", "/functions/0/node/1/input/0"),
        ("undefined-output", "/functions/0/output/1"),
        ("missing-opset", "/functions/0/node/1"),
        ("undefined-input", "/functions/1/node/1/input/0"),
        ("undefined-output", "/functions/1/output/1"),
        ("missing-opset", "/functions/1/node/1"),
        ("duplicate-name", "/functions/1"),
    ]


def test_training_sees_the_names_of_the_graph() -> None:
    step = TrainingInfo(algorithm=graph_of(node("Neg", "y w", "g"), inputs=""))
    assert found(graph_of(node("Relu", "x", "y")), training_info=(step,)) == [
        ("undefined-input", "/training_info/0/algorithm/node/0/input/1")
    ]


def test_domains_without_a_version_are_warned_of() -> None:
    used = graph_of(node("Gelu", "x", "y", domain="com.microsoft"), node("Neg", "y", "z", domain="ai.onnx"))
    assert found(used) == [("missing-opset", "/graph/node/0")]
    assert found(used, opset_import=()) == [("missing-opset", "")]
    assert {finding.severity for finding in check_structure(Model(ir_version=8, graph=used))} == {"warning"}


def test_attributes_have_one_name_and_a_type() -> None:
    twice = (Attribute(name="a", type=2, i=1), Attribute(name="a", type=2, i=2), Attribute(type=2))
    assert found(graph_of(node("A", "x", "y", *twice))) == [
        ("duplicate-attribute", "/graph/node/0/attribute/#1"),
        ("missing-name", "/graph/node/0/attribute/#2"),
    ]
    untyped = graph_of(node("A", "x", "y", Attribute(name="a/b", i=1)))
    assert found(untyped) == [("attribute-without-type", "/graph/node/0/attribute/a~1b")]
    assert found(untyped, ir_version=1) == []


@pytest.mark.parametrize(
    "wrong",
    [
        Attribute(name="a", type=2, f=bytes(4)),
        Attribute(name="a", type=1, f=bytes(4), s=b""),
        Attribute(name="a", type=4, i=1),
        Attribute(name="a", type=7, i=1, ints=(1,)),
        Attribute(name="a", type=1, g=Graph()),
        Attribute(name="a", type=99, i=1),
    ],
)
def test_value_of_an_attribute_is_in_the_field_of_its_type(wrong: Attribute) -> None:
    assert ("wrong-attribute-field", "/graph/node/0/attribute/a") in found(graph_of(node("A", "x", "y", wrong)))


def test_attributes_may_have_no_value() -> None:
    # Programs that use proto3 omit zeros; references in functions have no value.
    plain = (Attribute(name="a", type=2), Attribute(name="b", type=7), Attribute(name="c", type=1, ref_attr_name="d"))
    assert found(graph_of(node("A", "x", "y", *plain))) == []


def test_a_node_has_an_operator() -> None:
    assert found(graph_of(Node())) == [("missing-op-type", "/graph/node/0")]


def test_constants_in_attributes_are_looked_at() -> None:
    short = Tensor(data_type=1, dims=(2,), raw_data=bytes(4))
    attributes = (Attribute(name="value", type=4, t=short), Attribute(name="all", type=9, tensors=(short,)))
    assert found(graph_of(node("Constant", "", "y", *attributes))) == [
        ("wrong-length", "/graph/node/0/attribute/value/t"),
        ("wrong-length", "/graph/node/0/attribute/all/tensors/0"),
    ]


def test_every_tensor_of_a_model_is_looked_at() -> None:
    short = Tensor(data_type=1, dims=(2,), raw_data=bytes(4), name="w")
    sparse = SparseTensor(values=short, indices=short)
    attributes = (
        Attribute(name="a", type=4, t=short),
        Attribute(name="b", type=9, tensors=(short,)),
        Attribute(name="c", type=11, sparse_tensor=sparse),
        Attribute(name="d", type=12, sparse_tensors=(sparse,)),
    )
    function = Function(name="f", node=(node("Any", "", "y", *attributes),), attribute_proto=attributes)
    dense = msgspec.structs.replace(short, name="v")
    graph = Graph(node=function.node, initializer=(dense,), sparse_initializer=(sparse,))
    model = Model(ir_version=10, opset_import=OPSETS, graph=graph, functions=(function,))
    model = msgspec.structs.replace(model, training_info=(TrainingInfo(initialization=graph, algorithm=graph),))
    tensors = {address for address, record in walk(model) if isinstance(record, Tensor)}
    assert {finding.address for finding in check_structure(model) if finding.code == "wrong-length"} == tensors


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor(data_type=1, dims=(2,), raw_data=bytes(8)),
        Tensor(data_type=1, dims=(2,), float_data=bytes(8)),
        Tensor(data_type=14, dims=(1,), float_data=bytes(8)),
        Tensor(data_type=11, raw_data=bytes(8)),
        Tensor(data_type=22, dims=(3,), raw_data=bytes(2)),
        Tensor(data_type=22, dims=(3,), int32_data=b"\x01\x02"),
        Tensor(data_type=6, dims=(2,), int32_data=b"\x01" + b"\xff" * 9 + b"\x01"),
        Tensor(data_type=8, dims=(2,), string_data=(b"a", b"")),
        Tensor(data_type=1, dims=(0, 3)),
        Tensor(data_type=1, dims=(0,), raw_data=b""),
        Tensor(data_type=1, dims=(9,), data_location=1, external_data=(StringStringEntry("location", "w"),)),
    ],
)
def test_bytes_that_fit_have_no_mistake(tensor: Tensor) -> None:
    assert list(tensor_mistakes(tensor)) == []


@pytest.mark.parametrize(
    ("tensor", "code"),
    [
        (Tensor(), "undefined-dtype"),
        (Tensor(data_type=0), "undefined-dtype"),
        (Tensor(data_type=99), "undefined-dtype"),
        (Tensor(data_type=1, dims=(-1,)), "negative-dim"),
        (Tensor(data_type=1, dims=(1,)), "wrong-length"),
        (Tensor(data_type=1, dims=(1 << 62,) * 400), "wrong-length"),
        (Tensor(data_type=1, dims=(1 << 62,) * 400, raw_data=bytes(7)), "wrong-length"),
        (Tensor(data_type=1, dims=(2,), raw_data=bytes(7)), "wrong-length"),
        (Tensor(data_type=1, dims=(2,), float_data=bytes(4)), "wrong-length"),
        (Tensor(data_type=6, dims=(2,), int32_data=b"\xff" * 9 + b"\x01"), "wrong-length"),
        (Tensor(data_type=8, dims=(2,), string_data=(b"a",)), "wrong-length"),
        (Tensor(data_type=8, raw_data=b"a"), "wrong-storage"),
        (Tensor(data_type=1, dims=(1,), int64_data=b"\x01"), "wrong-storage"),
        (Tensor(data_type=1, dims=(1,), float_data=bytes(4), raw_data=bytes(4)), "several-payloads"),
        (Tensor(data_type=1, dims=(1,), data_location=1), "missing-location"),
    ],
)
def test_bytes_that_do_not_fit_are_told(tensor: Tensor, code: str) -> None:
    assert [found_code for found_code, _, _ in tensor_mistakes(tensor)] == [code]


def test_dims_whose_exact_product_takes_minutes_are_told_at_once() -> None:
    hostile = Tensor(data_type=1, dims=(1 << 62,) * 100_000, raw_data=bytes(7))
    assert [code for code, _, _ in tensor_mistakes(hostile)] == ["wrong-length"]


def test_names_like_an_unknown_one_are_looked_for_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("Relu", f"missing_{number}", f"y_{number}") for number in range(5_000)]
    searches: list[str] = []

    def search(name: str, _names: object) -> str:
        searches.append(name)
        return ""

    monkeypatch.setattr("onnxjson.model.structure.suggest", search)
    assert len(found(graph_of(*nodes))) == 5_000
    assert 0 < len(searches) <= 50


def test_a_long_chain_is_looked_at_without_recursion() -> None:
    nodes = [node("Relu", f"y{number}", f"y{number + 1}") for number in range(20_000)]
    assert found(graph_of(*nodes, inputs="y0", outputs="y20000")) == []
    assert [code for code, _ in found(graph_of(*reversed(nodes), inputs="y0"))] == ["not-sorted"] * 19_999
    closed = [*nodes, node("Relu", "y20000", "y0")]
    assert [code for code, _ in found(graph_of(*closed, inputs=""))] == ["node-cycle"]


def test_float_data_is_counted_in_numbers() -> None:
    tensor = Tensor(data_type=1, dims=(2,), float_data=struct.pack("<3f", 1, 2, 3))
    assert next(tensor_mistakes(tensor))[1] == "float_data holds 3 numbers; float32[2] needs 2"


def test_one_domain_has_one_version() -> None:
    def imports(*domains: str | None) -> list[tuple[str, str]]:
        used = graph_of(node("Relu", "x", "y"), inputs="x")
        return found(used, opset_import=tuple(OperatorSetId(domain=domain, version=17) for domain in domains))

    assert imports("", "com.acme", "ai.onnx.ml") == []
    assert imports("", "ai.onnx") == [("duplicate-opset", "/opset_import/1")]
    assert imports("a", None, "a", "") == [
        ("duplicate-opset", "/opset_import/2"),
        ("duplicate-opset", "/opset_import/3"),
    ]


def test_an_output_that_nothing_produces_may_be_the_one_that_no_node_uses() -> None:
    (finding,) = check_structure(
        Model(ir_version=10, opset_import=OPSETS, graph=graph_of(node("Relu", "x", "460"), outputs="out"))
    )
    assert finding.hint == 'write "460", which no node uses'


def test_an_output_with_the_name_of_another_explains_the_name_that_is_missing() -> None:
    nodes = node("Relu", "x", "a"), node("Neg", "x", "a"), node("Abs", "b", "y")
    model = Model(ir_version=10, opset_import=OPSETS, graph=graph_of(*nodes, outputs="y"))
    assert {each.code for each in check_structure(model)} == {"duplicate-output", "undefined-input"}
    (finding,) = check_structure(model, causes=True)
    assert (finding.code, finding.hint) == ("duplicate-output", 'rename it to "b", which is used and nothing produces')


def test_nodes_in_the_wrong_order_have_a_command_as_their_remedy() -> None:
    nodes = node("Neg", "a", "y"), node("Relu", "x", "a")
    (finding,) = check_structure(Model(ir_version=10, opset_import=OPSETS, graph=graph_of(*nodes, outputs="y")))
    assert "fmt --sort" in finding.hint
