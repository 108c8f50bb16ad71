"""Two trees of changes of one base -> one tree, slot by slot; what both changed differently is a clash, and ours stays.

Slots: each attribute, each input and output of a node, its operator, each constant, each type, each scalar field, each
pair of metadata; the order of inputs and outputs of a graph. A change that both sides make is none of these.
"""

from typing import Any, Final

from onnxjson import document as d
from onnxjson.addresses import attribute_segments
from onnxjson.merging.lists import ListMerge, is_ambiguous
from onnxjson.merging.slots import OURS, THEIRS, Both, Clash, Units, both_spans, record_after, value_after
from onnxjson.messages import FIELDS
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, plans

_CONTENT: Final = frozenset(field.name for field in FIELDS[d.Tensor]) - {"name", "doc_string", "metadata_props"}
"""The fields of a constant that are one slot."""

_OPERATOR: Final = frozenset({"op_type", "domain", "overload"})
_GRAPHS: Final = ("g", "graphs")

_WHOLE: Final = (d.StringStringEntry, d.OperatorSetId, d.SparseTensor, d.Segment, d.ShardingSpec)
"""Messages that are one slot each, as are those with a oneof: half of one and half of another says nothing."""


def _is_whole(message: type[d.Record]) -> bool:
    return message in _WHOLE or any(field.oneof for field in FIELDS[message])


