"""The conflicts of a merge in a text (docs/format.md, section 11b)."""

from onnxjson.conflicts import Conflict, Slot, slot_at
from onnxjson.errors import AddressError
from onnxjson.messages import Kind
from onnxjson.reading.context import Context, Place
from onnxjson.reading.exact import Reader, field_readers, message_reader, read_list
from onnxjson.reading.strings import read_string
from onnxjson.reading.tree import Tree

_KEYS = ("id", "at", "base", "ours", "theirs")


def read_conflicts(tree: Tree, place: Place, context: Context) -> tuple[Conflict, ...]:
    """The conflicts that are readable; what is wrong with others is said."""
    return read_list(tree, place, context, _read_conflict, "a list of conflicts") or ()


def _read_conflict(tree: Tree, place: Place, context: Context) -> Conflict | None:
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, 'a conflict, {"id": ..., "at": ...},')
        return None
    for key in tree:
        if key not in _KEYS:
            context.unknown_key(key, place.at(key), _KEYS, "a conflict")
    words = []
    for key in ("id", "at"):
        if key not in tree:
            context.error(place, "missing-key", f"the conflict has no {key}", "keep conflicts as the merge wrote them")
            return None
        word = read_string(tree[key], place.at(key), context)
        if word is None:
            return None
        words.append(word)
    try:
        slot = slot_at(words[1])
    except AddressError as error:
        context.error(place.at("at"), "bad-address", str(error), "keep conflicts as the merge wrote them")
        return None
    reader = _value_reader(slot)
    values = [reader(tree[key], place.at(key), context) if key in tree else None for key in _KEYS[2:]]
    return Conflict(words[0], words[1], *values)


def _value_reader(slot: Slot) -> Reader:
    """How the values of a slot are read."""
    field = slot.field
    if field is None:
        return field_readers(slot.message)["unknown_fields"] if slot.name else message_reader(slot.message)
    if field.message is not None:
        reader = message_reader(field.message)
        if slot.member is None and field.repeated:
            return lambda tree, place, context: read_list(tree, place, context, reader, f"a list ({field.name})")
        return reader
    if slot.member is not None and field.kind is Kind.STRING:
        return read_string
    return field_readers(slot.message)[slot.name]
