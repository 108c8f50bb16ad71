"""Records -> proto-JSON, and the parts of a model that proto-JSON cannot represent."""

import json
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from onnxjson.codecs.canonical_values import is_text
from onnxjson.model import document as d
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.display import visible
from onnxjson.model.errors import EncodeError, Finding
from onnxjson.model.floats import BATCH_FROM
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES, DATA_LOCATION_NAMES, FIELDS, Field, Kind
from onnxjson.model.payloads import Data, pieces

R = TypeVar("R", bound=d.Record)

_SPELLED_BY_NAME: Final = {Kind.ATTRIBUTE_TYPE: ATTRIBUTE_TYPE_NAMES, Kind.DATA_LOCATION: DATA_LOCATION_NAMES}
_LARGEST: Final = 3.4028234663852886e38
_LARGEST_AS_PRINTED: Final = 3.4028235e38
_HINT: Final = "write the model in another form, or write it without that with --lossy"


def dumps(model: d.Model, *, lossy: bool = False) -> bytes:
    """Write a model as proto-JSON, spelled as ``onnx.save(..., format="json")`` does.

    Args:
        model: the model; its payloads in files are read.
        lossy: write a model that proto-JSON cannot represent: unknown fields and unknown enum numbers are left out, a
            NaN loses its payload, bytes that are not UTF-8 become U+FFFD.

    Raises:
        EncodeError: proto-JSON cannot represent the model; ``findings`` has every reason with its address.
        LimitError: messages nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a payload's file can no longer be read.
    """
    from google.protobuf.json_format import MessageToDict

    from onnxjson.codecs import serde

    proto = serde.to_proto(model)
    found = _Losses()
    found.walk(model, "")
    if found.findings and not lossy:
        raise EncodeError(_summary(found.findings), found.findings)
    if found.has_bad_strings:
        proto = serde.to_proto(_with_readable_strings(model))
    tree = MessageToDict(proto, preserving_proto_field_name=True)
    if found.has_largest:
        _respell_largest(tree)
    return json.dumps(tree, indent=2).encode() + b"\n"


def losses(model: d.Model) -> tuple[Finding, ...]:
    """The parts of a model that proto-JSON cannot represent, as warnings: `dumps` with `lossy` leaves them out.

    Raises:
        ChangedUnderneathError, FileError: a payload's file can no longer be read.
    """
    found = _Losses()
    found.walk(model, "")
    hint = "--lossy writes the model without it"
    return tuple(msgspec.structs.replace(finding, severity="warning", hint=hint) for finding in found.findings)


def _summary(findings: Sequence[Finding]) -> str:
    more = len(findings) - 1
    return f"proto-JSON cannot hold this model: {findings[0]}" + (f" (and {more:,} more)" if more else "")


class _Losses:
    """A walk over a model that collects what proto-JSON cannot represent and what json_format cannot read back."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.has_bad_strings = False
        self.has_largest = False
        """Whether the largest float32 occurs, which json_format writes in a spelling that it cannot read."""

    def walk(self, record: d.Record, address: str) -> None:
        """Collect the losses of a message at `address`."""
        if getattr(record, "unknown_fields", b""):
            message = "the message has fields that onnx.proto does not define"
            self._note("unknown-fields", address, message)
        for field in _fields_that_may_lose(type(record)):
            value = getattr(record, field.name)
            if value is None or (field.repeated and not len(value)):
                continue
            place = f"{address}/{field.name}"
            if field.kind is Kind.FLOAT:
                self._floats(value, 4, place)
            elif field.kind is Kind.DOUBLE:
                self._floats(value, 8, place)
            elif not field.repeated:
                self._single(field, value, place)
            else:
                for item, inner in zip(value, _places(field, value, place), strict=True):
                    self._single(field, item, inner)

    def _single(self, field: Field, value: Any, address: str) -> None:
        if field.kind is Kind.MESSAGE:
            self.walk(value, address)
        elif field.kind is Kind.STRING:
            if not is_text(value):
                self.has_bad_strings = True
                self._note("not-utf-8", address, f'"{visible(value, 40)}" has bytes that are not UTF-8')
        elif value not in _SPELLED_BY_NAME[field.kind]:
            self._note("unknown-name", address, f"{field.kind.value} has no number {value}")

    def _floats(self, data: Data, size: int, address: str) -> None:
        code, quiet = _NANS[size][:2]
        start = 0
        for piece in pieces(data):
            if size == 4:
                self.has_largest = self.has_largest or b"\xff\xff\x7f" in piece
            odd = _odd_nan(piece, size)
            if odd is not None:
                (bits,) = struct.unpack_from(f"<{code}", piece, odd * size)
                which = f"element {start + odd} is " if len(data) > size else ""
                message = f"{which}NaN(0x{bits:0{2 * size}x}), but proto-JSON has only NaN(0x{quiet:x})"
                self._note("nan-payload", address, message)
                return
            start += len(piece) // size

    def _note(self, code: str, address: str, message: str) -> None:
        self.findings.append(Finding(severity="error", code=code, address=address or "/", message=message, hint=_HINT))


@cache
def _fields_that_may_lose(record: type[d.Record]) -> tuple[Field, ...]:
    """The fields that proto-JSON may not represent; integers, bytes and open enums always fit."""
    kinds = {Kind.MESSAGE, Kind.STRING, Kind.FLOAT, Kind.DOUBLE, *_SPELLED_BY_NAME}
    return tuple(field for field in FIELDS[record] if field.kind in kinds)


def _places(field: Field, items: Sequence[Any], address: str) -> Iterator[str]:
    """The addresses of the members of a list: attributes by a name that is unique, all else by position."""
    if field.message is not d.Attribute:
        yield from (f"{address}/{index}" for index in range(len(items)))
        return
    yield from (f"{address}/{escape(segment)}" for segment in attribute_segments(items))


_NANS: Final = {
    4: ("I", 0x7FC00000, 0x7FFFFFFF, 0x7F800000),
    8: ("Q", 0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
}
"""By bytes of a float: `struct` code, the NaN that "NaN" represents, all bits but the sign, infinity."""


def _odd_nan(data: bytes, size: int) -> int | None:
    """Position of the first NaN that is not the one that "NaN" represents."""
    code, quiet, mask, infinity = _NANS[size]
    if len(data) < BATCH_FROM * size:
        for index, bits in enumerate(struct.unpack(f"<{len(data) // size}{code}", data)):
            if bits & mask > infinity and bits != quiet:
                return index
        return None
    import numpy

    patterns = numpy.frombuffer(data, f"<u{size}")
    odd = numpy.flatnonzero(((patterns & patterns.dtype.type(mask)) > infinity) & (patterns != quiet))
    return int(odd[0]) if len(odd) else None


def _with_readable_strings(record: R) -> R:
    """Replace every byte of a string that is not UTF-8 by U+FFFD."""
    changes: dict[str, Any] = {}
    for field in _fields_that_may_lose(type(record)):
        value = getattr(record, field.name)
        if value is None or field.kind not in (Kind.MESSAGE, Kind.STRING):
            continue
        convert = _with_readable_strings if field.kind is Kind.MESSAGE else _readable
        changes[field.name] = tuple(convert(item) for item in value) if field.repeated else convert(value)
    return msgspec.structs.replace(record, **changes)


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
        return _LARGEST if value > 0 else -_LARGEST
    return value
