"""Constants from and to numpy arrays: those in .npy and .npz files, and their elements as those of another dtype.

`numpy.save` writes dtypes that numpy lacks (bfloat16, float8, 6-, 4- and 2-bit types) as raw bytes of their size
(``V2``, ``V1``), and so does this module: ``numpy.load("x.npy").view(ml_dtypes.bfloat16)`` returns the values. Such an
array is read as any dtype of that size, bit by bit; any other array by its values.
"""

import errno
import io
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from onnxjson.codecs.canonical_values import is_text
from onnxjson.model import elements, tensors
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS, BOOL, COMPLEX_PARTS, DATA_TYPE_NAMES, DATA_TYPES, FLOATS, STRING
from onnxjson.model.errors import DecodeError, EncodeError, LimitError, MissingInputError, OnnxJsonError
from onnxjson.model.limits import UNPACKED_BYTES
from onnxjson.model.payloads import Data, even_pieces, pieces
from onnxjson.model.scalars import LARGEST_PLAIN
from onnxjson.model.tensors import numpy_dtype, unpack
from onnxjson.storage.constant_reading import Encoded, Kind, place_in
from onnxjson.storage.constant_values import InexactError, Packed, pack
from onnxjson.storage.identity import open_source, reading_error
from onnxjson.storage.saving import Sink

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_MOST_PACKED: Final = 100

_BLOCK: Final = 1 << 20
"""Number of elements that numpy converts at once."""

_BATCH: Final = 4096
"""Number of elements that are converted one by one before their bits are stored."""

_FLOAT32: Final = 1
_ROUNDED_BY_NUMPY: Final = (_FLOAT32, 10)
"""Floats to which numpy rounds a float64 in one step."""

_WITHOUT_SIGN: Final = 24
"""The float dtype whose smallest values ml_dtypes rounds differently."""


def read_array(path: Path) -> "NDArray[Any]":
    """Read the array in ``FILE.npy``, the only one in ``FILE.npz``, or the one that ``FILE.npz:NAME`` names.

    Arrays of .npy files stay in the file until they are used. DecodeError if there is no array, or one of Python
    objects.
    """
    import numpy

    file, member = _file_and_member(path)
    name = visible(str(file), None)
    with opened_arrays(file) as opened:
        if opened.read(2) != b"PK":
            mapped: NDArray[Any] = numpy.load(file, mmap_mode="r", allow_pickle=False)
            return mapped
        opened.seek(0)
        with numpy.load(opened, allow_pickle=False) as loaded:
            chosen = _chosen(loaded.files, member, name)
            _require_no_bomb(
                loaded.zip.getinfo(f"{chosen}.npy" if f"{chosen}.npy" in loaded.zip.NameToInfo else chosen)
            )
            array = loaded[chosen]
        if not isinstance(array, numpy.ndarray):
            raise TypeError("its content is not an array")
        return array


def array_names(file: Path) -> list[str]:
    """Return the names of the arrays in a .npz file; errors as `opened_arrays`."""
    import numpy

    with opened_arrays(file) as opened, numpy.load(opened, allow_pickle=False) as loaded:
        return list(loaded.files)


@contextmanager
def opened_arrays(file: Path) -> Iterator[BinaryIO]:
    """Open a file for numpy; every error of numpy and zipfile becomes one of this package.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: numpy refuses its content.
    """
    source = open_source(file)
    with open(source.fileno(), "rb", closefd=False) as opened:
        try:
            yield opened
        except (OnnxJsonError, MemoryError):
            raise
        except Exception as error:  # numpy, zipfile and decompression raise many kinds
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise reading_error(file, error) from error
            name = visible(str(file), None)
            raise DecodeError(f"{name} does not have a readable array: {_reason(error)}") from error


def _require_no_bomb(packed: zipfile.ZipInfo) -> None:
    if packed.file_size > UNPACKED_BYTES and packed.file_size > _MOST_PACKED * packed.compress_size:
        raise LimitError(
            f"{visible(packed.filename)} has {packed.compress_size:,} bytes, and would need {packed.file_size:,} in "
            f"memory; arrays of more than {UNPACKED_BYTES:,} bytes must not shrink to less than a hundredth; save it "
            "without compression, with numpy.savez"
        )


