"""The text of a patch: its layout, where bytes stand, that nothing is lost."""

import json
from pathlib import Path

import pytest

import onnxjson
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model import document as d
from onnxjson.model.errors import ChangedUnderneathError, WeightsMissingError
from onnxjson.model.payloads import Digest, FileSlice, SourceFile
from onnxjson.patching.changes import ExternalFile
from onnxjson.patching.patch import Patch
from tests.patching.test_deriving import attributes_of, graph_of, number


def with_tensors(*tensors: d.Tensor) -> d.Model:
    """A model with these initializers."""
    return d.Model(graph=d.Graph(initializer=tensors))


def test_the_layout() -> None:
    base = attributes_of(number("a", 1), number("b", 2))
    node = d.Node(op_type="Relu", output=("y",), input=("x",), name="new")
    target = d.Model(
        domain="caf\u00e9\u202e",
        graph=d.Graph(node=(node, d.Node(attribute=(number("a", 3),))), value_info=(d.ValueInfo(name="x"),)),
    )
    patch = Patch.between(base, target, {"/graph/node": [(0, 1)]}).with_hashes(base, target)
    assert (
        patch.dumps()
        == f"""{{
"format": "onnxjson-patch/1",
"base": "{patch.base}",
"target": "{patch.target}",
"operations": [
  {{"set": "/domain", "new": "caf\u00e9\\u202e"}},
  {{"list": "/graph/node",
   "sequence": [
     {{"add": {{"op_type": "Relu", "output": ["y"],
      "input": ["x"],
      "name": "new"}}}},
     [0, 0]
   ]}},
  {{"list": "/graph/node/0/attribute",
   "sequence": [[0, 0]],
   "removed": {{
     "1": {{"name": "b", "i": 2, "type": "INT"}}
   }}}},
  {{"set": "/graph/node/0/attribute/a/i", "old": 1, "new": 3}},
  {{"list": "/graph/value_info",
   "sequence": [
     {{"add": {{"name": "x"}}}}
   ]}}
]
}}
"""
    )


def test_bytes_stand_once_however_often_they_are_needed() -> None:
    raw = bytes(range(256)) * 4
    target = with_tensors(
        d.Tensor(dims=(256,), data_type=1, name="a", raw_data=raw),
        d.Tensor(dims=(1024,), data_type=2, name="b", raw_data=raw),
        d.Tensor(dims=(3,), data_type=1, name="does not fit", raw_data=raw),
        d.Tensor(dims=(256,), data_type=1, name="typed", float_data=raw),
        d.Tensor(dims=(2,), data_type=1, name="typed, does not fit", float_data=raw),
        d.Tensor(dims=(100,), data_type=6, name="integers", int32_data=b"\1" * 100),
    )
    patch = Patch.between(with_tensors(), target)
    text = patch.dumps()
    tree = json.loads(text)
    assert len(tree["payloads"]) == 2
    assert Patch.loads(text) == patch
    assert target.graph is not None
    changed = with_tensors(*reversed(target.graph.initializer))
    assert "payloads" not in Patch.between(target, changed).dumps()


def test_a_field_of_bytes_is_in_the_table_if_it_is_long() -> None:
    def model(raw: bytes) -> d.Model:
        return with_tensors(d.Tensor(dims=(1,), data_type=1, name="w", raw_data=raw))

    short = json.loads(Patch.between(model(b"abc"), model(b"")).dumps())
    assert short["operations"][0] == {
        "set": "/graph/initializer/0/raw_data",
        "old": {"base64": "YWJj"},
        "new": {"base64": ""},
    }
    long = json.loads(Patch.between(model(b"a" * 300), model(b"")).dumps())["operations"][0]["old"]
    assert long == {"sha256": "9835fa6bf4e20a9b9ea812506302e98982721a6cf8d2cae67af57129bf21ae90", "bytes": 300}


def test_bytes_that_are_elsewhere_stay_elsewhere() -> None:
    digest = Digest("ab" * 32, 400)
    base = with_tensors(d.Tensor(dims=(100,), data_type=1, name="w", raw_data=b"0" * 400))
    target = with_tensors(d.Tensor(dims=(100,), data_type=1, name="w", raw_data=digest))
    added = with_tensors(d.Tensor(dims=(100,), data_type=1, name="v", raw_data=digest))
    for patch in (Patch.between(base, target), Patch.between(base, added)):
        text = patch.dumps()
        assert ("ab" * 32) not in json.loads(text)["payloads"]
        assert Patch.loads(text) == patch
        with pytest.raises(WeightsMissingError):
            message_bytes(Patch.loads(text).apply(base))
        assert patch.with_hashes(base).target is None


def test_strings_that_are_not_utf8_stand_in_addresses_too() -> None:
    base, target = attributes_of(number("\udcff/", 1)), attributes_of(number("\udcff/", 2))
    patch = Patch.between(base, target)
    assert '{"set": {"base64": "L2dyYXBoL25vZGUvMC9hdHRyaWJ1dGUv/34xL2k="}, "old": 1, "new": 2}' in patch.dumps()
    assert Patch.loads(patch.dumps()) == patch


def test_external_files_are_listed() -> None:
    files = (ExternalFile("w.data", "0" * 64), ExternalFile("\udcff", None, "base"))
    patch = Patch(external=files)
    assert Patch.loads(patch.dumps()) == patch
    assert '{"location": "w.data", "sha256": "%s", "side": "target"}' % ("0" * 64) in patch.dumps()


def test_external_files_of_two_models_are_found_and_hashed(tmp_path: Path) -> None:
    def model(location: str) -> d.Model:
        entry = d.StringStringEntry(key="location", value=location)
        return with_tensors(d.Tensor(dims=(4,), data_type=2, name="w", data_location=1, external_data=(entry,)))

    (tmp_path / "w.data").write_bytes(b"1234")
    base, target = model("w.data"), model("../w.data")
    path = tmp_path / "m.onnx"
    patch = Patch.between(base, target).with_external(base, path, target, path)
    assert patch.external == (
        ExternalFile("w.data", "03ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4", "base"),
        ExternalFile("../w.data", None, "target"),
    )


def test_lazy_bytes_are_read_when_their_turn_comes_and_stay_in_the_file_of_a_big_patch(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"w" * 10_000)
    raw = FileSlice(SourceFile(path), 0, 10_000)
    base = with_tensors()
    target = with_tensors(d.Tensor(dims=(2500,), data_type=1, name="w", raw_data=raw))
    Patch.between(base, target).save(tmp_path / "patch.json")
    from onnxjson.codecs import text_file

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(text_file, "CUT_FROM", 1)
        read = Patch.load(tmp_path / "patch.json")
    result = read.apply(base)
    assert result.graph is not None
    assert not isinstance(result.graph.initializer[0].raw_data, bytes)
    assert result == target
    path.write_bytes(b"v" * 10_000)
    with pytest.raises(ChangedUnderneathError):
        Patch.between(base, target).save(tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


def test_a_saved_patch_is_read_back(tmp_path: Path) -> None:
    patch = Patch.between(graph_of("a", "b"), graph_of("b", "c"))
    patch.save(tmp_path / "patch.json")
    assert Patch.load(tmp_path / "patch.json") == patch
    assert (tmp_path / "patch.json").read_text(encoding="utf-8") == patch.dumps()
    assert onnxjson.Patch is Patch
