"""Parts of payloads are those of the whole, and what is not needed is not read."""

import random
from collections.abc import Iterator
from pathlib import Path

import pybase64
import pytest

from onnxjson.model.errors import WeightsMissingError
from onnxjson.model.payloads import Base64Slice, Data, Digest, FileSlice, Payload, SourceFile, part


class _Pieces(Payload):
    """Can only be read from its start."""

    def __init__(self, data: bytes) -> None:
        super().__init__(len(data))
        self._data = data
        self.given = 0

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._data), 7):
            self.given += 1
            yield self._data[start : start + 7]


def _payloads(folder: Path, data: bytes) -> list[Data]:
    file = folder / "bytes"
    text = pybase64.b64encode(data)
    file.write_bytes(b"before" + data + text)
    source = SourceFile(file)
    return [
        data,
        FileSlice(source, 6, len(data)),
        Base64Slice(source, 6 + len(data), len(text), len(data)),
        _Pieces(data),
    ]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 50, 100])
def test_every_payload_gives_the_parts_of_its_bytes(tmp_path: Path, length: int) -> None:
    rng = random.Random(length)
    data = rng.randbytes(length)
    for payload in _payloads(tmp_path, data):
        for start in range(length + 2):
            for wanted in (0, 1, 2, 3, 4, 17, 200):
                assert part(payload, start, wanted) == data[start : start + wanted], (payload, start, wanted)


def test_what_stands_behind_a_part_is_not_read() -> None:
    payload = _Pieces(bytes(700))
    payload.part(8, 3)
    assert payload.given == 2


def test_bytes_that_are_not_here_have_no_parts() -> None:
    with pytest.raises(WeightsMissingError):
        Digest("0" * 64, 10).part(0, 1)
