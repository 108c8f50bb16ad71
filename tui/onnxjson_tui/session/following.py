"""Effects of a change, found in its patch: addresses afterwards, the updated index, changed nodes, parts to redraw.

For a patch, a node with another name or other outputs is another node, so a renamed node is removed and added. For the
user it remains the same node.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.model.addresses import parse_address, resolve
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, Record
from onnxjson.model.errors import AddressError
from onnxjson.model.index import Index, Scope
from onnxjson.patching.applying import apply_fields, difference
from onnxjson.patching.changes import Change, Fields, Members, Replace, keeps_order, segment
from onnxjson.patching.listing import change_at
from onnxjson.patching.patch import Patch

_NODES_ONLY: Final = {"node", "name", "doc_string", "value_info", "metadata_props", "quantization_annotation"}
"""Fields of a graph that define no names except through nodes."""

_OF_LANES: Final = frozenset({"node", "input", "output"})

Mark = Literal["", "~", "+"]  # Unchanged, changed, new


def _replacements(members: Members) -> dict[int, tuple[int, Record]]:
    """Return the member that replaces a removed one, and its new position, by old position.

    If as many members are added as removed between two that remain, each added one replaces a removed one; otherwise
    only members with the same operator at the start and at the end are replacements.
    """
    replacements: dict[int, tuple[int, Record]] = {}
    expected = position = 0
    added: list[tuple[int, Record]] = []
    # The end of the list is an empty run.
    end = max(members.removed, default=0) + 1
    for member in (*(members.sequence or ()), range(end, end)):
        if not isinstance(member, range):
            added.append((position, member))
            position += 1
            continue
        removed = [each for each in range(expected, member.start) if each in members.removed] if added else []
        if len(removed) == len(added):
            replacements.update(zip(removed, added, strict=True))
        else:
            for step in (1, -1):
                for old, new in zip(removed[::step], added[::step], strict=False):
                    if _operator(members.removed[old]) != _operator(new[1]):
                        break
                    replacements.setdefault(old, new)
        added = []
        expected = member.stop
        position += len(member)
    return replacements


def _operator(record: Record) -> str | None:
    return record.op_type if isinstance(record, Node) else None


def _are_all_replaced(members: Members, found: dict[int, tuple[int, Record]]) -> bool:
    added = sum([not isinstance(item, range) for item in members.sequence or ()])
    return len(found) == len(members.removed) == added


# Addresses


def place_after(patch: Patch, address: str) -> str | None:
    """Return the address of an element after a change, even if its node was renamed; None if it was removed."""
    try:
        new_address = patch.where(address)
        parts = parse_address(address)
    except AddressError:
        return None
    if new_address is not None:
        return new_address
    pieces = address.split("/")
    for length in range(2, len(parts) + 1):
        if parts[length - 2] != "node" or not parts[length - 1].isdigit():
            continue
        # Segment n of the address is piece n + 1, since it begins with a slash.
        node = "/".join(pieces[: length + 1])
        if patch.where(node) is not None:
            continue
        owner = patch.where("/".join(pieces[: length - 1])) if length > 2 else ""
        members = change_at(patch.root, "/".join(pieces[:length]))
        position = _replacement(members, int(parts[length - 1])) if isinstance(members, Members) else None
        if owner is None or position is None:
            return None
        return "/".join([owner, "node", str(position), *pieces[length + 1 :]])
    return None


def _replacement(members: Members, position: int) -> int | None:
    """Return the position of the node with the same operator that replaces a removed one."""
    old = members.removed.get(position)
    place, new = _replacements(members).get(position, (0, None))
    return place if isinstance(old, Node) and isinstance(new, Node) and new.op_type == old.op_type else None


# Nodes that differ from the saved model


class SavedNodes:
    """The saved counterparts of the nodes of a graph, according to the patch from the current model to the saved one.

    The counterpart of a node has the same name or output, or, if no node has, the same operator at its place.
    """

    def __init__(self, nodes: Sequence[Node], change: Change | None, *, are_new: bool) -> None:
        """Use the change of the graph; with `are_new`, the saved model has no such graph."""
        self._nodes = nodes
        self._are_new = are_new or type(change) is Replace
        members = change.changes.get("node") if isinstance(change, Fields) else None
        self._members = members if isinstance(members, Members) else Members(None, {}, {})
        self._replaced = {
            position: new
            for position, (_, new) in _replacements(self._members).items()
            if isinstance(new, Node) and {new.op_type, *new.output} & {nodes[position].op_type, *nodes[position].output}
        }

    @classmethod
    def of(cls, patch: Patch, scope: Scope) -> "SavedNodes":
        """Return the counterparts of the nodes of a graph of the current model."""
        owner, nodes = scope.owner, scope.graph.node
        if owner is None:
            return cls(nodes, change_at(patch.root, scope.address), are_new=False)
        saved = cls.of(patch, owner.scope).counterpart(owner.position)
        if saved is None:
            return cls(nodes, None, are_new=True)
        # The address of the graph inside the node.
        change = change_at(difference(owner.node, saved), scope.address[len(owner.address) :])
        return cls(nodes, change, are_new=False)

    def mark(self, position: int) -> Mark:
        """Return how a node differs from its counterpart."""
        if self._are_new or (position in self._members.removed and position not in self._replaced):
            return "+"
        return "~" if position in self._replaced or position in self._members.changes else ""

    def counterpart(self, position: int) -> Node | None:
        """Return the saved node; None if there is none."""
        if self.mark(position) == "+":
            return None
        node = self._replaced.get(position, self._nodes[position])
        change = self._members.changes.get(position)
        return node if change is None else apply_fields(node, change)

    def marked(self) -> list[int]:
        """Return the positions of all marked nodes, ascending."""
        if self._are_new:
            return list(range(len(self._nodes)))
        return sorted({*self._members.removed, *[int(each) for each in self._members.changes]})


# Parts to redraw


def lanes_differ(change: Fields | None) -> bool:
    """Return whether a change that moved no nodes, given as the tree of its patch, alters inputs or outputs of them."""
    return not _OF_LANES.isdisjoint(_fields(change))


def _fields(change: Fields | None) -> Iterator[str]:
    """Yield the names of all changed fields; ``node`` only if one was added or removed."""
    pending: list[tuple[str, Change]] = [] if change is None else list(change.changes.items())
    while pending:
        field, below = pending.pop()
        if field == "node" and isinstance(below, Members):
            yield from _fields_of_replaced(below)
        else:
            yield field
        if isinstance(below, Fields):
            pending += below.changes.items()
        elif isinstance(below, Members):
            pending += [each for member in below.changes.values() for each in member.changes.items()]


def _fields_of_replaced(nodes: Members) -> Iterator[str]:
    """Yield the fields in which replaced nodes differ."""
    replacements = _replacements(nodes)
    if not _are_all_replaced(nodes, replacements):
        yield "node"
    for position, (_, new) in replacements.items():
        old = nodes.removed[position]
        yield from [field for field in ("input", "output") if getattr(old, field) != getattr(new, field)]


# Index


class _MovedError(Exception):
    """Nodes or graphs were added, removed or moved, so the index must be rebuilt."""


class _ChangedGraph(NamedTuple):
    address: str
    positions: list[int]  # positions of changed nodes
    is_wide: bool  # whether other fields changed, too


def follow(index: Index, model: Model, change: Fields | None) -> bool:
    """Update an index to the model after a change, in time proportional to the patch.

    Return False and leave the index unchanged if it must be rebuilt.
    """
    if change is None:
        return True
    scopes = index.by_address
    try:
        graphs = [(each, resolve(model, each.address)) for each in _changed_graphs(change, scopes)]
    except _MovedError:
        return False
    for (address, positions, is_wide), record in graphs:
        assert isinstance(record, Graph | Function)
        index.follow(model, {address: record}, scopes[address], positions)
        if is_wide:
            # Inputs and constants define names, too, so their consumers in inner graphs are looked up again.
            index.follow(model, {address: record})
    index.follow(model, {})
    return True


def _changed_graphs(model: Fields, scopes: dict[str, Scope]) -> Iterator[_ChangedGraph]:
    if "training_info" in model.changes:
        raise _MovedError
    if graph := model.changes.get("graph"):
        yield from _graph(graph, "/graph", scopes)
    if functions := model.changes.get("functions"):
        yield from _graphs(functions, "/functions", scopes)


def _graphs(change: Change, address: str, scopes: dict[str, Scope]) -> Iterator[_ChangedGraph]:
    if not isinstance(change, Members) or change.sequence is not None:
        raise _MovedError
    for position, below in change.changes.items():
        yield from _graph(below, f"{address}/{position}", scopes)


def _graph(change: Change, address: str, scopes: dict[str, Scope]) -> Iterator[_ChangedGraph]:
    if not isinstance(change, Fields) or address not in scopes or "attribute_proto" in change.changes:
        raise _MovedError
    nodes = change.changes.get("node", Members(None, {}, {}))
    if not isinstance(nodes, Members):
        raise _MovedError
    positions = sorted([*[int(position) for position in nodes.changes], *_replaced(nodes)])
    yield _ChangedGraph(address, positions, not change.changes.keys() <= _NODES_ONLY)
    owners = {child.owner.position for child in scopes[address].children if child.owner is not None}
    for position, node in nodes.changes.items():
        attributes = node.changes.get("attribute")
        if attributes is not None:
            place = f"{address}/node/{position}/attribute"
            yield from _attributes(attributes, place, scopes, owns=int(position) in owners)


def _replaced(nodes: Members) -> list[int]:
    """Return the positions of replaced nodes, all without inner graphs, if no other node moves."""
    replacements = _replacements(nodes)
    if not keeps_order(nodes.sequence or ()) or not _are_all_replaced(nodes, replacements):
        raise _MovedError
    for node in (*nodes.removed.values(), *[new for _, new in replacements.values()]):
        if isinstance(node, Node) and any([each.g is not None or each.graphs for each in node.attribute]):
            raise _MovedError
    return list(replacements)


def _attributes(change: Change, place: str, scopes: dict[str, Scope], *, owns: bool) -> Iterator[_ChangedGraph]:
    if not isinstance(change, Members):
        raise _MovedError
    added = [each for each in change.sequence or () if isinstance(each, Attribute)]
    if (owns and change.sequence is not None) or any(each.g is not None or each.graphs for each in added):
        raise _MovedError
    for key, attribute in change.changes.items():
        attribute_address = f"{place}/{segment(key, is_named=True)}"
        for name, below in attribute.changes.items():
            if name == "g":
                yield from _graph(below, f"{attribute_address}/g", scopes)
            elif name == "graphs":
                yield from _graphs(below, f"{attribute_address}/graphs", scopes)
            elif name == "name" and owns:
                raise _MovedError
