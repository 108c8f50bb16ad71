"""What stands in a form when it opens: the node under the cursor or the selection, and what belongs to it."""

from math import prod
from typing import Final

from onnxjson.document import Tensor
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.parameters import parameters
from onnxjson.edits.values import record_value, write_value
from onnxjson.index import Index, NodeRef
from onnxjson_tui.forms.offers import SELECTION
from onnxjson_tui.forms.words import constant_of, node_words, value_words
from onnxjson_tui.session import Session

_FEW: Final = 64
"""Elements of a constant that are edited where they stand."""

_OF_NODES: Final = ("set-doc", "set-metadata")
"""Edits of nodes where some are named, else of the whole model."""

_OF_OUTPUTS: Final = ("add-output", "set-shape")
"""Edits that are asked for a value that a node makes."""


def prefilled(session: Session, edit: type[Edit], here: NodeRef | None) -> dict[str, str]:
    """Texts for the fields of an edit, by their names.

    Args:
        session: has the model and the selection.
        edit: the class of the edit.
        here: the node under the cursor.
    """
    found: dict[str, str] = {}
    for parameter in parameters(edit):
        if parameter.role in ("node", "nodes") and (parameter.required or name_of(edit) in _OF_NODES):
            if session.places.selected and parameter.role == "nodes":
                found[parameter.name] = SELECTION
            elif here is not None:
                found[parameter.name] = node_words(session.index, here)
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
    home = Index.home(here.scope, name)
    return home is not None and constant_of(home, name)


def _elements(here: NodeRef, name: str) -> str:
    """The elements of a small constant as a person types them; "" for others."""
    home = Index.home(here.scope, name)
    tensor = home.initializer(name) if home is not None else None
    if home is not None and tensor is None and name in home.makers:
        node = home.graph.node[home.makers[name][0]]
        tensor = next((each.t for each in node.attribute if each.t is not None), None)
    if not isinstance(tensor, Tensor) or tensor.external_data or prod(tensor.dims) > _FEW:
        return ""
    values = record_value(tensor).get("values")
    return "" if values is None else write_value(values)


def _value(session: Session, here: NodeRef, name: str) -> str:
    home = Index.home(here.scope, name) if name else None
    if home is None:
        return ""
    several = sum([scope.defines(name) for scope in session.index.scopes]) > 1
    return value_words(home, name, is_unique=not several)
