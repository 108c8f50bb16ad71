"""Model files: their names, and what is read before one is replaced."""

import pytest

from onnxjson.storage.files import KNOWN_ENDINGS, format_for, stem_and_ending


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("m.onnx", ("m", ".onnx")), ("m.onnx.json", ("m", ".onnx.json")),
        ("folder.onnx/m.onnxjson", ("m", ".onnxjson")), ("m.v2.JSON", ("m.v2", ".JSON")), ("m.pb", ("m", ".pb")),
        ("m", ("m", "")), ("m.txt", ("m.txt", "")), (".onnx", (".onnx", "")),
    ],
)  # fmt: skip
def test_name_is_split_into_stem_and_ending(name: str, parts: tuple[str, str]) -> None:
    assert stem_and_ending(name) == parts


@pytest.mark.parametrize("ending", KNOWN_ENDINGS)
def test_ending_of_a_form_is_split_off_whole(ending: str) -> None:
    stem, found = stem_and_ending(f"m{ending}")
    assert (stem, found) == ("m", ending)
    assert format_for(f"m{ending}") == format_for(f"other{found}")
