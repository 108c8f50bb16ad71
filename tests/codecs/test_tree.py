"""The fast tree and the scanned tree are one, and the fast one refuses whatever has to be reported."""

import math
import random
import sys
from pathlib import Path

import pytest

from onnxjson.codecs.reading import tree
from onnxjson.codecs.reading.scan import scan

DOCUMENT = (Path(__file__).parents[1] / "golden" / "mistakes" / "model.onnx.json").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        b"{}",
        b" [1, -1, 1.5, 1e3, -2E-2, 9007199254740993.0, 12345678901234567890, true, false, null] ",
        rb'["\u00e9\n\t\\\"", "\ud83d\ude00", "a//b", "[", "}"]',
        b'{"a": [1, 2,], "b": {"c": 1,},} // end',
        b'// a comment with " and { in it\n[1, // one\n 2]\n',
        b"[" * 256 + b"]" * 256,
        b'{"": {"": [{}]}}',
    ],
)
def test_both_ways_give_the_same_tree(text: bytes) -> None:
    scanned = scan(text)
    assert scanned.mistakes == []
    assert scanned.is_whole
    is_clean, fast = tree.parse(text)
    if is_clean:
        assert repr(fast) == repr(scanned.tree)


def test_comments_and_trailing_commas_go_the_fast_way() -> None:
    assert tree.parse(b'{"a": [1, 2,], // two\n}') == (True, {"a": [1, 2]})


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[1,,2]", b"[,]", b"[1 2]", b"{,}", b'{"a":,}', b'{"a": 1, "a": 2}', b"[-0]", b"[1e999]", b"[NaN]",
        b"[-Infinity]", rb'["\ud800"]', b'["\xff"]', b'["a\tb"]', b"\xef\xbb\xbf[]", b"[" * 257 + b"]" * 257,
        b"[" * 1_000_000, b"[1] 2", b"[" + b"9" * 5000 + b"]", b"[1, // no end", b"{'a': 1}",
    ],
)  # fmt: skip
def test_whatever_has_to_be_reported_is_left_to_the_scanner(text: bytes) -> None:
    assert tree.parse(text) == (False, None)
    assert scan(text).mistakes


def test_minus_zero_as_a_float_is_a_number() -> None:
    is_clean, value = tree.parse(b"[-0.0, -0e0]")
    assert is_clean
    assert repr(value) == "[-0.0, -0e0]"
    assert isinstance(value, list)
    assert [math.copysign(1, number) for number in value] == [-1, -1]


def test_a_minus_zero_inside_a_text_is_text() -> None:
    assert scan(b'["a -0, b"]').tree == ["a -0, b"]
    assert scan(b'["a -0, b"]').mistakes == []


def test_depth_is_found_before_python_recurses() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    limit = sys.getrecursionlimit()
    assert tree.parse(deep) == (False, None)
    assert [mistake.code for mistake in scan(deep).mistakes] == ["nesting-too-deep"]
    assert sys.getrecursionlimit() == limit


def test_random_json_is_read_alike_both_ways() -> None:
    import json

    rng = random.Random(7)

    def value(depth: int) -> object:
        kind = rng.randrange(8 if depth else 5)
        if kind < 5:
            return (rng.randrange(-9, 9), rng.uniform(-1e20, 1e20), "".join(rng.choices('a"\\\n/é[', k=3)), True, None)[
                kind
            ]
        if kind == 5:
            return [value(depth - 1) for _ in range(rng.randrange(4))]
        return {f"k{number}": value(depth - 1) for number in range(rng.randrange(4))}

    for _ in range(300):
        written = json.dumps(value(5), indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5).encode()
        is_clean, fast = tree.parse(written)
        scanned = scan(written)
        assert is_clean, written
        assert scanned.mistakes == []
        assert repr(fast) == repr(scanned.tree)
