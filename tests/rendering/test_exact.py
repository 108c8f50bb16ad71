"""JSON for other programs: exact and in ASCII."""

import json
import math
from typing import NamedTuple

import msgspec
import pytest

from onnxjson.rendering.values import Json, as_json


class _Pair(NamedTuple):
    left: object
    right: object


class _Thing(msgspec.Struct):
    name: object
    parts: object = ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (_Thing("é\x1b", (1, None, True)), {"name": "é\x1b", "parts": [1, None, True]}),
        (_Pair(1, [_Pair(2, 3)]), {"left": 1, "right": [{"left": 2, "right": 3}]}), ("\udcff", {"base64": "/w=="}),
        (math.nan, "NaN"), (-math.inf, "-Infinity"), (2**53, 2**53), (2**53 + 1, "9007199254740993"),
        (-(2**63), "-9223372036854775808"), (Json("0.1"), 0.1), (Json('"NaN(0x7f800001)"'), "NaN(0x7f800001)"),
        ({"a": (1,)}, {"a": [1]}),
    ],
)  # fmt: skip
def test_value_is_exact_json_in_ascii(value: object, expected: object) -> None:
    text = as_json(value)
    assert text.isascii()
    assert json.loads(text) == expected


def test_what_has_no_form_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="set has no JSON form"):
        as_json({1})
