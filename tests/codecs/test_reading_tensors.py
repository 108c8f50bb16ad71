"""Tensors: values, base64, storage, external data, the full form."""

import base64
import struct
from typing import Any

import pytest

import onnxjson
from onnxjson.codecs.reading.exact_reader import read
from onnxjson.model import document as d
from onnxjson.model.elements import pack
from onnxjson.model.errors import DecodeError
from onnxjson.model.payloads import Payload
from tests.codecs.documents import codes_of_tensor, float32, tensor


def test_values_become_raw_data() -> None:
    found = tensor(name="w", type="float32[2,2]", values=[[1, 2.5], ["-0.0", "Infinity"]])
    assert found == d.Tensor(dims=(2, 2), data_type=1, name="w", raw_data=float32(1.0, 2.5, -0.0, float("inf")))
    assert tensor(type="int4[3]", values=[1, -1, 7]) == d.Tensor(dims=(3,), data_type=22, raw_data=b"\xf1\x07")
    assert tensor(type="complex64[1]", values=[[1, 2]]).raw_data == float32(1.0, 2.0)
    assert tensor(type="complex64[]", values=[1, 2]).raw_data == float32(1.0, 2.0)
    assert tensor(type="bool[2]", values=[True, False]).raw_data == b"\x01\x00"
    assert tensor(type="DOUBLE[]", values=1).raw_data == struct.pack("<d", 1.0)


def test_base64_and_values_stand_for_each_other() -> None:
    many = [[float(row * 10 + column) for column in range(10)] for row in range(10)]
    raw = pack(1, [number for row in many for number in row])
    encoded = base64.b64encode(raw).decode()
    assert tensor(type="float32[10,10]", values=many) == tensor(type="float32[10,10]", base64=encoded)
    assert tensor(type="float32[1]", base64="AAAAPw==") == tensor(type="float32[1]", values=[0.5])


def test_storage_names_the_typed_field() -> None:
    assert tensor(type="float32[1]", storage="float_data", values=[0.5]) == d.Tensor(
        dims=(1,), data_type=1, float_data=float32(0.5)
    )
    assert tensor(type="int32[2]", storage="int32_data", values=[-1, 300]).int32_data == b"\xff" * 9 + b"\x01\xac\x02"
    assert tensor(type="float32[0]", storage="float_data", values=[]) == d.Tensor(dims=(0,), data_type=1)
    assert tensor(type="float32[0]", values=[]) == d.Tensor(dims=(0,), data_type=1, raw_data=b"")
    assert tensor(type="float16[1]", storage="int32_data", base64="ADw=").int32_data == b"\x80\x78"


INEXACT = [
    "9007199254740993.0", "-9007199254740993e0", "1e18", "9007199254740991.4", "1.00000000000000001", "1e-400",
    "1e-99999999999999999999",
]  # fmt: skip


@pytest.mark.parametrize("number", INEXACT)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int4"])
def test_a_number_that_is_no_integer_up_to_2_to_the_53_exactly_is_none(number: str, dtype: str) -> None:
    text = document_of_tensor(f'{{"name": "w", "type": "{dtype}[1]", "values": [{number}]}}')
    with pytest.raises(DecodeError) as caught:
        onnxjson.loads(text)
    (finding,) = caught.value.findings
    assert (finding.code, finding.line) == ("bad-number", 6)
    assert finding.message.startswith(f"found {number}, expected an integer from ")


