"""Types and tensors, in their short and their full forms (docs/format.md, sections 5 and 7)."""

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from onnxjson.codecs.reading import strings
from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.exact import field_readers, has_unreadable, read_message, report_number
from onnxjson.codecs.reading.named_values import read_pairs
from onnxjson.codecs.reading.tree import UNREADABLE, Tree
from onnxjson.model import elements
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Tensor, Type
from onnxjson.model.dtypes import COMPLEX_PARTS, DATA_TYPE_NAMES, STORAGE, STRING
from onnxjson.model.messages import DATA_LOCATIONS, FIELDS
from onnxjson.model.payloads import Data, Digest
from onnxjson.model.scalars import ElementError
from onnxjson.model.tensors import with_storage
from onnxjson.model.types import TypeSyntaxError, format_tensor_type, parse_tensor_type, parse_type

_remembered_type = lru_cache(maxsize=4096)(parse_type)

MAXIMUM_RANK: Final = 8
"""Values of a tensor of higher rank are one flat list."""

_PRINTED_BELOW: Final = 10**30
_PAYLOADS: Final = ("values", "base64", "blob", "sha256", "external_data")
_ORDINARY_KEYS: Final = ("name", "doc_string", "metadata_props", "unknown_fields")
_SHORT_KEYS: Final = ("name", "type", "storage", *_PAYLOADS, *_ORDINARY_KEYS[1:])
_WITHOUT_DIGEST: Final = ("int32_data", "int64_data", "uint64_data")
"""Typed fields without a digest, since their bytes are not those of the tensor."""


def read_type(tree: Tree, place: Place, context: Context) -> Type | None:
    """Read a type; None, after a report, if it is unreadable."""
    if isinstance(tree, dict):
        return read_message(Type, tree, place, context)
    if not isinstance(tree, str):
        context.wrong_type(tree, place, 'a type such as "float32[N,3]"')
        return None
    try:
        return _remembered_type(tree)
    except TypeSyntaxError as error:
        report_type(error, place, context)
        return None


def report_type(error: TypeSyntaxError, place: Place, context: Context) -> None:
    """Report the mistake in a type, at its character."""
    is_data_type = error.found.startswith("the dtype")
    code = "unknown-dtype" if is_data_type else "bad-type"
    hint = error.fits if is_data_type else f"expected: {error.fits}"
    found = error.found if error.found.startswith("the end") else f"{error.found} in the type"
    context.error(place, code, f"found {found}", hint, character=error.position)


def read_tensor(tree: Tree, place: Place, context: Context) -> Tensor | None:
    """Read a tensor; the key ``type`` marks the short form. None, after a report, if it is unreadable."""
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, 'a tensor such as {"type": "float32[1]", "values": [0.5]}')
        return None
    if "type" in tree:
        return _read_short(tree, place, context)
    if "data_type" not in tree and "dims" not in tree and any(key in tree for key in _PAYLOADS[:2]):
        hint = 'add dtype and dims, such as "type": "float32[2,3]"'
        context.error(place, "missing-key", 'the tensor has no "type"', hint)
        return None
    return read_message(Tensor, tree, place, context)


def _read_short(tree: dict[str, Tree], place: Place, context: Context) -> Tensor | None:
    fields = _read_ordinary_keys(tree, place, context)
    chosen = [key for key in tree if key in _PAYLOADS]
    if len(chosen) > 1:
        message = "the tensor has " + " and ".join(f'"{key}"' for key in chosen)
        context.error(place.at(chosen[1]), "conflicting-keys", message, "keep only one of them", on_key=True)
        return None
    if not chosen:
        hint = 'add "values", "base64", "blob", "sha256" or "external_data"'
        context.error(place, "missing-key", "the tensor has a type but no elements", hint)
        return None
    shape = _read_shape(tree["type"], place.at("type"), context)
    if shape is None:
        return None
    data_type, dims = shape
    payload = _read_elements(tree, chosen[0], data_type, dims, place, context)
    return None if payload is None else Tensor(dims=dims, data_type=data_type, **fields, **payload)


