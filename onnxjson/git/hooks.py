"""What the hooks of a repository ask of models: that the binary and its text agree, that no text holds big weights."""

from pathlib import Path

from onnxjson import files
from onnxjson.canonical.payload_forms import payloads
from onnxjson.payloads import Digest
from onnxjson.rendering.unified import digest_text


def pair_of(path: Path) -> tuple[Path, Path] | None:
    """The binary and the text that stand side by side under one name; None where there is only one of them."""
    name = path.name
    if name.endswith(".onnx.json"):
        binary, text = path.with_name(name.removesuffix(".json")), path
    else:
        binary, text = path, path.with_name(f"{name}.json")
    return (binary, text) if binary.is_file() and text.is_file() else None


def agree(binary: Path, text: Path) -> bool:
    """Whether two files hold the same model; weights that are not here count by their SHA-256.

    Raises:
        OnnxJsonError: one of them cannot be read.
    """
    one, other = (digest_text(files.load(path, bind=False).model) for path in (binary, text))
    return one == other


def inline_weights(path: Path, limit: int) -> list[int]:
    """The bytes of each tensor of more than `limit` bytes that stands in a text as base64; of a binary none.

    Raises:
        OnnxJsonError: it cannot be read.
    """
    loaded = files.load(path, bind=False)
    if loaded.format == "onnx":
        return []
    sizes = (len(data) for data, _ in payloads(loaded.model) if not isinstance(data, Digest))
    return [size for size in sizes if size > limit]
