"""The guard itself, with jobs that do what crashing native code does."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from onnxjson.running.box import Box
from onnxjson.running.worker_protocol import Answer, Limits
from onnxjson.running.worker_server import ClientGoneError, run_sandboxed

LIMITS = Limits(wall_seconds=1.0, processor_seconds=20)

Result = tuple[Answer, bytes]

DONE = Answer(outcome="done"), b""


def run(job: Callable[[], object], limits: Limits = LIMITS, *, trusted: bool = False) -> Answer:
    def whole() -> Result:
        job()
        return DONE

    return run_sandboxed(whole, limits, box=None if trusted else Box())[0]


def test_the_answer_and_its_bytes_come_through() -> None:
    result = b"\0\xff" * 500_000
    assert run_sandboxed(lambda: (Answer(outcome="done", detail="x"), result), LIMITS) == (
        Answer(outcome="done", detail="x"),
        result,
    )


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGKILL", "SIGTERM"])
def test_a_signal_is_named(name: str) -> None:
    answer = run(lambda: os.kill(os.getpid(), signal.Signals[name]))
    assert (answer.outcome, answer.detail) == ("crashed", f"signal {name}")


def test_a_hang_ends_at_the_wall_limit() -> None:
    assert run(lambda: time.sleep(60)).outcome == "time"


def test_a_child_that_closes_its_pipes_and_stays_ends_at_the_wall_limit() -> None:
    def job() -> None:
        os.closerange(0, 10)
        time.sleep(60)

    assert run(job).outcome == "time"


def test_processor_time_is_limited() -> None:
    def job() -> None:
        while True:
            pass

    answer = run(job, Limits(wall_seconds=10, processor_seconds=1))
    assert (answer.outcome, answer.detail) == ("time", "more than 1 s of CPU time")


def test_memory_is_limited() -> None:
    assert run(lambda: bytearray(1 << 40)).outcome == "memory"

    def native() -> None:
        os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
        os.abort()

    assert run(native).outcome == "memory"

    def loader() -> None:
        os.write(2, b"cannot allocate memory for thread-local data: ABORT\n")
        os._exit(127)

    assert run(loader).outcome == "memory"

    def library() -> None:
        raise ImportError("libx.so: failed to map segment from shared object")

    assert run(library).outcome == "memory"

    class WithoutTextError(Exception):
        def __str__(self) -> str:
            raise MemoryError

    def nothing_left() -> None:
        raise WithoutTextError

    assert run(nothing_left).outcome == "memory"


@pytest.mark.parametrize(
    ("job", "detail"),
    [(lambda: sys.exit(3), "sys.exit(3)"), (lambda: os._exit(0), "exit code 0 without an answer")],
    ids=["sys.exit", "exit"],
)
def test_an_exit_is_not_taken_for_an_answer(job: Callable[[], object], detail: str) -> None:
    answer = run(job)
    assert (answer.outcome, answer.detail) == ("exited", detail)


def test_an_exception_is_told_on_one_visible_line() -> None:
    def job() -> None:
        raise ValueError("a\nb\x1b[31m")

    assert run(job) == Answer(outcome="failed", detail="ValueError: a b\\u{1b}[31m")


@pytest.mark.parametrize("garbage", [b"", b"x", b"\0" * 12, b"\xff" * 12, b"\0\0\0\x02" + b"\0" * 8 + b"{}"])
def test_a_malformed_answer_is_none(garbage: bytes) -> None:
    def job() -> None:
        os.write(3, garbage)
        os._exit(0)

    assert run(job).outcome == "exited"


def test_an_answer_that_never_ends_is_cut() -> None:
    def job() -> None:
        while True:
            os.write(3, b"x" * 65536)

    answer = run(job, Limits(wall_seconds=20, answer_bytes=10_000_000))
    assert (answer.outcome, answer.detail) == ("failed", "the answer is too big")


def test_what_is_printed_is_kept_up_to_a_limit_and_made_visible() -> None:
    def job() -> None:
        os.write(1, b"first\nsecond\x1b]0;x\x07\n\n")
        for _ in range(100):
            os.write(2, b"y" * 10_000)

    answer = run(job, Limits(output_bytes=50_000))
    assert answer.outcome == "done"
    lines = answer.output.splitlines()
    assert lines[:2] == ["first", "second\\u{1b}]0;x\\u{7}"]
    assert len(answer.output) <= 50_000


def test_nothing_can_be_written_to_files(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")

    def job() -> None:
        (tmp_path / "new").write_bytes(b"x" * 10)

    assert "File too large" in run(job, trusted=True).detail


def test_only_the_pipes_are_open() -> None:
    with socket.socket():
        answer = run(lambda: os.write(1, " ".join(sorted(os.listdir("/dev/fd"))).encode()))
    assert answer.output.split()[:4] == ["0", "1", "2", "3"]
    assert len(answer.output.split()) <= 5  # The fifth is that of the listing.


def test_what_a_job_starts_ends_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)

    def job() -> None:
        writer = os.open(tmp_path / "alive", os.O_WRONLY)
        if os.fork() == 0:
            os.close(3)
            for standard in (0, 1, 2):
                os.close(standard)
            time.sleep(60)
        os.write(writer, b"x")

    try:
        # Where the user may have no more processes, fork fails.
        assert run(job, trusted=True).outcome in {"done", "failed"}
        os.set_blocking(reader, True)  # From here a read ends with the last one who holds the other end.
        ready = select.poll()
        ready.register(reader, 0)
        assert ready.poll(5000), "somebody still holds the pipe open"
        while os.read(reader, 10):
            pass
    finally:
        os.close(reader)


def test_a_client_that_goes_away_ends_the_job() -> None:
    ours, theirs = socket.socketpair()
    ours.close()

    def job() -> Result:
        time.sleep(60)
        return DONE

    with theirs, pytest.raises(ClientGoneError):
        run_sandboxed(job, Limits(wall_seconds=30), theirs.fileno())


def test_nothing_is_left_open_or_waiting() -> None:
    run(lambda: None)
    before = os.listdir("/dev/fd")
    for _ in range(20):
        run(lambda: os.abort())
    assert os.listdir("/dev/fd") == before
    with suppress(ChildProcessError):  # there may be a child of another test that lives on
        assert os.waitpid(-1, os.WNOHANG) == (0, 0)


def test_the_server_ends_when_its_client_does() -> None:
    code = "from onnxjson.running.worker_server import main; main()"
    cwd = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd
    ) as server:
        server.communicate(b"", timeout=20)
        assert server.returncode == 0


def test_jobs_end_as_usual_where_a_child_cannot_be_looked_at_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid")
    assert run_sandboxed(lambda: (Answer(outcome="done"), b"x"), Limits())[1] == b"x"
    answer, _ = run_sandboxed(lambda: os._exit(3), Limits())
    assert (answer.outcome, answer.detail) == ("exited", "exit code 3 without an answer")
    answer, _ = run_sandboxed(lambda: time.sleep(60), Limits(wall_seconds=0.2))  # type: ignore[arg-type,return-value]
    assert answer.outcome == "time"
