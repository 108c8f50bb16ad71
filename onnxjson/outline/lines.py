"""The outline of a model: lines of text, each with the nodes that it owns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Model
from onnxjson.model.index import Index, index_of
from onnxjson.model.methods import Tabular
from onnxjson.model.operators import operator_name, plain_domain
from onnxjson.model.scopes import NodeRef, Scope
from onnxjson.outline.attention import merge_attention, merge_conditions
from onnxjson.outline.blocks import block_units
from onnxjson.outline.convolutions import merge_convolutions, merge_excitations
from onnxjson.outline.expressions import Statement, statements
from onnxjson.outline.flow import Flow
from onnxjson.outline.naming import Names, common_path, type_text
from onnxjson.outline.repeats import Item, Repeat, fold, joined, statements_of
from onnxjson.outline.rows import merge_layout, merge_rows
from onnxjson.outline.units import Unit, Units, unit_of

_WIDTH: Final = 100
"""Characters of a line with the graphs inside it."""

_STEPS: Final = (
    merge_convolutions, merge_excitations, merge_attention, merge_conditions, merge_rows, merge_layout,
)  # fmt: skip

_INPUTS: Final = 8
"""Inputs of a graph that are listed."""


@dataclass(frozen=True, repr=False)
class Line:
    """One line of an outline."""

    text: str
    nodes: tuple[NodeRef, ...] = ()
    """The nodes that it owns, with those of the lines inside it; for a line of a repeat, those of all rounds."""
    block: str = ""
    """The outermost block that it shows, such as ``Attention``; "" if it has operators only."""
    repeat: int = 1
    """The number of rounds of a repeat."""
    lines: tuple["Line", ...] = ()
    """The lines inside: of one round of a repeat, of the graphs in its nodes, of a function."""
    rounds: tuple[tuple[NodeRef, ...], ...] = ()
    """For a repeat, the nodes of each round."""
    form: str = ""
    """What it computes, without names: equal for lines that are alike but for names and weights."""
    name: str = ""
    """For a repeat, what the names of its nodes have in common, such as ``layers.{i}``."""

    def __repr__(self) -> str:
        return f"<Line {self.text}: {counted(len(self.nodes), 'node')}>"


@dataclass(frozen=True, repr=False)
class Outline(Tabular):
    """A model on one page. Every node is in exactly one line, or in one line of those inside it."""

    lines: tuple[Line, ...]

    def texts(self, depth: int | None = None) -> list[str]:
        """Return the lines as text, indented; with `depth`, no lines nested deeper (0: the outermost alone)."""
        return [f"{'  ' * level}{line.text}" for level, line in self.walk(depth)]

    def walk(self, depth: int | None = None) -> Iterator[tuple[int, Line]]:
        """Yield each line with its depth, in order."""
        pending = [(0, line) for line in reversed(self.lines)]
        while pending:
            level, line = pending.pop()
            yield level, line
            if depth is None or level < depth:
                pending += [(level + 1, each) for each in reversed(line.lines)]

    def __repr__(self) -> str:
        return f"<Outline: {counted(len(self), 'line')}>"

    def __str__(self) -> str:
        return "\n".join(self.texts())

    def __len__(self) -> int:
        return sum(1 for _ in self.walk())


def outline_of(model: Model, index: Index | None = None) -> Outline:
    """Return a model on one page, from its structure alone.

    Args:
        model: the model; types that it states make the lines more precise.
        index: its index, whose nodes the lines name.
    """
    return Outline(tuple(_Outliner(model, index or index_of(model)).lines()))


@dataclass
class _Graph:
    """One graph with its statements."""

    flow: Flow
    items: list[Item]
    owned: dict[int, list[int]] = field(default_factory=dict)
    """By the identity of a statement, its nodes in their order."""


class _Outliner:
    def __init__(self, model: Model, index: Index) -> None:
        self._model = model
        self._index = index
        self._flows = {scope: Flow(scope) for scope in index.scopes}
        self._versions = {plain_domain(each.domain): each.version or 0 for each in model.opset_import}
        self._blocks: dict[Scope, dict[int, Unit]] = {}
        for scope, unit in block_units(model, index, self._flows):
            self._blocks.setdefault(scope, {})[unit.nodes[-1]] = unit
        self._children: dict[tuple[Scope, int], list[Scope]] = {}
        for scope in index.scopes:
            if scope.owner is not None:
                self._children.setdefault((scope.owner.scope, scope.owner.position), []).append(scope)

    def lines(self) -> Iterator[Line]:
        for scope in self._index.scopes:
            if scope.owner is not None:
                continue
            if scope.kind == "main":
                yield from self._graph(scope, Names())
                continue
            inside = tuple(self._graph(scope, Names()))
            nodes = tuple([ref for line in inside for ref in line.nodes])
            yield Line(_title(scope), nodes, scope.kind, lines=inside)

    def _graph(self, scope: Scope, names: "Names") -> Iterator[Line]:
        """The lines of one graph; `names` has those of the values around it."""
        flow = self._flows[scope]
        units = Units(flow, self._units(flow))
        for merge in _STEPS:
            merge(units)
            units = units.merged()
        found = statements(flow, units.ordered())
        graph = _Graph(flow, joined(fold(found), flow.outputs))
        _own(graph)
        names.add_graph(flow, graph.items)
        inputs = [name for name in scope.inputs if name not in flow.constants]
        if inputs:
            texts = [_with_type(scope, name) for name in inputs[:_INPUTS]]
            shown = [text for at, text in enumerate(texts) if not at or len("   ".join(texts[: at + 1])) < _WIDTH - 15]
            more = f"   and {len(inputs) - len(shown)} more" if len(inputs) > len(shown) else ""
            yield Line("   ".join(shown) + more)
        yield from self._items(graph, graph.items, names)
        owned = {position for positions in graph.owned.values() for position in positions}
        if rest := [position for position in range(len(flow.nodes)) if position not in owned]:
            yield Line(_unused(flow, rest), tuple([NodeRef(scope, position) for position in rest]))

    def _units(self, flow: Flow) -> list[Unit]:
        blocks = self._blocks.get(flow.scope, {})
        inner = {position for unit in blocks.values() for position in unit.nodes}
        outputs = flow.outputs.keys()
        return [
            blocks.get(position) or unit_of(flow, position, self._versions)
            for position in flow.order
            if not flow.is_constant(position)
            and position not in flow.shape_nodes
            and (position not in flow.without_effect or not outputs.isdisjoint(flow.nodes[position].output))
            and (position in blocks or position not in inner)
        ]

    def _items(self, graph: _Graph, items: Sequence[Item], names: "Names") -> Iterator[Line]:
        for item in items:
            yield self._repeat(graph, item, names) if isinstance(item, Repeat) else self._line(graph, [item], names)

    def _repeat(self, graph: _Graph, repeat: Repeat, names: "Names") -> Line:
        return self._rounds(graph, [repeat], names)

    def _rounds(self, graph: _Graph, repeats: Sequence[Repeat], names: "Names") -> Line:
        """The line of a repeat; of the same one in all rounds of a repeat around it."""
        scope = graph.flow.scope
        count = len(repeats[0].rounds)
        rounds = [
            tuple(
                [
                    ref
                    for each in statements_of(items)
                    for position in graph.owned[id(each)]
                    for ref in self._with_inner(scope, position)
                ]
            )
            for repeat in repeats
            for items in repeat.rounds
        ]
        name = common_path([[ref.node.name or "" for ref in nodes] for nodes in rounds[:count]])
        inside = []
        for place in range(len(repeats[0].rounds[0])):
            same = [items[place] for repeat in repeats for items in repeat.rounds]
            inner = [item for item in same if isinstance(item, Repeat)]
            plain = [item for item in same if isinstance(item, Statement)]
            inside.append(self._rounds(graph, inner, names) if inner else self._line(graph, plain, names))
        start = names.ends(graph.flow, repeats[0])
        text = f"repeat {count}" + (f"  {visible(name, 60)}" if name else "") + (f"  ({start})" if start else "")
        return Line(
            text, tuple([ref for nodes in rounds for ref in nodes]), "", count, tuple(inside), tuple(rounds),
            f"repeat {count}", name,
        )  # fmt: skip

    def _with_inner(self, scope: Scope, position: int) -> list[NodeRef]:
        """A node, and those of the graphs in its attributes."""
        refs = [NodeRef(scope, position)]
        for child in self._children.get((scope, position), ()):
            refs += [ref for place in range(len(child.graph.node)) for ref in self._with_inner(child, place)]
        return refs

    def _line(self, graph: _Graph, same: Sequence[Statement], names: "Names") -> Line:
        """The line of a statement; of the same one in all rounds of a repeat."""
        scope, first = graph.flow.scope, same[0]
        inside: list[Line] = []
        owners = [position for position in graph.owned[id(first)] if (scope, position) in self._children]
        for position in owners:
            inside += self._inside(graph, same, position, names)
        short = [_short(line) for line in inside]
        text, form = names.text(graph.flow, same)
        is_last = owners == [first.expression.nodes[-1]]  # its closing bracket is that of the line
        if is_last and all(short) and len(text) + sum(map(len, short)) < _WIDTH:
            text, closing, rest = text.rpartition(")")
            text += "".join([f", {each}" for each in short]) + closing + rest
            same_nodes = [ref for line in inside for ref in line.nodes]
            inside = []
        else:
            same_nodes = []
        own = [NodeRef(scope, position) for each in same for position in graph.owned[id(each)]]
        nodes = (*own, *same_nodes, *[ref for line in inside for ref in line.nodes])
        blocks = first.expression.blocks
        return Line(text, nodes, blocks[0] if blocks else "", lines=tuple(inside), form=form)

    def _inside(self, graph: _Graph, same: Sequence[Statement], position: int, names: "Names") -> Iterator[Line]:
        """The lines of the graphs in the attributes of a node, under the name of the attribute."""
        scope = graph.flow.scope
        place = graph.owned[id(same[0])].index(position)
        for number, child in enumerate(self._children.get((scope, position), ())):
            others = [self._children[scope, graph.owned[id(each)][place]][number] for each in same[1:]]
            lines = [*self._graph(child, names.inner())]
            nodes = [ref for line in lines for ref in line.nodes]
            for other in others:  # of the same node in other rounds
                nodes += [ref for place in range(len(other.graph.node)) for ref in self._with_inner(other, place)]
            yield Line(f"{visible(_attribute(child), 40)}:", tuple(nodes), "graph", lines=tuple(lines))


def _short(line: Line) -> str:
    """A graph of one line as an argument: ``then=Squeeze(x, 0)``; "" if it has more lines."""
    if len(line.lines) != 1 or line.lines[0].lines or line.lines[0].repeat > 1 or " = " not in line.lines[0].text:
        return ""
    return f"{line.text.removesuffix(':').removesuffix('_branch')}={line.lines[0].text.partition(' = ')[2]}"


def _own(graph: _Graph) -> None:
    """Give each statement its nodes, and the constants and arithmetic of shapes that it uses first."""
    flow = graph.flow
    taken: set[int] = set()
    for statement in statements_of(graph.items):
        own: list[int] = []
        pending = list(reversed(statement.expression.nodes))
        while pending:
            position = pending.pop()
            if position in taken:
                continue
            taken.add(position)
            own.append(position)
            for name in reversed(flow.consumed[position]):
                source = flow.producer(name)
                if source >= 0 and source not in taken and flow.is_silent(source):
                    pending.append(source)
        graph.owned[id(statement)] = own


def _unused(flow: Flow, positions: Sequence[int]) -> str:
    kinds = dict.fromkeys([operator_name(flow.nodes[at].domain, flow.nodes[at].op_type) for at in positions])
    results = [name for name in flow.outputs if flow.producer(name) in positions]
    if results:
        return f"{', '.join([visible(name) for name in results])} = constant"
    return f"unused: {', '.join([visible(kind) for kind in list(kinds)[:6]])}"


def _title(scope: Scope) -> str:
    graph = scope.graph
    if isinstance(graph, Function):
        inputs = ", ".join([visible(name, 40) for name in graph.input])
        return f"function {visible(operator_name(graph.domain, graph.name))}({inputs})"
    return f"training {visible(scope.address)}"


def _with_type(scope: Scope, name: str) -> str:
    stated = scope.types.get(name)
    return visible(name, 40) if stated is None else f"{visible(name, 40)}: {type_text(stated)}"


def _attribute(scope: Scope) -> str:
    parts = scope.address.split("/")
    return parts[parts.index("attribute", len(parts) - 4) + 1] if "attribute" in parts[-4:] else parts[-1]
