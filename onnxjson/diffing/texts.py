"""Short texts for details of events: values of a model, and places of nodes; they are escaped for display later."""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Final

from onnxjson.diffing.weight_changes import type_text
from onnxjson.model.display import counted
from onnxjson.model.document import Attribute, Graph, Node, Tensor, Type, ValueInfo
from onnxjson.model.elements import element_count, tokens
from onnxjson.model.payloads import whole
from onnxjson.model.selector_terms import attribute_text, scopes_of
from onnxjson.model.tensors import raw_bytes
from onnxjson.model.types import format_type

_FEW: Final = 16
"""Maximum number of elements of a constant that is written out."""


def attribute_value_text(attribute: Attribute) -> str:
    """Return the value of an attribute as readable text."""
    if attribute.ref_attr_name is not None:
        return f"@{attribute.ref_attr_name}"
    if attribute.t is not None:
        return tensor_value_text(attribute.t)
    if attribute.g is not None:
        return graph_text(attribute.g)
    if attribute.graphs:
        return ", ".join(map(graph_text, attribute.graphs))
    if attribute.tensors:
        return ", ".join(map(type_text, attribute.tensors))
    if attribute.sparse_tensor is not None:
        return "a sparse tensor"
    text = attribute_text(attribute)
    return text if text is not None else "a value that does not fit its type"


def graph_text(graph: Graph) -> str:
    """Return a readable text for a graph: its size."""
    return f"a graph of {counted(len(graph.node), 'node')}"


def tensor_value_text(tensor: Tensor) -> str:
    """Return the type and, if there are few, the elements of a constant: ``int64[2] = [1, 2]``."""
    text = type_text(tensor)
    count = element_count(tensor.dims)
    if count > _FEW or tensor.data_type is None:
        return text
    if tensor.string_data:
        found: list[str] | None = [each.decode("utf-8", "surrogateescape") for each in tensor.string_data]
    else:
        stored = raw_bytes(tensor)
        found = None if stored is None else tokens(tensor.data_type, whole(stored[0]), count)
    if found is None:
        return text
    return f"{text} = {found[0]}" if not tensor.dims and found else f"{text} = [{', '.join(found)}]"


def value_type_text(value: Type | None) -> str | None:
    """Return the type of a value as readable text; None if there is none."""
    if value is None:
        return None
    return format_type(value) or "a type without a short form"


def info_text(value: ValueInfo) -> str:
    """Return the name and type of a value as text."""
    kind = value_type_text(value.type)
    return f"{value.name or ''}: {kind}" if kind else value.name or ""


_NAME_SCOPES: Final = "pkg.torch.onnx.name_scopes"
"""The key of metadata_props in which PyTorch's exporter keeps the scopes of a node, as a Python list of texts."""

_LONGEST_SCOPES: Final = 20_000
"""Maximum length of such a list in characters."""

_SEPARATORS: Final = re.compile(r"[/.]+")


def scope_parts(node: Node) -> tuple[str, ...]:
    """Return the name scopes around a node, outermost first; none if they are unknown."""
    for entry in node.metadata_props:
        if entry.key == _NAME_SCOPES and entry.value and len(entry.value) <= _LONGEST_SCOPES:
            scopes = _parse_list(entry.value)
            if scopes:
                return _split(scopes[-2]) if len(scopes) > 1 else ()
    scopes = scopes_of(node)
    return _split(scopes[-1]) if scopes else ()


def _split(text: str) -> tuple[str, ...]:
    # A number belongs to the name before it: "layer.0" is one place in the names of torch.
    parts: list[str] = []
    for part in _SEPARATORS.split(text):
        if part.isdecimal() and parts:
            parts[-1] += f".{part}"
        elif part:
            parts.append(part)
    return tuple(parts)


def _parse_list(text: str) -> Sequence[str]:
    if "\\" in text:  # no name needs an escape, and Python prints a warning with the text of an invalid one
        return ()
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else ()


def node_label(node: Node) -> str:
    """Return the name of a node, else the name of its first output."""
    return node.name or next(filter(None, node.output), "")


def place_of(node: Node) -> str:
    """Return the place of a node: its name scope, else its name, else its first output."""
    scopes = scope_parts(node)
    if scopes:
        return "/" + "/".join(scopes)
    return node_label(node)


def common_place(nodes: Iterable[Node]) -> str:
    """Return the place of several nodes: the innermost scope around all of them, else the place of the first."""
    found = list(nodes)
    if not found:
        return ""
    if len(found) == 1:
        return place_of(found[0])
    common: tuple[str, ...] | None = None
    for node in found[:64]:
        scopes = scope_parts(node)
        if common is None:
            common = scopes
        while common != scopes[: len(common)]:
            common = common[:-1]
    return "/" + "/".join(common) if common else place_of(found[0])
