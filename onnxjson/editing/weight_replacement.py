"""Weights replaced by zeros or random numbers, for models that are shared or profiled without their weights."""

import hashlib
from collections.abc import Iterator
from typing import Final, Literal

from msgspec.structs import replace

from onnxjson.model.document import Model, Tensor
from onnxjson.model.dtypes import DATA_TYPES, DTYPES
from onnxjson.model.elements import element_count
from onnxjson.model.payloads import CHUNK, Payload
from onnxjson.model.tensors import needed_bytes, numpy_dtype
from onnxjson.model.walking import replace_records

Filling = Literal["zeros", "random"]

SMALLEST: Final = 64
"""Number of elements up to which a tensor stays: scales of a layer, axes, shapes."""

_KEPT: Final = {DATA_TYPES[name] for name in ("int32", "int64", "bool", "string")}
"""Dtypes of shapes, indices and masks, without which a model does not run."""
_LARGEST: Final = 0.1


def without_weights(model: Model, filling: Filling, seed: int) -> tuple[Model, int]:
    """Return a model with other elements in its big tensors, and the number of these tensors; nothing is read."""
    count = 0

    def filled(tensor: Tensor) -> Tensor:
        nonlocal count
        length = needed_bytes(tensor)
        dtype = DTYPES.get(tensor.data_type or 0)
        if dtype is None or length is None or dtype.number in _KEPT or element_count(tensor.dims) <= SMALLEST:
            return tensor
        count += 1
        is_random = filling == "random"
        data = _Filled(length, dtype.number, f"{seed}:{count}") if is_random else _Zeros(length)
        blank = Tensor(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
        return replace(blank, doc_string=tensor.doc_string, metadata_props=tensor.metadata_props)

    return replace_records(model, Tensor, filled), count


class _Zeros(Payload):
    """Zeros."""

    __slots__ = ()

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, self.length, CHUNK):
            yield bytes(min(CHUNK, self.length - start))


class _Filled(Payload):
    """Random elements: floats from 0 to 0.1, so that scales and variances are valid; any bits of other dtypes."""

    __slots__ = ("_data_type", "_seed")

    def __init__(self, length: int, data_type: int, seed: str) -> None:
        super().__init__(length)
        self._data_type = data_type
        self._seed = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little")

    def chunks(self) -> Iterator[bytes]:
        import numpy

        numbers = numpy.random.default_rng(self._seed)
        is_float = DTYPES[self._data_type].kind == "float" and DTYPES[self._data_type].bits % 8 == 0
        for start in range(0, self.length, CHUNK):
            length = min(CHUNK, self.length - start)
            if is_float:
                dtype = numpy_dtype(self._data_type)
                yield (numbers.random(length // dtype.itemsize, numpy.float32) * _LARGEST).astype(dtype).tobytes()
            else:
                yield numbers.bytes(length)
