"""Contents of TensorProtos that fit their dtype and dims, in every storage field, and contents that almost fit."""

import struct
from collections.abc import Callable
from math import prod
from random import Random
from typing import NamedTuple

from onnx import TensorProto

from tests.generation import values
from tests.generation.wire_encoding import signed, varint


class Layout(NamedTuple):
    """How the elements of a dtype are stored."""

    bits: int
    """Bits of one element in raw_data."""
    typed_field: str
    signed: bool = False


LAYOUTS = {
    "FLOAT": Layout(32, "float_data"),
    "UINT8": Layout(8, "int32_data"),
    "INT8": Layout(8, "int32_data", signed=True),
    "UINT16": Layout(16, "int32_data"),
    "INT16": Layout(16, "int32_data", signed=True),
    "INT32": Layout(32, "int32_data", signed=True),
    "INT64": Layout(64, "int64_data", signed=True),
    "BOOL": Layout(8, "int32_data"),
    "FLOAT16": Layout(16, "int32_data"),
    "DOUBLE": Layout(64, "double_data"),
    "UINT32": Layout(32, "uint64_data"),
    "UINT64": Layout(64, "uint64_data"),
    "COMPLEX64": Layout(64, "float_data"),
    "COMPLEX128": Layout(128, "double_data"),
    "BFLOAT16": Layout(16, "int32_data"),
    "FLOAT8E4M3FN": Layout(8, "int32_data"),
    "FLOAT8E4M3FNUZ": Layout(8, "int32_data"),
    "FLOAT8E5M2": Layout(8, "int32_data"),
    "FLOAT8E5M2FNUZ": Layout(8, "int32_data"),
    "UINT4": Layout(4, "int32_data"),
    "INT4": Layout(4, "int32_data"),
    "FLOAT4E2M1": Layout(4, "int32_data"),
    "FLOAT8E8M0": Layout(8, "int32_data"),
    "UINT2": Layout(2, "int32_data"),
    "INT2": Layout(2, "int32_data"),
    "FLOAT6E2M3": Layout(6, "int32_data"),
    "FLOAT6E3M2": Layout(6, "int32_data"),
}
"""By the enum's names; STRING and UNDEFINED have none. From the comments of TensorProto in onnx.proto."""

DATA_TYPES: tuple[tuple[int, str], ...] = tuple(
    (one.number, one.name) for one in TensorProto.DataType.DESCRIPTOR.values
)
BY_NUMBER = {number: LAYOUTS[name] for number, name in DATA_TYPES if name in LAYOUTS}
STRING: int = TensorProto.STRING
BOOL: int = TensorProto.BOOL
_FLOAT32_UNITS = (TensorProto.FLOAT, TensorProto.COMPLEX64)
_FLOAT64_UNITS = (TensorProto.DOUBLE, TensorProto.COMPLEX128)
_SIX_BIT = (TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2)
_HALVES = (
    0x0000, 0x3C00, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0x7E01, 0x0001, 0x7BFF, 0x3F80, 0x7F80, 0x7FC0,
    0x7F81,
)  # fmt: skip
"""float16 and bfloat16: zeros, ones, infinities, NaNs quiet and signalling, the smallest and the largest."""


def raw_size(dtype: int, count: int) -> int:
    """Bytes of raw_data for `count` elements."""
    return (count * BY_NUMBER[dtype].bits + 7) // 8


def dims(rng: Random, longest: int) -> list[int]:
    """Dims of at most `longest` elements; rank 0 to 4, seldom 9, seldom with a zero."""
    choice = rng.random()
    if choice < 0.15:
        return []
    rank = 9 if choice > 0.985 else rng.choice((1, 1, 1, 2, 2, 3, 4))
    found: list[int] = []
    for _ in range(rank):
        room = max(1, longest // max(1, prod(found)))
        found.append(rng.randint(1, max(1, min(room, 80 if rank == 1 else 6))))
    if choice > 0.95:
        found[rng.randrange(rank)] = 0
    return found


def raw(rng: Random, dtype: int, count: int, odd: bool) -> bytes:
    """raw_data of `count` elements; padding bits are zero and bools 0 or 1 unless `odd`."""
    layout = BY_NUMBER[dtype]
    size = raw_size(dtype, count)
    if not odd and dtype == BOOL:
        return bytes(rng.choices((0, 1), k=count))
    if dtype in _FLOAT32_UNITS:
        return b"".join(_units(rng, values.float32, size // 4))
    if dtype in _FLOAT64_UNITS:
        return b"".join(_units(rng, values.float64, size // 8))
    if layout.bits == 16 and not layout.signed and rng.random() < 0.5:
        return struct.pack(f"<{count}H", *rng.choices(_HALVES, k=count))
    if layout.bits >= 32 and rng.random() < 0.7:
        low = -3 if layout.signed else 0
        return b"".join(
            rng.randint(low, 9).to_bytes(layout.bits // 8, "little", signed=layout.signed) for _ in range(count)
        )
    data = rng.randbytes(size)
    padding = size * 8 - count * layout.bits
    if padding and not odd:
        data = data[:-1] + bytes([data[-1] & 0xFF >> padding])
    return data


def _units(rng: Random, draw: Callable[[Random, bool], bytes], count: int) -> list[bytes]:
    odd = rng.random() < 0.4
    return [draw(rng, odd) for _ in range(count)]


def typed(rng: Random, dtype: int, count: int, odd: bool) -> tuple[str, bytes]:
    """The typed field of `dtype` and its packed payload for `count` elements; entries are out of range if `odd`."""
    layout = BY_NUMBER[dtype]
    if layout.typed_field in ("float_data", "double_data"):
        return layout.typed_field, raw(rng, dtype, count, odd)
    if layout.bits < 8 and dtype not in _SIX_BIT:
        entries = list(raw(rng, dtype, count, odd))
    elif odd:
        return layout.typed_field, b"".join(signed(values.int32(rng, odd=True)) for _ in range(count))
    else:
        entries = [_element(rng, dtype, layout) for _ in range(count)]
    return layout.typed_field, b"".join(signed(entry) if entry < 0 else varint(entry) for entry in entries)


def _element(rng: Random, dtype: int, layout: Layout) -> int:
    if dtype == BOOL:
        return rng.getrandbits(1)
    bits = rng.choice((2, layout.bits))
    number = rng.getrandbits(bits)
    return number - (1 << bits) if layout.signed and number >> bits - 1 else number
