"""Edits of a session that mean the same elements in other models: selected by unique names, or by digests."""

from typing import Final

from msgspec.structs import replace

from onnxjson.editing.declaration import Edit
from onnxjson.editing.parameters import parameters
from onnxjson.editing.pinned_addresses import PINNED, digest
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.patterns.selector_terms import spelled
from onnxjson.patterns.selectors import select_nodes, select_tensor

_ROLES: Final = {"node": "node", "nodes": "node", "tensor": "tensor", "tensors": "tensor", "constant": "tensor"}
_ADDRESSES: Final = frozenset({*_ROLES, "graph", "address", "input", "output"})


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
    if not isinstance(text, str) or not is_address or PINNED.fullmatch(text) or text.removeprefix("@") == "/graph":
        return text
    try:
        name = _unique_name(model, index, text, _ROLES.get(role, ""))
        return name or f"{text}#{digest(model, text.removeprefix('@'))}"
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
