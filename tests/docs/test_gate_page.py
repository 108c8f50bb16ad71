"""The table of rules in docs/gate.md is that of the catalogue: ``python -m tests.docs.test_gate_page`` writes it."""

from pathlib import Path

from onnxjson.checking.catalogue import RULES
from onnxjson.checking.policy import LISTS, NUMBERS
from onnxjson.rendering.ci_reports import rule_text

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"

HEAD = "| code | family | severity | message | fix |\n|---|---|---|---|---|\n"


def _table() -> str:
    fixes = [f"`{rule.fix['edit']}`" if rule.fix else "" for rule in RULES]
    rows = [
        f"| {rule.code} | {rule.family} | {rule.level} | {rule_text(rule)} | {fix} |\n"
        for rule, fix in zip(RULES, fixes, strict=True)
    ]
    return HEAD + "".join(rows)


def _rewritten(text: str) -> str:
    before, _, rest = text.partition(HEAD)
    after = "\n".join(line for line in rest.split("\n") if not line.startswith("| ONJ"))
    return before + _table() + after


def test_page_lists_every_rule() -> None:
    assert _table() in PAGE.read_text(encoding="utf-8")


def test_page_lists_every_budget() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (*NUMBERS, *LISTS) if f"`{name}`" not in text] == []


if __name__ == "__main__":
    PAGE.write_text(_rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
