"""The line diff of two models: their canonical texts, weights as digests, in the unified format.

The format is that of ``diff -u`` and git, so that `patch` and `git apply` take it; behind the second ``@@`` of a hunk
stands the node, the tensor or the list in which its first change is.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson import files
from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.rendering.line_changes import Change, changes

CONTEXT: Final = 3
"""Lines shown around a change."""

Kind = Literal["file", "hunk", "context", "removed", "added"]


class DiffLine(NamedTuple):
    """One line of a diff."""

    kind: Kind
    text: str
    """The whole line without its line feed, printable."""


def digest_text(model: Model) -> bytes:
    """The canonical text of a model in which big tensors stand as their SHA-256, UTF-8.

    Raises:
        ChangedUnderneathError, FileError, UntrustedError: a file that holds tensors of `model` cannot be read.
        LimitError: graphs nest deeper than protobuf reads.
    """
    parts = _Parts()
    files.write(model, parts, "json", weights="digest")
    return b"".join(parts.pieces)


class _Parts:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.pieces: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See `onnxjson.sinks.Sink`."""
        self.pieces.append(data)


def diff_models(old: Model, new: Model, old_name: str, new_name: str, *, context: int = CONTEXT) -> Iterator[DiffLine]:
    """The line diff of two models; nothing where their texts are the same. See `digest_text` for the errors."""
    return diff_texts(digest_text(old), digest_text(new), old_name, new_name, context=context)


def diff_texts(old: bytes, new: bytes, old_name: str, new_name: str, *, context: int = CONTEXT) -> Iterator[DiffLine]:
    """The line diff of two canonical texts (UTF-8, each line with its line feed); nothing where they are the same.

    The names, made visible, stand in the first two lines; `context` lines stand around each change.
    """
    if old == new:
        return
    yield DiffLine("file", f"--- {visible(old_name, None)}")
    yield DiffLine("file", f"+++ {visible(new_name, None)}")
    old_lines, new_lines = old.split(b"\n")[:-1], new.split(b"\n")[:-1]
    sections = _Sections(old_lines)
    for group in _grouped(changes(old_lines, new_lines), context):
        yield from _hunk(group, old_lines, new_lines, context, sections)


def _grouped(found: Sequence[Change], context: int) -> Iterator[list[Change]]:
    """Changes that are near enough for their context to touch."""
    group: list[Change] = []
    for change in found:
        if group and change.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(
    group: Sequence[Change], old: Sequence[bytes], new: Sequence[bytes], context: int, sections: "_Sections"
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
    """Lines as a hunk header counts them: from 1, and an empty range by the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


_MARKS: Final[dict[Kind, str]] = {"context": " ", "removed": "-", "added": "+"}


def _lines(kind: Kind, lines: Sequence[bytes]) -> Iterator[DiffLine]:
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
"""Lines that begin something with a name of its own: a node, a tensor, a list of the graph."""


class _Sections:
    """What lines of a text belong to, asked from its start to its end."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._asked = -1
        self._latest = ""

    def of(self, at: int) -> str:
        """The nearest line at or above the one at `at` that begins something named; "" if there is none."""
        for place in range(at, self._asked, -1):
            if _SECTION.match(self._lines[place]):
                self._latest = visible(self._lines[place].strip().rstrip(b",").decode("utf-8"))
                break
        self._asked = max(at, self._asked)
        return self._latest
