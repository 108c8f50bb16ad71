"""`onnxjson.diff`: what it takes, what it leaves out, and everything that is no graph structure."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.diffing.difference import Diff, diff
from onnxjson.model import document as d
from onnxjson.model.document import Graph, Model
from tests.diffing.renaming import renamed
from tests.diffing.stacks import stack
from tests.diffing.written import details, explained, model, said

G = "g (float[N,4] x) => (float[N,4] y) "
PLAIN = model(G + "<float[4] b = {1,2,3,4}> { a = Relu(x)\n y = Add(a, b) }")


def with_graph(change: Callable[[Graph], Graph]) -> Model:
    assert PLAIN.graph is not None
    return replace(PLAIN, graph=change(PLAIN.graph))


def entries(**values: str) -> tuple[d.StringStringEntry, ...]:
    return tuple([d.StringStringEntry(key=key, value=value) for key, value in values.items()])


def node(graph: Graph, **fields: object) -> Graph:
    return replace(graph, node=(replace(graph.node[0], **fields), *graph.node[1:]))


OTHERS: dict[str, tuple[Model, str, str]] = {
    "a version": (replace(PLAIN, ir_version=9), "info-changed", "ir_version"),
    "a producer": (replace(PLAIN, producer_name="x"), "info-changed", "producer_name"),
    "the name of the graph": (with_graph(lambda graph: replace(graph, name="other")), "info-changed", "graph name"),
    "metadata": (replace(PLAIN, metadata_props=entries(k="v")), "metadata-changed", "model metadata_props"),
    "documentation": (replace(PLAIN, doc_string="x"), "metadata-changed", "model doc_string"),
    "metadata of a graph": (
        with_graph(lambda graph: replace(graph, metadata_props=entries(k="v"))),
        "metadata-changed",
        "graph metadata_props",
    ),
    "metadata of a node": (
        with_graph(lambda graph: node(graph, metadata_props=entries(k="v"))),
        "metadata-changed",
        "metadata_props of nodes",
    ),
    "documentation of a node": (
        with_graph(lambda graph: node(graph, doc_string="x")),
        "metadata-changed",
        "doc_string of nodes",
    ),
    "documentation of an initializer": (
        with_graph(lambda graph: replace(graph, initializer=(replace(graph.initializer[0], doc_string="x"),))),
        "metadata-changed",
        "doc_string of initializers",
    ),
    "documentation of an input": (
        with_graph(lambda graph: replace(graph, input=(replace(graph.input[0], doc_string="x"),))),
        "metadata-changed",
        "doc_string of inputs",
    ),
    "the spelling of a domain": (
        with_graph(lambda graph: node(graph, domain="ai.onnx")),
        "storage-changed",
        "domain of nodes",
    ),
    "a name of a node": (with_graph(lambda graph: node(graph, name="n")), "renamed", "nodes"),
    "sharding": (
        with_graph(
            lambda graph: node(
                graph, device_configurations=(d.NodeDeviceConfiguration(configuration_id="c", pipeline_stage=1),)
            )
        ),
        "field-changed",
        "Relu.device_configurations",
    ),
    "unknown fields of a node": (
        with_graph(lambda graph: node(graph, unknown_fields=b"\xc8>\5")),
        "field-changed",
        "Relu.unknown_fields",
    ),
    "a device configuration": (
        replace(PLAIN, configuration=(d.DeviceConfiguration(name="c", num_devices=2),)),
        "field-changed",
        "device configurations",
    ),
    "training": (
        replace(PLAIN, training_info=(d.TrainingInfo(update_binding=entries(w="g")),)),
        "field-changed",
        "training step added",
    ),
    "a quantization annotation": (
        with_graph(
            lambda graph: replace(graph, quantization_annotation=(d.TensorAnnotation("a", entries(SCALE_TENSOR="b")),))
        ),
        "field-changed",
        "quantization annotation",
    ),
    "a sparse initializer": (
        with_graph(
            lambda graph: replace(graph, sparse_initializer=(d.SparseTensor(values=d.Tensor(name="s"), dims=(3,)),))
        ),
        "inserted",
        "initializer",
    ),
    "an initializer that nobody takes": (
        with_graph(lambda graph: replace(graph, initializer=(*graph.initializer, d.Tensor(name="s", data_type=1)))),
        "inserted",
        "initializer",
    ),
    "unknown fields of the model": (replace(PLAIN, unknown_fields=b"\xc8>\5"), "field-changed", "model.unknown_fields"),
    "an opset of another domain": (
        replace(PLAIN, opset_import=(*PLAIN.opset_import, d.OperatorSetId("x", 1))),
        "opset-changed",
        "x added",
    ),
    "a function that nobody calls": (
        replace(PLAIN, functions=(d.Function(name="f", domain="x"),)),
        "inserted",
        "function",
    ),
    "a model without a graph": (replace(PLAIN, graph=None), "field-changed", "model.graph"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_structure_is_one_event_too(case: str) -> None:
    other, kind, pattern = OTHERS[case]
    for base, target in ((PLAIN, other), (other, PLAIN)):
        found = explained(base, target)
        assert [event.kind for event in found.events] == [back(kind) if target is PLAIN else kind]
    assert said(explained(PLAIN, other))[0][1] == pattern


def back(kind: str) -> str:
    return "dead-code-removed" if kind == "inserted" else kind


def test_training_graphs_and_bindings_are_compared() -> None:
    step = d.TrainingInfo(algorithm=PLAIN.graph, update_binding=entries(w="g"))
    assert PLAIN.graph is not None
    changed = node(PLAIN.graph, op_type="Tanh")
    events = explained(
        replace(PLAIN, training_info=(step,)),
        replace(PLAIN, training_info=(replace(step, algorithm=changed, update_binding=entries(w="h")),)),
    )
    assert said(events) == [
        ("replaced", "Relu -> Tanh", (f"{STEP}/algorithm/node/0",), (f"{STEP}/algorithm/node/0",)),
        ("field-changed", "training update_binding", (f"{STEP}/update_binding",), (f"{STEP}/update_binding",)),
    ]
    assert details(events, 1) == [("update_binding w", "g", "h")]


STEP = "/training_info/0"


def test_entries_of_metadata_are_told_by_key() -> None:
    one = replace(PLAIN, metadata_props=entries(a="1", b="2", c="3"))
    other = replace(PLAIN, metadata_props=entries(a="1", c="4", d="5"))
    assert details(explained(one, other)) == [
        ("metadata b", "2", None),
        ("metadata c", "3", "4"),
        ("metadata d", None, "5"),
    ]


def test_what_is_ignored_is_no_event_and_stays_in_the_patch() -> None:
    base = stack("transformer", 60)
    target = replace(renamed(base, 1), doc_string="x", metadata_props=entries(k="v"), model_version=3)
    assert {event.kind for event in diff(base, target).events} == {"renamed", "metadata-changed", "info-changed"}
    difference = diff(base, target, ignore=("names", "docs", "metadata"))
    assert said(difference) == [("info-changed", "model_version", ("/model_version",), ("/model_version",))]
    assert difference.patch.apply(base) == target
    assert set(difference.shares.values()) == {0, None}
    assert diff(base, replace(target, model_version=base.model_version), ignore=("names", "docs", "metadata")).equal


def test_order_and_weights_can_be_ignored() -> None:
    base = model(G + "<float[4] b = {1,2,3,4}, float[4] c = {5,6,7,8}> { a = Mul(x, c)\n y = Add(a, b) }")
    assert base.graph is not None
    one, two = base.graph.initializer
    target = replace(base, graph=replace(base.graph, initializer=(two, replace(one, float_data=bytes(16)))))
    assert {event.kind for event in diff(base, target).events} == {"reordered", "weights-changed"}
    assert diff(base, target, ignore=("order", "weights")).equal


def test_words_that_nobody_knows_are_refused() -> None:
    with pytest.raises(ValueError, match="ignore has the unknown word 'everything'"):
        diff(PLAIN, PLAIN, ignore=("everything",))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"ignore is the string 'names'; pass a list of words, such as \['"):
        diff(PLAIN, PLAIN, ignore="names")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weights has the unknown word 'some'"):
        diff(PLAIN, PLAIN, weights="some")  # type: ignore[arg-type]


def test_models_and_files_can_be_compared_in_any_mixture(tmp_path: Path) -> None:
    onnxjson.save(PLAIN, tmp_path / "m.onnx")
    onnxjson.save(PLAIN, tmp_path / "m.onnx.json")
    sides: list[Model | str | Path] = [PLAIN, tmp_path / "m.onnx", str(tmp_path / "m.onnx.json")]
    assert all(onnxjson.diff(one, other).equal for one in sides for other in sides)


def test_a_summary_counts_nodes_and_events() -> None:
    found = diff(PLAIN, with_graph(lambda graph: node(graph, op_type="Tanh")))
    summary = found.summary
    assert (summary.base_nodes, summary.target_nodes) == (2, 2)
    assert summary.events == {"replaced": 1}
    assert summary.operators == {"Add": (1, 1), "Relu": (1, 0), "Tanh": (0, 1)}


def test_verdicts_are_set_without_comparing_again() -> None:
    difference = diff(PLAIN, with_graph(lambda graph: node(graph, op_type="Tanh")))
    assert difference.events[0].verdict == "not-run"
    proved = difference.with_verdicts({0: ("different", "by up to 1")})
    assert isinstance(proved, Diff)
    assert (proved.events[0].verdict, proved.events[0].evidence) == ("different", "by up to 1")
    assert difference.events[0].verdict == "not-run"
    assert proved.patch == difference.patch
    assert proved.regions == difference.regions


def test_places_are_name_scopes() -> None:
    base = stack("transformer", 40)
    assert base.graph is not None
    nodes = list(base.graph.node)
    position = next(position for position, each in enumerate(nodes) if each.op_type == "Softmax")
    nodes[position] = replace(nodes[position], op_type="LogSoftmax")
    found = diff(base, replace(base, graph=replace(base.graph, node=tuple(nodes))))
    assert found.events[0].members[0].place.startswith("/layer.0")


def test_types_that_one_model_states_change_no_node() -> None:
    nodes = (
        d.Node(("x",), ("r",), "/relu", "Relu"),
        d.Node(("r",), ("c",), "/cast", "Cast", (d.Attribute("to", i=7, type=2),)),
        d.Node(("c", "c"), ("y",), "/add", "Add"),
    )
    stated = d.ValueInfo(name="r", type=d.Type(tensor_type=d.TensorType(elem_type=7)))
    base = Model(ir_version=8, graph=Graph(name="g", node=nodes))
    target = Model(ir_version=8, graph=Graph(name="g", node=nodes, value_info=(stated,)))
    for one, other in ((base, target), (target, base)):
        found = diff(one, other)
        assert [event.kind for event in found.events] == ["value-info-changed"]
        assert found.alignment.matched == 3


def test_files_with_the_same_nodes_share_them_and_have_the_same_diff(tmp_path: Path) -> None:
    base = stack("mixed", 60)
    described = replace(base, metadata_props=entries(key="value"), producer_name="another")
    for name, each in (("base", base), ("described", described)):
        onnxjson.save(each, tmp_path / f"{name}.onnx")
    difference = onnxjson.diff(tmp_path / "base.onnx", tmp_path / "described.onnx")
    assert difference.base.graph is not None
    assert difference.target.graph is not None
    assert difference.base.graph.node[0] is difference.target.graph.node[0]
    separate = onnxjson.load(tmp_path / "described.onnx")
    assert separate.graph is not onnxjson.load(tmp_path / "base.onnx").graph
    other = onnxjson.diff(base, separate)
    assert difference.events == other.events
    assert [event.kind for event in difference.events] == ["info-changed", "metadata-changed"]
    assert difference.summary == other.summary
    assert difference.matches == other.matches
    assert difference.patch.apply(base) == described
    assert difference.shares == other.shares
