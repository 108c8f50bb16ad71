"""Values of fields: plausible ones, and the ones that break careless code."""

import struct
from random import Random

INT64_ODDITIES = (
    0, 1, -1, 2, 3, 127, 128, -128, 255, 256, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**53 - 1,
    2**53, 2**53 + 1,
    -(2**53) + 1, -(2**53), -(2**53) - 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 9007199254740993,
)  # fmt: skip
UINT64_ODDITIES = (0, 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2)
INT32_ODDITIES = (0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 32767, 65535, 65536, 2**31 - 1, -(2**31), 99, 28, 29)

PLAUSIBLE_FLOATS = tuple(
    struct.pack("<f", number)
    for number in (0.0, 1.0, -1.0, 0.5, 0.1, 1e-5, 1e-12, 0.01, 0.2, 6.0, 1e16, 3.14159274, 127.5, -0.3)
)
FLOAT_ODDITIES = tuple(
    struct.pack("<I", bits)
    for bits in (
        0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
        0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFBFFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x4B800000, 0x5F000000,
        0x15AE43FD, 0x15AE43FE, 0x95AE43FD, 0x3DCCCCCD,
    )
)  # fmt: skip
"""-0.0, subnormals, limits, quiet and signalling NaNs, 2^24, 2^63; 0x15ae43fd is 7.0385307e-26, with its neighbours."""
PLAUSIBLE_DOUBLES = tuple(struct.pack("<d", number) for number in (0.0, 1.0, -1.0, 0.5, 0.1, 1e-5, 2.5e300, 1e16, 1e22))
DOUBLE_ODDITIES = tuple(
    struct.pack("<Q", bits)
    for bits in (
        0x8000000000000000, 1, 0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
        0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF8000000000001,
        0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x4340000000000001,
    )
)  # fmt: skip

STRING_ODDITIES = tuple(
    text.encode()
    for text in (
        "", " ", "  x ", "0", "1", "12", "007", "-1", "1.5", "4294967295", "true", "null", "NaN", "format", "type",
        "__proto__", "constructor", "a.b/c:d", "/layer/0/MatMul_output_0", 'say "hi"', "back\\slash", "\\u0041", "\\",
        "it's", "'", "''", "tab\there", "a\rb", "a\r\nb", "\r", "\n", "a\n", "\na", "two\nlines", "a\n\nb",
        "\x00", "\x07\x1b[31m",
        "\x7f", "\x80\x9f", "\u00a0", "\u00ad", "café", "cafe\u0301", "\u202eevil\u202c", "\u2066x\u2069",
        "\u2028", "\u2029",
        "\ufeffbom", "\ufffe", "\uffff", "\ufffd", "\ue000", "😀", "a😀b", "\U000e0001", "\U0010ffff", "\U00100000",
        "漢字",
        "\u0600", "\u180e", "\u0378", "2*s0", "s0 + 1", "?", "[", "]", ",", "a,b", "seq(float32)",
        "float32[1]", "{}", "[]",
        '{"base64": "AA=="}', "base64", "// no comment", "/* x */", "N\n", "<script>", "${HOME}", "%s%n",
        "../../etc/passwd",
    )
)  # fmt: skip
INVALID_UTF8 = (
    b"\xff", b"a\xffb", b"\xc0\x80", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xed\xb3\xbf", b"\xe2\x82",
    b"\xf4\x90\x80\x80",
    b"ok\x80", b"\xf0\x9f\x98", b"\xed\xa0\xbd\xed\xb8\x80", b"\x80\n\x81", b'"\xfe\\',
)  # fmt: skip
"""Overlong forms, surrogates, cut sequences, numbers above U+10FFFF."""

IDENTIFIERS = (
    b"x", b"main", b"fc1", b"layer_norm", b"node_1", b"encoder.layer.0", b"pkg.Model", b"pytorch", b"2.1.0",
    b"com.acme",
)  # fmt: skip
KEYS = (
    b"location", b"offset", b"length", b"namespace", b"pkg.torch.onnx.stack_trace", b"author", b"SCALE_TENSOR", b"a",
    b"b", b"note",
)  # fmt: skip
TEXTS = (
    b"a note", b"one\ntwo\nthree", b"weights.bin", b"4096", b"", b'File "m.py", line 3\n    y = f(x)\n',
    b"MIT", b"0", b"x -> y",
)  # fmt: skip
STRING_VALUES = (b"NOTSET", b"SAME_UPPER", b"constant", b'x == "\\w"', b"\xc3\xa9", b"")
DOMAINS = (b"", b"ai.onnx", b"ai.onnx.ml", b"com.microsoft", b"pkg.custom", b"ai.onnx.preview.training")
DIM_NAMES = (b"N", b"batch", b"seq_len", b"s0", b"2*s0", b"", b"?", b"_x", b"unk__12", b"d'", b"h w", b"12", b"-1")
RANDOM_CHARACTERS = (
    "abcXYZ019 _-./:\"'\\\n\t\r\x00\x1f\x7f\x85\xa0\xad\u0301\u03b1\u200b\u200f\u202a\u2028\u3042\ud7ff"
    "\ue000\ufeff\uffff\U00010000\U0001f600\U000e0020\U0010fffd"
)


def random_string(rng: Random, longest: int) -> bytes:
    """Valid UTF-8 of up to `longest` characters, escapes of every kind among them."""
    return "".join(rng.choices(RANDOM_CHARACTERS, k=rng.randint(0, longest))).encode()


def odd_string(rng: Random) -> bytes:
    """A string that breaks careless code; one in five is not UTF-8."""
    choice = rng.random()
    if choice < 0.2:
        return rng.choice(INVALID_UTF8)
    if choice < 0.25:
        return b"%d" % rng.getrandbits(20)
    if choice < 0.8:
        return rng.choice(STRING_ODDITIES)
    return random_string(rng, 24)


def int64(rng: Random, odd: bool) -> int:
    """A signed integer of 64 bits."""
    if not odd:
        return rng.randint(-2, 16)
    return rng.choice(INT64_ODDITIES) if rng.random() < 0.7 else rng.getrandbits(64) - 2**63


def uint64(rng: Random, odd: bool) -> int:
    """An unsigned integer of 64 bits."""
    if not odd:
        return rng.randint(0, 16)
    return rng.choice(UINT64_ODDITIES) if rng.random() < 0.7 else rng.getrandbits(64)


def int32(rng: Random, odd: bool) -> int:
    """A signed integer of 32 bits."""
    if not odd:
        return rng.randint(0, 28)
    return rng.choice(INT32_ODDITIES) if rng.random() < 0.7 else rng.getrandbits(32) - 2**31


def float32(rng: Random, odd: bool) -> bytes:
    """Four bytes, little-endian."""
    if not odd:
        return rng.choice(PLAUSIBLE_FLOATS)
    return rng.choice(FLOAT_ODDITIES) if rng.random() < 0.6 else rng.getrandbits(32).to_bytes(4, "little")


def float64(rng: Random, odd: bool) -> bytes:
    """Eight bytes, little-endian."""
    if not odd:
        return rng.choice(PLAUSIBLE_DOUBLES)
    return rng.choice(DOUBLE_ODDITIES) if rng.random() < 0.6 else rng.getrandbits(64).to_bytes(8, "little")
