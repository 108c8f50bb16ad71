"""SIGKILL at random moments of sessions that edit, undo and save."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editing.random_models import random_model
from tests.tui.sessions import bytes_of, opened, saved

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[str]"]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = saved(tmp_path / "m.onnx", random_model(random.Random(5)))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tui'}"}
    words = [sys.executable, "-m", "tests.tui.killed_sessions", str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("kills", [15, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_every_edit_older_than_half_a_second_outlives_a_kill_at_any_moment(
    tmp_path: Path, server: "subprocess.Popen[str]", kills: int
) -> None:
    rng = random.Random(0)
    assert server.stdin is not None
    assert server.stdout is not None
    recovered = 0
    state = hashlib.sha256((tmp_path / "m.onnx").read_bytes()).hexdigest()
    for number in range(kills):
        acknowledgements = tmp_path / f"{number}.txt"
        server.stdin.write(f"{number} {acknowledgements}\n")
        server.stdin.flush()
        child = int(server.stdout.readline())
        end = time.monotonic() + 30
        while not acknowledgements.exists() and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.08))
        os.kill(child, signal.SIGKILL)
        assert server.stdout.readline() == "ended\n"
        lines = acknowledgements.read_text().splitlines()
        told = [line.split()[1] for line in lines if line != "undoing"]
        was_undoing = bool(lines) and lines[-1] == "undoing"
        state, was_recovered = _recovered(tmp_path / "m.onnx", told[-1] if told else state, was_undoing)
        recovered += was_recovered
    assert recovered > kills // 2


def _recovered(path: Path, told: str, was_undoing: bool) -> tuple[str, bool]:
    """The state that is recovered, and whether a journal was; fails where it is not what was told last.

    The kill may have come between a step and the telling: then one undo or redo leads to what was told.
    """
    with opened(path) as session:
        recoverable = session.recoverable()
        assert len(recoverable) < 2
        for journal in recoverable:
            assert session.why_not(journal) == ""
            assert not session.recover(journal).trouble

        def state() -> str:
            return hashlib.sha256(bytes_of(session.model)).hexdigest()

        now = state()
        if now != told:
            around = []
            if session.undo():
                around.append(state())
                session.redo()
            if session.redo():
                around.append(state())
                session.undo()
            # Where the only step was just undone, there is nothing to offer.
            is_undone = was_undoing and not recoverable
            assert told in around or is_undone, f"an edit is lost: {was_undoing=}, {len(recoverable)} journals"
        assert state() == now
        # The next session goes on with this journal, as after a person who looks and leaves.
        return now, bool(recoverable)
