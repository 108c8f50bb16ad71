"""Documents that are broken in one way each, by category. None of them may load; none may do anything else."""

import base64
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple


class BrokenDocument(NamedTuple):
    """A text that is no model."""

    name: str
    text: bytes


BASE = """{
"format": "onnxjson/1",
"ir_version": 10,
"producer_name": "pytorch",
"model_version": 3,
"doc_string": [
  "one",
  "two"
],
"opset_import": {"": 20, "com.acme": 1},
"graph": {
  "name": "main",
  "input": [
    {"name": "x", "type": "float32[N,4]", "doc_string": "input"}
  ],
  "output": [
    {"name": "y", "type": "seq(float32['2*N',?])"}
  ],
  "node": [
    {"op_type": "Gemm", "output": ["h"],
     "input": ["x", "w", "b"],
     "name": "/fc/Gemm",
     "attribute": {
       "alpha": 0.5,
       "transB": 1,
       "note": {"FLOATS": [0.5, 1.0]}
     }},
    {"op_type": "If", "output": ["y"],
     "input": ["h"],
     "domain": "com.acme",
     "attribute": {
       "body": {"GRAPH": {
         "name": "inner",
         "node": [
           {"op_type": "Relu", "output": ["r"],
            "input": ["h"]}
         ]
       }},
       "odd": {"AttributeProto": {"type": "INT", "ref_attr_name": "k"}}
     }}
  ],
  "initializer": [
    {"name": "w", "type": "float32[2,4]",
     "values": [
       [0.1, 0.2, 0.3, 0.4],
       [1.0, 2.0, 3.0, 4.0]
     ]},
    {"name": "b", "type": "int64[2]", "base64": "AQAAAAAAAAACAAAAAAAAAA=="},
    {"name": "e", "type": "float32[9]", "external_data": {"location": "w.bin", "offset": "0"}}
  ],
  "sparse_initializer": [
    {"values": {"name": "s", "type": "float32[1]", "values": [1.0]}, "indices": {"type": "int64[1]", "values": [3]},
     "dims": [4]}
  ],
  "quantization_annotation": [
    {"tensor_name": "x", "quant_parameter_tensor_names": {"SCALE_TENSOR": "b"}}
  ],
  "value_info": [
    {"name": "h", "type": "float32"}
  ],
  "metadata_props": {
    "a": "b"
  },
  "element_metadata": [
    ["node", "h", "namespace", "fc"],
    ["input", "x", "unit", "m"]
  ]
},
"functions": [
  {
    "name": "f",
    "domain": "com.acme",
    "opset_import": {"": 20},
    "input": ["a"],
    "output": ["c"],
    "attribute": ["k"],
    "node": [
      {"op_type": "Relu", "output": ["c"],
       "input": ["a"]}
    ]
  }
],
"training_info": [
  {
    "algorithm": {
      "name": "step"
    },
    "update_binding": {"w": "w2"}
  }
],
"configuration": [
  {"name": "gpus", "num_devices": 2, "device": ["0", "1"]}
],
"metadata_props": {
  "author": "me"
},
"unknown_fields": "mAYB"
}
"""
"""A valid document that has something of everything; the tests load it."""


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(path: tuple[Any, ...], value: Any) -> bytes:
    """`BASE` with the value at `path` replaced."""
    document = json.loads(BASE)
    _at(document, path[:-1])[path[-1]] = value
    return json.dumps(document).encode()


def _valid(*path: Any) -> Any:
    """The value that stands at `path` in `BASE`."""
    return _at(json.loads(BASE), path)


def _label(path: tuple[Any, ...]) -> str:
    return "/".join(str(key) for key in path)


def cut() -> Iterator[BrokenDocument]:
    """The valid document cut at every seventh character, and inside of characters of more than one byte."""
    data = BASE.encode()
    for end in range(1, len(data.rstrip()), 7):
        yield BrokenDocument(f"cut at {end}", data[:end])
    accented = BASE.replace("pytorch", "漢字é😀").encode()
    start = accented.index("漢".encode())
    for end in range(start, start + 12):
        yield BrokenDocument(f"cut in a character at {end}", accented[:end])


