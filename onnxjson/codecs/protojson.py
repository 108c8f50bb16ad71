"""Proto-JSON -> ModelProto and records -> proto-JSON: the JSON of ``onnx.save(..., format="json")`` and onnx2json.

json_format silently drops some mistakes, so everything is checked against the table of messages before.
https://protobuf.dev/programming-guides/json/ has the rules; a field has its camelCase or its .proto name.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onnxjson.codecs.canonical_values import is_text
from onnxjson.codecs.reading.context import ROOT, Context, Place
from onnxjson.codecs.reading.exact import field_readers, owner_of, read_integer, report_number
from onnxjson.codecs.reading.exact_reader import collect_findings, summary
from onnxjson.codecs.reading.scan import scan
from onnxjson.codecs.reading.strings import read_base64
from onnxjson.codecs.reading.tree import HOOKS, UNREADABLE, Tree
from onnxjson.model import document as d
from onnxjson.model.addresses import walk
from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, EncodeError, Finding, Severity
from onnxjson.model.limits import MESSAGE_DEPTH
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES, DATA_LOCATION_NAMES, FIELDS, Field, Kind
from onnxjson.model.payloads import Data, pieces
from onnxjson.model.scalars import ElementError, float32_bits
from onnxjson.model.walking import replace_records

if TYPE_CHECKING:
    import onnx

_MINUS_ZERO: Final = re.compile(rb"-0(?![.0-9eE])")

_DECODER: Final = json.JSONDecoder(**HOOKS)

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAMED: Final = ("NaN", "Infinity", "-Infinity")
_FLOAT32_LARGEST: Final = 3.4028234663852886e38

_STANDARD_ALPHABET: Final = str.maketrans("-_", "+/")

_SPELLED_BY_NAME: Final = {Kind.ATTRIBUTE_TYPE: ATTRIBUTE_TYPE_NAMES, Kind.DATA_LOCATION: DATA_LOCATION_NAMES}
_LARGEST_AS_PRINTED: Final = 3.4028235e38
"""The largest float32 in the spelling of json_format, which it cannot read."""

_NANS: Final = {
    4: ("I", 0x7FC00000, 0x7FFFFFFF, 0x7F800000),
    8: ("Q", 0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
}
"""By size of a float in bytes: `struct` code, the NaN that "NaN" represents, all bits but the sign, infinity."""


def loads(text: bytes, *, file: str = "") -> "onnx.ModelProto":
    """Read a proto-JSON text in UTF-8; `file` is its name in findings.

    Numbers may be strings, enums names or numbers, base64 of either alphabet. A DecodeError has everything that
    json_format would refuse, drop or guess, with line and column.
    """
    from google.protobuf.json_format import ParseDict, ParseError
    from onnx import ModelProto

    context = Context()
    scanned = None
    tree: Any = _decode(text)
    if tree is UNREADABLE:
        scanned = scan(text)
        tree = scanned.tree
    if scanned is None or scanned.is_whole:
        _check_message(d.Model, tree, ROOT, context, 0)
    if context.remarks or (scanned and scanned.mistakes):
        # The scanner also reports what is a mistake in onnxjson/1 only; for a text that json reads, the checks decide.
        located = scanned or scan(text)
        if scanned is None:
            located.mistakes.clear()
        findings = collect_findings(located, context.remarks, file)
        raise DecodeError(summary(findings), findings)
    try:
        return ParseDict(tree, ModelProto(), max_recursion_depth=MESSAGE_DEPTH + 1)
    except ParseError as error:
        raise DecodeError(
            f"{visible(file, None) or 'the text'} is not a ModelProto: {visible(str(error), 400)}"
        ) from error


def _decode(text: bytes) -> Tree:
    """Parse a text that the standard library reads without loss; else return UNREADABLE."""
    decoder = _DECODER_OF_MINUS_ZERO if _MINUS_ZERO.search(text) else _DECODER
    try:
        return decoder.decode(text.decode())
    except (ValueError, RecursionError):
        return UNREADABLE


def _integer(text: str) -> int | float:
    """Parse an integer; ``-0`` is the float -0.0, as C++ and Go write it."""
    return -0.0 if text == "-0" else int(text)


_DECODER_OF_MINUS_ZERO: Final = json.JSONDecoder(parse_int=_integer, **HOOKS)


def json_name(name: str) -> str:
    """The camelCase name of a field in protobuf's JSON."""
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)


@cache
def _fields_by_key(record: type[d.Record]) -> Mapping[str, Field]:
    fields = FIELDS[record]
    return {json_name(field.name): field for field in fields} | {field.name: field for field in fields}


