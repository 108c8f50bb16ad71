"""The text of any pattern parses into an equal pattern."""

import random

import pytest

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
)
from onnxjson.patterns.grammar import parse, parse_replacement

WORDS = ("Relu", "_x", "a.b", "where", "and", "as", "inf", "nan", "_", "ünï", "k", "Add1")
TEXTS = (*WORDS, "", "a b", 'quo"te', "back\\slash", "$x", "(", "::", "1")


class Maker:
    """Makes random patterns."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._one = self._rng.choice

    def pattern(self) -> Pattern:
        count = self._one((1, 1, 1, 2, 3))
        roots = tuple([self._root(f"r{number}" if count > 1 else "") for number in range(count)])
        made = Pattern(roots[0], (), roots[1:])
        names = [(name, is_attribute) for name, is_attribute in made.names.items()]
        return made._replace(
            conditions=tuple([self._condition(names) for _ in range(self._one((0, 0, 1, 2)) if names else 0)])
        )

    def _root(self, name: str) -> Call | Path:
        made = self._value(3)
        while not isinstance(made, Call | Path):
            made = self._value(3)
        if not name:
            return made
        return made._replace(name=name) if isinstance(made, Call) else made._replace(end=made.end._replace(name=name))

    def _value(self, depth: int) -> ValuePattern:
        kind = self._rng.randrange(8 if depth else 4)
        if kind == 0:
            return Anything()
        if kind == 1:
            return Bound(self._one(("a", "b", "c")), self._one((True, False)))
        if kind == 2:
            return Number(self._number())
        if kind == 3:
            return self._elements()
        if kind == 4:
            least = self._rng.randrange(3)
            return Path(self._value(depth - 1), least, self._one((None, least, least + 2)), self._call(depth - 1))
        return self._call(depth)

    def _call(self, depth: int) -> Call:
        operators = [
            Operator(self._one((*WORDS, "*")), self._one(("", "", "com.my", "my own")))
            for _ in range(self._one((1, 1, 2)))
        ]
        inputs = (
            None if self._one((True, False)) else tuple([self._value(depth - 1) for _ in range(3)]) if depth else ()
        )
        is_open = inputs is not None and self._one((True, False))
        attributes = tuple([(name, self._attribute()) for name in ("axis", "to")[: self._rng.randrange(3)]])
        calls = tuple([each._replace(domain="") if each.name == "*" else each for each in operators])
        return Call(calls, attributes, inputs, is_open, self._one((0, 0, 1, 12)), self._one(("", "", "h")))

    def _attribute(self) -> AttributeValue:
        return self._one((Anything(), Bound("g"), Number(self._number()), Text(self._one(TEXTS)), self._elements()))

    def _elements(self) -> Elements:
        items = [self._one((None, self._number(), self._one(TEXTS))) for _ in range(self._rng.randrange(4))]
        return Elements(tuple(items))

    def _number(self) -> float:
        return self._one((0, 1, -3, 0.5, 1e-05, 1.41421, float("inf"), -float("inf"), self._rng.uniform(-9, 9)))

    def _condition(self, names: list[tuple[str, bool]]) -> Condition:
        name, is_attribute = self._one(names)
        if is_attribute:
            return Condition("", name, self._one(("=", "<", ">=")), Number(self._number()))
        function = self._one((*FUNCTIONS, ""))
        equal = self._one(("=", "!="))
        if function == "dtype":
            return Condition(function, name, equal, Text("float16"))
        if function == "shape":
            return Condition(function, name, equal, Elements((1, None, "N")))
        if function:
            return Condition(function, name, self._one(("=", "<=", ">")), Number(self._rng.randrange(9)))
        return Condition("", name, equal, self._one((Text("op:Conv attr:group=1"), Bound(names[0][0]))))


@pytest.mark.parametrize("seed", range(4))
def test_text_of_a_pattern_parses_into_the_same(seed: int) -> None:
    maker = Maker(seed)
    for _ in range(500):
        pattern = maker.pattern()
        assert parse(str(pattern)) == pattern, str(pattern)


def test_text_of_a_replacement_parses_into_the_same() -> None:
    text = "Split<axis=-1>($x) as $a; Split<axis=-1>($x).1 as $b"
    made = parse_replacement(text)
    assert isinstance(made, tuple)
    assert "; ".join(map(str, made)) == text
