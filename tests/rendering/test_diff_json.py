"""``rendering.reports`` and ``rendering.diff_schema``."""

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from onnxjson.diffing.events import Event, Member
from onnxjson.rendering.diff_html import diff_html
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.markdown_reports import diff_markdown
from onnxjson.rendering.reports import diff_json
from tests.cli.running import run
from tests.rendering.differences import HOSTILE, Made, align, example, hostile, networks
from tests.schemas.reports import diff_schema

VALIDATOR = Draft202012Validator(diff_schema())


def text_of(made: Made, *, with_matches: bool = False) -> str:
    return "".join(diff_json(report(made, "a", "b"), with_matches=with_matches))


@pytest.mark.parametrize("with_matches", [False, True])
@pytest.mark.parametrize("make", [example, hostile])
def test_output_fits_the_schema_and_is_ascii(make: Any, with_matches: bool) -> None:
    text = text_of(make(), with_matches=with_matches)
    assert text.isascii()
    assert not set(map(chr, range(32))) - {"\n"} & set(text)
    VALIDATOR.validate(json.loads(text))


def test_contract_of_other_programs() -> None:
    data = json.loads(text_of(example()))
    assert list(data) == ["format", "equal", "summary", "events"]
    assert data["format"] == "onnxjson-diff/1"
    assert data["summary"]["base_nodes"] == 16
    assert data["summary"]["target_nodes"] == 12
    assert data["summary"]["matched_nodes"] == 7
    assert data["summary"]["events"]["fused"] == 4
    event = data["events"][4]
    assert {key: event[key] for key in ("kind", "count", "pattern", "verdict")} == {
        "kind": "fused", "count": 3, "pattern": "MatMul+Add -> Gemm", "verdict": "equal",
    }  # fmt: skip
    assert event["members"][0] == {
        "base": ["/graph/node/6", "/graph/node/7"],
        "target": ["/graph/node/4"],
        "place": "/b0/fc",
        "details": [{"what": "b0.bias", "base": "input 1 of Add", "target": "input 2 of Gemm"}],
    }


def test_matches_stand_only_when_asked_for() -> None:
    found = json.loads(text_of(example(), with_matches=True))
    assert found["matches"][0] == ["/graph/node/2", "/graph/node/1"]
    assert len(found["matches"]) == 7


def test_a_member_says_for_how_many_places_it_stands() -> None:
    model, _ = networks()
    members = (Member(("/graph",), ("/graph",), count=5), Member(("/graph/node/0/attribute/body/g",), ()))
    text = text_of(Made(align(model, model), [Event("renamed", "nodes", members)]))
    data = json.loads(text)
    VALIDATOR.validate(data)
    assert data["summary"]["events"] == {"renamed": 6}
    assert data["events"][0]["count"] == 6
    assert [member.get("count") for member in data["events"][0]["members"]] == [5, None]


def test_same_models() -> None:
    model, _ = networks()
    data = json.loads(text_of(Made(align(model, model), equal=True)))
    assert data["equal"] is True
    assert data["events"] == []
    VALIDATOR.validate(data)


def test_what_was_not_compared_is_said() -> None:
    found = json.loads(text_of(example()._replace(incomplete=("weights not compared: m.data",))))
    assert found["incomplete"] == ["weights not compared: m.data"]
    VALIDATOR.validate(found)


def test_names_are_exact() -> None:
    found = json.loads(text_of(hostile()))
    patterns = [event["pattern"] for event in found["events"]]
    assert {name for name in HOSTILE if "\udcff" not in name} <= {each for each in patterns if isinstance(each, str)}
    assert {"base64": "//4="} in patterns


@pytest.mark.parametrize(
    "change",
    [
        {"format": "onnxjson-diff/2"}, {"equal": "no"}, {"incomplete": []}, {"summary": {}},
        {"matches": [["/graph/node/0"]]}, {"events": [{"kind": "exploded"}]}, {"more": 1},
    ],
)  # fmt: skip
def test_schema_refuses_what_is_wrong(change: dict[str, Any]) -> None:
    found = json.loads(text_of(example()))
    assert not VALIDATOR.is_valid({**found, **change})


def test_total_of_changes_is_the_same_in_all_forms() -> None:
    shown = report(example(), "a", "b")
    total = "18 changes, 9 without effect"
    summary = json.loads("".join(diff_json(shown)))["summary"]
    assert (summary["changes"], summary["without_effect"]) == (18, 9)
    assert total in "\n".join("".join(span.text for span in line) for line in diff_lines(shown, 80))
    assert total in diff_markdown(shown)
    assert total in "".join(diff_html(shown))


MODELS = Path(__file__).parents[1] / "models"
EXPORTS = [
    ("encoder_ts", "encoder_dynamo"), ("mobile_ts", "mobile_dynamo"), ("encoder_ts", "mobile_ts"),
    ("pairs/plain_ts", "pairs/plain_dynamo"), ("pairs/activated_ts", "pairs/activated_dynamo"),
    ("pairs/plain_ts", "pairs/activated_ts"),
]  # fmt: skip
CHANGES = [
    "optimize {} -p onnxoptimizer", "optimize {} -p onnxslim", "rewrite set-attribute {} op:Softmax axis 2",
    "rewrite constants-to-initializers {}", "rewrite infer-shapes {}", "rewrite set-doc {} --text a",
    "rewrite prune {}",
]  # fmt: skip


def _texts(base: Path, target: Path) -> dict[str, str]:
    return {form: run("diff", base, target, "--format", form).stdout for form in ("text", "markdown", "html", "json")}


def _agree(texts: dict[str, str]) -> int:
    """Assert that all forms state one total, and the numbers of kinds that add up to it; return it."""
    summary = json.loads(texts["json"])["summary"]
    total, quiet = int(summary["changes"]), int(summary["without_effect"])
    stated = f"{total:,} change{'s' * (total != 1)}" + f", {quiet:,} without effect" * bool(quiet)
    kinds = Counter(summary["events"])
    assert kinds.total() == total
    for form in ("text", "markdown", "html"):
        words = re.sub(r"<style.*?</style>|<script.*?</script>|<[^>]*>", " ", texts[form], flags=re.DOTALL)
        totals = re.findall(r"[\d,]+ changes?(?:, [\d,]+ without effect)?(?=[*:]| *\n)", html.unescape(words))
        assert (totals[:1] == [stated]) == (total > 0), (form, stated, totals)
    badges = re.findall(r'<li><(?:a|span) class="kind [^>]*>([\d,]+) ([a-z-]+)<', texts["html"])
    assert {kind: int(number.replace(",", "")) for number, kind in badges} == kinds
    return total


@pytest.mark.parametrize(("base", "target"), EXPORTS)
def test_total_of_two_exports_is_the_same_in_all_forms(base: str, target: str) -> None:
    assert _agree(_texts(MODELS / f"{base}.onnx", MODELS / f"{target}.onnx")) > 0


@pytest.mark.parametrize("change", CHANGES)
def test_total_of_a_change_is_the_same_in_all_forms(change: str, tmp_path: Path) -> None:
    model = MODELS / "encoder_ts.onnx"
    made = run(*change.format(model).split(), "-o", tmp_path / "m.onnx")
    assert made.exit_code == 0, made.stderr
    assert (_agree(_texts(model, tmp_path / "m.onnx")) > 0) == ("prune" not in change)
