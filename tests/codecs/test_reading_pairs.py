"""Pairs, opset imports, metadata of elements, messages in full."""

import json

import pytest

from onnxjson.codecs.reading.exact_reader import read
from onnxjson.model import document as d
from tests.codecs.documents import codes, graph, model, node


def test_pairs_are_an_object_or_a_list() -> None:
    entries = (d.StringStringEntry("k", "v"), d.StringStringEntry("l", ""))
    assert model(metadata_props={"k": "v", "l": ""}).metadata_props == entries
    assert model(metadata_props=[["k", "v"], {"key": "l", "value": ""}]).metadata_props == entries
    assert model(metadata_props=[{"value": "v"}, {}]).metadata_props == (
        d.StringStringEntry(value="v"),
        d.StringStringEntry(),
    )
    assert codes(metadata_props=[["k"]]) == ["wrong-type"]
    assert codes(metadata_props="k") == ["wrong-type"]


def test_opset_imports_keep_whether_the_domain_is_absent() -> None:
    assert model(opset_import={"": 20, "a": "3"}).opset_import == (d.OperatorSetId("", 20), d.OperatorSetId("a", 3))
    assert model(opset_import=[{"version": 17}]).opset_import == (d.OperatorSetId(None, 17),)
    assert codes(opset_import={"": "x"}) == ["wrong-type"]


def test_metadata_of_elements_finds_its_owner() -> None:
    found = graph(
        node=[{"op_type": "A", "output": ["", "y"]}, {"op_type": "B", "output": ["z"]}],
        input=[{"name": "y"}],
        initializer=[{"name": "y", "type": "int8[0]", "values": []}],
        element_metadata=[["node", "y", "k", "1"], ["input", "y", "k", "2"], ["node", "y", "k", "3"]],
    )
    assert found.node[0].metadata_props == (d.StringStringEntry("k", "1"), d.StringStringEntry("k", "3"))
    assert found.node[1].metadata_props == ()
    assert found.input[0].metadata_props == (d.StringStringEntry("k", "2"),)
    assert found.initializer[0].metadata_props == ()


def test_metadata_without_an_owner_is_an_error_or_dropped() -> None:
    keys = {"node": [{"op_type": "A", "output": ["y"]}], "element_metadata": [["node", "z", "k", "v"]]}
    assert codes(graph=keys) == ["unknown-owner"]
    text = json.dumps({"format": "onnxjson/1", "graph": keys}).encode()
    found, warnings = read(text, drop_orphans=True)
    assert found.graph == d.Graph(node=(d.Node(op_type="A", output=("y",)),))
    assert [(warning.code, warning.severity) for warning in warnings] == [("dropped-metadata", "warning")]


def test_metadata_whose_owner_is_not_clear_is_refused() -> None:
    twins = [{"op_type": "A", "output": ["y"]}, {"op_type": "B", "output": ["y"]}]
    assert codes(graph={"node": twins, "element_metadata": [["node", "y", "k", "v"]]}) == ["ambiguous-owner"]
    inline = [{"op_type": "A", "output": ["y"], "metadata_props": {"k": "v"}}]
    assert codes(graph={"node": inline, "element_metadata": [["node", "y", "l", "v"]]}) == ["metadata-twice"]
    assert codes(graph={"element_metadata": [["nodes", "y", "l", "v"]]}) == ["unknown-name"]
    assert codes(graph={"element_metadata": [["node", "y", "l"], 7]}) == ["wrong-type", "wrong-type"]
    assert codes(functions=[{"element_metadata": [["input", "y", "l", "v"]]}]) == ["unknown-name"]


def test_any_message_has_a_full_form() -> None:
    found = node(
        op_type="A",
        device_configurations=[
            {
                "configuration_id": "c",
                "sharding_spec": [
                    {
                        "tensor_name": "t",
                        "device": [0, "1"],
                        "index_to_device_group_map": [{"key": -1, "value": [1]}],
                        "sharded_dim": [{"axis": 0, "simple_sharding": [{"dim_param": "N", "num_shards": 2}]}],
                    }
                ],
                "pipeline_stage": 3,
            }
        ],
    )
    spec = d.ShardingSpec(
        tensor_name="t",
        device=(0, 1),
        index_to_device_group_map=(d.IntIntListEntry(-1, (1,)),),
        sharded_dim=(d.ShardedDim(0, (d.SimpleShardedDim(dim_param="N", num_shards=2),)),),
    )
    assert found.device_configurations == (d.NodeDeviceConfiguration("c", (spec,), 3),)


def test_a_type_may_be_in_full_and_hold_types() -> None:
    full = {"sequence_type": {"elem_type": "float32[N]"}, "denotation": "IMAGE"}
    expected = d.Type(
        denotation="IMAGE",
        sequence_type=d.SequenceType(
            elem_type=d.Type(
                tensor_type=d.TensorType(elem_type=1, shape=d.TensorShape(dim=(d.Dimension(dim_param="N"),)))
            )
        ),
    )
    assert graph(input=[{"type": full}]).input[0].type == expected
    assert codes(graph={"input": [{"type": {"tensor_type": {}, "optional_type": {}}}]}) == ["conflicting-keys"]
    assert codes(graph={"input": [{"type": 7}]}) == ["wrong-type"]


@pytest.mark.parametrize("bad", ["AQ", "CAE=", "CA==", "+A==", "+wQB", "AA=="])
def test_unknown_fields_are_whole_and_unknown(bad: str) -> None:
    assert codes(unknown_fields=bad)[0] in ("bad-base64", "bad-unknown-fields")
