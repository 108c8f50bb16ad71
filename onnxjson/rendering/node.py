"""One node, as data and as lines: inputs with producers, outputs with consumers, attributes."""

from collections.abc import Sequence
from textwrap import dedent
from typing import Any, Final

import msgspec

from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.display import ELLIPSIS, counted, visible
from onnxjson.model.document import Attribute, Function, Graph, Model, SparseTensor, Tensor, Type
from onnxjson.model.dtypes import STRING, float32_text
from onnxjson.model.elements import element_count, tokens
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, ATTRIBUTE_TYPE_NAMES, value_of
from onnxjson.model.operators import (
    Signature,
    function_key,
    operator_key,
    operator_name,
    operator_signature,
    plain_domain,
)
from onnxjson.model.tensors import is_external, raw_bytes
from onnxjson.model.types import format_type
from onnxjson.patterns.selector_terms import scopes_of
from onnxjson.rendering import values
from onnxjson.rendering.tables import first_lines, table, wrapped
from onnxjson.rendering.values import Json, picked

_MOST_VALUES: Final = 8
_MOST_CONSUMERS: Final = 12
_MOST_CHARACTERS: Final = 2000
_MOST_ELEMENTS: Final = 64


class AttributeView(msgspec.Struct, frozen=True):
    """One attribute."""

    name: str | None
    type: str | None
    value: object
    """Numbers, strings and lists of them; type and few values of a tensor, name and number of nodes of a graph, text of
    a type; None for a reference. Of a long list, only its beginning, unless all is requested."""
    count: int | None  # number of elements of a list
    reference: str | None  # attribute of the enclosing function that it refers to
    address: str


class Output(msgspec.Struct, frozen=True):
    """An output of the node."""

    name: str
    type: str | None
    consumers: tuple[values.Consumer, ...]


class NodeView(msgspec.Struct, frozen=True):
    """One node."""

    kind: str
    file: str
    address: str
    name: str | None
    op_type: str | None
    domain: str | None
    overload: str | None
    scope: str | None  # scope of the node, from its name or the metadata of the exporter
    function: str | None  # address of the function that it calls
    inputs: tuple[values.Source, ...]
    outputs: tuple[Output, ...]
    attributes: tuple[AttributeView, ...]
    doc_string: str | None
    metadata: tuple[values.Pair, ...]
    documentation: dict[str, Any] | None


def opset_of(model: Model, ref: NodeRef) -> int | None:
    """Return the opset version for a node; None if its domain is not imported."""
    graph = ref.scope.root.graph
    imports = (graph.opset_import if isinstance(graph, Function) else ()) or model.opset_import
    wanted = plain_domain(ref.node.domain)
    return next((each.version for each in imports if plain_domain(each.domain) == wanted), None)


def imported_signature(model: Model, op_type: str, domain: str) -> Signature | None:
    """Return the signature of an operator in the opset version that a model imports; None if there is none."""
    wanted = plain_domain(domain)
    opset = next((each.version for each in model.opset_import if plain_domain(each.domain) == wanted), None)
    return operator_signature(wanted, op_type, opset) if opset is not None else None


def view_node(
    model: Model,
    index: Index,
    ref: NodeRef,
    file: str,
    documentation: dict[str, Any] | None = None,
    *,
    most: int | None = _MOST_ELEMENTS,
) -> NodeView:
    """Return all data about a node, with the `documentation` of its operator (`documentation_fields`) if requested.

    Lists of attributes have at most `most` elements (None: all).
    """
    node = ref.node
    scopes = scopes_of(node)
    parts = attribute_segments(node.attribute)
    return NodeView(
        kind="node",
        file=file,
        address=ref.address,
        **picked(node, "name op_type domain overload doc_string"),
        scope=scopes[-1] if scopes else None,
        function=_function(model, ref),
        inputs=tuple([values.source(index, ref.scope, name) for name in node.input]),
        outputs=tuple([
            Output(name, values.value_type(ref.scope, name), values.consumers(index, ref.scope, name) if name else ())
            for name in node.output
        ]),
        attributes=tuple([
            view_attribute(attribute, f"{ref.address}/attribute/{escape(part)}", most)
            for part, attribute in zip(parts, node.attribute, strict=True)
        ]),
        metadata=values.pairs(node.metadata_props),
        documentation=documentation,
    )  # fmt: skip


def _function(model: Model, ref: NodeRef) -> str | None:
    called = operator_key(ref.node)
    places = [place for place, function in enumerate(model.functions) if function_key(function) == called]
    return f"/functions/{places[0]}" if places else None


