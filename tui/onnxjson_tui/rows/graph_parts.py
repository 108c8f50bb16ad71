"""What the map of a graph shows: its lines as boxes, or the nodes around one node, and the values between them.

A level is the content of one box; what is largest in the graph is already open in the first one. Where a level has more
boxes than fit, consecutive ones are one box.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Final, NamedTuple

from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Type
from onnxjson.model.dtypes import BITS
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import operator_name
from onnxjson.rendering.tables import Style, cells, shortened, size
from onnxjson_tui.rows.beside_nodes import Figures
from onnxjson_tui.rows.folding import Fold
from onnxjson_tui.rows.graph_drawing import Box, Edge
from onnxjson_tui.rows.nodes import short_type, type_text

_MOST: Final = 40  # boxes of a level
_FEW: Final = 3  # values from outside, or to it, that have a box each
_LABEL: Final = 60  # columns of a label
_KIND: Final = 36  # columns of what flows between two boxes


class Part(NamedTuple):
    """A box that stands for nodes."""

    label: str  # visible
    nodes: tuple[int, ...]  # positions of its nodes, ascending
    inner: "tuple[Part, ...]" = ()  # the boxes in it

    @property
    def first(self) -> int:
        """Position of its first node."""
        return self.nodes[0] if self.nodes else 0

    @property
    def size(self) -> int:
        """Number of its nodes."""
        return len(self.nodes)


class Level(NamedTuple):
    """What is drawn: boxes of nodes, then those of values from outside and to it."""

    parts: tuple[Part, ...]
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    styles: tuple[Style, ...]
    figures: tuple[float, ...]  # of each part; () without figures
    owner: "array[int]"  # the part of each node of the graph; -1 for nodes elsewhere


class GraphMap:
    """The boxes of one graph; for 100,000 nodes a level takes a quarter of a second."""

    def __init__(self, scope: Scope, folds: Sequence[Fold] = (), widest: int = _LABEL) -> None:
        """Use the lines of a graph, in at most `widest` columns; without any, its nodes are boxes."""
        self.scope = scope
        self._widest = min(widest, _LABEL)
        self.type_of: Callable[[str], Type | None] = partial(Index.type_of, scope)
        scope.find_names()
        self._folds = folds
        self._constants = self._found_constants()

    def _found_constants(self) -> set[str]:
        """Return initializers and what is computed from constants alone."""
        scope = self.scope
        constants = {*scope.initializers, *scope.sparse_initializers, ""}
        for node in scope.graph.node:
            if constants.issuperset(consumed_names(node) if node.attribute else node.input):
                constants.update(node.output)
        return constants

    def whole(self, room: int = _MOST) -> tuple[Part, ...]:
        """Return the first level: what is largest is open as long as there are at most `room` boxes."""
        parts = tuple([self._line(each) for each in self._folds if each.positions])
        if not parts:
            return self._nodes(range(len(self.scope.graph.node)))
        while inner := (largest := max(parts, key=lambda each: each.size)).inner:
            if len(parts) + len(inner) > room + 1:
                break
            at = parts.index(largest)
            parts = (*parts[:at], *inner, *parts[at + 1 :])
        return self._folded(parts)

    def inside(self, part: Part) -> tuple[Part, ...]:
        """Return the boxes in a box; () for a node."""
        if part.inner:
            return self._folded(part.inner)
        return self._nodes(part.nodes) if part.size > 1 else ()

    def _nodes(self, places: Sequence[int]) -> tuple[Part, ...]:
        nodes = self.scope.graph.node
        varying = [place for place in places if not self._constants.issuperset(nodes[place].output)]
        # Where there is nothing else, constants are better than an empty drawing.
        return self._folded([self._node(place) for place in varying or places])

    def _line(self, fold: Fold) -> Part:
        return Part(
            shortened(fold.text, self._widest), fold.positions, tuple([self._round(each) for each in fold.inner])
        )

    def _round(self, fold: Fold) -> Part:
        """Return the box of a line of a repeat, with the nodes of the first round."""
        return Part(shortened(fold.text, self._widest), fold.first, tuple([self._round(each) for each in fold.inner]))

    def around(self, position: int, hops: int) -> Part:
        """Return a box of the nodes that a node depends on and that depend on it within some steps, the nearest first.

        Nodes that only share a producer or a consumer with it are left out.
        """
        reached, ways = {position: None}, (self._producers, self._consumers)
        ends = [[position], [position]]
        for _ in range(hops):
            for way, neighbours in enumerate(ways):
                room = (_MOST - len(reached)) // (2 - way)
                near = dict.fromkeys([each for end in ends[way] for each in neighbours(end)])
                ends[way] = [each for each in near if each not in reached][:room]
                reached |= dict.fromkeys(ends[way])
        nodes = tuple(map(self._node, sorted(reached)))
        return Part(
            f"around {self._node(position).label}", (position, *[each for each in reached if each != position]), nodes
        )

    def _producers(self, position: int) -> list[int]:
        producers = self.scope.producers
        names = [each for each in consumed_names(self.scope.graph.node[position]) if each not in self._constants]
        return [producers[each][0] for each in names if each in producers]

    def _consumers(self, position: int) -> list[int]:
        outputs = self.scope.graph.node[position].output
        return [place for name in outputs for place, _ in self.scope.uses(name) if name and place is not None]

    def _node(self, place: int) -> Part:
        node = self.scope.graph.node[place]
        operator = shortened(visible(operator_name(node.domain, node.op_type), 200), _LABEL)
        return Part(f"{place} {operator}", (place,))

    def _folded(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return at most `_MOST` boxes; consecutive ones become one."""
        if len(parts) <= _MOST:
            return tuple(parts)
        depth = 1
        while _MOST**depth < len(parts):
            depth += 1
        # Boxes on all levels contain about equally many.
        length = -(-len(parts) // max(int(len(parts) ** (1 / depth)), 2))
        return tuple([_run(parts[start : start + length]) for start in range(0, len(parts), length)])

    def owners(self, parts: Sequence[Part]) -> "array[int]":
        """Return the number of the box of each node; -1 for nodes elsewhere."""
        owners = array("i", [-1]) * len(self.scope.graph.node)
        for number, part in enumerate(parts):
            for place in part.nodes:
                owners[place] = number
        return owners

    def level(self, parts: Sequence[Part], figures: Figures | None = None) -> Level:
        """Return the boxes of a level, with the values that leave each of them."""
        owner, flows = self.owners(parts), dict[tuple[int, int], dict[str, None]]()
        scope, producers, constants = self.scope, self.scope.producers, self._constants
        for place, node in enumerate(scope.graph.node):
            box = owner[place]
            for name in consumed_names(node) if node.attribute else node.input:
                producer = producers.get(name)
                origin = -1 if producer is None else owner[producer[0]]
                if box != origin and name not in constants:
                    flows.setdefault((origin, box), {})[name] = None
        for output in scope.output_names:
            if output in producers and owner[producers[output][0]] >= 0:
                flows.setdefault((owner[producers[output][0]], -1), {})[output] = None
        outside, labels = self._outside(flows, len(parts))
        edges, left = dict[Edge, None](), dict[int, dict[str, None]]()
        for (start, end), names in flows.items():
            for name in names:
                edge = Edge(start if start >= 0 else outside[0, name], end if end >= 0 else outside[1, name])
                edges[edge] = None
                left.setdefault(edge.start, {})[name] = None
        values = figures.of_parts(owner, len(parts)) if figures is not None else ()
        most, total = max(values, default=0.0), sum(values)
        texts = []
        for number, part in enumerate(parts):
            count = "" if part.size == 1 else f" ({part.size:,})"
            figure = figures.text(values[number], total) if figures else ""
            texts.append(f"[{f'{part.label}{count} {figure}'.rstrip()}]")
        boxes = [Box(text, below=self.texts_of(left.get(at, ()))) for at, text in enumerate([*texts, *labels])]
        styles = [figures.style(each / most) if figures and most else "plain" for each in values or [0.0] * len(parts)]
        styles += ["quiet"] * len(labels)
        return Level(tuple(parts), tuple(boxes), tuple(edges), tuple(styles), values, owner)

    def _outside(
        self, flows: Mapping[tuple[int, int], dict[str, None]], number: int
    ) -> tuple[dict[tuple[int, str], int], list[str]]:
        """Return the boxes of values from outside (0) and to it (1), numbered from `number`, and their labels."""
        boxes: dict[tuple[int, str], int] = {}
        labels: list[str] = []
        for side in (0, 1):
            names = list(dict.fromkeys([name for ends, each in flows.items() if ends[side] < 0 for name in each]))
            is_few = len(names) <= _FEW
            for place, name in enumerate(names):
                if is_few or not place:
                    label = shortened(visible(name, 200), _LABEL) if is_few else counted(len(names), "value")
                    labels.append(f"({label})")
                boxes[side, name] = number + len(labels) - 1
        return boxes, labels

    def texts_of(self, names: Sequence[str] | dict[str, None]) -> tuple[str, ...]:
        """Return types and bytes of values in words, the longest text first; () if they are not known."""
        if len(names) > 1:
            known = [each for name in names if (each := self._bytes(name)) is not None]
            total = sum([count for count, times in known if not times])
            is_exact = len(known) == len(names) and not any(times for _, times in known)
            return (counted(len(names), "value") + (f" {size(total)}" if is_exact else ""),)
        name = next(iter(names), "")
        kind, found = type_text(self.type_of(name)), self._bytes(name)
        kinds = (short_type(kind, _KIND), short_type(kind, _KIND // 2)) if kind else ()
        full = "" if found is None else f"{kind} {size(found[0])}{found[1]}"
        return (full, *kinds) if 0 < cells(full) <= _KIND else kinds

    def _bytes(self, name: str) -> tuple[int, str] | None:
        """Return the bytes of a value, and the dimensions without a size by which they are multiplied."""
        kind = self.type_of(name)
        bits = BITS.get((kind.tensor_type.elem_type or 0) if kind is not None and kind.tensor_type is not None else 0)
        dims = None if kind is None else kind.shape
        if bits is None or dims is None or None in dims:
            return None
        times = [visible(each, 40) for each in dims if isinstance(each, str)]
        count = prod([each for each in dims if isinstance(each, int)])
        return (count * bits + 7) // 8, "".join([f" x {each}" for each in times])


def _run(parts: Sequence[Part]) -> Part:
    """Return one box for consecutive ones."""
    if len(parts) == 1:
        return parts[0]
    nodes = tuple([each for part in parts for each in part.nodes])
    return Part(shortened(f"{parts[0].label} .. {parts[-1].label}", _LABEL), nodes, tuple(parts))
