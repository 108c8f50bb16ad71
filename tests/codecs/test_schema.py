"""The JSON Schema of a document: in step with the code, takes what is right, refuses what is wrong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import onnxjson
from onnxjson.cli.program import SCHEMAS
from onnxjson.model import document, errors
from onnxjson.model.messages import FIELDS
from onnxjson.storage import api
from tests.schemas import BUILDERS, FOLDER, file_of, text_of
from tests.schemas import documents as schema

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(schema.document_schema())


def _model(**changes: Any) -> dict[str, Any]:
    return {"format": "onnxjson/1", "ir_version": 8, **changes}


def _graph(**changes: Any) -> dict[str, Any]:
    return _model(graph={"name": "g", **changes})


def _node(**changes: Any) -> dict[str, Any]:
    return _graph(node=[{"op_type": "Conv", "output": ["y"], "input": ["x"], **changes}])


def _attribute(value: Any) -> dict[str, Any]:
    return _node(attribute={"a": value})


def _default(value: Any) -> dict[str, Any]:
    return _model(functions=[{"name": "f", "attribute_proto": {"a": value}}])


def _attribute_of(op_type: str, **attributes: Any) -> dict[str, Any]:
    return _node(op_type=op_type, attribute=attributes)


def _tensor(**changes: Any) -> dict[str, Any]:
    return _graph(initializer=[{"name": "w", **changes}])


def _type(value: Any) -> dict[str, Any]:
    return _graph(input=[{"name": "x", "type": value}])


def test_files_in_schemas_are_up_to_date() -> None:
    for kind, build in BUILDERS.items():
        assert file_of(kind).read_text(encoding="utf-8") == text_of(kind), "python -m tests.schemas"
        Draft202012Validator.check_schema(build())


def test_the_files_in_schemas_are_those_that_the_command_prints() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {file_of(kind).name for kind in SCHEMAS}
    assert BUILDERS.keys() == set(SCHEMAS)


def test_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema.document_schema())


def test_every_message_has_a_definition_of_its_name() -> None:
    definitions = schema.document_schema()["$defs"]
    assert {message.__name__ for message in FIELDS} - definitions.keys() == {"Model"}


def test_every_field_of_every_message_has_a_key() -> None:
    whole = schema.document_schema()
    for message, fields in FIELDS.items():
        definition = whole if message is document.Model else whole["$defs"][message.__name__]
        properties = definition.get("properties") or definition["else"]["properties"]
        assert {field.name for field in fields} <= properties.keys(), message.__name__


def test_every_operator_of_the_table_has_its_attributes() -> None:
    branches = schema.document_schema()["$defs"]["operator_attributes"]["allOf"]
    assert sum(len(branch["then"]["properties"]["attribute"]["properties"]) for branch in branches[:-1]) == 555


def test_operators_and_attributes_are_described() -> None:
    definitions = schema.document_schema()["$defs"]
    known = definitions["operator"]["anyOf"][0]
    assert len(known["enum"]) == len(known["enumDescriptions"]) > 200
    assert "convolution" in known["enumDescriptions"][known["enum"].index("Conv")]
    branches = definitions["operator_attributes"]["allOf"]
    conv = next(each for each in branches if each["if"]["properties"]["op_type"].get("const") == "Conv")
    attributes = conv["then"]["properties"]["attribute"]["properties"]
    assert attributes["group"]["description"].startswith("INT. Default: 1. ")
    assert "SAME_UPPER" in attributes["auto_pad"]["anyOf"][0]["enum"]


def test_schema_of_an_editor_is_no_part_of_the_model() -> None:
    text = '{"$schema": "https://example.com/s.json", "format": "onnxjson/1", "ir_version": 9}'
    assert onnxjson.loads(text) == document.Model(ir_version=9)
    assert "schema" not in onnxjson.dumps(onnxjson.loads(text))


def test_every_reference_has_a_definition() -> None:
    whole = schema.document_schema()
    used = {reference.removeprefix("#/$defs/") for reference in _references(whole)}
    assert used == whole["$defs"].keys()


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def test_document_of_the_format_page_is_valid(validator: Draft202012Validator) -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```[^\n]*\n(\{\n\"format\".*?)^```", page, re.DOTALL | re.MULTILINE)
    assert examples
    for example in examples:
        validator.validate(json.loads(example))


RIGHT = {
    "only-a-format": {"format": "onnxjson/1"},
    "opset-object": _model(opset_import={"": 20, "com.microsoft": 1}),
    "opset-list": _model(opset_import=[{"version": 17}]),
    "doc-string-lines": _model(doc_string=["two", "lines"]),
    "metadata-pairs": _model(metadata_props=[["1", "one"], {"key": "no value"}]),
    "metadata-lines": _model(metadata_props={"trace": ["a", "b"]}),
    "big-integer": _model(ir_version="9007199254740993"),
    "name-not-utf8": _node(name={"base64": "/w=="}),
    "empty-node": _graph(node=[{}]),
    "attribute-int": _attribute(-1),
    "attribute-text": _attribute("1e-05"),
    "attribute-default": _default(["a", "b"]),
    "attribute-nan": _attribute("NaN(0x7fc00001)"),
    "attribute-list": _attribute([1, 1, 1, 1]),
    "attribute-tagged": _attribute({"FLOATS": [1.0, "NaN", "-0.0"]}),
    "attribute-tensor": _attribute({"TENSOR": {"type": "int64[2]", "values": [1, 2]}}),
    "attribute-bare-tensor": _attribute_of("ConstantOfShape", value={"type": "float32[1]", "values": [1.5]}),
    "attribute-bare-graph": _attribute_of("Loop", body={"name": "body"}),
    "attribute-bare-type": _attribute_of("Optional", type="seq(float32)"),
    "attribute-graph": _attribute({"GRAPH": {"name": "body", "node": [{"op_type": "Relu"}]}}),
    "attribute-full": _attribute({"AttributeProto": {"i": 1, "doc_string": "why", "type": "INT"}}),
    "attribute-of-the-table": _attribute_of("Conv", pads=[1, 1], auto_pad="VALID", group={"INT": "1"}),
    "attribute-of-the-table-tagged-otherwise": _attribute_of("Conv", group={"FLOAT": 1.0}),
    "attribute-beside-the-table": _attribute_of("Conv", mine="x"),
    "attribute-of-another-domain": _node(op_type="Conv", domain="com.example", attribute={"group": "x"}),
    "attributes-in-full": _node(attribute=[{"name": "1", "type": "INT", "i": 3}, {"type": "GRAPH", "g": {}}]),
    "tensor-values": _tensor(type="float32[2,2]", values=[[0.1, "NaN"], ["-0.0", 1]]),
    "tensor-base64": _tensor(type="bfloat16[1]", base64="AAA="),
    "tensor-storage": _tensor(type="float32[1]", storage="float_data", values=[0.5]),
    "tensor-strings": _tensor(type="string[2]", values=["a", {"base64": "/w=="}]),
    "tensor-external": _tensor(type="float32[1000]", external_data={"location": "w.bin", "offset": "0"}),
    "tensor-full": _tensor(dims=[-1], data_type="float32", raw_data={"base64": "AAA="}, data_location="DEFAULT"),
    "type-spaces": _type(" float32 [ N , 3 , ? ] "),
    "type-no-shape": _type("FLOAT"),
    "type-quoted": _type("float32['2*s0','']"),
    "type-nested": _type("seq(map(string,optional(float32[?])))"),
    "type-unknown-number": _type("dtype(99)[2]"),
    "type-full": _type({"sequence_type": {"elem_type": "float32[2]"}, "denotation": "IMAGE"}),
    "type-full-tensor": _type({"tensor_type": {"elem_type": "int8", "shape": {"dim": [{"dim_value": -1}, {}]}}}),
    "element-metadata": _graph(
        input=[{"name": "x", "type": "float32"}], element_metadata=[["input", "x", "namespace", "/a/b"]]
    ),
    "function": _model(functions=[{"name": "f", "domain": "d", "input": ["x"], "attribute": ["k"]}]),
    "training": _model(training_info=[{"algorithm": {"name": "step"}, "update_binding": {"w": "w2"}}]),
    "sparse": _graph(sparse_initializer=[{"values": {"type": "float32[1]", "values": [1.0]}, "dims": [4]}]),
    "devices": _node(device_configurations=[{"configuration_id": "c", "sharding_spec": [{"device": [0, 1]}]}]),
    "unknown-fields": _graph(unknown_fields="oAYB"),
}

WRONG = {
    "not-an-object": [],
    "no-format": {"ir_version": 8},
    "other-format": {"format": "onnxjson/2"},
    "proto-json": {"irVersion": "8", "graph": {}},
    "unknown-key": _model(ir_versoin=8),
    "integer-too-big": _model(ir_version=2**63),
    "integer-fraction": _model(ir_version=8.5),
    "integer-word": _model(ir_version="eight"),
    "boolean-for-integer": _model(ir_version=True),
    "number-for-text": _model(producer_name=3),
    "graph-is-a-list": _model(graph=[]),
    "opset-word": _model(opset_import={"": "x"}),
    "opset-number": _model(opset_import=17),
    "node-object": _graph(node={"op_type": "Relu"}),
    "node-key": _graph(node=[{"op_typ": "Relu"}]),
    "node-outputs": _graph(node=[{"op_type": "Relu", "output": "y"}]),
    "node-null": _graph(node=[None]),
    "input-number": _node(input=[3]),
    "attribute-of-the-table": _attribute_of("Conv", pads="SAME"),
    "attribute-of-the-table-int": _attribute_of("Transpose", perm="abc"),
    "attribute-of-the-table-float": _attribute_of("LeakyRelu", alpha="zero"),
    "attribute-of-an-ml-operator": _node(op_type="Normalizer", domain="ai.onnx.ml", attribute={"norm": 3}),
    "attribute-float-untagged": _attribute(0.5),
    "attribute-tensor-untagged": _attribute({"type": "float32[]", "values": 1.5}),
    "attribute-empty-list": _attribute([]),
    "attribute-default-float": _default(0.5),
    "attribute-bytes-untagged": _attribute({"base64": "/w=="}),
    "attribute-null": _attribute(None),
    "attribute-boolean": _attribute(True),
    "attribute-unknown-tag": _attribute({"FLOTA": 1.0}),
    "attribute-tag-wrong-value": _attribute({"INT": "x"}),
    "attribute-two-tags": _attribute({"INT": 1, "FLOAT": 1.0}),
    "attribute-full-name-twice": _attribute({"AttributeProto": {"name": "a", "i": 1}}),
    "attribute-nested-list": _attribute([[1]]),
    "attribute-list-unknown-type": _node(attribute=[{"name": "a", "type": "INTEGER"}]),
    "type-unknown": _type("float33[2]"),
    "type-negative-dim": _type("float32[-1]"),
    "type-bracket": _type("float32[2"),
    "type-leading-zero": _type("float32[02]"),
    "type-number": _type(1),
    "type-two-members": _type({"tensor_type": {}, "sequence_type": {}}),
    "dim-two-members": _type({"tensor_type": {"shape": {"dim": [{"dim_value": 1, "dim_param": "N"}]}}}),
    "tensor-shapeless": _tensor(type="float32", values=[1.0]),
    "tensor-named-dim": _tensor(type="float32[N]", values=[1.0]),
    "tensor-two-payloads": _tensor(type="float32[1]", values=[1.0], base64="AACAPw=="),
    "tensor-no-payload": _tensor(type="float32[1]"),
    "tensor-base64-length": _tensor(type="int8[1]", base64="AAA"),
    "tensor-base64-bits": _tensor(type="int8[1]", base64="AB=="),
    "tensor-base64-urlsafe": _tensor(type="int8[3]", base64="-_-_"),
    "tensor-storage-unknown": _tensor(type="float32[1]", storage="raw_data", values=[1.0]),
    "tensor-mixed-forms": _tensor(type="float32[1]", values=[1.0], dims=[1]),
    "tensor-raw-text": _tensor(dims=[1], data_type="int8", raw_data="AA=="),
    "tensor-null-value": _tensor(type="float32[1]", values=[None]),
    "metadata-number": _model(metadata_props={"k": 1}),
    "metadata-triple": _model(metadata_props=[["k", "v", "w"]]),
    "element-metadata-kind": _graph(element_metadata=[["nodes", "y", "k", "v"]]),
    "element-metadata-short": _graph(element_metadata=[["node", "y", "k"]]),
    "element-metadata-elsewhere": _model(element_metadata=[]),
    "unknown-fields-spaces": _graph(unknown_fields="oAY B"),
    "function-nodes": _model(functions=[{"name": "f", "nodes": []}]),
    "base64-and-more": _node(name={"base64": "/w==", "utf8": "x"}),
}


@pytest.mark.parametrize("broken", WRONG.values(), ids=WRONG.keys())
def test_broken_document_is_invalid(validator: Draft202012Validator, broken: object) -> None:
    assert not validator.is_valid(broken)


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT.keys())
def test_document_of_every_form_is_valid(validator: Draft202012Validator, right: object) -> None:
    validator.validate(right)


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT.keys())
def test_reader_takes_what_the_schema_takes(right: object) -> None:
    api.loads(json.dumps(right))


@pytest.mark.parametrize("name", sorted(WRONG.keys() - {"proto-json"}))
def test_reader_refuses_what_the_schema_refuses(name: str) -> None:
    with pytest.raises(errors.DecodeError) as refused:
        api.loads(json.dumps(WRONG[name]))
    assert refused.value.findings
