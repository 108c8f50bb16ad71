"""Compose two consecutive trees of changes into one tree, without a model."""

from bisect import bisect_right
from typing import Any, TypeVar

from onnxjson.model.display import counted
from onnxjson.model.document import Attribute, Record
from onnxjson.model.errors import PatchError
from onnxjson.patching import changes as c
from onnxjson.patching.applying import apply_fields, difference, inapplicable, invert_fields, length_mismatch, mismatch

R = TypeVar("R", bound=Record)


def compose(message: type[Record], first: c.Fields, second: c.Fields, address: str = "") -> c.Fields | None:
    """Return the change of a record by both trees; None if the second undoes the first.

    Raises:
        PatchError: the second does not fit the result of the first; the address is one in the base of the second.
    """
    changes: dict[str, c.Change] = dict(first.changes)
    for name, after in second.changes.items():
        before = first.changes.get(name)
        if before is None:
            changes[name] = after
            continue
        both = _both(c.plans(message).get(name), before, after, f"{address}/{name}")
        if both is None:
            del changes[name]
        else:
            changes[name] = both
    return c.Fields(changes) if changes else None


def _both(plan: c.FieldPlan | None, before: c.Change, after: c.Change, address: str) -> c.Change | None:
    if type(before) is c.Replace and type(after) is c.Replace:
        if before.new is not after.old and before.new != after.old:
            raise mismatch(address, after.old, before.new)
        return _replacement(before.old, after.new)
    if type(before) is c.Replace and type(after) is c.Fields:
        if before.new is None:
            raise inapplicable(address, "there is nothing to change")
        return _replacement(before.old, apply_fields(before.new, after, address))
    if type(before) is c.Fields and type(after) is c.Replace:
        if after.old is None:
            raise inapplicable(address, "it was expected to be absent")
        return _replacement(_undo(after.old, before, address), after.new)
    assert plan is not None
    assert plan.field.message is not None
    if type(before) is c.Fields and type(after) is c.Fields:
        return compose(plan.field.message, before, after, address)
    assert type(before) is c.Members
    assert type(after) is c.Members
    return _Lists(plan, before, after, address).compose()


def _replacement(old: Any, new: Any) -> c.Change | None:
    if isinstance(old, Record) and isinstance(new, Record):
        # A record that was removed and added again counts as one that stayed: `Replace` never has two records.
        return difference(old, new)
    return None if old is new or old == new else c.Replace(old, new)


