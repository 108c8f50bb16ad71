"""Texts with conflicts: written and read again exactly, refused as models, settled one by one."""

import json
from pathlib import Path

import jsonschema
import pytest

import onnxjson
from onnxjson.codecs.text_file import read_bytes
from onnxjson.merging import conflicted_files
from onnxjson.merging.conflicted_files import save
from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.conflicts import Conflict, ConflictError
from onnxjson.model.document import Graph, Model, Node, Tensor
from onnxjson.model.errors import DecodeError, LimitError, SelectorError
from onnxjson.model.payloads import Digest
from onnxjson.storage import files
from tests.merging.models import BASE, attribute, both, conflicted_bytes, metadata, node, renamed, weights, without
from tests.merging.test_slots import ONE, SAME_SLOT, TWO
from tests.schemas.documents import document_schema

MANY = merge(
    BASE,
    both(attribute(1, "alpha", 0.2), weights(0, ONE), metadata("k", "1"), without(2))(BASE),
    both(attribute(1, "alpha", 0.3), weights(0, TWO), metadata("k", "2"), node(2, name="n", doc_string="d"))(BASE),
)


@pytest.mark.parametrize("name", SAME_SLOT)
def test_text_with_conflicts_is_read_as_it_was_written(name: str) -> None:
    mine, its, _ = SAME_SLOT[name]
    merged = merge(BASE, mine(BASE), its(BASE))
    text = conflicted_bytes(merged.model, merged.conflicts)
    read = read_bytes(text, conflicted=True)
    assert (read.model, read.conflicts) == (merged.model, merged.conflicts)
    assert conflicted_bytes(read.model, read.conflicts) == text
    jsonschema.validate(json.loads(text), document_schema())


def test_conflicts_stand_right_after_the_format() -> None:
    text = conflicted_bytes(*_parts(MANY))
    assert text.startswith(b'{\n"format": "onnxjson/1",\n"conflicts": [\n  {"id": "1", "at": ')


def _parts(merged: object) -> tuple[Model, tuple[Conflict, ...]]:
    from onnxjson.merging.merge import Merged

    assert isinstance(merged, Merged)
    return merged.model, merged.conflicts


@pytest.mark.parametrize("name", ["m.onnx", "m.onnx.json", "m.onnxjson"])
def test_file_with_conflicts_is_no_model_under_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save(MANY.model, MANY.conflicts, path, files.format_for(path))
    with pytest.raises(ConflictError, match="4 conflicts") as caught:
        onnxjson.load(path)
    assert caught.value.exit_code == 16
    assert caught.value.conflicts == MANY.conflicts
    with pytest.raises(ConflictError):
        onnxjson.loads(path.read_bytes())


def test_empty_list_of_conflicts_is_a_model() -> None:
    text = conflicted_bytes(*_parts(MANY)).decode()
    start, end = text.index('"conflicts": ['), text.index('\n],\n"ir_version"')
    assert onnxjson.loads(text[:start] + '"conflicts": [' + text[end:]) == MANY.model
    assert onnxjson.loads(text[:start] + text[end + 4 :]) == MANY.model


@pytest.mark.parametrize("order", [["1", "2", "3", "4"], ["4", "3", "2", "1"], ["3", "1", "4", "2"]])
@pytest.mark.parametrize("choice", ["ours", "theirs", "base"])
def test_conflicts_are_settled_one_by_one_in_any_order(order: list[str], choice: str) -> None:
    at_once, _ = resolve(MANY.model, MANY.conflicts, choice)  # type: ignore[arg-type]
    model, conflicts = _parts(MANY)
    for each in order:
        model, conflicts = resolve(model, conflicts, choice, [each])  # type: ignore[arg-type]
        again = read_bytes(conflicted_bytes(model, conflicts), conflicted=True)
        assert (again.model, again.conflicts) == (model, conflicts)
    assert not conflicts
    assert model == at_once


def test_slot_that_was_edited_since_is_not_settled() -> None:
    edited = attribute(1, "alpha", 9.0)(MANY.model)
    with pytest.raises(ConflictError, match="edited since"):
        resolve(edited, MANY.conflicts, "theirs")


def test_unknown_id_is_said() -> None:
    with pytest.raises(SelectorError, match='"9"; there are 1, 2, 3, 4'):
        resolve(MANY.model, MANY.conflicts, "ours", ["9"])


def test_name_that_is_taken_by_then_is_refused() -> None:
    merged = merge(BASE, renamed("b", "b1")(BASE), renamed("b", "b2")(BASE))
    with pytest.raises(ConflictError, match="names are taken"):
        resolve(renamed("a", "b2")(merged.model), merged.conflicts, "theirs")


@pytest.mark.parametrize(
    ("conflict", "code"),
    [
        ('"x"', "wrong-type"),
        ('{"id": "1"}', "missing-key"),
        ('{"id": "1", "at": "/graph/nodes/0"}', "bad-address"),
        ('{"id": "1", "at": "/graph/node/x"}', "bad-address"),
        ('{"id": "1", "at": "/graph/node/0/input/0/1"}', "bad-address"),
        ('{"id": "1", "at": "/graph/node/0", "mine": 1}', "unknown-key"),
        ('{"id": "1", "at": "/graph/node/0", "ours": 1}', "wrong-type"),
    ],
)
def test_broken_conflict_is_a_finding(conflict: str, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_bytes(f'{{\n"format": "onnxjson/1",\n"conflicts": [\n  {conflict}\n]\n}}\n'.encode(), conflicted=True)
    assert {finding.code for finding in caught.value.findings} == {code}


def test_digests_of_a_text_stay_digests() -> None:
    digests = [
        Model(graph=Graph(initializer=(Tensor((128,), 1, name="w", raw_data=Digest(str(number) * 64, 512)),)))
        for number in range(1, 4)
    ]
    merged = merge(*digests)
    text = conflicted_bytes(merged.model, merged.conflicts)
    assert b'"weights": "digest"' in text
    read = read_bytes(text, conflicted=True)
    assert read.conflicts == merged.conflicts
    assert read.has_digests


def test_text_that_is_too_long_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicted_files, "CONFLICT_TEXT_BYTES", 500)
    path = tmp_path / "m.onnx"
    with pytest.raises(LimitError, match="MiB"):
        save(MANY.model, MANY.conflicts, path, "onnx")
    assert not path.exists()


def test_nodes_that_come_back_stand_behind_what_they_take() -> None:
    merged = merge(BASE, without(1)(BASE), node(1, doc_string="kept", input=("a",))(BASE))
    model, _ = resolve(merged.model, merged.conflicts, "theirs")
    assert model.graph is not None
    position = next(place for place, each in enumerate(model.graph.node) if each.op_type == "LeakyRelu")
    assert isinstance(model.graph.node[position], Node)
    assert any("a" in each.output for each in model.graph.node[:position])
