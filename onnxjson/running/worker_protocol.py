"""Protocol between the sandboxed process and its client: typed JSON and bytes, both preceded by their length.

Nothing that arrives is executed or unpickled; a message that does not fit its type is refused.
"""

import math
import os
import select
import struct
import time
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Final, Literal, TypeVar

import msgspec

from onnxjson.model.errors import Finding
from onnxjson.model.limits import ANALYSIS_BYTES, ANALYSIS_PROCESSOR_SECONDS, ANALYSIS_SECONDS
from onnxjson.model.system import FORKS

_LENGTHS = struct.Struct(">IQ")
_HEADER_BYTES = 64 << 20
_PIECE = 1 << 20

Job = Literal[
    "check", "check_shapes", "infer_types", "convert_version", "inline_functions",
    "pass", "pass_stages", "run", "text",
]  # fmt: skip
Outcome = Literal["done", "failed", "memory", "time", "crashed", "exited", "unavailable", "unboxed"]
"""How a job ended; "unboxed": not started, since the kernel offers a protection and then refuses it."""

ALLOWED: Final[ContextVar[dict[str, float]]] = ContextVar("onnxjson.running.allowed", default={})  # noqa: B039
"""The limits that the user chose, by option: ``--max-nodes``, and for analyses ``--timeout`` and ``--memory``."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one job. Lower limits of the system remain in force."""

    memory: int = ANALYSIS_BYTES
    """Bytes of address space (RLIMIT_AS)."""
    data: int | None = None
    """Bytes that the job may allocate (RLIMIT_DATA), in addition to those of the server."""
    processor_seconds: int = ANALYSIS_PROCESSOR_SECONDS
    """Seconds of CPU time until SIGXCPU; five more until SIGKILL."""
    wall_seconds: float = ANALYSIS_SECONDS
    open_files: int = 32
    answer_bytes: int = (2 << 30) + (64 << 20)
    """Bytes of the answer, beyond which the job is stopped."""
    output_bytes: int = 65_536
    """Maximum bytes of printed output; the rest is discarded."""
    file_bytes: int = 0
    """Maximum bytes of each file that the job writes (RLIMIT_FSIZE)."""
    may_start_threads: bool = False
    """Whether the job may start threads and processes (RLIMIT_NPROC counts both)."""


def allowed_limits() -> Limits:
    """Return the limits of an analysis that the user chose, or those of the program."""
    allowed = ALLOWED.get()
    seconds, memory = allowed.get("--timeout"), int(allowed.get("--memory", ANALYSIS_BYTES))
    if seconds is None:
        return Limits(memory=memory)
    return Limits(memory=memory, wall_seconds=seconds, processor_seconds=math.ceil(seconds))


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Request for one job; if there is no path, the model follows as bytes."""

    job: Job
    path: bytes | None = None
    folder: bytes | None = None
    """Current folder of the job, where the external data of a model passed as bytes is found."""
    version: int | None = None
    """Version of the default operator set that "convert_version" converts to."""
    module: str | None = None
    """Module that runs "pass" and "pass_stages"; the client names it, since the worker must not import it."""
    declaration: str | None = None
    """The pass as JSON, from the function `declared` of that module."""
    limits: Limits
    reads: tuple[bytes, ...] = ()
    """Files and whole folders that the job may read in addition to those that every job may read."""
    devices: bool = False
    allowed: dict[str, float] = {}
    """See `ALLOWED`."""
    trusted: bool = False
    """Whether the job runs without the box of `onnxjson.running.box`; only for the user's own code."""
    environment: tuple[tuple[bytes, bytes], ...] = ()


def encoded_paths(paths: Iterable[str]) -> tuple[bytes, ...]:
    """Encode paths for a request."""
    return tuple(map(os.fsencode, paths))


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a request; a resulting model follows as bytes."""

    outcome: Outcome
    detail: str = ""
    """Details for the user; made visible."""
    findings: tuple[Finding, ...] = ()
    output: str = ""
    """Printed output, cut; made visible."""
    remarks: tuple[str, ...] = ()
    """Remarks of a pass for the user; made visible."""


class BrokenConversationError(Exception):
    """The other side has ended, was too slow, or does not follow the protocol."""


Message = TypeVar("Message", Request, Answer)


def send(descriptor: int, message: Request | Answer, blob: bytes = b"", *, until: float | None = None) -> None:
    """Write one message with its bytes.

    With a deadline `until` (of `time.monotonic`), the descriptor must be non-blocking.

    Raises:
        BrokenConversationError: the message cannot be sent in time.
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
    """Receive one message of a type with its bytes.

    Raises:
        EOFError: the other side has closed the connection between two messages.
        BrokenConversationError: the message is late, too big, or of another type.
    """
    header, blob = _LENGTHS.unpack(_exactly(descriptor, _LENGTHS.size, until, first=True))
    if header > _HEADER_BYTES or blob > blob_bytes:
        raise BrokenConversationError("the message is too big")
    message = _typed(_exactly(descriptor, header, until), kind)
    return message, bytes(_exactly(descriptor, blob, until))


def unpack(data: bytes | bytearray, kind: type[Message]) -> tuple[Message, bytes]:
    """Decode a message of a type with its bytes."""
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
    if until is None or not FORKS:  # where pipes cannot be waited for, the client ends the server in time
        return
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise BrokenConversationError("no answer in time")
