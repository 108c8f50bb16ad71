"""``onnxjson.editing.drafts``."""

import hashlib
import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from onnxjson.editing import drafts
from onnxjson.model.errors import MissingInputError, OutputError
from onnxjson.storage.store import user_folder


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def make(path: Path, text: bytes = b"text\n") -> drafts.Draft:
    return drafts.make(path, text, ".onnx.json", model=b"model\n")


@pytest.mark.parametrize("name", ["m.onnx", "m.onnx.json", "m.onnxjson", "m.json", "m"])
def test_draft_is_named_after_its_file(tmp_path: Path, name: str) -> None:
    draft = make(tmp_path / name)
    assert draft.path.name == "m.onnx.json"
    assert draft.content() == b"text\n"


def test_names_that_are_long_or_no_utf_8_have_drafts(tmp_path: Path) -> None:
    for name in (b"n" * 255, "\U0001f600".encode() * 63, b"\xff\xfe.onnx", b".onnx"):
        path = tmp_path / os.fsdecode(name)
        draft = make(path)
        draft.path.write_bytes(b"edited")
        assert drafts.unsaved_drafts(path) == [draft.path]


def test_nobody_else_can_read_a_draft(tmp_path: Path) -> None:
    draft = make(tmp_path / "m.onnx")
    assert stat.S_IMODE(draft.path.stat().st_mode) == 0o600
    for folder in list(draft.path.parents)[:4]:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_draft_knows_whether_it_was_edited(tmp_path: Path) -> None:
    draft = make(tmp_path / "m.onnx")
    assert draft.is_untouched()
    draft.path.write_bytes(b"other")
    assert not draft.is_untouched()
    draft.path.unlink()
    assert draft.content() == b""


def test_edited_drafts_of_a_file_are_found_and_untouched_old_ones_removed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    edited, untouched, old = make(path), make(path), make(path)
    make(tmp_path / "other.onnx").path.write_bytes(b"other")
    edited.path.write_bytes(b"edited")
    edited.path.with_name("m.onnx.json~").write_bytes(b"a copy of the editor")
    yesterday = time.time() - 2 * 24 * 3600
    os.utime(old.path.parent, (yesterday, yesterday))
    os.utime(edited.path.parent, (yesterday, yesterday))
    assert drafts.unsaved_drafts(path) == [edited.path]
    assert untouched.path.exists()
    assert not old.path.parent.exists()


def test_draft_is_taken_up_with_what_it_was_made_from(tmp_path: Path) -> None:
    made = drafts.make(tmp_path / "m.onnx", b"t", ".nodes.json", model=b"m", addresses=("/graph/node/1",))
    taken = drafts.open_draft(made.path)
    assert taken.origin == made.origin
    assert taken.addresses == ("/graph/node/1",)
    assert taken.origin is not None
    assert taken.origin.model == hashlib.sha256(b"m").hexdigest()


def test_own_file_can_be_a_draft_and_is_never_removed(tmp_path: Path) -> None:
    own = tmp_path / "own.onnx.json"
    own.write_bytes(b"text")
    draft = drafts.open_draft(own)
    draft.remove()
    assert own.exists()
    assert not draft.is_untouched()
    with pytest.raises(MissingInputError):
        drafts.open_draft(tmp_path / "none")


def test_removed_draft_takes_along_what_the_editor_left(tmp_path: Path) -> None:
    draft = make(tmp_path / "m.onnx")
    draft.path.with_name(".m.onnx.json.swp").write_bytes(b"")
    draft.remove()
    assert list((user_folder("state") / "drafts").iterdir()) == []


def test_damaged_origin_is_none(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    draft = make(path)
    for content in (b"", b"{}", b"[1]", b"\xff"):
        (draft.path.parent / ".origin").write_bytes(content)
        assert drafts.open_draft(draft.path).origin is None
        assert drafts.unsaved_drafts(path) == []


def test_folder_that_cannot_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="no draft can be kept in"):
        make(tmp_path / "m.onnx")


def test_a_text_that_an_editor_took_away_with_its_folder_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    draft = make(path)
    shutil.rmtree(draft.path.parent)
    draft.restore(b"edited")
    assert drafts.unsaved_drafts(path) == [draft.path]
    assert draft.content() == b"edited"
    assert stat.S_IMODE(draft.path.parent.stat().st_mode) == 0o700


def test_a_draft_that_another_user_planted_is_not_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "digits.onnx"
    draft = drafts.make(path, b"{}", ".onnx.json", model=None)
    draft.path.write_bytes(b"planted")
    assert drafts.unsaved_drafts(path) == [draft.path]
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert drafts.unsaved_drafts(path) == []
    assert drafts.open_draft(draft.path).origin is None
