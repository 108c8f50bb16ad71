"""SHA-256 of a long stream, computed beside its reading or writing.

Hashing hundreds of megabytes takes as long as reading or writing them. Both leave the interpreter's lock, so from
`THREAD_FROM` bytes on a thread of its own hashes while the next piece is on its way.
"""

import hashlib
from queue import Queue
from threading import Thread
from typing import Any, Final

THREAD_FROM: Final = 32 * 1024 * 1024
"""Bytes that are hashed before a thread is worth starting."""

_WAITING: Final = 8
"""Pieces that may wait for the thread."""

_Piece = bytes | bytearray


class StreamHash:
    """Takes pieces in order and gives the SHA-256 of all of them; a piece must not change after it was given."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._length = 0
        self._queue: Queue[_Piece | None] | None = None
        self._thread: Thread | None = None

    def update(self, piece: _Piece) -> None:
        """Goes on with `piece`."""
        self._length += len(piece)
        if self._queue is None:
            if self._length < THREAD_FROM:
                self._digest.update(piece)
                return
            self._queue = Queue(_WAITING)
            self._thread = Thread(target=_work, args=(self._queue, self._digest), daemon=True)
            self._thread.start()
        self._queue.put(piece)

    def hexdigest(self) -> str:
        """The hash of all pieces so far, in hexadecimal; nothing can be added after it was asked for."""
        self._stop()
        return self._digest.hexdigest()

    def _stop(self) -> None:
        if self._queue is not None and self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def __del__(self) -> None:
        # A stream that broke off leaves nobody to ask: the thread must not wait for ever.
        if self._queue is not None and self._thread is not None:
            self._queue.put(None)


def _work(queue: "Queue[_Piece | None]", digest: Any) -> None:
    while (piece := queue.get()) is not None:
        digest.update(piece)
