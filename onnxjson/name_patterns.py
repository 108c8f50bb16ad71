"""Patterns of names: wildcards and regular expressions, matched in time proportional to the name.

`re` goes back and tries again, which for some patterns takes exponential time; a script that somebody else wrote may
hold such a pattern. Here a pattern becomes a finite automaton (Thompson, "Regular expression search algorithm", CACM
11(6), 1968) whose deterministic states are made as they are needed and kept, so each character of a name costs one
look-up, or at most one step for each state of the pattern. The length of patterns, their states, the length of names
and the steps in all are bounded.

Regular expressions are those of `re` without what no automaton has: no back references, no lookaround, no ``\b``, no
anchors within. They always match whole names, so a ``^`` that comes first and a ``$`` that comes last change nothing.
"""

import re
import warnings
from collections.abc import Callable
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.errors import LimitError, SelectorError

MOST_CHARACTERS: Final = 500
"""Characters of a pattern."""

LONGEST_NAME: Final = 10_000
"""Names that are longer match no pattern."""

MOST_STATES: Final = 4_000
"""Parts of a pattern, those that a count copies included."""

_MOST_KEPT: Final = 5_000
"""Deterministic states that are kept before all are forgotten."""

_MOST_STEPS: Final = 10_000_000
_MOST_GROUPS: Final = 50
_MOST_COPIES: Final = 1_000
_COUNTED: Final = re.compile(r"\{(?:([0-9]{1,6})(,([0-9]{0,6}))?|,([0-9]{1,6}))\}", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[dDsSwWtnrfva]|[^0-9A-Za-z])", re.S)
_CLASS: Final = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.S)
_GROUP: Final = re.compile(r"\((?:\?(?::|P<[A-Za-z_][A-Za-z0-9_]{0,60}>))?", re.ASCII)


class _Repeat(NamedTuple):
    """An expression, so many times."""

    what: "_Expression"
    least: int
    most: int | None
    lazy: bool = False
    """Whether as few as possible are tried first, which matters to groups alone."""


class _Alternatives(NamedTuple):
    """One of several expressions."""

    choices: "list[_Expression]"


class _Sequence(NamedTuple):
    """Several expressions, one after another."""

    parts: "list[_Expression]"


class _Captured(NamedTuple):
    """An expression whose text a replacement can name, by its number from 1."""

    what: "_Expression"
    number: int


_Matches = Callable[[str], object]
"""Tells of one character whether it fits."""

_Expression = _Matches | _Repeat | _Alternatives | _Sequence | _Captured


class _State:
    """One deterministic state: the states of the pattern that it stands for, and where each character leads."""

    __slots__ = ("accepts", "following", "members")

    def __init__(self, members: frozenset[int], *, accepts: bool) -> None:
        self.members = members
        self.accepts = accepts
        self.following: dict[str, _State] = {}


