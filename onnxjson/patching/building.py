"""Operations with addresses -> the tree of changes, checked: every address one that a model can have, none twice.

Nothing here knows the model; what only a model can tell is found when the patch is applied.
"""

import re
from typing import Any, Final

import msgspec

from onnxjson.addresses import parse_address
from onnxjson.display import visible
from onnxjson.document import Attribute, Model, Record
from onnxjson.errors import AddressError
from onnxjson.messages import Kind
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, Sequence, is_absent, plans
from onnxjson.patching.deriving import difference
from onnxjson.patching.sequences import Positions, is_identity, joined
from onnxjson.reading.context import Context, Place
from onnxjson.reading.exact import field_readers, message_reader
from onnxjson.reading.tree import UNREADABLE, Tree
from onnxjson.wire.varints import MAX_DEPTH

_POSITION: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_LARGEST: Final = 2**62
"""No list has so many members."""


class _Fields(msgspec.Struct, gc=False):
    """The changes of one record, as they are found."""

    message: type[Record]
    place: Place
    """Of the first operation that needs this record."""
    changes: "dict[str, _Fields | _Members | Replace]" = msgspec.field(default_factory=dict)


class _Members(msgspec.Struct, gc=False):
    """The changes of one list, as they are found."""

    plan: FieldPlan
    sequence: Sequence | None = None
    removed: dict[int, Record] = msgspec.field(default_factory=dict)
    changes: dict[int | str, _Fields] = msgspec.field(default_factory=dict)


class _RefusedError(Exception):
    """Something was wrong with an operation, and was said."""


