"""The nodes of a graph as one text, so that a search through 100,000 of them takes a few milliseconds."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from onnxjson.display import visible
from onnxjson.index import Scope
from onnxjson.name_patterns import part_searcher
from onnxjson.operators import operator_name

_LONGEST: Final = 10_000
"""Characters of a name that are searched."""

Direction = Literal[1, -1]
"""Down, or up."""


class Wanted(NamedTuple):
    """What is looked for."""

    text: str
    kind: Literal["text", "pattern", "operator"]
    """A part of what is shown of a node, a regular expression for a part of it, or its operator."""

    @property
    def shown(self) -> str:
        """As a person reads it."""
        text = visible(self.text, 60)
        return f"/{text}/" if self.kind == "pattern" else f"operator {text}" if self.kind == "operator" else text


def wanted(typed: str) -> Wanted:
    """What a person looks for: a regular expression where it stands between slashes, else the very text.

    A text that begins with a slash, such as that of a name, is a text as long as there is none at its end.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        return Wanted(typed[1:-1], "pattern")
    return Wanted(typed, "text")


class NodeText:
    """Operator, name and outputs of each node of a graph as they are shown, a line each."""

    def __init__(self, scope: Scope, positions: Sequence[int] | None = None) -> None:
        """Takes the texts of all nodes, or of those at some positions, ascending."""
        nodes = scope.graph.node
        self.positions: Sequence[int] = range(len(nodes)) if positions is None else positions
        # Visible text has no line feeds, so what is found never begins in one node and ends in another.
        lines = [
            visible(" ".join((operator_name(node.domain, node.op_type), node.name or "", *node.output)), _LONGEST)
            for node in (nodes if positions is None else map(nodes.__getitem__, positions))
        ]
        lowered = [line.lower() for line in lines]
        # Tuples of texts are nothing that the collector of garbage looks through again and again, as lists are.
        self._lines = tuple(lines)
        self._operators = tuple([line.partition(" ")[0] for line in lines])
        self._texts = ("\n".join(lines) + "\n", "\n".join(lowered) + "\n")
        self._starts = (_starts(lines), _starts(lowered))

    def __len__(self) -> int:
        return len(self._lines)

    def nearest(self, what: Wanted, number: int, direction: Direction = 1) -> int | None:
        """The first place, from `number` on, at which a text is found; from the other end if there is none.

        Args:
            what: a text; patterns and operators are found by `all` alone.
            number: a place in `positions`, which itself counts.
            direction: where to look.
        """
        wanted_text = what.text
        if not wanted_text or not self._lines:
            return None
        # Capitals count only for who types some.
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
        """Every place at which something is found, ascending.

        Raises:
            SelectorError: the pattern is misspelled.
            LimitError: the pattern takes too many steps.
        """
        if what.kind == "operator":
            return [number for number, operator in enumerate(self._operators) if operator == what.text]
        if what.kind == "pattern":
            is_plain = what.text == what.text.lower() and not what.text.startswith("(?i)")
            fits = part_searcher(f"(?i){what.text}" if is_plain else what.text)
            return [number for number, line in enumerate(self._lines) if fits(line)]
        return list(self._having(what.text))

    def operator(self, number: int) -> str:
        """The operator at a place, as it is looked for."""
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
    """Where a search stands."""

    number: int
    """A place in `NodeText.positions`."""
    wrapped: bool
    """Whether the search went past the end."""


def step(places: Sequence[int], number: int, count: int, direction: Direction) -> Found | None:
    """The match so many after a place, or before it; around the end where there are none left.

    Args:
        places: the matches, ascending.
        number: the place to start from; it does not count itself.
        count: from 1.
        direction: where to go.
    """
    if not places:
        return None
    if direction == 1:
        at = bisect_right(places, number) + count - 1
    else:
        at = bisect_left(places, number) - count
    return Found(places[at % len(places)], not 0 <= at < len(places))


def _starts(lines: Sequence[str]) -> "array[int]":
    """Where each line begins in the text of all."""
    return array("q", accumulate([len(line) + 1 for line in lines[:-1]], initial=0)) if lines else array("q")