def _undo(record: R, changes: c.Fields, address: str) -> R:
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

    def __init__(self, plan: c.FieldPlan, before: c.Members, after: c.Members, address: str) -> None:
        assert plan.field.message is not None
        self.message = plan.field.message
        self.plan = plan
        self.before = before
        self.after = after
        self.address = address
        items = [] if before.sequence is None else list(c.with_positions(before.sequence))
        self.places = [place for place, _ in items]
        self.items = [item for _, item in items]
        self.changes: dict[int | str, c.Fields] = dict(before.changes)
        self.added: dict[int, Record] = {place: item for place, item in items if isinstance(item, Record)}
        """Members that the first patch added, by their position between the two patches."""
        added = [(item.name, place) for place, item in self.added.items() if isinstance(item, Attribute)]
        self.named = {name: place for name, place in added if plan.is_named}
        self.ambiguous = {name for name, place in added if plan.is_named and self.named[name] != place}
        self.ambiguous |= {
            item.name for item in before.removed.values() if isinstance(item, Attribute) and item.name not in self.named
        }
        """Names that address no member, or several, for the second patch."""

    def compose(self) -> c.Members | None:
        before, after = self.before, self.after
        if before.sequence is not None and after.sequence is not None:
            length, expected = c.target_length(before.sequence), c.base_length(after.sequence, after.removed)
            if length != expected:
                raise length_mismatch(self.address, expected, length)
        elif after.sequence is not None:
            self._check_positions(c.base_length(after.sequence, after.removed))
        self._change_members()
        removed = dict(before.removed)
        for position, record in after.removed.items():
            self._remove(position, record, removed)
        self._check_names()
        if before.sequence is None or after.sequence is None:
            sequence = (
                after.sequence if before.sequence is None else self._kept(range(c.target_length(before.sequence)))
            )
        else:
            sequence = c.join_runs(
                [part for item in after.sequence for part in (self._kept(item) if type(item) is range else (item,))]
            )
        if sequence is None:
            return c.Members(None, {}, self.changes) if self.changes else None
        return self._keep_returned(c.join_runs(sequence), dict(sorted(removed.items())))

    def _check_positions(self, length: int) -> None:
        for key in self.before.changes:
            if isinstance(key, int) and key >= length:
                place = f"{self.address}/{c.segment(key, is_named=self.plan.is_named)}"
                raise inapplicable(place, f"the list has {counted(length, 'member')}")

    def _origin(self, position: int) -> int | None:
        if self.before.sequence is None:
            return position
        index = bisect_right(self.places, position) - 1
        item = self.items[index] if index >= 0 else None
        if type(item) is range:
            origin = item.start + position - self.places[index]
            if origin < item.stop:
                return origin
        if position in self.added:
            return None
        raise inapplicable(f"{self.address}/{position}", "after the first patch there is no member at this position")

    def _change_members(self) -> None:
        """Translate the changes of the second to base positions, or apply them to members that the first added."""
        for key, below in self.after.changes.items():
            place = f"{self.address}/{c.segment(key, is_named=self.plan.is_named)}"
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
                self.added[added] = apply_fields(self.added[added], below, place)
                continue
            earlier = self.changes.get(origin)
            both = below if earlier is None else compose(self.message, earlier, below, place)
            if both is None:
                del self.changes[origin]
            else:
                self.changes[origin] = both

    def _check_names(self) -> None:
        """Raise if a member that the first added and the second keeps has a name that the second adds or removes."""
        if not self.plan.is_named or self.after.sequence is None:
            return
        moving = [*self.after.removed.values(), *self.after.sequence]
        names = {each.name for each in moving if isinstance(each, Attribute) and each.name is not None}
        for record in self.added.values():
            name = getattr(record, "name", None)
            if name in names and not name.startswith("#"):
                place = f"{self.address}/{c.segment(name, is_named=True)}"
                raise inapplicable(place, "one attribute with this name stays, and another is added or removed")

    def _has_name(self, position: int) -> bool:
        """Whether the member that the first added at a position is addressed by its name."""
        name = getattr(self.added[position], "name", None) if self.plan.is_named else None
        return name is not None and not name.startswith("#") and name not in self.ambiguous

    def _remove(self, position: int, record: Record, removed: dict[int, Record]) -> None:
        """Remove a member by the second patch: as it was before the first, or not at all if the first added it."""
        origin = self._origin(position)
        if origin is None:
            place = f"{self.address}/{c.segment(position, is_named=self.plan.is_named)}"
            found = self.added.pop(position)
            if found is not record and found != record:
                raise mismatch(place, record, found)
            return
        key: int | str = origin
        if isinstance(record, Attribute) and record.name in self.changes:
            key = record.name
        place = f"{self.address}/{c.segment(key, is_named=self.plan.is_named)}"
        earlier = self.changes.pop(key, None)
        removed[origin] = record if earlier is None else _undo(record, earlier, place)

    def _kept(self, positions: range) -> tuple[range | Record, ...]:
        if self.before.sequence is None:
            return (positions,)
        kept: list[range | Record] = []
        position = positions.start
        index = bisect_right(self.places, position) - 1
        while position < positions.stop:
            item = self.items[index]
            if type(item) is range:
                skipped = position - self.places[index]
                part = item[skipped : skipped + positions.stop - position]
                kept.append(part)
                position += len(part)
            else:
                kept.append(self.added[position])
                position += 1
            index += 1
        return tuple(kept)

    def _keep_returned(self, sequence: tuple[range | Record, ...], removed: dict[int, Record]) -> c.Members | None:
        """Return the change in which members that were removed and added again, equal, count as members that stayed."""
        coming = [place for place, item in enumerate(sequence) if isinstance(item, Record)]
        if coming and removed:
            items = list(sequence)
            for position, place in _match_returned(
                removed, {place: items[place] for place in coming}, self.plan.is_named
            ):
                items[place] = range(position, position + 1)
                del removed[position]
            sequence = c.join_runs(items)
        if c.is_identity(sequence, removed):
            return c.Members(None, {}, self.changes) if self.changes else None
        return c.Members(sequence, removed, self.changes)


def _match_returned(removed: dict[int, Record], coming: dict[int, Any], is_named: bool) -> list[tuple[int, int]]:
    removed_by_label: dict[Any, list[int]] = {}
    added_by_label: dict[Any, list[int]] = {}
    for position, record in removed.items():
        removed_by_label.setdefault(_label(record), []).append(position)
    for place, record in coming.items():
        added_by_label.setdefault(_label(record), []).append(place)
    matched = []
    for label, places in added_by_label.items():
        positions = removed_by_label.get(label, [])
        pairs = list(zip(positions, places, strict=False))
        equal = [pair for pair in pairs if removed[pair[0]] is coming[pair[1]] or removed[pair[0]] == coming[pair[1]]]
        if is_named and not (len(equal) == len(positions) == len(places)):
            continue  # either all attributes of one name stay or none (see `changes`)
        matched += equal
    return matched


def _label(record: Any) -> Any:
    """Return a cheap key that equal records share; it ignores the bytes of tensors."""
    name = getattr(record, "name", None)
    return name if name is not None else (getattr(record, "key", None), getattr(record, "output", None))
