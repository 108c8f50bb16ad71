"""Resolution of conflicts: each slot gets the value of one side, and the addresses of the other conflicts follow."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from onnxjson.merging.naming import is_name_of_value, with_names
from onnxjson.merging.sides import Defects, FunctionKey, relabelled, written_key
from onnxjson.model.addresses import (
    SIDES,
    Choice,
    Slot,
    attribute_segments,
    format_address,
    innermost,
    slot_at,
    value_at,
)
from onnxjson.model.addresses import resolve as find_at
from onnxjson.model.conflicts import Conflict, ConflictError
from onnxjson.model.dataflow import consumed_names, consumes_any, node_order
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Function, Model, Node, Record
from onnxjson.model.errors import AddressError, SelectorError
from onnxjson.model.index import Index, Scope
from onnxjson.model.renaming import collisions, renamed

R = TypeVar("R", bound=Record)

_NAMES_OF_FUNCTION: Final = ("domain", "name", "overload")

_SHOWN: Final = 3


def resolve(
    model: Model, conflicts: Sequence[Conflict], choice: Choice, ids: Collection[str] | None = None
) -> tuple[Model, tuple[Conflict, ...]]:
    """Resolve conflicts; return the model with the chosen values, and the remaining conflicts.

    Args:
        model: the model with the values of ours in the slots of the conflicts.
        conflicts: all conflicts.
        choice: the side whose values the slots get.
        ids: the conflicts to resolve; None for all.

    Raises:
        SelectorError: no conflict has one of the ids.
        ConflictError: a slot was edited since the merge; there is no base; or the base consumes values that nothing
            produces any longer.
    """
    resolved = _resolved(model, conflicts, choice, ids)
    if choice == "base":
        _require_producers(model, *resolved)
    return resolved


def _resolved(
    model: Model, conflicts: Sequence[Conflict], choice: Choice, ids: Collection[str] | None
) -> tuple[Model, tuple[Conflict, ...]]:
    known = {conflict.id for conflict in conflicts}
    for requested in ids or ():
        if requested not in known:
            known_ids = ", ".join(sorted(visible(one) for one in known)) or "none"
            raise SelectorError(f'no conflict has the id "{visible(requested)}"; there are {known_ids}')
    wanted = known if ids is None else set(ids)
    names = _ChosenNames(model, [conflict for conflict in conflicts if conflict.id in wanted], choice)
    if not names.collide:
        return _with_others(names.model(), names.left(conflicts), wanted, choice)
    # The owner of a wanted name may be removed by another choice.
    model, left = _with_others(model, conflicts, wanted, choice, but_texts=True)
    names = _ChosenNames(model, [conflict for conflict in left if conflict.id in wanted], choice)
    if names.collide:
        raise ConflictError(
            f"names are taken: {'; '.join(names.collide[:_SHOWN])}; rename that first, or choose another side",
            tuple(names.resolved.values()),
        )
    return _with_others(names.model(), names.left(left), wanted, choice)


def _with_others(
    model: Model, conflicts: Sequence[Conflict], ids: Collection[str], choice: Choice, *, but_texts: bool = False
) -> tuple[Model, tuple[Conflict, ...]]:
    left = list(conflicts)
    for conflict in conflicts:
        if conflict.id in ids and not (but_texts and isinstance(conflict.ours, str)):
            same = (each for each in left if each.id == conflict.id)
            current = next(each for each in same if not (but_texts and isinstance(each.ours, str)))
            left.remove(current)
            model, left = _ordered(*_resolve_one(model, current, choice, left), current.at)
    return model, tuple(left)


class _ChosenNames:
    """Names among the chosen values, which are set all at once, since two sides may have swapped them."""

    def __init__(self, model: Model, chosen: Sequence[Conflict], choice: Choice) -> None:
        self.resolved: dict[int, Conflict] = {}
        self.collide: list[str] = []
        """Reasons why they cannot be set."""
        wanted = [
            conflict
            for conflict in chosen
            if isinstance(conflict.ours, str) and getattr(conflict, choice) != conflict.ours
        ]
        self._model = model
        self._values: dict[Scope, dict[str, str]] = {}
        self._functions: dict[FunctionKey, FunctionKey] = {}
        if not wanted:
            return
        self._index = Index(model)
        self._scopes = self._index.by_address
        for conflict in wanted:
            if isinstance(new := getattr(conflict, choice), str) and self._add(conflict, new):
                self.resolved[id(conflict)] = conflict
        self.collide = collisions(self._index, self._values)

    def left(self, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """The conflicts that names do not resolve, with the new names."""
        return [self._followed(each) for each in conflicts if id(each) not in self.resolved]

    def _add(self, conflict: Conflict, new: str) -> bool:
        """Record a name; return whether the slot is one that names something."""
        slot = slot_at(conflict.at)
        if slot.message is Function and slot.name in _NAMES_OF_FUNCTION:
            position = int(slot.owner[1])
            functions = self._model.functions
            if position >= len(functions) or getattr(functions[position], slot.name) != conflict.ours:
                return False
            key = written_key(functions[position])
            parts = dict(zip(_NAMES_OF_FUNCTION, self._functions.get(key, key), strict=True)) | {slot.name: new}
            self._functions[key] = (parts["domain"], parts["name"], parts["overload"])
            return True
        scope = innermost(self._scopes, conflict.at)
        if scope is None or not is_name_of_value(scope, conflict.at, conflict.ours):
            return False
        self._values.setdefault(scope, {})[conflict.ours] = new
        return True

    def model(self) -> Model:
        """Return the model with the names, wherever they are used."""
        if not self.resolved:
            return self._model
        return relabelled(renamed(self._index, self._values), self._functions)

    def _followed(self, conflict: Conflict) -> Conflict:
        """Return a remaining conflict with the new names in the values of its sides."""
        scope = innermost(self._scopes, conflict.at) if self.resolved else None
        names: dict[str, str] = {}
        for each in reversed(list(scope.chain()) if scope is not None else []):
            names = {old: new for old, new in names.items() if not each.defines(old)} | self._values.get(each, {})
        if not names and not self._functions:
            return conflict
        if scope is not None and is_name_of_value(scope, conflict.at, conflict.ours):
            return conflict  # Its values are names to set, not uses of names.
        slot = slot_at(conflict.at)
        values = {side: with_names(getattr(conflict, side), slot, names, self._functions) for side in SIDES}
        return msgspec.structs.replace(conflict, **values)


def _resolve_one(
    model: Model, conflict: Conflict, choice: Choice, left: list[Conflict]
) -> tuple[Model, list[Conflict]]:
    slot = slot_at(conflict.at)
    value = getattr(conflict, choice)
    if not slot.name:
        _require(conflict, model == conflict.ours)
        if value is None:
            why = "there is no base, since each side added this model; choose --ours or --theirs"
            raise ConflictError(why, (conflict,))
        return value, left
    owner = _record_at(model, slot.owner, conflict)
    current = getattr(owner, slot.name)
    if slot.member is None:
        _require(conflict, current == conflict.ours or (conflict.ours is None and not current))
        if value == conflict.ours:
            return model, left
        absent = () if isinstance(current, tuple) else b"" if slot.field is None or slot.field.packed else None
        return _with(model, slot.owner, slot.name, absent if value is None else value), left
    if slot.field is not None and slot.field.message is None:
        return _with_string(model, slot, conflict, current, value), left
    return _with_member(model, slot, conflict, current, choice, left)


def _require(conflict: Conflict, is_same: bool) -> None:
    if not is_same:
        place = visible(conflict.at) or "the model"
        raise ConflictError(
            f'{place} was edited since the merge (conflict "{visible(conflict.id)}"); if the edit resolves it, remove '
            "the conflict from the text, else merge again",
            (conflict,),
        )


def _with_string(model: Model, slot: Slot, conflict: Conflict, current: tuple[str, ...], value: Any) -> Model:
    position = int(slot.member or 0)
    found = current[position] if position < len(current) else None
    _require(conflict, found == conflict.ours)
    if value == found:
        return model
    items = list(current) + [""] * (position + 1 - len(current))
    items[position] = "" if value is None else value
    while items and value is None and not items[-1]:
        items.pop()
    return _with(model, slot.owner, slot.name, tuple(items))


def _with_member(
    model: Model, slot: Slot, conflict: Conflict, members: tuple[Any, ...], choice: Choice, left: list[Conflict]
) -> tuple[Model, list[Conflict]]:
    value = getattr(conflict, choice)
    is_named = slot.message is Node and slot.name == "attribute"
    position = _position(slot.member or "", members, is_named=is_named)
    if conflict.ours is None:
        _require(conflict, not is_named or position is None)
        if value is None:
            return model, left
        requested = len(members) if position is None else min(position, len(members))
        place = _fitting_place(value, members, requested) if isinstance(value, Node) else requested
        new = (*members[:place], value, *members[place:])
        moved = left if is_named else [_shifted(other, slot.list_address, place, 1, before=conflict) for other in left]
        if place != requested:
            adjacent = partial(_adjacent, list_address=slot.list_address, nodes=new, place=place, before=conflict)
            moved = [adjacent(other, getattr(other, choice)) for other in moved]
        if isinstance(value, Node) and _is_consumed_before(value, new, place):
            new, moved = _sorted(new, moved, slot.list_address)
        return _with(model, slot.owner, slot.name, new), moved
    _require(conflict, position is not None and position < len(members) and members[position] == conflict.ours)
    assert position is not None
    if value is not None:
        return _with(model, slot.owner, slot.name, (*members[:position], value, *members[position + 1 :])), left
    moved = left if is_named else [_shifted(other, slot.list_address, position, -1, before=conflict) for other in left]
    return _with(model, slot.owner, slot.name, (*members[:position], *members[position + 1 :])), moved


def _sorted(
    nodes: tuple[Node, ...], left: list[Conflict], list_address: str
) -> tuple[tuple[Node, ...], list[Conflict]]:
    order = node_order(nodes)
    if len(order) < len(nodes):  # a cycle, in which all nodes keep their order
        return nodes, left
    places = {old: new for new, old in enumerate(order)}
    moved = [_moved(each, list_address, lambda place, is_gap: place if is_gap else places[place]) for each in left]
    return tuple([nodes[old] for old in order]), moved


def _ordered(model: Model, left: list[Conflict], at: str) -> tuple[Model, list[Conflict]]:
    """Sort the nodes around a resolved slot topologically, the innermost graph first."""
    # An added node is in a fitting place already; a changed one may consume or produce something else now.
    segments = slot_at(at).owner
    for end in range(len(segments) - 1, 0, -1):
        if segments[end - 1] != "node" or not segments[end].isdigit():
            continue
        list_address = format_address(segments[:end])
        nodes = value_at(model, slot_at(list_address))
        if int(segments[end]) < len(nodes) and _is_misplaced(nodes, int(segments[end])):
            ordered, left = _sorted(nodes, left, list_address)
            model = _with(model, segments[: end - 1], "node", ordered)
    return model, left


def _fitting_place(node: Node, nodes: tuple[Node, ...], place: int) -> int:
    """Position nearest to `place` that is after all producers of a node's inputs and before all its consumers.

    If a consumer comes before a producer, no position fits; the result is then after the producers.
    """
    names = set(consumed_names(node))
    produced = {name for name in node.output if name}
    behind = next((at + 1 for at in range(len(nodes) - 1, -1, -1) if not names.isdisjoint(nodes[at].output)), 0)
    before = next((at for at, each in enumerate(nodes) if consumes_any(each, produced)), len(nodes))
    return max(min(place, before), behind)


def _is_consumed_before(node: Node, nodes: tuple[Node, ...], place: int) -> bool:
    """Whether one of the nodes before a position consumes an output of a node."""
    produced = {name for name in node.output if name}
    return any([consumes_any(each, produced) for each in nodes[:place]])


def _is_misplaced(nodes: tuple[Node, ...], place: int) -> bool:
    """Whether the node at a position consumes what is produced there or later, or produces what is consumed before."""
    node = nodes[place]
    taken = set(consumed_names(node))
    return any([not taken.isdisjoint(each.output) for each in nodes[place:]]) or _is_consumed_before(node, nodes, place)


def _position(segment: str, members: Sequence[Any], *, is_named: bool) -> int | None:
    if not is_named:
        return int(segment)
    names = attribute_segments(members)
    return names.index(segment) if segment in names else None


def _shifted(conflict: Conflict, list_address: str, position: int, by: int, before: Conflict) -> Conflict:
    """Move a conflict after a member of a list was added (`by` 1) or removed (-1) at a position.

    An absent member at the same position keeps it if its id comes before that of the resolved conflict.
    """

    def after(place: int, is_gap: bool) -> int:
        if by > 0 and (place < position or (place == position and is_gap and _rank(conflict) < _rank(before))):
            return place
        return place if by < 0 and place <= position else place + by

    return _moved(conflict, list_address, after)


def _moved(conflict: Conflict, list_address: str, after: Callable[[int, bool], int]) -> Conflict:
    """Return a conflict at or below a member of a list at the place of that member, or of an absent one, `after`."""
    prefix = f"{list_address}/"
    if not conflict.at.startswith(prefix):
        return conflict
    first, slash, rest = conflict.at[len(prefix) :].partition("/")
    place = after(int(first), conflict.ours is None and not slash)
    return msgspec.structs.replace(conflict, at=f"{prefix}{place}{slash}{rest}")


def _adjacent(
    conflict: Conflict, node: Any, list_address: str, nodes: tuple[Node, ...], place: int, before: Conflict
) -> Conflict:
    """Move a conflict when a node was added after the producers of its inputs, not at the position of its slot.

    A `node` of another conflict that would be placed right next to it for the same reason keeps the order of their
    slots, whichever is resolved first.
    """
    prefix = f"{list_address}/"
    if conflict.ours is not None or not isinstance(node, Node) or not conflict.at.startswith(prefix):
        return conflict
    requested = int(conflict.at[len(prefix) :])
    is_later = (requested, _rank(conflict)) > (int(before.at[len(prefix) :]), _rank(before))
    neighbour = nodes[place - 1 : place] if is_later else nodes[place + 1 : place + 2]
    if not any([_is_consumed_before(*both, 1) for each in neighbour for both in ((each, (node,)), (node, (each,)))]):
        return conflict
    if _fitting_place(node, nodes, requested) != (place if is_later else place + 1):
        return conflict
    return msgspec.structs.replace(conflict, at=f"{prefix}{place + 1 if is_later else place}")


def _rank(conflict: Conflict) -> tuple[int, str]:
    return (int(conflict.id), "") if conflict.id.isdigit() else (1 << 60, conflict.id)


def _record_at(model: Model, path: Sequence[str], conflict: Conflict) -> Record:
    record: Any = None
    with suppress(AddressError):
        record = find_at(model, format_address(path))
    _require(conflict, isinstance(record, Record))
    return record  # type: ignore[no-any-return]


def _with(record: R, path: Sequence[str], name: str, value: Any) -> R:
    if not path:
        return msgspec.structs.replace(record, **{name: value})
    below = getattr(record, path[0])
    if not isinstance(below, tuple):
        return msgspec.structs.replace(record, **{path[0]: _with(below, path[1:], name, value)})
    is_named = isinstance(record, Node) and path[0] == "attribute"
    position = _position(path[1], below, is_named=is_named)
    assert position is not None
    new = _with(below[position], path[2:], name, value)
    return msgspec.structs.replace(record, **{path[0]: (*below[:position], new, *below[position + 1 :])})


def _require_producers(before: Model, model: Model, left: Sequence[Conflict]) -> None:
    """Raise unless all consumed values are produced, or can still be produced by one of the choices that are left."""
    known = Defects(Index(before)).undefined.keys() | _produced_by(left)
    missing = [name for name in Defects(Index(model)).undefined if name not in known]
    if missing:
        names = listed([f'"{visible(name)}"' for name in missing], _SHOWN)
        raise ConflictError(
            f"the base consumes {names}, which nothing produces: the producer was removed without a conflict; "
            "choose --ours or --theirs, or restore all of the base: git checkout-index -f --stage=1 -- FILE"
        )


def _produced_by(conflicts: Sequence[Conflict]) -> set[str]:
    """Names of values that a choice may add."""
    slots = [(conflict, slot_at(conflict.at)) for conflict in conflicts]
    candidates = [conflict for conflict, slot in slots if not (slot.message is Node and slot.name == "input")]
    values = [getattr(conflict, side) for conflict in candidates for side in SIDES]
    records = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    outputs = {name for record in records if isinstance(record, Node) for name in record.output}
    named = [
        getattr(record, "name", None)
        for record in records
        if isinstance(record, Record) and not isinstance(record, Node)
    ]
    return outputs | {entry for entry in (*named, *records) if isinstance(entry, str)}
