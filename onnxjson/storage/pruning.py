"""Remove blobs that no text names any more; in case of doubt, a blob is kept.

The content of a file decides whether it is a text, not its name; the backups of `undo-save` count too. While a document
of this package that may name blobs cannot be read, nothing is removed; any other file names none.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from onnxjson.codecs.tensor_text import payloads
from onnxjson.codecs.text_file import looks_like_text
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError, OutputError
from onnxjson.model.payloads import Digest
from onnxjson.storage import files
from onnxjson.storage.backups import backups
from onnxjson.storage.saving import PIECE, system_errors
from onnxjson.storage.weights import checked_folder

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_MARKS: Final = frozenset({b"onnxjson/", b"blob"})
"""Marks of a document of this package that names blobs: in its format, and where it names them."""
_YOUNG_SECONDS: Final = 600
"""Minimum age of a removed blob: the text that names a newer one may not be written yet."""


def prune_blobs(path: Path) -> list[Path]:
    """Remove the blobs of a text that no text names, neither in its folder nor above it in the same git repository.

    Return the removed files. Nothing is removed, and OutputError is raised, if a document that may name blobs cannot be
    read.
    """
    digests = _digests(path)
    folders = sorted({digest.folder for digest in digests if digest.folder is not None})
    if not folders:
        return []
    used = {digest.sha256 for digest in digests}
    for text in _texts_around(path):
        used |= _names_in(text)
        for backup in backups(text):
            used |= _names_in(backup.file)
    blobs = [blob for name in folders for blob in _blobs_in(checked_folder(path.parent, name))]
    unused = [blob for blob in blobs if blob.name not in used and _is_old(blob)]
    for blob in unused:
        with system_errors(f"{visible(str(blob), None)} cannot be removed"):
            blob.unlink()
    return unused


def _digests(path: Path) -> list[Digest]:
    model = files.load(path, bind=False).model
    return [data for data, _ in payloads(model) if isinstance(data, Digest)]


def _blobs_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for blob in sorted(folder.iterdir()):
            if _NAME.fullmatch(blob.name) and blob.is_file() and not blob.is_symlink():
                yield blob


def _is_old(blob: Path) -> bool:
    """Whether the text that names a new blob would have been written by now."""
    with system_errors(f"{visible(str(blob), None)} cannot be read"):
        return time.time() - blob.stat().st_mtime > _YOUNG_SECONDS


def _texts_around(path: Path) -> Iterator[Path]:
    """Files that begin as a text does: in the folder of `path`, and above it up to the root of a git repository."""
    for folder in _folders_around(path):
        for each in sorted(folder.iterdir()):
            if each.is_file() and not each.is_symlink() and _begins_as_text(each):
                yield each


def _folders_around(path: Path) -> list[Path]:
    above = list(path.absolute().parents)
    root = next((position for position, folder in enumerate(above) if (folder / ".git").exists()), 0)
    return above[: root + 1]


def _begins_as_text(path: Path) -> bool:
    with system_errors(f"{visible(str(path), None)} cannot be read"), path.open("rb") as file:
        head = file.read(4096)
    # A text of two bytes a character begins with a NUL next to its first one.
    return looks_like_text(head) or looks_like_text(head.replace(b"\0", b""))


def _names_in(text: Path) -> set[str]:
    """The names of the blobs that a file names; OutputError if it may name some but cannot be read."""
    try:
        return {digest.sha256 for digest in _digests(text)}
    except OnnxJsonError as error:
        name = visible(str(text), None)
        with system_errors(f"{name} cannot be read"):
            may_name_blobs = _bears_marks(text)
        if may_name_blobs:
            raise OutputError(f"{name} may name blobs, but cannot be read, so nothing was removed: {error}") from error
        return set()


def _bears_marks(text: Path) -> bool:
    missing = _MARKS
    rest = b""
    with text.open("rb") as file:
        while missing and (piece := file.read(PIECE)):
            # In a text of two bytes a character every other byte is NUL.
            held = rest + piece.replace(b"\0", b"")
            missing = frozenset(mark for mark in missing if mark not in held)
            rest = held[-16:]  # a mark may be cut by the end of the piece
    return not missing
