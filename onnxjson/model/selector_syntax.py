"""The grammar of selectors (`onnxjson.model.selectors`): parse the text of a user."""

import re
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.errors import SelectorError

KEYS: Final = ("op", "attr", "name", "output", "input", "domain", "dtype", "scope")
"""The keys of terms, besides ``in``."""

_KEY: Final = re.compile(rf"({'|'.join((*KEYS, 'in'))}):")
_HAS_KEY: Final = re.compile(rf"(?:^|\s)!?{_KEY.pattern}")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?=[\s=]|$)', re.S)
_PLAIN: Final = re.compile(r"[^\s\"*?=\\!:@]+")
_TO_SPACE: Final = re.compile(r"\S*")
_TO_EQUALS: Final = re.compile(r"[^\s=]*")
_SPACE: Final = re.compile(r"\s*")
_LIMITED_REGEX: Final = re.compile(r"(!?)in:main\s+re:")


class Value(NamedTuple):
    """A name or value to look for."""

    text: str
    quoted: bool = False
    """Whether it was in quotes, so that ``*`` and ``?`` are literal."""


class Term(NamedTuple):
    """One condition on a node."""

    key: str
    """One of `KEYS`; "" for a name without a key."""
    value: Value
    negated: bool = False
    attribute_value: Value | None = None
    """The VALUE in ``attr:NAME=VALUE``; `value` is the NAME."""

    def __str__(self) -> str:
        tail = "" if self.attribute_value is None else f"={_spelled_value(self.attribute_value)}"
        return ("!" if self.negated else "") + (f"{self.key}:" if self.key else "") + _spelled_value(self.value) + tail


class Selector(NamedTuple):
    """A selector; exactly one of `address`, `regex`, `name` and `terms` is set."""

    text: str
    """The text of the user."""
    address: str | None = None
    regex: str | None = None
    name: Value | None = None
    terms: tuple[Term, ...] | None = None
    in_main: bool | None = None
    """Whether it is limited to the main graph (True) or to all others (False)."""


def spelled(key: str, text: str) -> str:
    """Return the term for exactly this text, in quotes where it needs them."""
    return f"{key}:" + (text if _PLAIN.fullmatch(text) else _quoted(text))


def parse(text: str) -> Selector:
    """Parse the text of a selector.

    Raises:
        SelectorError: the selector is empty or misspelled.
    """
    if text.startswith("@"):
        return Selector(text, address=text[1:])
    if text.startswith("re:"):
        return Selector(text, regex=text[3:])
    if limited := _LIMITED_REGEX.match(text):
        return Selector(text, regex=text[limited.end() :], in_main=not limited[1])
    if not text.strip():
        raise SelectorError('the selector is empty; name a node or tensor, or write terms such as "op:Conv"')
    if quoted := _QUOTED.fullmatch(text.strip()):
        return Selector(text, name=Value(_unescaped(quoted[1]), quoted=True))
    if not _HAS_KEY.search(text):
        return Selector(text, name=Value(text))
    terms = _Words(text).terms()
    places = [term for term in terms if term.key == "in"]
    if len({term.negated for term in places}) > 1:
        raise SelectorError(f"{_called(text)} wants nodes in the main graph and not in it")
    others = tuple([term for term in terms if term.key != "in"])
    in_main = not places[0].negated if places else None
    if len(others) == 1 and not others[0].key and not others[0].negated:
        return Selector(text, name=others[0].value, in_main=in_main)
    return Selector(text, terms=others, in_main=in_main)


class _Words:
    """A scan over the words of a selector that has terms."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def terms(self) -> list[Term]:
        """Return the terms, including ``in:``.

        Raises:
            SelectorError: one is misspelled, or several have no key.
        """
        terms: list[Term] = []
        self._take(_SPACE)
        while self._at < len(self._text):
            terms.append(self._term())
            self._take(_SPACE)
        names = [str(term) for term in terms if not term.key]
        if len(names) > 1:
            joined = visible(" ".join(names))
            raise SelectorError(
                f"{_called(self._text)} has {len(names)} names without a key; a name with spaces stands in quotes: "
                f'"{joined}"'
            )
        return terms

    def _term(self) -> Term:
        negated = self._text.startswith("!", self._at)
        self._at += negated
        key = _KEY.match(self._text, self._at)
        if key is None:
            return Term("", self._value(_TO_SPACE), negated)
        self._at = key.end()
        value = self._value(_TO_EQUALS if key[1] == "attr" else _TO_SPACE)
        if not value.text and not value.quoted:
            raise SelectorError(
                f'{_called(self._text)}: nothing stands after {key[0]} (for an empty text write {key[0]}"")'
            )
        if key[1] == "in" and value.text != "main":
            raise SelectorError(
                f"{_called(self._text)}: only in:main is known, the graph without subgraphs and functions"
            )
        if key[1] == "attr" and self._text.startswith("=", self._at):
            self._at += 1
            return Term("attr", value, negated, self._value(_TO_SPACE))
        return Term(key[1], value, negated)

    def _value(self, plain: re.Pattern[str]) -> Value:
        if not self._text.startswith('"', self._at):
            return Value(self._take(plain))
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is None:
            raise SelectorError(
                f"{_called(self._text)}: the quote at character {self._at} is not closed before a space"
            )
        self._at = quoted.end()
        return Value(_unescaped(quoted[1]), quoted=True)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None  # every pattern that is taken matches nothing, too
        self._at = found.end()
        return found[0]


def _called(text: str) -> str:
    return f"the selector {visible(text)}"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.S)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _spelled_value(value: Value) -> str:
    return _quoted(value.text) if value.quoted else value.text
