"""The graphs of a model, and what the names are that each of them defines and uses.

A name belongs to the innermost graph that defines it, so a subgraph sees the names of the graphs around it (ONNX IR,
"Names within a graph"). `onnxjson.index` finds the way from one to the other.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, overload

from onnxjson.addresses import attribute_segments, escape
from onnxjson.document import Attribute, Function, Graph, Model, Node, SparseTensor, Tensor, Type

Kind = Literal["main", "subgraph", "function", "training"]
"""What a graph is: the model's, that of an attribute, the body of a function, a step of training."""

Taker = tuple[int | None, int]
"""A place that takes a value: the position of a node (None: the outputs of the graph) and of its input."""


class NodeRef(NamedTuple):
    """One node of a model: its graph and its position there."""

    scope: "Scope"
    position: int

    @property
    def node(self) -> Node:
        """The record."""
        return self.scope.graph.node[self.position]

    @property
    def address(self) -> str:
        """Where it stands in the model."""
        return f"{self.scope.address}/node/{self.position}"


POSITION_BITS: Final = 40
"""Of the number of a node, those that say its position in its graph."""

_POSITION: Final = (1 << POSITION_BITS) - 1


class NodeRefs(Sequence[NodeRef]):
    """Nodes as numbers: 100,000 objects would take 8 MB, and be looked through by the collector of garbage."""

    def __init__(self, scopes: "Sequence[Scope]", numbers: Sequence[int]) -> None:
        """Takes the nodes.

        Args:
            scopes: the graphs of the index.
            numbers: of each node, that of its graph before its position of 40 bits.
        """
        self._scopes = scopes
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[NodeRef]:
        scopes = self._scopes
        return (NodeRef(scopes[number >> POSITION_BITS], number & _POSITION) for number in self.numbers)

    @overload
    def __getitem__(self, at: int) -> NodeRef: ...

    @overload
    def __getitem__(self, at: slice) -> "NodeRefs": ...

    def __getitem__(self, at: int | slice) -> "NodeRef | NodeRefs":
        if isinstance(at, slice):
            return NodeRefs(self._scopes, self.numbers[at])
        number = self.numbers[at]
        return NodeRef(self._scopes[number >> POSITION_BITS], number & _POSITION)


class Use(NamedTuple):
    """One place that takes a value: an input of a node, or (`position` None) an output of the graph."""

    scope: "Scope"
    position: int | None
    slot: int

    @property
    def address(self) -> str:
        """Where it stands in the model."""
        if self.position is None:
            return f"{self.scope.address}/output/{self.slot}"
        return f"{self.scope.address}/node/{self.position}/input/{self.slot}"


