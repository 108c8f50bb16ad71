"""Actions, from which keys, palette, footer and help are derived; the parser of keys, and lists of them."""

import textwrap
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from onnxjson.rendering.tables import Line, Span, cells, padded

Pane = Literal["everywhere", "nodes", "inspector", "drawer"]
"""The pane that must have the focus for the keys of an action to work."""

Group = Literal["Move", "Find", "Graph", "Edit", "See", "Keep"]

_Screen = TypeVar("_Screen")  # the screen that an action runs on

_MOST_DIGITS: Final = 9

GROUPS: Final[dict[Group, str]] = {
    "Move": "Moving", "Find": "Panes and finding", "Graph": "Following the graph", "Edit": "Editing",
    "See": "Inspecting and comparing", "Keep": "Saving, leaving, help",
}  # fmt: skip
"""Groups of actions in the order of the key list, and their headings."""

PANES: Final[dict[Pane, str]] = {"drawer": "In the drawer"}

_NAMES: Final = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "delete": "del"}

_COLUMN: Final = 11  # width of the column of keys in the key list

_TWO_COLUMNS: Final = 66  # width from which the key list has two columns


class Arguments(NamedTuple):
    """What was typed before and after the keys or the name of an action."""

    number: int | None = None  # the count before the keys, such as 25 in ``25j``
    text: str = ""  # the argument after the name on the command line, such as a path in ``:open model.onnx``


Run = Callable[[_Screen, Arguments], Coroutine[Any, Any, None] | None]


class Action(NamedTuple, Generic[_Screen]):
    """One command of the workbench."""

    id: str  # name in the palette, after ``:`` and in the key list
    title: str  # short description, verb first
    keys: tuple[str, ...]
    """Key sequences, keys separated by spaces: ``u``, ``g g``, ``ctrl+s``; the first one is shown first."""
    run: Run[_Screen]
    group: Group
    scope: Pane = "everywhere"
    changes: bool = False  # whether it changes the model or a file; a read-only session refuses such actions
    footer: str = ""  # label in the footer; "" if the footer does not show the action
    help: str = ""  # details for the key list, after the title
    argument: str = ""
    """Kind of `Arguments.text`; "" for an action without an argument.

    ``PATH``, ``SELECTOR``, ``EDIT``, ``PASS``, ``TEXT`` or a literal word; alternatives are separated by
    ``|``, and an optional argument is in brackets: ``[PATH]``, ``in|out``. Tab completes it where possible.
    """


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

    @property
    def pending(self) -> str:
        """Text of an incomplete key sequence."""
        return self._digits + "".join(self._pressed)

    def forget(self) -> None:
        """Discard an incomplete key sequence."""
        self._pressed, self._digits = (), ""

    def feed(self, key: str, scope: Pane) -> KeyResult:
        """Handle a key: a printable character, or the name of another key, such as ``ctrl+s`` or ``pagedown``.

        Keys of the pane that has the focus take precedence over global ones.
        """
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
        """Return the first keys of each action that can follow those that were pressed, as the screen shows them."""
        length = len(self._pressed)
        actions: dict[str, Action[Any]] = {}
        for (place, keys), action in self._actions.items():
            if action is None or not length or place not in (scope, "everywhere") or keys[:length] != self._pressed:
                continue
            if action not in actions.values():
                actions.setdefault(shown_keys(" ".join(keys[length:])), action)
        return list(actions.items())

    def _complete(self, action: Action[Any] | None, pressed: tuple[str, ...]) -> KeyResult:
        if action is None:
            self._pressed = pressed
            return KeyResult("more")
        arguments = Arguments(int(self._digits) if self._digits else None)
        self.forget()
        return KeyResult("action", action, arguments)


def shown_keys(keys: str) -> str:
    """Return keys as the screen shows them: ``gp``, ``pgdn``, ``ctrl+s``."""
    return "".join([_NAMES.get(each, each) for each in keys.split(" ")])


def all_keys(action: Action[Any]) -> str:
    """Return all keys of an action, or its command line if it has no keys."""
    return "  ".join(map(shown_keys, action.keys)) or command_of(action)


def command_of(action: Action[Any]) -> str:
    """Return the command line of an action, such as ``:open PATH``."""
    return f":{action.id}" + (f" {action.argument}" if action.argument else "")


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
    """Return the keys that work in a pane, as lines of at most `width` columns, in two columns if there is room."""
    columns = 2 if width >= _TWO_COLUMNS else 1
    lines: list[Line] = []
    for title, found in sections(actions, pane):
        lines.append((Span(title, "title"),))
        entries = [_entry(each, width // columns) for each in found]
        for start in range(0, len(entries), columns):
            beside = entries[start : start + columns]
            for row in range(max(map(len, beside))):
                parts = [each[row] if row < len(each) else ("", "") for each in beside]
                lines.append(tuple([span for keys, text in parts for span in (Span(keys, "changed"), Span(text))]))
    return lines


def _entry(action: Action[Any], width: int) -> list[tuple[str, str]]:
    """Return the keys of an action and its title, in lines of a column."""
    keys = "  ".join(map(shown_keys, action.keys)) or f":{action.id}"
    column = max(_COLUMN, cells(keys) + 2)
    texts = textwrap.wrap(action.title, max(width - column - 2, 8))
    return [
        (padded(f" {keys if not row else ''}", column), padded(text, width - column)) for row, text in enumerate(texts)
    ]


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
