"""The line after ``:``: any edit as on the command line, names of actions, places."""

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
from onnxjson.model.errors import BrokenNodesError, EditError, ParameterError
from onnxjson_tui.names.completion import argument_kinds, command_offers, hint, offers_text
from onnxjson_tui.names.editable_names import rename_node, rename_value, value_selector
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.workbench.editing import require_here

SHORT_NAMES: Final = {
    "w": "save", "save-as": "save", "wq": "quit save", "x": "quit save", "q": "quit", "q!": "quit discard",
    "e": "open", "edit-form": "edits", "diff": "compare", "pass": "run-pass", "costs": "numbers costs",
    "help": "keys", "h": "keys",
}  # fmt: skip
"""Aliases of actions, known from editors and from the command line of onnxjson."""

HERE: Final = "."  # in an edit, the node under the cursor or its output

SELECTED: Final = "%"  # in an edit, each selected node

MARK: Final = ":"


def ask(workbench: Workbench, text: str = "") -> None:
    """Ask for a command, with an initial text."""
    pane = workbench.pane

    def changed(typed: str) -> None:
        # The last message stays until something is typed.
        if typed != text:
            workbench.say(hint(typed), keep=False)

    ref, table = workbench.here, workbench.actions

    def complete(typed: str) -> Sequence[str]:
        return command_offers(workbench.session, ref, table, SHORT_NAMES, typed)

    def offered(found: Sequence[str]) -> None:
        workbench.say(offers_text(found) if len(found) > 1 else "" if found else "no completions", keep=False)

    def done(typed: str | None) -> None:
        workbench.focus_pane(pane)
        if typed and typed.strip():
            workbench.say("")
            run_line(workbench, typed.strip())

    workbench.prompt.ask(MARK, done, text=text, changed=changed, complete=complete, offered=offered)


def action_of(workbench: Workbench, word: str) -> Action[Workbench] | None:
    """Return the action of a name or alias."""
    name = SHORT_NAMES.get(word, word).partition(" ")[0]
    return next((each for each in workbench.actions if each.id == name), None)


def run_line(workbench: Workbench, line: str) -> None:
    """Run a line; if it is invalid, ask again with the same line and show the error."""

    def again(error: BaseException) -> None:
        ask(workbench, line)
        workbench.failed(error)

    try:
        _run(workbench, line, again)
    except (ParameterError, EditError) as error:
        again(error)


def _run(workbench: Workbench, line: str, again: Callable[[BaseException], None]) -> None:
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    if word in NAMES:
        _edit(workbench, line, again)
    elif line.isascii() and line.isdigit():
        _go_to_node(workbench, int(line))
    elif line.startswith("@"):
        workbench.go(line[1:])
    elif line.startswith("/") and len(line) > 1:
        search = action_of(workbench, "search")
        assert search is not None
        workbench.do(search, Arguments(text=line if len(line) > 2 and line.endswith("/") else line[1:]))
    else:
        action = action_of(workbench, word)
        if action is None:
            known = [*NAMES, *SHORT_NAMES, *[each.id for each in workbench.actions]]
            near = suggest(word, known) or "? lists the keys, tab completes"
            raise ParameterError(f"unknown command {visible(word, 40)}; {near}")
        more = SHORT_NAMES.get(word, word).partition(" ")[2]
        workbench.do(action, _given(action, word, f"{more} {rest}".strip()))


def _given(action: Action[Workbench], word: str, rest: str) -> Arguments:
    if action.argument:
        return Arguments(text=_unquoted(rest) if "PATH" in argument_kinds(action.argument) else rest)
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


def _go_to_node(workbench: Workbench, position: int) -> None:
    scope = workbench.scope
    if scope is None:
        workbench.say("there are no nodes")
    elif position >= len(scope.graph.node):
        workbench.say(f"there is no node {position:,}; the last one is {len(scope.graph.node) - 1:,}", "bad")
    else:
        workbench.go(f"{scope.address}/node/{position}")


def _edit(workbench: Workbench, line: str, again: Callable[[BaseException], None]) -> None:
    edit = here_filled_in(workbench, parse_line(line))
    session = workbench.session
    field = next(
        (each.field for each in parameters(type(edit)) if _is_node(each) and getattr(edit, each.field) == SELECTED),
        None,
    )
    is_again, workbench.refused = workbench.refused == line, ""

    def refused(error: BaseException) -> None:
        if isinstance(error, BrokenNodesError):
            workbench.refused = line
            error = EditError(f"! {error}; enter makes the change anyway")
        again(error)

    if field is None:
        workbench.preview(lambda: session.preview(edit, force=is_again), workbench.accept, refused)
        return

    async def look_first(preview: Preview) -> None:
        if not preview.patch or await workbench.agree(preview):
            workbench.accept(preview)
        else:
            workbench.say("nothing was changed")

    changes = partial(session.on_selection, edit, field)
    workbench.preview(
        lambda: session.preview(*changes(), force=is_again),
        lambda preview: workbench.begin(look_first(preview)),
        refused,
    )


def here_filled_in(workbench: Workbench, edit: Edit) -> Edit:
    """Replace each ``.`` in an edit by the node under the cursor, or by its output if a tensor is expected.

    Raises:
        EditError: there is no such node, or it has no outputs.
    """
    if isinstance(edit, Rename) and edit.from_ == HERE and edit.to is not None and edit.kind in ("node", "tensor"):
        return _rename_here(workbench, edit, edit.to)
    fields: dict[str, object] = {}
    for parameter in parameters(type(edit)):
        value = getattr(edit, parameter.field)
        if value == HERE and (_is_node(parameter) or _is_tensor(parameter)):
            fields[parameter.field] = _here(workbench, _is_tensor(parameter))
        elif _is_tensor(parameter) and isinstance(value, tuple) and HERE in value:
            fields[parameter.field] = tuple([_here(workbench, True) if each == HERE else each for each in value])
    return msgspec.structs.replace(edit, **fields) if fields else edit


def _rename_here(workbench: Workbench, edit: Rename, name: str) -> Rename:
    ref, index = require_here(workbench), workbench.session.index
    if edit.kind == "node":
        if not ref.node.name:
            raise EditError("the node under the cursor has no name; set-name . NAME sets one")
        renaming = rename_node(index, ref, name)
    else:
        old = next(filter(None, ref.node.output), "")
        if not old:
            raise EditError("the node under the cursor has no outputs")
        renaming = rename_value(index, ref.scope, old, name)
    return renaming if edit.within is None else msgspec.structs.replace(renaming, within=edit.within)


def _here(workbench: Workbench, is_tensor: bool) -> str:
    ref = require_here(workbench)
    if not is_tensor:
        return workbench.session.selector_of(ref)
    name = next((each for each in ref.node.output if each), "")
    if not name:
        raise EditError(f"{HERE} is the output of the node under the cursor, which has no outputs")
    return value_selector(ref.scope, name, is_unique=len(workbench.session.index.nodes_with("output", name)) == 1)


def _is_node(parameter: Parameter) -> bool:
    return parameter.role in ("node", "nodes")


def _is_tensor(parameter: Parameter) -> bool:
    return parameter.role in ("tensor", "tensors", "constant")


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "command", "type a command", (":",), lambda workbench, arguments: ask(workbench, arguments.text), "Find",
        help="An edit as on the command line, the name of an action, 120 for node 120, /conv to search, @/graph/node/3 "
        "to go there. In edits . is the node under the cursor and % the selection. tab completes.",
    ),
)  # fmt: skip