class TreeMerge:
    """One pass over both trees. Where a slot is in conflict, the result has what the side has that comes first.

    Attributes:
        sides: which side comes first, and which second.
        units: what must become a conflict though each side can be had.
        clashes: what became one.
        lead: which of the two, 0 or 1, has its new members before those of the other where both add some at one place.
        origins: by the address of a list in the base what its members are in the merged model: a position in the base,
            or a side and the number of a member that it adds. Lists that keep every member at its place are missing.
        added: by the address of a list in the base: the members that ours and theirs add.
    """

    def __init__(self, units: Units, first: int, *, swapped: bool = False) -> None:
        """Begins a pass.

        Args:
            units: what must become a conflict though each side can be had.
            first: the side whose new members come first where both add some at one place.
            swapped: whether theirs comes first.
        """
        self.sides = (THEIRS, OURS) if swapped else (OURS, THEIRS)
        self.units = units
        self.lead = self.sides.index(first)
        self.clashes: list[Clash] = []
        self.origins: dict[str, list[int | tuple[int, int]]] = {}
        self.added: dict[str, tuple[list[d.Record], list[d.Record]]] = {}

    def clash(self, owner: str, tail: str, values: tuple[Any, Any, Any], key: str, rank: tuple[int, ...] = ()) -> None:
        """Note a conflict of the values of the base and of both sides, the first one first."""
        self.clashes.append(Clash(owner, tail, *values, key, rank))

    def record(self, record: d.Record, changes: Both, address: str) -> Fields | None:
        """What both sides do to a record of the base."""
        mine, its = changes
        if mine is None and its is None:
            return None
        is_leaf = not any([_leads_to_graphs(record, each) for each in changes])
        if is_leaf and not self.units.has_below(address) and (mine is None or its is None or mine == its):
            return its if mine is None else mine
        if address in self.units or self._is_one_slot(record, changes):
            self.clash(address, "", (record, record_after(record, mine), record_after(record, its)), address)
            return self.alone(record, mine, address)
        found: dict[str, Change] = {}
        ours, theirs = [{} if each is None else each.changes for each in changes]
        for name in record.__struct_fields__:
            if name in ours or name in theirs:
                change = self._field(record, name, (ours.get(name), theirs.get(name)), address)
                if change is not None:
                    found[name] = change
        return Fields(found) if found else None

    def alone(self, record: d.Record, changes: Fields | None, address: str) -> Fields | None:
        """The change of the side that comes first as it is; where its members come from is noted."""
        if _leads_to_graphs(record, changes):
            alone = self._empty()
            alone.record(record, (changes, None), address)
            self._note(alone)
        return changes

    def list_alone(self, record: d.Record, plan: FieldPlan, members: Members | None, address: str) -> Change | None:
        """The same for a list of a record."""
        alone = self._empty()
        change = ListMerge(alone, record, plan, (members, None), address).merged()
        self._note(alone)
        return change

    def _empty(self) -> "TreeMerge":
        return TreeMerge(Units(), self.sides[self.lead], swapped=self.sides[OURS] == THEIRS)

    def _note(self, other: "TreeMerge") -> None:
        self.origins.update(other.origins)
        self.added.update(other.added)

    def _is_one_slot(self, record: d.Record, changes: Both) -> bool:
        """Whether both sides change what cannot be taken apart, and differ."""
        mine, its = changes
        if mine is None or its is None or mine == its:
            return False
        ours, theirs = mine.changes, its.changes
        if isinstance(record, d.Tensor):
            return _differ(ours, theirs, _CONTENT)
        if isinstance(record, d.Attribute):
            inner = all(
                type(change) is not Replace and name in _GRAPHS
                for each in (ours, theirs)
                for name, change in each.items()
                if name != "doc_string"
            )
            return not inner
        if isinstance(record, d.Node):
            if _differ(ours, theirs, _OPERATOR):
                return True
            operators = [not _OPERATOR.isdisjoint(each) for each in (ours, theirs)]
            attributes = ["attribute" in each for each in (ours, theirs)]
            if operators[OURS] != operators[THEIRS] and attributes[operators[OURS]]:
                # An attribute belongs to the operator that has it.
                return True
            return any(attributes) and any(
                [is_ambiguous(each.get("attribute"), record.attribute) for each in (ours, theirs)]
            )
        return _is_whole(type(record))

    def _field(
        self, record: d.Record, name: str, changes: tuple[Change | None, Change | None], address: str
    ) -> Change | None:
        mine, its = changes
        at = f"{address}/{name}"
        plan = plans(type(record)).get(name)
        old = getattr(record, name)
        if at not in self.units:
            if plan is not None and plan.is_list:
                return self._list(record, plan, changes, address)
            if not any([type(each) is Replace for each in changes]):
                fields = [each if type(each) is Fields else None for each in changes]
                return self.record(old, (fields[0], fields[1]), at)
            is_alone = mine is None or its is None or mine == its
            if plan is not None and name in ("input", "output") and (not is_alone or self.units.has_below(at)):
                return self._names(old, name, changes, address)
            if mine is None or its is None or mine == its:
                return its if mine is None else mine
        self.clash(address, f"/{name}", (old, value_after(old, mine, plan), value_after(old, its, plan)), at)
        return mine

    def _list(
        self, record: d.Record, plan: FieldPlan, changes: tuple[Change | None, Change | None], address: str
    ) -> Change | None:
        members = [each if type(each) is Members else None for each in changes]
        return ListMerge(self, record, plan, (members[0], members[1]), address).merged()

    def _names(
        self, old: tuple[str, ...], name: str, changes: tuple[Change | None, Change | None], address: str
    ) -> Change | None:
        """Inputs or outputs of a node or function: each is a slot."""
        mine, its = [value_after(old, each, None) for each in changes]
        at = f"{address}/{name}"
        length = len(mine)
        if len(its) != length or (len(old) != length and self.units.has_below(at)):
            result = None if self.units.has_below(at) else both_spans(old, mine, its)
            if result is None:
                self.clash(address, f"/{name}", (old, mine, its), at)
                result = mine
            return None if result == old else Replace(old, result)
        if len(old) != length and (spans := both_spans(old, mine, its)) is not None:
            return Replace(old, spans)
        found = []
        for place in range(length):
            was = old[place] if place < len(old) else None
            key = f"{at}/{place}"
            ours, theirs = mine[place], its[place]
            if key in self.units or (ours != theirs and was not in (ours, theirs)):
                self.clash(address, f"/{name}/{place}", (was, ours, theirs), key, (place,))
                found.append(ours)
            else:
                found.append(theirs if ours == was else ours)
        new = tuple(found)
        return None if new == old else Replace(old, new)


def _leads_to_graphs(record: d.Record, changes: Fields | None) -> bool:
    """Whether a change may be one of nodes or of what a graph has: where its members come from must be known."""
    if changes is None:
        return False
    match record:
        case d.Model() | d.Graph() | d.Function() | d.TrainingInfo():
            return True
        case d.Node():
            return "attribute" in changes.changes
        case d.Attribute():
            return not changes.changes.keys().isdisjoint(_GRAPHS)
    return False


def _differ(ours: dict[str, Change], theirs: dict[str, Change], names: frozenset[str]) -> bool:
    """Whether both sides touch some fields that are one slot, in different ways."""
    mine, its = [{name: change for name, change in each.items() if name in names} for each in (ours, theirs)]
    return bool(mine and its) and mine != its


def member_address(address: str, members: tuple[Any, ...], position: int, *, is_named: bool) -> str:
    """The address, in the base, of a member of the list at an address."""
    from onnxjson.addresses import escape

    return f"{address}/{escape(attribute_segments(members)[position])}" if is_named else f"{address}/{position}"
