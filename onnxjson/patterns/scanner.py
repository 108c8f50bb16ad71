"""Tokens of a pattern, and errors with their line and column."""

import re
from typing import Final, NamedTuple, NoReturn

from onnxjson.model.display import visible
from onnxjson.model.errors import SelectorError

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf\b)|nan\b)
    |(?P<word>[^\W\d][\w.-]*::[^\W\d]\w*|[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<mark>::|->|\.\.\.|<=|>=|!=|.)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """One token: a number, word, text or mark, or the end."""

    kind: str
    text: str
    start: int


class Scanner:
    """A text and the next token in it; `what` names the text in errors."""

    def __init__(self, text: str, what: str = "pattern") -> None:
        self.text = text
        self._what = what
        self.go_to(0)

    def go_to(self, place: int) -> None:
        """Continue at a place of the text."""
        found = _TOKEN.match(self.text, place)
        assert found is not None
        kind = found.lastgroup or "end"
        self.at = found.end()
        self.token = Token(kind, found[kind], found.start(kind))

    def sees(self, text: str) -> bool:
        """Whether the next token is this mark or word."""
        return self.token.text == text and self.token.kind in ("mark", "word")

    def expect(self, text: str, or_else: str = "") -> None:
        """Skip the next token; raise SelectorError if it is not this one."""
        if not self.passes(text):
            self.fail(f'{or_else}"{text}"')

    def take(self) -> str:
        """Skip the next token, and return its text."""
        text = self.token.text
        self.go_to(self.at)
        return text

    def passes(self, text: str) -> bool:
        """Skip the next token if it is this one; return whether it was."""
        if is_next := self.sees(text):
            self.take()
        return is_next

    def fail(self, fits: str, *, at: int | None = None, found: str | None = None, hint: str = "") -> NoReturn:
        """Raise a SelectorError with the place of a token, what was expected, and what was found."""
        place = self.token.start if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        token = self.token.text if found is None else found
        shown = f'"{visible(token)}"' if token else "the end"
        tail = f"; {hint}" if hint else ""
        raise SelectorError(f"{self._what}:{line}:{column}: expected {fits}, found {shown}{tail}")
