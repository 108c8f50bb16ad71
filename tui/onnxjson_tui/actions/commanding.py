"""The line after ``:``: edits spelled as on the command line, actions by their names, places to go to."""

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from onnxjson.display import visible
from onnxjson.edits.catalogue import NAMES
from onnxjson.edits.declaration import Edit
from onnxjson.edits.names import Rename
from onnxjson.edits.parameters import Parameter, parameters
from onnxjson.edits.spelling import parse_line
from onnxjson.errors import EditError, ParameterError
from onnxjson.suggestions import suggest
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.editing import require_here
from onnxjson_tui.answers import Preview
from onnxjson_tui.completion import argument_kinds, command_offers, hint, shown_offers
from onnxjson_tui.forms.changes import rename_node, rename_value
from onnxjson_tui.forms.words import value_words

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

SHORT_NAMES: Final = {
    "w": "save",
    "wq": "save-quit",
    "x": "save-quit",
    "q": "quit",
    "q!": "discard-quit",
    "e": "open",
    "diff": "compare",
    "pass": "run-pass",
    "help": "manual",
    "h": "manual",
}
"""Other words for actions, as editors and this program's command line have them."""

HERE: Final = "."
"""Stands in an edit for the node under the cursor, or for what it makes."""

SELECTED: Final = "%"
"""Stands in an edit for each selected node."""

MARK: Final = ":"


def command(bench: "Workbench", given: Given) -> None:
    """Asks for a command."""
    ask(bench, given.text)


def ask(bench: "Workbench", text: str = "") -> None:
    """Asks for a command, with a text to begin with."""
    pane = bench.pane

    def changed(typed: str) -> None:
        # What was said stays until something is typed.
        if typed != text:
            bench.say(hint(typed), keep=False)

    here, table = bench.here, bench.actions

    def complete(typed: str) -> Sequence[str]:
        return command_offers(bench.session, here, table, SHORT_NAMES, typed)

    def offered(found: Sequence[str]) -> None:
        bench.say(
            shown_offers(found) if len(found) > 1 else "" if found else "nothing is known to come here", keep=False
        )

    def done(typed: str | None) -> None:
        bench.focus_pane(pane)
        if typed and typed.strip():
            bench.say("")
            run_line(bench, typed.strip())

    bench.prompt.ask(MARK, done, text=text, changed=changed, complete=complete, offered=offered)


def action_of(bench: "Workbench", word: str) -> Action | None:
    """The action that a word names."""
    name = SHORT_NAMES.get(word, word)
    return next((each for each in bench.actions if each.id == name), None)


def run_line(bench: "Workbench", line: str) -> None:
    """Does what a line says; where it cannot be done, asks again with the same line, and says why."""

    def again(error: BaseException) -> None:
        ask(bench, line)
        bench.failed(error)

    try:
        _run(bench, line, again)
    except (ParameterError, EditError) as error:
        again(error)


def _run(bench: "Workbench", line: str, again: Callable[[BaseException], None]) -> None:
    """Does what a line says.

    Raises:
        ParameterError: it says nothing that is known.
        EditError: there is no node to do it with.
    """
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    if word in NAMES:
        _edit(bench, line, again)
    elif line.isascii() and line.isdigit():
        _go_to_node(bench, int(line))
    elif line.startswith("@"):
        bench.go(line[1:])
    elif line.startswith("/") and len(line) > 1:
        search = action_of(bench, "search")
        assert search is not None
        bench.do(search, Given(text=line if len(line) > 2 and line.endswith("/") else line[1:]))
    else:
        action = action_of(bench, word)
        if action is None:
            known = [*NAMES, *SHORT_NAMES, *[each.id for each in bench.actions]]
            near = suggest(word, known) or "? lists the keys, tab what there is"
            raise ParameterError(f"there is no {visible(word, 40)}; {near}")
        bench.do(action, _given(action, word, rest))


def _given(action: Action, word: str, rest: str) -> Given:
    """What stands after the name of an action.

    Raises:
        ParameterError: it takes none, or needs one.
    """
    if action.argument:
        return Given(text=_unquoted(rest) if {"PATH", "DIR"} & set(argument_kinds(action.argument)) else rest)
    if action.takes_letter:
        if len(rest) != 1:
            raise ParameterError(f"{word} takes one letter, such as {word} a")
        return Given(letter=rest)
    if rest.isascii() and rest.isdigit() and len(rest) <= 9:
        return Given(number=int(rest))
    if rest:
        raise ParameterError(f"nothing stands after {word}, so {visible(rest, 40)} is too much")
    return Given()