def _reason(error: Exception) -> str:
    """The reason why numpy cannot read a file, without its advice to unpickle it, which would run code of the file."""
    text = str(error)
    if "pickle" in text or "Python objects" in text:
        return "it is not a numpy file, or has Python objects"
    return visible(text.splitlines()[0], 200) if text else "it is cut off"


def _file_and_member(path: Path) -> tuple[Path, str | None]:
    head, mark, member = str(path).partition(".npz:")
    return (Path(head + ".npz"), member) if mark and not path.exists() else (path, None)


def _chosen(names: list[str], member: str | None, file: str) -> str:
    if member is None and len(names) == 1:
        return names[0]
    if member in names:
        return member or ""
    shown = listed([visible(each) for each in names], 10)
    problem = "has several arrays; choose one" if member is None else f"has no array {visible(member)!r}"
    raise MissingInputError(f"{file} {problem}: {file}:NAME, where NAME is one of {shown or '(none)'}")


def from_array(
    array: "NDArray[Any]", kind: Kind | None = None, *, name: str | None = None, lossy: bool = False
) -> Encoded:
    """Build a constant from an array of a dtype that ONNX has, of ``str``, or of raw bytes; EncodeError if none fits.

    `kind` has its dtype and dims, by default those of the array; the number of elements must be the same. With `lossy`,
    a value that the dtype cannot represent becomes the nearest finite one.
    """
    dims = array.shape if kind is None or kind.dims is None else kind.dims
    if dims != array.shape:
        if array.size != elements.element_count(dims) or len(array.shape) > 1:
            raise EncodeError(f"the array has the shape {list(array.shape)}, expected {kind}")
        array = array.reshape(dims)
    if kind is not None and _is_raw(array):
        array = _as_dtype(array, kind)
    try:
        data_type = _own_type(array)
    except TypeError as error:
        raise EncodeError(f"the array: {error}") from None
    if kind is None or kind.data_type == data_type:
        return Encoded(tensors.from_numpy(array, name))
    packed = _converted(array, data_type, kind.data_type, place_in(dims), lossy=lossy)
    tensor = Tensor(dims=dims, data_type=kind.data_type, raw_data=packed.data, name=name)
    return Encoded(tensor, packed.changed, packed.first)


def _is_raw(array: "NDArray[Any]") -> bool:
    import numpy

    return array.dtype.type is numpy.void and array.dtype.names is None


def _own_type(array: "NDArray[Any]") -> int:
    if array.dtype.kind in "OUST":
        return STRING
    if _is_raw(array):
        size = array.dtype.itemsize
        raise TypeError(f"its elements are {size} raw bytes each; choose their dtype, such as bfloat16")
    data_type = DATA_TYPES.get(array.dtype.name)
    if data_type not in BITS:
        raise TypeError(f"ONNX has no data type for {array.dtype}; convert it with astype first")
    return data_type


def _as_dtype(array: "NDArray[Any]", kind: Kind) -> "NDArray[Any]":
    import numpy

    if kind.data_type == STRING or numpy_dtype(kind.data_type).itemsize != array.dtype.itemsize:
        sizes = f"{array.dtype.itemsize} raw bytes each, which do not fit {DATA_TYPE_NAMES[kind.data_type]}"
        raise EncodeError(f"the elements of the array are {sizes}")
    return numpy.ascontiguousarray(array).view(numpy_dtype(kind.data_type)).reshape(array.shape)


