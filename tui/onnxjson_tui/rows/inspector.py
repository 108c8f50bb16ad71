"""Rows of one node (operator, inputs, outputs, attributes, metadata), and of the inputs and outputs of a model."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.model.constants import copied_constant, is_constant
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Model, Node
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import shown_type
from onnxjson.model.walking import stored_bytes
from onnxjson.rendering.node import (
    AttributeView,
    NodeView,
    attribute_value_text,
    few_values,
    values_text,
    view_attribute,
    view_node,
)
from onnxjson.rendering.tables import Line, Span, cells, padded, shortened, shortened_name, size
from onnxjson.rendering.values import Consumer, Source
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.nodes import short_type, type_text

Kind = Literal["operator", "name", "input", "output", "consumer", "attribute", "add", "metadata", "doc", "heading"]

_LONGEST = 1000

_LEAST: Final = 6  # minimum columns for the name of a value
_ORIGINS: Final = {"initializer": "constant", "graph input": "input"}  # shorter words for the origin of a value


class Entry(NamedTuple):
    """One row: a label, then texts in columns."""

    kind: Kind
    label: str  # visible
    text: str  # visible
    slot: int = -1  # position of an input or output
    name: str = ""  # original name of the value, attribute or key; escape it before showing it
    address: str = ""  # address of the node, initializer or value that enter jumps to
    style: Literal["plain", "title", "quiet", "changed"] = "plain"
    more: str = ""
    """Text after the main text: a type, the saved value. Visible."""
    called: str = ""
    """Name of the value, at the end. Visible."""


class InspectorRows:
    """The rows of one node, with aligned columns for each kind of row."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self._labels = _widest(entries, lambda each: each.label)
        self._texts = _widest([each for each in entries if each.more or each.called], lambda each: each.text)
        self._types = _widest(entries, lambda each: each.more)

    def __len__(self) -> int:
        return len(self.entries)

    def line(self, number: int, width: int) -> Line:
        """Return the label and the texts of a row."""
        entry = self.entries[number]
        if entry.kind == "heading":
            return (Span(shortened(entry.label, width), "title"),)
        if entry.kind == "operator":
            return (Span(shortened(f"{entry.text}  {entry.more}".rstrip(), width), entry.style),)
        kind = entry.kind
        column = min(self._labels.get(kind, 0), max(width * 2 // 5, 6))
        label = padded(shortened(entry.label, column), column) + " "
        room = max(width - cells(label), 0)
        cut = shortened_name if kind in ("name", "consumer") else shortened
        if entry.style == "changed" and entry.more:
            return (Span(label, "quiet"), Span(_changed(entry, room), "changed"))
        if not (entry.more or entry.called):
            return (Span(label, "quiet"), Span(cut(entry.text, room), entry.style))
        # The origin of a value is worth more than its type, and that more than its name.
        reserved = min(cells(entry.more) + 1, room // 3) if entry.more else 0
        text = cut(entry.text, room - reserved)
        column = min(self._texts.get(kind, 0), room - self._types.get(kind, 0) - 1)
        text = padded(text, max(min(column, room - reserved), cells(text)))
        room -= cells(text) + 1
        kind_text = short_type(entry.more, room) if entry.more and room > 2 else ""
        kind_text = padded(kind_text, min(self._types.get(kind, 0), max(room, 0)))
        room -= cells(kind_text) + 1
        called = f" {shortened_name(entry.called, room)}" if entry.called and room >= _LEAST else ""
        return (
            Span(label, "quiet"),
            Span(text, entry.style),
            Span(f" {kind_text}" if kind_text else ""),
            Span(called, "quiet"),
        )


def _widest(entries: Sequence[Entry], text: Callable[[Entry], str]) -> dict[Kind, int]:
    """Return the columns of the widest text of each kind of row."""
    widths: dict[Kind, int] = {}
    for each in entries:
        widths[each.kind] = max(widths.get(each.kind, 0), cells(text(each)))
    return widths


def _changed(entry: Entry, room: int) -> str:
    """Return the text of a row that differs from the saved one, which is shown as far as possible."""
    text, was = entry.called or entry.text, entry.more
    if entry.called and cells(entry.text) <= room // 3:
        text = f"{entry.text} {text}"  # its type or source
    rest = max(room - cells(text) - 2, room * 2 // 3)
    text = shortened(text, room - min(rest, cells(was)) - 2)
    return f"{text}  {shortened(was, room - cells(text) - 2)}"


def inspected(
    model: Model,
    index: Index,
    ref: NodeRef,
    was: Node | None = None,
    typed: Scope | None = None,
    *,
    line: Sequence[str] = (),
) -> InspectorRows:
    """Return the rows of a node; differences to a saved node, other than of metadata, are marked.

    `typed` is the graph with inferred types, which are in parentheses; `line` is what comes first: the text of the line
    of the node, if its row has no room for it.
    """
    view = view_node(model, index, ref, "")
    inputs, outputs = _inputs(view, ref, typed), _outputs(view, ref, typed)
    entries = [*_head(view), *inputs, *outputs, *_attributes(view.attributes), *_tail(view)]
    if was is not None:
        entries = [_compared(each, ref.node, was) for each in entries]
        entries += _removed(ref.node, was)
    return InspectorRows([*[Entry("heading", each, "") for each in line], *entries])


def _compared(entry: Entry, node: Node, was: Node) -> Entry:
    """Return a row with the saved value if that was different."""
    text = None
    match entry.kind:
        case "operator" if (was.op_type, was.domain) != (node.op_type, node.domain):
            text = visible(operator_name(was.domain, was.op_type), _LONGEST)
        case "input" | "output":
            names = was.input if entry.kind == "input" else was.output
            old = names[entry.slot] if entry.slot < len(names) else ""
            text = None if old == entry.name else visible(old, _LONGEST) or "omitted"
        case "doc" if (was.doc_string or "") != (node.doc_string or ""):
            text = visible(was.doc_string or "", _LONGEST) or "none"
        case "name" if (was.name or "") != entry.name:
            text = visible(was.name or "", _LONGEST) or "none"
        case "attribute":
            current, saved = [
                next((each for each in one.attribute if (each.name or "") == entry.name), None) for one in (node, was)
            ]
            text = "missing" if saved is None else attribute_value_text(view_attribute(saved, ""))
            # Of long lists, the texts have the beginning.
            lists = [(each.ints, each.floats, each.strings) for each in (current, saved) if each is not None]
            text = None if text == entry.text and lists[:1] == lists[1:] else text
    return entry if text is None else entry._replace(more=f"(was {text})", style="changed")


def _removed(node: Node, was: Node) -> list[Entry]:
    """Return headings for removed inputs, outputs and attributes."""
    slots = [
        f"{word}[{slot}] {visible(name, _LONGEST)}"
        for word, old, new in (("in", was.input, node.input), ("out", was.output, node.output))
        for slot, name in enumerate(old)
        if slot >= len(new) and name
    ]
    there = {each.name for each in node.attribute}
    removed = [view_attribute(each, "") for each in was.attribute if each.name not in there]
    attributes = [f"{visible(each.name or '', 200)} {attribute_value_text(each)}" for each in removed]
    return [Entry("heading", f"removed: {each}", "") for each in [*slots, *attributes]]


def _head(view: NodeView) -> list[Entry]:
    operator, name = view.op_type or "", view.name or ""
    shown = visible(operator_name(view.domain, operator), _LONGEST)
    return [
        Entry("operator", "op", shown, name=operator, address=view.address, style="title"),
        Entry("name", "name", visible(name, _LONGEST) or "(none)", name=name, address=view.address),
    ]


def _type(name: str, stated: str | None, typed: Scope | None) -> str:
    """Return a short type, in parentheses if it is inferred; "" if it is unknown."""
    found = None if stated or typed is None or not name else Index.type_of(typed, name)
    return f"({type_text(found)})" if found is not None else short_type(visible(stated or "", 200))


def _inputs(view: NodeView, ref: NodeRef, typed: Scope | None) -> Iterator[Entry]:
    for slot, value in enumerate(view.inputs):
        name, kind = visible(value.name, _LONGEST), _type(value.name, value.type, typed)
        text = _source_text(value, ref) if value.name else "omitted"
        yield Entry("input", f"in {slot}", text, slot, value.name, value.address or "", more=kind, called=name)


def _source_text(source: Source, ref: NodeRef) -> str:
    """Describe where a value comes from: its value if it is small, the size of a weight, its producer."""
    constant = copied_constant(ref.scope, source.name)
    if constant is not None and not constant.is_default and constant.tensor is not None:
        values = few_values(constant.tensor)
        if values is not None:
            return f"= {visible(values_text(values), 60)}"
        return f"weight {size(stored_bytes(constant.tensor))}"
    if source.node is not None:
        kind = ", constant" if is_constant(ref.scope, source.name) else ""
        return f"← {_place(source.node.address, ref)} {visible(source.node.op_type, 60)}{kind}"
    return _ORIGINS.get(source.produced_by, source.produced_by)


def _place(address: str, ref: NodeRef) -> str:
    """Return the position of a node of the same graph, or the address of another one."""
    owner, _, position = address.rpartition("/node/")
    return position if owner == ref.scope.address else visible(address, 60)


def _outputs(view: NodeView, ref: NodeRef, typed: Scope | None) -> Iterator[Entry]:
    for slot, value in enumerate(view.outputs):
        name, kind = visible(value.name, _LONGEST), _type(value.name, value.type, typed)
        style: Literal["plain", "quiet"] = "quiet" if kind.startswith("(") else "plain"
        yield Entry("output", f"out {slot}", kind or "no type", slot, value.name, view.address, style, called=name)
        for user in value.consumers[:50]:
            yield _consumer(user, ref)


def _consumer(user: Consumer, ref: NodeRef) -> Entry:
    if user.node is None:
        return Entry("consumer", "", "→ output of the graph", address=user.address)
    operator = f"{_place(user.node.address, ref)} {visible(user.node.op_type, 60)}"
    same = user.address.startswith(f"{ref.scope.address}/node/") and user.address.count("/node/") == 1
    slot = f"in {user.slot}" if same or user.slot else "inside"
    name = visible(user.node.name or "", _LONGEST)
    return Entry("consumer", "", f"→ {operator}", address=user.node.address, more=slot, called=name)


def _attributes(attributes: Sequence[AttributeView]) -> Iterator[Entry]:
    yield Entry("heading", "attributes", "")
    for each in attributes:
        name = each.name or ""
        yield Entry("attribute", visible(name, 200), attribute_value_text(each), name=name, address=each.address)
    yield Entry("add", "+", "add an attribute", style="quiet")


def _tail(view: NodeView) -> Iterator[Entry]:
    # The row without text is for entering a first doc string.
    is_none = not view.doc_string
    yield Entry("doc", "doc", visible(view.doc_string or "(none)", _LONGEST), style="quiet" if is_none else "plain")
    if view.metadata:
        yield Entry("heading", "metadata", "")
    for each in view.metadata:
        key = each.key or ""
        yield Entry("metadata", visible(key, 200), visible(each.value or "", _LONGEST), name=key)


def port_choices(index: Index) -> list[Choice]:
    """Return the inputs and outputs of the main graph with their consumers or producers; keys are kind and name."""
    scope = index.main
    if scope is None or isinstance(scope.graph, Function):
        return []
    choices = []
    for kind, values in (("input", scope.graph.input), ("output", scope.graph.output)):
        for value in values:
            name = value.name or ""
            type_text = visible(shown_type(value.type), 300) if value.type is not None else "no type"
            note = _uses(index, scope, name) if kind == "input" else _origin(scope, name)
            label = f"{kind.removesuffix('put'):<4} {visible(name, _LONGEST)}"
            choices.append(Choice(f"{kind} {name}", label, f"{type_text}  {note}"))
    return choices


def _uses(index: Index, scope: Scope, name: str) -> str:
    uses = len(index.consumers(scope, name))
    default = ", has a default" if name in scope.initializers else ""
    return (counted(uses, "use") if uses else "not consumed") + default


def _origin(scope: Scope, name: str) -> str:
    producer = scope.producers.get(name)
    if producer is None:
        return "an input or constant" if scope.defines(name) else "not produced"
    return f"produced by {producer[0]} {visible(scope.graph.node[producer[0]].op_type or '?', 40)}"
