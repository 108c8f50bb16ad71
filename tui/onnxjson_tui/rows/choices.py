"""Choices as rows, and searches in choices, in the nodes of a graph, and in all names of a model."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, overload

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Function
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import format_type
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.names import regular_expression
from onnxjson.patterns.selector_terms import scopes_of
from onnxjson.rendering.tables import Line, Span, cells, clipped, padded, shortened

_LOOKED_AT: Final = 500  # number of choices whose labels determine the width of the column

_LONGEST: Final = 10_000  # maximum characters of a name that are searched

Direction = Literal[1, -1]  # Down, or up

PATTERN: Final = re.compile(r"\w\(|->")  # what is in every pattern of several operators: a call, or a path

MOST: Final = 200  # maximum number of names that a search lists; typing more narrows them down

_NAME: Final = 300  # maximum characters of a name that are searched


class Choice(msgspec.Struct, frozen=True, gc=False):
    """A choice; not tracked by the garbage collector, since there may be 100,000."""

    key: str  # result of the screen if it is chosen
    label: str  # visible
    detail: str = ""  # Visible; at the right
    refused: str = ""  # why it cannot be chosen, or ""
    also: str = ""  # more words that find it, in lower case


class Searchable(Sequence[Choice]):
    """Choices prepared for searching; build it in a thread if there are many."""

    def __init__(self, choices: Iterable[Choice]) -> None:
        # Unlike lists, tuples of such objects are not traversed by every garbage collection.
        self._choices = tuple(choices)
        self.texts = tuple([f"{choice.label}\n{choice.detail}\n{choice.also}".lower() for choice in self._choices])
        """Label, detail and other words of each, in lower case."""

    def __len__(self) -> int:
        return len(self._choices)

    @overload
    def __getitem__(self, at: int) -> Choice: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Choice, ...]: ...

    def __getitem__(self, at: int | slice) -> Choice | tuple[Choice, ...]:
        return self._choices[at]

    def having(self, words: Sequence[str]) -> list[Choice]:
        """Return the choices that contain every word; those that are the first word or begin with it come first."""
        texts = self.texts
        if not words:
            return list(self._choices)
        places: Sequence[int] = range(len(texts))
        for word in words:
            places = [place for place in places if word in texts[place]]
        first, whole = [place for place in places if texts[place].startswith(words[0])], f"{words[0]}\n"
        first.sort(key=lambda place: not texts[place].startswith(whole))
        beginning = set(first)
        return [self._choices[place] for place in (*first, *[place for place in places if place not in beginning])]


class ChoiceRows:
    """Choices as rows with a column for labels and one for details."""

    def __init__(self, choices: Sequence[Choice], digits: Sequence[str] = ()) -> None:
        """Use some choices; those of a menu have digits."""
        self.choices = choices
        self._digits = digits
        self._column = max([cells(choice.label) for choice in choices[:_LOOKED_AT]], default=0)

    def __len__(self) -> int:
        return len(self.choices)

    def line(self, number: int, width: int) -> Line:
        """Return the label, then the detail, or why it cannot be chosen."""
        choice = self.choices[number]
        if self._digits:
            width -= 2
        more = choice.refused or choice.detail
        label = shortened(choice.label, width if not more else max(width * 3 // 5, 10))
        if more:
            label = padded(label, min(self._column, width * 3 // 5))
        room = width - cells(label) - 2
        return (
            *([Span(f"{self._digits[number]} ", "title")] if self._digits else []),
            Span(label, "quiet" if choice.refused else "plain"),
            Span(f"  {clipped(more, room)}" if more and room > 3 else "", "bad" if choice.refused else "quiet"),
        )


class Wanted(NamedTuple):
    """A search."""

    text: str
    kind: Literal["text", "pattern", "match"]
    """A substring of the shown text of a node, a regular expression, or a pattern of operators."""
    mistake: str = ""  # why a text that looks like a pattern of operators is not valid

    @property
    def shown(self) -> str:
        """The search as shown in messages."""
        text = visible(self.text, 60)
        return f"/{text}/" if self.kind == "pattern" else text


def wanted(typed: str) -> Wanted:
    """Parse a search: a regular expression between slashes, a pattern such as ``Relu($x)``, otherwise a plain text.

    A text that only begins with a slash, such as a name, is a plain text.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        return Wanted(typed[1:-1], "pattern")
    if PATTERN.search(typed):
        try:
            parse(typed)
        except OnnxJsonError as error:
            return Wanted(typed, "text", str(error))  # perhaps not yet complete
        return Wanted(typed, "match")
    return Wanted(typed, "text")


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

    def __len__(self) -> int:
        return len(self._lines)

    def all(self, what: Wanted) -> list[int]:
        """Return all matches, ascending; case matters only if the text has capitals.

        Raises:
            SelectorError: the pattern is invalid.
            LimitError: the pattern takes too many steps.
        """
        is_plain = what.text == what.text.lower()
        if what.kind == "pattern":
            fits = regular_expression(what.text, ignore_case=is_plain and not what.text.startswith("(?i)")).is_in
            if not re.search(r"[$^]", what.text):
                return [number for number, line in enumerate(self._lines) if fits(line)]
            # They are the ends of an operator, of a name and of an output, too.
            return [number for number, line in enumerate(self._lines) if any(map(fits, (line, *line.split(" "))))]
        return [number for number, line in enumerate(self._lines) if what.text in (line.lower() if is_plain else line)]


