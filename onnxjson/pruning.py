"""Removes blobs that no text names any more, and rather none than one too many.

Which files are texts is for their content to say, not for their names; what `undo-save` would bring back counts too. A
file that may be a text and cannot be read may
name any blob, so then nothing is removed.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from onnxjson import files
from onnxjson.canonical.payload_forms import payloads
from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError, OutputError
from onnxjson.payloads import Digest
from onnxjson.sinks import system_errors
from onnxjson.state import backups
from onnxjson.text_file import looks_like_text
from onnxjson.weights import checked_folder

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_YOUNG_SECONDS: Final = 600
"""A blob that was written so short a time ago stays: the text that names it may be on its way."""

_LEVELS: Final = 8
"""Folders above that of a text whose texts may name its blobs too; the search ends at the root of a git repository."""


def prune_blobs(path: Path) -> list[Path]:
    """Removes from the folder of blobs of the text `path` what no text in its folder or above names -> what it removed.

    Raises:
        DecodeError: `path` is no text.
        OutputError: a file may be a text that names blobs, but cannot be read.
        UntrustedError: the folder of blobs leads elsewhere.
        MissingInputError, FileError, AccessDeniedError: a file cannot be read or removed.
    """
    own = _digests(path)
    folders = sorted({digest.folder for digest in own if digest.folder is not None})
    if not folders:
        return []
    used = {digest.sha256 for digest in own}
    for text in _texts_around(path):
        used |= _named_by(text)
        for backup in backups(text):
            used |= _named_by(backup.file)
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
    """Whether nobody can just be writing the text that names a blob."""
    with system_errors(f"{visible(str(blob), None)} cannot be looked at"):
        return time.time() - blob.stat().st_mtime > _YOUNG_SECONDS


def _texts_around(path: Path) -> Iterator[Path]:
    """Files in the folder of `path` and those above it that begin as a text does."""
    folder = path.absolute().parent
    for level in (folder, *list(folder.parents)[:_LEVELS]):
        for each in sorted(level.iterdir()):
            if each.is_file() and not each.is_symlink() and _begins_as_text(each):
                yield each
        if (level / ".git").exists():
            return


def _begins_as_text(path: Path) -> bool:
    with system_errors(f"{visible(str(path), None)} cannot be read"), path.open("rb") as file:
        head = file.read(4096)
    # A text of two bytes a character begins with a NUL beside its first one.
    return looks_like_text(head) or looks_like_text(head.replace(b"\0", b""))


def _named_by(text: Path) -> set[str]:
    try:
        return {digest.sha256 for digest in _digests(text)}
    except OnnxJsonError as error:
        with system_errors(f"{visible(str(text), None)} cannot be read"):
            content = text.read_bytes()
        if b"blob" not in content.replace(b"\0", b""):
            return set()
        name = visible(str(text), None)
        raise OutputError(f"{name} may name blobs, but cannot be read, so nothing was removed: {error}") from error
