"""Names and selectors of a model as editable text, mistakes in what is typed, edits that rename nodes and values."""

from typing import Literal

from onnxjson.codecs.reading import tree as json_tree
from onnxjson.editing.names import Rename
from onnxjson.editing.type_relations import dims_of
from onnxjson.editing.values import write_text, write_value
from onnxjson.model.constants import own_constant
from onnxjson.model.display import visible
from onnxjson.model.document import SparseTensor
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.patterns.selector_terms import Value, parse, spelled
from onnxjson_tui.session.history import selector_of


def is_plain(text: str) -> bool:
    """Whether a text can be shown and edited unchanged: it has no control characters and no outer spaces."""
    return bool(text) and visible(text, None) == text and text.strip() == text


def node_selector(index: Index, ref: NodeRef) -> str:
    """Return a selector for one node, without control characters."""
    found = selector_of(index, ref)
    return found if is_plain(found) else f"@{ref.address}"


def value_selector(scope: Scope, name: str, *, is_unique: bool = True) -> str:
    """Return a selector for a value that a graph defines: its name, or its address if the name is ambiguous.

    With `is_unique`, no other graph has a value with this name.
    """
    if is_unique and is_plain(name):
        if not name.startswith(("@", "re:", '"')) and parse(name).name == Value(name):
            return name
        return spelled("name", name).removeprefix("name:")
    return "@" + value_address(scope, name)


def model_value_selector(index: Index, scope: Scope, name: str) -> str:
    """Return a selector for a value that a graph defines, by name if no other graph has a value with this name."""
    return value_selector(scope, name, is_unique=sum([each.defines(name) for each in index.scopes]) == 1)


def value_address(scope: Scope, name: str) -> str:
    """Return the address of a value that a graph defines.

    Raises:
        EditError: the graph does not define it, as in an invalid model.
    """
    for field, places in (
        ("initializer", scope.initializers),
        ("sparse_initializer", scope.sparse_initializers),
        ("input", scope.inputs),
    ):
        if name in places:
            return f"{scope.address}/{field}/{places[name]}"
    if name not in scope.producers:
        raise EditError(
            f'"{visible(name)}" has no producer, so it cannot be edited' if name else "the value has no name"
        )
    position, slot = scope.producers[name]
    return f"{scope.address}/node/{position}/output/{slot}"


def typed(text: str) -> str:
    """Return a string of a model as editable text: unchanged, or as JSON if it has invisible characters."""
    return text if is_plain(text) and not text.startswith(('"', "{")) else write_text(text)


def parse_typed(text: str) -> str:
    """Parse editable text: JSON if it begins with a quote, otherwise the text itself."""
    if text.startswith('"'):
        is_clean, found = json_tree.parse(text.encode("utf-8", "surrogateescape"))
        if is_clean and isinstance(found, str):
            return found
    return text


def item_line(text: str) -> str:
    """Return an item of a list of strings as one line."""
    return write_value([text]) if not text.strip() or text.startswith("[") or "\n" in text else text


def constant_of(scope: Scope, name: str) -> bool:
    """Whether a value is a dense initializer of a graph or the output of a Constant node."""
    found = own_constant(scope, name)
    return found is not None and not isinstance(found.value, SparseTensor)


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


def selector_of_value(ref: NodeRef, name: str) -> str:
    """Return the selector of an input or output of a node."""
    defining_scope = Index.defining_scope(ref.scope, name)
    if defining_scope is None or is_plain(name):
        return name
    return value_selector(defining_scope, name, is_unique=False)


def rank_mistake(ref: NodeRef, name: str, value: object) -> str:
    """Return why axes do not fit the rank of the first input, if that is known, or ""."""
    found = Index.type_of(ref.scope, ref.node.input[0]) if ref.node.input and ref.node.input[0] else None
    dims = dims_of(found)
    if dims is None or plain_domain(ref.node.domain):
        return ""
    rank = len(dims)
    given = value if isinstance(value, list | tuple) else (value,)
    if name == "perm" and sorted(each for each in given if isinstance(each, int)) != list(range(rank)):
        return f"the input has rank {rank}: give each of 0 to {rank - 1} once"
    # Unsqueeze and the like count the axes of their output.
    is_of_input = ref.node.op_type not in ("Unsqueeze", "OneHot", "ConcatFromSequence", "SplitToSequence")
    if name in ("axis", "axes") and is_of_input:
        # After the last axis, Flatten has an empty rest.
        most = rank if ref.node.op_type == "Flatten" else max(rank - 1, 0)
        wrong = [each for each in given if isinstance(each, int) and not -max(rank, 1) <= each <= most]
        return f"the input has rank {rank}, so there is no axis {wrong[0]}" if wrong else ""
    return ""
