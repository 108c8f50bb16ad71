"""Proto-JSON: what others write is read exactly, what json_format would take silently is refused by name."""

import base64
import contextlib
import io
import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest
from google.protobuf import json_format
from onnx import AttributeProto, ModelProto, TensorProto, helper

from onnxjson.codecs import protojson, serde, text_file
from onnxjson.codecs.protojson import json_name
from onnxjson.model import document as d
from onnxjson.model.addresses import resolve
from onnxjson.model.errors import DecodeError, EncodeError, LimitError
from onnxjson.model.messages import FIELDS, Kind


def some_model() -> ModelProto:
    """A model with a field of every kind that proto-JSON spells in a way of its own."""
    node = helper.make_node(
        "Foo",
        ["x", ""],
        ["y"],
        f=1.5,
        big=2**62,
        s=b"\xff\xfe\xfb",
        floats=[
            0.1,
            -0.0,
            float("inf"),
            float("-inf"),
            float("nan"),
            3.4028234663852886e38,
            -3.4028234663852886e38,
            1e-45,
        ],
        ints=[-1, 2**53 + 1],
        strings=["é", "😀"],
        t=helper.make_tensor("t", TensorProto.DOUBLE, [3], [1e308, 3.4028235e38, -0.0]),
    )
    tensors = [
        helper.make_tensor("raw", TensorProto.FLOAT, [2], struct.pack("<2f", 1, 2), raw=True),
        helper.make_tensor("int64", TensorProto.INT64, [2], [-(2**63), 2**63 - 1]),
        helper.make_tensor("uint64", TensorProto.UINT64, [1], [2**64 - 1]),
        TensorProto(name="string", data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"\xff"]),
    ]
    external = TensorProto(name="external", dims=[1], data_type=1, data_location=TensorProto.EXTERNAL)
    external.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, ["N", 2, None])], [], [*tensors, external]
    )
    model = helper.make_model(graph, producer_name="", doc_string="two\nlines \u2028 \x7f", opset_imports=[])
    model.opset_import.add(version=17)
    return model


def record(**fields: Any) -> d.Model:
    """A model whose graph has these fields."""
    return d.Model(ir_version=8, graph=d.Graph(name="g", **fields))


def onnx2json_writes(model: ModelProto) -> bytes:
    import onnx2json.onnx2json as tool

    return json.dumps(tool.convert(onnx_graph=model)).encode()


def json2onnx_reads(text: bytes) -> ModelProto:
    import json2onnx.json2onnx as tool

    model: ModelProto = tool.convert(json_dict=json.loads(text))
    return model


def saved_by_onnx(model: ModelProto) -> bytes:
    stream = io.BytesIO()
    onnx.save(model, stream, format="json")
    return stream.getvalue()


def same(left: ModelProto, right: ModelProto) -> bool:
    return left.SerializeToString(deterministic=True) == right.SerializeToString(deterministic=True)


@pytest.mark.parametrize("write", [onnx2json_writes, saved_by_onnx])
def test_what_other_tools_write_is_read_exactly(write: Any) -> None:
    assert same(protojson.loads(write(some_model())), some_model())


def test_what_is_written_is_read_by_other_tools() -> None:
    text = protojson.dumps(serde.from_proto(some_model()))
    assert same(json2onnx_reads(text), some_model())
    assert same(onnx.load(io.BytesIO(text), format="json"), some_model())
    assert same(protojson.loads(text), some_model())


def test_json_format_cannot_read_its_own_largest_float32_but_ours() -> None:
    assert b"3.4028235e+38" in saved_by_onnx(some_model())
    with pytest.raises(json_format.ParseError):
        json_format.Parse(saved_by_onnx(some_model()), ModelProto())
    tree = json.loads(protojson.dumps(serde.from_proto(some_model())))
    attributes = {each["name"]: each for each in tree["graph"]["node"][0]["attribute"]}
    assert attributes["floats"]["floats"][5:7] == [3.4028234663852886e38, -3.4028234663852886e38]
    assert attributes["t"]["t"]["double_data"][1] == 3.4028235e38


