"""Text of a model as git shows it, and the cache of such texts.

The text is canonical, without the bytes of weights and without most of the metadata. Every change of the model changes
at least one line: weights are shown as dtype, shape and SHA-256, the metadata of elements as one line with its count
and SHA-256. All other lines are those of the file if the file is canonical, so that line numbers in diffs lead to them.

Texts that took a while are kept in the user's cache folder::

    $XDG_CACHE_HOME/onnxjson/textconv/1/         without the variable ~/.cache/onnxjson/...; the version of the texts
        5e88...24                                a text, named by the SHA-256 of its file; its own SHA-256 comes first

Only complete texts are kept. The cache never fails: without it, git waits a little longer.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from onnxjson.codecs.canonical_values import INDENTS
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights, blobs_folder, payloads
from onnxjson.model.document import Model
from onnxjson.model.payloads import Data, Digest

VERSION: Final = 1
"""Version of the texts that this module writes, and of the cache."""


class _Shown(Weights):
    """Form of big tensors: their SHA-256, or the blob that the file names."""

    __slots__ = ()

    def kind(self, data: Data, storage: str | None) -> str:  # type: ignore[override]
        """See `Weights.kind`; here also the typed integers, which are base64 in every file."""
        return "sha256" if blobs_folder(data) is None else "blob"


class _ShownText(TextWriter):
    """Writer of the text that git shows."""

    def element_metadata(self, lines: list[bytes], indent: int) -> None:
        """See `TextWriter.element_metadata`; here one line."""
        digest = hashlib.sha256(b"\n".join(lines)).hexdigest()
        text = b'"element_metadata": {"lines": %d, "sha256": "%b"}' % (len(lines), digest.encode())
        self.key(text, INDENTS[indent])


def write(model: Model, sink: Callable[[bytes], object]) -> None:
    """Write the text of a model to `sink` in pieces, UTF-8.

    Raises:
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: the file of a payload cannot be read any more.
    """
    apart = [data for data, _ in payloads(model) if isinstance(data, Digest)]
    folders = [data.folder for data in apart if data.folder is not None]
    weights = _Shown(has_digests=len(folders) < len(apart), blobs=folders[0] if folders else None)
    _ShownText(sink, weights).model(model)


LARGEST: Final = 512 * 1024 * 1024
"""Maximum size of the cache, in bytes; the least recently used texts are removed first."""

_HEAD: Final = 65
"""Bytes before the text: its SHA-256 and a line feed."""


def cache_folder() -> Path | None:
    """Return the folder of the cache; None if the user has no home folder."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):  # Relative paths are to be ignored: XDG Base Directory Specification 0.8.
        home = os.path.expanduser("~")
        if not home.startswith("/"):
            return None
        cache = os.path.join(home, ".cache")
    return Path(cache, "onnxjson", "textconv", str(VERSION))


def read_cached(sha256: str) -> bytes | None:
    """Return the text of the file with that SHA-256; None if it is not in the cache, or damaged there."""
    place = cache_folder()
    if place is None:
        return None
    try:
        found = (place / sha256).read_bytes()
        if hashlib.sha256(found[_HEAD:]).hexdigest().encode() != found[: _HEAD - 1]:
            (place / sha256).unlink()
            return None
        os.utime(place / sha256)
    except OSError:
        return None
    return found[_HEAD:]


def cache(sha256: str, text: Sequence[bytes | bytearray | memoryview]) -> None:
    """Keep a text, given in pieces, for the file with that SHA-256; a full disk is not an error."""
    place = cache_folder()
    if place is None or sum(map(len, text)) > LARGEST // 4:
        return
    digest = hashlib.sha256()
    for piece in text:
        digest.update(piece)
    temporary = place / f".{sha256[:16]}-{secrets.token_hex(8)}"
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(digest.hexdigest().encode() + b"\n")
                for piece in text:
                    file.write(piece)
            temporary.replace(place / sha256)
        finally:
            temporary.unlink(missing_ok=True)
        _remove_oldest(place)


def _remove_oldest(place: Path) -> None:
    """Remove the least recently used texts until the cache is within its limit."""
    with os.scandir(place) as entries:
        found = [(entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries]
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= LARGEST:
            return
        total -= size
        os.unlink(path)
