"""Which node is which after others were put in, taken out or moved: a node is known by what it makes, else by its name.

Addresses are places. A text that was written for some nodes keeps their `Landmark`s, so that it is never put over the
nodes that stand in those places by then.
"""

from collections.abc import Iterable, Sequence

import msgspec

from onnxjson.addresses import format_address, parse_address, resolve
from onnxjson.display import visible
from onnxjson.document import Function, Model, Node
from onnxjson.errors import AddressError
from onnxjson.node_blocks import block_addresses, is_range, node_addresses

Member = Node | Function


class Landmark(msgspec.Struct, frozen=True):
    """What a node, or a function that holds nodes, is known by."""

    operator: str
    """Operator of a node, domain and overload of a function."""
    name: str
    """"" where it has none."""
    made: tuple[str, ...]
    """The names of what a node makes; none for a function."""


Way = tuple[Landmark, ...]
"""Those of the nodes and functions that an address passes, the outermost first, and of the node itself."""


def way_to(model: Model, address: str) -> Way:
    """What the node at an address is known by, and each one that it stands in.

    Raises:
        AddressError: nothing stands there.
    """
    segments = parse_address(address)
    found = []
    for length in range(2, len(segments) + 1):
        member = resolve(model, format_address(segments[:length]))
        if isinstance(member, Member):
            found.append(_landmark(member))
    return tuple(found)


def ways_to(model: Model, blocks: Iterable[str]) -> tuple[Way, ...]:
    """`way_to` each node of some blocks (`onnxjson.node_blocks`), in their order.

    Raises:
        AddressError: nothing stands at an address.
    """
    return tuple([way_to(model, address) for block in blocks for address in node_addresses(block)])


def _landmark(member: Member) -> Landmark:
    if isinstance(member, Function):
        return Landmark(f"{member.domain or ''}:{member.overload or ''}", member.name or "", ())
    return Landmark(member.op_type or "", member.name or "", tuple([name for name in member.output if name]))


class Recognition:
    """Finds nodes in a model, of which something is known from another state of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tables: dict[str, _Table] = {}

    def blocks(self, blocks: Sequence[str], ways: Sequence[Way]) -> dict[str, str]:
        """Where the nodes of each block stand now: the address of the block as it was -> as it is.

        Args:
            blocks: their addresses as they were.
            ways: what `ways_to` gave for them then.

        Raises:
            AddressError: a node cannot be told any more, or those of one block do not follow each other any more.
        """
        given = iter(ways)
        found: dict[str, str] = {}
        for block in blocks:
            now = [self.address(each, way) for each, way in zip(node_addresses(block), given, strict=False)]
            if len(set(now)) != len(node_addresses(block)):
                raise AddressError(_elsewhere(block))
            joined = block_addresses(now) if is_range(block) else tuple(now)
            if len(joined) != 1 or [*node_addresses(joined[0])] != now:
                raise AddressError(f"{_elsewhere(block)}: they do not follow each other any more")
            found[block] = joined[0]
        if len(set(found.values())) != len(found):
            raise AddressError(_elsewhere(", ".join(found)))
        return found

    def address(self, address: str, way: Way) -> str:
        """Where a node stands now.

        Raises:
            AddressError: it cannot be told.
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
    """The members of one graph, or the functions of a model, by what they are known by."""

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
        """That of the one member that a landmark is of; None where none or several could be it."""
        found = {each for name in landmark.made for each in self._made.get(name, ())}
        if not found and landmark.name:
            found = set(self._named.get((landmark.operator, landmark.name), ()))
        if former in found:
            return former
        return found.pop() if len(found) == 1 else None


def _elsewhere(block: str) -> str:
    several = "nodes this text was written for stand" if is_range(block) else "node this text was written for stands"
    return f"the {several} elsewhere now ({visible(block, 200)} as it was)"


def _unknown(landmark: Landmark | None) -> str:
    if landmark is None:
        return "the text does not say by what it is known"
    shown = visible(" ".join(each for each in (landmark.operator, landmark.name or next(iter(landmark.made), ""))), 200)
    return f"no node makes what it made or has its name ({shown})"
