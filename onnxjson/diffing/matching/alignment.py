"""The result of matching two models: pairs of graphs, nodes and values. A fast way to pair values by name alone.

An element without a pair has no counterpart: it was added, removed, or is part of a rewrite (see
`onnxjson.diffing.events`). A pair does not mean that its two elements are equal.

Most compared models are small edits of one another. Then `align_by_names` is sufficient, without numpy. If something
was added or removed that could have taken over a name, or anything else is unusual, the matcher decides
(`onnxjson.diffing.matching.models`).
"""

from collections import Counter, UserDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from onnxjson.model.constants import constant_outputs
from onnxjson.model.document import Function, Model, Node, Type
from onnxjson.model.index import Index, Scope, index_of
from onnxjson.model.operators import function_key, plain_domain

UNMATCHED = -1
"""Value in `GraphPair.target_of` and `base_of` for a node without a counterpart."""

_Value = tuple[str, Type | None]


class GraphPair(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Two graphs that are counterparts: main graphs, subgraphs, function bodies or training graphs."""

    base: Scope
    target: Scope
    target_of: Sequence[int]
    """For each node of `base` the position of its counterpart in `target`, or `UNMATCHED`."""
    base_of: Sequence[int]
    """For each node of `target` the position of its counterpart in `base`, or `UNMATCHED`: the inverse."""
    values: Mapping[str, str]
    """Names of values that `base` defines -> the names of their counterparts in `target`; one to one.

    Outputs of paired nodes by slot, graph inputs, initializers (paired by the paired nodes that consume them, then by
    name), and the output of a Constant node with the initializer that replaces it, or the other way round.
    """
    base_aliases: Mapping[str, str]
    """Aliases in `base`, by Identity or a Cast without effect: name -> the name that it is an alias of."""
    target_aliases: Mapping[str, str]
    """Aliases in `target`."""
    cuts: Mapping[str, str] = {}
    """Values between two rewrites: names in `base` -> names in `target`; one to one."""


class Alignment(msgspec.Struct, frozen=True, gc=False, eq=False):
    """All pairs of graphs of two models."""

    base: Index
    target: Index
    graphs: tuple[GraphPair, ...]
    """The main graphs first; a subgraph after its outer graph. Subgraphs of unmatched nodes are left out."""
    by_base: Mapping[str, GraphPair]
    """The pairs by the address of their base graph."""
    functions: tuple[tuple[int, int], ...]
    """Positions of functions that are counterparts."""
    degraded: str | None
    """Readable reason why some nodes were left unmatched without a full search; None after a full search."""

    @property
    def matched(self) -> int:
        """Number of base nodes with a counterpart."""
        return sum([len(pair.target_of) - pair.target_of.count(UNMATCHED) for pair in self.graphs])

    def node_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every pair of nodes as two addresses, graph by graph in the order of the base."""
        for pair in self.graphs:
            base, target = f"{pair.base.address}/node/", f"{pair.target.address}/node/"
            for position, counterpart in enumerate(pair.target_of):
                if counterpart != UNMATCHED:
                    yield f"{base}{position}", f"{target}{counterpart}"


def pair_inputs(base: Scope, target: Scope) -> dict[int, int]:
    """Pair inputs by name, else by type in their order: positions in `base` -> positions in `target`."""
    return _pair(_declared(base, "input"), _declared(target, "input"))


def pair_outputs(base: Scope, target: Scope) -> dict[int, int]:
    """Pair outputs by name, else by type in their order: positions in `base` -> positions in `target`."""
    return _pair(_declared(base, "output"), _declared(target, "output"))


def counterparts(
    field: Literal["input", "output"],
    scopes: tuple[Scope, Scope],
    names: tuple[Collection[str], Collection[str]],
    structure: Callable[[], GraphPair | None],
) -> dict[str, str]:
    """Return the counterparts of inputs or outputs of a graph, in their order: by name, by structure, else by type.

    Args:
        names: those that both graphs have, in their order.
        structure: returns the pair of the graphs; called if a name is not in both.
    """
    base, target = names
    known = dict.fromkeys(target)
    pairs = {name: name for name in base if name in known}
    if len(pairs) < min(len(base), len(known)):
        places = (pair_inputs if field == "input" else pair_outputs)(*scopes)
        values, others = [getattr(scope.graph, field) for scope in scopes]
        by_type = {values[place].name: others[other].name for place, other in places.items()}
        pair = structure()
        for paired in (by_type,) if pair is None else (_by_structure(pair, base, known), by_type):
            taken = set(pairs.values())
            for name in base:
                other = paired.get(name)
                if name not in pairs and other in known and other not in taken:
                    pairs[name] = other
                    taken.add(other)
    return {name: pairs[name] for name in base if name in pairs}


def _by_structure(pair: GraphPair, base: Collection[str], target: Mapping[str, None]) -> dict[str, str | None]:
    """Return the counterparts of values, or of those that they are aliases of."""
    sources = {pair.target_aliases.get(name, name): name for name in reversed([*target])}
    paired = {name: pair.values.get(name) or pair.values.get(pair.base_aliases.get(name, name), "") for name in base}
    return {name: other if other in target else sources.get(pair.target_aliases.get(other, other))
            for name, other in paired.items()}  # fmt: skip


def _declared(scope: Scope, field: str) -> list[_Value]:
    """Return names and types of inputs or outputs; an input that is an initializer gets no name: no counterpart."""
    values = getattr(scope.graph, field)
    if isinstance(scope.graph, Function):
        return [(name, None) for name in values]
    constants = scope.initializers if field == "input" else ()
    return [("" if each.name in constants else each.name or "", each.type) for each in values]


def _pair(base: Sequence[_Value], target: Sequence[_Value]) -> dict[int, int]:
    by_name = {name: position for position, (name, _) in reversed(list(enumerate(target))) if name}
    pairs = {}
    taken = set()
    for position, (name, _) in enumerate(base):
        place = by_name.get(name) if name else None
        if place is not None and place not in taken:
            pairs[position] = place
            taken.add(place)
    for alike in (_type, _data_type, lambda _: None):
        open_there: dict[Hashable, list[int]] = {}
        for position, (name, type_) in enumerate(target):
            if name and position not in taken:
                open_there.setdefault(alike(type_), []).append(position)
        for position, (name, type_) in enumerate(base):
            fitting = open_there.get(alike(type_))
            if name and position not in pairs and fitting:
                pairs[position] = fitting.pop(0)
                taken.add(pairs[position])
    return dict(sorted(pairs.items()))


def _type(type_: Type | None) -> Hashable:
    if type_ is None or type_.tensor_type is None or type_.tensor_type.shape is None:
        return type_
    shape = type_.tensor_type.shape
    return (type_.tensor_type.elem_type, tuple([each.dim_value for each in shape.dim]))


def _data_type(type_: Type | None) -> Hashable:
    return None if type_ is None or type_.tensor_type is None else type_.tensor_type.elem_type


class _SameNames(UserDict[str, str]):
    """The names that a graph defines, each with itself; collected on first use."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @cached_property
    def data(self) -> dict[str, str]:  # type: ignore[override]
        return {name: name for name in self._scope.defined_names}


def same_alignment(base: Model, target: Model) -> Alignment:
    """Align two equal models: every graph, node and value is paired with the one at the same place."""
    indexes = Index(base), Index(target)
    pairs = []
    for one, other in zip(indexes[0].scopes, indexes[1].scopes, strict=True):
        places = range(len(one.graph.node))
        pairs.append(GraphPair(one, other, places, places, _SameNames(one), {}, {}))
    functions = tuple([(position, position) for position in range(len(base.functions))])
    return Alignment(*indexes, tuple(pairs), {pair.base.address: pair for pair in pairs}, functions, None)


def align_by_names(base: Model, target: Model, *, is_edited: bool = False) -> Alignment | None:
    """Pair graphs, nodes and values of the same name; None if names alone are not enough.

    In an edited base (`is_edited`), no name can have moved to another value.
    """
    indexes = index_of(base), Index(target)
    functions = _functions(base, target)
    if functions is None:
        return None
    scopes = [index.by_address for index in indexes]
    tops = [("/graph", "/graph"), *[(f"/functions/{position}", f"/functions/{place}") for position, place in functions]]
    tops += [(address, address) for address, scope in scopes[0].items() if scope.kind == "training"]
    pairs: list[GraphPair] = []
    waiting = [(scopes[0][old], scopes[1][new]) for old, new in tops if old in scopes[0] and new in scopes[1]]
    while waiting:
        base_scope, target_scope = waiting.pop()
        pair = pair_by_names(base_scope, target_scope, is_edited=is_edited)
        if pair is None:
            return None
        pairs.append(pair)
        for child in base_scope.children:
            if child.owner is None:
                continue
            place = pair.target_of[child.owner.position]
            other = scopes[1].get(f"{target_scope.address}/node/{place}{child.address[len(child.owner.address) :]}")
            if other is not None:
                waiting.append((child, other))
    pairs.sort(key=lambda pair: (not pair.base.address.startswith("/graph"), pair.base.address.count("/")))
    by_base = {pair.base.address: pair for pair in pairs}
    return Alignment(*indexes, tuple(pairs), by_base, tuple(functions), None)


def _functions(base: Model, target: Model) -> list[tuple[int, int]] | None:
    keys = [[function_key(each) for each in model.functions] for model in (base, target)]
    if any(len(set(each)) < len(each) for each in keys):
        return None
    if set(keys[0]) - set(keys[1]) and set(keys[1]) - set(keys[0]):
        return None
    places = {key: place for place, key in enumerate(keys[1])}
    return [(place, places[key]) for place, key in enumerate(keys[0]) if key in places]


def pair_by_names(base: Scope, target: Scope, *, is_edited: bool = False) -> GraphPair | None:
    """Pair the nodes and values of two graphs by their names; None if names alone are not enough."""
    nodes, target_nodes = base.graph.node, target.graph.node
    places, others = _by_output(nodes), _by_output(target_nodes)
    if places is None or others is None:
        return None
    target_of = [UNMATCHED] * len(nodes)
    base_of = [UNMATCHED] * len(target_nodes)
    for name, position in places.items():
        partner = others.get(name)
        if partner is not None:
            if nodes[position].output != target_nodes[partner].output:
                return None
            target_of[position], base_of[partner] = partner, position
    removed = Counter(_operator(nodes[place]) for place, partner in enumerate(target_of) if partner < 0)
    new = Counter(_operator(target_nodes[place]) for place, partner in enumerate(base_of) if partner < 0)
    if removed.keys() & new.keys():
        return None
    moved = removed.keys() | new.keys()
    changed: list[int] = []
    for position, partner in enumerate(target_of):
        if partner < 0:
            continue
        node, other = nodes[position], target_nodes[partner]
        if node == other:
            continue
        if node.input == other.input and _operator(node) == _operator(other) and node.attribute == other.attribute:
            continue
        if _operator(node) != _operator(other) or _operator(node) in moved:
            return None
        changed.append(position)
    if changed and not is_edited and _have_other_names(base, target, target_of, changed):
        return None
    if moved and _has_other_constants(base, target):
        # A layer inserted in the middle may have shifted the names of all weights after it.
        return None
    values = _values(base, target)
    return None if values is None else GraphPair(base, target, target_of, base_of, values, {}, {})


def _have_other_names(base: Scope, target: Scope, target_of: list[int], changed: list[int]) -> bool:
    """Whether a changed node now equals the former content of another node that was removed or changed.

    Exporters that number values swap the names of two layers when they visit them in another order.
    """
    before = [base.graph.node[place] for place in (*changed, *[at for at, there in enumerate(target_of) if there < 0])]
    known: dict[tuple[tuple[str, str], tuple[str, ...]], list[Node]] = {}
    for node in before:
        known.setdefault((_operator(node), node.input), []).append(node)
    after = [target.graph.node[target_of[position]] for position in changed]
    return any(
        node.attribute == other.attribute for node in after for other in known.get((_operator(node), node.input), ())
    )


def _has_other_constants(base: Scope, target: Scope) -> bool:
    names = base.initializers.keys() & target.initializers.keys()
    return any(base.initializer(name) != target.initializer(name) for name in names)


def _by_output(nodes: Sequence[Node]) -> dict[str, int] | None:
    """Nodes by their first output; None if two share it or one has none."""
    found = {node.output[0]: place for place, node in enumerate(nodes) if node.output and node.output[0]}
    return found if len(found) == len(nodes) else None


def _operator(node: Node) -> tuple[str, str]:
    return plain_domain(node.domain), node.op_type or ""


def _values(base: Scope, target: Scope) -> dict[str, str] | None:
    for before, after in (
        (base.inputs, target.inputs),
        (base.initializers, target.initializers),
        (base.sparse_initializers, target.sparse_initializers),
    ):
        if before.keys() - after.keys() and after.keys() - before.keys():
            return None
    target_names = target.defined_names
    values = {name: name for name in base.defined_names if name in target_names}
    # A constant that is computed now is another value.
    return None if (_constants(base) ^ _constants(target)) & values.keys() else values


def _constants(scope: Scope) -> set[str]:
    return {*scope.initializers, *scope.sparse_initializers, *constant_outputs(scope)}.difference(scope.inputs)


class Components:
    """Disjoint sets of adjacent nodes (union-find). A node is (0 for base or 1 for target, position)."""

    def __init__(self) -> None:
        self._above: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, node: tuple[int, int]) -> None:
        """Add a node as a new set."""
        self._above.setdefault(node, node)

    def __contains__(self, node: object) -> bool:
        return node in self._above

    def find(self, node: tuple[int, int]) -> tuple[int, int]:
        """Return the representative of the set of a node."""
        above = self._above
        root = node
        while above[root] != root:
            root = above[root]
        while above[node] != root:
            above[node], node = root, above[node]
        return root

    def join(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Join the sets of two nodes."""
        first, second = sorted((self.find(one), self.find(other)))
        self._above[second] = first

    def sets(self) -> list[tuple[list[int], list[int]]]:
        """Return the positions in base and target of each set, ascending; the sets ordered by their first node."""
        by_root: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for node in sorted(self._above):
            sides = by_root.setdefault(self.find(node), ([], []))
            sides[node[0]].append(node[1])
        return list(by_root.values())
