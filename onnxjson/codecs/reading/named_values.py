"""Values with names: attributes of nodes and functions, pairs, opset imports.

docs/format.md, sections 6 and 8; attributes are bare, tagged or in full.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.exact import Reader, field_readers, read_integer, read_list, read_message
from onnxjson.codecs.reading.strings import read_string, read_text_or_lines
from onnxjson.codecs.reading.tree import UNREADABLE, Tree
from onnxjson.model.display import suggest, visible
from onnxjson.model.document import Attribute, OperatorSetId, SparseTensor, StringStringEntry
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, ATTRIBUTE_TYPE_NAMES
from onnxjson.model.scalars import ElementError, float32_bits

FULL: Final = "AttributeProto"
"""The tag of an attribute with all its fields."""

TAGS: Final[dict[str, int]] = {
    name: number for number, name in ATTRIBUTE_TYPE_NAMES.items() if number in ATTRIBUTE_PAYLOADS
}

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH = 1, 2, 3, 4, 5
_FLOATS, _INTS, _STRINGS = 6, 7, 8
_FITS: Final = {
    _FLOAT: "a number", _INT: "an integer", _STRING: "a string", _TENSOR: "a tensor", _GRAPH: "a graph",
    _FLOATS: "a list of numbers", _INTS: "a list of integers", _STRINGS: "a list of strings",
    9: "a list of tensors", 10: "a list of graphs", 11: "a sparse tensor", 12: "a list of sparse tensors", 13: "a type",
    14: "a list of types",
}  # fmt: skip

_SHORT: Final = 100
"""Characters of a text up to which it is read as numbers, for a hint."""

Pairs = tuple[StringStringEntry, ...]

ELEMENT_KINDS = ("node", "input", "output", "initializer", "value_info")
"""The lists of a graph whose elements may have metadata in `element_metadata`, in their order."""


def read_attributes(
    tree: Tree, table: Mapping[str, int], place: Place, context: Context, *, op_type: str = ""
) -> tuple[Attribute, ...] | None:
    """Read the attributes of a node: an object name -> value, or a list in full; None, after a report, for neither.

    `table` has the types of the operator's attributes (`onnxjson.model.operators.attribute_types`).
    """
    if not isinstance(tree, dict):
        fits = "an object of attributes, or a list of them in full"
        return read_list(tree, place, context, _read_full, fits)
    attributes = [_read_value(name, member, place.at(name), context, table, op_type) for name, member in tree.items()]
    return tuple([attribute for attribute in attributes if attribute is not None])


def _read_full(tree: Tree, place: Place, context: Context) -> Attribute | None:
    return read_message(Attribute, tree, place, context)


def _read_value(
    name: str, tree: Tree, place: Place, context: Context, table: Mapping[str, int], op_type: str
) -> Attribute | None:
    if isinstance(tree, dict):
        tag = next((key for key in tree if key in TAGS or key == FULL), None)
        if tag is not None:
            return _read_tagged(name, tag, tree, place, context)
    number = table.get(name)
    if number is None:
        number = _type_of_bare(tree)
        if number is None:
            _report_untagged(name, tree, place, context, table)
            return None
    elif not _fits(number, tree):
        if tree is not UNREADABLE:
            what = f'"{visible(name)}" of {visible(op_type)} must be {ATTRIBUTE_TYPE_NAMES[number]}, {_FITS[number]}'
            hint = _tensor_hint(tree) if number == _TENSOR else ""
            hint = hint or _plain_hint(number, tree) or _tag_hint(tree, "for another type, tag it:")
            context.error(place, "wrong-type", f"{_value_text(tree)}, but {what}", hint)
        return None
    return _with_payload(name, number, tree, place, context)


def _plain_hint(number: int, tree: Tree) -> str:
    """How to write numbers that are in quotes, or one that should be a list; "" for other values."""
    text = tree if isinstance(tree, str) else str(tree) if isinstance(tree, int | float) else ""
    text = f"[{text.strip('[]()')}]" if number in (_FLOATS, _INTS) else text
    try:
        fits = 0 < len(text) <= _SHORT and _fits(number, json.loads(text))
    except ValueError:
        return ""
    return f"write {visible(text)}" if fits else ""


def _read_tagged(name: str, tag: str, tree: Mapping[str, Tree], place: Place, context: Context) -> Attribute | None:
    for key in tree:
        if key != tag:
            message = f'"{visible(key)}" is not allowed next to the tag "{tag}"'
            context.error(place.at(key), "conflicting-keys", message, "a tag is the only key", on_key=True)
    if tag != FULL:
        return _with_payload(name, TAGS[tag], tree[tag], place.at(tag), context)
    fields = tree[FULL]
    if isinstance(fields, dict) and "name" in fields:
        message = "the key of the attribute already is its name"
        context.error(place.at(FULL).at("name"), "conflicting-keys", message, "delete this one", on_key=True)
    return read_message(Attribute, fields, place.at(FULL), context, given={"name": name})


def _with_payload(name: str, number: int, tree: Tree, place: Place, context: Context) -> Attribute | None:
    field = ATTRIBUTE_PAYLOADS[number]
    if number == 11:
        value: Any = read_message(SparseTensor, tree, place, context)
    else:
        reader: Reader = field_readers(Attribute)[field]
        value = reader(tree, place, context)
    return None if value is None else Attribute(**{"name": name, "type": number, field: value})


def _type_of_bare(tree: Tree) -> int | None:
    """The type of a value that is neither tagged nor in the table; None if only a tag can determine it."""
    if type(tree) is int:
        return _INT
    if isinstance(tree, str):
        return _STRING
    if isinstance(tree, list) and tree:
        if all(type(item) is int for item in tree):
            return _INTS
        if all(isinstance(item, str) for item in tree):
            return _STRINGS
    return None


def _report_untagged(name: str, tree: Tree, place: Place, context: Context, table: Mapping[str, int]) -> None:
    if tree is UNREADABLE or (isinstance(tree, list) and any(item is UNREADABLE for item in tree)):
        return
    if tree is None:
        context.wrong_type(tree, place, "the value of an attribute")
        return
    message = f"the type of {_value_text(tree)} is not known: the attribute is not in the table of the format"
    hint = _tag_hint(tree)
    if near := context.suggest(name, table):
        # A misspelled name is more frequent than an attribute that the operator does not define.
        hint = f"{near} if it is another attribute, {hint}"
    context.error(place, "untagged-attribute", message, hint, on_key=bool(near))


def _fits(number: int, tree: Tree) -> bool:
    """Whether a bare value is of the JSON kind that a type requires; its reader checks the contents."""
    if number in (6, _INTS, _STRINGS, 9, 10, 12, 14):
        return isinstance(tree, list)
    if number == _INT:
        if isinstance(tree, str):
            return tree.removeprefix("-").isdecimal()
        return _is_number(tree) and not (isinstance(tree, float) and not tree.is_integer())
    if number == _FLOAT:
        return _is_number(tree) or (isinstance(tree, str) and _is_float_text(tree))
    if number == _STRING:
        return isinstance(tree, str) or (isinstance(tree, dict) and "base64" in tree)
    return isinstance(tree, dict) or (number == 13 and isinstance(tree, str))


def _is_number(tree: Tree) -> bool:
    return isinstance(tree, int | float) and not isinstance(tree, bool)


def _is_float_text(text: str) -> bool:
    try:
        float32_bits(text)
    except ElementError:
        return False
    return True


def _value_text(tree: Tree) -> str:
    """A value for a message: short ones unchanged."""
    match tree:
        case dict():
            return "an object"
        case str():
            return f'"{visible(tree, 40)}"'
        case None:
            return "null"
        case float():
            return visible(repr(tree), 40)
        case _:
            return visible(json.dumps(tree, default=str), 40) if _is_flat(tree) else "a list"


def _is_flat(tree: Tree) -> bool:
    return not isinstance(tree, list) or (
        len(tree) <= 16 and not any(isinstance(item, list | dict) or item is UNREADABLE for item in tree)
    )


def _tag_hint(tree: Tree, tag_it: str = "tag it:") -> str:
    """How a bare value is written with a type; `tag_it` begins the advice."""
    match tree:
        case bool():
            return f"write {int(tree)}"
        case float():
            return f'{tag_it} {{"FLOAT": {visible(repr(tree), 40)}}}'
        case int():
            return f'{tag_it} {{"INT": {tree}}}' if abs(tree) < 2**63 else ""
        case str():
            return f'{tag_it} {{"STRING": {_value_text(tree)}}}'
        case list():
            return _list_hint(tree, tag_it)
        case {"base64": _}:
            return f'{tag_it} {{"STRING": {{"base64": "..."}}}}'
        case {"node": _} | {"output": _}:
            return f'{tag_it} {{"GRAPH": {{...}}}}'
        case {"indices": _}:
            return f'{tag_it} {{"SPARSE_TENSOR": {{...}}}}'
        case {"type": _} | {"data_type": _}:
            return f'{tag_it} {{"TENSOR": {{...}}}}'
    near = suggest(next(iter(tree), ""), [*TAGS, FULL]) if isinstance(tree, dict) else ""
    return near or f"the tags are {', '.join(TAGS)} and {FULL}"


def _tensor_hint(tree: Tree) -> str:
    """A hint: a number or a list of numbers as a tensor; "" for anything else."""
    items = tree if isinstance(tree, list) else [tree]
    kinds = {type(item) for item in items}
    dtype = {bool: "bool", int: "int64", float: "float32"}.get(kinds.pop()) if len(kinds) == 1 else None
    if dtype is None or not _is_flat(tree):
        return ""
    dims = len(items) if isinstance(tree, list) else ""
    return f'write {{"type": "{dtype}[{dims}]", "values": {visible(json.dumps(tree), 80)}}}'


def _list_hint(tree: list[Tree], tag_it: str) -> str:
    if not tree:
        return f'{tag_it} {{"INTS": []}}, {{"FLOATS": []}} or {{"STRINGS": []}}'
    if not _is_flat(tree):
        return 'tag it with the type, such as {"TENSORS": [...]}'
    if all(isinstance(item, str) for item in tree):
        tag = "STRINGS"
    elif all(type(item) is int for item in tree):
        tag = "INTS"
    elif all(isinstance(item, int | float) and not isinstance(item, bool) for item in tree):
        tag = "FLOATS"
    else:
        return "all items must have the same type"
    return f'{tag_it} {{"{tag}": {_value_text(tree)}}}'


def read_pairs(tree: Tree, place: Place, context: Context, *, lines: bool = True) -> Pairs | None:
    """Read pairs: an object, or a list of ``["key", "value"]`` and of objects with the fields of the message.

    With `lines` a value may be the list of its lines. None, after a report, if the tree is neither.
    """
    read_value = read_text_or_lines if lines else read_string
    if isinstance(tree, dict):
        entries = []
        for key, member in tree.items():
            value = read_value(member, place.at(key), context)
            if value is not None:
                entries.append(StringStringEntry(key=key, value=value))
        return tuple(entries)

    def read_item(item: Tree, at: Place, context: Context) -> StringStringEntry | None:
        if not isinstance(item, list):
            return read_message(StringStringEntry, item, at, context)
        if len(item) != 2:
            context.wrong_type(item, at, 'a pair such as ["key", "value"]')
            return None
        key = read_string(item[0], at.at(0), context)
        value = read_value(item[1], at.at(1), context)
        return None if key is None or value is None else StringStringEntry(key=key, value=value)

    return read_list(tree, place, context, read_item, "an object of pairs, or a list of them,")


def read_opset_imports(tree: Tree, place: Place, context: Context) -> tuple[OperatorSetId, ...] | None:
    """Read opset imports: ``{"": 20}``, or a list of objects with the fields of the message."""
    if not isinstance(tree, dict):
        return read_list(
            tree,
            place,
            context,
            lambda item, at, context: read_message(OperatorSetId, item, at, context),
            'an object such as {"": 20}',
        )
    imports = []
    for domain, member in tree.items():
        version = read_integer(member, place.at(domain), context)
        if version is not None:
            imports.append(OperatorSetId(domain=domain, version=version))
    return tuple(imports)
