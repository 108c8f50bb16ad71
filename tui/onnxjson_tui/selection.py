"""What is selected, marked and visited, by addresses that follow every change of the model."""

from collections.abc import Iterable, Iterator
from typing import Final

from onnxjson.index import Index, NodeRef
from onnxjson.patching import Patch
from onnxjson.selector_syntax import spelled
from onnxjson_tui.replaced import place_after

_NEIGHBOURS: Final = 1000
"""Nodes on either side that are asked for, where the one that was looked at is gone."""

MOST_VISITS: Final = 500
"""Places of the jump list; older ones are forgotten."""


class Places:
    """Addresses of the model as it is now."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        """The element that is looked at."""
        self.selected: dict[str, None] = {}
        """Nodes that an edit on the selection is made for, in the order in which they were chosen."""
        self.marks: dict[str, str] = {}
        """Places by their letters."""
        self.jumps = Jumps()
        """Where the person has been."""

    def toggle(self, address: str) -> None:
        """Select a node, or no longer."""
        if address in self.selected:
            del self.selected[address]
        else:
            self.selected[address] = None

    def select(self, addresses: Iterable[str]) -> None:
        """Select these nodes and no others."""
        self.selected = dict.fromkeys(addresses)

    def follow(self, patch: Patch) -> "Lost":
        """Give every place the address that it has after a change; what is gone is given back, so that undo can too.

        A cursor, a mark or a visit whose node is gone moves to what stood next to it; a selected node is no longer
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
        """What a change had lost stands again, since it was taken back."""
        if lost.cursor is not None:
            self.cursor = lost.cursor
        self.selected |= lost.selected
        self.marks |= lost.marks


class Lost:
    """Places that a change left without their elements, by the addresses before it."""

    def __init__(self, cursor: str | None, selected: dict[str, None], marks: dict[str, str]) -> None:
        self.cursor = cursor
        self.selected = selected
        self.marks = marks


class Jumps:
    """Places that were left for others, as a browser keeps them: back, forward, and a new way forgets the old."""

    def __init__(self) -> None:
        self._places: list[str] = []
        self._here = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def leave(self, address: str) -> None:
        """The person goes elsewhere from `address`."""
        del self._places[self._here :]
        if not self._places or self._places[-1] != address:
            self._places.append(address)
        del self._places[:-MOST_VISITS]
        self._here = len(self._places)

    @property
    def last(self) -> str | None:
        """The place that was left last; None at the first place."""
        return self._places[self._here - 1] if self._here else None

    def back(self, address: str) -> str | None:
        """Where the person was before `address`, where they are now; None at the first place."""
        if self._here == 0:
            return None
        if self._here == len(self._places):
            self._places.append(address)
        else:
            self._places[self._here] = address
        self._here -= 1
        return self._places[self._here]

    def forward(self) -> str | None:
        """Where the person was before going back; None at the last place."""
        if self._here + 1 >= len(self._places):
            return None
        self._here += 1
        return self._places[self._here]

    def follow(self, patch: Patch) -> None:
        """Give every place the address that it, or what is next to it, has after a change."""
        self._places = [nearest(patch, address) for address in self._places]


def nearest(patch: Patch, address: str) -> str:
    """Where an element stands after a change, or else the node next to it, or else the graph around it."""
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
    """Words that find one node in this model, and, as far as names allow, its counterpart in another."""
    node = ref.node
    if node.name and list(index.nodes_with("name", node.name)) == [ref]:
        return spelled("name", node.name)
    for output in node.output:
        if output and list(index.nodes_with("output", output)) == [ref]:
            return spelled("output", output)
    return f"@{ref.address}"
