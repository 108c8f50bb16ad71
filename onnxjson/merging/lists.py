"""Merge of two changes of a list of records.

A member stays if both sides keep it, and is removed if one side removes it and the other one left it unchanged.
"""

from typing import Any, Final, Protocol

from onnxjson.merging.slots import OURS, THEIRS, Both, Units, added_key, value_after
from onnxjson.model import document as d
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.dataflow import node_order
from onnxjson.patching.applying import KEYS
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, is_identity, keeps_order, sequence_of

Item = int | tuple[int, int]
"""A member: its position in the base, or the side that adds it and its number there."""

_ORDERED: Final = {
    (d.Graph, "input"), (d.Graph, "output"), (d.Attribute, "graphs"), (d.Attribute, "tensors"),
    (d.Attribute, "type_protos"), (d.Attribute, "sparse_tensors"), (d.TensorShape, "dim"),
}  # fmt: skip
"""Lists whose order matters; nodes only have to be in topological order."""

_UNKEYED: Final = (d.Node, d.Graph, d.SparseTensor, d.ShardedDim)
"""Messages whose lists may contain equal members."""


class Pass(Protocol):
    """The pass over both trees of which the merge of a list is a part; see `onnxjson.merging.records.TreeMerge`."""

    sides: tuple[int, int]
    units: Units
    lead: int
    origins: dict[str, list[Item]]
    added: dict[str, tuple[list[d.Record], list[d.Record]]]

    def clash(self, owner: str, tail: str, values: tuple[Any, Any, Any], key: str, rank: tuple[int, ...] = ()) -> None:
        """Record a conflict."""

    def record(self, record: d.Record, changes: Both, address: str) -> Fields | None:
        """Merge the changes that both sides make to a member."""

    def alone(self, record: d.Record, changes: Fields | None, address: str) -> Fields | None:
        """Return the change of the first side to a member."""

    def list_alone(self, record: d.Record, plan: FieldPlan, members: Members | None, address: str) -> Change | None:
        """Return the change of the first side to a list."""


def is_ambiguous(change: Change | None, attributes: tuple[d.Attribute, ...]) -> bool:
    """Whether the names of a node's attributes do not identify them, before or after a change."""
    names = [attribute.name for attribute in attributes]
    if type(change) is Members:
        names += [attribute.name for attribute in change.sequence or () if isinstance(attribute, d.Attribute)]
        for attribute in change.removed.values():
            if isinstance(attribute, d.Attribute):
                names.remove(attribute.name)
    return len(set(names)) < len(names) or any(name is None or name.startswith("#") for name in names)


class _ListChange:
    def __init__(self, old: tuple[Any, ...], change: Members | None, names: list[str] | None) -> None:
        self.changes: dict[int, Fields] = {}
        self.removed: set[int] = set()
        self.added: list[d.Record] = []
        self.items: list[Item] = list(range(len(old)))
        """The members afterwards; added ones with side 0, which the caller corrects for the other side."""
        self.moves = False
        """Whether the members that stay are in another order."""
        if change is None:
            return
        positions = {} if names is None else {name: position for position, name in enumerate(names)}
        self.changes = {positions[key] if isinstance(key, str) else key: below for key, below in change.changes.items()}
        if change.sequence is None:
            return
        self.removed = set(change.removed)
        self.moves = not keeps_order(change.sequence)
        self.items = []
        for item in change.sequence:
            if type(item) is range:
                self.items += item
            else:
                self.items.append((OURS, len(self.added)))
                self.added.append(item)


