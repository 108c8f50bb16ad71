"""Nodes of a graph as one text, in which a search through 100,000 nodes takes a few milliseconds."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Final, Literal, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.index import Scope
from onnxjson.model.operators import operator_name
from onnxjson.patterns.name_patterns import regular_expression

_LONGEST: Final = 10_000
"""Maximum characters of a name that are searched."""

Direction = Literal[1, -1]
"""Down, or up."""


class Wanted(NamedTuple):
    """A search."""

    text: str
    kind: Literal["text", "pattern", "operator"]
    """A substring of the shown text of a node, a regular expression, or an operator."""

    @property
    def shown(self) -> str:
        """The search as shown in messages."""
        text = visible(self.text, 60)
        return f"/{text}/" if self.kind == "pattern" else f"operator {text}" if self.kind == "operator" else text


def wanted(typed: str) -> Wanted:
    """Parse a search: a regular expression between slashes, otherwise a plain text.

    A text that only begins with a slash, such as a name, is a plain text.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        return Wanted(typed[1:-1], "pattern")
    return Wanted(typed, "text")


class LineText:
    """Lines without line feeds as one text."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._text = "\n".join(["", *lines, ""])
        self._starts = array("q", accumulate([len(line) + 1 for line in lines], initial=1))

    def having(self, part: str, first: int = 0) -> Iterator[int]:
        """Yield the numbers of the lines that contain a text, from one line on.

        Lines begin with a text after a line feed, and contain others that have none.
        """
        at = self._starts[min(first, len(self._starts) - 1)] - 1
        while (at := self._text.find(part, at)) >= 0:
            yield (number := self._number(at + part.startswith("\n")))
            at = self._starts[number + 1] - 1

    def last_having(self, part: str, last: int | None = None) -> int | None:
        """Return the last line that contains a text, of all lines or of those up to one."""
        end = None if last is None or last + 1 >= len(self._starts) else self._starts[last + 1]
        at = self._text.rfind(part, 0, end)
        return None if at < 0 else self._number(at)

    def line(self, number: int) -> str:
        """Return a line."""
        return self._text[self._starts[number] : self._starts[number + 1] - 1]

    def _number(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1


class NodeText:
    """Operator, name and outputs of each node of a graph as shown, one line each."""

    def __init__(self, scope: Scope, positions: Sequence[int] | None = None) -> None:
        """Collect the texts of all nodes, or of those at some positions, ascending."""
        nodes = scope.graph.node
        self.positions: Sequence[int] = range(len(nodes)) if positions is None else positions
        lines = [
            visible(" ".join((operator_name(node.domain, node.op_type), node.name or "", *node.output)), _LONGEST)
            for node in (nodes if positions is None else map(nodes.__getitem__, positions))
        ]
        # Unlike lists, tuples of strings are not traversed by every garbage collection.
        self._lines = tuple(lines)
        self._texts = (LineText(lines), LineText([line.lower() for line in lines]))

    def __len__(self) -> int:
        return len(self._lines)

    def nearest(self, what: Wanted, number: int, direction: Direction = 1) -> int | None:
        """Return the first place with a plain text, from `number` on; the search wraps around."""
        lines, text = self._searched(what.text), what.text
        if not text or direction == 1:
            return next(chain(lines.having(text, number), lines.having(text)), None) if text else None
        found = lines.last_having(text, number)
        return lines.last_having(text) if found is None else found

    def _searched(self, text: str) -> LineText:
        """Return the text to search: case matters only if the text has capitals."""
        return self._texts[text == text.lower()]

    def all(self, what: Wanted) -> list[int]:
        """Return all matches, ascending.

        Raises:
            SelectorError: the pattern is invalid.
            LimitError: the pattern takes too many steps.
        """
        if what.kind == "operator":
            return [number for number in range(len(self)) if self.operator(number) == what.text]
        if what.kind == "pattern":
            is_plain = what.text == what.text.lower() and not what.text.startswith("(?i)")
            fits = regular_expression(what.text, ignore_case=is_plain).is_in
            return [number for number, line in enumerate(self._lines) if fits(line)]
        return list(self._searched(what.text).having(what.text)) if what.text else []

    def operator(self, number: int) -> str:
        """Return the operator at a place, as a search finds it."""
        return self._lines[number].partition(" ")[0]


class Found(NamedTuple):
    """Result of a search."""

    number: int
    """A place in `NodeText.positions`."""
    wrapped: bool
    """Whether the search went past the end."""


def step(places: Sequence[int], number: int, count: int, direction: Direction) -> Found | None:
    """Return the match `count` matches (from 1) after or before a place, wrapping around; None without matches."""
    if not places:
        return None
    if direction == 1:
        at = bisect_right(places, number) + count - 1
    else:
        at = bisect_left(places, number) - count
    return Found(places[at % len(places)], not 0 <= at < len(places))
