"""The line diff of two models in the unified format: their canonical texts with weights as digests.

The format is that of ``diff -u`` and git, so `patch` and `git apply` accept it. The text after the second ``@@``
of a hunk is the node, the tensor or the list that contains its first change.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.line_changes import LineChange, changes
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.storage import files

CONTEXT: Final = 3
"""Lines shown around a change."""

LineKind = Literal["file", "hunk", "context", "removed", "added"]


class DiffLine(NamedTuple):
    """One line of a diff."""

    kind: LineKind
    text: str
    """The whole printable line without its line feed."""


def digest_text(model: Model) -> bytes:
    """Return the canonical text of a model with big tensors as their SHA-256, in UTF-8.

    Raises:
        ChangedUnderneathError, FileError, UntrustedError: a file that contains tensors of `model` cannot be read.
        LimitError: graphs nest deeper than protobuf reads.
    """
    text = io.BytesIO()
    files.write(model, text, "json", weights="digest")
    return text.getvalue()


def diff_models(old: Model, new: Model, old_name: str, new_name: str, *, context: int = CONTEXT) -> Iterator[DiffLine]:
    """Yield the line diff of two models; nothing if their texts are equal. See `digest_text` for the errors."""
    return diff_texts(digest_text(old), digest_text(new), old_name, new_name, context=context)


def diff_texts(old: bytes, new: bytes, old_name: str, new_name: str, *, context: int = CONTEXT) -> Iterator[DiffLine]:
    """Yield the line diff of two canonical texts (UTF-8, each line with its line feed); nothing if they are equal.

    The first two lines have the names, escaped for display; each change is shown with `context` lines around it.
    """
    if old == new:
        return
    yield DiffLine("file", f"--- {visible(old_name, None)}")
    yield DiffLine("file", f"+++ {visible(new_name, None)}")
    old_lines, new_lines = old.split(b"\n")[:-1], new.split(b"\n")[:-1]
    sections = _Headings(old_lines)
    for group in _group(changes(old_lines, new_lines), context):
        yield from _hunk(group, old_lines, new_lines, context, sections)


def _group(found: Sequence[LineChange], context: int) -> Iterator[list[LineChange]]:
    """Group changes whose context lines overlap or touch."""
    group: list[LineChange] = []
    for change in found:
        if group and change.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(
    group: Sequence[LineChange], old: Sequence[bytes], new: Sequence[bytes], context: int, sections: "_Headings"
) -> Iterator[DiffLine]:
    first, last = group[0], group[-1]
    before = min(context, first.old_start)
    after = min(context, len(old) - last.old_end)
    old_range = _range(first.old_start - before, last.old_end + after)
    new_range = _range(first.new_start - before, last.new_end + after)
    section = sections.of(first.old_start if first.old_start < first.old_end else first.old_start - 1)
    yield DiffLine("hunk", f"@@ -{old_range} +{new_range} @@" + (f" {section}" if section else ""))
    at = first.old_start - before
    for change in group:
        yield from _lines("context", old[at : change.old_start])
        yield from _lines("removed", old[change.old_start : change.old_end])
        yield from _lines("added", new[change.new_start : change.new_end])
        at = change.old_end
    yield from _lines("context", old[at : at + after])


def _range(start: int, end: int) -> str:
    """Return a range of lines as in a hunk header: counted from 1, an empty range by the line before it."""
    length = end - start
    return str(start + 1) if length == 1 else f"{start + 1 if length else start},{length}"


_MARKS: Final[dict[LineKind, str]] = {"context": " ", "removed": "-", "added": "+"}


def _lines(kind: LineKind, lines: Sequence[bytes]) -> Iterator[DiffLine]:
    for line in lines:
        yield DiffLine(kind, _MARKS[kind] + line.decode("utf-8"))


_SECTION: Final = re.compile(
    rb"""\s*(?:
        \{"(?:op_type|name)":[ ]
        | "(?:input|output|node|initializer|sparse_initializer|value_info|quantization_annotation|element_metadata
            |functions|training_info|configuration|metadata_props|graph)":[ ][\[{]$
    )""",
    re.VERBOSE,
)
"""First lines of named parts: a node, a tensor, a list of the graph."""


class _Headings:
    """Headings for lines of a text, looked up in ascending order."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._asked = -1
        self._latest = ""

    def of(self, at: int) -> str:
        """Return the nearest line at or above `at` that begins a named part; "" if there is none."""
        for place in range(at, self._asked, -1):
            if _SECTION.match(self._lines[place]):
                self._latest = visible(self._lines[place].strip().rstrip(b",").decode("utf-8"))
                break
        self._asked = max(at, self._asked)
        return self._latest