def syntax() -> Iterator[BrokenDocument]:
    """Characters that are no JSON, one place each."""
    replacements = {
        "comma missing": ('"ir_version": 10,', '"ir_version": 10'),
        "comma missing in a list": ('["x", "w", "b"]', '["x" "w", "b"]'),
        "two commas": ('"ir_version": 10,', '"ir_version": 10,,'),
        "comma first": ('["x", "w"', '[, "x", "w"'),
        "only a comma": ('["a"]', "[,]"),
        "colon missing": ('"ir_version": 10', '"ir_version" 10'),
        "two colons": ('"ir_version": 10', '"ir_version":: 10'),
        "equals sign": ('"ir_version": 10', '"ir_version" = 10'),
        "value missing": ('"ir_version": 10', '"ir_version": '),
        "key without quotes": ('"ir_version": 10', "ir_version: 10"),
        "key that is a number": ('"ir_version": 10', "10: 10"),
        "single quotes": ('"pytorch"', "'pytorch'"),
        "smart quotes": ('"pytorch"', "\u201cpytorch\u201d"),
        "quote missing": ('"pytorch"', '"pytorch'),
        "quote missing in front": ('"pytorch"', 'pytorch"'),
        "extra brace": ('"doc_string": "input"}', '"doc_string": "input"}}'),
        "extra bracket": ('["a"]', '["a"]]'),
        "brace for bracket": ('["a"]', '["a"}'),
        "bracket for brace": ('{"w": "w2"}', '{"w": "w2"]'),
        "line feed in a string": ('"pytorch"', '"py\ntorch"'),
        "tab in a string": ('"pytorch"', '"py\ttorch"'),
        "NUL in a string": ('"pytorch"', '"py\x00torch"'),
        "control character in a string": ('"pytorch"', '"py\x1btorch"'),
        "NUL between tokens": ('"ir_version": 10', '"ir_version": \x00 10'),
        "no-break space between tokens": ('"ir_version": 10', '"ir_version":\u00a010'),
        "escape of x": ('"pytorch"', '"\\x41"'),
        "escape of a quote": ('"pytorch"', '"\\\'"'),
        "escape cut": ('"pytorch"', '"\\u12"'),
        "escape not hexadecimal": ('"pytorch"', '"\\u12g4"'),
        "escape of digits": ('"pytorch"', '"\\012"'),
        "lone high surrogate": ('"pytorch"', '"\\ud800"'),
        "lone low surrogate": ('"pytorch"', '"\\udc00"'),
        "surrogates in the wrong order": ('"pytorch"', '"\\udc00\\ud800"'),
        "high surrogate before a letter": ('"pytorch"', '"\\ud83dx"'),
        "two high surrogates": ('"pytorch"', '"\\ud83d\\ud83d"'),
        "number with a leading zero": ('"ir_version": 10', '"ir_version": 010'),
        "number with a plus": ('"ir_version": 10', '"ir_version": +10'),
        "hexadecimal number": ('"ir_version": 10', '"ir_version": 0x10'),
        "number with an underscore": ('"ir_version": 10', '"ir_version": 1_0'),
        "number with a comma": ('"ir_version": 10', '"ir_version": 1,0'),
        "number that ends with a point": ("0.5,", "5.,"),
        "number that begins with a point": ("0.5,", ".5,"),
        "number with an empty exponent": ("0.5,", "5e,"),
        "number with two points": ("0.5,", "1.2.3,"),
        "minus alone": ("0.5,", "-,"),
        "two minuses": ("0.5,", "--1,"),
        "NaN literal": ("0.5,", "NaN,"),
        "Infinity literal": ("0.5,", "Infinity,"),
        "minus Infinity literal": ("0.5,", "-Infinity,"),
        "nan literal": ("0.5,", "nan,"),
        "bare minus zero": ("0.5,", "-0,"),
        "bare minus zero for an integer": ('"transB": 1', '"transB": -0'),
        "Python True": ('"transB": 1', '"transB": True'),
        "Python None": ('"transB": 1', '"transB": None'),
        "undefined": ('"transB": 1', '"transB": undefined'),
        "a word": ('"transB": 1', '"transB": abc'),
        "half a word": ('"transB": 1', '"transB": tru'),
        "block comment": ('"ir_version": 10,', '"ir_version": 10, /* no */'),
        "hash comment": ('"ir_version": 10,', '"ir_version": 10, # no'),
        "one slash": ('"ir_version": 10,', '"ir_version": 10, / no'),
        "comment that swallows the rest of the line": ('"ir_version": 10,', '"ir_version": // 10,'),
        "conflict marker": ('"ir_version": 10,', '<<<<<<< HEAD\n"ir_version": 10,'),
        "conflict separator": ('"ir_version": 10,', '"ir_version": 10,\n======='),
        "conflict end": ('"ir_version": 10,', '"ir_version": 10,\n>>>>>>> topic'),
        "diff line": ('"ir_version": 10,', '-"ir_version": 9,\n+"ir_version": 10,'),
        "ellipsis": ('"ir_version": 10,', '"ir_version": 10, ...'),
    }
    for name, (old, new) in replacements.items():
        assert BASE.count(old) >= 1, name
        yield BrokenDocument(name, BASE.replace(old, new, 1).encode())


