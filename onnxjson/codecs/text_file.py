"""Texts, in memory or in a file: choose the reader that a text needs, and leave its big weights in the file.

Big base64 values are cut out of a file before it is decoded, so 500 MB of weights are never in memory. A value is cut
only if it is canonical base64 in the place where the canonical text has it (``"base64": "...``); a marker ``@cut:N``,
which is not base64, replaces it. Anything else stays in the text, and the reader reports its mistakes.

`reading.fast` reads a canonical text; `reading.exact_reader` any other, with everything that is tolerated, and reports
all mistakes.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeVar

from onnxjson.model.conflicts import Conflict, refuse_conflicts
from onnxjson.model.document import Model
from onnxjson.model.errors import Finding
from onnxjson.model.payloads import CHUNK, LAZY_FROM, Base64Slice, Payload, SourceFile

T = TypeVar("T")

_BOM: Final = b"\xef\xbb\xbf"
_CONTROL: Final = re.compile(rb"[^\t\n\f\r -~\x80-\xff]")

_WEIGHTS_APART: Final = (b'{\n"format": "onnxjson/1",\n"weights"', b'{\n"format": "onnxjson/1",\n"blobs"')
"""How canonical texts with digests or blobs begin."""

_CONFLICT_MARKER: Final = re.compile(rb"^<{7,} ", re.MULTILINE)
_MODEL_KEY: Final = re.compile(rb'"(?:graph|ir_?version|opset_?import|onnxjson[^"\s]*)"', re.IGNORECASE)
"""Keys that a ModelProto has in both forms of JSON, and formats of this package."""

CUT_FROM: Final = 64 * 1024 * 1024
"""Bytes of a file from which it is worth cutting."""

_KEY: Final = b'"base64": "'
_MARKER: Final = b'"@cut:'
_SHORTEST: Final = LAZY_FROM * 4 // 3
_BLOCK: Final = CHUNK // 3 * 4


class Read(NamedTuple):
    """The result of reading a text."""

    model: Model
    format: Literal["json", "protojson"]
    findings: tuple[Finding, ...]
    """Warnings, not errors."""
    has_digests: bool = False
    """Whether the text may have only the sha256 of some tensors."""
    conflicts: tuple[Conflict, ...] = ()
    """Unresolved conflicts of a merge; the model has the values of ours."""


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a text; no field of a ModelProto begins with such a byte."""
    stripped = head.removeprefix(_BOM).lstrip(b" \t\r\n")
    if not stripped:
        return len(head) < 4096
    if stripped[:1] not in (b"\xff", b"\xfe", b"\0"):
        return stripped[:1] in (b"{", b"[", b"/") or stripped.startswith(b"<<<<<<<")
    from onnxjson.codecs.reading.tree import wide_encoding

    return wide_encoding(stripped) is not None


def is_printable(head: bytes) -> bool:
    """Whether the first bytes of a file that is not a ModelProto look like a text with a mistake."""
    return _CONTROL.search(head) is None


def is_other_json(source: SourceFile) -> bool:
    """Whether a file is a JSON object of another program: no key at its top level is one of a model.

    A file with conflict markers of git counts if it has no such key at any level.
    """
    import json

    if not 0 < source.size < CUT_FROM:
        return False
    text = source.read_at(0, source.size)
    if text.startswith(b'{\n"format": "onnxjson'):
        return False
    if _CONFLICT_MARKER.search(text):
        return looks_like_text(text[:4096]) and is_printable(text) and _MODEL_KEY.search(text) is None
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and bool(tree) and not _MODEL_KEY.search(b" ".join(_quoted_keys(tree)))


def _quoted_keys(tree: dict[str, object]) -> list[bytes]:
    words = (*tree, str(tree.get("format", "")))
    return [f'"{word}"'.encode(errors="replace") for word in words]


def read(source: SourceFile, *, drop_orphans: bool = False, conflicted: bool = False) -> Read:
    """Read the model in an opened file; errors as `read_bytes`."""
    parse = partial(read_bytes, file=str(source.path), drop_orphans=drop_orphans, conflicted=conflicted)
    return read_cut(source, lambda text, cuts: parse(text, cuts=cuts))


def require_readable(source: SourceFile) -> None:
    """Raise as `read` does unless a written text is JSON with the keys of a model, or can be read."""
    from onnxjson.codecs.reading import fast

    if not fast.is_document(skeleton(source, is_written=True)):
        read(source)


def skeleton(source: SourceFile, *, is_written: bool = False) -> bytes:
    """Return a text with short strings instead of its big base64 values; `is_written` is as for `cut_base64`."""
    if source.size < CUT_FROM:
        return source.read_at(0, source.size)
    return cut_base64(source, is_written=is_written)[0]


