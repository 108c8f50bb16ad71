"""Patterns of names: wildcards, and regular expressions that end at a time limit.

A script from elsewhere may have an expression that needs exponential time for some names. Regular expressions
therefore run in the package ``regex``, which can stop, and all names together have `limits.PATTERN_SECONDS`. The syntax
is that of `re`; whole names must match, so ``^`` at the start and ``$`` at the end change nothing.
"""

import re
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from onnxjson.model import limits
from onnxjson.model.display import visible
from onnxjson.model.errors import LimitError, SelectorError

if TYPE_CHECKING:
    import regex


def has_wildcards(text: str) -> bool:
    """Whether a text has ``*`` or ``?``."""
    return "*" in text or "?" in text


class Wildcards:
    """A text in which ``*`` matches any characters, ``?`` one, and everything else itself.

    Raises:
        SelectorError: the text is too long.
    """

    def __init__(self, text: str) -> None:
        _check_length(text)
        first, *others = [
            "".join(["." if each == "?" else re.escape(each) for each in part]) for part in text.split("*")
        ]
        # A part between two stars is right at the first place where it fits, so that no other place is ever tried:
        # without atomic groups, ten stars could take years.
        between = "".join([f"(?>.*?{part})" for part in others[:-1] if part])
        self._fullmatch = re.compile(f"{first}{between}.*{others[-1]}" if others else first, re.DOTALL).fullmatch

    def matches(self, name: str) -> bool:
        """Whether the whole name fits; names of more than `limits.PATTERN_NAME_CHARACTERS` never do."""
        return len(name) <= limits.PATTERN_NAME_CHARACTERS and self._fullmatch(name) is not None


class NamePattern:
    """A regular expression and the time that it has left; `regular_expression` compiles one."""

    def __init__(self, compiled: "regex.Pattern[str]") -> None:
        self._compiled = compiled
        self._seconds_left = limits.PATTERN_SECONDS
        numbers = {str(number): number for number in range(1, compiled.groups + 1)}
        self.groups: Mapping[str, int] = numbers | dict(compiled.groupindex)
        """The numbers of the groups, by number as text and by name."""

    def matches(self, name: str) -> bool:
        """Whether the whole name fits; names of more than `limits.PATTERN_NAME_CHARACTERS` never do.

        Raises:
            LimitError: the expression has used up its time on this name and earlier ones.
        """
        return self._run(name, is_whole=True) is not None

    def find(self, name: str) -> tuple[str, ...] | None:
        """Return the name and the text of each group ("" for a group without one), or None if the name does not fit."""
        found = self._run(name, is_whole=True)
        return None if found is None else (name, *[text or "" for text in found.groups()])

    def is_in(self, text: str) -> bool:
        """Whether a part of the text fits; ``^`` and ``$`` are its start and its end."""
        return self._run(text, is_whole=False) is not None

    def _run(self, name: str, *, is_whole: bool) -> "regex.Match[str] | None":
        if len(name) > limits.PATTERN_NAME_CHARACTERS:
            return None
        match = self._compiled.fullmatch if is_whole else self._compiled.search
        start = time.thread_time()
        try:
            if self._seconds_left <= 0:
                raise TimeoutError
            return match(name, timeout=self._seconds_left)
        except TimeoutError:
            raise LimitError(
                f"re:{visible(self._compiled.pattern)} takes more than {limits.PATTERN_SECONDS:g} seconds on the names "
                "of this model; write an expression with fewer repeats in repeats"
            ) from None
        finally:
            self._seconds_left -= time.thread_time() - start


def regular_expression(text: str, *, ignore_case: bool = False) -> NamePattern:
    """Compile a regular expression.

    Raises:
        SelectorError: it is not one, or is too long.
    """
    import regex  # here, since few commands need it

    _check_length(text)
    if _copies(text) > limits.PATTERN_COPIES:
        raise SelectorError(
            f"re:{visible(text)} is too big: each count repeats its part, and at most {limits.PATTERN_COPIES:,} parts "
            "are allowed"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about nested sets, whose meaning is still the old one
            flags = regex.DOTALL | regex.VERSION0 | (regex.IGNORECASE if ignore_case else 0)
            re.compile(text, re.DOTALL)  # `regex` accepts more than the documented syntax
            return NamePattern(regex.compile(text, flags))
    except re.error as error:
        place = "" if error.pos is None else f" (character {error.pos})"
        raise SelectorError(f"re:{visible(text)} is not a regular expression: {error.msg}{place}") from None
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise SelectorError(f"re:{visible(text)} is not a regular expression: {error}") from None


def _check_length(text: str) -> None:
    if len(text) > limits.PATTERN_CHARACTERS:
        raise SelectorError(f"the pattern has {len(text):,} characters; {limits.PATTERN_CHARACTERS} are allowed")


_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>[0-9]*)(?:,(?P<most>[0-9]*))?\}|.", re.DOTALL)


def _copies(text: str) -> int:
    """Return roughly the number of parts of an expression with its counts written out, which is what compiling does."""
    sums = [0]
    last = 0
    for token in _TOKEN.finditer(text):
        if token["least"] is not None:
            count = max(int(digits[:9]) for digits in (token["least"], token["most"], "1") if digits)
            sums[-1] += last * (count - 1)
        elif token[0] == "(":
            sums.append(1)
        elif token[0] == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        else:
            last = 1
            sums[-1] += 1
    return sum(sums)
