"""Statistics of the elements of tensors."""

import math
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS
from onnxjson.model.elements import byte_length, tokens
from onnxjson.model.payloads import CHUNK, Payload
from onnxjson.model.tensor_statistics import BINS, first_tokens, statistics, string_statistics
from onnxjson.model.tensors import from_numpy, to_numpy


class _Pieces(Payload):
    """Bytes of a file that is not there: the same piece over and over."""

    __slots__ = ("piece",)

    def __init__(self, piece: bytes, count: int) -> None:
        super().__init__(len(piece) * count)
        self.piece = piece

    def chunks(self) -> Iterator[bytes]:
        for _ in range(self.length // len(self.piece)):
            yield self.piece


@pytest.mark.parametrize("data_type", sorted(BITS))
def test_every_dtype_agrees_with_numpy(data_type: int) -> None:
    count = 3 * CHUNK * 8 // BITS[data_type] // 2 + 5  # several pieces, an odd end
    raw = np.random.default_rng(data_type).bytes(byte_length(data_type, count) or 0)
    tensor = Tensor(dims=(count,), data_type=data_type, raw_data=raw)
    array = to_numpy(tensor)
    with np.errstate(all="ignore"):
        numbers = np.abs(array.astype(np.complex128)) if data_type in (14, 15) else array.astype(np.float64)
    found = statistics(tensor)
    finite = numbers[np.isfinite(numbers)]
    assert found.elements == count
    assert found.finite == finite.size
    assert found.nan == np.isnan(numbers).sum()
    assert found.positive_infinity == (numbers == math.inf).sum()
    assert found.negative_infinity == (numbers == -math.inf).sum()
    assert found.zero == (numbers == 0).sum()
    assert found.minimum is not None
    assert found.maximum is not None
    assert float(found.minimum) == finite.min()
    assert float(found.maximum) == finite.max()
    with np.errstate(all="ignore"):
        mean, deviation = finite.mean(), finite.std()
    if math.isfinite(mean):
        assert found.mean == pytest.approx(mean, rel=1e-9, abs=1e-9 * abs(finite).max())
    if math.isfinite(deviation):
        assert found.standard_deviation == pytest.approx(deviation, rel=1e-9)
    if found.histogram is not None:
        assert sum(found.histogram.counts) == finite.size
        assert len(found.histogram.counts) == len(found.histogram.edges) - 1 <= BINS


@pytest.mark.parametrize("data_type", sorted(BITS))
def test_first_values_are_the_tokens_of_the_text(data_type: int) -> None:
    raw = bytes(range(1, 97)) if data_type != 9 else bytes([0, 1] * 48)
    count = len(raw) * 8 // BITS[data_type]
    tensor = Tensor(dims=(count,), data_type=data_type, raw_data=raw)
    assert first_tokens(tensor, 5) == (tokens(data_type, raw, count) or [])[:5]
    assert first_tokens(tensor, 10**6) == tokens(data_type, raw, count)


def test_extreme_integers_are_exact() -> None:
    signed = statistics(from_numpy(np.array([-(2**63), 2**63 - 1, 0])))
    assert (signed.minimum, signed.maximum) == (-(2**63), 2**63 - 1)
    unsigned = statistics(from_numpy(np.array([2**64 - 1, 1], np.uint64)))
    assert (unsigned.minimum, unsigned.maximum) == (1, 2**64 - 1)


def test_bits_that_no_number_needs_are_read_as_a_runtime_reads_them() -> None:
    assert first_tokens(Tensor(dims=(3,), data_type=9, raw_data=b"\0\7\1"), 3) == ["false", "true", "true"]
    assert first_tokens(Tensor(dims=(1,), data_type=21, raw_data=b"\xf3"), 3) == ["3"]
    assert statistics(Tensor(dims=(1,), data_type=21, raw_data=b"\xf3")).maximum == 3


@pytest.mark.parametrize(
    "array",
    [np.zeros(0, np.float32), np.array([math.nan, math.inf]), np.full(5, 2.5), np.array([1.7e308, -1.7e308])],
    ids=["none", "not finite", "one value", "overflow"],
)
def test_numbers_without_a_histogram_have_none(array: np.ndarray) -> None:
    assert statistics(from_numpy(array)).histogram is None


def test_whole_numbers_have_whole_bins() -> None:
    histogram = statistics(from_numpy(np.array([0, 1, 1, 3], np.int8))).histogram
    assert histogram == ((0.0, 1.0, 2.0, 3.0, 4.0), (1, 2, 0, 1))
    wide = statistics(from_numpy(np.arange(-50, 50))).histogram
    assert wide is not None
    assert wide.counts == (10,) * 10


def test_strings_have_lengths() -> None:
    assert string_statistics(Tensor(data_type=8, string_data=(b"", b"ab", b"\xff"))) == (3, 1, 1, 0, 2)
    assert string_statistics(Tensor(data_type=8)) == (0, 0, 0, None, None)


def test_big_tensor_is_never_whole_in_memory() -> None:
    count = 200
    piece = np.arange(CHUNK // 4, dtype=np.float32).tobytes()
    tensor = Tensor(dims=(count, CHUNK // 4), data_type=1, raw_data=_Pieces(piece, count))
    statistics(from_numpy(np.zeros(2)))
    tracemalloc.start()
    found = statistics(tensor)
    assert first_tokens(tensor, 2) == ["0.0", "1.0"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.elements == count * CHUNK // 4
    assert peak < 20 * CHUNK < len(piece) * count
