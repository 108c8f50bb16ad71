"""Build the tree of changes from operations with addresses, and check that each address is possible and unique.

This does not look at any model: a conflict with the model is found when the patch is applied.
"""

import re
from typing import Any, Final

import msgspec

from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.exact import field_readers, message_reader
from onnxjson.codecs.reading.tree import UNREADABLE, Tree
from onnxjson.model.addresses import parse_address
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Model, Record
from onnxjson.model.errors import AddressError
from onnxjson.model.limits import MESSAGE_DEPTH
from onnxjson.model.messages import Kind
from onnxjson.patching import changes as c
from onnxjson.patching.applying import difference

_POSITION: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_LARGEST: Final = 2**62
"""Upper limit of positions; no list is that long."""


class _DraftFields(msgspec.Struct, gc=False):
    """The changes of one record, while operations are read."""

    message: type[Record]
    place: Place
    """Place of the first operation on this record."""
    changes: "dict[str, _DraftFields | _DraftMembers | c.Replace]" = msgspec.field(default_factory=dict)


class _DraftMembers(msgspec.Struct, gc=False):
    """The changes of one list, while operations are read."""

    plan: c.FieldPlan
    sequence: c.Sequence | None = None
    removed: dict[int, Record] = msgspec.field(default_factory=dict)
    changes: dict[int | str, _DraftFields] = msgspec.field(default_factory=dict)


class _RefusedError(Exception):
    """An operation is invalid, and its finding is already reported."""


