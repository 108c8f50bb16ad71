"""The result of matching two models: pairs of graphs, of their nodes and of their values; pairs of inputs and outputs.

An element in no pair has no counterpart: it was added, removed, or is part of a rewrite (see
`onnxjson.diffing.events`). A pair does not mean that its two elements are equal.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

import msgspec

from onnxjson.model.document import Function, Model, Type
from onnxjson.model.index import Index, Scope

UNMATCHED = -1
"""Value in `GraphPair.target_of` and `base_of` for a node without a counterpart."""


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
    """The same for `target`."""


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
    return _pair(_inputs(base), _inputs(target))


def pair_outputs(base: Scope, target: Scope) -> dict[int, int]:
    """Pair outputs by name, else by type in their order: positions in `base` -> positions in `target`."""
    return _pair(_outputs(base), _outputs(target))


_Value = tuple[str, Type | None]


def _inputs(scope: Scope) -> list[_Value]:
    """Return name and type of each input; an input that is an initializer gets no name, and so no counterpart."""
    graph = scope.graph
    if isinstance(graph, Function):
        return [(name, None) for name in graph.input]
    names = {each.name for each in graph.input}
    constants = {each.name for each in graph.initializer if each.name in names}
    return [("" if each.name in constants else each.name or "", each.type) for each in graph.input]


def _outputs(scope: Scope) -> list[_Value]:
    graph = scope.graph
    if isinstance(graph, Function):
        return [(name, None) for name in graph.output]
    return [(each.name or "", each.type) for each in graph.output]


def _pair(base: Sequence[_Value], target: Sequence[_Value]) -> dict[int, int]:
    by_name = {name: position for position, (name, _) in reversed(list(enumerate(target))) if name}
    pairs = {}
    taken = set()
    for position, (name, _) in enumerate(base):
        there = by_name.get(name) if name else None
        if there is not None and there not in taken:
            pairs[position] = there
            taken.add(there)
    for alike in (_type, _data_type, _any):
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


def _any(type_: Type | None) -> Hashable:
    return None


def same_alignment(base: Model, target: Model) -> Alignment:
    """Align two equal models: every graph, node and value is paired with the one at the same place."""
    indexes = Index(base), Index(target)
    pairs = []
    for one, other in zip(indexes[0].scopes, indexes[1].scopes, strict=True):
        places = range(len(one.graph.node))
        values = {name: name for name in (*one.inputs, *one.initializers, *one.sparse_initializers, *one.producers)}
        pairs.append(GraphPair(one, other, places, places, values, {}, {}))
    functions = tuple([(position, position) for position in range(len(base.functions))])
    return Alignment(*indexes, tuple(pairs), {pair.base.address: pair for pair in pairs}, functions, None)
