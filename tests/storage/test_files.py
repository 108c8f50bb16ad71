"""Model files: their names, and what is read before one is replaced."""

from pathlib import Path

import pytest

from onnxjson.model.errors import MissingInputError
from onnxjson.storage.files import KNOWN_ENDINGS, format_for, stem_and_ending
from onnxjson.storage.identity import sha256_of


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


def test_a_missing_file_is_answered_with_a_model_and_not_with_its_weights(tmp_path: Path) -> None:
    for name in ("model.onnx", "model.onnx.data", "model.onnx.json"):
        (tmp_path / name).touch()
    for wrong, meant in (("modle.onnx", "model.onnx"), ("modle.onnx.json", "model.onnx.json")):
        with pytest.raises(MissingInputError) as caught:
            sha256_of(tmp_path / wrong)
        assert str(caught.value).endswith(f'did you mean "{tmp_path / meant}"?')
    with pytest.raises(MissingInputError, match=r"is a folder; a file is expected$"):
        sha256_of(tmp_path)
