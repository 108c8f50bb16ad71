"""Search and filter the nodes of the current graph."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from onnxjson.editing.pattern_replacement import ReplacePattern
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import EditError, NoMatchError, OnnxJsonError
from onnxjson.model.index import NodeRef, Scope
from onnxjson.patterns.generalising import constants_of, generalise, pattern_of
from onnxjson.patterns.selector_terms import parse
from onnxjson.patterns.selectors import select_nodes
from onnxjson_tui.names.completion import selector_offers
from onnxjson_tui.rows.choices import PATTERN, Choice, Direction, Wanted, step, wanted
from onnxjson_tui.rows.nodes import filtered
from onnxjson_tui.session.history import Preview
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments

_WITH_MEANING: Final = re.compile(r"[*?\s]")  # characters with a meaning of their own in the value of a term


class _Search:
    """A search while the user types: the cursor goes to the first match after its old row."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._origin = workbench.finder.place
        self._row, self._toggled = workbench.nodes.cursor, frozenset(workbench.toggled)
        self._top = workbench.nodes.scroll_offset.y
        self._pane = workbench.pane
        self._typed = ""

    def changed(self, typed: str) -> None:
        """Search for another text."""
        self._typed = typed
        if typed:
            what = wanted(typed)
            self._workbench.finder.with_places(what, lambda places: self._counted(what, places))
        else:
            self._return()

    def _return(self) -> None:
        """Go back to the row where the search began, with the lines folded as they were."""
        self._workbench.fold_as(self._toggled)
        self._workbench.nodes.move_to(self._row)

    def _counted(self, what: Wanted, places: Sequence[int]) -> None:
        if what != wanted(self._typed) or not self._workbench.prompt.is_asking:
            return
        next_match = step(places, self._origin - 1, 1, 1)
        self._return()
        if next_match is None:
            self._workbench.finder.with_elsewhere(what, lambda ref: self._elsewhere(what, ref))
        else:
            self._workbench.finder.show(next_match.number)
            self._workbench.say(_match(places, next_match.number, next_match.wrapped, 1), keep=False)

    def _elsewhere(self, what: Wanted, ref: NodeRef | None) -> None:
        if what == wanted(self._typed) and self._workbench.prompt.is_asking:
            no = f"no node of this graph matches {what.shown}"
            self._workbench.say(no if ref is None else f"{no}; enter goes to another graph", "bad", keep=False)

    def done(self, typed: str | None) -> None:
        """Stay at the match after enter; go back after escape (None)."""
        workbench = self._workbench
        self._typed = ""
        if typed is None:
            self._return()
            workbench.nodes.scroll_to(y=self._top, animate=False)
            workbench.focus_pane(self._pane)
            return
        workbench.focus_pane("nodes")
        self._return()
        if typed:
            workbench.finder.wanted = wanted(typed)
        # The node where the search began counts.
        _go_on(workbench, self._origin - 1, 1, 1)


def _search(workbench: Workbench, arguments: Arguments) -> None:
    looking = _Search(workbench)
    if workbench.scope is None:
        workbench.say("there are no nodes")
    elif arguments.text:
        looking.done(arguments.text)
    else:
        workbench.prompt.ask("/", looking.done, changed=looking.changed)


def _go_on(workbench: Workbench, number: int, count: int, direction: Direction) -> None:
    what = workbench.finder.wanted
    if what is None:
        workbench.say("there is no search yet; / starts one")
        return

    def there(places: Sequence[int]) -> None:
        next_match = step(places, number, count, direction)
        if next_match is None:
            workbench.finder.with_elsewhere(what, elsewhere)
            return
        if workbench.here is not None and next_match.number != workbench.finder.place:
            workbench.session.places.jumps.leave(workbench.here.address)
        workbench.finder.show(next_match.number)
        workbench.say(f"{what.shown}: {_match(places, next_match.number, next_match.wrapped, direction)}")

    def elsewhere(ref: NodeRef | None) -> None:
        if ref is None:
            mistake = f"; {what.mistake}" if what.mistake else ""
            workbench.say(f"no {'listed ' if workbench.filter else ''}node matches {what.shown}{mistake}", "bad")
        elif workbench.go(ref.address):
            workbench.say(f"{what.shown}: first match in another graph; ctrl+o goes back")

    workbench.finder.with_places(what, there)