def whole() -> Iterator[BrokenDocument]:
    """Documents that are wrong as a whole."""
    data = BASE.encode()
    texts = {
        "empty": b"",
        "white space": b" \n\t\n",
        "byte order mark only": b"\xef\xbb\xbf",
        "a list": b"[]",
        "an empty object": b"{}",
        "a string": b'"onnxjson/1"',
        "a number": b"1",
        "a word before the document": b"model:\n" + data,
        "a fence before the document": b"```json\n" + data + b"```\n",
        "a number before the document": b"1 " + data,
        "no brace before the document": data.lstrip(b"{\n"),
        "prose": b"# Digits\n\nA model of ten digits.\n",
        "null": b"null",
        "true": b"true",
        "a comment": b"// nothing\n",
        "text after the end": data + b"x",
        "an object after the end": data + b"{}",
        "the document twice": data + data,
        "a brace after the end": data + b"}",
        "a comma after the end": data.rstrip() + b",",
        "UTF-16": BASE.encode("utf-16"),
        "UTF-16 without a mark": BASE.encode("utf-16-le"),
        "UTF-16, big end first, without a mark": BASE.encode("utf-16-be"),
        "UTF-32 without a mark": BASE.encode("utf-32-le"),
        "UTF-32, big end first, without a mark": BASE.encode("utf-32-be"),
        "UTF-32": BASE.encode("utf-32"),
        "Latin-1": BASE.replace("pytorch", "caf\xe9").encode("latin-1"),
        "byte 0xff in a string": data.replace(b"pytorch", b"py\xfftorch"),
        "byte 0xff between tokens": data.replace(b'"ir_version": 10', b'"ir_version": \xff10'),
        "surrogate in UTF-8": data.replace(b"pytorch", b"\xed\xa0\x80"),
        "overlong UTF-8": data.replace(b"pytorch", b"\xc0\x80"),
        "beyond U+10FFFF": data.replace(b"pytorch", b"\xf4\x90\x80\x80"),
        "no format": data.replace(b'"format": "onnxjson/1",\n', b""),
        "format 2": data.replace(b"onnxjson/1", b"onnxjson/2"),
        "format without a version": data.replace(b"onnxjson/1", b"onnxjson"),
        "format of a patch": data.replace(b"onnxjson/1", b"onnxjson-patch/1"),
        "format in capitals": data.replace(b"onnxjson/1", b"ONNXJSON/1"),
        "format a number": data.replace(b'"onnxjson/1"', b"1"),
        "format null": data.replace(b'"onnxjson/1"', b"null"),
        "format a list": data.replace(b'"onnxjson/1"', b'["onnxjson/1"]'),
        "format twice": data.replace(b'"format"', b'"format": "onnxjson/1", "format"'),
        "weights elsewhere": data.replace(b'"ir_version"', b'"weights": "elsewhere", "ir_version"'),
        "blobs without a name": data.replace(b'"ir_version"', b'"blobs": "", "ir_version"'),
        "YAML": b"format: onnxjson/1\nir_version: 10\n",
        "an HTML page": b"<!DOCTYPE html><html><body>404</body></html>",
        "an LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "protobuf text": b'ir_version: 10\ngraph { name: "main" }\n',
        "proto-JSON without a graph": b'{"irVersion": "10"}',
        "proto-JSON with an unknown key": b'{"irVersion": "10", "graph": {"nodes": []}}',
        "proto-JSON with a wrong type": b'{"irVersion": "10", "graph": {"node": {}}}',
        "proto-JSON with a number out of range": b'{"irVersion": "9223372036854775808", "graph": {}}',
        "proto-JSON with broken base64": b'{"irVersion": 1, "graph": {"initializer": [{"rawData": "!!!!"}]}}',
        "proto-JSON with a key twice": b'{"irVersion": 1, "irVersion": 2, "graph": {}}',
        "proto-JSON with a key in both spellings": b'{"irVersion": 1, "ir_version": 2, "graph": {}}',
        "proto-JSON cut": b'{"irVersion": "10", "graph": {"name": "x"}',
    }
    for name, text in texts.items():
        yield BrokenDocument(name, text)


