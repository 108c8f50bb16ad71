"""What the guarded process and its client say to each other: typed JSON and bytes, both with their length before them.

Nothing that arrives is executed or unpickled; a message that does not fit its type is refused.
"""

import os
import select
import struct
import time
from typing import Literal, TypeVar

import msgspec

from onnxjson.checking import Finding

_LENGTHS = struct.Struct(">IQ")
_HEADER_BYTES = 64 << 20
_PIECE = 1 << 20

Job = Literal[
    "check",
    "check_shapes",
    "infer_shapes",
    "convert_version",
    "inline_functions",
    "evaluate",
    "pass",
    "pass_stages",
    "run",
]
Outcome = Literal["done", "failed", "memory", "time", "crashed", "exited", "unavailable"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one job may use. A limit of the system that is lower stays."""

    memory: int = 2 << 30
    """Bytes of address space (RLIMIT_AS)."""
    processor_seconds: int = 20
    """Seconds of processor time until SIGXCPU; five more until SIGKILL."""
    wall_seconds: float = 30.0
    """Seconds until the job is killed."""
    open_files: int = 32
    answer_bytes: int = (2 << 30) + (64 << 20)
    """Bytes of the answer, beyond which the job is stopped."""
    output_bytes: int = 65_536
    """Bytes kept of what the job prints; the rest is thrown away."""
    file_bytes: int = 0
    """Bytes of each file that the job may write (RLIMIT_FSIZE)."""
    may_start_threads: bool = False
    """Whether the job may start threads, and processes, which the system counts alike (RLIMIT_NPROC)."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One job; the model follows as bytes where there is no path."""

    job: Job
    path: bytes | None = None
    folder: bytes | None = None
    """The current folder of the job: where external data of a model given as bytes is looked for."""
    version: int | None = None
    """The version of the default operator set that "convert_version" leads to."""
    declaration: str | None = None
    """What "pass" and "pass_stages" run, as `onnxjson.passes.executing.declared` writes it."""
    limits: Limits


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job; a resulting model follows as bytes."""

    outcome: Outcome
    detail: str = ""
    """For a person; made visible."""
    findings: tuple[Finding, ...] = ()
    output: str = ""
    """What the job printed, cut; made visible."""
    remarks: tuple[str, ...] = ()
    """What a pass has to say of itself; made visible."""


class BrokenConversationError(Exception):
    """The other side is gone, too late, or does not speak this protocol."""


Message = TypeVar("Message", Request, Answer)


def send(descriptor: int, message: Request | Answer, blob: bytes = b"", *, until: float | None = None) -> None:
    """Write one message with its bytes.

    With `until` (as of `time.monotonic`) the descriptor must not block.

    Raises:
        BrokenConversationError: it cannot be sent in time.
    """
    header = msgspec.json.encode(message)
    for part in (_LENGTHS.pack(len(header), len(blob)), header, blob):
        view = memoryview(part)
        while view:
            _wait(descriptor, select.POLLOUT, until)
            try:
                view = view[os.write(descriptor, view[:_PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise BrokenConversationError(str(error)) from error


def receive(
    descriptor: int, kind: type[Message], *, until: float | None = None, blob_bytes: int = 1 << 62
) -> tuple[Message, bytes]:
    """One message of that kind with its bytes.

    Raises:
        EOFError: the other side has closed the connection between two messages.
        BrokenConversationError: it does not come in time, is too big, or is not of that kind.
    """
    header, blob = _LENGTHS.unpack(_exactly(descriptor, _LENGTHS.size, until, first=True))
    if header > _HEADER_BYTES or blob > blob_bytes:
        raise BrokenConversationError("the message is too big")
    message = _typed(_exactly(descriptor, header, until), kind)
    return message, bytes(_exactly(descriptor, blob, until))


def unpacked(data: bytes | bytearray, kind: type[Message]) -> tuple[Message, bytes]:
    """The message that `data` is, all of it.

    Raises:
        BrokenConversationError: it is not one message of that kind.
    """
    view = memoryview(data)
    if len(view) < _LENGTHS.size:
        raise BrokenConversationError("no whole message")
    header, blob = _LENGTHS.unpack(view[: _LENGTHS.size])
    end = _LENGTHS.size + header
    if len(view) != end + blob:
        raise BrokenConversationError("no whole message")
    return _typed(view[_LENGTHS.size : end], kind), bytes(view[end:])


def _typed(data: bytearray | memoryview, kind: type[Message]) -> Message:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrokenConversationError(str(error)) from error


def _exactly(descriptor: int, size: int, until: float | None, *, first: bool = False) -> bytearray:
    data = bytearray()
    while len(data) < size:
        _wait(descriptor, select.POLLIN, until)
        try:
            piece = os.read(descriptor, min(size - len(data), _PIECE))
        except OSError as error:
            raise BrokenConversationError(str(error)) from error
        if not piece:
            if first and not data:
                raise EOFError
            raise BrokenConversationError("the connection ended within a message")
        data += piece
    return data


def _wait(descriptor: int, event: int, until: float | None) -> None:
    if until is None:
        return
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise BrokenConversationError("no answer in time")
