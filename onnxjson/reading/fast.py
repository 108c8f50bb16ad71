"""The fast way to read a text that is canonical, and no other.

A typed decoder is quick, but keeps the last of two equal keys, takes spellings that mean something else, and gives no
place for a mistake. So nothing that it says is believed as such: the records that come out are written canonically
again, and only
where that gives back the very bytes that were read (numbers of tensors by their layout) are they the meaning of the
text. For any other text the answer is None, and the exact reader takes over.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pybase64

from onnxjson import document as d
from onnxjson import elements, tensors, types
from onnxjson.canonical import tensors as tensor_text
from onnxjson.canonical.payload_forms import Weights
from onnxjson.canonical.writer import TextWriter
from onnxjson.errors import OnnxJsonError
from onnxjson.operators import attribute_types
from onnxjson.payloads import Data, Payload
from onnxjson.reading import attributes as exact_attributes
from onnxjson.reading import exact, pairs
from onnxjson.reading import strings as exact_strings
from onnxjson.reading import tensors as exact_tensors
from onnxjson.reading.context import ROOT, Context
from onnxjson.reading.shapes import ABSENT, FunctionText, GraphText, ModelText, NodeText, TensorText, ValueText

_NUMBERS: Final = {1: ("f", list[float]), 7: ("q", list[int]), 11: ("d", list[float])}
"""Data types whose values are read many at a time: the code of struct, and what JSON holds."""

_MOST_REMEMBERED: Final = 16_384
"""So many attribute blocks are remembered: a graph with more has few that are alike."""

_BATCH: Final = 1024
"""Tensors whose values are read at once."""

_LAYOUT = b"0123456789.eE+-"
"""What may differ between two value lists of one layout."""

_BARE_NEGATIVE_ZERO = re.compile(rb"-0(?![.\d])")


class _NotCanonicalError(Exception):
    """The text is not canonical, or has something that the fast way leaves to the exact reader."""


_decode_model: Final = msgspec.json.Decoder(ModelText).decode
_decode: Final = msgspec.json.Decoder().decode

_Entries = Mapping[str, tuple[d.StringStringEntry, ...]]
"""Metadata of the elements of one kind, by the name of its owner."""

_Metadata = dict[str, dict[str, tuple[d.StringStringEntry, ...]]]


def read(text: bytes, cuts: Mapping[str, Payload]) -> d.Model | None:
    """The model that a canonical text stands for; None where the text is not canonical.

    `cuts` are base64 values that were taken out of the text, by the marker that stands in their place.
    """
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
    """Writes a model again and compares with the text that it was read from."""

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
        """Whether all of the text was compared."""
        return self._position == len(self._text)

    def write_base64(self, data: Data) -> None:
        """See `TextWriter.write_base64`; what was cut out was compared when it was cut."""
        marker = self._markers.get(id(data))
        if marker is None:
            super().write_base64(data)
        else:
            self._compare(marker)

    def float_tokens(self, batch: Sequence[d.Tensor]) -> dict[int, list[bytes]]:
        """See `TextWriter.float_tokens`; here they are not needed."""
        return {}

    def tensor_body(self, tensor: d.Tensor, indent: int, tokens: list[bytes] | None) -> tensor_text.Body | None:
        """See `TextWriter.tensor_body`; values whose layout was compared already stand as they were read."""
        values = self._values.get(id(tensor))
        if values is None:
            return super().tensor_body(tensor, indent, tokens)
        return tensor_text.Body(b'"values": ' + values, takes_lines=tensor_text.takes_lines(tensor.dims))


class _Shape(NamedTuple):
    """What the type of a tensor says, once for all tensors that have it."""

    data_type: int
    dims: tuple[int, ...]
    size: int
    skeleton: bytes | None
    """The layout of `values` without its numbers, where they are read many at a time."""

    @classmethod
    def of(cls, text: str) -> "_Shape":
        data_type, dims = types.parse_tensor_type(text)
        count = elements.element_count(dims)
        many = data_type in _NUMBERS and 0 < count <= tensor_text.MOST_VALUES
        skeleton = tensor_text.values_template(dims, 5).replace(b"%b", b"") if many else None
        return cls(data_type, dims, count, skeleton)


class _Reader:
    """Makes records of what was decoded; equal types, attributes and entries become the same object."""

    def __init__(self, cuts: Mapping[str, Payload], text: ModelText) -> None:
        if text.weights not in (None, "digest"):
            raise _NotCanonicalError
        self.has_digests = text.weights is not None
        self.blobs = text.blobs
        self.values: dict[int, bytes] = {}
        """The `values` member of tensors whose layout was compared, by identity of the tensor."""
        self._kept: list[d.Tensor] = []
        """Those tensors: an identity is good only while its object lives."""
        self._cuts = cuts
        self._context = Context(cuts=cuts)
        self._context.has_digests, self._context.blobs = self.has_digests, self.blobs
        self._types: dict[str, d.Type] = {}
        self._tensor_types: dict[str, _Shape] = {}
        self._attributes: dict[tuple[str | None, str | None, bytes], tuple[d.Attribute, ...]] = {}

    def _exactly(self, reader: Callable[..., Any], raw: msgspec.Raw, empty: Any = None) -> Any:
        """A rare part, by the exact reader's function for it."""
        if raw is ABSENT:
            return empty
        value = reader(_decode(raw), ROOT, self._context)
        if self._context.remarks:
            raise _NotCanonicalError
        return value

    def model(self, text: ModelText) -> d.Model:
        graph = None if text.graph is None else self._graph(text.graph)
        return d.Model(
            ir_version=text.ir_version,
            producer_name=text.producer_name,
            producer_version=text.producer_version,
            domain=text.domain,
            model_version=text.model_version,
            doc_string=self._exactly(exact_strings.read_text_or_lines, text.doc_string),
            graph=graph,
            opset_import=self._exactly(pairs.read_opset_imports, text.opset_import, ()),
            metadata_props=self._exactly(pairs.read_pairs, text.metadata_props, ()),
            training_info=self._exactly(exact.field_readers(d.Model)["training_info"], text.training_info, ()),
            functions=tuple([self._function(each) for each in text.functions]),
            configuration=self._exactly(exact.field_readers(d.Model)["configuration"], text.configuration, ()),
        )

    def _graph(self, text: GraphText) -> d.Graph:
        metadata = self._element_metadata(text.element_metadata)
        readers = exact.field_readers(d.Graph)
        graph = d.Graph(
            node=self._nodes(text.node, metadata.get("node", {})),
            name=text.name,
            initializer=self._initializers(text.initializer, metadata.get("initializer", {})),
            doc_string=self._exactly(exact_strings.read_text_or_lines, text.doc_string),
            input=self._value_infos(text.input, metadata.get("input", {})),
            output=self._value_infos(text.output, metadata.get("output", {})),
            value_info=self._value_infos(text.value_info, metadata.get("value_info", {})),
            quantization_annotation=self._exactly(readers["quantization_annotation"], text.quantization_annotation, ()),
            sparse_initializer=self._exactly(readers["sparse_initializer"], text.sparse_initializer, ()),
            metadata_props=self._exactly(pairs.read_pairs, text.metadata_props, ()),
        )
        return graph

    def _function(self, text: FunctionText) -> d.Function:
        metadata = self._element_metadata(text.element_metadata)
        return d.Function(
            name=text.name,
            input=text.input,
            output=text.output,
            attribute=text.attribute,
            node=self._nodes(text.node, metadata.get("node", {})),
            doc_string=self._exactly(exact_strings.read_text_or_lines, text.doc_string),
            opset_import=self._exactly(pairs.read_opset_imports, text.opset_import, ()),
            domain=text.domain,
            attribute_proto=self._exactly(exact.field_readers(d.Function)["attribute_proto"], text.attribute_proto, ()),
            value_info=self._value_infos(text.value_info, metadata.get("value_info", {})),
            overload=text.overload,
            metadata_props=self._exactly(pairs.read_pairs, text.metadata_props, ()),
        )

    def _element_metadata(self, lines: list[tuple[str, str, str, str]]) -> _Metadata:
        collected: dict[str, dict[str, list[d.StringStringEntry]]] = {}
        last_kind = last_owner = None
        own: list[d.StringStringEntry] = []
        make = d.StringStringEntry
        for kind, owner, key, value in lines:
            if owner != last_owner or kind != last_kind:
                own = collected.setdefault(kind, {}).setdefault(owner, [])
                last_kind, last_owner = kind, owner
            own.append(make(key, value))
        metadata: _Metadata = {}
        for each, owners in collected.items():
            metadata[each] = {owner: tuple(entries) for owner, entries in owners.items()}
        return metadata

    def _nodes(self, nodes: list[NodeText], metadata: _Entries) -> tuple[d.Node, ...]:
        made = []
        entries: tuple[d.StringStringEntry, ...]
        known = self._attributes
        make = d.Node
        for text in _consumed(nodes):
            attributes: tuple[d.Attribute, ...] = ()
            if text.attribute is not ABSENT:
                place = (text.op_type, text.domain, bytes(text.attribute))
                found = known.get(place)
                if found is None:
                    found = self._read_attributes(text, place[2])
                    if len(known) < _MOST_REMEMBERED:
                        known[place] = found
                attributes = found
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
                node = self._rare_node(node, text)
            made.append(node)
        return tuple(made)

    def _rare_node(self, node: d.Node, text: NodeText) -> d.Node:
        configurations = exact.field_readers(d.Node)["device_configurations"]
        return msgspec.structs.replace(
            node,
            doc_string=self._exactly(exact_strings.read_text_or_lines, text.doc_string),
            metadata_props=self._exactly(pairs.read_pairs, text.metadata_props, node.metadata_props),
            device_configurations=self._exactly(configurations, text.device_configurations, ()),
        )

    def _read_attributes(self, node: NodeText, block: bytes) -> tuple[d.Attribute, ...]:
        tree = _decode(block)
        table = attribute_types(node.domain, node.op_type)
        if type(tree) is dict:
            quick = [_quick_attribute(name, value, table.get(name)) for name, value in tree.items()]
            if None not in quick:
                return tuple(quick)  # type: ignore[arg-type]
        attributes: tuple[d.Attribute, ...] | None = exact_attributes.read_attributes(tree, table, ROOT, self._context)
        if self._context.remarks or attributes is None:
            raise _NotCanonicalError
        return attributes

    def _value_infos(self, values: list[ValueText], metadata: _Entries) -> tuple[d.ValueInfo, ...]:
        known = self._types
        made = []
        for text in _consumed(values):
            type_ = None
            if text.type is not None:
                type_ = known.get(text.type)
                if type_ is None:
                    type_ = known[text.type] = types.parse_type(text.type)
            entries = metadata.get(text.name, ()) if metadata and text.name else ()
            doc_string = None
            if text.doc_string is not ABSENT or text.metadata_props is not ABSENT:
                doc_string = self._exactly(exact_strings.read_text_or_lines, text.doc_string)
                entries = self._exactly(pairs.read_pairs, text.metadata_props, entries)
            made.append(d.ValueInfo(text.name, type_, doc_string, entries))
        return tuple(made)

    def _initializers(self, texts: list[TensorText], metadata: _Entries) -> tuple[d.Tensor, ...]:
        made: list[d.Tensor | None] = [None] * len(texts)
        batches: dict[int, list[tuple[int, bytes, _Shape]]] = {}
        known = self._tensor_types
        for position, text in enumerate(texts):
            shape = known.get(text.type)
            if shape is None:
                shape = known[text.type] = _Shape.of(text.type)
            if (
                text.values is not ABSENT
                and text.storage is None
                and shape.skeleton is not None
                and not _has_rare(text)
            ):
                raw = bytes(text.values)
                if raw.translate(None, _LAYOUT) == shape.skeleton:
                    batch = batches.setdefault(shape.data_type, [])
                    batch.append((position, raw, shape))
                    if len(batch) >= _BATCH:
                        self._numbers(shape.data_type, batches.pop(shape.data_type), texts, made)
                    continue
            made[position] = self._single_tensor(text, shape)
        for data_type, batch in batches.items():
            self._numbers(data_type, batch, texts, made)
        tensors_made = tuple([tensor for tensor in made if tensor is not None])
        return tuple([self._described(tensor, metadata) for tensor in tensors_made]) if metadata else tensors_made

    def _described(self, tensor: d.Tensor, metadata: _Entries) -> d.Tensor:
        entries = metadata.get(tensor.name or "")
        if not entries:
            return tensor
        described = msgspec.structs.replace(tensor, metadata_props=entries)
        if id(tensor) in self.values:
            self._kept.append(described)
            self.values[id(described)] = self.values[id(tensor)]
        return described

    def _numbers(
        self,
        data_type: int,
        batch: list[tuple[int, bytes, _Shape]],
        texts: list[TensorText],
        made: list[d.Tensor | None],
    ) -> None:
        """Values of many tensors of one dtype in one go."""
        code, kind = _NUMBERS[data_type]
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
            made[position] = tensor
            self._kept.append(tensor)
            self.values[id(tensor)] = raw
            start = stop
        if start != len(data):
            raise _NotCanonicalError

    def _single_tensor(self, text: TensorText, shape: _Shape) -> d.Tensor:
        if text.base64 is None or _has_rare(text):
            # By the exact reader, which also reads digests and names of blobs.
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


