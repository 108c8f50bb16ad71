"""Every element of every dtype: tokens, values and bytes agree, and agree with numpy and ml_dtypes."""

import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import cache

import ml_dtypes
import numpy
import pytest

from onnxjson.model import dtypes, elements
from onnxjson.model.dtypes import BITS, DATA_TYPE_NAMES, SMALL_FORMATS, float32_text
from onnxjson.model.scalars import ElementError, float32_bits, float64_bits, int_text, parse_int

NARROW = [number for number, size in BITS.items() if size <= 16]
WIDE = {1: "<f4", 6: "<i4", 7: "<i8", 11: "<f8", 12: "<u4", 13: "<u8", 14: "<f4", 15: "<f8"}


def every_pattern(data_type: int) -> tuple[bytes, int]:
    """Each bit pattern of a dtype once, as raw_data."""
    size = BITS[data_type]
    count = 2 if data_type == 9 else 1 << size
    if size == 16:
        return numpy.arange(count, dtype="<u2").tobytes(), count
    return (bytes(range(count)) if size == 8 else elements.join_bits(range(count), size)), count


def as_ml_dtypes(data_type: int, patterns: numpy.ndarray) -> numpy.ndarray:
    """What numpy and ml_dtypes read in these bits, as float64."""
    name = DATA_TYPE_NAMES[data_type]
    dtype = numpy.dtype(numpy.float16) if name == "float16" else numpy.dtype(getattr(ml_dtypes, name))
    with numpy.errstate(invalid="ignore"):
        values: numpy.ndarray = patterns.view(dtype).astype(numpy.float64)
    return values


def read(tokens: list[str] | None) -> list[object]:
    """The tokens as a JSON reader sees them."""
    assert tokens is not None
    values = json.loads(f"[{', '.join(tokens)}]")
    assert isinstance(values, list)
    return values


def test_the_sizes_are_those_of_the_onnx_types() -> None:
    assert {BITS.get(number) for number in (0, 8, 29, 99, -1)} == {None}
    for number, name in DATA_TYPE_NAMES.items():
        if name not in ("undefined", "string"):
            dtype = numpy.dtype(getattr(ml_dtypes, name, None) or name)
            digits = {"uint4": 4, "int4": 4, "uint2": 2, "int2": 2}.get(name, 0)
            digits = digits or next((int(n) for n in ("4", "6") if name.startswith(f"float{n}_")), 0)
            assert BITS.get(number) == (digits or dtype.itemsize * 8)


@pytest.mark.parametrize(
    ("data_type", "count", "length"),
    [(21, 3, 2), (25, 5, 2), (27, 1, 1), (27, 2, 2), (27, 3, 3), (27, 4, 3), (27, 5, 4), (1, 3, 12), (15, 2, 32)],
)
def test_packed_elements_fill_whole_bytes(data_type: int, count: int, length: int) -> None:
    assert elements.byte_length(data_type, count) == length
    assert elements.byte_length(8, count) is None


@pytest.mark.parametrize("data_type", NARROW, ids=DATA_TYPE_NAMES.get)
def test_every_pattern_of_a_narrow_dtype_comes_back(data_type: int) -> None:
    data, count = every_pattern(data_type)
    tokens = elements.tokens(data_type, data, count)
    assert tokens is not None
    assert len(set(tokens)) == count
    assert elements.pack(data_type, read(tokens)) == data


@pytest.mark.parametrize("data_type", WIDE, ids=DATA_TYPE_NAMES.get)
def test_random_patterns_of_a_wide_dtype_come_back(data_type: int) -> None:
    size = BITS[data_type] // 8
    count = 6000
    data = numpy.random.default_rng(data_type).bytes(size * count)
    assert elements.pack(data_type, read(elements.tokens(data_type, data, count))) == data


@pytest.mark.parametrize("data_type", SMALL_FORMATS, ids=DATA_TYPE_NAMES.get)
def test_small_floats_are_those_of_ml_dtypes(data_type: int) -> None:
    form = SMALL_FORMATS[data_type]
    patterns = numpy.arange(1 << form.size, dtype="u2" if form.size == 16 else "u1")
    truth = as_ml_dtypes(data_type, patterns)
    for bits, value in enumerate(truth.tolist()):
        if math.isnan(value):
            assert form.is_nan(bits)
        elif math.isinf(value):
            assert bits & ~form.sign_bit == form.infinity
        else:
            assert not form.is_nan(bits)
            assert struct.pack("<d", form.decode(bits)) == struct.pack("<d", value)


