"""Drawing of a small graph in characters: a row for each layer of boxes, with lines down between the layers.

The layout is that of `onnxjson.rendering.layered_layout`; lines go straight down, or sideways in a separate row.
Where two lines cross, the vertical one is drawn, so that they do not look connected::

      [3 Relu]
       ┌──┴───┐
    [4 Conv]  │
       └──┬───┘
       [5 Add]
"""

from collections.abc import Sequence
from itertools import count
from typing import Final, NamedTuple

from onnxjson.rendering import layered_layout
from onnxjson.rendering.layered_layout import BETWEEN_BOXES, BETWEEN_LAYERS, Point, lay_out
from onnxjson.rendering.tables import cells
from onnxjson_tui.rows.beside_nodes import BOXES

LONGEST: Final = 8  # maximum layers that a line crosses; longer lines are replaced by counts at both ends
_COLUMN: Final = 6.0  # units of the layout in a column
_BETWEEN: Final = 4  # columns between two boxes of a layer

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8


class Box(NamedTuple):
    """Content of a box."""

    label: str  # visible
    below: tuple[str, ...] = ()  # text beside the line that leaves it downwards, visible: the first that fits


class Edge(NamedTuple):
    """A line from one box to another, by their numbers."""

    start: int
    end: int


class Place(NamedTuple):
    """Position of a box in the drawing."""

    x: int
    y: int
    width: int

    @property
    def middle(self) -> int:
        """The column at which lines begin and end."""
        return self.x + self.width // 2


class Drawing(NamedTuple):
    """Lines of characters, one a column (wide characters have an empty one after them), and the places of the boxes."""

    rows: tuple[tuple[str, ...], ...]
    places: tuple[Place, ...]
    width: int

    def text(self) -> list[str]:
        """Return the lines without trailing spaces."""
        return ["".join(row).rstrip() for row in self.rows]


class _Gap:
    """Lines between two layers, from columns above to columns below."""

    def __init__(self) -> None:
        self.joined: dict[int, set[int]] = {}  # columns below for each column above

    def add(self, above: int, below: int) -> None:
        self.joined.setdefault(above, set()).add(below)

    def separate(self, boxes: Sequence[int]) -> None:
        """Move lines to the column next to the middle of a box where another line passes through the middle.

        Otherwise both would look like one line.
        """
        for below in boxes:
            if below not in self.joined or self.joined[below] == {below}:
                continue
            port = next((each for each in (below + 1, below - 1) if each not in self.joined), None)
            for above, targets in self.joined.items():
                if port is not None and above != below and below in targets:
                    targets.remove(below)
                    targets.add(port)

    def tracks(self) -> dict[int, int]:
        """Assign a row to each horizontal line; lines that do not meet share rows."""
        tracks: dict[int, int] = {}
        rows: list[list[_Aside]] = []
        for above, below in sorted(self.joined.items(), key=lambda each: min((each[0], *each[1]))):
            aside = _Aside(min(above, *below), max(above, *below), next(iter(below)) if len(below) == 1 else None)
            if aside.low == aside.high:
                continue
            track = next((row for row, others in enumerate(rows) if not any(map(aside.meets, others))), len(rows))
            rows += [[]] if track == len(rows) else []
            rows[track].append(aside)
            tracks[above] = track
        return tracks


class _Aside(NamedTuple):
    """The horizontal part of a line."""

    low: int
    high: int
    target: int | None  # column at which it goes down; None for several columns

    def meets(self, other: "_Aside") -> bool:
        """Whether both would look like one line in the same row; two lines to the same column do not conflict."""
        if self.high + 1 < other.low or other.high + 1 < self.low:
            return False
        is_same_end = self.target is not None and self.target == other.target
        return not (is_same_end and (self.high == other.low or other.high == self.low))


def drawing(boxes: Sequence[Box], edges: Sequence[Edge]) -> Drawing:
    """Draw a graph of up to some dozens of boxes."""
    more = [0] * len(boxes)
    kept, cut = _short_edges(_texts(boxes, more), edges)
    for edge in cut:
        more[edge.start] += 1
        more[edge.end] += 1
    return _Canvas(_texts(boxes, more), kept, [box.below for box in boxes]).drawn()


