"""Small drawings of a change, as boxes and arrows and as SVG.

A drawing has the nodes of the change, the values at its boundary, their producers and consumers: boxes for nodes, pills
for values. Colours are those of the enclosing page, by class.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.details import node_label
from onnxjson.diffing.events import Member
from onnxjson.diffing.matching.alignment import UNMATCHED, GraphPair
from onnxjson.model.constants import is_constant_node, own_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Graph
from onnxjson.model.index import NodeRef, Scope
from onnxjson.rendering.diff_report import Nodes, operator_of
from onnxjson.rendering.layered_layout import BETWEEN_BOXES, Box, Layout, Point, lay_out
from onnxjson.rendering.tables import cells, cut
from onnxjson.rendering.values import value_type

Status = Literal["changed", "removed", "added", "context", "value", "constant"]
"""Kind of a box: a node of the change, an adjacent node, a value or constant at the boundary."""

LARGEST: Final = 40
_MOST_NODES: Final = 24
_MOST_VALUES: Final = 12
_MOST_CONSUMERS: Final = 3
_MOST_ARROWS: Final = 160

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_MARGIN: Final = 4.0
_TITLE_CHARACTER: Final = 8.0
"""Width of a character of a title at 12.5 px, as in the style; names are 10.5 px, monospaced."""

_NAME_CHARACTER: Final = 6.35
_WIDEST: Final = 30  # characters of a line of a name
_MOST_LINES: Final = 4  # lines of a name; the title of the box has all of it
_TITLE_HEIGHT: Final = 15.0
_NAME_HEIGHT: Final = 12.0
_MARKS: Final = {"removed": "- ", "added": "+ ", "changed": "~ "}
"""Before the operators of nodes of the change, for readers to whom colours say nothing."""


class Shape(NamedTuple):
    """A box of a drawing, with visible texts."""

    title: str
    subtitle: str
    status: Status


class Arrow(NamedTuple):
    """A line from one box to another, by position."""

    start: int
    end: int
    status: Status


class Picture(NamedTuple):
    """Drawing of one side of a change."""

    shapes: tuple[Shape, ...]
    arrows: tuple[Arrow, ...]
    left_out: int  # number of nodes of the change without a box


def pictures(member: Member, nodes: Nodes) -> tuple[Picture, Picture] | None:
    """Return the pictures of a change before and after; None if it has no nodes."""
    base, target = ([ref for ref in refs if ref.scope is refs[0].scope] for refs in nodes.of(member))
    if not base and not target:
        return None
    pair = nodes.pairs.get((base or target)[0].scope)
    if pair is not None and target and target[0].scope is not pair.target:
        pair = None
    before, after = _Side.of(base, pair, member.base), _Side.of(target, pair, member.target, is_base=False)
    if before is not None and after is not None and pair is not None:
        _complete(before, after, pair, nodes.names_back(pair))
    empty = Picture((), (), 0)
    return before.picture() if before is not None else empty, after.picture() if after is not None else empty


def _complete(before: "_Side", after: "_Side", pair: GraphPair, backwards: Mapping[str, str]) -> None:
    """Add the counterparts of what the other side shows."""
    shown = [(list(side._values), side.neighbours()) for side in (before, after)]
    for side, (values, positions), names, counterparts in (
        (after, shown[0], pair.values, pair.target_of),
        (before, shown[1], backwards, pair.base_of),
    ):
        side.add_values(names[value] for value in values if value in names)
        side.add_neighbours(counterparts[position] for position in positions)
        if side.is_empty:
            side.add_lost_values(backwards if side is after else pair.values)


def _nearest(scope: Scope, change: Sequence[int], most: int) -> list[int]:
    """Return connected nodes of a large change: those around the node with most neighbours in it."""
    near: dict[int, dict[int, None]] = {position: {} for position in change}
    for position in change:
        for name in scope.graph.node[position].input:
            producer = scope.producers.get(name, (UNMATCHED, 0))[0]
            if producer in near:
                near[position][producer] = near[producer][position] = None
    start = max(change, key=lambda position: (len(near[position]), -position))
    connected = dict.fromkeys([start])
    pending = [start]
    for position in pending:
        for neighbour in near[position]:
            if neighbour not in connected and len(connected) < most:
                connected[neighbour] = None
                pending.append(neighbour)
    return list(connected)


class _Side:
    """The shown part of one graph."""

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
    def of(
        cls, refs: Sequence[NodeRef], pair: GraphPair | None, addresses: Iterable[str], *, is_base: bool = True
    ) -> "_Side | None":
        """Return the side of a change with these nodes and addresses; None if its graph is not known."""
        if pair is None and not refs:
            return None
        scope, counterparts = (refs[0].scope, ()) if pair is None else (
            (pair.base, pair.target_of) if is_base else (pair.target, pair.base_of)
        )  # fmt: skip
        side = cls(scope, [ref.position for ref in refs], counterparts, is_base=is_base)
        side._add_constants(addresses)
        return side

    def _boundary(self) -> Iterable[str]:
        """Yield the values that the shown nodes consume from outside or produce for it."""
        shown, scope = set(self._shown), self._scope
        nodes = [scope.graph.node[position] for position in self._shown]
        for name in [name for node in nodes for name in node.input if name]:
            if scope.producer_position(name) not in shown:
                yield name
        for name in [name for node in nodes for name in node.output if name]:
            if any(consumer is None or consumer not in shown for consumer, _ in scope.consumers.get(name, ())):
                yield name

    @property
    def is_empty(self) -> bool:
        """Whether no node of the change is on this side."""
        return not self._change

    def add_lost_values(self, paired: Mapping[str, str]) -> None:
        """Show inputs of the neighbours without a counterpart: these replace something or were replaced."""
        graph = self._scope.graph
        for position in list(self._neighbours):
            self.add_values(name for name in graph.node[position].input if name and name not in paired)

    def _add_constants(self, addresses: Iterable[str]) -> None:
        """Show the constants of the change, such as the one that others were merged into."""
        graph = self._scope.graph
        for position, constant in enumerate(graph.initializer if isinstance(graph, Graph) else ()):
            if f"{self._scope.address}/initializer/{position}" in addresses:
                self.add_values([constant.name or ""])

    def add_values(self, names: Iterable[str]) -> None:
        """Show values while there is room."""
        for name in names:
            if len(self._values) < _MOST_VALUES:
                self._values[name] = None

    def neighbours(self) -> list[int]:
        """Return producers of values at the boundary, and consumers of values that the change produces."""
        graph, neighbours = self._scope.graph, dict[int, None]()
        produced = {name for position in self._shown for name in graph.node[position].output}
        for name in self._values:
            producer = self._scope.producer_position(name)
            if producer is not None and not is_constant_node(graph.node[producer]):
                neighbours[producer] = None
            if name in produced:
                consumers = [consumer for consumer, _ in self._scope.consumers.get(name, ()) if consumer is not None]
                neighbours.update(dict.fromkeys(dict.fromkeys(consumers[:_MOST_CONSUMERS])))
        kept = [position for position in neighbours if position not in self._shown]
        self.add_neighbours(kept)
        return [*kept, *self._shown]

    def add_neighbours(self, positions: Iterable[int]) -> None:
        """Show adjacent nodes while there is room."""
        for position in positions:
            room = LARGEST - len(self._shown) - len(self._values) - len(self._neighbours)
            if position != UNMATCHED and position not in self._shown and room > 0:
                self._neighbours[position] = None

    def picture(self) -> Picture:
        graph = self._scope.graph
        self.neighbours()
        positions = sorted({*self._shown, *self._neighbours})
        arrows: dict[tuple[int | str, int | str], Status] = {}
        for position in positions:
            for name in graph.node[position].input:
                start = name if name in self._values else self._scope.producer_position(name) if name else None
                if isinstance(start, str) or (start is not None and start in positions):
                    arrows.setdefault((start, position), self._status(position))
            for name in graph.node[position].output:
                if name in self._values:
                    arrows.setdefault((position, name), self._status(position))
        # An adjacent node of the other side may touch nothing on this one.
        joined = {key for ends in arrows for key in ends}
        keys: list[int | str] = [
            *self._values,
            *(each for each in positions if each in joined or each in self._change or not arrows),
        ]
        places = {key: place for place, key in enumerate(keys)}
        shapes = [self._value(key) if isinstance(key, str) else self._node(key) for key in keys]
        found = [Arrow(places[start], places[end], status) for (start, end), status in arrows.items()][:_MOST_ARROWS]
        return Picture(tuple(shapes), tuple(found), len(self._change) - len(self._shown))

    def _status(self, position: int) -> Status:
        if position not in self._change:
            return "context"
        if self._counterparts and self._counterparts[position] != UNMATCHED:
            return "changed"
        return "removed" if self._is_base else "added"

    def _node(self, position: int) -> Shape:
        ref = NodeRef(self._scope, position)
        return Shape(visible(operator_of(ref), 200), visible(node_label(ref.node), 400), self._status(position))

    def _value(self, name: str) -> Shape:
        status: Status = "constant" if own_constant(self._scope, name) is not None else "value"
        return Shape(visible(name, 400), visible(value_type(self._scope, name) or "", 200), status)


def svg(picture: Picture, label: str) -> str:
    """Return a drawing as an ``svg`` element without ids, styles or scripts; `label` describes it, visible."""
    boxes = [_box(shape) for shape in picture.shapes]
    layout = lay_out(boxes, [(arrow.start, arrow.end) for arrow in picture.arrows])
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.1f} {height:.1f}"'
    parts = [f'<svg class="graph" xmlns="{_NAMESPACE}" role="img" aria-label="{html.escape(label)}" {size}>']
    parts += _lines(picture, layout)
    for shape, box, centre in zip(picture.shapes, boxes, layout.centres, strict=True):
        parts.append(_drawn(shape, box, centre))
    return "".join([*parts, "</svg>"])


def _is_value(shape: Shape) -> bool:
    return shape.status in ("value", "constant")


def _box(shape: Shape) -> Box:
    title, subtitle = _texts(shape)
    each = _NAME_CHARACTER if _is_value(shape) else _TITLE_CHARACTER
    widths = [cells(line) * each for line in title] + [cells(line) * _NAME_CHARACTER for line in subtitle]
    height = len(title) * (_NAME_HEIGHT if _is_value(shape) else _TITLE_HEIGHT) + len(subtitle) * _NAME_HEIGHT
    return Box(max(widths) + BETWEEN_BOXES, height + 8)


def _texts(shape: Shape) -> tuple[list[str], list[str]]:
    return _broken(_MARKS.get(shape.status, "") + shape.title), _broken(shape.subtitle)


def _broken(name: str) -> list[str]:
    """Break a name into lines, after ``/``, ``.`` or ``_`` where it has one."""
    lines: list[str] = []
    while cells(name) > _WIDEST and len(lines) < _MOST_LINES - 1:
        at = max(name.rfind(mark, _WIDEST // 3, _WIDEST) for mark in "/._ ,") + 1
        lines.append(cut(name, _WIDEST) if not at and len(cut(name, _WIDEST)) < _WIDEST else name[: at or _WIDEST])
        name = name[len(lines[-1]) :]
    return [*lines, *([cut(name, _WIDEST)] if name else [])]


def _drawn(shape: Shape, box: Box, centre: Point) -> str:
    title, subtitle = _texts(shape)
    x, y = centre.x - box.width / 2, centre.y - box.height / 2
    radius = min(box.height / 2, 15) if _is_value(shape) else 5
    full = " ".join(filter(None, (shape.title, shape.subtitle)))
    texts, baseline = "", y + 4
    for lines, is_name in ((title, _is_value(shape)), (subtitle, True)):
        for line in lines:
            baseline += _NAME_HEIGHT if is_name else _TITLE_HEIGHT
            name = ' class="name"' if is_name else ""
            texts += f'<text{name} x="{centre.x:.1f}" y="{baseline - 3:.1f}">{html.escape(line)}</text>'
    return (
        f'<g class="{shape.status}"><title>{html.escape(full)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.0f}"/>'
        f"{texts}</g>"
    )


def _lines(picture: Picture, layout: Layout) -> list[str]:
    drawn = []
    # Lines of the change are drawn above those of its context.
    order = sorted(range(len(picture.arrows)), key=lambda place: picture.arrows[place].status != "context")
    for place in order:
        points, status = layout.lines[place], picture.arrows[place].status
        end, before = points[-1], points[-2]
        way = 1 if end.y >= before.y else -1
        tip = Point(end.x, end.y - way)
        path = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
        for one, other in zip(points, (*points[1:-1], Point(tip.x, tip.y - 5 * way)), strict=False):
            middle = (one.y + other.y) / 2
            path.append(f"C{one.x:.1f} {middle:.1f} {other.x:.1f} {middle:.1f} {other.x:.1f} {other.y:.1f}")
        head = (
            f"{tip.x:.1f},{tip.y:.1f} {tip.x - 3.5:.1f},{tip.y - 7 * way:.1f} {tip.x + 3.5:.1f},{tip.y - 7 * way:.1f}"
        )
        drawn.append(f'<path class="{status}" d="{"".join(path)}"/><polygon class="{status}" points="{head}"/>')
    return drawn
