"""Details of events: fields of records that differ, and short texts for values and places of nodes.

Records other than the graph structure (metadata, training bindings, annotations, signatures, device configurations,
types) are compared with deepdiff, which is imported on first use; lists of entries with unique keys are compared by
key. Texts are escaped for display later.
"""

import itertools
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from onnxjson.diffing.changes import EXAMPLES
from onnxjson.diffing.events import Detail
from onnxjson.model.display import counted
from onnxjson.model.document import (
    Attribute,
    DeviceConfiguration,
    Graph,
    Node,
    OperatorSetId,
    Record,
    StringStringEntry,
    Tensor,
    TensorAnnotation,
    Type,
    ValueInfo,
)
from onnxjson.model.elements import element_count, tokens
from onnxjson.model.payloads import Payload, whole
from onnxjson.model.tensors import raw_bytes
from onnxjson.model.types import format_data_type, format_type, shown_type
from onnxjson.patterns.selector_terms import attribute_text, scopes_of

_LONGEST: Final = 2000
"""Maximum length of a value in a detail, in characters."""

_KEY_FIELDS: Final[Mapping[type[Record], str]] = {
    StringStringEntry: "key",
    OperatorSetId: "domain",
    DeviceConfiguration: "name",
    ValueInfo: "name",
    TensorAnnotation: "tensor_name",
}

_FEW: Final = 16
"""Maximum number of elements of a constant that is written out."""

_LONG: Final = 64
"""Maximum number of elements of an attribute that is written out."""

_SEPARATORS: Final = re.compile(r"[/.]+")


def field_details(base: object, target: object, what: str) -> tuple[Detail, ...]:
    """Return one detail for each field or entry that differs.

    Args:
        base: a record, a value of a field, or several of them.
        target: its counterpart.
        what: name of the whole.
    """
    one, other = _plain(base), _plain(target)
    if not one and isinstance(other, dict):
        one = {}
    if not other and isinstance(one, dict):
        other = {}
    if _is_flat(one) and _is_flat(other):
        keys = sorted([key for key in one.keys() | other.keys() if one.get(key, 0) != other.get(key, 0)])
        return tuple([Detail(f"{what} {key}", _text(one.get(key)), _text(other.get(key))) for key in keys[:EXAMPLES]])
    from deepdiff import DeepDiff

    differences = DeepDiff(one, other, view="tree", threshold_to_diff_deeper=0, verbose_level=2)
    details = []
    for kind in sorted(differences):
        for level in differences[kind]:
            path = "".join([f" {part}" for part in level.path(output_format="list")])
            details.append(Detail(what + path, _text(level.t1), _text(level.t2)))
    details.sort(key=lambda detail: detail.what)
    return tuple(details[:EXAMPLES])


def unknown_field_details(base: Any, target: Any, what: str = "unknown fields") -> tuple[Detail, ...]:
    """Return a detail with the fields unknown to onnx.proto of both records, in hexadecimal; () if they are equal."""
    if base.unknown_fields == target.unknown_fields:
        return ()
    return (Detail(what, base.unknown_fields.hex() or None, target.unknown_fields.hex() or None),)


def _is_flat(value: object) -> bool:
    """Whether a value is a mapping of texts, as metadata is."""
    return isinstance(value, dict) and all([type(each) is str for each in value.values()])


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
        return {name: _plain(member) for name, member in fields.items() if member not in (None, (), b"")}
    if isinstance(value, tuple):
        return _by_key(value) or [_plain(member) for member in value]
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    return value