def wrong_types() -> Iterator[BrokenDocument]:
    """null, true and an unknown object at every place of the valid document: none fits anywhere in it."""
    for path in _paths(json.loads(BASE)):
        if path and path != ("format",):
            yield BrokenDocument(f"{_label(path)} is null", _with(path, None))
            yield BrokenDocument(f"{_label(path)} is true", _with(path, True))
            yield BrokenDocument(f"{_label(path)} is a wrong object", _with(path, {"no such key": [[{}]]}))


def keys() -> Iterator[BrokenDocument]:
    """An unknown key and a duplicate key in every object whose keys the format fixes, and duplicates in the others."""
    document = json.loads(BASE)
    by_names = {
        "opset_import", "attribute", "metadata_props", "external_data", "update_binding",
        "quant_parameter_tensor_names",
    }  # fmt: skip
    for path in _paths(document):
        value = _at(document, path)
        if not isinstance(value, dict):
            continue
        first = next(iter(value))
        open_brace = json.dumps(value)
        twice = "{" + f"{json.dumps(first)}: {json.dumps(value[first])}, " + open_brace[1:]
        yield BrokenDocument(f"{_label(path)}: key twice", json.dumps(document).replace(open_brace, twice, 1).encode())
        if not path or path[-1] not in by_names:
            unknown = "{" + '"op_typ": "Relu", ' + open_brace[1:]
            yield BrokenDocument(
                f"{_label(path)}: unknown key", json.dumps(document).replace(open_brace, unknown, 1).encode()
            )


def integers() -> Iterator[BrokenDocument]:
    """Integers that are none, or out of range, at places of 64 and of 32 bits."""
    wrong: tuple[Any, ...] = (
        2**63, -(2**63) - 1, 2**64, 10**30, 1.5, 1e30, 1e400, "1.5", "abc", "", " 1", "1 ", "0x1", "1e3", "٣", "+1",
        "-0", "007", [],
    )  # fmt: skip
    places: tuple[tuple[Any, ...], ...] = (
        ("ir_version",), ("model_version",), ("opset_import", ""), ("graph", "node", 0, "attribute", "transB"),
        ("graph", "sparse_initializer", 0, "dims", 0), ("graph", "sparse_initializer", 0, "indices", "values", 0),
        ("configuration", 0, "num_devices"),
    )  # fmt: skip
    for path in places:
        for value in wrong:
            text = _with(path, "@@")
            shown = "1e400" if value == 1e400 else json.dumps(value)
            yield BrokenDocument(f"{_label(path)} is {shown}", text.replace(b'"@@"', shown.encode()))
    for value in (2**31, -(2**31) - 1):
        yield BrokenDocument(f"num_devices is {value}", _with(("configuration", 0, "num_devices"), value))


DTYPE_BITS = {
    "float32": 32, "uint8": 8, "int8": 8, "uint16": 16, "int16": 16, "int32": 32, "int64": 64, "bool": 8,
    "float16": 16,
    "float64": 64, "uint32": 32, "uint64": 64, "complex64": 64, "complex128": 128, "bfloat16": 16, "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8, "uint4": 4, "int4": 4, "float4_e2m1fn": 4,
    "float8_e8m0fnu": 8, "uint2": 2, "int2": 2, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
}  # fmt: skip
"""Every dtype with a fixed size and its bits."""


def _tensor(fields: dict[str, Any]) -> bytes:
    return _with(("graph", "initializer", 0), {"name": "w", **fields})


