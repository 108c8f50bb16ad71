"""Serialised messages -> records, strictly: by one function for each message, generated from the table of fields.

Only bytes that protobuf itself would write are accepted: fields ascending, singular ones once, numbers minimal, unknown
fields last. So the records determine the bytes, presence and unknown fields included, at no extra cost. Other bytes
raise `NotCanonicalError`; the caller then lets protobuf read and rewrite them.

A generated function has a block for each field in the order of their numbers, as one would write it by hand::

    def read_OperatorSetId(reader, position, end, depth):
        ...
        if tag == 10:
            size = buffer[position + 1]
            ...
            v0 = names[buffer[position:stop]]
            position = stop
            tag = buffer[position] if position < end else 0
        if tag == 16:
            ...
        if position != end:
            return OperatorSetId(v0, v1, unknown_fields=reader.rest(OperatorSetId, start, position, end, depth))
        return OperatorSetId(v0, v1)

It is compiled when the first such message is read. The source has nothing in it but names and numbers of the table.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from textwrap import indent
from typing import Any, Final

from onnxjson.codecs import wire_format as wire
from onnxjson.model import document as d
from onnxjson.model.errors import LimitError, WireError
from onnxjson.model.limits import MESSAGE_DEPTH
from onnxjson.model.messages import FIELDS, Field, Kind
from onnxjson.model.payloads import LAZY_FROM, Data, FileSlice, SourceFile

_REMEMBERED: Final = {d.Node: "op_type", d.Type: "tensor_type"}
"""Messages that are often equal from a field on: equal bytes become the same objects, which are written faster."""

_REMEMBERED_BYTES: Final = 512
"""Maximum bytes of what is remembered."""

_MOST_REMEMBERED: Final = 16_384
"""Maximum number of remembered parts of each kind: in a graph with more, few are equal."""

_UNIQUE: Final = {(d.Node, "name"), (d.StringStringEntry, "value")}
"""Strings that hardly any two messages have in common."""

Read = Callable[["Reader", int, int, int], Any]
"""Reads a message: its first position, the position after it, its depth."""

_PRELUDE: Final = f"""\
if depth > {MESSAGE_DEPTH}:
    raise too_deep()
buffer = reader.buffer
names = reader.names
shares = reader.shares and depth == 1
start = position
tag = buffer[position] if position < end else 0
"""

_RECALL: Final = f"""\
raw = None
if position < end <= position + {_REMEMBERED_BYTES}:
    raw = buffer[position:end]
    parts = reader.parts["{{name}}"][depth]
    part = parts.get(raw)
    if part is not None:
        return {{record}}
"""

_KEEP: Final = f"""\
part = {{part}}
if raw is not None and len(parts) < {_MOST_REMEMBERED}:
    parts[raw] = part
"""

_ONEOF: Final = """\
if position <= end and [{members}].count(None) < {absent}:
    raise NotCanonicalError
"""

_END: Final = """\
if position != end:
    return {name}({values}, unknown_fields=reader.rest({name}, start, position, end, depth))
{kept}return {result}
"""

_NUMBER: Final = """\
value = buffer[position + {width}]
if value < 0x80:
    position += {after}
else:
    value, position = read_varint(buffer, position + {width})
    if value > 0x7FFFFFFFFFFFFFFF:
        value -= 0x10000000000000000
"""

_IS_INT32: Final = """\
    if not -0x80000000 <= value < 0x80000000:
        raise NotCanonicalError
"""

_EXTENT: Final = """\
size = buffer[position + {width}]
if size < 0x80:
    position += {after}
else:
    size, position = read_varint(buffer, position + {width})
