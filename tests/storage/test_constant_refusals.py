"""Values that a constant cannot have are refused with their place, or with --lossy replaced by the nearest one."""

import re

import pytest

from onnxjson.model import elements
from onnxjson.model.dtypes import DATA_TYPE_NAMES, FLOATS
from onnxjson.model.errors import DecodeError, EncodeError, LimitError
from onnxjson.model.types import TypeSyntaxError
from onnxjson.storage.constant_reading import Encoded, from_base64, from_json, parse_json, parse_kind
from onnxjson.storage.constant_values import write_values


def encode(values: str, type_: str, *, lossy: bool = False) -> Encoded:
    return from_json(parse_json(values), parse_kind(type_), lossy=lossy)


def values_of(encoded: Encoded) -> str:
    text = bytearray()
    write_values(encoded.tensor, text.extend)
    return text.decode().strip()


HELD = [
    ("0.1", "float32"), ("0.1", "float16"), ("0.1", "bfloat16"), ("0.10000000149", "float32"),
    ("0.10000000149011612", "float32"), ("3.4028235e+38", "float32"), ("3.4028234663852886e38", "float32"),
    ("1e-45", "float32"), ("1e16", "float32"), ("7.0385307e-26", "float32"), ("7.038531e-26", "float32"),
    ("9.8607613e-32", "float32"), ("3.141592653589793238462643", "float64"), ("16777216", "float32"),
    ('"1152921504606846976"', "float32"), ("2048", "float16"), ("0.3", "float8_e4m3fn"), ("0.3125", "float8_e4m3fn"),
    ("0.5", "float4_e2m1fn"), ("-0", "float32"), ('"-0.0"', "float16"), ("2.0", "int8"), ("-0", "int8"),
    ('"18446744073709551615"', "uint64"), ("18446744073709551615", "uint64"), ("[0.1, -2]", "complex64"),
    ("NaN", "float16"), ("-Infinity", "float64"), ("true", "bool"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype"), HELD)
def test_value_that_the_dtype_holds_is_taken(value: str, dtype: str) -> None:
    assert encode(value, dtype).changed == 0


LOST = [
    ("16777217", "float32", "16777216.0"),
    ("16777217.0", "float32", "16777216.0"),
    ('"16777217"', "float32", "16777216.0"),
    ("9007199254740993", "float64", "9007199254740992.0"),
    ("10000000000000000", "float32", "1e+16"),
    ("2049", "float16", "2048.0"),
    ("0.123456789", "float32", "0.12345679"),
    ("3.141592653589793", "float32", "3.1415927"),
    ("3.14159", "bfloat16", "3.14"),
    ("2.4", "float4_e2m1fn", "2.0"),
    ("1e-50", "float32", "0.0"),
    ("1e-400", "float64", "0.0"),
    ("1e60", "float32", "3.4028234663852886e+38"),
    ("-1e400", "float64", "-1.7976931348623157e+308"),
    ("70000", "float16", "65500.0"),
    ("1000", "float4_e2m1fn", "6.0"),
    ('"Infinity"', "float8_e4m3fn", "448.0"),
    ('"-0.0"', "float8_e4m3fnuz", "0.0"),
    ("0", "float8_e8m0fnu", "5.877471754111438e-39"),
    ("-1", "float8_e8m0fnu", "5.877471754111438e-39"),
    ("300", "uint8", "255"),
    ("-1", "uint4", "0"),
    ("8", "int4", "7"),
    ("-9", "int4", "-8"),
    ("2", "int2", "1"),
    ("1.5", "int8", "2"),
    ("2.5", "int8", "2"),
    ("1e30", "int64", '"9223372036854775807"'),
    ('"18446744073709551616"', "uint64", '"18446744073709551615"'),
]


@pytest.mark.parametrize(
    ("value", "dtype", "becomes"),
    [
        ("65500", "float16", "65500.0 (exactly 65504)"),
        ("65519", "float16", "65500.0 (exactly 65504)"),
        ("10000000000000000", "float32", "1e+16 (exactly 10000000272564224)"),
        ("3.141592653589793", "float32", "3.1415927"),
        ("2049", "float16", "2048.0"),
    ],
)
def test_what_a_value_would_become_is_said_exactly_where_the_canonical_decimal_hides_it(
    value: str, dtype: str, becomes: str
) -> None:
    with pytest.raises(EncodeError) as raised:
        encode(f"[{value}]", dtype)
    assert f"it becomes {becomes}" in str(raised.value)


@pytest.mark.parametrize(("value", "dtype", "becomes"), LOST)
def test_value_that_the_dtype_does_not_hold_is_refused_and_lossy_takes_the_nearest(
    value: str, dtype: str, becomes: str
) -> None:
    with pytest.raises(EncodeError) as raised:
        encode(f"[[1, {value}]]", dtype)
    assert f"element [0,1]: {dtype} cannot represent " in str(raised.value)
    shown = str(raised.value)
    assert re.search(rf"it becomes {re.escape(becomes)}( \(exactly [^)]+\))?$", shown)
    encoded = encode(f"[{value}]", dtype, lossy=True)
    assert values_of(encoded) == f"[{becomes}]"
    assert encoded.changed == 1
    assert encoded.first.startswith("element [0] was ")
    assert encoded.first.endswith(f" and is {becomes}")


@pytest.mark.parametrize("data_type", [number for number in DATA_TYPE_NAMES if number not in (0, 8, 9, 14, 15)])
def test_lossy_takes_any_number_for_any_dtype(data_type: int) -> None:
    name = DATA_TYPE_NAMES[data_type]
    encoded = encode("[1e300, -1e300, 0.7, 123456789123456789, -3]", name, lossy=True)
    if data_type in FLOATS:
        assert encoded.tensor.raw_data
    else:
        low, high = elements.integer_range(data_type)
        assert values_of(encoded).replace('"', "").startswith(f"[{high}, {low}, 1, ")


HOPELESS = [
    ('"NaN"', "int8", "an integer from -128 to 127"),
    ('"Infinity"', "int8", "an integer"),
    ('"NaN"', "float4_e2m1fn", "a number up to 6.0"),
    ('"NaN(0x7fc00001)"', "float16", "a number"),
    ('"0.5"', "float32", "a number"),
    ("1", "bool", "true or false"),
    ("true", "int8", "an integer"),
    ("null", "float32", "a number"),
    ("{}", "float32", "a number"),
    ("[1, [2]]", "float32", "a value, as the first one is"),
    ("1", "complex64", "a list of two numbers"),
    ("1", "string", "a string"),
]


@pytest.mark.parametrize(("value", "dtype", "fits"), HOPELESS)
@pytest.mark.parametrize("lossy", [False, True])
def test_what_is_no_number_of_the_dtype_is_refused_with_and_without_lossy(
    value: str, dtype: str, fits: str, lossy: bool
) -> None:
    with pytest.raises(EncodeError, match="found") as raised:
        encode(value if value.startswith("[") else f"[{value}]", dtype, lossy=lossy)
    assert fits in str(raised.value)


def test_lossy_counts_every_change_and_leaves_the_others() -> None:
    encoded = encode("[[1, 300], [-5, 7]]", "uint8[2,2]", lossy=True)
    assert encoded.changed == 2
    assert encoded.first == "element [0,1] was 300 and is 255"
    assert encoded.tensor.raw_data == bytes([1, 255, 0, 7])


@pytest.mark.parametrize(
    ("values", "type_", "dims"),
    [
        ("5", "int8", ()), ("5", "int8[1]", (1,)), ("[5]", "int8[]", ()), ("[1, 2, 3, 4]", "int8[2,2]", (2, 2)),
        ("[[1, 2], [3, 4]]", "int8", (2, 2)), ("[]", "int8[0,3]", (0, 3)), ("[[], []]", "int8", (2, 0)),
        ("[[[1, 2]], [[3, 4]]]", "complex64", (2, 1)), ("[1, 2]", "complex64", ()),
        ('["a", "b"]', "string[2,1]", (2, 1)),
    ],
)  # fmt: skip
def test_nested_and_flat_values_have_the_shape_that_was_said_or_that_they_show(
    values: str, type_: str, dims: tuple[int, ...]
) -> None:
    assert encode(values, type_).tensor.dims == dims


@pytest.mark.parametrize(
    ("values", "type_", "says"),
    [
        ("[[1, 2], [3]]", "int8", "element [1]: found a list of 1, expected a list of 2"),
        ("[[1], 2]", "int8", "element [1]: found 2, expected a list of 1"),
        ("[1, 2, 3]", "int8[2]", "found 3 values of the shape [3], expected int8[2]"),
        ("[[1, 2, 3], [4, 5, 6]]", "int8[3,2]", "found 6 values of the shape [2,3], expected int8[3,2]"),
        ('["\\ud800"]', "string", "element [0]: found half of a surrogate pair"),
    ],
)
def test_wrong_shape_is_refused_with_its_place(values: str, type_: str, says: str) -> None:
    with pytest.raises(EncodeError) as raised:
        encode(values, type_)
    assert says in str(raised.value)


@pytest.mark.parametrize("text", ["", "[1, 2", "True", "[1,]", "'a'", b"\xff", "[" * 2])
def test_what_is_not_json_is_refused_with_line_and_column(text: str | bytes) -> None:
    with pytest.raises(DecodeError, match=r"the values: (line 1, column|byte 0)"):
        parse_json(text)


def test_json_that_nests_without_end_is_refused() -> None:
    with pytest.raises(LimitError, match="nest too deep"):
        parse_json("[" * 1_000_000)


def test_integer_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"cannot represent|an integer from"):
        encode("1" * 5000, "int64")


@pytest.mark.parametrize(
    ("text", "type_", "says"),
    [
        ("AACAPw==", "float32[2]", "the base64 has 4 bytes, but float32[2] needs 8 bytes"),
        ("AA==", "int4[0]", "the base64 has 1 byte, but int4[0] needs 0 bytes"),
        ("AAA", "int8[2]", "3 characters with 0 `=`"),
        ("AA-_", "int8[3]", "'-', which base64 does not use (character 3)"),
        ("AB==", "int8[1]", "the last digit of the base64, B, has bits beyond the last byte"),
        ("ERE=", "int4[3]", "the highest 4 bits of the last byte (0x11) are 0b0001; they only pad 3 elements of int4"),
        ("QA==", "uint2[3]", "the highest 2 bits of the last byte (0x40) are 0b01"),
        ("AEA=", "float6_e2m3fn[2]", "the highest 4 bits of the last byte (0x40) are 0b0100"),
        ("AAEC", "bool[3,1]", "element [2,0]: the byte is 2"),
        ("ERE=", "int4", "add the number of elements, such as int4[3]"),
        ("AAA=", "float32", "2 bytes, which is not a whole number of float32"),
        ("AAA=", "string[2]", "only one string can be written as base64"),
    ],
)
def test_wrong_base64_is_refused_with_what_is_wrong(text: str, type_: str, says: str) -> None:
    with pytest.raises(DecodeError) as raised:
        from_base64(text, parse_kind(type_))
    assert says in str(raised.value)


@pytest.mark.parametrize("text", ["itn8", "float32[", "float32[N]", "float32[-1]", "dtype(99)[2]", "seq(int8)"])
def test_type_that_no_constant_has_is_refused(text: str) -> None:
    with pytest.raises((TypeSyntaxError, EncodeError)):
        parse_kind(text)


@pytest.mark.parametrize("text", ["undefined", "undefined[2]", "dtype(99)"])
def test_dtype_without_elements_is_refused(text: str) -> None:
    with pytest.raises((EncodeError, TypeSyntaxError)):
        parse_kind(text)


def test_onnx_names_of_dtypes_are_taken() -> None:
    assert parse_kind("DOUBLE[2]") == parse_kind("double[2]") == parse_kind("float64[2]")
