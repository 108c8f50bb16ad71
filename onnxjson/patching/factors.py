"""Store a low-rank change of a weight as two factors, base + left x right, and corrections of rounding errors.

The arithmetic has the same result on every machine: it uses float64, adds the products one by one in a fixed order, and
rounds at the end. Differences from the exact bytes are stored, so that these can be restored.
"""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model.addresses import attribute_segments
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.errors import DecodeError, LimitError, PatchError
from onnxjson.model.limits import PATCH_RANK
from onnxjson.model.payloads import LAZY_FROM, Data, Digest, Payload, even_pieces, whole
from onnxjson.model.tensors import needed_bytes, numpy_dtype
from onnxjson.model.types import format_data_type, format_tensor_type, parse_tensor_type
from onnxjson.patching.changes import Fields, Members, Replace

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOATS: Final = [DATA_TYPES[name] for name in ("float32", "float16", "bfloat16")]
"""Dtypes of weights that are stored as factors."""

LEAST_GAIN: Final = 4
"""Minimum ratio of the bytes before and after to the bytes of factors and corrections."""

_DIRECTIONS: Final = PATCH_RANK + 8
"""Number of directions; it exceeds the maximum rank, so that the singular values are accurate."""
_GZIP: Final = 31
_NOISE: Final = 1.2
"""The singular values of rounding errors are at most this multiple of what random matrices have."""

Sign = Literal["+", "-"]
_Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

Pairs = Callable[[], "Iterator[tuple[NDArray[Any], NDArray[Any]]]"]
"""Function that reads a matrix before and after, in flat pieces of equal size."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a weight is computed from another one, as written in a patch; all bytes are identified by their SHA-256."""

    type: str
    """Dtype, rows and columns, such as ``float16[4096,4096]``."""
    base: _Sha256
    left: _Sha256
    right: _Sha256
    corrections: _Sha256
    sign: Sign = "+"
    """Whether the product is added to the base or subtracted."""


