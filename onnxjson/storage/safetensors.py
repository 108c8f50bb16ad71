"""Files of https://github.com/huggingface/safetensors: a header, and the bytes of named tensors after it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Graph, Model, Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.errors import DecodeError, LimitError
from onnxjson.model.payloads import Data, FileSlice, SourceFile
from onnxjson.model.tensors import needed_bytes

ENDING: Final = ".safetensors"
INDEX_ENDING: Final = ".safetensors.index.json"
"""Ending of the name of an index: a list of such files and of their tensors."""

CODES: Final = {
    DATA_TYPES[name]: code
    for name, code in {
        "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
        "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2": "F8_E5M2", "float8_e5m2fnuz": "F8_E5M2FNUZ",
        "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn": "F4", "bool": "BOOL", "complex64": "C64",
        **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    }.items()
}  # fmt: skip
"""Data types that ONNX and the format have, and their names in the format.

Both store the first of two float4 elements in the low half of a byte. The packing of 6-bit floats is not defined.
"""

_IR_VERSION: Final = 10
_LONGEST: Final = 100_000_000
"""Most bytes of a header, as in the program of the format."""


class _Entry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def can_hold(tensor: Tensor) -> bool:
    """Whether the format has the dtype and, since its readers expect this of float4, each row is whole bytes."""
    code = CODES.get(tensor.data_type or 0)
    return code is not None and (code != "F4" or (bool(tensor.dims) and tensor.dims[-1] % 2 == 0))


def header(tensors: Sequence[tuple[Tensor, Data]], alignment: int) -> bytes:
    """Return the start of a file with these tensors, one directly after the other; its length is aligned."""
    entries: dict[str, Any] = {}
    end = 0
    for tensor, raw in tensors:
        code = CODES[tensor.data_type or 0]
        entries[tensor.name or ""] = _Entry(code, tensor.dims, (end, end + len(raw)))
        end += len(raw)
    text = msgspec.json.encode(entries)
    text += b" " * (-(len(text) + 8) % alignment)
    return len(text).to_bytes(8, "little") + text


def read(source: SourceFile, name: str) -> Model:
    """Return a model without nodes whose constants are the tensors of a file; only the header is read.

    Raises:
        DecodeError: it is not such a file; `name` begins messages.
        LimitError: the header is too long.
    """
    length = int.from_bytes(source.read_at(0, min(source.size, 8)), "little")
    if source.size < 8 or length > source.size - 8:
        raise DecodeError(f"{name} is not a safetensors file, or is cut off")
    if length > _LONGEST:
        raise LimitError(f"the header of {name} has {length:,} bytes; the format has no more than {_LONGEST:,}")
    try:
        entries = msgspec.json.decode(source.read_at(8, length), type=dict[str, msgspec.Raw])
        entries.pop("__metadata__", None)
        decoded = {key: msgspec.json.decode(entry, type=_Entry) for key, entry in entries.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"the header of {name} is not valid: {visible(str(error))}") from None
    types = {code: number for number, code in CODES.items()}
    constants, size = [], source.size - 8 - length
    places = sorted([(*entry.data_offsets, key) for key, entry in decoded.items()])
    for (_, end, key), (start, _, other) in pairwise(places):
        if start < end:
            raise DecodeError(f"tensors {visible(key)!r} and {visible(other)!r} of {name} overlap")
    for key, entry in decoded.items():
        start, end = entry.data_offsets
        blank = Tensor(name=key, data_type=types.get(entry.dtype), dims=entry.shape)
        shown = f"tensor {visible(key)!r} of {name}"
        if entry.dtype in ("F6_E2M3", "F6_E3M2"):
            raise DecodeError(f"{shown} has the dtype {entry.dtype!r}, and the format does not define how 6-bit "
                              "elements are packed into bytes: store it as 'F8_E4M3' or 'F16'")  # fmt: skip
        if entry.dtype not in types:
            raise DecodeError(f"{shown} has the dtype {visible(entry.dtype)!r}, which ONNX does not have")
        if not 0 <= start <= end <= size:
            raise DecodeError(f"{shown} has bytes {start:,} to {end:,}, but there are {size:,}")
        if needed_bytes(blank) != end - start or element_count(entry.shape) * BITS[types[entry.dtype]] % 8:
            raise DecodeError(f"{shown} has {end - start:,} bytes, which do not fit its dtype and shape")
        constants.append(msgspec.structs.replace(blank, raw_data=FileSlice(source, 8 + length + start, end - start)))
    return Model(ir_version=_IR_VERSION, graph=Graph(name=name, initializer=tuple(constants)))


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def read_index(source: SourceFile, name: str, opened: Callable[[str, str], SourceFile]) -> Model:
    """Return a model with the constants of all files that an index lists; `opened` is `Resolver.opened`.

    Raises:
        DecodeError: it is not such an index, or a file does not have its tensors.
        OnnxJsonError: see `read`; and what `opened` raises.
    """
    if source.size > _LONGEST:
        raise LimitError(f"{name} has {source.size:,} bytes; an index has at most {_LONGEST:,}")
    try:
        listed = msgspec.json.decode(source.read_at(0, source.size), type=_Index).weight_map
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"{name} is not an index of safetensors files: {visible(str(error))}") from None
    constants: list[Tensor] = []
    for file in dict.fromkeys(listed.values()):
        graph = read(opened(file, f"{visible(file)!r} in {name}"), visible(file)).graph or Graph()
        constants += [each for each in graph.initializer if listed.get(each.name or "") == file]
    missing = sorted(listed.keys() - {each.name for each in constants})
    if missing:
        raise DecodeError(f"{name} lists the tensor {visible(missing[0])!r}, which {visible(listed[missing[0]])!r} "
                          "does not contain")  # fmt: skip
    return Model(ir_version=_IR_VERSION, graph=Graph(name=name, initializer=tuple(constants)))