def _match(places: Sequence[int], number: int, wrapped: bool, direction: Direction) -> str:
    where = ", continued from the top" if direction == 1 else ", continued from the end"
    return f"match {places.index(number) + 1:,} of {len(places):,}{where if wrapped else ''}"


class ElsewhereError(NoMatchError):
    """Only another graph has such nodes."""

    def __init__(self, refs: Sequence[NodeRef]) -> None:
        super().__init__(f"no node of this graph; {counted(len(refs), 'node')} in other graphs, enter goes there")
        self.scope = refs[0].scope


def filter_positions(session: Session, scope: Scope, typed: str, *, is_complete: bool = True) -> tuple[str, list[int]]:
    """Return a selector, and the positions of the nodes of one graph that it finds.

    A single word that is not the name of a node or value is searched within names. While the user types, no similar
    names are suggested.

    Raises:
        SelectorError: the selector is invalid or finds nothing.
        LimitError: its pattern needs too many steps.
    """
    index = session.index
    name = parse(typed).name
    is_word = name is not None and not name.quoted and typed == name.text and not _WITH_MEANING.search(typed)
    is_word = is_word and not PATTERN.search(typed)
    if is_word and not index.nodes_with("name", typed) and not index.nodes_with("output", typed):
        positions = [place for place, node in enumerate(scope.graph.node) if typed in (node.name or "")]
        if positions:
            return f"name:*{typed}*", positions
        if elsewhere := [ref for ref in index.node_refs if typed in (ref.node.name or "")]:
            raise ElsewhereError(elsewhere)
        if not is_complete:
            raise NoMatchError(f'no node of this graph has "{visible(typed)}" in its name')
    if name is not None and PATTERN.search(typed) and not index.nodes_with("name", typed):
        typed = f"match:'{typed}'"
    refs = select_nodes(session.model, index, typed)
    positions = filtered(refs, scope)
    if not positions:
        raise ElsewhereError(refs)
    return typed, positions


def pattern_in(selector: str) -> str:
    """Return the pattern of a selector that is nothing else; "" for other selectors."""
    return selector.removeprefix("match:'").removesuffix("'") if selector.startswith("match:'") else ""