def lengths() -> Iterator[BrokenDocument]:
    """Values and bytes of every dtype that are too few or too many."""
    for dtype, bits in DTYPE_BITS.items():
        size = (5 * bits + 7) // 8
        one: Any = {"bool": True, "complex64": [1.0, 0.0], "complex128": [1.0, 0.0]}.get(dtype, 1)
        for count in (4, 6):
            yield BrokenDocument(
                f"{dtype}: {count} values for 5", _tensor({"type": f"{dtype}[5]", "values": [one] * count})
            )
        for length in (0, size - 1, size + 1, size * 2):
            text = base64.b64encode(bytes(length)).decode()
            yield BrokenDocument(
                f"{dtype}: {length} bytes for {size}", _tensor({"type": f"{dtype}[5]", "base64": text})
            )
    for values in ([[1.0]], [[1.0, 2.0], [3.0]], [1.0, 2.0, 3.0, 4.0], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
                   [[1.0, 2.0], 3.0], [], 1.0,
                   [[[1.0], [2.0]], [[3.0], [4.0]]]):  # fmt: skip
        yield BrokenDocument(f"float32[2,2] is {values}", _tensor({"type": "float32[2,2]", "values": values}))
    yield BrokenDocument("a scalar is a list", _tensor({"type": "float32[]", "values": [1.0]}))
    yield BrokenDocument("no elements but one", _tensor({"type": "float32[0]", "values": [1.0]}))
    yield BrokenDocument("strings too few", _tensor({"type": "string[2]", "values": ["a"]}))
    yield BrokenDocument(
        "more elements than memory", _tensor({"type": "float32[4611686018427387904]", "values": [1.0]})
    )
    yield BrokenDocument(
        "dims whose product overflows", _tensor({"type": "uint8[4294967296,4294967296]", "base64": ""})
    )


def elements() -> Iterator[BrokenDocument]:
    """One element that its dtype does not have."""
    wrong: dict[str, tuple[Any, ...]] = {
        "uint8": (256, -1, 1.5, "x", [1], True, "NaN"),
        "int8": (128, -129, 0.5, True),
        "uint16": (65536, -1),
        "int16": (32768, -32769),
        "int32": (2**31, -(2**31) - 1),
        "uint32": (2**32, -1),
        "int64": (2**63, -(2**63) - 1, "9223372036854775808"),
        "uint64": (2**64, -1, "18446744073709551616"),
        "uint4": (16, -1),
        "int4": (8, -9),
        "uint2": (4, -1),
        "int2": (2, -3),
        "bool": (0, 1, 2, "true", 0.5),
        "string": (1, True, 1.5, ["a"], {"base64": "!"}),
        "float32": (
            "abc",
            True,
            [1.0],
            "nan",
            "inf",
            "NaN(0x1)",
            "NaN(0x7f800000)",
            "NaN(0x7FC00001)",
            "NaN(0x7fc000010)",
            "1,5",
        ),
        "float16": ("abc", True, "NaN(0x7c00)", "NaN(0x17e01)"),
        "float64": ("abc", "NaN(0x7ff0000000000000)", False),
        "complex64": (1.0, [1.0], [1.0, 2.0, 3.0], ["a", 1.0]),
        "bfloat16": ("abc", [1.0]),
        "float8_e4m3fn": ("Infinity", "abc"),
        "float4_e2m1fn": ("NaN", "Infinity"),
    }
    for dtype, values in wrong.items():
        for value in values:
            yield BrokenDocument(f"{dtype} is {value!r}", _tensor({"type": f"{dtype}[1]", "values": [value]}))


def base64_texts() -> Iterator[BrokenDocument]:
    """Base64 that is none, or not the canonical one, wherever bytes stand."""
    wrong = (
        "AQ", "AQ=", "AQ===", "AR==", "AAB=", "=AAA", "A===", "AAAA=", "AA AA", "AAAA\n", " AAAA", "!!!!", "-_-_",
        "AA==AA==", "é", "A",
    )  # fmt: skip
    for text in wrong:
        yield BrokenDocument(f"tensor {text!r}", _tensor({"type": "uint8[3]", "base64": text}))
        yield BrokenDocument(f"raw_data {text!r}", _tensor({"dims": [1], "raw_data": {"base64": text}}))
        yield BrokenDocument(f"unknown_fields {text!r}", _with(("unknown_fields",), text))
        yield BrokenDocument(f"string {text!r}", _with(("producer_name",), {"base64": text}))
    for data in (
        b"\x08\x01",
        b"\x98",
        b"\x98\x06",
        b"\x9b\x06",
        b"\x9c\x06",
        b"\x92\x06\x05",
        b"\x00",
        b"\x98\x06\xff",
    ):
        text = base64.b64encode(data).decode()
        yield BrokenDocument(f"unknown_fields that are none: {data!r}", _with(("unknown_fields",), text))


