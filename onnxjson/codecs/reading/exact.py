"""Any message from the object of its fields, driven by the table of messages (docs/format.md, section 10).

Messages with a special form (tensors, types, graphs, pairs, ...) are read by their modules wherever they occur.
Those modules read the ordinary fields of their message through `read_message`, and `onnxjson.codecs.reading.model`
registers their readers here.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, Final, TypeVar

from onnxjson.codecs.reading import strings
from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.tree import UNREADABLE, Tree
from onnxjson.codecs.wire_format import NotCanonicalError
from onnxjson.codecs.wire_reading import check_varints
from onnxjson.model import document as d
from onnxjson.model import elements
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.messages import ATTRIBUTE_TYPES, DATA_LOCATIONS, FIELDS, Field, Kind
from onnxjson.model.payloads import Data
from onnxjson.model.payloads import whole as whole_bytes
from onnxjson.model.scalars import ElementError, float32_bits, parse_int, whole
from onnxjson.model.types import TypeSyntaxError, parse_data_type

R = TypeVar("R", bound=d.Record)
Reader = Callable[[Tree, Place, Context], Any]
"""Reads the value of a field; returns None after it has reported an error."""
ListReader = Callable[[Field], Reader]
"""Returns the reader of a field that is a list of messages."""

OWNERS: Final[dict[type[d.Record], str]] = {
    d.Model: "the document", d.Graph: "a graph", d.Node: "a node", d.ValueInfo: "a value", d.Tensor: "a tensor",
    d.Attribute: "an attribute in full", d.Function: "a function", d.Type: "a type in full",
    d.TrainingInfo: "a training step", d.SparseTensor: "a sparse tensor",
}  # fmt: skip
"""The names of messages in findings; others are named after their record."""

_INTEGERS: Final = {Kind.INT64: (-(2**63), 2**63 - 1), Kind.UINT64: (0, 2**64 - 1), Kind.INT32: (-(2**31), 2**31 - 1)}
_FLOATS: Final = {Kind.FLOAT: 1, Kind.DOUBLE: 11}
_ENUMS: Final[dict[Kind, tuple[Mapping[str, int], str]]] = {
    Kind.ATTRIBUTE_TYPE: (ATTRIBUTE_TYPES, "an AttributeType"),
    Kind.DATA_LOCATION: (DATA_LOCATIONS, "a DataLocation"),
}

_special: dict[type[d.Record], Reader] = {}
_lists: dict[type[d.Record], ListReader] = {}


def owner_of(record: type[d.Record]) -> str:
    """The name of a message in findings."""
    name = record.__name__
    return OWNERS.get(record) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def read_message(
    record: type[R],
    tree: Tree,
    place: Place,
    context: Context,
    *,
    given: Mapping[str, Any] | None = None,
    others: Collection[str] = (),
) -> R | None:
    """Read the record of an object of fields; report and leave out what cannot be read. None if it is not an object.

    `given` are fields that the caller has already read; `others` are keys of the object that are not fields.
    """
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, f"an object ({owner_of(record)})")
        return None
    readers = field_readers(record)
    values: dict[str, Any] = dict(given or ())
    for key, member in tree.items():
        if key in values or key in others:
            continue
        reader = readers.get(key)
        if reader is None:
            if member is UNREADABLE:
                continue
            fits = [*readers, *others]
            context.unknown_key(key, place.at(key), fits, owner_of(record))
            continue
        value = reader(member, place.at(key), context)
        if value is not None:
            values[key] = value
    _check_oneofs(record, tree, place, context)
    return record(**values)


def read_list(tree: Tree, place: Place, context: Context, reader: Reader, fits: str) -> tuple[Any, ...] | None:
    """Read the items of a list, without the unreadable ones; None, after a report, if it is not a list."""
    if not isinstance(tree, list):
        context.wrong_type(tree, place, fits)
        return None
    items = [reader(item, place.at(index), context) for index, item in enumerate(tree)]
    return tuple([item for item in items if item is not None])


def read_integer(tree: Tree, place: Place, context: Context, kind: Kind = Kind.INT64) -> int | None:
    """Read an integer: a number without a fraction, or its decimal digits as a string."""
    low, high = _INTEGERS[kind]
    if type(tree) is int and low <= tree <= high:
        return tree
    if isinstance(tree, int | float | str) and not isinstance(tree, bool):
        try:
            return parse_int(tree, low, high)
        except ElementError as error:
            _report_integer(error.found, tree, place, context, kind)
    else:
        context.wrong_type(tree, place, "an integer")
    return None


def _report_integer(shown: str, tree: float | str, place: Place, context: Context, kind: Kind) -> None:
    spelled = isinstance(tree, str) and re.fullmatch(r"-?0[0-9]{0,18}", tree)
    if spelled:
        context.error(place, "bad-number", f'"{tree}" is not a decimal integer', f"write {int(spelled.group())}")
        return
    is_whole = isinstance(tree, int) or (isinstance(tree, float) and tree.is_integer())
    if not is_whole and not (isinstance(tree, str) and tree.removeprefix("-").isdecimal()):
        context.wrong_type(tree, place, "an integer")
    elif isinstance(tree, float) and whole(tree) is None:
        hint = "write integers beyond 2^53 as digits in quotes"
        context.error(place, "bad-number", f"{shown} may have lost digits", hint)
    else:
        low, high = _INTEGERS[kind]
        context.error(
            place, "out-of-range", f"{shown} is out of range for {kind.value}", f"the range is {low} to {high}"
        )


def read_float(tree: Tree, place: Place, context: Context) -> bytes | None:
    """Read a float32 -> its 4 bytes, little-endian."""
    if tree is UNREADABLE:
        return None
    try:
        return float32_bits(tree)
    except ElementError as error:
        report_number(error, tree, place, context)
        return None


def report_number(error: ElementError, tree: Tree, place: Place, context: Context) -> None:
    """Report why a value is not a valid number in its place."""
    if isinstance(tree, bool | dict | list) or tree is None or tree is UNREADABLE:
        context.wrong_type(tree, place, error.fits)
    else:
        context.error(place, "bad-number", f"found {error.found}, expected {error.fits}")


def read_numbers(data_type: int, tree: Tree, place: Place, context: Context) -> bytes | None:
    """Read a flat list of numbers of a data type -> their bytes as in ``raw_data``."""
    if not isinstance(tree, list):
        context.wrong_type(tree, place, "a list of numbers")
        return None
    if has_unreadable(tree):
        return None
    try:
        return elements.pack(data_type, tree)
    except ElementError as error:
        report_number(error, tree[error.index], place.at(error.index), context)
        return None


def has_unreadable(items: list[Tree]) -> bool:
    """Whether a number, or a part of a complex one, is not JSON; that was reported already."""
    return any(item is UNREADABLE or (isinstance(item, list) and UNREADABLE in item) for item in items)


def read_data_type(tree: Tree, place: Place, context: Context) -> int | None:
    """Read a number of TensorProto.DataType, by its name or as a number."""
    if not isinstance(tree, str) or tree.lstrip("-").isdigit():
        return read_integer(tree, place, context, Kind.INT32)
    try:
        return parse_data_type(tree)
    except TypeSyntaxError as error:
        context.error(place, "unknown-dtype", f"found {error.found}", error.fits, character=error.position)
        return None


def _read_enum(kind: Kind, tree: Tree, place: Place, context: Context) -> int | None:
    numbers, what = _ENUMS[kind]
    if isinstance(tree, str) and tree in numbers:
        return numbers[tree]
    if isinstance(tree, str) and not tree.isdigit():
        context.error(place, "unknown-name", f'"{visible(tree)}" is not {what}', context.nearest(tree, numbers))
        return None
    number = read_integer(tree, place, context)
    if number is not None and number not in numbers.values():
        context.error(place, "unknown-name", f"{what} has no number {number}", context.nearest("", numbers))
        return None
    return number


@cache
def field_readers(record: type[d.Record]) -> Mapping[str, Reader]:
    """The readers of the keys of a message."""
    fields = FIELDS[record]
    readers = {field.name: _field_reader(record, field) for field in fields}
    readers["unknown_fields"] = lambda tree, place, context: strings.read_unknown_fields(tree, fields, place, context)
    return readers


def message_reader(record: type[d.Record]) -> Reader:
    """The reader of a message, wherever it occurs."""
    return _special.get(record) or (lambda tree, place, context: read_message(record, tree, place, context))


def register(messages: Mapping[type[d.Record], Reader], lists: Mapping[type[d.Record], ListReader]) -> None:
    """Set the readers of messages with a special form, and of whole lists of messages, by record."""
    _special.update(messages)
    _lists.update(lists)
    field_readers.cache_clear()


def _field_reader(record: type[d.Record], field: Field) -> Reader:
    if record is d.Tensor and field.name == "raw_data":
        return _read_raw_data
    if field.name == "doc_string":
        return strings.read_text_or_lines
    if field.packed:
        return _packed_reader(field.kind)
    if field.repeated and field.kind is Kind.FLOAT:
        return lambda tree, place, context: read_numbers(1, tree, place, context)
    if field.message in _lists:
        return _lists[field.message](field)
    single = _single_reader(field)
    if not field.repeated:
        return single
    fits = f"a list ({field.name})"
    return lambda tree, place, context: read_list(tree, place, context, single, fits)


def _single_reader(field: Field) -> Reader:
    kind = field.kind
    if field.message is not None:
        return message_reader(field.message)
    if kind in _INTEGERS:
        return lambda tree, place, context: read_integer(tree, place, context, kind)
    if kind in _ENUMS:
        return lambda tree, place, context: _read_enum(kind, tree, place, context)
    readers: dict[Kind, Reader] = {
        Kind.STRING: strings.read_string,
        Kind.BYTES: strings.read_bytes,
        Kind.DATA_TYPE: read_data_type,
        Kind.FLOAT: read_float,
    }
    return readers[kind]


def _packed_reader(kind: Kind) -> Reader:
    def read(tree: Tree, place: Place, context: Context) -> Data | None:
        if strings.is_by_sha256(tree, context):
            return _read_stored(kind, tree, place, context)
        if kind in _FLOATS:
            return read_numbers(_FLOATS[kind], tree, place, context)
        fits = "a list of numbers"
        numbers = read_list(tree, place, context, lambda item, at, context: read_integer(item, at, context, kind), fits)
        return None if numbers is None else elements.varints(numbers)

    return read


def _read_stored(kind: Kind, tree: Tree, place: Place, context: Context) -> Data | None:
    """Read packed numbers from the table of payloads, where they are serialised."""
    data = strings.read_by_sha256(tree, place, context)
    if data is None:
        return None
    if kind in _FLOATS:
        size = elements.byte_length(_FLOATS[kind], 1) or 0
        if len(data) % size:
            message = f"{len(data):,} bytes are not a whole number of elements of {size} bytes"
            context.error(place, "wrong-length", message)
            return None
        return data
    try:
        packed = whole_bytes(data)
        if packed:
            check_varints(packed, kind is Kind.INT32, 0)
    except (IndexError, OnnxJsonError, NotCanonicalError):
        context.error(place, "bad-payload", "the bytes are not packed numbers", "leave them as they were written")
        return None
    return packed


def _read_raw_data(tree: Tree, place: Place, context: Context) -> Any:
    if strings.is_by_sha256(tree, context):
        return strings.read_by_sha256(tree, place, context)
    if isinstance(tree, dict) and set(tree) == {"base64"}:
        return strings.read_payload(tree["base64"], place.at("base64"), context)
    if isinstance(tree, dict):
        return strings.read_base64_object(tree, place, context, "nothing")
    context.wrong_type(tree, place, '{"base64": "..."}')
    return None


def _check_oneofs(record: type[d.Record], tree: dict[str, Tree], place: Place, context: Context) -> None:
    """Report members of a oneof after the first: protobuf would keep only the last one."""
    members = [field.name for field in FIELDS[record] if field.oneof and field.name in tree]
    if len(members) > 1:
        message = f"{owner_of(record)} has " + " and ".join(members)
        context.error(place.at(members[1]), "conflicting-keys", message, "keep only one of them", on_key=True)
