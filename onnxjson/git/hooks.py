"""Checks for hooks of a repository: a binary agrees with its text, and no text holds big weights."""

from pathlib import Path

from onnxjson.codecs.tensor_text import payloads
from onnxjson.diffing.unified import digest_text
from onnxjson.model.payloads import Digest
from onnxjson.storage import files


def pair_of(path: Path) -> tuple[Path, Path] | None:
    """Find the binary and the text of one name next to each other; None if there is only one of them."""
    name = path.name
    if name.endswith(".onnx.json"):
        binary, text = path.with_name(name.removesuffix(".json")), path
    else:
        binary, text = path, path.with_name(f"{name}.json")
    return (binary, text) if binary.is_file() and text.is_file() else None


def agree(binary: Path, text: Path) -> bool:
    """Whether two files hold the same model; missing weights are compared by their SHA-256.

    Raises:
        OnnxJsonError: one of them cannot be read.
    """
    one, other = (digest_text(files.load(path, bind=False).model) for path in (binary, text))
    return one == other


def inline_weights(path: Path, limit: int) -> list[int]:
    """Return the sizes, above `limit`, of the tensors that a text holds as base64, in bytes; none for a binary.

    Raises:
        OnnxJsonError: the file cannot be read.
    """
    loaded = files.load(path, bind=False)
    if loaded.format == "onnx":
        return []
    sizes = (len(data) for data, _ in payloads(loaded.model) if not isinstance(data, Digest))
    return [size for size in sizes if size > limit]