def test_all_else_is_written_as_onnx_writes_it() -> None:
    model = some_model()
    del model.graph.node[0].attribute[:]
    assert protojson.dumps(serde.from_proto(model)) == saved_by_onnx(model) + b"\n"


@pytest.mark.parametrize("record_type", FIELDS)
def test_names_in_json_are_those_of_protobuf(record_type: type[d.Record]) -> None:
    descriptors = {each.name: each for each in ModelProto.DESCRIPTOR.file.message_types_by_name.values()}
    descriptors |= {nested.name: nested for each in list(descriptors.values()) for nested in each.nested_types}
    names = {field.name for field in FIELDS[record_type]}
    (found, *_) = [each for each in descriptors.values() if {field.name for field in each.fields} == names]
    assert {json_name(field.name) for field in FIELDS[record_type]} == {field.json_name for field in found.fields}


def graph_of(text: str) -> Any:
    return protojson.loads(b'{"irVersion": 8, "graph": ' + text.encode() + b"}").graph


def attribute_of(text: str, value: str = "") -> AttributeProto:
    """The attribute of a text in which ``@`` stands for `value`."""
    text = text.replace("@", value)
    attribute: AttributeProto = graph_of('{"node": [{"attribute": [' + text + "]}]}").node[0].attribute[0]
    return attribute


@pytest.mark.parametrize("kind", ['"FLOAT"', "1", '"1"', "1.0"])
def test_enums_go_by_name_or_number(kind: str) -> None:
    assert attribute_of('{"type": @, "f": 1}', kind).type == AttributeProto.FLOAT


@pytest.mark.parametrize("text", ["-5", '"-5"', "-5.0", "-0.5e1"])
def test_integers_go_as_numbers_or_strings(text: str) -> None:
    assert attribute_of('{"i": @, "ints": [@]}', text).ints == [-5]


@pytest.mark.parametrize("text", ["//79_w==", "__79_w==", "//79/w", "__79_w"])
def test_base64_may_be_url_safe_and_without_padding(text: str) -> None:
    assert attribute_of('{"s": "@"}', text).s == b"\xff\xfe\xfd\xff"


@pytest.mark.parametrize("length", range(9))
def test_bytes_of_any_length_are_read(length: int) -> None:
    data = bytes(range(247, 247 + length))
    for text in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode().rstrip("=")):
        assert attribute_of('{"s": "@"}', text).s == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("-0", "00000080"), ("-0.0", "00000080"), ('"-0.0"', "00000080"), ("1", "0000803f"), ('"1.5"', "0000c03f"),
        ('"NaN"', "0000c07f"), ('"-Infinity"', "000080ff"), ("3.4028235e+38", "ffff7f7f"),
        ("-3.4028235e+38", "ffff7fff"), ("1e-50", "00000000"),
    ],
)  # fmt: skip
def test_floats_are_read_as_they_were_meant(text: str, data: str) -> None:
    attribute = attribute_of('{"f": @, "floats": [@]}', text)
    assert struct.pack("<f", attribute.f).hex() == struct.pack("<f", attribute.floats[0]).hex() == data


def test_null_is_an_absent_field() -> None:
    assert graph_of('{"name": null, "node": null, "docString": "d"}') == onnx.GraphProto(doc_string="d")


def test_an_empty_object_is_a_present_message() -> None:
    assert protojson.loads(b'{"graph": {}, "irVersion": 1}').HasField("graph")


def test_comments_and_trailing_commas_are_taken() -> None:
    assert protojson.loads(b'{"irVersion": "8", // current\n "graph": {},}').ir_version == 8


