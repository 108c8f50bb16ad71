"""Texts in encodings other than UTF-8, known by their first bytes."""

from typing import Final

_STARTS: Final = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"{\0\0\0", "UTF-32"),
    (b"\0\0\0{", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"{\0", "UTF-16"),
    (b"\0{", "UTF-16"),
)
"""A byte order mark, or zeros around the `{` of a document; the longer ones first."""


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32, where a document begins in it; no field of a ModelProto begins so."""
    return next((name for start, name in _STARTS if head.startswith(start)), None)
