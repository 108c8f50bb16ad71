"""Messages of an editor on standard input: their limits, and what is refused before the language server sees it."""

import asyncio
import json
import logging
import re
import sys
from typing import Any, BinaryIO, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError
from onnxjson.model.limits import EDITOR_MESSAGE_BYTES, TEXT_DEPTH

_LENGTH: Final = re.compile(rb"Content-Length: *(\d{1,20})\r?\n\Z", re.IGNORECASE)
"""Also found behind the rest of a message that was refused."""

_LINE: Final = 1 << 16
"""Bytes of a line of the header; what is longer is no header."""


class Protocol(LanguageServerProtocol):
    """The protocol, whose errors have no tracebacks."""

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is not None:
            error.message, error.data = visible(error.message, 2_000), None
        super()._send_response(msg_id, result, error)


class _OneLine(logging.Formatter):
    """A line for each record of the log, whatever a message has in it."""

    def format(self, record: logging.LogRecord) -> str:
        reason = f": {record.exc_info[1]}" if record.exc_info and record.exc_info[1] else ""
        return visible(f"onnxjson: {record.getMessage().partition(chr(10))[0]}{reason}", 300)


def serve(server: LanguageServer) -> None:
    """Answer the messages on standard input until it ends or the editor asks to exit."""
    handler, log = logging.StreamHandler(), logging.getLogger("pygls")
    handler.setFormatter(_OneLine())
    log.addHandler(handler)
    log.propagate = False
    server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
    try:
        asyncio.run(_follow(server, sys.stdin.buffer))
    except (BrokenPipeError, KeyboardInterrupt, SystemExit):
        pass
    finally:
        server.shutdown()  # type: ignore[no-untyped-call]
        log.removeHandler(handler)


async def _follow(server: LanguageServer, stdin: BinaryIO) -> None:
    run, length, is_first = asyncio.get_running_loop().run_in_executor, None, True
    while line := await run(server.thread_pool, stdin.readline, _LINE):
        if is_first and not line.lower().startswith(b"content-"):
            raise DecodeError("standard input does not begin with a header of the Language Server Protocol")
        is_first = False
        if (found := _LENGTH.search(line)) is not None:
            length = int(found[1])
        elif length is not None and not line.strip():
            if length > EDITOR_MESSAGE_BYTES:
                _refuse(server, None, f"the message has {length:,} bytes; at most {EDITOR_MESSAGE_BYTES:,} are read")
            else:
                body = await run(server.thread_pool, stdin.read, length)
                if len(body) < length:
                    return
                _handle(server, body)
            length = None


def _handle(server: LanguageServer, body: bytes) -> None:
    data: Any = None
    try:
        data = json.loads(body)
        _require_shallow(data)
        if not isinstance(data, dict) or "jsonrpc" not in data:
            raise ValueError("it is not a message of JSON-RPC")
        if not _is_initialized(server) and data.get("method") not in (types.INITIALIZE, types.EXIT):
            return _refuse(server, data.get("id"), "the first request must be initialize", -32002)
        server.protocol.handle_message(server.protocol.structure_message(data))
    except RecursionError:
        _refuse(server, None, f"it nests deeper than {TEXT_DEPTH} levels")
    except (ValueError, JsonRpcException) as error:
        _refuse(server, data.get("id") if isinstance(data, dict) else None, f"not a valid message: {error}")
    return None


def _require_shallow(value: object) -> None:
    """Raise RecursionError if objects and lists nest too deep; Python's own limit is higher."""
    level = [value]
    for _ in range(TEXT_DEPTH + 1):
        below: list[object] = []
        for each in level:
            below.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        level = below
    if level:
        raise RecursionError


def _is_initialized(server: LanguageServer) -> bool:
    try:
        return bool(server.workspace)
    except RuntimeError:
        return False


def _refuse(server: LanguageServer, identity: object, reason: str, code: int = -32600) -> None:
    """Answer a message with an error; one whose ID is not known gets null, as JSON-RPC defines it."""
    known: Any = identity if isinstance(identity, int | str) else None
    server.protocol._send_response(known, error=types.ResponseError(code, reason))
