"""Models, graphs, functions and nodes (docs/format.md, sections 4 and 9)."""

import difflib
from typing import Any

import msgspec

from onnxjson.display import visible
from onnxjson.document import Function, Graph, Model, Node
from onnxjson.messages import FIELDS
from onnxjson.operators import attribute_types
from onnxjson.reading.attributes import read_attributes
from onnxjson.reading.context import ROOT, Context, Place
from onnxjson.reading.exact import read_message
from onnxjson.reading.pairs import ELEMENT_KINDS, attach_element_metadata
from onnxjson.reading.strings import read_string
from onnxjson.reading.tree import Tree

FORMAT = "onnxjson/1"
"""What the key "format" of a document says."""


def looks_like_proto_json(tree: Tree) -> bool:
    """Whether a tree is a ModelProto as protobuf's JSON writes it: a graph, but no "format" and none of our forms."""
    if not isinstance(tree, dict) or "format" in tree or "graph" not in tree or _has_short_forms(tree):
        return False
    graph = tree["graph"]
    is_graph = isinstance(graph, dict) and all(_plain(key) in _GRAPH_KEYS for key in graph)
    return is_graph or "ir_version" in tree or "irVersion" in tree


def _plain(key: str) -> str:
    """The name of a field, whether it is spelled as in onnx.proto or as protobuf spells it in JSON."""
    return key.replace("_", "").lower()


_GRAPH_KEYS = frozenset(_plain(field.name) for field in FIELDS[Graph])


def _has_short_forms(tree: dict[str, Tree]) -> bool:
    """Whether a document has forms of ours, so that its line "format" is lost: objects of pairs, types as text."""
    graph = tree.get("graph")
    values = [value for key in ("input", "output", "initializer", "value_info") for value in _objects(graph, key)]
    return (
        isinstance(tree.get("opset_import"), dict)
        or (isinstance(graph, dict) and "element_metadata" in graph)
        or any(isinstance(value.get("type"), str) for value in values)
        or any(isinstance(node.get("attribute"), dict) for node in _objects(graph, "node"))
    )


def _objects(tree: Tree, key: str) -> list[dict[str, Tree]]:
    members = tree.get(key) if isinstance(tree, dict) else None
    return [member for member in members if isinstance(member, dict)] if isinstance(members, list) else []


def read_model(tree: Tree, context: Context, place: Place = ROOT) -> Model | None:
    """The model of a whole document; `None`, after saying why, if the document is of another format."""
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, f'a document, {{"format": "{FORMAT}", ...}},')
        return None
    found = tree.get("format")
    if "format" not in tree:
        context.error(place, "no-format", "the document does not say its format", f'add the line "format": "{FORMAT}",')
        return None
    if not isinstance(found, str):
        context.wrong_type(found, place.at("format"), f'"{FORMAT}"')
        return None
    if found != FORMAT:
        message = f'the format is "{visible(found)}"; this version of onnxjson reads "{FORMAT}"'
        newer = found.startswith("onnxjson/")
        hint = "a newer onnxjson may read it" if newer else f'the line is "format": "{FORMAT}",'
        context.error(place.at("format"), "other-format", message, hint)
        return None
    _read_weights_lines(tree, place, context)
    if "conflicts" in tree:
        from onnxjson.reading.conflicts import read_conflicts

        context.conflicts = read_conflicts(tree["conflicts"], place.at("conflicts"), context)
    return read_message(Model, tree, place, context, others=("format", "weights", "blobs", "conflicts"))


def _read_weights_lines(tree: dict[str, Tree], place: Place, context: Context) -> None:
    """What the document says of weights that are not in it."""
    if "weights" in tree:
        if tree["weights"] == "digest":
            context.has_digests = True
        else:
            context.wrong_type(
                tree["weights"], place.at("weights"), '"digest"', "delete the line if all bytes are here"
            )
    if "blobs" in tree:
        folder = read_string(tree["blobs"], place.at("blobs"), context)
        if folder == "":
            context.error(place.at("blobs"), "bad-blobs", "the folder of blobs has no name", 'such as "model.blobs"')
        context.blobs = folder or None


def read_graph(tree: Tree, place: Place, context: Context) -> Graph | None:
    """A graph with the metadata of its elements."""
    graph = read_message(Graph, tree, place, context, others=("element_metadata",))
    if graph is None or not isinstance(tree, dict) or "element_metadata" not in tree:
        return graph
    elements = {kind: getattr(graph, kind) for kind in ELEMENT_KINDS}
    changed = attach_element_metadata(elements, tree["element_metadata"], place.at("element_metadata"), context)
    return msgspec.structs.replace(graph, **changed)


def read_function(tree: Tree, place: Place, context: Context) -> Function | None:
    """A model-local function with the metadata of its nodes and values."""
    function = read_message(Function, tree, place, context, others=("element_metadata",))
    if function is None or not isinstance(tree, dict) or "element_metadata" not in tree:
        return function
    elements = {"node": function.node, "value_info": function.value_info}
    changed = attach_element_metadata(elements, tree["element_metadata"], place.at("element_metadata"), context)
    return msgspec.structs.replace(function, **changed)


def read_node(tree: Tree, place: Place, context: Context) -> Node | None:
    """A node; its op_type and domain say how its bare attributes are read."""
    given: dict[str, Any] = {}
    if isinstance(tree, dict) and "attribute" in tree:
        op_type, domain = _named(tree, "op_type"), _named(tree, "domain")
        table = attribute_types(domain, op_type)
        at = place.at("attribute")
        given["attribute"] = read_attributes(tree["attribute"], table, at, context, op_type=op_type) or ()
    return read_message(Node, tree, place, context, given=given)


def _named(tree: dict[str, Tree], key: str) -> str:
    """The text under a key, or, so that a misspelt key is the only finding, under the key most like it."""
    if key not in tree:
        fits = {name.replace("_", "").lower(): name for name in tree if name not in _NODE_KEYS}
        near = difflib.get_close_matches(key.replace("_", ""), fits, n=1, cutoff=0.8) if fits else []
        key = fits[near[0]] if near else key
    value = tree.get(key)
    if isinstance(value, dict):
        # A name that is not UTF-8: no operator of the table has it.
        return "\udcff"
    return value if isinstance(value, str) else ""


_NODE_KEYS = frozenset(field.name for field in FIELDS[Node])
