"""Searching and filtering the nodes of the graph that is shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from onnxjson.display import counted, visible
from onnxjson.errors import OnnxJsonError
from onnxjson_tui.action import Action, Given
from onnxjson_tui.completion import selector_offers
from onnxjson_tui.finder import filter_positions
from onnxjson_tui.jobs import said
from onnxjson_tui.node_text import Direction, NodeText, Wanted, step, wanted

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


class _Search:
    """A search while it is typed: the cursor goes to the first match from where it stood."""

    def __init__(self, bench: "Workbench") -> None:
        self._bench = bench
        self._origin = bench.nodes.cursor
        self._top = bench.nodes.scroll_offset.y
        self._pane = bench.pane
        self._typed = ""

    def changed(self, typed: str) -> None:
        """Another letter."""
        self._typed = typed
        if typed:
            self._bench.finder.with_text(self._look)
        else:
            self._bench.nodes.move_to(self._origin)

    def _look(self, text: NodeText) -> None:
        what = wanted(self._typed)
        if what.kind == "text":
            number = text.nearest(what, self._origin)
            self._bench.nodes.move_to(self._origin if number is None else number)
        if self._typed:
            self._bench.finder.with_places(what, lambda places: self._counted(what, places))

    def _counted(self, what: Wanted, places: Sequence[int]) -> None:
        if what != wanted(self._typed) or not self._bench.prompt.is_asking:
            return
        found = step(places, self._origin - 1, 1, 1)
        if found is None:
            self._bench.nodes.move_to(self._origin)
            self._bench.say(f"no node has {what.shown}", "bad", keep=False)
        else:
            self._bench.nodes.move_to(found.number)
            self._bench.say(_match(places, found.number, found.wrapped, 1), keep=False)

    def done(self, typed: str | None) -> None:
        """Enter, which stays there, or escape, which goes back."""
        bench = self._bench
        self._typed = ""
        if typed is None:
            bench.nodes.move_to(self._origin)
            bench.nodes.scroll_to(y=self._top, animate=False)
            bench.focus_pane(self._pane)
            return
        bench.focus_pane("nodes")
        bench.nodes.move_to(self._origin)
        if typed:
            bench.finder.wanted = wanted(typed)
        # The node under the cursor counts, where the search began on it.
        _go_on(bench, self._origin - 1, 1, 1)


def search(bench: "Workbench", given: Given) -> None:
    """Asks what to look for, or looks for the words after the name of the action."""
    if bench.scope is None:
        bench.say("there are no nodes")
        return
    looking = _Search(bench)
    if given.text:
        looking.done(given.text)
        return
    bench.prompt.ask("/", looking.done, changed=looking.changed)


def next_match(bench: "Workbench", given: Given) -> None:
    """On to the next match."""
    _go_on(bench, bench.nodes.cursor, given.number or 1, 1)


def previous_match(bench: "Workbench", given: Given) -> None:
    """Back to the match before."""
    _go_on(bench, bench.nodes.cursor, given.number or 1, -1)


def same_operator(bench: "Workbench", given: Given) -> None:
    """To the next node of the operator under the cursor; n and N go on from there."""
    number = bench.nodes.cursor

    def look(text: NodeText) -> None:
        if number < len(text):
            bench.finder.wanted = Wanted(text.operator(number), "operator")
            _go_on(bench, number, given.number or 1, 1)

    bench.finder.with_text(look)


def _go_on(bench: "Workbench", number: int, count: int, direction: Direction) -> None:
    what = bench.finder.wanted
    if what is None:
        bench.say("nothing was searched for yet; / searches")
        return

    def there(places: Sequence[int]) -> None:
        found = step(places, number, count, direction)
        if found is None:
            bench.say(f"no node has {what.shown}{' and fits the filter' if bench.filter else ''}", "bad")
            return
        if bench.here is not None and found.number != bench.nodes.cursor:
            bench.session.places.jumps.leave(bench.here.address)
        bench.nodes.move_to(found.number)
        bench.say(f"{what.shown}: {_match(places, found.number, found.wrapped, direction)}")

    bench.finder.with_places(what, there)


def _match(places: Sequence[int], number: int, wrapped: bool, direction: Direction) -> str:
    where = ", on from the top" if direction == 1 else ", on from the end"
    return f"match {places.index(number) + 1:,} of {len(places):,}{where if wrapped else ''}"


class _Filter:
    """A filter while it is typed: the list follows; what is no selector yet changes nothing."""

    def __init__(self, bench: "Workbench") -> None:
        self._bench = bench
        self._before = (bench.filter, bench.chosen, bench.finder.selector)
        self._cursor = None if bench.here is None else bench.here.position
        self._pane = bench.pane
        self._typed = bench.finder.selector if bench.filter else ""
        self._asked: str | None = None
        """What a thread is finding out."""

    @property
    def text(self) -> str:
        """What stands there at first."""
        return self._typed

    def changed(self, typed: str) -> None:
        """Another letter."""
        if typed.strip() == self._typed:
            return
        self._typed = typed.strip()
        if self._asked is None:
            self._find()

    def _find(self) -> None:
        """Finds out what was typed last; a thread at a time, however fast somebody types."""
        bench, scope, typed = self._bench, self._bench.scope, self._typed
        if scope is None or not typed:
            self._show("", None)
            return
        graph = scope
        if bench.is_small:
            try:
                self._show(*filter_positions(bench.session, graph, typed, is_complete=False))
            except Exception as error:
                self._wrong(error)
            return
        self._asked = typed
        bench.jobs.start(
            "filter",
            "filtering",
            lambda: filter_positions(bench.session, graph, typed, is_complete=False),
            lambda found: self._found(typed, found),
            lambda error: self._found(typed, error),
        )

    def _found(self, typed: str, found: "tuple[str, list[int]] | BaseException") -> None:
        self._asked = None
        if not self._bench.prompt.is_asking:
            return
        if typed != self._typed:
            self._find()
        elif isinstance(found, BaseException):
            self._wrong(found)
        else:
            self._show(*found)

    def _wrong(self, error: BaseException) -> None:
        """Says what is wrong so far; more letters may mend it."""
        if isinstance(error, OnnxJsonError):
            self._bench.say(said(error), "bad", keep=False)
        else:
            self._bench.failed(error)

    def _show(self, text: str, positions: list[int] | None) -> None:
        bench = self._bench
        bench.finder.selector = text
        if positions is None and bench.chosen is None:
            return
        bench.show_only(text, positions)
        bench.say("" if positions is None else f"{counted(len(positions), 'node')}", keep=False)

    def done(self, typed: str | None) -> None:
        """Enter, which keeps the filter, or escape, which gives it up."""
        bench = self._bench
        bench.jobs.drop("filter")
        if typed is None:
            text, positions, bench.finder.selector = self._before
            if (text, positions) != (bench.filter, bench.chosen):
                bench.show_only(text, positions)
                if positions is None and self._cursor is not None:
                    bench.nodes.move_to(self._cursor)
            bench.focus_pane(self._pane)
            return
        bench.focus_pane("nodes")
        filter_by(bench, typed)


def filter_nodes(bench: "Workbench", given: Given) -> None:
    """Asks which nodes are to be listed."""
    if given.text:
        filter_by(bench, given.text)
        return
    if bench.scope is None:
        bench.say("there are no nodes")
        return
    asking = _Filter(bench)
    _ask_filter(bench, asking.text, asking)


def _ask_filter(bench: "Workbench", text: str, asking: _Filter) -> None:
    bench.prompt.ask(
        "filter",
        asking.done,
        text=text,
        changed=asking.changed,
        complete=lambda typed: selector_offers(bench.session, typed),
    )


def filter_by(bench: "Workbench", selector: str) -> None:
    """Lists the nodes that a selector finds; where it finds none, asks again."""
    scope, typed = bench.scope, selector.strip()
    if scope is None or not typed:
        clear_filter(bench)
        return
    graph = scope

    def found(shown: tuple[str, list[int]]) -> None:
        bench.finder.selector = shown[0]
        bench.show_only(*shown)
        bench.say(f"{counted(len(shown[1]), 'node')}; esc shows all again")

    def failed(error: BaseException) -> None:
        asking = _Filter(bench)
        _ask_filter(bench, selector, asking)
        bench.failed(error)

    if bench.is_small:
        try:
            shown = filter_positions(bench.session, graph, typed)
        except Exception as error:
            failed(error)
        else:
            found(shown)
        return
    bench.jobs.start("filter", "filtering", lambda: filter_positions(bench.session, graph, typed), found, failed)


def clear_filter(bench: "Workbench") -> None:
    """Lists all nodes again."""
    bench.finder.selector = ""
    if bench.filter:
        bench.show_only("", None)


def give_up(bench: "Workbench", given: Given) -> None:
    """Goes back one step of what was begun: jobs, then the pane, then the selection, then the filter."""
    labels = [job.label for job in bench.jobs.running if not job.is_kept and job.group != "rows"]
    if labels:
        for job in bench.jobs.running:
            if not job.is_kept and job.group != "rows":
                bench.jobs.drop(job.group)
        bench.say(f"dropped: {', '.join(map(visible, labels))}")
    elif bench.pane != "nodes":
        bench.focus_pane("nodes")
    elif bench.session.places.selected:
        bench.session.places.select(())
        bench.nodes.refresh()
        bench.say("nothing is selected any more")
    elif bench.filter:
        clear_filter(bench)
        bench.say("all nodes")


ACTIONS: Final = (
    Action(
        "search", "search in operators, names and outputs", ("/",), search, "Find", footer="search", argument="[TEXT]",
        help="Small letters find capitals, too. Between slashes, as in /conv.*bias/, it is a regular expression. "
        "enter stays at the match, esc goes back.",
    ),
    Action("next-match", "next match", ("n",), next_match, "Find"),
    Action("previous-match", "match before", ("N",), previous_match, "Find"),
    Action("same-operator", "next node of the same operator", ("*",), same_operator, "Find"),
    Action(
        "filter", "list only some nodes", ("f",), filter_nodes, "Find", footer="filter", argument="[SELECTOR]",
        help="By a selector, such as op:Conv dtype:float16 name:*attn*; a word alone is looked for in names. "
        "tab completes.",
    ),
    Action(
        "escape", "drop what runs; back to the nodes; nothing selected; no filter", ("escape",), give_up, "Find",
        help="One of these each time, in this order.",
    ),
)  # fmt: skip
