"""Changes of a constant: its elements in numbers, its dtype, shape, layout and storage."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.diffing.constant_elements import (
    Measure,
    TensorSource,
    find_permutation,
    measure,
    number_arrays,
    order_free_hash,
    side_by_side,
)
from onnxjson.diffing.details import type_text
from onnxjson.diffing.events import (
    CHANGED,
    NOT_FINITE,
    RANK,
    RELATIVE,
    SPARSITY,
    THROUGH_SCALES,
    Detail,
    Kind,
    WeightsComparison,
)
from onnxjson.model import elements
from onnxjson.model.constants import QuantizedWeight
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS, COMPLEX_PARTS, STRING
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import Data
from onnxjson.model.tensors import is_external
from onnxjson.model.types import format_data_type

if TYPE_CHECKING:
    from numpy.typing import NDArray


Pairs = Callable[[], "Iterator[tuple[NDArray[Any], NDArray[Any]]]"]
"""Function that reads a matrix before and after, in flat pieces of equal size."""

_MOST_RANK: Final = 64
"""Maximum rank of the change of a weight that is reported."""

_DIRECTIONS: Final = _MOST_RANK + 8
"""Number of directions; it exceeds the maximum rank, so that the singular values are accurate."""

_SHARE: Final = 0.999
"""Part of the squares of a change that its rank explains."""

_FEW: Final = 64
"""Maximum size of constants whose elements beyond the tolerance are listed one by one."""

_PAYLOAD_FIELDS: Final = (
    "float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data",
)  # fmt: skip


class TensorChange(NamedTuple):
    """The change of one constant."""

    kind: Kind
    pattern: str
    details: tuple[Detail, ...]


class ConstantComparer:
    """Compares constants of two models; in mode "tolerance" |base - target| <= atol + rtol * |base| is equal."""

    def __init__(
        self,
        base: TensorSource,
        target: TensorSource,
        mode: WeightsComparison = "exact",
        rtol: float = 1e-5,
        atol: float = 1e-8,
    ) -> None:
        self._sources = base, target
        self.mode = mode
        self._rtol = rtol
        self._atol = atol

    def data(self, side: int, tensor: Tensor) -> Data | None:
        """Return the elements of a constant of the base (0) or the target (1); see `TensorSource.data`."""
        return self._sources[side].data(tensor)

    def problems(self) -> list[str]:
        """Return readable reasons why constants could not be compared."""
        return [*self._sources[0].problems(), *self._sources[1].problems()]

    def compare(self, one: Tensor, other: Tensor) -> TensorChange | None:
        """Return the change in dtype, dims, elements or storage of two constants, ignoring names and documentation."""
        old, new = self._sources[0].data(one), self._sources[1].data(other)
        storage = _storage_change(one, other)
        shape = Detail("type", type_text(one), type_text(other)) if type_text(one) != type_text(other) else None
        if STRING in (one.data_type, other.data_type) and one.data_type == other.data_type:
            return self._strings(one, other, shape) or storage
        if old is None or new is None:
            return self._unreadable(one, other, shape) or storage
        if one.data_type != other.data_type:
            return self._retyped(one, other, old, new)
        reshaped = None if shape is None else TensorChange("reshaped", "constant", (shape,))
        try:
            if self.mode == "skip" or self._same(old, new):
                return reshaped or storage
            return self._changed(one, other, old, new, shape) or storage
        except OnnxJsonError:
            # Lengths or digests differ, but the elements themselves are not available.
            details = Detail("elements", "not available", "not available"), *([shape] if shape is not None else [])
            return TensorChange("weights-changed", "", details)

    def equal(self, one: Tensor, other: Tensor) -> bool:
        """Whether dtype, dims and elements are equal, by bits."""
        if one.data_type != other.data_type or one.dims != other.dims:
            return False
        if one.data_type == STRING:
            return one.string_data == other.string_data
        old, new = self._sources[0].data(one), self._sources[1].data(other)
        return old is not None and new is not None and self._same(old, new)

    def re_laid(self, one: Tensor, other: Tensor) -> bool:
        """Whether the elements are equal in another order or shape."""
        if one.data_type != other.data_type or elements.element_count(one.dims) != elements.element_count(other.dims):
            return False
        old, new = self._sources[0].data(one), self._sources[1].data(other)
        if old is None or new is None or one.data_type is None or one.data_type not in BITS:
            return False
        try:
            return order_free_hash(old, one.data_type) == order_free_hash(new, one.data_type)
        except OnnxJsonError:
            return False

    def _same(self, old: Data, new: Data) -> bool:
        if len(old) != len(new):
            return False
        place = self._sources[0].range(old)
        return (place is not None and place == self._sources[1].range(new)) or old == new

    def _strings(self, one: Tensor, other: Tensor, shape: Detail | None) -> TensorChange | None:
        if one.string_data == other.string_data:
            return None if shape is None else TensorChange("reshaped", "constant", (shape,))
        if self.mode == "skip":
            return None
        count = min(len(one.string_data), len(other.string_data))
        changed = sum(map(bytes.__ne__, one.string_data, other.string_data))
        details = [Detail(CHANGED, None, f"{changed:,} of {count:,}")]
        return TensorChange("weights-changed", "", tuple(details if shape is None else [shape, *details]))

    def _unreadable(self, one: Tensor, other: Tensor, shape: Detail | None) -> TensorChange | None:
        """Compare the records alone, for elements that are not available."""
        if shape is not None:
            kind: Kind = "retyped" if one.data_type != other.data_type else "reshaped"
            return TensorChange(kind, _dtypes(one, other), (shape,))
        if self.mode == "skip" or is_external(one) or is_external(other) or _payloads(one) == _payloads(other):
            return None
        detail = Detail("elements", "not fitting the type", "not fitting the type")
        return TensorChange("weights-changed", "", (detail,))

    def _retyped(self, one: Tensor, other: Tensor, old: Data, new: Data) -> TensorChange:
        details = [Detail("type", type_text(one), type_text(other))]
        comparable = one.dims == other.dims and not {one.data_type, other.data_type} & {STRING, *COMPLEX_PARTS}
        if comparable and self.mode != "skip":
            with suppress(OnnxJsonError):
                details += _numbers(measure(one, other, old, new), same_type=False)
        return TensorChange("retyped", _dtypes(one, other), tuple(details))

    def _changed(self, one: Tensor, other: Tensor, old: Data, new: Data, shape: Detail | None) -> TensorChange | None:
        if len(old) == len(new) and self.re_laid(one, other):
            axes = find_permutation(one, other, old, new)
            detail = Detail("same elements in another order", type_text(one), type_text(other))
            detail = Detail("axes in the order", None, axes) if axes is not None else detail
            return TensorChange("weights-re-laid", "", (detail,) if shape is None else (shape, detail))
        if shape is not None:
            # Elements of another shape have no counterparts.
            return TensorChange("weights-changed", "", (shape,))
        stats = measure(one, other, old, new, self._rtol, self._atol)
        if self.mode == "tolerance" and stats.is_within:
            return None
        details = _numbers(stats, same_type=True)
        if self.mode == "rank" and len(one.dims) == 2 and one.data_type not in COMPLEX_PARTS:
            ranks = rank_details(one.dims, lambda: side_by_side(number_arrays(one, old), number_arrays(other, new)))
            details = [*ranks, *details]
        if self.mode == "tolerance" and stats.count <= _FEW and one.data_type not in COMPLEX_PARTS:
            details += self._elements(one, other, old, new)
        return TensorChange("weights-changed", "", tuple(details))

    def through_scales(self, one: QuantizedWeight, other: QuantizedWeight) -> list[Detail]:
        """Return the difference of the numbers that two quantized weights stand for."""
        import numpy

        if one.shape != other.shape or self.mode == "skip":
            return []

        def pairs() -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
            return side_by_side(one.arrays(partial(self.data, 0)), other.arrays(partial(self.data, 1)))

        total = count = 0.0
        low, high = math.inf, -math.inf
        with numpy.errstate(all="ignore"):
            for before, after in pairs():
                total, count = total + float(numpy.abs(after - before).sum()), count + before.size
                low, high = min(low, float(before.min())), max(high, float(before.max()))
        if not count:
            return []
        scheme = one.text if one.text == other.text else f"{one.text} -> {other.text}"
        share = total / count / ((high - low) or 1.0)
        details = [Detail(THROUGH_SCALES, None, f"{scheme}: mean |difference| {share * 100:.2g} % of range")]
        return details + (rank_details(one.shape, pairs) if self.mode == "rank" and len(one.shape) == 2 else [])

    def _elements(self, one: Tensor, other: Tensor, data: Data, other_data: Data) -> list[Detail]:
        """Return a detail for each element that differs by more than the absolute tolerance."""
        import numpy

        before, after = [
            [each for array in number_arrays(tensor, payload) for each in array.tolist()]
            for tensor, payload in ((one, data), (other, other_data))
        ]
        indices = numpy.ndindex(*one.dims)
        return [
            Detail(f"element {list(index)}", str(old), str(new))
            for index, old, new in zip(indices, before, after, strict=True)
            if not (old == new or abs(old - new) <= self._atol or (old != old and new != new))
        ]


def _dtypes(one: Tensor, other: Tensor) -> str:
    if one.data_type == other.data_type:
        return "constant"
    return f"{format_data_type(one.data_type or 0)} -> {format_data_type(other.data_type or 0)}"


def _payloads(tensor: Tensor) -> tuple[object, ...]:
    return tuple([getattr(tensor, name) for name in (*_PAYLOAD_FIELDS, "segment")])


def without_elements(tensor: Tensor) -> Tensor:
    """Return a tensor with only the fields other than dtype, dims and elements: its names and documentation."""
    return Tensor(
        name=tensor.name,
        doc_string=tensor.doc_string,
        metadata_props=tensor.metadata_props,
        unknown_fields=tensor.unknown_fields,
    )


def storage_text(tensor: Tensor) -> str:
    """Return the place where the elements of a tensor are stored, as readable text."""
    if is_external(tensor):
        return "external file"
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


def _numbers(stats: Measure, *, same_type: bool) -> list[Detail]:
    details = []
    if stats.changed > stats.odd or not same_type:
        details += [
            Detail("max absolute difference", None, _number(stats.absolute)),
            Detail(RELATIVE, None, "inf" if math.isinf(stats.relative) else _number(stats.relative)),
        ]
    if stats.odd:
        details.append(Detail(NOT_FINITE, None, f"{stats.odd:,}"))
    elif same_type and not stats.changed:
        details.append(Detail("bits", "of signs of zero, NaNs or padding", "others"))
    share = stats.changed / stats.count if stats.count else 0.0
    details.append(Detail(CHANGED, None, f"{stats.changed:,} of {stats.count:,} ({share * 100:.3g} %)"))
    if stats.zeros[0] != stats.zeros[1] and stats.count:
        before, after = [f"{zeros / stats.count:.3g}" for zeros in stats.zeros]
        details.append(Detail(SPARSITY, before, after))
    return details


def _number(value: float) -> str:
    return "0" if not value else "overflow" if math.isinf(value) else f"{value:.6g}"


def rank_details(shape: tuple[int, ...], pairs: Pairs) -> list[Detail]:
    """Return how many singular values of a change explain 99.9 % of its squares, and the cost; none if not finite."""
    import numpy

    rows, columns = shape
    if not rows * columns:
        return []
    small, energy = _projected((rows, columns), pairs)
    if not numpy.isfinite(energy) or not energy:
        return []
    shares = numpy.cumsum(numpy.linalg.svd(small, compute_uv=False) ** 2) / energy
    enough = numpy.flatnonzero(shares[:_MOST_RANK] >= _SHARE)
    rank = int(enough[0]) + 1 if enough.size else min(_MOST_RANK, len(small))
    share = float(shares[rank - 1])
    percent = 100.0 if share > 1 - 1e-9 else int(share * 1e4) / 100  # rounded down, so that 100 means all
    words = "explains" if enough.size else "explains at least"
    cost = f"read twice, {4e-9 * rows * columns * len(small):.2g} GFLOP"
    return [Detail(RANK, None, f"{rank} {words} {percent:.4g} % ({cost})")]


def _projected(shape: tuple[int, int], pairs: Pairs) -> "tuple[NDArray[Any], float]":
    """Return a smaller matrix that has the greatest singular values of a change, and the change's sum of squares.

    The change is read twice, some rows at a time, and projected onto a few random directions (Halko, Martinsson and
    Tropp, 2011). Only the directions are in memory.
    """
    import numpy

    rows, columns = shape
    count = min(_DIRECTIONS, rows, columns)
    directions = numpy.random.default_rng(0).standard_normal((columns, count))
    sample, small, energy = numpy.zeros((rows, count)), numpy.zeros((count, columns)), 0.0
    for start, part in _rows(pairs, columns):
        sample[start : start + len(part)] = part @ directions
        energy += float((part * part).sum())
    basis = numpy.linalg.qr(sample)[0]
    for start, part in _rows(pairs, columns):
        small += basis[start : start + len(part)].T @ part
    return small, energy


def _rows(pairs: Pairs, columns: int) -> "Iterator[tuple[int, NDArray[Any]]]":
    """Yield complete rows of the change with the number of the first row."""
    import numpy

    left: NDArray[Any] = numpy.zeros(0)
    start = 0
    for before, after in pairs():
        left = numpy.concatenate([left, after.astype(numpy.float64) - before.astype(numpy.float64)])
        rows = left.size // columns
        if rows:
            yield start, left[: rows * columns].reshape(rows, columns)
        start, left = start + rows, left[rows * columns :]
