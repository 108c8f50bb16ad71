"""No memory, or no thread: a message, the model as it was or the edit made, and the journal."""

import threading
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from onnxjson import edits
from onnxjson_tui.session import recording
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.terminal import detect
from onnxjson_tui.workbench.app import WorkbenchApp
from onnxjson_tui.workbench.start import run_program
from tests.tui.benches import Bench, run
from tests.tui.sessions import opened, saved

EDIT = edits.SetMetadata(key="k", value="v")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx")


def failing(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [MemoryError(), ImportError("libx.so: failed to map segment from shared object")])
def test_an_edit_without_memory_changes_nothing_and_is_no_internal_error(
    path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "preview", failing(error))

    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("set-metadata k v")
        assert bench.footer == "not enough memory; nothing was changed"
        assert not bench.session.is_changed

    run(path, flow)


def test_work_without_a_thread_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def flow(bench: Bench) -> None:
        monkeypatch.setattr(threading.Thread, "start", failing(RuntimeError("can't start new thread")))
        bench.bench.jobs.start("work", "working", lambda: 0, print)
        await bench.pilot.pause(0.1)
        assert not bench.bench.jobs.running
        assert "not enough memory" in bench.footer
        monkeypatch.undo()

    run(path, flow)


@pytest.mark.parametrize("name", ["_line", "_begin"])
def test_an_edit_that_the_journal_has_no_memory_for_is_made_and_told(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "begin" if name == "_begin" else name
    monkeypatch.setattr(recording if name == "_begin" else recording.Recorder, broken, failing(MemoryError()))
    with opened(path) as session:
        session.edit(EDIT)
        assert session.is_changed
        assert session.trouble.endswith("not enough memory")
        monkeypatch.undo()
        monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "state"))
        session.edit(edits.SetMetadata(key="l", value="w"))
        assert not session.trouble
        session._recorder.close()
        with opened(path) as other:
            (journal,) = other.recoverable()
            other.recover(journal)
            assert other.model == session.model
            other.discard()


@pytest.mark.parametrize("name", ["_line", "begin"])
def test_the_old_journal_stays_if_there_is_no_memory_for_another(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as session:
        session.edit(EDIT)
        session.sync()
        before, session._recorder.trouble = session.journal_path, "the disk was full"
        monkeypatch.setattr(recording if name == "begin" else recording.Recorder, name, failing(MemoryError()))
        session.undo()
        assert session.trouble == "not enough memory"
        assert session.journal_path == before
        assert [*path.parent.glob("state/onnxjson/journals/*/*")] == [before]
        session.discard()
        session.sync()


def test_an_undone_save_that_cannot_be_recorded_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as session:
        session.edit(EDIT)
        session.save()
        monkeypatch.setattr(recording, "begin", failing(MemoryError()))
        session.undo()
        assert session.trouble == "not enough memory"
        session.discard()


def test_a_hash_that_cannot_be_known_or_kept_is_left_out(path: Path) -> None:
    with opened(path) as session:
        session.edit(EDIT)
        base, journal = session._recorder._base, session._recorder.journal
        assert journal is not None
        journal.close()
        recording._append_hash(base, journal)
        path.unlink()
        base.identity._sha256 = None
        assert base.hash() is None
        recording._append_hash(base, journal)
        session.discard()


def test_a_journal_without_its_thread_is_synced_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as session:
        monkeypatch.setattr(threading.Thread, "start", failing(RuntimeError("can't start new thread")))
        session.edit(EDIT)
        journal = session._recorder.journal
        assert journal is not None
        assert not journal._is_dirty
        session.discard()


def test_an_index_that_cannot_follow_is_built_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as session:
        before = session.index
        monkeypatch.setattr("onnxjson_tui.session.edited_model.follow", failing(MemoryError()))
        with pytest.raises(MemoryError):
            session.edit(EDIT)
        assert not session.is_changed
        assert session.index is not before


@pytest.mark.parametrize("edited", [False, True])
def test_an_error_that_nothing_handles_reaches_the_command_line(
    path: Path, edited: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(WorkbenchApp, "run", partialmethod(WorkbenchApp.run, headless=True))
    monkeypatch.setattr(WorkbenchApp, "on_mount", failing(MemoryError()))
    with opened(path) as session:
        if edited:
            session.edit(EDIT)
        with pytest.raises(MemoryError):
            run_program(Screen(), detect(), (session,))
        session.discard()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "onnxjson: unsaved edits are kept; open the model again to recover them\n" * edited
