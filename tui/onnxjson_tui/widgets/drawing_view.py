"""A window on a drawing of a graph: boxes to select, and marks for those that do not fit."""

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from onnxjson.rendering.tables import Style
from onnxjson_tui.rows.graph_drawing import Drawing
from onnxjson_tui.widgets.lines import StyledWidget

_MARK: Final = 5  # columns of a mark for the boxes outside the window, such as ``< 12``, and a space


class DrawingView(StyledWidget, can_focus=True):
    """A window on a drawing that follows the selected box."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.drawing: Drawing | None = None
        self.chosen = 0  # the number of the selected box
        self._styles: Sequence[Style] = ()
        self._x = self._y = 0

    def show(self, found: Drawing, chosen: int, styles: Sequence[Style]) -> None:
        """Show a drawing with a box selected; each box has a style."""
        self.drawing, self.chosen, self._styles = found, chosen, styles
        self._begin()

    def move(self, across: int, down: int) -> None:
        """Select the next box in a direction; in another layer, the nearest one."""
        if self.drawing is None:
            return
        places, chosen = self.drawing.places, self.drawing.places[self.chosen]
        if across:
            near = [
                box for box, place in enumerate(places) if place.y == chosen.y and (place.x - chosen.x) * across > 0
            ]
        else:
            near = [box for box, place in enumerate(places) if (place.y - chosen.y) * down > 0]
        if near:
            self.choose(
                min(near, key=lambda box: (abs(places[box].y - chosen.y), abs(places[box].middle - chosen.middle)))
            )

    def choose(self, box: int) -> None:
        """Select a box; only what changes is drawn again."""
        assert self.drawing is not None
        boxes, window = (self.chosen, box), (self._x, self._y)
        self.chosen = box
        self._follow()
        if window != (self._x, self._y):
            self.refresh()
            return
        for place in [self.drawing.places[each] for each in boxes]:
            self.refresh(Region(max(place.x - self._x, 0), place.y - self._y, place.width, 1))

    def _follow(self) -> None:
        """Move the window as little as possible until it contains the selected box, if that fits."""
        assert self.drawing is not None
        width, height, place = self.size.width, self.size.height, self.drawing.places[self.chosen]
        if place.width + 2 * _MARK <= width:
            self._x = max(min(self._x, place.x - _MARK), place.x + place.width + _MARK - width)
        if height >= 3:
            self._y = max(min(self._y, place.y - 1), place.y + 2 - height)
        # A small drawing is centred.
        self._x = _kept(self._x, self.drawing.width, width)
        self._y = _kept(self._y, len(self.drawing.rows), height)

    def on_resize(self, event: events.Resize) -> None:
        """Fit the drawing into the new size."""
        if self.drawing is not None:
            self._begin()

    def _begin(self) -> None:
        """Centre the selected box."""
        assert self.drawing is not None
        place = self.drawing.places[self.chosen]
        self._x = place.middle - self.size.width // 2
        self._y = place.y - self.size.height // 2
        self._follow()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the window; boxes that an edge cuts are replaced by a mark with their number."""
        width = self.size.width
        base = self.span_style("plain")
        number = y + self._y
        if self.drawing is None or not 0 <= number < len(self.drawing.rows):
            return Strip.blank(width, base)
        quiet = self.span_style("quiet")
        row = self.drawing.rows[number]
        cells = [row[column] if 0 <= column < len(row) else " " for column in range(self._x, self._x + width)]
        styles = [quiet] * width
        boxes = [box for box, place in enumerate(self.drawing.places) if place.y == number]
        before, behind = self._beyond(boxes)
        for box in boxes:
            place = self.drawing.places[box]
            columns = range(max(place.x - self._x, 0), min(place.x + place.width - self._x, width))
            style = self.span_style("cursor" if box == self.chosen else self._styles[box])
            for column in columns:
                if box in before or box in behind:
                    cells[column] = " "
                else:
                    styles[column] = style
        if before:
            cells[:_MARK] = f"< {len(before)}".ljust(_MARK)
        if behind:
            cells[-_MARK:] = f"{len(behind)} >".rjust(_MARK)
        segments: list[Segment] = []
        for text, style in zip(cells[:width], styles, strict=True):
            if segments and segments[-1].style == style:
                segments[-1] = Segment(segments[-1].text + text, style)
            else:
                segments.append(Segment(text, style))
        return Strip(segments).adjust_cell_length(width, base)

    def _beyond(self, boxes: Sequence[int]) -> tuple[set[int], set[int]]:
        """Return the boxes of a row that do not fit next to the marks: left of the window, and right of it."""
        assert self.drawing is not None
        left, right, places = self._x, self._x + self.size.width, self.drawing.places
        if any(places[box].x < left for box in boxes):
            left += _MARK
        if any(places[box].x + places[box].width > right for box in boxes):
            right -= _MARK
        before = {box for box in boxes if places[box].x < left}
        return before, {box for box in boxes if places[box].x + places[box].width > right} - before


def _kept(at: int, length: int, window: int) -> int:
    if length <= window:
        return -((window - length) // 2)
    return max(min(at, length - window), 0)
