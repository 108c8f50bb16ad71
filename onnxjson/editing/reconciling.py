"""Restore what native code changed in a model without need.

The native libraries convert a model to their own form and back. They lose metadata of nodes, quantization
annotations, sparse initializers and unknown fields, sort attributes, and add types that are not wanted. Nodes are
recognised by the names of their outputs, which native code keeps; a node that stays keeps its record, or all of it
except for the changed computation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from onnxjson.model.document import Attribute, Graph, Node, Tensor, Type, ValueInfo


class Reconciled(NamedTuple):
    """A reconciled graph, and how many nodes changed."""

    graph: Graph
    changed: int
    """Number of nodes with another computation than before, including those in subgraphs."""
    added: int
    removed: int


def reconcile(before: Graph, after: Graph) -> Reconciled:
    """Return `after` with everything of `before` that the change does not concern.

    Args:
        before: a graph.
        after: the graph that native code returned.
    """
    places = _places(before.node)
    nodes: list[Node] = []
    changed = added = removed = 0
    kept: set[int] = set()
    for node in after.node:
        place = _place(node, places)
        old = before.node[place] if place is not None and place not in kept else None
        if old is None or place is None or not _is_same_operator(old, node):
            nodes.append(node)
            added += 1
            continue
        kept.add(place)
        new, below = _node(old, node)
        changed += below[0] + (new is not old)
        added += below[1]
        removed += below[2]
        nodes.append(new)
    removed += len(before.node) - len(kept)
    if added == removed == changed == 0 and [id(each) for each in nodes] == [id(each) for each in before.node]:
        return Reconciled(before, 0, 0, 0)
    graph = msgspec.structs.replace(
        before,
        node=tuple(nodes),
        initializer=_initializers(before.initializer, after.initializer),
        output=_typed(before.output, after),
        value_info=_value_info(before, after, nodes),
    )
    return Reconciled(graph, changed, added, removed)


def _places(nodes: Sequence[Node]) -> dict[str, int]:
    """Return values -> the position of their producer."""
    found: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in node.output:
            if name:
                found.setdefault(name, position)
    return found


def _place(node: Node, places: dict[str, int]) -> int | None:
    return next((places[name] for name in node.output if name in places), None)


def _is_same_operator(one: Node, other: Node) -> bool:
    same = one.op_type == other.op_type and (one.overload or "") == (other.overload or "")
    return same and (one.domain or "") == (other.domain or "")


def _node(old: Node, new: Node) -> tuple[Node, tuple[int, int, int]]:
    """Return the reconciled node, and the numbers of changes in its subgraphs."""
    counts = [0, 0, 0]
    by_name = {each.name: each for each in new.attribute}
    attributes: list[Attribute] = []
    for attribute in old.attribute:
        there = by_name.pop(attribute.name, None)
        if there is not None:
            merged, below = _attribute(attribute, there)
            attributes.append(merged)
            counts = [one + other for one, other in zip(counts, below, strict=True)]
    # Attribute names are unique in a valid node; attributes that the libraries removed stay removed.
    attributes += [each for each in new.attribute if each.name in by_name]
    same = [id(each) for each in attributes] == [id(each) for each in old.attribute]
    inputs = new.input if _used(new.input) != _used(old.input) else old.input
    outputs = new.output if _used(new.output) != _used(old.output) else old.output
    if same and inputs is old.input and outputs is old.output:
        return old, (counts[0], counts[1], counts[2])
    kept = msgspec.structs.replace(
        old, input=inputs, output=outputs, attribute=old.attribute if same else tuple(attributes)
    )
    return kept, (counts[0], counts[1], counts[2])


def _used(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without empty ones at the end."""
    end = len(names)
    while end and not names[end - 1]:
        end -= 1
    return tuple(names[:end])


def _attribute(old: Attribute, new: Attribute) -> tuple[Attribute, tuple[int, int, int]]:
    if old.g is not None and new.g is not None:
        below = reconcile(old.g, new.g)
        kept = old if below.graph is old.g else msgspec.structs.replace(old, g=below.graph)
        return kept, (below.changed, below.added, below.removed)
    if old.graphs and len(old.graphs) == len(new.graphs):
        found = [reconcile(one, other) for one, other in zip(old.graphs, new.graphs, strict=True)]
        if all(each.graph is graph for each, graph in zip(found, old.graphs, strict=True)):
            return old, (0, 0, 0)
        kept = msgspec.structs.replace(old, graphs=tuple([each.graph for each in found]))
        sums = (
            sum(each.changed for each in found),
            sum(each.added for each in found),
            sum(each.removed for each in found),
        )
        return kept, sums
    if _plain(old) == _plain(new):
        return old, (0, 0, 0)
    return msgspec.structs.replace(new, doc_string=old.doc_string, unknown_fields=old.unknown_fields), (0, 0, 0)


def _plain(attribute: Attribute) -> Attribute:
    """Return an attribute without the fields that do not affect the computation."""
    tensor = attribute.t and _plain_tensor(attribute.t)
    return msgspec.structs.replace(attribute, doc_string=None, unknown_fields=b"", t=tensor, type=None)


def _plain_tensor(tensor: Tensor) -> Tensor:
    return msgspec.structs.replace(tensor, name=None, doc_string=None, metadata_props=(), unknown_fields=b"")


def _initializers(before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the initializers that are still there, in their order and with their metadata, then new ones."""
    now = {each.name: each for each in after}
    kept = []
    for tensor in before:
        there = now.pop(tensor.name, None)
        if there is None:
            continue
        kept.append(tensor if tensor is there or _is_same_tensor(tensor, there) else there)
    found = (*kept, *[each for each in after if each.name in now])
    return before if found == before else found


def _is_same_tensor(one: Tensor, other: Tensor) -> bool:
    same_kind = one.dims == other.dims and one.data_type == other.data_type
    return same_kind and _payload(one) == _payload(other)


def _payload(tensor: Tensor) -> tuple[object, ...]:
    """Return the content of a tensor, inline or external."""
    from onnxjson.model.tensors import is_external, raw_bytes

    if is_external(tensor):
        return ("file", tensor.external_data)
    found = raw_bytes(tensor)
    return ("bytes", found[0]) if found is not None else ("strings", tensor.string_data)


def _typed(before: tuple[ValueInfo, ...], after: Graph) -> tuple[ValueInfo, ...]:
    """Replace types that are wrong now; types that the libraries added are left out."""
    stated = {each.name: each.type for each in (*after.value_info, *after.output)}
    found = tuple([_with_type(each, stated.get(each.name)) for each in before])
    return before if all(one is other for one, other in zip(found, before, strict=True)) else found


def _with_type(value: ValueInfo, now: Type | None) -> ValueInfo:
    if value.type is None or now is None or not _contradicts(value.type, now):
        return value
    return msgspec.structs.replace(value, type=now)


def _contradicts(one: Type, other: Type) -> bool:
    if one.tensor_type is None or other.tensor_type is None:
        return False
    if one.tensor_type.elem_type and other.tensor_type.elem_type:
        return one.tensor_type.elem_type != other.tensor_type.elem_type
    return False


def _value_info(before: Graph, after: Graph, nodes: Sequence[Node]) -> tuple[ValueInfo, ...]:
    """Return value_info of the values that still exist."""
    if not before.value_info:
        return before.value_info
    made = {name for node in nodes for name in node.output}
    gone = {name for node in before.node for name in node.output} - made
    kept = before.value_info
    if gone:
        kept = tuple([each for each in kept if each.name not in gone])
    return _typed(kept, after)
