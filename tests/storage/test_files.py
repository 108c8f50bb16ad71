"""Model files: their names, and what is read before one is replaced."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson.codecs import serde
from onnxjson.example import make_example
from onnxjson.model.errors import DecodeError, EncodeError
from onnxjson.storage import files
from onnxjson.storage.files import KNOWN_ENDINGS, format_for, stem_and_ending


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("m.onnx", ("m", ".onnx")),
        ("m.onnx.json", ("m", ".onnx.json")),
        ("folder.onnx/m.onnxjson", ("m", ".onnxjson")),
        ("m.v2.JSON", ("m.v2", ".JSON")),
        ("m.pb", ("m", ".pb")),
        ("m", ("m", "")),
        ("m.txt", ("m.txt", "")),
        (".onnx", (".onnx", "")),
    ],
)
def test_name_is_split_into_stem_and_ending(name: str, parts: tuple[str, str]) -> None:
    assert stem_and_ending(name) == parts


@pytest.mark.parametrize("ending", KNOWN_ENDINGS)
def test_ending_of_a_form_is_split_off_whole(ending: str) -> None:
    stem, found = stem_and_ending(f"m{ending}")
    assert (stem, found) == ("m", ending)
    assert format_for(f"m{ending}") == format_for(f"other{found}")


"Model files: their names, and what is read before one is replaced."


import pytest

from onnxjson.storage.files import KNOWN_ENDINGS


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("m.onnx", ("m", ".onnx")),
        ("m.onnx.json", ("m", ".onnx.json")),
        ("folder.onnx/m.onnxjson", ("m", ".onnxjson")),
        ("m.v2.JSON", ("m.v2", ".JSON")),
        ("m.pb", ("m", ".pb")),
        ("m", ("m", "")),
        ("m.txt", ("m.txt", "")),
        (".onnx", (".onnx", "")),
    ],
)
def test_name_is_split_into_stem_and_ending(name: str, parts: tuple[str, str]) -> None:
    assert stem_and_ending(name) == parts


@pytest.mark.parametrize("ending", KNOWN_ENDINGS)
def test_ending_of_a_form_is_split_off_whole(ending: str) -> None:
    stem, found = stem_and_ending(f"m{ending}")
    assert (stem, found) == ("m", ending)
    assert format_for(f"m{ending}") == format_for(f"other{found}")


def test_a_model_of_many_megabytes_that_replaces_a_file_is_read_by_protobuf_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serde, "_READ_BY_PROTOBUF", range(1, 1 << 30))
    whole, path = onnxjson.from_proto(make_example()), tmp_path / "m.onnx"
    monkeypatch.setattr(serde, "parse", failing)
    path.write_bytes(b"old")
    files.save(whole, path)
    assert path.read_bytes() == onnxjson.to_proto(whole).SerializeToString()
    monkeypatch.setattr(files, "write_message", lambda _, write: write(b"\x3a\xff\xff\x01"))
    with pytest.raises(EncodeError, match="the written file cannot be read again: parse was asked"):
        files.save(whole, path)
    assert path.read_bytes() == onnxjson.to_proto(whole).SerializeToString()


def failing(*_: object) -> None:
    raise DecodeError("parse was asked")
