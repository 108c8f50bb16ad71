"""Find nodes again after others were added, removed or moved: by the names of their outputs, else by their own names.

Addresses are positions. A text that was written for some nodes keeps their `Landmark`s, so that it never replaces
other nodes that are now at the same positions.
"""

from collections.abc import Iterable, Sequence

import msgspec

from onnxjson.codecs.node_blocks import block_addresses, is_range, node_addresses
from onnxjson.model.addresses import format_address, parse_address, resolve
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Model, Node
from onnxjson.model.errors import AddressError

Member = Node | Function


class Landmark(msgspec.Struct, frozen=True):
    """Properties by which a node, or a function around it, is recognised."""

    operator: str
    """Operator of a node; domain and overload of a function."""
    name: str
    """"" if it has none."""
    made: tuple[str, ...]
    """Names of the outputs of a node; none for a function."""


NodePath = tuple[Landmark, ...]
"""Landmarks of the nodes and functions along an address, the outermost first; the last one is that of the node."""


def path_of_node(model: Model, address: str) -> NodePath:
    """Return the landmarks of the node at an address and of the nodes and functions around it.

    Raises:
        AddressError: there is no element at the address.
    """
    segments = parse_address(address)
    found = []
    for length in range(2, len(segments) + 1):
        member = resolve(model, format_address(segments[:length]))
        if isinstance(member, Member):
            found.append(_landmark(member))
    return tuple(found)


def paths_of_nodes(model: Model, blocks: Iterable[str]) -> tuple[NodePath, ...]:
    """`path_of_node` each node of some blocks (`onnxjson.codecs.node_blocks`), in their order.

    Raises:
        AddressError: there is no element at an address.
    """
    return tuple([path_of_node(model, address) for block in blocks for address in node_addresses(block)])


def _landmark(member: Member) -> Landmark:
    if isinstance(member, Function):
        return Landmark(f"{member.domain or ''}:{member.overload or ''}", member.name or "", ())
    return Landmark(member.op_type or "", member.name or "", tuple([name for name in member.output if name]))


class Recognition:
    """Finds nodes of a model by landmarks from another state of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tables: dict[str, _Table] = {}

    def blocks(self, blocks: Sequence[str], ways: Sequence[NodePath]) -> dict[str, str]:
        """Return the current address of each block: the old address -> the new one.

        Args:
            blocks: the old addresses.
            ways: the result of `paths_of_nodes` for them.

        Raises:
            AddressError: a node cannot be recognised, or the nodes of a block are no longer adjacent.
        """
        given = iter(ways)
        found: dict[str, str] = {}
        for block in blocks:
            now = [self.address(each, way) for each, way in zip(node_addresses(block), given, strict=False)]
            if len(set(now)) != len(node_addresses(block)):
                raise AddressError(_elsewhere(block))
            joined = block_addresses(now) if is_range(block) else tuple(now)
            if len(joined) != 1 or [*node_addresses(joined[0])] != now:
                raise AddressError(f"{_elsewhere(block)}: they are no longer adjacent")
            found[block] = joined[0]
        if len(set(found.values())) != len(found):
            raise AddressError(_elsewhere(", ".join(found)))
        return found

    def address(self, address: str, way: NodePath) -> str:
        """Return the current address of a node.

        Raises:
            AddressError: it cannot be recognised.
        """
        segments = list(parse_address(address))
        given = iter(way)
        for place, segment in enumerate(segments):
            if place == 0 or not segment.isdigit():
                continue
            outer = format_address(segments[:place])
            try:
                members = resolve(self._model, outer)
            except AddressError as error:
                raise AddressError(f"{_elsewhere(address)}: {error}") from error
            if isinstance(members, tuple) and members and isinstance(members[0], Member):
                if outer not in self._tables:
                    self._tables[outer] = _Table(members)
                landmark = next(given, None)
                position = None if landmark is None else self._tables[outer].position(landmark, int(segment))
                if position is None:
                    raise AddressError(f"{_elsewhere(address)}: {_unknown(landmark)}")
                segments[place] = str(position)
        return format_address(segments)


class _Table:
    """Nodes of one graph, or functions of a model, by their landmarks."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._made: dict[str, list[int]] = {}
        self._named: dict[tuple[str, str], list[int]] = {}
        for position, member in enumerate(members):
            landmark = _landmark(member)
            for name in landmark.made:
                self._made.setdefault(name, []).append(position)
            if landmark.name:
                self._named.setdefault((landmark.operator, landmark.name), []).append(position)

    def position(self, landmark: Landmark, former: int) -> int | None:
        """Return the position of the only member that a landmark fits; None if there is none, or several."""
        found = {each for name in landmark.made for each in self._made.get(name, ())}
        if not found and landmark.name:
            found = set(self._named.get((landmark.operator, landmark.name), ()))
        if former in found:
            return former
        return found.pop() if len(found) == 1 else None


def _elsewhere(block: str) -> str:
    several = "nodes" if is_range(block) else "node"
    return f"the {several} of this text moved or changed (formerly {visible(block, 200)})"


def _unknown(landmark: Landmark | None) -> str:
    if landmark is None:
        return "the text does not record how to recognise it"
    shown = visible(" ".join(each for each in (landmark.operator, landmark.name or next(iter(landmark.made), ""))), 200)
    return f"no node has its outputs or its name ({shown})"
