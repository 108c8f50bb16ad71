"""Compare pairs of graphs: find paired nodes that differ, and inputs that consume another value than before.

One pass over the pairs of nodes finds those that are not equal up to names; only these are compared field by field
(`onnxjson.diffing.node_changes`). For a graph of 100,000 nodes where only names changed this takes 0.1 s.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import ne
from typing import Final, NamedTuple

from msgspec.structs import astuple

from onnxjson.diffing.changes import Change, Ledger
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.matching.alignment import Alignment, Components, GraphPair
from onnxjson.diffing.weight_changes import ConstantComparer
from onnxjson.model.constants import constant_output, own_constant, value_of_node
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.document import Function, Node, SparseTensor, Tensor
from onnxjson.model.operators import OperatorKey, function_key, plain_domain

BASE: Final = 0
TARGET: Final = 1


class ChangedSlot(NamedTuple):
    """An input of paired nodes, or (`base` None) a pair of graph outputs, whose values are not counterparts."""

    graph: "GraphComparison"
    base: int | None
    target: int | None
    place: int
    """Position of the input, or of the graph output, in the base."""
    other_place: int
    """Position in the target; it differs only for swapped inputs and moved outputs."""
    old: str
    """The value in the base; "" for none."""
    new: str

    @property
    def address(self) -> str:
        """Address of the field in the base."""
        if self.base is None:
            return f"{self.graph.address}/output/{self.place}"
        return f"{self.graph.node_address(self.base)}/input"

    @property
    def claim(self) -> str:
        """Address in the base of the field that names the value."""
        if self.base is not None:
            return self.address
        is_function = isinstance(self.graph.pair.base.graph, Function)
        return f"{self.graph.address}/output" if is_function else f"{self.address}/name"


class GraphComparison:
    """One pair of graphs during the comparison.

    Attributes:
        context: the comparison of the models.
        pair: the graphs.
        outer: the comparison of the outer graphs; None for the outermost.
        number: position among all pairs.
        values: names of the base -> names of the target, for paired values of these graphs.
        unmatched: by side, the nodes without a counterpart, ascending, except Constant nodes.
        lone_constants: by side, the Constant nodes without a counterpart, output name -> position.
        produced: by side, the outputs of `unmatched` nodes, name -> position.
        suspects: base positions of pairs that differ in more than names.
        renamed: base positions of pairs whose nodes have different names.
        slots: inputs and outputs whose values are not counterparts.
        replaced: base positions of pairs with different operators.
        moved_constants: names in the base of constants that are a node in one model and an initializer in the other.
        changes: changes of paired nodes, by base position.
        components: sets of adjacent unmatched nodes.
        cuts: outputs of unmatched nodes that replace each other, since paired nodes consume them at the same place, or
            one rewrite ends there and another begins: base name -> target name, and the inverse.
    """

    def __init__(self, context: "DiffContext", pair: GraphPair, outer: "GraphComparison | None", number: int) -> None:
        self.context = context
        self.pair = pair
        self.outer = outer
        self.number = number
        self.address = pair.base.address
        self.target_address = pair.target.address
        self.scopes = pair.base, pair.target
        self.values = {**pair.values, "": ""}
        self.unmatched: tuple[list[int], list[int]] = ([], [])
        self.lone_constants: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.produced: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.suspects: list[int] = []
        self.renamed: list[int] = []
        self.slots: list[ChangedSlot] = []
        self.replaced: list[int] = []
        self.moved_constants: set[str] = set()
        self.changes: dict[int, list[Change]] = {}
        self.components = Components()
        inverse = {target: name for name, target in pair.cuts.items()}
        self.cuts: tuple[dict[str, str], dict[str, str]] = ({**pair.cuts}, inverse)
        self._consumed: tuple[dict[int, tuple[str, ...]], dict[int, tuple[str, ...]]] = ({}, {})
        self._constants: tuple[dict[str, GraphConstant | None], dict[str, GraphConstant | None]] = ({}, {})

    def chain(self) -> "Iterator[GraphComparison]":
        """Yield this pair and the outer ones, innermost first."""
        graph: GraphComparison | None = self
        while graph is not None:
            yield graph
            graph = graph.outer

    def nodes(self, side: int) -> Sequence[Node]:
        """Return the nodes of one side."""
        return self.scopes[side].graph.node

    def node_address(self, position: int, side: int = BASE) -> str:
        """Return the address of a node in its model."""
        return f"{self.scopes[side].address}/node/{position}"

    def report(
        self,
        kind: Kind,
        pattern: str,
        paths: tuple[str | None, str | None],
        details: Iterable[Detail] = (),
        *,
        place: str | None = "",
        order: tuple[int, ...] = (-1,),
        fields: Iterable[str] = ("",),
    ) -> Change:
        """Add the change of one element by its paths below both graphs; see `Ledger.report`."""
        base, target = [
            None if path is None else scope.address + path for scope, path in zip(self.scopes, paths, strict=True)
        ]
        order = (self.number, *order)
        return self.context.ledger.report(kind, pattern, base, target, details, place=place, order=order, fields=fields)

    def scan(self) -> None:
        """Find the nodes without a counterpart and the pairs that differ."""
        get = self.values.get
        targets = self.pair.target.graph.node
        suspects, renamed, alone = self.suspects, self.renamed, []
        for position, (node, place) in enumerate(zip(self.pair.base.graph.node, self.pair.target_of, strict=True)):
            if place < 0:
                alone.append(position)
                continue
            # Inputs, outputs and name are the first fields; names of outputs are in `values`.
            before, after = astuple(node), astuple(targets[place])
            if (
                before[3:] != after[3:]
                or tuple(map(get, before[0])) != after[0]
                or (before[1] != after[1] and (len(before[1]) != len(after[1]) or "" in before[1] or "" in after[1]))
            ):
                suspects.append(position)
            if before[2] != after[2]:
                renamed.append(position)
        new = [position for position, place in enumerate(self.pair.base_of) if place < 0]
        for side, positions in ((BASE, alone), (TARGET, new)):
            nodes = self.nodes(side)
            for position in positions:
                node = nodes[position]
                if constant_output(node) is not None and value_of_node(node) is not None:
                    self.lone_constants[side].setdefault(node.output[0], position)
                    continue
                self.unmatched[side].append(position)
                for output in node.output:
                    if output:
                        self.produced[side].setdefault(output, position)

    def output_pairs(self, position: int) -> list[tuple[str, str]]:
        """Return the outputs of a paired node of the base with those of its counterpart."""
        partner = self.nodes(TARGET)[self.pair.target_of[position]]
        return list(zip(self.nodes(BASE)[position].output, partner.output, strict=False))

    def translate(self, name: str) -> str | None:
        """Translate a name of the base to the target; None if it has no counterpart."""
        return next((each.values[name] for each in self.chain() if name in each.values), None)

    def translate_back(self, name: str) -> str | None:
        """Translate a name of the target to the base; None if it has no counterpart."""
        return next((each.inverse[name] for each in self.chain() if name in each.inverse), None)

    def producer(self, side: int, name: str) -> tuple[int, int] | None:
        """Return the node that produces a value of this graph, and the position among its outputs."""
        return self.scopes[side].producers.get(name)

    @cached_property
    def mostly_renamed(self) -> bool:
        """Whether more than half of the values are renamed, so that single renames need no explanation."""
        values = self.pair.values
        renamed: int = sum(map(ne, values, values.values()))
        return 2 * renamed > len(values)

    @cached_property
    def inverse(self) -> dict[str, str]:
        """Names of the target -> names of the base."""
        return dict(zip(self.values.values(), self.values, strict=True))

    @cached_property
    def near_consumers(self) -> list[dict[str, set[int | None]]]:
        """Consumers of the values in `cuts` and of the inputs of unmatched nodes, by side; None for a graph output."""
        by_side = []
        for side, scope in enumerate(self.scopes):
            names = {name for position in self.unmatched[side] for name in self.consumed(side, position)}
            consumers: dict[str, set[int | None]] = {name: set() for name in names.union(self.cuts[side])}
            by_side.append(consumers)
            is_apart = consumers.keys().isdisjoint
            for position, node in enumerate(scope.graph.node):
                if not is_apart(node.input):
                    for name in consumers.keys() & set(node.input):
                        consumers[name].add(position)
            for output in consumers.keys() & set(scope.output_names):
                consumers[output or ""].add(None)
        return by_side

    def is_same_name(self, old: str, new: str) -> bool:
        """Whether two names are the same value in base and target: a pair, or undefined in the same way."""
        translated = self.translate(old)
        if translated is not None:
            return translated == new
        # A name that is used but not defined: the removal of its definition is another change.
        return old == new and None in (self.defining_graph(BASE, old), self.defining_graph(TARGET, new))

    def defining_graph(self, side: int, name: str) -> "GraphComparison | None":
        """Return the pair of graphs whose graph on one side defines a name."""
        return next((each for each in self.chain() if each.scopes[side].defines(name)), None)

    def unmatched_producer(self, side: int, name: str) -> "tuple[GraphComparison, int] | None":
        """Return the unmatched node that produces a value, and its graph."""
        for graph in self.chain():
            position = graph.produced[side].get(name)
            if position is not None:
                return graph, position
            if name in graph.lone_constants[side]:
                return None
        return None

    def source(self, side: int, name: str) -> str:
        """Return the value that a name is an alias of, by Identity or a Cast without effect; else the name."""
        aliases = self.pair.target_aliases if side else self.pair.base_aliases
        for _ in range(len(aliases)):  # a cycle of aliases has no end
            if name not in aliases:
                break
            name = aliases[name]
        return name

    def constant(self, side: int, name: str) -> "GraphConstant | None":
        """Return the constant that a name refers to here: an initializer or the output of a Constant node."""
        known = self._constants[side]
        if name not in known:
            known[name] = self._constant(side, name)
        return known[name]

    def _constant(self, side: int, name: str) -> "GraphConstant | None":
        graph = self.defining_graph(side, name)
        constant = None if graph is None else own_constant(graph.scopes[side], name)
        if graph is None or constant is None or (value := constant.value) is None:
            return None
        scope = graph.scopes[side]
        if isinstance(constant.held, Node):
            position = scope.producers[name][0]
            return GraphConstant(graph, name, graph.node_address(position, side), value, position)
        is_sparse = isinstance(value, SparseTensor)
        place = (scope.sparse_initializers if is_sparse else scope.initializers)[name]
        address = f"{scope.address}/{'sparse_initializer' if is_sparse else 'initializer'}/{place}"
        return GraphConstant(graph, name, address, value, None)

    def consumed(self, side: int, position: int) -> tuple[str, ...]:
        """Return the values that a node consumes, each once."""
        known = self._consumed[side]
        names = known.get(position)
        if names is None:
            names = known[position] = tuple(dict.fromkeys(consumed_names(self.nodes(side)[position])))
        return names


class GraphConstant(NamedTuple):
    """A constant of one side."""

    graph: GraphComparison
    name: str
    address: str
    """Address of the initializer or of the Constant node."""
    tensor: Tensor | SparseTensor
    position: int | None
    """Position of the Constant node; None for an initializer."""

    def is_paired(self, side: int) -> bool:
        """Whether it has a counterpart."""
        return self.name in (self.graph.inverse if side else self.graph.values)


class DiffContext:
    """State that all steps of a comparison share."""

    def __init__(self, alignment: Alignment, weights: ConstantComparer) -> None:
        self.alignment = alignment
        self.weights = weights
        self.ledger = Ledger()
        self.graphs: list[GraphComparison] = []
        self.by_base: dict[str, GraphComparison] = {}
        self.pairs: dict[str, list[tuple[int, int]]] = {}
        """Pairs of positions in lists, by the base address of the list: for the patch."""
        for number, pair in enumerate(alignment.graphs):
            outer = None if pair.base.outer is None else self.by_base.get(pair.base.outer.address)
            comparison = GraphComparison(self, pair, outer, number)
            self.graphs.append(comparison)
            self.by_base[comparison.address] = comparison
        models = alignment.base.model, alignment.target.model
        self.opsets = [{plain_domain(opset.domain): opset.version for opset in model.opset_import} for model in models]

        self.region_changes: dict[tuple[GraphComparison, int, int], Change] = {}
        """The change of each node in a region, by graph, side and position."""
        self.slot_changes: dict[tuple[GraphComparison, int], Change] = {}
        """The changes of regions whose outputs paired nodes consume, by graph and base position."""
        self.rewired_slots: list[tuple[ChangedSlot, Change]] = []
        """Rewired inputs and outputs with their changes."""
        self.explained_names: dict[tuple[GraphComparison, str], Change] = {}
        """Values of the base whose renaming is a consequence of another change."""
        self.function_keys, self.target_function_keys = [
            {function_key(function) for function in model.functions} for model in models
        ]
        """Domain, name and overload of the functions."""
        self.labels: dict[Hashable, int] = {}
        """Numbers of the computations in all regions (`onnxjson.diffing.classifying`)."""
        self.changed_constants: list[tuple[GraphComparison, str, Change]] = []
        """Changed constants, with their names in the base; their patterns are found later, from their consumers."""

    @cached_property
    def functions(self) -> dict[OperatorKey, OperatorKey]:
        """Renamed functions: key in the base -> key in the target."""
        base, target = self.alignment.base.model.functions, self.alignment.target.model.functions
        pairs = [
            (function_key(base[position]), function_key(target[place])) for position, place in self.alignment.functions
        ]
        return {one: other for one, other in pairs if one != other}
