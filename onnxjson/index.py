"""Who makes a value and who takes it, over all graphs of a model.

An `Index` finds the graphs of a model at once (the main graph, subgraphs, bodies of functions, training steps); what is
known about the names of one graph is found when it is first asked for. A name belongs to the innermost graph that
defines it, so a subgraph sees the names of the graphs around it (ONNX IR, "Names within a graph").

100,000 nodes take 0.2 s. Models that are wrong have an index, too: of two definitions of a name the first one counts,
as inputs, initializers, then nodes in their order; a name that nothing defines has uses and no definition.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from onnxjson.document import Function, Graph, Model, Node, Record, Type
from onnxjson.operators import operator_name
from onnxjson.scopes import POSITION_BITS, SEARCHES, Kind, NodeRef, NodeRefs, Scope, Taker, Use, find_scopes

__all__ = ["Index", "Kind", "NodeRef", "NodeRefs", "Scope", "Taker", "Use"]


class Index:
    """The graphs of one model, and the way from any value to those who make and take it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._tables: dict[str, dict[str, int | array[int]]] = {}
        """The numbers of nodes, see `NodeRefs`, by the texts in one of their fields."""
        self._asked: dict[str, int] = {}
        """How often each of those fields was asked for."""
        self.scopes: tuple[Scope, ...] = tuple(find_scopes(model))
        """Every graph: the main one and those in it, functions, training; the outer before the inner."""

    def take_over(self, before: "Index") -> None:
        """Learns from the index of another model what holds for this one, too, such as the types of its values."""
        scopes = {scope.address: scope for scope in before.scopes}
        for scope in self.scopes:
            former = scopes.get(scope.address)
            if former is not None and type(former.graph) is type(scope.graph):
                scope.take_over(former)

    def follow(
        self, model: Model, records: Mapping[str, Record], changed: "Scope | None" = None, positions: Sequence[int] = ()
    ) -> None:
        """Takes another record for the model, in which no node and no graph came, went or moved.

        Args:
            model: the record.
            records: the graphs that are new, by their addresses.
            changed: the graph of which some nodes differ.
            positions: those nodes.
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
        """What was known of the nodes of a model and is not so any more."""
        if old.input != new.input or old.output != new.output:
            vars(self).pop("_captures", None)
        for field in list(self._tables):
            if getattr(old, field) != getattr(new, field):
                del self._tables[field]

    def nodes_with(self, field: str, text: str) -> "Sequence[NodeRef]":
        """The nodes with a text as, or among, what a field holds: `name`, `op_type`, `input` or `output`.

        They come in the order of `nodes`. Looking through all nodes takes less than a table of them; who asks often
        gets one.
        """
        table = self._tables.get(field)
        if table is None:
            self._asked[field] = self._asked.get(field, 0) + 1
            if self._asked[field] <= SEARCHES:
                return self._in_order(
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
            for each in dict.fromkeys(value) if is_many else (value or "",):
                others = table.get(each)
                if others is None:
                    table[each] = number
                elif isinstance(others, int):
                    table[each] = array("q", (others, number))
                else:
                    others.append(number)
        return table

    def _in_order(self, refs: "list[NodeRef]") -> "list[NodeRef]":
        """Nodes that were found graph by graph, in the order of `nodes`."""
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
        """Every node; those of a subgraph stand after the node that has it, as in the file."""
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
        """How many nodes call each operator or function, by `onnxjson.operators.operator_name`; without overloads."""
        keys: Counter[tuple[str | None, str | None]] = Counter()
        for scope in self.scopes:
            keys.update([(node.domain, node.op_type) for node in scope.graph.node])
        counts: Counter[str] = Counter()
        for key, count in keys.items():
            counts[operator_name(*key)] += count
        return counts

    @cached_property
    def _captures(self) -> dict[tuple[Scope, str], list[Scope]]:
        """The graphs that take a name from a graph around them, by that graph and the name."""
        captures: dict[tuple[Scope, str], list[Scope]] = {}
        for scope in self.scopes:
            if scope.outer is None:
                continue
            for name in scope.takers:
                if not scope.defines(name) and (home := self.home(scope.outer, name)) is not None:
                    captures.setdefault((home, name), []).append(scope)
        return captures

    def nodes(self) -> Iterator[NodeRef]:
        """`node_refs`, one after the other."""
        return iter(self.node_refs)

    @staticmethod
    def home(scope: Scope, name: str) -> Scope | None:
        """The graph that defines a name which is used in `scope`; None where nothing does."""
        return next((each for each in scope.chain() if each.defines(name)), None)

    def producer(self, scope: Scope, name: str) -> NodeRef | None:
        """The node that makes a value which is used in `scope`; None for inputs, initializers and unknown names."""
        home = self.home(scope, name)
        if home is None or name in home.inputs or name in home.initializers or name in home.sparse_initializers:
            return None
        return NodeRef(home, home.makers[name][0])

    def consumers(self, scope: Scope, name: str) -> tuple[Use, ...]:
        """Every place that takes a value which is defined in `scope`, those in subgraphs last."""
        users = (scope, *self._captures.get((scope, name), ()))
        return tuple([Use(user, *place) for user in users for place in user.uses(name)])

    @staticmethod
    def type_of(scope: Scope, name: str) -> Type | None:
        """What the model says about the type of a value which is used in `scope`, as far as it says anything."""
        for each in scope.chain():
            if (found := each.types.get(name)) is not None:
                return found
            if each.defines(name):
                return None
        return None
