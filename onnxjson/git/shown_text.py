"""What git shows of a model: its canonical text without the bytes of weights and without the bulk of its metadata.

Every change of the model changes at least one line: weights stand as dtype, shape and SHA-256, the metadata of elements
as one line with its count and SHA-256. All other lines are those of the file where the file is canonical, so that the
numbers of lines that git prints lead to them.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from onnxjson.canonical.payload_forms import Weights, blobs_folder, payloads
from onnxjson.canonical.strings import INDENTS
from onnxjson.canonical.writer import TextWriter
from onnxjson.document import Model
from onnxjson.payloads import Data, Digest

VERSION: Final = 1
"""Counts the changes of what this module writes: texts that are kept are those of one version."""


class _Shown(Weights):
    """Big tensors as their SHA-256, or as the blob that the file names."""

    __slots__ = ()

    def kind(self, data: Data, storage: str | None) -> str:  # type: ignore[override]
        """See `Weights.kind`; here also the typed integers, which are base64 in every file."""
        return "sha256" if blobs_folder(data) is None else "blob"


class _ShownText(TextWriter):
    """The writer of what git shows."""

    def element_metadata(self, lines: list[bytes], indent: int) -> None:
        """See `TextWriter.element_metadata`; here one line."""
        digest = hashlib.sha256(b"\n".join(lines)).hexdigest()
        text = b'"element_metadata": {"lines": %d, "sha256": "%b"}' % (len(lines), digest.encode())
        self.key(text, INDENTS[indent])


def write(model: Model, sink: Callable[[bytes], object]) -> None:
    """Give the text of a model to `sink` in pieces, UTF-8.

    Raises:
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a payload's file cannot be read any more.
    """
    apart = [data for data, _ in payloads(model) if isinstance(data, Digest)]
    folders = [data.folder for data in apart if data.folder is not None]
    weights = _Shown(has_digests=len(folders) < len(apart), blobs=folders[0] if folders else None)
    _ShownText(sink, weights).model(model)
