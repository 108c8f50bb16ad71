"""Compose two consecutive trees of changes into one tree, without a model."""

from typing import Any, TypeVar

from onnxjson.model.display import counted
from onnxjson.model.document import Attribute, Record
from onnxjson.model.errors import PatchError
from onnxjson.patching.applying import apply_fields, inapplicable, invert_fields, length_mismatch, mismatch
from onnxjson.patching.changes import (
    Change,
    FieldPlan,
    Fields,
    Members,
    Replace,
    base_length,
    is_identity,
    plans,
    segment,
    sequence_of,
)
from onnxjson.patching.deriving import difference

R = TypeVar("R", bound=Record)


def compose(message: type[Record], first: Fields, second: Fields, address: str = "") -> Fields | None:
    """Return the change of a record by both trees; None if the second undoes the first.

    Raises:
        PatchError: the second does not fit the result of the first; the address is one in the base of the second.
    """
    changes: dict[str, Change] = dict(first.changes)
    for name, after in second.changes.items():
        before = first.changes.get(name)
        if before is None:
            changes[name] = after
            continue
        both = _both(plans(message).get(name), before, after, f"{address}/{name}")
        if both is None:
            del changes[name]
        else:
            changes[name] = both
    return Fields(changes) if changes else None


def _both(plan: FieldPlan | None, before: Change, after: Change, address: str) -> Change | None:
    if type(before) is Replace and type(after) is Replace:
        if before.new is not after.old and before.new != after.old:
            raise mismatch(address, after.old, before.new)
        return _replacement(before.old, after.new)
    if type(before) is Replace and type(after) is Fields:
        if before.new is None:
            raise inapplicable(address, "there is nothing to change")
        return _replacement(before.old, apply_fields(before.new, after, address))
    if type(before) is Fields and type(after) is Replace:
        if after.old is None:
            raise inapplicable(address, "it was expected to be absent")
        return _replacement(_undo(after.old, before, address), after.new)
    assert plan is not None
    assert plan.field.message is not None
    if type(before) is Fields and type(after) is Fields:
        return compose(plan.field.message, before, after, address)
    assert type(before) is Members
    assert type(after) is Members
    return _Lists(plan, before, after, address).compose()


def _replacement(old: Any, new: Any) -> Change | None:
    if isinstance(old, Record) and isinstance(new, Record):
        # A record that was removed and added again counts as one that stayed: `Replace` never holds two records.
        return difference(old, new)
    return None if old is new or old == new else Replace(old, new)


def _undo(record: R, changes: Fields, address: str) -> R:
    """Return a record that the second patch removes as it was before the first patch."""
    try:
        return apply_fields(record, invert_fields(changes), address)
    except PatchError as error:
        if error.expected is None and error.found is None:
            raise
        # The undo expects the result of the first patch; for the user that is the value found.
        raise mismatch(error.address, error.found, error.expected) from None


