"""The map of a graph: boxes for lines down to nodes, coloured by a number about them."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from textual import events
from textual.app import ComposeResult

from onnxjson.model.display import ELLIPSIS, visible
from onnxjson.model.document import Type
from onnxjson.model.index import NodeRef
from onnxjson.rendering.tables import Line, Span, shortened
from onnxjson_tui.rows.beside_nodes import Figures
from onnxjson_tui.rows.folding import Fold
from onnxjson_tui.rows.graph_drawing import Drawing, drawing
from onnxjson_tui.rows.graph_parts import GraphMap, Level, Part
from onnxjson_tui.shell.keyed import HELP, KeyedScreen, screen_key
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Arguments
from onnxjson_tui.widgets.drawing_view import DrawingView
from onnxjson_tui.widgets.lines import Bar

_TITLE: Final = 20  # columns of a box in the title
_HOPS: Final = 3  # steps around a node without a count
TypeOf = Callable[[str], Type | None]


class _Drawn(NamedTuple):
    """One level on the screen."""

    path: tuple[Part, ...]  # the boxes that it is in, the outermost first
    level: Level
    drawing: Drawing
    chosen: int  # number of the box that is chosen first


class MapScreen(KeyedScreen[tuple[NodeRef, str] | None]):
    """Shows the map; returns a node and an action: go to it, map a graph in it, or map the graph around it."""

    KEYS = (
        screen_key(("enter",), "open the box, the graph of a node, or the nodes around a node", "_open", "open"),
        screen_key(("backspace", "-"), "back to the enclosing box", "_leave", "back"),
        screen_key(("h", "left"), "box to the left", lambda screen, _: screen.move(-1, 0)),
        screen_key(("l", "right"), "box to the right", lambda screen, _: screen.move(1, 0)),
        screen_key(("j", "down"), "box below", lambda screen, _: screen.move(0, 1)),
        screen_key(("k", "up"), "box above", lambda screen, _: screen.move(0, -1)),
        screen_key(("c",), "colour by the next number: changes, MACs, time, difference", "_recolour", "colour"),
        screen_key(("a",), "the nodes around a node; 2a those within two steps", "_around", "around"),
        screen_key(("n",), "next box with a number, the largest first", "_next", "largest"),
        screen_key(("g",), "go to the first node of the box in the list", "_go", "list"),
        screen_key(("q", "escape", "ctrl+c"), "close the map", "_close", "close"),
        HELP,
    )

    def __init__(
        self,
        ref: NodeRef,
        terminal: Terminal,
        known: Callable[[], dict[str, Figures]],
        more: Callable[[], tuple[dict[str, Figures], TypeOf]] | None,
        hops: int | None = None,
        folds: Sequence[Fold] = (),
    ) -> None:
        """Draw the graph of a node with its lines as boxes, or with `hops` the nodes within so many steps.

        `more` finds further numbers and types than the `known`, after the first drawing. Both run in a thread.
        """
        super().__init__(terminal, self.KEYS)
        self._ref, self._known, self._more, self._hops = ref, known, more, hops
        self._folds = folds
        self._figures: dict[str, Figures] = {}
        self._title = ""
        self._map: GraphMap | None = None
        self._drawn: _Drawn | None = None

    def body(self) -> ComposeResult:
        """Drawing, the chosen box in words."""
        yield DrawingView(id="drawing")
        yield Bar(id="said")

    def on_mount(self) -> None:
        """Draw the first level."""
        self.drawing.focus()
        self._draw((), self._ref.position, hops=self._hops)

    @property
    def drawing(self) -> DrawingView:
        """The drawing."""
        return self.query_one(DrawingView)

    def title_line(self) -> tuple[Line, str]:
        """Return the path of the boxes; at the right what the colours are."""
        path = () if self._drawn is None else self._drawn.path
        name = visible(self._ref.scope.graph.name or "graph", 60)
        labels = [shortened(each.label, _TITLE) for each in path]
        if len(labels) > 2:
            labels = [ELLIPSIS, *labels[-2:]]
        spans = [Span(f" {' > '.join(['map of ' + name, *labels])}", "title")]
        if self._drawn is not None:
            spans.append(Span(f"  {len(self._drawn.level.parts):,} boxes", "quiet"))
        return tuple(spans), f"colour: {self._title}" if self._title else ""

    def _draw(self, path: tuple[Part, ...], position: int, chosen: int = -1, *, hops: int | None = None) -> None:
        """Draw the content of the last box of a path, or with `hops` what is around a node; its box is chosen."""
        shown, room = self._figures.get(self._title), max(self.size.height // 4, 6)
        scope, folds, known, known_figures = self._ref.scope, self._folds, self._map, self._known
        widest = max(self.size.width // 2, 20)  # two boxes beside each other fit

        def work() -> tuple[GraphMap, _Drawn, dict[str, Figures]]:
            graph_map, others = known or GraphMap(scope, folds, widest), {} if known else known_figures()
            figures = others.get(next(iter(others), ""), shown)
            boxes = path if hops is None else (*path, graph_map.around(position, hops))
            level = graph_map.level(graph_map.inside(boxes[-1]) if boxes else graph_map.whole(room), figures)
            drawn = drawing(level.boxes, level.edges)
            box = chosen if chosen >= 0 else max(level.owner[position], 0)
            return graph_map, _Drawn(boxes, level, drawn, box), others

        self.jobs.start("map", "drawing the map", work, self._show, holds_keys=True)

    def _show(self, found: tuple[GraphMap, _Drawn, dict[str, Figures]]) -> None:
        self._map, self._drawn, figures = found
        self._figures |= figures
        self._title = self._title or next(iter(figures), "")
        if self._more is not None:
            self.jobs.start("more", "computing costs and types", self._more, self._take)
            self._more = None
        drawn = self._drawn
        self.drawing.show(drawn.drawing, drawn.chosen, drawn.level.styles)
        self._say()
        self.draw_bars()

    def _take(self, added: tuple[dict[str, Figures], TypeOf]) -> None:
        """Draw with more numbers and types."""
        if self._map is not None and self._drawn is not None:
            self._figures |= added[0]
            self._title = self._title or next(iter(added[0]), "")
            self._map.type_of = added[1]
            self._draw(self._drawn.path, 0, self.drawing.chosen)

    def on_resize(self, event: events.Resize) -> None:
        """Draw for another width."""
        super().on_resize(event)
        if self._drawn is not None:
            self._draw(self._drawn.path, 0, self.drawing.chosen)

    def _say(self) -> None:
        """Describe the chosen box."""
        drawn, part = self._drawn, self._part
        if drawn is None or self._map is None:
            return
        box = drawn.level.boxes[self.drawing.chosen]
        line: list[Span] = [Span(f" {box.label}")]
        if part is not None:
            node = self._ref.scope.graph.node[part.first]
            line.append(Span(f"  {visible(node.name or '', 300)}", "quiet"))
        if box.below:
            line.append(Span(f"  -> {box.below[0]}", "quiet"))
        self.query_one("#said", Bar).show(tuple(line))

    @property
    def _part(self) -> Part | None:
        """The chosen box; None for a value from outside or to it."""
        parts, chosen = () if self._drawn is None else self._drawn.level.parts, self.drawing.chosen
        return parts[chosen] if chosen < len(parts) else None

    def move(self, across: int, down: int) -> None:
        """Choose the next box in a direction."""
        self.drawing.move(across, down)
        self._say()

    # Keys

    def _close(self, arguments: Arguments) -> None:
        self.dismiss(None)

    def _open(self, arguments: Arguments) -> None:
        part = self._part
        if part is None or self._drawn is None:
            self.say("this value comes from outside the box, or leaves it")
        elif part.size > 1:
            self._draw((*self._drawn.path, part), part.first)
        elif any([child.owner == (self._ref.scope, part.first) for child in self._ref.scope.children]):
            self.dismiss((NodeRef(self._ref.scope, part.first), "inside"))
        elif (
            self._drawn.path
            and self._drawn.path[-1].label.startswith("around")
            and self._drawn.path[-1].first == part.first
        ):
            self.say("g shows the node in the list")
        else:
            self._draw(self._drawn.path, part.first, hops=arguments.number or _HOPS)

    def _around(self, arguments: Arguments) -> None:
        part = self._part
        if part is not None and self._drawn is not None:
            self._draw(self._drawn.path, part.first, hops=arguments.number or _HOPS)

    def _leave(self, arguments: Arguments) -> None:
        owner = self._ref.scope.owner
        if owner is not None and self._drawn is not None and not self._drawn.path:
            self.dismiss((owner, "around"))
        elif self._drawn is None or not self._drawn.path:
            self.say("this is the whole graph; q closes the map")
        else:
            self._draw(self._drawn.path[:-1], self._drawn.path[-1].first)

    def _go(self, arguments: Arguments) -> None:
        part = self._part
        if part is not None:
            self.dismiss((NodeRef(self._ref.scope, part.first), "go"))

    def _recolour(self, arguments: Arguments) -> None:
        titles = list(self._figures)
        if self._drawn is None or not titles:
            self.say("there are no numbers yet: gn in the list of nodes computes costs or runs the model")
            return
        self._title = titles[(titles.index(self._title) + 1) % len(titles)]
        self._draw(self._drawn.path, 0, self.drawing.chosen)

    def _next(self, arguments: Arguments) -> None:
        values = () if self._drawn is None else self._drawn.level.figures
        order = sorted([each for each, value in enumerate(values) if value], key=lambda each: -values[each])
        if not order:
            self.say("no box has a number; c colours by another one")
            return
        chosen = self.drawing.chosen
        at = order.index(chosen) + 1 if chosen in order else 0
        self.drawing.choose(order[at % len(order)])
        self._say()
