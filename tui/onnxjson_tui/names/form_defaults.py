"""Initial contents of a form: the node under the cursor or the selection, and its values."""

from math import prod
from typing import Final

from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.parameters import parameters
from onnxjson.editing.values import record_value, write_value
from onnxjson.model.constants import find_constant
from onnxjson.model.index import Index, NodeRef
from onnxjson_tui.names.offers import SELECTION
from onnxjson_tui.names.words import constant_of, node_selector, value_selector
from onnxjson_tui.session.session import Session

_FEW: Final = 64
"""Maximum elements of a constant that the form shows for editing."""

_OF_NODES: Final = ("set-doc", "set-metadata")
"""Edits that apply to nodes if some are given, otherwise to the whole model."""

_OF_OUTPUTS: Final = ("add-output", "set-shape")
"""Edits that start with an output of the node under the cursor."""


def prefilled(session: Session, edit: type[Edit], here: NodeRef | None) -> dict[str, str]:
    """Return the initial texts of the fields of an edit, by name.

    Args:
        session: the session, with its selection.
        edit: the class of the edit.
        here: the node under the cursor.
    """
    found: dict[str, str] = {}
    for parameter in parameters(edit):
        if parameter.role in ("node", "nodes") and (parameter.required or name_of(edit) in _OF_NODES):
            if session.places.selected and parameter.role == "nodes":
                found[parameter.name] = SELECTION
            elif here is not None:
                found[parameter.name] = node_selector(session.index, here)
    if here is None:
        return found
    if name_of(edit) in _OF_OUTPUTS and here.node.output:
        found["tensor"] = _value(session, here, here.node.output[0])
    if name_of(edit) in ("set-tensor", "cast-tensor"):
        names = [name for name in (*here.node.input, *here.node.output) if name]
        constant = next((name for name in names if _is_constant(here, name)), None)
        if constant is not None:
            found["tensor"] = _value(session, here, constant)
            if name_of(edit) == "set-tensor":
                found["value"] = _elements(here, constant)
    if name_of(edit) == "add-node" and here.scope.address != "/graph":
        found["graph"] = here.scope.address
    return {name: text for name, text in found.items() if text}


def _is_constant(here: NodeRef, name: str) -> bool:
    home = Index.defining_scope(here.scope, name)
    return home is not None and constant_of(home, name)


def _elements(here: NodeRef, name: str) -> str:
    """Return the elements of a small constant as editable text; "" for other constants."""
    constant = find_constant(here.scope, name)
    tensor = None if constant is None else constant.tensor
    if tensor is None or tensor.external_data or prod(tensor.dims) > _FEW:
        return ""
    values = record_value(tensor).get("values")
    return "" if values is None else write_value(values)


def _value(session: Session, here: NodeRef, name: str) -> str:
    home = Index.defining_scope(here.scope, name) if name else None
    if home is None:
        return ""
    several = sum([scope.defines(name) for scope in session.index.scopes]) > 1
    return value_selector(home, name, is_unique=not several)
