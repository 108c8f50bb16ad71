"""A text, in memory or in a file, -> a model, by the reader that its dialect and its state need.

Big base64 values are cut out of a file before it is decoded, checked, and left there: 500 MB of weights never stand in
memory. A text that is canonical is read by `fast`; any other by `exact_reader`, which knows all that is tolerated and
says all that is wrong.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from onnxjson.checking import Finding
from onnxjson.conflicts import Conflict, require_settled
from onnxjson.document import Model
from onnxjson.payloads import Payload, SourceFile
from onnxjson.reading.comments import of_comments
from onnxjson.reading.cutting import CUT_FROM, cut_base64
from onnxjson.reading.encodings import wide_encoding

_BOM: Final = b"\xef\xbb\xbf"
_CONTROL: Final = re.compile(rb"[^\t\n\f\r -~\x80-\xff]")


class Read(NamedTuple):
    """What a text gave."""

    model: Model
    format: Literal["json", "protojson"]
    findings: tuple[Finding, ...]
    """Warnings only."""
    has_digests: bool = False
    """Whether some tensors may have only their sha256 in the text."""
    conflicts: tuple[Conflict, ...] = ()
    """Of a merge, not settled yet; the model has what ours has."""


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a text: no field of a ModelProto has such a first byte."""
    stripped = head.removeprefix(_BOM).lstrip(b" \t\r\n")
    if not stripped:
        return len(head) < 4096
    return stripped[:1] in (b"{", b"[", b"/") or stripped.startswith(b"<<<<<<<") or wide_encoding(stripped) is not None


def is_printable(head: bytes) -> bool:
    """Whether the first bytes of a file that is no ModelProto look like a text in which something is wrong."""
    return _CONTROL.search(head) is None


def read(source: SourceFile, *, drop_orphans: bool = False, conflicted: bool = False) -> Read:
    """The model in an opened file; `conflicted` says that conflicts of a merge may stand in it.

    Raises:
        ConflictError: they may not, and do.
        DecodeError: it is not one; `findings` say why and where.
        LimitError: the text without its weights is too big.
        ChangedUnderneathError, FileError: the file cannot be read.
    """
    name = str(source.path)
    if source.size < CUT_FROM:
        return read_bytes(source.read_at(0, source.size), file=name, drop_orphans=drop_orphans, conflicted=conflicted)
    text, cuts = cut_base64(source)
    return read_bytes(text, file=name, drop_orphans=drop_orphans, cuts=cuts, conflicted=conflicted)


def read_bytes(
    text: bytes,
    *,
    file: str = "",
    drop_orphans: bool = False,
    cuts: Mapping[str, Payload] | None = None,
    conflicted: bool = False,
) -> Read:
    """The model in a text; `cuts` are the base64 values that were cut out of it.

    Raises:
        ConflictError: conflicts of a merge stand in it, and `conflicted` is false.
        DecodeError: it is not one; `findings` say why and where.
    """
    from onnxjson.reading import fast

    has_digests = b'"sha256"' in text or b'"blob"' in text
    model = fast.read(text, cuts or {})
    if model is not None:
        return Read(model, "json", (), has_digests)
    from onnxjson.reading import exact_reader

    if exact_reader.is_proto_json(text):
        from onnxjson import protojson, serde

        return Read(serde.from_proto(protojson.loads(text, file=file)), "protojson", ())
    conflicts: list[Conflict] = []
    model, findings = exact_reader.read(text, file=file, drop_orphans=drop_orphans, cuts=cuts, conflicts=conflicts)
    if not conflicted:
        require_settled(conflicts, file)
    return Read(model, "json", (*findings, *of_comments(text, file)), has_digests, tuple(conflicts))
