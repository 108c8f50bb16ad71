"""Edits of single fields of a node, as the edit vocabulary spells them."""

from collections.abc import Sequence
from typing import Literal

from onnxjson.edits.names import Rename
from onnxjson.index import Index, NodeRef, Scope
from onnxjson_tui.forms.words import is_plain, value_words
from onnxjson_tui.session import Session


def rename_node(index: Index, ref: NodeRef, name: str) -> Rename:
    """Gives a node that has a name another one; nodes of the same graph with the same name go with it."""
    others = [each.scope for each in index.nodes_with("name", ref.node.name or "")]
    within = ref.scope.address if any(scope is not ref.scope for scope in others) else None
    return _rename("node", ref.node.name or "", name, within)


def rename_value(index: Index, scope: Scope, old: str, name: str) -> Rename:
    """Gives a value of a graph another name; whoever takes it follows."""
    several = sum([each.defines(old) for each in index.scopes]) > 1
    return _rename("tensor", old, name, scope.address if several else None)


def _rename(kind: Literal["node", "tensor"], old: str, new: str, within: str | None) -> Rename:
    if is_plain(old) and is_plain(new) and not old.startswith("re:"):
        return Rename(kind=kind, from_=old, to=new, within=within)
    return Rename(kind=kind, names={old: new}, within=within)


def name_mistake(index: Index, ref: NodeRef, text: str, old: str) -> str:
    """Why a node cannot have a name; "" where it can."""
    if not text:
        return "a node that has a name keeps one" if old else ""
    if text != old and any(each.scope is ref.scope for each in index.nodes_with("name", text)):
        return "a node of this graph is called so already"
    return ""


def value_mistake(index: Index, text: str, old: str) -> str:
    """Why a value cannot have a name; "" where it can."""
    if not text:
        return "a value has a name"
    if text != old and (found := next((scope for scope in index.scopes if scope.defines(text)), None)) is not None:
        return f"{found.address} has a value of that name already"
    return ""


def fresh_name(index: Index, wanted: str, taken: Sequence[str] = ()) -> str:
    """`wanted`, or `wanted` with the first number that makes it a name no value has."""
    name, number = wanted, 1
    while name in taken or any([scope.defines(name) for scope in index.scopes]):
        name, number = f"{wanted}_{number}", number + 1
    return name


def words_of_value(session: Session, ref: NodeRef, name: str) -> str:
    """How an edit names a value that a node takes or makes."""
    home = Index.home(ref.scope, name)
    if home is None or is_plain(name):
        return name
    return value_words(home, name, is_unique=False)
