"""Small documents, read by the exact reader: what a test says of one element, in the text around it."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from onnxjson.codecs.reading.exact_reader import read
from onnxjson.model import document as d
from onnxjson.model.errors import DecodeError

DOCUMENT = (Path(__file__).parents[1] / "golden" / "mistakes" / "model.onnx.json").read_bytes()
"""A document as a person would have it."""


def model(**keys: Any) -> d.Model:
    return read(json.dumps({"format": "onnxjson/1", **keys}).encode())[0]


def graph(**keys: Any) -> d.Graph:
    read_graph = model(graph=keys).graph
    assert read_graph is not None
    return read_graph


def node(**keys: Any) -> d.Node:
    return graph(node=[keys]).node[0]


def attribute(value: Any, op_type: str = "Unknown", name: str = "a") -> d.Attribute:
    return node(op_type=op_type, attribute={name: value}).attribute[0]


def tensor(**keys: Any) -> d.Tensor:
    return graph(initializer=[keys]).initializer[0]


def codes(**keys: Any) -> list[str]:
    with pytest.raises(DecodeError) as caught:
        model(**keys)
    return [finding.code for finding in caught.value.findings]


def codes_of_tensor(**keys: Any) -> list[str]:
    return codes(graph={"initializer": [keys]})


def codes_of_attribute(value: Any, op_type: str = "Unknown", name: str = "a") -> list[str]:
    return codes(graph={"node": [{"op_type": op_type, "attribute": {name: value}}]})


def float32(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)
