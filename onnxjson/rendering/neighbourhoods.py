"""What a drawing of a change shows: its nodes, the values at its boundary and those who make and take them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.events import Member
from onnxjson.diffing.places import called
from onnxjson.display import visible
from onnxjson.index import NodeRef, Scope
from onnxjson.matching.alignment import UNMATCHED, GraphPair
from onnxjson.rendering.diff_report import Nodes, operator_of
from onnxjson.rendering.values import value_type

Status = Literal["changed", "removed", "added", "context", "value", "constant"]
"""What a box stands for: a node of the change, a node beside it, a value or constant at its boundary."""

LARGEST: Final = 40
"""Boxes of one drawing."""

_MOST_NODES: Final = 24
_MOST_VALUES: Final = 12
_MOST_TAKERS: Final = 3
_MOST_ARROWS: Final = 160


class Shape(NamedTuple):
    """A box of a drawing; its texts are visible."""

    title: str
    subtitle: str
    status: Status


class Arrow(NamedTuple):
    """A line from one box to another, by position."""

    start: int
    end: int
    status: Status


class Picture(NamedTuple):
    """One side of a change."""

    shapes: tuple[Shape, ...]
    arrows: tuple[Arrow, ...]
    left_out: int
    """Nodes of the change that have no box."""


def pictures(member: Member, nodes: Nodes) -> tuple[Picture, Picture] | None:
    """A change before and after; None where it is not about nodes."""
    base, target = (_in_one_graph(refs) for refs in nodes.of(member))
    if not base and not target:
        return None
    pair = nodes.pair_of_base(base[0].scope.address) if base else nodes.pair_of_target(target[0].scope.address)
    if pair is not None and target and target[0].scope is not pair.target:
        pair = None
    backwards = nodes.names_back(pair) if pair is not None else {}
    before = _Side.of(base, pair)
    after = _Side.of(target, pair, is_base=False)
    if before is not None and after is not None and pair is not None:
        _complete(before, after, pair, backwards)
    empty = Picture((), (), 0)
    return before.picture() if before is not None else empty, after.picture() if after is not None else empty


def _in_one_graph(refs: Sequence[NodeRef]) -> list[NodeRef]:
    return [ref for ref in refs if ref.scope is refs[0].scope]


def _complete(before: "_Side", after: "_Side", pair: GraphPair, backwards: Mapping[str, str]) -> None:
    """Show on each side also the counterparts of what the other one shows."""
    found = [(side.values_shown(), side.neighbours()) for side in (before, after)]
    for side, (values, positions), names, counterparts in (
        (after, found[0], pair.values, pair.target_of),
        (before, found[1], backwards, pair.base_of),
    ):
        side.add_values(names[value] for value in values if value in names)
        side.add_neighbours(counterparts[position] for position in positions)
        if side.is_empty:
            side.add_lost_values(backwards if side is after else pair.values)


def _nearest(scope: Scope, change: Sequence[int], most: int) -> list[int]:
    """Nodes of a big change that hang together: those around the one with most neighbours in it."""
    near: dict[int, dict[int, None]] = {position: {} for position in change}
    for position in change:
        for name in scope.graph.node[position].input:
            maker = scope.makers.get(name, (UNMATCHED, 0))[0]
            if maker in near:
                near[position][maker] = near[maker][position] = None
    start = max(change, key=lambda position: (len(near[position]), -position))
    found = dict.fromkeys([start])
    pending = [start]
    for position in pending:
        for each in near[position]:
            if each not in found and len(found) < most:
                found[each] = None
                pending.append(each)
    return list(found)


class _Side:
    """One graph, and what of it is shown."""

    def __init__(self, scope: Scope, change: Sequence[int], counterparts: Sequence[int], *, is_base: bool) -> None:
        self._scope = scope
        self._change = frozenset(change)
        self._shown = sorted(_nearest(scope, change, _MOST_NODES)) if len(change) > _MOST_NODES else list(change)
        self._counterparts = counterparts
        self._is_base = is_base
        self._values: dict[str, None] = {}
        self._neighbours: dict[int, None] = {}
        self.add_values(self._boundary())

    @classmethod
    def of(cls, refs: Sequence[NodeRef], pair: GraphPair | None, *, is_base: bool = True) -> "_Side | None":
        """The side of a change that has these nodes; None where even its graph is not known."""
        positions = [ref.position for ref in refs]
        if pair is not None:
            scope, counterparts = (pair.base, pair.target_of) if is_base else (pair.target, pair.base_of)
            return cls(scope, positions, counterparts, is_base=is_base)
        return cls(refs[0].scope, positions, (), is_base=is_base) if refs else None

    def _boundary(self) -> Iterable[str]:
        """The values that the shown nodes take from outside or make for it."""
        shown, graph = set(self._shown), self._scope.graph
        for position in self._shown:
            yield from (name for name in graph.node[position].input if name and self._maker(name) not in shown)
        for position in self._shown:
            for name in graph.node[position].output:
                takers = self._scope.takers.get(name, ()) if name else ()
                if any(taker is None or taker not in shown for taker, _ in takers):
                    yield name

    def _maker(self, name: str) -> int | None:
        maker = self._scope.makers.get(name)
        return None if maker is None or name in self._scope.inputs or name in self._scope.initializers else maker[0]

    @property
    def is_empty(self) -> bool:
        """Whether no node of the change is on this side."""
        return not self._change

    def add_lost_values(self, paired: Mapping[str, str]) -> None:
        """Show what the neighbours take that has no counterpart: it was replaced, or takes the place of something."""
        graph = self._scope.graph
        for position in list(self._neighbours):
            self.add_values(name for name in graph.node[position].input if name and name not in paired)

    def values_shown(self) -> list[str]:
        """The values that have boxes."""
        return list(self._values)

    def add_values(self, names: Iterable[str]) -> None:
        """Show values, as long as there is room."""
        for name in names:
            if len(self._values) < _MOST_VALUES:
                self._values[name] = None

    def neighbours(self) -> list[int]:
        """Nodes that make the values at the boundary, or take those that the change makes."""
        graph, found = self._scope.graph, dict[int, None]()
        made = {name for position in self._shown for name in graph.node[position].output}
        for name in self._values:
            maker = self._maker(name)
            if maker is not None and graph.node[maker].op_type != "Constant":
                found[maker] = None
            if name in made:
                takers = [taker for taker, _ in self._scope.takers.get(name, ()) if taker is not None]
                found.update(dict.fromkeys(dict.fromkeys(takers[:_MOST_TAKERS])))
        kept = [position for position in found if position not in self._shown]
        self.add_neighbours(kept)
        return [*kept, *self._shown]

    def add_neighbours(self, positions: Iterable[int]) -> None:
        """Show nodes beside the change, as long as there is room."""
        for position in positions:
            room = LARGEST - len(self._shown) - len(self._values) - len(self._neighbours)
            if position != UNMATCHED and position not in self._shown and room > 0:
                self._neighbours[position] = None

    def picture(self) -> Picture:
        """The boxes and arrows; nodes in the order of the file, each after the values that it takes."""
        graph = self._scope.graph
        self.neighbours()
        positions = sorted({*self._shown, *self._neighbours})
        keys: list[int | str] = [*self._values, *positions]
        places = {key: place for place, key in enumerate(keys)}
        shapes = [self._value(key) if isinstance(key, str) else self._node(key) for key in keys]
        arrows: dict[tuple[int, int], Status] = {}
        for position in positions:
            node, own = graph.node[position], places[position]
            for name in node.input:
                maker = self._maker(name) if name else None
                start = places.get(name, places.get(maker) if maker is not None else None)
                if start is not None:
                    arrows.setdefault((start, own), self._status(position))
            for name in node.output:
                if name in places:
                    arrows.setdefault((own, places[name]), self._status(position))
        found = [Arrow(*ends, status) for ends, status in arrows.items()][:_MOST_ARROWS]
        return Picture(tuple(shapes), tuple(found), len(self._change) - len(self._shown))

    def _status(self, position: int) -> Status:
        if position not in self._change:
            return "context"
        if self._counterparts and self._counterparts[position] != UNMATCHED:
            return "changed"
        return "removed" if self._is_base else "added"

    def _node(self, position: int) -> Shape:
        ref = NodeRef(self._scope, position)
        name = called(ref.node)
        return Shape(visible(operator_of(ref), 200), visible(name, 400), self._status(position))

    def _value(self, name: str) -> Shape:
        scope = self._scope
        maker = self._maker(name)
        is_constant = name in scope.initializers or name in scope.sparse_initializers
        is_constant = is_constant or (maker is not None and scope.graph.node[maker].op_type == "Constant")
        said = value_type(scope, name) or ""
        return Shape(visible(name, 400), visible(said, 200), "constant" if is_constant else "value")
