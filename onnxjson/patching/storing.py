"""Write a patch as JSON, the text ``onnxjson-patch/1`` (docs/patch.md).

Records and values are written as in a document (docs/format.md). Bytes of tensors are written once, in a table at the
end, by their SHA-256; each payload is read when it is written, so they are never all in memory at the same time.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any, Final

import pybase64

from onnxjson.codecs.canonical_values import INDENTS, string, string_or_lines, strings
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model import document as d
from onnxjson.model.messages import Field
from onnxjson.model.payloads import Data, Digest, Payload
from onnxjson.patching.changes import ExternalFile, ListChange, PatchRecord, Sequence, Set, plans
from onnxjson.patching.listing import TypedOperation, typed_operations

FORMAT: Final = "onnxjson-patch/1"
"""Value of the key "format" of a patch."""

MOST_INLINE: Final = 256
"""Maximum number of bytes of a tensor in full form that are written in place and not in the table."""

_ITEM: Final = 2
"""Indentation of an operation, in steps."""


def write_patch(patch: PatchRecord, write: Callable[[bytes], object], elsewhere: Container[str] = ()) -> None:
    """Stream the text of a patch to `write` in pieces of UTF-8.

    Args:
        patch: the patch.
        write: called with each piece.
        elsewhere: sha256 of the payloads that are left out of the text, since its reader has them.

    Raises:
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that holds tensors of the patch can no longer be read.
    """
    PatchWriter(write, elsewhere).patch(patch)


def patch_bytes(patch: PatchRecord) -> bytes:
    """Return the text of a patch in one piece, UTF-8; see `write_patch` for the errors."""
    parts: list[bytes] = []
    write_patch(patch, parts.append)
    return b"".join(parts)


class PatchWriter(TextWriter):
    """Writes one patch by calls of `write` with bytes."""

    def __init__(self, write: Callable[[bytes], object], elsewhere: Container[str] = ()) -> None:
        super().__init__(write)
        self.table: dict[str, Data] = {}
        """The payloads in the text, by their sha256."""
        self._elsewhere = elsewhere

    def patch(self, patch: PatchRecord) -> None:
        """Write the whole text."""
        self.out.append(b'{\n"format": "%b"' % FORMAT.encode())
        for key, value in (("base", patch.base), ("target", patch.target)):
            self.scalar(key, value, b"\n")
        self._block(b'"operations": [', typed_operations(patch.root), self._operation, b"]")
        if self.table:
            self._block(b'"payloads": {', self.table.items(), self._payload, b"}")
        if patch.external:
            self._block(b'"external": [', patch.external, self._external, b"]")
        self.out.append(b"\n}\n")
        self.flush()

    def _block(self, start: bytes, items: Any, write: Callable[[Any], None], end: bytes) -> None:
        """Write a member of the patch; each item begins on a new line."""
        self.key(start, b"\n")
        line = INDENTS[_ITEM]
        separator = line
        for item in items:
            self.out.append(separator)
            separator = b"," + line
            write(item)
            self.flush_if_free()
        self.out.append(end if separator == line else b"\n" + end)

    def _operation(self, typed: TypedOperation) -> None:
        operation = typed.operation
        plan = plans(typed.message).get(typed.name)
        field = None if plan is None else plan.field
        if isinstance(operation, Set):
            self.out.append(b'{"set": ' + string(operation.address))
            for key, value in (("old", operation.old), ("new", operation.new)):
                if value is not None:
                    line = INDENTS[_ITEM + 1] if _needs_own_line(value) else None
                    self.key(b'"%b": ' % key.encode(), line)
                    self._set_value(field, value, _ITEM + 1)
        else:
            self._list_change(operation)
        self.out.append(b"}")

    def _list_change(self, operation: ListChange) -> None:
        self.out.append(b'{"list": ' + string(operation.address))
        self.key(b'"sequence": ', INDENTS[_ITEM + 1])
        self._sequence(operation.sequence, _ITEM + 1)
        if operation.removed:
            self.key(b'"removed": ', INDENTS[_ITEM + 1])
            self._removed(operation.removed, _ITEM + 1)

    def _sequence(self, sequence: Sequence, indent: int) -> None:
        if all([type(item) is range for item in sequence]):
            self.out.append(b"[" + b", ".join([_run(item) for item in sequence if type(item) is range]) + b"]")
            return
        line = INDENTS[indent + 2]
        self.out.append(b"[")
        for count, item in enumerate(sequence):
            self.out.append(b"," + line if count else line)
            if type(item) is range:
                self.out.append(_run(item))
            else:
                self.out.append(b'{"add": ')
                self._record(item, indent + 2)
                self.out.append(b"}")
        self.out.append(INDENTS[indent] + b"]")

    def _removed(self, removed: Mapping[int, d.Record], indent: int) -> None:
        self.out.append(b"{")
        for count, (position, record) in enumerate(removed.items()):
            self.out.append((b"," if count else b"") + INDENTS[indent + 2] + b'"%d": ' % position)
            self._record(record, indent + 2)
        self.out.append(INDENTS[indent] + b"}")

    def _record(self, record: Any, indent: int) -> None:
        """Write a record on a line that starts at `indent`."""
        match record:
            case d.Node():
                self._node(record, indent)
            case d.Graph():
                self.graph(record, indent)
            case d.Function():
                self._function(record, indent)
            case d.TrainingInfo():
                self._training_info(record, indent)
            case d.Tensor():
                self.tensor(record, indent, is_item=True)
            case d.ValueInfo():
                self.value_info(record, indent, bool(record.metadata_props))
            case d.Type():
                self.out.append(self.type_text(record))
            case _:
                self.exact(record, indent)

    def _node(self, node: d.Node, indent: int) -> None:
        is_rare = (node.domain, node.overload, node.doc_string) != (None, None, None) or bool(
            node.attribute or node.metadata_props or node.device_configurations or node.unknown_fields
        )
        if is_rare or node.op_type is None or node.name is None or not node.output or not node.input:
            self._rare_node(node, indent, bool(node.metadata_props))
            return
        # Fast path for the most frequent form of a node: a patch may have tens of thousands.
        line = INDENTS[indent + 1]
        texts = (string(node.op_type), strings(node.output), line, strings(node.input), line, string(node.name))
        self.out.append(b'{"op_type": %b, "output": %b,%b"input": %b,%b"name": %b}' % texts)

    def _set_value(self, field: Field | None, value: Any, indent: int) -> None:
        if field is None:
            self.out.append(b'"' + pybase64.b64encode(value) + b'"')
        elif field.message is not None:
            self._record(value, indent)
        elif field.packed or field.name == "raw_data":
            self._tensor_data(field, value)
        elif field.name == "doc_string":
            self.out.append(string_or_lines(value, indent)[0])
        else:
            self._value(field, value, indent)

    def payload(self, data: Data, storage: str | None) -> None:
        """See `TextWriter.payload`: the elements of a tensor are written to the table."""
        self.out.append(b'"sha256": "%b"' % self._put(data))

    def _tensor_data(self, field: Field, data: Data) -> None:
        if isinstance(data, bytes) and len(data) <= MOST_INLINE:
            super()._tensor_data(field, data)
        else:
            self.out.append(b'{"sha256": "%b", "bytes": %d}' % (self._put(data), len(data)))

    def _put(self, data: Data) -> bytes:
        """Return the SHA-256 of bytes, and add them to the table if they are available."""
        sha256 = sha256_of(data)
        if not isinstance(data, Digest) and len(data) and sha256 not in self._elsewhere:
            self.table.setdefault(sha256, data)
        return sha256.encode()

    def _payload(self, item: tuple[str, Data]) -> None:
        sha256, data = item
        self.out.append(b'"%b": {"base64": "' % sha256.encode())
        self.flush()
        self.write_base64(data)
        self.out.append(b'"}')

    def _external(self, file: ExternalFile) -> None:
        self.out.append(b'{"location": ' + string(file.location))
        if file.sha256 is not None:
            self.out.append(b', "sha256": ' + string(file.sha256))
        self.out.append(b', "side": ' + string(file.side) + b"}")


def _run(positions: range) -> bytes:
    """Return positions as text: the first and the last."""
    return b"[%d, %d]" % (positions.start, positions.stop - 1)


def _needs_own_line(value: Any) -> bool:
    """Whether a value is written on its own line, to be readable."""
    return isinstance(value, d.Record | Payload) or (isinstance(value, str | bytes | tuple) and len(value) > 24)
