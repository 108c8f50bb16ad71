"""The hash of a stream is that of its bytes, however it was computed."""

import hashlib
import threading
import time

import pytest

from onnxjson.storage import identity
from onnxjson.storage.identity import StreamHash


@pytest.mark.parametrize("limit", [0, 100, 1 << 30])
def test_hash_of_a_stream_is_that_of_its_bytes(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "THREAD_FROM", limit)
    stream = StreamHash()
    whole = b""
    for number in range(50):
        piece = bytes([number]) * number * 7
        stream.update(piece if number % 2 else bytearray(piece))
        whole += piece
    assert stream.hexdigest() == stream.hexdigest() == hashlib.sha256(whole).hexdigest()


def test_a_stream_that_breaks_off_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "THREAD_FROM", 0)
    before = threading.active_count()
    stream = StreamHash()
    stream.update(b"begun")
    assert threading.active_count() == before + 1
    del stream
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before
