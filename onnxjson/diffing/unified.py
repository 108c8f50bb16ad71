"""The line diff of two models in the unified format: their canonical texts with weights as digests.

`compare_external` compares their external data by SHA-256, since the texts only name the files. Tensors that are
external in one model and internal in the other are compared, too. Every range of a file is hashed once, in pieces, and
not at all if both models refer to the same range.

The format is that of ``diff -u`` and git, so `patch` and `git apply` accept it. The text after the second ``@@``
of a hunk is the node, the tensor or the list that contains its first change.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.diffing.constant_elements import TensorSource
from onnxjson.diffing.line_changes import LineChange, changes
from onnxjson.model.addresses import walk as walk_with_addresses
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of
from onnxjson.storage import files

CONTEXT: Final = 3
"""Lines shown around a change."""

LineKind = Literal["file", "hunk", "context", "removed", "added"]

_MARKS: Final[dict[LineKind, str]] = {"context": " ", "removed": "-", "added": "+"}

_SECTION: Final = re.compile(
    rb"""\s*(?:
        \{"(?:op_type|name)":[ ]
        | "(?:input|output|node|initializer|sparse_initializer|value_info|quantization_annotation|element_metadata
            |functions|training_info|configuration|metadata_props|graph)":[ ][\[{]$
    )""",
    re.VERBOSE,
)
"""First lines of named parts: a node, a tensor, a list of the graph."""

_Key = tuple[bool, str]
"""Key of a tensor in both models: its name if it is unique (True), else its address."""

_Range = tuple[str, int, int]
"""Real path of a file, offset and length in bytes."""


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


def _group(changes: Sequence[LineChange], context: int) -> Iterator[list[LineChange]]:
    """Group changes whose context lines overlap or touch."""
    group: list[LineChange] = []
    for change in changes:
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


def _lines(kind: LineKind, lines: Sequence[bytes]) -> Iterator[DiffLine]:
    for line in lines:
        yield DiffLine(kind, _MARKS[kind] + line.decode("utf-8"))


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


class Place(NamedTuple):
    """A model with its file; locations of external data are relative to its folder."""

    model: Model
    path: Path
    name: str = ""


class ExternalComparison(NamedTuple):
    """Lines about the external data of two models, UTF-8, and problems."""

    old: bytes
    new: bytes
    problems: tuple[str, ...]
    """A message for each file that is missing or rejected; visible text."""


def compare_external(old: Place, new: Place, *, trust_links: bool = False) -> ExternalComparison:
    """Return a line ``NAME: sha256 ...`` for every tensor that is external in one of two models."""
    if not any(is_external(tensor) for place in (old, new) for tensor in tensors_of(place.model)):
        return ExternalComparison(b"", b"", ())
    sides = [
        (TensorSource(place.path, place.name or str(place.path), trust_links=trust_links), _tensors(place.model))
        for place in (old, new)
    ]
    hashes: dict[_Range, str] = {}
    lines: tuple[list[str], list[str]] = ([], [])
    for key in dict.fromkeys(key for _, tensors in sides for key in tensors):
        pair = [(source, tensors.get(key)) for source, tensors in sides]
        for digest, of_side in zip(_digests(pair, hashes), lines, strict=True):
            if digest is not None:
                of_side.append(f"{'' if key[0] else '@'}{visible(key[1], None)}: sha256 {digest}\n")
    texts = ["".join(of_side).encode("utf-8") for of_side in lines]
    return ExternalComparison(
        texts[0], texts[1], tuple([problem for source, _ in sides for problem in source.problems()])
    )


def _digests(pair: Sequence[tuple[TensorSource, Tensor | None]], hashes: dict[_Range, str]) -> Sequence[str | None]:
    """Return the SHA-256 of the bytes of a tensor on each side; none of them if they need not or cannot be compared."""
    if not any(tensor is not None and is_external(tensor) for _, tensor in pair):
        return None, None
    payloads = [None if tensor is None else source.data(tensor) for source, tensor in pair]
    ranges = [source.range(data) for (source, _), data in zip(pair, payloads, strict=True)]
    is_complete = not any(
        data is None and tensor is not None and is_external(tensor)
        for (_, tensor), data in zip(pair, payloads, strict=True)
    )
    if not is_complete or (ranges[0] is not None and ranges[0] == ranges[1]):
        return None, None
    digests: list[str | None] = []
    for (source, tensor), data, place in zip(pair, payloads, ranges, strict=True):
        try:
            digest = hashes.get(place) if place is not None else None
            digests.append(None if data is None else digest or sha256_of(data))
        except OnnxJsonError as error:
            assert tensor is not None
            source.fail(tensor, error)
            is_complete = False
            continue
        if place is not None:
            hashes[place] = digests[-1] or ""
    return digests if is_complete else (None, None)


def _tensors(model: Model) -> dict[_Key, Tensor]:
    tensors = [(address, record) for address, record in walk_with_addresses(model) if isinstance(record, Tensor)]
    times = Counter(tensor.name for _, tensor in tensors)
    return {
        (True, tensor.name) if tensor.name and times[tensor.name] == 1 else (False, address): tensor
        for address, tensor in tensors
    }