def _check_message(record: type[d.Record], tree: Tree, place: Place, context: Context, depth: int) -> None:
    """Report mistakes in an object of fields; respell the numbers that json_format misreads."""
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, f"an object ({owner_of(record)})")
        return
    if depth > MESSAGE_DEPTH:
        context.error(
            place, "nesting-too-deep", f"messages nest deeper than the {MESSAGE_DEPTH} levels that protobuf reads"
        )
        return
    fields = _fields_by_key(record)
    keys: dict[str, str] = {}
    oneofs: dict[str, str] = {}
    for key, value in tree.items():
        field = fields.get(key)
        inner = place.at(key)
        if field is None:
            alike = reversed(list(fields)) if "_" in key else fields
            context.unknown_key(key, inner, alike, owner_of(record))
            continue
        if (other := keys.setdefault(field.name, key)) != key:
            message = f'"{key}" and "{other}" are two names of one field'
            context.error(inner, "duplicate-key", message, "keep one of them", on_key=True)
        if value is None or value is UNREADABLE:
            continue
        if field.oneof and (other := oneofs.setdefault(field.oneof, key)) != key and field.name != fields[other].name:
            message = f'"{key}" and "{other}" exclude each other: only one of them can be set'
            context.error(inner, "conflicting-keys", message, "keep one of them", on_key=True)
        if field.repeated:
            _check_list(record, field, value, inner, context, depth)
        elif (checked := _check(record, field, value, inner, context, depth)) is not value:
            tree[key] = checked


def _check_list(record: type[d.Record], field: Field, tree: Tree, place: Place, context: Context, depth: int) -> None:
    if not isinstance(tree, list):
        context.wrong_type(tree, place, "a list")
        return
    for index, item in enumerate(tree):
        if item is None:
            context.error(place.at(index), "wrong-type", "null cannot be an item of a list", "delete it")
        elif (checked := _check(record, field, item, place.at(index), context, depth)) is not item:
            tree[index] = checked


def _check(record: type[d.Record], field: Field, tree: Tree, place: Place, context: Context, depth: int) -> Tree:
    """Check the value of a field -> the value in a spelling that json_format reads correctly."""
    if field.message is not None:
        _check_message(field.message, tree, place, context, depth + 1)
        return tree
    if field.kind in (Kind.ATTRIBUTE_TYPE, Kind.DATA_LOCATION):
        field_readers(record)[field.name](tree, place, context)
        return tree
    return _CHECKS[field.kind](tree, place, context)


def _check_integer(tree: Tree, place: Place, context: Context, kind: Kind) -> Tree:
    checked = read_integer(tree, place, context, kind)
    return tree if type(tree) is int or checked is None else checked


def _check_float32(tree: Tree, place: Place, context: Context) -> Tree:
    if isinstance(tree, float) and -_FLOAT32_LARGEST <= tree <= _FLOAT32_LARGEST:
        return tree
    number = _check_float64(tree, place, context)
    if not isinstance(number, float):
        return tree
    try:
        # json_format writes the largest float32 as 3.4028235e+38 and refuses to read that.
        return float(struct.unpack("<f", float32_bits(number))[0])
    except ElementError as error:
        report_number(error, tree, place, context)
        return tree


def _check_float64(tree: Tree, place: Place, context: Context) -> Tree:
    if isinstance(tree, float) or (isinstance(tree, str) and tree in _NAMED):
        return tree
    try:
        if type(tree) is int:
            return float(tree)
        if isinstance(tree, str) and len(tree) <= 400 and _NUMBER.fullmatch(tree):
            number = float(tree)
            if math.isfinite(number):
                return number
    except OverflowError:
        pass
    fits = 'a number, "NaN", "Infinity" or "-Infinity"'
    if isinstance(tree, int | str) and not isinstance(tree, bool):
        shown = visible(tree, 40) if isinstance(tree, str) else "an integer beyond float64"
        context.error(place, "bad-number", f"found {shown}, expected {fits}")
    else:
        context.wrong_type(tree, place, fits)
    return tree


def _check_string(tree: Tree, place: Place, context: Context) -> Tree:
    if not isinstance(tree, str):
        context.wrong_type(tree, place, "a string")
        return tree
    try:
        tree.encode()
    except UnicodeEncodeError as error:
        message = f"the string has \\u{ord(tree[error.start]):04x}, half of a surrogate pair"
        context.error(place, "half-surrogate", message, character=error.start)
    return tree


def _check_bytes(tree: Tree, place: Place, context: Context) -> Tree:
    if not isinstance(tree, str):
        context.wrong_type(tree, place, "a string of base64")
        return tree
    text = tree.translate(_STANDARD_ALPHABET) if "-" in tree or "_" in tree else tree
    if not text.endswith("=") and len(text) % 4 > 1:
        text += "=" * (4 - len(text) % 4)
    read_base64(text, place, context)
    return tree


_CHECKS: Final[dict[Kind, Callable[[Tree, Place, Context], Tree]]] = {
    Kind.INT64: lambda tree, place, context: _check_integer(tree, place, context, Kind.INT64),
    Kind.UINT64: lambda tree, place, context: _check_integer(tree, place, context, Kind.UINT64),
    Kind.INT32: lambda tree, place, context: _check_integer(tree, place, context, Kind.INT32),
    Kind.DATA_TYPE: lambda tree, place, context: _check_integer(tree, place, context, Kind.INT32),
    Kind.FLOAT: _check_float32,
    Kind.DOUBLE: _check_float64,
    Kind.STRING: _check_string,
    Kind.BYTES: _check_bytes,
}


