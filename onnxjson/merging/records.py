"""Merge of two trees of changes of one base, slot by slot; a slot that both sides change differently is a clash.

Slots are each attribute, each input and output of a node, its operator, each constant, each type, each scalar field,
each metadata entry, and the order of the inputs and outputs of a graph. A change that both sides make is not a clash.
`Origins` then finds where the graphs and nodes of the merged model come from.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from onnxjson.merging.lists import Item, ListMerge, is_ambiguous
from onnxjson.merging.slots import OURS, THEIRS, Both, Clash, Units, added_key, both_spans, three_way, value_after
from onnxjson.model import document as d
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import FIELDS
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, plans

T = TypeVar("T")

_CONTENT: Final = frozenset(field.name for field in FIELDS[d.Tensor]) - {"name", "doc_string", "metadata_props"}
"""The fields of a constant that together are one slot."""

_OPERATOR: Final = frozenset({"op_type", "domain", "overload"})
_GRAPHS: Final = ("g", "graphs")

_WHOLE: Final = (d.StringStringEntry, d.OperatorSetId, d.SparseTensor, d.Segment, d.ShardingSpec)
"""Messages that are one slot each, like those with a oneof: a mixture of two of them is meaningless."""

Keys = list[str]
"""Keys of units (`onnxjson.merging.slots.Units`) that are incompatible."""


class TreeMerge:
    """One pass over both trees. In the slot of a conflict the result has the value of the first side.

    Attributes:
        sides: the first and the second side, each `OURS` or `THEIRS`.
        units: changes that must become conflicts although the slots themselves could be merged.
        clashes: the conflicts found.
        lead: the side, 0 or 1, whose new members are first where both add some.
        origins: address of a list in the base -> origins of its members in the merged model: a position in the base,
            or a side and the number of a member that it adds. Lists that keep all members in place are missing.
        added: address of a list in the base -> the members that ours and theirs add.
    """

    def __init__(self, units: Units, first: int, *, swapped: bool = False) -> None:
        self.sides = (THEIRS, OURS) if swapped else (OURS, THEIRS)
        self.units = units
        self.lead = self.sides.index(first)
        self.clashes: list[Clash] = []
        self.origins: dict[str, list[Item]] = {}
        self.added: dict[str, tuple[list[d.Record], list[d.Record]]] = {}

    def clash(self, owner: str, tail: str, values: tuple[Any, Any, Any], key: str, rank: tuple[int, ...] = ()) -> None:
        """Record a conflict between the values of the base, the first and the second side."""
        self.clashes.append(Clash(owner, tail, *values, key, rank))

    def record(self, record: d.Record, changes: Both, address: str) -> Fields | None:
        """Merge the changes that both sides make to a record of the base."""
        ours, theirs = changes
        if ours is None and theirs is None:
            return None
        is_leaf = not any([_leads_to_graphs(record, change) for change in changes])
        if is_leaf and not self.units.has_below(address) and (ours is None or theirs is None or ours == theirs):
            return theirs if ours is None else ours
        if address in self.units or self._is_one_slot(record, changes):
            values = record, value_after(record, ours, None), value_after(record, theirs, None)
            self.clash(address, "", values, address)
            return self.alone(record, ours, address)
        merged: dict[str, Change] = {}
        our_fields, their_fields = [{} if change is None else change.changes for change in changes]
        for name in record.__struct_fields__:
            if name in our_fields or name in their_fields:
                change = self._field(record, name, (our_fields.get(name), their_fields.get(name)), address)
                if change is not None:
                    merged[name] = change
        return Fields(merged) if merged else None

    def alone(self, record: d.Record, changes: Fields | None, address: str) -> Fields | None:
        """Return the change of the first side as it is, and record the origins of its members."""
        if _leads_to_graphs(record, changes):
            self._apart(lambda tree: tree.record(record, (changes, None), address))
        return changes

    def list_alone(self, record: d.Record, plan: FieldPlan, members: Members | None, address: str) -> Change | None:
        """Return the change of the first side to a list of a record, and record the origins of its members."""
        return self._apart(lambda tree: ListMerge(tree, record, plan, (members, None), address).merged())

    def _apart(self, merge: Callable[["TreeMerge"], T]) -> T:
        other = TreeMerge(Units(), self.sides[self.lead], swapped=self.sides[OURS] == THEIRS)
        merged = merge(other)
        self.origins.update(other.origins)
        self.added.update(other.added)
        return merged

    def _is_one_slot(self, record: d.Record, changes: Both) -> bool:
        """Whether both sides change fields that cannot be merged separately, in different ways."""
        ours, theirs = changes
        if ours is None or theirs is None or ours == theirs:
            return False
        our_fields, their_fields = ours.changes, theirs.changes
        if isinstance(record, d.Tensor):
            return _differ(our_fields, their_fields, _CONTENT)
        if isinstance(record, d.Attribute):
            fields = [*our_fields.items(), *their_fields.items()]
            return any(
                name != "doc_string" and (type(change) is Replace or name not in _GRAPHS) for name, change in fields
            )
        if isinstance(record, d.Node):
            if _differ(our_fields, their_fields, _OPERATOR):
                return True
            operators = [not _OPERATOR.isdisjoint(changed) for changed in (our_fields, their_fields)]
            attributes = ["attribute" in changed for changed in (our_fields, their_fields)]
            if operators[OURS] != operators[THEIRS] and attributes[operators[OURS]]:
                # An attribute belongs to its operator.
                return True
            return any(attributes) and any(
                [is_ambiguous(changed.get("attribute"), record.attribute) for changed in (our_fields, their_fields)]
            )
        return type(record) in _WHOLE or any(field.oneof for field in FIELDS[type(record)])

    def _field(
        self, record: d.Record, name: str, changes: tuple[Change | None, Change | None], address: str
    ) -> Change | None:
        ours, theirs = changes
        at = f"{address}/{name}"
        plan = plans(type(record)).get(name)
        old = getattr(record, name)
        if at not in self.units:
            if plan is not None and plan.is_list:
                members = [change if type(change) is Members else None for change in changes]
                return ListMerge(self, record, plan, (members[0], members[1]), address).merged()
            if not any([type(change) is Replace for change in changes]):
                fields = [change if type(change) is Fields else None for change in changes]
                return self.record(old, (fields[0], fields[1]), at)
            is_alone = ours is None or theirs is None or ours == theirs
            if plan is not None and name in ("input", "output") and (not is_alone or self.units.has_below(at)):
                return self._names(old, name, changes, address)
            if is_alone:
                return theirs if ours is None else ours
        self.clash(address, f"/{name}", (old, value_after(old, ours, plan), value_after(old, theirs, plan)), at)
        return ours

    def _names(
        self, old: tuple[str, ...], name: str, changes: tuple[Change | None, Change | None], address: str
    ) -> Change | None:
        """Merge the inputs or outputs of a node or function, each of which is a slot."""
        ours, theirs = [value_after(old, change, None) for change in changes]
        at = f"{address}/{name}"
        length = len(ours)
        if len(theirs) != length or (len(old) != length and self.units.has_below(at)):
            result = None if self.units.has_below(at) else both_spans(old, ours, theirs)
            if result is None:
                self.clash(address, f"/{name}", (old, ours, theirs), at)
                result = ours
            return None if result == old else Replace(old, result)
        if len(old) != length and (spans := both_spans(old, ours, theirs)) is not None:
            return Replace(old, spans)
        names = []
        for place in range(length):
            was = old[place] if place < len(old) else None
            key = f"{at}/{place}"
            our_name, their_name = ours[place], theirs[place]
            if key in self.units or (our_name != their_name and was not in (our_name, their_name)):
                self.clash(address, f"/{name}/{place}", (was, our_name, their_name), key, (place,))
                names.append(our_name)
            else:
                names.append(three_way(was, our_name, their_name))
        new = tuple(names)
        return None if new == old else Replace(old, new)


def _leads_to_graphs(record: d.Record, changes: Fields | None) -> bool:
    """Whether a change may reach graphs, so that the origins of members must be recorded."""
    if changes is None:
        return False
    if isinstance(record, d.Node):
        return "attribute" in changes.changes
    if isinstance(record, d.Attribute):
        return not changes.changes.keys().isdisjoint(_GRAPHS)
    return isinstance(record, d.Model | d.Graph | d.Function | d.TrainingInfo)


def _differ(ours: dict[str, Change], theirs: dict[str, Change], names: frozenset[str]) -> bool:
    """Whether both sides change fields that are one slot, in different ways."""
    our_part, their_part = [{name: change for name, change in each.items() if name in names} for each in (ours, theirs)]
    return bool(our_part and their_part) and our_part != their_part


class Origins:
    """Origins of the graphs and nodes of a merged model: the base, or a member that a side added."""

    def __init__(self, base: Index, tree: TreeMerge) -> None:
        self.graphs = {scope.address: scope for scope in base.scopes}
        self._tree = tree

    def of_graph(self, scope: Scope) -> tuple[str | None, str | None]:
        """Return a merged graph's address in the base, or the key of the added member around it; else None twice."""
        if scope.outer is None or scope.kind == "training":
            return self._below("", scope.address.split("/")[1:])
        if scope.owner is None:
            # The graph is in the default of an attribute of a function.
            address, key = self.of_graph(scope.outer)
            below = scope.address[len(scope.outer.address) :]
            return (None, key) if address is None else self._below(address, below.split("/")[1:])
        address, key = self.of_node(scope.owner)
        if address is None:
            return None, key
        below = scope.address[len(scope.owner.address) :]
        if address + below in self.graphs:
            return address + below, None
        name = below.split("/")[2]
        for side, records in enumerate(self._tree.added.get(f"{address}/attribute", ())):
            for number, record in enumerate(records):
                if isinstance(record, d.Attribute) and record.name == name:
                    return None, added_key(f"{address}/attribute", side, number)
        return None, None

    def _below(self, address: str, segments: list[str]) -> tuple[str | None, str | None]:
        """Follow the positions of lists, below a record of the base, to where their members were in the base."""
        for segment in segments:
            if not segment.isdigit():
                address = f"{address}/{segment}"
                continue
            origin = self.of_member(address, int(segment))
            if not isinstance(origin, int):
                return None, added_key(address, *origin)
            address = f"{address}/{origin}"
        return (address if address in self.graphs else None), None

    def of_node(self, ref: NodeRef) -> tuple[str | None, str | None]:
        """The address of a merged node in the base, or the key of what added it; else both None."""
        address, key = self.of_graph(ref.scope)
        if address is None:
            return None, key
        origin = self.of_member(f"{address}/node", ref.position)
        if isinstance(origin, int):
            # Where a side replaced the whole graph, its nodes may have no counterpart in the base.
            is_known = origin < len(self.graphs[address].graph.node)
            return (f"{address}/node/{origin}" if is_known else None), None
        return None, added_key(f"{address}/node", *origin)

    def of_member(self, list_address: str, position: int) -> Item:
        """Position in the base of a merged member of a list, or the side that added it and its number there."""
        items = self._tree.origins.get(list_address)
        return position if items is None else items[position]

    def added(self, list_address: str, side: int) -> list[d.Record]:
        """The members that a side adds to a list of the base."""
        return self._tree.added.get(list_address, ([], []))[side]

    def base_node(self, address: str) -> d.Node:
        """The node at an address of the base."""
        graph, _, position = address.rpartition("/node/")
        return self.graphs[graph].graph.node[int(position)]

    def changes_of(self, ref: NodeRef, name: str | None = None) -> Keys:
        """Return the units that made a node consume a value, or any value, that it did not consume in the base."""
        address, key = self.of_node(ref)
        if address is None:
            return [] if key is None else [key]
        before = self.base_node(address).input
        return [
            f"{address}/input/{slot}"
            for slot, each in enumerate(ref.node.input)
            if (name is None or each == name) and (slot >= len(before) or before[slot] != each)
        ]

    def output_change(self, address: str, slot: int, name: str) -> Keys:
        """The unit of an output of a graph that was added, or returns another value; none for one that was there."""
        origin = self.of_member(f"{address}/output", slot)
        if not isinstance(origin, int):
            return [added_key(f"{address}/output", *origin)]
        before = self.graphs[address].graph.output[origin]
        is_there = isinstance(before, d.ValueInfo) and before.name == name
        return [] if is_there else [f"{address}/output/{origin}/name"]
