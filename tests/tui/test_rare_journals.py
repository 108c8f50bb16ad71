"""What happens to journals rarely: closed ones, ones of others, steps of another version."""

import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.model.errors import FileError
from onnxjson_tui.session import journal as journals
from onnxjson_tui.session.journal import Header, Line, StepLine, begin, encoded
from onnxjson_tui.session.recovery import Abandoned
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


def test_a_header_that_cannot_be_written_leaves_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", failing(errno.ENOSPC))
    with pytest.raises(FileError):
        begin(HEADER)
    assert not journals.STORE.folder("k").exists()


def test_an_edit_that_this_version_does_not_know_is_told_by_its_step(tmp_path: Path) -> None:
    step = StepLine(patch="", edits=('{"edit": "of-the-future"}',), title="a new edit")
    found = abandoned(tmp_path, Line(step=step), Line(step=replace(step, title="", edits=())))
    assert found.commands == ("a new edit", "")
    assert found.script()[1] == ("a new edit", "a step")
    assert not found.is_saved_in(random_model(random.Random(1)))
    found.release()
    found.release()


def test_a_journal_is_not_replayed_on_another_time_if_it_has_no_hash(tmp_path: Path) -> None:
    model = saved(tmp_path / "m.onnx", random_model(random.Random(1)))
    found = abandoned(tmp_path)
    with opened(model) as session:
        identity = session.opened.identity
        found.header = replace(
            HEADER, version=onnxjson.__version__, size=identity.size, mtime_ns=identity.mtime_ns, sha256=None
        )
        assert found.why_not(identity) == ""
        found.header = replace(found.header, mtime_ns=0)
        assert "was changed afterwards" in found.why_not(identity)
    found.discard()


def test_steps_that_do_not_fit_end_the_replay_with_their_number(tmp_path: Path) -> None:
    model = random_model(random.Random(1))
    found = abandoned(tmp_path, Line(undo=True), Line(redo=True), Line(step=StepLine(patch="", title="broken")))
    assert "step 1 cannot be applied" in found.replay(model).trouble
    found.release()
