"""Git LFS: pointers in the repository, and the big files in a local store that they represent.

Only the local store is used; nothing is fetched (specification: docs/spec.md of git-lfs).
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from onnxjson.git.commands import Git

POINTER_BYTES: Final = 1024
"""A pointer is shorter than this."""

_VERSION: Final = re.compile(rb"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n")
_OBJECT: Final = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_SIZE: Final = re.compile(rb"^size ([0-9]{1,19})$", re.MULTILINE)


class Pointer(NamedTuple):
    """Content of a file in the repository that represents a big file."""

    sha256: str
    """Hexadecimal SHA-256 of the file."""
    size: int
    """Size of the file in bytes."""


def pointer(content: bytes) -> Pointer | None:
    """Parse a pointer; return None if the content is something else.

    Args:
        content: the first `POINTER_BYTES` bytes of the file, or all of it.
    """
    if len(content) >= POINTER_BYTES or not _VERSION.match(content):
        return None
    found, size = _OBJECT.search(content), _SIZE.search(content)
    return Pointer(found[1].decode(), int(size[1])) if found and size else None


def stored(storage: Path, wanted: Pointer) -> Path | None:
    """Find the file of a pointer in the local store; return None if it was not fetched.

    Args:
        storage: the folder ``lfs`` of the repository.
        wanted: the pointer of the file.
    """
    name = wanted.sha256
    place = storage / "objects" / name[:2] / name[2:4] / name
    try:
        return place if place.is_file() and place.stat().st_size == wanted.size else None
    except OSError:
        return None


def storage(git: "Git") -> Path:
    """Return the folder ``lfs`` of the repository in which `git` is started; it need not exist.

    Raises:
        CommandError, OnnxJsonError: there is no repository.
    """
    common = os.fsdecode(git.line("rev-parse", "--git-common-dir"))
    return git.folder / common / (git.setting("lfs.storage", "--type=path") or "lfs")
