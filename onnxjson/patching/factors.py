"""A low-rank change of a weight as two factors: other bytes + left x right, and the bits that rounding makes different.

The arithmetic has the same result on every machine: in float64, one product and one sum after the other, in the order
of the rank, rounded once at the end. What differs from the exact bytes is stored, so that they return exactly.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model.addresses import attribute_segments
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Tensor
from onnxjson.model.dtypes import BITS
from onnxjson.model.elements import element_count
from onnxjson.model.errors import DecodeError, PatchError
from onnxjson.model.limits import PATCH_RANK
from onnxjson.model.payloads import CHUNK, LAZY_FROM, Data, Digest, Payload, even_pieces, pieces, whole
from onnxjson.model.tensors import needed_bytes
from onnxjson.patching.changes import Fields, Members, Replace

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOATS: Final = {"float32": 1, "float16": 10, "bfloat16": 16}
"""Dtypes of weights that are stored as factors."""

LEAST_GAIN: Final = 4
"""How many times smaller the factors are than the bytes before and after."""

_DIRECTIONS: Final = PATCH_RANK + 8
"""More directions than singular values make those exact."""
_BFLOAT16: Final = FLOATS["bfloat16"]
_NOISE: Final = 1.2
"""The singular values of rounding errors are at most this multiple of what random matrices have."""

Pairs = Callable[[], "Iterator[tuple[NDArray[Any], NDArray[Any]]]"]
"""Function that reads a matrix before and after, in flat pieces of equal size."""


class Factored(Payload):
    """The bytes of a weight, computed from `base`, the bytes of another weight, and checked at each use."""

    __slots__ = ("base", "corrections", "data_type", "left", "right", "shape", "sign")

    def __init__(
        self,
        sha256: str,
        data_type: int,
        shape: tuple[int, int],
        base: Data,
        factors: tuple[Data, Data, Data],
        sign: int,
    ) -> None:
        super().__init__(shape[0] * shape[1] * BITS[data_type] // 8)
        self._sha256 = sha256
        self.data_type = data_type
        self.shape = shape
        self.base = base
        self.left, self.right, self.corrections = factors
        self.sign = sign
        """1 if the product is added to the base, -1 if it is subtracted."""

    def on(self, value: Any) -> "Factored":
        """Return the same weight, computed from the bytes of `value` if these are those of the base."""
        base = self.base.on(value) if isinstance(self.base, Factored) else self.base
        if isinstance(base, Digest) and isinstance(value, bytes | Payload) and value == base:
            base = value
        return Factored(
            self.sha256, self.data_type, self.shape, base, (self.left, self.right, self.corrections), self.sign
        )

    def chunks(self) -> Iterator[bytes]:
        """See `Payload.chunks`; raises DecodeError if the result does not have the declared hash."""
        import numpy

        corrections, found = _Inflated(self.corrections), hashlib.sha256()
        for computed in self.computed():
            size = computed.itemsize
            planes = numpy.frombuffer(corrections.take(computed.nbytes), numpy.uint8).reshape(size, -1)
            steps = numpy.ascontiguousarray(planes.T).view(computed.dtype).reshape(-1)
            data = (computed + ((steps >> 1) ^ (0 - (steps & 1)))).tobytes()
            found.update(data)
            yield data
        if found.hexdigest() != self.sha256 or corrections.take(1, exact=False):
            raise DecodeError(f"the factors of the patch do not result in the bytes with the sha256 {self.sha256}")

    def computed(self) -> "Iterator[NDArray[Any]]":
        """Yield the bits of the elements before they are corrected, `CHUNK` bytes at a time."""
        import numpy

        columns = self.shape[1]
        left = numpy.frombuffer(whole(self.left), "<f4").reshape(self.shape[0], -1)
        right = numpy.frombuffer(whole(self.right), "<f4").reshape(-1, columns)
        if not (numpy.isfinite(left).all() and numpy.isfinite(right).all()):
            raise DecodeError(f"a factor of the bytes with the sha256 {self.sha256} has a number that is not finite")
        start, word = 0, f"<u{BITS[self.data_type] // 8}"
        for piece in _blocks(self.base):
            bits = numpy.frombuffer(piece, word)
            first, last = start // columns, (start + bits.size - 1) // columns
            skipped = start - first * columns
            # Some columns of one row, else whole rows.
            low, high = (skipped, skipped + bits.size) if first == last else (0, columns)
            change = numpy.zeros((last + 1 - first, high - low))
            for each in range(right.shape[0]):
                change += (left[first : last + 1, each, None].astype(numpy.float64) * self.sign) * right[each, low:high]
            flat = change.reshape(-1)[skipped - low :][: bits.size]
            with numpy.errstate(all="ignore"):
                result = _floats(bits, self.data_type) + flat
                # The bits of a NaN depend on the machine.
                yield numpy.where(numpy.isnan(result), bits, _rounded(result, self.data_type))
            start += bits.size


class _Inflated:
    """Compressed bytes, decompressed as far as they are needed."""

    def __init__(self, data: Data) -> None:
        self._pieces = pieces(data)
        self._stream = zlib.decompressobj()

    def take(self, count: int, *, exact: bool = True) -> bytes:
        """Return the next bytes."""
        found = b""
        try:
            while len(found) < count:
                piece = self._stream.unconsumed_tail or next(self._pieces, b"")
                part = self._stream.decompress(piece, count - len(found))
                if not (piece or part) or (self._stream.eof and not part):
                    break
                found += part
        except zlib.error as error:
            raise DecodeError(f"the corrections of factors cannot be decompressed: {error}") from error
        if exact and len(found) != count:
            raise DecodeError("the corrections of factors end too early")
        return found


def _blocks(data: Data) -> Iterator[bytes]:
    """The bytes in pieces of exactly `CHUNK`, the last one shorter."""
    rest = b""
    for piece in even_pieces(data):
        rest += piece
        if len(rest) >= CHUNK:
            yield rest[:CHUNK]
            rest = rest[CHUNK:]
    if rest:
        yield rest


def _floats(bits: "NDArray[Any]", data_type: int) -> "NDArray[Any]":
    """Return elements as float64, from their bits."""
    import numpy

    if data_type == _BFLOAT16:
        bits = bits.astype(numpy.uint32) << 16
    with numpy.errstate(invalid="ignore"):  # signalling NaNs
        return bits.view(f"<f{bits.itemsize}").astype(numpy.float64)


def _rounded(values: "NDArray[Any]", data_type: int) -> "NDArray[Any]":
    """Return the bits of the nearest elements; bfloat16 is rounded from float32."""
    import numpy

    if data_type != _BFLOAT16:
        size = BITS[data_type] // 8
        return values.astype(f"<f{size}").view(f"<u{size}")
    wide = values.astype(numpy.float32).view(numpy.uint32)
    return ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype("<u2")


def factored(data_type: int, shape: tuple[int, int], old: Data, new: Data) -> tuple[Factored, Factored]:
    """Return `new` computed from `old`, and `old` from `new`; PatchError, with the reason, if that is too big."""
    import numpy

    def pairs() -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
        for before, after in zip(_blocks(old), _blocks(new), strict=True):
            values = [
                _floats(numpy.frombuffer(each, f"<u{BITS[data_type] // 8}"), data_type) for each in (before, after)
            ]
            finite = numpy.isfinite(values[0]) & numpy.isfinite(values[1])
            yield numpy.where(finite, values[0], 0), numpy.where(finite, values[1], 0)

    basis, small, energy = decomposed(shape, pairs, rounds=2)
    ours, values, theirs = numpy.linalg.svd(small, full_matrices=False)
    rest = numpy.maximum(energy - numpy.cumsum([0, *values**2]), 0)[:-1]
    noise = _NOISE * numpy.sqrt(rest / (shape[0] * shape[1])) * (shape[0] ** 0.5 + shape[1] ** 0.5)
    enough = numpy.flatnonzero((values <= numpy.maximum(noise, 1e-7 * values[0]))[: PATCH_RANK + 1])
    rank = max(int(enough[0]), 1) if enough.size else min(PATCH_RANK, len(values))
    root = numpy.sqrt(values[:rank])
    left = (basis @ ours[:, :rank] * root).astype("<f4").tobytes()
    right = (root[:, None] * theirs[:rank]).astype("<f4").tobytes()
    found, most = [], (len(old) + len(new)) // LEAST_GAIN - len(left) - len(right)
    for goal, base, sign in ((new, old, 1), (old, new, -1)):
        plain = Factored(sha256_of(goal), data_type, shape, base, (left, right, b""), sign)
        corrections = _corrections(goal, plain, most)
        if corrections is None:
            share = 100 - 100 * rest[rank] / energy if rank < len(rest) and energy else 100
            raise PatchError(
                f"rank {rank} explains {share:.4g} % of it, and with the elements that remain different it would need "
                f"more than a quarter of the {len(old) + len(new):,} bytes before and after"
            )
        most -= len(corrections)
        base = Digest(sha256_of(base), len(base))
        found.append(Factored(plain.sha256, data_type, shape, base, (left, right, corrections), sign))
    return found[0], found[1]


def with_factors(record: Any, fields: Fields, address: str = "") -> tuple[Fields, int]:
    """Return the changes of a record with those of weights as factors, and how many these are.

    Raises:
        PatchError: the rank of a change is too high.
    """
    changes, count = dict(fields.changes), 0
    for name, change in fields.changes.items():
        value, below = getattr(record, name), f"{address}/{name}"
        if isinstance(change, Fields):
            changes[name], found = with_factors(value, change, below)
            count += found
        elif isinstance(change, Members):
            names = attribute_segments(value) if value and isinstance(value[0], Attribute) else []
            inner = {}
            for key, each in change.changes.items():
                member = value[key if isinstance(key, int) else names.index(key)]
                inner[key], found = with_factors(member, each, f"{below}/{key}")
                count += found
            changes[name] = Members(change.sequence, change.removed, inner)
        elif isinstance(record, Tensor) and name == "raw_data" and _is_weight(record, change):
            shape = record.dims[0], element_count(record.dims[1:])
            try:
                new, old = factored(record.data_type or 0, shape, change.old, change.new)
            except PatchError as error:
                what = f'the change of "{visible(record.name or "")}" ({len(change.old):,} bytes)'
                raise PatchError(f"{visible(below, 200)}: {what} cannot be stored as factors: {error}", below) from None
            changes[name], count = Replace(old, new), count + 1
    return Fields(changes), count


def _is_weight(tensor: Tensor, change: Replace) -> bool:
    is_long = change.old is not None and len(change.old) >= LAZY_FROM and len(change.old) == needed_bytes(tensor)
    has_rows = tensor.data_type in FLOATS.values() and len(tensor.dims) > 1
    return is_long and has_rows and change.new is not None and len(change.new) == len(change.old)


def _corrections(goal: Data, plain: Factored, most: int) -> bytes | None:
    """Return the steps from computed elements to the right ones, compressed; None if they exceed `most` bytes."""
    import numpy

    stream, found = zlib.compressobj(), bytearray()
    for piece, computed in zip(_blocks(goal), plain.computed(), strict=True):
        steps = (numpy.frombuffer(piece, computed.dtype) - computed).view(f"<i{computed.itemsize}")
        folded = (steps << 1) ^ (steps >> (8 * steps.itemsize - 1))
        found += stream.compress(folded.view(numpy.uint8).reshape(-1, steps.itemsize).T.tobytes())
        if len(found) > most:
            return None
    found += stream.flush()
    return bytes(found) if len(found) <= most else None


def decomposed(shape: tuple[int, int], pairs: Pairs, rounds: int = 1) -> "tuple[NDArray[Any], NDArray[Any], float]":
    """Return two matrices whose product is nearly the change of a matrix, the first orthogonal, and its sum of squares.

    The change is read twice in each round, some rows at a time, and projected to a few directions, at first random ones
    (Halko, Martinsson and Tropp, 2011); memory is that of the directions.
    """
    import numpy

    rows, columns = shape
    count = min(_DIRECTIONS, rows, columns)
    directions = numpy.random.default_rng(0).standard_normal((columns, count))
    for _ in range(rounds):
        sample, small, energy = numpy.zeros((rows, count)), numpy.zeros((count, columns)), 0.0
        for start, part in _rows(pairs, columns):
            sample[start : start + len(part)] = part @ directions
            energy += float((part * part).sum())
        basis = numpy.linalg.qr(sample)[0]
        for start, part in _rows(pairs, columns):
            small += basis[start : start + len(part)].T @ part
        directions = small.T
    return basis, small, energy


def _rows(pairs: Pairs, columns: int) -> "Iterator[tuple[int, NDArray[Any]]]":
    """Yield whole rows of the change with the number of the first."""
    import numpy

    left: NDArray[Any] = numpy.zeros(0)
    start = 0
    for before, after in pairs():
        left = numpy.concatenate([left, after.astype(numpy.float64) - before.astype(numpy.float64)])
        whole = left.size // columns
        if whole:
            yield start, left[: whole * columns].reshape(whole, columns)
        start, left = start + whole, left[whole * columns :]
