"""Server of the sandboxed process: imports onnx once and forks a child with limits for each job.

Started by `onnxjson.running.worker` with ``python -I``. It has one thread, so forking is safe. A child answers through
one pipe and prints into another. Whatever happens to the child, the server reports it and continues.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from onnxjson.model.errors import is_out_of_memory
from onnxjson.model.system import FORKS
from onnxjson.running import worker_jobs
from onnxjson.running.box import Box, BoxError
from onnxjson.running.box_processes import children, end_children
from onnxjson.running.box_syscalls import adopt_orphans, die_with
from onnxjson.running.worker_jobs import one_line
from onnxjson.running.worker_protocol import Answer, BrokenConversationError, Limits, Request, receive, send, unpack

_OUTPUT_LINES = 100

_LINGERING_SECONDS = 0.5
"""Time to wait for the pipes of an ended child, which processes that it started may keep open and silent."""

_OUT_OF_MEMORY = (b"bad_alloc", b"cannot allocate memory")
"""What C++ and the dynamic loader (with exit code 127) print when they end a process because memory is exhausted."""

_WITH_SCRATCH = frozenset(["pass", "pass_stages", "run"])
"""Jobs that may write to their folder; others only read it."""

_PLAIN = Box()

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGXCPU")


class ClientGoneError(Exception):
    """The client no longer waits for the answer."""


def main() -> None:
    """Answer requests from standard input on standard output until it is closed."""
    # An image inside a model may be PostScript, a program, which Pillow would pass to Ghostscript (ImageDecoder).
    sys.modules["PIL.EpsImagePlugin"] = None  # type: ignore[assignment]  # importing it fails, which Pillow expects
    adopt_orphans()
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # Output of native code must not get between the answers.
        os.dup2(nothing, standard)
    with suppress(ImportError):
        worker_jobs.prepare(None)  # while the client prepares its first request
    with suppress(EOFError, BrokenConversationError, ClientGoneError):
        while True:
            request, model = receive(requests, Request)
            send(answers, *_answer(request, model, requests))
            if not FORKS:
                return  # the job has changed this process; the client starts another server


def _answer(request: Request, model: bytes, client: int) -> tuple[Answer, bytes]:
    try:
        worker_jobs.prepare(request)
    except ImportError as error:
        return Answer(outcome="unavailable", detail=one_line(str(error))), b""
    subject = model if request.path is None else os.fsdecode(request.path)

    scratch = os.fsdecode(request.folder) if request.folder and request.job in _WITH_SCRATCH else None

    def job() -> tuple[Answer, bytes]:
        if request.folder is not None:
            os.chdir(request.folder)  # only of the child; onnx resolves locations relative to it
        os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in request.environment})
        if scratch is not None:
            # Temporary files disappear with the folder, even if the job is killed.
            os.environ["TMPDIR"] = scratch
            if not request.trusted:
                os.environ["XDG_CACHE_HOME"] = scratch
        return worker_jobs.run(request, subject)

    if not FORKS:
        return _ended(job)
    box = None if request.trusted else Box(tuple(map(os.fsdecode, request.reads)), scratch, request.devices)
    return run_sandboxed(job, request.limits, client, box=box)


def run_sandboxed(
    job: Callable[[], tuple[Answer, bytes]], limits: Limits, client: int | None = None, *, box: Box | None = _PLAIN
) -> tuple[Answer, bytes]:
    """Run a job in a child of this process and return its answer, or how it ended.

    Args:
        job: any function; it may crash, hang, fill the memory, exit or print.
        client: descriptor that becomes readable when the client no longer waits for the answer.
        box: permissions of the child; None for all permissions of this process.

    Raises:
        ClientGoneError: the client no longer waits; the child has been killed.
    """
    answer_pipe, output_pipe = os.pipe(), os.pipe()
    if box is not None:
        box.prepare()
    others, parent = children(), os.getpid()  # A caller other than the server has children that must survive the job.
    child = os.fork()
    if child == 0:
        _run_and_exit(job, limits, box, parent, answer_pipe[1], output_pipe[1])
    os.close(answer_pipe[1])
    os.close(output_pipe[1])
    try:
        data, output, ending = _collect(child, answer_pipe[0], output_pipe[0], limits, client)
    finally:
        status = _end(child)
        end_children(but=others)
        os.close(answer_pipe[0])
        os.close(output_pipe[0])
    lines = output.decode("utf-8", "replace").splitlines()[:_OUTPUT_LINES]
    printed = "\n".join(line for line in map(one_line, lines) if line)
    if ending is None and status == 0:
        with suppress(BrokenConversationError):
            answer, blob = unpack(data, Answer)
            return msgspec.structs.replace(answer, output=printed), blob
    if ending is None:
        ending = _ending(status, any(words in output for words in _OUT_OF_MEMORY), limits)
    return Answer(outcome=ending.outcome, detail=ending.detail, output=printed), b""


def _run_and_exit(
    job: Callable[[], tuple[Answer, bytes]], limits: Limits, box: Box | None, parent: int, answers: int, output: int
) -> None:
    """Run the child: in a separate session, with only the two pipes open; never return."""
    status = 1
    try:
        os.setsid()
        die_with(parent)
        answers = _only_descriptors(answers, output)
        for name in _SIGNALS:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        _limit(limits)
        answer, blob = _ended(job, box)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        send(answers, answer, blob)
        status = 0
    except MemoryError:  # No memory is left, not even for the answer.
        os.write(2, _OUT_OF_MEMORY[-1])
    finally:
        os._exit(status)


def _ended(job: Callable[[], tuple[Answer, bytes]], box: Box | None = None) -> tuple[Answer, bytes]:
    """Do a job in this process, in a box if there is one; return its answer, or the error with which it ended."""
    try:
        if box is not None:
            box.enter()
        return job()
    except BoxError as error:
        return Answer(outcome="unboxed", detail=one_line(str(error))), b""
    except SystemExit as error:
        return Answer(outcome="exited", detail=one_line(f"sys.exit({error.code})")), b""
    except Exception as error:
        if is_out_of_memory(error):
            return Answer(outcome="memory"), b""
        return Answer(outcome="failed", detail=one_line(f"{type(error).__name__}: {error}")), b""


def _only_descriptors(answers: int, output: int) -> int:
    """Close all descriptors but two pipes, print into the second one, and return the new number of the first."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = os.dup(answers)
    while kept <= 2:
        kept = os.dup(answers)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name in os.listdir("/dev/fd"):
        if int(name) not in (0, 1, 2, kept):
            with suppress(OSError):  # The descriptor of the listing is already closed.
                os.close(int(name))
    os.dup2(kept, 3, inheritable=False)
    if kept != 3:
        os.close(kept)
    return 3


