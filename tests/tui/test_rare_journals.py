"""What happens to journals rarely: closed ones, ones of others, steps of another version."""

import errno
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model.errors import FileError
from onnxjson.model.payloads import Data
from onnxjson_tui.session import journal as journals
from onnxjson_tui.session.journal import Header, Journal, Line, StepLine, begin, encoded
from onnxjson_tui.session.recovery import Abandoned, _find_payloads
from tests.editing.random_models import random_model
from tests.tui.sessions import opened, saved


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


HEADER = Header(format=journals.FORMAT, version="0", key="k", name="m", size=1, mtime_ns=1, started=1)


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def abandoned(tmp_path: Path, *lines: Line) -> Abandoned:
    path = tmp_path / "journal"
    path.write_bytes(b"".join(map(encoded, [HEADER, *lines])))  # type: ignore[arg-type]
    return Abandoned(path, os.open(path, os.O_RDWR))


def test_a_closed_journal_takes_no_line_and_may_be_closed_again() -> None:
    journal = begin(HEADER)
    journal.sync()
    journal.close()
    journal.close()
    journal.sync()
    with pytest.raises(FileError, match="is closed"):
        journal.append(Line(undo=True))
    journal.remove()


def test_a_journal_that_was_never_written_has_no_thread(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, os.open(path, os.O_RDWR | os.O_CREAT), 0)
    journal.close()


def test_a_header_that_cannot_be_written_leaves_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", failing(errno.ENOSPC))
    with pytest.raises(FileError):
        begin(HEADER)
    assert not journals.STORE.folder("k").exists()


def test_a_thread_syncs_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "SYNC_SECONDS", 0.01)
    journal = begin(HEADER)
    end = time.monotonic() + 10
    while journal._is_dirty and time.monotonic() < end:
        time.sleep(0.01)
    assert not journal._is_dirty
    journal.close()
    journal.remove()


def test_an_edit_that_this_version_does_not_know_is_told_by_its_step(tmp_path: Path) -> None:
    step = StepLine(patch="", edits=('{"edit": "of-the-future"}',), title="a new edit")
    drafts = abandoned(tmp_path, Line(step=step), Line(step=replace(step, title="", edits=())))
    assert drafts.commands == ("a new edit", "")
    assert drafts.script()[1] == ("a new edit", "a step")
    assert not drafts.is_saved_in(random_model(random.Random(1)))
    drafts.release()
    drafts.release()


def test_a_journal_is_not_replayed_on_another_time_if_it_has_no_hash(tmp_path: Path) -> None:
    model = saved(tmp_path / "m.onnx", random_model(random.Random(1)))
    drafts = abandoned(tmp_path)
    with opened(model) as session:
        identity = session.opened.identity
        drafts.header = replace(
            HEADER, version=onnxjson.__version__, size=identity.size, mtime_ns=identity.mtime_ns, sha256=None
        )
        assert drafts.why_not(identity) == ""
        drafts.header = replace(drafts.header, mtime_ns=0)
        assert "was changed afterwards" in drafts.why_not(identity)
    drafts.discard()


def test_steps_that_do_not_fit_end_the_replay_with_their_number(tmp_path: Path) -> None:
    model = random_model(random.Random(1))
    found = abandoned(tmp_path, Line(undo=True), Line(redo=True), Line(step=StepLine(patch="", title="broken")))
    assert "step 1 cannot be applied" in found.replay(model).trouble
    found.release()


def test_steps_that_write_files_and_payloads_of_the_model_are_found(tmp_path: Path) -> None:
    model = onnxjson.Model(
        graph=onnxjson.Graph(initializer=(onnxjson.Tensor(dims=(4,), data_type=1, raw_data=bytes(16)),))
    )
    changed = onnxjson.apply(model, edits.SetMetadata(key="k", value="v"))
    step = StepLine(
        patch=onnxjson.Patch.between(model, changed).dumps(),
        edits=(json.dumps({"edit": "set-metadata", "key": "k", "value": "v"}),),
        apart={"0" * 64: 3},
        has_files=True,
    )
    drafts = abandoned(tmp_path, Line(step=step))
    replayed = drafts.replay(model)
    assert not replayed.trouble
    assert replayed.model == changed
    assert replayed.made[0].files == {}
    drafts.release()


def test_only_payloads_of_the_hash_are_found() -> None:
    contents = [bytes([size]) * 4 * size for size in (100, 200, 200)]
    tensors = [onnxjson.Tensor(dims=(len(each) // 4,), data_type=1, raw_data=each) for each in contents]
    model = onnxjson.Model(graph=onnxjson.Graph(initializer=tuple(tensors)))
    known: dict[str, Data] = {}
    _find_payloads({"0" * 64: 800, sha256_of(contents[0]): 400}, model, known)
    assert list(known.values()) == contents[:1]
    _find_payloads(dict.fromkeys(known, 4), model, known)
