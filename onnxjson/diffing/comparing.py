"""Pairs of graphs side by side: which paired nodes differ, and which inputs take something else than before.

One pass over the pairs of nodes finds those that are not the same up to names; only these are looked at field by
field (`onnxjson.diffing.node_changes`). A graph of 100,000 nodes takes 0.1 s where nothing but names changed.
"""

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from operator import ne
from typing import Final, NamedTuple

from msgspec.structs import astuple

from onnxjson.diffing.changes import Change, Ledger
from onnxjson.diffing.regions import Components, taken_names
from onnxjson.diffing.weight_changes import Weights
from onnxjson.document import Function, Node, SparseTensor, Tensor
from onnxjson.matching.alignment import Alignment, GraphPair
from onnxjson.matching.contents import is_constant, tensor_of_constant
from onnxjson.operators import OperatorKey, function_key, plain_domain

BASE: Final = 0
TARGET: Final = 1


class Slot(NamedTuple):
    """An input of paired nodes, or (`base` None) a pair of outputs of the graph, that takes what is no pair."""

    graph: "GraphComparison"
    base: int | None
    target: int | None
    place: int
    """Which input; of an output its position in the base."""
    other_place: int
    """The same in the target, which is another one only for swapped inputs and moved outputs."""
    old: str
    """What it takes in the base; "" for nothing."""
    new: str

    @property
    def address(self) -> str:
        """Of the field, in the base."""
        if self.base is None:
            return f"{self.graph.address}/output/{self.place}"
        return f"{self.graph.node_address(self.base)}/input"

    @property
    def claim(self) -> str:
        """The address, in the base, of the field that says what is taken."""
        if self.base is not None:
            return self.address
        is_function = isinstance(self.graph.pair.base.graph, Function)
        return f"{self.graph.address}/output" if is_function else f"{self.address}/name"


