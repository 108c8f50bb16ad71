"""Elements of the constants of two models: read them, internal or external, and measure them piece by piece."""

import os
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onnxjson.diffing.matching.contents import content
from onnxjson.model import elements, tensors
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model, StringStringEntry, Tensor
from onnxjson.model.dtypes import BITS
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import Data, even_pieces
from onnxjson.model.tensors import is_external, location_of, needed_bytes, raw_bytes
from onnxjson.model.walking import tensors_of
from onnxjson.storage.external import ExternalSlice, Resolver

if TYPE_CHECKING:
    from numpy.typing import NDArray


_RANGE: Final = re.compile(r"[0-9]{1,19} (?:[0-9]{1,19})?", re.ASCII)
"""Offset and length of external data, as texts."""

_Range = tuple[str, int, int]
"""Part of a file with external data: real path, offset, bytes."""

_Identity = tuple[str | None, tuple[StringStringEntry, ...]]
"""Identity of an external tensor: its name and its external data entries."""

_MOST_PERMUTED: Final = 1 << 24
"""Maximum number of elements for the search for a transposition."""


class TensorSource:
    """The constants of one model; external files are opened on first use, and problems are collected."""

    def __init__(self, path: Path | None, what: str, *, trust_links: bool = False) -> None:
        """Prepare the constants of a model, called `what`, in a file; external data is relative to its folder."""
        self._path = path
        self._called = visible(what, None)
        self._resolver = self._holes = None
        if path is not None:
            self._resolver = Resolver(path.parent, model_file=path, trust_links=trust_links)
            self._holes = Resolver(path.parent, model_file=path, trust_links=trust_links, allow_sparse=True)
        self._folders: dict[str, str] = {}
        self._shared: frozenset[_Range] = frozenset()
        self._refused: dict[str, dict[_Identity, str]] = {}
        """Reasons why tensors cannot be read, by their file."""

    def data(self, tensor: Tensor) -> Data | None:
        """Return the elements as ``raw_data`` would have them; None if there are none or they are not available."""
        location = location_of(tensor)
        if location is None:
            stored = raw_bytes(msgspec.structs.replace(tensor, data_location=None) if tensor.data_location else tensor)
            return None if stored is None else stored[0]
        if self._resolver is None:
            self.fail(tensor, "the model has no file, so the place of its weights is unknown")
            return None
        try:
            # A range that both models have is not read, so that it may have holes.
            is_shared = self._range_of(tensor) in self._shared
            resolver = self._holes if is_shared and self._holes is not None else self._resolver
            return resolver.resolve(tensor.external_data, needed_bytes(tensor), tensor=tensor.name or "")
        except OnnxJsonError as error:
            self.fail(tensor, error)
            return None

    def share(self, model: Model, other: "TensorSource", other_model: Model) -> None:
        """Prepare both sources for ranges of files that both models have, which are equal without being read."""
        ours = self._ranges(model)
        self._shared = other._shared = ours and ours & other._ranges(other_model)

    def _ranges(self, model: Model) -> frozenset[_Range]:
        found = {self._range_of(tensor) for tensor in tensors_of(model) if is_external(tensor)}
        return frozenset([each for each in found if each is not None])

    def _range_of(self, tensor: Tensor) -> _Range | None:
        entries = {entry.key: entry.value or "" for entry in tensor.external_data}
        location, offset, length = entries.get("location"), entries.get("offset", "0"), entries.get("length", "")
        if self._path is None or not location or "\0" in location or not _RANGE.fullmatch(f"{offset} {length}"):
            return None
        if location not in self._folders:
            self._folders[location] = os.path.realpath(self._path.parent / location)
        return self._folders[location], int(offset), int(length or needed_bytes(tensor) or 0)

    def range(self, data: Data | None) -> _Range | None:
        """Return the part of a file with external data: real path, offset, bytes; None for other data."""
        if not isinstance(data, ExternalSlice) or self._path is None:
            return None
        return os.path.realpath(self._path.parent / data.location), data.offset, data.length

    def content(self, tensor: Tensor) -> Hashable:
        """Return the key of `onnxjson.diffing.matching.contents.content`, with external bytes read."""
        if not is_external(tensor):
            return content(tensor)
        data = self.data(tensor)
        if data is None:
            return content(tensor)
        if (place := self.range(data)) in self._shared:
            return (tensor.data_type, tensor.dims, place)
        try:
            return content(msgspec.structs.replace(tensor, raw_data=data, external_data=(), data_location=None))
        except OnnxJsonError as error:
            self.fail(tensor, error)
            return content(tensor)

    def fail(self, tensor: Tensor, reason: object) -> None:
        """Record that the bytes of a tensor could not be read."""
        of_file = self._refused.setdefault(location_of(tensor) or tensor.name or "", {})
        of_file.setdefault((tensor.name, tensor.external_data), str(reason))

    def problems(self) -> list[str]:
        """Return one message for each file whose tensors could not be read."""
        messages = []
        for reasons in self._refused.values():
            others = len(reasons) - 1
            more = f" (the same for {counted(others, 'more tensor')} in that file)" if others else ""
            messages.append(f"weights not compared: {self._called}: {next(iter(reasons.values()))}{more}")
        return messages


