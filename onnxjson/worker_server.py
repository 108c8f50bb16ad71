"""The guarded process: imports onnx once and forks a child for each job, with limits on all that it can use up.

Started by `onnxjson.worker` with ``python -I``. It has one thread, so forking is safe. A child answers through a pipe;
what it prints goes through another one. Whatever happens to the child, the server says what it was and goes on.
"""

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from onnxjson import worker_jobs
from onnxjson.worker_jobs import one_line
from onnxjson.worker_protocol import Answer, BrokenConversationError, Limits, Request, receive, send, unpacked

_OUTPUT_LINES = 100

_LINGERING_SECONDS = 0.5
"""How long the pipes of a child that has ended may stay silent, held open by what it started."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXCPU)


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


def main() -> None:
    """Answer requests from standard input on standard output until it is closed."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # What native code prints must not stand among the answers.
        os.dup2(nothing, standard)
    with suppress(EOFError, BrokenConversationError, ClientGoneError):
        while True:
            request, model = receive(requests, Request)
            send(answers, *_answer(request, model, requests))


def _answer(request: Request, model: bytes, client: int) -> tuple[Answer, bytes]:
    try:
        worker_jobs.prepare(request.job)
    except ImportError as error:
        return Answer(outcome="unavailable", detail=one_line(str(error))), b""
    subject = model if request.path is None else os.fsdecode(request.path)

    def job() -> tuple[Answer, bytes]:
        if request.folder is not None:
            os.chdir(request.folder)  # of the child alone; onnx takes locations relative to where it runs
        return worker_jobs.run(request, subject)

    return guarded(job, request.limits, client)


def guarded(job: Callable[[], tuple[Answer, bytes]], limits: Limits, client: int | None = None) -> tuple[Answer, bytes]:
    """Run `job` in a child of this process; its answer, or what became of it.

    Args:
        job: anything; it may crash, hang, fill the memory, exit, print.
        limits: what it may use.
        client: a descriptor that becomes readable only when nobody waits for the answer any more.

    Raises:
        ClientGoneError: nobody waits; the child has been killed.
    """
    answer_pipe, output_pipe = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        _run_and_exit(job, limits, answer_pipe[1], output_pipe[1])
    os.close(answer_pipe[1])
    os.close(output_pipe[1])
    try:
        data, output, ending = _collected(child, answer_pipe[0], output_pipe[0], limits, client)
    finally:
        status = _end(child)
        os.close(answer_pipe[0])
        os.close(output_pipe[0])
    lines = output.decode("utf-8", "replace").splitlines()[:_OUTPUT_LINES]
    printed = "\n".join(line for line in map(one_line, lines) if line)
    if ending is None and status == 0:
        with suppress(BrokenConversationError):
            answer, blob = unpacked(data, Answer)
            return msgspec.structs.replace(answer, output=printed), blob
    if ending is None:
        ending = _ending(status, b"bad_alloc" in output, limits)
    return Answer(outcome=ending.outcome, detail=ending.detail, output=printed), b""


def _run_and_exit(job: Callable[[], tuple[Answer, bytes]], limits: Limits, answers: int, output: int) -> None:
    """The child: its own session, nothing open but the two pipes, and never a return."""
    status = 1
    try:
        os.setsid()
        answers = _only_descriptors(answers, output)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        _limit(limits)
        try:
            answer, blob = job()
        except MemoryError:
            answer, blob = Answer(outcome="memory"), b""
        except SystemExit as error:
            answer, blob = Answer(outcome="exited", detail=one_line(f"sys.exit({error.code})")), b""
        except Exception as error:
            answer, blob = Answer(outcome="failed", detail=one_line(f"{type(error).__name__}: {error}")), b""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        send(answers, answer, blob)
        status = 0
    finally:
        os._exit(status)


def _only_descriptors(answers: int, output: int) -> int:
    """Close all but the two pipes; what is printed goes into the second. The new number of the first."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = os.dup(answers)
    while kept <= 2:
        kept = os.dup(answers)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name in os.listdir("/dev/fd"):
        if int(name) not in (0, 1, 2, kept):
            with suppress(OSError):  # That of the listing is closed already.
                os.close(int(name))
    os.dup2(kept, 3, inheritable=False)
    if kept != 3:
        os.close(kept)
    return 3


def _limit(limits: Limits) -> None:
    processor = limits.processor_seconds
    for kind, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        *([] if limits.may_start_threads else [(resource.RLIMIT_NPROC, 0, 0)]),
        (resource.RLIMIT_CPU, processor, processor + 5),
        (resource.RLIMIT_AS, limits.memory, limits.memory),
    ):
        _, highest = resource.getrlimit(kind)
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        resource.setrlimit(kind, (soft, hard))


def _collected(
    child: int, answers: int, output: int, limits: Limits, client: int | None
) -> tuple[bytearray, bytes, Answer | None]:
    """What the child answered and printed, and why it must be stopped (None where it ended by itself)."""
    until = time.monotonic() + limits.wall_seconds
    late = Answer(outcome="time", detail=f"no answer within {limits.wall_seconds:g} s")
    answer, printed = bytearray(), bytearray()
    poll = select.poll()
    for descriptor in (answers, output, *([client] if client is not None else [])):
        poll.register(descriptor, select.POLLIN)
    waiting = {answers, output}
    while waiting:
        left = until - time.monotonic()
        ready = [descriptor for descriptor, _ in poll.poll(min(max(0.0, left), _LINGERING_SECONDS) * 1000)]
        if client in ready:
            raise ClientGoneError
        if left <= 0:
            return answer, bytes(printed), late
        if not ready and _has_ended(child):
            break  # Only processes that it started hold the pipes open, and nothing comes from them.
        for descriptor in ready:
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                poll.unregister(descriptor)
                waiting.discard(descriptor)
            elif descriptor == answers:
                answer += piece
            else:
                printed += piece[: limits.output_bytes - len(printed)]
        if len(answer) > limits.answer_bytes:
            return answer, bytes(printed), Answer(outcome="failed", detail="the answer is too big")
    while not _has_ended(child):
        if time.monotonic() > until:
            return answer, bytes(printed), late
        time.sleep(0.001)
    return answer, bytes(printed), None


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(child: int) -> int:
    """Kill what is left of the child and what it started; its exit code, or minus the number of a signal."""
    for kill in (os.killpg, os.kill):  # Before it made its session there is no group of that number.
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _ending(status: int, out_of_memory: bool, limits: Limits) -> Answer:
    if status >= 0:
        return Answer(outcome="exited", detail=f"exit code {status} without an answer")
    if out_of_memory:
        return Answer(outcome="memory")
    if -status == signal.SIGXCPU:
        return Answer(outcome="time", detail=f"more than {limits.processor_seconds} s of processor time")
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return Answer(outcome="crashed", detail=f"signal {name}")
