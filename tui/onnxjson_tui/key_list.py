"""The keys as a text to read on the screen, made of the table of actions."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
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


def key_hints(wanted: Iterable[tuple[str, str]], width: int, known: Collection[str] = ()) -> Line:
    """Keys, each with its word, as many as fit into the bar at the bottom; a key is said once.

    Args:
        wanted: keys as a person reads them and a word for each, those that matter most first.
        width: columns that they have.
        known: keys that need not be said.
    """
    spans: list[Span] = []
    said = set(known)
    used = 0
    for key, word in wanted:
        length = len(key) + len(word) + 3
        if key not in said and used + length <= width:
            spans += [Span(f" {key}", "title"), Span(f" {word} ", "quiet")]
            said.add(key)
            used += length
    return tuple(spans)
