"""Patterns as records, and their text: ``Softmax(MatMul($q, Transpose<perm=[0,2,1,3]>($k))) where rank($q) = 4``.

`onnxjson.patterns.grammar` parses the tokens of a text into these records; `str` of a record is its canonical text,
which parses into an equal record.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from onnxjson.model.display import visible
from onnxjson.model.errors import LimitError, SelectorError

_NAME: Final = r"[^\W\d]\w*"
_WORD: Final = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_OPERATOR: Final = re.compile(rf"{_WORD.pattern}(?:::{_NAME})?|\*")


class Anything(NamedTuple):
    """``_``: any value, or none where an input is omitted. As the value of an attribute ``*``: any value."""

    def __str__(self) -> str:
        return "_"


class Bound(NamedTuple):
    """``$x``: any value, named; ``?w``: a constant, named. The same name twice is the same value."""

    name: str
    is_constant: bool = False

    def __str__(self) -> str:
        return ("?" if self.is_constant else "$") + self.name


class Number(NamedTuple):
    """A constant of one element with this value."""

    value: float

    def __str__(self) -> str:
        return number_text(self.value)


class Elements(NamedTuple):
    """``[0, -1, *]``: a constant with these elements, or an attribute with these items; None (``*``) is any."""

    items: tuple[float | str | None, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(_item_text, self.items))}]"


class Text(NamedTuple):
    """A text as the value of an attribute: ``SAME_UPPER`` or ``"linear"``."""

    value: str

    def __str__(self) -> str:
        return _item_text(self.value)


AttributeValue: TypeAlias = Anything | Bound | Number | Elements | Text


class Operator(NamedTuple):
    """An operator or function; ``*`` is any name. Without a domain, that of ONNX."""

    name: str
    domain: str = ""

    def __str__(self) -> str:
        text = f"{self.domain}::{self.name}" if self.domain else self.name
        return text if _OPERATOR.fullmatch(text) and text not in ("inf", "nan", "_") else json.dumps(text)


class Call(NamedTuple):
    """``Conv<group=1>($x, ?w, ...).0``: the output of a node."""

    operators: tuple[Operator, ...]
    """The node calls one of them."""
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    inputs: "tuple[ValuePattern, ...] | None" = None
    """Patterns of its first inputs; None for any inputs."""
    is_open: bool = False
    """``...`` after the inputs: there may be more, whatever they are."""
    output: int = 0
    name: str = ""
    """``as $h``: what the output is called."""

    def __str__(self) -> str:
        names = "|".join(map(str, self.operators))
        text = f"({names})" if len(self.operators) > 1 else names
        if self.attributes:
            text += f"<{', '.join([f'{name}={_attribute_text(value)}' for name, value in self.attributes])}>"
        if self.inputs is not None:
            text += f"({', '.join([*map(str, self.inputs), *['...'] * self.is_open])})"
        return text + (f".{self.output}" if self.output else "") + (f" as ${self.name}" if self.name else "")


class Path(NamedTuple):
    """``A -> ...{0,3} -> B``: a value from which the node of a call is computed, through other nodes."""

    start: "ValuePattern"
    least: int
    """Minimum number of nodes between the two."""
    most: int | None
    """Maximum number of nodes between the two; None for any number."""
    end: Call

    def __str__(self) -> str:
        between = "" if self.most == 0 else "... -> " if (self.least, self.most) == (0, None) else f"{self._gap()} -> "
        return f"{self.start} -> {between}{self.end}"

    def _gap(self) -> str:
        return f"...{{{self.least},{'' if self.most is None else self.most}}}"


class Either(NamedTuple):
    """``(Reciprocal($a)|Div(1, $a))``: a value that matches one of several patterns."""

    options: "tuple[ValuePattern, ...]"

    def __str__(self) -> str:
        return f"({'|'.join(map(str, self.options))})"


ValuePattern: TypeAlias = Anything | Bound | Number | Elements | Call | Path | Either

MOST_VARIANTS: Final = 256
"""Patterns without alternatives that a pattern may stand for."""


class Condition(NamedTuple):
    """One condition after ``where``: ``rank($x) = 4``, ``$p = op:Conv``, ``$a != $b``."""

    function: str
    """One of `FUNCTIONS`; "" for the value itself."""
    name: str
    comparison: str
    """One of ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``."""
    wanted: Number | Elements | Text | Bound
    """A number, a shape, a dtype or a selector, or another name."""

    def __str__(self) -> str:
        value = f"{self.function}(${self.name})" if self.function else f"${self.name}"
        wanted = self.wanted.value if isinstance(self.wanted, Text) else str(self.wanted)
        return f"{value} {self.comparison} {wanted}"


FUNCTIONS: Final = {
    "dtype": "the data type of a value, such as float16",
    "rank": "the number of dimensions of a value",
    "shape": "the dimensions of a value, such as [1, *, N]; * is any one dimension",
    "size": "the number of elements of a value; k, M and G after a number are thousands, millions and billions",
    "users": "the number of places that use a value, outputs of the graph included",
}
"""Properties of a value that conditions can test."""


class Pattern(NamedTuple):
    """A pattern: the structure, and the conditions on the values of its names."""

    root: Call | Path | Either
    conditions: tuple[Condition, ...] = ()
    others: tuple[Call | Path | Either, ...] = ()
    """Further values of the same place; each has a name, and is another one than `root`."""

    def __str__(self) -> str:
        where = " and ".join(map(str, self.conditions))
        roots = "; ".join(map(str, self.roots))
        return f"{roots} where {where}" if where else roots

    @property
    def roots(self) -> tuple[Call | Path | Either, ...]:
        """All values that it describes."""
        return (self.root, *self.others)

    @property
    def variants(self) -> "tuple[Pattern, ...]":
        """The patterns without alternatives that it stands for; itself if it has none.

        Raises:
            LimitError: there are more than `MOST_VARIANTS`.
        """
        if not any([isinstance(part, Either) for root in self.roots for part in parts(root)]):
            return (self,)
        return tuple([self._replace(root=roots[0], others=roots[1:]) for roots in _products(self.roots)])

    @property
    def calls(self) -> list[Call]:
        """Its calls, in the order of the nodes of a match."""
        return [each for root in self.roots for each in _calls(root)]

    @property
    def names(self) -> dict[str, bool]:
        """The names that it binds, and whether each is an attribute rather than a value."""
        return {name: is_attribute for root in self.roots for name, is_attribute in names_of(root).items()}


def parts(pattern: ValuePattern) -> "Iterator[ValuePattern]":
    """Yield a value pattern and all patterns inside it."""
    yield pattern
    if isinstance(pattern, Path):
        yield from parts(pattern.start)
        yield from parts(pattern.end)
    elif isinstance(pattern, Call):
        for value in pattern.inputs or ():
            yield from parts(value)
    elif isinstance(pattern, Either):
        for option in pattern.options:
            yield from parts(option)


def _products(patterns: "tuple[ValuePattern, ...]") -> "list[tuple[Any, ...]]":
    """All ways to choose one option of each alternative in some patterns."""
    products: list[tuple[Any, ...]] = [()]
    for pattern in patterns:
        variants = list(_variants(pattern))
        if len(products) * len(variants) > MOST_VARIANTS:
            raise LimitError(f"the alternatives of the pattern have more than {MOST_VARIANTS} combinations")
        products = [(*others, variant) for others in products for variant in variants]
    return products


def _variants(pattern: "ValuePattern") -> "Iterator[ValuePattern]":
    match pattern:
        case Either():
            for option in pattern.options:
                yield from _variants(option)
        case Path():
            yield from [
                pattern._replace(start=start, end=end) for start, end in _products((pattern.start, pattern.end))
            ]
        case Call() if pattern.inputs:
            yield from [pattern._replace(inputs=inputs) for inputs in _products(pattern.inputs)]
        case _:
            yield pattern


def names_of(pattern: ValuePattern) -> dict[str, bool]:
    """Return the names that a pattern binds, and whether each is an attribute rather than a value."""
    bound: dict[str, bool] = {}
    for part in parts(pattern):
        if isinstance(part, Bound):
            bound.setdefault(part.name, False)
        elif isinstance(part, Call):
            if part.name:
                bound.setdefault(part.name, False)
            bound.update({value.name: True for _, value in part.attributes if isinstance(value, Bound)})
    return bound


def _calls(pattern: ValuePattern) -> "Iterator[Call]":
    if isinstance(pattern, Path):
        yield from _calls(pattern.end)
        yield from _calls(pattern.start)
    elif isinstance(pattern, Call):
        yield pattern
        for each in pattern.inputs or ():
            yield from _calls(each)
    elif isinstance(pattern, Either):
        for option in pattern.options:
            yield from _calls(option)


def final_call(root: "Call | Path | Either") -> Call:
    """Return the call whose node produces the value that a pattern without alternatives describes."""
    assert not isinstance(root, Either)
    return root.end if isinstance(root, Path) else root


def number_text(value: float) -> str:
    """Return the text of a number: ``1``, ``0.5``, ``1e-05``, ``inf``."""
    return repr(value)


def _item_text(item: float | str | None) -> str:
    if item is None:
        return "*"
    if isinstance(item, str):
        return item if _WORD.fullmatch(item) and item not in ("inf", "nan") else json.dumps(item)
    return number_text(item)


def _attribute_text(value: AttributeValue) -> str:
    return "*" if isinstance(value, Anything) else str(value)


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


_ATTRIBUTES: Final = "attributes are written before the inputs: Softmax<axis=1>($x)"
_SPELLINGS: Final = {
    **dict.fromkeys("=[{", _ATTRIBUTES),
    **{
        mark: f"write {name}($a, $b)"
        for mark, name in zip("+-*/@", ("Add", "Sub", "Mul", "Div", "MatMul"), strict=True)
    },
    **dict.fromkeys("|,", "alternatives are in parentheses: (Conv|Gemm)"),
    ":": "a pattern begins with an operator, such as Softmax",
}
"""What to write instead of a mark that does not belong in its place."""


class Scanner:
    """A text and the next token in it; `what` names the text in errors."""

    def __init__(self, text: str, what: str = "pattern") -> None:
        self.text = text
        self._what = what
        self.go_to(0)

    def go_to(self, place: int) -> None:
        """Continue at a place of the text."""
        token = _TOKEN.match(self.text, place)
        assert token is not None
        kind = token.lastgroup or "end"
        self.at = token.end()
        self.token = Token(kind, token[kind], token.start(kind))

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

    def fail(self, fits: str, *, at: int | None = None, instead: str | None = None, hint: str = "") -> NoReturn:
        """Raise a SelectorError with the place of a token, what was expected, and what was found."""
        place = self.token.start if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        token = self.token.text if instead is None else instead
        shown = f'"{visible(token)}"' if token else "the end"
        if self.text.startswith("op:"):
            hint = f"op: is for selectors; write the pattern {visible(self.text[3:])}"
        hint = hint or _SPELLINGS.get(self.token.text, "")
        if hint == _ATTRIBUTES and (
            call := re.fullmatch(r"(\w+) *[({[] *(\w+ *= *(?:\[[^]$]*]|[^]$,[]+))[)}\]]", self.text)
        ):
            hint = f"attributes are written {visible(call[1])}<{visible(call[2])}>"
        tail = f"; {hint}" if hint else ""
        raise SelectorError(f"{self._what}:{line}:{column}: expected {fits}, found {shown}{tail}")
