"""Any edit: by its form, or typed after ``:`` as on the command line, where actions and places have names, too."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from onnxjson.editing.catalogue import NAMES, edit_named
from onnxjson.editing.declaration import Edit, summary
from onnxjson.editing.names import Rename
from onnxjson.editing.nodes import AddNode, Rewire
from onnxjson.editing.parameters import Parameter, parameters
from onnxjson.editing.spelling import parse_line
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import BrokenNodesError, EditError, ParameterError
from onnxjson.model.index import NodeRef
from onnxjson.model.operators import operator_signature
from onnxjson.model.renaming import fresh_name
from onnxjson.rendering.node import opset_of
from onnxjson_tui.names.completion import argument_kinds, command_offers, hint, offers_text
from onnxjson_tui.names.editable_names import (
    is_plain,
    item_line,
    node_selector,
    rename_node,
    rename_value,
    selector_of_value,
    value_selector,
)
from onnxjson_tui.names.form_filling import Also, Filling, prefilled
from onnxjson_tui.names.offers import Offers
from onnxjson_tui.rows.choices import Choice, Searchable
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.workbench.editing import ready, require_here
from onnxjson_tui.workbench.finding import pattern_in


def edit_choices() -> list[Choice]:
    """Return all edits, by group."""
    return [Choice(name, name, f"{edit.group:<11}{visible(summary(edit), 200)}") for name, edit in NAMES.items()]


_AFTER: Final = "after "  # start of the key of an operator that is inserted
_BEFORE: Final = "before"


async def _add(bench: Workbench, arguments: Arguments) -> None:
    """Ask for an edit, or for an operator to insert after the node under the cursor."""
    name: str | None = arguments.text.partition(" ")[0]
    if not name:
        choices, here = edit_choices(), bench.here
        if here is not None:
            choices.insert(0, Choice(_BEFORE, "insert before", "a node before an input of this one"))
            choices += [
                Choice(_AFTER + each.key, each.label, f"insert after {here.position}  {each.detail}")
                for each in await _operators(bench)
            ]
        name = await bench.choose("Add a node, or edit", choices, is_wide=True)
    if name == _BEFORE:
        await _insert_before(bench)
    elif name is not None and name.startswith(_AFTER):
        await _insert_after(bench, name.removeprefix(_AFTER))
    elif name is not None:
        await fill_in(bench, name)


async def fill_in(
    bench: Workbench,
    name: str,
    texts: Mapping[str, str] | None = None,
    *,
    focus: str = "",
    also: Also | None = None,
    title: str = "",
) -> Preview | None:
    """Ask for an edit by its form and make it; return the change, or None if the user cancels.

    `texts` replace what the cursor suggests; `also` makes further edits of the same step.

    Raises:
        ParameterError: there is no edit of that name.
    """
    edit = edit_named(name)
    session, here = bench.session, bench.here
    known = await bench.jobs.run("edit", "filling in the form", lambda: prefilled(session, edit, here))
    if name == "replace-pattern" and (pattern := pattern_in(bench.finder.selector)):
        known["pattern"] = pattern
    if name == "set-attribute" and known.get("value"):
        focus = focus or "value"
    filling = Filling(edit, known | dict(texts or {}))
    preview = await bench.app.push_screen_wait(FormScreen(bench, filling, focus=focus, also=also, title=title))
    if preview is not None:
        bench.accept(preview)
    return preview


async def _insert_after(bench: Workbench, operator: str) -> None:
    ref = require_here(bench)
    await ready(bench)
    outputs = [name for name in ref.node.output if name]
    if not outputs:
        bench.say("the node has no outputs", "changed")
        return
    choices = [Choice(name, visible(name, 300)) for name in outputs]
    value = outputs[0] if len(outputs) == 1 else await bench.choose("After which output", choices)
    if value is None:
        return
    is_taken = bool(bench.session.index.consumers(ref.scope, value))
    texts = _texts(bench, ref, value, operator) | {"insert": "yes" if is_taken else ""}
    await fill_in(bench, "add-node", texts, focus="input", title=f"Insert {visible(operator, 40)} after")


async def _insert_before(bench: Workbench) -> None:
    ref = require_here(bench)
    await ready(bench)
    used = [slot for slot, name in enumerate(ref.node.input) if name]
    if not used:
        bench.say("the node has no inputs", "changed")
        return
    slot = used[0]
    if len(used) > 1:
        choices = [Choice(str(each), f"input {each}", visible(ref.node.input[each], 300)) for each in used]
        chosen = await bench.choose("Before which input", choices)
        if chosen is None:
            return
        slot = int(chosen)
    operator = await bench.choose("Which operator", await _operators(bench))
    if operator is None:
        return
    words = node_selector(bench.session.index, ref)
    if words.startswith("@"):
        # The new node is inserted before this one, whose position grows by 1.
        words = f"@{ref.scope.address}/node/{ref.position + 1}"

    def connect(edit: Edit) -> tuple[Edit, ...]:
        assert isinstance(edit, AddNode)
        return (Rewire(node=words, input=slot, tensor=edit.output[0]),)

    texts = _texts(bench, ref, ref.node.input[slot], operator)
    title = f"Insert {visible(operator, 40)} before"
    await fill_in(bench, "add-node", texts, focus="input", also=connect, title=title)


async def _operators(bench: Workbench) -> Searchable:
    """Return the operators of the model's opset that have inputs."""
    offers = Offers(bench.session, bench.here)
    return await bench.jobs.run(
        "edit", "looking for operators", lambda: Searchable(offers.operators("", take_inputs=True))
    )