class NamePattern:
    """A compiled pattern; made by `wildcards` and `regular_expression`."""

    def __init__(self, expression: _Expression) -> None:
        self._fits: list[_Matches | None] = []
        """By state: what the next character must be; None for a state that only leads on to others."""
        self._next: list[list[int]] = []
        self._built = 0
        self._steps = 0
        self._end = self._new(None, [])
        self._start = self._closure([self._build(expression, self._end)])
        self._kept: dict[frozenset[int], _State] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name fits.

        Raises:
            LimitError: the pattern has taken too many steps over all names so far.
        """
        if len(name) > LONGEST_NAME:
            return False
        state = self._state(self._start)
        for character in name:
            following = state.following.get(character)
            if following is None:
                following = state.following[character] = self._advance(state, character)
            state = following
        return state.accepts

    def _state(self, members: frozenset[int]) -> _State:
        state = self._kept.get(members)
        if state is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            state = self._kept[members] = _State(members, accepts=self._end in members)
        return state

    def _advance(self, state: _State, character: str) -> _State:
        self._steps += len(state.members) + 1
        if self._steps > _MOST_STEPS:
            raise LimitError("the pattern takes too many steps on the names of this model; write a simpler one")
        after: list[int] = []
        for member in state.members:
            fits = self._fits[member]
            if fits is not None and fits(character):
                after += self._next[member]
        return self._state(self._closure(after))

    def _closure(self, states: list[int]) -> frozenset[int]:
        """The states that can be reached without a character, those that only lead on left out."""
        pending, seen, found = list(states), set(states), set()
        while pending:
            state = pending.pop()
            if self._fits[state] is not None or state == self._end:
                found.add(state)
                continue
            for following in self._next[state]:
                if following not in seen:
                    seen.add(following)
                    pending.append(following)
        return frozenset(found)

    def _new(self, fits: _Matches | None, following: list[int]) -> int:
        self._fits.append(fits)
        self._next.append(following)
        return len(self._fits) - 1

    def _build(self, expression: _Expression, following: int) -> int:
        """The first state of an expression after which `following` comes."""
        self._built += 1
        if self._built > MOST_STATES:
            raise SelectorError(f"the pattern is too big: counts copy what they count, {MOST_STATES:,} parts at most")
        if isinstance(expression, _Sequence):
            for part in reversed(expression.parts):
                following = self._build(part, following)
            return following
        if isinstance(expression, _Alternatives):
            return self._new(None, [self._build(choice, following) for choice in expression.choices])
        if isinstance(expression, _Repeat):
            return self._build_repeat(expression, following)
        if isinstance(expression, _Captured):
            return self._build(expression.what, following)
        return self._new(expression, [following])

    def _build_repeat(self, repeat: _Repeat, following: int) -> int:
        end = following
        if repeat.most is None:
            following = self._new(None, [following])
            self._next[following].append(self._build(repeat.what, following))
        else:
            for _ in range(repeat.most - repeat.least):
                following = self._new(None, [self._build(repeat.what, following), end])
        for _ in range(repeat.least):
            following = self._build(repeat.what, following)
        return following


def has_wildcards(text: str) -> bool:
    """Whether a text has ``*`` or ``?``."""
    return "*" in text or "?" in text


class Wildcards:
    """A text with wildcards, matched without ever going back: each part is found at the first place where it fits."""

    def __init__(self, text: str) -> None:
        parts = text.split("*")
        self._first, self._last = _Part(parts[0]), _Part(parts[-1])
        self._between = [_Part(part) for part in parts[1:-1] if part]
        self._has_star = len(parts) > 1
        self._least = sum([len(part) for part in parts])

    def matches(self, name: str) -> bool:
        """Whether the whole name fits."""
        length = len(name)
        if not self._least <= length <= LONGEST_NAME or not self._first.stands(name, 0):
            return False
        if not self._has_star:
            return length == self._least
        at, end = self._first.length, length - self._last.length
        if not self._last.stands(name, end):
            return False
        for part in self._between:
            at = part.find(name, at, end)
            if at < 0:
                return False
            at += part.length
        return True


class _Part:
    """A part of a text with wildcards in which no ``*`` stands."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self._text = text
        self._regex = None
        if "?" in text:
            self._regex = re.compile("".join(["." if each == "?" else re.escape(each) for each in text]), re.DOTALL)

    def stands(self, name: str, at: int) -> bool:
        """Whether the part stands at a place."""
        return name.startswith(self._text, at) if self._regex is None else bool(self._regex.match(name, at))

    def find(self, name: str, start: int, end: int) -> int:
        """The first place at which the part stands between two others; -1 where there is none."""
        if self._regex is None:
            return name.find(self._text, start, end)
        found = self._regex.search(name, start, end)
        return -1 if found is None else found.start()


def wildcards(text: str) -> Wildcards:
    """The pattern of a text in which ``*`` stands for any characters, ``?`` for one, and all else for itself.

    Raises:
        SelectorError: it is too long.
    """
    _check_length(text)
    return Wildcards(text)


def regular_expression(text: str) -> NamePattern:
    """The pattern of a regular expression.

    Raises:
        SelectorError: it is misspelled, too long, or asks for what no automaton can do.
    """
    _check_length(text)
    return NamePattern(_Parser(text).whole())


_MOST_QUICK_REPEATS: Final = 3
_LONGEST_QUICK_NAME: Final = 100


def _repeats(expression: _Expression, depth: int) -> int:
    """How many repeats an expression has; very many where one stands in another, or around alternatives."""
    if isinstance(expression, _Sequence):
        return sum([_repeats(part, depth) for part in expression.parts])
    if isinstance(expression, _Alternatives):
        return 1000 * depth + sum([_repeats(choice, depth) for choice in expression.choices])
    if isinstance(expression, _Captured):
        return _repeats(expression.what, depth)
    if isinstance(expression, _Repeat):
        return 1 + 1000 * depth + _repeats(expression.what, depth + 1)
    return 0


