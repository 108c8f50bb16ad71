"""Wildcards and regular expressions over names, in linear time."""

import fnmatch
import random
import re

import pytest

from onnxjson.errors import LimitError, SelectorError
from onnxjson.name_patterns import (
    LONGEST_NAME,
    MOST_CHARACTERS,
    captures,
    part_searcher,
    regular_expression,
    wildcards,
)

PATTERNS = [
    "",
    "a",
    "ab*",
    "(ab)*",
    "(?:a|b|)+c?",
    "a{2}",
    "a{2,}b",
    "a{,2}b",
    "(a|bc){1,3}",
    "[^a]b",
    "[]a]+",
    "[a-c\\]]*",
    "a.b",
    "^ab|c$",
    "(?i)Ab?",
    "\\d+\\.\\w*",
    "(?P<x>a)?b",
    "(a*)*b",
    "(a|a)*b",
    "a*?b+?",
    "a{x}",
    "\\x61\\u0062",
    "((a|b)c){2}|d",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_matches_the_whole_names_that_re_matches(pattern: str) -> None:
    numbers = random.Random(pattern)
    ours, theirs = regular_expression(pattern), re.compile(pattern, re.DOTALL)
    names = ["".join(numbers.choices("aAbc1.]d\n", k=numbers.randrange(7))) for _ in range(2000)]
    for name in [*names, "a{x}", "ab", "acbc", "12.x"]:
        assert ours.matches(name) == (theirs.fullmatch(name) is not None), name


def test_wildcards_are_star_and_question_mark_and_nothing_else() -> None:
    assert wildcards("/layer?/*").matches("/layer1/conv/Conv")
    assert not wildcards("/layer?/*").matches("/layer10/conv")
    assert wildcards("a[0].b").matches("a[0].b")
    assert not wildcards("a[0].b").matches("a0.b")
    assert wildcards("*\\*").matches("x\\y")
    assert not wildcards("a").matches("ab")
    assert wildcards("*").matches("\n")


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*(a*)*b", ".*.*.*.*.*.*.*.*b", "(.?){200}b"])
@pytest.mark.timeout(120)
def test_patterns_that_explode_elsewhere_take_no_time(pattern: str) -> None:
    compiled = regular_expression(pattern)
    for length in range(2000, 2050):
        assert not compiled.matches("a" * length)


@pytest.mark.timeout(120)
def test_many_wildcards_take_no_time() -> None:
    compiled = wildcards("*a" * 100 + "*b")
    assert not compiled.matches("a" * 5000)


@pytest.mark.timeout(120)
def test_hundred_thousand_names_take_a_moment() -> None:
    compiled = regular_expression(r"/model/layers\.\d+/(q|k|v)_proj/.*")
    names = [f"/model/layers.{number}/{'qkvo'[number % 4]}_proj/MatMul" for number in range(100_000)]
    assert sum(map(compiled.matches, names)) == 75_000


def test_pattern_with_countless_states_ends_at_a_limit() -> None:
    compiled = regular_expression("(a|b)*a(a|b){400}")
    numbers = random.Random(1)
    names = ["".join(numbers.choices("ab", k=LONGEST_NAME - 1)) for _ in range(100)]
    with pytest.raises(LimitError, match="too many steps"):
        all(not compiled.matches(f"{name}c") for name in names)


def test_name_that_is_too_long_matches_nothing() -> None:
    assert wildcards("*").matches("a" * LONGEST_NAME)
    assert not wildcards("*").matches("a" * (LONGEST_NAME + 1))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "this bracket is not closed (character 0)"),
        ("a)", "this bracket closes nothing (character 1)"),
        ("[a", "this [ is not closed"),
        ("*a", "nothing stands before * that could be repeated"),
        ("a**", "a repeat of a repeat"),
        ("a++", "a repeat of a repeat"),
        ("a{3,2}", "counts go upwards"),
        ("a{2000}", "counts go upwards, to 1,000 at most"),
        ("((a{100}){100}){100}", "too big"),
        ("((((){1000}){1000}){1000}){1000}", "too big"),
        ("a^b", "^ within a pattern"),
        ("a$b", "$ within a pattern"),
        ("(?=a)b", "groups are (...), (?:...)"),
        ("(?i:a)", "groups are (...), (?:...)"),
        ("(a)\\1", "this escape has no meaning here"),
        ("\\bx", "this escape has no meaning here"),
        ("\\", "this escape has no meaning here"),
        ("[z-a]", "bad character range"),
        ("(" * 60 + ")" * 60, "more than 50 groups"),
        ("a" * (MOST_CHARACTERS + 1), "501 characters; 500 are allowed"),
        ("\x1b[", "re:\\u{1b}[ is no pattern"),
    ],
)
def test_pattern_that_is_none_is_refused_with_the_place(pattern: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        regular_expression(pattern)
    assert message in str(caught.value)


GROUPED = [
    "(a*)(b*)c?",
    "(a*?)(b*)(.*)",
    "(?P<x>a|ab)(c|bcd)?(d*)",
    "((a)|b)*(c?)",
    "(a){2,3}?(a*)",
    "a(?:b)(c)?",
    "(.*)\\.(\\d*)",
]


@pytest.mark.parametrize("pattern", GROUPED)
def test_groups_fit_what_they_fit_for_re(pattern: str) -> None:
    numbers = random.Random(pattern)
    ours, theirs = captures(pattern), re.compile(pattern, re.DOTALL)
    for name in ["".join(numbers.choices("aAbcd1.", k=numbers.randrange(8))) for _ in range(2000)]:
        found = theirs.fullmatch(name)
        assert ours.find(name) == (None if found is None else (name, *[text or "" for text in found.groups()])), name
    assert set(ours.groups) >= {str(number + 1) for number in range(theirs.groups)}
    assert {each: ours.groups[each] for each in theirs.groupindex} == dict(theirs.groupindex)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*(a*)*b", "(.*).*.*.*.*.*b"])
def test_groups_take_no_time_where_re_explodes(pattern: str) -> None:
    assert captures(pattern).find("a" * 2000) is None


@pytest.mark.parametrize(
    "pattern",
    ["b", "^a", "c$", "^abc$", "a.*c", "(a|b)c", "x|bc", "[0-9]+", "(?i)^B", "a+b+c+d*", "(a+)+", "", r"\$", r"a\$$"],
)
def test_part_searcher_finds_what_re_finds(pattern: str) -> None:
    fits = part_searcher(pattern)
    # The $ of re also fits before a line feed at the end.
    same = re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.DOTALL)
    for text in ["", "a", "abc", "xabcx", "aabbcc", "B", "layer12", "c\n", "abc\nabc", "a$", "a$b", "x" * 300 + "bc"]:
        assert fits(text) == bool(same.search(text)), text


def test_part_searcher_takes_no_time_where_re_explodes() -> None:
    fits = part_searcher("(a+)+b")
    assert not fits("a" * 5000)
    assert fits("a" * 5000 + "b")


def test_anchor_beside_alternatives_is_refused_by_part_searcher() -> None:
    with pytest.raises(SelectorError, match="brackets"):
        part_searcher("^a|b")


def test_wildcards_match_what_fnmatch_matches_on_random_texts() -> None:
    rng = random.Random(8)
    for _ in range(3000):
        pattern = "".join(rng.choices("ab*?", k=rng.randrange(8)))
        name = "".join(rng.choices("ab\n", k=rng.randrange(9)))
        assert wildcards(pattern).matches(name) == fnmatch.fnmatchcase(name, pattern), (pattern, name)
