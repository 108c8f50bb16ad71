"""Policies and budgets."""

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from onnxjson.checking.judging import (
    Judged,
    align_layouts,
    budget_findings,
    findings_of,
    fixes_of,
    judged,
    new_findings,
    verdicts_of,
)  # fmt: skip
from onnxjson.checking.policy import NUMBERS, Policy, RuleTable, judge_budget, load_policy, parse_budget, read_policy
from onnxjson.model.document import Model, StringStringEntry
from onnxjson.model.errors import DecodeError, Finding
from tests.checking.texts import parsed
from tests.schemas.declared import policy_schema

EXAMPLE = """
format = "onnxjson-policy/1"
[rules]
ignore = ["naming"]
error = ["types", "ONJ203"]
[budgets]
nodes = "<= 400"
bytes = "<= base * 1.02"
macs = "<= 4.2G"
opset = "<= 21"
domains = ["ai.onnx", "com.microsoft"]
"""

UNUSED = 'g (float[2,4] x) => (float[2,4] y) {["dead"] h = Abs(x) ["live"] y = Relu(x)}'


def _judged(model: Model, size: int = 100) -> Judged:
    return judged(Policy(), "m.onnx", model, None, size)


def _codes(policy: Policy, model: Model, path: str = "m.onnx") -> dict[str, str]:
    found, _ = findings_of(policy, dataclasses.replace(_judged(model), path=path))
    return {each.code: each.severity for each in found}


def test_example_is_a_policy_in_all_its_forms(tmp_path: Path) -> None:
    toml = tmp_path / "policy.toml"
    toml.write_text(EXAMPLE)
    policy = load_policy(toml)
    assert policy.rules == RuleTable(ignore=("naming",), error=("types", "ONJ203"))
    assert [each.name for each in policy.parsed_budgets()] == ["nodes", "bytes", "macs", "opset", "domains"]
    tree = {"format": "onnxjson-policy/1", "rules": {"ignore": ["naming"], "error": ["types", "ONJ203"]},
            "budgets": policy.budgets}  # fmt: skip
    (tmp_path / "policy.json").write_text(json.dumps(tree))
    tables = EXAMPLE.partition("[rules]")[2].replace("[budgets]", "[tool.onnxjson.budgets]")
    project = f"[project]\nname = 'x'\n[tool.onnxjson.rules]{tables}"
    (tmp_path / "pyproject.toml").write_text(project)
    assert load_policy(tmp_path / "policy.json") == load_policy(tmp_path / "pyproject.toml") == policy
    jsonschema.validate(json.loads(json.dumps(tree)), policy_schema())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a policy"),
        ('format = "onnxjson-policy/1"\n[dims]\nN = 0', 'the dimension "N" has the size 0'),
        ('format = "onnxjson-policy/1"\n[[ignored]]\ncode = "types"\nreason = "r"', '"types" is not the code'),
        ('format = "onnxjson-policy/1"\n[[ignored]]\ncode = "ONJ101"\nreason = " "', "ONJ101 has no reason"),
        ('format = "onnxjson-policy/2"', "not a policy"),
        ('format = "onnxjson-policy/1"\n[rules]\nignored = []', "ignored"),
        ('format = "onnxjson-policy/1"\n[rules]\nignore = ["namin"]', 'did you mean "naming"'),
        ('format = "onnxjson-policy/1"\n[rules]\nerror = ["ONJ999"]', "ONJ999"),
        ('format = "onnxjson-policy/1"\n[budgets]\nmac = "<= 1"', 'did you mean "macs"'),
        ('format = "onnxjson-policy/1"\n[budgets]\nmacs = "about 3"', "write a limit"),
        ('format = "onnxjson-policy/1"\n[budgets]\nmacs = ["a"]', "a limit"),
        ('format = "onnxjson-policy/1"\n[budgets]\ndomains = "<= 1"', "a list"),
        ('format = "onnxjson-policy/1"\n[[ignored]]\ncode = "ONJ101"', "reason"),
        ("format = [", "not TOML"),
    ],
)
def test_mistake_in_a_policy_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(DecodeError, match=words):
        load_policy(tmp_path / "p.toml")


