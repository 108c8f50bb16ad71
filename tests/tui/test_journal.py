"""Journals: what a killed session leaves, and what becomes of it."""

import fcntl
import os
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.model.errors import EditError
from onnxjson.storage.identity import sha256_of
from onnxjson_tui.session import journal as journals
from onnxjson_tui.session import recording
from onnxjson_tui.session.journal import decoded, encoded
from onnxjson_tui.session.recovery import PATIENCE_SECONDS, Abandoned, abandoned
from onnxjson_tui.session.session import Session
from tests.editing.graphs import model_of
from tests.editing.random_models import random_model
from tests.tui.sessions import bytes_of, edit_somehow, opened, saved, small

ALPHA = edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def _left_by(session: Session) -> Path:
    """The journal of a session, as a kill leaves it: not closed in order, and without its lock."""
    path = session.journal_path
    assert path is not None
    session._recorder.close()
    return path


def _only(session: Session) -> Abandoned:
    found = session.recoverable()
    assert len(found) == 1
    return found[0]


def test_a_line_is_with_the_system_before_the_edit_returns(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        for count in range(1, 6):
            session.edit(edits.SetMetadata(key="k", value=str(count)))
            assert session.journal_path is not None
            lines = session.journal_path.read_bytes().splitlines()
            assert len(lines) == 1 + count
            assert f'\\"value\\": \\"{count}\\"' in str(decoded(lines[-1])["step"]["edits"]).replace('"', '\\"')
        session.discard()


def test_the_header_says_version_and_hash_of_what_was_opened(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    with opened(path) as session:
        session.edit(ALPHA)
        assert session.journal_path is not None
        header = decoded(session.journal_path.read_bytes().splitlines()[0])
        assert header["format"] == "onnxjson-journal/1"
        assert header["version"] == onnxjson.__version__
        assert header["sha256"] == sha256_of(path)
        assert session.journal_path.stat().st_mode & 0o777 == 0o600
        assert session.journal_path.parent.stat().st_mode & 0o777 == 0o700
        session.discard()


def test_the_hash_of_a_big_file_comes_in_a_line_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "HASHED_AT_ONCE", 0)
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    assert killed.journal_path is not None
    end = time.monotonic() + 10
    while b'"sha256": "' not in killed.journal_path.read_bytes() and time.monotonic() < end:
        time.sleep(0.01)
    _left_by(killed)
    os.utime(path, ns=(1, 1))  # only the time is another: the bytes say that it is the file
    with opened(path) as session:
        session.recover(_only(session))
        assert session.model == killed.model
        session.discard()


@pytest.mark.parametrize("cut", [1, 2, 9, 40, 200])
def test_a_last_line_that_was_cut_short_is_left_out_and_written_over(tmp_path: Path, cut: int) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(edits.SetMetadata(key="k", value="v"))
    killed.edit(ALPHA)
    name = _left_by(killed)
    os.truncate(name, name.stat().st_size - cut)
    with opened(path) as session:
        journal = _only(session)
        assert journal.damage == ""
        session.recover(journal)
        assert journal.commands == ("set-metadata k v",)
        session.edit(edits.SetMetadata(key="l", value="v"))
        _left_by(session)
    with opened(path) as again:
        assert len(again.recover(_only(again)).made) == 2
        again.discard()


def test_a_damaged_line_within_is_said_and_nothing_behind_it_is_made(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    for count in range(4):
        killed.edit(edits.SetMetadata(key="k", value=str(count)))
    name = _left_by(killed)
    lines = name.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"value", b"other")
    name.write_bytes(b"".join(lines))
    with opened(path) as session:
        replay = session.recover(_only(session))
        assert replay.trouble == "line 4 is damaged; 2 lines cannot be read"
        assert len(replay.made) == 2
        assert name.exists()
        assert session.journal_path != name
        session.discard()
    (left,) = abandoned(str(path))
    left.discard()


@pytest.mark.parametrize("field", ["version", "format"])
def test_a_journal_of_another_version_is_shown_and_exported_and_not_replayed(tmp_path: Path, field: str) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    name = _left_by(killed)
    first, *others = name.read_bytes().splitlines(keepends=True)
    header = replace(_header(first), **{field: "9.9"})
    name.write_bytes(encoded(header) + b"".join(others))
    with opened(path) as session:
        journal = _only(session)
        assert "9.9" in session.why_not(journal)
        with pytest.raises(EditError, match="export them as a script"):
            session.recover(journal)
        if field == "version":
            script, left_out = journal.script()
            assert not left_out
            assert onnxjson.apply(small(), script) == killed.model
        assert session.model == small()
        journal.release()
    assert name.exists()


def _header(line: bytes) -> journals.Header:
    return journals.Header(**decoded(line.removesuffix(b"\n")))


def test_a_journal_of_another_base_is_not_replayed(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    _left_by(killed)
    saved(path, replace(small(), producer_name="otherwise"))
    with opened(path) as session:
        journal = _only(session)
        assert "is not the file that was edited" in session.why_not(journal)
        with pytest.raises(EditError):
            session.recover(journal)
        assert journal.script()[0].edits == (ALPHA,)
        journal.discard()
        assert not session.recoverable()


def test_a_journal_that_another_user_planted_is_not_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    _left_by(killed)
    own = os.geteuid()
    with monkeypatch.context() as patched, opened(path) as session:
        patched.setattr(os, "geteuid", lambda: own + 1)
        assert not session.recoverable()
    with opened(path) as session:
        _only(session).discard()


def test_two_sessions_on_one_file_have_journals_of_their_own(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    with opened(path) as one, opened(path) as other:
        one.edit(edits.SetMetadata(key="one", value="1"))
        other.edit(edits.SetMetadata(key="other", value="2"))
        assert one.journal_path != other.journal_path
        with opened(path) as third:
            assert not third.recoverable()  # both are alive
        _left_by(one)
        with opened(path) as third:
            journal = _only(third)
            with opened(path) as fourth:
                assert not fourth.recoverable()  # the third one decides about it
            third.recover(journal)
            assert third.model == one.model
            third.discard()
        other.discard()


def test_a_lock_that_outlives_a_kill_for_a_moment_hides_no_journal(tmp_path: Path) -> None:
    # A process that was killed between fork and exec of another one leaves its descriptors to that one until it execs.
    path = saved(tmp_path / "m.onnx")
    session = opened(path)
    session.edit(ALPHA)
    journal = _left_by(session)
    held = os.open(journal, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    late = threading.Timer(PATIENCE_SECONDS / 5, os.close, (held,))
    late.start()
    with opened(path) as again:
        again.recover(_only(again))
        assert again.model == session.model
        again.discard()
    late.join()


def test_the_folder_of_journals_may_go_while_one_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = journals.STORE.make_folder
    removed: list[Path] = []

    def let_go(key: str) -> Path:
        folder = real(key)
        if not removed:
            removed.append(folder)
            folder.rmdir()
        return folder

    monkeypatch.setattr(journals.STORE, "make_folder", let_go)
    with opened(saved(tmp_path / "m.onnx")) as session:
        session.edit(ALPHA)
        assert removed
        assert not session.trouble
        assert session.journal_path is not None
        session.discard()


def test_a_journal_goes_with_saving_with_discarding_and_with_undoing_all(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    for end in ("save", "discard", "undo"):
        with opened(path) as session:
            session.edit(edits.SetMetadata(key=end, value="v"))
            journal = session.journal_path
            assert journal is not None
            getattr(session, end)()
        assert not journal.exists()
    assert not journals.STORE.folder(path).exists()


def test_a_kill_between_the_save_and_the_end_of_the_journal_leaves_nothing_to_recover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    killed.edit(edits.DeleteNode(node="op:Relu", bypass=0))
    with monkeypatch.context() as patch:
        patch.setattr(killed, "_saved", lambda *_: None)
        assert killed.save().kind == "saved"
    name = _left_by(killed)
    with opened(path) as session:
        assert session.model == killed.model
        assert not session.recoverable()
    assert not name.exists()


def test_a_journal_of_a_save_that_another_program_replaced_is_still_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    with monkeypatch.context() as patch:
        patch.setattr(killed, "_saved", lambda *_: None)
        killed.save()
    _left_by(killed)
    saved(path, replace(small(), producer_name="other"))
    with opened(path) as session:
        assert session.why_not(_only(session))


def test_weights_of_the_opened_file_are_not_copied_and_new_ones_stand_once(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0)
    model = model_of("g (float[N,64] x) => (float[N,64] y) { a = MatMul(x, w) y = Relu(a) }")
    assert model.graph is not None
    weight = onnxjson.from_proto(
        onnx.helper.make_model(
            onnx.helper.make_graph(
                [], "g", [], [], [onnx.numpy_helper.from_array(numbers.standard_normal((64, 64), np.float32), "w")]
            )
        )
    ).graph
    assert weight is not None
    path = saved(tmp_path / "m.onnx", replace(model, graph=replace(model.graph, initializer=weight.initializer)))
    np.save(tmp_path / "new.npy", numbers.standard_normal((64, 64), np.float32))
    killed = opened(path)
    killed.edits_folder = tmp_path
    killed.edit(edits.DeleteNode(node="op:MatMul", bypass=0))
    killed.edit(edits.Prune())
    killed.undo()
    killed.undo()
    assert killed.journal_path is not None
    assert killed.journal_path.stat().st_size < 8_000
    new = edits.SetTensor(tensor="w", file="new.npy")
    killed.edit(new)
    size = killed.journal_path.stat().st_size
    assert 16_384 * 4 / 3 < size < 32_000
    killed.edit(edits.Rename(kind="tensor", from_="w", to="v"))
    killed.edit(edits.DeleteNode(node="op:MatMul", bypass=0))
    assert killed.journal_path.stat().st_size < size + 8_000
    _left_by(killed)
    with opened(path) as session:
        assert not session.recover(_only(session)).trouble
        assert bytes_of(session.model) == bytes_of(killed.model)
        while session.undo():
            pass
        assert bytes_of(session.model) == path.read_bytes()
        session.discard()


def test_a_journal_that_grows_too_long_is_written_anew_as_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 4_000)
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    sizes = []
    for count in range(100):
        killed.edit(edits.SetMetadata(key="k", value=str(count)))
        if count % 7 == 0:
            killed.undo()
        assert killed.journal_path is not None
        sizes.append(killed.journal_path.stat().st_size)
    assert max(sizes) < 6_000
    assert killed.journal_path is not None
    assert len(list(killed.journal_path.parent.iterdir())) == 1
    _left_by(killed)
    with opened(path) as session:
        assert not session.recover(_only(session)).trouble
        assert bytes_of(session.model) == bytes_of(killed.model)
        session.discard()


def test_old_journals_of_a_model_are_let_go_of(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    for count in range(12):
        session = opened(path)
        session.edit(edits.SetMetadata(key="k", value=str(count)))
        last = _left_by(session)
    kept = sorted(last.parent.iterdir())
    assert len(kept) == journals.STORE.entries_a_key
    assert kept[-1] == last


def test_a_state_folder_that_cannot_be_written_stops_no_edit_and_is_said(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    (tmp_path / "state").write_text("no folder")
    with opened(path) as session:
        session.edit(ALPHA)
        assert "journal" in session.trouble
        assert session.is_changed
        (tmp_path / "state").unlink()
        session.edit(edits.SetMetadata(key="k", value="v"))
        assert session.trouble == ""
        _left_by(session)
    with opened(path) as again:
        again.recover(_only(again))
        assert bytes_of(again.model) == bytes_of(session.model)  # the first step is there, too
        again.discard()


def test_a_full_disk_leaves_no_half_line_and_the_next_step_brings_all(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    assert killed.journal_path is not None
    size = killed.journal_path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))  # Python ignores SIGXFSZ
    try:
        killed.edit(edits.SetMetadata(key="k", value="v"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert killed.trouble
    assert killed.journal_path.stat().st_size == size
    killed.edit(edits.SetMetadata(key="l", value="v"))
    assert not killed.trouble
    _left_by(killed)
    with opened(path) as session:
        session.recover(_only(session))
        assert bytes_of(session.model) == bytes_of(killed.model)
        session.discard()


@pytest.mark.parametrize("seed", range(20))
def test_random_sessions_are_recovered_to_the_byte(tmp_path: Path, seed: int) -> None:
    rng = random.Random(1000 + seed)
    path = saved(tmp_path / "m.onnx", random_model(rng))
    killed = opened(path)
    for _ in range(25):
        match rng.randrange(8):
            case 0 | 1:
                killed.undo()
            case 2:
                killed.redo()
            case 3 if rng.random() < 0.3:
                assert killed.save().kind == "saved"
            case _:
                edit_somehow(killed, rng)
    if killed.journal_path is None:
        return
    _left_by(killed)
    with opened(path) as session:
        recoverable = session.recoverable()
        if not recoverable:
            assert bytes_of(killed.model) == path.read_bytes()
            return
        assert not session.recover(recoverable[0]).trouble
        assert bytes_of(session.model) == bytes_of(killed.model)
        for _ in range(10):
            session.undo()
            session.redo()
        while session.undo():
            pass
        assert bytes_of(session.model) == path.read_bytes()
        session.discard()


@pytest.mark.parametrize("content", [b"", b"\n", b"nonsense", b"00000000 {}\n", b"zzzzzzzz {}\n" * 3, b"\xff" * 100])
def test_what_is_no_journal_is_never_replayed(tmp_path: Path, content: bytes) -> None:
    path = saved(tmp_path / "m.onnx")
    killed = opened(path)
    killed.edit(ALPHA)
    _left_by(killed).write_bytes(content)
    with opened(path) as session:
        for journal in session.recoverable():
            assert session.why_not(journal)
            assert journal.commands == ()
            journal.discard()
        assert not session.recoverable()


def test_a_journal_whose_process_ended_before_its_first_line_is_nothing_to_recover(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    with opened(path) as session:
        session.edit(edits.SetMetadata(key="a", value="b"))
        journal = session.journal_path
        assert journal is not None
        folder, ended = journal.parent, journal.name.split("-")
        session.undo()
    folder.mkdir(parents=True, exist_ok=True)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    empty = folder / f"{ended[0]}-{child.pid}-{ended[2]}"
    empty.touch(0o600)
    with opened(path) as session:
        assert not session.recoverable()
    assert not empty.exists()
