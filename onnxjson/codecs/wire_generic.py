"""Serialised messages -> records, strictly by the field table.

Only bytes that protobuf itself would write are accepted: fields ascending, singular ones once, numbers minimal, unknown
fields last. So the records determine the bytes, presence and unknown fields included, at no extra cost. Other bytes
raise `NotCanonicalError`; the caller then lets protobuf read and rewrite them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from onnxjson.codecs import wire_format as wire
from onnxjson.model import document as d
from onnxjson.model.errors import LimitError, WireError
from onnxjson.model.limits import MESSAGE_DEPTH
from onnxjson.model.messages import FIELDS, Field, Kind
from onnxjson.model.payloads import LAZY_FROM, Data, FileSlice, SourceFile

ReadFrequent = Callable[[int, int, int], Any]
"""Read a message: its first position, the position after it, its depth."""

ReadRun = Callable[[int, int, int, int], tuple[list[Any], int]]
"""Read consecutive messages of one tag: the tag, the position of the first length, the end, the depth around them."""


class _Rule:
    """The way in which the generic reader reads one field."""

    __slots__ = ("enum", "field", "index", "once", "read", "runs")

    def __init__(self, index: int, field: Field) -> None:
        self.index = index
        self.field = field
        self.once = not field.repeated or field.packed
        # Consecutive messages are read in one loop if their tag is one byte.
        self.runs = field.repeated and field.message is not None and wire.tag_of(field) < 0x80
        self.enum = wire.CLOSED_ENUMS.get(field.kind)
        self.read = _READERS[_PACKED if field.packed else field.kind]


class _Rules:
    """The way in which the generic reader reads one message."""

    __slots__ = ("by_tag", "defaults", "floats", "oneofs", "record", "unknown")

    def __init__(self, record: type[d.Record], fields: tuple[Field, ...]) -> None:
        self.record = record
        self.defaults = list(record.__struct_defaults__)
        self.by_tag = {wire.tag_of(field): _Rule(index, field) for index, field in enumerate(fields)}
        self.unknown = wire.UnknownTail(fields)
        self.oneofs = [index for index, field in enumerate(fields) if field.oneof]
        self.floats = [i for i, field in enumerate(fields) if field.kind is Kind.FLOAT and field.repeated]


class _Names(dict[bytes, str]):
    """Strings by their bytes; equal ones become one object."""

    def __missing__(self, raw: bytes) -> str:
        name = self[raw] = raw.decode("utf-8", "surrogateescape")
        return name


class GenericReader:
    """Reads messages from a buffer; payloads of `LAZY_FROM` bytes and more stay in `source`, if it is given."""

    def __init__(self, buffer: wire.Buffer, source: SourceFile | None = None) -> None:
        self._buffer = buffer
        self._source = source
        self._names = _Names()
        self._payloads = 0  # that stay in `source`
        self._frequent: dict[type[d.Record], ReadFrequent] = {}
        """The methods of messages with special readers."""
        self._runs: dict[type[d.Record], ReadRun] = {}
        """The methods for messages that are read in runs."""

    def read(self, record: type[d.Record]) -> Any:
        """Read the whole buffer as one message of class `record`.

        Raises:
            WireError, LimitError: the bytes are not such a message, end within it, or nest too deep.
            NotCanonicalError: they are such a message, but not as protobuf writes it.
        """
        try:
            return self.message(record, 0, len(self._buffer), 0)
        except IndexError:
            raise WireError("the bytes end within a field: the file is cut off", len(self._buffer)) from None

    def message(self, record: type[d.Record], position: int, end: int, depth: int) -> Any:
        """Read the message of class `record` from `position` to `end`, `depth` levels down."""
        if depth > MESSAGE_DEPTH:
            raise LimitError(f"messages nest deeper than {MESSAGE_DEPTH} levels; protobuf reads no deeper")
        rules = _RULES[record]
        by_tag = rules.by_tag
        buffer = self._buffer
        values: list[Any] = rules.defaults.copy()
        last = -1
        while position < end:
            start = position
            tag = buffer[position]
            if tag < 0x80:
                position += 1
            else:
                tag, position = self._long_tag(position)
            rule = by_tag.get(tag)
            if rule is None or (rule.enum is not None and not self._is_enum(rule.enum, position)):
                rules.unknown.check(buffer, start, end, depth)
                values[-1] = buffer[start:end]
                break
            index = rule.index
            if index <= last and (index < last or rule.once):
                raise wire.NotCanonicalError
            if rule.runs and depth < MESSAGE_DEPTH - 4:
                values[index], position = self._run(rule.field.message, tag, position, end, depth)  # type: ignore[arg-type]
                last = index
                continue
            value, position = rule.read(self, position, end, rule, depth)
            if position > end:
                raise WireError(f"{rule.field.name} is longer than the message that contains it", start)
            if not rule.field.repeated or rule.field.packed:
                values[index] = value
            elif index == last:
                values[index].append(value)
            else:
                values[index] = [value]
            last = index
        if rules.oneofs and sum(values[index] is not None for index in rules.oneofs) > 1:
            raise wire.NotCanonicalError
        for index in rules.floats:
            if type(values[index]) is list:
                values[index] = b"".join(values[index])
        unknown: bytes = values.pop()
        return rules.record(*[tuple(v) if type(v) is list else v for v in values], unknown_fields=unknown)

    def _long_tag(self, position: int) -> tuple[int, int]:
        """Read a tag of several bytes -> (tag, position after it); the tag is 0 if it has more bytes than it needs.

        Protobuf reads those too; it keeps an unknown field with exactly these bytes.
        """
        tag, after = wire.read_lenient_varint(self._buffer, position)
        return (tag if tag >> 7 * (after - position - 1) else 0), after

    def _is_enum(self, numbers: range, position: int) -> bool:
        """Whether a closed enum has the number at `position`; protobuf treats any other as an unknown field."""
        return wire.read_lenient_varint(self._buffer, position)[0] & 0xFFFF_FFFF in numbers

    def _run(self, record: type[d.Record], tag: int, position: int, end: int, depth: int) -> tuple[list[Any], int]:
        whole_run = self._runs.get(record)
        if whole_run is not None:
            return whole_run(tag, position, end, depth)
        buffer = self._buffer
        read = self._frequent.get(record) or partial(self.message, record)
        depth += 1
        found: list[Any] = []
        while True:
            size = buffer[position]
            if size < 0x80:
                position += 1
            else:
                size, position = wire.read_varint(buffer, position)
            stop = position + size
            if stop > end:
                raise WireError("a message is longer than the one that contains it", position)
            found.append(read(position, stop, depth))
            if stop >= end or buffer[stop] != tag:
                return found, stop
            position = stop + 1

    def text(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[str, int]:
        """Read a string field."""
        position, stop = self._extent(position)
        return self._names[self._buffer[position:stop]], stop

    def _extent(self, position: int) -> tuple[int, int]:
        size = self._buffer[position]
        if size < 0x80:
            return position + 1, position + 1 + size
        high = self._buffer[position + 1]
        if 0 < high < 0x80:
            return position + 2, position + 2 + (size & 0x7F | high << 7)
        size, position = wire.read_varint(self._buffer, position)
        return position, position + size

    def bytes_or_payload(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[Data, int]:
        """Read a bytes field; big raw_data stays in the file."""
        position, stop = self._extent(position)
        if rule.field.name == "raw_data":
            return self._data(position, stop), stop
        return self._buffer[position:stop], stop

    def _data(self, position: int, stop: int) -> Data:
        if stop - position >= LAZY_FROM and self._source is not None:
            if stop > len(self._buffer):
                raise WireError("the bytes end within a tensor: the file is cut off", len(self._buffer))
            self._payloads += 1
            return FileSlice(self._source, position, stop - position)
        return self._buffer[position:stop]

    def number(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[int, int]:
        """Read a varint field, sign-extended; 32-bit numbers and closed enums must be in range."""
        value, position = wire.read_varint(self._buffer, position)
        value = wire.signed(value)
        if rule.field.kind is not Kind.INT64 and not -0x8000_0000 <= value < 0x8000_0000:
            raise wire.NotCanonicalError
        if rule.enum is not None and value not in rule.enum:
            raise wire.NotCanonicalError
        return value, position

    def fixed32(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[bytes, int]:
        """Read the four bytes of a float field."""
        return self._buffer[position : position + 4], position + 4

    def packed(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[Data, int]:
        """Read packed numbers as their bytes."""
        position, stop = self._extent(position)
        kind = rule.field.kind
        if stop == position:
            raise wire.NotCanonicalError
        if kind in (Kind.FLOAT, Kind.DOUBLE):
            if (stop - position) % (4 if kind is Kind.FLOAT else 8):
                raise WireError(f"{rule.field.name} does not consist of whole numbers", position)
            return self._data(position, stop), stop
        run = self._buffer[position:stop]
        check_varints(run, kind is Kind.INT32, position)
        return run, stop

    def submessage(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[Any, int]:
        """Read a message field, by a special reader if there is one."""
        position, stop = self._extent(position)
        if stop > end:
            raise WireError(f"{rule.field.name} is longer than the message that contains it", position)
        record = rule.field.message
        assert record is not None
        frequent = self._frequent.get(record)
        if frequent is not None and depth < MESSAGE_DEPTH - 4:
            return frequent(position, stop, depth + 1), stop
        return self.message(record, position, stop, depth + 1), stop


def check_varints(run: bytes, is_int32: bool, offset: int) -> None:
    """Require packed varints to be minimal, whole and, for int32, within 32 bits; `offset` is that of the run."""
    if run[-1] & 0x80:
        raise WireError("a run of numbers ends within a number", offset + len(run))
    if not any(byte & 0x80 for byte in run):
        return
    position = 0
    while position < len(run):
        value, position = wire.read_varint(run, position)
        if is_int32 and not -0x8000_0000 <= wire.signed(value) < 0x8000_0000:
            raise wire.NotCanonicalError


_PACKED = "packed"
_Read = Callable[[GenericReader, int, int, _Rule, int], tuple[Any, int]]
_READERS: Final[dict[Kind | str, _Read]] = {
    Kind.STRING: GenericReader.text,
    Kind.BYTES: GenericReader.bytes_or_payload,
    Kind.INT64: GenericReader.number,
    Kind.INT32: GenericReader.number,
    Kind.DATA_TYPE: GenericReader.number,
    Kind.ATTRIBUTE_TYPE: GenericReader.number,
    Kind.DATA_LOCATION: GenericReader.number,
    Kind.FLOAT: GenericReader.fixed32,
    Kind.MESSAGE: GenericReader.submessage,
    _PACKED: GenericReader.packed,
}
_RULES: Final = {record: _Rules(record, fields) for record, fields in FIELDS.items()}
