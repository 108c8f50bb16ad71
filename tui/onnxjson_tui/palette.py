"""Everything that has a name in a session, and the few that fit what a person types."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.document import Function
from onnxjson.index import Index, Scope
from onnxjson.node_properties import scopes_of
from onnxjson.operators import operator_name
from onnxjson.types import format_type

MOST: Final = 200
"""Entries that are found at once; who wants another one types on."""

_LONGEST: Final = 300
"""Characters of a name that are looked at."""

_MOST_LINES: Final = 50_000
"""Entries that have the longest word and are looked at for the others."""


class Named(NamedTuple):
    """One element with a name."""

    address: str
    label: str
    """Visible."""
    detail: str
    """Visible."""


class Names:
    """The names of a model as one text; made in a thread for a big one."""

    def __init__(self, index: Index) -> None:
        """Reads all names: of graphs, inputs, outputs, constants, scopes, nodes."""
        self._entries: list[Named] = []
        lines: list[str] = []
        for named in _named(index):
            self._entries.append(named)
            lines.append(f"{named.label}\t{named.detail}".lower())
        self._text = "\n" + "\n".join(lines) + "\n"
        self._starts: list[int] = []
        at = 1
        for line in lines:
            self._starts.append(at)
            at += len(line) + 1

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, typed: str, most: int = MOST) -> list[Named]:
        """The entries that have every word of what was typed: those that are it, that begin with it, then others."""
        words = typed.lower().split()
        if not words:
            return []
        text = self._text
        numbers: dict[int, None] = {}
        if len(words) == 1:
            for mark in ("\t", ""):
                for number in self._lines_with("\n" + words[0] + mark):
                    numbers[number] = None
                    if len(numbers) >= most:
                        break
        longest = max(words, key=len)
        others = [word for word in words if word is not longest]
        for looked, number in enumerate(self._lines_with(longest)):
            if len(numbers) >= most or looked >= _MOST_LINES:
                break
            start = self._starts[number]
            end = text.find("\n", start)
            if all(text.find(word, start, end) >= 0 for word in others):
                numbers[number] = None
        return [self._entries[number] for number in list(numbers)[:most]]

    def _lines_with(self, part: str) -> Iterator[int]:
        text, at = self._text, 0
        while (at := text.find(part, at)) >= 0:
            begins = at + part.startswith("\n")
            number = bisect_right(self._starts, begins) - 1
            yield number
            at = text.find("\n", begins)


def _named(index: Index) -> Iterator[Named]:
    for scope in index.scopes:
        if scope.kind != "main":
            inner = scope.address.rpartition("/attribute/")[2]
            label = (scope.graph.name if isinstance(scope.graph, Function) else inner) or "?"
            yield Named(scope.address, visible(label, _LONGEST), f"{scope.kind}, a graph")
    for scope in index.scopes:
        yield from _of_graph(scope)
    seen: dict[str, None] = {}
    for ref in index.nodes():
        node = ref.node
        if node.name and ("/" in node.name or "." in node.name):
            for name in scopes_of(node):
                if name not in seen:
                    seen[name] = None
                    yield Named(ref.address, visible(name, _LONGEST), "scope of nodes")
    for ref in index.nodes():
        node = ref.node
        operator = visible(operator_name(node.domain, node.op_type), 60)
        name = node.name or next((each for each in node.output if each), "")
        yield Named(ref.address, visible(name, _LONGEST), f"{operator}, node {ref.position}")


def _of_graph(scope: Scope) -> Iterator[Named]:
    for name, position in scope.inputs.items():
        found = scope.types.get(name)
        kind = f" {visible(format_type(found) or '', 100)}" if found is not None else ""
        yield Named(f"{scope.address}/input/{position}", visible(name, _LONGEST), f"input{kind}")
    for position, output in enumerate(scope.output_names):
        if output:
            yield Named(f"{scope.address}/output/{position}", visible(output, _LONGEST), "output")
    for field, places in (("initializer", scope.initializers), ("sparse_initializer", scope.sparse_initializers)):
        for name, position in places.items():
            yield Named(f"{scope.address}/{field}/{position}", visible(name, _LONGEST), "constant")
