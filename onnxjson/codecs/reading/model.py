"""Models, graphs, functions, nodes and the conflicts of a merge (docs/format.md, sections 4, 9 and 11b)."""

from typing import Any

import msgspec

from onnxjson.codecs.reading.context import ROOT, Context, Place, has_format
from onnxjson.codecs.reading.element_metadata import attach_element_metadata
from onnxjson.codecs.reading.exact import R, Reader, field_readers, message_reader, read_list, read_message, register
from onnxjson.codecs.reading.named_values import ELEMENT_KINDS, read_attributes, read_opset_imports, read_pairs
from onnxjson.codecs.reading.strings import read_string
from onnxjson.codecs.reading.tensors import read_tensor, read_type
from onnxjson.codecs.reading.tree import Tree
from onnxjson.model import document as d
from onnxjson.model.addresses import Slot, slot_at
from onnxjson.model.conflicts import Conflict
from onnxjson.model.display import visible
from onnxjson.model.errors import AddressError
from onnxjson.model.messages import FIELDS, Field, Kind
from onnxjson.model.operators import attribute_types, operator_table, plain_domain

FORMAT = "onnxjson/1"
"""The value of the key "format" of a document."""

_KEYS = ("id", "at", "base", "ours", "theirs")


def looks_like_proto_json(tree: Tree) -> bool:
    """Whether a tree is a ModelProto in protobuf's JSON: a graph, but no "format" and no short forms of onnxjson/1."""
    if not isinstance(tree, dict) or "format" in tree or "graph" not in tree or _has_short_forms(tree):
        return False
    graph = tree["graph"]
    is_graph = isinstance(graph, dict) and all(_plain(key) in _GRAPH_KEYS for key in graph)
    return is_graph or "ir_version" in tree or "irVersion" in tree


def _plain(key: str) -> str:
    """The name of a field without case and underscores, equal for onnx.proto and protobuf's JSON."""
    return key.replace("_", "").lower()


_GRAPH_KEYS = frozenset(_plain(field.name) for field in FIELDS[d.Graph])


def _has_short_forms(tree: dict[str, Tree]) -> bool:
    """Whether a document has short forms, so that its line "format" is missing: objects of pairs, types as text."""
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


def read_model(tree: Tree, context: Context) -> d.Model | None:
    """Read the model of a whole document; None, after a report, if it has another format."""
    if not has_format(tree, FORMAT, "a document", context):
        return None
    _read_weights_lines(tree, ROOT, context)
    if "conflicts" in tree:
        context.conflicts = read_conflicts(tree["conflicts"], ROOT.at("conflicts"), context)
    return read_message(d.Model, tree, ROOT, context, others=("format", "$schema", "weights", "blobs", "conflicts"))


def _read_weights_lines(tree: dict[str, Tree], place: Place, context: Context) -> None:
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
            context.error(
                place.at("blobs"), "bad-blobs", "the folder of blobs has no name", 'add one, such as "model.blobs"'
            )
        context.blobs = folder or None


def _with_metadata(message: type[R], *kinds: str) -> Reader:
    """The reader of a graph or function with the metadata of its elements, whose `kinds` are names of fields."""

    def read(tree: Tree, place: Place, context: Context) -> R | None:
        record = read_message(message, tree, place, context, others=("element_metadata",))
        if record is None or not isinstance(tree, dict) or "element_metadata" not in tree:
            return record
        elements = {kind: getattr(record, kind) for kind in kinds}
        changed = attach_element_metadata(elements, tree["element_metadata"], place.at("element_metadata"), context)
        return msgspec.structs.replace(record, **changed)

    return read


def read_node(tree: Tree, place: Place, context: Context) -> d.Node | None:
    """Read a node; its op_type and domain determine the types of bare attributes."""
    given: dict[str, Any] = {}
    if isinstance(tree, dict) and "attribute" in tree:
        op_type, domain = _named(tree, "op_type"), _named(tree, "domain")
        table = attribute_types(domain, op_type)
        at = place.at("attribute")
        before = len(context.remarks)
        given["attribute"] = read_attributes(tree["attribute"], table, at, context, op_type=op_type) or ()
        _report_operator(domain, op_type, before, place, context)
    return read_message(d.Node, tree, place, context, given=given)


