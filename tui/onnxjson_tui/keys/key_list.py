"""Lists of keys for the help page and the footer, built from the table of actions."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded
from onnxjson_tui.keys.action import Action, Group, Pane

GROUPS: Final[dict[Group, str]] = {
    "Move": "Moving",
    "Panes": "Panes",
    "Find": "Finding",
    "Graph": "Following the graph",
    "Edit": "Editing",
    "See": "Inspecting and comparing",
    "Keep": "Saving and leaving",
    "Help": "Help",
}
"""Groups of actions in the order of the key list, and their headings."""

PANES: Final[dict[Pane, str]] = {
    "nodes": "In the list of nodes",
    "outline": "In the outline",
    "inspector": "In the inspector",
    "drawer": "In the drawer",
}

_NAMES: Final = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "delete": "del"}

_COLUMN: Final = 18  # width of the column of keys in the key list


def shown_keys(keys: str) -> str:
    """Return keys as the screen shows them: ``gp``, ``pgdn``, ``ctrl+s``."""
    return "".join([_NAMES.get(each, each) for each in keys.split(" ")])


def all_keys(action: Action[Any]) -> str:
    """Return all keys of an action, or its command line if it has no keys."""
    letter = "{a-z}" if action.takes_letter else ""
    if action.keys:
        return "  ".join([shown_keys(keys) + letter for keys in action.keys])
    return command_of(action)


def command_of(action: Action[Any]) -> str:
    """Return the command line of an action, such as ``:open PATH``."""
    more = action.argument or ("a-z" if action.takes_letter else "")
    return f":{action.id}" + (f" {more}" if more else "")


def sections(actions: Sequence[Action[Any]], pane: Pane) -> Iterator[tuple[str, list[Action[Any]]]]:
    """Yield a heading and its actions: those of a pane first, then the global ones by group."""
    own = [each for each in actions if each.scope == pane != "everywhere"]
    if own:
        yield PANES[pane], own
    for group, title in GROUPS.items():
        found = [each for each in actions if each.scope == "everywhere" and each.group == group]
        if found:
            yield title, found


def key_lines(actions: Sequence[Action[Any]], pane: Pane, width: int) -> list[Line]:
    """Return the keys that work in a pane, as lines of at most `width` columns."""
    lines: list[Line] = []
    for title, found in sections(actions, pane):
        if lines:
            lines.append(())
        lines.append((Span(title, "title"),))
        for action in found:
            lines += _entry(action, width)
    return lines


def _entry(action: Action[Any], width: int) -> Iterator[Line]:
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
    """Return a title with a capital first letter."""
    return title[:1].upper() + title[1:]


def key_hints(wanted: Iterable[tuple[str, str]], width: int, known: Collection[str] = ()) -> Line:
    """Return as many keys with their labels as fit in `width` columns; each key appears once, `known` ones never.

    `wanted` are keys as the screen shows them and their labels, most important first.
    """
    spans: list[Span] = []
    listed = set(known)
    used = 0
    for key, word in wanted:
        length = len(key) + len(word) + 3
        if key not in listed and used + length <= width:
            spans += [Span(f" {key}", "title"), Span(f" {word} ", "quiet")]
            listed.add(key)
            used += length
    return tuple(spans)