class GraphComparison:
    """One pair of graphs while it is compared.

    Attributes:
        pair: the graphs.
        outer: the comparison of the graphs around them.
        number: which of all pairs it is.
        values: names of the base -> names of the target, for what is a pair here.
        unmatched: of each side the nodes without a counterpart, ascending; Constant nodes are not among them.
        loose: of each side the Constant nodes without a counterpart, output name -> position.
        made: of each side what `unmatched` nodes make, name -> position.
        suspects: base positions of pairs that differ in more than names.
        named: base positions of pairs whose nodes have other names.
        slots: inputs that take something else.
        replaced: base positions of pairs whose operator is another one.
        moved_constants: names in the base of constants that are a node in one model and an initializer in the other.
        changes: what is known of paired nodes, by base position.
        components: which unmatched nodes belong together.
        cuts: values that unmatched nodes make and that paired nodes take at the same place, so that they stand for each
            other: base name -> target name, and the inverse.
    """

    def __init__(self, pair: GraphPair, outer: "GraphComparison | None", number: int) -> None:
        self.pair = pair
        self.outer = outer
        self.number = number
        self.address = pair.base.address
        self.target_address = pair.target.address
        self.scopes = pair.base, pair.target
        self.values = {**pair.values, "": ""}
        self.unmatched: tuple[list[int], list[int]] = ([], [])
        self.loose: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.made: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.suspects: list[int] = []
        self.named: list[int] = []
        self.slots: list[Slot] = []
        self.replaced: list[int] = []
        self.moved_constants: set[str] = set()
        self.changes: dict[int, list[Change]] = {}
        self.components = Components()
        self.cuts: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._taken: tuple[dict[int, tuple[str, ...]], dict[int, tuple[str, ...]]] = ({}, {})
        self._constants: tuple[dict[str, Constant | None], dict[str, Constant | None]] = ({}, {})

    def __repr__(self) -> str:
        return f"<GraphComparison {self.address}>"

    def chain(self) -> "Iterator[GraphComparison]":
        """This pair and those around it, innermost first."""
        found: GraphComparison | None = self
        while found is not None:
            yield found
            found = found.outer

    def nodes(self, side: int) -> Sequence[Node]:
        """The nodes of one side."""
        return self.scopes[side].graph.node

    def node_address(self, position: int, side: int = BASE) -> str:
        """Where a node stands in its model."""
        return f"{self.scopes[side].address}/node/{position}"

    def scan(self) -> None:
        """Find the nodes without a counterpart, and the pairs that differ."""
        get = self.values.get
        targets = self.pair.target.graph.node
        suspects, named, alone = self.suspects, self.named, []
        for position, (node, place) in enumerate(zip(self.pair.base.graph.node, self.pair.target_of, strict=True)):
            if place < 0:
                alone.append(position)
                continue
            # Inputs, outputs and name come first; what outputs are called is what `values` says.
            mine, its = astuple(node), astuple(targets[place])
            if (
                mine[3:] != its[3:]
                or tuple(map(get, mine[0])) != its[0]
                or (mine[1] != its[1] and (len(mine[1]) != len(its[1]) or "" in mine[1] or "" in its[1]))
            ):
                suspects.append(position)
            if mine[2] != its[2]:
                named.append(position)
        new = [position for position, place in enumerate(self.pair.base_of) if place < 0]
        for side, positions in ((BASE, alone), (TARGET, new)):
            nodes = self.nodes(side)
            for position in positions:
                node = nodes[position]
                if is_constant(node) and tensor_of(node) is not None:
                    self.loose[side].setdefault(node.output[0], position)
                    continue
                self.unmatched[side].append(position)
                for output in node.output:
                    if output:
                        self.made[side].setdefault(output, position)

    def translate(self, name: str) -> str | None:
        """What a name of the base is called in the target; None where it has no counterpart."""
        for each in self.chain():
            found = each.values.get(name)
            if found is not None:
                return found
        return None

    def translate_back(self, name: str) -> str | None:
        """What a name of the target is called in the base."""
        for each in self.chain():
            found = each.inverse.get(name)
            if found is not None:
                return found
        return None

    def maker(self, side: int, name: str) -> tuple[int, int] | None:
        """The node that makes a value of this graph, and which of its outputs it is."""
        return self.scopes[side].makers.get(name)

    @cached_property
    def mostly_renamed(self) -> bool:
        """Whether so many values have other names that nobody asks why one of them does."""
        values = self.pair.values
        renamed: int = sum(map(ne, values, values.values()))
        return 2 * renamed > len(values)

    @cached_property
    def inverse(self) -> dict[str, str]:
        """Names of the target -> names of the base."""
        return dict(zip(self.values.values(), self.values, strict=True))

    def is_same_name(self, old: str, new: str) -> bool:
        """Whether an input that took one name takes the same value under another: a pair, or equally unknown."""
        translated = self.translate(old)
        if translated is not None:
            return translated == new
        # A name that a model uses and does not define: whatever took its definition away is another change.
        return old == new and not (self._is_defined(BASE, old) and self._is_defined(TARGET, new))

    def _is_defined(self, side: int, name: str) -> bool:
        """Whether something makes a value, here or around."""
        for each in self.chain():
            scope = each.scopes[side]
            if name in each.made[side] or name in each.loose[side] or scope.initializer(name) is not None:
                return True
            if name in scope.inputs or name in (each.inverse if side else each.values):
                return True
        return False

    def home(self, side: int, name: str) -> "GraphComparison | None":
        """The pair of graphs whose graph on that side defines a name."""
        return next((each for each in self.chain() if each.scopes[side].defines(name)), None)

    def maker_without_counterpart(self, side: int, name: str) -> "tuple[GraphComparison, int] | None":
        """The unmatched node that makes a value, and its graph."""
        for each in self.chain():
            position = each.made[side].get(name)
            if position is not None:
                return each, position
            if name in each.loose[side]:
                return None
        return None

    def constant(self, side: int, name: str) -> "Constant | None":
        """The constant of a name that is taken here: an initializer or what a Constant node makes."""
        known = self._constants[side]
        if name not in known:
            known[name] = self._constant(side, name)
        return known[name]

    def _constant(self, side: int, name: str) -> "Constant | None":
        for each in self.chain():
            scope = each.scopes[side]
            found = scope.initializer(name)
            if found is not None:
                if isinstance(found, Tensor):
                    address = f"{scope.address}/initializer/{scope.initializers[name]}"
                else:
                    address = f"{scope.address}/sparse_initializer/{scope.sparse_initializers[name]}"
                return Constant(each, name, address, found, None)
            position = each.constant_makers[side].get(name)
            if position is not None:
                tensor = tensor_of(scope.graph.node[position])
                if tensor is not None:
                    return Constant(each, name, each.node_address(position, side), tensor, position)
            if each.outer is not None and scope.defines(name):
                return None
        return None

    @cached_property
    def constant_makers(self) -> tuple[dict[str, int], dict[str, int]]:
        """What Constant nodes make, by side: name -> position."""
        return self._constant_makers(BASE), self._constant_makers(TARGET)

    def _constant_makers(self, side: int) -> dict[str, int]:
        nodes = self.nodes(side)
        operators = [node.op_type for node in nodes]
        if "Constant" not in operators:
            return {}
        positions = [position for position, operator in enumerate(operators) if operator == "Constant"]
        return {nodes[position].output[0]: position for position in positions if is_constant(nodes[position])}

    def taken(self, side: int, position: int) -> tuple[str, ...]:
        """The values that a node takes, each once."""
        known = self._taken[side]
        found = known.get(position)
        if found is None:
            found = known[position] = tuple(dict.fromkeys(taken_names(self.nodes(side)[position])))
        return found


