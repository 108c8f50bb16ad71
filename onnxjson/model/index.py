"""The use-def index: the producer and the consumers of every value, over all graphs of a model.

An `Index` finds the graphs of a model at once (the main graph, subgraphs, bodies of functions, training steps); the
names of one graph are looked up when they are first needed. A name belongs to the innermost graph that
defines it, so a subgraph sees the names of the graphs around it (ONNX IR, "Names within a graph").

100,000 nodes take 0.2 s. Invalid models have an index too: of two definitions of a name the first one counts, in the
order inputs, initializers, nodes; an undefined name has uses and no definition.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final
from weakref import WeakValueDictionary

from onnxjson.model.dataflow import consumed_names
from onnxjson.model.document import Function, Graph, Model, Node, Record, Type
from onnxjson.model.operators import operator_name
from onnxjson.model.scopes import POSITION_BITS, SEARCHES, Consumer, Kind, NodeRef, NodeRefs, Scope, Use, find_scopes

__all__ = ["Consumer", "Index", "Kind", "NodeRef", "NodeRefs", "Scope", "Use"]


_INDEXES: Final[WeakValueDictionary[int, "Index"]] = WeakValueDictionary()
"""The indexes of `index_of` that are in use, by the identity of their model, which they keep alive."""


def index_of(model: Model) -> "Index":
    """Return the index of a model; the same one as long as something uses it."""
    index = _INDEXES.get(id(model))
    if index is None:
        index = _INDEXES[id(model)] = Index(model)
    return index


class Index:
    """The graphs of one model, and the producer and consumers of every value."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._tables: dict[str, dict[str, int | array[int]]] = {}
        """Numbers of nodes (see `NodeRefs`) by the text in one of their fields, for each field."""
        self._asked: dict[str, int] = {}
        """Number of searches in each of those fields."""
        self.scopes: tuple[Scope, ...] = tuple(find_scopes(model))
        """Every graph and function body: main graph, functions, training steps; the outer before the inner."""

    @cached_property
    def by_address(self) -> dict[str, Scope]:
        """Every graph and function body by its address."""
        return {scope.address: scope for scope in self.scopes}

    def scope(self, address: str) -> Scope | None:
        """Return the graph or function body at an address, or None."""
        return self.by_address.get(address)

    @property
    def main(self) -> Scope | None:
        """The main graph; None in a model without one."""
        return self.scopes[0] if self.scopes and self.scopes[0].kind == "main" else None

    def take_over(self, before: "Index") -> None:
        """Reuse results of the index of another model that are valid for this one too, such as types of values."""
        for scope in self.scopes:
            former = before.scope(scope.address)
            if former is not None and type(former.graph) is type(scope.graph):
                scope.take_over(former)

    def follow(
        self, model: Model, records: Mapping[str, Record], changed: "Scope | None" = None, positions: Sequence[int] = ()
    ) -> None:
        """Switch to a changed model in which no node and no graph was added, removed or moved.

        `records` are the graphs that changed, by address; in the graph `changed`, the nodes at `positions` changed.
        """
        if changed is not None:
            new = records[changed.address]
            assert isinstance(new, Graph | Function)
            for position in positions:
                self._forget(changed.graph.node[position], new.node[position])
        for scope in self.scopes:
            record = records.get(scope.address)
            if isinstance(record, Graph | Function):
                if scope is not changed or record.output is not scope.graph.output:
                    vars(self).pop("_captures", None)
                scope.follow(record, positions if scope is changed else ())
        self.model = model

    def _forget(self, old: Node, new: Node) -> None:
        if old.input != new.input or old.output != new.output:
            vars(self).pop("_captures", None)
        for field in list(self._tables):
            if getattr(old, field) != getattr(new, field):
                del self._tables[field]

    def nodes_with(self, field: str, text: str) -> "Sequence[NodeRef]":
        """Return the nodes with a text in a field: `name`, `op_type`, `input` or `output`.

        They are in the order of `nodes`. One search through all nodes is faster than building a table, so a table is
        built only after `SEARCHES` searches.
        """
        table = self._tables.get(field)
        if table is None:
            self._asked[field] = self._asked.get(field, 0) + 1
            if self._asked[field] <= SEARCHES:
                return self.in_order(
                    [NodeRef(scope, place) for scope in self.scopes for place in scope.having(field, text)]
                )
            table = self._tables[field] = self._table(field)
        found = table.get(text, ())
        return NodeRefs(self.scopes, (found,) if isinstance(found, int) else found)

    def _table(self, field: str) -> "dict[str, int | array[int]]":
        # Most names are those of one node.
        table: dict[str, int | array[int]] = {}
        is_many = field in ("input", "output")
        for number, ref in zip(self.node_refs.numbers, self.node_refs, strict=True):
            value = getattr(ref.node, field)
            for name in dict.fromkeys(value) if is_many else (value or "",):
                others = table.get(name)
                if others is None:
                    table[name] = number
                elif isinstance(others, int):
                    table[name] = array("q", (others, number))
                else:
                    others.append(number)
        return table

    def in_order(self, refs: "list[NodeRef]") -> "list[NodeRef]":
        """Sort nodes that were found graph by graph into the order of `nodes`."""
        if len({ref.scope for ref in refs}) < 2:
            return refs
        numbers = {scope: number for number, scope in enumerate(self.scopes)}

        def place(ref: NodeRef) -> list[int]:
            path = [ref.position, numbers[ref.scope]]
            owner = ref.scope.owner
            while owner is not None:
                path += [owner.position, numbers[owner.scope]]
                owner = owner.scope.owner
            return path[::-1]

        return sorted(refs, key=place)

    @cached_property
    def node_refs(self) -> NodeRefs:
        """Every node; those of a subgraph come after the node that contains it, as in the file."""
        starts = {scope: number << POSITION_BITS for number, scope in enumerate(self.scopes)}
        runs = [range(start, start + len(scope.graph.node)) for scope, start in starts.items()]
        if len(runs) == 1:
            return NodeRefs(self.scopes, runs[0])
        inside: dict[int, list[int]] = {}
        for number, scope in enumerate(self.scopes):
            if scope.owner is not None:
                inside.setdefault(starts[scope.owner.scope] | scope.owner.position, []).append(number)
        numbers = array("q")
        for scope, run in zip(self.scopes, runs, strict=True):
            pending = [iter(run)] if scope.owner is None else []
            while pending:
                for number in pending[-1]:
                    numbers.append(number)
                    if number in inside:
                        pending += [iter(runs[each]) for each in reversed(inside[number])]
                        break
                else:
                    pending.pop()
        return NodeRefs(self.scopes, numbers)

    def operator_counts(self) -> Counter[str]:
        """Count the nodes that call each operator or function, by `operators.operator_name`, without overloads."""
        keys: Counter[tuple[str | None, str | None]] = Counter()
        for scope in self.scopes:
            keys.update([(node.domain, node.op_type) for node in scope.graph.node])
        counts: Counter[str] = Counter()
        for key, count in keys.items():
            counts[operator_name(*key)] += count
        return counts

    @cached_property
    def _captures(self) -> dict[tuple[Scope, str], list[Scope]]:
        """The graphs that capture a name, by the name and the graph that defines it."""
        captures: dict[tuple[Scope, str], list[Scope]] = {}
        for scope in self.scopes:
            if scope.outer is None:
                continue
            for name in scope.consumers:
                if not scope.defines(name) and (defining_scope := self.defining_scope(scope.outer, name)) is not None:
                    captures.setdefault((defining_scope, name), []).append(scope)
        return captures

    def nodes(self) -> Iterator[NodeRef]:
        """Iterate over `node_refs`."""
        return iter(self.node_refs)

    @staticmethod
    def defining_scope(scope: Scope, name: str) -> Scope | None:
        """Return the graph that defines a name that is used in `scope`, or None for an undefined name."""
        return scope if scope.defines(name) else next((each for each in scope.chain() if each.defines(name)), None)

    def producer(self, scope: Scope, name: str) -> NodeRef | None:
        """Return the node whose output is a value used in `scope`; None for inputs, constants and undefined names."""
        defining_scope = self.defining_scope(scope, name)
        return None if defining_scope is None else defining_scope.producer(name)

    def consumers(self, scope: Scope, name: str) -> tuple[Use, ...]:
        """Return every place that consumes a value defined in `scope`, those in subgraphs last."""
        users = (scope, *self._captures.get((scope, name), ()))
        return tuple([Use(user, *place) for user in users for place in user.uses(name)])

    def consuming_nodes(self, scope: Scope, name: str) -> list[int | None]:
        """Return the positions of the nodes in `scope` that consume one of its values, directly or in a subgraph.

        None represents an output of the graph; one position may appear several times.
        """
        positions = [place for place, _ in scope.uses(name)]
        for user in self._captures.get((scope, name), ()) if self._captures else ():
            within, position = user, -1
            while within is not scope and (owner := within.owner) is not None:
                within, position = owner.scope, owner.position
            positions += [position] * len(user.uses(name))
        return positions

    @staticmethod
    def ancestors(scope: Scope, names: Iterable[str]) -> set[int]:
        """Return the positions of the nodes of one graph from which values are computed.

        Values that subgraphs of a node capture count as its inputs.
        """
        positions: set[int] = set()
        pending = list(names)
        while pending:
            position = scope.producer_position(pending.pop())
            if position is not None and position not in positions:
                positions.add(position)
                pending += consumed_names(scope.graph.node[position])
        return positions

    def descendants(self, scope: Scope, position: int) -> set[int]:
        """Return the positions of the nodes of one graph that depend on a node of it; that node is one of them."""
        positions, pending = {position}, [position]
        while pending:
            for name in scope.graph.node[pending.pop()].output:
                for consumer in self.consuming_nodes(scope, name) if name else ():
                    if consumer is not None and consumer not in positions:
                        positions.add(consumer)
                        pending.append(consumer)
        return positions

    def states_types(self) -> bool:
        """Whether the graphs state the type of every value that a node computes, a tensor with all of its sizes."""
        return all(
            [
                all([not name or _is_full(scope.types.get(name)) for name in node.output])
                for scope in self.scopes
                for node in scope.graph.node
            ]
        )

    @staticmethod
    def type_of(scope: Scope, name: str) -> Type | None:
        """Return the declared type of a value that is used in `scope`, or None."""
        for enclosing in scope.chain():
            if (found := enclosing.types.get(name)) is not None:
                return found
            if enclosing.defines(name):
                return None
        return None


def _is_full(stated: Type | None) -> bool:
    tensor = None if stated is None else stated.tensor_type
    if tensor is None or not tensor.elem_type or tensor.shape is None:
        return False
    # Some exporters write -1 for an unknown size.
    return all(
        [bool(each.dim_param) or (each.dim_value is not None and each.dim_value >= 0) for each in tensor.shape.dim]
    )
