"""What differs between two records that are no graph structure, field by field, by deepdiff.

Metadata, training bindings, annotations, signatures of functions, device configurations, types. Lists of entries with
unique keys are compared by key. deepdiff is imported on first use.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from onnxjson.diffing.changes import EXAMPLES
from onnxjson.diffing.events import Detail
from onnxjson.document import (
    DeviceConfiguration,
    OperatorSetId,
    Record,
    StringStringEntry,
    TensorAnnotation,
    Type,
    ValueInfo,
)
from onnxjson.payloads import Payload
from onnxjson.types import format_type

_LONGEST: Final = 2000
"""Characters of a value that a detail tells."""


def field_details(base: object, target: object, what: str) -> tuple[Detail, ...]:
    """What is different, one detail for each field or entry.

    Args:
        base: a record, a value of a field, or several of them.
        target: its counterpart.
        what: what the whole is called.
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


def unknown_fields(base: Any, target: Any, what: str = "unknown fields") -> tuple[Detail, ...]:
    """What two records hold that onnx.proto has no field for, as a detail in hexadecimal digits; () for the same."""
    if base.unknown_fields == target.unknown_fields:
        return ()
    return (Detail(what, base.unknown_fields.hex() or None, target.unknown_fields.hex() or None),)


def element_details(base: Sequence[object], target: Sequence[object], dims: Sequence[int], atol: float) -> list[Detail]:
    """Which elements of two small constants are further apart than `atol`, by their place.

    Args:
        base: the elements, flat.
        target: as many.
        dims: of both.
        atol: what is no difference.
    """
    from deepdiff import DeepDiff

    found = DeepDiff(list(base), list(target), view="tree", math_epsilon=atol or None, ignore_numeric_type_changes=True)
    places = sorted(level.path(output_format="list")[0] for level in found.get("values_changed", ()))
    return [Detail(f"element {_place(place, dims)}", str(base[place]), str(target[place])) for place in places]


def _place(flat: int, dims: Sequence[int]) -> str:
    """The indices of an element."""
    indices: list[int] = []
    for dim in reversed(dims):
        flat, index = divmod(flat, max(dim, 1))
        indices.append(index)
    return f"[{', '.join(map(str, reversed(indices)))}]"


def _plain(value: object) -> Any:
    """Records as mappings of what is there, entries by key."""
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
    """Members by key, where each has one of its own; entries with nothing else as their value."""
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
    """A value as deepdiff gives it; None where there is nothing."""
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