@pytest.mark.parametrize(
    ("shape", "values", "message"),
    [
        ("[2]", "[1]", "the list has 1 value; the shape [2] needs 2"),
        ("[2,1]", "[[1]]", "the list has 1 list; the shape [2,1] needs 2"),
        ("[1,2]", "[[1, 2], [3, 4]]", "the list has 2 lists; the shape [1,2] needs 1"),
        ("[1]", "7", "found the number 7, expected a list of 1 value (the shape is [1])"),
        ("[2,1]", "7", "found the number 7, expected a list of 2 lists (the shape is [2,1])"),
    ],
)
def test_counts_are_said_in_plain_words(shape: str, values: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        onnxjson.loads(document_of_tensor(f'{{"name": "w", "type": "int8{shape}", "values": {values}}}'))
    assert [finding.message for finding in caught.value.findings] == [message]


def test_a_number_with_a_point_or_exponent_is_the_integer_that_it_spells_exactly() -> None:
    numbers = [
        "9007199254740992.0", "-9007199254740992.000e0", "90071992547409910e-1", "1e3", "0.0",
        "1" + "0" * 400 + "e-400",
    ]  # fmt: skip
    text = document_of_tensor(f'{{"name": "w", "type": "int64[6]", "values": [{", ".join(numbers)}]}}')
    graph = onnxjson.loads(text).graph
    assert graph is not None
    expected = struct.pack("<6q", 2**53, -(2**53), 2**53 - 1, 1000, 0, 1)
    assert graph.initializer[0].raw_data == expected


def test_any_spelling_is_a_float() -> None:
    text = document_of_tensor('{"name": "w", "type": "float32[3]", "values": [1e3, 9007199254740993.0, 1e-400]}')
    graph = onnxjson.loads(text).graph
    assert graph is not None
    assert graph.initializer[0].raw_data == float32(1000.0, 2.0**53, 0.0)


def document_of_tensor(line: str) -> str:
    """A text, canonical but for the line of its one initializer."""
    head = '{\n"format": "onnxjson/1",\n"graph": {\n  "name": "g",\n  "initializer": [\n    '
    return head + line + "\n  ]\n}\n}\n"


def test_strings_are_values() -> None:
    assert tensor(type="string[2]", values=["a", {"base64": "/w=="}]) == d.Tensor(
        dims=(2,), data_type=8, string_data=(b"a", b"\xff")
    )
    assert codes_of_tensor(type="string[1]", base64="AA==") == ["wrong-type"]
    assert codes_of_tensor(type="string[1]", values=["a"], storage="string_data") == ["bad-storage"]
    assert codes_of_tensor(type="string[2,1]", values=[["a"], [1]]) == ["wrong-type"]


def test_external_data_is_pairs() -> None:
    assert tensor(type="float32[2]", external_data={"location": "w.bin", "offset": "0"}) == d.Tensor(
        dims=(2,),
        data_type=1,
        data_location=1,
        external_data=(d.StringStringEntry("location", "w.bin"), d.StringStringEntry("offset", "0")),
    )
    assert codes_of_tensor(type="float32[2]", external_data={}, storage="float_data") == ["conflicting-keys"]


def test_values_are_nested_by_shape() -> None:
    deep: Any = 1
    for _ in range(8):
        deep = [deep]
    assert tensor(type="int8[1,1,1,1,1,1,1,1]", values=deep).raw_data == b"\x01"
    assert tensor(type="int8[1,1,1,1,1,1,1,1,2]", values=[1, 2]).raw_data == b"\x01\x02"
    assert tensor(type="int8[3,0]", values=[]).raw_data == b""
    for shape, values in {"[]": [1], "[1]": 1, "[2]": [1], "[2,1]": [1, 2], "[2,2]": [[1, 2], [1]], "[0]": [1]}.items():
        assert codes_of_tensor(type=f"int8{shape}", values=values)[0] in ("wrong-type", "wrong-count")


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"type": "float32[2]", "base64": "AAAAPw=="}, "wrong-length"),
        ({"type": "float32[1000000000000,1000000000000]", "base64": "AAAAPw=="}, "wrong-length"),
        ({"type": "float32[1]", "base64": "AAAAPw="}, "bad-base64"),
        ({"type": "float32[1]", "base64": "AAAAPx=="}, "bad-base64"),
        ({"type": "float32[1]", "base64": "AAAA Pw=="}, "bad-base64"),
        ({"type": "float32[1]", "base64": "AAAAPw==\n"}, "bad-base64"),
        ({"type": "float32[1]", "base64": "@cut:0"}, "bad-base64"),
        ({"type": "float32[1]", "base64": "é"}, "bad-base64"),
        ({"type": "float32[1]", "base64": 1}, "wrong-type"),
        ({"type": "float32[N]", "values": [1]}, "bad-type"),
        ({"type": "float33[1]", "values": [1]}, "unknown-dtype"),
        ({"type": "undefined[1]", "values": [1]}, "bad-type"),
        ({"type": 7, "values": [1]}, "wrong-type"),
        ({"type": "int8[1]", "values": [128]}, "bad-number"),
        ({"type": "int8[1]", "values": [{}]}, "wrong-type"),
        ({"type": "float16[1]", "values": [1e10]}, "bad-number"),
        ({"type": "bool[1]", "values": [1]}, "bad-number"),
        ({"type": "int8[1]", "storage": "raw_data", "values": [1]}, "bad-storage"),
        ({"type": "int8[1]", "storage": 1, "values": [1]}, "wrong-type"),
        ({"type": "int8[1]", "values": [1], "dims": [1]}, "unknown-key"),
        ({"type": "int8[1]", "values": [1], "base64": "AQ=="}, "conflicting-keys"),
        ({"type": "int8[1]"}, "missing-key"),
        ({"values": [1]}, "missing-key"),
        ({"type": "int8[1]", "blob": "x"}, "wrong-type"),
        ({"type": "int8[1]", "sha256": "A" * 64}, "wrong-type"),
        ({"type": "int8[1]", "blob": "a" * 64}, "no-blobs-line"),
        ({"type": "int8[1]", "sha256": "a" * 64}, "no-weights-line"),
        ({"type": "int8[1]", "storage": "int32_data", "sha256": "a" * 64}, "bad-digest"),
        ({"data_type": "int8", "raw_data": "AQ=="}, "wrong-type"),
        ({"data_type": "int9"}, "unknown-dtype"),
        ({"data_location": "NEARBY"}, "unknown-name"),
    ],
)
def test_a_tensor_that_cannot_be_is_refused(keys: Any, code: str) -> None:
    assert codes_of_tensor(**keys) == [code]


