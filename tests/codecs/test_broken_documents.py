"""Whatever is done to a document, nothing but `DecodeError` comes out."""

import random
import re

import pytest

from onnxjson.codecs.reading.exact_reader import read
from onnxjson.codecs.reading.scan import scan
from onnxjson.model.errors import DecodeError, Finding
from tests.codecs.documents import DOCUMENT

WORDS = b'{ } [ ] , : " \\ // null true NaN -0 1e999 1.5 -1 999999999999999999999 \xff \'x\' {} [] "a" # /* False'
PIECES = [
    *WORDS.split(),
    b"\n<<<<<<< a\n",
    b"\n=======\n",
    b'{"base64": "A"}',
    b'"@cut:0"',
    b"\\ud800",
    b'"NaN(0x1)"',
    b"\x00",
    "“x”".encode(),
]


def mutated(text: bytes, rng: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(rng.choice([1, 1, 2, 5])):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([0, 1, 2, 5, 30]))
        match rng.randrange(5):
            case 0:
                del data[start:end]
            case 1:
                data[start:end] = rng.choice(PIECES)
            case 2:
                del data[start:]
            case 3:
                other = rng.randrange(len(data) + 1)
                data[start:start] = data[other : other + rng.choice([5, 50])]
            case 4:
                values = list(re.finditer(rb'"[^"\n]*"(?!:)|-?\d+(?:\.\d+)?', bytes(data)))
                if values:
                    chosen = rng.choice(values)
                    data[chosen.start() : chosen.end()] = rng.choice([*PIECES, b"0", b"[]", b'"float32[2]"', b'["a"]'])
    return bytes(data)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_but_a_decode_error_comes_out_of_a_broken_document(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        text = mutated(DOCUMENT, rng)
        for finding in findings(text):
            assert finding.line >= 1
            assert finding.column >= 1
            assert "\n" not in str(finding)


def findings(text: bytes) -> tuple[Finding, ...]:
    try:
        return read(text, file="m")[1]
    except DecodeError as error:
        return error.findings


def test_reading_twice_gives_equal_records() -> None:
    assert read(DOCUMENT) == read(DOCUMENT)
    assert scan(DOCUMENT).mistakes == []


@pytest.mark.parametrize(
    "text",
    [
        b'["' + b"," * 300_000 + b"x",
        b'["' + b"a'b\\" * 100_000,
        b'{"a": "x" y"' + b', "b": "c"' * 50_000 + b"}",
        b"=======\n" * 50_000,
        b"[" + b"NaN, " * 50_000 + b"]",
        b"[" + b"1 2 " * 50_000 + b"]",
        b"'" * 200_000,
        "“".encode() * 100_000,
        b"/*" * 100_000,
        b"[" + b" " * 500_000,
        b'{"format": "onnxjson/1", ' + b", ".join(b'"k%d": 1' % number for number in range(20_000)) + b"}",
    ],
    ids=range(11),
)
@pytest.mark.timeout(120)
def test_no_text_takes_more_time_than_its_length(text: bytes) -> None:
    assert findings(text)
