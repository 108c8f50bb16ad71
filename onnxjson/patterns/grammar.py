r"""The grammar of patterns: text to `onnxjson.patterns.expression.Pattern`.

::

    pattern    = value {";" value} ["where" condition {"and" condition}]
    value      = start {"->" [gap "->"] call}
    gap        = "..." ["{" number "," [number] "}"]
    start      = "_" | "$" name | "?" name | number | list | call | "(" value ")"
    call       = operators ["<" attribute {"," attribute} ">"] ["(" [value {"," value}] ["..."] ")"] ["." number]
                 ["as" "$" name]
    operators  = operator | "(" operator {"|" operator} ")"
    operator   = [domain "::"] name | "*" | text
    attribute  = name "=" ("*" | "$" name | number | text | list)
    list       = "[" [item {"," item}] "]"          item = "*" | number | text
    condition  = function "(" "$" name ")" comparison (number | text | list | "$" name)
               | "$" name comparison (number | "$" name | selector)
"""

import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn, TypeVar

from onnxjson.model.display import suggest, visible
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.errors import LimitError, SelectorError
from onnxjson.model.limits import PATTERN_DEPTH, PATTERN_TEXT
from onnxjson.patterns.expression import (
    FUNCTIONS,
    Anything,
    AttributeValue,
    Bound,
    Call,
    Condition,
    Elements,
    Number,
    Operator,
    Path,
    Pattern,
    Text,
    ValuePattern,
    final_call,
)
from onnxjson.patterns.selector_terms import parse as parse_selector

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf\b)|nan\b)
    |(?P<word>[^\W\d][\w.-]*::[^\W\d]\w*|[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<mark>::|->|\.\.\.|<=|>=|!=|.)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_SELECTOR: Final = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|(?!\s+and\s)[^"])*)""", re.DOTALL)
_DIGITS: Final = 9
_OUTPUT: Final = re.compile(rf"\s*\.(\d{{1,{_DIGITS}}})")
_CHOICE: Final = re.compile(r'\(\s*(?:[\w.:*-]+|"(?:[^"\\]|\\.)*")\s*\|')
_SIZES: Final = re.compile(r"[kMG]\b")
_SIZE: Final = {"k": 10**3, "M": 10**6, "G": 10**9}
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_T = TypeVar("_T")


@lru_cache(maxsize=256)
def parse(text: str) -> Pattern:
    """Parse the text of a pattern.

    Raises:
        SelectorError: it is misspelled; the message names the character and what fits there.
        LimitError: it is too long or too deep.
    """
    if len(text) > PATTERN_TEXT:
        raise LimitError(f"the pattern has {len(text):,} characters; at most {PATTERN_TEXT:,} are read")
    return _Parser(text).pattern()


@lru_cache(maxsize=256)
def parse_replacement(text: str) -> tuple[Call, ...] | Bound:
    """Parse what replaces a match: a call, ``$x``, or several calls with the names of what they replace.

    Raises:
        SelectorError: it is misspelled; the message names the character and what fits there.
        LimitError: it is too deep.
    """
    return _Parser(text, "replacement").replacement()


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Parser:
    def __init__(self, text: str, what: str = "pattern") -> None:
        self._text = text
        self._what = what
        self._at = 0
        self._depth = 0
        self._token = self._scan()

    def pattern(self) -> Pattern:
        roots: list[Call | Path] = []
        while not roots or self._is(";"):
            if roots:
                self._next()
            start = self._token.start
            root = self._value()
            if not isinstance(root, Call | Path):
                self._fail("an operator, such as Softmax($x)", at=start, found=str(root))
            roots.append(root)
        if len(roots) > 1 and not all(final_call(each).name for each in roots):
            self._fail('a name for each of several values, as in "Relu($x) as $a; Tanh($x) as $b"')
        conditions: list[Condition] = []
        if self._is("where"):
            names = Pattern(roots[0], (), tuple(roots[1:])).names
            while not conditions or self._is("and"):
                self._next()
                conditions.append(self._condition(names))
        if self._token.kind != "end":
            self._fail('"->", ";", "where", or the end' if not conditions else '"and", or the end')
        return Pattern(roots[0], tuple(conditions), tuple(roots[1:]))

    def replacement(self) -> tuple[Call, ...] | Bound:
        calls: list[Call] = []
        while not calls or self._is(";"):
            if calls:
                self._next()
            value = self._value()
            if isinstance(value, Bound) and not calls:
                return value if self._token.kind == "end" else self._fail(f"the end after {value}")
            if not isinstance(value, Call):
                self._fail("an operator, such as Gelu($x), or $x", at=0, found=str(value))
            calls.append(value)
        if self._token.kind != "end":
            self._fail("the end")
        if len(calls) > 1 and not all(each.name for each in calls):
            self._fail("the name of what each of several calls replaces, as in Gelu($x) as $y")
        return tuple(calls)

    def _value(self) -> ValuePattern:
        depth = self._depth
        self._deeper()
        value = self._start()
        while self._is("->"):
            self._deeper()
            self._next()
            least, most = self._gap()
            end = self._call()
            value = Path(value, least, most, end)
        self._depth = depth
        return value

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > PATTERN_DEPTH:
            raise LimitError(f"the pattern is nested more than {PATTERN_DEPTH} levels deep")

    def _gap(self) -> tuple[int, int | None]:
        if not self._is("..."):
            return 0, 0
        self._next()
        least, most = 0, None
        if self._is("{"):
            self._next()
            least = self._count()
            self._expect(",")
            place = self._token.start
            most = None if self._is("}") else self._count()
            if most is not None and most < least:
                self._fail(f"a number of at least {least}", at=place, found=str(most))
            self._expect("}")
        self._expect("->")
        return least, most

    def _start(self) -> ValuePattern:
        kind, text, _ = self._token
        if text in ("$", "?"):
            return self._bound()
        if kind == "number":
            return Number(self._number())
        if text == "[":
            return self._list()
        if text == "_":
            self._next()
            return Anything()
        if text == "(" and not self._is_choice():
            self._next()
            value = self._value()
            self._expect(")")
            return value
        return self._call()

    def _is_choice(self) -> bool:
        return _CHOICE.match(self._text, self._token.start) is not None

    def _call(self) -> Call:
        operators = [self._operator()] if not self._is("(") else self._between("(", self._operator, ")", mark="|")
        attributes: list[tuple[str, AttributeValue]] = []
        if self._is("<"):
            attributes = self._between("<", self._attribute, ">")
        inputs: list[ValuePattern] | None = None
        is_open = False
        if self._is("("):
            found = self._between("(", self._input, ")", may_be_empty=True)
            inputs, is_open = [each for each in found if each is not None], None in found
        return Call(
            tuple(operators), tuple(attributes), None if inputs is None else tuple(inputs), is_open, self._output(),
            self._called(),
        )  # fmt: skip

    def _output(self) -> int:
        found = _OUTPUT.match(self._text, self._token.start)
        if found is None:
            return 0
        self._at = found.end()
        self._token = self._scan()
        return int(found[1])

    def _called(self) -> str:
        if not self._is("as"):
            return ""
        self._next()
        return self._bound().name if self._is("$") else self._fail("$name")

    def _input(self) -> ValuePattern | None:
        if self._is("..."):
            self._next()
            if not self._is(")"):
                self._fail('")" after "..."')
            return None
        return self._value()

    def _operator(self) -> Operator:
        if self._is("*"):
            self._next()
            return Operator("*")
        if self._token.kind not in ("word", "text") or self._token.text == "_":
            self._fail("an operator, $name, ?name, _, a number or a list")
        domain, mark, name = self._string().rpartition("::")
        return Operator(name, "" if not mark or domain == "ai.onnx" else domain)

    def _attribute(self) -> tuple[str, AttributeValue]:
        if self._token.kind != "word":
            self._fail("the name of an attribute")
        name = self._next()
        self._expect("=")
        return name, self._attribute_value()

    def _attribute_value(self) -> AttributeValue:
        kind, text, _ = self._token
        if text == "*":
            self._next()
            return Anything()
        if text == "$":
            return self._bound()
        if kind == "number":
            return Number(self._number())
        if text == "[":
            return self._list()
        if kind in ("word", "text"):
            return Text(self._string())
        self._fail("*, $name, a number, a text or a list")

    def _bound(self) -> Bound:
        is_constant = self._next() == "?"
        if self._token.kind != "word" or "." in self._token.text or ":" in self._token.text:
            self._fail("a name of letters, digits and _")
        return Bound(self._next(), is_constant)

    def _list(self) -> Elements:
        return Elements(tuple(self._between("[", self._item, "]", may_be_empty=True)))

    def _item(self) -> float | str | None:
        if self._is("*"):
            self._next()
            return None
        if self._token.kind == "number":
            return self._number()
        if self._token.kind in ("word", "text"):
            return self._string()
        self._fail("*, a number or a text")

    def _condition(self, names: dict[str, bool]) -> Condition:
        function = ""
        if self._token.kind == "word":
            if self._token.text not in FUNCTIONS:
                self._fail(f"one of {', '.join(FUNCTIONS)}, or $name", hint=suggest(self._token.text, FUNCTIONS))
            function = self._next()
            self._expect("(")
        place = self._token.start
        if self._token.text not in ("$", "?"):
            self._fail("$name")
        name = self._bound().name
        if name not in names:
            known = ", ".join(f"${each}" for each in names)
            self._fail(f"a name of the pattern ({known or 'it has none'})", at=place, found=f"${name}")
        if function and names[name]:
            self._fail(f"a value; ${name} is an attribute", at=place, found=f"{function} of an attribute")
        if function:
            self._expect(")")
        if self._token.text not in _COMPARISONS:
            self._fail("=, !=, <, <=, > or >=")
        comparison = self._token.text
        if function in ("dtype", "shape") and comparison not in ("=", "!="):
            self._fail(f"= or != for {function}")
        if not function:
            return Condition("", name, comparison, self._compared(comparison, names))
        self._next()
        return Condition(function, name, comparison, self._wanted(function, names))

    def _wanted(self, function: str, names: dict[str, bool]) -> Number | Elements | Text | Bound:
        if function == "dtype":
            if self._is("$"):
                place = self._token.start
                bound = self._bound()
                if not names.get(bound.name):
                    self._fail("the name of an attribute", at=place, found=str(bound))
                return bound
            if self._token.text not in DATA_TYPE_NAMES.values():
                self._fail("a data type, such as float16", hint=suggest(self._token.text, {*DATA_TYPE_NAMES.values()}))
            return Text(self._string())
        if function == "shape":
            if not self._is("["):
                self._fail("a shape, such as [1, *, 32]")
            return self._list()
        if self._token.kind != "number":
            self._fail("a number")
        return Number(self._number(sizes=function == "size"))

    def _compared(self, comparison: str, names: dict[str, bool]) -> Number | Text | Bound:
        found = _SELECTOR.match(self._text, self._at)
        assert found is not None
        self._next()
        if not found[1].strip():
            self._fail("a selector, such as op:Conv, a number or $name")
        if self._token.kind == "number":
            return Number(self._number())
        if comparison not in ("=", "!="):
            self._fail("a number")
        if self._is("$"):
            place = self._token.start
            bound = self._bound()
            if bound.name not in names:
                self._fail("a name of the pattern", at=place, found=str(bound))
            return bound
        selector = found[1].strip()
        try:
            terms = parse_selector(selector).terms or ()
        except SelectorError as error:
            self._fail("a selector, such as op:Conv", found=selector, hint=str(error))
        if any(not each.key and "(" in each.value.text and not each.value.quoted for each in terms):
            self._fail("terms such as op:Conv, or a name in quotes", found=selector)
        self._at = found.end()
        self._token = self._scan()
        return Text(selector)

    def _number(self, *, sizes: bool = False) -> float:
        text = self._token.text
        if sizes and (unit := _SIZES.match(self._text, self._at)):
            self._at = unit.end()
            self._next()
            size = float(text) * _SIZE[unit[0]]
            return int(size) if math.isfinite(size) else size
        self._next()
        try:
            return int(text)
        except ValueError:
            return float(text)

    def _string(self) -> str:
        kind, text, start = self._token
        self._next()
        try:
            return text if kind == "word" else str(json.loads(text))
        except ValueError:
            self._fail("a text in the syntax of JSON", at=start, found=text)

    def _count(self) -> int:
        if not self._token.text.isdecimal() or len(self._token.text) > _DIGITS:
            self._fail("a number of nodes")
        return int(self._next())

    def _between(
        self, first: str, item: Callable[[], _T], last: str, mark: str = ",", *, may_be_empty: bool = False
    ) -> list[_T]:
        self._expect(first)
        found: list[_T] = []
        if may_be_empty and self._is(last):
            self._next()
            return found
        found.append(item())
        while self._is(mark):
            self._next()
            found.append(item())
        self._expect(last, or_else=f'"{mark}" or ')
        return found

    def _is(self, text: str) -> bool:
        return self._token.text == text and self._token.kind in ("mark", "word")

    def _expect(self, text: str, or_else: str = "") -> None:
        if not self._is(text):
            self._fail(f'{or_else}"{text}"')
        self._next()

    def _next(self) -> str:
        text = self._token.text
        self._token = self._scan()
        return text

    def _scan(self) -> _Token:
        found = _TOKEN.match(self._text, self._at)
        assert found is not None
        kind = found.lastgroup or "end"
        self._at = found.end()
        return _Token(kind, found[kind], found.start(kind))

    def _fail(self, fits: str, *, at: int | None = None, found: str | None = None, hint: str = "") -> NoReturn:
        place = self._token.start if at is None else at
        line = self._text.count("\n", 0, place) + 1
        column = place - self._text.rfind("\n", 0, place)
        token = self._token.text if found is None else found
        shown = f'"{visible(token)}"' if token else "the end"
        tail = f"; {hint}" if hint else ""
        raise SelectorError(f"{self._what}:{line}:{column}: expected {fits}, found {shown}{tail}")