class _Lists:
    """Two consecutive changes of a list."""

    def __init__(self, plan: FieldPlan, before: Members, after: Members, address: str) -> None:
        assert plan.field.message is not None
        self.message = plan.field.message
        self.plan = plan
        self.before = before
        self.after = after
        self.address = address
        self.changes: dict[int | str, Fields] = dict(before.changes)
        self.between: list[Any] | None = None
        """The members between the two patches: positions in the base, and added records. None if both keep all."""
        if before.sequence is not None:
            self.between = [each for item in before.sequence for each in (item if type(item) is range else (item,))]
        elif after.sequence is not None:
            self.between = list(range(base_length(after.sequence, after.removed)))
        added = [(each.name, place) for place, each in enumerate(self.between or ()) if isinstance(each, Attribute)]
        self.named = {name: place for name, place in added if plan.is_named}
        self.ambiguous = {name for name, place in added if plan.is_named and self.named[name] != place}
        self.ambiguous |= {
            item.name for item in before.removed.values() if isinstance(item, Attribute) and item.name not in self.named
        }
        """Names that address no member, or several, for the second patch."""

    def compose(self) -> Members | None:
        before, after = self.before, self.after
        if after.sequence is not None:
            assert self.between is not None
            expected = base_length(after.sequence, after.removed)
            if len(self.between) != expected:
                raise length_mismatch(self.address, expected, len(self.between))
            if before.sequence is None:
                self._check_positions(expected)
        self._change_members()
        removed = dict(before.removed)
        for position, record in after.removed.items():
            self._remove(position, record, removed)
        if self.between is None:
            return Members(None, {}, self.changes) if self.changes else None
        items = self.between
        if after.sequence is not None:
            runs = [self.between[item.start : item.stop] if type(item) is range else [item] for item in after.sequence]
            items = [each for run in runs for each in run]
            self._check_names(items)
        return self._keep_returned(items, dict(sorted(removed.items())))

    def _check_positions(self, length: int) -> None:
        """Raise unless the positions that the first patch changes exist in a list of the length the second expects."""
        for key in self.before.changes:
            if isinstance(key, int) and key >= length:
                raise inapplicable(self._place(key), f"the list has {counted(length, 'member')}")

    def _place(self, key: int | str) -> str:
        return f"{self.address}/{segment(key, is_named=self.plan.is_named)}"

    def _origin(self, position: int) -> int | None:
        """Return the old position of a member by its position between the two; None if the first patch added it."""
        if self.between is None:
            return position
        if position >= len(self.between):
            reason = "after the first patch there is no member at this position"
            raise inapplicable(f"{self.address}/{position}", reason)
        item = self.between[position]
        return item if isinstance(item, int) else None

    def _change_members(self) -> None:
        """Translate the changes of the second to base positions, or apply them to members that the first added."""
        for key, below in self.after.changes.items():
            place = self._place(key)
            if isinstance(key, str):
                if key in self.ambiguous:
                    raise inapplicable(place, "there is no attribute with that name, or more than one")
                added = self.named.get(key)
                origin: int | str | None = key if added is None else None
            else:
                added = key
                origin = self._origin(key)
                if origin is None and self._has_name(key):
                    raise inapplicable(place, "this attribute has a unique name, so a patch must address it by name")
            if origin is None:
                assert added is not None
                assert self.between is not None
                self.between[added] = apply_fields(self.between[added], below, place)
                continue
            earlier = self.changes.get(origin)
            both = below if earlier is None else compose(self.message, earlier, below, place)
            if both is None:
                del self.changes[origin]
            else:
                self.changes[origin] = both

    def _check_names(self, kept: list[Any]) -> None:
        """Raise if a member that the first added and the second keeps has a name that the second adds or removes.

        See `changes` for the rule.
        """
        assert self.after.sequence is not None
        new = [each for each in self.after.sequence if isinstance(each, Attribute)]
        names = {each.name for each in (*self.after.removed.values(), *new) if isinstance(each, Attribute)}
        own = {id(each) for each in new}
        for record in kept if self.plan.is_named else ():
            name = getattr(record, "name", None)
            if name is not None and name in names and not name.startswith("#") and id(record) not in own:
                raise inapplicable(
                    self._place(name), "one attribute with this name stays, and another is added or removed"
                )

    def _has_name(self, position: int) -> bool:
        """Whether the member that the first added at a position is addressed by its name."""
        assert self.between is not None
        name = getattr(self.between[position], "name", None) if self.plan.is_named else None
        return name is not None and not name.startswith("#") and name not in self.ambiguous

    def _remove(self, position: int, record: Record, removed: dict[int, Record]) -> None:
        """Remove a member by the second patch: as it was before the first, or not at all if the first added it."""
        origin = self._origin(position)
        if origin is None:
            assert self.between is not None
            found = self.between[position]
            if found is not record and found != record:
                raise mismatch(self._place(position), record, found)
            return
        key: int | str = origin
        if isinstance(record, Attribute) and record.name in self.changes:
            key = record.name
        earlier = self.changes.pop(key, None)
        removed[origin] = record if earlier is None else _undo(record, earlier, self._place(key))

    def _keep_returned(self, items: list[Any], removed: dict[int, Record]) -> Members | None:
        """Return the change in which members that were removed and added again, equal, count as members that stayed."""
        coming = {place: item for place, item in enumerate(items) if isinstance(item, Record)}
        for position, place in _match_returned(removed, coming, self.plan.is_named) if coming and removed else ():
            items[place] = position
            del removed[position]
        sequence = sequence_of([item if isinstance(item, int) else -1 for item in items], tuple(items))
        if is_identity(sequence, removed):
            return Members(None, {}, self.changes) if self.changes else None
        return Members(sequence, removed, self.changes)


def _match_returned(removed: dict[int, Record], coming: dict[int, Any], is_named: bool) -> list[tuple[int, int]]:
    """Pair old positions of removed members with the places of equal members that are added."""
    removed_by_label: dict[Any, list[int]] = {}
    added_by_label: dict[Any, list[int]] = {}
    for position, record in removed.items():
        removed_by_label.setdefault(_label(record), []).append(position)
    for place, record in coming.items():
        added_by_label.setdefault(_label(record), []).append(place)
    found = []
    for label, places in added_by_label.items():
        positions = removed_by_label.get(label, [])
        pairs = list(zip(positions, places, strict=False))
        equal = [pair for pair in pairs if removed[pair[0]] is coming[pair[1]] or removed[pair[0]] == coming[pair[1]]]
        if is_named and not (len(equal) == len(positions) == len(places)):
            continue  # either all attributes of one name stay or none (see `changes`)
        found += equal
    return found


def _label(record: Any) -> Any:
    """Return a cheap key that equal records share; it ignores the bytes of tensors."""
    name = getattr(record, "name", None)
    return name if name is not None else (getattr(record, "key", None), getattr(record, "output", None))