@pytest.mark.parametrize("data_type", SMALL_FORMATS, ids=DATA_TYPE_NAMES.get)
def test_rounding_is_that_of_ml_dtypes(data_type: int) -> None:
    form = SMALL_FORMATS[data_type]
    name = DATA_TYPE_NAMES[data_type]
    dtype = numpy.dtype(numpy.float16) if name == "float16" else numpy.dtype(getattr(ml_dtypes, name))
    random = numpy.random.default_rng(data_type)
    finite = [form.decode(bits) for bits in range(form.largest + 1)]
    steps = numpy.array(finite[:2000])
    middles = (steps[1:] + steps[:-1]) / 2
    spread = numpy.exp2(random.uniform(math.log2(finite[1]) - 2, min(math.log2(finite[-1]) + 1, 127.9), 2000))
    values = numpy.concatenate([steps, middles, spread])
    if name == "bfloat16":  # ml_dtypes rounds a float64 to bfloat16 by way of float32, that is twice
        values = values.astype(numpy.float32)
    if form.signed:
        values = numpy.concatenate([values, -values[values > 0]])
    else:
        values = values[values >= finite[1]]  # ml_dtypes rounds all between the two smallest up
    beyond = numpy.abs(values.astype(numpy.float64)) >= finite[-1] + (finite[-1] - finite[-2]) / 2
    with numpy.errstate(over="ignore"):
        truth = values.astype(dtype).view("u2" if form.size == 16 else "u1")
    for value, bits, over in zip(values.tolist(), truth.tolist(), beyond.tolist(), strict=True):
        try:
            mine = form.encode(value)
        except OverflowError:
            assert over
        else:
            assert mine == bits


def of_size(least: int, most: int) -> list[int]:
    return [each for each, form in SMALL_FORMATS.items() if least <= form.size <= most]


@pytest.mark.parametrize("data_type", of_size(1, 8), ids=DATA_TYPE_NAMES.get)
def test_floats_of_eight_bits_or_fewer_are_written_as_their_exact_value(data_type: int) -> None:
    form = SMALL_FORMATS[data_type]
    for bits in range(1, form.largest + 1):
        assert float(form.text(bits)) == form.decode(bits)


@pytest.mark.parametrize("data_type", of_size(16, 16), ids=DATA_TYPE_NAMES.get)
def test_no_decimal_with_fewer_digits_and_no_closer_one_comes_back(data_type: int) -> None:
    form = SMALL_FORMATS[data_type]
    for bits in range(1, form.largest + 1, 97):
        value = Decimal(form.decode(bits))
        token = Decimal(form.text(bits))
        digits = len(token.normalize().as_tuple().digits)
        for fewer in range(1, digits + 1):
            unit = Decimal(1).scaleb(value.adjusted() + 1 - fewer)
            lower = value // unit * unit
            back = [decimal for decimal in (lower, lower + unit) if comes_back(form, decimal, bits)]
            assert not back or fewer == digits
        assert abs(token - value) == min(abs(decimal - value) for decimal in back)


def comes_back(form: dtypes.FloatFormat, decimal: Decimal, bits: int) -> bool:
    try:
        return form.encode(float(decimal)) == bits
    except OverflowError:
        return False


def pure(patterns: numpy.ndarray) -> list[bytes]:
    """The tokens that the scalar function gives."""
    data = patterns.astype("<u4").tobytes()
    return [dtypes.float32_text(data[at : at + 4]).encode() for at in range(0, len(data), 4)]


@cache
def pattern_sets() -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(20)
    halves = numpy.arange(65536, dtype="<u2").view("<f2").astype("<f4").view("<u4")
    edges = [
        0x15AE43FC, 0x15AE43FD, 0x15AE43FE, 0x15AE43FF, 0x7F7FFFFF, 0x7F7FFFFE, 0x7F800000, 0x7F800001, 0x7FC00000, 0,
    ]  # fmt: skip
    return {
        "powers of two": numpy.tile(numpy.arange(512) << 23, 2),
        "around powers of two": numpy.concatenate([(numpy.arange(1, 512) << 23) + step for step in (-2, -1, 1, 2)]),
        "edges": numpy.array([sign + edge for edge in edges for sign in (0, 1 << 31)] * 20),
        "small subnormals": numpy.arange(200_000),
        "subnormals": random.integers(0, 1 << 23, 300_000),
        "bfloat16": numpy.arange(65536) << 16,
        "float16": halves,
        "any": random.integers(0, 1 << 32, 1_000_000),
        "weights": random.standard_normal(200_000).astype("<f4").view("<u4"),
        "ties": (random.integers(1 << 21, 1 << 24, 100_000) / 8).astype("<f4").view("<u4"),
        "large": random.uniform(1e6, 1e10, 100_000).astype("<f4").view("<u4"),
    }


