"""What a model says beside what it computes, taken away: doc strings, metadata, types of values, names of nodes."""

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.addresses import find_element
from onnxjson.display import visible
from onnxjson.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    Record,
    StringStringEntry,
    Tensor,
    ValueInfo,
)
from onnxjson.edits.declaration import Edit
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.rebuilding import replace_records
from onnxjson.edits.surgery import put
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.wire.writing import message_size

What = Literal["doc_strings", "metadata", "value_info", "names"]
Element = Literal["model", "graph", "node", "attribute", "tensor", "value", "function"]

_ELEMENTS: Final[dict[type[Record], Element]] = {
    Model: "model",
    Graph: "graph",
    Node: "node",
    Attribute: "attribute",
    Tensor: "tensor",
    ValueInfo: "value",
    Function: "function",
}


class Strip(Edit, frozen=True, kw_only=True, eq=False, tag="strip"):
    """Take away what a model says beside what it computes, and say how many bytes that saves."""

    words: ClassVar = ("what",)
    examples: ClassVar = (
        '{"edit": "strip"}',
        '{"edit": "strip", "what": ["metadata", "value_info"], "below": "/graph"}',
    )

    what: Annotated[
        tuple[What, ...],
        Meta(min_length=1, description="What goes; names are those of nodes, which nothing refers to."),
    ] = ("doc_strings",)
    of: Annotated[
        tuple[Element, ...] | None,
        Meta(min_length=1, description="From which elements doc strings and metadata go; from all if left out."),
    ] = None
    below: Annotated[
        str | None,
        Role("address"),
        Meta(description="The address of the element to strip, with all in it, such as /graph or /functions/0."),
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        stripper = _Stripper(self.what, self.of)
        model = workspace.model
        if self.below is None:
            workspace.replace_equivalent(stripper.stripped(model))
        else:
            address = self.below.removeprefix("@")
            element = find_element(model, address)
            if not isinstance(element.value, Record):
                raise EditError(f"{visible(address, 200)} is no element that can be stripped; name a record", address)
            made = put(model, element.address, stripper.stripped(element.value))[""]
            assert isinstance(made, Model)
            workspace.replace_equivalent(made)
        if not stripper.count:
            return Outcome(0, ("there is nothing to strip",))
        return Outcome(stripper.count, (f"{stripper.count:,} are gone, with {stripper.saved:,} bytes",))


class _Stripper:
    def __init__(self, what: tuple[What, ...], of: tuple[Element, ...] | None) -> None:
        self._what = set(what)
        self._of = None if of is None else set(of)
        self.count = 0
        """What is gone: doc strings, keys, entries of value_info, names."""
        self.saved = 0
        """Bytes that it took."""

    def stripped(self, root: Record) -> Any:
        """The record without what is to go."""
        kinds = tuple([kind for kind in _ELEMENTS if self._concerns(kind)])
        return replace_records(root, kinds, self._change, shared=False)

    def _concerns(self, kind: type[Record]) -> bool:
        element = _ELEMENTS[kind]
        wanted = self._of is None or element in self._of
        if "doc_strings" in self._what and wanted:
            return True
        if "metadata" in self._what and wanted and kind is not Attribute:
            return True
        return ("value_info" in self._what and kind in (Graph, Function)) or ("names" in self._what and kind is Node)

    def _change(self, record: Any) -> Any:
        updates: dict[str, Any] = {}
        if self._of is None or _ELEMENTS[type(record)] in self._of:
            if "doc_strings" in self._what and record.doc_string is not None:
                updates["doc_string"] = None
                self._gone(1, _text_bytes(record.doc_string))
            if "metadata" in self._what and not isinstance(record, Attribute) and record.metadata_props:
                updates["metadata_props"] = ()
                self._gone(len(record.metadata_props), sum(map(_entry_bytes, record.metadata_props)))
        if "value_info" in self._what and isinstance(record, Graph | Function) and record.value_info:
            updates["value_info"] = ()
            self._gone(len(record.value_info), message_size(Graph(value_info=record.value_info)))
        if "names" in self._what and isinstance(record, Node) and record.name is not None:
            updates["name"] = None
            self._gone(1, _text_bytes(record.name))
        return replace(record, **updates) if updates else record

    def _gone(self, count: int, size: int) -> None:
        self.count += count
        self.saved += size


def _text_bytes(text: str) -> int:
    """What a text takes in a message, with its tag and length."""
    return _message_bytes(len(text.encode("utf-8", "surrogateescape")))


def _entry_bytes(entry: StringStringEntry) -> int:
    parts = [_text_bytes(text) for text in (entry.key, entry.value) if text is not None]
    return _message_bytes(sum(parts) + len(entry.unknown_fields))


def _message_bytes(length: int) -> int:
    return 1 + max(1, (length.bit_length() + 6) // 7) + length
