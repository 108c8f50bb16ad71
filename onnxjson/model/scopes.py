"""The graphs of a model, and the names that each of them defines and uses.

A name belongs to the innermost graph that defines it, so a subgraph sees the names of the graphs around it (ONNX IR,
"Names within a graph"). `onnxjson.model.index` connects them.
"""

from array import array
from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, overload

from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, SparseTensor, Tensor, Type

Kind = Literal["main", "subgraph", "function", "training"]
"""The kind of a graph: the main graph, one in an attribute, the body of a function, a training step."""

Consumer = tuple[int | None, int]
"""A consumer of a value: the position of a node (None: the outputs of the graph) and of its input."""

POSITION_BITS: Final = 40
"""The low bits of the number of a node, which are its position in its graph."""

_POSITION: Final = (1 << POSITION_BITS) - 1

_NAMES_BY_FIELDS: Final = {
    ("input",): ("inputs", "types"),
    ("output",): ("consumers", "types"),
    ("value_info",): ("types",),
    ("initializer",): ("initializers",),
    ("sparse_initializer",): ("sparse_initializers",),
}
"""The tables of `Scope` by the fields, other than nodes, that they depend on."""

SEARCHES: Final = 8
"""Searches through all nodes before a table is built."""


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
        """Its address in the model."""
        return f"{self.scope.address}/node/{self.position}"

    @property
    def op_type(self) -> str:
        """The operator, such as "Conv"."""
        return self.node.op_type or ""

    @property
    def name(self) -> str:
        """The name of the node, "" if it has none."""
        return self.node.name or ""

    def __repr__(self) -> str:
        return f"<NodeRef {visible(' '.join(filter(None, (f'{self.address}:', self.op_type, self.name))))}>"


class NodeRefs(Sequence[NodeRef]):
    """Nodes as numbers: 100,000 objects would need 8 MB and slow the garbage collector down."""

    def __init__(self, scopes: "Sequence[Scope]", numbers: Sequence[int]) -> None:
        """Store for each node the number of its graph, shifted by `POSITION_BITS`, plus its position."""
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
    """One place that consumes a value: an input of a node, or (`position` None) an output of the graph."""

    scope: "Scope"
    position: int | None
    slot: int

    @property
    def address(self) -> str:
        """Its address in the model."""
        if self.position is None:
            return f"{self.scope.address}/output/{self.slot}"
        return f"{self.scope.address}/node/{self.position}/input/{self.slot}"


