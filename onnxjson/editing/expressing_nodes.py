"""Nodes in a difference that is expressed as edits: counterparts, bypasses, selectors, names and doc strings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from onnxjson.diffing.matching.alignment import GraphPair
from onnxjson.editing.annotations import SetDoc, annotated_record
from onnxjson.editing.declaration import Edit
from onnxjson.editing.names import Rename, SetName
from onnxjson.editing.values import attribute_values
from onnxjson.editing.workspace import Workspace
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Graph, Node, Type, ValueInfo
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import NodeRef, Scope
from onnxjson.model.types import format_type
from onnxjson.model.walking import Body
from onnxjson.patterns.selector_terms import spelled


class InexpressibleError(Exception):
    """No edit can express a part of the difference."""


def pair_nodes(pair: GraphPair) -> tuple[list[int], list[int]]:
    """Pair the nodes of two graphs: by the alignment, and nodes without a counterpart by the names of their outputs.

    Returns:
        For each node of the base the position of its counterpart in the target, -1 for none; and the reverse.
    """
    target_of, base_of = list(pair.target_of), list(pair.base_of)
    new = {pair.target.graph.node[place].output: place for place, here in enumerate(base_of) if here < 0}
    for position, place in enumerate(target_of):
        output = pair.base.graph.node[position].output
        if place < 0 and output in new:
            target_of[position] = new[output]
            base_of[new.pop(output)] = position
    return target_of, base_of


def find_bypasses(pair: GraphPair, target_of: Sequence[int]) -> dict[int, int]:
    """Return deleted nodes -> the input that their consumers use instead; `target_of` as from `pair_nodes`."""
    base = pair.base
    removed = {position for position, place in enumerate(target_of) if place < 0}
    if not removed:
        return {}
    back = {there: here for here, there in pair.values.items()}
    found: dict[int, int] = {}
    for name, uses in base.consumers.items():
        made = base.producers.get(name)
        if made is None or made[0] not in removed:
            continue
        now = {_used_now(pair, target_of, position, slot) for position, slot in uses if position not in removed}
        now.discard(None)
        if len(now) != 1:
            continue
        wanted = back.get(now.pop() or "")
        path = _path(base, removed, made[0], wanted) if wanted is not None else None
        if path is not None:
            found.update(path)
    return found


def _used_now(pair: GraphPair, target_of: Sequence[int], position: int | None, slot: int) -> str | None:
    """Return the value that the counterpart of a use has in the target."""
    names = pair.target.output_names if position is None else pair.target.graph.node[target_of[position]].input
    return names[slot] if slot < len(names) else None


def _path(scope: Scope, removed: set[int], position: int, wanted: str) -> dict[int, int] | None:
    """Return the bypassed nodes between a deleted node and a value: node -> input."""
    for slot, name in enumerate(scope.graph.node[position].input):
        if name == wanted:
            return {position: slot}
        made = scope.producers.get(name)
        if made is not None and made[0] in removed:
            rest = _path(scope, removed, made[0], wanted)
            if rest is not None:
                return {position: slot, **rest}
    return None


def inputs_may_differ(pair: GraphPair, position: int, place: int) -> bool:
    """Whether a node has other inputs than its counterpart, apart from renamed values."""
    get = pair.values.get
    old, new = pair.base.graph.node[position].input, pair.target.graph.node[place].input
    return len(old) != len(new) or any(get(a, a) != b for a, b in zip(old, new, strict=True))


def selector_of(workspace: Workspace, ref: NodeRef) -> str:
    """Return the shortest selector that matches only one node: its name, its first output, or its address."""
    node = ref.node
    texts = []
    if node.name:
        texts += [node.name, spelled("name", node.name)]
    texts += [spelled("output", name) for name in node.output if name][:1]
    for text in texts:
        try:
            if [found.address for found in workspace.select(text)] == [ref.address]:
                return text
        except OnnxJsonError:
            continue
    return f"@{ref.address}"


def find_counterpart(scope: Scope, node: Node) -> NodeRef | None:
    """Return the node of a graph that has an output with the name of one of another node."""
    for name in node.output:
        if name in scope.producers:
            return NodeRef(scope, scope.producers[name][0])
    return None


def name_edits(workspace: Workspace, scope: Scope, wanted: Sequence[tuple[NodeRef, str]]) -> Iterator[Edit]:
    """Yield edits that give nodes of a graph the wanted names; each must be applied before the next is requested."""
    counts = Counter([node.name for node in scope.graph.node])
    groups: dict[str, list[tuple[NodeRef, str]]] = {}
    for ref, name in wanted:
        groups.setdefault(ref.node.name or "", []).append((ref, name))
    together: dict[str, str] = {}
    single: list[tuple[NodeRef, str]] = []
    for old, group in groups.items():
        names = {name for _, name in group}
        if old and len(group) == counts[old] and len(names) == 1 and "" not in names:
            together[old] = group[0][1]
        else:
            single += [(ref, name) for ref, name in group if name != old]
    # Names that are removed are free for other nodes.
    for ref, name in single:
        if not name:
            yield SetName(node=selector_of(workspace, ref), name="")
    renamed = {old: new for old, new in together.items() if old != new}
    if renamed:
        yield Rename(kind="node", names=renamed, within=scope.address)
    scope = workspace.scope(scope.address)
    for ref, name in single:
        if name:
            yield SetName(node=selector_of(workspace, NodeRef(scope, ref.position)), name=name)


def doc_edits(workspace: Workspace, scope: Scope, target: Body) -> Iterator[SetDoc]:
    """Yield the edits that copy the doc strings of another graph with the same names."""
    if _differ(scope.graph.doc_string, target.doc_string):
        yield SetDoc(text=target.doc_string or "", graph=scope.address)
    for node in target.node:
        ref = find_counterpart(scope, node)
        if ref is not None:
            yield from _node_doc_edits(workspace, ref, node)
    for field in ("initializer", "input", "output", "value_info"):
        there, wanted = getattr(scope.graph, field, ()), getattr(target, field, ())
        if field != "value_info" and (not there or isinstance(there[0], str)):
            continue
        texts = {each.name: each.doc_string for each in wanted}
        for position, each in enumerate(there):
            if each.name and each.name in texts and _differ(each.doc_string, texts[each.name]):
                address, text = f"{scope.address}/{field}/{position}", texts[each.name] or ""
                try:
                    is_by_name = annotated_record(workspace.tensor(each.name), "it")[0] == address
                except OnnxJsonError:
                    is_by_name = False
                yield SetDoc(text=text, tensor=each.name) if is_by_name else SetDoc(text=text, address=address)


def _node_doc_edits(workspace: Workspace, ref: NodeRef, node: Node) -> Iterator[SetDoc]:
    now = ref.node
    if now.doc_string is node.doc_string and now.attribute is node.attribute:
        return
    if _differ(now.doc_string, node.doc_string):
        yield SetDoc(text=node.doc_string or "", node=selector_of(workspace, ref))
    wanted = dict(zip(attribute_segments(node.attribute), node.attribute, strict=True))
    for segment, old in zip(attribute_segments(now.attribute), now.attribute, strict=True):
        new: Attribute | None = wanted.get(segment)
        if new is not None and _differ(old.doc_string, new.doc_string):
            yield SetDoc(text=new.doc_string or "", address=f"{ref.address}/attribute/{escape(segment)}")


def _differ(one: str | None, other: str | None) -> bool:
    return (one or "") != (other or "")


def is_same_attribute(old: Attribute | None, new: Attribute) -> bool:
    """Whether two attributes are equal, except for their doc strings."""
    return old is not None and replace(old, doc_string=new.doc_string) == new


def values_of_attributes(node: Node) -> dict[str, Any]:
    """Return the attributes of a node as JSON values; an `InexpressibleError` if edits cannot write one."""
    found = attribute_values(node)
    if found is None:
        raise InexpressibleError(f"attributes of {visible(node.op_type or '')} have a form that edits cannot write")
    return found


def main_graph(scope: Scope) -> Graph:
    """Return the graph of a scope that is not a function."""
    assert isinstance(scope.graph, Graph)
    return scope.graph


def type_text(value: ValueInfo) -> str:
    """Return the type of a value as in a script; an `InexpressibleError` if a script cannot express it."""
    text = None if value.type is None else format_type(value.type)
    if text is None:
        raise InexpressibleError(f'"{visible(value.name or "")}" has a type that a script cannot express')
    return text


def shape_of(value: Type | None) -> tuple[int | str, ...] | None:
    """Return the dimensions of a tensor type as in a script."""
    if value is None or value.tensor_type is None or value.tensor_type.shape is None:
        return None
    dims = value.tensor_type.shape.dim
    return tuple([each.dim_value if each.dim_value is not None else each.dim_param or "?" for each in dims])
