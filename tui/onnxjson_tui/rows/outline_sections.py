"""Sections of the outline: scopes, operators, inputs, outputs, initializers, functions, graphs.

A section is a heading with rows that are computed when they become visible: a model may have 10,000 initializers.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias

from onnxjson.model.display import counted, visible
from onnxjson.model.document import Graph, SparseTensor, Tensor, ValueInfo
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import shown_type
from onnxjson.model.walking import stored_bytes
from onnxjson.rendering.summary_text import families
from onnxjson.rendering.tables import Line, Span, cells, padded, shortened, size
from onnxjson.rendering.values import tensor_type_text
from onnxjson_tui.rows.outline import Outline, OutlineRow, outline_line
from onnxjson_tui.session.session import Session

Kind = Literal["section", "scope", "operator", "input", "output", "initializer", "function", "graph"]

_NAME: Final = 300  # maximum characters of a name
_MANY: Final = 20_000  # number of nodes from which operators are counted only in an open section
_ROOM: Final = 24  # columns of a name that take precedence over optional details
_BAR: Final = 6  # columns of the longest bar of the histogram of operators

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


OpenedRows: TypeAlias = tuple[frozenset[str], Sequence[OutlineRow]]
"""Keys of open scopes, and the visible rows of the outline."""


class Row(NamedTuple):
    """One row; its texts have no control characters."""

    kind: Kind
    label: str
    detail: str = ""  # text on the right
    more: str = ""  # text after the detail, if there is room
    key: str = ""  # key of a section or scope for opening and closing
    is_open: bool | None = None
    address: str = ""  # target of enter
    operator: tuple[str, str] = ("", "")  # original domain and name of an operator; escape them before showing them
    share: float = 0.0  # the length of a bar, from 0 to 1
    scope: OutlineRow | None = None

    @property
    def level(self) -> int:
        """Depth; 0 for headings."""
        return 0 if self.kind == "section" else 1 + (self.scope.level if self.scope is not None else 0)


class Section(NamedTuple):
    """A heading and the function that computes its rows."""

    name: str
    length: int
    row: Callable[[int], Row]
    starts_open: bool = False
    is_counted: bool = True  # whether the length is the real number of rows
    total: int | None = None  # number in the heading, if rows are folded

    @property
    def key(self) -> str:
        """Key for opening and closing, which no scope can have."""
        return f"\0{self.name}"


class OutlineLines:
    """The rows of the outline: headings and the rows of open sections; the workbench stores what is open."""

    def __init__(
        self,
        session: Session,
        scope: Scope | None,
        opened: Collection[str],
        outline: Outline | None = None,
        known: OpenedRows | None = None,
        *,
        ascii_only: bool = False,
    ) -> None:
        """Count the rows of a graph; `known` are the rows of the scopes where other keys than `opened` may be open."""
        self.outline = outline
        self._opened = frozenset(opened)
        if known is None or known[0] != self._opened:
            known = self._opened, [] if outline is None else outline.rows(self._opened)
        self.known = known
        self._ascii_only = ascii_only
        self._model, self._index, self._scope = session.model, session.index, scope
        self._sections = [each for each in self._found() if each.length]
        lengths = [1 + (each.length if self.is_open(each) else 0) for each in self._sections]
        self._starts = list(accumulate(lengths, initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def row(self, number: int) -> Row | None:
        """Return a row, numbered from 0; None after the last one."""
        return self._row(number) if 0 <= number < len(self) else None

    def line(self, number: int, width: int) -> Line:
        """Return indentation, fold mark, label, and on the right the number or the type."""
        return row_line(self._row(number), width, ascii_only=self._ascii_only)

    def is_open(self, section: Section) -> bool:
        """Whether a section is open."""
        return (section.key in self._opened) != section.starts_open

    def _row(self, number: int) -> Row:
        place = bisect_right(self._starts, number) - 1
        section, inner = self._sections[place], number - self._starts[place] - 1
        if inner >= 0:
            return section.row(inner)
        total = section.length if section.total is None else section.total
        detail = f"{total:,}" if section.is_counted else ""
        return Row("section", section.name, detail, key=section.key, is_open=self.is_open(section))

    def around(self, number: int) -> int:
        """Return the number of the parent row of a row."""
        level = self._row(number).level
        while number > 0 and self._row(number).level >= level > 0:
            number -= 1
        return number

    def _found(self) -> list[Section]:
        found = [Section("scopes", len(self.known[1]), self._scope_row, starts_open=True)]
        graph = None if self._scope is None else self._scope.graph
        if graph is not None:
            # Counting takes 10 ms for 100,000 nodes at every edit, so it is done only for an open section.
            is_counted = len(graph.node) < _MANY or "\0operators" in self._opened
            length = len(self._operators) if is_counted else 1
            found.append(Section("operators", length, self._operator, is_counted=is_counted))
            found += [self._values("input", graph.input), self._values("output", graph.output)]
        if isinstance(graph, Graph):
            count = len(graph.initializer) + len(graph.sparse_initializer)
            found.append(Section("initializers", count, self._initializer))
        found.append(Section("functions", len(self._model.functions), self._function))
        found.append(Section("graphs", len(self._graphs), self._graph))
        return found

    def _scope_row(self, number: int) -> Row:
        row = self.known[1][number]
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

    def _values(self, kind: Literal["input", "output"], values: Sequence[str | ValueInfo]) -> Section:
        section = Section(f"{kind}s", len(values), partial(self._value, kind))
        if not self.is_open(section):
            return section
        rows: list[Row | int] = []
        named = [(each, None) if isinstance(each, str) else (each.name or "", each.type) for each in values]
        for label, places in families(named):
            if len(places) > 1:
                key = f"{section.key} {label}"
                first = self._value(kind, places[0])
                count = f" {len(places):,} {kind}s"
                rows.append(
                    first._replace(label=visible(label, _NAME), more=count, key=key, is_open=key in self._opened)
                )
            if len(places) == 1 or f"{section.key} {label}" in self._opened:
                rows += places

        def row(number: int) -> Row:
            found = rows[number]
            return self._value(kind, found) if isinstance(found, int) else found

        return section._replace(length=len(rows), row=row, total=len(values))

    def _value(self, kind: Literal["input", "output"], number: int) -> Row:
        assert self._scope is not None
        value: str | ValueInfo = getattr(self._scope.graph, kind)[number]
        if isinstance(value, str):
            name, declared = value, Index.type_of(self._scope, value)
        else:
            name, declared = value.name or "", value.type
        text = "" if declared is None else visible(shown_type(declared), 200)
        return Row(kind, visible(name, _NAME) or "(no name)", text, address=f"{self._scope.address}/{kind}/{number}")

    def _initializer(self, number: int) -> Row:
        assert self._scope is not None
        graph = self._scope.graph
        assert isinstance(graph, Graph)
        dense = len(graph.initializer)
        if number < dense:
            return initializer_row(graph.initializer[number], f"{self._scope.address}/initializer/{number}")
        number -= dense
        address = f"{self._scope.address}/sparse_initializer/{number}"
        return initializer_row(graph.sparse_initializer[number], address)

    def _function(self, number: int) -> Row:
        function = self._model.functions[number]
        name = visible(operator_name(function.domain, function.name, function.overload), _NAME)
        return Row("function", name, counted(len(function.node), "node"), address=f"/functions/{number}")

    @cached_property
    def _graphs(self) -> list[Scope]:
        """The main graph unless it is shown, the graphs inside this one, and training graphs."""
        here = self._scope
        found = [each for each in self._index.scopes if each.kind == "main" and each is not here]
        found += [] if here is None else here.children
        return found + [each for each in self._index.scopes if each.kind == "training" and each is not here]

    def _graph(self, number: int) -> Row:
        scope = self._graphs[number]
        return Row("graph", graph_name(scope), counted(len(scope.graph.node), "node"), address=scope.address)


def initializer_row(tensor: Tensor | SparseTensor, address: str) -> Row:
    """Return the row of an initializer: name, type, stored bytes."""
    values = tensor.values if isinstance(tensor, SparseTensor) else tensor
    indices = tensor.indices if isinstance(tensor, SparseTensor) else None
    stored = sum([stored_bytes(each) for each in (values, indices) if each is not None])
    name = (values.name if values is not None else None) or ""
    kind = (tensor_type_text(values) if values is not None else None) or "no type"
    start = "sparse " if isinstance(tensor, SparseTensor) else ""
    detail = start + visible(kind, 100)
    return Row("initializer", visible(name, _NAME) or "(no name)", detail, f" {size(stored)}", address=address)


def graph_name(scope: Scope) -> str:
    """Return the name of a graph: its node and attribute, without control characters."""
    if scope.owner is None:
        return {"main": "main graph", "training": visible(scope.address.strip("/"), 200)}.get(scope.kind, scope.kind)
    attribute = scope.address.rpartition("/attribute/")[2]
    attribute = attribute.removesuffix("/g").replace("/graphs/", ".")
    node = scope.owner.node
    name = visible(node.name or str(scope.owner.position), 200)
    return f"{visible(node.op_type or '?', 60)} {name}.{visible(attribute)}"


def row_line(row: Row, width: int, *, ascii_only: bool = False) -> Line:
    """Return a row in `width` columns."""
    if row.scope is not None:
        text = outline_line(row.scope, width - 1, ascii_only=ascii_only)
        return (Span(" " + text),)
    mark = ("-" if ascii_only else "▾") if row.is_open else ("+" if ascii_only else "▸")
    if row.kind == "section":
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
    lead = "   " if row.is_open is None else f" {mark} "
    return (Span(lead + padded(shortened(row.label, room), room)), Span(tail, "quiet"))


def _bar(share: float, *, ascii_only: bool) -> str:
    if ascii_only:
        return padded("#" * max(round(share * _BAR), 1), _BAR)
    eighths = max(round(share * _BAR * 8), 1)
    return padded("█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else ""), _BAR)