def _texts(bench: Workbench, ref: NodeRef, value: str, operator: str) -> dict[str, str]:
    """Return the contents of the form: the value as first input, names of outputs, required attributes."""
    index = bench.session.index
    found = operator_signature("", operator, opset_of(bench.session.model, ref))
    lines = [item_line(selector_of_value(ref, value))]
    lines += [""] * (found.least_inputs - 1 if found is not None else 0)
    base = value if is_plain(value) else operator.lower()
    outputs = max(found.least_outputs, 1) if found is not None else 1
    names: list[str] = []
    for _ in range(outputs):
        names.append(fresh_name(index, f"{base}_{operator.lower()}", names))
    needed = [each.name for each in found.attributes.values() if each.required] if found is not None else []
    graph = {"graph": ref.scope.address} if ref.scope.address != "/graph" else {}
    return {
        "op_type": operator,
        "input": "\n".join(lines),
        "output": "\n".join(item_line(name) for name in names),
        "attribute": "\n".join(f"{name}=" for name in needed),
        **graph,
    }


ACTIONS: Final = (
    Action(
        "edits", "add, and all other edits", ("a",), _add, "Edit", changes=True, footer="add", argument="[EDIT]",
        help="An operator inserts a node after this one; an edit shows its form, as :edits set-tensor does.",
    ),
)  # fmt: skip


# The line after ``:``

SHORT_NAMES: Final = {
    "w": "save",
    "save-as": "save",
    "wq": "quit save",
    "x": "quit save",
    "q": "quit",
    "q!": "quit discard",
    "e": "open",
    "edit-form": "edits",
    "diff": "compare",
    "pass": "run-pass",
    "costs": "numbers costs",
    "help": "keys",
    "h": "keys",
}
"""Aliases of actions, known from editors and from the command line of onnxjson."""
HERE: Final = "."  # in an edit, the node under the cursor or its output
SELECTED: Final = "%"  # in an edit, each selected node

MARK: Final = ":"


def ask(bench: Workbench, text: str = "") -> None:
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


def action_of(bench: Workbench, word: str) -> Action[Workbench] | None:
    """Return the action of a name or alias."""
    name = SHORT_NAMES.get(word, word).partition(" ")[0]
    return next((each for each in bench.actions if each.id == name), None)


def run_line(bench: Workbench, line: str) -> None:
    """Run a line; if it is invalid, ask again with the same line and show the error."""

    def again(error: BaseException) -> None:
        ask(bench, line)
        bench.failed(error)

    try:
        _run(bench, line, again)
    except (ParameterError, EditError) as error:
        again(error)


def _run(bench: Workbench, line: str, again: Callable[[BaseException], None]) -> None:
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
        more = SHORT_NAMES.get(word, word).partition(" ")[2]
        bench.do(action, _given(action, word, f"{more} {rest}".strip()))


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


def _go_to_node(bench: Workbench, position: int) -> None:
    scope = bench.scope
    if scope is None:
        bench.say("there are no nodes")
    elif position >= len(scope.graph.node):
        bench.say(f"there is no node {position:,}; the last one is {len(scope.graph.node) - 1:,}", "bad")
    else:
        bench.go(f"{scope.address}/node/{position}")


def _edit(bench: Workbench, line: str, again: Callable[[BaseException], None]) -> None:
    edit = here_filled_in(bench, parse_line(line))
    session = bench.session
    field = next(
        (each.field for each in parameters(type(edit)) if _is_node(each) and getattr(edit, each.field) == SELECTED),
        None,
    )
    is_again, bench.refused = bench.refused == line, ""

    def refused(error: BaseException) -> None:
        if isinstance(error, BrokenNodesError):
            bench.refused = line
            error = EditError(f"! {error}; enter makes it in spite of that")
        again(error)

    if field is None:
        bench.preview(lambda: session.preview(edit, force=is_again), bench.accept, refused)
        return

    async def look_first(preview: Preview) -> None:
        if not preview.patch or await bench.agree(preview):
            bench.accept(preview)
        else:
            bench.say("nothing was changed")

    changes = partial(session.on_selection, edit, field)
    bench.preview(
        lambda: session.preview(*changes(), force=is_again), lambda preview: bench.begin(look_first(preview)), refused
    )


def here_filled_in(bench: Workbench, edit: Edit) -> Edit:
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


def _rename_here(bench: Workbench, edit: Rename, name: str) -> Rename:
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


def _here(bench: Workbench, is_tensor: bool) -> str:
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


COMMAND: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "command", "type a command", (":",), lambda bench, arguments: ask(bench, arguments.text), "Find",
        footer="command",
        help="An edit as on the command line, the name of an action, 120 for node 120, /conv to search, @/graph/node/3 "
        "to go there. In edits . is the node under the cursor and % the selection. tab completes.",
    ),
)  # fmt: skip
