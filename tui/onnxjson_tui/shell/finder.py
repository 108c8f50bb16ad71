"""Search in the list of nodes."""

from collections.abc import Callable, Sequence

from onnxjson_tui.rows.node_text import NodeText, Wanted
from onnxjson_tui.shell.graph_screen import GraphScreen


class Finder:
    """Search of one workbench. Places are rows of its list of nodes."""

    def __init__(self, bench: GraphScreen) -> None:
        self._bench = bench
        self._text: NodeText | None = None
        self._text_of: object = None
        self._places: Sequence[int] = ()
        self._places_of: object = None
        self.wanted: Wanted | None = None
        """The search that ``n`` continues."""
        self.selector = ""
        """Selector of the filter, for editing it; "" if the nodes were chosen in another way."""

    def with_text(self, then: Callable[[NodeText], None]) -> None:
        """Pass the text of the listed nodes to `then`; built in a thread for a big graph."""
        bench, scope = self._bench, self._bench.scope
        if scope is None:
            bench.say("there are no nodes")
            return
        shown = (bench.session.revision, scope.address, bench.filter)
        if self._text is not None and self._text_of == shown:
            then(self._text)
            return
        positions = bench.chosen
        graph = scope

        def made(text: NodeText) -> None:
            if (bench.session.revision, graph.address, bench.filter) == shown:
                self._text, self._text_of = text, shown
                then(text)

        bench.compute("search", "reading the names", lambda: NodeText(graph, positions), made)

    def with_places(self, what: Wanted, then: Callable[[Sequence[int]], None]) -> None:
        """Pass every match to `then`; found in a thread for a big graph. An invalid pattern is reported."""

        bench = self._bench

        def look(text: NodeText) -> None:
            def keep(found: list[int]) -> None:
                self._places, self._places_of = found, (what, id(text))
                then(found)

            if self._places_of == (what, id(text)):
                then(self._places)
            else:
                bench.compute("search", "searching", lambda: text.all(what), keep)

        self.with_text(look)
