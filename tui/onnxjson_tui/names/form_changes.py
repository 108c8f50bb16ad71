"""Edits of single fields of a node, expressed in the edit vocabulary."""

from collections.abc import Sequence
from typing import Literal

from onnxjson.editing.names import Rename
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson_tui.names.words import is_plain, value_selector
from onnxjson_tui.session.session import Session


def rename_node(index: Index, ref: NodeRef, name: str) -> Rename:
    """Rename a node, and all nodes of the same graph with the same name."""
    others = [each.scope for each in index.nodes_with("name", ref.node.name or "")]
    within = ref.scope.address if any(scope is not ref.scope for scope in others) else None
    return _rename("node", ref.node.name or "", name, within)


def rename_value(index: Index, scope: Scope, old: str, name: str) -> Rename:
    """Rename a value of a graph and update its consumers."""
    several = sum([each.defines(old) for each in index.scopes]) > 1
    return _rename("tensor", old, name, scope.address if several else None)


def _rename(kind: Literal["node", "tensor"], old: str, new: str, within: str | None) -> Rename:
    if is_plain(old) and is_plain(new) and not old.startswith("re:"):
        return Rename(kind=kind, from_=old, to=new, within=within)
    return Rename(kind=kind, names={old: new}, within=within)


def name_mistake(index: Index, ref: NodeRef, text: str, old: str) -> str:
    """Return why a node cannot have a name, or ""."""
    if not text:
        return "the name of a node cannot be removed" if old else ""
    if text != old and any(each.scope is ref.scope for each in index.nodes_with("name", text)):
        return "another node of this graph already has this name"
    return ""


def value_mistake(index: Index, text: str, old: str) -> str:
    """Return why a value cannot have a name, or ""."""
    if not text:
        return "a value needs a name"
    if text != old and (found := next((scope for scope in index.scopes if scope.defines(text)), None)) is not None:
        return f"{found.address} already has a value with this name"
    return ""


def fresh_name(index: Index, wanted: str, taken: Sequence[str] = ()) -> str:
    """Return `wanted`, with the first number that makes it unique if a value already has this name."""
    name, number = wanted, 1
    while name in taken or any([scope.defines(name) for scope in index.scopes]):
        name, number = f"{wanted}_{number}", number + 1
    return name


def selector_of_value(session: Session, ref: NodeRef, name: str) -> str:
    """Return the selector of an input or output of a node."""
    home = Index.defining_scope(ref.scope, name)
    if home is None or is_plain(name):
        return name
    return value_selector(home, name, is_unique=False)
