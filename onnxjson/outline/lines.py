"""The outline of a model: lines of text, each with the nodes that it owns."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Model
from onnxjson.model.index import Index, index_of
from onnxjson.model.methods import Tabular
from onnxjson.model.operators import operator_name, plain_domain
from onnxjson.model.scopes import NodeRef, Scope
from onnxjson.outline.attention import merge_attention, merge_conditions
from onnxjson.outline.blocks import block_units
from onnxjson.outline.convolutions import merge_convolutions
from onnxjson.outline.expressions import Statement, statements
from onnxjson.outline.flow import Flow
from onnxjson.outline.integers import computed
from onnxjson.outline.naming import Names, common_path, type_text
from onnxjson.outline.repeats import Item, Repeat, fold, joined, key_of_graph, renamed, statements_of, values_of
from onnxjson.outline.rows import merge_copies, merge_layout, merge_nested, merge_parts, merge_rows
from onnxjson.outline.shortening import Shortened, lengthened, shortened
from onnxjson.outline.units import GraphKey, Unit, Units, unit_of

_WIDTH: Final = 100
"""Characters of a line with the graphs inside it, without names."""

_STEPS: Final = (
    merge_rows, merge_convolutions, merge_attention, merge_conditions, merge_parts, merge_nested, merge_layout,
    merge_copies,
)  # fmt: skip

_AGAIN: Final = 3
"""Lines of a graph that are written again."""

_INPUTS: Final = 8
"""Inputs or outputs of a graph that are listed."""

_LIST: Final = 85
"""Characters of their list."""


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
    blocks: tuple[str, ...] = ()
    """All blocks that it shows, the outermost first, without those of the lines inside it."""

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
    index = index or index_of(model)
    if (short := shortened(index)) is not None:
        outliner = _Outliner(short.model, index_of(short.model))
        if outliner.lengthen(short, index):
            return Outline(tuple(outliner.lines()))
    return Outline(tuple(_Outliner(model, index).lines()))


class _Outliner:
    def __init__(self, model: Model, index: Index) -> None:
        self._index = index
        self._flows = {scope: Flow(scope) for scope in index.scopes}
        self._versions = {plain_domain(each.domain): each.version or 0 for each in model.opset_import}
        for flow in self._flows.values():
            flow.computed.update(computed(flow))
        self._blocks: dict[Scope, dict[int, Unit]] = {}
        for scope, unit in block_units(model, index, self._flows):
            self._blocks.setdefault(scope, {})[unit.nodes[-1]] = unit
        self._children: dict[tuple[Scope, int], list[Scope]] = {}
        for scope in index.scopes:
            if scope.owner is not None:
                self._children.setdefault(scope.owner, []).append(scope)
        self._owned: dict[int, list[NodeRef]] = {}
        """By the identity of a statement, its nodes in their order."""
        self._said: dict[Hashable, tuple[str, list[str]]] = {}
        """By a graph in a node, and the names around it, the line of the node and the names that it uses."""
        self._renamings: dict[Scope, dict[str, str]] = {}
        """By graph, the names that its values have in an equal graph, which is shown."""
        self._kept: list[Sequence[Item]] = []
        """Statements with other names, whose identities must last."""
        self._items: dict[Scope, list[Item]] = {}
        self._keys: dict[Scope, GraphKey] = {}
        for scope in reversed(index.scopes):  # the inner before the outer
            flow = self._flows[scope]
            units = Units(flow, self._units(flow))
            for merge in _STEPS:
                merge(units)
                units = units.merged()
            items = self._items[scope] = joined(fold(statements(units)), flow.outputs)
            if scope.owner is not None:
                self._keys[scope] = key_of_graph(items, scope.inputs, flow.outputs)
            self._own(flow, items)

    def lengthen(self, short: Shortened, index: Index) -> bool:
        """Make the lines of a short model those of the whole one; return whether they follow."""
        (before,), (after,) = self._index.scopes, index.scopes
        longer = lengthened(short, self._flows[before], after, self._items[before], self._owned)
        if longer is not None:
            items, self._owned = longer
            self._index, self._items = index, {after: items}
            equal, self._flows = self._flows[before].equal, {after: Flow(after)}
            self._flows[after].equal = equal
        return longer is not None

    def lines(self) -> Iterator[Line]:
        for scope in self._index.scopes:
            if scope.owner is not None:
                continue
            inside = tuple(self._graphs([scope], Names()))
            if scope.kind == "main":
                yield from inside
            else:
                nodes = tuple([ref for line in inside for ref in line.nodes])
                yield Line(_title(scope), nodes, scope.kind, lines=inside)

    def _units(self, flow: Flow) -> list[Unit]:
        blocks = self._blocks.get(flow.scope, {})
        inner = {position for unit in blocks.values() for position in unit.nodes}
        outputs = flow.outputs.keys()
        units = [
            blocks.get(position) or unit_of(flow, position, self._versions)
            for position in flow.order
            if position not in flow.constant_nodes
            and position not in flow.shape_nodes
            and (position not in flow.hidden or not outputs.isdisjoint(flow.nodes[position].output))
            and (position in blocks or position not in inner)
        ]
        for number, unit in enumerate(units if self._children else ()):
            keys = [self._keys[each] for each in self._children.get((flow.scope, unit.nodes[-1]), ())]
            graphs = tuple([key._replace(outer=tuple(map(flow.alias, key.outer))) for key in keys])
            outer = [name for graph in graphs for name in graph.outer]
            units[number] = unit._replace(graphs=graphs, captured=tuple(dict.fromkeys((*outer, *unit.captured))))
        known = {name for unit in units for name in unit.outputs}
        for unit in units if inner else ():  # also over those that are added: values in blocks that others equal
            for name in (*unit.operands, *unit.captured):
                if name not in known and (position := flow.producer(name)) in inner:
                    known.update(flow.nodes[position].output)
                    units.append(unit_of(flow, position, self._versions))
        return units

    def _own(self, flow: Flow, items: Sequence[Item]) -> None:
        """Give each statement its nodes, and the constants and arithmetic of shapes that it uses first."""
        taken: set[int] = set()
        silent, consumed, producers = flow.silent, flow.consumed, flow.producers
        for statement in statements_of(items):
            refs = self._owned[id(statement)] = []
            pending = list(reversed(statement.expression.nodes))
            while pending:
                position = pending.pop()
                if position in taken:
                    continue
                taken.add(position)
                refs.append(NodeRef(flow.scope, position))
                for name in reversed(consumed[position] if silent else ()):
                    source = producers.get(name, -1)
                    if source in silent and source not in taken:
                        pending.append(source)

    def _nodes(self, same: Sequence[Statement]) -> list[NodeRef]:
        """The nodes of statements, with those of the graphs in their attributes."""
        return self._with_inner([ref for each in same for ref in self._owned[id(each)]])

    def _with_inner(self, refs: list[NodeRef]) -> list[NodeRef]:
        if self._children:
            for ref in refs:  # also over those that are added
                for child in self._children.get(ref, ()):
                    refs += [NodeRef(child, position) for position in range(len(child.graph.node))]
        return refs

    def _graphs(self, scopes: Sequence[Scope], names: Names) -> Iterator[Line]:
        """The lines of graphs with one key, as those of the first; `names` has those of the values around them."""
        scope = scopes[0]
        flow, items = self._flows[scope], self._items[scope]
        names.add_graph(flow, items)
        if inputs := [name for name in scope.inputs if name not in flow.constants]:
            yield Line(_cut([_with_type(scope, name) for name in inputs], "   ", "   and"))
        graphs = [items, *[self._renamed(other, scope) for other in scopes[1:]]]
        for column in zip(*graphs, strict=True):
            yield self._line(flow, column, names)
        for other in scopes:
            owned = {ref.position for each in statements_of(self._items[other]) for ref in self._owned[id(each)]}
            if rest := [position for position in range(len(other.graph.node)) if position not in owned]:
                refs = [NodeRef(other, position) for position in rest]
                yield Line(_unused(self._flows[other], rest), tuple(refs))

    def _renamed(self, scope: Scope, first: Scope) -> list[Item]:
        """The items of a graph, with the names that the values of an equal graph have."""
        items = self._items[scope]
        names = dict(self._renamings.get(scope.owner.scope, {})) if scope.owner is not None else {}
        names.update(zip(scope.inputs, first.inputs, strict=True))
        names.update(zip(values_of(items)[1], values_of(self._items[first])[1], strict=True))
        consumed, produced = [iter([names.get(name, name) for name in values]) for values in values_of(items)]
        same = renamed(items, consumed, produced)
        self._renamings[scope] = names
        for one, other in zip(statements_of(same), statements_of(items), strict=True):
            self._owned[id(one)] = self._owned[id(other)]
        self._kept.append(same)
        return same

    def _line(self, flow: Flow, column: Sequence[Item], names: Names) -> Line:
        """The line of a statement or repeat; of the same one in all rounds of a repeat around it."""
        repeats = [item for item in column if isinstance(item, Repeat)]
        return self._repeat(flow, repeats, names) if repeats else self._statement(flow, statements_of(column), names)

    def _repeat(self, flow: Flow, repeats: Sequence[Repeat], names: Names) -> Line:
        count = len(repeats[0].rounds)
        rounds = [tuple(self._nodes(statements_of(items))) for repeat in repeats for items in repeat.rounds]
        names_of = [[ref.node.name or "" for ref in nodes] for nodes in rounds]
        paths = {common_path(names_of[at : at + count]) for at in range(0, len(rounds), count)}
        # In the rounds of a repeat around, what is the same in all of them.
        parts = paths if len(paths) == 1 else {path.rpartition("/")[2] for path in paths}
        name = parts.pop() if len(parts) == 1 else ""
        columns = zip(*[items for repeat in repeats for items in repeat.rounds], strict=True)
        inside = tuple([self._line(flow, column, names) for column in columns])
        start = names.ends(flow, repeats[0])
        text = f"repeat {count}" + (f"  {visible(name, 60)}" if name else "") + (f"  ({start})" if start else "")
        nodes = tuple([ref for nodes in rounds for ref in nodes])
        return Line(text, nodes, "", count, inside, tuple(rounds), f"repeat {count}", name)

    def _statement(self, flow: Flow, same: Sequence[Statement], names: Names) -> Line:
        text, form = names.text(flow, same)
        inside: list[Line] = []
        written: dict[int, tuple[str, str]] = {}
        for owners in zip(*map(self._owners, same), strict=True) if self._children else ():
            graphs = list(self._inside([self._children[each] for each in owners], names, text.partition("(")[0]))
            short = [argument for _, argument in graphs if argument is not None]
            texts, forms = [", ".join(parts) for parts in zip(*short, strict=True)] or ["", ""]
            wider = {**written, owners[0].position: (texts, forms)}
            if len(short) == len(graphs) and len(form) < len((both := names.text(flow, same, wider))[1]) < _WIDTH:
                written, (text, form) = wider, both
            else:
                inside += [line for line, _ in graphs]
        blocks = same[0].expression.blocks
        nodes = tuple(self._nodes(same))
        return Line(text, nodes, next(iter(blocks), ""), lines=tuple(inside), form=form, blocks=blocks)

    def _owners(self, statement: Statement) -> list[NodeRef]:
        """The nodes with graphs that a statement shows; arithmetic of sizes may have others."""
        refs, shown = self._owned[id(statement)], {*statement.expression.nodes}
        return [ref for ref in refs if ref.position in shown and ref in self._children]

    def _inside(
        self, rounds: Sequence[Sequence[Scope]], names: Names, owner: str
    ) -> Iterator[tuple[Line, tuple[str, str] | None]]:
        """The lines of the graphs in the attributes of a node, in all rounds; those of equal graphs once.

        Each with text and form of the graph as an argument, such as ``then=Squeeze(x, 0)``, if its outputs are single
        expressions.
        """
        columns: dict[Hashable, list[Sequence[Scope]]] = {}
        for column in zip(*rounds, strict=True):
            columns.setdefault(self._keys[column[0]].key, []).append(column)
        for equal in columns.values():
            scopes = [scope for column in equal for scope in column]
            refs = [NodeRef(scope, position) for scope in scopes for position in range(len(scope.graph.node))]
            title = ", ".join([visible(_attribute(column[0]), 40) for column in equal])
            inner = Names(names)
            lines = tuple(self._graphs(scopes, inner))
            outputs = [inner.of(name) for name in scopes[0].output_names if name]
            results = f" -> {_cut(outputs, ', ', ', and')}" if len(outputs) > 1 else ""
            key = self._keys[scopes[0]]
            outer = [names.of(name) for name in key.outer]
            where, before = self._said.setdefault((names, len(scopes), key.key), (owner, outer))
            if len(scopes) == 1 and where != owner and len(lines) > _AGAIN:
                others = ", ".join(
                    [f"{one} for {other}" for one, other in zip(outer, before, strict=True) if one != other]
                )
                results, lines = f" as in {where}(...)" + (f", with {others}" if others else ""), ()
            line = Line(title + results + ":" * bool(lines), tuple(self._with_inner(refs)), "graph", lines=lines)
            yield line, self._argument(line, scopes[0], outputs) if len(equal) == 1 else None

    def _argument(self, line: Line, scope: Scope, outputs: Sequence[str]) -> tuple[str, str] | None:
        """The text and form of a graph as an argument; None if its outputs are no single expressions."""
        consumed, produced = values_of(self._items[scope])
        values = {each.text.partition(" = ")[0]: each for each in line.lines if not each.lines}
        if {*outputs} != {*values} or len(values) != len(line.lines) or not set(consumed).isdisjoint(produced):
            return None
        texts = ", ".join([values[name].text.partition(" = ")[2] for name in outputs])
        forms = ", ".join([values[name].form for name in outputs])
        head = f"{line.text.partition(' -> ')[0].removesuffix(':').removesuffix('_branch')}="
        return (f"{head}({texts})", f"{head}({forms})") if len(outputs) > 1 else (head + texts, head + forms)


def _cut(texts: Sequence[str], separator: str, last: str) -> str:
    """The first texts, as many as fit in a line, and how many more there are."""
    shown = [text for at, text in enumerate(texts[:_INPUTS]) if not at or len(separator.join(texts[: at + 1])) < _LIST]
    return separator.join(shown) + (f"{last} {len(texts) - len(shown)} more" if len(texts) > len(shown) else "")


def _unused(flow: Flow, positions: Sequence[int]) -> str:
    kinds = dict.fromkeys([operator_name(flow.nodes[at].domain, flow.nodes[at].op_type) for at in positions])
    results = [name for name in flow.outputs if flow.producer(name) in positions]
    if results:
        return f"{', '.join([visible(name) for name in results])} = constant"
    return f"unused: {', '.join([visible(kind) for kind in list(kinds)[:6]])}"


def _title(scope: Scope) -> str:
    graph = scope.graph
    if isinstance(graph, Function):
        inputs, outputs = [", ".join([visible(name, 40) for name in names]) for names in (graph.input, graph.output)]
        return f"function {visible(operator_name(graph.domain, graph.name))}({inputs}) -> {outputs}"
    return f"training {visible(scope.address)}"


def _with_type(scope: Scope, name: str) -> str:
    stated = scope.types.get(name)
    return visible(name, 40) if stated is None else f"{visible(name, 40)}: {type_text(stated)}"


def _attribute(scope: Scope) -> str:
    parts = scope.address.split("/")
    return parts[parts.index("attribute", len(parts) - 4) + 1] if "attribute" in parts[-4:] else parts[-1]