class Builder:
    """Collects operations one by one and reports findings about them to `context`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._root: _DraftFields | None = None

    def set_field(self, address: str, tree: dict[str, Tree], place: Place) -> None:
        """Add the operation ``{"set": address, "old": ..., "new": ...}`` at `place`."""
        context = self._context
        try:
            owner, name, plan = self._field(address, place, "set")
            if owner.message is Attribute and name == "name" and self._is_member_by_name(address):
                message = "an attribute of a node is addressed by its name, so its name cannot change"
                raise self._refuse(place, "set", "bad-change", message, "remove the attribute and add another")
            if plan is not None and plan.is_list:
                message = f"{name} is a list of records"
                raise self._refuse(place, "set", "bad-change", message, 'use the operation "list" for a list')
            if name in owner.changes:
                raise self._refuse(place, "set", "bad-change", "another operation also changes this field")
        except _RefusedError:
            return
        before = len(context.remarks)
        old, new = [self._value(owner.message, name, plan, tree, key, place) for key in ("old", "new")]
        if len(context.remarks) > before or UNREADABLE in (tree.get("old"), tree.get("new")):
            return
        if old is new or old == new:
            self._refuse(place, "set", "bad-change", "old and new are equal", "leave out a key for an absent field")
            return
        owner.changes[name] = c.Replace(old, new)

    def _value(
        self, message: type[Record], name: str, plan: c.FieldPlan | None, tree: dict[str, Tree], key: str, place: Place
    ) -> Any:
        absent = b"" if plan is None else plan.absent
        if key not in tree:
            return absent
        value = tree[key]
        if plan is not None and plan.field.kind is Kind.STRING:
            # Fast path: most changes of a big model are changes of names.
            if type(value) is str and not plan.field.repeated:
                return value
            if type(value) is list and plan.field.repeated and all([type(item) is str for item in value]):
                return tuple(value)
        value = field_readers(message)[name](value, place.at(key), self._context)
        return absent if c.is_absent(value, repeated=plan is None or plan.field.repeated) else value

    def change_list(self, address: str, tree: dict[str, Tree], place: Place) -> None:
        """Add the operation ``{"list": address, "sequence": [...], "removed": {...}}`` at `place`."""
        try:
            owner, name, plan = self._field(address, place, "list")
            if plan is None or not plan.is_list:
                message = f"{name} is not a list of records"
                raise self._refuse(place, "list", "bad-change", message, 'use the operation "set" for a field')
            members = self._members(owner, name, plan)
            if members.sequence is not None:
                raise self._refuse(
                    place, "list", "bad-change", "another operation already sets the sequence of this list"
                )
            members.sequence, members.removed = self._sequence(tree, plan, place)
        except _RefusedError:
            return

    def build(self) -> c.Fields | None:
        """Return the tree of all operations; None if there are none or something is wrong."""
        if self._root is None or self._context.remarks:
            return None
        fields = self._freeze(self._root)
        return None if self._context.remarks else fields

    def _refuse(self, place: Place, key: str, code: str, message: str, hint: str = "") -> _RefusedError:
        self._context.error(place.at(key), code, message, hint)
        return _RefusedError()

    def _is_member_by_name(self, address: str) -> bool:
        segments = parse_address(address)
        return len(segments) > 2 and segments[-3] == "attribute"

    def _field(self, address: str, place: Place, kind: str) -> tuple[_DraftFields, str, c.FieldPlan | None]:
        try:
            segments = parse_address(address)
        except AddressError as error:
            raise self._refuse(place, kind, "bad-address", str(error)) from None
        if len(segments) > 2 * MESSAGE_DEPTH + 2:
            raise self._refuse(place, kind, "bad-address", "the address is deeper than any model can be")
        if self._root is None:
            self._root = _DraftFields(Model, place)
        owner: _DraftFields = self._root
        members: _DraftMembers | None = None
        for count, segment in enumerate(segments, 1):
            if members is not None:
                owner = self._member(members, segment, place, kind)
                members = None
                continue
            plan = c.plans(owner.message).get(segment)
            if plan is None and segment != "unknown_fields":
                fits = [*c.plans(owner.message), "unknown_fields"]
                message = f'{owner.message.__name__} has no field "{visible(segment)}"'
                raise self._refuse(place, kind, "bad-address", message, self._context.nearest(segment, fits))
            if count == len(segments):
                return owner, segment, plan
            if plan is None or plan.field.message is None:
                message = f"{segment} is a value, so an address cannot go below it"
                raise self._refuse(place, kind, "bad-address", message, "the address of a change ends with a field")
            if plan.is_list:
                members = self._members(owner, segment, plan)
                continue
            below = owner.changes.get(segment)
            if below is None:
                below = owner.changes[segment] = _DraftFields(plan.field.message, place)
            if not isinstance(below, _DraftFields):
                raise self._refuse(place, kind, "bad-change", f"another operation changes all of {segment}")
            owner = below
        message = "this is the address of a member of a list" if segments else "this is the address of the whole model"
        raise self._refuse(place, kind, "bad-address", message, "the address of a change ends with a field")

    def _members(self, owner: _DraftFields, name: str, plan: c.FieldPlan) -> _DraftMembers:
        draft = owner.changes.get(name)
        if draft is None:
            draft = owner.changes[name] = _DraftMembers(plan)
        assert isinstance(draft, _DraftMembers)
        return draft

    def _member(self, members: _DraftMembers, segment: str, place: Place, kind: str) -> _DraftFields:
        is_named = members.plan.is_named
        digits = segment.removeprefix("#") if is_named else segment
        key: int | str = segment
        if not is_named or digits != segment:
            if not _POSITION.fullmatch(digits):
                message = f'"{visible(segment)}" is not a position in a list'
                raise self._refuse(place, kind, "bad-address", message)
            key = int(digits)
        message_type = members.plan.field.message
        assert message_type is not None
        draft = members.changes.get(key)
        if draft is None:
            draft = members.changes[key] = _DraftFields(message_type, place)
        return draft

    def _sequence(self, tree: dict[str, Tree], plan: c.FieldPlan, place: Place) -> tuple[c.Sequence, dict[int, Record]]:
        context = self._context
        assert plan.field.message is not None
        reader = message_reader(plan.field.message)
        items = tree.get("sequence")
        before = len(context.remarks)
        if "sequence" not in tree:
            raise self._refuse(place, "list", "missing-key", "the list has no sequence", 'add "sequence": [...]')
        if not isinstance(items, list):
            context.wrong_type(items, place.at("sequence"), 'a list of runs and members such as [[0, 11], {"add": {}}]')
            raise _RefusedError
        sequence: list[range | Record] = []
        for index, item in enumerate(items):
            at = place.at("sequence").at(index)
            if isinstance(item, dict) and set(item) == {"add"}:
                record = reader(item["add"], at.at("add"), context)
                if record is not None:
                    sequence.append(record)
            elif (run := _run(item)) is not None:
                sequence.append(run)
            else:
                context.wrong_type(item, at, 'a run such as [0, 11], or a member {"add": {...}}')
        removed = self._removed(tree, place, reader)
        if len(context.remarks) > before:
            raise _RefusedError
        self._check_cover(sequence, removed, place)
        return c.join_runs(sequence), removed

    def _removed(self, tree: dict[str, Tree], place: Place, reader: Any) -> dict[int, Record]:
        context = self._context
        at = place.at("removed")
        items = tree.get("removed", {})
        if not isinstance(items, dict):
            context.wrong_type(items, at, "an object of the removed members by their position")
            return {}
        removed: dict[int, Record] = {}
        for key, item in items.items():
            if not _POSITION.fullmatch(key):
                message = f'"{visible(key)}" is not a position in a list'
                context.error(at.at(key), "bad-address", message, on_key=True)
                continue
            record = reader(item, at.at(key), context)
            if record is not None:
                removed[int(key)] = record
        return dict(sorted(removed.items()))

    def _check_cover(self, sequence: list[range | Record], removed: dict[int, Record], place: Place) -> None:
        runs = [item for item in sequence if isinstance(item, range)]
        runs += [range(position, position + 1) for position in removed]
        expected = 0
        for run in sorted(runs, key=lambda each: each.start):
            if run.start < expected:
                message = f"position {run.start:,} is listed twice"
                raise self._refuse(place, "sequence", "bad-change", message, "keep one of them")
            if run.start > expected:
                message = f"position {expected:,} is missing"
                hint = 'list every position of the base in a run or in "removed"'
                raise self._refuse(place, "sequence", "bad-change", message, hint)
            expected = run.stop

    def _freeze(self, fields: _DraftFields) -> c.Fields | None:
        changes: dict[str, c.Change] = {}
        for name, draft in fields.changes.items():
            change: c.Change | None
            if isinstance(draft, c.Replace):
                change = draft
                if isinstance(draft.old, Record) and isinstance(draft.new, Record):
                    # A record that stays is changed field by field: `Replace` never has two records.
                    change = difference(draft.old, draft.new)
            elif isinstance(draft, _DraftFields):
                change = self._freeze(draft)
            else:
                change = self._freeze_members(draft)
            if change is not None:
                changes[name] = change
        return c.Fields(changes) if changes else None

    def _freeze_members(self, members: _DraftMembers) -> c.Members | None:
        sequence, removed = members.sequence, members.removed
        if sequence is not None and c.is_identity(sequence, removed):
            sequence = None
        removed_names = {member.name for member in removed.values() if isinstance(member, Attribute)}
        positions = None if sequence is None else c.Positions(sequence)
        changes: dict[int | str, c.Fields] = {}
        for key, below in members.changes.items():
            stays = positions is None or (
                key not in removed_names if isinstance(key, str) else positions.after(key) is not None
            )
            if not stays:
                message = "this member is removed by another operation, or is not in its list"
                self._context.error(below.place, "bad-change", message)
                continue
            frozen = self._freeze(below)
            if frozen is not None:
                changes[key] = frozen
        if sequence is None:
            return c.Members(None, {}, changes) if changes else None
        return c.Members(sequence, removed, changes)


def _run(tree: Tree) -> range | None:
    """Return the positions of ``[first, last]``; None if the value is not a run."""
    if not isinstance(tree, list) or len(tree) != 2:
        return None
    first, last = tree
    if type(first) is not int or type(last) is not int or not 0 <= first <= last < _LARGEST:
        return None
    return range(first, last + 1)
