"""What to say where a patch does not fit: the first place that differs, what was expected and what stands there."""

from typing import Any, Final

from msgspec.structs import astuple

from onnxjson.display import counted, visible
from onnxjson.document import Record
from onnxjson.errors import PatchError
from onnxjson.floats import float32_text
from onnxjson.messages import Kind
from onnxjson.patching.changes import is_absent, plans
from onnxjson.payloads import Payload

NOT_FITTING: Final = "the patch does not fit"
"""What every refusal begins with."""


def refusal(address: str, expected: object, found: object, kind: Kind | None = None) -> PatchError:
    """The error for a place that does not hold what it should; of two records the first field that differs."""
    if isinstance(expected, Record) and type(expected) is type(found):
        return _in_records(address, expected, found)
    if isinstance(expected, tuple) and isinstance(found, tuple) and any(isinstance(each, Record) for each in expected):
        if len(expected) != len(found):
            return wrong_length(address, len(expected), len(found))
        place = next(place for place, (old, new) in enumerate(zip(expected, found, strict=True)) if old != new)
        return refusal(f"{address}/{place}", expected[place], found[place])
    text = f"expected {described(expected, kind)}, found {described(found, kind)}"
    return PatchError(f"{NOT_FITTING}: {shown(address)}: {text}", address, expected, found)


def _in_records(address: str, expected: Record, found: Record) -> PatchError:
    for name, old, new in zip(expected.__struct_fields__, astuple(expected), astuple(found), strict=True):
        if old is not new and old != new:
            plan = plans(type(expected)).get(name)
            kind = None if plan is None else plan.field.kind
            repeated = plan is None or plan.field.repeated
            there, here = [None if is_absent(value, repeated=repeated) else value for value in (old, new)]
            return refusal(f"{address}/{name}", there, here, kind)
    raise AssertionError("the records are equal")


def wrong_length(address: str, expected: int, found: int) -> PatchError:
    """The error for a list of another length."""
    text = f"expected {counted(expected, 'member')}, found {found:,}"
    return PatchError(f"{NOT_FITTING}: {shown(address)}: {text}", address, expected, found)


def unfit(address: str, reason: str) -> PatchError:
    """The error for a change that makes no sense of what stands at an address."""
    return PatchError(f"{NOT_FITTING}: {shown(address)}: {reason}", address)


def shown(address: str) -> str:
    """An address for a message."""
    return visible(address, 200) if address else "the model"


def described(value: Any, kind: Kind | None = None) -> str:
    """A value in a few words, safe to print."""
    match value:
        case None:
            return "nothing"
        case Record():
            name = getattr(value, "name", None) or getattr(value, "key", None)
            return type(value).__name__ + (f' "{visible(name, 40)}"' if isinstance(name, str) else "")
        case str():
            return f'"{visible(value, 60)}"'
        case bytes() if kind is Kind.FLOAT and len(value) == 4:
            return float32_text(value)
        case bytes() if len(value) <= 16:
            return f"the byte{'s' * (len(value) > 1)} {value.hex()}" if value else "no bytes"
        case bytes() | Payload():
            return f"{len(value):,} bytes" + _digest(value)
        case tuple():
            items = [described(each, kind) for each in value[:8]]
            return "[" + ", ".join(items) + (f", ... {len(value):,} in all]" if len(value) > 8 else "]")
        case _:
            return str(value)


def _digest(data: bytes | Payload) -> str:
    if isinstance(data, Payload):
        return f" with the sha256 {data.sha256[:12]}"
    import hashlib

    return f" with the sha256 {hashlib.sha256(data).hexdigest()[:12]}"
