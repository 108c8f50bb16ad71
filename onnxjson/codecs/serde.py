"""ModelProto <-> records, losslessly.

Both directions go through the wire format, which shows what protobuf's attributes hide: presence, unknown fields, the
payload of a NaN, bytes that are not UTF-8. Bytes that protobuf itself would not write (fields out of order, numbers
with more bytes than needed) are first read and rewritten by protobuf.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from onnxjson.codecs.wire_format import Buffer, NotCanonicalError, Octets, fields
from onnxjson.codecs.wire_reading import read_model
from onnxjson.codecs.wire_writing import message_bytes, message_size
from onnxjson.model import document as d
from onnxjson.model.errors import LimitError, WireError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.messages import FIELDS
from onnxjson.model.payloads import LAZY_FROM, Data, SourceFile, whole

if TYPE_CHECKING:
    import onnx


class Parsed(NamedTuple):
    """A model read from serialised bytes."""

    model: d.Model
    reserialised: bool
    """Whether the bytes were not as protobuf writes them, so that a save writes other bytes with the same content."""


def parse(data: Buffer, source: SourceFile | None = None) -> Parsed:
    """Read a serialised ModelProto; payloads stay in `source`, the file of `data`, if it is given."""
    try:
        return Parsed(read_model(data, source), reserialised=False)
    except NotCanonicalError:
        pass
    from google.protobuf.message import DecodeError, EncodeError
    from onnx import ModelProto

    try:
        rewritten = ModelProto.FromString(bytes(data)).SerializeToString()
    except DecodeError as error:
        raise WireError("these bytes are not a ModelProto", 0) from error
    except EncodeError as error:
        raise LimitError("the model is too big for protobuf to write again") from error
    return Parsed(read_model(rewritten), reserialised=True)


def from_proto(proto: "onnx.ModelProto") -> d.Model:
    """Convert a ModelProto to a record; every message has one, and the message stays as it is.

    LimitError if messages nest too deep, or the model without the bytes of its initializers exceeds 2 GiB.
    """
    from google.protobuf.message import EncodeError

    payloads: dict[int, Data] = {}
    if big := _big_initializers(proto):
        shell = type(proto)()
        shell.CopyFrom(proto)
        for position in big:
            tensor = shell.graph.initializer[position]
            payloads[position] = tensor.raw_data
            tensor.raw_data = b""
        proto = shell
    try:
        model = parse(proto.SerializeToString()).model
    except EncodeError as error:
        raise LimitError("the model is too big for protobuf; keep its weights in external data") from error
    return _with_raw_data(model, payloads) if payloads else model


def _big_initializers(proto: "onnx.ModelProto") -> list[int]:
    """Positions of initializers to convert apart; none unless the model might be too big to serialise at once."""
    sizes = [len(tensor.raw_data) for tensor in proto.graph.initializer]
    if sum(sizes) < MESSAGE_BYTES // 8:
        return []
    return [position for position, size in enumerate(sizes) if size >= LAZY_FROM]


def _with_raw_data(model: d.Model, payloads: dict[int, Data]) -> d.Model:
    import msgspec

    assert model.graph is not None
    initializers: list[Any] = list(model.graph.initializer)
    for position, data in payloads.items():
        initializers[position] = msgspec.structs.replace(initializers[position], raw_data=data)
    graph = msgspec.structs.replace(model.graph, initializer=tuple(initializers))
    return msgspec.structs.replace(model, graph=graph)


def to_proto(model: d.Model) -> "onnx.ModelProto":
    """Convert a record to a ModelProto, message-identical to the one that the record was read from."""
    from onnx import ModelProto

    if message_size(model) < MESSAGE_BYTES // 8 or model.graph is None:
        return ModelProto.FromString(message_bytes(model))
    payloads = {
        position: tensor.raw_data
        for position, tensor in enumerate(model.graph.initializer)
        if tensor.raw_data is not None and len(tensor.raw_data) >= LAZY_FROM
    }
    proto = ModelProto.FromString(message_bytes(_with_raw_data(model, dict.fromkeys(payloads, b""))))
    for position, data in payloads.items():
        proto.graph.initializer[position].raw_data = whole(data)
    return proto


def repeated_top_level(data: Octets) -> str | None:
    """The first singular field that occurs twice in a serialised ModelProto, as in two joined models; or None."""
    singular = {field.number: field.name for field in FIELDS[d.Model] if not field.repeated}
    seen: set[int] = set()
    for tag, _, _ in fields(data, 0, len(data)):
        if tag >> 3 in seen:
            return singular[tag >> 3]
        if tag >> 3 in singular:
            seen.add(tag >> 3)
    return None


def needed_parts(data: Octets, small: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of all fields of a serialised ModelProto but raw_data of `small` bytes and more.

    Bigger messages come in parts; only their tags and lengths are read. Errors as in `fields`.
    """
    messages: list[tuple[type[d.Record], Iterator[tuple[int, int, int]]]] = [(d.Model, fields(data, 0, len(data)))]
    while messages:
        record, rest = messages[-1]
        for tag, start, end in rest:
            field = next((field for field in FIELDS[record] if tag == field.number << 3 | 2), None)
            if end - start >= small and field is not None and field.message is not None:
                messages.append((field.message, fields(data, start, end)))
                break
            if end - start < small or field is None or field.name != "raw_data":
                yield start, end
        else:
            messages.pop()