REFUSED = {
    "duplicate key": ('{"name": "a", "name": "b"}', "duplicate-key", 'the key "name" appears twice in this object'),
    "two names of one field": (
        '{"docString": "a", "doc_string": "b"}',
        "duplicate-key",
        '"doc_string" and "docString" are two names of one field',
    ),
    "unknown key": ('{"nodes": []}', "unknown-key", 'a graph has no key "nodes"'),
    "extension": ('{"[onnx.x]": 1}', "unknown-key", 'a graph has no key "[onnx.x]"'),
    "base64 character": (
        '{"initializer": [{"rawData": "!!!!"}]}',
        "bad-base64",
        "the base64 has '!', which base64 does not use",
    ),
    "base64 length": ('{"initializer": [{"rawData": "AAAAA"}]}', "bad-base64", "the base64 has 5 digits"),
    "base64 padding": ('{"initializer": [{"rawData": "AA="}]}', "bad-base64", "the base64 has 3 characters with 1 `=`"),
    "base64 trailing bits": ('{"initializer": [{"rawData": "AB"}]}', "bad-base64", "the last digit of the base64, B"),
    "base64 line feed": ('{"initializer": [{"rawData": "AAAA\\nAAAA"}]}', "bad-base64", "the base64 has '\\n'"),
    "integer out of range": (
        '{"initializer": [{"dims": [9223372036854775808]}]}',
        "out-of-range",
        "9223372036854775808 is out of range for int64",
    ),
    "integer of 32 bits": (
        '{"initializer": [{"dataType": 2147483648}]}',
        "out-of-range",
        "2147483648 is out of range for int32",
    ),
    "integer with underscore": ('{"initializer": [{"dims": ["1_0"]}]}', "wrong-type", 'found the string "1_0"'),
    "fraction": ('{"initializer": [{"dims": [1.5]}]}', "wrong-type", "found the number 1.5"),
    "bool for integer": ('{"initializer": [{"dims": [true]}]}', "wrong-type", "found true"),
    "negative unsigned": ('{"initializer": [{"uint64Data": ["-1"]}]}', "out-of-range", '"-1" is out of range for'),
    "float32 too large": ('{"initializer": [{"floatData": [3.5e38]}]}', "bad-number", "found 3.5e38, expected"),
    "float as text": ('{"initializer": [{"floatData": ["1e999"]}]}', "bad-number", "found 1e999, expected a number"),
    "float with underscore": ('{"initializer": [{"doubleData": ["1_0"]}]}', "bad-number", "found 1_0, expected"),
    "Python's infinity": ('{"initializer": [{"doubleData": ["inf"]}]}', "bad-number", "found inf, expected a number"),
    "float64 too large": (
        '{"initializer": [{"doubleData": [1e999]}]}',
        "out-of-range",
        "the number 1e999 is too large",
    ),
    "huge integer for a float": (
        '{"initializer": [{"doubleData": [1%s]}]}' % ("0" * 400),
        "bad-number",
        "found an integer beyond",
    ),
    "bool for float": ('{"initializer": [{"floatData": [true]}]}', "wrong-type", "found true, expected a number"),
    "NaN literal": ('{"initializer": [{"floatData": [NaN]}]}', "", "NaN"),
    "integer that is another one": (
        '{"node": [{"attribute": [{"ints": [9007199254740993.0]}]}]}',
        "bad-number",
        "9007199254740993.0 may have lost digits",
    ),
    "unknown enum name": (
        '{"node": [{"attribute": [{"type": "FLOATY"}]}]}',
        "unknown-name",
        '"FLOATY" is not an AttributeType',
    ),
    "unknown enum number": (
        '{"node": [{"attribute": [{"type": 99}]}]}',
        "unknown-name",
        "an AttributeType has no number 99",
    ),
    "dtype by name": ('{"initializer": [{"dataType": "FLOAT"}]}', "wrong-type", 'found the string "FLOAT"'),
    "two of a oneof": (
        '{"input": [{"type": {"tensorType": {}, "mapType": {}}}]}',
        "conflicting-keys",
        '"mapType" and "tensorType" exclude each other',
    ),
    "number for text": ('{"name": 1}', "wrong-type", "found the number 1, expected a string"),
    "object for list": ('{"node": {}}', "wrong-type", "found an object, expected a list"),
    "text for message": ('{"node": ["a"]}', "wrong-type", 'found the string "a", expected an object (a node)'),
    "null in a list": ('{"node": [null]}', "wrong-type", "null cannot be an item of a list"),
    "half of a pair": ('{"name": "ab\\ud83d"}', "half-surrogate", "the string has \\ud83d"),
    "syntax": ('{"name" "a"}', "missing-colon", "a colon is missing"),
}


