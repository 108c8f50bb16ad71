"""A model as `onnxjson.git.textconv` shows it: its canonical text, with SHA-256 instead of long values.

Long values are big tensors, long attributes, and metadata.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from onnxjson.codecs import text_file
from onnxjson.codecs.canonical_values import INDENTS
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights, blobs_folder, payloads
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.display import whole_texts
from onnxjson.model.document import Attribute, Model
from onnxjson.model.errors import LimitError, OnnxJsonError, OtherJsonError
from onnxjson.model.limits import TEXTCONV_BYTES
from onnxjson.model.payloads import Data, Digest
from onnxjson.storage import files
from onnxjson.storage.identity import sha256_of

_LONGEST_LINE: Final = 2000
"""Maximum size, in bytes, of a line of a text that is not a model; base64 of weights is longer."""

Pieces = list[bytes | bytearray | memoryview]


def text_of(path: Path, reason: Callable[[OnnxJsonError, str], bytes]) -> tuple[Pieces, bool]:
    """Return the text of a file, and whether it is the complete text of a model; `reason` is that of `textconv`.

    Raises:
        OnnxJsonError: the file is neither a model nor a text.
    """
    pieces: Pieces = []
    left = TEXTCONV_BYTES

    def write(piece: bytes | bytearray | memoryview) -> None:
        nonlocal left
        left -= len(piece)
        if left < 0:
            raise LimitError(f"its text has more than {TEXTCONV_BYTES:,} bytes")
        pieces.append(piece)

    try:
        loaded = files.load(path, bind=False)
    except ConflictError:
        _write_conflicted(path, write)
        return pieces, False
    except OtherJsonError:
        return [path.read_bytes()], False
    except OnnxJsonError as error:
        lines = _readable_lines(path)
        if lines is None:
            raise
        return [reason(error, "shown as it is") + b"\n", *lines], False
    write_text(loaded.model, write)
    if not _is_canonical(path, loaded):
        what = "canonical: onnxjson fmt makes it so" if loaded.format == "json" else "as onnxjson writes this model"
        write(f"the file is not {what}; sha256 {sha256_of(path)}\n".encode())
    return pieces, True


def _write_conflicted(path: Path, write: Callable[[bytes], object]) -> None:
    """Write the conflicts of a merge in words, then the merged model as any other; lines differ if the file does."""
    from onnxjson.merging.conflict_text import conflict_lines, headline

    loaded = files.load(path, bind=False, conflicted=True)
    with whole_texts():
        for line in (f"{headline(loaded.conflicts)} of a merge", *conflict_lines(loaded.model, loaded.conflicts)):
            write(f"{line}\n".encode())
    write_text(loaded.model, write)
    write(f"sha256 of the file with the conflicts: {sha256_of(path)}\n".encode())


def _is_canonical(path: Path, loaded: files.Loaded) -> bool:
    """Whether no other file has the same text, so that no line has to distinguish them."""
    if loaded.format == "onnx":
        return not loaded.warnings
    return loaded.format == "json" and files.is_canonical(path, loaded)


def _readable_lines(path: Path) -> Pieces | None:
    """Lines of a text that is not a model, long ones as their SHA-256; None if the file is not a text."""
    if path.stat().st_size > TEXTCONV_BYTES:
        return None
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    if not text_file.is_printable(content):
        return None
    lines: Pieces = []
    for line in content.splitlines(keepends=True):
        lines.append(_shortened(line) + b"\n" if len(line) > _LONGEST_LINE else line)
    if lines and not bytes(lines[-1]).endswith(b"\n"):
        lines.append(b"\n")
    return lines


def _shortened(text: bytes) -> bytes:
    start = text[:80].decode(errors="ignore")
    return f"{start}... {len(text)} bytes, sha256 {hashlib.sha256(text).hexdigest()}".encode()


class _Shown(Weights):
    """Form of big tensors: their SHA-256, or the blob that the file names."""

    __slots__ = ()

    def kind(self, data: Data, storage: str | None) -> str:  # type: ignore[override]
        """See `Weights.kind`; here also the typed integers, which are base64 in every file."""
        return "sha256" if blobs_folder(data) is None else "blob"


class _ShownText(TextWriter):
    def attributes(self, attributes: Sequence[Attribute], table: Mapping[str, int], indent: int) -> None:
        """See `ShortForms.attributes`; here long values, such as the trees of a forest, are cut, with their SHA-256."""
        start = len(self.out)
        super().attributes(attributes, table, indent)
        has_graphs = any([each.g is not None or each.graphs for each in attributes])  # each node in them is cut itself
        for place in range(start, start if has_graphs else len(self.out)):
            piece = self.out[place]
            if isinstance(piece, bytes) and len(piece) > _LONGEST_LINE:
                self.out[place] = _shortened(piece)

    def element_metadata(self, lines: list[bytes], indent: int) -> None:
        """See `TextWriter.element_metadata`; here one line."""
        digest = hashlib.sha256(b"\n".join(lines)).hexdigest()
        text = b'"element_metadata": {"lines": %d, "sha256": "%b"}' % (len(lines), digest.encode())
        self.key(text, INDENTS[indent])


def write_text(model: Model, sink: Callable[[bytes], object]) -> None:
    """Write the text of a model to `sink` in pieces, UTF-8.

    Raises:
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: the file of a payload cannot be read any more.
    """
    apart = [data for data, _ in payloads(model) if isinstance(data, Digest)]
    folders = [data.folder for data in apart if data.folder is not None]
    weights = _Shown(has_digests=len(folders) < len(apart), blobs=folders[0] if folders else None)
    _ShownText(sink, weights).model(model)