class Measure:
    """Statistics of the differences between the elements of two constants."""

    def __init__(self, rtol: float, atol: float) -> None:
        self.count = self.changed = self.odd = 0
        """Number of elements; of unequal ones; of unequal ones where one is not finite."""
        self.absolute = self.relative = 0.0
        self.zeros = [0, 0]
        self.beyond = 0
        """Number of elements that differ by more than the tolerance."""
        self._rtol = rtol
        self._atol = atol

    def add(self, one: "NDArray[Any]", other: "NDArray[Any]") -> None:
        """Add the next elements of both, arrays of equal size."""
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
        # float64 cannot represent all integers of 64 bits.
        is_long = before.dtype.kind in "iu" and before.dtype.itemsize == 8
        wide = numpy.complex128 if before.dtype.kind == "c" else numpy.longdouble if is_long else numpy.float64
        before, after = before[finite].astype(wide), after[finite].astype(wide)
        if not before.size:
            return
        gaps = numpy.abs(after - before)
        self.absolute = max(self.absolute, float(gaps.max()))
        size = numpy.abs(before)
        with numpy.errstate(divide="ignore"):
            self.relative = max(self.relative, float((gaps / size).max()))  # infinite where an element was zero
        self.beyond += int(numpy.count_nonzero(gaps > self._atol + self._rtol * size))

    @property
    def is_within(self) -> bool:
        """Whether all elements are within the tolerance."""
        return not self.odd and not self.beyond


def measure(one: Tensor, other: Tensor, data: Data, other_data: Data, rtol: float = 0.0, atol: float = 0.0) -> Measure:
    """Compare the elements of two constants of equal size, given as in ``raw_data``."""
    import numpy

    measure = Measure(rtol, atol)
    with numpy.errstate(all="ignore"):
        for before, after in side_by_side(number_arrays(one, data), number_arrays(other, other_data)):
            measure.add(before, after)
    return measure


def side_by_side(
    ones: "Iterator[NDArray[Any]]", others: "Iterator[NDArray[Any]]"
) -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
    """Yield pieces of equal size of two sequences of elements, up to the end of the shorter one."""
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


def number_arrays(tensor: Tensor, data: Data) -> "Iterator[NDArray[Any]]":
    """Yield the elements as numbers; see `onnxjson.model.tensors.numbers`."""
    return tensors.numbers(tensor.data_type or 0, data, elements.element_count(tensor.dims))


def order_free_hash(data: Data, data_type: int) -> int:
    """Return a hash that does not depend on the order of the elements: the sum of 64-bit mixes of their bits."""
    import numpy

    from onnxjson.diffing.matching.labels import mix  # loads numpy

    size = BITS[data_type]
    word = f"<u{size // 8}" if size in (8, 16, 32, 64) else "<u8" if size == 128 else "<u1"
    total = numpy.uint64(0)
    with numpy.errstate(over="ignore"):
        for piece in even_pieces(data):
            words = numpy.frombuffer(piece, word).astype(numpy.uint64)
            total += mix(words + numpy.uint64(0x9E3779B97F4A7C15)).sum(dtype=numpy.uint64)
    return int(total)


def find_permutation(one: Tensor, other: Tensor, data: Data, other_data: Data) -> str | None:
    """Return the permutation of axes that turns one constant into the other, such as ``1, 0``; None if none does."""
    import itertools

    import numpy

    rank = len(one.dims)
    if not 2 <= rank <= 5 or elements.element_count(one.dims) > _MOST_PERMUTED:
        return None
    data_type = one.data_type or 0
    if BITS[data_type] < 8:
        return None
    before, after = [
        numpy.concatenate(list(tensors.arrays(data_type, payload, elements.element_count(tensor.dims)))).reshape(
            tensor.dims
        )
        for tensor, payload in ((one, data), (other, other_data))
    ]
    bits = f"V{before.dtype.itemsize}"
    for axes in itertools.permutations(range(rank)):
        if tuple(one.dims[axis] for axis in axes) == other.dims and axes != tuple(range(rank)):
            moved = numpy.ascontiguousarray(before.transpose(axes))
            if moved.view(bits).tobytes() == after.tobytes():
                return ", ".join(map(str, axes))
    return None