def view_attribute(attribute: Attribute, address: str, most: int | None = _MOST_ELEMENTS) -> AttributeView:
    """Return all data about an attribute; of a list, at most `most` elements (None: all)."""
    kind = None if attribute.type is None else ATTRIBUTE_TYPE_NAMES.get(attribute.type, str(attribute.type))
    payload, count = ATTRIBUTE_PAYLOADS.get(attribute.type or 0), None
    elements: Any = None if payload is None else getattr(attribute, payload)
    if payload is not None and (payload == "floats" or isinstance(elements, tuple)):
        size = 4 if payload == "floats" else 1
        count = len(elements) // size
        if most is not None and count > most:
            attribute = msgspec.structs.replace(attribute, **{payload: elements[: size * most]})
    return AttributeView(attribute.name, kind, _value(attribute), count, attribute.ref_attr_name, address)


def _value(attribute: Attribute) -> object:
    """Return the exact value as in JSON; large values are described by their type."""
    payload = ATTRIBUTE_PAYLOADS.get(attribute.type or 0)
    if attribute.ref_attr_name or payload is None:
        return None
    if payload == "f":
        return None if attribute.f is None else Json(float32_text(attribute.f))
    if payload == "floats":
        data = attribute.floats
        return [Json(float32_text(data[at : at + 4])) for at in range(0, len(data), 4)]
    value = value_of(attribute)
    return [_short(each) for each in value] if isinstance(value, tuple) else _short(value)


def _short(value: object) -> object:
    match value:
        case Tensor():
            return {"tensor": values.tensor_type_text(value), "values": few_values(value)}
        case SparseTensor():
            inner = None if value.values is None else values.tensor_type_text(value.values)
            return {"sparse_tensor": inner}
        case Graph():
            return {"graph": value.name, "nodes": len(value.node)}
        case Type():
            return {"type": format_type(value)}
        case _:
            return value


def few_values(tensor: Tensor) -> list[object] | None:
    """Return the elements of a small tensor; None for others and for invalid ones."""
    count = element_count(tensor.dims)
    if count > _MOST_VALUES or is_external(tensor) or tensor.data_type is None:
        return None
    if tensor.data_type == STRING:
        return [each.decode("utf-8", "surrogateescape") for each in tensor.string_data[:_MOST_VALUES]]
    stored = raw_bytes(tensor)
    if stored is None or not isinstance(stored[0], bytes):
        return None
    found = tokens(tensor.data_type, stored[0], count)
    return None if found is None else [Json(token) for token in found]


def nodes_lines(refs: Sequence[NodeRef], width: int) -> list[str]:
    """Return a line for each node: operator, name, first output (if there is space, or no name), address."""
    names = [(ref.node.name or "", next(iter(ref.node.output), "")) for ref in refs]
    texts = [(ref.node.op_type or "", *each, f"@{ref.address}") for ref, each in zip(refs, names, strict=True)]
    lines = table(texts, width, fixed=(0, 3))
    if any(ELLIPSIS in line for line in lines):
        lines = table([(text[0], text[1] or text[2], text[3]) for text in texts], width, fixed=(0, 2))
    return [counted(len(refs), "node"), *lines]


def shapes_of(refs: Sequence[NodeRef]) -> list[dict[str, Any]]:
    """Return nodes with the types of their outputs, as `show --shapes --json` writes them."""
    names = [values.node_name(ref) for ref in refs]
    types = [{name: values.value_type(ref.scope, name) for name in ref.node.output if name} for ref in refs]
    return [picked(name, "address op_type name") | {"outputs": each} for name, each in zip(names, types, strict=True)]


