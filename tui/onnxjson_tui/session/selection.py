"""Selection, marks and visited places, as addresses that follow every change of the model."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from onnxjson.model.addresses import parse_address
from onnxjson.model.errors import AddressError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.patching.patch import Patch
from onnxjson.patterns.selector_terms import spelled
from onnxjson_tui.session.following import place_after

_NEIGHBOURS: Final = 1000  # maximum distance to the neighbour that the cursor moves to when its node is removed
MOST_VISITS: Final = 500  # maximum number of places in the jump list


class Places:
    """Addresses in the current model."""

    def __init__(self) -> None:
        self.cursor: str | None = None  # the element under the cursor
        self.selected: dict[str, None] = {}  # the selected nodes, in the order of their selection
        self.marks: dict[str, str] = {}  # marked addresses by letter
        self.jumps = Jumps()  # the visited places
        self.flagged: dict[str, str] = {}  # the severity of the findings at each node, as of the last check
        self.flow: dict[str, tuple[str, bool]] = {}
        """How an edit that is being typed changes the types of nodes, and whether it breaks them."""

    def toggle(self, address: str) -> None:
        """Toggle the selection of a node."""
        if address in self.selected:
            del self.selected[address]
        else:
            self.selected[address] = None

    def select(self, addresses: Iterable[str]) -> None:
        """Select these nodes and no others."""
        self.selected = dict.fromkeys(addresses)

    def follow(self, patch: Patch) -> "Lost":
        """Update every place after a change; return the removed places, so that undo can restore them.

        A cursor, mark or visit whose node was removed moves to its neighbour; a removed node is no longer
        selected.
        """
        lost = Lost(self.cursor, {}, {})
        places = list(self.selected)
        self.selected = {}
        for address in places:
            after = place_after(patch, address)
            if after is None:
                lost.selected[address] = None
            else:
                self.selected[after] = None
        for letter, address in list(self.marks.items()):
            after = place_after(patch, address)
            if after is None:
                lost.marks[letter] = address
            self.marks[letter] = after or nearest(patch, address)
        if self.cursor is not None:
            self.cursor = nearest(patch, self.cursor)
        self.jumps.follow(patch)
        return lost

    def restore(self, lost: "Lost") -> None:
        """Restore the places that an undone change had removed."""
        if lost.cursor is not None:
            self.cursor = lost.cursor
        self.selected |= lost.selected
        self.marks |= lost.marks


class Lost(NamedTuple):
    """Places whose elements a change removed, as addresses before the change."""

    cursor: str | None
    selected: dict[str, None]
    marks: dict[str, str]


class Jumps:
    """Jump list that works like the history of a browser."""

    def __init__(self) -> None:
        self._places: list[str] = []
        self._here = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def leave(self, address: str) -> None:
        """Record a jump away from `address`."""
        del self._places[self._here :]
        if not self._places or self._places[-1] != address:
            self._places.append(address)
        del self._places[:-MOST_VISITS]
        self._here = len(self._places)

    @property
    def last(self) -> str | None:
        """The previous place; None at the first one."""
        return self._places[self._here - 1] if self._here else None

    def back(self, address: str) -> str | None:
        """Go back from the current `address`; return the previous place, or None at the first one."""
        if self._here == 0:
            return None
        if self._here == len(self._places):
            self._places.append(address)
        else:
            self._places[self._here] = address
        self._here -= 1
        return self._places[self._here]

    def forward(self) -> str | None:
        """Go forward again; return the next place, or None at the last one."""
        if self._here + 1 >= len(self._places):
            return None
        self._here += 1
        return self._places[self._here]

    def follow(self, patch: Patch) -> None:
        """Update every place to its address, or that of its neighbour, after a change."""
        self._places = [nearest(patch, address) for address in self._places]


def nearest(patch: Patch, address: str) -> str:
    """Return the address of an element after a change, or of its neighbour, or of its graph."""
    while address:
        after = place_after(patch, address)
        if after is not None:
            return after
        owner, _, last = address.rpartition("/")
        if owner.endswith("/node") and last.isdigit():
            position = int(last)
            others = [*range(position + 1, position + _NEIGHBOURS), *range(position - 1, position - _NEIGHBOURS, -1)]
            for other in others:
                after = place_after(patch, f"{owner}/{other}") if other >= 0 else None
                if after is not None:
                    return after
        address = owner
    return ""


def selector_of(index: Index, ref: NodeRef) -> str:
    """Return a selector for one node that, if names allow, also finds its counterpart in another model."""
    node = ref.node
    if node.name and list(index.nodes_with("name", node.name)) == [ref]:
        return spelled("name", node.name)
    for output in node.output:
        if output and list(index.nodes_with("output", output)) == [ref]:
            return spelled("output", output)
    return f"@{ref.address}"


def place_of(index: Index, address: str) -> tuple[Scope, int] | None:
    """The graph and position of the node that an address names, or is inside of; the start of a graph for the rest.

    An element that is not a node, such as an initializer or an input, is represented by its first consumer.
    """
    scopes = index.by_address
    try:
        parts = parse_address(address)
    except AddressError:
        return None
    pieces = address.split("/")
    for length in range(len(parts), 0, -1):
        scope = scopes.get("/".join(pieces[: length + 1]))
        if scope is None:
            continue
        if length + 1 < len(parts) and parts[length] == "node" and parts[length + 1].isdigit():
            position = int(parts[length + 1])
            return (scope, position) if position < len(scope.graph.node) else None
        return scope, _first_use(scope, parts[length:])
    return None


def _first_use(scope: Scope, rest: tuple[str, ...]) -> int:
    if len(rest) < 2 or not rest[1].isdigit():
        return 0
    members = getattr(scope.graph, rest[0], ())
    position = int(rest[1])
    if position >= len(members):
        return 0
    member = members[position]
    name = member if isinstance(member, str) else getattr(member, "name", None)
    if not name:
        return 0
    if rest[0] in ("output", "value_info") and name in scope.producers:
        return scope.producers[name][0]
    return next((consumer for consumer, _ in scope.uses(name) if consumer is not None), 0)