def _named(tree: dict[str, Tree], key: str) -> str:
    """The string of a key or, so that a misspelled key is the only finding, of the most similar one."""
    if key not in tree:
        import difflib

        fits = {name.replace("_", "").lower(): name for name in tree if name not in _NODE_KEYS}
        near = difflib.get_close_matches(key.replace("_", ""), fits, n=1, cutoff=0.8) if fits else []
        key = fits[near[0]] if near else key
    value = tree.get(key)
    if isinstance(value, dict):
        # A name that is not UTF-8: no operator of the table has one.
        return "\udcff"
    return value if isinstance(value, str) else ""


def _report_operator(domain: str, op_type: str, before: int, place: Place, context: Context) -> None:
    """Report a misspelled operator instead of the attributes whose type is unknown because of it."""
    others = [each for each in context.remarks[before:] if each.code != "untagged-attribute"]
    if not op_type or len(others) == len(context.remarks) - before:
        return
    operators = operator_table().operators.get(plain_domain(domain), {})
    near = "" if op_type in operators else context.suggest(op_type, operators)
    if near:
        context.remarks[before:] = others
        hint = f'{near} for a custom operator, tag its attribute values, such as {{"FLOAT": 1.0}}'
        context.error(place.at("op_type"), "unknown-operator", f"there is no operator {visible(op_type)}", hint)


_NODE_KEYS = frozenset(field.name for field in FIELDS[d.Node])


def _pairs_reader(field: Field) -> Reader:
    lines = field.name == "metadata_props"
    return lambda tree, place, context: read_pairs(tree, place, context, lines=lines)


register(
    {
        d.Graph: _with_metadata(d.Graph, *ELEMENT_KINDS),
        d.Function: _with_metadata(d.Function, "node", "value_info"),
        d.Node: read_node,
        d.Tensor: read_tensor,
        d.Type: read_type,
    },
    {
        d.Attribute: lambda field: lambda tree, place, context: read_attributes(tree, {}, place, context),
        d.OperatorSetId: lambda field: read_opset_imports,
        d.StringStringEntry: _pairs_reader,
    },
)


def read_conflicts(tree: Tree, place: Place, context: Context) -> tuple[Conflict, ...]:
    """Read the conflicts of a merge; report the unreadable ones and leave them out."""
    return read_list(tree, place, context, _read_conflict, "a list of conflicts") or ()


def _read_conflict(tree: Tree, place: Place, context: Context) -> Conflict | None:
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, 'a conflict, {"id": ..., "at": ...}')
        return None
    for key in tree:
        if key not in _KEYS:
            context.unknown_key(key, place.at(key), _KEYS, "a conflict")
    words = []
    for key in ("id", "at"):
        if key not in tree:
            context.error(place, "missing-key", f"the conflict has no {key}", "keep conflicts as the merge wrote them")
            return None
        word = read_string(tree[key], place.at(key), context)
        if word is None:
            return None
        words.append(word)
    try:
        slot = slot_at(words[1])
    except AddressError as error:
        context.error(place.at("at"), "bad-address", str(error), "keep conflicts as the merge wrote them")
        return None
    reader = _value_reader(slot)
    values = [reader(tree[key], place.at(key), context) if key in tree else None for key in _KEYS[2:]]
    return Conflict(words[0], words[1], *values)


def _value_reader(slot: Slot) -> Reader:
    field = slot.field
    if field is None:
        return field_readers(slot.message)["unknown_fields"] if slot.name else message_reader(slot.message)
    if field.message is not None:
        reader = message_reader(field.message)
        if slot.member is None and field.repeated:
            return lambda tree, place, context: read_list(tree, place, context, reader, f"a list ({field.name})")
        return reader
    if slot.member is not None and field.kind is Kind.STRING:
        return read_string
    return field_readers(slot.message)[slot.name]