SMALL_SETS = ("powers of two", "around powers of two", "edges", "bfloat16", "float16")
LARGE_SETS = ("small subnormals", "subnormals", "weights", "ties", "large", "any")
# By default every twentieth pattern of the large sets, as each of them is of one kind.
PATTERN_SETS = [
    *((name, 1) for name in SMALL_SETS),
    *((name, 20) for name in LARGE_SETS),
    *(pytest.param(name, 1, marks=pytest.mark.exhaustive) for name in LARGE_SETS),
]


def test_the_patterns_are_two_million() -> None:
    assert sum(map(len, pattern_sets().values())) > 2_000_000
    assert set(pattern_sets()) == {*SMALL_SETS, *LARGE_SETS}


@pytest.mark.parametrize(("name", "step"), PATTERN_SETS)
def test_float32_in_batches_and_one_by_one_are_spelled_alike(name: str, step: int) -> None:
    patterns = pattern_sets()[name][::step]
    assert dtypes.float32_tokens(patterns.astype("<u4").tobytes()) == pure(patterns)


@pytest.mark.parametrize(("name", "step"), PATTERN_SETS)
def test_float32_tokens_come_back_when_read_as_float64_and_rounded(name: str, step: int) -> None:
    data = pattern_sets()[name][::step].astype("<u4").tobytes()
    values = json.loads(b"[" + b",".join(dtypes.float32_tokens(data)) + b"]")
    assert elements.pack(1, values) == data


@pytest.mark.parametrize(
    ("bits", "token"),
    [
        (0x7F7FFFFF, "3.4028234663852886e+38"), (0xFF7FFFFF, "-3.4028234663852886e+38"),
        (0x15AE43FD, "7.0385307e-26"), (0x95AE43FD, "-7.0385307e-26"), (0x3DCCCCCD, "0.1"), (0x3727C5AC, "1e-05"),
        (0x3F800000, "1.0"), (0x5A0E1BCA, "1e+16"), (0x80000000, '"-0.0"'), (0x00000001, "1e-45"),
        (0x7FC00000, '"NaN"'), (0x7FC00001, '"NaN(0x7fc00001)"'), (0xFFC00000, '"NaN(0xffc00000)"'),
        (0x7F800001, '"NaN(0x7f800001)"'), (0x7F800000, '"Infinity"'), (0xFF800000, '"-Infinity"'),
        (0x4B800000, "16777216.0"), (0x5D5E0B6B, "1e+18"),
    ],
)  # fmt: skip
def test_float32_spelling(bits: int, token: str) -> None:
    data = bits.to_bytes(4, "little")
    assert float32_text(data) == token
    assert dtypes.float32_tokens(data * 300) == [token.encode()] * 300
    assert float32_bits(json.loads(token)) == data


@pytest.mark.parametrize(
    ("data_type", "data", "tokens"),
    [
        (1, struct.pack("<2f", 0.5, -2.0), ["0.5", "-2.0"]),
        (7, struct.pack("<4q", 2**53, -(2**53), 2**53 + 1, -(2**63)), None),
        (13, struct.pack("<Q", 2**64 - 1), ['"18446744073709551615"']),
        (9, b"\0\1", ["false", "true"]),
        (11, struct.pack("<3d", 0.1, -0.0, 1e16), ["0.1", '"-0.0"', "1e+16"]),
        (11, bytes.fromhex("010000000000f07f"), ['"NaN(0x7ff0000000000001)"']),
        (14, struct.pack("<2f", 1.5, math.inf), ['[1.5, "Infinity"]']),
        (15, struct.pack("<2d", 1.5, math.nan), ['[1.5, "NaN"]']),
        (10, bytes.fromhex("007e017e00fc"), ['"NaN"', '"NaN(0x7e01)"', '"-Infinity"']),
        (16, bytes.fromhex("c07fc1ff"), ['"NaN"', '"NaN(0xffc1)"']),
        (17, bytes.fromhex("7fff8080"), ['"NaN"', '"NaN(0xff)"', '"-0.0"', '"-0.0"']),
        (18, b"\x80\x00", ['"NaN"', "0.0"]),
        (19, b"\x7e\x7d\x7c", ['"NaN"', '"NaN(0x7d)"', '"Infinity"']),
        (24, b"\xff\x7f\x80", ['"NaN"', "1.0", "2.0"]),
        (22, b"\xf1\x08", ["1", "-1", "-8"]),
        (21, b"\xf1\x08", ["1", "15", "8"]),
        (26, b"\xe4\x02", ["0", "1", "-2", "-1", "-2"]),
        (25, b"\xe4\x02", ["0", "1", "2", "3", "2"]),
        (23, b"\x21\x0f", ["0.5", "1.0", "-6.0"]),
    ],
)
def test_tokens(data_type: int, data: bytes, tokens: list[str] | None) -> None:
    if tokens is None:
        tokens = ["9007199254740992", "-9007199254740992", '"9007199254740993"', '"-9223372036854775808"']
    assert elements.tokens(data_type, data, len(tokens)) == tokens
    assert elements.pack(data_type, read(tokens)) == data