def shapes_lines(nodes: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Return a line for each output of each node: operator, node, type."""
    rows = [
        (node["op_type"], node["name"] or f"@{node['address']}", kind or "not known")
        for node in nodes
        for kind in node["outputs"].values()
    ]
    return [counted(len(nodes), "node"), *table(rows, width, fixed=(0, 2))]


def node_lines(view: NodeView, width: int) -> list[str]:
    """Return the lines for one node, visible; only names longer than `width` are wider."""
    rows = [
        ("operator", operator_name(view.domain, view.op_type, view.overload)),
        ("address", f"@{view.address}"),
        ("scope", view.scope or ""),
        ("function", f"@{view.function}" if view.function else ""),
    ]
    lines = [f"node      {visible(view.name or '(no name)', 500)}"]
    lines += [f"{label:<8}  {visible(text, 500)}" for label, text in rows if text]
    lines += ["", "inputs"] if view.inputs else []
    for slot, slot_input in enumerate(view.inputs):
        lines += [_slot_line(slot, slot_input)]
        if slot_input.node is not None:
            lines.append(f"     from {_node_text(slot_input.node)}")
        elif slot_input.produced_by != "absent":
            address = f"{slot_input.produced_by} @{visible(slot_input.address or '', 500)}"
            lines.append(f"     {'no producer' if slot_input.produced_by == 'unknown' else address}")
    lines += ["", "outputs"] if view.outputs else []
    for slot, output in enumerate(view.outputs):
        lines += [_slot_line(slot, output), *(consumer_lines(output.consumers) if output.name else [])]
    if view.attributes:
        lines += ["", "attributes"]
        for attribute in view.attributes:
            lines += wrapped(f"{visible(attribute.name or '', 200)} = {attribute_value_text(attribute)}", width)
    if view.doc_string:
        lines += ["", "doc_string", *wrapped(view.doc_string, width)]
    if view.metadata:
        lines += ["", "metadata", *table([(each.key or "", each.value or "") for each in view.metadata], width)]
    if view.documentation is not None:
        lines += ["", *documentation_lines(view.documentation, width)]
    return lines


def _slot_line(slot: int, each: values.Source | Output) -> str:
    shown = f"{visible(each.name, 500)}  {visible(each.type or '', 200)}" if each.name else "(omitted)"
    return f"  {slot}  {shown}".rstrip()


def consumer_lines(users: Sequence[values.Consumer], indent: int = 5) -> list[str]:
    """Return a line for each consumer of a value."""
    space = " " * indent
    lines = [
        f"{space}to input {user.slot} of {_node_text(user.node)}"
        if user.node is not None
        else f"{space}to output {user.slot} of the graph, @{visible(user.address, 500)}"
        for user in users
    ]
    return first_lines(lines, _MOST_CONSUMERS) or [f"{space}no consumers"]


def _node_text(node: values.NodeName) -> str:
    return f"{visible(node.op_type)} {visible(node.name or f'@{node.address}', 500)}"


def attribute_value_text(attribute: AttributeView) -> str:
    """Return the value of an attribute as text."""
    if attribute.reference:
        return f"the function's attribute {visible(attribute.reference)}"
    if isinstance(attribute.value, list) and attribute.count != len(attribute.value[:_MOST_ELEMENTS]):
        text = _text([*attribute.value[:_MOST_ELEMENTS], Json("...")])
        return f"{visible(text, _MOST_CHARACTERS)}, {attribute.count:,} elements"
    return visible(_text(attribute.value), _MOST_CHARACTERS)


def values_text(values: Sequence[object]) -> str:
    """Return a few elements as text: one alone, several in brackets."""
    return _text(values[0]) if len(values) == 1 else _text([*values])


def _text(value: object) -> str:
    match value:
        case None:
            return "(no value)"
        case Json():
            return value.text.strip('"')
        case str():
            return f'"{value}"'
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case {"tensor": kind, "values": values}:
            few = f" {_text(values)}" if values else ""
            return f"tensor {kind or 'without dtype'}{few}"
        case {"sparse_tensor": kind}:
            return f"sparse tensor, values {kind or 'without dtype'}"
        case {"graph": name, "nodes": int(count)}:
            return f"graph {name or ''}: {counted(count, 'node')}"
        case {"type": text}:
            return str(text)
        case _:
            return str(value)


def documentation_fields(signature: Signature) -> dict[str, Any]:
    """Return the ONNX documentation of an operator, as `show --json` writes it."""
    formal = "name types=variable option doc"
    attributes = [each._asdict() | {"type": ATTRIBUTE_TYPE_NAMES[each.type]} for each in signature.attributes.values()]
    return {
        **picked(signature, "domain op_type since_version deprecated doc"),
        "inputs": [picked(each, formal) for each in signature.inputs],
        "outputs": [picked(each, formal) for each in signature.outputs],
        "attributes": attributes,
    }


def documentation_lines(fields: dict[str, Any], width: int) -> list[str]:
    """Return lines with the ONNX documentation of an operator; see `documentation_fields`."""
    name = operator_name(fields["domain"], fields["op_type"])
    lines = [f"{name}, since opset {fields['since_version']}" + (", deprecated" if fields["deprecated"] else "")]
    lines += wrapped(dedent(fields["doc"]), width, indent=0, whole_words=True)
    for title in ("inputs", "outputs", "attributes"):
        if fields[title]:
            lines += ["", f"  {title}"]
        for formal in fields[title]:
            if title == "attributes":
                default = ", required" if formal["required"] else ""
                head = formal["type"] + (f" = {formal['default']}" if formal["default"] is not None else default)
            else:
                head = formal["types"] + ("" if formal["option"] == "single" else f", {formal['option']}")
            lines += [f"    {formal['name']}: {head}", *wrapped(formal["doc"], width, indent=6, whole_words=True)]
    return lines