def test_rules_are_selected_ignored_and_get_severities() -> None:
    model = parsed(UNUSED)
    assert _codes(Policy(rules=RuleTable(select=("structure",))), model) == {"ONJ101": "warning"}
    assert _codes(Policy(rules=RuleTable(select=("structure",), ignore=("ONJ10",))), model) == {}
    assert _codes(Policy(rules=RuleTable(select=("ONJ101",), error=("structure",))), model) == {"ONJ101": "error"}
    # A code is more specific than a family that is ignored.
    assert _codes(Policy(rules=RuleTable(select=(), ignore=("structure",), error=("ONJ101",))), model) == {
        "ONJ101": "error"
    }
    by_path = Policy(paths={"old/*": RuleTable(select=("security",))})
    assert _codes(by_path, model, "old/m.onnx") == {}
    assert "ONJ101" in _codes(by_path, model, "new/m.onnx")


def test_findings_of_check_are_in_families_too() -> None:
    other = Finding(severity="error", code="unknown-operator", message="m")
    policy = Policy(rules=RuleTable(select=(), warning=("opset",)))
    assert [each.severity for each in findings_of(policy, _judged(parsed(UNUSED)), [other])[0]] == ["warning"]
    assert findings_of(Policy(rules=RuleTable(select=(), ignore=("opset",))), _judged(parsed(UNUSED)), [other])[0] == []


def test_findings_are_ignored_with_a_reason_in_policy_or_node() -> None:
    model = parsed(UNUSED)
    table = {"format": "onnxjson-policy/1", "rules": {"select": ["ONJ101"]}}
    ignored = [{"code": "ONJ101", "where": "name:dead", "reason": "for the profiler"}]
    assert findings_of(read_policy(table | {"ignored": ignored}), _judged(model)) == ([], 1)
    elsewhere = [
        {"code": "ONJ101", "where": "name:live", "reason": "r"},
        {"code": "ONJ101", "path": "a/*", "reason": "r"},
    ]
    assert len(findings_of(read_policy(table | {"ignored": elsewhere}), _judged(model))[0]) == 1
    for value, left in (("ONJ101: for the profiler", 0), ("ONJ101", 1), ("ONJ102: no", 1)):
        graph = model.graph
        assert graph is not None
        node = replace(graph.node[0], metadata_props=(StringStringEntry(key="onnxjson.ignore", value=value),))
        noted = replace(model, graph=replace(graph, node=(node, graph.node[1])))
        assert len(findings_of(read_policy(table), _judged(noted))[0]) == left, value


def test_new_findings_are_those_of_new_nodes_and_not_of_moved_or_renamed_ones() -> None:
    base = parsed('g (float[4] x) => (float[4] y) {["a"] h = Abs(x) y = Relu(x)}')
    moved = parsed('g (float[4] x) => (float[4] y) {z = Relu(x) ["b"] q = Abs(x) y = Identity(z)}')
    added = parsed('g (float[4] x) => (float[4] y) {["a"] h = Abs(x) ["n"] k = Neg(h) y = Relu(x)}')
    policy = Policy(rules=RuleTable(select=("ONJ101",)))
    before = findings_of(policy, _judged(base))[0]
    for target, count in ((base, 0), (moved, 0), (added, 1)):
        found = findings_of(policy, _judged(target))[0]
        assert len(found) == len(before) + count
        assert len(new_findings(found, before, align_layouts(base, target))) == count


def test_one_more_secret_is_a_new_finding() -> None:
    secrets = [f"ghp_{letter * 36}" for letter in "ab"]
    base = replace(parsed(UNUSED), doc_string=secrets[0])
    target = replace(base, metadata_props=(StringStringEntry(key="token", value=secrets[1]),))
    policy = Policy(rules=RuleTable(select=("ONJ905",)))
    before, found = findings_of(policy, _judged(base))[0], findings_of(policy, _judged(target))[0]
    assert [each.message[-9:] for each in (*before, *found)] == ["(1 texts)", "(2 texts)"]
    assert new_findings(found, before, align_layouts(base, target)) == found
    assert new_findings(before, found, align_layouts(target, base)) == []


def test_new_findings_about_tensors_go_by_their_names() -> None:
    base = parsed("g (float[4] x) => (float[4] y) <double[2] w = {1, 2}> {y = Relu(x)}")
    target = parsed("g (float[4] x) => (float[4] y) <double[2] v = {1, 2}, double[2] w = {1, 2}> {y = Relu(x)}")
    policy = Policy(rules=RuleTable(select=("ONJ206",)))
    before, found = findings_of(policy, _judged(base))[0], findings_of(policy, _judged(target))[0]
    assert [each.address for each in new_findings(found, before, align_layouts(base, target))] == [
        "/graph/initializer/0"
    ]