class Found(NamedTuple):
    """Result of a search."""

    number: int  # a place in `NodeText.positions`
    wrapped: bool  # whether the search went past the end


def step(places: Sequence[int], number: int, count: int, direction: Direction) -> Found | None:
    """Return the match `count` matches (from 1) after or before a place, wrapping around; None without matches."""
    if not places:
        return None
    if direction == 1:
        at = bisect_right(places, number) + count - 1
    else:
        at = bisect_left(places, number) - count
    return Found(places[at % len(places)], not 0 <= at < len(places))


def names_of(index: Index) -> Searchable:
    """Return everything in a model that has a name; their keys are ``go ADDRESS``. Use a thread for a big model."""
    return Searchable([Choice(f"go {address}", *texts) for address, *texts in _named(index)])


def _named(index: Index) -> Iterator[tuple[str, ...]]:
    """Yield the address and the texts of a choice: graphs, inputs, outputs, constants, scopes, nodes."""
    for scope in index.scopes:
        if scope.kind != "main":
            inner = scope.address.rpartition("/attribute/")[2]
            label = (scope.graph.name if isinstance(scope.graph, Function) else inner) or "?"
            yield (scope.address, visible(label, _NAME), f"{scope.kind}, a graph")
    for scope in index.scopes:
        yield from _of_graph(scope)
    for scope in index.scopes:
        seen: set[str] = set()
        last = None
        for position, node in enumerate(scope.graph.node):
            name = node.name or ""
            where = name[: max(name.rfind("/"), name.rfind(".")) + 1]
            # Nodes of a scope are usually consecutive.
            if where == last and not node.metadata_props:
                continue
            last = where
            for scope_name in scopes_of(node) if where or node.metadata_props else ():
                if scope_name not in seen:
                    seen.add(scope_name)
                    yield (f"{scope.address}/node/{position}", visible(scope_name, _NAME), "scope of nodes")
    for scope in index.scopes:
        for position, node in enumerate(scope.graph.node):
            outputs = [each for each in node.output if each]
            label, also = visible(node.name or "".join(outputs[:1]), _NAME), visible(" ".join(outputs), _NAME).lower()
            operator = visible(operator_name(node.domain, node.op_type), 60)
            yield (f"{scope.address}/node/{position}", label, f"{operator}, node {position}", "", also)


def _of_graph(scope: Scope) -> Iterator[tuple[str, str, str]]:
    for name, position in scope.inputs.items():
        found = scope.types.get(name)
        kind = f" {visible(format_type(found) or '', 100)}" if found is not None else ""
        yield (f"{scope.address}/input/{position}", visible(name, _NAME), f"input{kind}")
    for position, output in enumerate(scope.output_names):
        if output:
            yield (f"{scope.address}/output/{position}", visible(output, _NAME), "output")
    for field, places in (("initializer", scope.initializers), ("sparse_initializer", scope.sparse_initializers)):
        for name, position in places.items():
            yield (f"{scope.address}/{field}/{position}", visible(name, _NAME), "constant")