def _by_key(members: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return members by key if the keys are unique; a member with only a key and a value becomes its value."""
    if not members or len({type(member) for member in members}) != 1 or type(members[0]) not in _KEY_FIELDS:
        return None
    key_field = _KEY_FIELDS[type(members[0])]
    keys = [getattr(member, key_field) or "" for member in members]
    if len(set(keys)) != len(keys):
        return None
    return {key: _member(member, key_field) for key, member in zip(keys, members, strict=True)}


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


def type_text(tensor: Tensor) -> str:
    """Return dtype and dims as readable text, also if they are invalid."""
    return f"{format_data_type(tensor.data_type or 0)}[{','.join(map(str, tensor.dims))}]"


def attribute_value_text(attribute: Attribute) -> str:
    """Return the value of an attribute as readable text."""
    if attribute.ref_attr_name is not None:
        return f"@{attribute.ref_attr_name}"
    if attribute.t is not None:
        return tensor_value_text(attribute.t)
    if attribute.g is not None:
        return graph_text(attribute.g)
    if attribute.graphs:
        return ", ".join(map(graph_text, attribute.graphs))
    if attribute.tensors:
        return ", ".join(map(type_text, attribute.tensors))
    if attribute.sparse_tensor is not None:
        return "a sparse tensor"
    text = attribute_text(attribute)
    return text if text is not None else "a value that does not fit its type"


def attribute_texts(one: Attribute | None, other: Attribute | None) -> tuple[str | None, str | None]:
    """Return the values of an attribute in both models, None if missing; of long lists, a part that differs."""
    values = [_elements(attribute) for attribute in (one, other)]
    start = 0
    if all(values):
        different = (place for place, (old, new) in enumerate(zip(*values, strict=False)) if old != new)
        start = max(next(different, min(map(len, values))) - 4, 0)
    changed = sum(map(operator.ne, *values)) + abs(len(values[0]) - len(values[1])) if all(values) else 0
    first, second = map(_value_from, (one, other), map(len, values), (start, start))
    if changed and second and max(map(len, values)) > _LONG:
        second += f"; {changed:,} {'differs' if changed == 1 else 'differ'}"
    return first, second


def _elements(attribute: Attribute | None) -> Sequence[object]:
    """Return the members of a list, in a form that can be compared; () for other values."""
    if attribute is None:
        return ()
    return attribute.ints or attribute.strings or memoryview(attribute.floats).cast("I")


def _value_from(attribute: Attribute | None, count: int, start: int) -> str | None:
    """Return the value of an attribute; of a long list, some of its members and their number."""
    if attribute is None:
        return None
    if count <= _LONG:
        return _text(attribute_value_text(attribute))
    end = start + _FEW
    part = msgspec.structs.replace(
        attribute,
        ints=attribute.ints[start:end],
        strings=attribute.strings[start:end],
        floats=attribute.floats[4 * start : 4 * end],
    )
    text = attribute_value_text(part)[1:-1]
    return f"[{'…,' if start else ''}{text}{',…' if end < count else ''}], {count:,} elements"


def graph_text(graph: Graph) -> str:
    """Return a readable text for a graph: its size."""
    return f"a graph of {counted(len(graph.node), 'node')}"


def tensor_value_text(tensor: Tensor) -> str:
    """Return the type and, if there are few, the elements of a constant: ``int64[2] = [1, 2]``."""
    text = type_text(tensor)
    count = element_count(tensor.dims)
    if count > _FEW or tensor.data_type is None:
        return text
    if tensor.string_data:
        texts: list[str] | None = [string.decode("utf-8", "surrogateescape") for string in tensor.string_data]
    else:
        stored = raw_bytes(tensor)
        texts = None if stored is None else tokens(tensor.data_type, whole(stored[0]), count)
    if texts is None:
        return text
    return f"{text} = {texts[0]}" if not tensor.dims and texts else f"{text} = [{', '.join(texts)}]"


def value_type_text(value: Type | None) -> str | None:
    """Return the type of a value as readable text; None if there is none."""
    return None if value is None else shown_type(value)


def info_text(value: ValueInfo) -> str:
    """Return the name and type of a value as text."""
    kind = value_type_text(value.type)
    return f"{value.name or ''}: {kind}" if kind else value.name or ""


def scope_parts(node: Node) -> tuple[str, ...]:
    """Return the name scopes around a node, outermost first; none if they are unknown."""
    parts: list[str] = []
    for part in _SEPARATORS.split(next(iter(scopes_of(node)[-1:]), "")):
        # A number belongs to the name before it: "layer.0" is one place in the names of torch.
        if part.isdecimal() and parts:
            parts[-1] += f".{part}"
        elif part:
            parts.append(part)
    return tuple(parts)


def node_label(node: Node) -> str:
    """Return the name of a node, else the name of its first output."""
    return node.name or next(filter(None, node.output), "")


def place_of(node: Node) -> str:
    """Return the place of a node: its name scope, else its name, else its first output."""
    scopes = scope_parts(node)
    if scopes:
        return "/" + "/".join(scopes)
    return node_label(node)


def common_place(nodes: Iterable[Node]) -> str:
    """Return the place of several nodes: the innermost scope around all that have one, else the place of the first."""
    first = list(itertools.islice(nodes, 64))
    scopes = list(filter(None, map(scope_parts, first)))
    common = os.path.commonprefix(scopes) if scopes else ()  # noqa: RUF071 - of scopes
    return "/" + "/".join(common) if common else place_of(first[0]) if first else ""
