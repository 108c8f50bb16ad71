"""The keys as a text to read on the screen, and as the page docs/workbench-keys.md: both made of the table of actions.

``python -m onnxjson_tui.key_page`` prints the page.
"""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded
from onnxjson_tui.action import Action, Group, Pane

GROUPS: Final[dict[Group, str]] = {
    "Move": "Moving",
    "Panes": "Panes",
    "Find": "Finding",
    "Graph": "Following the graph",
    "Edit": "Editing",
    "See": "Seeing what is there and what changed",
    "Keep": "Saving and leaving",
    "Help": "Help",
}
"""Groups of actions in the order in which they are listed, in words."""

PANES: Final[dict[Pane, str]] = {
    "nodes": "In the list of nodes",
    "outline": "In the outline",
    "inspector": "In the inspector",
    "drawer": "In the drawer",
}

_NAMES: Final = {
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "delete": "del",
}

_COLUMN: Final = 18
"""Columns of the keys in a list of them."""


def shown_keys(keys: str) -> str:
    """Keys as a person reads them: ``gp``, ``pgdn``, ``ctrl+s``."""
    return "".join([_NAMES.get(each, each) for each in keys.split(" ")])


def all_keys(action: Action) -> str:
    """All keys of an action; without any, what is typed after ``:``."""
    letter = "{a-z}" if action.takes_letter else ""
    if action.keys:
        return "  ".join([shown_keys(keys) + letter for keys in action.keys])
    return command_of(action)


def command_of(action: Action) -> str:
    """What is typed after ``:`` for an action."""
    more = action.argument or ("a-z" if action.takes_letter else "")
    return f":{action.id}" + (f" {more}" if more else "")


def sections(actions: Sequence[Action], pane: Pane) -> Iterator[tuple[str, list[Action]]]:
    """The actions of a pane, then those that are the same everywhere, in their groups."""
    own = [each for each in actions if each.scope == pane != "everywhere"]
    if own:
        yield PANES[pane], own
    for group, title in GROUPS.items():
        found = [each for each in actions if each.scope == "everywhere" and each.group == group]
        if found:
            yield title, found


def key_lines(actions: Sequence[Action], pane: Pane, width: int) -> list[Line]:
    """The keys that mean something in a pane, as lines of at most `width` columns."""
    lines: list[Line] = []
    for title, found in sections(actions, pane):
        if lines:
            lines.append(())
        lines.append((Span(title, "title"),))
        for action in found:
            lines += _entry(action, width)
    return lines


def _entry(action: Action, width: int) -> Iterator[Line]:
    room = max(width - _COLUMN - 2, 20)
    keys = all_keys(action)
    texts = textwrap.wrap(sentence(action.title), room)
    if cells(keys) > _COLUMN - 1:
        yield (Span(f"  {keys}", "changed"),)
        keys = ""
    for text in texts:
        yield (Span("  " + padded(keys, _COLUMN), "changed"), Span(text))
        keys = ""
    for text in textwrap.wrap(action.help, room):
        yield (Span(" " * (_COLUMN + 2)), Span(text, "quiet"))


def sentence(title: str) -> str:
    """A title that stands by itself."""
    return title[:1].upper() + title[1:]


def markdown(actions: Sequence[Action]) -> str:
    """The page of keys."""
    lines = [
        "# Keys of the workbench",
        "",
        "`onnxjson tui MODEL` opens the workbench. Inside, `?` lists the keys of the pane that has the focus, `f1` is",
        "the manual, `ctrl+p` finds every action, edit and name. Every action has a name for the line after `:`.",
        "",
        "A number before a key counts: `25j` goes 25 rows down, `120G` to node 120, `2gp` to the node that makes",
        "the input `in[2]`.",
        "",
        "This page is made by `python -m onnxjson_tui.key_page`.",
    ]
    for title, found in _page_sections(actions):
        lines += ["", f"## {title}", "", "| keys | what they do | after `:` |", "|---|---|---|"]
        lines += [_row(action) for action in found]
    return "\n".join([*lines, "", *_COMMANDS, ""])


def _page_sections(actions: Sequence[Action]) -> Iterator[tuple[str, list[Action]]]:
    yield from sections(actions, "everywhere")
    for pane, title in PANES.items():
        found = [each for each in actions if each.scope == pane]
        if found:
            yield title, found


def _row(action: Action) -> str:
    letter = "{a-z}" if action.takes_letter else ""
    keys = " ".join([_code(shown_keys(each) + letter) for each in action.keys])
    help_text = f" {action.help}" if action.help else ""
    title = sentence(action.title) + ("." if help_text and not action.title.endswith(".") else "")
    command = _code(command_of(action)[1:]) if action.scope == "everywhere" else ""
    return f"| {keys} | {_cell(title + help_text)} | {command} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def _code(text: str) -> str:
    mark = "``" if "`" in text else "`"
    return f"{mark}{text}{mark}".replace("|", "\\|")


_COMMANDS: Final = (
    "## The line after `:`",
    "",
    "Every edit stands there as on the command line (`set-attribute op:Conv group 1`; see [edits](edits.md)), every",
    "action by its name. `tab` completes names of edits, options, nodes, tensors, attributes, operators and files;",
    "what comes next is said at the bottom. What cannot be done is said, and the line stays there to be mended.",
    "",
    "| typed | what it is |",
    "|---|---|",
    "| `.` | in an edit: the node under the cursor, or what it makes where a tensor is wanted |",
    "| `%` | in an edit: each of the selected nodes; what would change is shown first |",
    "| `:120` | go to node 120 of the graph |",
    "| `:/text` | search; `:/conv.*bias/` for a regular expression |",
    "| `:@/graph/node/3` | go to what stands at an address |",
    "| `:w`, `:w PATH` | save, save as |",
    "| `:q`, `:q!`, `:wq` | leave, leave without saving, save and leave |",
    "| `:e PATH` | open another file |",
    "| `:diff`, `:diff PATH` | what is not saved yet; the difference to another file or revision |",
    "| `:pass SPEC` | run a pass, as `onnxjson optimize -p SPEC` does |",
)


def main() -> None:
    """Prints the page."""
    from onnxjson_tui.actions.catalogue import ACTIONS

    sys.stdout.write(markdown(ACTIONS))


if __name__ == "__main__":
    main()
