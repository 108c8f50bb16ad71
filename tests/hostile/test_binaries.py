"""Broken binary files: one clear error each, the right exit code, nothing written."""

import os
from pathlib import Path
from random import Random

import pytest
from onnx import ModelProto

import onnxjson
from onnxjson.codecs.serde import parse
from onnxjson.model.errors import DecodeError, LimitError, MissingInputError, OnnxJsonError, WireError
from tests.generation.wire_encoding import END_GROUP, START_GROUP, tag
from tests.hostile.binaries import (
    CATEGORIES,
    BrokenBinary,
    base,
    binaries,
    complete_lengths,
    graphs,
    mutation,
    protobuf_reads,
    types,
)


def wrong_outcome(binary: BrokenBinary, path: Path) -> str | None:
    """What is wrong with how `load` takes a broken file; None if it is refused as it should be."""
    path.write_bytes(binary.data)
    try:
        onnxjson.load(path)
    except OnnxJsonError as error:
        if error.exit_code != binary.exit_code:
            return f"{type(error).__name__}, exit code {error.exit_code} for {binary.exit_code}: {error}"
        if path.name not in str(error) or len(str(error)) > 2_000:
            return f"unclear: {error!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    else:
        return "it loads"
    if path.read_bytes() != binary.data or [one.name for one in path.parent.iterdir()] != [path.name]:
        return "something was written"
    return None


def test_the_model_that_is_broken_below_is_valid(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(base())
    assert onnxjson.to_proto(onnxjson.load(tmp_path / "model.onnx")).SerializeToString() == base()


def test_there_are_at_least_300_broken_binaries() -> None:
    every = [binary for category in CATEGORIES for binary in binaries(category)]
    assert len(every) >= 300
    assert len({binary.data for binary in every}) >= 300
    assert all(binaries(category) for category in CATEGORIES)


@pytest.mark.parametrize("category", CATEGORIES)
def test_broken_files_are_refused_with_their_name(category: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    wrong = [(one.name, outcome) for one in binaries(category) if (outcome := wrong_outcome(one, path))]
    assert wrong == []


def test_a_cut_between_two_top_level_fields_loads_as_what_is_left(tmp_path: Path) -> None:
    data = base()
    assert len(complete_lengths(data)) >= 3
    for length in complete_lengths(data):
        (tmp_path / "model.onnx").write_bytes(data[:length])
        assert onnxjson.to_proto(onnxjson.load(tmp_path / "model.onnx")).SerializeToString() == data[:length]


def test_mutations_that_protobuf_reads_load_to_the_same_message_or_are_refused(tmp_path: Path) -> None:
    rng = Random(2)
    loaded, refused = 0, []
    for _ in range(3_000):
        data = mutation(rng, base())
        if not protobuf_reads(data):
            continue
        (tmp_path / "model.onnx").write_bytes(data)
        try:
            model = onnxjson.load(tmp_path / "model.onnx")
        except DecodeError as error:
            refused.append(str(error))
        else:
            loaded += 1
            assert onnxjson.to_proto(model).SerializeToString() == ModelProto.FromString(data).SerializeToString()
    assert loaded > 200
    assert [reason for reason in refused if "twice" not in reason and "no graph" not in reason] == []


@pytest.mark.parametrize(("make", "deepest"), [(graphs, 33), (types, 48)])
def test_messages_nest_as_deep_as_protobuf_reads_and_no_deeper(make: object, deepest: int, tmp_path: Path) -> None:
    assert callable(make)
    (tmp_path / "model.onnx").write_bytes(make(deepest))
    model = onnxjson.load(tmp_path / "model.onnx")
    assert onnxjson.to_proto(model).SerializeToString() == make(deepest)
    assert onnxjson.loads(onnxjson.dumps(model)) == model
    (tmp_path / "model.onnx").write_bytes(make(deepest + 1))
    assert not protobuf_reads(make(deepest + 1))
    with pytest.raises(LimitError):
        onnxjson.load(tmp_path / "model.onnx")


def test_unknown_groups_nest_as_deep_as_protobuf_reads(tmp_path: Path) -> None:
    for levels in (1, 50, 99, 100):
        data = base() + tag(99, START_GROUP) * levels + tag(99, END_GROUP) * levels
        (tmp_path / "model.onnx").write_bytes(data)
        assert protobuf_reads(data)
        assert onnxjson.to_proto(onnxjson.load(tmp_path / "model.onnx")).SerializeToString() == data


def test_a_fifo_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(OnnxJsonError, match=r"model\.onnx"):
        onnxjson.load(tmp_path / "model.onnx")


def test_a_folder_a_device_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OnnxJsonError, match=tmp_path.name):
        onnxjson.load(tmp_path)
    with pytest.raises(OnnxJsonError, match="/dev/null"):
        onnxjson.load("/dev/null")
    with pytest.raises(OnnxJsonError, match="/dev/zero"):
        onnxjson.load("/dev/zero")
    with pytest.raises(MissingInputError, match="nothing here"):
        onnxjson.load(tmp_path / "nothing here.onnx")
    (tmp_path / "dangling.onnx").symlink_to(tmp_path / "gone.onnx")
    with pytest.raises(MissingInputError, match="dangling"):
        onnxjson.load(tmp_path / "dangling.onnx")
    (tmp_path / "loop.onnx").symlink_to(tmp_path / "loop.onnx")
    with pytest.raises(OnnxJsonError, match="loop"):
        onnxjson.load(tmp_path / "loop.onnx")


def test_odd_paths_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("a\x1b[31mred.onnx", "a\nb.onnx", "a\u202eb.onnx", "x" * 300, "a\udcffb.onnx"):
        with pytest.raises(OnnxJsonError) as caught:
            onnxjson.load(tmp_path / name)
        assert "\x1b" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "\u202e" not in str(caught.value)
    with pytest.raises((OnnxJsonError, ValueError)):
        onnxjson.load("a\x00b.onnx")


@pytest.mark.parametrize(
    ("field", "element"), [(1, b"\x12\x01y\x22\x04Relu\x4a\x05"), (13, b"\x0a\x01x\x12\x00\x22\x05")]
)
def test_metadata_that_ends_after_its_length_is_refused(field: int, element: bytes) -> None:
    def within(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    with pytest.raises(WireError, match="metadata_props is longer than the message that contains it"):
        parse(b"\x08\x08" + within(7, within(field, element)))
