"""Nodes of a graph as one text, in which a search through 100,000 nodes takes a few milliseconds."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.index import Scope
from onnxjson.model.name_patterns import regular_expression
from onnxjson.model.operators import operator_name

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


class NodeText:
    """Operator, name and outputs of each node of a graph as shown, one line each."""

    def __init__(self, scope: Scope, positions: Sequence[int] | None = None) -> None:
        """Collect the texts of all nodes, or of those at some positions, ascending."""
        nodes = scope.graph.node
        self.positions: Sequence[int] = range(len(nodes)) if positions is None else positions
        # Visible text has no line feeds, so what is found never begins in one node and ends in another.
        lines = [
            visible(" ".join((operator_name(node.domain, node.op_type), node.name or "", *node.output)), _LONGEST)
            for node in (nodes if positions is None else map(nodes.__getitem__, positions))
        ]
        lowered = [line.lower() for line in lines]
        # Unlike lists, tuples of strings are not traversed by every garbage collection.
        self._lines = tuple(lines)
        self._operators = tuple([line.partition(" ")[0] for line in lines])
        self._texts = ("\n".join(lines) + "\n", "\n".join(lowered) + "\n")
        self._starts = (_starts(lines), _starts(lowered))

    def __len__(self) -> int:
        return len(self._lines)

    def nearest(self, what: Wanted, number: int, direction: Direction = 1) -> int | None:
        """Return the first match from `number` on; the search wraps around.

        Args:
            what: a plain text; only `all` finds patterns and operators.
            number: a place in `positions`, inclusive.
            direction: the direction of the search.
        """
        wanted_text = what.text
        if not wanted_text or not self._lines:
            return None
        # Case matters only if the text has capitals.
        is_lowered = wanted_text == wanted_text.lower()
        text, starts = self._texts[is_lowered], self._starts[is_lowered]
        if direction == 1:
            start = starts[number] if number < len(starts) else 0
            found = text.find(wanted_text, start)
            if found < 0:
                found = text.find(wanted_text, 0, start + len(wanted_text))
        else:
            end = starts[number + 1] if number + 1 < len(starts) else len(text)
            found = text.rfind(wanted_text, 0, end)
            if found < 0:
                found = text.rfind(wanted_text, end)
        return None if found < 0 else bisect_right(starts, found) - 1

    def all(self, what: Wanted) -> list[int]:
        """Return all matches, ascending.

        Raises:
            SelectorError: the pattern is invalid.
            LimitError: the pattern takes too many steps.
        """
        if what.kind == "operator":
            return [number for number, operator in enumerate(self._operators) if operator == what.text]
        if what.kind == "pattern":
            is_plain = what.text == what.text.lower() and not what.text.startswith("(?i)")
            fits = regular_expression(what.text, ignore_case=is_plain).is_in
            return [number for number, line in enumerate(self._lines) if fits(line)]
        return list(self._having(what.text))

    def operator(self, number: int) -> str:
        """Return the operator at a place, as a search finds it."""
        return self._operators[number]

    def _having(self, wanted_text: str) -> Iterator[int]:
        if not wanted_text:
            return
        is_lowered = wanted_text == wanted_text.lower()
        text, starts = self._texts[is_lowered], self._starts[is_lowered]
        at = text.find(wanted_text)
        while at >= 0:
            number = bisect_right(starts, at) - 1
            yield number
            at = text.find(wanted_text, starts[number + 1]) if number + 1 < len(starts) else -1


class Found(NamedTuple):
    """Result of a search."""

    number: int
    """A place in `NodeText.positions`."""
    wrapped: bool
    """Whether the search went past the end."""


def step(places: Sequence[int], number: int, count: int, direction: Direction) -> Found | None:
    """Return the match `count` matches after or before a place, wrapping around; None without matches.

    Args:
        places: the matches, ascending.
        number: the start, exclusive.
        count: from 1.
        direction: the direction.
    """
    if not places:
        return None
    if direction == 1:
        at = bisect_right(places, number) + count - 1
    else:
        at = bisect_left(places, number) - count
    return Found(places[at % len(places)], not 0 <= at < len(places))


def _starts(lines: Sequence[str]) -> "array[int]":
    """Return the start of each line in the whole text."""
    return array("q", accumulate([len(line) + 1 for line in lines[:-1]], initial=0)) if lines else array("q")
