"""Attributes: bare, tagged and in full."""

import json
from typing import Any

import pytest

import onnxjson
from onnxjson.model import document as d
from onnxjson.model.errors import DecodeError
from tests.codecs.documents import attribute, codes, codes_of_attribute, float32, node


def test_a_bare_value_of_the_table_has_the_type_of_the_table() -> None:
    assert attribute(1, "Gemm", "alpha") == d.Attribute(name="alpha", type=1, f=float32(1.0))
    assert attribute(1.0, "Gemm", "transB") == d.Attribute(name="transB", type=2, i=1)
    assert attribute([], "Transpose", "perm") == d.Attribute(name="perm", type=7)
    assert attribute("NaN", "Gemm", "alpha").f == bytes.fromhex("0000c07f")
    assert attribute("NaN(0x7fc00001)", "Gemm", "alpha").f == bytes.fromhex("0100c07f")
    assert attribute({"base64": "/w=="}, "Conv", "auto_pad") == d.Attribute(name="auto_pad", type=3, s=b"\xff")
    assert attribute([1, "Infinity", "-0.0"], "Upsample", "scales").floats == float32(1.0, float("inf"), -0.0)


def test_a_bare_value_outside_the_table_tells_its_type() -> None:
    assert attribute(3) == d.Attribute(name="a", type=2, i=3)
    assert attribute("x") == d.Attribute(name="a", type=3, s=b"x")
    assert attribute([1, 2]) == d.Attribute(name="a", type=7, ints=(1, 2))
    assert attribute(["x", ""]) == d.Attribute(name="a", type=8, strings=(b"x", b""))


@pytest.mark.parametrize("value", [1.5, 1.0, [], [1.5], [1, 2.0], True, {"base64": "/w=="}, {"values": []}, [["x"]]])
def test_any_other_bare_value_needs_a_tag(value: Any) -> None:
    assert codes_of_attribute(value) == ["untagged-attribute"]


def test_the_domain_of_a_node_chooses_the_table() -> None:
    keys = {"op_type": "Gemm", "attribute": {"alpha": 0.5}}
    assert codes(graph={"node": [{**keys, "domain": "ai.onnx"}]}) == ["untagged-attribute"]
    assert node(**keys, domain="").attribute == node(**keys).attribute


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ({"FLOAT": 1}, d.Attribute(name="a", type=1, f=float32(1.0))),
        ({"INT": "9007199254740993"}, d.Attribute(name="a", type=2, i=9007199254740993)),
        ({"STRING": "x"}, d.Attribute(name="a", type=3, s=b"x")),
        ({"FLOATS": []}, d.Attribute(name="a", type=6)),
        ({"INTS": [1.0]}, d.Attribute(name="a", type=7, ints=(1,))),
        ({"STRINGS": [{"base64": "/w=="}]}, d.Attribute(name="a", type=8, strings=(b"\xff",))),
        (
            {"TENSOR": {"type": "int8[]", "values": 1}},
            d.Attribute(name="a", type=4, t=d.Tensor(data_type=3, raw_data=b"\x01")),
        ),
        ({"TENSORS": [{}]}, d.Attribute(name="a", type=9, tensors=(d.Tensor(),))),
        ({"GRAPH": {}}, d.Attribute(name="a", type=5, g=d.Graph())),
        ({"GRAPHS": [{}]}, d.Attribute(name="a", type=10, graphs=(d.Graph(),))),
        ({"TYPE_PROTO": "float32"}, d.Attribute(name="a", type=13, tp=d.Type(tensor_type=d.TensorType(elem_type=1)))),
        ({"TYPE_PROTOS": [{}]}, d.Attribute(name="a", type=14, type_protos=(d.Type(),))),
        (
            {"SPARSE_TENSOR": {"values": {}, "dims": [2]}},
            d.Attribute(name="a", type=11, sparse_tensor=d.SparseTensor(values=d.Tensor(), dims=(2,))),
        ),
        ({"SPARSE_TENSORS": [{}]}, d.Attribute(name="a", type=12, sparse_tensors=(d.SparseTensor(),))),
        ({"AttributeProto": {}}, d.Attribute(name="a")),
        (
            {"AttributeProto": {"type": "INT", "i": 1, "f": 0.5, "ref_attr_name": "b", "doc_string": ["x", "y"]}},
            d.Attribute(name="a", type=2, i=1, f=float32(0.5), ref_attr_name="b", doc_string="x\ny"),
        ),
    ],
)
def test_tags_say_the_type(tagged: Any, expected: d.Attribute) -> None:
    assert attribute(tagged) == expected
    assert attribute(tagged, "Gemm", "a") == expected


def test_attributes_in_a_list_are_in_full() -> None:
    full = [{"name": "a", "type": "INT", "i": 1}, {"name": "a"}, {"type": 7, "ints": [1]}]
    assert node(attribute=full).attribute == (
        d.Attribute(name="a", type=2, i=1),
        d.Attribute(name="a"),
        d.Attribute(type=7, ints=(1,)),
    )
    assert codes(graph={"node": [{"attribute": [{"type": "INTEGER"}, {"type": 15}]}]}) == ["unknown-name"] * 2


def test_a_tag_stands_alone_and_the_name_outside_it() -> None:
    assert codes_of_attribute({"INT": 1, "FLOAT": 2.0}) == ["conflicting-keys"]
    assert codes_of_attribute({"AttributeProto": {"name": "b"}}) == ["conflicting-keys"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (False, '{"type": "bool[]", "values": false}'),
        (7, '{"type": "int64[]", "values": 7}'),
        ([0.5, 1.5], '{"type": "float32[2]", "values": [0.5, 1.5]}'),
    ],
)
def test_a_number_where_a_tensor_belongs_is_told_how_it_is_one(value: Any, written: str) -> None:
    text = '{"format": "onnxjson/1", "graph": {"node": [{"op_type": "Constant", "attribute": {"value": %s}}]}}'
    with pytest.raises(DecodeError) as raised:
        onnxjson.loads(text % json.dumps(value))
    assert f"write {written}" in str(raised.value)
    onnxjson.loads(text % written)
