"""What is looked for in the graph that is shown: the text of its nodes, the matches, the filter."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from onnxjson.display import counted, visible
from onnxjson.errors import SelectorError
from onnxjson.index import Scope
from onnxjson.selector_syntax import parse
from onnxjson.selectors import select_nodes
from onnxjson_tui.node_text import NodeText, Wanted
from onnxjson_tui.rows.nodes import filtered
from onnxjson_tui.session import Session

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_WITH_MEANING: Final = re.compile(r"[*?\s]")
"""What is not itself within the value of a term."""


class Finder:
    """The search of one workbench. Places are rows of its list of nodes."""

    def __init__(self, bench: "Workbench") -> None:
        self._bench = bench
        self._text: NodeText | None = None
        self._text_of: object = None
        self._places: Sequence[int] = ()
        self._places_of: object = None
        self.wanted: Wanted | None = None
        """What ``n`` goes on looking for."""
        self.selector = ""
        """The selector of the filter, so that it can be changed; "" where another thing chose the nodes."""

    def with_text(self, then: Callable[[NodeText], None]) -> None:
        """Goes on with the text of the nodes that are listed; in a thread for a big graph."""
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

        if bench.is_small:
            made(NodeText(graph, positions))
        else:
            bench.jobs.start("search", "reading the names", lambda: NodeText(graph, positions), made)

    def with_places(self, what: Wanted, then: Callable[[Sequence[int]], None]) -> None:
        """Goes on with every match; in a thread for a big graph. A misspelled pattern is said."""

        bench = self._bench

        def look(text: NodeText) -> None:
            def keep(found: list[int]) -> None:
                self._places, self._places_of = found, (what, id(text))
                then(found)

            if self._places_of == (what, id(text)):
                then(self._places)
            elif not bench.is_small:
                bench.jobs.start("search", "searching", lambda: text.all(what), keep)
            else:
                try:
                    found = text.all(what)
                except SelectorError as error:
                    bench.failed(error)
                else:
                    keep(found)

        self.with_text(look)


def filter_positions(session: Session, scope: Scope, typed: str, *, is_complete: bool = True) -> tuple[str, list[int]]:
    """The selector that is meant, and the positions of the nodes of one graph that it finds.

    A word that nothing is called by is looked for within names.

    Args:
        session: has the model.
        scope: the graph.
        typed: what a person typed.
        is_complete: whether that is all; else nobody looks for names that are like a word that finds nothing.

    Raises:
        SelectorError: it is misspelled or finds nothing.
        LimitError: its pattern takes too many steps.
    """
    index = session.index
    name = parse(typed).name
    is_word = name is not None and not name.quoted and typed == name.text and not _WITH_MEANING.search(typed)
    if is_word and not index.nodes_with("name", typed) and not index.nodes_with("output", typed):
        positions = [place for place, node in enumerate(scope.graph.node) if typed in (node.name or "")]
        if positions:
            return f"name:*{typed}*", positions
        if not is_complete:
            raise SelectorError(f'no node of this graph has "{visible(typed)}" in its name')
    refs = select_nodes(session.model, index, typed)
    positions = filtered(refs, scope)
    if not positions:
        raise SelectorError(f"no node of this graph; {counted(len(refs), 'node')} of others")
    return typed, positions
