"""Fast reader of canonical texts, and only of those.

A typed decoder is fast, but keeps the last of two equal keys, accepts spellings with another meaning, and does not
locate mistakes. So its result is not trusted: the records are written canonically again, and are accepted only if that
reproduces exactly the bytes that were read (for numbers of tensors: their layout). For any other text the result is
None, and the exact reader takes over.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import pybase64

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.reading import exact, named_values, shapes
from onnxjson.codecs.reading import tensors as exact_tensors
from onnxjson.codecs.reading.context import ROOT, Context
from onnxjson.codecs.reading.shapes import ABSENT, NUMBERS, TensorShape, quick_attribute
from onnxjson.codecs.tensor_text import Weights
from onnxjson.model import document as d
from onnxjson.model import elements, tensors, types
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.operators import attribute_types
from onnxjson.model.payloads import Data, Payload

_MOST_REMEMBERED: Final = 16_384
"""Maximum number of remembered attribute blocks: in a graph with more, few are equal."""

_BATCH: Final = 1024
"""Number of tensors whose values are read at once."""

_LAYOUT = b"0123456789.eE+-"
"""The bytes that may differ between two value lists of the same layout."""

_BARE_NEGATIVE_ZERO = re.compile(rb"-0(?![.\d])")

_decode_model: Final = msgspec.json.Decoder(shapes.ModelText).decode
_decode: Final = msgspec.json.Decoder().decode

_Entries = Mapping[str, tuple[d.StringStringEntry, ...]]
"""Metadata of the elements of one kind, by the name of the element."""

_Metadata = dict[str, dict[str, tuple[d.StringStringEntry, ...]]]

_Item = TypeVar("_Item")


class _NotCanonicalError(Exception):
    """The text is not canonical, or has something that is left to the exact reader."""


def is_document(text: bytes) -> bool:
    """Whether a text is JSON that has only keys and values of the right types; attributes and numbers may be wrong."""
    try:
        return _decode_model(text).format == "onnxjson/1"
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False


def read(text: bytes, cuts: Mapping[str, Payload]) -> d.Model | None:
    """Read a canonical text, or return None; `cuts` are base64 values that were cut out of it, by their markers."""
    if not text.startswith(b'{\n"format": "onnxjson/1"'):
        return None
    try:
        decoded = _decode_model(text)
        reader = _Reader(cuts, decoded)
        model = reader.model(decoded)
        proof = _Proof(text, reader, cuts)
        proof.model(model)
    except (
        msgspec.MsgspecError,
        _NotCanonicalError,
        OnnxJsonError,
        ValueError,
        RecursionError,
        struct.error,
        OverflowError,
    ):
        return None
    return model if proof.is_whole() else None


class _Proof(TextWriter):
    """Writes a model again and compares the result with the text from which it was read."""

    def __init__(self, text: bytes, reader: "_Reader", cuts: Mapping[str, Payload]) -> None:
        super().__init__(self._compare, Weights("keep", reader.has_digests, reader.blobs))
        self._text = text
        self._position = 0
        self._values = reader.values
        self._markers = {id(payload): marker.encode() for marker, payload in cuts.items()}

    def _compare(self, piece: bytes) -> None:
        if not self._text.startswith(piece, self._position):
            raise _NotCanonicalError
        self._position += len(piece)

    def is_whole(self) -> bool:
        """Whether the whole text was compared."""
        return self._position == len(self._text)

    def write_base64(self, data: Data) -> None:
        """See `TextWriter.write_base64`; values that were cut out were compared then."""
        marker = self._markers.get(id(data))
        if marker is None:
            super().write_base64(data)
        else:
            self._compare(marker)

    def small_values(self, batch: Sequence[d.Tensor], indent: int) -> dict[int, bytes]:
        """See `TextWriter.small_values`; values whose layout was compared already are written as they were read."""
        return self._values


class _Reader:
    """Builds records from the decoded text; equal types, attributes and entries become the same object."""

    def __init__(self, cuts: Mapping[str, Payload], text: shapes.ModelText) -> None:
        if text.weights not in (None, "digest"):
            raise _NotCanonicalError
        self.has_digests = text.weights is not None
        self.blobs = text.blobs
        self.values: dict[int, bytes] = {}
        """The `values` member of tensors whose layout was compared, by identity of the tensor."""
        self._kept: list[d.Tensor] = []
        """Those tensors: an identity is valid only while its object lives."""
        self._cuts = cuts
        self._context = Context(cuts=cuts)
        self._context.has_digests, self._context.blobs = self.has_digests, self.blobs
        self._types: dict[str, d.Type] = {}
        self._tensor_types: dict[str, TensorShape] = {}
        self._attributes: dict[tuple[str | None, str | None, bytes], tuple[d.Attribute, ...]] = {}

    def _rare(self, record: type[d.Record], text: shapes.TextShape) -> dict[str, Any]:
        """Read the fields that are not decoded, by the functions of the exact reader."""
        fields = {}
        for name in text.__struct_fields__:
            raw = getattr(text, name)
            if isinstance(raw, msgspec.Raw) and raw is not ABSENT and name != "attribute":
                fields[name] = exact.field_readers(record)[name](_decode(raw), ROOT, self._context)
                if self._context.remarks:
                    raise _NotCanonicalError
        return fields

    def model(self, text: shapes.ModelText) -> d.Model:
        names = ("ir_version", "producer_name", "producer_version", "domain", "model_version")
        return d.Model(
            graph=None if text.graph is None else self._graph(text.graph),
            functions=tuple([self._function(each) for each in text.functions]),
            **{name: getattr(text, name) for name in names},
            **self._rare(d.Model, text),
        )

    def _graph(self, text: shapes.GraphText) -> d.Graph:
        metadata = self._element_metadata(text.element_metadata)
        return d.Graph(
            node=self._nodes(text.node, metadata.get("node", {})),
            name=text.name,
            initializer=self._initializers(text.initializer, metadata.get("initializer", {})),
            input=self._value_infos(text.input, metadata.get("input", {})),
            output=self._value_infos(text.output, metadata.get("output", {})),
            value_info=self._value_infos(text.value_info, metadata.get("value_info", {})),
            **self._rare(d.Graph, text),
        )

    def _function(self, text: shapes.FunctionText) -> d.Function:
        metadata = self._element_metadata(text.element_metadata)
        return d.Function(
            node=self._nodes(text.node, metadata.get("node", {})),
            value_info=self._value_infos(text.value_info, metadata.get("value_info", {})),
            **{name: getattr(text, name) for name in ("name", "domain", "overload", "input", "output", "attribute")},
            **self._rare(d.Function, text),
        )

    def _element_metadata(self, lines: list[tuple[str, str, str, str]]) -> _Metadata:
        collected: dict[str, dict[str, list[d.StringStringEntry]]] = {}
        last_kind = last_owner = None
        owner_entries: list[d.StringStringEntry] = []
        make = d.StringStringEntry
        for kind, owner, key, value in lines:
            if owner != last_owner or kind != last_kind:
                owner_entries = collected.setdefault(kind, {}).setdefault(owner, [])
                last_kind, last_owner = kind, owner
            owner_entries.append(make(key, value))
        metadata: _Metadata = {}
        for each, owners in collected.items():
            metadata[each] = {owner: tuple(entries) for owner, entries in owners.items()}
        return metadata

    def _nodes(self, nodes: list[shapes.NodeText], metadata: _Entries) -> tuple[d.Node, ...]:
        built = []
        entries: tuple[d.StringStringEntry, ...]
        known = self._attributes
        make = d.Node
        for text in _consumed(nodes):
            attributes: tuple[d.Attribute, ...] = ()
            if text.attribute is not ABSENT:
                place = (text.op_type, text.domain, bytes(text.attribute))
                decoded = known.get(place)
                if decoded is None:
                    decoded = self._read_attributes(text, place[2])
                    if len(known) < _MOST_REMEMBERED:
                        known[place] = decoded
                attributes = decoded
            entries = ()
            if metadata:
                entries = metadata.get(next((name for name in text.output if name), ""), ())
            node = make(
                text.input, text.output, text.name, text.op_type, attributes, None, text.domain, text.overload, entries
            )
            if (
                text.doc_string is not ABSENT
                or text.metadata_props is not ABSENT
                or text.device_configurations is not ABSENT
            ):
                node = msgspec.structs.replace(node, **self._rare(d.Node, text))
            built.append(node)
        return tuple(built)

    def _read_attributes(self, node: shapes.NodeText, block: bytes) -> tuple[d.Attribute, ...]:
        tree = _decode(block)
        table = attribute_types(node.domain, node.op_type)
        if type(tree) is dict:
            quick = [quick_attribute(name, value, table.get(name)) for name, value in tree.items()]
            if None not in quick:
                return tuple(quick)  # type: ignore[arg-type]
        attributes: tuple[d.Attribute, ...] | None = named_values.read_attributes(tree, table, ROOT, self._context)
        if self._context.remarks or attributes is None:
            raise _NotCanonicalError
        return attributes

    def _value_infos(self, values: list[shapes.ValueText], metadata: _Entries) -> tuple[d.ValueInfo, ...]:
        known = self._types
        built = []
        for text in _consumed(values):
            type_ = None
            if text.type is not None:
                type_ = known.get(text.type)
                if type_ is None:
                    type_ = known[text.type] = types.parse_type(text.type)
            entries = metadata.get(text.name, ()) if metadata and text.name else ()
            value = d.ValueInfo(text.name, type_, None, entries)
            if text.doc_string is not ABSENT or text.metadata_props is not ABSENT:
                value = msgspec.structs.replace(value, **self._rare(d.ValueInfo, text))
            built.append(value)
        return tuple(built)

    def _initializers(self, texts: list[shapes.TensorText], metadata: _Entries) -> tuple[d.Tensor, ...]:
        built: list[d.Tensor | None] = [None] * len(texts)
        batches: dict[int, list[tuple[int, bytes, TensorShape]]] = {}
        known = self._tensor_types
        for position, text in enumerate(texts):
            shape = known.get(text.type)
            if shape is None:
                shape = known[text.type] = TensorShape.parse(text.type)
            if (
                text.values is not ABSENT
                and text.storage is None
                and shape.skeleton is not None
                and text.name is not None
                and not text.has_rare()
            ):
                raw = bytes(text.values)
                if raw.translate(None, _LAYOUT) == shape.skeleton:
                    batch = batches.setdefault(shape.data_type, [])
                    batch.append((position, raw, shape))
                    if len(batch) >= _BATCH:
                        self._numbers(shape.data_type, batches.pop(shape.data_type), texts, built)
                    continue
            built[position] = self._single_tensor(text, shape)
        for data_type, batch in batches.items():
            self._numbers(data_type, batch, texts, built)
        finished = tuple([tensor for tensor in built if tensor is not None])
        return tuple([self._with_metadata(tensor, metadata) for tensor in finished]) if metadata else finished

    def _with_metadata(self, tensor: d.Tensor, metadata: _Entries) -> d.Tensor:
        entries = metadata.get(tensor.name or "")
        if not entries:
            return tensor
        with_metadata = msgspec.structs.replace(tensor, metadata_props=entries)
        if id(tensor) in self.values:
            self._kept.append(with_metadata)
            self.values[id(with_metadata)] = self.values[id(tensor)]
        return with_metadata

    def _numbers(
        self,
        data_type: int,
        batch: list[tuple[int, bytes, TensorShape]],
        texts: list[shapes.TensorText],
        built: list[d.Tensor | None],
    ) -> None:
        code, kind = NUMBERS[data_type]
        joined = b",".join([raw for _, raw, _ in batch])
        if _BARE_NEGATIVE_ZERO.search(joined):
            raise _NotCanonicalError
        numbers = msgspec.json.decode(b"[" + joined.translate(None, b"[]\n ") + b"]", type=kind)
        data = struct.pack(f"<{len(numbers)}{code}", *numbers)
        size = struct.calcsize(code)
        start = 0
        for position, raw, shape in batch:
            stop = start + shape.size * size
            tensor = d.Tensor(shape.dims, data_type, name=texts[position].name, raw_data=data[start:stop])
            built[position] = tensor
            self._kept.append(tensor)
            self.values[id(tensor)] = raw
            start = stop
        if start != len(data):
            raise _NotCanonicalError

    def _single_tensor(self, text: shapes.TensorText, shape: TensorShape) -> d.Tensor:
        if text.base64 is None or text.has_rare():
            # The exact reader also reads digests and names of blobs.
            tree = {
                key: _decode(value) if isinstance(value, msgspec.Raw) else value
                for key in text.__struct_fields__
                if (value := getattr(text, key)) is not None and value is not ABSENT
            }
            tensor: d.Tensor | None = exact_tensors.read_tensor(tree, ROOT, self._context)
            if tensor is None or self._context.remarks:
                raise _NotCanonicalError
            return tensor
        data: Data | None = self._cuts.get(text.base64)
        if data is None:
            data = pybase64.b64decode(text.base64, validate=True)
        if len(data) != elements.byte_length(shape.data_type, shape.size):
            raise _NotCanonicalError
        if text.storage is None:
            return d.Tensor(shape.dims, shape.data_type, name=text.name, raw_data=data)
        stored = tensors.with_storage(data, shape.data_type, text.storage, shape.size)
        return d.Tensor(shape.dims, shape.data_type, name=text.name, **stored)


def _consumed(items: list[_Item]) -> Iterator[_Item]:
    """Yield the items in order and forget each: big graphs then need a third less memory."""
    items.reverse()
    while items:
        yield items.pop()