class Factored(Payload):
    """The bytes of a weight, computed from those of another weight (`base`), and checked at each use."""

    __slots__ = ("base", "corrections", "data_type", "left", "right", "shape", "sign", "type")

    def __init__(self, sha256: str, type_: str, base: Data | str, factors: Sequence[Data], sign: Sign) -> None:
        """Prepare a weight; `base` is its bytes or SHA-256. Raise LimitError for factors that do not fit the type."""
        self.type = type_
        self.data_type, shape = parse_tensor_type(type_)
        rank = len(factors[0]) // (4 * shape[0]) if len(shape) == 2 and all(shape) else 0
        if self.data_type not in FLOATS or not 1 <= rank <= PATCH_RANK:
            kinds = ", ".join(map(format_data_type, FLOATS))
            raise LimitError(f"factors need a matrix of {kinds}, and a rank from 1 to {PATCH_RANK}")
        if [len(each) for each in factors[:2]] != [4 * rank * size for size in shape]:
            raise LimitError(f"the factors do not fit {type_}")
        super().__init__(shape[0] * shape[1] * BITS[self.data_type] // 8)
        self._sha256 = sha256
        self.shape = shape
        self.base = Digest(base, self.length) if isinstance(base, str) else base
        self.left, self.right, self.corrections = factors
        self.sign = sign

    @property
    def stated(self) -> Change | None:
        """The entry in a patch; None if the bytes of the base are known, so that those of the weight are stored."""
        if not isinstance(self.base, Digest):
            return None
        base, left, right, corrections = map(sha256_of, (self.base, self.left, self.right, self.corrections))
        return Change(self.type, base, left, right, corrections, self.sign)

    def chunks(self) -> Iterator[bytes]:
        """See `Payload.chunks`; raises DecodeError if the result does not have the declared hash."""
        import numpy

        found = hashlib.sha256()
        with gzip.open(io.BytesIO(whole(self.corrections))) as corrections:
            for computed in self.computed():
                try:
                    planes = numpy.frombuffer(corrections.read(computed.nbytes), numpy.uint8)
                    steps = planes.reshape(computed.itemsize, -1).T.copy().view(computed.dtype).reshape(-1)
                    data = (computed + ((steps >> 1) ^ (0 - (steps & 1)))).tobytes()
                except (EOFError, OSError, ValueError, zlib.error) as error:
                    raise DecodeError(f"the corrections of the factors cannot be read: {error}") from error
                found.update(data)
                yield data
        if found.hexdigest() != self.sha256:
            raise DecodeError(f"the factors of the patch do not result in the bytes with the sha256 {self.sha256}")

    def computed(self) -> "Iterator[NDArray[Any]]":
        """Yield the bits of the elements before they are corrected, `CHUNK` bytes at a time."""
        import numpy

        columns = self.shape[1]
        left = numpy.frombuffer(whole(self.left), "<f4").reshape(self.shape[0], -1)
        right = numpy.frombuffer(whole(self.right), "<f4").reshape(-1, columns)
        if not (numpy.isfinite(left).all() and numpy.isfinite(right).all()):
            raise DecodeError(f"a factor of the bytes with the sha256 {self.sha256} has an infinite or NaN element")
        start, dtype = 0, numpy_dtype(self.data_type)
        for piece in even_pieces(self.base):
            before = numpy.frombuffer(piece, dtype)
            rows = slice(start // columns, (start + before.size - 1) // columns + 1)
            change = numpy.zeros((rows.stop - rows.start, columns))
            with numpy.errstate(all="ignore"):
                for each in range(right.shape[0]):
                    change += left[rows, each, None].astype(numpy.float64) * right[each]
                flat = change.reshape(-1)[start - rows.start * columns :][: before.size]
                result = before.astype(numpy.float64) + (flat if self.sign == "+" else -flat)
                result = result.astype(numpy.float32) if self.data_type == FLOATS[2] else result
                # The bits of a NaN depend on the machine.
                yield numpy.where(numpy.isnan(result), before, result.astype(dtype)).view(f"<u{dtype.itemsize}")
            start += before.size


def factored(data_type: int, shape: tuple[int, int], old: Data, new: Data) -> tuple[Factored, Factored]:
    """Return `old` computed from `new`, and `new` from `old`; raise PatchError if factors are too big."""
    import numpy

    dtype = numpy_dtype(data_type)

    def pairs() -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
        for before, after in zip(even_pieces(old), even_pieces(new), strict=True):
            with numpy.errstate(invalid="ignore"):  # signalling NaNs
                values = [numpy.frombuffer(each, dtype).astype(numpy.float64) for each in (before, after)]
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
    kind = format_tensor_type(data_type, shape) or ""
    cases: list[tuple[Data, Data, Sign]] = [(old, new, "-"), (new, old, "+")]
    for goal, base, sign in cases:
        corrections = _corrections(goal, Factored(sha256_of(goal), kind, base, (left, right, b""), sign), most)
        if corrections is None:
            share = 100 - 100 * rest[rank] / energy if rank < len(rest) and energy else 100
            raise PatchError(
                f"rank {rank} explains {share:.4g} % of it; with corrections, the factors would need more than a "
                f"quarter of the {len(old) + len(new):,} bytes before and after"
            )
        most -= len(corrections)
        found.append(Factored(sha256_of(goal), kind, sha256_of(base), (left, right, corrections), sign))
    return found[0], found[1]


def computed_from(data: Any, value: Any) -> Any:
    """Return `data`; if it is stored as factors of a change of `value`, computed from the bytes of `value`."""
    if not isinstance(data, Factored):
        return data
    base = computed_from(data.base, value)
    base = value if isinstance(base, Digest) and isinstance(value, bytes | Payload) and value == base else base
    return Factored(data.sha256, data.type, base, (data.left, data.right, data.corrections), data.sign)


def with_factors(record: Any, fields: Fields, stored: list[str], address: str = "") -> Fields:
    """Return the changes of a record, those of weights as factors; add the addresses of the weights to `stored`.

    Raises:
        PatchError: the rank of a change is too high.
    """
    changes = dict(fields.changes)
    for name, change in fields.changes.items():
        value, below = getattr(record, name), f"{address}/{name}"
        if isinstance(change, Fields):
            changes[name] = with_factors(value, change, stored, below)
        elif isinstance(change, Members):
            names = attribute_segments(value) if value and isinstance(value[0], Attribute) else []
            inner = {
                key: with_factors(
                    value[names.index(key) if isinstance(key, str) else key], each, stored, f"{below}/{key}"
                )
                for key, each in change.changes.items()
            }
            changes[name] = Members(change.sequence, change.removed, inner)
        elif isinstance(record, Tensor) and name == "raw_data" and _is_weight(record, change):
            shape = record.dims[0], element_count(record.dims[1:])
            try:
                changes[name] = Replace(*factored(record.data_type or 0, shape, change.old, change.new))
            except PatchError as error:
                what = f'the change of "{visible(record.name or "")}" ({len(change.old):,} bytes)'
                raise PatchError(f"{visible(below, 200)}: {what} cannot be stored as factors: {error}", below) from None
            stored.append(below)
    return Fields(changes)


def _is_weight(tensor: Tensor, change: Replace) -> bool:
    lengths = [-1 if each is None else len(each) for each in (change.old, change.new)]
    has_rows = tensor.data_type in FLOATS and len(tensor.dims) > 1
    return has_rows and LAZY_FROM <= lengths[0] == lengths[1] == needed_bytes(tensor)


def _corrections(goal: Data, plain: Factored, most: int) -> bytes | None:
    """Return the compressed corrections of computed elements; None if they exceed `most` bytes."""
    import numpy

    stream, found = zlib.compressobj(wbits=_GZIP), bytearray()
    for piece, computed in zip(even_pieces(goal), plain.computed(), strict=True):
        steps = (numpy.frombuffer(piece, computed.dtype) - computed).view(f"<i{computed.itemsize}")
        folded = (steps << 1) ^ (steps >> (8 * steps.itemsize - 1))
        found += stream.compress(folded.view(numpy.uint8).reshape(-1, steps.itemsize).T.tobytes())
        if len(found) > most:
            return None
    found += stream.flush()
    return bytes(found) if len(found) <= most else None


def decomposed(shape: tuple[int, int], pairs: Pairs, rounds: int = 1) -> "tuple[NDArray[Any], NDArray[Any], float]":
    """Return two matrices, the first orthogonal, whose product approximates a change, and the change's sum of squares.

    The change is read twice in each round, some rows at a time, and projected onto a few directions, which are random
    in the first round (Halko, Martinsson and Tropp, 2011). Only the directions are in memory.
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
    """Yield complete rows of the change with the number of the first row."""
    import numpy

    left: NDArray[Any] = numpy.zeros(0)
    start = 0
    for before, after in pairs():
        left = numpy.concatenate([left, after.astype(numpy.float64) - before.astype(numpy.float64)])
        whole = left.size // columns
        if whole:
            yield start, left[: whole * columns].reshape(whole, columns)
        start, left = start + whole, left[whole * columns :]