class Captures:
    """A regular expression over whole names that says what each of its groups fits; see `captures`.

    Paths are tried in the order in which `re` tries them, none twice from the same character, so that the first that
    fits is the one that `re` finds, in time proportional to pattern and name.
    """

    def __init__(self, text: str, expression: _Expression, groups: dict[str, int]) -> None:
        self.groups = groups
        """The numbers of the groups, by number as text and by name."""
        self._pattern = NamePattern(expression)
        # What repeats little, and nothing that repeats itself, costs `re` at most the third power of a short name.
        self._quick = re.compile(text, re.DOTALL) if _repeats(expression, 0) <= _MOST_QUICK_REPEATS else None
        self._steps = 0
        self._program: list[_Matches | tuple[int, ...] | int | None] = []
        """A character that must fit; or the instructions that follow, the preferred first; or a place to note (twice
        the group, and one more at its end); None is the end. All but choices go on with the next one."""
        self._emit(expression)
        self._program.append(None)

    def find(self, name: str) -> tuple[str, ...] | None:
        """The whole name and what each group fits ("" where it fits nothing); None where the name does not fit.

        Raises:
            LimitError: the pattern has taken too many steps over all names so far.
        """
        if not self._pattern.matches(name):
            return None
        if self._quick is not None and len(name) <= _LONGEST_QUICK_NAME:
            found = self._quick.fullmatch(name)
            return None if found is None else (name, *[text or "" for text in found.groups()])
        count = 1 + len(set(self.groups.values()))
        places: list[int] = [-1] * (2 * count)
        seen: set[tuple[int, int]] = set()
        pending: list[tuple[int, int, int]] = [(0, 0, -1)]
        while pending:
            at, position, undo = pending.pop()
            if undo >= 0:
                places[undo] = position
                continue
            if (at, position) in seen:
                continue
            seen.add((at, position))
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise LimitError("the pattern takes too many steps on the names of this model; write a simpler one")
            step = self._program[at]
            if step is None:
                if position == len(name):
                    ends = [(places[2 * group], places[2 * group + 1]) for group in range(1, count)]
                    return (name, *[name[start:end] if 0 <= start <= end else "" for start, end in ends])
            elif isinstance(step, tuple):
                pending += [(following, position, -1) for following in reversed(step)]
            elif isinstance(step, int):
                pending += [(0, places[step], step), (at + 1, position, -1)]
                places[step] = position
            elif position < len(name) and step(name[position]):
                pending.append((at + 1, position + 1, -1))
        return None

    def _emit(self, expression: _Expression) -> None:
        if len(self._program) > 2 * MOST_STATES:
            raise SelectorError(f"the pattern is too big: counts copy what they count, {MOST_STATES:,} parts at most")
        if isinstance(expression, _Sequence):
            for part in expression.parts:
                self._emit(part)
        elif isinstance(expression, _Alternatives):
            self._emit_alternatives(expression.choices)
        elif isinstance(expression, _Repeat):
            self._emit_repeat(expression)
        elif isinstance(expression, _Captured):
            self._program.append(2 * expression.number)
            self._emit(expression.what)
            self._program.append(2 * expression.number + 1)
        else:
            self._program.append(expression)

    def _emit_alternatives(self, choices: "list[_Expression]") -> None:
        choice = len(self._program)
        self._program.append(())
        starts, ends = [], []
        for each in choices:
            starts.append(len(self._program))
            self._emit(each)
            ends.append(len(self._program))
            self._program.append(())
        self._program[choice] = tuple(starts)
        for end in ends:
            self._program[end] = (len(self._program),)

    def _emit_repeat(self, repeat: _Repeat) -> None:
        for _ in range(repeat.least):
            self._emit(repeat.what)
        choices = []
        for _ in range(1 if repeat.most is None else repeat.most - repeat.least):
            choices.append(len(self._program))
            self._program.append(())
            self._emit(repeat.what)
        if repeat.most is None:
            self._program.append((choices[0],))
        for choice in choices:
            ways = (choice + 1, len(self._program))
            self._program[choice] = ways[::-1] if repeat.lazy else ways


def captures(text: str) -> Captures:
    """A regular expression whose groups are wanted.

    Raises:
        SelectorError: as `regular_expression`.
    """
    _check_length(text)
    parser = _Parser(text)
    return Captures(text, parser.whole(), parser.captures)


_MOST_QUICK_SEARCH_REPEATS: Final = 2
_LONGEST_QUICK_TEXT: Final = 200


def part_searcher(text: str) -> Callable[[str], bool]:
    """Tells of a text whether a regular expression fits a part of it; ``^`` and ``$`` are its start and its end.

    Raises:
        SelectorError: as `regular_expression`; or an anchor stands beside alternatives, of which it would be one's.
    """
    _check_length(text)
    parser = _Parser(text)
    expression = parser.whole()
    at_start, at_end = parser.anchors
    if isinstance(expression, _Alternatives) and (at_start or at_end):
        raise SelectorError(f"re:{visible(text)} has ^ or $ beside |; put brackets around the alternatives")
    anything = _Repeat(_any, 0, None)
    whole = _Sequence([*([] if at_start else [anything]), expression, *([] if at_end else [anything])])
    slow = NamePattern(whole).matches
    if _repeats(expression, 0) > _MOST_QUICK_SEARCH_REPEATS:
        return slow
    # `re` takes at most the third power of the length of a text for so few repeats, and much less for most.
    plain = text[:-1] + r"\Z" if at_end else text
    quick = re.compile(plain, re.DOTALL).search
    return lambda name: quick(name) is not None if len(name) <= _LONGEST_QUICK_TEXT else slow(name)


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise SelectorError(f"the pattern has {len(text):,} characters; {MOST_CHARACTERS} are allowed")


