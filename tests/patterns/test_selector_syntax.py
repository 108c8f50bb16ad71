"""The grammar of selectors."""

from random import Random

import pytest

from onnxjson.model.errors import SelectorError
from onnxjson.patterns.selector_terms import Value, parse, spelled


@pytest.mark.parametrize("seed", range(300))
def test_spelled_term_means_exactly_its_text(seed: int) -> None:
    numbers = Random(seed)
    text = "".join(numbers.choices('ab "\\*?=!:@/\nop:', k=numbers.randrange(12)))
    terms = parse(f"{spelled('name', text)} op:Add").terms
    assert terms is not None
    assert terms[0].key == "name"
    assert terms[0].value.text == text
    attribute = parse(f"attr:group={spelled('', text).removeprefix(':')} op:Add").terms
    assert attribute is not None
    assert attribute[0].attribute_value is not None
    assert attribute[0].attribute_value.text == text


@pytest.mark.parametrize("seed", range(300))
def test_any_text_is_a_selector_or_refused_as_one(seed: int) -> None:
    numbers = Random(seed)
    text = "".join(numbers.choices(['"', "\\", " ", "=", "!", "op:", "attr:", "in:main", "re:", "@", "x", "*"], k=8))
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert [selector.address, selector.regex, selector.name, selector.terms].count(None) == 3


def test_name_that_looks_like_nothing_else_is_taken_as_it_is() -> None:
    for text in ("/a/b", "a b", "model:0", "!x", 'a "b" c', "x op", "loop:1", "A=1"):
        assert parse(text).name == Value(text)
