"""Parser of key sequences: counts, keys and letters become actions, depending on the pane."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from onnxjson_tui.keys.action import Action, Given, Pane

_MOST_DIGITS: Final = 9


class KeyResult(NamedTuple):
    """Result of one key."""

    kind: Literal["nothing", "more", "action"]
    """The key has no meaning, more keys are expected, or an action is complete."""
    action: Action[Any] | None = None
    given: Given = Given()


class KeyReader:
    """Parser that is fed one key at a time."""

    def __init__(self, actions: Sequence[Action[Any]]) -> None:
        """Build the key tables.

        Raises:
            ValueError: two actions of one scope have the same keys, or the keys of one are a prefix of another's.
        """
        self._actions: dict[Pane, dict[tuple[str, ...], Action[Any]]] = {}
        self._beginnings: dict[Pane, set[tuple[str, ...]]] = {}
        for action in actions:
            known = self._actions.setdefault(action.scope, {})
            beginnings = self._beginnings.setdefault(action.scope, set())
            for keys in action.keys:
                parts = tuple(keys.split(" "))
                if parts in known or parts in beginnings:
                    raise ValueError(f"{keys!r} of {action.id} is taken")
                known[parts] = action
                beginnings |= {parts[:length] for length in range(1, len(parts))}
            if clash := next((keys for keys in known if keys in beginnings), None):
                raise ValueError(f"{clash} is also the beginning of other keys")
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
        """Handle a key: a printable character, or the name of another key.

        Args:
            key: such as ``j``, ``G``, ``ctrl+s``, ``pagedown``.
            scope: the pane that has the focus; its keys take precedence over global ones.
        """
        if self._waiting is not None:
            action, given = self._waiting, Given(self._count, key)
            self.forget()
            return KeyResult("action", action, given) if len(key) == 1 else KeyResult("nothing")
        if not self._pressed and key.isascii() and key.isdigit():
            if len(self._digits) < _MOST_DIGITS:
                self._digits += key
            return KeyResult("more")
        pressed = (*self._pressed, key)
        for each in (scope, "everywhere") if scope != "everywhere" else (scope,):
            action_found = self._actions.get(each, {}).get(pressed)
            if action_found is not None:
                return self._complete(action_found, pressed)
            if pressed in self._beginnings.get(each, ()):
                self._pressed = pressed
                return KeyResult("more")
        had_more = bool(self._pressed or self._digits)
        self.forget()
        return KeyResult("more") if had_more and key == "escape" else KeyResult("nothing")

    @property
    def _count(self) -> int | None:
        return int(self._digits) if self._digits else None

    def _complete(self, action: Action[Any], pressed: tuple[str, ...]) -> KeyResult:
        if action.takes_letter:
            self._waiting, self._pressed = action, pressed
            return KeyResult("more")
        given = Given(self._count)
        self.forget()
        return KeyResult("action", action, given)