def _any(character: str) -> bool:
    return True


class _Parser:
    """A recursive descent over one regular expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups = 0
        self.captures: dict[str, int] = {}
        """The numbers of the groups that a replacement can name, by number as text and by name."""
        self.anchors = (False, False)
        """Whether a ``^`` stood first and a ``$`` last, which change nothing where whole names are matched."""
        self._flags = re.DOTALL

    def whole(self) -> _Expression:
        """The expression.

        Raises:
            SelectorError: it is none.
        """
        if self._text.startswith("(?i)"):
            self._at = 4
            self._flags |= re.IGNORECASE
        if self._text.startswith("^", self._at):
            self._at += 1
            self.anchors = (True, False)
        expression = self._alternatives()
        if self._at < len(self._text):
            raise self._wrong("this bracket closes nothing")
        return expression

    def _wrong(self, what: str) -> SelectorError:
        return SelectorError(f"re:{visible(self._text)} is no pattern of names: {what} (character {self._at})")

    def _alternatives(self) -> _Expression:
        choices = [self._sequence()]
        while self._text.startswith("|", self._at):
            self._at += 1
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else _Alternatives(choices)

    def _sequence(self) -> _Expression:
        parts: list[_Expression] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._text[self._at] == "$" and self._at == len(self._text) - 1:
                self._at += 1
                self.anchors = (self.anchors[0], True)
                break
            parts.append(self._repeated(self._atom()))
        return _Sequence(parts)

    def _atom(self) -> _Expression:
        character = self._text[self._at]
        if character == "(":
            return self._group()
        if character in "*+?":
            raise self._wrong(f"nothing stands before {character} that could be repeated")
        if character in "^$":
            raise self._wrong(f"{character} within a pattern; patterns match whole names anyway")
        if character == ".":
            self._at += 1
            return _any
        if character not in "\\[":
            self._at += 1
            return self._matcher(re.escape(character))
        found = (_CLASS if character == "[" else _ESCAPE).match(self._text, self._at)
        if found is None:
            what = "this [ is not closed" if character == "[" else "this escape has no meaning here"
            raise self._wrong(what)
        matcher = self._matcher(found[0])
        self._at = found.end()
        return matcher

    def _matcher(self, source: str) -> _Matches:
        """What fits the pattern of one character."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of sets in sets, which mean what they always meant
                return re.compile(source, self._flags).fullmatch
        except (re.error, OverflowError, ValueError) as error:
            raise self._wrong(str(error)) from None

    def _group(self) -> _Expression:
        opening = _GROUP.match(self._text, self._at)
        if opening is None or self._text.startswith("?", opening.end()):
            raise self._wrong("groups are (...), (?:...) and (?P<name>...); (?i) may stand first")
        self._groups += 1
        if self._groups > _MOST_GROUPS:
            raise self._wrong(f"it has more than {_MOST_GROUPS} groups")
        number = 0 if opening[0] == "(?:" else self._numbered(opening[0])
        start, self._at = self._at, opening.end()
        expression = self._alternatives()
        if not self._text.startswith(")", self._at):
            self._at = start
            raise self._wrong("this bracket is not closed")
        self._at += 1
        return _Captured(expression, number) if number else expression

    def _numbered(self, opening: str) -> int:
        number = len(set(self.captures.values())) + 1
        self.captures[str(number)] = number
        if name := opening.removeprefix("(").removeprefix("?P<").removesuffix(">"):
            if name in self.captures:
                raise self._wrong(f"two groups are called {name}")
            self.captures[name] = number
        return number

    def _repeated(self, what: _Expression) -> _Expression:
        counted = _COUNTED.match(self._text, self._at)
        if counted is not None:
            least = int(counted[1] or 0)
            most: int | None = least if counted[2] is None and counted[4] is None else None
            if upper := counted[3] or counted[4]:
                most = int(upper)
            if (most is not None and most < least) or max(least, most or 0) > _MOST_COPIES:
                raise self._wrong(f"counts go upwards, to {_MOST_COPIES:,} at most")
            self._at = counted.end()
        elif self._at < len(self._text) and self._text[self._at] in "*+?":
            mark = self._text[self._at]
            least, most = (1 if mark == "+" else 0), (1 if mark == "?" else None)
            self._at += 1
        else:
            return what
        lazy = self._text.startswith("?", self._at)
        self._at += lazy
        if self._at < len(self._text) and self._text[self._at] in "*+?":
            raise self._wrong("a repeat of a repeat; put brackets around the inner one")
        return _Repeat(what, least, most, lazy)
