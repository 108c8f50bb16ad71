"""What happened to a constant: its elements in numbers, its dtype, its shape, its layout, where it is stored."""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from onnxjson import elements, tensors
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.tensor_sources import TensorSource
from onnxjson.document import Tensor
from onnxjson.errors import OnnxJsonError
from onnxjson.names import BOOL, COMPLEX, STRING
from onnxjson.payloads import Data, even_pieces
from onnxjson.tensors import is_external
from onnxjson.types import format_data_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

WeightsMode = Literal["exact", "tolerance", "skip"]
"""How elements are compared: by bits, within a tolerance, or not at all."""


class TensorChange(NamedTuple):
    """What happened to one constant."""

    kind: Kind
    pattern: str
    details: tuple[Detail, ...]


class Weights:
    """Compares constants of two models.

    Args:
        base: where the constants of the base are.
        target: where those of the target are.
        mode: how elements are compared.
        rtol: with "tolerance", the relative part of what is allowed; |base - target| <= atol + rtol * |base|.
        atol: the absolute part.
    """

    def __init__(
        self,
        base: TensorSource,
        target: TensorSource,
        mode: WeightsMode = "exact",
        rtol: float = 1e-5,
        atol: float = 1e-8,
    ) -> None:
        self._sources = base, target
        self.mode = mode
        self._rtol = rtol
        self._atol = atol

    def data(self, side: int, tensor: Tensor) -> Data | None:
        """The elements of a constant of the base (0) or the target (1); see `TensorSource.data`."""
        return self._sources[side].data(tensor)

    def problems(self) -> list[str]:
        """What could not be compared, for a person."""
        return [*self._sources[0].problems(), *self._sources[1].problems()]

    def compare(self, one: Tensor, other: Tensor) -> TensorChange | None:
        """What is different in dtype, dims, elements and storage of two constants; names and documentation aside."""
        data, its = self._sources[0].data(one), self._sources[1].data(other)
        storage = _storage_change(one, other)
        shape = Detail("type", type_text(one), type_text(other)) if type_text(one) != type_text(other) else None
        if STRING in (one.data_type, other.data_type) and one.data_type == other.data_type:
            return self._strings(one, other, shape) or storage
        if data is None or its is None:
            return self._unreadable(one, other, shape) or storage
        if one.data_type != other.data_type:
            return self._retyped(one, other, data, its)
        if self.mode == "skip":
            return TensorChange("reshaped", "constant", (shape,)) if shape is not None else storage
        try:
            if self._same(data, its):
                return TensorChange("reshaped", "constant", (shape,)) if shape is not None else storage
            return self._changed(one, other, data, its, shape)
        except OnnxJsonError:
            # Lengths or digests say that they differ, though the elements themselves are not here.
            details = Detail("elements", "not here", "not here"), *([shape] if shape is not None else [])
            return TensorChange("weights-changed", "", details)

    def equal(self, one: Tensor, other: Tensor) -> bool:
        """Whether dtype, dims and elements are the same, by bits."""
        if one.data_type != other.data_type or one.dims != other.dims:
            return False
        if one.data_type == STRING:
            return one.string_data == other.string_data
        data, its = self._sources[0].data(one), self._sources[1].data(other)
        return data is not None and its is not None and self._same(data, its)

    def re_laid(self, one: Tensor, other: Tensor) -> bool:
        """Whether the elements are the same ones, in another order or shape."""
        if one.data_type != other.data_type or elements.element_count(one.dims) != elements.element_count(other.dims):
            return False
        data, its = self._sources[0].data(one), self._sources[1].data(other)
        if data is None or its is None or one.data_type is None or one.data_type not in elements.BITS:
            return False
        try:
            return _sketch(data, one.data_type) == _sketch(its, one.data_type)
        except OnnxJsonError:
            return False

    def _same(self, data: Data, its: Data) -> bool:
        if len(data) != len(its):
            return False
        place = self._sources[0].range(data)
        return (place is not None and place == self._sources[1].range(its)) or data == its

    def _strings(self, one: Tensor, other: Tensor, shape: Detail | None) -> TensorChange | None:
        if one.string_data == other.string_data:
            return None if shape is None else TensorChange("reshaped", "constant", (shape,))
        if self.mode == "skip":
            return None
        count = min(len(one.string_data), len(other.string_data))
        changed = sum(map(bytes.__ne__, one.string_data, other.string_data))
        details = [Detail("elements changed", None, f"{changed:,} of {count:,}")]
        return TensorChange("weights-changed", "", tuple(details if shape is None else [shape, *details]))

    def _unreadable(self, one: Tensor, other: Tensor, shape: Detail | None) -> TensorChange | None:
        """For elements that cannot be had: what the records alone say."""
        if shape is not None:
            return TensorChange(
                "retyped" if one.data_type != other.data_type else "reshaped", _dtypes(one, other), (shape,)
            )
        if is_external(one) or is_external(other) or _payloads(one) == _payloads(other):
            return None
        if self.mode == "skip":
            return None
        return TensorChange(
            "weights-changed", "", (Detail("elements", "not as its type says", "not as its type says"),)
        )

    def _retyped(self, one: Tensor, other: Tensor, data: Data, its: Data) -> TensorChange:
        details = [Detail("type", type_text(one), type_text(other))]
        comparable = one.dims == other.dims and not {one.data_type, other.data_type} & {STRING, *COMPLEX}
        if comparable and self.mode != "skip":
            with suppress(OnnxJsonError):
                details += _numbers(_measure(one, other, data, its), same_type=False)
        return TensorChange("retyped", _dtypes(one, other), tuple(details))

    def _changed(self, one: Tensor, other: Tensor, data: Data, its: Data, shape: Detail | None) -> TensorChange | None:
        if len(data) == len(its) and self.re_laid(one, other):
            permutation = _permutation(one, other, data, its)
            said = Detail("same elements in another order", type_text(one), type_text(other))
            said = Detail("axes in the order", None, permutation) if permutation is not None else said
            return TensorChange("weights-re-laid", "", (said,) if shape is None else (shape, said))
        if shape is not None:
            # Elements of another shape have no counterparts.
            return TensorChange("weights-changed", "", (shape,))
        measure = _measure(one, other, data, its, self._rtol, self._atol)
        if self.mode == "tolerance" and measure.is_within:
            return None
        return TensorChange("weights-changed", "", tuple(_numbers(measure, same_type=True)))


