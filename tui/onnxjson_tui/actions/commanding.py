"""The line after ``:``: edits in the syntax of the command line, actions by name, places to go to."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.declaration import Edit
from onnxjson.editing.names import Rename
from onnxjson.editing.parameters import Parameter, parameters
from onnxjson.editing.spelling import parse_line
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import EditError, ParameterError
from onnxjson_tui.actions.editing import require_here
from onnxjson_tui.names.completion import argument_kinds, command_offers, hint, offers_text
from onnxjson_tui.names.editable_names import rename_node, rename_value, value_selector
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.widgets.actions import Action, Arguments

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
"""Aliases of actions, known from editors and from the command line of onnxjson."""

HERE: Final = "."  # in an edit, the node under the cursor or its output
SELECTED: Final = "%"  # in an edit, each selected node

MARK: Final = ":"


def ask(bench: Bench, text: str = "") -> None:
    """Ask for a command, with an initial text."""
    pane = bench.pane

    def changed(typed: str) -> None:
        # The last message stays until something is typed.
        if typed != text:
            bench.say(hint(typed), keep=False)

    here, table = bench.here, bench.actions

    def complete(typed: str) -> Sequence[str]:
        return command_offers(bench.session, here, table, SHORT_NAMES, typed)

    def offered(found: Sequence[str]) -> None:
        bench.say(offers_text(found) if len(found) > 1 else "" if found else "no completions", keep=False)

    def done(typed: str | None) -> None:
        bench.focus_pane(pane)
        if typed and typed.strip():
            bench.say("")
            run_line(bench, typed.strip())

    bench.prompt.ask(MARK, done, text=text, changed=changed, complete=complete, offered=offered)


def action_of(bench: Bench, word: str) -> Action[Bench] | None:
    """Return the action of a name or alias."""
    name = SHORT_NAMES.get(word, word)
    return next((each for each in bench.actions if each.id == name), None)


def run_line(bench: Bench, line: str) -> None:
    """Run a line; if it is invalid, ask again with the same line and show the error."""

    def again(error: BaseException) -> None:
        ask(bench, line)
        bench.failed(error)

    try:
        _run(bench, line, again)
    except (ParameterError, EditError) as error:
        again(error)


def _run(bench: Bench, line: str, again: Callable[[BaseException], None]) -> None:
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
        bench.do(search, Arguments(text=line if len(line) > 2 and line.endswith("/") else line[1:]))
    else:
        action = action_of(bench, word)
        if action is None:
            known = [*NAMES, *SHORT_NAMES, *[each.id for each in bench.actions]]
            near = suggest(word, known) or "? lists the keys, tab completes"
            raise ParameterError(f"unknown command {visible(word, 40)}; {near}")
        bench.do(action, _given(action, word, rest))


def _given(action: Action[Bench], word: str, rest: str) -> Arguments:
    if action.argument:
        return Arguments(text=_unquoted(rest) if {"PATH", "DIR"} & set(argument_kinds(action.argument)) else rest)
    if action.takes_letter:
        if len(rest) != 1:
            raise ParameterError(f"{word} needs one letter, such as {word} a")
        return Arguments(letter=rest)
    if rest.isascii() and rest.isdigit() and len(rest) <= 9:
        return Arguments(number=int(rest))
    if rest:
        raise ParameterError(f"{word} has no arguments, so remove {visible(rest, 40)}")
    return Arguments()


def _unquoted(text: str) -> str:
    """Return a path without its quotes; one without quotes may contain spaces."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text


def _go_to_node(bench: Bench, position: int) -> None:
    scope = bench.scope
    if scope is None:
        bench.say("there are no nodes")
    elif position >= len(scope.graph.node):
        bench.say(f"there is no node {position:,}; the last one is {len(scope.graph.node) - 1:,}", "bad")
    else:
        bench.go(f"{scope.address}/node/{position}")


# Edits


def _edit(bench: Bench, line: str, again: Callable[[BaseException], None]) -> None:
    edit = here_filled_in(bench, parse_line(line))
    session = bench.session
    field = next(
        (each.field for each in parameters(type(edit)) if _is_node(each) and getattr(edit, each.field) == SELECTED),
        None,
    )
    if field is None:
        bench.preview(lambda: session.preview(edit), bench.accept, again)
        return

    async def look_first(preview: Preview) -> None:
        if not preview.patch or await bench.agree(preview):
            bench.accept(preview)
        else:
            bench.say("nothing was changed")

    changes = partial(session.on_selection, edit, field)
    bench.preview(lambda: session.preview(*changes()), lambda preview: bench.begin(look_first(preview)), again)


def here_filled_in(bench: Bench, edit: Edit) -> Edit:
    """Replace each ``.`` in an edit by the node under the cursor, or by its output if a tensor is expected.

    Raises:
        EditError: there is no such node, or it has no outputs.
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


def _rename_here(bench: Bench, edit: Rename, name: str) -> Rename:
    here, index = require_here(bench), bench.session.index
    if edit.kind == "node":
        if not here.node.name:
            raise EditError("the node under the cursor has no name; set-name . NAME sets one")
        found = rename_node(index, here, name)
    else:
        old = next(filter(None, here.node.output), "")
        if not old:
            raise EditError("the node under the cursor has no outputs")
        found = rename_value(index, here.scope, old, name)
    return found if edit.within is None else msgspec.structs.replace(found, within=edit.within)


def _here(bench: Bench, is_tensor: bool) -> str:
    here = require_here(bench)
    if not is_tensor:
        return bench.session.selector_of(here)
    name = next((each for each in here.node.output if each), "")
    if not name:
        raise EditError(f"{HERE} is the output of the node under the cursor, which has no outputs")
    return value_selector(here.scope, name, is_unique=len(bench.session.index.nodes_with("output", name)) == 1)


def _is_node(parameter: Parameter) -> bool:
    return parameter.role in ("node", "nodes")


def _is_tensor(parameter: Parameter) -> bool:
    return parameter.role in ("tensor", "tensors", "constant")


ACTIONS: Final[tuple[Action[Bench], ...]] = (
    Action(
        "command", "type a command", (":",), lambda bench, arguments: ask(bench, arguments.text), "Find",
        footer="command",
        help="An edit as on the command line, the name of an action, 120 for node 120, /conv to search, @/graph/node/3 "
        "to go there. In edits . is the node under the cursor and % the selection. tab completes.",
    ),
)  # fmt: skip