def test_six_bit_elements_are_one_stream_from_the_lowest_bit() -> None:
    assert elements.join_bits([1, 2, 3, 4], 6) == (1 | 2 << 6 | 3 << 12 | 4 << 18).to_bytes(3, "little")
    assert elements.join_bits([63], 6) == b"\x3f"
    assert elements.split_bits(b"\x3f\x10", 2, 6) is None


@pytest.mark.parametrize(
    ("data_type", "data", "count"),
    [(9, b"\2", 1), (22, b"\x11", 1), (26, b"\x40", 3), (27, b"\x40", 1), (1, b"abc", 1), (8, b"", 0), (99, b"", 0)],
)
def test_what_tokens_cannot_tell_is_none(data_type: int, data: bytes, count: int) -> None:
    assert elements.tokens(data_type, data, count) is None


@pytest.mark.parametrize("data_type", [21, 22, 23, 25, 26, 27, 28], ids=DATA_TYPE_NAMES.get)
@pytest.mark.parametrize("count", range(10))
def test_any_number_of_packed_elements_comes_back(data_type: int, count: int) -> None:
    size = BITS[data_type]
    data = elements.join_bits([(7 * index + 1) % (1 << size) for index in range(count)], size)
    tokens = elements.tokens(data_type, data, count)
    assert tokens is not None
    assert len(tokens) == count
    assert elements.pack(data_type, read(tokens)) == data


@pytest.mark.parametrize(
    ("data_type", "value", "data"),
    [
        (7, 1.0, struct.pack("<q", 1)), (7, "12", struct.pack("<q", 12)),
        (7, -9007199254740992.0, struct.pack("<q", -(2**53))), (13, 2**64 - 1, b"\xff" * 8), (3, "-128", b"\x80"),
        (22, -8, b"\x08"), (1, 1, struct.pack("<f", 1)), (1, "16777217", struct.pack("<f", 16777216)),
        (1, 2**60 + 1, struct.pack("<f", 2.0**60)), (1, 3.4028235e38, b"\xff\xff\x7f\x7f"),
        (1, "NaN(0x7fc00000)", b"\0\0\xc0\x7f"), (1, 1e-60, b"\0\0\0\0"), (1, -0.0, b"\0\0\0\x80"),
        (10, 65519, b"\xff\x7b"), (11, "9007199254740993", struct.pack("<d", 2.0**53)), (17, 464, b"\x7e"),
        (18, -1e-9, b"\0"), (14, [1, "-0.0"], struct.pack("<2f", 1, -0.0)),
    ],
)  # fmt: skip
def test_other_spellings_of_a_number_are_taken(data_type: int, value: object, data: bytes) -> None:
    assert elements.pack(data_type, [value]) == data


