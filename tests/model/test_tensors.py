"""Tensors: raw bytes from every field and back, numpy arrays both ways, against onnx's own helpers."""

import struct
from typing import Any

import ml_dtypes
import numpy
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onnxjson.model import elements, tensors
from onnxjson.model.document import Segment, StringStringEntry, Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPE_NAMES, STORAGE
from onnxjson.model.errors import DecodeError, WireError
from onnxjson.model.payloads import Payload
from onnxjson.model.scalars import ElementError

TYPES = sorted(BITS)
CODES = "bBhHiIqQ"


def record(proto: TensorProto) -> Tensor:
    """The record of a TensorProto: payloads, dims and dtype."""
    return Tensor(
        dims=tuple(proto.dims),
        data_type=proto.data_type,
        name=proto.name,
        raw_data=proto.raw_data if proto.HasField("raw_data") else None,
        float_data=struct.pack(f"<{len(proto.float_data)}f", *proto.float_data),
        double_data=struct.pack(f"<{len(proto.double_data)}d", *proto.double_data),
        int32_data=elements.varints(proto.int32_data),
        int64_data=elements.varints(proto.int64_data),
        uint64_data=elements.varints(proto.uint64_data),
        string_data=tuple(proto.string_data),
    )


def random_array(data_type: int, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    """Elements of every kind, finite."""
    name = DATA_TYPE_NAMES[data_type]
    dtype = numpy.dtype(getattr(ml_dtypes, name, None) or name)
    random = numpy.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if name.startswith(("int", "uint")):
        bits = BITS[data_type]
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "i" else (0, (1 << bits) - 1)
        wide = random.integers(low, high, shape, dtype=numpy.uint64 if name == "uint64" else numpy.int64, endpoint=True)
        return wide.astype(dtype)
    if name.startswith("complex"):
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    return numpy.abs(random.uniform(0.5, 4, shape)).astype(dtype)


def same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Equal dtype, shape and bytes."""
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@pytest.mark.parametrize("data_type", TYPES, ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 5), (0, 4), (7, 1, 3), (4099,)], ids=str)
def test_typed_storage_as_onnx_makes_it_comes_back(data_type: int, shape: tuple[int, ...]) -> None:
    array = random_array(data_type, shape, data_type)
    typed = record(helper.make_tensor("t", data_type, shape, array.reshape(-1).tolist()))
    raw = record(numpy_helper.from_array(array, "t"))
    stored = tensors.raw_bytes(typed)
    assert stored == (raw.raw_data, STORAGE[data_type])
    field = STORAGE[data_type]
    back = tensors.with_storage(stored[0], data_type, field, array.size)
    assert back == {field: getattr(typed, field)}
    assert tensors.raw_bytes(raw) == (raw.raw_data, None)
    assert tensors.with_storage(stored[0], data_type, None, array.size) == {"raw_data": raw.raw_data}
    assert same(tensors.to_numpy(typed), array)
    assert same(tensors.to_numpy(raw), array)
    assert tensors.from_numpy(array, "t") == raw


@pytest.mark.parametrize("data_type", TYPES, ids=DATA_TYPE_NAMES.get)
def test_arrays_are_those_of_onnx(data_type: int) -> None:
    array = random_array(data_type, (3, 5), data_type)
    proto = numpy_helper.from_array(array)
    assert same(tensors.to_numpy(record(proto)), numpy_helper.to_array(proto))


@pytest.mark.parametrize("data_type", [4, 5, 10, 16, 2, 3, 17, 19, 21, 22, 25, 26], ids=DATA_TYPE_NAMES.get)
def test_every_pattern_comes_back_through_int32_data(data_type: int) -> None:
    size = max(8, BITS[data_type])
    raw = numpy.arange(1 << size, dtype=f"<u{size // 8}").tobytes()
    count = len(raw) * 8 // BITS[data_type]
    tensor = Tensor(dims=(count,), data_type=data_type, **tensors.with_storage(raw, data_type, "int32_data", count))
    assert tensors.raw_bytes(tensor) == (raw, "int32_data")


@pytest.mark.parametrize("data_type", [27, 28], ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("count", range(9))
def test_six_bit_elements_are_one_entry_each(data_type: int, count: int) -> None:
    entries = bytes((11 * index + 5) % 64 for index in range(count))
    tensor = Tensor(dims=(count,), data_type=data_type, int32_data=entries)
    found = tensors.raw_bytes(tensor)
    assert found == (elements.join_bits(entries, 6), "int32_data")
    assert tensors.with_storage(found[0], data_type, "int32_data", count) == {"int32_data": entries}


def test_six_bit_padding_has_no_room_in_entries() -> None:
    with pytest.raises(ElementError, match="padding bits"):
        tensors.with_storage(b"\xff", 27, "int32_data", 1)


def test_a_typed_field_of_another_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="elements of float32 are stored in float_data, not in int32_data"):
        tensors.with_storage(b"", 1, "int32_data", 0)


ONE = struct.pack("<f", 1.0)


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor(dims=(1,), raw_data=ONE),
        Tensor(dims=(1,), data_type=0, raw_data=ONE),
        Tensor(dims=(1,), data_type=99, raw_data=ONE),
        Tensor(dims=(1,), data_type=8, string_data=(b"a",)),
        Tensor(dims=(-1,), data_type=1, raw_data=ONE),
        Tensor(dims=(0, -1), data_type=1, raw_data=b""),
        Tensor(dims=(2,), data_type=1, raw_data=ONE),
        Tensor(dims=(1,), data_type=1, float_data=ONE * 2),
        Tensor(dims=(0,), data_type=1, float_data=ONE),
        Tensor(dims=(1,), data_type=1),
        Tensor(dims=(1,), data_type=1, raw_data=ONE, float_data=ONE),
        Tensor(dims=(1,), data_type=1, float_data=ONE, int64_data=b"\1"),
        Tensor(dims=(1,), data_type=1, int32_data=b"\1"),
        Tensor(dims=(1,), data_type=12, int32_data=b"\1"),
        Tensor(dims=(1,), data_type=1, raw_data=ONE, segment=Segment()),
        Tensor(dims=(1,), data_type=1, raw_data=ONE, data_location=0),
        Tensor(dims=(1,), data_type=1, raw_data=ONE, string_data=(b"",)),
        Tensor(dims=(1,), data_type=1, raw_data=ONE, external_data=(StringStringEntry(),)),
        Tensor(dims=(1,), data_type=1, external_data=(StringStringEntry(),), data_location=1),
        Tensor(dims=(1,), data_type=3, int32_data=elements.varints([300])),
        Tensor(dims=(1,), data_type=3, int32_data=elements.varints([-129])),
        Tensor(dims=(1,), data_type=2, int32_data=elements.varints([-1])),
        Tensor(dims=(1,), data_type=2, int32_data=elements.varints([256])),
        Tensor(dims=(1,), data_type=6, int32_data=elements.varints([2**31])),
        Tensor(dims=(1,), data_type=6, int32_data=elements.varints([2**32 - 1])),
        Tensor(dims=(1,), data_type=7, int64_data=b"\x81\x00"),
        Tensor(dims=(1,), data_type=7, int64_data=b"\xff"),
        Tensor(dims=(1,), data_type=7, int64_data=b"\xff" * 9 + b"\x7f"),
        Tensor(dims=(1,), data_type=7, int64_data=b"\xff" * 11 + b"\x01"),
        Tensor(dims=(1,), data_type=12, uint64_data=elements.varints([2**32])),
        Tensor(dims=(1,), data_type=27, int32_data=b"\x40"),
        Tensor(dims=(4,), data_type=27, int32_data=b"\1\2\3"),
    ],
)
def test_what_the_short_form_does_not_tell_is_none(tensor: Tensor) -> None:
    assert tensors.raw_bytes(tensor) is None


def test_no_elements_in_no_field_are_typed_storage() -> None:
    for data_type, field in STORAGE.items():
        assert tensors.raw_bytes(Tensor(dims=(3, 0), data_type=data_type)) == (b"", field)
        assert tensors.with_storage(b"", data_type, field, 0) == {field: b""}
        assert tensors.raw_bytes(Tensor(dims=(3, 0), data_type=data_type, raw_data=b"")) == (b"", None)


@pytest.mark.parametrize(("field", "data_type"), [("raw_data", 7), ("float_data", 1), ("double_data", 11)])
def test_bytes_in_a_file_stay_there(field: str, data_type: int) -> None:
    data = Payload(240)  # which cannot be read
    placed: dict[str, Any] = {field: data}
    tensor = Tensor(dims=(240 * 8 // BITS[data_type],), data_type=data_type, **placed)
    stored = tensors.raw_bytes(tensor)
    assert stored is not None
    assert stored[0] is data
    assert tensors.with_storage(data, data_type, stored[1], tensor.dims[0])[field] is data


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("count", [0, 1, 7, 600, 20_000, 300_000])
def test_fixed_integers_and_varints_are_inverse(code: str, count: int) -> None:
    random = numpy.random.default_rng(count)
    dtype = numpy.dtype(f"<{code}")
    shifts = random.integers(0, dtype.itemsize * 8, count).astype(numpy.uint64)
    bits = random.integers(0, 1 << 64, count, dtype=numpy.uint64) >> shifts
    numbers = bits.astype(dtype) if count % 2 == 0 else (bits.astype(numpy.int64) * -1).astype(dtype)
    data = elements.varints_from_fixed(numbers.tobytes(), code)
    assert elements.fixed_from_varints(data, code) == numbers.tobytes()
    if count <= 20_000:
        assert data == elements.varints(numbers.tolist())
        assert elements.read_varints(data, signed=code not in "IQ") == numbers.tolist()
    field = {"Q": "uint64_data", "I": "uint64_data", "q": "int64_data"}.get(code, "int32_data")
    proto = TensorProto()
    getattr(proto, field).extend(numbers.tolist())
    parsed = TensorProto.FromString(proto.SerializeToString())
    assert data in proto.SerializeToString()
    assert list(getattr(parsed, field)) == numbers.tolist()


@pytest.mark.parametrize(
    "bad",
    [
        b"\x80\x00", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01", b"\x80", elements.varints([2**31]),
        b"\xff\xff\xff\xff\x0f",
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", [1, 3000])
def test_varints_that_are_not_canonical_are_told(bad: bytes, around: int) -> None:
    ones = b"\x01" * around
    if bad[-1] & 0x80:
        assert elements.fixed_from_varints(ones + bad, "i") is None
        with pytest.raises(WireError, match="ends within"):
            elements.read_varints(ones + bad, signed=True)
    else:
        assert elements.fixed_from_varints(ones + bad + ones, "i") is None


def test_numbers_are_read_as_protobuf_reads_them() -> None:
    data = b"\xff\xff\xff\xff\x0f\x85\x80\x80\x80\x10\x80\x00"
    parsed = TensorProto.FromString(b"\x3a" + bytes([len(data)]) + data)
    assert elements.read_varints(data, signed=True) == list(parsed.int64_data) == [0xFFFFFFFF, 0x100000005, 0]
    with pytest.raises(WireError, match="ten bytes"):
        elements.read_varints(b"\xff" * 11, signed=True)


@pytest.mark.timeout(120)
def test_a_million_integers_are_converted_in_a_moment() -> None:
    raw = numpy.random.default_rng(0).integers(-(1 << 40), 1 << 62, 1_000_000).tobytes()
    elements.varints_from_fixed(raw[:8192], "q")
    data = elements.varints_from_fixed(raw, "q")
    assert elements.fixed_from_varints(data, "q") == raw


def test_strings_are_object_arrays() -> None:
    tensor = Tensor(dims=(2, 2), data_type=8, string_data=(b"a", "é".encode(), b"\xff", b""))
    array = tensors.to_numpy(tensor)
    assert array.dtype == object
    assert array.tolist() == [["a", "é"], [b"\xff", ""]]
    assert tensors.from_numpy(array) == tensor
    assert tensors.from_numpy(numpy.array(["x", "yz"]), "n") == Tensor(
        dims=(2,), data_type=8, string_data=(b"x", b"yz"), name="n"
    )
    with pytest.raises(DecodeError):
        tensors.to_numpy(Tensor(dims=(3,), data_type=8, string_data=(b"a",)))


def test_bools_other_than_one_are_true() -> None:
    assert tensors.to_numpy(Tensor(dims=(3,), data_type=9, raw_data=b"\0\1\2")).tolist() == [False, True, True]


def test_arrays_in_any_byte_order_and_layout_are_taken() -> None:
    array = numpy.arange(12, dtype=">i4").reshape(3, 4).T
    tensor = tensors.from_numpy(array)
    assert (tensor.dims, tensor.data_type) == ((4, 3), 6)
    assert tensors.to_numpy(tensor).tolist() == array.tolist()
    assert isinstance(tensor.raw_data, bytes)
    proto = helper.make_tensor("", 6, (4, 3), tensor.raw_data, raw=True)
    assert numpy_helper.to_array(proto).tolist() == array.tolist()
    nibbles = numpy.arange(-6, 6).reshape(3, 4).astype(ml_dtypes.int4).T
    assert tensors.to_numpy(tensors.from_numpy(nibbles)).tolist() == nibbles.tolist()


def test_external_data_and_misfits_are_refused_by_name() -> None:
    external = Tensor(name="w\x1b", dims=(1,), data_type=1, data_location=1, external_data=(StringStringEntry(),))
    with pytest.raises(DecodeError, match=r"tensor 'w\\x1b' is in another file; onnxjson\.storage\.external"):
        tensors.to_numpy(external)
    with pytest.raises(DecodeError, match="the tensor does not have the elements"):
        tensors.to_numpy(Tensor(dims=(2,), data_type=1, raw_data=ONE))
    with pytest.raises(TypeError, match="no data type for arrays of datetime64"):
        tensors.from_numpy(numpy.array(["2020-01-01"], dtype="datetime64[D]"))
    with pytest.raises(TypeError, match="not int"):
        tensors.from_numpy(numpy.array([1, "a"], dtype=object))


def test_an_explicit_default_location_is_read() -> None:
    assert tensors.to_numpy(Tensor(dims=(1,), data_type=1, raw_data=ONE, data_location=0)).tolist() == [1.0]


def test_every_data_type_of_onnx_has_a_typed_field() -> None:
    numbers = set(onnx.TensorProto.DataType.values()) - {TensorProto.UNDEFINED, TensorProto.STRING}
    assert set(STORAGE) == numbers == set(TYPES)
    for number in numbers:
        assert STORAGE[number] == helper.tensor_dtype_to_field(number)
