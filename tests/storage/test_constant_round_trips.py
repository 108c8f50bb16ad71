"""What decode prints, encode takes: every dtype, random bits, every shape of packed elements."""

import base64
import json
import math

import ml_dtypes
import numpy
import pytest

from onnxjson.model import elements
from onnxjson.model.document import Graph, Model, Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPE_NAMES
from onnxjson.storage import api
from onnxjson.storage.constant_reading import Kind, from_base64, from_json, parse_json
from onnxjson.storage.constant_values import write_base64, write_object, write_proto_json, write_values

STRING = 8
COUNT = 10_000
DTYPES = [*BITS, STRING]
SIZED = list(BITS)


def random_bytes(data_type: int, count: int) -> bytes:
    """Random patterns of a dtype as raw_data holds them."""
    random = numpy.random.default_rng(data_type)
    size = BITS[data_type]
    if data_type == 9:
        return random.integers(0, 2, count, "u1").tobytes()
    if size >= 8:
        return random.bytes(count * size // 8)
    return elements.join_bits(random.integers(0, 1 << size, count).tolist(), size)


def text_of(write: object, tensor: Tensor) -> str:
    """What a writing function gives."""
    text = bytearray()
    write(tensor, text.extend)  # type: ignore[operator]
    return text.decode("ascii")


def there_and_back(text: str, kind: Kind) -> str:
    """Base64 to values to base64."""
    values = text_of(write_values, from_base64(text, kind))
    return text_of(write_base64, from_json(parse_json(values), kind).tensor)


@pytest.mark.parametrize("data_type", SIZED, ids=DATA_TYPE_NAMES.get)
def test_encoding_what_was_decoded_gives_the_same_base64_for_random_bits(data_type: int) -> None:
    text = base64.b64encode(random_bytes(data_type, COUNT)).decode()
    assert there_and_back(text, Kind(data_type, (COUNT,))) == text
    assert there_and_back(text, Kind(data_type, (5, 2, COUNT // 10))) == text


@pytest.mark.parametrize("data_type", SIZED, ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("dims", [(), (0,), (2, 0, 3), (1, 1), (2, 1, 3), (1, 2, 1, 2, 1, 1, 1, 1, 2)], ids=str)
def test_any_shape_comes_back(data_type: int, dims: tuple[int, ...]) -> None:
    text = base64.b64encode(random_bytes(data_type, math.prod(dims))).decode()
    assert there_and_back(text, Kind(data_type, dims)) == text


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_payloads_of_nans_infinities_zeros_and_subnormal_values_come_back(name: str) -> None:
    dtype = numpy.dtype(getattr(ml_dtypes, name, None) or name)
    kind = Kind(next(number for number, each in DATA_TYPE_NAMES.items() if each == name), (7,))
    bits = f"u{dtype.itemsize}"
    infinity = numpy.array([numpy.inf]).astype(dtype).view(bits)[0]
    sign = 1 << (dtype.itemsize * 8 - 1)
    patterns = [0, sign, 1, sign | 1, int(infinity) | 1, sign | int(infinity), sign | int(infinity) | 1]
    text = base64.b64encode(numpy.array(patterns, bits).tobytes()).decode()
    values = json.loads(text_of(write_values, from_base64(text, kind)))
    assert values[0] == 0.0
    assert values[1] == "-0.0"
    assert values[5] == "-Infinity"
    assert values[4].startswith("NaN(0x")
    assert there_and_back(text, kind) == text


@pytest.mark.parametrize("data_type", [each for each in SIZED if each not in (14, 15)], ids=DATA_TYPE_NAMES.get)
def test_decoded_values_are_those_of_numpy_and_ml_dtypes(data_type: int) -> None:
    name = DATA_TYPE_NAMES[data_type]
    data = random_bytes(data_type, 1000)
    dtype = numpy.dtype(getattr(ml_dtypes, name, None) or name)
    if BITS[data_type] >= 8:
        array = numpy.frombuffer(data, dtype)
    else:
        patterns = elements.split_bits(data, 1000, BITS[data_type])
        array = numpy.array(patterns, "u1").view(dtype)
    values = json.loads(text_of(write_values, from_base64(base64.b64encode(data).decode(), Kind(data_type, (1000,)))))
    if name.startswith(("float", "bfloat")):
        found = numpy.array([float("nan") if str(value).startswith("NaN") else float(value) for value in values])
        with numpy.errstate(all="ignore"):
            assert numpy.array_equal(found.astype(dtype).astype("f8"), array.astype("f8"), equal_nan=True)
    else:
        assert [int(value) for value in values] == array.astype(object).tolist()


@pytest.mark.parametrize("data_type", DTYPES, ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("dims", [(), (3,), (2, 2), (65,), (0,)], ids=str)
def test_the_object_can_be_pasted_into_a_text(data_type: int, dims: tuple[int, ...]) -> None:
    count = math.prod(dims)
    if data_type == STRING:
        tensor = Tensor(dims=dims, data_type=STRING, string_data=(b"a\xc3\xa9\n",) * count, name="w")
    else:
        tensor = Tensor(dims=dims, data_type=data_type, raw_data=random_bytes(data_type, count), name="w")
    text = text_of(write_object, tensor)
    assert text.count("\n") == 1
    document = f'{{"format": "onnxjson/1", "graph": {{"initializer": [{text}]}}}}'
    assert api.loads(document) == Model(graph=Graph(initializer=(tensor,)))


@pytest.mark.parametrize("dims", [(3,), (2, 3), (2, 2, 2), (2, 1, 2, 3), (1,) * 9, ()], ids=str)
def test_values_are_laid_out_as_in_a_text(dims: tuple[int, ...]) -> None:
    tensor = Tensor(dims=dims, data_type=7, raw_data=random_bytes(7, math.prod(dims)), name="w")
    text = api.dumps(Model(graph=Graph(initializer=(tensor,))))
    values = text.partition('"values": ')[2].partition("}\n")[0].replace("\n     ", "\n")
    assert text_of(write_values, tensor) == f"{values}\n"


@pytest.mark.parametrize("data_type", DTYPES, ids=DATA_TYPE_NAMES.get)
def test_protobuf_reads_the_json_of_the_message(data_type: int) -> None:
    import onnx
    from google.protobuf import json_format

    if data_type == STRING:
        tensor = Tensor(dims=(2, 1), data_type=STRING, string_data=(b"a", b"\xff"), name="\xe9")
    else:
        tensor = Tensor(dims=(3, 5), data_type=data_type, raw_data=random_bytes(data_type, 15), name="w")
    message = json_format.Parse(text_of(write_proto_json, tensor), onnx.TensorProto())
    assert (
        message.SerializeToString()
        == onnx.TensorProto(
            dims=tensor.dims,
            data_type=data_type,
            name=tensor.name or "",
            string_data=tensor.string_data,
            raw_data=tensor.raw_data if isinstance(tensor.raw_data, bytes) else None,
        ).SerializeToString()
    )


def test_lists_that_are_longer_than_a_piece_come_back() -> None:
    count = 768 * 1024 + 11
    data = random_bytes(3, count)
    text = base64.b64encode(data).decode()
    assert there_and_back(text, Kind(3, (count,))) == text


def test_base64_may_be_broken_into_lines() -> None:
    data = random_bytes(1, 100)
    assert from_base64(base64.encodebytes(data).decode(), Kind(1)).raw_data == data
