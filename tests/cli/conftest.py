"""Files that commands work on."""

from pathlib import Path

import pytest

from onnxjson import example
from onnxjson.storage import api


@pytest.fixture(scope="session")
def example_bytes() -> bytes:
    return example.make_example().SerializeToString()


@pytest.fixture
def binary(tmp_path: Path, example_bytes: bytes) -> Path:
    """The example as digits.onnx, alone in its folder."""
    path = tmp_path / "digits.onnx"
    path.write_bytes(example_bytes)
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """The example as digits.onnx.json, alone in its folder."""
    path = tmp_path / "digits.onnx.json"
    path.write_text(api.dumps(api.from_proto(example.make_example())), encoding="utf-8")
    return path
