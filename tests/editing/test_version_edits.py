"""stamp-opset and set-metadata."""

from pathlib import Path

import msgspec
import pytest

import onnxjson
from onnxjson.editing.annotations import SetIrVersion, SetMetadata, needs_of
from onnxjson.editing.edits import apply, plan, run
from onnxjson.editing.opsets import StampOpset
from onnxjson.model.document import Function, Graph, Model, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.types import parse_type

APART = [(4, "an initializer that is not an input (2)")]
MODELS = Path(__file__).parent.parent / "models"


@pytest.fixture(scope="module")
def exported() -> Model:
    return onnxjson.load(MODELS / "mobile_dynamo.onnx")


def graph_of(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def test_a_stamp_changes_the_version_and_nothing_else(exported: Model) -> None:
    result = run(exported, StampOpset(version=13))
    assert [each.version for each in result.model.opset_import] == [13]
    assert msgspec.structs.replace(result.model, opset_import=exported.opset_import) == exported
    assert result.outcomes[0].notes[0] == ("the default domain: version 20 became version 13; nodes are not converted")
    assert "nodes have operators that differ in version 13" in result.outcomes[0].notes[1]


def test_a_stamp_of_another_domain_is_added(exported: Model) -> None:
    result = run(exported, StampOpset(version=1, domain="com.example"))
    after = result.model
    assert result.outcomes[0].notes[0].endswith(": imported with version 1; nodes are not converted")
    assert [(each.domain, each.version) for each in after.opset_import] == [("", 20), ("com.example", 1)]


def test_ai_onnx_is_the_default_domain(exported: Model) -> None:
    after = apply(exported, StampOpset(version=21, domain="ai.onnx"))
    assert [(each.domain, each.version) for each in after.opset_import] == [("", 21)]


def test_two_versions_of_one_domain_are_refused(exported: Model) -> None:
    twice = msgspec.structs.replace(
        exported, opset_import=(*exported.opset_import, msgspec.structs.replace(exported.opset_import[0], version=17))
    )
    with pytest.raises(EditError, match="imports the default domain as 17 and 20; keep one"):
        apply(twice, StampOpset(version=21))


def test_metadata_of_the_model_is_set_replaced_and_removed(exported: Model) -> None:
    one = apply(exported, [SetMetadata(key="a", value="1"), SetMetadata(key="b", value="2")])
    two = apply(one, SetMetadata(key="a", value="3"))
    assert [(each.key, each.value) for each in two.metadata_props[-2:]] == [("a", "3"), ("b", "2")]
    back = apply(two, [SetMetadata(key="b", remove=True), SetMetadata(key="a", remove=True)])
    assert back == exported


def test_metadata_of_nodes_is_set_and_the_rest_is_shared(exported: Model) -> None:
    result = run(exported, SetMetadata(key="stage", value="1", node="op:Conv"))
    graph, before = graph_of(result.model), graph_of(exported)
    for old, new in zip(before.node, graph.node, strict=True):
        if old.op_type == "Conv":
            assert new.metadata_props == (*old.metadata_props, new.metadata_props[-1])
        else:
            assert new is old
    assert result.matches == sum(node.op_type == "Conv" for node in before.node)
    assert plan(exported, SetMetadata(key="stage", value="1", node="op:Conv")).invert().apply(result.model) == exported


def test_metadata_of_tensors_values_and_graphs(exported: Model) -> None:
    before = graph_of(exported)
    constant = before.initializer[0].name or ""
    value = before.node[0].output[0]
    graph = graph_of(
        apply(
            exported,
            [
                SetMetadata(key="k", value="v", tensor="@/graph/initializer/0"),
                SetMetadata(key="k", value="v", tensor=value),
                SetMetadata(key="k", value="v", graph="/graph"),
            ],
        )
    )
    assert constant == graph.initializer[0].name
    assert graph.initializer[0].metadata_props[-1].value == "v"
    (said,) = [each for each in graph.value_info if each.name == value]
    assert said.metadata_props[-1].value == "v"
    assert graph.metadata_props[-1].value == "v"


def test_newer_ir_version_is_set_and_nothing_else(exported: Model) -> None:
    result = run(exported, SetIrVersion(version=12))
    assert result.model == msgspec.structs.replace(exported, ir_version=12)
    assert result.outcomes[0].notes == (f"ir_version: {exported.ir_version} became 12",)


def test_older_ir_version_is_refused_with_what_needs_a_newer_one(exported: Model) -> None:
    with pytest.raises(
        EditError, match=r"metadata_props of a Node \([0-9,]+\) needs 10.*oldest possible is 10"
    ) as raised:
        apply(exported, SetIrVersion(version=7))
    assert "version 20 of the default domain needs 9" in str(raised.value)
    result = run(exported, SetIrVersion(version=7, anyway=True))
    assert result.model == msgspec.structs.replace(exported, ir_version=7)
    assert "too old" in result.outcomes[0].notes[1]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Model(opset_import=(OperatorSetId(version=21),)), [(10, "version 21 of the default domain")]),
        (Model(functions=(Function(name="f"),)), [(8, "functions of a Model")]),
        (Model(graph=Graph(initializer=(Tensor(name="w", data_type=22),) * 2)), [(10, "int4 (2)"), *APART]),
        (Model(graph=Graph(initializer=(Tensor(name="w", data_type=1),), input=(ValueInfo(name="w"),))), []),
        (
            Model(graph=Graph(input=(ValueInfo(name="x", type=parse_type("float8_e8m0fnu[2]")),))),
            [(12, "float8_e8m0fnu")],
        ),
    ],
)
def test_what_needs_a_newer_ir_version(model: Model, expected: list[tuple[int, str]]) -> None:
    assert needs_of(model) == expected


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (SetMetadata(key="k"), "give either value or remove"),
        (SetMetadata(key="k", value="v", remove=True), "give either value"),
        (SetMetadata(key="k", value="v", node="op:Conv", graph="/graph"), "give at most one of them"),
        (SetMetadata(key="nothing", remove=True), 'the model has no metadata "nothing"'),
        (SetMetadata(key="nothing", remove=True, node="op:Conv"), 'none of [0-9]+ nodes has metadata "nothing"'),
        (SetMetadata(key="k", value="v", node="op:Convv"), 'no node has op:Convv; did you mean "op:Conv"?'),
        (SetMetadata(key="k", value="v", graph="/grap"), 'there is no graph at /grap; did you mean "/graph"?'),
    ],
)
def test_what_cannot_be_meant_is_refused(exported: Model, edit: SetMetadata, message: str) -> None:
    with pytest.raises(OnnxJsonError, match=message):
        apply(exported, edit)
