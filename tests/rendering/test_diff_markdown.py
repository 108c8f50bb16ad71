"""``rendering.markdown_reports``, read by a Markdown parser of its own."""

import itertools
import re
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from onnxjson.diffing.events import KINDS, Detail, Event, Member
from onnxjson.model.display import visible
from onnxjson.rendering.diff_html import diff_html
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.markdown_reports import LARGEST, code, diff_markdown
from tests.rendering.differences import HOSTILE, Made, align, example, hostile, hostile_names, networks

PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
OWN_HTML = re.compile(r"\s*(?:<details><summary>[a-z ]+</summary>|</details>)\s*")


def tokens_of(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def many(count: int) -> Made:
    model, _ = networks()
    events = [
        Event("attribute-changed", f"Conv.pads{n}", (Member(("/graph/node/0",), ("/graph/node/0",), "p" * 90,
              (Detail("a", "b" * 90, "c" * 90),)),))
        for n in range(count)
    ]  # fmt: skip
    return Made(align(model, model), events)


def test_texts_of_models_are_made_visible_once() -> None:
    model, _ = networks()
    detail = Detail("wh\x1bat", "o\x1bld", "n\x1bew")
    event = Event("attribute-changed", "Co\x1bnv.pads", (Member(("/graph/node/0",), (), "pl\x1bace", (detail,)),))
    shown = report(Made(align(model, model), [event]), "a", "b")
    for page in (diff_markdown(shown), "".join(diff_html(shown))):
        assert "\x1b" not in page
        assert "\\u{5c}" not in page
        for wanted in ("Co\\u{1b}nv.pads", "pl\\u{1b}ace", "wh\\u{1b}at", "o\\u{1b}ld", "n\\u{1b}ew"):
            assert wanted in page


def test_report_has_headline_table_and_details() -> None:
    text = diff_markdown(report(example(), "before.onnx", "after.onnx"))
    assert text.startswith("### `before.onnx` → `after.onnx`\n")
    assert "16 nodes before, 12 after, 7 matched. **18 changes, 9 without effect**: 1 attribute-changed," in text
    assert "| fused | 3× `MatMul+Add -> Gemm` | `/b0/fc`, `/b1/fc`, `/b2/fc` | ✅ equal |" in text
    assert "| `MatMul` | 3 | 0 | -3 |" in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert "  - `attribute pads: [1, 1, 1, 1] -> [0, 0, 0, 0]`" in text


def test_what_changes_results_comes_first_with_its_values_and_what_does_not_is_one_line() -> None:
    rows = [line for line in diff_markdown(report(example(), "a", "b")).splitlines() if line.startswith("| ")]
    kinds = [row.split()[1] for row in rows if row.split()[1] in KINDS]
    assert kinds[:3] == ["attribute-changed", "inserted", "weights-changed"]  # the inserted node gave different results
    assert "| attribute-changed | `Conv.pads`: `pads: [1, 1, 1, 1] -> [0, 0, 0, 0]` | `/conv` |" in rows[1]
    assert not {"renamed", "reordered", "metadata-changed"} & set(kinds)
    assert "\nNo effect on results: renamed (9× `nodes`).\n" in diff_markdown(report(example(), "a", "b"))


def test_equal_values_at_many_places_stand_once() -> None:
    detail = (Detail("attribute axis", "-1", "2"),)
    members = tuple(Member((f"/graph/node/{n}",), (f"/graph/node/{n}",), f"/layer{n}", detail) for n in range(6))
    model, _ = networks()
    made = Made(align(model, model), [Event("attribute-changed", "Softmax.axis", members)])
    text = diff_markdown(report(made, "a", "b"))
    assert "| 6× `Softmax.axis`: `axis: -1 -> 2` | `/layer0`, `/layer1`, `/layer2` and 3 more |" in text
    assert "verdict" not in text
    assert text.count("axis: -1 -> 2") == 2


def test_tables_have_four_columns_in_every_row() -> None:
    for made in (example(), hostile()):
        tokens = PARSER.parse(diff_markdown(report(made, "a", "b")))
        rows = [
            sum(1 for _ in group)
            for is_cell, group in itertools.groupby(
                (token for token in tokens if token.type in ("td_open", "th_open", "tr_close")),
                key=lambda token: token.type != "tr_close",
            )
            if is_cell
        ]
        assert set(rows) == {4}


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_exactly_its_code_span(name: str) -> None:
    span = code(name, None) if len(name) < 1000 else code(name)
    for text in (span, f"| {span} | x |\n|---|---|\n| y | {span} |", f"- {span}", f"before {span}, {span} after"):
        spans = [token.content for token in tokens_of(text) if token.type == "code_inline"]
        assert spans
        for found in spans:
            assert found == visible(name, None if len(name) < 1000 else 120).replace("|", "\\u{7c}")


def test_spaces_and_backticks_at_the_ends_stay() -> None:
    for name in ("`", "``", " a ", " `a", "a` ", "`a`", " "):
        found = [token.content for token in tokens_of(f"x {code(name)} y") if token.type == "code_inline"]
        assert found == [name]
    assert code("") == "(empty)"


def test_hostile_names_are_nothing_but_text() -> None:
    text = diff_markdown(report(hostile(), *hostile_names()))
    for token in tokens_of(text):
        assert token.type not in ("link_open", "image", "html_inline", "fence", "code_block", "hr"), token
        if token.type == "html_block":
            assert OWN_HTML.fullmatch(token.content), token
        if token.type == "text":
            assert not re.search(r"[@#`<]|https?:|www\.|alert", token.content), token
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("count", [10, 300, 5000])
def test_report_is_cut_where_a_comment_ends(count: int) -> None:
    text = diff_markdown(report(many(count), "a", "b"))
    assert len(text) <= LARGEST
    assert text.count("<details>") == text.count("</details>") > 0
    assert ("Shortened to fit" in text) == (count > 10)
    if count == 5000:
        left = re.search(r"\*([0-9,]+) more rows omitted", text)
        assert left
        assert int(left[1].replace(",", "")) + text.count("| attribute-changed |") == count


def test_hostile_sizes_are_cut() -> None:
    text = diff_markdown(report(hostile(), "x" * 10**6, "y" * 10**6))
    assert len(text) <= LARGEST


def test_same_models() -> None:
    model, _ = networks()
    text = diff_markdown(report(Made(align(model, model), equal=True), "a", "b"))
    assert text == "### `a` → `b`\n\nThe same: 16 nodes.\n"


def test_what_was_not_compared_is_said() -> None:
    text = diff_markdown(report(example()._replace(incomplete=("weights not compared: m.data",)), "a", "b"))
    assert "⚠️ `weights not compared: m.data`" in text


def test_added_operator_sets_come_after_rewrites_and_changed_ones_before() -> None:
    def opset(pattern: str, base: str | None, target: str | None) -> Event:
        return Event(
            "opset-changed", pattern, (Member((), ("/opset_import/0",), "", (Detail("version", base, target),)),)
        )

    model, _ = networks()
    fused = Event("fused", "MatMul+Add -> Gemm", (Member(("/graph/node/0",), ("/graph/node/0",)),))
    made = Made(align(model, model), [opset("com.microsoft added", None, "1"), opset("ai.onnx", "13", "20"), fused])
    text = diff_markdown(report(made, "a", "b"))
    assert text.index("`version: 13 -> 20`") < text.index("| fused |") < text.index("| `com.microsoft added`")
