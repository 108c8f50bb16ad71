"""A drawing of the nodes around a node, with keys to move in it, to draw more or fewer steps, and to centre a node."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region
from textual.strip import Strip

from onnxjson.model.display import counted, visible
from onnxjson.model.index import NodeRef
from onnxjson.rendering.tables import Span, Style, shortened
from onnxjson_tui.rows.beside_nodes import Glyphs
from onnxjson_tui.rows.graph_drawing import NARROW, WIDE, Drawing, Extent, drawing
from onnxjson_tui.rows.graph_parts import HOPS, MOST_HOPS, Surroundings, surroundings
from onnxjson_tui.rows.nodes import output_type
from onnxjson_tui.shell.dialogs import Dialog
from onnxjson_tui.shell.jobs import Jobs
from onnxjson_tui.widgets.actions import key_hints
from onnxjson_tui.widgets.lines import Bar, StyledWidget

_KEYS: Final = (("enter", "centre"), ("+ -", "more steps, fewer"), ("[", "back"), ("esc", "close"), ("arrows", "move"))
"""Keys and their actions, most important first."""

_MARK: Final = 5  # columns of a mark for the boxes outside the window, such as ``< 12``, and a space
_AROUND: Final = (4, 6)  # columns and rows of the screen around the window: border, title, description, keys


class DrawingView(StyledWidget, can_focus=True):
    """A window on a drawing that follows the selected box."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.drawing: Drawing | None = None
        self.chosen = 0  # the number of the selected box
        self._centre = 0
        self._near: Sequence[int] = ()
        self._styles: Sequence[Style] = ()
        self._x = self._y = 0

    def show(self, found: Drawing, centre: int, near: Sequence[int], styles: Sequence[Style] = ()) -> None:
        """Show a drawing with its centre selected and the boxes of `near` in the window; boxes may have styles."""
        self.drawing, self.chosen, self._centre, self._near, self._styles = found, centre, centre, near, styles
        self._begin()

    def move(self, across: int, down: int) -> None:
        """Select the next box in a direction; in another layer, the nearest one."""
        if self.drawing is None:
            return
        places, here = self.drawing.places, self.drawing.places[self.chosen]
        if across:
            near = [box for box, place in enumerate(places) if place.y == here.y and (place.x - here.x) * across > 0]
        else:
            near = [box for box, place in enumerate(places) if (place.y - here.y) * down > 0]
        if near:
            self.choose(min(near, key=lambda box: (abs(places[box].y - here.y), abs(places[box].middle - here.middle))))

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
        assert self.drawing is not None
        self._hold(self.drawing.extent([self.chosen]))

    def _hold(self, part: Extent) -> None:
        """Move the window as little as possible until it contains a part of the drawing, if the part fits."""
        assert self.drawing is not None
        width, height = self.size.width, self.size.height
        if part.right - part.left + 2 * _MARK <= width:
            self._x = max(min(self._x, part.left - _MARK), part.right + _MARK - width)
        if part.bottom - part.top + 2 <= height:
            self._y = max(min(self._y, part.top - 1), part.bottom + 1 - height)
        # A small drawing is centred.
        self._x = _kept(self._x, self.drawing.width, width)
        self._y = _kept(self._y, len(self.drawing.rows), height)

    def on_resize(self, event: events.Resize) -> None:
        """Fit the drawing into the new size."""
        if self.drawing is not None:
            self._begin()

    def _begin(self) -> None:
        """Centre the selected box, or move it aside to show the boxes near it."""
        assert self.drawing is not None
        place = self.drawing.places[self.chosen]
        self._x = place.middle - self.size.width // 2
        self._y = place.y - self.size.height // 2
        if self.chosen == self._centre:
            self._hold(self.drawing.extent(self._near))
        self._follow()
        self.refresh()

    @property
    def out_of_sight(self) -> tuple[int, int]:
        """The number of boxes above the window, and below it."""
        rows = [] if self.drawing is None else [place.y - self._y for place in self.drawing.places]
        return sum(row < 0 for row in rows), sum(row >= self.size.height for row in rows)

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
            name = self._styles[box] if self._styles else "title" if box == self._centre else "plain"
            style = self.span_style("cursor" if box == self.chosen else name)
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


class _Layout(NamedTuple):
    """A drawing of the nodes around a node."""

    hops: int
    found: Surroundings
    drawn: Drawing


def _lay_out(ref: NodeRef, hops: int, glyphs: Glyphs, room: tuple[int, int] | None) -> _Layout:
    """Draw the nodes at most `hops` steps away.

    With `room` (columns and rows), draw narrower, then with fewer steps, until the node and all its neighbours fit.
    """
    while True:
        found = surroundings(ref, hops)
        for between in (WIDE, NARROW):
            layout = _Layout(hops, found, drawing(found.boxes, found.edges, glyphs, between=between))
            if room is None or _fits(layout, *room):
                return layout
        if hops == 1:
            return layout
        hops -= 1


def _fits(layout: _Layout, width: int, height: int) -> bool:
    part, drawn = layout.drawn.extent(layout.found.near), layout.drawn
    across = drawn.width <= width or part.right - part.left + 2 * _MARK <= width
    return across and (len(drawn.rows) <= height or part.bottom - part.top + 2 <= height)


