"""Bounds on what a web server may send: bytes and seconds of each response. aiohttp and fsspec have hardly any."""

import re
from typing import Any, Final

import aiohttp

from onnxjson.model.errors import FileError
from onnxjson.model.limits import MESSAGE_BYTES

UNDECLARED_BYTES: Final = 256 << 20
"""Bytes of a body whose length its server does not declare."""

CONNECT_SECONDS: Final = 30
IDLE_SECONDS: Final = 30
"""Seconds without a byte."""

TOTAL_SECONDS: Final = 300
"""Seconds of one request; a range is at most 16 MiB."""

_RANGE: Final = re.compile(r"bytes=(\d+)-(\d+)")


class BoundedResponse(aiohttp.ClientResponse):
    """A response that ends where the bytes end that were asked for, or that its server has declared."""

    async def read(self) -> bytes:
        """Return the body; raise FileError if it is longer than its bound."""
        if self._body is None:
            most, length, parts = self._most(), 0, []
            async for part in self.content.iter_any():
                length += len(part)
                if length > most:
                    self.close()
                    raise FileError(f"the server sends more than the {most:,} bytes that are read at once")
                parts.append(part)
            self._body = b"".join(parts)
        return await super().read()

    def _most(self) -> int:
        asked = _RANGE.fullmatch(self.request_info.headers.get("Range", ""))
        if self.status == 206 and asked is not None:
            return int(asked[2]) - int(asked[1]) + 1
        declared = self.content_length
        return UNDECLARED_BYTES if declared is None else min(declared, MESSAGE_BYTES)


def client_settings() -> dict[str, Any]:
    """Return arguments of `aiohttp.ClientSession` with these bounds, and without compression, which has none."""
    timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS)
    return {
        "response_class": BoundedResponse,
        "timeout": timeout,
        "auto_decompress": False,
        "headers": {"Accept-Encoding": "identity"},
    }
