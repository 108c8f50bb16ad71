"""Cuts big base64 values out of a text file, so that what is left can be decoded in memory.

A value is cut only where it stands as the canonical text has it (``"base64": "...``) and is canonical base64; each
leaves a marker ``@cut:N`` that no base64 can be. Anything odd is left in, for the reader to say what is wrong with
it.
"""

from typing import Final

from onnxjson.payloads import CHUNK, LAZY_FROM, Base64Slice, Payload, SourceFile

CUT_FROM: Final = 64 * 1024 * 1024
"""Bytes of a file from which it is worth cutting."""

_KEY: Final = b'"base64": "'
_SHORTEST: Final = LAZY_FROM * 4 // 3
_BLOCK: Final = CHUNK // 3 * 4


def cut_base64(source: SourceFile) -> tuple[bytes, dict[str, Payload]]:
    """The text of `source` without its big base64 values, and those by the marker that stands for each.

    Raises:
        ChangedUnderneathError, FileError: the file cannot be read.
    """
    parts: list[bytes] = []
    cuts: dict[str, Payload] = {}
    block = b""
    block_start = position = 0
    while True:
        found = block.find(_KEY, position - block_start)
        if found < 0:
            # Nothing more in this block; what could be the start of a key goes on into the next.
            keep = max(position - block_start, len(block) - len(_KEY))
            parts.append(block[position - block_start : keep])
            position = block_start + keep
            if block_start + len(block) >= source.size:
                parts.append(block[keep:])
                return b"".join(parts), cuts
            block_start = position
            block = source.read_at(position, min(_BLOCK, source.size - position))
            continue
        start = block_start + found + len(_KEY)
        parts.append(block[position - block_start : found + len(_KEY)])
        # A backslash before the quote would make the key the end of a longer string.
        escaped = found == 0 or block[found - 1 : found] == b"\\"
        end, length = (start, None) if escaped else _value(source, start)
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


def _value(source: SourceFile, start: int) -> tuple[int, int | None]:
    """The base64 value that begins at `start` -> (position of its closing quote, bytes it stands for or None)."""
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
        try:
            decoded = len(text) and len(pybase64.b64decode(text, validate=True))
        except ValueError:
            return position, None
        if decoded != len(text) // 4 * 3 - (text.endswith(b"=") + text.endswith(b"==")):
            return position, None
        length += decoded
        last = text[-4:] or last
        if quote >= 0:
            canonical = not last or pybase64.b64encode(pybase64.b64decode(last)) == last
            return position + quote, length if canonical else None
        position += len(block)
    return position, None