def types() -> Iterator[BrokenDocument]:
    """Type strings outside the grammar."""
    wrong = (
        "", " ", "float33", "Float32", "float32[", "float32]",
        "float32[N", "float32[N,]", "float32[,N]", "float32[N,,M]",
        "float32[-1]", "float32[01]", "float32[1.5]", "float32[9223372036854775808]", "float32[2*s0]",
        "float32['N]", "float32[N']",
        "float32['a'b']", "float32[\"N\"]", "float32[N M]", "float32[??]", "float32(N)", "float32[N]x",
        "float32 32", "seq", "seq()",
        "seq(float32", "seq float32", "seq(float32))", "seq(float32,int64)", "optional[float32]",
        "map(int64)", "map(int64,)",
        "map(,int64)", "map(seq(int64),int64)", "map(int64,float32,int8)", "sparse()", "sparse(seq(float32))",
        "opaque(a,b)", "opaque('a')",
        "opaque('a','b','c')", "dtype()", "dtype(x)", "dtype(2147483648)", "dtype(+1)", "dtype(1.0)",
        "float32[N];", "list(float32)",
        "flaot32[N]", "FLOAT32", "tensor(float)", "float32[\u0661]", "float32[é]",
    )  # fmt: skip
    for text in wrong:
        yield BrokenDocument(f"type {text!r}", _with(("graph", "input", 0, "type"), text))
    kinds: tuple[Any, ...] = (
        "float32", "float32[N]", "float32[?]", "seq(float32)", "dtype(99)[1]", "undefined[1]", 5, {"tensor_type": {}},
    )  # fmt: skip
    for kind in kinds:
        yield BrokenDocument(f"tensor type {kind!r}", _tensor({"type": kind, "values": [1.0]}))


def attributes() -> Iterator[BrokenDocument]:
    """Attribute values that stand for no AttributeProto."""
    table: dict[str, Any] = {
        "alpha": "abc", "beta": [1.0], "transA": 1.5, "transB": "abc",
    }  # fmt: skip
    for name, value in table.items():
        yield BrokenDocument(f"{name} is {value!r}", _with(("graph", "node", 0, "attribute"), {name: value}))
    wrong: tuple[Any, ...] = (
        1.5, [], [1, "a"], [1.5], {}, [[1]], {"FLOAT": "abc"}, {"FLOAT": [1.0]}, {"INT": 1.5}, {"INT": "x"},
        {"INTS": 1}, {"INTS": [1.5]},
        {"STRING": 1}, {"STRINGS": "a"}, {"STRINGS": [1]}, {"FLOATS": 1.0}, {"FLOATS": [[1.0]]},
        {"TENSOR": 1}, {"TENSOR": []}, {"GRAPH": []},
        {"GRAPH": 1}, {"GRAPHS": {}}, {"TENSORS": {}}, {"TYPE_PROTO": 1}, {"TYPE_PROTO": "float33"},
        {"TYPE_PROTOS": "float32"},
        {"SPARSE_TENSOR": []}, {"UNDEFINED": 1}, {"BOOL": True}, {"int": 1}, {"INT": 1, "FLOAT": 1.0},
        {"INT": 1, "x": 2},
        {"AttributeProto": 1}, {"AttributeProto": []}, {"AttributeProto": {"name": "x", "type": "INT"}},
        {"AttributeProto": {"type": "INTEGER"}},
        {"AttributeProto": {"type": 15.5}}, {"AttributeProto": {"i": "x"}}, {"base64": "!"}, {"base64": 1},
        {"INT": None}, {"INT": 2**63},
        2**63, -(2**63) - 1,
    )  # fmt: skip
    for value in wrong:
        yield BrokenDocument(f"attribute {value!r}", _with(("graph", "node", 1, "attribute"), {"k": value}))
    for value in (1, "a", [1], ["a"], [{"INT": 1}], {"k": {"AttributeProto": {"type": "INT", "i": 1, "typ": 1}}}):
        yield BrokenDocument(f"attributes {value!r}", _with(("graph", "node", 1, "attribute"), value))