class Constant(NamedTuple):
    """A constant of one side."""

    graph: GraphComparison
    name: str
    address: str
    """Of the initializer or of the Constant node."""
    tensor: Tensor | SparseTensor
    position: int | None
    """Of the Constant node; None for an initializer."""

    def is_paired(self, side: int) -> bool:
        """Whether it has a counterpart."""
        return self.name in (self.graph.inverse if side else self.graph.values)


def tensor_of(node: Node) -> Tensor | SparseTensor | None:
    """What a Constant node holds; None where it says nothing, or several things."""
    if len(node.attribute) != 1 or node.attribute[0].ref_attr_name is not None:
        return None
    return node.attribute[0].sparse_tensor or tensor_of_constant(node.attribute[0])


class Context:
    """What the parts of a comparison share."""

    def __init__(self, alignment: Alignment, weights: Weights) -> None:
        self.alignment = alignment
        self.weights = weights
        self.ledger = Ledger()
        self.graphs: list[GraphComparison] = []
        self.by_base: dict[str, GraphComparison] = {}
        self.pairs: dict[str, list[tuple[int, int]]] = {}
        """Which members of lists are counterparts, by the base address of the list: for the patch."""
        for number, pair in enumerate(alignment.graphs):
            outer = None if pair.base.outer is None else self.by_base.get(pair.base.outer.address)
            comparison = GraphComparison(pair, outer, number)
            self.graphs.append(comparison)
            self.by_base[comparison.address] = comparison
        self.opsets = tuple(
            [
                {plain_domain(each.domain): each.version for each in model.opset_import}
                for model in (alignment.base.model, alignment.target.model)
            ]
        )

        self.region_changes: dict[tuple[GraphComparison, int, int], Change] = {}
        """What happened to each node of a region: by graph, side and position."""
        self.slot_changes: dict[tuple[GraphComparison, int], Change] = {}
        """The regions that paired nodes take something of, by graph and base position."""
        self.rewired_slots: list[tuple[Slot, Change]] = []
        """Inputs that take another value, and what says so."""
        self.explained_names: dict[tuple[GraphComparison, str], Change] = {}
        """Constants of the base whose names changed since a rewrite took them."""
        self.function_keys = {function_key(each) for each in alignment.base.model.functions}
        """What the functions of the base are called: domain, name, overload."""
        self.target_function_keys = {function_key(each) for each in alignment.target.model.functions}
        self.labels: dict[Hashable, int] = {}
        """Numbers of what is in regions (`onnxjson.diffing.region_shapes`)."""
        self.changed_constants: list[tuple[GraphComparison, str, Change]] = []
        """Constants whose event is named after what takes them, with their names in the base."""

    def constants_changed(self, graph: GraphComparison, name: str, change: Change) -> None:
        """Note that a constant changed; its pattern is found later, from what takes it."""
        self.changed_constants.append((graph, name, change))

    @cached_property
    def functions(self) -> dict[OperatorKey, OperatorKey]:
        """Functions of the base that have another name in the target -> their counterparts."""
        found = {}
        for base, target in self.alignment.functions:
            one, other = self.alignment.base.model.functions[base], self.alignment.target.model.functions[target]
            if function_key(one) != function_key(other):
                found[function_key(one)] = function_key(other)
        return found
