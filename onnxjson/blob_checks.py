"""Whether the blobs that a text names are there, as long as their tensors need. None is read to its end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from onnxjson.addresses import walk
from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.document import Model, StringStringEntry, Tensor
from onnxjson.errors import MissingInputError, OnnxJsonError
from onnxjson.external import Resolver
from onnxjson.payloads import Digest

_FIELDS: Final = ("raw_data", "float_data", "double_data")
"""Where a tensor can have a digest instead of bytes."""

_HINT: Final = "fetch it with `git lfs pull` or from git, or write it again from a model that has the bytes"


def check_blobs(model: Model, folder: Path) -> Iterator[Finding]:
    """What is wrong with the blobs of a model, tensor by tensor, each with the address of the tensor.

    Args:
        model: as a text gives it, its blobs unbound (``files.load(path, bind=False)``).
        folder: that in which the text really stands.
    """
    resolver = Resolver(folder)
    for address, record in walk(model):
        if not isinstance(record, Tensor):
            continue
        for field in _FIELDS:
            digest = getattr(record, field)
            if isinstance(digest, Digest) and digest.folder is not None:
                mistake = _mistake(digest, resolver)
                if mistake is not None:
                    code, message = mistake
                    yield Finding(severity="error", code=code, address=address, message=message, hint=_HINT)


def _mistake(blob: Digest, resolver: Resolver) -> tuple[str, str] | None:
    """Code and message; None where nothing is wrong."""
    place = f"{blob.folder}/{blob.sha256}"
    called = f"the blob {visible(place, None)}"
    try:
        found = resolver.resolve((StringStringEntry("location", place),), None, where=f"{called} cannot be used")
    except MissingInputError:
        return "missing-blob", f"{called} is not there"
    except OnnxJsonError as error:
        return "unusable-blob", str(error)
    if len(found) != len(blob):
        return "unusable-blob", f"{called} has {len(found):,} bytes; the tensor needs {len(blob):,}"
    return None