class Scope:
    """One graph, or the body of one function, and the names that it defines and uses."""

    def __init__(
        self, address: str, graph: Graph | Function, kind: Kind, outer: "Scope | None", owner: NodeRef | None
    ) -> None:
        self.address = address
        """Its address in the model."""
        self.graph = graph
        self.kind: Kind = kind
        self.outer = outer
        """The enclosing graph, whose names are visible here."""
        self.owner = owner
        """The node that contains this graph in an attribute."""
        self.keeps_defaults = False
        """Whether no caller can replace initializers that are inputs: before IR version 4, all of them are."""
        self._asked = 0
        self.children: list[Scope] = []
        """The graphs in the attributes of its nodes, in their order."""

    def __repr__(self) -> str:
        return f"<Scope {self.address}>"

    def chain(self) -> "Iterator[Scope]":
        """Iterate over this graph and the graphs around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def root(self) -> "Scope":
        """The main graph, function or training step that this graph is in."""
        return self if self.owner is None else self.owner.scope.root

    @cached_property
    def bodies(self) -> dict[int, list["Scope"]]:
        """The graphs in the attributes of a node, by its position."""
        bodies: dict[int, list[Scope]] = {}
        for child in self.children:
            if child.owner is not None:
                bodies.setdefault(child.owner.position, []).append(child)
        return bodies

    @cached_property
    def inputs(self) -> dict[str, int]:
        """Inputs: name -> position."""
        graph = self.graph
        names = graph.input if isinstance(graph, Function) else [value.name for value in graph.input]
        return _first(names)

    @cached_property
    def initializers(self) -> dict[str, int]:
        """Initializers: name -> position; a function has none."""
        graph = self.graph
        return {} if isinstance(graph, Function) else _first([tensor.name for tensor in graph.initializer])

    @property
    def defaults(self) -> set[str]:
        """Names of the inputs with a value that a caller may replace."""
        return set() if self.keeps_defaults else self.inputs.keys() & {*self.initializers, *self.sparse_initializers}

    @cached_property
    def sparse_initializers(self) -> dict[str, int]:
        """Sparse initializers: name of their values -> position."""
        if isinstance(self.graph, Function):
            return {}
        return _first([each.values.name if each.values is not None else None for each in self.graph.sparse_initializer])

    @cached_property
    def producers(self) -> dict[str, tuple[int, int]]:
        """Outputs of nodes: name -> position of the node and of the output."""
        producers: dict[str, tuple[int, int]] = {}
        for position, node in enumerate(self.graph.node):
            names = node.output
            if len(names) == 1:  # as for most nodes; saves a fifth of the time
                producers.setdefault(names[0], (position, 0))
            else:
                for slot, name in enumerate(names):
                    producers.setdefault(name, (position, slot))
        producers.pop("", None)
        return producers

    @cached_property
    def callers(self) -> "dict[str | None, array[int]]":
        """Name of an operator, in any domain -> positions of the nodes that call it."""
        callers: defaultdict[str | None, list[int]] = defaultdict(list)
        for position, node in enumerate(self.graph.node):
            callers[node.op_type].append(position)
        return {name: array("q", positions) for name, positions in callers.items()}

    @cached_property
    def consumers(self) -> "dict[str, tuple[Consumer, ...]]":
        """Consumers: name -> position of each node (None: the outputs of the graph) and of its input."""
        consumers: dict[str, Any] = {}
        producers = vars(self).get("producers", {})
        for position, node in enumerate(self.graph.node):
            # The pair for the first output is mostly the one needed for the first input: sharing it saves memory.
            pair = producers.get(node.output[0]) if node.output else None
            if pair is None or pair[1] or pair[0] != position:
                pair = (position, 0)
            for slot, name in enumerate(node.input):
                if name:
                    places = consumers.get(name)
                    place = (pair[0], slot) if slot else pair
                    if places is None:
                        consumers[name] = (place,)
                    elif type(places) is tuple:
                        consumers[name] = [*places, place]
                    else:
                        places.append(place)
        for slot, output in enumerate(self.output_names):
            if output:
                consumers[output] = [*consumers.get(output, ()), (None, slot)]
        # The garbage collector stops tracking tuples of numbers, but never lists.
        for name, places in consumers.items():
            if type(places) is list:
                consumers[name] = tuple(places)
        return consumers

    @property
    def output_names(self) -> Sequence[str | None]:
        """The names of the graph's outputs."""
        graph = self.graph
        return graph.output if isinstance(graph, Function) else [value.name for value in graph.output]

    @cached_property
    def types(self) -> dict[str, Type]:
        """The types that the graph states, by name; inputs before outputs before value_info."""
        types: dict[str, Type] = {}
        graph = self.graph
        stated = graph.value_info if isinstance(graph, Function) else (*graph.input, *graph.output, *graph.value_info)
        for value in stated:
            if value.name and value.type is not None:
                types.setdefault(value.name, value.type)
        return types

    @property
    def knows_types(self) -> bool:
        """Whether `types` is already built, so that using it costs nothing."""
        return "types" in vars(self)

    @property
    def knows_names(self) -> bool:
        """Whether `find_names` has nothing left to do."""
        return vars(self).keys() >= {"producers", "consumers", "types"}

    def find_names(self) -> None:
        """Build and keep the tables of names, perhaps in another thread; 100,000 nodes take 0.2 s."""
        for table in (self.types, self.defined_names, self.consumers):
            assert table is not None

    def take_over(self, before: "Scope") -> None:
        """Reuse the tables of another scope that depend only on records shared by both graphs."""
        known = vars(before)
        unlike: set[str] = {"consumers"}  # which `follow` changes in place
        tables = {("node",): ("producers",), **_NAMES_BY_FIELDS}
        for fields, names in tables.items():
            if any([getattr(before.graph, field, None) is not getattr(self.graph, field, None) for field in fields]):
                unlike.update(names)
        for names in tables.values():
            vars(self).update({name: known[name] for name in names if name in known and name not in unlike})

    def follow(self, graph: Graph | Function, positions: Sequence[int] = ()) -> None:
        """Use a changed graph with as many nodes and the same subgraphs; `positions` are the nodes that differ.

        Tables are corrected, not built again.
        """
        before, self.graph = self.graph, graph
        known = vars(self)
        for fields, names in _NAMES_BY_FIELDS.items():
            if any([getattr(before, field, None) is not getattr(graph, field, None) for field in fields]):
                for name in names:
                    known.pop(name, None)
        consumers: dict[str, tuple[Consumer, ...]] | None = known.get("consumers")
        for position in positions:
            old, new = before.node[position], graph.node[position]
            if old.output != new.output:
                known.pop("producers", None)
            if old.op_type != new.op_type:
                known.pop("callers", None)
            if consumers is not None and old.input != new.input:
                _move_consumers(consumers, position, old.input, new.input)

    def having(self, field: str, text: str) -> list[int]:
        """Return the positions of the nodes with a text in a field."""
        nodes = self.graph.node
        if field in ("input", "output"):
            return [place for place, node in enumerate(nodes) if text in getattr(node, field)]
        return [place for place, node in enumerate(nodes) if getattr(node, field) == text]

    def uses(self, name: str) -> Sequence[Consumer]:
        """Return the consumers of one name; the first few calls search the nodes instead of building `consumers`."""
        if not name:
            return ()
        if "consumers" in vars(self) or self._asked >= SEARCHES:
            return self.consumers.get(name, ())
        self._asked += 1
        nodes = self.graph.node
        consumers: list[Consumer] = []
        for place in self.having("input", name):
            consumers += [(place, slot) for slot, each in enumerate(nodes[place].input) if each == name]
        return consumers + [(None, slot) for slot, output in enumerate(self.output_names) if output == name]

    def defines(self, name: str) -> bool:
        """Whether the name is an input, a constant or an output of a node of this graph."""
        if name in self.producers or name in self.initializers:
            return True
        return name in self.inputs or name in self.sparse_initializers

    @property
    def defined_names(self) -> dict[str, None]:
        """The names that the graph defines, inputs first."""
        return dict.fromkeys((*self.inputs, *self.initializers, *self.sparse_initializers, *self.producers))

    def producer_position(self, name: str) -> int | None:
        """Return the position of the node whose output a name is; None for inputs, initializers and other names."""
        if name in self.inputs or name in self.initializers or name in self.sparse_initializers:
            return None
        found = self.producers.get(name)
        return None if found is None else found[0]

    def producer(self, name: str) -> NodeRef | None:
        """Return the node whose output a name is; see `producer_position`."""
        position = self.producer_position(name)
        return None if position is None else NodeRef(self, position)

    def initializer(self, name: str) -> Tensor | SparseTensor | None:
        """Return the initializer or sparse initializer of a name, or None."""
        graph = self.graph
        if isinstance(graph, Function):
            return None
        if (position := self.initializers.get(name)) is not None:
            return graph.initializer[position]
        if (position := self.sparse_initializers.get(name)) is not None:
            return graph.sparse_initializer[position]
        return None


def _move_consumers(
    consumers: dict[str, tuple[Consumer, ...]], position: int, old: Sequence[str], new: Sequence[str]
) -> None:
    for name in filter(None, {*old, *new}):
        places = [place for place in consumers.get(name, ()) if place[0] != position]
        for slot, each in enumerate(new):
            if each == name:
                insort(places, (position, slot), key=_order)
        if places:
            consumers[name] = tuple(places)
        else:
            del consumers[name]


def _order(consumer: Consumer) -> tuple[bool, int, int]:
    position, slot = consumer
    return position is None, position or 0, slot


def _first(names: Sequence[str | None]) -> dict[str, int]:
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        if name:
            positions.setdefault(name, position)
    return positions


def find_scopes(model: Model) -> Iterator[Scope]:
    """Yield every graph of a model: main graph, functions, training steps; the outer before the inner."""
    main = None
    if model.graph is not None:
        main = Scope("/graph", model.graph, "main", None, None)
        main.keeps_defaults = model.ir_version is not None and model.ir_version < 4
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