def _texts(boxes: Sequence[Box], more: Sequence[int]) -> list[str]:
    return [box.label + (f"+{count}" if count else "") for box, count in zip(boxes, more, strict=True)]


def _layout(texts: Sequence[str], edges: Sequence[Edge]) -> layered_layout.Layout:
    more = _BETWEEN * _COLUMN - BETWEEN_BOXES
    shapes = [layered_layout.Box(cells(text) * _COLUMN + more, _COLUMN) for text in texts]
    return lay_out(shapes, [(edge.start, edge.end) for edge in edges])


def _short_edges(texts: Sequence[str], edges: Sequence[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Return the edges to draw, and those that cross too many layers or stay in one layer."""
    centres = _layout(texts, edges).centres
    kept: list[Edge] = []
    cut: list[Edge] = []
    for edge in edges:
        layers = abs(centres[edge.start].y - centres[edge.end].y) / (_COLUMN + BETWEEN_LAYERS)
        (kept if 0.5 < layers < LONGEST + 0.5 else cut).append(edge)
    return kept, cut


class _Canvas:
    """Places of boxes in columns and rows, and the characters between them."""

    def __init__(self, texts: Sequence[str], edges: Sequence[Edge], below: Sequence[tuple[str, ...]]) -> None:
        self._texts = texts
        self._below = below
        layout = _layout(texts, edges)
        levels = sorted({point.y for point in layout.centres})
        self._level = {y: number for number, y in enumerate(levels)}
        self._layers = [self._level[point.y] for point in layout.centres]
        self._x = [
            max(round(point.x / _COLUMN) - cells(text) // 2, 0)
            for point, text in zip(layout.centres, texts, strict=True)
        ]
        self._spread()
        self._gaps = [_Gap() for _ in range(max(len(levels) - 1, 0))]
        self._passing: list[set[int]] = [set() for _ in levels]
        self._taken: list[set[int]] = [set() for _ in levels]  # columns that are in a box or next to one
        for box, layer in enumerate(self._layers):
            self._taken[layer] |= set(range(self._x[box] - 1, self._x[box] + cells(texts[box]) + 1))
        self._middles = [{self._middle(box) for box in self._boxes(layer)} for layer in range(len(levels))]
        for edge, line in zip(edges, layout.lines, strict=True):
            self._lead(edge, line)
        for layer, gap in enumerate(self._gaps):
            gap.separate(sorted(self._middles[layer + 1]))

    def _boxes(self, layer: int) -> list[int]:
        return [box for box, own in enumerate(self._layers) if own == layer]

    def _middle(self, box: int) -> int:
        return self._x[box] + cells(self._texts[box]) // 2

    def _spread(self) -> None:
        """Keep the boxes of a layer apart after rounding."""
        for layer in range(len(self._level)):
            at = 0
            for box in sorted(self._boxes(layer), key=self._x.__getitem__):
                self._x[box] = max(self._x[box], at)
                at = self._x[box] + cells(self._texts[box]) + 1

    def _lead(self, edge: Edge, line: Sequence[Point]) -> None:
        """Route a line from layer to layer, upper end first."""
        upper, lower = edge if self._layers[edge.start] < self._layers[edge.end] else (edge.end, edge.start)
        points = line if upper == edge.start else line[::-1]
        column = self._middle(upper)
        first, last = self._layers[upper], self._layers[lower]
        for layer in range(first + 1, last):
            # Two points for each layer that is passed.
            wanted = round(points[1 + 2 * (layer - first - 1)].x / _COLUMN)
            below = self._free(layer, wanted, column)
            self._gaps[layer - 1].add(column, below)
            self._passing[layer].add(below)
            self._taken[layer].add(below)
            column = below
        self._gaps[last - 1].add(column, self._middle(lower))

    def _free(self, layer: int, wanted: int, above: int) -> int:
        """Return the column of a layer nearest to `wanted` without a box or another line than that from `above`."""
        others = self._middles[layer - 1] | self._passing[layer - 1]
        next_layer = self._passing[layer + 1] if layer + 1 < len(self._passing) else set()
        taken = self._taken[layer] | next_layer | (others - {above})
        columns = (column for distance in count() for column in (wanted + distance, wanted - distance))
        return next(column for column in columns if column >= 0 and column not in taken)

    def drawn(self) -> Drawing:
        """Draw everything."""
        width = 1 + max(
            [self._x[box] + cells(text) for box, text in enumerate(self._texts)]
            + [column for passing in self._passing for column in passing],
            default=0,
        )
        width = max([width, *[self._middle(box) + 3 + cells(each[0]) for box, each in enumerate(self._below) if each]])
        rows: list[list[str]] = []
        places: list[Place] = [Place(0, 0, 0)] * len(self._texts)
        for layer in range(len(self._level)):
            row = [" "] * width
            for column in self._passing[layer]:
                row[column] = BOXES[_UP | _DOWN]
            for box in self._boxes(layer):
                _write(row, self._x[box], self._texts[box])
                places[box] = Place(self._x[box], len(rows), cells(self._texts[box]))
            rows.append(row)
            if layer < len(self._gaps):
                rows += self._described(self._between(self._gaps[layer], width), layer)
        # Rounding can leave empty columns on the left.
        margin = min([next((place for place, text in enumerate(row) if text != " "), width) for row in rows], default=0)
        places = [place._replace(x=place.x - margin) for place in places]
        return Drawing(tuple([tuple(row[margin:]) for row in rows]), tuple(places), width - margin)

    def _described(self, rows: list[list[str]], layer: int) -> list[list[str]]:
        """Write what leaves the boxes of a layer beside their lines, in a row of its own where lines turn aside."""
        gap, line = self._gaps[layer], BOXES[_UP | _DOWN]
        texts: dict[int, str] = {}
        for box in self._boxes(layer):
            column = self._middle(box)
            end = min([each for each in gap.joined if each > column], default=len(rows[0]) + 1)
            fits = [each for each in self._below[box] if column + 3 + cells(each) <= end]
            if fits and column in gap.joined:
                texts[column + 2] = fits[0]
        if texts and gap.tracks():
            rows = [[line if column in gap.joined else " " for column in range(len(rows[0]))], *rows]
        for column, text in texts.items():
            _write(rows[0], column, text)
        return rows

    def _between(self, gap: _Gap, width: int) -> list[list[str]]:
        tracks = gap.tracks()
        height = max([track + 1 for track in tracks.values()], default=1)
        sides: list[dict[int, int]] = [{} for _ in range(height)]
        # Vertical lines first, then horizontal ones; where a horizontal line crosses another line, the vertical one
        # wins.
        sources: list[dict[int, set[int]]] = [{} for _ in range(height)]
        for above, targets in gap.joined.items():
            track = tracks.get(above)
            for row in range(height if track is None else track + 1):
                down = _UP | (_DOWN if track is None or row < track else 0)
                sides[row][above] = sides[row].get(above, 0) | down
                sources[row].setdefault(above, set()).add(above)
            for target in targets if track is not None else ():
                assert track is not None
                for row in range(track, height):
                    down = _DOWN | (_UP if row > track else 0)
                    sides[row][target] = sides[row].get(target, 0) | down
                    sources[row].setdefault(target, set()).add(above)
        for above, track in tracks.items():
            low, high = min(above, *gap.joined[above]), max(above, *gap.joined[above])
            for column in range(low, high + 1):
                if above in sources[track].get(column, {above}):
                    aside = (_LEFT if column > low else 0) | (_RIGHT if column < high else 0)
                    sides[track][column] = sides[track].get(column, 0) | aside
        return [[BOXES[each.get(column, 0)] for column in range(width)] for each in sides]


def _write(row: list[str], x: int, text: str) -> None:
    for character in text:
        wide = cells(character)
        if not wide and x:
            row[x - 1] += character
            continue
        row[x] = character
        if wide == 2:
            row[x + 1] = ""
        x += wide
