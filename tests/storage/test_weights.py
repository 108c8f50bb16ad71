"""Weights apart from the text: blobs beside it, digests of another model; what is missing or altered is refused."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from msgspec.structs import replace
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxjson
from onnxjson.codecs.reading import fast
from onnxjson.model import payloads
from onnxjson.model.errors import (
    ChangedUnderneathError,
    DecodeError,
    FileError,
    MissingInputError,
    OutputError,
    UntrustedError,
    WeightsMissingError,
)
from onnxjson.model.payloads import Digest
from onnxjson.storage import files, weights
from onnxjson.storage.backups import history, restore
from onnxjson.storage.pruning import prune_blobs
from onnxjson.storage.saving import save_file
from onnxjson.storage.weights import missing


def make_proto(seed: int = 0) -> ModelProto:
    random = numpy.random.default_rng(seed)
    big = numpy_helper.from_array(random.standard_normal((16, 64)).astype("f"), "big")
    same = numpy_helper.from_array(numpy_helper.to_array(big), "same")
    small = numpy_helper.from_array(random.standard_normal(8).astype("f"), "small")
    typed = helper.make_tensor("typed", TensorProto.FLOAT, [100], random.standard_normal(100).astype("f").tolist())
    ints = helper.make_tensor("ints", TensorProto.INT64, [100], list(range(100)))
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(numpy.arange(200.0), None))
    graph = helper.make_graph(
        [constant, helper.make_node("Add", ["big", "same"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 64])],
        [big, same, small, typed, ints],
    )
    return helper.make_model(graph)


@pytest.fixture
def proto() -> ModelProto:
    return make_proto()


@pytest.fixture
def model(proto: ModelProto) -> onnxjson.Model:
    return onnxjson.from_proto(proto)


def blobs_of(folder: Path) -> list[Path]:
    return sorted((folder / "m.blobs").iterdir())


def test_a_text_with_blobs_and_its_folder_give_the_model_back(
    tmp_path: Path, proto: ModelProto, model: onnxjson.Model
) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    assert len(blobs_of(tmp_path)) == 3  # big and same are one; ints stand in a typed field of varints
    for blob in blobs_of(tmp_path):
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    loaded = onnxjson.load(tmp_path / "m.onnx.json")
    assert onnxjson.to_proto(loaded).SerializeToString() == proto.SerializeToString()
    text = (tmp_path / "m.onnx.json").read_text()
    assert text.splitlines()[2] == '"blobs": "m.blobs",'
    assert onnxjson.loads(text, folder=tmp_path) == model


def test_a_blob_is_written_if_only_one_of_its_tensors_has_the_bytes(tmp_path: Path, model: onnxjson.Model) -> None:
    assert model.graph is not None
    held = next(each for each in model.graph.initializer if each.name == "big")
    assert isinstance(held.raw_data, bytes)
    digest = Digest(hashlib.sha256(held.raw_data).hexdigest(), len(held.raw_data))
    both = (held, replace(held, name="same", raw_data=digest))
    for tensors in (both, both[::-1]):
        path = tmp_path / tensors[0].name / "m.onnx.json"  # type: ignore[operator]
        path.parent.mkdir()
        files.save(replace(model, graph=replace(model.graph, initializer=tensors)), path, weights="blobs")
        assert held.raw_data in [each.read_bytes() for each in blobs_of(path.parent)]


def test_another_version_adds_one_blob_for_one_changed_tensor(tmp_path: Path, proto: ModelProto) -> None:
    onnxjson.save(onnxjson.from_proto(proto), tmp_path / "m.onnx.json", weights="blobs")
    before = {blob: blob.stat().st_mtime_ns for blob in blobs_of(tmp_path)}
    changed = numpy_helper.to_array(proto.graph.initializer[0]).copy()
    changed[0, 0] += 1
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(changed, "big"))
    onnxjson.save(onnxjson.from_proto(proto), tmp_path / "m.onnx.json", weights="blobs")
    after = {blob: blob.stat().st_mtime_ns for blob in blobs_of(tmp_path)}
    assert len(after) == len(before) + 1
    assert before.items() <= after.items()


def test_a_text_with_digests_is_bound_to_the_model_that_has_the_bytes(
    tmp_path: Path, proto: ModelProto, model: onnxjson.Model
) -> None:
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="digest")
    text = (tmp_path / "m.onnx.json").read_text()
    assert text.splitlines()[2] == '"weights": "digest",'
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), model):
        assert onnxjson.load(tmp_path / "m.onnx.json", weights_from=source) == model
    renamed = text.replace('"name": "big"', '"name": "bigger"')
    bound = onnxjson.loads(renamed, weights_from=model)
    assert bound.graph is not None
    assert bound.graph.initializer[0].name == "bigger"
    assert not missing(bound)


def test_a_text_with_digests_loads_and_is_edited_but_not_written_whole(tmp_path: Path, model: onnxjson.Model) -> None:
    text = onnxjson.dumps(model, weights="digest")
    loaded = onnxjson.loads(text)
    assert loaded == model  # by length and digest
    assert [tensor.name for tensor in missing(loaded)] == [None, "big", "same", "typed"]
    assert onnxjson.dumps(loaded, weights="keep") == onnxjson.dumps(loaded, weights="digest") == text
    attempts: list[Callable[[], object]] = [
        lambda: onnxjson.to_proto(loaded),
        lambda: onnxjson.dumps(loaded),
        lambda: onnxjson.save(loaded, tmp_path / "m.onnx"),
        lambda: onnxjson.save(loaded, tmp_path / "m.onnx.json"),
        lambda: onnxjson.save(loaded, tmp_path / "m.onnx.json", weights="blobs"),
        lambda: onnxjson.save(loaded, tmp_path / "m.onnxjson"),
    ]
    for attempt in attempts:
        with pytest.raises(WeightsMissingError):
            attempt()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WeightsMissingError, match=r"of 4 tensors.*float64\[200\] without a name.*--weights-from"):
        onnxjson.save(loaded, tmp_path / "m.onnx")


def test_a_source_that_does_not_have_the_bytes_is_refused(tmp_path: Path, model: onnxjson.Model) -> None:
    other = onnxjson.from_proto(make_proto(seed=1))
    with pytest.raises(WeightsMissingError, match='of 3 tensors, the first of them "big"'):
        onnxjson.loads(onnxjson.dumps(model, weights="digest"), weights_from=other)


def test_every_mode_is_canonical_and_read_the_fast_way(model: onnxjson.Model) -> None:
    for text in (
        onnxjson.dumps(model),
        onnxjson.dumps(model, weights="digest"),
        onnxjson.dumps(model, weights="blobs", blobs="m.blobs"),
    ):
        again = fast.read(text.encode(), {})
        assert again is not None
        assert onnxjson.dumps(again, weights="keep") == text


def test_a_text_may_mix_the_forms(tmp_path: Path, model: onnxjson.Model) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    text = (tmp_path / "m.onnx.json").read_text()
    digest = onnxjson.dumps(model, weights="digest")
    line = next(line for line in digest.splitlines() if '"name": "big"' in line)
    mixed = text.replace(next(line for line in text.splitlines() if '"name": "big"' in line), line)
    with pytest.raises(DecodeError, match="does not declare it"):
        onnxjson.loads(mixed)
    mixed = mixed.replace('"format": "onnxjson/1",', '"format": "onnxjson/1",\n"weights": "digest",')
    kept = onnxjson.loads(mixed)
    assert onnxjson.dumps(kept, weights="keep") == mixed
    assert onnxjson.loads(mixed, folder=tmp_path, weights_from=model) == model


@pytest.mark.parametrize("mode", ["truncated", "removed", "longer", "link", "folder is a link"])
def test_a_blob_that_cannot_be_the_right_one_is_refused_when_the_text_is_loaded(
    tmp_path: Path, model: onnxjson.Model, mode: str
) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    blob = max(blobs_of(tmp_path), key=lambda each: each.stat().st_size)
    data = blob.read_bytes()
    match mode:
        case "truncated":
            blob.write_bytes(data[:-1])
        case "longer":
            blob.write_bytes(data + b"\0")
        case "removed":
            blob.unlink()
        case "link":
            blob.rename(tmp_path / "elsewhere")
            blob.symlink_to(tmp_path / "elsewhere")
        case _:
            (tmp_path / "m.blobs").rename(tmp_path / "moved")
            (tmp_path / "m.blobs").symlink_to(tmp_path / "moved")
    with pytest.raises(MissingInputError if mode == "removed" else UntrustedError, match=r"m\.blobs/"):
        onnxjson.load(tmp_path / "m.onnx.json")


def test_an_altered_blob_is_refused_when_its_bytes_are_used(tmp_path: Path, model: onnxjson.Model) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    blob = blobs_of(tmp_path)[0]
    blob.write_bytes(bytes(len(blob.read_bytes())))
    loaded = onnxjson.load(tmp_path / "m.onnx.json")
    with pytest.raises(DecodeError, match=blob.name):
        onnxjson.save(loaded, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")  # writes the bytes that its name says again
    onnxjson.save(onnxjson.load(tmp_path / "m.onnx.json"), tmp_path / "m.onnx")


def test_payloads_that_are_hashed_in_threads_have_the_same_digests(
    tmp_path: Path, proto: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(numpy.ones((1024, 1024), numpy.float32), "big"))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    texts = []
    for least in (1, 1 << 40):
        monkeypatch.setattr(payloads, "_THREADS_FROM", least)
        texts.append(onnxjson.dumps(onnxjson.load(tmp_path / "m.onnx"), weights="digest"))
    assert texts[0] == texts[1]
    assert hashlib.sha256(numpy.ones((1024, 1024), numpy.float32).tobytes()).hexdigest() in texts[0]


def test_a_blob_that_does_not_have_the_hash_in_its_name_on_the_disk_is_not_saved(
    tmp_path: Path, model: onnxjson.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(descriptor: int) -> None:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.pwrite(descriptor, b"X", 100)

    monkeypatch.setattr(os, "fsync", lose)
    with pytest.raises(FileError, match="other bytes"):
        onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["../out", "/elsewhere", "", ".", "a/../b", "a\\b", "a//b"])
def test_a_folder_of_blobs_that_leads_out_is_refused(tmp_path: Path, model: onnxjson.Model, folder: str) -> None:
    (tmp_path / "in").mkdir()
    if folder:
        with pytest.raises(UntrustedError):
            onnxjson.save(model, tmp_path / "in" / "m.onnx.json", weights="blobs", blobs=folder)
        assert list(tmp_path.rglob("*")) == [tmp_path / "in"]
    text = onnxjson.dumps(model, weights="blobs", blobs="m.blobs").replace("m.blobs", folder.replace("\\", "\\\\"))
    with pytest.raises((UntrustedError, DecodeError, MissingInputError)):
        onnxjson.loads(text, folder=tmp_path / "in")


def test_why_a_blob_cannot_be_used_is_said_whatever_its_folder_is_called(tmp_path: Path, model: onnxjson.Model) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs", blobs="it's")
    for blob in (tmp_path / "it's").iterdir():
        blob.write_bytes(b"short")
    with pytest.raises(UntrustedError, match=r"the blob it's/[0-9a-f]{64} cannot be used: .*5 bytes"):
        onnxjson.load(tmp_path / "m.onnx.json")


def test_a_text_with_blobs_needs_the_name_of_their_folder(model: onnxjson.Model) -> None:
    with pytest.raises(ValueError, match="blobs="):
        onnxjson.dumps(model, weights="blobs")


def test_a_folder_of_blobs_that_is_a_link_is_refused_when_written(tmp_path: Path, model: onnxjson.Model) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "m.blobs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UntrustedError):
        onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "m.onnx.json").exists()


def test_blobs_stand_before_the_text_that_names_them(
    tmp_path: Path, model: onnxjson.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def spy(path: Path, *args: object, **named: object) -> None:
        seen.extend(blob.name for blob in blobs_of(tmp_path))
        save_file(path, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("onnxjson.storage.files.save_file", spy)
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    assert len(seen) == 3


@pytest.mark.parametrize("failing", ["the text", "the last blob"])
def test_a_failed_save_leaves_no_blobs_that_it_wrote(
    tmp_path: Path, model: onnxjson.Model, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx.json"
    saved: list[Path] = []

    def full(place: Path, *given: Any, **named: Any) -> None:
        if place == path or (failing == "the last blob" and len(saved) == 1):
            raise FileError("No space left on device")
        saved.append(place)
        save_file(place, *given, **named)

    monkeypatch.setattr(weights, "save_file", full)
    monkeypatch.setattr(files, "save_file", full)
    with pytest.raises(FileError):
        onnxjson.save(model, path, weights="blobs")
    assert saved
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    onnxjson.save(model, path, weights="blobs")
    before = blobs_of(tmp_path)
    monkeypatch.setattr(files, "save_file", full)
    with pytest.raises(FileError):
        onnxjson.save(model, path, weights="blobs")
    assert blobs_of(tmp_path) == before


def test_fmt_keeps_blobs_and_digests_without_needing_their_bytes(model: onnxjson.Model) -> None:
    text = onnxjson.dumps(model, weights="blobs", blobs="gone")
    kept = onnxjson.loads(text)
    assert onnxjson.dumps(kept, weights="keep") == text
    assert kept.graph is not None
    assert isinstance(kept.graph.initializer[0].raw_data, Digest)


def pruned(text: Path) -> list[Path]:
    """What pruning removes an hour later."""
    for blob in (text.parent / "m.blobs").iterdir():
        os.utime(blob, (time.time() - 3600, time.time() - 3600))
    return prune_blobs(text)


@pytest.mark.parametrize(
    "disguise", ["other.onnx.json", "other.txt", "OTHER.JSON", "other.onnx.json.orig", "escaped", "../above.json"]
)
def test_pruning_keeps_what_any_text_in_the_folder_or_above_names(
    tmp_path: Path, model: onnxjson.Model, disguise: str
) -> None:
    folder = tmp_path / "repository" / "in"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    onnxjson.save(model, folder / "m.onnx.json", weights="blobs")
    kept = {blob.name for blob in blobs_of(folder)}
    other = folder / "other.onnx.json"
    onnxjson.save(onnxjson.from_proto(make_proto(seed=1)), other, weights="blobs", blobs="m.blobs")
    assert len(blobs_of(folder)) == len(kept) + 2  # the constant is in both
    (folder / "m.blobs" / "README").write_text("mine")
    text = other.read_text()
    if disguise == "escaped":
        text = text.replace('"blob": "', '"bl\\u006fb": "')
    elif disguise.startswith(".."):
        text = text.replace('"m.blobs"', '"in/m.blobs"')
    other.unlink()
    other = folder / disguise
    other.write_text(text)

    assert pruned(folder / "m.onnx.json") == []
    other.unlink()
    assert len(pruned(folder / "m.onnx.json")) == 2
    assert {blob.name for blob in blobs_of(folder)} == kept | {"README"}
    assert onnxjson.load(folder / "m.onnx.json") == model


@pytest.mark.parametrize("how", ["cut short", "utf-16"])
def test_pruning_removes_nothing_beside_a_text_that_cannot_be_read(
    tmp_path: Path, model: onnxjson.Model, how: str
) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    text = (tmp_path / "m.onnx.json").read_text()
    (tmp_path / "other.json").write_bytes(text[:-40].encode() if how == "cut short" else text.encode("utf-16"))
    (tmp_path / "m.blobs" / ("0" * 64)).write_bytes(b"unused")
    with pytest.raises(OutputError, match="may name blobs, but cannot be read, so nothing was removed"):
        pruned(tmp_path / "m.onnx.json")
    assert (tmp_path / "m.blobs" / ("0" * 64)).exists()
    (tmp_path / "other.json").write_text('{"name": "some other JSON"}')
    assert len(pruned(tmp_path / "m.onnx.json")) == 1


@pytest.mark.parametrize("root", ["no repository", "repository", "repository/in"])
def test_pruning_looks_no_further_up_than_the_repository_or_the_folder(
    tmp_path: Path, model: onnxjson.Model, root: str
) -> None:
    folder = tmp_path / "repository" / "in"
    folder.mkdir(parents=True)
    onnxjson.save(model, folder / "m.onnx.json", weights="blobs")
    beyond = tmp_path if root == "repository" else folder.parent
    (beyond / "broken.json").write_text((folder / "m.onnx.json").read_text()[:-40])
    if root != "no repository":
        (tmp_path / root / ".git").mkdir()
    (folder / "m.blobs" / ("0" * 64)).write_bytes(b"unused")
    assert len(pruned(folder / "m.onnx.json")) == 1


@pytest.mark.parametrize("stray", ['[{"blob": 1}]', '{"blob": "onnx"', '{"format": "onnxjson-diff/1", "blob": 1}'])
def test_pruning_is_not_stopped_by_files_that_are_no_documents(
    tmp_path: Path, model: onnxjson.Model, stray: str
) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    (tmp_path / "stray.json").write_text(stray)
    (tmp_path / "m.blobs" / ("0" * 64)).write_bytes(b"unused")
    assert len(pruned(tmp_path / "m.onnx.json")) == 1


def test_pruning_spares_blobs_whose_text_may_be_on_its_way(tmp_path: Path, model: onnxjson.Model) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    (tmp_path / "m.blobs" / ("0" * 64)).write_bytes(b"new")
    assert prune_blobs(tmp_path / "m.onnx.json") == []
    assert len(pruned(tmp_path / "m.onnx.json")) == 1


def test_a_blob_that_is_removed_while_its_text_is_written_stops_the_save(
    tmp_path: Path, model: onnxjson.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_then_save(path: Path, *args: object, **named: object) -> None:
        blobs_of(tmp_path)[0].unlink()
        save_file(path, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("onnxjson.storage.files.save_file", remove_then_save)
    with pytest.raises(ChangedUnderneathError, match="was removed while the text was written"):
        onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    assert not (tmp_path / "m.onnx.json").exists()


def test_pruning_keeps_what_undoing_a_save_would_name(
    tmp_path: Path, model: onnxjson.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    text = tmp_path / "m.onnx.json"
    onnxjson.save(model, text, weights="blobs")
    before = blobs_of(tmp_path)
    files.save(onnxjson.from_proto(make_proto(seed=1)), text, weights="blobs", backup=True)
    assert pruned(text) == []
    found = history(text)
    restore(found, found.neighbour(-1))
    assert onnxjson.load(text) == model
    assert before == [blob for blob in blobs_of(tmp_path) if blob in before]


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_blob_that_is_a_link_is_never_written_through(tmp_path: Path, model: onnxjson.Model, kind: str) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    blob = blobs_of(tmp_path)[0]
    blob.unlink()
    target = tmp_path / "somebody's file"
    target.write_text("precious")
    (blob.symlink_to if kind == "symbolic" else blob.hardlink_to)(target)
    with pytest.raises(UntrustedError, match="is a link; remove it"):
        onnxjson.save(model, tmp_path / "again.onnx.json", weights="blobs", blobs="m.blobs")
    assert target.read_text() == "precious"
    assert not (tmp_path / "again.onnx.json").exists()


def test_a_name_that_no_folder_of_blobs_can_have_gives_a_folder_that_is_read_back(
    tmp_path: Path, model: onnxjson.Model
) -> None:
    onnxjson.save(model, tmp_path / "m:v1\\.onnx.json", weights="blobs")
    assert onnxjson.load(tmp_path / "m:v1\\.onnx.json") == model
    for name in ("C:", "a:b", "a\\b", "../out"):
        with pytest.raises(UntrustedError):
            onnxjson.save(model, tmp_path / "n.onnx.json", weights="blobs", blobs=name)
        with pytest.raises(UntrustedError):
            onnxjson.dumps(model, weights="blobs", blobs=name)


def test_dumps_writes_blobs_where_loads_looks_for_them(tmp_path: Path, model: onnxjson.Model) -> None:
    text = onnxjson.dumps(model, weights="blobs", folder=tmp_path)
    assert onnxjson.loads(text, folder=tmp_path) == model
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "m.onnx.json").write_text(text)
    with pytest.raises(MissingInputError):
        onnxjson.load(tmp_path / "elsewhere" / "m.onnx.json")
    assert onnxjson.load(tmp_path / "elsewhere" / "m.onnx.json", folder=tmp_path) == model
    with pytest.raises(ValueError, match="names their folder"):
        onnxjson.dumps(model, weights="blobs")


@pytest.mark.parametrize("name", ["m.onnx.json", "other.onnx.json"])
def test_a_text_that_keeps_its_blobs_takes_them_to_another_folder(
    tmp_path: Path, model: onnxjson.Model, name: str
) -> None:
    (tmp_path / "there").mkdir()
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    onnxjson.save(onnxjson.load(tmp_path / "m.onnx.json"), tmp_path / "there" / name, weights="keep")
    for blob in (tmp_path / "m.blobs").iterdir():
        blob.unlink()
    assert onnxjson.dumps(onnxjson.load(tmp_path / "there" / name)) == onnxjson.dumps(model)


def test_a_text_whose_blob_was_removed_is_still_saved_where_it_is(tmp_path: Path, model: onnxjson.Model) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    read = onnxjson.load(tmp_path / "m.onnx.json")
    for blob in (tmp_path / "m.blobs").iterdir():
        blob.unlink()
    onnxjson.save(read, tmp_path / "m.onnx.json", weights="keep")
    (tmp_path / "there").mkdir()
    with pytest.raises(MissingInputError):
        onnxjson.save(read, tmp_path / "there" / "m.onnx.json", weights="keep")
    assert not (tmp_path / "there" / "m.onnx.json").exists()


def test_pruning_a_text_without_blobs_or_without_their_folder_removes_nothing(
    tmp_path: Path, model: onnxjson.Model
) -> None:
    onnxjson.save(model, tmp_path / "m.onnx.json")
    assert prune_blobs(tmp_path / "m.onnx.json") == []
    onnxjson.save(model, tmp_path / "m.onnx.json", weights="blobs")
    shutil.rmtree(tmp_path / "m.blobs")
    assert prune_blobs(tmp_path / "m.onnx.json") == []
