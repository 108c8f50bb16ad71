"""Rows of one node (operator, inputs, outputs, attributes, metadata), and of the inputs and outputs of a model."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.model.display import ELLIPSIS, counted, visible
from onnxjson.model.document import Function, Model, Node
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import format_type
from onnxjson.rendering.node import AttributeView, NodeView, attribute_value_text, view_attribute, view_node
from onnxjson.rendering.tables import Line, Span, cells, clipped, shortened, shortened_name
from onnxjson.rendering.values import Consumer
from onnxjson_tui.rows.choices import Choice

Kind = Literal["operator", "name", "input", "output", "consumer", "attribute", "add", "metadata", "doc", "heading"]

_LONGEST = 1000

_WIDE: Final = 40  # minimum columns for the origin of a value
_LEAST: Final = 9  # minimum columns for a part of the text after a name
_OPERATOR: Final = 9  # maximum columns of a consumer's operator in narrow rows
_ORIGINS: Final = {"initializer": "constant", "graph input": "input"}  # shorter words for the origin of a value


class Entry(NamedTuple):
    """One row."""

    kind: Kind
    label: str  # visible
    text: str  # visible
    slot: int = -1  # position of an input or output
    name: str = ""  # original name of the value, attribute or key; escape it before showing it
    address: str = ""  # address of the node, initializer or value that enter jumps to
    style: Literal["plain", "title", "quiet", "changed"] = "plain"
    origin: str = ""
    """Origin of the value, for wide lists. Visible."""
    more: str = ""
    """Text after the main text: a type, the saved value. Visible."""
    short: str = ""
    """Label for narrow rows. Visible."""


class InspectorRows:
    """The rows of one node."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def line(self, number: int, width: int) -> Line:
        """Return the label and the text of a row."""
        entry = self.entries[number]
        if entry.kind == "heading":
            return (Span(shortened(entry.label, width), "quiet"),)
        label = entry.label + (f" {entry.origin}" if entry.origin and width >= _WIDE else "")
        if entry.short and cells(label) + 1 + cells(entry.text) > width:
            label = entry.short
        most = width * 2 // 3 if entry.short else width // 2
        label = shortened(label, max(most, width - cells(entry.text) - 1, 8))
        room = max(width - cells(label) - 1, 0)
        return (Span(label + " ", "quiet"), Span(_text(entry, room), entry.style))


def _text(entry: Entry, room: int) -> str:
    """Return the text of a row and the text after it, which is shortened first, except for a saved value."""
    cut = shortened_name if entry.kind in ("name", "input", "output", "consumer") else shortened
    if not entry.more:
        return cut(entry.text, room)
    rest = max(room - cells(entry.text) - 2, room // (2 if entry.style == "changed" else 3))
    if rest < _LEAST and rest < cells(entry.more):
        return f"{cut(entry.text, max(room - 2, 1))} {ELLIPSIS}"[: max(room, 0)]
    text = cut(entry.text, room - min(rest, cells(entry.more)) - 2)
    return f"{text}  {shortened(entry.more, room - cells(text) - 2)}"


def inspected(model: Model, index: Index, ref: NodeRef, was: Node | None = None) -> InspectorRows:
    """Return the rows of a node; differences to a saved node, other than of metadata, are marked."""
    view = view_node(model, index, ref, "")
    entries = [*_head(view), *_inputs(view), *_outputs(view), *_attributes(view.attributes), *_tail(view)]
    if was is not None:
        entries = [_compared(each, ref.node, was) for each in entries]
        entries += _removed(ref.node, was)
    return InspectorRows(entries)


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
            found = next((each for each in was.attribute if (each.name or "") == entry.name), None)
            text = "missing" if found is None else attribute_value_text(view_attribute(found, ""))
            text = None if text == entry.text else text
    return entry if text is None else entry._replace(more=f"{entry.more}  (was {text})".lstrip(), style="changed")


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


def _inputs(view: NodeView) -> list[Entry]:
    found = []
    for slot, each in enumerate(view.inputs):
        by = each.produced_by
        producer = visible(each.node.op_type, 60) if each.node is not None else _ORIGINS.get(by, by)
        text, kind = visible(each.name, _LONGEST) or "(omitted)", visible(each.type or "", 200)
        origin = producer if each.name else ""
        entry = Entry("input", f"in[{slot}]", text, slot, each.name, each.address or "", origin=origin, more=kind)
        found.append(entry)
    return found


def _outputs(view: NodeView) -> list[Entry]:
    found = []
    for slot, each in enumerate(view.outputs):
        text, kind = visible(each.name, _LONGEST), visible(each.type or "", 200)
        found.append(Entry("output", f"out[{slot}]", text, slot, each.name, view.address, more=kind))
        found += [_consumer(user) for user in each.consumers[:50]]
    return found


def _consumer(user: Consumer) -> Entry:
    if user.node is None:
        return Entry("consumer", "  ->", "output of the graph", address=user.address)
    # Where a node has no name, its position identifies it within the graph.
    owner, _, position = user.node.address.rpartition("/node/")
    same = user.address.startswith(f"{owner}/node/") and user.address.count("/node/") == 1
    name = visible(user.node.name or (position if same else user.node.address), _LONGEST)
    operator = visible(user.node.op_type, 60)
    # Exporters often name nodes after their operators, which are not repeated then.
    brief = "" if operator in name else f"{clipped(operator, _OPERATOR)} "
    label, short = f"  -> {operator} in[{user.slot}]", f"  -> {brief}in[{user.slot}]"
    return Entry("consumer", label, name, address=user.node.address, short=short)


def _attributes(attributes: Sequence[AttributeView]) -> Iterator[Entry]:
    yield Entry("heading", "attributes", "")
    for each in attributes:
        name = each.name or ""
        yield Entry("attribute", visible(name, 200), attribute_value_text(each), name=name, address=each.address)
    yield Entry("add", "+", "another attribute", style="quiet")


def _tail(view: NodeView) -> Iterator[Entry]:
    # The row without text is for entering a first doc string.
    is_none = not view.doc_string
    yield Entry("doc", "doc", visible(view.doc_string or "(none)", _LONGEST), style="quiet" if is_none else "plain")
    if view.metadata:
        yield Entry("heading", "metadata", "")
    for each in view.metadata:
        key = each.key or ""
        yield Entry("metadata", visible(key, 200), visible(each.value or "", _LONGEST), name=key)


_LONGEST = 1000


def port_choices(index: Index) -> list[Choice]:
    """Return the inputs and outputs of the main graph with their consumers or producers; keys are kind and name."""
    scope = index.main
    if scope is None or isinstance(scope.graph, Function):
        return []
    found = []
    for kind, values in (("input", scope.graph.input), ("output", scope.graph.output)):
        for value in values:
            name = value.name or ""
            type_text = visible(format_type(value.type) or "?", 300) if value.type is not None else "no type"
            note = _uses(index, scope, name) if kind == "input" else _origin(scope, name)
            label = f"{kind.removesuffix('put'):<4} {visible(name, _LONGEST)}"
            found.append(Choice(f"{kind} {name}", label, f"{type_text}  {note}"))
    return found


def _uses(index: Index, scope: Scope, name: str) -> str:
    uses = len(index.consumers(scope, name))
    default = ", has a default" if name in scope.initializers else ""
    return (counted(uses, "use") if uses else "not consumed") + default


def _origin(scope: Scope, name: str) -> str:
    producer = scope.producers.get(name)
    if producer is None:
        return "an input or constant" if scope.defines(name) else "not produced"
    return f"produced by {producer[0]} {visible(scope.graph.node[producer[0]].op_type or '?', 40)}"