def type_text(tensor: Tensor) -> str:
    """Dtype and dims for a person, whatever they are."""
    return f"{format_data_type(tensor.data_type or 0)}[{','.join(map(str, tensor.dims))}]"


def _dtypes(one: Tensor, other: Tensor) -> str:
    if one.data_type == other.data_type:
        return "constant"
    return f"{format_data_type(one.data_type or 0)} -> {format_data_type(other.data_type or 0)}"


_PAYLOAD_FIELDS: Final = (
    "float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data",
)  # fmt: skip


def _payloads(tensor: Tensor) -> tuple[object, ...]:
    return tuple([getattr(tensor, name) for name in (*_PAYLOAD_FIELDS, "segment")])


def without_elements(tensor: Tensor) -> Tensor:
    """What a tensor says besides dtype, dims and elements: its names and documentation."""
    return Tensor(
        name=tensor.name,
        doc_string=tensor.doc_string,
        metadata_props=tensor.metadata_props,
        unknown_fields=tensor.unknown_fields,
    )


def storage_text(tensor: Tensor) -> str:
    """Where the elements of a tensor stand, for a person."""
    if is_external(tensor):
        return "another file"
    filled = [name for name in _PAYLOAD_FIELDS if getattr(tensor, name)]
    return "+".join(filled) or "raw_data"


def _storage_change(one: Tensor, other: Tensor) -> TensorChange | None:
    before, after = storage_text(one), storage_text(other)
    if before != after:
        return TensorChange("storage-changed", f"{before} -> {after}", (Detail("stored in", before, after),))
    if one.external_data != other.external_data or one.data_location != other.data_location:
        entries = [", ".join(f"{each.key}={each.value}" for each in tensor.external_data) for tensor in (one, other)]
        return TensorChange("storage-changed", "external data", (Detail("external data", entries[0], entries[1]),))
    return None


class _Measure:
    """What the elements of two constants are like, side by side."""

    def __init__(self, rtol: float, atol: float) -> None:
        self.count = self.changed = self.odd = 0
        """All elements; those that are not the same; those of them of which one is not finite."""
        self.absolute = self.relative = 0.0
        self.zeros = [0, 0]
        self.beyond = 0
        """Elements that are further from each other than the tolerance allows."""
        self._rtol = rtol
        self._atol = atol

    def add(self, one: "NDArray[Any]", other: "NDArray[Any]") -> None:
        """The next elements of both, the same number."""
        import numpy

        self.count += one.size
        self.zeros[0] += int(one.size - numpy.count_nonzero(one))
        self.zeros[1] += int(other.size - numpy.count_nonzero(other))
        differs = (one != other) & ~((one != one) & (other != other))
        changed = numpy.flatnonzero(differs)
        self.changed += changed.size
        if not changed.size:
            return
        before, after = one[changed], other[changed]
        finite = numpy.isfinite(before) & numpy.isfinite(after)
        self.odd += int(changed.size - numpy.count_nonzero(finite))
        before, after = before[finite].astype(numpy.float64), after[finite].astype(numpy.float64)
        if not before.size:
            return
        gaps = numpy.abs(after - before)
        self.absolute = max(self.absolute, float(gaps.max()))
        size = numpy.abs(before)
        known = size > 0
        if known.any():
            self.relative = max(self.relative, float((gaps[known] / size[known]).max()))
        self.beyond += int(numpy.count_nonzero(gaps > self._atol + self._rtol * size))

    @property
    def is_within(self) -> bool:
        """Whether all elements are as near as the tolerance allows."""
        return not self.odd and not self.beyond