def _converted(array: "NDArray[Any]", source: int, target: int, place: Callable[[int], str], *, lossy: bool) -> Packed:
    if (
        STRING in (source, target)
        or (source in COMPLEX_PARTS) != (target in COMPLEX_PARTS)
        or (target == BOOL and source in FLOATS)
    ):
        names = f"{DATA_TYPE_NAMES[source]} into {DATA_TYPE_NAMES[target]}"
        raise EncodeError(f"the array cannot be converted from {names}; convert it with astype first")
    flat = array.reshape(-1)
    if source in COMPLEX_PARTS:
        parts = flat.view(flat.real.dtype)
        return _converted(
            parts, COMPLEX_PARTS[source], COMPLEX_PARTS[target], lambda index: place(index // 2), lossy=lossy
        )
    if source == BOOL:
        flat, source = flat.view("u1"), 2
    return _cast(flat, source, target, place, lossy=lossy)


def _cast(flat: "NDArray[Any]", source: int, target: int, place: Callable[[int], str], *, lossy: bool) -> Packed:
    """Convert elements by numpy where that is certainly exact, the others one by one."""
    import numpy

    cast = numpy.empty(flat.shape, numpy_dtype(target))
    patterns = cast.view(f"u{cast.dtype.itemsize}")
    changed, first = 0, ""
    for start in range(0, flat.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        with numpy.errstate(all="ignore"):
            cast[block], exact, rounded = _by_numpy(flat[block], source, target)
        if lossy and rounded.any():
            changed += int(rounded.sum())
            index = start + int(numpy.argmax(rounded))
            first = first or f"{place(index)} was {flat[index]} and is {cast[index]}"
            exact |= rounded
        doubtful = start + numpy.flatnonzero(~exact)
        for few in range(0, len(doubtful), _BATCH):
            indices = doubtful[few : few + _BATCH]
            packed = _one_by_one(flat, source, indices, target, place, lossy=lossy)
            patterns[indices] = _patterns(packed.data, len(indices), target)
            changed, first = changed + packed.changed, first or packed.first
    raw = tensors.from_numpy(cast).raw_data
    return Packed(raw if isinstance(raw, bytes) else b"", changed, first)


def _patterns(data: bytes, count: int, data_type: int) -> "NDArray[Any]":
    import numpy

    size = BITS[data_type]
    if size < 8:
        return numpy.array(elements.split_bits(data, count, size), numpy.uint8)
    return numpy.frombuffer(data, f"<u{size // 8}")


def _by_numpy(
    flat: "NDArray[Any]", source: int, target: int
) -> "tuple[NDArray[Any], NDArray[numpy.bool[Any]], NDArray[numpy.bool[Any]]]":
    """Convert elements by numpy -> the elements, where they are certainly exact, where they are the nearest instead."""
    import numpy

    wide: NDArray[Any]
    if source in FLOATS:
        # A float64 can represent every float; ml_dtypes cannot convert each small dtype to each other.
        wide = flat.astype(numpy.float64)
    else:
        wide = flat.astype(numpy.uint64 if flat.dtype == numpy.uint64 else numpy.int64)
    plain = (wide >= -LARGEST_PLAIN) & (wide <= LARGEST_PLAIN) if source in FLOATS or target in FLOATS else wide == wide
    if target in FLOATS:
        cast, exact, finite = _as_floats(wide.astype(numpy.float64), target)
        known = finite if source in FLOATS else finite & plain
        return cast, exact & known, ~exact & known & (target != _WITHOUT_SIGN)
    low, high = (0, 1) if target == BOOL else elements.integer_range(target)
    if source in FLOATS:
        near = numpy.clip(numpy.rint(wide), low, high)
        known = plain | (numpy.isfinite(wide) & (BITS[target] < 64))
    else:
        limits = numpy.iinfo(wide.dtype)
        near = numpy.clip(wide, max(low, int(limits.min)), min(high, int(limits.max)))
        known = plain
    same = near == wide
    return near.astype(numpy_dtype(target)), same & known, ~same & known & (target != BOOL)


def _as_floats(
    numbers: "NDArray[numpy.float64]", target: int
) -> "tuple[NDArray[Any], NDArray[numpy.bool[Any]], NDArray[numpy.bool[Any]]]":
    """Convert numbers to a float dtype -> the elements, where they are equal bit by bit, where both are finite."""
    import numpy

    narrow = BITS[target] < 32 and target not in _ROUNDED_BY_NUMPY
    cast = (_odd_float32(numbers) if narrow else numbers).astype(numpy_dtype(target))
    exact = numpy.asarray(cast.astype(numpy.float64).view("u8") == numbers.view("u8"))
    return cast, exact, numpy.asarray(numpy.isfinite(cast) & numpy.isfinite(numbers))


def _odd_float32(numbers: "NDArray[numpy.float64]") -> "NDArray[numpy.float32]":
    """Round float64 to odd float32, so that rounding again to a dtype of 22 bits or fewer yields the nearest.

    ml_dtypes itself converts a float64 to the nearest float32 first, which rounds some numbers twice. Source:
    Boldo and Melquiond, "When double rounding is odd" (2005).
    """
    import numpy

    nearest = numbers.astype(numpy.float32)
    bits = nearest.view(numpy.uint32)
    wide = nearest.astype(numpy.float64)
    bits -= (numpy.abs(wide) > numpy.abs(numbers)).astype(numpy.uint32)
    bits |= ((wide != numbers) & ~numpy.isnan(numbers)).astype(numpy.uint32)
    return nearest


def _one_by_one(
    flat: "NDArray[Any]", source: int, indices: "NDArray[Any]", target: int, place: Callable[[int], str], *, lossy: bool
) -> Packed:
    values: list[object] = []
    changed, first = 0, ""
    for index in indices.tolist():
        value = _as_json(flat[index], source)
        if isinstance(value, str) and value.startswith("NaN("):
            if not lossy:
                names = f"{DATA_TYPE_NAMES[source]} with bits that {DATA_TYPE_NAMES[target]} does not have"
                raise InexactError(f"{place(index)}: {value} is a NaN of {names}", "NaN")
            changed, first = changed + 1, first or f"{place(index)} was {value} and is NaN"
            value = "NaN"
        values.append(value)
    packed = pack(target, values, lambda at: place(int(indices[at])), lossy=lossy, exact=True)
    return Packed(packed.data, packed.changed + changed, packed.first or first)


def _as_json(element: Any, data_type: int) -> object:
    form = FLOATS.get(data_type)
    if form is None:
        return int(element)
    number = float(element)
    if math.isfinite(number):
        return number
    bits = int.from_bytes(element.astype(numpy_dtype(data_type)).tobytes(), "little")
    return form.text(bits).strip('"')


def write_npy(tensor: Tensor, sink: Sink) -> None:
    """Write a .npy file of a tensor whose elements are in ``raw_data`` or ``string_data``."""
    for piece in _npy(tensor):
        sink.write(piece)


def write_npz(tensors: Sequence[Tensor], sink: Sink) -> None:
    """Write a .npz file as `numpy.savez`: an array for each tensor, named after it; EncodeError if numpy cannot."""
    names = [tensor.name or "" for tensor in tensors]
    for name in names:
        if names.count(name) > 1:
            raise EncodeError(f"two tensors have the name {visible(name)!r}, and a .npz can have only one")
        if "\0" in name or "\\" in name or ".." in name.split("/") or not is_text(name):
            raise EncodeError(f"{visible(name)!r} cannot be the name of an array in a .npz; write it to a .npy")
    with zipfile.ZipFile(_Stream(sink), "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in zip(names, tensors, strict=True):
            # A fixed time, so that equal tensors become equal files.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                for piece in _npy(tensor):
                    member.write(piece)


class _Stream(io.RawIOBase):
    """A sink as a stream for `zipfile`, written from start to end."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        self._sink.write(content)
        return len(content)


def _npy(tensor: Tensor) -> Iterator[bytes]:
    if tensor.data_type == STRING:
        yield from _npy_of_strings(tensor)
        return
    data_type = tensor.data_type or 0
    dtype = numpy_dtype(data_type)
    # numpy saves one dtype of ml_dtypes, float8_e5m2, as "<f1", which it cannot load again.
    yield _header(tensor.dims, dtype.str if dtype.type.__module__ == "numpy" else f"<V{dtype.itemsize}")
    data = tensor.raw_data if tensor.raw_data is not None else b""
    size = BITS[data_type]
    yield from pieces(data) if size >= 8 else _unpacked(data, math.prod(tensor.dims), size, data_type)


def _unpacked(data: Data, count: int, size: int, data_type: int) -> Iterator[bytes]:
    for piece in even_pieces(data):
        here = min(count, len(piece) * 8 // size)
        yield unpack(piece, here, size, numpy_dtype(data_type)).tobytes()
        count -= here


def _npy_of_strings(tensor: Tensor) -> Iterator[bytes]:
    import numpy

    try:
        texts = [item.decode() for item in tensor.string_data]
    except UnicodeDecodeError:
        raise EncodeError("a string is not UTF-8, which a .npy cannot represent; write a .json") from None
    if any(text.endswith("\0") for text in texts):
        raise EncodeError("a string ends with a zero character, which numpy would drop; write a .json")
    width = max(map(len, texts), default=0) or 1
    array = numpy.array(texts, dtype=f"<U{width}")
    yield _header(tensor.dims, array.dtype.str)
    yield array.tobytes()


def _header(dims: tuple[int, ...], descr: str) -> bytes:
    from numpy.lib import format as npy_format

    header = io.BytesIO()
    npy_format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": dims})
    return header.getvalue()
