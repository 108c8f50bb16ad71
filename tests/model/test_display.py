import io
import unicodedata

import pytest
from rich.console import Console
from rich.text import Text

from onnxjson.model.display import ELLIPSIS, LONGEST, is_whole, listed, visible, whole_texts

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def shown_by_rich(text: str) -> str:
    """What a terminal gets, without the styles that rich adds on its own."""
    out = io.StringIO()
    console = Console(file=out, width=1_000_000, color_system=None, force_terminal=True, legacy_windows=False)
    console.print(Text(text), soft_wrap=True, end="")
    return out.getvalue()


def test_no_code_point_gets_through_that_is_not_a_plain_printable_character() -> None:
    hidden_before = "".join(map(chr, range(0x110000)))
    for character in hidden_before:
        shown = visible("a" + character)
        if shown == "a" + character:
            category = unicodedata.category(character)
            assert category not in HIDDEN or not unicodedata.unidata_version.startswith("14"), hex(ord(character))
            assert category != "Zs" or character == " "
        else:
            assert shown == f"a\\u{{{ord(character):x}}}"


def test_rich_prints_all_code_points_unchanged() -> None:
    planes_with_characters = [*range(0x40000), *range(0xE0000, 0xF0000)]
    text = visible("".join(map(chr, planes_with_characters)), limit=None)
    assert shown_by_rich(text) == text


def test_plain_text_stays_as_it_is() -> None:
    for text in ("", "/layer1/conv/Conv_output_0", "a\\b", "Größe 模型 é", "[/] [@click=app.quit()]x[/]", "🙂"):
        assert visible(text) == text


def test_no_two_texts_look_the_same() -> None:
    assert visible("\u202e") == "\\u{202e}"
    assert visible("\\u{202e}") == "\\u{5c}u{202e}"


def test_line_feeds_and_escapes_stay_on_one_line() -> None:
    assert visible("a\n+ b\r\x1b]52;c;aGk=\x07\x9b2J") == "a\\u{a}+ b\\u{d}\\u{1b}]52;c;aGk=\\u{7}\\u{9b}2J"


def test_bytes_that_are_no_utf_8_are_shown_by_number() -> None:
    assert visible(b"w\xff".decode("utf-8", "surrogateescape")) == "w\\u{dcff}"


def test_at_most_four_marks_stand_on_one_character() -> None:
    assert visible("a" + "\u0301" * 4) == "a" + "\u0301" * 4
    assert visible("a" + "\u0301" * 6 + "b\u0301") == "a" + "\u0301" * 4 + "\\u{301}\\u{301}b\u0301"


def test_a_mark_without_a_base_is_shown_by_number() -> None:
    assert visible("\u0301a") == "\\u{301}a"


@pytest.mark.parametrize("text", ["x" * 100, "é" * 100, "\n" * 100, "x" * 79 + "\n", "a\u0301" * 60])
@pytest.mark.parametrize("limit", [0, 1, 2, 10, 80])
def test_the_result_is_never_longer_than_the_limit_and_says_where_it_was_cut(text: str, limit: int) -> None:
    shown = visible(text, limit)
    assert len(shown) <= limit
    assert shown.endswith(ELLIPSIS) or limit == 0
    assert shown.count("{") == shown.count("}")


def test_text_as_long_as_the_limit_is_not_cut() -> None:
    assert visible("x" * 80) == "x" * 80
    assert visible("é" * 80) == "é" * 80
    assert visible("\n" * 16) == "\\u{a}" * 16


def test_a_name_of_many_megabytes_costs_nothing() -> None:
    assert visible("\x1b" * 64_000_000, 20) == "\\u{1b}\\u{1b}\\u{1b}…"


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    ],
)
def test_a_list_names_a_few_and_counts_the_rest(texts: list[str], shown: str) -> None:
    assert listed(texts, 3, word="and") == shown


def test_the_last_of_a_list_may_be_an_alternative() -> None:
    assert listed(["a", "b"], word="or") == "a or b"


def test_whole_texts_are_not_shortened_and_still_have_an_end() -> None:
    name = "n" * 500
    with whole_texts():
        assert visible(name) == name
        assert len(visible("n" * 2 * LONGEST)) == LONGEST
        with whole_texts(False):
            assert visible(name).endswith(ELLIPSIS)
    assert visible(name).endswith(ELLIPSIS)


def test_texts_are_shown_in_full_within_a_block_alone() -> None:
    assert not is_whole()
    with whole_texts():
        assert is_whole()


def test_lists_are_cut_with_the_number_of_items_left() -> None:
    assert listed([]) == ""
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert listed(["a"] * 1236, 2, "; ") == "a; a and 1,234 more"