def _allocated() -> int:
    """Return the bytes that this process has allocated; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _limit(limits: Limits) -> None:
    import resource  # which Windows lacks

    processor = limits.processor_seconds
    for kind, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        *([] if limits.may_start_threads else [(resource.RLIMIT_NPROC, 0, 0)]),
        (resource.RLIMIT_CPU, processor, processor + 5),
        (resource.RLIMIT_AS, limits.memory, limits.memory),
        *([] if limits.data is None else [(resource.RLIMIT_DATA, *[_allocated() + limits.data] * 2)]),
    ):
        _, highest = resource.getrlimit(kind)
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (ValueError, OSError):  # macOS has some of these limits by name only
            if sys.platform == "linux":
                raise


def _collect(
    child: int, answers: int, output: int, limits: Limits, client: int | None
) -> tuple[bytearray, bytes, Answer | None]:
    """Return the answer and the output of the child, and why it must be stopped (None if it ended by itself)."""
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
            break  # Only silent processes that the child started keep the pipes open.
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


_statuses: Final[dict[int, int]] = {}
"""Of children that had to be waited for to know whether they ended: macOS has `os.waitid` from Python 3.13 on."""


def _has_ended(child: int) -> bool:
    if not hasattr(os, "waitid"):
        if child not in _statuses:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                _statuses[child] = status
        return child in _statuses
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(child: int) -> int:
    """Kill the child and its processes; return its exit code, or the negative number of a signal."""
    for kill in (os.killpg, os.kill):  # Until the child creates its session, that group does not exist.
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    status = _statuses.pop(child) if child in _statuses else os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def _ending(status: int, out_of_memory: bool, limits: Limits) -> Answer:
    if out_of_memory:
        return Answer(outcome="memory")
    if status >= 0:
        return Answer(outcome="exited", detail=f"exit code {status} without an answer")
    if -status == signal.SIGXCPU:
        return Answer(outcome="time", detail=f"more than {limits.processor_seconds} s of CPU time")
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return Answer(outcome="crashed", detail=f"signal {name}")