def test_budget_is_absolute_or_relative() -> None:
    model = parsed(UNUSED)
    policy = read_policy({"format": "onnxjson-policy/1", "budgets": {
        "nodes": "<= 1", "bytes": "<= base * 1.02", "opset": "<= 21", "macs": "<= 4.2G", "domains": ["com.microsoft"],
        "operators": ["R*", "Abs"], "flops": "< base",
    }})  # fmt: skip
    after = judged(policy, "m.onnx", model, None, 103)
    before = judged(policy, "m.onnx", model, None, 100)
    verdicts = {each.name: (each.status, each.message) for each in verdicts_of(policy, after, before)}
    assert verdicts["nodes"] == ("over", "nodes: 2; the budget is <= 1")
    assert verdicts["bytes"] == ("over", "bytes of the file: 103; the budget is <= base * 1.02 = 102 (base: 100)")
    assert verdicts["domains"] == ("over", "not allowed: domain ai.onnx")
    assert [verdicts[name][0] for name in ("opset", "macs", "operators", "flops")] == ["ok", "ok", "ok", "over"]
    found = budget_findings(verdicts_of(policy, after, None), "m.onnx")
    assert {each.code: each.severity for each in found} == {
        "budget:nodes": "error", "budget:bytes": "warning", "budget:domains": "error", "budget:flops": "warning",
    }  # fmt: skip


def test_budget_of_cost_is_not_decided_if_operators_have_no_formula() -> None:
    policy = read_policy({"format": "onnxjson-policy/1", "budgets": {"macs": "<= 10"}})
    model = parsed("g (float[4] x) => (float[4] y) {y = own.Mystery(x)}", imports="own")
    (verdict,) = verdicts_of(policy, judged(policy, "m.onnx", model, None, 1), None)
    assert verdict.status == "unknown"


def test_sizes_of_dimensions_are_in_the_policy() -> None:
    policy = read_policy({"format": "onnxjson-policy/1", "budgets": {"flops": "<= 10"}, "dims": {"N": 3, "other": 1}})
    model = parsed("g (float[N,4] x) => (float[N,4] y) {y = Relu(x)}")
    (verdict,) = verdicts_of(policy, judged(policy, "m.onnx", model, None, 1), None)
    assert (verdict.status, verdict.value) == ("over", 12)


def test_fixes_are_the_edits_of_broken_rules_once() -> None:
    policy = Policy(rules=RuleTable(select=("structure", "naming")))
    found = findings_of(policy, _judged(parsed("g (float[4] x) => (float[4] y) {a = Abs(x) b = Neg(x) y = Relu(x)}")))[
        0
    ]
    assert fixes_of(policy.rules_for("m.onnx"), found) == [{"edit": "prune"}, {"edit": "name-nodes"}]


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.decimals(0, 1000, places=3, allow_nan=False))
def test_limits_are_exact(value: int, base: int, factor: object) -> None:
    model = Model()
    for text, limit in (
        (f"<= base * {factor}", base * Fraction(str(factor))),
        (f"<= base + {factor}", base + Fraction(str(factor))),
        (f"<= {base}", Fraction(base)),
    ):
        verdict = judge_budget(parse_budget("nodes", text), model, {"nodes": value}, {"nodes": base})
        assert verdict.status == ("over" if value > limit else "ok")
        strict = judge_budget(parse_budget("nodes", text.replace("<=", "<")), model, {"nodes": value}, {"nodes": base})
        assert strict.status == ("over" if value >= limit else "ok")


@pytest.mark.parametrize(("text", "limit"), [("<= 4.2G", 4_200_000_000), ("2Ki", 2048), ("< 1k", 1000), ("1e3", 1000)])
def test_units(text: str, limit: int) -> None:
    assert parse_budget("macs", text).summand == limit


def test_every_budget_has_a_name_and_a_schema() -> None:
    assert set(policy_schema()["$defs"]["Policy"]["properties"]["budgets"]["properties"]) == {
        *NUMBERS,
        "domains",
        "operators",
    }


def test_project_without_a_policy_is_refused(tmp_path: Path) -> None:
    for text in ("[project]\nname = 'x'\n", "tool = 3\n", "[tool.onnxjsn]\n"):
        (tmp_path / "pyproject.toml").write_text(text)
        with pytest.raises(DecodeError, match=r"has no table \[tool.onnxjson\]"):
            load_policy(tmp_path / "pyproject.toml")
