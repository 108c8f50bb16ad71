"""Update of an index after a patch, in time proportional to the patch and not to the model."""

from collections.abc import Iterator

from onnxjson.model.addresses import resolve
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, Record
from onnxjson.model.index import Index, Scope
from onnxjson.patching.changes import Change, Fields, Members, segment

_NODES_ONLY = frozenset({"node", "name", "doc_string", "value_info", "metadata_props", "quantization_annotation"})
"""Fields of a graph that define no names except through nodes."""


class _MovedError(Exception):
    """Nodes or graphs were added, removed or moved, so the index must be rebuilt."""


def follow(index: Index, model: Model, change: Fields | None) -> bool:
    """Update an index to the model after a change; return False and leave it unchanged if it must be rebuilt.

    Args:
        index: index of the model before the change.
        model: the model after the change.
        change: the tree of the patch between them.
    """
    if change is None:
        return True
    scopes = index.by_address
    try:
        found = list(_changed(change, scopes))
    except _MovedError:
        return False
    records: list[tuple[Scope, Graph | Function, list[int], bool]] = []
    for address, positions, is_wide in found:
        record = resolve(model, address)
        assert isinstance(record, Graph | Function)
        records.append((scopes[address], record, positions, is_wide))
    for scope, record, positions, is_wide in records:
        index.follow(model, {scope.address: record}, scope, positions)
        if is_wide:
            # Inputs and constants define names, too, so their consumers in inner graphs are looked up again.
            index.follow(model, {scope.address: record})
    index.follow(model, {})
    return True


def _changed(model: Fields, scopes: dict[str, Scope]) -> Iterator[tuple[str, list[int], bool]]:
    """Yield the graphs that change: address, positions of changed nodes, whether other fields change, too.

    Raises:
        _MovedError: nodes or graphs are added, removed or moved.
    """
    for name, change in model.changes.items():
        if name == "graph":
            yield from _graph(change, "/graph", scopes)
        elif name == "functions":
            for position, below in _members(change):
                yield from _graph(below, f"/functions/{position}", scopes)
        elif name == "training_info":
            raise _MovedError


def _members(change: Change) -> list[tuple[int | str, Fields]]:
    if not isinstance(change, Members) or change.sequence is not None:
        raise _MovedError
    return list(change.changes.items())


def _replaced(change: Members) -> list[int]:
    """Return the positions of replaced nodes, all without inner graphs, if no other node moves.

    For a patch, a node with another name or other outputs is another node.
    """
    place = 0
    found = []
    for item in change.sequence or ():
        if isinstance(item, range):
            if item.start != place:
                raise _MovedError
            place = item.stop
            continue
        old = change.removed.get(place)
        if old is None or any([each.g is not None or each.graphs for node in (old, item) for each in _own(node)]):
            raise _MovedError
        found.append(place)
        place += 1
    if len(found) != len(change.removed):
        raise _MovedError
    return found


def _own(node: Record) -> tuple[Attribute, ...]:
    return node.attribute if isinstance(node, Node) else ()


def _graph(change: Change, address: str, scopes: dict[str, Scope]) -> Iterator[tuple[str, list[int], bool]]:
    if not isinstance(change, Fields) or address not in scopes or "attribute_proto" in change.changes:
        raise _MovedError
    list_change = change.changes.get("node")
    nodes: list[tuple[int | str, Fields]] = []
    positions: list[int] = []
    if list_change is not None:
        if not isinstance(list_change, Members):
            raise _MovedError
        nodes = list(list_change.changes.items())
        positions = sorted([*[int(position) for position, _ in nodes], *_replaced(list_change)])
    yield address, positions, not change.changes.keys() <= _NODES_ONLY
    owners = {child.owner.position for child in scopes[address].children if child.owner is not None}
    for position, node in nodes:
        attributes = node.changes.get("attribute")
        if attributes is None:
            continue
        place = f"{address}/node/{position}/attribute"
        yield from _attributes(attributes, place, scopes, owns=int(position) in owners)


def _attributes(
    change: Change, place: str, scopes: dict[str, Scope], *, owns: bool
) -> Iterator[tuple[str, list[int], bool]]:
    if not isinstance(change, Members):
        raise _MovedError
    added = [each for each in change.sequence or () if isinstance(each, Attribute)]
    if (owns and change.sequence is not None) or any(each.g is not None or each.graphs for each in added):
        raise _MovedError
    for key, attribute in change.changes.items():
        here = f"{place}/{segment(key, is_named=True)}"
        for name, below in attribute.changes.items():
            if name == "g":
                yield from _graph(below, f"{here}/g", scopes)
            elif name == "graphs":
                for position, inner in _members(below):
                    yield from _graph(inner, f"{here}/graphs/{position}", scopes)
            elif name == "name" and owns:
                raise _MovedError
