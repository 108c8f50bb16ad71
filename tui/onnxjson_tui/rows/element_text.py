"""Canonical text of an element as lines, and the texts of two sides next to or below each other."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights
from onnxjson.diffing.line_changes import changes
from onnxjson.model.addresses import resolve
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Graph, Model, Node, Record, Tensor, ValueInfo
from onnxjson.model.errors import AddressError
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import cells, fitting, padded

_MOST_LINES: Final = 2_000
"""Maximum lines of one side that are compared."""

Mark = Literal[" ", "-", "+", "~"]


class Pair(NamedTuple):
    """A line of both sides; None for a missing line."""

    mark: Mark
    base: str | None
    target: str | None


def element_lines(model: Model, address: str) -> tuple[str, ...] | None:
    """Return the text of the element at an address, big tensors as SHA-256; None if there is none.

    Raises:
        ChangedUnderneathError, FileError: the file of a tensor can no longer be read.
    """
    try:
        element = resolve(model, address)
    except AddressError:
        return None
    parts: list[bytes] = []
    writer = TextWriter(parts.append, Weights("digest"))
    match element:
        case None:
            return None
        case Node():
            writer.node(element, 0)
        case Tensor():
            writer.tensor(element, 0, is_item=True)
        case ValueInfo():
            writer.value_info(element, 0, bool(element.metadata_props))
        case Graph() | Function():
            return (f"a {type(element).__name__.lower()} of {counted(len(element.node), 'node')}",)
        case Model():
            return ("the whole model",)
        case Record():
            writer.exact(element, 0)
        case tuple():
            return (counted(len(element), "element"),)
        case str():
            return (visible(element, None),)
        case _:
            return (visible(repr(element), 1000),)
    writer.flush()
    lines = b"".join(parts).decode("utf-8").split("\n")
    return tuple([visible(line, None) for line in lines])


def text_of(model: Model, addresses: Sequence[str]) -> list[str]:
    """Return the texts of several elements, each below its address if there are several."""
    found: list[str] = []
    for address in addresses:
        lines = element_lines(model, address)
        if lines is None:
            continue
        if len(addresses) > 1:
            found.append(f"@{visible(address, None)}")
        found += lines
        if len(found) > _MOST_LINES:
            return [*found[:_MOST_LINES], "... and more"]
    return found


def paired(base: Sequence[str], target: Sequence[str]) -> list[Pair]:
    """Align the lines of two texts."""
    old, new = ([line.encode() for line in lines] for lines in (base, target))
    found: list[Pair] = []
    at = 0
    for change in changes(old, new):
        found += [Pair(" ", line, line) for line in base[at : change.old_start]]
        removed, added = base[change.old_start : change.old_end], target[change.new_start : change.new_end]
        for number in range(max(len(removed), len(added))):
            left = removed[number] if number < len(removed) else None
            right = added[number] if number < len(added) else None
            found.append(Pair("+" if left is None else "-" if right is None else "~", left, right))
        at = change.old_end
    return found + [Pair(" ", line, line) for line in base[at:]]


def unified_lines(pairs: Iterable[Pair], width: int) -> Iterator[Line]:
    """Yield removed lines, then added ones, as ``diff -u`` does. Long lines are wrapped."""
    waiting: list[Pair] = []
    for pair in pairs:
        if pair.mark == " ":
            yield from _flushed(waiting, width)
            waiting = []
            yield from ((Span(text),) for text in _broken("  ", pair.base or "", width))
        else:
            waiting.append(pair)
    yield from _flushed(waiting, width)


def _flushed(pairs: Sequence[Pair], width: int) -> Iterator[Line]:
    for pair in pairs:
        if pair.base is not None:
            yield from ((Span(text, "removed"),) for text in _broken("- ", pair.base, width))
    for pair in pairs:
        if pair.target is not None:
            yield from ((Span(text, "added"),) for text in _broken("+ ", pair.target, width))


def _broken(mark: str, text: str, width: int) -> Iterator[str]:
    """Wrap a line at `width` columns, each piece with the mark."""
    return (mark + piece for piece in broken(text, max(width - len(mark), 8)))


def broken(text: str, width: int) -> Iterator[str]:
    """Wrap a line, at spaces if possible; pieces after the first are indented."""
    indent = ""
    while cells(text) > width - len(indent):
        piece = fitting(text, max(width - len(indent), 4))
        space = piece.rstrip().rfind(" ") + 1
        piece = piece[:space] if space > len(piece) // 2 and piece[:space].strip() else piece
        yield indent + piece.rstrip()
        text = text[len(piece) :]
        indent = "    "
    yield indent + text


def beside_lines(pairs: Iterable[Pair], width: int) -> Iterator[Line]:
    """Yield both sides next to each other, with a mark between them. Long lines are wrapped."""
    half = max((width - 3) // 2, 8)
    for pair in pairs:
        styles: tuple[Style, Style] = ("plain", "plain") if pair.mark == " " else ("removed", "added")
        pieces = [list(_broken("", side or "", half)) for side in (pair.base, pair.target)]
        for number, (left, right) in enumerate(zip_longest(*pieces, fillvalue="")):
            mark = " " if number else pair.mark
            yield Span(padded(left, half), styles[0]), Span(f" {mark} "), Span(right, styles[1])
