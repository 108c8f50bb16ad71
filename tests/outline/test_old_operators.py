"""Operators of old versions have outlines."""

import os
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import parser

import onnxjson

NODES = Path(os.path.dirname(onnx.__file__)) / "backend" / "test" / "data"


def test_the_ends_of_a_slice_of_opset_9_may_be_attributes() -> None:
    text = """<ir_version: 4, opset_import: ["" : 9]> g (float[4,8] x) => (float[4,3] y)
              { y = Slice <axes = [1], starts = [2], ends = [5]> (x) }"""
    (_, line) = onnxjson.from_proto(parser.parse_model(text)).outline().texts()
    assert line == "y = Slice(x, axis 1 2:5): float32[4,3]"


def _models() -> Iterator[Path]:
    """One in five of the models with which onnx tests its operators."""
    yield from sorted(NODES.glob("*/*/model.onnx"))[::5]


@pytest.mark.skipif(not NODES.is_dir(), reason="this onnx was installed without the models of its backend tests")
def test_every_operator_is_in_one_line() -> None:
    for path in _models():
        model = onnxjson.load(path)
        assert sum([len(line.nodes) for line in model.outline().lines]) == len(model.nodes), path