stop = position + size
"""

_UNKNOWN: Final = {record: wire.UnknownTail(fields) for record, fields in FIELDS.items()}


class _Names(dict[bytes, str]):
    """Strings by their bytes; equal ones become one object."""

    def __missing__(self, raw: bytes) -> str:
        name = self[raw] = raw.decode("utf-8", "surrogateescape")
        return name


class _Known:
    """What was read before: strings, and parts of messages by their class, depth and bytes."""

    def __init__(self) -> None:
        self.names = _Names()
        self.parts: dict[str, defaultdict[int, dict[bytes, Any]]] = {
            record.__name__: defaultdict(dict) for record in _REMEMBERED
        }
        self.elements: defaultdict[str, dict[bytes, Any]] = defaultdict(dict)
        """Elements of main graphs, by their class and bytes."""


_shared: Final = ContextVar[_Known | None]("shared", default=None)


@contextmanager
def sharing_graphs() -> Iterator[None]:
    """Read elements that the main graphs of several files have in common as the same records."""
    token = _shared.set(_Known())
    try:
        yield
    finally:
        _shared.reset(token)


class Reader:
    """A buffer that is read; payloads of `LAZY_FROM` bytes and more stay in `source`, if it is given."""

    def __init__(self, buffer: wire.Buffer, source: SourceFile | None = None) -> None:
        self.buffer = buffer
        self.source = source
        known = _shared.get()
        self.shares = known is not None
        known = known or _Known()
        self.names, self.parts, self.elements = known.names, known.parts, known.elements

    def shared(self, name: str, read: Read, position: int, end: int) -> Any:
        """Read an element of the main graph, unless one with the same bytes is known; it has no payload in the file."""
        if end - position >= LAZY_FROM:
            return read(self, position, end, 2)
        elements, raw = self.elements[name], self.buffer[position:end]
        element = elements.get(raw)
        if element is None:
            element = elements[raw] = read(self, position, end, 2)
        return element

    def data(self, position: int, stop: int) -> Data:
        """Read the bytes of a tensor; big ones stay in the file."""
        if stop - position >= LAZY_FROM and self.source is not None:
            if stop > len(self.buffer):
                raise WireError("the bytes end within a tensor: the file is cut off", len(self.buffer))
            return FileSlice(self.source, position, stop - position)
        return self.buffer[position:stop]

    def floats(self, position: int, stop: int, name: str, width: int) -> Data:
        """Read packed floats or doubles as their bytes."""
        if stop == position:
            raise wire.NotCanonicalError
        if (stop - position) % width:
            raise WireError(f"{name} ends within a number", position)
        return self.data(position, stop)

    def varints(self, position: int, stop: int, *, is_int32: bool) -> bytes:
        """Read packed varints as their bytes."""
        run = self.buffer[position:stop]
        if not run:
            raise wire.NotCanonicalError
        check_varints(run, is_int32, position)
        return run

    def rest(self, record: type[d.Record], start: int, position: int, end: int, depth: int) -> bytes:
        """The unknown fields at the end of the message that begins at `start`, whose known ones end at `position`."""
        if position > end:
            raise self._overrun(record, start, end)
        _UNKNOWN[record].check(self.buffer, position, end, depth)
        return self.buffer[position:end]

    def _overrun(self, record: type[d.Record], position: int, end: int) -> WireError:
        """The error of the field that does not end within its message; `position` is that of the first field."""
        with suppress(WireError):  # of that field
            for _, _, after in wire.fields(self.buffer, position, end):
                position = position if after > end else after
        number = wire.read_lenient_varint(self.buffer, position)[0] >> 3
        return too_long(next(field.name for field in FIELDS[record] if field.number == number), position)


def too_long(name: str, position: int) -> WireError:
    """The error of a field that is longer than its message."""
    return WireError(f"{name} is longer than the message that contains it", position)


def too_deep() -> LimitError:
    """The error of a message that protobuf would not read."""
    return LimitError(f"messages nest deeper than {MESSAGE_DEPTH} levels; protobuf reads no deeper")


def check_varints(run: bytes, is_int32: bool, offset: int) -> None:
    """Require packed varints to be minimal, whole and, for int32, within 32 bits; `offset` is that of the run."""
    if run[-1] & 0x80:
        raise WireError("a packed field ends within a number", offset + len(run))
    if run.isascii():
        return
    position = 0
    while position < len(run):
        value, position = wire.read_varint(run, position)
        if is_int32 and not -0x8000_0000 <= wire.signed(value) < 0x8000_0000:
            raise wire.NotCanonicalError


def _source(record: type[d.Record]) -> str:
    """The source of the function that reads a message; the values of its fields are v0, v1 ..."""
    name = record.__name__
    fields = FIELDS[record]
    variables = [f"v{index}" for index in range(len(fields))]
    blocks = [_block(record, index, field) for index, field in enumerate(fields)]
    kept, result = "", f"{name}({', '.join(variables)})"
    if record in _REMEMBERED:
        first = [field.name for field in fields].index(_REMEMBERED[record])
        part = f"({', '.join(variables[first:])},)" if first else result
        if first:
            recalled = f"{name}({', '.join([*variables[:first], '*part'])})"
        else:
            recalled = result = "part"
        blocks.insert(first, _RECALL.format(name=name, record=recalled))
        kept = _KEEP.format(part=part)
    members = [variables[index] for index, field in enumerate(fields) if field.oneof]
    if members:
        blocks.append(_ONEOF.format(members=", ".join(members), absent=len(members) - 1))
    values = "".join([f"{v} = {value!r}\n" for v, value in zip(variables, record.__struct_defaults__, strict=False)])
    body = [_PRELUDE, values, *blocks, _END.format(name=name, values=", ".join(variables), kept=kept, result=result)]
    return f"def read_{name}(reader, position, end, depth):\n{indent(''.join(body), '    ')}"


def _block(record: type[d.Record], index: int, field: Field) -> str:
    """The lines that read one field, if its tag comes next."""
    tag = wire.tag_of(field)
    width = 1 if tag < 0x80 else 2
    condition = f"tag == {tag}" if width == 1 else f"tag == {tag & 0x7F | 0x80} and buffer[position + 1] == {tag >> 7}"
    if field.kind in wire.CLOSED_ENUMS:
        condition += f" and buffer[position + {width}] < {wire.CLOSED_ENUMS[field.kind].stop}"
    lines, value, after = _value(record, field, width)
    sequel = "tag = buffer[position] if position < end else 0\n"
    if not field.repeated or field.packed:
        return f"if {condition}:\n" + indent(f"{lines}v{index} = {value}\n{after}{sequel}", "    ")
    loop = "while True:\n" + indent(
        f"{lines}v{index}.append({value})\n{after}{sequel}if not ({condition}):\n    break\n", "    "
    )
    joined = f"b''.join(v{index})" if field.kind is Kind.FLOAT else f"tuple(v{index})"
    return f"if {condition}:\n" + indent(f"v{index} = []\n{loop}v{index} = {joined}\n", "    ")


def _value(record: type[d.Record], field: Field, width: int) -> tuple[str, str, str]:
    """The lines before a value, its expression, and those after it; `width` is the number of bytes of the tag."""
    kind = field.kind
    if kind in wire.CLOSED_ENUMS:
        return "", f"buffer[position + {width}]", f"position += {width + 1}\n"
    if kind is Kind.FLOAT and not field.packed:
        return "", f"buffer[position + {width} : position + {width + 4}]", f"position += {width + 4}\n"
    if kind in (Kind.INT64, Kind.INT32, Kind.DATA_TYPE) and not field.packed:
        check = "" if kind is Kind.INT64 else _IS_INT32
        return _NUMBER.format(width=width, after=width + 1) + check, "value", ""
    extent = _EXTENT.format(width=width, after=width + 1)
    after = "position = stop\n"
    if kind is Kind.MESSAGE:
        assert field.message is not None
        check = f"if stop > end:\n    raise too_long('{field.name}', position)\n"
        name = field.message.__name__
        read = f"read_{name}(reader, position, stop, depth + 1)"
        if record is d.Graph:
            read = f"reader.shared('{name}', read_{name}, position, stop) if shares else {read}"
        return f"{extent}{check}", read, after
    value = "buffer[position:stop]"
    if field.packed and kind in (Kind.FLOAT, Kind.DOUBLE):
        value = f"reader.floats(position, stop, '{field.name}', {4 if kind is Kind.FLOAT else 8})"
    elif field.packed:
        value = f"reader.varints(position, stop, is_int32={kind is Kind.INT32})"
    elif field.name == "raw_data":
        value = "reader.data(position, stop)"
    elif kind is Kind.STRING:
        unique = (record, field.name) in _UNIQUE
        value = f"{value}.decode('utf-8', 'surrogateescape')" if unique else f"names[{value}]"
    return extent, value, after


def _compiled_when_called(record: type[d.Record]) -> Read:
    name = f"read_{record.__name__}"

    def read(reader: Reader, position: int, end: int, depth: int) -> Any:
        exec(compile(_source(record), f"<{name}>", "exec"), _namespace)
        return _namespace[name](reader, position, end, depth)

    return read


_namespace: Final[dict[str, Any]] = {
    "NotCanonicalError": wire.NotCanonicalError,
    "read_varint": wire.read_varint,
    "too_deep": too_deep,
    "too_long": too_long,
    **{record.__name__: record for record in FIELDS},
    **{f"read_{record.__name__}": _compiled_when_called(record) for record in FIELDS},
}


def read_model(data: wire.Buffer, source: SourceFile | None = None) -> d.Model:
    """Read a serialised ModelProto; big payloads stay in `source`, the file of `data`, if it is given.

    Raises:
        WireError, LimitError: the bytes are not such a message, end within it, or nest too deep.
        NotCanonicalError: they are such a message, but not as protobuf writes it.
    """
    try:
        model: d.Model = _namespace["read_Model"](Reader(data, source), 0, len(data), 0)
    except IndexError:
        raise WireError("the bytes end within a field: the file is cut off", len(data)) from None
    return model