class NeighbourhoodScreen(Dialog[str | None]):
    """Draws the nodes around a node; returns the address of the node in the centre if the user moved it."""

    def __init__(self, ref: NodeRef, jobs: Jobs, glyphs: Glyphs, *, hops: int | None = None) -> None:
        super().__init__()
        self._first = self._ref = ref
        self._jobs = jobs
        self._glyphs: Glyphs = glyphs
        self._wanted = self._hops = max(min(HOPS if hops is None else hops, MOST_HOPS), 1)
        self._before: list[NodeRef] = []
        self._found: Surroundings | None = None

    def compose(self) -> ComposeResult:
        """Title, drawing, the selected box in words, keys."""
        with Vertical(id="around"):
            yield Bar(id="dialog-title")
            yield DrawingView(id="drawing")
            yield Bar(id="dialog-said")
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """Draw."""
        self.query_one(DrawingView).focus()
        self._draw(fitting=True)

    def on_resize(self, event: events.Resize) -> None:
        """Write as many keys as fit, and describe the selected box again."""
        self.show_hint(*key_hints(_KEYS, event.size.width - _AROUND[0]))
        self.call_after_refresh(self._say)

    def _draw(self, *, fitting: bool) -> None:
        """Draw the requested number of steps; with `fitting`, fewer if the neighbours of the node do not fit."""
        ref, hops, glyphs = self._ref, self._wanted, self._glyphs
        room = (self.app.size.width - _AROUND[0], self.app.size.height - _AROUND[1]) if fitting else None
        self._title("drawing ...")
        self._jobs.start("neighbourhood", "drawing", lambda: _lay_out(ref, hops, glyphs, room), self._drawn)

    def _drawn(self, layout: _Layout) -> None:
        if not self.is_mounted:
            return
        self._hops, found, drawn = layout
        self._found = found
        self.query_one(DrawingView).show(drawn, found.positions.index(self._ref.position), found.near)
        description = [
            f"up to {counted(self._hops, 'step')}",
            f"{len(found.boxes):,} {'box' if len(found.boxes) == 1 else 'boxes'}",
        ]
        shown = next((more for more in drawn.more if more), 0)
        if shown:
            description.append(f"+{shown}: {counted(shown, 'neighbour')} not drawn")
        if found.left_out:
            description.append(f"{found.left_out:,} do not fit")
        if drawn.cut:
            description.append(f"{counted(drawn.cut, 'long line')} not drawn")
        self._title("   ".join(description))
        self._say()

    def _title(self, more: str) -> None:
        node = self._ref.node
        name = visible(node.name or "", 300)
        title = f"{self._ref.position} {visible(node.op_type or '?', 40)} {name}".rstrip()
        room = max(self.app.size.width - _AROUND[0], 20)
        below = [(Span(more, "quiet"),)]
        self.query_one("#dialog-title", Bar).show((Span(shortened(title, room), "title"),), below=below)

    def _say(self) -> None:
        view = self.query_one(DrawingView)
        if self._found is None or view.drawing is None:
            return
        position = self._found.positions[view.chosen]
        if position is None:
            text, kind = self._found.boxes[view.chosen].label, "an input or output of the graph"
        else:
            node = self._ref.scope.graph.node[position]
            text = f"{position} {visible(node.op_type or '?', 60)} {visible(node.name or '', 300)}".rstrip()
            kind = output_type(self._ref.scope, node.output)
        more = view.drawing.more[view.chosen]
        hidden = f"  +{more:,}: connected to {more:,} more" if more else ""
        above, below = view.out_of_sight
        beyond = [f"{count:,} {where}" for count, where in ((above, "above"), (below, "below")) if count]
        description = (Span(text), Span(f"  {kind}", "quiet"), Span(hidden, "quiet"))
        self.query_one("#dialog-said", Bar).show(description, f"{', '.join(beyond)} the window" if beyond else "")

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Move, centre, go back, draw more or fewer steps, close."""
        return {
            **dict.fromkeys(("left", "h"), partial(self._move, -1, 0)),
            **dict.fromkeys(("right", "l"), partial(self._move, 1, 0)),
            **dict.fromkeys(("up", "k"), partial(self._move, 0, -1)),
            **dict.fromkeys(("down", "j"), partial(self._move, 0, 1)),
            "enter": self._centre,
            **dict.fromkeys(("[", "ctrl+o"), self._back),
            **dict.fromkeys(("+", "="), partial(self._step, 1)),
            **dict.fromkeys(("-", "_"), partial(self._step, -1)),
            **dict.fromkeys(("escape", "q", "ctrl+c"), self._close),
        }

    def _move(self, across: int, down: int) -> None:
        self.query_one(DrawingView).move(across, down)
        self._say()

    def _back(self) -> None:
        if self._before:
            self._ref = self._before.pop()
            self._draw(fitting=True)

    def _close(self) -> None:
        self._jobs.drop("neighbourhood")
        self.dismiss(None if self._ref.position == self._first.position else self._ref.address)

    def _centre(self) -> None:
        box = self.query_one(DrawingView).chosen
        position = None if self._found is None else self._found.positions[box]
        if position is not None and position != self._ref.position:
            self._before.append(self._ref)
            self._ref = NodeRef(self._ref.scope, position)
            self._draw(fitting=True)

    def _step(self, more: int) -> None:
        hops = max(min(self._hops + more, MOST_HOPS), 1)
        if hops != self._hops:
            self._wanted = hops
            self._draw(fitting=False)