def read_bytes(
    text: bytes,
    *,
    file: str = "",
    drop_orphans: bool = False,
    cuts: Mapping[str, Payload] | None = None,
    conflicted: bool = False,
) -> Read:
    """Read the model in a text; `cuts` are the base64 values that were cut out of it, by their markers.

    Raises:
        ConflictError: the text has conflicts of a merge, and `conflicted` is false.
        DecodeError: it is not a model; ``findings`` has all reasons with line and column.
    """
    from onnxjson.codecs.reading import fast

    model = fast.read(text, cuts or {})
    if model is not None:
        return Read(model, "json", (), text.startswith(_WEIGHTS_APART))
    from onnxjson.codecs.reading import exact_reader, parts

    if exact_reader.is_proto_json(text):
        from onnxjson.codecs import protojson, serde

        return Read(serde.from_proto(protojson.loads(text, file=file)), "protojson", ())
    conflicts: list[Conflict] = []
    model, findings = parts.read(text, file=file, drop_orphans=drop_orphans, cuts=cuts or {}, conflicts=conflicts)
    if not conflicted:
        refuse_conflicts(conflicts, file)
    has_digests = b'"sha256"' in text or b'"blob"' in text
    return Read(model, "json", (*findings, *exact_reader.comment_warnings(text, file)), has_digests, tuple(conflicts))


class _Cuts(dict[str, Payload]):
    """Values that were cut out of a text, by their markers."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()
        """Markers of values that are payloads; the others are strings that only look like one."""

    def get(self, marker: str, default: Any = None) -> Any:
        """Return the value of a marker, which is then a payload."""
        if marker in self:
            self.used.add(marker)
        return super().get(marker, default)


def read_cut(source: SourceFile, parse: Callable[[bytes, Mapping[str, Payload]], T]) -> T:
    """Parse a text without its big base64 values; if one of them is not a payload, parse the whole text."""
    if source.size >= CUT_FROM:
        text, cuts = cut_base64(source)
        found = parse(text, cuts)
        if not cuts or len(cuts.used) == len(cuts) == text.count(_MARKER):
            return found
    return parse(source.read_at(0, source.size), {})


def cut_base64(source: SourceFile, *, is_written: bool = False) -> tuple[bytes, _Cuts]:
    """Cut the big base64 values out of `source` -> the rest of the text, and the values by their markers.

    With `is_written`, they are not decoded to see whether they are canonical, since this package has just encoded them.
    """
    parts: list[bytes] = []
    cuts = _Cuts()
    block = b""
    block_start = position = 0
    while True:
        key_start = block.find(_KEY, position - block_start)
        if key_start < 0:
            # No more keys in this block; its end may be the start of a key that continues in the next one.
            keep = max(position - block_start, len(block) - len(_KEY))
            parts.append(block[position - block_start : keep])
            position = block_start + keep
            if block_start + len(block) >= source.size:
                parts.append(block[keep:])
                return b"".join(parts), cuts
            block_start = position
            block = source.read_at(position, min(_BLOCK, source.size - position))
            continue
        start = block_start + key_start + len(_KEY)
        parts.append(block[position - block_start : key_start + len(_KEY)])
        # A backslash before the quote would make the key the end of a longer string.
        escaped = key_start == 0 or block[key_start - 1 : key_start] == b"\\"
        end, length = (start, None) if escaped else _value(source, start, is_written)
        if length is not None and end - start >= _SHORTEST:
            marker = f"@cut:{len(cuts)}"
            cuts[marker] = Base64Slice(source, start, end - start, length)
            parts.append(marker.encode())
            position = end
        else:
            position = start
        if not block_start <= position <= block_start + len(block):
            block_start = position
            block = source.read_at(position, min(_BLOCK, source.size - position))


def _value(source: SourceFile, start: int, is_written: bool) -> tuple[int, int | None]:
    """Measure the base64 value at `start` -> the position of its closing quote; its bytes, None if not canonical."""
    import pybase64

    position = start
    length = 0
    last = b""
    while position < source.size:
        block = source.read_at(position, min(_BLOCK, source.size - position))
        quote = block.find(b'"')
        text = block if quote < 0 else block[:quote]
        if last.endswith(b"=") and text:
            return position, None
        if len(text) % 4:
            return position, None
        decoded = len(text) // 4 * 3 - (text.endswith(b"=") + text.endswith(b"=="))
        try:
            if not is_written and text and len(pybase64.b64decode(text, validate=True)) != decoded:
                return position, None
        except ValueError:
            return position, None
        length += decoded
        last = text[-4:] or last
        if quote >= 0:
            canonical = not last or pybase64.b64encode(pybase64.b64decode(last)) == last
            return position + quote, length if canonical else None
        position += len(block)
    return position, None
