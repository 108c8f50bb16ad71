"""The lists of keys, the manual, what was said."""

import textwrap
from typing import TYPE_CHECKING, Final

from onnxjson.rendering.spans import Line, Span
from onnxjson_tui.action import Action, Given
from onnxjson_tui.key_list import key_lines
from onnxjson_tui.screens.choosing import TextScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_WIDEST: Final = 110
_BORDER: Final = 5
"""Columns of a text screen that are not for text."""

MANUAL: Final = """\
The screen
The list of nodes stands in the middle, in the order of the file, with a line for each value that is still needed
beside them. At the left is the outline, at the right what there is to know of the node under the cursor, at the
bottom a drawer with problems, changes, tensors and history (f5 to f8, f9 closes). tab goes from pane to pane. A
narrow terminal shows one or two of them at a time.

Finding
/ searches in operators, names and outputs while you type; n and N go on. f lists only the nodes that a selector
finds, such as op:Conv dtype:float16 name:*attn*. ctrl+p finds actions, edits, nodes, constants and graphs by a part
of their names. esc goes back one step each time: what runs, the pane, the selection, the filter.

Following values
gp goes to the node that makes an input, gc to a node that takes an output, gd shows what an input is, gs goes into
a graph or function and - out of it. [ and ] go back and forward through the places where you were; ma marks a node
and 'a comes back. :cone in and :cone out list what a node depends on and what depends on it. The lane of what the node
under the cursor makes is drawn heavy, down to the last node that takes it.

Editing
Every edit is one step: u takes it back, ctrl+r makes it again, without limit. e edits what stands in a row of the
inspector, a lists all edits, and after : an edit is typed as on the command line, completed by tab. v and V select
nodes; an edit on the selection shows what it would change before it does. The history lists each step as the
command that repeats it. Behind the number of a node ~ says that it is changed since the last save, + that it is new.

Saving
ctrl+s replaces the file at once or not at all, after reading back what was written; the file before is kept as a
backup. Where another program changed the file meanwhile, you are asked. Every step is in a journal when it is made:
after a crash or a lost line, the next start offers to make the steps again. ctrl+e writes them as a script for
other models.

Help
? lists the keys of the pane in which you are. :messages shows what was said so far, in full.
"""
"""Titles, each with a paragraph."""


def text_width(bench: "Workbench") -> int:
    """Columns of a text on a screen over the workbench."""
    return max(min(_WIDEST, bench.app.size.width * 96 // 100) - _BORDER, 30)


def keys(bench: "Workbench", given: Given) -> None:
    """Lists the keys of the pane, then those that hold everywhere."""
    lines = key_lines(bench.actions, bench.pane, text_width(bench))
    bench.app.push_screen(TextScreen("Keys", lines, hint="esc close   arrows scroll   f1 is the manual"))


def manual(bench: "Workbench", given: Given) -> None:
    """Shows the manual."""
    lines: list[Line] = []
    for block in MANUAL.split("\n\n"):
        title, _, text = block.partition("\n")
        paragraph = textwrap.wrap(" ".join(text.split()), text_width(bench) - 2)
        lines += [(Span(title, "title"),), *[(Span(f"  {each}"),) for each in paragraph], ()]
    bench.app.push_screen(TextScreen("The workbench", lines[:-1], hint="esc close   arrows scroll   ? lists the keys"))


def messages(bench: "Workbench", given: Given) -> None:
    """Shows what was said so far, the newest first."""
    lines: list[Line] = []
    for text, tone in reversed(bench.said):
        lines += [(Span(each, tone),) for each in textwrap.wrap(text, text_width(bench))]
    bench.app.push_screen(TextScreen("What was said, the newest first", lines or ["nothing yet"]))


ACTIONS: Final = (
    Action("keys", "list the keys of this pane", ("?",), keys, "Help", footer="keys"),
    Action("manual", "the manual, one page", ("f1",), manual, "Help"),
    Action("messages", "what was said so far, in full", (), messages, "Help"),
)
