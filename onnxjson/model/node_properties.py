"""Properties of a node for selectors: operator, names, domain, attributes, dtypes of its outputs, scope."""

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from onnxjson.model.document import Attribute, Node, Type
from onnxjson.model.elements import float32_text
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, value_of
from onnxjson.model.operators import plain_domain
from onnxjson.model.types import format_data_type, format_type

_NAMESPACE: Final = "namespace"
"""The key of metadata_props in which PyTorch's exporter keeps ``name: class/name: class/...``."""

_SEPARATORS: Final = re.compile(r"[/.]+")
_CLASS: Final = re.compile(r": [^/]*")


def property_texts(ref: NodeRef, key: str) -> Iterable[str]:
    """Return the texts that a term ``key:VALUE`` is compared with; `onnxjson.model.selector_syntax` has the keys."""
    node = ref.node
    match key:
        case "op":
            return (node.op_type or "",)
        case "name":
            return (node.name or "",)
        case "output":
            return node.output
        case "input":
            return node.input
        case "domain":
            return (domain_name(node.domain),)
        case "dtype":
            return [_dtype(Index.type_of(ref.scope, name)) for name in node.output if name]
        case _:
            return scopes_of(node)


def nodes_having(index: Index, key: str, text: str) -> Sequence[NodeRef]:
    """Return the nodes for which a term ``key:TEXT`` without wildcards holds, in the order of the file."""
    match key:
        case "op":
            return index.nodes_with("op_type", text)
        case "name" | "output" | "input":
            return index.nodes_with(key, text)
        case _:
            return [ref for ref in index.node_refs if text in property_texts(ref, key)]


def domain_name(domain: str | None) -> str:
    """Return a domain as a selector spells it: ``ai.onnx`` for the default one."""
    return plain_domain(domain) or "ai.onnx"


def plain_scope(text: str) -> str:
    """Return a scope with single slashes between its parts, however it separates them."""
    return "/".join([part for part in _SEPARATORS.split(text) if part])


def scopes_of(node: Node) -> list[str]:
    """Return the scopes of a node, outermost first: ``layer1`` and ``layer1/conv`` for ``/layer1/conv/Conv``.

    The metadata of PyTorch's exporter counts where it is there, else the name, without its last part.
    """
    stated = next((entry.value for entry in node.metadata_props if entry.key == _NAMESPACE and entry.value), None)
    if stated is None:
        path = [part for part in _SEPARATORS.split(node.name or "") if part][:-1]
        return ["/".join(path[: end + 1]) for end in range(len(path))]
    names = [plain_scope(part.partition(":")[0]) for part in stated.split("/")[:-1]]
    return [name for name in names if name]


def _dtype(value_type: Type | None) -> str:
    """Return the innermost element type of a type, "" where it is unknown."""
    while value_type is not None:
        for leaf in (value_type.tensor_type, value_type.sparse_tensor_type):
            if leaf is not None:
                return format_data_type(leaf.elem_type or 0)
        inner = value_type.sequence_type or value_type.optional_type or value_type.map_type
        if inner is None:
            break
        value_type = inner.value_type if value_type.map_type is inner else inner.elem_type  # type: ignore[union-attr]
    return ""


def attribute_text(attribute: Attribute) -> str | None:
    """Return the value of an attribute as a selector spells it: ``2``, ``0.1``, ``NOTSET``, ``[1,1]``.

    None for tensors, graphs, lists of those, and for references to attributes of the function around.
    """
    kind = attribute.type or 0
    if attribute.ref_attr_name or kind not in ATTRIBUTE_PAYLOADS:
        return None
    match ATTRIBUTE_PAYLOADS[kind]:
        case "f":
            return None if attribute.f is None else _float_text(attribute.f)
        case "floats":
            data = attribute.floats
            return _listed([_float_text(data[at : at + 4]) for at in range(0, len(data), 4)])
        case "i" | "s":
            value = value_of(attribute)
            return None if value is None else str(value)
        case "ints" | "strings":
            return _listed([str(each) for each in value_of(attribute)])
        case "tp":
            return None if attribute.tp is None else format_type(attribute.tp)
        case _:
            return None


def has_value(attribute: Attribute, wanted: str) -> bool:
    """Whether an attribute has the value that a selector spells; any spelling of floats and any spaces in lists do."""
    text = attribute_text(attribute)
    if text is None:
        return False
    if text == wanted:
        return True
    payload = ATTRIBUTE_PAYLOADS[attribute.type or 0]
    if payload in ("ints", "strings"):
        return text == re.sub(r"\s+", "", wanted)
    if payload in ("f", "floats"):
        numbers = wanted if payload == "f" else wanted.strip().removeprefix("[").removesuffix("]")
        return _packed(numbers.split(",") if numbers.strip() else []) == (attribute.f or attribute.floats)
    return False


def _packed(numbers: list[str]) -> bytes | None:
    try:
        return struct.pack(f"<{len(numbers)}f", *map(float, numbers))
    except (ValueError, OverflowError):
        return None


def _float_text(data: bytes) -> str:
    return float32_text(data).strip('"')


def _listed(texts: list[str]) -> str:
    return f"[{','.join(texts)}]"