_Item = TypeVar("_Item")


def _consumed(items: list[_Item]) -> Iterator[_Item]:
    """The items in their order, each forgotten once it is dealt with: big graphs then need a third less memory."""
    items.reverse()
    while items:
        yield items.pop()


def _has_rare(text: TensorText) -> bool:
    return text.external_data is not ABSENT or text.doc_string is not ABSENT or text.metadata_props is not ABSENT


def _quick_attribute(name: str, value: Any, expected: int | None) -> d.Attribute | None:
    """An attribute of one of the frequent shapes; whether the guess is right shows when it is written again."""
    kind = type(value)
    if kind is dict and len(value) == 1:
        expected = {"FLOAT": 1, "INT": 2, "FLOATS": 6, "INTS": 7}.get(next(iter(value)))
        if expected is None:
            return None
        value = next(iter(value.values()))
        kind = type(value)
    if kind is int:
        if expected is None or expected == 2:
            return d.Attribute(name, i=value, type=2)
        return d.Attribute(name, f=struct.pack("<f", value), type=1) if expected == 1 else None
    if kind is float:
        return d.Attribute(name, f=struct.pack("<f", value), type=1) if expected == 1 else None
    if kind is str:
        return d.Attribute(name, s=value.encode(), type=3) if expected is None or expected == 3 else None
    if kind is list:
        members = set(map(type, value))
        if expected == 6 and members <= {int, float}:
            return d.Attribute(name, floats=struct.pack(f"<{len(value)}f", *value), type=6)
        if members <= {int} and (expected == 7 or (expected is None and value)):
            return d.Attribute(name, ints=tuple(value), type=7)
        if members <= {str} and (expected == 8 or (expected is None and value)):
            return d.Attribute(name, strings=tuple([each.encode() for each in value]), type=8)
    return None
