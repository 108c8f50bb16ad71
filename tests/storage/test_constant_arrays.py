"""Constants from and to .npy and .npz files: the same bits, other dtypes only where nothing is lost."""

import io
import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest

from onnxjson.model import elements
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPE_NAMES, FLOATS
from onnxjson.model.errors import DecodeError, EncodeError, LimitError, MissingInputError
from onnxjson.model.tensors import to_numpy
from onnxjson.storage import numpy_constants
from onnxjson.storage.constant_reading import Kind, parse_kind
from onnxjson.storage.constant_values import write_values
from onnxjson.storage.numpy_constants import from_array, read_array, write_npy, write_npz
from tests.storage.test_constant_round_trips import random_bytes

SIZED = list(BITS)


class Buffer:
    """A sink in memory."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.content += data


def npy(tensor: Tensor) -> bytes:
    buffer = Buffer()
    write_npy(tensor, buffer)
    return bytes(buffer.content)


def values_of(tensor: Tensor) -> Any:
    text = bytearray()
    write_values(tensor, text.extend)
    return json.loads(text)


@pytest.mark.parametrize("data_type", SIZED, ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("dims", [(), (0,), (3, 5), (10_001,)], ids=str)
def test_npy_file_gives_the_same_bits_again(data_type: int, dims: tuple[int, ...], tmp_path: Path) -> None:
    tensor = Tensor(dims=dims, data_type=data_type, raw_data=random_bytes(data_type, math.prod(dims)))
    path = tmp_path / "x.npy"
    path.write_bytes(npy(tensor))
    assert from_array(read_array(path), Kind(data_type)).tensor == tensor
    assert from_array(read_array(path), Kind(data_type, dims)).tensor == tensor


@pytest.mark.parametrize("data_type", SIZED, ids=DATA_TYPE_NAMES.get)
def test_npy_file_is_the_one_that_numpy_saves(data_type: int) -> None:
    tensor = Tensor(dims=(5, 3), data_type=data_type, raw_data=random_bytes(data_type, 15))
    saved = io.BytesIO()
    numpy.save(saved, to_numpy(tensor))
    # numpy saves float8_e5m2 under a name that it cannot load; as raw bytes it is like its neighbours.
    assert npy(tensor) == saved.getvalue().replace(b"<f1", b"<V1")


def test_packed_elements_longer_than_a_piece_are_written_whole() -> None:
    count = 2 * 768 * 1024 + 5
    tensor = Tensor(dims=(count,), data_type=21, raw_data=random_bytes(21, count))
    loaded = numpy.load(io.BytesIO(npy(tensor)))
    assert numpy.array_equal(loaded.view(ml_dtypes.uint4), to_numpy(tensor))


def test_npz_has_an_array_for_each_tensor_and_is_the_same_file_every_time(tmp_path: Path) -> None:
    tensors = [
        Tensor(dims=(2,), data_type=1, raw_data=random_bytes(1, 2), name="/a/b"),
        Tensor(dims=(), data_type=22, raw_data=b"\x07", name="é"),
    ]
    first, second = Buffer(), Buffer()
    write_npz(tensors, first)
    write_npz(tensors, second)
    assert first.content == second.content
    path = tmp_path / "x.npz"
    path.write_bytes(first.content)
    with numpy.load(path) as loaded:
        assert loaded.files == ["/a/b", "é"]
        assert numpy.array_equal(loaded["/a/b"], to_numpy(tensors[0]))
    named = from_array(read_array(Path(f"{path}:/a/b")), name="/a/b").tensor
    assert named == tensors[0]
    with pytest.raises(MissingInputError, match=r"has several arrays; choose one: .*x.npz:NAME, where NAME is one of"):
        read_array(path)
    with pytest.raises(MissingInputError, match="has no array 'nope'"):
        read_array(Path(f"{path}:nope"))


@pytest.mark.parametrize("name", ["../../x", "a/../b", "a\0b", "a\\b", "\udcff"])
def test_npz_has_no_name_that_leads_out_of_a_folder(name: str) -> None:
    with pytest.raises(EncodeError, match=r"cannot be the name of an array"):
        write_npz([Tensor(data_type=2, raw_data=b"\0", name=name)], Buffer())


def test_npz_has_no_name_twice() -> None:
    with pytest.raises(EncodeError, match="two tensors have the name 'w'"):
        write_npz([Tensor(data_type=2, raw_data=b"\0", name="w")] * 2, Buffer())


def test_strings_are_texts_in_numpy_files(tmp_path: Path) -> None:
    tensor = Tensor(dims=(2, 1), data_type=8, string_data=("é".encode(), b""))
    path = tmp_path / "x.npy"
    path.write_bytes(npy(tensor))
    assert numpy.load(path).tolist() == [["é"], [""]]
    assert from_array(read_array(path)).tensor == tensor


@pytest.mark.parametrize("data", [b"\xff", b"a\0"])
def test_strings_that_numpy_would_change_are_refused(data: bytes) -> None:
    with pytest.raises(EncodeError, match=r"write a \.json"):
        npy(Tensor(dims=(1,), data_type=8, string_data=(data,)))


def test_order_and_endianness_of_an_array_do_not_matter() -> None:
    array = numpy.arange(6, dtype="<f4").reshape(2, 3)
    expected = from_array(array).tensor
    for other in (numpy.asfortranarray(array), array.astype(">f4")):
        assert from_array(other).tensor == expected
        assert from_array(other, parse_kind("float64")).tensor == from_array(array.astype("f8")).tensor
    assert from_array(numpy.arange(12, dtype="<f4").reshape(2, 6)[:, ::2] / 2).tensor == expected


REAL = [number for number in SIZED if number not in (9, 14, 15)]


def number(tensor: Tensor) -> int | float:
    """The first element, exact."""
    element = to_numpy(tensor).reshape(-1)[0]
    return float(element) if tensor.data_type in FLOATS else int(element)


@pytest.mark.parametrize("source", REAL, ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("target", REAL, ids=DATA_TYPE_NAMES.get)
def test_element_of_another_dtype_is_exactly_the_same_number_or_refused(source: int, target: int) -> None:
    array = to_numpy(Tensor(dims=(40,), data_type=source, raw_data=random_bytes(source, 40)))
    one = numpy.array([1]).astype("f4").astype(array.dtype)
    kept = 0
    for element in (*array, one[0]):
        alone = numpy.array([element], array.dtype)
        try:
            encoded = from_array(alone, Kind(target))
        except EncodeError:
            continue
        kept += 1
        was, now = number(from_array(alone).tensor), number(encoded.tensor)
        assert was == now or (was != was and now != now)
    assert kept


@pytest.mark.parametrize("data_type", REAL, ids=DATA_TYPE_NAMES.get)
def test_values_of_a_narrow_float_survive_a_wide_one(data_type: int) -> None:
    array = to_numpy(Tensor(dims=(2000,), data_type=data_type, raw_data=random_bytes(data_type, 2000)))
    if data_type in (7, 13):
        array = array >> numpy.array(12, array.dtype)
    with numpy.errstate(all="ignore"):
        wide = array.astype("f8")
        usual = ~(numpy.isnan(wide))
    tensor = from_array(wide[usual], Kind(data_type)).tensor
    assert tensor == from_array(array[usual]).tensor


def test_float64_that_loses_bits_is_refused_with_its_place() -> None:
    array = numpy.array([[0.5, 0.25], [0.1, 0.2]])
    becomes = r"0.1 \(exactly 0.10000000149011612\)"
    with pytest.raises(EncodeError, match=rf"\[1,0\]: float32 cannot represent 0.1; with --lossy it becomes {becomes}"):
        from_array(array, parse_kind("float32"))
    encoded = from_array(array, parse_kind("float32"), lossy=True)
    assert encoded.changed == 2
    assert numpy.array_equal(to_numpy(encoded.tensor), array.astype("f4"))


NARROW = [number for number in FLOATS if BITS[number] < 32]


@pytest.mark.parametrize("data_type", NARROW, ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("source", ["f4", "f8"])
def test_lossy_array_has_the_bits_of_the_nearest_values(data_type: int, source: str) -> None:
    form = FLOATS[data_type]
    random = numpy.random.default_rng(5)
    finite = numpy.array([form.decode(bits) for bits in random.integers(0, form.largest + 1, 500).tolist()])
    following = numpy.array([form.decode(min(form.encode(each) + 1, form.largest)) for each in finite.tolist()])
    middles = (finite + following) / 2
    near = [middles, numpy.nextafter(middles, 0), numpy.nextafter(middles, numpy.inf), middles * (1 + 2.0**-30)]
    array = numpy.concatenate([finite, *near, random.normal(0, 2, 500)]).astype(source)
    array = numpy.concatenate([array, -array] if form.signed else [array[array > 0]])
    encoded = from_array(array, Kind(data_type), lossy=True)
    nearest = []
    for value in array.tolist():
        try:
            nearest.append(form.encode(value))
        except OverflowError:
            low = form.decode(0) if not form.signed else -form.decode(form.largest)
            nearest.append(form.encode(min(max(value, low), form.decode(form.largest)) + 0.0))
    found = to_numpy(encoded.tensor)
    assert found.view(f"u{found.dtype.itemsize}").tolist() == nearest


INTEGERS = [number for number in REAL if number not in FLOATS]


@pytest.mark.parametrize("data_type", INTEGERS, ids=DATA_TYPE_NAMES.get)
def test_lossy_integers_are_rounded_to_even_and_end_at_the_bounds(data_type: int) -> None:
    low, high = elements.integer_range(data_type)
    floats = [0.5, 1.5, 2.5, -0.5, -1.5, 1e300, -1e300, 2.0**63, 2.0**53 + 2, 1e15 + 0.5, 3.0]
    whole = [0, 1, -1, 300, -300, 70_000, -(2**63), 2**63 - 1, 2**53 + 1]
    for array in (numpy.array(floats), numpy.array(whole), numpy.array([2**64 - 1, 5], "u8")):
        encoded = from_array(array, Kind(data_type), lossy=True)
        expected = [min(max(round(value), low), high) for value in array.tolist()]
        assert [int(value) for value in to_numpy(encoded.tensor)] == expected
        assert encoded.changed == sum(was != now for was, now in zip(array.tolist(), expected, strict=True))


@pytest.mark.parametrize("data_type", [1, 11, *NARROW], ids=DATA_TYPE_NAMES.get)
def test_lossy_integers_become_the_nearest_floats(data_type: int) -> None:
    form = FLOATS[data_type]
    whole = [1, 2, 3, 5, 17, 2**24, 2**24 + 1, 2**25, 2**53, 2**53 + 1, 2**60, 2**62 + 1]
    encoded = from_array(numpy.array(whole), Kind(data_type), lossy=True)
    largest = form.decode(form.largest)
    expected = [form.decode(form.encode(min(float(value), largest))) for value in whole]
    assert [float(value) for value in to_numpy(encoded.tensor)] == expected
    assert encoded.changed == sum(was != now for was, now in zip(whole, expected, strict=True))


def test_nan_without_payload_is_taken_and_one_with_payload_refused() -> None:
    plain = numpy.array([numpy.nan, -numpy.inf])
    assert values_of(from_array(plain, parse_kind("float16")).tensor) == ["NaN", "-Infinity"]
    payload = numpy.array([0x7FF8000000000001], "u8").view("f8")
    with pytest.raises(EncodeError, match=r"element \[0\]: NaN\(0x7ff8000000000001\) is a NaN of float64 with bits"):
        from_array(payload, parse_kind("float32"))
    assert values_of(from_array(payload, parse_kind("float32"), lossy=True).tensor) == ["NaN"]
    assert values_of(from_array(payload).tensor) == ["NaN(0x7ff8000000000001)"]


def test_complex_numbers_become_other_complex_numbers_part_by_part() -> None:
    array = numpy.array([[0.5 - 2j], [1 + 0.25j]])
    assert values_of(from_array(array, parse_kind("complex64")).tensor) == [[[0.5, -2.0]], [[1.0, 0.25]]]
    with pytest.raises(EncodeError, match=r"element \[1,0\]: float32 cannot represent 0.1"):
        from_array(numpy.array([[0], [0.1j]]), parse_kind("complex64"))


def test_bools_are_numbers_but_only_0_and_1_are_bools() -> None:
    assert values_of(from_array(numpy.array([True, False]), parse_kind("int64")).tensor) == [1, 0]
    assert values_of(from_array(numpy.array([1, 0]), parse_kind("bool")).tensor) == [True, False]
    with pytest.raises(EncodeError, match=r"element \[0\]: found 2, expected true or false"):
        from_array(numpy.array([2]), parse_kind("bool"))


@pytest.mark.parametrize(
    ("array", "type_", "says"),
    [
        (numpy.zeros(2), "complex64", "cannot be converted from float64 into complex64"),
        (numpy.zeros(2), "string", "cannot be converted"),
        (numpy.zeros(2), "bool", "cannot be converted"),
        (numpy.array(["a"]), "int8", "cannot be converted from string"),
        (numpy.zeros(2, "datetime64[s]"), "int8", "ONNX has no data type"),
        (numpy.zeros(2, [("a", "i4")]), "int8", "ONNX has no data type"),
        (numpy.zeros((2, 2)), "float64[4,1]", "shape [2, 2], expected float64[4,1]"),
        (numpy.zeros(3), "float64[4]", "shape [3], expected float64[4]"),
        (numpy.zeros(2, "V2"), "float32", "are 2 raw bytes each, which do not fit float32"),
    ],
)
def test_array_that_is_no_such_constant_is_refused(array: Any, type_: str, says: str) -> None:
    with pytest.raises(EncodeError) as raised:
        from_array(array, parse_kind(type_))
    assert says in str(raised.value)


def test_flat_array_takes_the_dims_that_are_said() -> None:
    assert from_array(numpy.arange(6), parse_kind("int64[2,3]")).tensor.dims == (2, 3)


def test_raw_bytes_without_a_dtype_are_refused_with_what_to_say() -> None:
    with pytest.raises(EncodeError, match="2 raw bytes each; choose their dtype"):
        from_array(numpy.zeros(2, "V2"))


def test_file_that_holds_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with pytest.raises(MissingInputError):
        read_array(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DecodeError, match="does not have a readable array"):
        read_array(path)
    numpy.save(path, numpy.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DecodeError, match="does not have a readable array"):
        read_array(path)
    path.write_bytes(npy(Tensor(dims=(9,), data_type=1, raw_data=bytes(36)))[:-1])
    with pytest.raises(DecodeError, match="does not have a readable array"):
        read_array(path)
    archive = tmp_path / "x.npz"
    archive.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DecodeError, match="does not have a readable array"):
        read_array(archive)


def test_array_that_unpacks_to_very_much_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_constants, "UNPACKED_BYTES", 1 << 16)
    zeros, others = numpy.zeros(1 << 16), numpy.random.default_rng(1).random(1 << 16)
    path = tmp_path / "x.npz"
    numpy.savez_compressed(path, zeros=zeros, others=others)
    with pytest.raises(LimitError, match=r"would need 524,416 in memory.*numpy\.savez"):
        read_array(Path(f"{path}:zeros"))
    assert (read_array(Path(f"{path}:others")) == others).all()
    numpy.savez(path, zeros=zeros)
    assert read_array(path).shape == (1 << 16,)
