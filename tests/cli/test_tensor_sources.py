"""``tensor get -o`` and ``convert -o`` never replace what they read."""

import os
from pathlib import Path

import pytest

from tests.cli.running import run


@pytest.fixture
def folder(binary: Path) -> Path:
    """The folder of the example, its text with blobs, and its text with digests."""
    run("convert", binary, "--weights", "blobs", "-o", binary.with_name("b.onnx.json"))
    run("convert", binary, "--weights", "digest", "-o", binary.with_name("d.onnx.json"))
    run("convert", binary, "-o", binary.with_name("source.onnx.json"))
    return binary.parent


def test_tensor_get_does_not_replace_the_model_that_it_reads(folder: Path) -> None:
    text = folder / "source.onnx.json"
    before = text.read_bytes()
    result = run("tensor", "get", text, "fc.weight", "-o", text)
    assert result.exit_code == 73
    assert "is the input itself" in result.stderr
    assert text.read_bytes() == before


def test_tensor_get_does_not_replace_the_model_that_has_the_weights(folder: Path) -> None:
    text = folder / "source.onnx.json"
    before = text.read_bytes()
    result = run("tensor", "get", folder / "d.onnx.json", "fc.weight", "--weights-from", text, "-o", text)
    assert result.exit_code == 73
    assert "is the model that has the weights" in result.stderr
    assert text.read_bytes() == before


def test_convert_does_not_replace_a_blob_that_the_text_names(folder: Path) -> None:
    (blob,) = (folder / "b.blobs").iterdir()
    before = blob.read_bytes()
    result = run("convert", folder / "b.onnx.json", "--to", "onnx", "-o", blob)
    assert result.exit_code == 73
    assert "contains weights of" in result.stderr
    assert blob.read_bytes() == before


@pytest.mark.parametrize("words", [("encode", "--type", "float32"), ("decode", "--type", "float32")])
def test_values_are_read_from_regular_files_only(tmp_path: Path, words: tuple[str, ...]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for source in (pipe, "/dev/zero"):
        result = run("tensor", *words, "--from", source)
        assert result.exit_code == 66
        assert "is not a regular file" in result.stderr
