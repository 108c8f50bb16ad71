"""Text -> tokens of JSON, with a diagnosis for each piece that is not one."""

import json
import re
from typing import Final, NamedTuple

from onnxjson.codecs.reading.tree import UNREADABLE, Tree
from onnxjson.model.display import visible
from onnxjson.model.scalars import json_float

# The group of escapes is not possessive: before Python 3.11.5 such a group keeps what a failed try of it consumed.
_TOKEN: Final = re.compile(
    r"""
    (?: [\ \t\r\n]+ | //[^\n]* )*+
    (?:
      (?P<string> "[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*" )
      | (?P<conflict> ^(?:<{7}|={7}|>{7}|\|{7})(?![<=>|])[^\n]* )
      | (?P<mark> [{}\[\],:] )
      | (?P<number> -?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.+-]) )
      | (?P<word> (?: [+\-.\w] | /(?![/*]) ) (?: [\w.+\-] | /(?![/*]) )* )
      | (?P<end> \Z )
      | (?P<other> . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
MOST_MISTAKES: Final = 10_000
"""Mistakes after which the rest of a text is not read: it is not a text of this format."""

_MAXIMUM_DIGITS = 4300
"""Maximum digits that Python converts to an integer; longer numbers fit no field anyway."""

_NOT_NUMBERS = {"nan": "NaN", "infinity": "Infinity", "inf": "Infinity"}
_OFTEN_FOLLOWS = ("bad-character", "unterminated-string", "bare-word")
_MEANT = {
    "=": ":", "(": "[", ")": "]", "\uff1a": ":", "\uff0c": ",", "\u3001": ",", ";": ",", "\uff5b": "{", "\uff5d": "}",
}  # fmt: skip
"""The intended character for one that begins no token."""
_BEFORE_COMMA = re.compile(r"(-?[0-9]+),$")
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_THAT_IS_NO_UTF8 = re.compile("[\udc80-\udcff]")
_CONTROL = re.compile(r"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<good>\\.)', re.DOTALL)
_REST_OF_STRING = re.compile(r'[^"\\\n]*(?:\\[^\n][^"\\\n]*)*')
_WRONG_QUOTES = re.compile(
    "'(?P<single>[^'\n]*)'|[“”„‟«»](?P<double>[^“”„‟«»\"\n]*)[“”„‟«»\"]|[‘’‚‛](?P<one>[^‘’‚‛\n]*)[‘’‚‛]"
)


class Mistake(NamedTuple):
    """One mistake in the syntax of a text."""

    offset: int
    """The character, counted from 0."""
    code: str
    message: str
    hint: str = ""
    first: int | None = None
    """The offset of a related place, with which the message then ends."""


class Token(NamedTuple):
    """A piece of the text."""

    kind: str
    """One of ``{ } [ ] , :`` for themselves, "value", "end", "conflict"."""
    start: int
    end: int
    value: Tree = None
    """The value of a "value"."""
    is_key: bool = False
    """Whether it is a string, and so can be a key."""


class Tokenizer:
    """Reads tokens one after the other and collects `mistakes`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.mistakes: list[Mistake] = []
        self._position = 0
        self._line_start = self._line_end = 0

    def next(self) -> Token:
        """Return the next token; "end" whenever there are no more."""
        while True:
            if len(self.mistakes) >= MOST_MISTAKES:
                self._position = len(self.text)
            match = _TOKEN.match(self.text, self._position)
            if match is None:
                raise AssertionError("the token pattern matches everywhere")
            kind = match.lastgroup
            start, end = match.span(kind or 0)
            self._position = end
            match kind:
                case "string":
                    return self._string(start, end)
                case "mark":
                    return Token(self.text[start], start, end)
                case "number":
                    return Token("value", start, end, self._number(match, start))
                case "word":
                    return self._word(start, end)
                case "conflict" | "end":
                    return Token(kind, start, end)
            token = self._other(start)
            if token is not None:
                return token

    def next_is_colon(self) -> bool:
        """Whether the next token is a colon."""
        match = _TOKEN.match(self.text, self._position)
        return match is not None and match.group("mark") == ":"

    def decimal_comma(self, start: int, end: int) -> str:
        """The number with a decimal point, if the digits from `start` to `end` follow a decimal comma; else ""."""
        before = _BEFORE_COMMA.search(self.text, max(0, start - 20), start)
        return f"{before[1]}.{self.text[start:end]}" if before and self.text[start:end].isdecimal() else ""

    def skip_to(self, offset: int) -> None:
        """Continue at `offset`."""
        self._position = offset

    def report(self, offset: int, code: str, message: str, hint: str = "") -> None:
        """Report a mistake unless it probably follows from another on the same line."""
        if code in _OFTEN_FOLLOWS and self.has_mistake_on_line(offset):
            return
        self.mistakes.append(Mistake(offset, code, message, hint))

    def withdraw(self, offset: int, code: str) -> None:
        """Remove the last mistake if it is this one, since a better reason was found."""
        if self.mistakes and self.mistakes[-1].offset == offset and self.mistakes[-1].code == code:
            self.mistakes.pop()

    def has_mistake_on_line(self, offset: int) -> bool:
        """Whether the last mistake is on the line of `offset`."""
        if not self.mistakes:
            return False
        last = self.mistakes[-1].offset
        if not self._line_start <= last < self._line_end:
            # Searched once per line, which may be a whole minified document.
            end = self.text.find("\n", last)
            self._line_start, self._line_end = last, len(self.text) + 1 if end < 0 else end + 1
        return offset < self._line_end

    def _string(self, start: int, end: int) -> Token:
        raw = self.text[start:end]
        value = raw[1:-1] if "\\" not in raw else json.loads(raw)
        if (half := _SURROGATE.search(value)) is None:
            return Token("value", start, end, value, True)
        if _BYTE_THAT_IS_NO_UTF8.search(raw) is None:
            message = f"the string has \\u{ord(half.group()):04x}, half of a surrogate pair"
            self.report(start, "half-surrogate", message, 'bytes that are not UTF-8 are written {"base64": "..."}')
        return Token("value", start, end, UNREADABLE, True)

    def _number(self, match: re.Match[str], start: int) -> Tree:
        raw = match.group("number")
        if raw == "-0":
            self.report(start, "minus-zero", "`-0` may have been -0.0 or 0", 'write 0, or "-0.0" in quotes')
            return UNREADABLE
        if not match.group("fraction"):
            if len(raw) <= _MAXIMUM_DIGITS:
                return int(raw)
        elif abs(number := json_float(raw)) != float("inf"):
            return number
        self.report(start, "out-of-range", f"the number {visible(raw, 30)} is too large for any field")
        return UNREADABLE

    def _word(self, start: int, end: int) -> Token:
        word = self.text[start:end]
        if word in _WORDS:
            return Token("value", start, end, _WORDS[word])
        shown = visible(word, 40)
        plain = word.lstrip("+-").lower()
        if self.next_is_colon():
            self.report(start, "unquoted-key", f"the key {shown} has no quotes", f'write "{shown}"')
            return Token("value", start, end, word, True)
        if plain in _NOT_NUMBERS:
            sign = "-" if word.startswith("-") and plain != "nan" else ""
            self.report(start, "nan-literal", f"{shown} is not JSON", f'write "{sign}{_NOT_NUMBERS[plain]}" in quotes')
        elif word in ("True", "False"):
            self.report(start, "bare-word", f"{word} is not JSON", f"write {word.lower()}")
        elif word == "None":
            self.report(start, "bare-word", "None is not JSON", "leave out the key of an absent field")
        elif word[0] in "+-." or word[0].isdigit():
            decimal = self.decimal_comma(start, end)
            hint = _number_hint(word)
            hint = f"write a number with a decimal point: {decimal}; else {hint}" if decimal else hint
            self.report(start, "bad-number", f"{shown} is not a JSON number", hint)
        else:
            self.report(start, "bare-word", f"{shown} has no quotes", f'write "{shown}"')
        return Token("value", start, end, UNREADABLE)

    def _other(self, start: int) -> Token | None:
        """Recover a token from characters that begin none; None if that is impossible."""
        character = self.text[start]
        if character == '"':
            return self._broken_string(start)
        quoted = _WRONG_QUOTES.match(self.text, start)
        if quoted is not None:
            self._position = quoted.end()
            content = quoted.group(quoted.lastgroup or 0)
            kind = "single quotes" if quoted.lastgroup == "single" else "typographic quotes"
            self.report(start, "wrong-quotes", f"{visible(quoted.group(), 40)} has {kind}", 'write "straight" quotes')
            return Token("value", start, quoted.end(), UNREADABLE if _SURROGATE.search(content) else content, True)
        if character == "#" or self.text.startswith("/*", start):
            mark, closing = ("#", "\n") if character == "#" else ("/*", "*/")
            end = self.text.find(closing, start)
            self._position = len(self.text) if end < 0 else end + len(closing)
            hint = "comments are // to the end of a line"
            self.report(start, "wrong-comment", f"`{mark}` does not begin a comment", hint)
            return None
        if not _BYTE_THAT_IS_NO_UTF8.match(character):
            mark = _MEANT.get(character, "")
            hint = "write a list in `[` and `]`" if character in "()" else f"write `{mark}`" if mark else ""
            if not character.isprintable() or character.isspace():
                hint = "delete it, or write a space"
            self.report(start, "bad-character", f"`{visible(character)}` does not belong here", hint)
            if mark:
                return Token(mark, start, start + 1)
        return None

    def _broken_string(self, start: int) -> Token:
        rest = _REST_OF_STRING.match(self.text, start + 1)
        end = rest.end() if rest else start + 1
        if self.text[end : end + 1] != '"':
            line = self.text[start:end]
            message = "the string that begins here is not closed on its line"
            self.report(start, "unterminated-string", message, 'close it with `"`')
            # Brackets and commas at the end of the line belong after the missing quote.
            end = start + max(1, len(line.rstrip(" \t\r,]}")))
            self._position = end
            return Token("value", start, end, UNREADABLE, True)
        self._position = end + 1
        for control in _CONTROL.finditer(self.text, start, end):
            escape = {"\t": "\\t", "\r": "\\r"}.get(control.group(), f"\\u{ord(control.group()):04x}")
            name = {"\t": "a tab", "\r": "a carriage return"}.get(control.group(), "a control character")
            self.report(control.start(), "control-character", f"{name} is in a string", f"write {escape}")
        for escape_match in _BAD_ESCAPE.finditer(self.text, start + 1, end):
            if escape_match.group("good") is None:
                at = escape_match.start()
                message = f"`{visible(self.text[at : at + 2])}` is not an escape of JSON"
                self.report(at, "bad-escape", message, "write a backslash as `\\\\`")
        return Token("value", start, end + 1, UNREADABLE, True)


def _number_hint(word: str) -> str:
    if word[0] == "+":
        return "leave out the +"
    if word.lstrip("-").startswith("."):
        return "write a 0 before the point"
    if word.endswith("."):
        return "write a digit after the point, or leave it out"
    if re.fullmatch(r"-?0[xX][0-9a-fA-F]+", word) and len(word) <= 20:
        return f"write {int(word, 16)}"
    if re.fullmatch(r"-?0[0-9]+", word) and len(word) <= 20:
        return f"write {int(word)}"
    if re.fullmatch(r"-?[0-9]+(?:_[0-9]+)+", word):
        return "leave out the _"
    return ""