def _read_ordinary_keys(tree: dict[str, Tree], place: Place, context: Context) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, member in tree.items():
        at = place.at(key)
        if key in _ORDINARY_KEYS:
            value = field_readers(Tensor)[key](member, at, context)
            if value is not None:
                fields[key] = value
        elif key not in _SHORT_KEYS:
            full = any(field.name == key for field in FIELDS[Tensor])
            hint = '"type" belongs to the short form; the full form has "data_type" and "dims"' if full else ""
            message = f'a tensor with "type" has no key "{visible(key)}"'
            context.error(at, "unknown-key", message, hint or context.nearest(key, _SHORT_KEYS), on_key=True)
    return fields


def _read_shape(tree: Tree, place: Place, context: Context) -> tuple[int, tuple[int, ...]] | None:
    if not isinstance(tree, str):
        context.wrong_type(tree, place, 'the type of a tensor, such as "float32[2,3]"')
        return None
    try:
        return parse_tensor_type(tree)
    except TypeSyntaxError as error:
        report_type(error, place, context)
        return None


def _read_elements(
    tree: dict[str, Tree], key: str, data_type: int, dims: tuple[int, ...], place: Place, context: Context
) -> dict[str, Any] | None:
    at = place.at(key)
    if key == "external_data":
        if "storage" in tree:
            message = '"storage" is only for elements in this document'
            hint = "delete it: the elements are external data"
            context.error(place.at("storage"), "conflicting-keys", message, hint, on_key=True)
        pairs = read_pairs(tree[key], at, context)
        return None if pairs is None else {"external_data": pairs, "data_location": DATA_LOCATIONS["EXTERNAL"]}
    if data_type == STRING:
        return _read_strings(tree, key, dims, place, context)
    if data_type not in STORAGE:
        message = f"elements of the dtype {DATA_TYPE_NAMES[data_type]} cannot be written"
        context.error(place.at("type"), "bad-type", message, "only external data can have it")
        return None
    storage = _read_storage(tree, data_type, place, context)
    if key == "values":
        flat = _flatten(tree[key], dims, at, context, is_complex=data_type in COMPLEX_PARTS)
        raw: Data | None = None if flat is None else _pack(data_type, flat, dims, at, context)
    elif key in ("blob", "sha256"):
        raw = _read_digest(tree[key], key, storage, data_type, dims, at, context)
    else:
        needed = elements.byte_length(data_type, elements.element_count(dims))
        raw = strings.read_payload(tree[key], at, context, needed=needed)
        if raw is not None and not _check_length(raw, data_type, dims, at, context):
            return None
    if raw is None or storage is UNREADABLE:
        return None
    try:
        return with_storage(raw, data_type, storage, elements.element_count(dims)) if raw or storage is None else {}
    except ElementError as error:
        context.error(at, "bad-base64", f"the base64 ends with {error.found}", f"expected: {error.fits}")
        return None


def _read_digest(
    tree: Tree, key: str, storage: Any, data_type: int, dims: tuple[int, ...], place: Place, context: Context
) -> Data | None:
    """Read elements by the sha256 of their bytes, which a blob or another model has."""
    if not isinstance(tree, str) or not strings.SHA256.fullmatch(tree):
        context.wrong_type(tree, place, "the sha256 of the bytes, 64 digits and letters a to f")
        return None
    length = elements.byte_length(data_type, elements.element_count(dims))
    if length is not None and length > sys.maxsize:
        message = f"{format_tensor_type(data_type, dims)} needs more bytes than any file can hold"
        context.error(place, "wrong-length", message)
        return None
    if context.payloads is not None and key == "sha256":
        data = strings.payload_of(tree, length or 0, place, context)
        if not isinstance(data, Digest) or storage not in _WITHOUT_DIGEST:
            return data
    if storage in _WITHOUT_DIGEST:
        message = f'elements in "{storage}" cannot be written as "{key}"'
        context.error(place, "bad-digest", message, 'write them as "base64"', on_key=True)
        return None
    if key == "sha256" and not context.has_digests:
        message = 'the document has a "sha256", but does not declare it'
        context.error(place, "no-weights-line", message, 'add "weights": "digest", after "format"', on_key=True)
        return None
    if key == "blob" and context.blobs is None:
        message = 'the document has a "blob", but does not name the folder of blobs'
        context.error(place, "no-blobs-line", message, 'add "blobs": "model.blobs", before "ir_version"', on_key=True)
        return None
    return Digest(tree, length or 0, context.blobs if key == "blob" else None)


