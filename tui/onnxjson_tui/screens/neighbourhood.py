"""A drawing of what is around a node: moved about, made wider or narrower, centred on another node."""

from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.strip import Strip
from textual.widget import Widget

from onnxjson.display import counted, visible
from onnxjson.index import NodeRef
from onnxjson.rendering.spans import Span
from onnxjson_tui.jobs import Jobs
from onnxjson_tui.rows.graph_drawing import Drawing, drawing
from onnxjson_tui.rows.lanes import Glyphs
from onnxjson_tui.rows.nodes import output_type
from onnxjson_tui.rows.surroundings import HOPS, MOST_HOPS, Surroundings, surroundings
from onnxjson_tui.screens.dialog import Dialog
from onnxjson_tui.widgets.bars import Bar

_HINT: Final = "enter centre   + - wider, narrower   arrows   [ back   esc close"


class DrawingView(Widget, can_focus=True):
    """A drawing through a window that follows the box that is chosen."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor", "lines--plain", "lines--title", "lines--quiet"}

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.drawing: Drawing | None = None
        self.chosen = 0
        """The number of a box."""
        self._centre = 0
        self._x = self._y = 0

    def show(self, found: Drawing, centre: int) -> None:
        """Shows another drawing, the box in its centre chosen."""
        self.drawing, self.chosen, self._centre = found, centre, centre
        self._begin()

    def move(self, across: int, down: int) -> None:
        """Chooses the box that is next in a direction, of another layer the one that is nearest."""
        if self.drawing is None:
            return
        places, here = self.drawing.places, self.drawing.places[self.chosen]
        if across:
            near = [box for box, place in enumerate(places) if place.y == here.y and (place.x - here.x) * across > 0]
        else:
            near = [box for box, place in enumerate(places) if (place.y - here.y) * down > 0]
        if near:
            self.chosen = min(
                near, key=lambda box: (abs(places[box].y - here.y), abs(places[box].middle - here.middle))
            )
        self._follow()
        self.refresh()

    def _follow(self) -> None:
        """The window holds the chosen box, and stays within the drawing."""
        assert self.drawing is not None
        place, width, height = self.drawing.places[self.chosen], self.size.width, self.size.height
        # A small drawing stands in the middle.
        self._x = max(min(self._x, place.x), place.x + place.width - width)
        self._y = max(min(self._y, place.y - 1), place.y + 2 - height)
        self._x = _kept(self._x, self.drawing.width, width)
        self._y = _kept(self._y, len(self.drawing.rows), height)

    def on_resize(self, event: events.Resize) -> None:
        """The window has another size."""
        if self.drawing is not None:
            self._begin()

    def _begin(self) -> None:
        """The chosen box in the middle of the window."""
        assert self.drawing is not None
        place = self.drawing.places[self.chosen]
        self._x = max(place.middle - self.size.width // 2, 0)
        self._y = max(place.y - self.size.height // 2, 0)
        self._follow()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the window."""
        width = self.size.width
        base = self.get_component_rich_style("lines--plain")
        number = y + self._y
        if self.drawing is None or not 0 <= number < len(self.drawing.rows):
            return Strip.blank(width, base)
        quiet = self.get_component_rich_style("lines--quiet")
        row = self.drawing.rows[number]
        cells = [" "] * width
        styles = [quiet] * width
        for column in range(width):
            if 0 <= column + self._x < len(row):
                cells[column] = row[column + self._x]
        if width and self._x > 0 and any(text != " " for text in row[: self._x]):
            cells[0] = "<"
        if width and any(text != " " for text in row[self._x + width :]):
            cells[-1] = ">"
        # Half of a wide character is a space.
        if cells and cells[0] == "":
            cells[0] = " "
        for box, place in enumerate(self.drawing.places):
            if place.y != number:
                continue
            name = "lines--cursor" if box == self.chosen else "lines--title" if box == self._centre else ""
            style = self.get_component_rich_style(name) if name else base
            for column in range(max(place.x - self._x, 0), min(place.x + place.width - self._x, width)):
                styles[column] = style
        segments: list[Segment] = []
        for text, style in zip(cells, styles, strict=True):
            if segments and segments[-1].style == style:
                segments[-1] = Segment(segments[-1].text + text, style)
            else:
                segments.append(Segment(text, style))
        return Strip(segments).adjust_cell_length(width, base)