@pytest.mark.parametrize(("graph", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_what_json_format_takes_silently_is_refused(graph: str, code: str, message: str) -> None:
    before = '{"irVersion": 8,\n  "graph": '
    with pytest.raises(DecodeError) as caught:
        protojson.loads((before + graph + "}").encode(), file="model.json")
    (finding,) = caught.value.findings
    assert finding.message.startswith(message) or (not code and message in finding.message)
    assert finding.code == code or not code
    assert (finding.severity, finding.file, finding.line) == ("error", "model.json", 2)
    assert 11 < finding.column < 12 + len(graph)
    assert str(caught.value) == str(finding)


def test_places_are_those_of_key_and_value() -> None:
    text = b'{"irVersion": "8",\n "graph": {"node": [{"opTyp": "A"},\n  {"input": ["\xc3\xa4", 3]}]}}'
    with pytest.raises(DecodeError) as caught:
        protojson.loads(text, file="m.json")
    assert [str(finding) for finding in caught.value.findings] == [
        'm.json:2:22: a node has no key "opTyp"; did you mean "opType"?',
        "m.json:3:19: found the number 3, expected a string",
    ]
    assert str(caught.value).endswith("(and 1 more)")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"nonsense", b'{"graph": {}', b"\xff\xfe{}", b'{"a": "\xff"}', b"null", b"3"]
)
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        protojson.loads(text)
    assert caught.value.findings


def nested(depth: int) -> ModelProto:
    """A model of sequence types inside each other."""
    model = ModelProto(ir_version=8)
    inner = model.graph.input.add(name="x").type
    for _ in range(depth):
        inner = inner.sequence_type.elem_type
    inner.tensor_type.elem_type = 1
    return model


def test_messages_nest_as_deep_as_in_a_binary_and_no_deeper() -> None:
    deepest = nested(48)
    assert same(protojson.loads(protojson.dumps(serde.from_proto(deepest))), deepest)
    text = json_format.MessageToJson(nested(49)).encode()
    with pytest.raises(DecodeError, match="messages nest deeper than the 100 levels"):
        protojson.loads(text)
    with pytest.raises(DecodeError, match="nest"):
        protojson.loads(b'{"graph":' * 100_000)
    chain = d.Type(tensor_type=d.TensorType())
    for _ in range(2000):
        chain = d.Type(sequence_type=d.SequenceType(chain))
    with pytest.raises(LimitError):
        protojson.dumps(record(input=(d.ValueInfo(type=chain),)))


def f32(bits: int) -> bytes:
    return bits.to_bytes(4, "little")


UNSAYABLE: dict[str, tuple[d.Model, str, str]] = {
    "unknown fields": (
        msgspec.structs.replace(record(), unknown_fields=b"\xf8\x07\x01"),
        "/",
        "the message has fields that onnx.proto does not define",
    ),
    "unknown fields inside": (
        record(node=(d.Node(), d.Node(unknown_fields=b"\xf8\x07\x01"))),
        "/graph/node/1",
        "the message has fields",
    ),
    "NaN payload": (
        record(node=(d.Node(attribute=(d.Attribute(name="alpha/~", f=f32(0x7FC00001)),)),)),
        "/graph/node/0/attribute/alpha~1~0/f",
        "NaN(0x7fc00001), but proto-JSON has only NaN(0x7fc00000)",
    ),
    "NaN among floats": (
        record(node=(d.Node(attribute=(d.Attribute(), d.Attribute(floats=f32(0x7FC00000) + f32(0xFFC00000)))),)),
        "/graph/node/0/attribute/#1/floats",
        "element 1 is NaN(0xffc00000), but",
    ),
    "NaN in many floats": (
        record(initializer=(d.Tensor(float_data=bytes(4000) + f32(0x7F800001)),)),
        "/graph/initializer/0/float_data",
        "element 1000 is NaN(0x7f800001), but",
    ),
    "NaN in many doubles": (
        record(initializer=(d.Tensor(double_data=bytes(8000) + bytes.fromhex("010000000000f8ff")),)),
        "/graph/initializer/0/double_data",
        "element 1000 is NaN(0xfff8000000000001), but proto-JSON has only NaN(0x7ff8000000000000)",
    ),
    "bytes that are no UTF-8": (
        record(input=(d.ValueInfo(name="a\udcff"),)),
        "/graph/input/0/name",
        '"a\\u{dcff}" has bytes that are not UTF-8',
    ),
    "bytes that are no UTF-8 in a list": (
        record(node=(d.Node(input=("a", "\udcff")),)),
        "/graph/node/0/input/1",
        '"\\u{dcff}" has bytes',
    ),
    "a name that begins with a number sign": (
        record(node=(d.Node(attribute=(d.Attribute(name="#1", f=f32(0x7FC00001)),)),)),
        "/graph/node/0/attribute/#0/f",
        "NaN(0x7fc00001)",
    ),
    "unknown attribute type": (
        record(node=(d.Node(attribute=(d.Attribute(name="a", type=99),)),)),
        "/graph/node/0/attribute/a/type",
        "AttributeProto.AttributeType has no number 99",
    ),
    "unknown location": (
        record(initializer=(d.Tensor(data_location=7),)),
        "/graph/initializer/0/data_location",
        "TensorProto.DataLocation has no number 7",
    ),
}


