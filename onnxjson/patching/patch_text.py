"""Write and read a patch as JSON, the text ``onnxjson-patch/1`` (docs/patch.md).

Records and values are written as in a document (docs/format.md). Bytes of tensors are written once, in a table at the
end, by their SHA-256; each payload is read when it is written, so they are never all in memory at the same time.

A patch that is read is untrusted input: it is checked for consistency and against the messages of onnx.proto, so that
a patch that passes can safely be applied, inverted and composed.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pybase64

from onnxjson.codecs.canonical_values import INDENTS, string, string_or_lines
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.reading.context import ROOT, Context, Place, has_format
from onnxjson.codecs.reading.exact_reader import read_document
from onnxjson.codecs.reading.strings import SHA256, read_payload, read_string
from onnxjson.codecs.reading.tree import Tree
from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.codecs.text_file import read_cut
from onnxjson.model import document as d
from onnxjson.model.display import visible
from onnxjson.model.messages import Field
from onnxjson.model.payloads import Data, Digest, Payload, SourceFile
from onnxjson.patching.building import Builder
from onnxjson.patching.changes import ExternalFile, ListChange, PatchRecord, Sequence, Set, plans
from onnxjson.patching.listing import TypedOperation, typed_operations
from onnxjson.storage.identity import open_source

FORMAT: Final = "onnxjson-patch/1"
"""Value of the key "format" of a patch."""

MOST_INLINE: Final = 256
"""Maximum number of bytes of a tensor in full form that are written in place and not in the table."""

_ITEM: Final = 2
"""Indentation of an operation, in steps."""

_KEYS: Final = ("format", "base", "target", "operations", "payloads", "external")
_OPERATION_KEYS: Final = {"set": ("set", "old", "new"), "list": ("list", "sequence", "removed")}
_EXTERNAL_KEYS: Final = ("location", "sha256", "side")

P = TypeVar("P", bound=PatchRecord)


def write_patch(patch: PatchRecord, write: Callable[[bytes], object]) -> None:
    """Stream the text of a patch to `write` in pieces of UTF-8."""
    PatchWriter(write).patch(patch)


class PatchWriter(TextWriter):
    """Writes one patch by calls of `write` with bytes; payloads that the reader has `elsewhere` are left out."""

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
        match record:
            case d.Node():
                self._rare_node(record, indent, bool(record.metadata_props))
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
    return b"[%d, %d]" % (positions.start, positions.stop - 1)


def _needs_own_line(value: Any) -> bool:
    """Whether a value is written on its own line, to be readable."""
    return isinstance(value, d.Record | Payload) or (isinstance(value, str | bytes | tuple) and len(value) > 24)


def load_patch(patch_type: type[P], path: str | Path, elsewhere: dict[str, Data] | None = None) -> P:
    """Load the patch in a file; big payloads stay there until they are needed.

    `elsewhere` has payloads by their sha256 that the file may leave out; those in the file are added.

    Raises:
        DecodeError: it is not a patch; `findings` have the reasons and places.
    """
    return read_patch(patch_type, open_source(Path(path)), elsewhere)


def read_patch(patch_type: type[P], source: SourceFile, elsewhere: dict[str, Data] | None = None) -> P:
    """Read the patch in an open file; see `load_patch`."""
    parse = partial(parse_patch, patch_type, file=str(source.path), elsewhere=elsewhere)
    return read_cut(source, lambda text, cuts: parse(text, cuts=cuts))


def parse_patch(
    patch_type: type[P],
    text: bytes,
    *,
    file: str = "",
    cuts: Mapping[str, Payload] | None = None,
    elsewhere: dict[str, Data] | None = None,
) -> P:
    """Parse the patch in a text; see `load_patch`. `cuts` are payloads that were cut out, by what replaces them."""
    known = {} if elsewhere is None else elsewhere
    context = Context(cuts=cuts)
    read = partial(_read_patch, patch_type, known=known)
    return read_document(text, read, context, file=file)[0]


def _read_patch(patch_type: type[P], tree: Tree, context: Context, *, known: dict[str, Data]) -> P | None:
    if not has_format(tree, FORMAT, "a patch", context):
        return None
    for key in tree:
        if key not in _KEYS:
            context.unknown_key(key, ROOT.at(key), _KEYS, "a patch")
    context.has_digests = True
    known.update(_read_payloads(tree.get("payloads", {}), ROOT.at("payloads"), context))
    context.payloads = known
    builder = Builder(context)
    if "operations" not in tree:
        context.error(ROOT, "missing-key", "the patch has no operations", 'add "operations": [...]')
    for operation, place in _items(tree, "operations", "a list of operations", context):
        _read_operation(operation, place, context, builder)
    external = [_read_external(*item, context) for item in _items(tree, "external", "a list of files", context)]
    hashes = [_read_hash(tree, key, ROOT, context) for key in ("base", "target")]
    root = builder.build()
    files = tuple([file for file in external if file is not None])
    return None if context.remarks else patch_type(root, base=hashes[0], target=hashes[1], external=files)


def _items(tree: dict[str, Tree], key: str, fits: str, context: Context) -> Iterator[tuple[Tree, Place]]:
    items = tree.get(key, [])
    place = ROOT.at(key)
    if not isinstance(items, list):
        context.wrong_type(items, place, fits)
        return
    for index, item in enumerate(items):
        yield item, place.at(index)


def _read_operation(tree: Tree, place: Place, context: Context, builder: Builder) -> None:
    kinds = [key for key in _OPERATION_KEYS if key in tree] if isinstance(tree, dict) else []
    if not isinstance(tree, dict) or not kinds:
        context.wrong_type(tree, place, 'an operation, {"set": ...} or {"list": ...}')
        return
    if len(kinds) > 1:
        context.error(place, "conflicting-keys", 'the operation has both "set" and "list"', "keep one of them")
        return
    kind = kinds[0]
    for key in tree:
        if key not in _OPERATION_KEYS[kind]:
            context.unknown_key(key, place.at(key), _OPERATION_KEYS[kind], f'an operation "{kind}"')
    address = tree[kind]
    if type(address) is not str:
        address = read_string(address, place.at(kind), context)
    if not isinstance(address, str):
        return
    if kind == "set":
        builder.set_field(address, tree, place)
    else:
        builder.change_list(address, tree, place)


def _read_hash(tree: dict[str, Tree], key: str, place: Place, context: Context) -> str | None:
    if key not in tree:
        return None
    value = tree[key]
    if isinstance(value, str) and SHA256.fullmatch(value):
        return value
    context.wrong_type(value, place.at(key), "a sha256, 64 digits and letters a to f")
    return None


def _read_payloads(tree: Tree, place: Place, context: Context) -> Mapping[str, Data]:
    payloads: dict[str, Data] = {}
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, "an object of payloads by their sha256")
        return payloads
    for key, value in tree.items():
        at = place.at(key)
        if not SHA256.fullmatch(key):
            message = f'"{visible(key, 80)}" is not a sha256'
            context.error(at, "bad-payload", message, "64 digits and letters a to f", on_key=True)
            continue
        if not (isinstance(value, dict) and set(value) == {"base64"}):
            context.wrong_type(value, at, '{"base64": "..."}')
            continue
        data = read_payload(value["base64"], at.at("base64"), context)
        if data is None:
            continue
        sha256 = sha256_of(data)
        if sha256 != key:
            context.error(at, "bad-payload", f"the sha256 of the payload is {sha256}", "the bytes were changed")
        payloads[key] = data
    return payloads


def _read_external(tree: Tree, place: Place, context: Context) -> ExternalFile | None:
    if not isinstance(tree, dict) or "location" not in tree:
        context.wrong_type(tree, place, 'a file such as {"location": "model.data", "side": "target"}')
        return None
    for key in tree:
        if key not in _EXTERNAL_KEYS:
            context.unknown_key(key, place.at(key), _EXTERNAL_KEYS, "an external file")
    location = read_string(tree["location"], place.at("location"), context)
    side = tree.get("side", "target")
    if side not in ("base", "target"):
        context.wrong_type(side, place.at("side"), '"base" or "target"')
        return None
    sha256 = _read_hash(tree, "sha256", place, context)
    return None if location is None else ExternalFile(location, sha256, str(side))
