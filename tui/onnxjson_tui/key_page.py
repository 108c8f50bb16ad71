"""The keys as the page docs/workbench-keys.md, made of the table of actions.

``python -m onnxjson_tui.key_page`` prints the page.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from onnxjson_tui.action import Action
from onnxjson_tui.actions.catalogue import ACTIONS
from onnxjson_tui.key_list import PANES, command_of, sections, sentence, shown_keys


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
    sys.stdout.write(markdown(ACTIONS))


if __name__ == "__main__":
    main()