def _unquoted(text: str) -> str:
    """A path, which may stand in quotes or have spaces."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text


def _go_to_node(bench: "Workbench", position: int) -> None:
    scope = bench.scope
    if scope is None:
        bench.say("there are no nodes")
    elif position >= len(scope.graph.node):
        bench.say(f"there is no node {position:,}; the last one is {len(scope.graph.node) - 1:,}", "bad")
    else:
        bench.go(f"{scope.address}/node/{position}")


# Edits


def _edit(bench: "Workbench", line: str, again: Callable[[BaseException], None]) -> None:
    edit = here_filled_in(bench, parse_line(line))
    session = bench.session
    field = next(
        (each.field for each in parameters(type(edit)) if _is_node(each) and getattr(edit, each.field) == SELECTED),
        None,
    )
    if field is None:
        bench.preview(lambda: session.preview(edit), bench.accept, again)
        return
    bench.preview(
        lambda: session.preview(*session.on_selection(edit, field)),
        lambda preview: bench.begin(_look_first(bench, preview)),
        again,
    )


async def _look_first(bench: "Workbench", preview: Preview) -> None:
    """Shows what an edit on a selection would do before it is done."""
    from onnxjson_tui.screens.preview import PreviewScreen

    if not preview.patch or await bench.app.push_screen_wait(PreviewScreen(bench, preview)):
        bench.accept(preview)
    else:
        bench.say("nothing was changed")


def here_filled_in(bench: "Workbench", edit: Edit) -> Edit:
    """The edit with the node under the cursor for ``.`` where it names nodes, and what it makes where it names tensors.

    Raises:
        EditError: there is no such node, or it makes nothing.
    """
    if isinstance(edit, Rename) and edit.from_ == HERE and edit.to is not None and edit.kind in ("node", "tensor"):
        return _rename_here(bench, edit, edit.to)
    found: dict[str, object] = {}
    for parameter in parameters(type(edit)):
        value = getattr(edit, parameter.field)
        if value == HERE and (_is_node(parameter) or _is_tensor(parameter)):
            found[parameter.field] = _here(bench, _is_tensor(parameter))
        elif _is_tensor(parameter) and isinstance(value, tuple) and HERE in value:
            found[parameter.field] = tuple([_here(bench, True) if each == HERE else each for each in value])
    return msgspec.structs.replace(edit, **found) if found else edit


def _rename_here(bench: "Workbench", edit: Rename, name: str) -> Rename:
    """The same with the name of the node under the cursor, or of what it makes."""
    here, index = require_here(bench), bench.session.index
    if edit.kind == "node":
        if not here.node.name:
            raise EditError("the node under the cursor has no name; set-name . NAME gives it one")
        found = rename_node(index, here, name)
    else:
        old = next(filter(None, here.node.output), "")
        if not old:
            raise EditError("the node under the cursor makes nothing")
        found = rename_value(index, here.scope, old, name)
    return found if edit.within is None else msgspec.structs.replace(found, within=edit.within)


def _here(bench: "Workbench", is_tensor: bool) -> str:
    here = require_here(bench)
    if not is_tensor:
        return bench.session.selector_of(here)
    name = next((each for each in here.node.output if each), "")
    if not name:
        raise EditError(f"{HERE} stands for what the node under the cursor makes, and it makes nothing")
    return value_words(here.scope, name, is_unique=len(bench.session.index.nodes_with("output", name)) == 1)


def _is_node(parameter: Parameter) -> bool:
    return parameter.role in ("node", "nodes")


def _is_tensor(parameter: Parameter) -> bool:
    return parameter.role in ("tensor", "tensors", "constant")


ACTIONS: Final = (
    Action(
        "command", "type a command", (":",), command, "Find", footer="command",
        help="An edit as on the command line, the name of an action, 120 for node 120, /conv to search, @/graph/node/3 "
        "for what stands there. In edits . is the node under the cursor and % the selection. tab completes.",
    ),
)  # fmt: skip
