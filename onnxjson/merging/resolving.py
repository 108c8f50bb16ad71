"""Conflicts settled: each slot gets what one of the sides has, and the addresses of the others follow."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from onnxjson.addresses import attribute_segments, format_address
from onnxjson.conflicts import SIDES, Choice, Conflict, Slot, slot_at, value_at
from onnxjson.display import visible
from onnxjson.document import Function, Model, Node, Record
from onnxjson.edits.rebuilding import rebuilt
from onnxjson.edits.renaming import collisions, renamed
from onnxjson.errors import AddressError, ConflictError, SelectorError
from onnxjson.index import Index, Scope
from onnxjson.merging.makers import require_makers
from onnxjson.merging.naming import by_address, is_name_of_value, scope_around, with_names
from onnxjson.merging.sides import FunctionKey, with_function_names, with_node_names, written_key
from onnxjson.merging.sorting import fitting_place, in_topological_order, is_misplaced, is_taken_before

__all__ = ["Choice", "resolve"]

R = TypeVar("R", bound=Record)

_NAMES_OF_FUNCTION: Final = ("domain", "name", "overload")

_SHOWN: Final = 3


def resolve(
    model: Model, conflicts: Sequence[Conflict], choice: Choice, ids: Collection[str] | None = None
) -> tuple[Model, tuple[Conflict, ...]]:
    """Settle conflicts: the model with what was chosen, and the conflicts that still stand.

    Args:
        model: of the text in which the conflicts stand.
        conflicts: all of them.
        choice: whose value the slots get.
        ids: which conflicts; all where it is None.

    Raises:
        SelectorError: an id is none of theirs.
        ConflictError: what stands in a slot is not what ours had when the merge was made, so that a choice says
            nothing; there is no base; or what the base has takes values that nothing makes any more.
    """
    settled = _resolved(model, conflicts, choice, ids)
    if choice == "base":
        require_makers(model, *settled)
    return settled


def _resolved(
    model: Model, conflicts: Sequence[Conflict], choice: Choice, ids: Collection[str] | None
) -> tuple[Model, tuple[Conflict, ...]]:
    known = {conflict.id for conflict in conflicts}
    for each in ids or ():
        if each not in known:
            listed = ", ".join(sorted(visible(one) for one in known)) or "none"
            raise SelectorError(f'no conflict has the id "{visible(each)}"; there are {listed}')
    wanted = known if ids is None else set(ids)
    names = _ChosenNames(model, [each for each in conflicts if each.id in wanted], choice)
    if not names.collide:
        return _with_others(names.model(), names.left(conflicts), wanted, choice)
    # What has a name that is wanted may be what another choice takes away.
    model, left = _with_others(model, conflicts, wanted, choice, but_texts=True)
    names = _ChosenNames(model, [each for each in left if each.id in wanted], choice)
    names.refuse_collisions()
    return _with_others(names.model(), names.left(left), wanted, choice)


def _with_others(
    model: Model, conflicts: Sequence[Conflict], ids: Collection[str], choice: Choice, *, but_texts: bool = False
) -> tuple[Model, tuple[Conflict, ...]]:
    """Settle conflicts one after the other; `but_texts` leaves those about texts, some of which are names."""
    left = list(conflicts)
    for conflict in conflicts:
        if conflict.id in ids and not (but_texts and isinstance(conflict.ours, str)):
            same = (each for each in left if each.id == conflict.id)
            current = next(each for each in same if not (but_texts and isinstance(each.ours, str)))
            left.remove(current)
            model, left = _ordered(*_settled(model, current, choice, left), current.at)
    return model, tuple(left)


class _ChosenNames:
    """The names among what was chosen. They are given all at once, since two sides may have swapped them."""

    def __init__(self, model: Model, chosen: Sequence[Conflict], choice: Choice) -> None:
        self._settled: dict[int, Conflict] = {}
        self.collide: list[str] = []
        """Why they cannot be had, in words."""
        wanted = [each for each in chosen if isinstance(each.ours, str) and getattr(each, choice) != each.ours]
        self._model = model
        self._values: dict[Scope, dict[str, str]] = {}
        self._functions: dict[FunctionKey, FunctionKey] = {}
        if not wanted:
            return
        self._index = Index(model)
        self._scopes = by_address(self._index)
        for each in wanted:
            if isinstance(new := getattr(each, choice), str) and self._takes(each, new):
                self._settled[id(each)] = each
        self.collide = collisions(self._index, self._values)

    def refuse_collisions(self) -> None:
        """Do nothing where all names can be had.

        Raises:
            ConflictError: something else has some of them.
        """
        if self.collide:
            raise ConflictError(
                f"names cannot be had, since something else is called so: {'; '.join(self.collide[:_SHOWN])}; rename "
                "that first, or take another side",
                tuple(self._settled.values()),
            )

    def left(self, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """The conflicts that names do not settle, with the new names."""
        return [self._followed(each) for each in conflicts if id(each) not in self._settled]

    def _takes(self, conflict: Conflict, new: str) -> bool:
        """Note a name; whether the slot is one that names something."""
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
        scope = scope_around(self._scopes, conflict.at)
        if scope is None or not is_name_of_value(scope, conflict.at, conflict.ours):
            return False
        self._values.setdefault(scope, {})[conflict.ours] = new
        return True

    def model(self) -> Model:
        """The model with the names, wherever they are used."""
        if not self._settled:
            return self._model
        model = renamed(self._index, self._values)
        if self._functions:
            model = rebuilt(Index(model), lambda _, graph: with_node_names(graph, {}, self._functions))
        return with_function_names(model, self._functions)

    def _followed(self, conflict: Conflict) -> Conflict:
        """A conflict that is left, with the new names in what the sides have."""
        scope = scope_around(self._scopes, conflict.at) if self._settled else None
        names: dict[str, str] = {}
        for each in reversed(list(scope.chain()) if scope is not None else []):
            names = {old: new for old, new in names.items() if not each.defines(old)} | self._values.get(each, {})
        if not names and not self._functions:
            return conflict
        if scope is not None and is_name_of_value(scope, conflict.at, conflict.ours):
            return conflict  # What stands there are names to give, and not those of others.
        slot = slot_at(conflict.at)
        values = {side: with_names(getattr(conflict, side), slot, names, self._functions) for side in SIDES}
        return msgspec.structs.replace(conflict, **values)


def _settled(model: Model, conflict: Conflict, choice: Choice, left: list[Conflict]) -> tuple[Model, list[Conflict]]:
    slot = slot_at(conflict.at)
    value = getattr(conflict, choice)
    if not slot.name:
        _require(conflict, model == conflict.ours)
        if value is None:
            raise ConflictError(
                "there is no base: each side added this model on its own; take --ours or --theirs",
                (conflict,),
            )
        return value, left
    owner = _record_at(model, slot.owner, conflict)
    current = getattr(owner, slot.name)
    if slot.member is None:
        _require(conflict, _same(current, conflict.ours))
        if value == conflict.ours:
            return model, left
        absent = () if isinstance(current, tuple) else b"" if slot.field is None or slot.field.packed else None
        return _with(model, slot.owner, slot.name, absent if value is None else value), left
    if slot.field is not None and slot.field.message is None:
        return _with_string(model, slot, conflict, current, value), left
    return _with_member(model, slot, conflict, current, choice, left)


def _same(current: Any, ours: Any) -> bool:
    return current == ours or (ours is None and not current)


def _require(conflict: Conflict, is_same: bool) -> None:
    if not is_same:
        place = visible(conflict.at) or "the model"
        raise ConflictError(
            f'{place} is not what the merge left there (conflict "{visible(conflict.id)}"): it was edited since; take '
            "the conflict out of the text if the edit settles it, or merge again",
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
    """One member of a list comes, goes, or is another."""
    value = getattr(conflict, choice)
    is_named = slot.message is Node and slot.name == "attribute"
    position = _position(slot.member or "", members, is_named=is_named)
    if conflict.ours is None:
        _require(conflict, not is_named or position is None)
        if value is None:
            return model, left
        asked = len(members) if position is None else min(position, len(members))
        place = fitting_place(value, members, asked) if isinstance(value, Node) else asked
        new = (*members[:place], value, *members[place:])
        moved = left if is_named else [_shifted(each, slot.list_address, place, 1, before=conflict) for each in left]
        if place != asked:
            beside = partial(_beside, list_address=slot.list_address, nodes=new, place=place, before=conflict)
            moved = [beside(each, getattr(each, choice)) for each in moved]
        if isinstance(value, Node) and is_taken_before(value, new, place):
            new, moved = _sorted(new, moved, slot.list_address)
        return _with(model, slot.owner, slot.name, new), moved
    _require(conflict, position is not None and position < len(members) and members[position] == conflict.ours)
    assert position is not None
    if value is not None:
        return _with(model, slot.owner, slot.name, (*members[:position], value, *members[position + 1 :])), left
    moved = left if is_named else [_shifted(each, slot.list_address, position, -1, before=conflict) for each in left]
    return _with(model, slot.owner, slot.name, (*members[:position], *members[position + 1 :])), moved


def _sorted(
    nodes: tuple[Node, ...], left: list[Conflict], list_address: str
) -> tuple[tuple[Node, ...], list[Conflict]]:
    """Nodes in an order in which values are made before they are taken, and conflicts where their nodes are then."""
    order = in_topological_order(list(range(len(nodes))), dict(enumerate(nodes)))
    places = {old: new for new, old in enumerate(order)}
    prefix = f"{list_address}/"
    moved = []
    for each in left:
        if each.at.startswith(prefix):
            first, slash, rest = each.at[len(prefix) :].partition("/")
            is_gap = each.ours is None and not slash
            place = int(first) if is_gap else places[int(first)]
            each = msgspec.structs.replace(each, at=f"{prefix}{place}{slash}{rest}")
        moved.append(each)
    return tuple([nodes[old] for old in order]), moved


def _ordered(model: Model, left: list[Conflict], at: str) -> tuple[Model, list[Conflict]]:
    """The nodes around a slot that was settled where values are made before they are taken; the innermost first."""
    # A node that came was put where it fits already; what stands below a node may take or make something else now.
    segments = slot_at(at).owner
    for end in range(len(segments) - 1, 0, -1):
        if segments[end - 1] != "node" or not segments[end].isdigit():
            continue
        list_address = format_address(segments[:end])
        nodes = value_at(model, slot_at(list_address))
        if int(segments[end]) < len(nodes) and is_misplaced(nodes, int(segments[end])):
            ordered, left = _sorted(nodes, left, list_address)
            model = _with(model, segments[: end - 1], "node", ordered)
    return model, left


def _position(segment: str, members: Sequence[Any], *, is_named: bool) -> int | None:
    if not is_named:
        return int(segment)
    names = attribute_segments(members)
    return names.index(segment) if segment in names else None


def _shifted(conflict: Conflict, list_address: str, position: int, by: int, before: Conflict) -> Conflict:
    """A conflict after a member of a list came (`by` 1) or went (-1) at a position.

    What is absent at the very place keeps it where it stands before the one that was settled: by the order of ids.
    """
    prefix = f"{list_address}/"
    if not conflict.at.startswith(prefix):
        return conflict
    first, slash, rest = conflict.at[len(prefix) :].partition("/")
    place = int(first)
    is_gap = conflict.ours is None and not slash
    if by > 0 and (place < position or (place == position and is_gap and _rank(conflict) < _rank(before))):
        return conflict
    if by < 0 and place <= position:
        return conflict
    return msgspec.structs.replace(conflict, at=f"{prefix}{place + by}{slash}{rest}")


def _beside(
    conflict: Conflict, node: Any, list_address: str, nodes: tuple[Node, ...], place: int, before: Conflict
) -> Conflict:
    """A conflict after a node came to a place that is not the one of its slot, but where its values can be had.

    A `node` of another conflict that would come right beside it for the same reason keeps to the order of their slots,
    whichever is settled first.
    """
    prefix = f"{list_address}/"
    if conflict.ours is not None or not isinstance(node, Node) or not conflict.at.startswith(prefix):
        return conflict
    asked = int(conflict.at[len(prefix) :])
    is_later = (asked, _rank(conflict)) > (int(before.at[len(prefix) :]), _rank(before))
    neighbour = nodes[place - 1 : place] if is_later else nodes[place + 1 : place + 2]
    if not any([_makes(each, node) or _makes(node, each) for each in neighbour]):
        return conflict
    if fitting_place(node, nodes, asked) != (place if is_later else place + 1):
        return conflict
    return msgspec.structs.replace(conflict, at=f"{prefix}{place + 1 if is_later else place}")


def _makes(maker: Node, taker: Node) -> bool:
    return is_taken_before(maker, (taker,), 1)


def _rank(conflict: Conflict) -> tuple[int, str]:
    return (int(conflict.id), "") if conflict.id.isdigit() else (1 << 60, conflict.id)


def _record_at(model: Model, path: Sequence[str], conflict: Conflict) -> Record:
    from onnxjson.addresses import resolve as found_at

    try:
        found = found_at(model, format_address(path))
    except AddressError:
        found = None
    _require(conflict, isinstance(found, Record))
    assert isinstance(found, Record)
    return found


def _with(record: R, path: Sequence[str], name: str, value: Any) -> R:
    """A record with another value of a field of the record at a path below it."""
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