def _read_storage(tree: dict[str, Tree], data_type: int, place: Place, context: Context) -> Any:
    """Read the typed field of the elements: None for raw_data, `UNREADABLE` after an error."""
    if "storage" not in tree:
        return None
    storage = tree["storage"]
    if storage == STORAGE[data_type]:
        return storage
    if not isinstance(storage, str):
        context.wrong_type(storage, place.at("storage"), f'"{STORAGE[data_type]}"')
    else:
        message = f'elements of {DATA_TYPE_NAMES[data_type]} cannot be in "{visible(storage)}"'
        hint = f'write "{STORAGE[data_type]}", or leave storage out for raw_data'
        context.error(place.at("storage"), "bad-storage", message, hint)
    return UNREADABLE


def _check_length(raw: Data, data_type: int, dims: tuple[int, ...], place: Place, context: Context) -> bool:
    needed = elements.byte_length(data_type, elements.element_count(dims))
    if len(raw) == needed:
        return True
    found = counted(len(raw), "byte")
    message = f"the base64 has {found}; {format_tensor_type(data_type, dims)} needs {_count(needed or 0)}"
    context.error(place, "wrong-length", message)
    return False


def _read_strings(
    tree: dict[str, Tree], key: str, dims: tuple[int, ...], place: Place, context: Context
) -> dict[str, Any] | None:
    if "storage" in tree:
        message = "elements of the dtype string are always in string_data"
        context.error(place.at("storage"), "bad-storage", message, "delete storage", on_key=True)
    if key != "values":
        context.error(place.at(key), "wrong-type", "elements of the dtype string are values, not base64", on_key=True)
        return None
    at = place.at(key)
    flat = _flatten(tree[key], dims, at, context)
    if flat is None:
        return None
    texts = [strings.read_bytes(item, _place_of(index, dims, at), context) for index, item in enumerate(flat)]
    return {"string_data": tuple([text for text in texts if text is not None])}


def _pack(data_type: int, flat: list[Tree], dims: tuple[int, ...], place: Place, context: Context) -> bytes | None:
    if has_unreadable(flat):
        return None
    try:
        return elements.pack(data_type, flat)
    except ElementError as error:
        at = _place_of(error.index, dims, place)
        report_number(error, flat[error.index], at, context)
        return None


def _flatten(
    tree: Tree, dims: Sequence[int], place: Place, context: Context, *, is_complex: bool = False
) -> list[Tree] | None:
    """The elements of nested lists in order; None, after a report, if their shape is not `dims`."""
    if not dims:
        if isinstance(tree, list) and not (is_complex and len(tree) == 2):
            context.wrong_type(tree, place, "one value (the tensor has no dims)")
            return None
        return [tree]
    count = elements.element_count(dims)
    lengths: Sequence[int] = (count,) if count == 0 or len(dims) > MAXIMUM_RANK else dims
    level: list[Tree] = [tree]
    for depth, length in enumerate(lengths):
        next_level: list[Tree] = []
        for index, member in enumerate(level):
            if not isinstance(member, list) or len(member) != length:
                at = _place_of(index, lengths[:depth], place)
                _report_shape(member, length, at, lengths, depth, dims, context)
                return None
            next_level.extend(member)
        level = next_level
    return level


def _report_shape(
    tree: Tree, length: int, place: Place, lengths: Sequence[int], depth: int, dims: Sequence[int], context: Context
) -> None:
    inner = "list" if depth + 1 < len(lengths) else "value"
    shape = ",".join(map(str, dims))
    if isinstance(tree, list):
        plural = "" if len(tree) == 1 else "s"
        message = f"the list has {len(tree):,} {inner}{plural}; the shape [{shape}] needs {_count(length)}"
        context.error(place, "wrong-count", message)
    else:
        many = f"{length:,} " if length < _PRINTED_BELOW else ""
        context.wrong_type(tree, place, f"a list of {many}{inner}{'s' * (length != 1)} (the shape is [{shape}])")


def _place_of(index: int, dims: Sequence[int], place: Place) -> Place:
    if len(dims) > MAXIMUM_RANK:
        return place.at(index)
    indices = []
    for dim in reversed(dims):
        index, position = divmod(index, dim)
        indices.append(position)
    for position in reversed(indices):
        place = place.at(position)
    return place


def _count(number: int) -> str:
    return f"{number:,}" if number < _PRINTED_BELOW else "more than any file can hold"
