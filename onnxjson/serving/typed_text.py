"""A long text between two readings."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from onnxjson.codecs.reading.tree import Key
from onnxjson.model.index import NodeRef
from onnxjson.serving.edited_text import EditedText
from onnxjson.serving.open_document import Changed
from onnxjson.serving.text_names import Named


class TypedText(EditedText):
    """A long text some keystrokes after the version that was read: answers at the cursor, from both.

    Names before the change are at the same offsets, and the text after them is read again up to the cursor.
    """

    def __init__(self, text: str, read: EditedText, change: Changed) -> None:
        self.text, self.path, self.file, self.model, self.index = text, read.path, read.file, read.model, read.index
        self.is_valid, self.is_other = False, read.is_other
        self._read, self._change = read, change

    @property
    def defined(self) -> dict[tuple[Key, ...], list[Named]]:
        """Those of the version that was read."""
        return self._read.defined

    def alphabet(self, graph: tuple[Key, ...]) -> list[int]:
        """That of the version that was read."""
        return self._read.alphabet(graph)

    def names(self, is_stale: Callable[[], bool] = lambda: False) -> list[Named]:
        """Those of the version that was read, of which `_before` uses the ones before the change."""
        return self._read.names(is_stale)

    def _before(self, offset: int) -> int:
        return bisect_left(self.names(), min(offset + 1, self._change.start), key=lambda each: each.start)

    def _at(self, offset: int) -> tuple[int, int, tuple[Key, ...], bool]:
        if offset <= self._change.new_end:
            return super()._at(offset)
        moved = self._change.new_end - self._change.old_end
        start, end, path, is_key = self._read._at(offset - moved)
        return start + moved, end + moved, path, is_key

    def same_name(self, named: Named) -> list[Named]:
        """The places that did not change."""
        moved = self._change.new_end - self._change.old_end
        found = self._read.same_name(named)
        return [
            each if each.end <= self._change.start else each._replace(start=each.start + moved, end=each.end + moved)
            for each in found
            if each.end <= self._change.start or each.start >= self._change.old_end
        ]

    def node_at(self, path: Sequence[Key]) -> NodeRef | None:
        """The node that was there."""
        return self._read.node_at(path)