class ListMerge:
    """Merge of one list."""

    def __init__(
        self, tree: Pass, record: d.Record, plan: FieldPlan, changes: tuple[Members | None, Members | None], owner: str
    ) -> None:
        self._tree = tree
        self._owner = owner
        self._record_with = record
        self._plan = plan
        self._name = plan.field.name
        self._address = f"{owner}/{self._name}"
        self._old: tuple[Any, ...] = getattr(record, self._name)
        self._members = changes
        self._names = attribute_segments(self._old) if plan.is_named else None
        self._sides = [_ListChange(self._old, each, self._names) for each in changes]
        self._sides[THEIRS].items = [
            item if isinstance(item, int) else (THEIRS, item[1]) for item in self._sides[THEIRS].items
        ]
        self._is_ordered = (type(record), self._name) in _ORDERED
        self._removed: set[int] = set()
        self._changed: dict[int, Fields] = {}
        self._absent: list[tuple[Item, tuple[Any, Any, Any], str]] = []
        """Clashes about members that the first side does not have."""
        self._present: list[tuple[Item, tuple[Any, Any, Any], str]] = []
        """Clashes about members that only the first side has, or that both add."""

    def merged(self) -> Change | None:
        """Return the merged change; None if the list stays as it is."""
        if self._order_clashes():
            return self._whole()
        for position in sorted({position for side in self._sides for position in (*side.removed, *side.changes)}):
            self._member(position)
        left_out = self._additions()
        items = self._ordered(left_out)
        changed = self._changed
        records = {x: self._old[x] if type(x) is int and x not in changed else self._record(x) for x in items}
        if self._name == "node":
            order = node_order([records[item] for item in items])
            # Where nodes form a cycle all items keep their order.
            items = items if len(order) < len(items) else [items[place] for place in order]
        self._place_clashes(items)
        return self._change(items, records)

    def _order_clashes(self) -> bool:
        ours, theirs = self._sides
        if not (self._is_ordered and ours.moves and theirs.moves):
            return False
        common = set(ours.items) & set(theirs.items)
        return [item for item in ours.items if item in common] != [item for item in theirs.items if item in common]

    def _whole(self) -> Change | None:
        values = [value_after(self._old, each, self._plan) for each in self._members]
        self._tree.clash(self._owner, f"/{self._name}", (self._old, values[OURS], values[THEIRS]), self._address)
        return self._tree.list_alone(self._record_with, self._plan, self._members[OURS], self._owner)

    def _key(self, position: int) -> str:
        if self._names is not None:
            return f"{self._address}/{escape(self._names[position])}"
        return f"{self._address}/{position}"

    def _added_key(self, side: int, number: int) -> str:
        return added_key(self._address, self._tree.sides[side], number)

    def _member(self, position: int) -> None:
        ours, theirs = self._sides
        old, key = self._old[position], self._key(position)
        removes = [position in side.removed for side in self._sides]
        if all(removes):
            self._removed.add(position)
            return
        if not any(removes):
            both = ours.changes.get(position), theirs.changes.get(position)
            merged = self._tree.record(old, both, key)
            if merged is not None:
                self._changed[position] = merged
            return
        stays = self._sides[removes[OURS]]
        if not (position in stays.changes or key in self._tree.units):
            self._removed.add(position)
            return
        states = [
            None if is_removed else value_after(old, side.changes.get(position), None)
            for is_removed, side in zip(removes, self._sides, strict=True)
        ]
        values = old, states[OURS], states[THEIRS]
        if removes[OURS]:
            self._removed.add(position)
            self._absent.append((position, values, key))
            return
        self._tree.clash(key, "", values, key)
        kept = self._tree.alone(old, ours.changes.get(position), key)
        if kept is not None:
            self._changed[position] = kept

    def _additions(self) -> set[Item]:
        """Compare the members that both sides add; return those that are not in the result."""
        ours, theirs = [side.added for side in self._sides]
        self._tree.added[self._address] = (theirs, ours) if self._tree.sides[OURS] else (ours, theirs)
        units = self._tree.units
        left_out: set[Item] = set()
        same: dict[Item, Item] = {}
        """Members that both ours and theirs add; they are merged into one."""
        known: dict[Any, list[int]] = {}
        by_key: dict[Any, int] = {}
        for number, record in enumerate(ours):
            known.setdefault(label(record), []).append(number)
            if (key := member_key(record)) is not None:
                by_key[key] = number
        paired: set[int] = set()
        for number, record in enumerate(theirs):
            item = (THEIRS, number)
            key = self._added_key(THEIRS, number)
            alike = [each for each in known.get(label(record), ()) if each not in paired]
            equal = next((each for each in alike if ours[each] == record), None)
            if equal is not None:
                paired.add(equal)
                same[item] = (OURS, equal)
                continue
            rival = by_key.get(member_key(record))
            if rival is not None and rival not in paired:
                paired.add(rival)
                same[item] = (OURS, rival)
                units.tie([key, self._added_key(OURS, rival)])
                self._present.append(((OURS, rival), (None, ours[rival], record), key))
            elif key in units:
                left_out.add(item)
                self._absent.append((item, (None, None, record), key))
        for number, record in enumerate(ours):
            key = self._added_key(OURS, number)
            if key in units and number not in paired:
                self._present.append(((OURS, number), (None, record, None), key))
        if same:
            self._sides[THEIRS].items = [same.get(item, item) for item in self._sides[THEIRS].items]
        return left_out

    def _ordered(self, left_out: set[Item]) -> list[Item]:
        """Return the result in the order of one side; members of the other side follow their predecessors."""
        first = self._tree.lead
        moving = [side.moves for side in self._sides]
        if moving[OURS] != moving[THEIRS]:
            first = THEIRS if moving[THEIRS] else OURS
        lead, other = self._sides[first].items, self._sides[1 - first].items
        present = [item for item in lead if item not in left_out and item not in self._removed]
        have = set(present)
        after: dict[Item | None, list[Item]] = {}
        anchor: Item | None = None
        for item in other:
            if item in have:
                anchor = item
            elif item not in left_out and item not in self._removed:
                after.setdefault(anchor, []).append(item)
        # Each leading member is followed by the members after it: first those of the lead, then the others.
        items: list[Item] = []
        waiting = after.get(None, [])
        for item in present:
            if isinstance(item, int) and waiting:
                items += waiting
                waiting = []
            items.append(item)
            waiting += after.get(item, ())
        return items + waiting

    def _record(self, item: Item) -> Any:
        if isinstance(item, int):
            return value_after(self._old[item], self._changed.get(item), None)
        return self._sides[item[0]].added[item[1]]

    def _place_clashes(self, items: list[Item]) -> None:
        """Record the clashes of added and removed members at their positions, or where they would be."""
        if not self._present and not self._absent:
            return
        places = {item: place for place, item in enumerate(items)}
        for item, values, key in self._present:
            self._tree.clash(self._owner, self._tail(places[item], values[1]), values, key)
        for rank, (item, values, key) in enumerate(self._absent):
            side = self._sides[THEIRS]
            place = 0
            for before in side.items:
                if before == item:
                    break
                if before in places:
                    place = places[before] + 1
            self._tree.clash(self._owner, self._tail(place, values[0] or values[2]), values, key, (rank,))

    def _tail(self, place: int, record: Any) -> str:
        if self._names is not None:
            return f"/{self._name}/{escape(record.name)}"
        return f"/{self._name}/{place}"

    def _change(self, items: list[Item], records: dict[Item, Any]) -> Change | None:
        positions = [item if isinstance(item, int) else -1 for item in items]
        sequence = sequence_of(positions, tuple([records[item] for item in items]))
        removed = {position: self._old[position] for position in sorted(self._removed)}
        changes: dict[int | str, Fields] = {}
        for position, fields in self._changed.items():
            name = None if self._names is None else self._names[position]
            changes[position if name is None or name.startswith("#") else name] = fields
        if is_identity(sequence, removed):
            return Members(None, {}, changes) if changes else None
        sides = self._tree.sides
        self._tree.origins[self._address] = [
            item if isinstance(item, int) else (sides[item[0]], item[1]) for item in items
        ]
        return Members(sequence, removed, changes)


def member_key(record: Any) -> Any:
    """Return the key of a member of a list with unique keys; None if its messages have no key."""
    key = None if isinstance(record, _UNKEYED) else KEYS.get(type(record))
    found = None if key is None else key(record)
    # "" is the default domain, but not a name.
    return found if found or isinstance(record, d.OperatorSetId) else None


def label(record: Any) -> Any:
    """Cheap value that equal members share; ignores the bytes of tensors."""
    if isinstance(record, d.Node):
        return (record.op_type, record.output, record.input)
    return member_key(record)
