"""The search in the list of nodes: its text, its matches, a match in another graph."""

from collections.abc import Callable, Sequence
from functools import partial

from onnxjson.model.document import Model
from onnxjson.model.errors import NoMatchError
from onnxjson.model.index import NodeRef, Scope
from onnxjson.patterns.searching import find
from onnxjson.patterns.selector_terms import has_terms
from onnxjson.patterns.selectors import select_nodes
from onnxjson_tui.rows.choices import NodeText, Wanted
from onnxjson_tui.shell.graph_screen import GraphScreen


class Finder:
    """Search of one screen. Places are rows of its list of nodes."""

    def __init__(self, screen: GraphScreen) -> None:
        self._screen = screen
        self._text: NodeText | None = None
        self._text_of: object = None
        self._places: Sequence[int] = ()
        self._places_of: object = None
        self.wanted: Wanted | None = None  # the search that ``n`` continues
        self.searched: tuple[Model, str] | None = None  # the last pattern of a filter, and the model then
        self.selector = ""  # selector of the filter, for editing it; "" if the nodes were chosen in another way

    @property
    def place(self) -> int:
        """Number of the node under the cursor among those that are searched: all, or those of the filter."""
        screen, ref = self._screen, self._screen.here
        return screen.nodes.cursor if screen.chosen is not None else 0 if ref is None else ref.position

    def show(self, number: int) -> None:
        """Move the cursor to one of the nodes that are searched."""
        if self._screen.chosen is not None:
            self._screen.nodes.move_to(number)
        else:
            self._screen.show_position(number)

    def with_text(self, receive: Callable[[NodeText], None]) -> None:
        """Pass the text of the listed nodes to `receive`; built in a thread for a big graph."""
        screen, scope = self._screen, self._screen.scope
        if scope is None:
            screen.say("there are no nodes")
            return
        shown = (screen.session.revision, scope.address, screen.filter)
        if self._text is not None and self._text_of == shown:
            receive(self._text)
            return

        def made(text: NodeText) -> None:
            if (screen.session.revision, scope.address, screen.filter) == shown:
                self._text, self._text_of = text, shown
                receive(text)

        screen.compute("search", "reading the names", partial(NodeText, scope, screen.chosen), made)

    def with_places(self, what: Wanted, receive: Callable[[Sequence[int]], None]) -> None:
        """Pass every match to `receive`; found in a thread for a big graph. An invalid pattern is reported."""
        screen = self._screen

        def look(text: NodeText) -> None:
            def keep(found: list[int]) -> None:
                self._places, self._places_of = found, (what, id(text))
                receive(found)

            if self._places_of == (what, id(text)):
                receive(self._places)
            else:
                screen.compute("search", "searching", lambda: self._all(what, text, screen.scope), keep)

        self.with_text(look)

    def with_elsewhere(self, what: Wanted, receive: Callable[[NodeRef | None], None]) -> None:
        """Pass the first match in another graph to `receive`; None without one, or if the list is filtered."""
        screen = self._screen

        def first() -> NodeRef | None:
            for scope in screen.session.index.scopes if not screen.filter else ():
                places = self._all(what, NodeText(scope), scope) if scope is not screen.scope else ()
                if places:
                    return NodeRef(scope, places[0])
            return None

        screen.compute("search", "searching the other graphs", first, receive)

    def _all(self, what: Wanted, text: NodeText, scope: Scope | None) -> list[int]:
        session = self._screen.session
        if what.kind != "match":
            numbers = text.all(what)
            if numbers or not has_terms(what.text):
                return numbers
            try:  # a selector, unless names contain it: those of TensorFlow look like input:0
                refs = select_nodes(session.model, session.index, what.text)
            except NoMatchError:
                return []
        else:
            found = find(session.model, what.text, overlapping=True, index=session.index)
            refs = tuple([match.root for match in found])
        places = {ref.position for ref in refs if ref.scope is scope}
        return [number for number, position in enumerate(text.positions) if position in places]
