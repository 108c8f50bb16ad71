"""What happens to a sandboxed process rarely: pipes that break, answers that are none, processes that do not end."""

import os
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onnxjson.model.errors import LimitError
from onnxjson.running import server_process, worker
from onnxjson.running.server_process import ServerProcess, user_packages
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import (
    Answer,
    BrokenConversationError,
    Limits,
    Request,
    receive,
    send,
    unpack,
)
from tests.running.test_worker import GOOD


def test_packages_of_the_user_are_passed_on_if_this_process_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path))
    assert user_packages() == []
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert user_packages() == [str(tmp_path)]


def test_a_server_that_does_not_end_is_killed_and_what_it_started_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bytes] = []
    monkeypatch.setattr(server_process, "end_marked", ended.append)
    server = ServerProcess([sys.executable, "-c", "import time; time.sleep(100)"], {})
    real = server.process.wait

    def wait(timeout: float | None = None) -> int:
        if timeout is not None:
            raise subprocess.TimeoutExpired("server", timeout)
        return real()

    monkeypatch.setattr(server.process, "wait", wait)
    server.end()
    assert not server.is_running
    assert ended
    server.interrupt()  # nothing is left to interrupt


def test_more_bytes_than_a_message_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MESSAGE_BYTES", 4)
    with Worker() as found, pytest.raises(LimitError, match="more than the sandboxed process accepts"):
        found.run_contained(Request(job="run", limits=Limits()), bytes(9), tmp_path)


def test_what_an_analysis_prints_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Worker()
    monkeypatch.setattr(found, "_request", lambda *_, **__: (Answer(outcome="done", output="a\nb\n"), b""))
    assert [each.message for each in found._findings("check", GOOD, None, None)] == ["a", "b"]


def test_files_that_a_job_reads_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(GOOD)
    with Worker() as found:
        assert found.check(tmp_path / "m.onnx", reads=[tmp_path]) == ()


def pipe() -> tuple[int, int]:
    found = os.pipe()
    os.set_blocking(found[1], False)
    return found


def test_a_reader_that_goes_away_and_one_that_is_slow_break_the_conversation() -> None:
    reading, writing = pipe()
    with pytest.raises(BrokenConversationError, match="in time"):
        send(writing, Answer(outcome="done"), bytes(1 << 20), until=0.0)
    os.close(reading)
    with pytest.raises(BrokenConversationError, match="pipe"):
        send(writing, Answer(outcome="done"), bytes(1 << 20))
    os.close(writing)


def test_a_full_pipe_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = pipe()
    real, tries = os.write, []

    def write(descriptor: int, data: Any) -> int:
        tries.append(descriptor)
        if len(tries) == 1:
            raise BlockingIOError
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    send(writing, Answer(outcome="done"), b"blob")
    assert receive(reading, Answer) == (Answer(outcome="done"), b"blob")
    os.close(writing)
    os.close(reading)


def test_messages_that_are_none_are_refused() -> None:
    for data in (b"", bytes(16), (1 << 40).to_bytes(8, "little") * 2, b"\1" + bytes(15) + b"x"):
        with pytest.raises(BrokenConversationError):
            unpack(data, Answer)
    reading, writing = pipe()
    os.write(writing, b"\xff" * 16)
    with pytest.raises(BrokenConversationError, match="too big"):
        receive(reading, Answer)
    os.write(writing, b"\0")
    os.close(writing)
    with pytest.raises(BrokenConversationError, match="within a message"):
        receive(reading, Answer)
    with pytest.raises(EOFError):
        receive(reading, Answer)
    os.close(reading)
    with pytest.raises(BrokenConversationError):
        receive(reading, Answer)
