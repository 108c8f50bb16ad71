"""Addresses with a digest of their element, ``@/graph/node/3#5f0c2a9be1d34c77``: they never mean another element.

A script that selects by position would silently edit whatever is there in another model. With the digest it is refused,
unless the element is the same: a tensor with the same dtype, dims and values, a node with the same text. Of a graph or
function, the digest is that of the node that contains it, or of its name, since edits change what is inside.
"""

import hashlib
import re
from typing import Final

from msgspec.structs import replace

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights
from onnxjson.editing.declaration import Edit
from onnxjson.editing.parameters import parameters
from onnxjson.model.addresses import find_element
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Graph, Model, Node, Record, Tensor
from onnxjson.model.errors import OnnxJsonError, SelectorError
from onnxjson.model.index import Index
from onnxjson.patterns.selector_terms import spelled
from onnxjson.patterns.selectors import select_nodes, select_tensor

_PINNED: Final = re.compile(r"(@?/.+)#([0-9a-f]{16})", re.DOTALL)
_ROLES: Final = {"node": "node", "nodes": "node", "tensor": "tensor", "tensors": "tensor", "constant": "tensor"}
_ADDRESSES: Final = frozenset({*_ROLES, "graph", "address", "input", "output"})


def unpinned(model: Model, selector: str) -> str:
    """Return an address without its digest, and any other selector as it is.

    Raises:
        SelectorError: the element at the address has another digest.
    """
    found = _PINNED.fullmatch(selector)
    if found is None:
        return selector
    if _digest(model, found[1].removeprefix("@")) != found[2]:
        raise SelectorError(
            f"{visible(found[1], 200)} is another element than when this was written, so it is not changed"
        )
    return found[1]


def portable(model: Model, edit: Edit) -> Edit:
    """Return an edit that means the same elements in other models: by name if that is unique, else with a digest."""
    index = Index(model)
    found: dict[str, object] = {}
    for parameter in parameters(type(edit)):
        value = getattr(edit, parameter.field)
        if parameter.role in _ADDRESSES and isinstance(value, str):
            found[parameter.field] = _portable(model, index, value, parameter.role)
        elif parameter.role in _ADDRESSES and isinstance(value, tuple):
            found[parameter.field] = tuple([_portable(model, index, each, parameter.role) for each in value])
    return replace(edit, **found) if found else edit


def _portable(model: Model, index: Index, text: object, role: str) -> object:
    is_address = isinstance(text, str) and text.startswith("@" if role in _ROLES else ("@/", "/"))
    if not isinstance(text, str) or not is_address or _PINNED.fullmatch(text) or text.removeprefix("@") == "/graph":
        return text
    try:
        name = _unique_name(model, index, text, _ROLES.get(role, ""))
        return name or f"{text}#{_digest(model, text.removeprefix('@'))}"
    except OnnxJsonError:
        return text


def _unique_name(model: Model, index: Index, text: str, kind: str) -> str:
    """Return a selector by name for what is at an address; "" if no name means only that."""
    choices: list[str] = []
    if kind == "node":
        node = select_nodes(model, index, text)[0].node
        choices = [spelled("name", node.name or ""), *[spelled("output", each) for each in node.output if each]]
    elif kind == "tensor":
        ref = select_tensor(model, index, text)
        names = [ref.name]
        if ref.scope is None and "/attribute/" in text:
            names = list(select_nodes(model, index, text.rpartition("/attribute/")[0])[0].node.output)
        choices = [spelled("name", name).removeprefix("name:") for name in names if name]
    for each in choices:
        try:
            if kind == "node" and select_nodes(model, index, each) == select_nodes(model, index, text):
                return each
            if (
                kind == "tensor"
                and select_tensor(model, index, each).address == select_tensor(model, index, text).address
            ):
                return each
        except OnnxJsonError:
            continue
    return ""


def _digest(model: Model, address: str) -> str:
    element = find_element(model, address).value
    while not isinstance(element, Record):
        address = address.rpartition("/")[0]
        element = find_element(model, address).value
    if isinstance(element, Graph):
        owner, _, rest = address.rpartition("/attribute/")
        node = find_element(model, owner).value if rest else None
        element = replace(node, attribute=()) if isinstance(node, Node) else Node()
    elif isinstance(element, Function):
        element = Node(op_type=element.name, domain=element.domain)
    parts: list[bytes] = []
    writer = TextWriter(parts.append, Weights("digest"))
    if isinstance(element, Node):
        writer.node(element, 0)
    elif isinstance(element, Tensor):
        writer.tensor(element, 0, is_item=True)
    else:
        writer.exact(element, 0)
    writer.flush()
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
