"""Canonical text of elements as lines, and the texts of two or three sides next to or below each other."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Final, Literal, NamedTuple

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights
from onnxjson.diffing.line_changes import changes
from onnxjson.merging.conflict_text import subjects
from onnxjson.merging.conflicted_files import ConflictSlot, ResolutionSession, ShownConflict
from onnxjson.model.addresses import SIDES, Choice, resolve
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Graph, Model, Node, Record, Tensor, ValueInfo
from onnxjson.model.errors import AddressError
from onnxjson.rendering.tables import Line, Span, Style, cells, clipped, fitting, padded, shortened

_MOST_LINES: Final = 2_000  # maximum lines of one side that are compared
BESIDE: Final = 100  # minimum width for the three sides next to each other

_KEYS: Final[dict[Choice, str]] = {"base": "b", "ours": "o", "theirs": "t"}
NOTHING_HERE: Final = "(nothing here)"

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
    all_lines: list[str] = []
    for address in addresses:
        lines = element_lines(model, address)
        if lines is None:
            continue
        if len(addresses) > 1:
            all_lines.append(f"@{visible(address, None)}")
        all_lines += lines
        if len(all_lines) > _MOST_LINES:
            return [*all_lines[:_MOST_LINES], "... and more"]
    return all_lines


def pair_lines(base: Sequence[str], target: Sequence[str]) -> list[Pair]:
    """Align the lines of two texts."""
    old, new = ([line.encode() for line in lines] for lines in (base, target))
    pairs: list[Pair] = []
    at = 0
    for change in changes(old, new):
        pairs += [Pair(" ", line, line) for line in base[at : change.old_start]]
        removed, added = base[change.old_start : change.old_end], target[change.new_start : change.new_end]
        for left, right in zip_longest(removed, added):
            pairs.append(Pair("+" if left is None else "-" if right is None else "~", left, right))
        at = change.old_end
    return pairs + [Pair(" ", line, line) for line in base[at:]]


def unified_lines(pairs: Iterable[Pair], width: int) -> Iterator[Line]:
    """Yield removed lines, then added ones, as ``diff -u`` does. Long lines are wrapped."""
    for is_same, group in groupby(pairs, key=lambda pair: pair.mark == " "):
        run = list(group)
        removed, added = ((pair.base for pair in run), (pair.target for pair in run))
        sides: list[tuple[str, Style, Iterable[str | None]]]
        sides = [("  ", "plain", removed)] if is_same else [("- ", "removed", removed), ("+ ", "added", added)]
        for mark, style, texts in sides:
            for text in texts:
                yield from ((Span(piece, style),) for piece in _wrap_marked(mark, text, width) if text is not None)


def _wrap_marked(mark: str, text: str | None, width: int) -> Iterator[str]:
    """Wrap a line at `width` columns, each piece with the mark."""
    return (mark + piece for piece in wrap(text or "", max(width - len(mark), 8)))


def wrap(text: str, width: int) -> Iterator[str]:
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


def side_by_side_lines(pairs: Iterable[Pair], width: int) -> Iterator[Line]:
    """Yield both sides next to each other, with a mark between them. Long lines are wrapped."""
    half = max((width - 3) // 2, 8)
    for pair in pairs:
        styles: tuple[Style, Style] = ("plain", "plain") if pair.mark == " " else ("removed", "added")
        pieces = [list(_wrap_marked("", side or "", half)) for side in (pair.base, pair.target)]
        for number, (left, right) in enumerate(zip_longest(*pieces, fillvalue="")):
            mark = " " if number else pair.mark
            yield Span(padded(left, half), styles[0]), Span(f" {mark} "), Span(right, styles[1])


class ConflictRows:
    """The conflicts and their resolutions."""

    def __init__(self, session: ResolutionSession) -> None:
        self._session = session
        found = zip(session.start[1], subjects(*session.start), strict=True)
        # The first place of each conflict.
        self._titles = {each.id: "  ".join(filter(None, texts)) for each, texts in reversed([*found])}

    def __len__(self) -> int:
        return len(self._session.conflicts)

    @property
    def order(self) -> Sequence[int]:
        """The numbers of the conflicts in the order of their rows."""
        return range(len(self))

    def conflict_at(self, row: int) -> int | None:
        """Return the number of the conflict of a row."""
        return row if row < len(self) else None

    def row_of(self, conflict: int) -> int:
        """Return the row of a conflict."""
        return conflict

    def line(self, number: int, width: int) -> Line:
        """Return a mark, the chosen side, and the place."""
        shown = self._session.conflicts[number]
        choice = self._session.choices.get(shown.id)
        mark, style = ("  open   ", "bad") if choice is None else (f"  {choice:<6} ", "good")
        digits = len(str(len(self)))
        start = f" {number + 1:>{digits}} "
        more = f" and {len(shown.places) - 1:,} more places" if len(shown.places) > 1 else ""
        room = width - cells(start) - cells(mark) - cells(more)
        return (
            Span(start, "quiet"),
            Span("x" if choice is None else "*", style),  # type: ignore[arg-type]
            Span(mark[1:], style),  # type: ignore[arg-type]
            Span(shortened(self._titles[shown.id], max(room, 8))),
            Span(more, "quiet"),
        )


def place_rows(shown: ShownConflict, choice: Choice | None, width: int) -> list[Line]:
    """Return the three sides of a conflict, with a mark for the chosen one."""
    lines: list[Line] = []
    for number, place in enumerate(shown.places):
        if number:
            lines.append(())
        if len(shown.places) > 1:
            lines.append((Span(clipped(place.title, width), "title"),))
        lines += _slot_lines(place, choice, width)
    return lines


def _slot_lines(slot: ConflictSlot, choice: Choice | None, width: int) -> Iterator[Line]:
    """Yield the sides in columns if there is room, otherwise below each other."""
    if width < BESIDE:
        yield from ((span,) for side in SIDES for span in _side(slot, side, choice, width))
        return
    column, bar = (width - 6) // 3, Span(" | ", "quiet")
    sides = [_side(slot, side, choice, column) for side in SIDES]
    for row in zip_longest(*sides, fillvalue=Span("")):
        first, *others = [Span(padded(span.text, column), span.style) for span in row]
        yield (first, *[each for span in others for each in (bar, span)])


def _side(slot: ConflictSlot, side: Choice, choice: Choice | None, width: int) -> Iterator[Span]:
    """Yield the heading of a side, and its lines with marks for those that the base lacks."""
    is_chosen = side == choice
    yield Span(clipped(f"{_KEYS[side]} {side}{' *' if is_chosen else ''}", width), "good" if is_chosen else "title")
    for line, is_other in _marked_lines(slot, side):
        for text in wrap(line, width - 2):
            yield Span(f"{'~' if is_other else ' '} {text}", "changed" if is_other else "plain")


def _marked_lines(slot: ConflictSlot, side: Choice) -> list[tuple[str, bool]]:
    """Return the lines of a side, each with whether it differs from the base."""
    lines, base = slot.values[side], slot.values["base"]
    if lines is None:
        return [(NOTHING_HERE, base is not None)]
    left = len(lines) - _MOST_LINES
    if left > 0:
        lines = (*lines[:_MOST_LINES], f"... and {left:,} more lines")
    if side == "base" or base is None:
        return [(text, side != "base") for text in lines]
    found = changes([each.encode() for each in base], [each.encode() for each in lines])
    other = {number for change in found for number in range(change.new_start, change.new_end)}
    return [(text, number in other) for number, text in enumerate(lines)]


def alike_key(conflict: ShownConflict) -> object:
    """Return what is equal for conflicts alike: the place but for numbers, and the values of all sides."""
    return tuple([(re.sub("[0-9]+", "#", each.title), *each.values.items()) for each in conflict.places])


def conflict_title(conflict: ShownConflict) -> str:
    """Return the title of a conflict for a message."""
    return visible(conflict.places[0].title, 200)
