"""Texts of models that took a while to make, kept in the user's cache folder, so that git shows them again at once.

::

    $XDG_CACHE_HOME/onnxjson/textconv/1/         without the variable ~/.cache/onnxjson/...; the version of the texts
        5e88...24                                a text, by the SHA-256 of the file that it is of; its own stands first

Only texts that are whole are kept. Nothing here fails: without a cache, git waits a little longer.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from onnxjson.git.shown_text import VERSION

LARGEST: Final = 512 * 1024 * 1024
"""Bytes of all texts together; the least recently used go first."""

_HEAD: Final = 65
"""Bytes before the text: its SHA-256 and a line feed."""


def folder() -> Path | None:
    """Where texts are kept; None where the user has no such place."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):  # Others are to be ignored: XDG Base Directory Specification 0.8.
        home = os.path.expanduser("~")
        if not home.startswith("/"):
            return None
        cache = os.path.join(home, ".cache")
    return Path(cache, "onnxjson", "textconv", str(VERSION))


def kept(sha256: str) -> bytes | None:
    """The text of the file with that SHA-256, if it is kept and undamaged."""
    place = folder()
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


def keep(sha256: str, text: Sequence[bytes | bytearray | memoryview]) -> None:
    """Keep a text, given in pieces, for the file with that SHA-256; a full disk is no reason to complain."""
    place = folder()
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
        _let_go(place)


def _let_go(place: Path) -> None:
    """Remove what is beyond the limit, the least recently used first."""
    with os.scandir(place) as entries:
        found = [(entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries]
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= LARGEST:
            return
        total -= size
        os.unlink(path)