def _measure(one: Tensor, other: Tensor, data: Data, its: Data, rtol: float = 0.0, atol: float = 0.0) -> _Measure:
    import numpy

    measure = _Measure(rtol, atol)
    with numpy.errstate(all="ignore"):
        for before, after in _side_by_side(_arrays(one, data), _arrays(other, its)):
            measure.add(before, after)
    return measure


def _side_by_side(
    ones: "Iterator[NDArray[Any]]", others: "Iterator[NDArray[Any]]"
) -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
    """Both in pieces of the same lengths, however they come."""
    import numpy

    left: NDArray[Any] = numpy.empty(0)
    right: NDArray[Any] = numpy.empty(0)
    while True:
        left = left if left.size else next(ones, left)
        right = right if right.size else next(others, right)
        count = min(left.size, right.size)
        if not count:
            return
        yield left[:count], right[:count]
        left, right = left[count:], right[count:]


def _arrays(tensor: Tensor, data: Data) -> "Iterator[NDArray[Any]]":
    """The elements as numbers that numpy compares and subtracts: float64, or integers as they are."""
    import numpy

    data_type = tensor.data_type or 0
    for array in _pieces(data_type, data, elements.element_count(tensor.dims)):
        if data_type in COMPLEX:
            yield array
        elif data_type == BOOL:
            yield array.astype(numpy.int64)
        elif array.dtype.kind in "iu":
            yield array
        else:
            small_integers = array.dtype.name in ("int2", "uint2", "int4", "uint4")
            yield array.astype(numpy.int64 if small_integers else numpy.float64)


def _pieces(data_type: int, data: Data, count: int) -> "Iterator[NDArray[Any]]":
    size = elements.BITS[data_type]
    for piece in even_pieces(data):
        here = min(count, len(piece) * 8 // size)
        count -= here
        yield tensors.to_numpy(Tensor(dims=(here,), data_type=data_type, raw_data=piece))


def _sketch(data: Data, data_type: int) -> int:
    """A number that is the same for the same elements in any order: the sum of 64-bit mixes of their bits."""
    import numpy

    size = elements.BITS[data_type]
    word = f"<u{size // 8}" if size in (8, 16, 32, 64) else "<u8" if size == 128 else "<u1"
    total = numpy.uint64(0)
    with numpy.errstate(over="ignore"):
        for piece in even_pieces(data):
            words = numpy.frombuffer(piece, word).astype(numpy.uint64)
            # The finaliser of splitmix64 (Steele, Lea and Flood, 2014).
            words += numpy.uint64(0x9E3779B97F4A7C15)
            words = (words ^ (words >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
            words = (words ^ (words >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
            total += (words ^ (words >> numpy.uint64(31))).sum(dtype=numpy.uint64)
    return int(total)


_MOST_PERMUTED: Final = 1 << 24
"""Elements up to which a transposition is looked for."""


def _permutation(one: Tensor, other: Tensor, data: Data, its: Data) -> str | None:
    """The order of axes in which the elements of one are those of the other, such as ``1, 0``."""
    import itertools

    import numpy

    rank = len(one.dims)
    if not 2 <= rank <= 5 or elements.element_count(one.dims) > _MOST_PERMUTED:
        return None
    data_type = one.data_type or 0
    if elements.BITS[data_type] < 8:
        return None
    before, after = [
        numpy.concatenate(list(_pieces(data_type, each, elements.element_count(tensor.dims)))).reshape(tensor.dims)
        for tensor, each in ((one, data), (other, its))
    ]
    bits = f"V{before.dtype.itemsize}"
    for axes in itertools.permutations(range(rank)):
        if tuple(one.dims[axis] for axis in axes) == other.dims and axes != tuple(range(rank)):
            moved = numpy.ascontiguousarray(before.transpose(axes))
            if moved.view(bits).tobytes() == after.tobytes():
                return ", ".join(map(str, axes))
    return None


def _numbers(measure: _Measure, *, same_type: bool) -> list[Detail]:
    """What a person wants to know of changed elements."""
    details = []
    if measure.changed > measure.odd or not same_type:
        details += [
            Detail("max absolute difference", None, _number(measure.absolute)),
            Detail("max relative difference", None, _number(measure.relative)),
        ]
    if measure.odd:
        details.append(Detail("elements that became or were NaN or infinite", None, f"{measure.odd:,}"))
    share = measure.changed / measure.count if measure.count else 0.0
    details.append(Detail("elements changed", None, f"{measure.changed:,} of {measure.count:,} ({share:.3g})"))
    if measure.zeros[0] != measure.zeros[1] and measure.count:
        before, after = [f"{zeros / measure.count:.3g}" for zeros in measure.zeros]
        details.append(Detail("sparsity", before, after))
    return details


def _number(value: float) -> str:
    return "0" if not value else "overflow" if math.isinf(value) else f"{value:.6g}"
