"""The sections of the outline: scopes, operators, inputs, outputs, constants, functions, graphs, marks.

A section is a heading, and below it rows that are made when they are looked at: a model may have 10,000 constants.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple

from onnxjson.display import counted, visible
from onnxjson.document import Graph, Model, SparseTensor, Tensor
from onnxjson.index import Index, Scope
from onnxjson.operators import operator_name
from onnxjson.rendering.constants import stored_bytes, tensor_type_text
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded, shortened, size
from onnxjson.types import format_type
from onnxjson_tui.rows.outline import OutlineRow, outline_line

Kind = Literal["section", "scope", "operator", "input", "output", "initializer", "function", "graph", "mark"]

_NAME: Final = 300
"""Characters of a name that are looked at."""

_MANY: Final = 20_000
"""Nodes from which operators are counted only in an open section."""

_ROOM: Final = 24
"""Columns of a name that go before what may be left out."""

_BAR: Final = 6
"""Columns of the longest bar of the histogram of operators."""

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


class Row(NamedTuple):
    """One row; its texts are safe to show."""

    kind: Kind
    label: str
    detail: str = ""
    """At the right."""
    more: str = ""
    """After that, where there is room."""
    key: str = ""
    """What is opened and closed; of a section or a scope."""
    is_open: bool | None = None
    address: str = ""
    """Where enter goes."""
    operator: tuple[str, str] = ("", "")
    """Domain and name of an operator, as the model has them: never to be shown as they are."""
    share: float = 0.0
    """The length of a bar, from 0 to 1."""
    scope: OutlineRow | None = None

    @property
    def level(self) -> int:
        """How deep it stands: 0 for headings."""
        return 0 if self.kind == "section" else 1 + (self.scope.level if self.scope is not None else 0)


class Section(NamedTuple):
    """A heading, and how its rows are made."""

    name: str
    length: int
    row: Callable[[int], Row]
    starts_open: bool = False
    is_counted: bool = True
    """Whether the length is more than a sign that there is something."""

    @property
    def key(self) -> str:
        """What is opened and closed; no scope has such a name."""
        return f"\0{self.name}"


class Sections:
    """All rows of the outline of one graph, the open sections with what is in them."""

    def __init__(
        self,
        model: Model,
        index: Index,
        scope: Scope | None,
        scopes: Sequence[OutlineRow],
        opened: Collection[str],
        marks: Mapping[str, str],
    ) -> None:
        """Finds out how many rows there are.

        Args:
            model: the model.
            index: of the model.
            scope: the graph that is looked at.
            scopes: the rows of its scopes that are seen.
            opened: keys of scopes that are open, and of sections that are not as they are at first.
            marks: addresses by their letters.
        """
        self._model = model
        self._index = index
        self._scope = scope
        self._opened = opened
        self._marks = sorted(marks.items())
        self.scopes = scopes
        self._sections = [each for each in self._found() if each.length]
        self._starts: list[int] = []
        total = 0
        for section in self._sections:
            self._starts.append(total)
            total += 1 + (section.length if self.is_open(section) else 0)
        self._length = total

    def __len__(self) -> int:
        return self._length

    def is_open(self, section: Section) -> bool:
        """Whether the rows of a section are seen."""
        return (section.key in self._opened) != section.starts_open

    def row(self, number: int) -> Row:
        """The row of a number from 0."""
        place = next(place for place in range(len(self._starts) - 1, -1, -1) if self._starts[place] <= number)
        section, inner = self._sections[place], number - self._starts[place] - 1
        if inner >= 0:
            return section.row(inner)
        detail = f"{section.length:,}" if section.is_counted else ""
        return Row("section", section.name, detail, key=section.key, is_open=self.is_open(section))

    def around(self, number: int) -> int:
        """The number of the row that a row stands below."""
        level = self.row(number).level
        while number > 0 and self.row(number).level >= level > 0:
            number -= 1
        return number

    def _found(self) -> list[Section]:
        found = [Section("scopes", len(self.scopes), self._scope_row, starts_open=True)]
        graph = None if self._scope is None else self._scope.graph
        if graph is not None:
            # Those of 100,000 nodes take 10 ms to count, at every edit, so that is done for those who look.
            is_counted = len(graph.node) < _MANY or "\0operators" in self._opened
            length = len(self._operators) if is_counted else 1
            found.append(Section("operators", length, self._operator, is_counted=is_counted))
            found.append(Section("inputs", len(graph.input), lambda number: self._value("input", number)))
            found.append(Section("outputs", len(graph.output), lambda number: self._value("output", number)))
        if isinstance(graph, Graph):
            count = len(graph.initializer) + len(graph.sparse_initializer)
            found.append(Section("initializers", count, self._initializer))
        found.append(Section("functions", len(self._model.functions), self._function))
        found.append(Section("graphs", len(self._graphs), self._graph))
        found.append(Section("marks", len(self._marks), self._mark))
        return found

    def _scope_row(self, number: int) -> Row:
        row = self.scopes[number]
        address = f"{self._scope.address}/node/{row.first}" if self._scope is not None else ""
        return Row("scope", row.label, key=row.key, is_open=row.is_open, address=address, scope=row)

    @cached_property
    def _operators(self) -> list[tuple[tuple[str, str], int]]:
        assert self._scope is not None
        counts: Counter[tuple[str | None, str | None]] = Counter()
        counts.update([(node.domain, node.op_type) for node in self._scope.graph.node])
        found = [((domain or "", operator or ""), count) for (domain, operator), count in counts.items()]
        return sorted(found, key=lambda each: (-each[1], each[0]))

    def _operator(self, number: int) -> Row:
        key, count = self._operators[number]
        most = self._operators[0][1]
        name = visible(operator_name(*key), _NAME)
        return Row("operator", name, f"{count:,}", operator=key, share=count / most)

    def _value(self, kind: Literal["input", "output"], number: int) -> Row:
        assert self._scope is not None
        values: Sequence[object] = getattr(self._scope.graph, kind)
        value = values[number]
        if isinstance(value, str):
            name, said = value, Index.type_of(self._scope, value)
        else:
            name, said = getattr(value, "name", None) or "", getattr(value, "type", None)
        text = "" if said is None else visible(format_type(said) or "?", 200)
        return Row(kind, visible(name, _NAME) or "(no name)", text, address=f"{self._scope.address}/{kind}/{number}")

    def _initializer(self, number: int) -> Row:
        assert self._scope is not None
        graph = self._scope.graph
        assert isinstance(graph, Graph)
        dense = len(graph.initializer)
        if number < dense:
            tensor: Tensor | SparseTensor = graph.initializer[number]
            address = f"{self._scope.address}/initializer/{number}"
        else:
            tensor = graph.sparse_initializer[number - dense]
            address = f"{self._scope.address}/sparse_initializer/{number - dense}"
        return initializer_row(tensor, address)

    def _function(self, number: int) -> Row:
        function = self._model.functions[number]
        name = visible(operator_name(function.domain, function.name, function.overload), _NAME)
        return Row("function", name, counted(len(function.node), "node"), address=f"/functions/{number}")

    @cached_property
    def _graphs(self) -> list[Scope]:
        """The main graph for those that are elsewhere, the graphs in this one, those of training."""
        here = self._scope
        found = [each for each in self._index.scopes if each.kind == "main" and each is not here]
        found += [] if here is None else here.children
        return found + [each for each in self._index.scopes if each.kind == "training" and each is not here]

    def _graph(self, number: int) -> Row:
        scope = self._graphs[number]
        return Row("graph", graph_name(scope), counted(len(scope.graph.node), "node"), address=scope.address)

    def _mark(self, number: int) -> Row:
        letter, address = self._marks[number]
        return Row("mark", f"{visible(letter)}  {marked_node(self._index, address)}", address=address)


def initializer_row(tensor: Tensor | SparseTensor, address: str) -> Row:
    """The row of a constant: name, type, bytes as they are stored."""
    values = tensor.values if isinstance(tensor, SparseTensor) else tensor
    indices = tensor.indices if isinstance(tensor, SparseTensor) else None
    stored = sum([stored_bytes(each) for each in (values, indices) if each is not None])
    name = (values.name if values is not None else None) or ""
    kind = (tensor_type_text(values) if values is not None else None) or "no type"
    start = "sparse " if isinstance(tensor, SparseTensor) else ""
    detail = start + visible(kind, 100)
    return Row("initializer", visible(name, _NAME) or "(no name)", detail, f" {size(stored)}", address=address)


def graph_name(scope: Scope) -> str:
    """What a graph is called: by the node and the attribute that have it, visible."""
    if scope.owner is None:
        return {"main": "main graph", "training": visible(scope.address.strip("/"), 200)}.get(scope.kind, scope.kind)
    attribute = scope.address.rpartition("/attribute/")[2]
    attribute = attribute.removesuffix("/g").replace("/graphs/", ".")
    node = scope.owner.node
    name = visible(node.name or str(scope.owner.position), 200)
    return f"{visible(node.op_type or '?', 60)} {name}.{visible(attribute)}"


def marked_node(index: Index, address: str) -> str:
    """What stands at an address that was marked, visible."""
    owner, _, position = address.rpartition("/node/")
    scope = next((each for each in index.scopes if each.address == owner), None)
    if scope is None or not position.isdigit() or int(position) >= len(scope.graph.node):
        return visible(address, 200)
    node = scope.graph.node[int(position)]
    return f"{position} {visible(node.op_type or '?', 60)} {visible(node.name or '', 200)}".rstrip()


def row_line(row: Row, width: int, *, ascii_only: bool = False) -> Line:
    """A row in `width` columns."""
    if row.scope is not None:
        text = outline_line(row.scope, width - 1, ascii_only=ascii_only)
        return (Span(" " + text),)
    if row.kind == "section":
        mark = ("-" if ascii_only else "▾") if row.is_open else ("+" if ascii_only else "▸")
        label = f"{mark} {row.label}"
        return (Span(padded(label, max(width - cells(row.detail), 0)), "title"), Span(row.detail, "quiet"))
    if row.kind == "operator":
        bar = _bar(row.share, ascii_only=ascii_only)
        tail = f" {bar} {row.detail:>6}"
    else:
        detail = row.detail
        if row.more and width - 5 - cells(detail + row.more) >= min(cells(row.label), _ROOM):
            detail += row.more
        most = max(width * 3 // 5, width - 5 - cells(row.label), 8)
        tail = f"  {shortened(detail, most)}" if detail else ""
    room = max(width - 3 - cells(tail), 1)
    return (Span("   " + padded(shortened(row.label, room), room)), Span(tail, "quiet"))


def _bar(share: float, *, ascii_only: bool) -> str:
    if ascii_only:
        return padded("#" * max(round(share * _BAR), 1), _BAR)
    eighths = max(round(share * _BAR * 8), 1)
    return padded("█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else ""), _BAR)