def metadata() -> Iterator[BrokenDocument]:
    """Lines of element_metadata without an owner, or of another shape."""
    wrong: tuple[Any, ...] = (
        ["node", "no such output", "k", "v"], ["input", "h", "k", "v"], ["output", "x", "k", "v"],
        ["initializer", "x", "k", "v"],
        ["value_info", "x", "k", "v"], ["nodes", "h", "k", "v"], ["graph", "main", "k", "v"],
        ["node", "h", "k"], ["node", "h"], [],
        ["node", "h", "k", "v", "w"], ["node", "h", "k", 1], ["node", "h", 1, "v"], ["node", 1, "k", "v"],
        [1, "h", "k", "v"],
        {"node": "h"}, "node", ["node", "", "k", "v"], ["node", "h", {"base64": "/w=="}, "v"],
    )  # fmt: skip
    for line in wrong:
        yield BrokenDocument(
            f"line {line!r}", _with(("graph", "element_metadata"), [*_valid("graph", "element_metadata"), line])
        )
    yield BrokenDocument("an object", _with(("graph", "element_metadata"), {"node": {"h": {"k": "v"}}}))
    inline = _with(("graph", "node", 0), {**_valid("graph", "node", 0), "metadata_props": {"k": "v"}})
    yield BrokenDocument("in both places", inline)
    renamed = _with(("graph", "node", 0, "output"), ["renamed"])
    yield BrokenDocument("the owner was renamed", renamed)


def pairs() -> Iterator[BrokenDocument]:
    """Pairs that are none."""
    places = (("metadata_props",), ("graph", "initializer", 2, "external_data"), ("training_info", 0, "update_binding"))
    wrong: tuple[Any, ...] = ("a", 1, {"a": 1}, {"a": ["b", 1]}, {"a": {}}, [1], ["a", "b"],
                              [["a"]], [["a", "b", "c"]], [["a", 1]],
                              [{"key": 1}], [{"key": "a", "valu": "b"}], [[["a"], "b"]])  # fmt: skip
    for path in places:
        for value in wrong:
            yield BrokenDocument(f"{_label(path)} is {value!r}", _with(path, value))
    opsets: tuple[Any, ...] = (
        [20], {"": "x"}, {"": 1.5}, {"": [20]}, [{"domain": 1}], [{"versions": 1}], "20", 20, [["", 20]],
    )  # fmt: skip
    for value in opsets:
        yield BrokenDocument(f"opset_import is {value!r}", _with(("opset_import",), value))


def depth() -> Iterator[BrokenDocument]:
    """Nesting over the limit of 256 levels, by one and by far."""
    for levels in (257, 258, 1_000, 20_000, 200_000):
        for name, opening, closing in (("lists", "[", "]"), ("objects", '{"a": ', "}"), ("types", "seq(", ")")):
            inside = opening * levels + ("1" if opening != "seq(" else "float32") + closing * levels
            value = f'"{inside}"' if opening == "seq(" else inside
            place = f'"graph": {{"input": [{{"name": "x", "type": {value}}}]}}'
            yield BrokenDocument(f"{levels} {name}", f'{{"format": "onnxjson/1", {place}}}'.encode())
        yield BrokenDocument(f"{levels} lists never closed", b'{"format": "onnxjson/1", "graph": ' + b"[" * levels)
    for levels in (60, 100, 5_000):
        graph = '{"name": "g"}'
        for _ in range(levels):
            graph = f'{{"node": [{{"attribute": {{"body": {{"GRAPH": {graph}}}}}}}]}}'
        yield BrokenDocument(f"{levels} graphs", f'{{"format": "onnxjson/1", "graph": {graph}}}'.encode())


CATEGORIES: dict[str, Callable[[], Iterator[BrokenDocument]]] = {
    one.__name__: one
    for one in (cut, syntax, whole, wrong_types, keys, integers, lengths, elements, base64_texts, types, attributes,
                metadata, pairs, depth)
}  # fmt: skip


@cache
def documents(category: str) -> tuple[BrokenDocument, ...]:
    """The broken documents of one category."""
    return tuple(CATEGORIES[category]())
