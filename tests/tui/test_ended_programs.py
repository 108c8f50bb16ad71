"""The real program in a terminal: killed, its line dropped, ended, suspended; what was done is there afterwards.

``ONNXJSON_TUI_KILLS=50 pytest tests/tui/test_ended_programs.py`` ends as many programs as that, every other one by a
dropped line, the others by SIGKILL, each at a random moment while keys are typed; one each otherwise.
"""

import os
import random
import re
import signal
import termios
import time
from pathlib import Path

import pytest

from tests.tui.programs import CTRL_C, CTRL_Q, ENTER, UNDO_2, Program
from tests.tui.sessions import opened, saved

KILLS = int(os.environ.get("ONNXJSON_TUI_KILLS", "2"))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx")


def edit(number: int) -> bytes:
    return b":set-metadata key%d value%d" % (number, number) + ENTER


def recovered(path: Path) -> dict[str, str]:
    """The metadata after recovery; the journal stays, since nothing is saved."""
    with opened(path) as session:
        found = session.recoverable()
        assert len(found) < 2
        for journal in found:
            assert session.why_not(journal) == ""
            assert not session.recover(journal).trouble
        return {entry.key or "": entry.value or "" for entry in session.model.metadata_props}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(KILLS))
def test_every_edit_that_was_seen_outlives_a_kill_or_a_dropped_line(model: Path, number: int) -> None:
    rng = random.Random(number)
    with Program(model) as program:
        program.expect(b"Relu")
        program.type(edit(1))
        program.expect(b"undo 1")
        count = 1
        moment = time.monotonic() + rng.uniform(0, 1.5)
        while time.monotonic() < moment:
            count += 1
            for key in edit(count):
                program.type(bytes([key]))
                time.sleep(rng.uniform(0, 0.003))
            time.sleep(rng.uniform(0, 0.1))
        seen = max([int(each) for each in re.findall(rb"undo (\d+)", program.output)], default=0)
        if number % 2:
            program.hang_up()
            assert program.end() == 128 + signal.SIGHUP
        else:
            program.process.kill()
            program.end()
    found = recovered(model)
    assert {f"key{each}": f"value{each}" for each in range(1, seen + 1)}.items() <= found.items()
    assert len(found) <= count


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_program_and_gives_the_terminal_back(model: Path, number: int) -> None:
    with Program(model) as program:
        program.expect(b"Relu")
        program.type(edit(1))
        program.expect(rb"undo 1")
        program.process.send_signal(number)
        assert program.end() == 128 + number
        program.expect(rb"\x1b\[\?1049l")
        descriptor = os.open(program.slave_name, os.O_RDWR | os.O_NOCTTY)
        try:
            assert termios.tcgetattr(descriptor)[:4] == program.before[:4]
        finally:
            os.close(descriptor)
    assert recovered(model) == {"key1": "value1"}


@pytest.mark.parametrize("dropped", [True, False])
def test_the_line_drops_while_the_editor_is_open(model: Path, dropped: bool) -> None:
    with Program(model, more={"EDITOR": "sh -c 'echo in the editor; sleep 100'"}) as program:
        program.expect(b"Relu")
        program.type(edit(1))
        program.expect(b"undo 1")
        program.type(b"E")
        program.expect(b"in the editor")
        if dropped:
            program.hang_up()
        else:
            program.process.send_signal(signal.SIGTERM)
        assert program.end() == 128 + (signal.SIGHUP if dropped else signal.SIGTERM)
    assert recovered(model) == {"key1": "value1"}


def test_ctrl_c_and_sigint_end_nothing(model: Path) -> None:
    with Program(model) as program:
        program.expect(b"Relu")
        program.type(CTRL_C)
        program.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        program.type(edit(1))
        program.expect(rb"undo 1")
        assert program.process.poll() is None


def test_leaving_with_changes_asks_and_stays_by_default(model: Path) -> None:
    before = model.read_bytes()
    with Program(model) as program:
        program.expect(b"Relu")
        program.type(edit(1))
        program.expect(rb"undo 1")
        program.type(CTRL_Q)
        program.expect(b"unsaved changes")
        program.type(ENTER)
        program.type(edit(2))
        program.expect(UNDO_2)
        program.type(CTRL_Q + b"D")
        assert program.end() == 0
    assert model.read_bytes() == before
    with opened(model) as session:
        assert not session.recoverable()