def dumps(model: d.Model, *, lossy: bool = False) -> bytes:
    """Write a model as proto-JSON, spelled as ``onnx.save(..., format="json")`` does.

    An EncodeError has every part that proto-JSON cannot represent, with its address. With `lossy` those are left out:
    unknown fields and enum numbers, payloads of NaNs; bytes that are not UTF-8 become U+FFFD.
    """
    from google.protobuf.json_format import MessageToDict

    from onnxjson.codecs import serde

    proto = serde.to_proto(model)
    hint = "write the model in another format, or leave this out with --lossy"
    findings = [_finding("error", *loss, hint) for loss in _losses(model)]
    if findings and not lossy:
        raise EncodeError(f"proto-JSON cannot represent this model: {summary(findings)}", findings)
    if any(finding.code == "not-utf-8" for finding in findings):
        proto = serde.to_proto(replace_records(model, tuple(FIELDS), _with_readable_strings))
    tree = MessageToDict(proto, preserving_proto_field_name=True)
    text = json.dumps(tree, indent=2)
    if str(_LARGEST_AS_PRINTED) in text:
        _respell_largest(tree)
        text = json.dumps(tree, indent=2)
    return text.encode() + b"\n"


def losses(model: d.Model) -> tuple[Finding, ...]:
    """Return the parts of a model that proto-JSON cannot represent, as warnings: `dumps` with `lossy` omits them."""
    return tuple([_finding("warning", *loss, "--lossy writes the model without it") for loss in _losses(model)])


def _finding(severity: Severity, code: str, address: str, message: str, hint: str) -> Finding:
    return Finding(severity=severity, code=code, address=address or "/", message=message, hint=hint)


def _losses(model: d.Model) -> Iterator[tuple[str, str, str]]:
    for address, record in walk(model):
        if getattr(record, "unknown_fields", b""):
            yield "unknown-fields", address, "the message has fields that onnx.proto does not define"
        for field in _fields_that_may_lose(type(record)):
            value = getattr(record, field.name)
            if value is None or (field.repeated and not len(value)):
                continue
            place = f"{address}/{field.name}"
            if field.kind in (Kind.FLOAT, Kind.DOUBLE):
                if message := _odd_nan(value, 4 if field.kind is Kind.FLOAT else 8):
                    yield "nan-payload", place, message
            elif field.kind is Kind.STRING:
                places = [f"{place}/{index}" for index in range(len(value))] if field.repeated else [place]
                for inner, text in zip(places, value if field.repeated else (value,), strict=True):
                    if not is_text(text):
                        yield "not-utf-8", inner, f'"{visible(text, 40)}" has bytes that are not UTF-8'
            elif value not in _SPELLED_BY_NAME[field.kind]:
                yield "unknown-name", place, f"{field.kind.value} has no number {value}"


@cache
def _fields_that_may_lose(record: type[d.Record]) -> tuple[Field, ...]:
    """Return the fields that proto-JSON may not represent; integers, bytes and open enums always fit."""
    kinds = {Kind.STRING, Kind.FLOAT, Kind.DOUBLE, *_SPELLED_BY_NAME}
    return tuple(field for field in FIELDS[record] if field.kind in kinds)


def _odd_nan(data: Data, size: int) -> str:
    """Describe the first NaN that is not the one that "NaN" represents; "" if there is none."""
    code, quiet, mask, infinity = _NANS[size]
    index = 0
    for piece in pieces(data):
        for (bits,) in struct.iter_unpack(f"<{code}", piece):
            if bits & mask > infinity and bits != quiet:
                which = f"element {index} is " if len(data) > size else ""
                return f"{which}NaN(0x{bits:0{2 * size}x}), but proto-JSON has only NaN(0x{quiet:x})"
            index += 1
    return ""


def _with_readable_strings(record: d.Record) -> d.Record:
    changes: dict[str, Any] = {}
    for field in FIELDS[type(record)]:
        value = getattr(record, field.name)
        if field.kind is Kind.STRING and value:
            changes[field.name] = tuple(map(_readable, value)) if field.repeated else _readable(value)
    return msgspec.structs.replace(record, **changes) if changes else record


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _respell_largest(tree: Any) -> None:
    """Write the largest float32 in digits that json_format reads; float64 values stay."""
    if isinstance(tree, list):
        for item in tree:
            _respell_largest(item)
        return
    for key, value in tree.items():
        if key == "f":
            tree[key] = _respelled(value)
        elif key in ("floats", "float_data"):
            tree[key] = [_respelled(item) for item in value]
        elif isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            _respell_largest(value)


def _respelled(value: Any) -> Any:
    if isinstance(value, float) and abs(value) == _LARGEST_AS_PRINTED:
        return math.copysign(_FLOAT32_LARGEST, value)
    return value