@pytest.mark.parametrize(
    ("data_type", "value", "found", "fits"),
    [
        (7, 1.5, "1.5", "an integer from -9223372036854775808 to 9223372036854775807"),
        (7, 1e16, "1e+16", "an integer from"),
        (7, 2**63, "9223372036854775808", "an integer from"),
        (7, 10**50, "an integer of more than 38 digits", "an integer from"),
        (7, True, "true", "an integer from"),
        (7, None, "null", "an integer from"),
        (7, "1_0", '"1_0"', "an integer from"),
        (7, "-0", '"-0"', "an integer from"),
        (7, "01", '"01"', "an integer from"),
        (7, " 1", '" 1"', "an integer from"),
        (7, "٣", '"\\u0663"', "an integer from"),
        (7, "1.0", '"1.0"', "an integer from"),
        (7, "9" * 9999, '"9999999999999999999999999999999999999999..."', "an integer from"),
        (7, [1], "a list of 1", "an integer from"),
        (7, {}, "an object", "an integer from"),
        (3, 128, "128", "an integer from -128 to 127"),
        (2, -1, "-1", "an integer from 0 to 255"),
        (22, 8, "8", "an integer from -8 to 7"),
        (25, 4, "4", "an integer from 0 to 3"),
        (9, 1, "1", "true or false"),
        (1, True, "true", 'a number up to 3.4028234663852886e+38 in magnitude or "Infinity" or "NaN" (float32)'),
        (1, 3.5e38, "3.5e+38", "a number up to 3.4028234663852886e+38"),
        (1, 10**400, "an integer of more than 38 digits", "a number up to 3.4028234663852886e+38"),
        (1, math.inf, "a number that is not finite as binary64", "a number up to"),
        (1, math.nan, "a number that is not finite as binary64", "a number up to"),
        (1, "nan", '"nan"', "a number up to"),
        (1, "0.5", '"0.5"', "a number up to"),
        (1, "NaN(0x7fc0001)", '"NaN(0x7fc0001)"', "a number up to"),
        (1, "NaN(0x7f800000)", '"NaN(0x7f800000)"', "a number up to"),
        (11, 10**400, "an integer of more than 38 digits", "a number up to 1.7976931348623157e+308 in magnitude"),
        (10, 65520, "65520", "a number up to 65504.0 in magnitude"),
        (17, 465.0, "465.0", 'a number up to 448.0 in magnitude or "NaN" (float8_e4m3fn)'),
        (17, "Infinity", '"Infinity"', "a number up to 448.0"),
        (18, "-0.0", '"-0.0"', "a number up to 240.0"),
        (23, "NaN", '"NaN"', "a number up to 6.0 in magnitude (float4_e2m1fn)"),
        (24, 0, "0", 'a number from 2^-127 to 2^127 or "NaN" (float8_e8m0fnu)'),
        (24, -1.0, "-1.0", "a number from 2^-127"),
        (14, 1.0, "1.0", "a list of two numbers"),
        (14, [1.0, True], "true", "a number up to 3.4028234663852886e+38"),
    ],
)
def test_what_is_no_element_is_refused(data_type: int, value: object, found: str, fits: str) -> None:
    good: object = [0, 1] if data_type == 14 else data_type == 9 or 1
    with pytest.raises(ElementError) as caught:
        elements.pack(data_type, [good, good, value, value])
    assert caught.value.index == 2
    assert caught.value.found == found
    assert caught.value.fits.startswith(fits)
    assert str(caught.value) == f"element 2: found {found}, expected {caught.value.fits}"


def test_floats_whose_sum_overflows_are_taken() -> None:
    assert elements.pack(11, [1e308, 1e308]) == struct.pack("<2d", 1e308, 1e308)


@pytest.mark.parametrize(("value", "token"), [(2**53, "9007199254740992"), (-(2**53) - 1, '"-9007199254740993"')])
def test_integers_beyond_2_to_the_53_are_strings(value: int, token: str) -> None:
    assert int_text(value) == token
    assert parse_int(json.loads(token), -(2**63), 2**63 - 1) == value


@pytest.mark.parametrize("convert", [float32_bits, float64_bits])
def test_single_floats_have_the_same_tolerance(convert: Callable[[object], bytes]) -> None:
    assert convert(1) == convert(1.0) == convert("1")
    with pytest.raises(ElementError) as caught:
        convert(math.inf)
    assert caught.value.index == 0
    with pytest.raises(ElementError):
        convert(10**400)


def test_small_tensors_need_neither_numpy_nor_orjson() -> None:
    code = (
        "import sys; from onnxjson.model import elements as e; e.dtypes.float32_tokens(bytes(800)); e.pack(16, [1.5]); "
        "e.tokens(17, bytes(256), 256); e.pack(1, [0.5] * 9999); "
        "print(sys.modules.keys() & {'numpy', 'orjson', 'onnx'})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("dims", "count"), [((), 1), ((3,), 3), ((2, 0, 5), 0), ((-1, -2), 0), ((2**40, 2**40), 2**80), ((2**62, 0), 0)]
)
def test_element_count(dims: tuple[int, ...], count: int) -> None:
    assert elements.element_count(dims) == count


def test_dims_whose_exact_product_takes_minutes_are_counted_at_once() -> None:
    assert elements.element_count((2**62,) * 300_000) == elements.MOST_ELEMENTS