class _Filter:
    """A filter while the user types: the list follows as soon as the text is a selector."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._before = (workbench.filter, workbench.chosen, workbench.finder.selector)
        self._cursor = None if workbench.here is None else workbench.here.position
        self._pane = workbench.pane
        self._typed = workbench.finder.selector if workbench.filter else ""

    def ask(self, text: str | None = None) -> None:
        """Ask for a selector; the initial text is that of the current filter if it is None."""
        session = self._workbench.session
        self._workbench.prompt.ask(
            "filter",
            self._done,
            text=self._typed if text is None else text,
            changed=self._changed,
            complete=lambda typed: selector_offers(session, typed),
        )

    def _changed(self, text: str) -> None:
        workbench, scope, typed = self._workbench, self._workbench.scope, text.strip()
        if typed == self._typed:
            return
        self._typed = typed
        if scope is None or not typed:
            self._show("", None)
            return

        work = partial(filter_positions, workbench.session, scope, typed, is_complete=False)
        found = partial(self._found, typed)
        workbench.compute("filter", "filtering", work, found, found)

    def _found(self, typed: str, outcome: tuple[str, list[int]] | BaseException) -> None:
        if not self._workbench.prompt.is_asking or typed != self._typed:
            return
        if isinstance(outcome, OnnxJsonError):
            # More letters may correct it. What is not a selector yet leaves the list as it was before.
            if isinstance(outcome, NoMatchError):
                self._show(typed, [])
            elif (self._workbench.filter, self._workbench.chosen) != self._before[:2]:
                self._workbench.show_only(*self._before[:2])
            self._workbench.say(error_text(outcome), "bad", keep=False)
        elif isinstance(outcome, BaseException):
            self._workbench.failed(outcome)
        else:
            self._show(*outcome)

    def _show(self, text: str, positions: list[int] | None) -> None:
        workbench = self._workbench
        workbench.finder.selector = text
        if positions is None and workbench.chosen is None:
            return
        workbench.show_only(text, positions)
        workbench.say("" if positions is None else f"{counted(len(positions), 'node')}", keep=False)

    def _done(self, typed: str | None) -> None:
        """Keep the filter after enter; restore the previous one after escape (None)."""
        workbench = self._workbench
        workbench.jobs.drop("filter")
        if typed is None:
            text, positions, workbench.finder.selector = self._before
            if (text, positions) != (workbench.filter, workbench.chosen):
                workbench.show_only(text, positions)
                if positions is None and self._cursor is not None:
                    workbench.show_position(self._cursor)
            workbench.focus_pane(self._pane)
            return
        workbench.focus_pane("nodes")
        filter_by(workbench, typed, self)


def _filter_nodes(workbench: Workbench, arguments: Arguments) -> None:
    if arguments.text:
        filter_by(workbench, arguments.text)
    elif workbench.scope is None:
        workbench.say("there are no nodes")
    else:
        _Filter(workbench).ask()


def filter_by(workbench: Workbench, selector: str, asked: _Filter | None = None) -> None:
    """List the nodes that a selector finds, in another graph if this one has none; ask again if it finds none."""
    scope, typed = workbench.scope, selector.strip()
    if scope is None or not typed:
        clear_filter(workbench)
        return

    def found(shown: tuple[str, list[int], Scope]) -> None:
        text, positions, other = shown
        if other is not scope:
            workbench.go(f"{other.address}/node/{positions[0]}")
        workbench.finder.selector = text
        searched, pattern = workbench.finder.searched, pattern_in(text)
        if pattern and (searched is None or searched[1] != pattern):
            workbench.finder.searched = workbench.session.model, pattern
        workbench.show_only(text, positions)
        where = "" if other is scope else " of another graph, - leaves it"
        workbench.say(f"{counted(len(positions), 'node')}{where}; esc shows all again")

    def failed(error: BaseException) -> None:
        (asked or _Filter(workbench)).ask(selector)
        workbench.failed(error)

    def find() -> tuple[str, list[int], Scope]:
        try:
            return *filter_positions(workbench.session, scope, typed), scope
        except ElsewhereError as error:
            return *filter_positions(workbench.session, error.scope, typed), error.scope

    workbench.compute("filter", "filtering", find, found, failed)


async def _find_alike(workbench: Workbench, arguments: Arguments) -> None:
    """Ask for a filter that begins as the pattern of the selected nodes, or of the node under the cursor."""
    session = workbench.session
    selected = [select_nodes(session.model, session.index, f"@{each}")[0] for each in session.places.selected]
    refs = selected or ([workbench.here] if workbench.here is not None else [])
    if not refs:
        workbench.say("there are no nodes")
        return
    cut, opened, chosen = pattern_of(session.index, refs), set[int](), ""
    while chosen != "find":
        pattern, constants = constants_of(cut, opened)
        choices = [Choice("find", "list the matches", visible(str(pattern), 300))] + [
            Choice(str(number), visible(text, 200), "any value" if number in opened else "must be so")
            for number, text in enumerate(constants)
        ]
        hint = "enter opens or closes a constant, then lists the matches   esc cancel"
        answer = await workbench.choose("Find alike", choices, hint=hint, is_wide=True) if constants else "find"
        if answer is None:
            return
        chosen = answer
        opened ^= {int(chosen)} if chosen != "find" else set()
    session.places.select(())  # it would limit the edits of the matches
    workbench.nodes.refresh()
    _Filter(workbench).ask(f"match:'{pattern}'")


async def _change_alike(workbench: Workbench, arguments: Arguments) -> None:
    """Change other matches of the last pattern as the one that was edited: the selected ones, or all of them."""
    session, searched = workbench.session, workbench.finder.searched
    if searched is None:
        otherwise = "; v and V select nodes, and edits apply to all of them" if workbench.filter else ""
        workbench.say(f"list the matches of a pattern first (f or g f), and edit one of them{otherwise}")
        return

    def make() -> Preview:
        generalised = generalise(searched[0], session.model, searched[1])
        if not generalised.places:
            raise EditError(f"no other place matches {generalised.pattern}")
        is_selection = bool(session.places.selected)
        edit = ReplacePattern(
            pattern=generalised.pattern, replacement=generalised.replacement, node=generalised.others or None,
            keep=True, where_possible=True, if_any=is_selection,
        )  # fmt: skip
        return session.preview(*(session.on_selection(edit) if is_selection else (edit,)))

    preview = await workbench.jobs.run("edit", "changing the other matches", make)
    if (not preview.patch or await workbench.agree(preview)) and workbench.accept(preview) is not None:
        workbench.finder.searched = session.model, searched[1]


def clear_filter(workbench: Workbench) -> None:
    """List all nodes again."""
    workbench.finder.selector = ""
    if workbench.filter:
        workbench.show_only("", None)


def _give_up(workbench: Workbench, arguments: Arguments) -> None:
    jobs = [job for job in workbench.jobs.running if not job.is_kept]
    if jobs:
        for job in jobs:
            workbench.jobs.drop(job.group)
        workbench.say(f"cancelled: {', '.join([visible(job.label) for job in jobs])}")
    elif workbench.pane != "nodes":
        workbench.focus_pane("nodes")
    elif workbench.drawer.is_open:
        workbench.drawer.close()
    elif workbench.session.places.selected:
        workbench.session.places.select(())
        workbench.nodes.refresh()
        workbench.say("selection cleared")
    elif workbench.filter:
        clear_filter(workbench)
        workbench.say("all nodes")


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "search", "search the nodes", ("/",), _search, "Find", footer="search", argument="[TEXT]",
        help="In operators, names and outputs, else by a selector, such as op:Conv. Lower-case letters also find "
        "capitals. Between slashes, as in /conv.*bias/, it is a regular expression; Softmax(MatMul) is a pattern of "
        "operators. enter stays there, esc goes back.",
    ),
    Action(
        "next-match", "next match", ("n",),
        lambda workbench, arguments: _go_on(workbench, workbench.finder.place, arguments.number or 1, 1), "Find",
    ),
    Action(
        "previous-match", "previous match", ("N",),
        lambda workbench, arguments: _go_on(workbench, workbench.finder.place, arguments.number or 1, -1), "Find",
    ),
    Action(
        "filter", "filter the nodes", ("f",), _filter_nodes, "Find", footer="filter", argument="[SELECTOR]",
        help="By a selector, such as op:Conv dtype:float16 name:*attn*, or by a pattern, such as Softmax(MatMul). "
        "A single word is searched in names. tab completes.",
    ),
    Action(
        "find-alike", "nodes like the selected", ("g f",), _find_alike, "Find",
        help="A filter with the operators, attributes and small constants of the selection. Then edit one match, and "
        "change-alike changes the others; or v selects some, and replace-pattern changes them.",
    ),
    Action(
        "change-alike", "change the others alike", ("g a",), _change_alike, "Find", changes=True,
        help="First list the matches of a pattern with f or g f, and edit one of them. This shows the same change of "
        "all selected matches, or of all others, and makes it.",
    ),
    Action(
        "escape", "cancel, leave, clear", ("escape",), _give_up, "Find",
        help="One at a time: cancels work, goes back to the nodes, closes the drawer, clears selection and filter.",
    ),
)  # fmt: skip
