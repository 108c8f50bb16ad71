"""Big base64 values are cut out of a file before it is decoded, wherever they stand."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson.codecs import text_file
from onnxjson.model import document as d
from onnxjson.model.errors import DecodeError

BYTES = b"\xff" * 5000
"""Enough to be cut out, and no UTF-8."""


@pytest.mark.parametrize(
    "node",
    [
        d.Node(op_type="Scale", attribute=(d.Attribute(name="s", s=BYTES, type=3),)),
        d.Node(op_type="Scale", attribute=(d.Attribute(name="s", strings=(b"a", BYTES), type=8),)),
        d.Node(op_type=BYTES.decode("utf-8", "surrogateescape")),
        d.Node(unknown_fields=b"\xc2>\x88\x27" + BYTES),
        d.Node(attribute=(d.Attribute(name="t", t=d.Tensor(dims=(1,), data_type=8, string_data=(BYTES,)), type=4),)),
        d.Node(attribute=(d.Attribute(name="t", t=d.Tensor(dims=(5000,), data_type=2, raw_data=BYTES), type=4),)),
        d.Node(attribute=(d.Attribute(name="t", t=d.Tensor(raw_data=BYTES), type=4),)),
    ],
    ids=["bytes", "list of bytes", "text", "unknown fields", "strings of a tensor", "short form", "full form"],
)
def test_a_long_value_in_a_big_file_is_read_wherever_it_stands(
    node: d.Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = d.Model(ir_version=8, graph=d.Graph(name="g", node=(node,)))
    path = tmp_path / "model.onnx.json"
    onnxjson.save(model, path)
    monkeypatch.setattr(text_file, "CUT_FROM", 1)
    assert onnxjson.load(path) == model


@pytest.mark.parametrize("end", ["", '"', "!", "\\"])
def test_a_big_text_that_replaces_a_file_may_have_a_key_of_that_name_whose_value_is_no_payload(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = d.StringStringEntry("base64", "A" * 8000 + end)
    tensor = d.Tensor(name="t", dims=(5000,), data_type=2, raw_data=BYTES)
    model = d.Model(ir_version=8, graph=d.Graph(name="g", initializer=(tensor,)), metadata_props=(entry,))
    path = tmp_path / "model.onnx.json"
    monkeypatch.setattr(text_file, "CUT_FROM", 1)
    for _ in range(2):
        onnxjson.save(model, path)
        assert onnxjson.load(path) == model


def test_a_big_text_with_a_string_like_the_marker_of_a_cut_value_is_not_read_as_that_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (d.Tensor(name=name, dims=(5000,), data_type=2, raw_data=BYTES) for name in "ab")
    path = tmp_path / "model.onnx.json"
    onnxjson.save(d.Model(ir_version=8, graph=d.Graph(name="@cut:7", initializer=(one, two))), path)
    monkeypatch.setattr(text_file, "CUT_FROM", 1)
    loaded = onnxjson.load(path)
    assert loaded.graph is not None
    assert loaded.graph.name == "@cut:7"
    before, value, after = path.read_text().rpartition('"base64": "')
    path.write_text(before + value + "@cut:0" + after[after.index('"') :])
    with pytest.raises(DecodeError):
        onnxjson.load(path)