def test_the_address_of_a_loss_is_the_one_of_the_record_and_its_message_is_visible() -> None:
    attribute = d.Attribute(name="a\x1b[2J/b", f=f32(0x7FC00001))
    model = record(node=(d.Node(attribute=(attribute,)),))
    with pytest.raises(EncodeError) as caught:
        protojson.dumps(model)
    assert resolve(model, caught.value.findings[0].address) == attribute.f
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("model", "address", "message"), UNSAYABLE.values(), ids=UNSAYABLE)
def test_what_proto_json_cannot_hold_is_refused_by_name_and_written_if_asked(
    model: d.Model, address: str, message: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        protojson.dumps(model)
    (finding,) = caught.value.findings
    assert finding.address == address
    assert finding.message.startswith(message)
    assert str(caught.value).startswith(f"proto-JSON cannot represent this model: {address}: ")
    text = protojson.dumps(model, lossy=True)
    read = protojson.loads(text)
    assert protojson.dumps(serde.from_proto(read)) == text
    with contextlib.suppress(KeyError):
        assert "\ufffd" in json.dumps(json.loads(text), ensure_ascii=False) or "UTF-8" not in message


def test_quiet_nans_and_unknown_dtypes_are_held() -> None:
    tensor = d.Tensor(
        dims=(2,), data_type=99, float_data=f32(0x7FC00000) * 600, double_data=bytes.fromhex("000000000000f87f")
    )
    model = record(initializer=(tensor,))
    assert serde.from_proto(protojson.loads(protojson.dumps(model))) == model


def test_models_that_onnx_ships_come_back_byte_for_byte() -> None:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    paths = sorted(folder.rglob("*.onnx"))[::8]
    assert len(paths) > 10
    for path in paths:
        data = path.read_bytes()
        text = protojson.dumps(serde.parse(data).model)
        assert same(protojson.loads(text), ModelProto.FromString(data))
        assert same(onnx.load(io.BytesIO(text), format="json"), ModelProto.FromString(data))


def test_every_kind_of_field_is_checked() -> None:
    handled = {*protojson._CHECKS, Kind.MESSAGE, Kind.ATTRIBUTE_TYPE, Kind.DATA_LOCATION}
    assert handled == set(Kind)


@pytest.mark.parametrize("graph", [{}, {"name": "g"}, {"node": [{"op_type": "Relu", "input": ["x"], "output": ["y"]}]}])
@pytest.mark.parametrize("names", ["camelCase", "of the .proto file"])
def test_a_model_without_a_version_is_read_back(graph: dict[str, object], names: str) -> None:
    proto = json_format.ParseDict({"graph": graph}, ModelProto())
    text = json_format.MessageToJson(proto, preserving_proto_field_name=names != "camelCase")
    read = text_file.read_bytes(text.encode())
    assert read.format == "protojson"
    assert serde.to_proto(read.model) == proto
