"""Find an action by its name, and read about the program: palette, list of keys, messages."""

import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cache, partial
from threading import Lock
from typing import Final

from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.declaration import summary
from onnxjson.model.display import visible
from onnxjson.rendering.tables import Line, Span
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.choices import MOST, Choice, Searchable, names_of
from onnxjson_tui.shell.dialogs import PickerScreen, TextScreen
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments, all_keys, key_lines, sentence
from onnxjson_tui.workbench.commands import MARK, ask, run_line

_MOST_RECENT: Final = 20  # earlier commands that are offered

_ALSO: Final = {
    "tensor": "histogram statistics distribution values weight mean min max nan",
    "more": "histogram distribution quantiles mean min max nan",
    "run-pass": "optimize optimise simplify fold fuse quantize optimizer",
    "check": "validate verify lint errors",
    "problems": "errors warnings findings lint validate",
    "compare": "diff versus other model changes unsaved modified",
    "history": "log steps commands journal",
    "undo": "revert back",
    "redo": "again",
    "map": "graph overview minimap zoom scopes layers netron picture neighbours around",
    "numbers": "run profile time nan min max statistics execute benchmark error divergence bisect flops macs costs",
    "interface": "inputs outputs ports signature batch",
    "find-alike": "similar same pattern",
    "documentation": "docs operator help schema",
    "export": "script save edits replay",
    "delete-node": "remove drop erase",
    "set-batch-size": "batch dynamic",
    "set-dim": "batch dynamic axis shape",
    "convert-opset": "upgrade version downgrade",
    "infer-shapes": "shape inference types",
    "set-tensor": "weight values constant initializer",
    "cast-tensor": "convert dtype half float16",
    "add-node": "insert new create",
    "prune": "unused dead remove clean",
    "extract": "subgraph cut split part",
    "quit": "exit leave close",
    "maximize": "zoom full wide",
}
"""Other words for actions and edits."""

_WIDEST: Final = 110

_BORDER: Final = 5  # columns of a text screen around the text

_FIRST: Final = """\
The model is on one page: z and enter unfold a line to its nodes, Z lists all nodes. Types in a quiet colour are
inferred. Every edit is a step: u undoes it, ctrl+r redoes it, ctrl+s saves; one that breaks a node needs enter again.
A number before a key is a count or a place: 25j, 120G, 2gd for in[2]. After : edits are typed as on the command line,
. is this node and % the selection; tab completes. Before the number * is selected, ! has a problem; after it ~ is
changed, + new. Lanes: a full circle makes a value with a lane, the heavy one is of this node.
"""
"""What is peculiar to the workbench."""


async def _open_palette(workbench: Workbench, arguments: Arguments) -> None:
    """Search actions, edits, earlier commands, and all names of the model, those of a big model in a thread."""
    offered = Searchable(commands(workbench))
    names, lock = cache(partial(names_of, workbench.session.index)), Lock()

    def find(typed: str) -> list[Choice]:
        with lock:  # whoever comes first reads them
            known = names()
        return _with_names(typed.lower().split(), offered, known)

    def search(typed: str, show: Callable[[Sequence[Choice]], None]) -> None:
        workbench.compute("palette", "searching", partial(find, typed), show)

    hint = "enter run or go   esc cancel   type part of a name"
    chosen = await workbench.app.push_screen_wait(PickerScreen("Find", offered, hint=hint, is_wide=True, search=search))
    if chosen is not None:
        _run(workbench, chosen)


def _with_names(words: Sequence[str], offered: Searchable, known: Searchable) -> list[Choice]:
    """Return commands and names that have all words: names after the commands, but exact matches before them."""
    names, wanted = known.having(words), " ".join(words)
    count = next((place for place, each in enumerate(names[:MOST]) if each.label.lower() != wanted), MOST)
    more = [Choice("", f"more than {MOST}", "", "type more of the name")] if len(names) > MOST else []
    return [*names[:count], *offered.having(words), *names[count:MOST], *more]


def commands(workbench: Workbench) -> list[Choice]:
    """Return actions, those used most first and movements last, then edits and earlier commands, as choices."""
    readonly = workbench.session.readonly
    refused = "the model is open read-only"
    shown = [
        each for each in workbench.actions if each.scope in ("everywhere", workbench.pane) and each.id != "palette"
    ]
    shown.sort(key=lambda each: (each.group == "Move", -workbench.used[each.id], not each.footer))
    choices = [
        Choice(
            f"action {action.id}",
            sentence(action.title),
            all_keys(action),
            refused if readonly and action.changes else "",
            f"{action.id} {action.help} {_ALSO.get(action.id, '')}".lower(),
        )
        for action in shown
    ]
    choices += [
        Choice(f"edit {name}", name, visible(summary(edit), 200), refused if readonly else "", _ALSO.get(name, ""))
        for name, edit in NAMES.items()
    ]
    choices.append(Choice("ask save-as ", "Save as another file", ":save-as", refused if readonly else "", "copy path"))
    recent = workbench.prompt.kept(MARK)[::-1][:_MOST_RECENT]
    return [*choices, *[Choice(f"line {line}", f":{visible(line, 300)}", "typed before") for line in recent]]


def _run(workbench: Workbench, chosen: str) -> None:
    kind, _, what = chosen.partition(" ")
    if kind == "go":
        if workbench.go(what):
            workbench.focus_pane("nodes")
        if re.search(r"initializer/\d+$", what):
            workbench.drawer.find(TensorPage).show_constant(what)
    elif kind == "line":
        run_line(workbench, what)
    elif kind == "ask":
        ask(workbench, what)
    elif kind == "edit":
        run_line(workbench, f"edits {what}")
    else:
        workbench.do(next(each for each in workbench.actions if each.id == what))


def text_width(workbench: Workbench) -> int:
    """Return the columns of a text on a screen over the workbench."""
    return max(min(_WIDEST, workbench.app.size.width * 96 // 100) - _BORDER, 30)


def keys(workbench: Workbench, arguments: Arguments) -> None:
    """Show what is peculiar here, then the keys of the pane, then those of all panes."""
    width = workbench.app.size.width - _BORDER
    lines: list[Line] = [(Span(each),) for each in textwrap.wrap(" ".join(_FIRST.split()), width)]
    shown = [each for each in workbench.actions if each.group != "Move"]
    workbench.app.push_screen(TextScreen("Keys", [*lines, *key_lines(shown, workbench.pane, width)], is_full=True))


def messages(workbench: Workbench, arguments: Arguments) -> None:
    """Show earlier messages, the newest first."""
    lines: list[Line] = []
    for text, tone in reversed(workbench.messages):
        lines += [(Span(each, tone),) for each in textwrap.wrap(text, text_width(workbench))]
    workbench.app.push_screen(TextScreen("Messages, the newest first", lines or ["none yet"]))


ACTIONS: Final = (
    Action(
        "palette", "find anything", ("ctrl+p",), _open_palette, "Keep", footer="find",
        help="An action, an edit, a node, a constant, by a part of its name.",
    ),
    Action("keys", "this list", ("?", "f1"), keys, "Keep", footer="keys"),
    Action("messages", "all messages so far", (), messages, "Keep"),
)  # fmt: skip
