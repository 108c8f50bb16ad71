"""Actions, from which keys, palette, footer and help are derived; the parser of keys, and lists of them."""

import textwrap
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from onnxjson.rendering.tables import Line, Span, cells, padded

Pane = Literal["everywhere", "nodes", "outline", "inspector", "drawer"]
"""The pane that must have the focus for the keys of an action to work."""

Group = Literal["Move", "Panes", "Find", "Graph", "Edit", "See", "Keep", "Help"]


class Arguments(NamedTuple):
    """What was typed before and after the keys or the name of an action."""

    number: int | None = None  # the count before the keys, such as 25 in ``25j``
    letter: str = ""  # the letter after the keys, for actions that expect one, such as ``a`` in ``ma``
    text: str = ""  # the argument after the name on the command line, such as a path in ``:open model.onnx``


_Bench = TypeVar("_Bench")  # the screen that an action runs on

Run = Callable[[_Bench, Arguments], Coroutine[Any, Any, None] | None]


class Action(NamedTuple, Generic[_Bench]):
    """One command of the workbench."""

    id: str  # name in the palette, after ``:`` and in the key list
    title: str  # short description, verb first
    keys: tuple[str, ...]
    """Key sequences, keys separated by spaces: ``u``, ``g g``, ``ctrl+s``; the first one is shown first."""
    run: Run[_Bench]
    group: Group
    scope: Pane = "everywhere"
    changes: bool = False  # whether it changes the model or a file; a read-only session refuses such actions
    takes_letter: bool = False  # whether a letter follows the keys
    footer: str = ""  # label in the footer; "" if the footer does not show the action
    help: str = ""  # details for the key list, after the title
    argument: str = ""
    """Kind of `Arguments.text`; "" for an action without an argument.

    ``PATH``, ``SELECTOR``, ``EDIT``, ``PASS``, ``TEXT`` or a literal word; alternatives are separated by
    ``|``, and an optional argument is in brackets: ``[PATH]``, ``in|out``. Tab completes it where possible.
    """


_MOST_DIGITS: Final = 9


class KeyResult(NamedTuple):
    """Result of one key."""

    kind: Literal["nothing", "more", "action"]
    """The key has no meaning, more keys are expected, or an action is complete."""
    action: Action[Any] | None = None
    arguments: Arguments = Arguments()


class KeyReader:
    """Parser that is fed one key at a time."""

    def __init__(self, actions: Sequence[Action[Any]]) -> None:
        """Build the key tables.

        Raises:
            ValueError: two actions of one scope have the same keys, or the keys of one are a prefix of another's.
        """
        self._actions: dict[tuple[Pane, tuple[str, ...]], Action[Any] | None] = {}
        """The action of each key sequence in a pane; None for the beginning of others."""
        for action in actions:
            for keys in action.keys:
                parts = tuple(keys.split(" "))
                if (action.scope, parts) in self._actions:
                    raise ValueError(f"{keys!r} of {action.id} is already used")
                self._actions[action.scope, parts] = action
                for length in range(1, len(parts)):
                    if self._actions.setdefault((action.scope, parts[:length]), None) is not None:
                        raise ValueError(f"{parts[:length]} is also the beginning of other keys")
        self._pressed: tuple[str, ...] = ()
        self._digits = ""
        self._waiting: Action[Any] | None = None

    @property
    def pending(self) -> str:
        """Text of an incomplete key sequence."""
        return self._digits + "".join(self._pressed)

    def forget(self) -> None:
        """Discard an incomplete key sequence."""
        self._pressed, self._digits, self._waiting = (), "", None

    def feed(self, key: str, scope: Pane) -> KeyResult:
        """Handle a key: a printable character, or the name of another key, such as ``ctrl+s`` or ``pagedown``.

        Keys of the pane that has the focus take precedence over global ones.
        """
        if self._waiting is not None:
            action, arguments = self._waiting, Arguments(self._count, key)
            self.forget()
            return KeyResult("action", action, arguments) if len(key) == 1 else KeyResult("nothing")
        if not self._pressed and key.isascii() and key.isdigit():
            if len(self._digits) < _MOST_DIGITS:
                self._digits += key
            return KeyResult("more")
        pressed = (*self._pressed, key)
        for place in ((scope, pressed), ("everywhere", pressed)):
            if place in self._actions:
                return self._complete(self._actions[place], pressed)
        had_more = bool(self._pressed or self._digits)
        self.forget()
        return KeyResult("more") if had_more and key == "escape" else KeyResult("nothing")

    def following(self, scope: Pane) -> list[tuple[str, Action[Any]]]:
        """Return the keys that can follow those that were pressed, as the screen shows them, and their actions."""
        if self._waiting is not None:
            return [("a-z", self._waiting)]
        length = len(self._pressed)
        found: dict[str, Action[Any]] = {}
        for (place, keys), action in self._actions.items():
            if action is not None and length and place in (scope, "everywhere") and keys[:length] == self._pressed:
                found.setdefault(shown_keys(" ".join(keys[length:])), action)
        return list(found.items())

    @property
    def _count(self) -> int | None:
        return int(self._digits) if self._digits else None

    def _complete(self, action: Action[Any] | None, pressed: tuple[str, ...]) -> KeyResult:
        if action is None or action.takes_letter:
            self._waiting, self._pressed = action, pressed
            return KeyResult("more")
        arguments = Arguments(self._count)
        self.forget()
        return KeyResult("action", action, arguments)


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
