"""Models, graphs, functions and nodes as canonical text (docs/format.md, sections 4 and 9).

Finished pieces are collected and written in batches, so that neither the text nor a payload is in memory as a whole.
Attributes and types that many nodes share are encoded once and remembered by identity: the wire reader and the text
reader return the same object for equal values.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pybase64

from onnxjson.codecs import canonical_values as values
from onnxjson.codecs import tensor_text
from onnxjson.codecs.short_forms import ShortForms
from onnxjson.codecs.tensor_text import INLINE, Weights, sha256_of
from onnxjson.model import document as d
from onnxjson.model.operators import attribute_types
from onnxjson.model.payloads import Data

BATCH: Final = 512
"""Elements between two writes."""

_REMEMBERED = 2048
"""Longest attribute block, in bytes, that is remembered."""

_MOST_REMEMBERED = 16_384
"""Maximum number of remembered blocks: in a graph with more, few are equal."""


class _NodeLayout(NamedTuple):
    """The separators between the parts of the most frequent nodes."""

    first: bytes
    next: bytes
    """Separators before the first node, and before each of the others."""
    input: bytes
    name: bytes
    attribute: bytes

    @classmethod
    @lru_cache
    def at(cls, indent: int) -> "_NodeLayout":
        """The layout of nodes at an indentation in spaces."""
        line = values.INDENTS[indent + 1]
        keys = b"]," + line + b'"input": [', b"]," + line + b'"name": ', b"," + line + b'"attribute": '
        return cls(values.INDENTS[indent], b"," + values.INDENTS[indent], *keys)


class TextWriter(ShortForms):
    """Writes one model as pieces of bytes to `write`."""

    def __init__(self, write: Callable[[bytes], object], weights: Weights = INLINE) -> None:
        super().__init__()
        self.write = write
        self._weights = weights
        self._blocks: dict[tuple[int, str | None, str | None, int], tuple[object, bytes]] = {}

    def model(self, model: d.Model) -> None:
        """Write the whole text of a model."""
        self.out.append(b'{\n"format": "onnxjson/1"')
        self.after_format()
        line = b"\n"
        if self._weights.has_digests:
            self.key(b'"weights": "digest"', line)
        self.scalar("blobs", self._weights.blobs, line)
        for name in ("ir_version", "producer_name", "producer_version", "domain", "model_version"):
            self.scalar(name, getattr(model, name), line)
        self.doc_string(model.doc_string, 0)
        if model.opset_import:
            self.key(b'"opset_import": ', line)
            self.out.append(values.opset_imports(model.opset_import, self.exact_line))
        if model.graph is not None:
            self.key(b'"graph": ', line)
            self.graph(model.graph, 0)
        self.list_of(b"functions", model.functions, self._function, 0)
        self.list_of(b"training_info", model.training_info, self._training_info, 0)
        self.list_of(b"configuration", model.configuration, self.exact, 0)
        self.metadata(model.metadata_props, 0)
        self.unknown(model.unknown_fields, line)
        self.out.append(b"\n}\n")
        self.flush()

    def after_format(self) -> None:
        """Write what follows the format; a subclass may add members here."""

    def payload(self, data: Data, storage: str | None) -> None:
        """Write the member with the elements of a big tensor, in the chosen form."""
        kind = self._weights.kind(data, storage)
        if kind == "base64":
            super().payload(data, storage)
        else:
            self.out.append(b'"%b": "%b"' % (kind.encode(), sha256_of(data).encode()))

    def flush(self) -> None:
        """Write the collected pieces."""
        try:
            joined = b"".join(self.out)  # type: ignore[arg-type]
        except TypeError:
            self._stream()
        else:
            self.write(values.escape(joined))
        self.out.clear()

    def _stream(self) -> None:
        """Write collected pieces that include payloads."""
        batch: list[bytes] = []
        for piece in self.out:
            if type(piece) is bytes:
                batch.append(piece)
                continue
            self.write(values.escape(b"".join(batch)))
            batch = []
            self.write_base64(piece.data)  # type: ignore[union-attr]
        self.write(values.escape(b"".join(batch)))

    def small_values(self, batch: Sequence[d.Tensor], indent: int) -> dict[int, bytes]:
        """Format the values of plain small tensors of a batch, by identity, for keys at `indent`."""
        return tensor_text.small_values(batch, indent)

    def write_base64(self, data: Data) -> None:
        """Write a payload as base64, piece by piece."""
        for chunk in (data,) if isinstance(data, bytes) else data.chunks():
            self.write(pybase64.b64encode(chunk))

    def graph(self, graph: d.Graph, indent: int) -> None:
        """Write a graph, the value of a key whose line starts at `indent`."""
        inner = indent + 2
        kinds = ("node", "input", "output", "initializer", "value_info")
        lines, inline = values.element_metadata([(kind, getattr(graph, kind)) for kind in kinds])
        self.out.append(b"{")
        self.scalar("name", graph.name, values.INDENTS[inner])
        self.doc_string(graph.doc_string, inner)
        self._value_infos(b"input", graph.input, inner, inline)
        self._value_infos(b"output", graph.output, inner, inline)
        self._nodes(graph.node, inner, inline)
        self._initializers(graph.initializer, inner, inline)
        self.list_of(b"sparse_initializer", graph.sparse_initializer, self.exact, inner)
        self.list_of(b"quantization_annotation", graph.quantization_annotation, self.exact, inner)
        self._value_infos(b"value_info", graph.value_info, inner, inline)
        self._finish(graph, lines, indent)

    def _finish(self, record: Any, lines: list[bytes], indent: int) -> None:
        inner = indent + 2
        self.metadata(record.metadata_props, inner)
        if lines:
            self.element_metadata(lines, inner)
        self.unknown(record.unknown_fields, values.INDENTS[inner])
        self.close(values.INDENTS[indent])

    def element_metadata(self, lines: list[bytes], indent: int) -> None:
        """Write the metadata of the elements of a graph or function, a line for each pair; its key is at `indent`."""
        line = values.INDENTS[indent + 2]
        self.key(b'"element_metadata": [', values.INDENTS[indent])
        for position in range(0, len(lines), BATCH):
            self.out.append((b"," if position else b"") + line + (b"," + line).join(lines[position : position + BATCH]))
            self.flush_if_free()
        self.out += (values.INDENTS[indent], b"]")

    def _function(self, function: d.Function, indent: int) -> None:
        inner = indent + 2
        line = values.INDENTS[inner]
        lines, inline = values.element_metadata((("node", function.node), ("value_info", function.value_info)))
        self.out.append(b"{")
        for name in ("name", "domain", "overload"):
            self.scalar(name, getattr(function, name), line)
        self.doc_string(function.doc_string, inner)
        if function.opset_import:
            self.key(b'"opset_import": ', line)
            self.out.append(values.opset_imports(function.opset_import, self.exact_line))
        for name in ("input", "output", "attribute"):
            if names := getattr(function, name):
                self.key(b'"%b": %b' % (name.encode(), values.strings(names)), line)
        if function.attribute_proto:
            self.key(b'"attribute_proto": ', line)
            self.attributes(function.attribute_proto, {}, inner)
        self._nodes(function.node, inner, inline)
        self._value_infos(b"value_info", function.value_info, inner, inline)
        self._finish(function, lines, indent)

    def _training_info(self, info: d.TrainingInfo, indent: int) -> None:
        line = values.INDENTS[indent + 2]
        self.out.append(b"{")
        for name in ("initialization", "algorithm"):
            graph = getattr(info, name)
            if graph is not None:
                self.key(b'"%b": ' % name.encode(), line)
                self.graph(graph, indent + 2)
        for name in ("initialization_binding", "update_binding"):
            if entries := getattr(info, name):
                self.key(b'"%b": %b' % (name.encode(), values.pairs(entries, self.exact_line)), line)
        self.unknown(info.unknown_fields, line)
        self.close(values.INDENTS[indent])

    def flush_if_free(self) -> None:
        """Write the collected pieces, unless they are part of a block that may be remembered."""
        if not self.held:
            self.flush()

    def _value_infos(self, key: bytes, infos: Sequence[d.ValueInfo], indent: int, inline: set[int]) -> None:
        if not infos:
            return
        out = self.out
        line = values.INDENTS[indent + 2]
        next_line = b"," + line
        self.key(b'"' + key + b'": [', values.INDENTS[indent])
        separator = line
        for position, info in enumerate(infos, 1):
            name, type_ = info.name, info.type
            if (
                name is None
                or type_ is None
                or info.doc_string is not None
                or info.unknown_fields
                or id(info) in inline
            ):
                out.append(separator)
                self.value_info(info, indent + 2, id(info) in inline)
            else:
                out += (separator, b'{"name": ', values.string(name), b', "type": ', self.type_text(type_), b"}")
            separator = next_line
            if not position % BATCH:
                self.flush_if_free()
        out += (values.INDENTS[indent], b"]")

    def _initializers(self, initializers: Sequence[d.Tensor], indent: int, inline: set[int]) -> None:
        if not initializers:
            return
        self.key(b'"initializer": [', values.INDENTS[indent])
        separator = values.INDENTS[indent + 2]
        for start in range(0, len(initializers), BATCH):
            batch = initializers[start : start + BATCH]
            known = self.small_values(batch, indent + 3)
            for tensor in batch:
                self.out.append(separator)
                written = known.get(id(tensor))
                if written is None or id(tensor) in inline:
                    self.tensor(tensor, indent + 2, is_item=True, inline=id(tensor) in inline)
                else:
                    head = tensor_text.head_of_values(tensor.data_type or 0, tensor.dims, indent + 3)
                    self.out += (b'{"name": ', values.string(tensor.name or ""), head, written, b"}")
                separator = b"," + values.INDENTS[indent + 2]
            self.flush_if_free()
        self.out += (values.INDENTS[indent], b"]")

    def _nodes(self, nodes: Sequence[d.Node], indent: int, inline: set[int]) -> None:
        if not nodes:
            return
        self.key(b'"node": [', values.INDENTS[indent])
        out = self.out
        encode = values.encode_string
        blocks = self._blocks
        layout = _NodeLayout.at(indent + 2)
        _, between, input_key, name_key, attribute_key = layout
        separator = layout.first
        for position, node in enumerate(nodes, 1):
            out.append(separator)
            separator = between
            inputs, outputs, attributes = node.input, node.output, node.attribute
            name, op_type = node.name, node.op_type
            # Written by hand if the node has only what most nodes have: op_type, outputs, inputs, name and attributes.
            if (
                not outputs
                or name is None
                or op_type is None
                or node.domain is not None
                or node.doc_string is not None
                or node.overload is not None
                or node.device_configurations
                or node.unknown_fields
                or (inline and id(node) in inline)
            ):
                self._rare_node(node, indent + 2, id(node) in inline)
            else:
                start = len(out)
                try:
                    out += (
                        b'{"op_type": ',
                        encode(op_type),
                        b', "output": [',
                        encode(outputs[0]) if len(outputs) == 1 else b", ".join(map(encode, outputs)),
                        input_key if inputs else b"",
                        encode(inputs[0]) if len(inputs) == 1 else b", ".join([encode(each) for each in inputs]),
                        name_key,
                        encode(name),
                    )
                except UnicodeEncodeError:
                    # A name that is not UTF-8: start again with the method that can write such names.
                    del out[start:]
                    self._rare_node(node, indent + 2, inline=False)
                else:
                    if attributes:
                        out.append(attribute_key)
                        known = blocks.get((id(attributes), op_type, None, indent + 3))
                        if known is not None:
                            out.append(known[1])
                        else:
                            self._attribute_block(node, indent + 3)
                    out.append(b"}")
            if not position % BATCH:
                self.flush_if_free()
        out.append(values.INDENTS[indent] + b"]")

    def _rare_node(self, node: d.Node, indent: int, inline: bool) -> None:
        """Write a node that has a rare field; its first key is on the first line."""
        self.out.append(b"{")
        line = values.INDENTS[indent + 1]
        if node.op_type is not None:
            self.key(b'"op_type": ' + values.string(node.op_type), None)
        if node.output:
            self.key(b'"output": ' + values.strings(node.output), None)
        if node.input:
            self._node_key(b'"input": ' + values.strings(node.input), line)
        for name in ("name", "domain", "overload"):
            value = getattr(node, name)
            if value is not None:
                self._node_key(b'"%b": %b' % (name.encode(), values.string(value)), line)
        if node.doc_string is not None:
            self._node_key(b'"doc_string": ' + values.string_or_lines(node.doc_string, indent + 1)[0], line)
        if node.attribute:
            self._node_key(b'"attribute": ', line)
            self._attribute_block(node, indent + 1)
        if inline:
            self._node_key(b'"metadata_props": ' + values.pairs(node.metadata_props, self.exact_line), line)
        if node.device_configurations:
            self._node_key(b'"device_configurations": ', line)
            self.items(node.device_configurations, self.exact, indent + 1)
        if node.unknown_fields:
            self._node_key(b'"unknown_fields": "' + pybase64.b64encode(node.unknown_fields) + b'"', line)
        self.out.append(b"}")

    def node(self, node: d.Node, indent: int) -> None:
        """Write one node by itself, with its metadata; lines after the first start one character after `indent`."""
        self._rare_node(node, indent, bool(node.metadata_props))
        self.flush()

    def _node_key(self, text: bytes, line: bytes) -> None:
        self.key(text, None if self.out[-1] == b"{" else line)

    def _attribute_block(self, node: d.Node, indent: int) -> None:
        attributes = node.attribute
        place = (id(attributes), node.op_type, node.domain, indent)
        known = self._blocks.get(place)
        if known is not None:
            self.out.append(known[1])
            return
        start = len(self.out)
        self.held += 1
        self.attributes(attributes, attribute_types(node.domain, node.op_type), indent)
        self.held -= 1
        if len(self._blocks) >= _MOST_REMEMBERED:
            return
        written = self.out[start:]
        if len(written) < 64 and all([type(piece) is bytes for piece in written]):
            text = b"".join(written)  # type: ignore[arg-type]
            if len(text) <= _REMEMBERED:
                self.out[start:] = [text]
                self._blocks[place] = (attributes, text)


def write_text(model: d.Model, write: Callable[[bytes], object], weights: Weights = INLINE) -> None:
    """Stream the canonical text of `model` to `write` in pieces of UTF-8; `weights` is the form of its big tensors."""
    TextWriter(write, weights).model(model)
