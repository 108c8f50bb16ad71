"""A document as editors keep it: lines and columns of the protocol, and fast changes of long texts."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lsprotocol import types
from pygls.workspace import TextDocument

if TYPE_CHECKING:
    import numpy as np

_UNITS: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""How the protocol names what columns count; the codec, and its bytes of one."""


_LONG_LINE: Final = 2_000
"""Characters of a line; in longer lines, columns are not counted again each time."""


class Changed(NamedTuple):
    """What differs between an earlier version of a text and this one."""

    start: int
    """The first offset that may differ."""
    old_end: int
    """The offset in the earlier version from which on both are the same."""
    new_end: int
    """The same offset in this version."""

    def then(self, start: int, end: int, length: int) -> "Changed":
        """Return the difference after the characters from `start` to `end` were replaced by `length` others."""
        last = max(self.new_end, end)
        return Changed(min(self.start, start), self.old_end + last - self.new_end, last + length - (end - start))


class OpenDocument(TextDocument):
    r"""An open text; only \n, \r\n and \r end a line, as the protocol defines. Its offsets are in characters."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._starts = _line_starts(self.source)
        self._extra: np.ndarray[Any, np.dtype[np.int64]] | None = None
        self.changed: Changed | None = None
        """What changed since the version that was read."""

    @property
    def source(self) -> str:
        """The text; of a document that is not open, that of its file, or none if it cannot be read."""
        try:
            return super().source
        except (OSError, ValueError):
            return ""

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Replace a range, or everything."""
        old, text, self._extra = self.source, change.text, None
        if not isinstance(change, types.TextDocumentContentChangePartial):
            self._source, self._starts = text, _line_starts(text)
            before = len(old) if self.changed is None else self.changed.old_end + len(old) - self.changed.new_end
            self.changed = Changed(0, before, len(text))
            return
        start, end = (self.offset_at_position(each) for each in (change.range.start, change.range.end))
        self._source = "".join((old[:start], text, old[end:]))
        self.changed = (self.changed or Changed(start, end, end)).then(start, end, len(text))
        # The lines of the change are counted again, with those around it, since \r and \n may have met or parted.
        first, after = max(0, self._line(start) - 1), min(self._line(end) + 2, len(self._starts))
        begin, grown = int(self._starts[first]), len(text) - (end - start)
        is_last = after == len(self._starts)
        stop = len(self._source) if is_last else int(self._starts[after]) + grown
        within = _line_starts(self._source[begin:stop]) + begin
        within = within if is_last else within[within < stop]
        self._starts[after:] += grown
        if len(within) == after - first:
            self._starts[first:after] = within
        else:
            import numpy as np

            self._starts = np.concatenate([self._starts[:first], within, self._starts[after:]])

    def offset_at_position(self, client_position: types.Position) -> int:
        """The offset of a position; what is beyond the end of a line or text counts as there."""
        if client_position.line >= len(self._starts):
            return len(self.source)
        start = int(self._starts[client_position.line])
        end = int(self._starts[client_position.line + 1]) if client_position.line + 1 < len(self._starts) else None
        line = self.source[start:end].rstrip("\r\n")
        if not line.isascii():
            codec, width = self._codec()
            line = line.encode(codec, "surrogatepass")[: client_position.character * width].decode(codec, "replace")
            return start + len(line)
        return start + min(client_position.character, len(line))

    def position_at(self, offset: int) -> types.Position:
        """The position of an offset."""
        line = self._line(offset)
        start = int(self._starts[line])
        if self.source.isascii():
            return types.Position(line, offset - start)
        if offset - start > _LONG_LINE:
            first, last = self._wide().searchsorted([start, offset])
            return types.Position(line, offset - start + int(last - first))
        before = self.source[start:offset]
        codec, width = self._codec()
        return types.Position(line, len(before.encode(codec, "surrogatepass")) // width)

    def _wide(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Offsets of characters that are wider than one column unit, repeated for each additional unit."""
        if self._extra is None:
            import numpy as np

            points = np.frombuffer(self.source.encode("utf-32-le", "surrogatepass"), np.uint32)
            above = {"utf-8": (0x7F, 0x7FF, 0xFFFF), "utf-16-le": (0xFFFF,)}.get(self._codec()[0], ())
            found = [np.flatnonzero(points > each) for each in above]
            self._extra = np.sort(np.concatenate([*found, np.zeros(0, np.int64)]))
        return self._extra

    def offset_of(self, line: int, column: int) -> int:
        r"""The offset of a line and column of a finding, from 1; there only \n ends a line. 0 without them."""
        starts = self._starts if "\r" not in self.source else _line_starts(self.source.replace("\r", " "))
        return min(int(starts[min(max(line, 1), len(starts)) - 1]) + max(column - 1, 0), len(self.source))

    def _line(self, offset: int) -> int:
        return int(self._starts.searchsorted(offset, "right")) - 1

    def _codec(self) -> tuple[str, int]:
        return _UNITS[str(getattr(self.position_codec.encoding, "value", self.position_codec.encoding))]


def _line_starts(text: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The offset of each line."""
    import numpy as np

    is_plain = text.isascii()
    data = text.encode() if is_plain else text.encode("utf-32-le", "surrogatepass")
    units = np.frombuffer(data, np.uint8 if is_plain else np.uint32)
    is_end = units == ord("\n")
    is_return = units == ord("\r")
    is_end |= is_return & ~np.append(is_end[1:], False) if is_return.any() else is_return
    return np.concatenate([[0], np.flatnonzero(is_end) + 1])
