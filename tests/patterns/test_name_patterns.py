"""Wildcards and regular expressions over names, within a time limit."""

import fnmatch
import random
import re

import pytest

from onnxjson.model import limits
from onnxjson.model.errors import LimitError, SelectorError
from onnxjson.model.limits import PATTERN_CHARACTERS, PATTERN_NAME_CHARACTERS
from onnxjson.patterns.names import (
    Wildcards,
    regular_expression,
)

PATTERNS = [
    "", "a", "ab*", "(ab)*", "(?:a|b|)+c?", "a{2}", "a{2,}b", "a{,2}b", "(a|bc){1,3}", "[^a]b", "[]a]+", "[a-c\\]]*",
    "a.b", "^ab|c$", "(?i)Ab?", "\\d+\\.\\w*", "(?P<x>a)?b", "(a*)*b", "(a|a)*b", "a*?b+?", "a{x}", "\\x61\\u0062",
    "((a|b)c){2}|d",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_matches_the_whole_names_that_re_matches(pattern: str) -> None:
    numbers = random.Random(pattern)
    ours, theirs = regular_expression(pattern), re.compile(pattern, re.DOTALL)
    names = ["".join(numbers.choices("aAbc1.]d\n", k=numbers.randrange(7))) for _ in range(2000)]
    for name in [*names, "a{x}", "ab", "acbc", "12.x"]:
        assert ours.matches(name) == (theirs.fullmatch(name) is not None), name


def test_wildcards_are_star_and_question_mark_and_nothing_else() -> None:
    assert Wildcards("/layer?/*").matches("/layer1/conv/Conv")
    assert not Wildcards("/layer?/*").matches("/layer10/conv")
    assert Wildcards("a[0].b").matches("a[0].b")
    assert not Wildcards("a[0].b").matches("a0.b")
    assert Wildcards("*\\*").matches("x\\y")
    assert not Wildcards("a").matches("ab")
    assert Wildcards("*").matches("\n")


EXPLODING = ["(a|a)*[bc]", "(a|aa|a)*[bc]"]


@pytest.mark.parametrize("pattern", EXPLODING)
@pytest.mark.parametrize("ask", ["matches", "find", "is_in"])
def test_pattern_that_takes_forever_ends_at_a_limit(pattern: str, ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_SECONDS", 0.05)
    with pytest.raises(LimitError, match=r"takes more than 0\.05 seconds on the names of this model"):
        getattr(regular_expression(pattern), ask)("a" * 2000)


def test_all_names_together_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_SECONDS", 0.05)
    compiled = regular_expression("(a|a)*[bc]")
    with pytest.raises(LimitError):
        sum(compiled.matches("a" * 12) for _ in range(100_000))
    with pytest.raises(LimitError):
        compiled.matches("b")


@pytest.mark.timeout(120)
def test_many_wildcards_take_no_time() -> None:
    compiled = Wildcards("*a" * 100 + "*b")
    assert not compiled.matches("a" * 5000)


@pytest.mark.timeout(120)
def test_hundred_thousand_names_take_a_moment() -> None:
    compiled = regular_expression(r"/model/layers\.\d+/(q|k|v)_proj/.*")
    names = [f"/model/layers.{number}/{'qkvo'[number % 4]}_proj/MatMul" for number in range(100_000)]
    assert sum(map(compiled.matches, names)) == 75_000


def test_name_that_is_too_long_matches_nothing() -> None:
    assert Wildcards("*").matches("a" * PATTERN_NAME_CHARACTERS)
    assert not Wildcards("*").matches("a" * (PATTERN_NAME_CHARACTERS + 1))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "missing ), unterminated subpattern (character 0)"),
        ("a)", "unbalanced parenthesis (character 1)"),
        ("[a", "unterminated character set (character 0)"),
        ("*a", "nothing to repeat (character 0)"),
        ("a**", "multiple repeat (character 2)"),
        ("a{3,2}", "min repeat greater than max repeat"),
        ("\\", "bad escape (end of pattern)"),
        ("[z-a]", "bad character range z-a"),
        ("\\L<names>", "bad escape \\L"),
        ("((a{100}){100}){100}", "too big: each count repeats its part, and at most 4,000 parts are allowed"),
        ("((((){1000}){1000}){1000}){1000}", "too big"),
        ("(?:[)]{50}\\){50}){50}", "too big"),
        ("a" * (PATTERN_CHARACTERS + 1), "501 characters; 500 are allowed"),
        ("\x1b[", "re:\\u{1b}[ is not a regular expression"),
    ],
)
def test_pattern_that_is_none_is_refused_with_the_place(pattern: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        regular_expression(pattern)
    assert message in str(caught.value)


GROUPED = [
    "(a*)(b*)c?", "(a*?)(b*)(.*)", "(?P<x>a|ab)(c|bcd)?(d*)", "((a)|b)*(c?)", "(a){2,3}?(a*)", "a(?:b)(c)?",
    "(.*)\\.(\\d*)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", GROUPED)
def test_groups_fit_what_they_fit_for_re(pattern: str) -> None:
    numbers = random.Random(pattern)
    ours, theirs = regular_expression(pattern), re.compile(pattern, re.DOTALL)
    for name in ["".join(numbers.choices("aAbcd1.", k=numbers.randrange(8))) for _ in range(2000)]:
        found = theirs.fullmatch(name)
        assert ours.find(name) == (None if found is None else (name, *[text or "" for text in found.groups()])), name
    assert set(ours.groups) >= {str(number + 1) for number in range(theirs.groups)}
    assert {each: ours.groups[each] for each in theirs.groupindex} == dict(theirs.groupindex)


@pytest.mark.parametrize(
    "pattern",
    ["b", "^a", "c$", "^abc$", "a.*c", "(a|b)c", "x|bc", "[0-9]+", "(?i)^B", "a+b+c+d*", "(a+)+", "", r"\$", r"a\$$"],
)
def test_parts_fit_where_re_finds_them(pattern: str) -> None:
    fits = regular_expression(pattern).is_in
    for text in ["", "a", "abc", "xabcx", "aabbcc", "B", "layer12", "c\n", "abc\nabc", "a$", "a$b", "x" * 300 + "bc"]:
        assert fits(text) == bool(re.search(pattern, text, re.DOTALL)), text


def test_wildcards_match_what_fnmatch_matches_on_random_texts() -> None:
    rng = random.Random(8)
    for _ in range(3000):
        pattern = "".join(rng.choices("ab*?", k=rng.randrange(8)))
        name = "".join(rng.choices("ab\n", k=rng.randrange(9)))
        assert Wildcards(pattern).matches(name) == fnmatch.fnmatchcase(name, pattern), (pattern, name)
