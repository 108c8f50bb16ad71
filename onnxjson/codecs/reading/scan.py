"""Scanner: text -> tree with the position of every value; continues after a mistake and reports all of them.

Slow: only for texts with mistakes. It never recurses.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from onnxjson.codecs.canonical_values import is_utf8
from onnxjson.codecs.reading.tokens import Mistake, Token, Tokenizer
from onnxjson.codecs.reading.tree import UNREADABLE, Span, Tree, wide_encoding
from onnxjson.model.display import visible
from onnxjson.model.limits import TEXT_DEPTH

_OPENING: Final = {"}": "{", "]": "["}
_CLOSING: Final = {"{": "}", "[": "]"}

_BEFORE_START: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*+")
_SOME_START: Final = re.compile(r"[{\[}\]]|<{7}|\Z")
"""The start of a document, or of something with its own finding."""
_WRONG_COMMENT: Final = re.compile(r"/\*|#")
_LONG_LINE: Final = 500
_SCALAR: Final = re.compile(r'["\d-]|(?:true|false|null)\b')
_KEY: Final = re.compile(r'"[^"\\\n]*"[ \t]*:')
_BRACKETS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|([{}\[\]])')
_DOCUMENT: Final = re.compile(r'\{\s*+(?:"|//|\})')


@dataclass(slots=True)
class Scan:
    """The result of scanning a text."""

    text: str
    """The decoded text; bytes that are not UTF-8 are lone surrogates (surrogateescape)."""
    tree: Tree = UNREADABLE
    root: Span | int = 0
    mistakes: list[Mistake] = field(default_factory=list)
    is_whole: bool = True
    """Whether the tree has the intended structure: false once brackets do not pair or the text is cut off."""


def scan(data: bytes) -> Scan:
    """Read everything readable in a text, and report every mistake in its syntax."""
    text = data.decode("utf-8", "surrogateescape")
    if encoding := wide_encoding(data):
        mistake = Mistake(0, "not-utf-8", f"the text is {encoding}", "save the file as UTF-8")
        return Scan(text, mistakes=[mistake], is_whole=False)
    scanner = _Scanner(text)
    scanner.run(1 if text.startswith("\ufeff") else 0)
    mistakes = _encoding_mistakes(data, text) + scanner.tokens.mistakes
    mistakes.sort(key=lambda mistake: mistake.offset)
    return Scan(text, scanner.tree, scanner.root, mistakes, scanner.is_whole)


def _encoding_mistakes(data: bytes, text: str) -> list[Mistake]:
    mistakes = []
    if text.startswith("\ufeff"):
        message = "the text begins with a byte order mark"
        mistakes.append(Mistake(0, "byte-order-mark", message, "save the file as UTF-8 without one"))
    count = sum(text.count(chr(code)) for code in range(0xDC80, 0xDD00)) if not is_utf8(data) else 0
    if count:
        offset = next(index for index, character in enumerate(text) if "\udc80" <= character <= "\udcff")
        place = len(text[:offset].encode("utf-8"))
        more = f" ({count} such bytes in all)" if count > 1 else ""
        message = f"byte {place:,} (0x{data[place]:02x}) is not UTF-8{more}"
        mistakes.append(Mistake(offset, "not-utf-8", message, "save the file as UTF-8; it may be Latin-1"))
    return mistakes


@dataclass(slots=True)
class _Open:
    """An open object or list or, without a bracket, the whole text."""

    bracket: str
    start: int
    value: dict[str, Tree] | list[Tree]
    span: Span
    state: str
    """The expected token: "key", "colon", "value" (in a list also its end), "comma", and "end" for the whole text."""
    key: str | None = None
    """The key whose value is next; None if that value is left out, since the key is unreadable."""
    count: int = 0


class _Scanner:
    """One pass over the tokens with a stack of the open brackets."""

    def __init__(self, text: str) -> None:
        self.tokens = Tokenizer(text)
        self.tree: Tree = UNREADABLE
        self.root: Span | int = 0
        self.is_whole = True
        self._stack = [_Open("", 0, [], Span(0, False), "value")]
        self._last_end = 0
        self._conflicts_end = True
        self._suspect: _Open | None = None
        """The first closed bracket whose end is further to the left than its beginning."""

    def run(self, start: int) -> None:
        """Read the text from `start` to its end, or until continuing is pointless."""
        self.tokens.skip_to(start)
        going_on = self._begin(start)
        while going_on:
            token = self.tokens.next()
            going_on = self._take(token)
            self._last_end = token.end
        top = self._stack[0]
        if top.count:
            self.tree = top.value[0] if isinstance(top.value, list) else UNREADABLE
            self.root = top.span.members[0]

    def _begin(self, start: int) -> bool:
        """Skip whatever is before the `{` of the document; False if there is none."""
        text = self.tokens.text
        before = _BEFORE_START.match(text, start)
        position = before.end() if before else start
        if _SOME_START.match(text, position):
            return True
        if _KEY.match(text, position):
            message = "the `{` that begins a document is missing"
            self._structure(position, "text-before-start", message, "add it")
            self._open(Token("{", position, position), self._stack[-1])
            return True
        document = _DOCUMENT.search(text, position)
        line = text[position : document.start() if document else None].split("\n", 1)[0].rstrip()
        if document is None:
            if _SCALAR.match(text, position):
                return True
            message = f"the text begins with `{visible(line, 40)}`"
            hint = 'a document begins with {"format": "onnxjson/1", ...'
            self._structure(position, "text-before-start", message, hint)
            self.is_whole = False
            return False
        if _WRONG_COMMENT.match(text, position):
            return True
        message = f"`{visible(line, 40)}` is before the `{{` that begins the document"
        self._structure(position, "text-before-start", message, "delete it")
        self.tokens.skip_to(document.start())
        return True

    def _take(self, token: Token) -> bool:
        top = self._stack[-1]
        if token.kind == "end":
            self._finish(token)
            return False
        if token.kind == "conflict":
            self._skip_conflict(token)
            return True
        if top.state == "end":
            self._structure(token.start, "text-after-end", "the document ends before this", "delete the rest")
            return False
        match token.kind:
            case "," | ":":
                self._separator(token, top)
            case "}" | "]":
                self._close(token, top)
            case _:
                return self._value(token, top)
        return True

    def _value(self, token: Token, top: _Open) -> bool:
        if top.state == "comma":
            what = "the next key" if top.bracket == "{" else "the next item"
            self.tokens.withdraw(token.start, "bare-word")
            is_glued = token.start == self._last_end and self.tokens.text[token.start - 1] == '"'
            hint = 'add `,`, or write a quote inside a text as `\\"`' if is_glued else "add `,`"
            self._structure(self._last_end, "missing-comma", f"a comma is missing before {what}", hint)
            top.state = "key" if top.bracket == "{" else "value"
        if top.state == "colon":
            self._structure(self._last_end, "missing-colon", "a colon is missing between key and value", "add `:`")
            top.state = "value"
        if top.state == "key":
            self._key(token, top)
            return True
        if token.kind == "value":
            self._put(top, token.value, token.start)
            return True
        if len(self._stack) > TEXT_DEPTH:
            message = f"objects and lists nest deeper than {TEXT_DEPTH} levels"
            self._structure(token.start, "nesting-too-deep", message)
            self.is_whole = False
            return False
        self._open(token, top)
        return True

    def _open(self, token: Token, top: _Open) -> None:
        is_object = token.kind == "{"
        value: dict[str, Tree] | list[Tree] = {} if is_object else []
        span = Span(token.start, is_object)
        self._put(top, value, span)
        self._stack.append(_Open(token.kind, token.start, value, span, "key" if is_object else "value"))

    def _put(self, top: _Open, value: Tree, span: Span | int) -> None:
        if isinstance(top.value, list):
            top.span.members[top.count] = span
            top.value.append(value)
        elif top.key is not None:
            top.span.members[top.key] = span
            top.value[top.key] = value
        top.count += 1
        top.state = "comma" if top.bracket else "end"

    def _key(self, token: Token, top: _Open) -> None:
        if token.kind == "{" and self._stack[-2].bracket == "[" and self._lacks("}"):
            self._unclosed(top, token.start, "the next `{`", "add `}` before the comma there")
            self._stack.pop()
            self._stack[-1].state = "value"
            self._open(token, self._stack[-1])
            return
        top.state = "colon"
        top.key = None
        if not token.is_key:
            problem = "this is not one" if token.kind == "value" else f"`{token.kind}` does not begin one"
            decimal = self.tokens.decimal_comma(token.start, token.end)
            hint = f"write a number with a decimal point: {decimal}" if decimal else ""
            self._structure(token.start, "missing-key", f"a key in double quotes is expected here; {problem}", hint)
            self.is_whole = self.is_whole and token.kind == "value"
            if token.kind != "value" and len(self._stack) <= TEXT_DEPTH:
                top.state = "value"
                self._open(token, top)
            elif not self.tokens.next_is_colon():
                top.state = "comma"
        elif isinstance(token.value, str):
            self._name(token.value, token.start, top)

    def _name(self, key: str, start: int, top: _Open) -> None:
        keys = top.span.keys
        if keys is None:
            return
        if key in keys:
            message = f'the key "{visible(key)}" appears twice in this object'
            self.tokens.mistakes.append(Mistake(start, "duplicate-key", message, "keep one of them", keys[key]))
        else:
            keys[key] = start
            top.key = key

    def _separator(self, token: Token, top: _Open) -> None:
        if token.kind == ":":
            if top.state == "colon":
                top.state = "value"
            elif not self._ends_before_key(top):
                self._structure(token.start, "extra-colon", "a colon is allowed only between a key and its value")
            return
        if top.state == "comma":
            top.state = "key" if top.bracket == "{" else "value"
        elif top.bracket == "{" and top.state in ("colon", "value"):
            self._structure(token.start, "missing-value", "the key before this comma has no value", "add it")
            self._put(top, UNREADABLE, token.start)
            top.state = "key"
        else:
            self._structure(token.start, "extra-comma", "nothing is before this comma", "delete it")

    def _ends_before_key(self, top: _Open) -> bool:
        """Report a list without its `]`, whose last item is a key of the object around it; False for another colon."""
        if not isinstance(top.value, list) or top.state != "comma" or top.count < 2 or self._stack[-2].bracket != "{":
            return False
        around, key, start = self._stack[-2], top.value[-1], top.span.members[top.count - 1]
        if not isinstance(key, str) or not isinstance(start, int):
            return False
        # If brackets do not pair, no better message follows, so the mistake stays.
        if self.is_whole and self.tokens.mistakes and top.start < self.tokens.mistakes[-1].offset < start:
            self.tokens.withdraw(self.tokens.mistakes[-1].offset, "missing-comma")
        self._unclosed(top, start, f'the key "{visible(key)}"')
        top.value.pop()
        self._stack.pop()
        around.state, around.key = "value", None
        self._name(key, start, around)
        return True

    def _unclosed(self, top: _Open, before: int, what: str, hint: str = "") -> None:
        if self.is_whole:
            message = f"this `{top.bracket}` is not closed before {what}"
            hint = hint or f"add `{_CLOSING[top.bracket]}`"
            self.tokens.mistakes.append(Mistake(top.start, "unclosed-bracket", message, hint, before))

    def _lacks(self, closing: str) -> bool:
        """Whether the text has too few of a closing bracket, and not too many of the other one."""
        found = Counter(_BRACKETS.findall(self.tokens.text))
        other = "]" if closing == "}" else "}"
        return found[closing] < found[_OPENING[closing]] and found[other] <= found[_OPENING[other]]

    def _is_balanced(self, closing: str) -> bool:
        """Whether the text has not too many of a closing bracket, or too few of the other one."""
        counts = Counter(_BRACKETS.findall(self.tokens.text))
        other = "]" if closing == "}" else "}"
        return counts[closing] <= counts[_OPENING[closing]] or counts[other] < counts[_OPENING[other]]

    def _close(self, token: Token, top: _Open) -> None:
        if top.bracket != _OPENING[token.kind]:
            self._mismatch(token, top)
            while self._stack[-1].bracket != _OPENING[token.kind]:
                if not any(opened.bracket == _OPENING[token.kind] for opened in self._stack):
                    return
                self._stack.pop()
            self._stack.pop()
            return
        if top.bracket == "{" and top.state in ("colon", "value"):
            self._structure(token.start, "missing-value", f"the key before this `{token.kind}` has no value", "add it")
            self._put(top, UNREADABLE, token.start)
        if self._suspect is None:
            before = self._before(token.start)
            indent = self._before(top.start)
            if before.isspace() and len(before) < len(indent) - len(indent.lstrip()):
                self._suspect = top
        self._stack.pop()

    def _before(self, offset: int) -> str:
        """What is before an offset on its line, from the line break; "" if that is far."""
        start = self.tokens.text.rfind("\n", max(0, offset - _LONG_LINE), offset)
        return "" if start < 0 else self.tokens.text[start:offset]

    def _mismatch(self, token: Token, top: _Open) -> None:
        if top.bracket and self._lacks(_CLOSING[top.bracket]):
            self._unclosed(top if self._suspect is None else self._suspect, token.start, f"`{token.kind}`")
        elif top.bracket and not self._is_balanced(token.kind):
            message = (
                f"`{token.kind}` closes nothing here: the text has more `{token.kind}` than `{_OPENING[token.kind]}`"
            )
            self._structure(token.start, "wrong-bracket", message, "delete one, here or above", first=top.start)
        elif top.bracket:
            message = f"`{token.kind}` closes nothing here; the open `{top.bracket}` needs `{_CLOSING[top.bracket]}`"
            self._structure(token.start, "wrong-bracket", message, first=top.start)
        else:
            self._structure(token.start, "wrong-bracket", f"`{token.kind}` closes nothing here")
        self.is_whole = False

    def _finish(self, token: Token) -> None:
        if len(self._stack) > 1:
            top = self._stack[-1]
            message = f"the text ends before `{_CLOSING[top.bracket]}` closes the open `{top.bracket}`"
            self._structure(token.start, "cut-off", message, "the file may be cut off", first=top.start)
            self.is_whole = False
        elif self._stack[0].state == "value" and not self.tokens.mistakes:
            hint = 'a document begins with {"format": "onnxjson/1", ...'
            self._structure(token.start, "empty-text", "the text is empty", hint)

    def _skip_conflict(self, token: Token) -> None:
        """Continue with our side of a conflict, so that other mistakes are found too."""
        text = self.tokens.text
        marker = text[token.start : token.start + 7]
        if marker == "<<<<<<<":
            message = "a git conflict is not resolved"
            hint = "keep the correct lines and delete those that begin with <<<<<<<, ======= and >>>>>>>"
            self._structure(token.start, "git-conflict", message, hint)
        elif marker in ("=======", "|||||||"):
            end = text.find("\n>>>>>>>", token.end) if self._conflicts_end else -1
            self._conflicts_end = end >= 0
            if end >= 0:
                line_end = text.find("\n", end + 1)
                self.tokens.skip_to(len(text) if line_end < 0 else line_end)
        if self.is_whole and marker != "<<<<<<<" and not any(m.code == "git-conflict" for m in self.tokens.mistakes):
            message = f"`{marker}` is left over from a git conflict"
            self._structure(token.start, "git-conflict", message, "delete the line")
        self.is_whole = False

    def _structure(self, offset: int, code: str, message: str, hint: str = "", *, first: int | None = None) -> None:
        """Report a mistake unless it follows from another: after wrong brackets, or on the same line."""
        if self.is_whole and not self.tokens.has_mistake_on_line(offset):
            self.tokens.mistakes.append(Mistake(offset, code, message, hint, first))
