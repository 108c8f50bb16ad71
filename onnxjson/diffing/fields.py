"""Differences of records besides the graph structure, field by field, with deepdiff.

These are metadata, training bindings, annotations, signatures of functions, device configurations, types. Lists of
entries with unique keys are compared by key. deepdiff is imported on first use.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from onnxjson.diffing.changes import EXAMPLES
from onnxjson.diffing.events import Detail
from onnxjson.model.document import (
    DeviceConfiguration,
    OperatorSetId,
    Record,
    StringStringEntry,
    TensorAnnotation,
    Type,
    ValueInfo,
)
from onnxjson.model.payloads import Payload
from onnxjson.model.types import format_type

_LONGEST: Final = 2000
"""Maximum length of a value in a detail, in characters."""


def field_details(base: object, target: object, what: str) -> tuple[Detail, ...]:
    """Return one detail for each field or entry that differs.

    Args:
        base: a record, a value of a field, or several of them.
        target: its counterpart.
        what: name of the whole.
    """
    from deepdiff import DeepDiff

    one, other = _plain(base), _plain(target)
    if not one and isinstance(other, dict):
        one = {}
    if not other and isinstance(one, dict):
        other = {}
    found = DeepDiff(one, other, view="tree", threshold_to_diff_deeper=0, verbose_level=2)
    details = []
    for kind in sorted(found):
        for level in found[kind]:
            path = "".join([f" {part}" for part in level.path(output_format="list")])
            details.append(Detail(what + path, _text(level.t1), _text(level.t2)))
    details.sort(key=lambda each: each.what)
    return tuple(details[:EXAMPLES])


def unknown_field_details(base: Any, target: Any, what: str = "unknown fields") -> tuple[Detail, ...]:
    """Return a detail with the fields unknown to onnx.proto of both records, in hexadecimal; () if they are equal."""
    if base.unknown_fields == target.unknown_fields:
        return ()
    return (Detail(what, base.unknown_fields.hex() or None, target.unknown_fields.hex() or None),)


def element_details(base: Sequence[object], target: Sequence[object], dims: Sequence[int], atol: float) -> list[Detail]:
    """Return one detail for each element of two small constants that differs by more than `atol`.

    Args:
        base: the elements, flat.
        target: the same number of elements.
        dims: the dims of both.
        atol: the largest absolute difference that is ignored.
    """
    from deepdiff import DeepDiff

    found = DeepDiff(list(base), list(target), view="tree", math_epsilon=atol or None, ignore_numeric_type_changes=True)
    places = sorted(level.path(output_format="list")[0] for level in found.get("values_changed", ()))
    return [Detail(f"element {_place(place, dims)}", str(base[place]), str(target[place])) for place in places]


def _place(flat: int, dims: Sequence[int]) -> str:
    """Return the indices of an element as text."""
    indices: list[int] = []
    for dim in reversed(dims):
        flat, index = divmod(flat, max(dim, 1))
        indices.append(index)
    return f"[{', '.join(map(str, reversed(indices)))}]"


def _plain(value: object) -> Any:
    """Convert records to mappings of their fields that are set, and entries to mappings by key."""
    if isinstance(value, Type):
        text = format_type(value)
        if text is not None:
            return text
    if isinstance(value, Payload):
        return f"{value.length:,} bytes"
    if isinstance(value, bytes):
        return value.hex() if len(value) <= _LONGEST else f"{len(value):,} bytes"
    if isinstance(value, Record):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return {name: _plain(each) for name, each in fields.items() if each not in (None, (), b"")}
    if isinstance(value, tuple):
        return _by_key(value) or [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


_KEY_FIELDS: Final[Mapping[type[Record], str]] = {
    StringStringEntry: "key",
    OperatorSetId: "domain",
    DeviceConfiguration: "name",
    ValueInfo: "name",
    TensorAnnotation: "tensor_name",
}


def _by_key(members: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return members by key if the keys are unique; a member with only a key and a value becomes its value."""
    if not members or len({type(each) for each in members}) != 1 or type(members[0]) not in _KEY_FIELDS:
        return None
    key_field = _KEY_FIELDS[type(members[0])]
    keys = [getattr(each, key_field) or "" for each in members]
    if len(set(keys)) != len(keys):
        return None
    return {key: _member(each, key_field) for key, each in zip(keys, members, strict=True)}


def _member(member: Record, key_field: str) -> Any:
    if isinstance(member, StringStringEntry) and not member.unknown_fields:
        return member.value
    if isinstance(member, OperatorSetId) and not member.unknown_fields:
        return member.version
    return _plain(msgspec.structs.replace(member, **{key_field: None}))


def _text(value: object) -> str | None:
    """Return a value of deepdiff as text; None if there is none."""
    if value is None or repr(value) == "not present":
        return None
    if isinstance(value, str):
        text = value
    elif isinstance(value, Mapping):
        text = ", ".join(f"{key}: {_text(each)}" for key, each in value.items())
    elif isinstance(value, Iterable):
        text = ", ".join(str(_text(each)) for each in value)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