class Scope:
    """One graph, or the body of one function, and the names that it defines and uses."""

    def __init__(
        self, address: str, graph: Graph | Function, kind: Kind, outer: "Scope | None", owner: NodeRef | None
    ) -> None:
        self.address = address
        """Where it stands in the model."""
        self.graph = graph
        self.kind: Kind = kind
        self.outer = outer
        """The graph around it, whose names it sees."""
        self.owner = owner
        """The node that has this graph in an attribute."""
        self._asked = 0
        self.children: list[Scope] = []
        """The graphs of its nodes' attributes, in their order."""

    def __repr__(self) -> str:
        return f"<Scope {self.address}>"

    def chain(self) -> "Iterator[Scope]":
        """This graph and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @cached_property
    def inputs(self) -> dict[str, int]:
        """Inputs by name -> position."""
        graph = self.graph
        names = graph.input if isinstance(graph, Function) else [value.name for value in graph.input]
        return _first(names)

    @cached_property
    def initializers(self) -> dict[str, int]:
        """Initializers by name -> position; a function has none."""
        graph = self.graph
        return {} if isinstance(graph, Function) else _first([tensor.name for tensor in graph.initializer])

    @cached_property
    def sparse_initializers(self) -> dict[str, int]:
        """Sparse initializers by name (that of their values) -> position."""
        if isinstance(self.graph, Function):
            return {}
        return _first([each.values.name if each.values is not None else None for each in self.graph.sparse_initializer])

    @cached_property
    def makers(self) -> dict[str, tuple[int, int]]:
        """Outputs of nodes by name -> position of the node and of the output."""
        makers: dict[str, tuple[int, int]] = {}
        for position, node in enumerate(self.graph.node):
            for slot, name in enumerate(node.output):
                if name and name not in makers:
                    makers[name] = (position, slot)
        return makers

    @cached_property
    def takers(self) -> "dict[str, tuple[Taker, ...]]":
        """What is used here by name -> position of the node (None: the graph's outputs) and of the input."""
        takers: dict[str, Any] = {}
        makers = vars(self).get("makers", {})
        for position, node in enumerate(self.graph.node):
            # What `makers` says of the first output is mostly what is said here of the first input.
            pair = makers.get(node.output[0]) if node.output else None
            if pair is None or pair[1] or pair[0] != position:
                pair = (position, 0)
            for slot, name in enumerate(node.input):
                if name:
                    places = takers.get(name)
                    place = (pair[0], slot) if slot else pair
                    if places is None:
                        takers[name] = (place,)
                    elif type(places) is tuple:
                        takers[name] = [*places, place]
                    else:
                        places.append(place)
        for slot, output in enumerate(self.output_names):
            if output:
                takers[output] = [*takers.get(output, ()), (None, slot)]
        # Tuples of numbers are nothing that the collector of garbage looks through again and again, as lists are.
        for name, places in takers.items():
            if type(places) is list:
                takers[name] = tuple(places)
        return takers

    @property
    def output_names(self) -> Sequence[str | None]:
        """The names of the graph's outputs."""
        graph = self.graph
        return graph.output if isinstance(graph, Function) else [value.name for value in graph.output]

    @cached_property
    def types(self) -> dict[str, Type]:
        """What the graph says about the types of its values, by name; inputs before outputs before value_info."""
        types: dict[str, Type] = {}
        graph = self.graph
        said = graph.value_info if isinstance(graph, Function) else (*graph.input, *graph.output, *graph.value_info)
        for value in said:
            if value.name and value.type is not None:
                types.setdefault(value.name, value.type)
        return types

    @property
    def knows_types(self) -> bool:
        """Whether `types` was asked for, so that it costs nothing."""
        return "types" in vars(self)

    @property
    def knows_names(self) -> bool:
        """Whether `find_names` has nothing to do."""
        return vars(self).keys() >= {"makers", "takers", "types"}

    def find_names(self) -> None:
        """Finds out who makes and who takes each value, and of which type it is; the tables stay.

        100,000 nodes take 0.2 s. May be called in another thread.
        """
        for table in (self.types, self.makers, self.takers, self.inputs, self.initializers, self.sparse_initializers):
            assert table is not None

    def take_over(self, before: "Scope") -> None:
        """Learns what another one knows of names by the very records that this graph has, too, but for its nodes."""
        known = vars(before)
        unlike: set[str] = {"makers", "takers"}
        for fields, names in _NAMES_BY_FIELDS.items():
            if any([getattr(before.graph, field, None) is not getattr(self.graph, field, None) for field in fields]):
                unlike.update(names)
        for names in _NAMES_BY_FIELDS.values():
            vars(self).update({name: known[name] for name in names if name in known and name not in unlike})

    def follow(self, graph: Graph | Function, positions: Sequence[int] = ()) -> None:
        """Takes another record for this graph: what is known about names is put right, not found out anew.

        Args:
            graph: has as many nodes as before, with the same subgraphs.
            positions: the nodes that differ.
        """
        before, self.graph = self.graph, graph
        known = vars(self)
        for fields, names in _NAMES_BY_FIELDS.items():
            if any([getattr(before, field, None) is not getattr(graph, field, None) for field in fields]):
                for name in names:
                    known.pop(name, None)
        takers: dict[str, tuple[Taker, ...]] | None = known.get("takers")
        for position in positions:
            old, new = before.node[position], graph.node[position]
            if old.output != new.output:
                known.pop("makers", None)
            if takers is not None and old.input != new.input:
                _move_takers(takers, position, old.input, new.input)

    def having(self, field: str, text: str) -> list[int]:
        """The positions of the nodes with a text as, or among, what a field holds."""
        nodes = self.graph.node
        match field:
            case "name":
                return [place for place, node in enumerate(nodes) if node.name == text]
            case "op_type":
                return [place for place, node in enumerate(nodes) if node.op_type == text]
            case "input":
                return [place for place, node in enumerate(nodes) if text in node.input]
            case _:
                return [place for place, node in enumerate(nodes) if text in node.output]

    def uses(self, name: str) -> Sequence[Taker]:
        """`takers` of one name; few questions are answered without them all."""
        if not name:
            return ()
        if "takers" in vars(self) or self._asked >= SEARCHES:
            return self.takers.get(name, ())
        self._asked += 1
        nodes = self.graph.node
        found: list[Taker] = []
        for place in self.having("input", name):
            found += [(place, slot) for slot, each in enumerate(nodes[place].input) if each == name]
        return found + [(None, slot) for slot, output in enumerate(self.output_names) if output == name]

    def defines(self, name: str) -> bool:
        """Whether the name is made here."""
        return (
            name in self.makers or name in self.inputs or name in self.initializers or name in self.sparse_initializers
        )

    def initializer(self, name: str) -> Tensor | SparseTensor | None:
        """The constant of that name."""
        graph = self.graph
        if isinstance(graph, Function):
            return None
        if (position := self.initializers.get(name)) is not None:
            return graph.initializer[position]
        if (position := self.sparse_initializers.get(name)) is not None:
            return graph.sparse_initializer[position]
        return None


_NAMES_BY_FIELDS: Final = {
    ("input",): ("inputs", "types"),
    ("output",): ("takers", "types"),
    ("value_info",): ("types",),
    ("initializer",): ("initializers",),
    ("sparse_initializer",): ("sparse_initializers",),
}
"""What `Scope` finds out about names, by the fields other than nodes that it depends on."""


def _move_takers(takers: dict[str, tuple[Taker, ...]], position: int, old: Sequence[str], new: Sequence[str]) -> None:
    for name in filter(None, {*old, *new}):
        places = [place for place in takers.get(name, ()) if place[0] != position]
        for slot, each in enumerate(new):
            if each == name:
                insort(places, (position, slot), key=_order)
        if places:
            takers[name] = tuple(places)
        else:
            del takers[name]


def _order(taker: Taker) -> tuple[bool, int, int]:
    position, slot = taker
    return position is None, position or 0, slot


SEARCHES: Final = 8
"""Questions that are answered by looking through all nodes, before a table is made."""


def _first(names: Sequence[str | None]) -> dict[str, int]:
    """Names -> the first position of each."""
    found: dict[str, int] = {}
    for position, name in enumerate(names):
        if name:
            found.setdefault(name, position)
    return found


def find_scopes(model: Model) -> Iterator[Scope]:
    """Every graph of a model: the main one and those in it, functions, training; the outer before the inner."""
    main = None
    if model.graph is not None:
        main = Scope("/graph", model.graph, "main", None, None)
        yield from _with_subgraphs(main)
    for position, function in enumerate(model.functions):
        body = Scope(f"/functions/{position}", function, "function", None, None)
        for place, default in enumerate(function.attribute_proto):
            _add_graphs(default, f"{body.address}/attribute_proto/{place}", body, None)
        yield from _with_subgraphs(body)
    for position, step in enumerate(model.training_info):
        for name, graph in (("initialization", step.initialization), ("algorithm", step.algorithm)):
            if graph is not None:
                scope = Scope(f"/training_info/{position}/{name}", graph, "training", main, None)
                yield from _with_subgraphs(scope)


def _with_subgraphs(top: Scope) -> Iterator[Scope]:
    """A graph and all graphs inside it, the outer before the inner, in their order."""
    pending = [top]
    while pending:
        scope = pending.pop()
        for position, node in enumerate(scope.graph.node):
            for attribute in node.attribute:
                if attribute.g is not None or attribute.graphs:
                    break
            else:
                continue
            owner = NodeRef(scope, position)
            parts = attribute_segments(node.attribute)
            for part, attribute in zip(parts, node.attribute, strict=True):
                _add_graphs(attribute, f"{owner.address}/attribute/{escape(part)}", scope, owner)
        yield scope
        pending += reversed(scope.children)


def _add_graphs(attribute: Attribute, address: str, scope: Scope, owner: NodeRef | None) -> None:
    if attribute.g is not None:
        scope.children.append(Scope(f"{address}/g", attribute.g, "subgraph", scope, owner))
    for position, graph in enumerate(attribute.graphs):
        scope.children.append(Scope(f"{address}/graphs/{position}", graph, "subgraph", scope, owner))
