"""How names of a model stand in a field where a person types: as they are, in quotes, or as an address."""

from onnxjson.display import visible
from onnxjson.document import Function, SparseTensor
from onnxjson.edits.values import write_text, write_value
from onnxjson.errors import EditError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.reading import tree as json_tree
from onnxjson.selector_syntax import Value, parse, spelled
from onnxjson_tui.selection import selector_of


def is_plain(text: str) -> bool:
    """Whether a text can stand in a field as it is: all of it is seen, and nothing of it is lost."""
    return bool(text) and visible(text, None) == text and text.strip() == text


def node_words(index: Index, ref: NodeRef) -> str:
    """A selector for one node, of characters that are seen."""
    found = selector_of(index, ref)
    return found if is_plain(found) else f"@{ref.address}"


def value_words(scope: Scope, name: str, *, is_unique: bool = True) -> str:
    """Words that find a value of a graph: its name, or its address where that does not say which value is meant.

    Args:
        scope: the graph that defines the value.
        name: of the value.
        is_unique: whether no other graph has a value of that name.
    """
    if is_unique and is_plain(name):
        if not name.startswith(("@", "re:", '"')) and parse(name).name == Value(name):
            return name
        return spelled("name", name).removeprefix("name:")
    return "@" + value_address(scope, name)


def value_address(scope: Scope, name: str) -> str:
    """The address of a value that a graph defines.

    Raises:
        EditError: it defines none of that name, as a wrong model may have it.
    """
    for field, places in (
        ("initializer", scope.initializers),
        ("sparse_initializer", scope.sparse_initializers),
        ("input", scope.inputs),
    ):
        if name in places:
            return f"{scope.address}/{field}/{places[name]}"
    if name not in scope.makers:
        raise EditError(f'nothing makes "{visible(name)}", so it cannot be edited' if name else "it has no name")
    position, slot = scope.makers[name]
    return f"{scope.address}/node/{position}/output/{slot}"


def typed(text: str) -> str:
    """A text of a model as a person types it: as it is, or as JSON where something of it is not seen."""
    return text if is_plain(text) and not text.startswith(('"', "{")) else write_text(text)


def meant(text: str) -> str:
    """The text that a person typed: JSON where it begins with a quote, else as it is."""
    if text.startswith('"'):
        is_clean, found = json_tree.parse(text.encode("utf-8", "surrogateescape"))
        if is_clean and isinstance(found, str):
            return found
    return text


def item_line(text: str) -> str:
    """An item of a list of texts on a line of its own."""
    return write_value([text]) if not text.strip() or text.startswith("[") or "\n" in text else text


def constant_of(scope: Scope, name: str) -> bool:
    """Whether a value is a dense constant of a graph, or what a node Constant makes."""
    if isinstance(scope.graph, Function) or name in scope.makers:
        made = scope.makers.get(name)
        return made is not None and scope.graph.node[made[0]].op_type == "Constant"
    found = scope.initializer(name)
    return found is not None and not isinstance(found, SparseTensor)