def test_the_full_form_holds_what_the_short_form_cannot() -> None:
    full = {
        "dims": [-1, 2], "data_type": 99, "segment": {"begin": 1, "end": "2"}, "float_data": [0.5, "NaN"],
        "int32_data": [1, -1], "string_data": ["a"], "int64_data": ["9007199254740993"], "name": "n",
        "raw_data": {"base64": "AQ=="}, "double_data": [0.1], "uint64_data": [str(2**64 - 1)], "doc_string": "doc",
        "external_data": [["location", "x"]], "data_location": "DEFAULT", "metadata_props": {"k": "v"},
        "unknown_fields": "+AMB",
    }  # fmt: skip
    assert tensor(**full) == d.Tensor(
        dims=(-1, 2),
        data_type=99,
        segment=d.Segment(1, 2),
        float_data=float32(0.5) + bytes.fromhex("0000c07f"),
        int32_data=b"\x01" + b"\xff" * 9 + b"\x01",
        string_data=(b"a",),
        int64_data=b"\x81\x80\x80\x80\x80\x80\x80\x10",
        name="n",
        raw_data=b"\x01",
        double_data=struct.pack("<d", 0.1),
        uint64_data=b"\xff" * 9 + b"\x01",
        doc_string="doc",
        external_data=(d.StringStringEntry("location", "x"),),
        data_location=0,
        metadata_props=(d.StringStringEntry("k", "v"),),
        unknown_fields=b"\xf8\x03\x01",
    )


class Cut(Payload):
    """Bytes that were cut out of a text."""


def test_a_payload_that_was_cut_out_is_put_back() -> None:
    cut = Cut(8)
    text = b"""{"format": "onnxjson/1", "graph": {"initializer": [
    {"type": "float32[2]", "base64": "@cut:0"}, {"raw_data": {"base64": "@cut:0"}}]}}"""
    found = read(text, cuts={"@cut:0": cut})[0].graph
    assert found is not None
    assert [each.raw_data is cut for each in found.initializer] == [True, True]
    with pytest.raises(DecodeError, match="has 7 bytes; float32\\[2\\] needs 8"):
        read(text, cuts={"@cut:0": Cut(7)})


@pytest.mark.parametrize("payload", [{"values": [1]}, {"values": []}, {"values": 1}, {"base64": "AAAA"}])
def test_dims_that_multiply_to_thousands_of_digits_are_a_finding(payload: dict[str, Any]) -> None:
    dims = ",".join([str(1 << 62)] * 400)
    assert len(codes_of_tensor(type=f"float32[{dims}]", **payload)) == 1
