"""Search for named elements of a model: graphs, values, scopes and nodes."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.document import Function
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import format_type
from onnxjson.patterns.selector_terms import scopes_of
from onnxjson_tui.rows.node_text import LineText

MOST: Final = 200
"""Maximum number of results; typing more narrows them down."""

_LONGEST: Final = 300
"""Maximum characters of a name that are searched."""

_MOST_LINES: Final = 50_000
"""Maximum number of entries containing the longest typed word that are searched for the other words."""


class Named(NamedTuple):
    """A named element."""

    address: str
    label: str
    """Visible."""
    detail: str
    """Visible."""


class Names:
    """The names of a model as one text, one line each; built in a thread for a big model."""

    def __init__(self, index: Index) -> None:
        """Collect the names of all graphs, inputs, outputs, constants, scopes and nodes."""
        lines: list[str] = []
        # Nodes are in graph order, so nothing has to be stored for each of them.
        self._addresses: list[str] = []
        self._nodes: list[tuple[int, Scope]] = []
        for named in _named(index):
            self._addresses.append(named.address)
            lines.append(f"{named.label}\t{named.detail}")
        for scope in index.scopes:
            self._nodes.append((len(lines), scope))
            for position, node in enumerate(scope.graph.node):
                name = node.name or next((each for each in node.output if each), "")
                operator = operator_name(node.domain, node.op_type)
                lines.append(f"{visible(name, _LONGEST)}\t{visible(operator, 60)}, node {position}")
        # Unlike lists, tuples of strings are not traversed by every garbage collection.
        self._lines = tuple(lines)
        self._text = LineText([line.lower() for line in lines])

    def __len__(self) -> int:
        return len(self._lines)

    def find(self, typed: str, most: int = MOST) -> list[Named]:
        """Return the entries that contain every typed word: exact matches, then prefixes, then others."""
        words = typed.lower().split()
        if not words:
            return []
        numbers: dict[int, None] = {}
        if len(words) == 1:
            for mark in ("\t", ""):
                numbers |= dict.fromkeys(islice(self._text.having("\n" + words[0] + mark), most))
        longest = max(words, key=len)
        others = [word for word in words if word is not longest]
        for number in islice(self._text.having(longest), _MOST_LINES):
            if len(numbers) >= most:
                break
            line = self._text.line(number) if others else ""
            if all(word in line for word in others):
                numbers[number] = None
        return [self._entry(number) for number in list(numbers)[:most]]

    def _entry(self, number: int) -> Named:
        label, _, detail = self._lines[number].partition("\t")
        if number < len(self._addresses):
            return Named(self._addresses[number], label, detail)
        first, scope = self._nodes[bisect_right(self._nodes, number, key=lambda each: each[0]) - 1]
        return Named(f"{scope.address}/node/{number - first}", label, detail)


def _named(index: Index) -> Iterator[Named]:
    """Yield everything with a name except nodes."""
    for scope in index.scopes:
        if scope.kind != "main":
            inner = scope.address.rpartition("/attribute/")[2]
            label = (scope.graph.name if isinstance(scope.graph, Function) else inner) or "?"
            yield Named(scope.address, visible(label, _LONGEST), f"{scope.kind}, a graph")
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
            for each in scopes_of(node) if where or node.metadata_props else ():
                if each not in seen:
                    seen.add(each)
                    yield Named(f"{scope.address}/node/{position}", visible(each, _LONGEST), "scope of nodes")


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