def _kept(at: int, length: int, window: int) -> int:
    if length <= window:
        return -((window - length) // 2)
    return max(min(at, length - window), 0)


class NeighbourhoodScreen(Dialog[str | None]):
    """Gives the address of the node in the centre where that is another one than at first, else None."""

    DEFAULT_CSS = """
    NeighbourhoodScreen #around { width: 100%; height: 100%; border: round $primary; background: $surface; }
    NeighbourhoodScreen #around { padding: 0 1; }
    NeighbourhoodScreen DrawingView { width: 1fr; height: 1fr; background: $surface; }
    NeighbourhoodScreen DrawingView .lines--plain { color: $foreground; background: $surface; }
    NeighbourhoodScreen DrawingView .lines--title { color: $primary; background: $surface; text-style: bold; }
    NeighbourhoodScreen DrawingView .lines--quiet { color: $foreground 60%; background: $surface; }
    NeighbourhoodScreen DrawingView .lines--cursor { color: $foreground; background: $surface; text-style: reverse; }
    """

    def __init__(self, ref: NodeRef, jobs: Jobs, glyphs: Glyphs, *, hops: int | None = None) -> None:
        super().__init__()
        self._first = self._ref = ref
        self._jobs = jobs
        self._glyphs: Glyphs = glyphs
        self._hops = max(min(HOPS if hops is None else hops, MOST_HOPS), 1)
        self._before: list[NodeRef] = []
        self._found: Surroundings | None = None

    def compose(self) -> ComposeResult:
        """Title, drawing, the chosen box in words, keys."""
        with Vertical(id="around"):
            yield Bar(id="dialog-title")
            yield DrawingView(id="drawing")
            yield Bar(id="dialog-said")
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """Draw."""
        self.query_one("#dialog-hint", Bar).show((Span(_HINT, "quiet"),))
        self.query_one(DrawingView).focus()
        self._draw()

    def _draw(self) -> None:
        ref, hops, glyphs = self._ref, self._hops, self._glyphs

        def work() -> tuple[Surroundings, Drawing]:
            found = surroundings(ref, hops)
            return found, drawing(found.boxes, found.edges, glyphs)

        self._title("drawing ...")
        self._jobs.start("neighbourhood", "drawing", work, self._drawn)

    def _drawn(self, made: tuple[Surroundings, Drawing]) -> None:
        if not self.is_mounted:
            return
        found, drawn = made
        self._found = found
        self.query_one(DrawingView).show(drawn, found.positions.index(self._ref.position))
        said = [counted(len(found.boxes), "box").replace("boxs", "boxes")]
        if found.left_out:
            said.append(f"{found.left_out:,} more do not fit")
        if drawn.cut:
            said.append(f"{counted(drawn.cut, 'long line')} not drawn")
        self._title(", ".join(said))
        self._say()

    def _title(self, more: str) -> None:
        node = self._ref.node
        name = visible(node.name or "", 60)
        steps = counted(self._hops, "step")
        self.query_one("#dialog-title", Bar).show((
            Span(f"{self._ref.position} {visible(node.op_type or '?', 40)} {name}".rstrip(), "title"),
            Span(f"   up to {steps} away: {more}", "quiet"),
        ))  # fmt: skip

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
        more = self._found.boxes[view.chosen].more
        hidden = f"  joined to {more:,} more" if more else ""
        self.query_one("#dialog-said", Bar).show((Span(text), Span(f"  {kind}", "quiet"), Span(hidden, "quiet")))

    def on_key(self, event: events.Key) -> None:
        """See the line of keys at the bottom."""
        event.stop()
        event.prevent_default()
        view = self.query_one(DrawingView)
        pressed = event.character if event.is_printable else event.key
        moves = {"left": (-1, 0), "h": (-1, 0), "right": (1, 0), "l": (1, 0), "up": (0, -1), "k": (0, -1)}
        moves |= {"down": (0, 1), "j": (0, 1)}
        if pressed in moves:
            view.move(*moves[pressed])
            self._say()
            return
        match pressed:
            case "escape" | "q" | "ctrl+c":
                self._jobs.drop("neighbourhood")
                self.dismiss(None if self._ref.position == self._first.position else self._ref.address)
            case "enter":
                self._centre(view.chosen)
            case "[" | "ctrl+o" if self._before:
                self._ref = self._before.pop()
                self._draw()
            case "+" | "=":
                self._step(1)
            case "-" | "_":
                self._step(-1)

    def _centre(self, box: int) -> None:
        position = None if self._found is None else self._found.positions[box]
        if position is not None and position != self._ref.position:
            self._before.append(self._ref)
            self._ref = NodeRef(self._ref.scope, position)
            self._draw()

    def _step(self, more: int) -> None:
        hops = max(min(self._hops + more, MOST_HOPS), 1)
        if hops != self._hops:
            self._hops = hops
            self._draw()
