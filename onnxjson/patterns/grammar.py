r"""The grammar of patterns: text to `onnxjson.patterns.expression.Pattern`.

::

    pattern    = value {";" value} ["where" condition {"and" condition}]
    value      = start {"->" [gap "->"] call}
    gap        = "..." ["{" number "," [number] "}"]
    start      = "_" | "$" name | "?" name | number | list | call | "(" value {"|" value} ")"
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
from typing import Final, TypeVar

from onnxjson.model.display import suggest
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
    Either,
    Elements,
    Number,
    Operator,
    Path,
    Pattern,
    Scanner,
    Text,
    ValuePattern,
    final_call,
)
from onnxjson.patterns.selector_terms import parse as parse_selector

_SELECTOR: Final = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|(?!\s+and\s)[^"])*)""", re.DOTALL)
_DIGITS: Final = 9
_OUTPUT: Final = re.compile(rf"\s*\.(\d{{1,{_DIGITS}}})")
_NAME: Final = r'\s*(?:[^\W\d][\w.:-]*|\*|"(?:[^"\\]|\\.)*")\s*'
_CHOICE: Final = re.compile(rf"\({_NAME}\|(?:{_NAME}\|)*(?:{_NAME}\)|\s*\))")
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


class _Parser(Scanner):
    _depth = 0

    def pattern(self) -> Pattern:
        roots: list[Call | Path | Either] = []
        while not roots or self.sees(";"):
            if roots:
                self.take()
            start = self.token.start
            root = self._value()
            options = root.options if isinstance(root, Either) else (root,)
            if not isinstance(root, Call | Path | Either) or not all([isinstance(one, Call | Path) for one in options]):
                self.fail("an operator, such as Softmax($x)", at=start, instead=str(root))
            roots.append(root)
        if len(roots) > 1 and not all([not isinstance(root, Either) and final_call(root).name for root in roots]):
            self.fail('a name for each of several values, as in "Relu($x) as $a; Tanh($x) as $b"')
        conditions: list[Condition] = []
        if self.sees("where"):
            names = Pattern(roots[0], (), tuple(roots[1:])).names
            while not conditions or self.sees("and"):
                self.take()
                conditions.append(self._condition(names))
        if self.token.kind != "end":
            self.fail('"->", ";", "where", or the end' if not conditions else '"and", or the end')
        return Pattern(roots[0], tuple(conditions), tuple(roots[1:]))

    def replacement(self) -> tuple[Call, ...] | Bound:
        calls: list[Call] = []
        while not calls or self.sees(";"):
            if calls:
                self.take()
            value = self._value()
            if isinstance(value, Bound) and not calls:
                return value if self.token.kind == "end" else self.fail(f"the end after {value}")
            if not isinstance(value, Call):
                self.fail("an operator, such as Gelu($x), or $x", at=0, instead=str(value))
            calls.append(value)
        if self.token.kind != "end":
            self.fail("the end")
        if len(calls) > 1 and not all(each.name for each in calls):
            self.fail("the name of what each of several calls replaces, as in Gelu($x) as $y")
        return tuple(calls)

    def _value(self) -> ValuePattern:
        depth = self._depth
        self._deeper()
        value = self._start()
        while self.sees("->"):
            self._deeper()
            self.take()
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
        if not self.passes("..."):
            return 0, 0
        least, most = 0, None
        if self.passes("{"):
            least = self._count()
            self.expect(",")
            place = self.token.start
            most = None if self.sees("}") else self._count()
            if most is not None and most < least:
                self.fail(f"a number of at least {least}", at=place, instead=str(most))
            self.expect("}")
        self.expect("->")
        return least, most

    def _start(self) -> ValuePattern:
        kind, text, _ = self.token
        if text in ("$", "?"):
            return self._bound()
        if kind == "number":
            return Number(self._number())
        if text == "[":
            return self._list()
        if text == "_":
            self.take()
            return Anything()
        if text == "(" and not _CHOICE.match(self.text, self.token.start):
            options = self._between("(", self._value, ")", mark="|")
            return options[0] if len(options) == 1 else Either(tuple(options))
        return self._call()

    def _call(self) -> Call:
        operators = [self._operator()] if not self.sees("(") else self._between("(", self._operator, ")", mark="|")
        attributes: list[tuple[str, AttributeValue]] = []
        if self.sees("<"):
            attributes = self._between("<", self._attribute, ">")
        inputs: list[ValuePattern] | None = None
        is_open = False
        if self.sees("("):
            found = self._between("(", self._input, ")", may_be_empty=True)
            inputs, is_open = [each for each in found if each is not None], None in found
        return Call(
            tuple(operators), tuple(attributes), None if inputs is None else tuple(inputs), is_open, self._output(),
            self._called(),
        )  # fmt: skip

    def _output(self) -> int:
        number = _OUTPUT.match(self.text, self.token.start)
        if number is None:
            return 0
        self.go_to(number.end())
        return int(number[1])

    def _called(self) -> str:
        if not self.passes("as"):
            return ""
        return self._bound().name if self.sees("$") else self.fail("$name")

    def _input(self) -> ValuePattern | None:
        if self.passes("..."):
            if not self.sees(")"):
                self.fail('")" after "..."')
            return None
        return self._value()

    def _operator(self) -> Operator:
        if self.passes("*"):
            return Operator("*")
        if self.token.kind not in ("word", "text") or self.token.text == "_":
            lost = self.token.text in (",", ")") and self.text[: self.token.start].rstrip()[-1:] in ("(", ",")
            hint = "in a shell, single quotes keep $names" if lost else ""
            self.fail("an operator, $name, ?name, _, a number or a list", hint=hint)
        domain, mark, name = self._string().rpartition("::")
        return Operator(name, "" if not mark or domain == "ai.onnx" else domain)

    def _attribute(self) -> tuple[str, AttributeValue]:
        if self.token.kind != "word":
            self.fail("the name of an attribute")
        name = self.take()
        self.expect("=")
        return name, self._attribute_value()

    def _attribute_value(self) -> AttributeValue:
        kind, text, _ = self.token
        if text == "*":
            self.take()
            return Anything()
        if text == "$":
            return self._bound()
        if kind == "number":
            return Number(self._number())
        if text == "[":
            return self._list()
        if kind in ("word", "text"):
            return Text(self._string())
        self.fail("*, $name, a number, a string or a list")

    def _bound(self) -> Bound:
        is_constant = self.take() == "?"
        if self.token.kind != "word" or "." in self.token.text or ":" in self.token.text:
            self.fail("a name of letters, digits and _")
        return Bound(self.take(), is_constant)

    def _list(self) -> Elements:
        return Elements(tuple(self._between("[", self._item, "]", may_be_empty=True)))

    def _item(self) -> float | str | None:
        if self.passes("*"):
            return None
        if self.token.kind == "number":
            return self._number()
        if self.token.kind in ("word", "text"):
            return self._string()
        self.fail("*, a number or a string")

    def _condition(self, names: dict[str, bool]) -> Condition:
        function = ""
        if self.token.kind == "word":
            if self.token.text not in FUNCTIONS:
                self.fail(f"one of {', '.join(FUNCTIONS)}, or $name", hint=suggest(self.token.text, FUNCTIONS))
            function = self.take()
            self.expect("(")
        place = self.token.start
        if self.token.text not in ("$", "?"):
            self.fail("$name")
        name = self._bound().name
        if name not in names:
            known = ", ".join(f"${each}" for each in names)
            self.fail(f"a name of the pattern ({known or 'it has none'})", at=place, instead=f"${name}")
        if function and names[name]:
            self.fail(f"a value; ${name} is an attribute", at=place, instead=f"{function} of an attribute")
        if function:
            self.expect(")")
        if self.token.text not in _COMPARISONS:
            self.fail("=, !=, <, <=, > or >=")
        comparison = self.token.text
        if function in ("dtype", "shape") and comparison not in ("=", "!="):
            self.fail(f"= or != for {function}")
        if not function:
            return Condition("", name, comparison, self._compared(comparison, names))
        self.take()
        return Condition(function, name, comparison, self._wanted(function, names))

    def _wanted(self, function: str, names: dict[str, bool]) -> Number | Elements | Text | Bound:
        if function == "dtype":
            if self.sees("$"):
                place = self.token.start
                bound = self._bound()
                if not names.get(bound.name):
                    self.fail("the name of an attribute", at=place, instead=str(bound))
                return bound
            if self.token.text not in DATA_TYPE_NAMES.values():
                self.fail("a data type, such as float16", hint=suggest(self.token.text, {*DATA_TYPE_NAMES.values()}))
            return Text(self._string())
        if function == "shape":
            if not self.sees("["):
                self.fail("a shape, such as [1, *, 32]")
            return self._list()
        if self.token.kind != "number":
            self.fail("a number")
        return Number(self._number(sizes=function == "size"))

    def _compared(self, comparison: str, names: dict[str, bool]) -> Number | Text | Bound:
        quoted = _SELECTOR.match(self.text, self.at)
        assert quoted is not None
        self.take()
        if not quoted[1].strip():
            self.fail("a selector, such as op:Conv, a number or $name")
        if self.token.kind == "number":
            return Number(self._number())
        if comparison not in ("=", "!="):
            self.fail("a number")
        if self.sees("$"):
            place = self.token.start
            bound = self._bound()
            if bound.name not in names:
                self.fail("a name of the pattern", at=place, instead=str(bound))
            return bound
        selector = quoted[1].strip()
        try:
            terms = parse_selector(selector).terms or ()
        except SelectorError as error:
            self.fail("a selector, such as op:Conv", instead=selector, hint=str(error))
        if any(not each.key and "(" in each.value.text and not each.value.quoted for each in terms):
            self.fail("terms such as op:Conv, or a name in quotes", instead=selector)
        self.go_to(quoted.end())
        return Text(selector)

    def _number(self, *, sizes: bool = False) -> float:
        text = self.token.text
        if sizes and (unit := _SIZES.match(self.text, self.at)):
            self.at = unit.end()
            self.take()
            size = float(text) * _SIZE[unit[0]]
            return int(size) if math.isfinite(size) else size
        self.take()
        try:
            return int(text)
        except ValueError:
            return float(text)

    def _string(self) -> str:
        kind, text, start = self.token
        self.take()
        try:
            return text if kind == "word" else str(json.loads(text))
        except ValueError:
            self.fail("a string in JSON syntax", at=start, instead=text)

    def _count(self) -> int:
        if not self.token.text.isdecimal() or len(self.token.text) > _DIGITS:
            self.fail("a number of nodes")
        return int(self.take())

    def _between(
        self, first: str, item: Callable[[], _T], last: str, mark: str = ",", *, may_be_empty: bool = False
    ) -> list[_T]:
        self.expect(first)
        items: list[_T] = []
        if may_be_empty and self.passes(last):
            return items
        items.append(item())
        while self.sees(mark):
            self.take()
            items.append(item())
        self.expect(last, or_else=f'"{mark}" or ')
        return items