class Builder:
    """Takes operations one by one; says to `context` what is wrong with them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._root: _Fields | None = None

    def set_field(self, address: str, tree: dict[str, Tree], place: Place) -> None:
        """The operation ``{"set": address, "old": ..., "new": ...}``, which stands at `place`."""
        context = self._context
        try:
            owner, name, plan = self._field(address, place, "set")
            if owner.message is Attribute and name == "name" and self._is_member_by_name(address):
                message = "an attribute of a node is addressed by its name, so that it cannot change"
                raise self._refuse(place, "set", "bad-change", message, "remove the attribute and add another")
            if plan is not None and plan.is_list:
                message = f"{name} is a list of records"
                raise self._refuse(place, "set", "bad-change", message, 'a list has the operation "list"')
            if name in owner.changes:
                raise self._refuse(place, "set", "bad-change", "another operation changes this, too")
        except _RefusedError:
            return
        before = len(context.remarks)
        old, new = [self._value(owner.message, name, plan, tree, key, place) for key in ("old", "new")]
        if len(context.remarks) > before or UNREADABLE in (tree.get("old"), tree.get("new")):
            return
        if old is new or old == new:
            self._refuse(place, "set", "bad-change", "old and new are the same", "a missing key is an absent field")
            return
        owner.changes[name] = Replace(old, new)

    def _value(
        self, message: type[Record], name: str, plan: FieldPlan | None, tree: dict[str, Tree], key: str, place: Place
    ) -> Any:
        """The value of a field as the record holds it; what is wrong with it is said."""
        absent = b"" if plan is None else plan.absent
        if key not in tree:
            return absent
        value = tree[key]
        if plan is not None and plan.field.kind is Kind.STRING:
            # Names are most of what changes in a big model.
            if type(value) is str and not plan.field.repeated:
                return value
            if type(value) is list and plan.field.repeated and all([type(item) is str for item in value]):
                return tuple(value)
        value = field_readers(message)[name](value, place.at(key), self._context)
        return absent if is_absent(value, repeated=plan is None or plan.field.repeated) else value

    def change_list(self, address: str, tree: dict[str, Tree], place: Place) -> None:
        """The operation ``{"list": address, "sequence": [...], "removed": {...}}``, which stands at `place`."""
        try:
            owner, name, plan = self._field(address, place, "list")
            if plan is None or not plan.is_list:
                message = f"{name} is no list of records"
                raise self._refuse(place, "list", "bad-change", message, 'a field has the operation "set"')
            members = self._members(owner, name, plan, place)
            if members.sequence is not None:
                raise self._refuse(place, "list", "bad-change", "another operation has the sequence of this list")
            members.sequence, members.removed = self._sequence(tree, plan, place)
        except _RefusedError:
            return

    def finished(self) -> Fields | None:
        """The tree of all operations; None where there are none, or something is wrong."""
        if self._root is None or self._context.remarks:
            return None
        fields = self._frozen(self._root)
        return None if self._context.remarks else fields

    def _refuse(self, place: Place, key: str, code: str, message: str, hint: str = "") -> _RefusedError:
        self._context.error(place.at(key), code, message, hint)
        return _RefusedError()

    def _is_member_by_name(self, address: str) -> bool:
        segments = parse_address(address)
        return len(segments) > 2 and segments[-3] == "attribute"

    def _field(self, address: str, place: Place, kind: str) -> tuple[_Fields, str, FieldPlan | None]:
        """The record that has the field at an address, the field's name, and what is known of it."""
        try:
            segments = parse_address(address)
        except AddressError as error:
            raise self._refuse(place, kind, "bad-address", str(error)) from None
        if len(segments) > 2 * MAX_DEPTH + 2:
            raise self._refuse(place, kind, "bad-address", "the address is deeper than any model")
        if self._root is None:
            self._root = _Fields(Model, place)
        owner: _Fields = self._root
        members: _Members | None = None
        for count, segment in enumerate(segments, 1):
            if members is not None:
                owner = self._member(members, segment, place, kind)
                members = None
                continue
            plan = plans(owner.message).get(segment)
            if plan is None and segment != "unknown_fields":
                fits = [*plans(owner.message), "unknown_fields"]
                message = f'{owner.message.__name__} has no field "{visible(segment)}"'
                raise self._refuse(place, kind, "bad-address", message, self._context.nearest(segment, fits))
            if count == len(segments):
                return owner, segment, plan
            if plan is None or plan.field.message is None:
                message = f"{segment} is a value, and nothing stands below it"
                raise self._refuse(place, kind, "bad-address", message, "the address of a change ends with a field")
            if plan.is_list:
                members = self._members(owner, segment, plan, place)
                continue
            below = owner.changes.get(segment)
            if below is None:
                below = owner.changes[segment] = _Fields(plan.field.message, place)
            if not isinstance(below, _Fields):
                raise self._refuse(place, kind, "bad-change", f"another operation changes all of {segment}")
            owner = below
        message = "a member of a list stands there" if segments else "that is the model"
        raise self._refuse(place, kind, "bad-address", message, "the address of a change ends with a field")

    def _members(self, owner: _Fields, name: str, plan: FieldPlan, place: Place) -> _Members:
        found = owner.changes.get(name)
        if found is None:
            found = owner.changes[name] = _Members(plan)
        assert isinstance(found, _Members)
        return found

    def _member(self, members: _Members, segment: str, place: Place, kind: str) -> _Fields:
        is_named = members.plan.is_named
        digits = segment.removeprefix("#") if is_named else segment
        key: int | str = segment
        if not is_named or digits != segment:
            if not _POSITION.fullmatch(digits):
                message = f'"{visible(segment)}" is no position in a list'
                raise self._refuse(place, kind, "bad-address", message)
            key = int(digits)
        message_type = members.plan.field.message
        assert message_type is not None
        found = members.changes.get(key)
        if found is None:
            found = members.changes[key] = _Fields(message_type, place)
        return found

    def _sequence(self, tree: dict[str, Tree], plan: FieldPlan, place: Place) -> tuple[Sequence, dict[int, Record]]:
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
        found: list[range | Record] = []
        for index, item in enumerate(items):
            at = place.at("sequence").at(index)
            if isinstance(item, dict) and set(item) == {"add"}:
                record = reader(item["add"], at.at("add"), context)
                if record is not None:
                    found.append(record)
            elif (run := _run(item)) is not None:
                found.append(run)
            else:
                context.wrong_type(item, at, 'a run such as [0, 11], or a member {"add": {...}},')
        removed = self._removed(tree, place, reader)
        if len(context.remarks) > before:
            raise _RefusedError
        self._check_cover(found, removed, place)
        return joined(found), removed

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
                message = f'"{visible(key)}" is no position in a list'
                context.error(at.at(key), "bad-address", message, on_key=True)
                continue
            record = reader(item, at.at(key), context)
            if record is not None:
                removed[int(key)] = record
        return dict(sorted(removed.items()))

    def _check_cover(self, sequence: list[range | Record], removed: dict[int, Record], place: Place) -> None:
        """Every old position stands exactly once, in a run or among the removed."""
        runs = [item for item in sequence if isinstance(item, range)]
        runs += [range(position, position + 1) for position in removed]
        expected = 0
        for run in sorted(runs, key=lambda each: each.start):
            if run.start < expected:
                message = f"position {run.start:,} stands twice"
                raise self._refuse(place, "sequence", "bad-change", message, "keep one of them")
            if run.start > expected:
                message = f"position {expected:,} is missing"
                hint = 'every position of the base stands in a run or in "removed"'
                raise self._refuse(place, "sequence", "bad-change", message, hint)
            expected = run.stop

    def _frozen(self, fields: _Fields) -> Fields | None:
        changes: dict[str, Change] = {}
        for name, found in fields.changes.items():
            change: Change | None
            if isinstance(found, Replace):
                change = found
                if isinstance(found.old, Record) and isinstance(found.new, Record):
                    # A record that stays is changed field by field: `Replace` never holds two.
                    change = difference(found.old, found.new)
            elif isinstance(found, _Fields):
                change = self._frozen(found)
            else:
                change = self._frozen_members(found)
            if change is not None:
                changes[name] = change
        return Fields(changes) if changes else None

    def _frozen_members(self, members: _Members) -> Members | None:
        sequence, removed = members.sequence, members.removed
        if sequence is not None and is_identity(sequence, removed):
            sequence = None
        gone = {member.name for member in removed.values() if isinstance(member, Attribute)}
        positions = None if sequence is None else Positions(sequence)
        changes: dict[int | str, Fields] = {}
        for key, below in members.changes.items():
            stays = positions is None or (key not in gone if isinstance(key, str) else positions.after(key) is not None)
            if not stays:
                message = "this member is removed by another operation, or is not in its list"
                self._context.error(below.place, "bad-change", message)
                continue
            frozen = self._frozen(below)
            if frozen is not None:
                changes[key] = frozen
        if sequence is None:
            return Members(None, {}, changes) if changes else None
        return Members(sequence, removed, changes)


def _run(tree: Tree) -> range | None:
    """The positions of ``[first, last]``."""
    if not isinstance(tree, list) or len(tree) != 2:
        return None
    first, last = tree
    if type(first) is not int or type(last) is not int or not 0 <= first <= last < _LARGEST:
        return None
    return range(first, last + 1)
