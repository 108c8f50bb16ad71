"""Findings in the forms of other programs."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from jsonschema import Draft4Validator

from onnxjson.model.display import visible
from onnxjson.model.errors import Finding
from onnxjson.rendering.ci_reports import findings_text, sarif

HOSTILE = "x\n::set-output name=a::b%0A</details>@me,title=z]]>"
FOUND = [
    Finding(
        severity="error", code="ONJ101", address="/graph/node/1", message=visible(HOSTILE), hint="h", file="a b.onnx"
    ),
    Finding(severity="warning", code="input-dtype", message="m", file=HOSTILE, line=3, column=7),
]

SCHEMAS = Path(__file__).parent / "official"
SARIF = Draft4Validator(json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text()))
JUNIT = xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")


def test_sarif_has_rules_levels_places_and_fingerprints() -> None:
    log = sarif(FOUND)
    run = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["ONJ101", "input-dtype"]
    first, second = run["results"]
    assert (first["ruleIndex"], first["level"], second["level"]) == (0, "error", "warning")
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.onnx"
    assert first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "/graph/node/1"
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 7}
    assert first["partialFingerprints"] != second["partialFingerprints"]
    assert "".join(findings_text(FOUND, "sarif")).isascii()


def test_github_commands_cannot_be_injected() -> None:
    lines = "".join(findings_text(FOUND, "github")).splitlines()
    assert len(lines) == 2
    for line in lines:
        found = re.fullmatch(r"::(error|warning) file=([^,:]*)(,line=3,col=7)?,title=([^,:]*)::(.*)", line)
        assert found is not None, line
        assert not re.search(r"%(?!25|0A|0D|3A|2C)", line)
    assert lines[0].startswith("::error file=a b.onnx,title=onnxjson ONJ101::x\\u{a}::set-output")


def test_junit_is_xml_with_a_case_for_each_file() -> None:
    tree = ElementTree.fromstring("".join(findings_text(FOUND, "junit", ["good.onnx"])))
    suite = tree[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.get("name") for case in suite] == ["good.onnx", "a b.onnx", visible(HOSTILE, None)]
    assert [len(case) for case in suite] == [0, 1, 1]


@pytest.mark.parametrize("found", [[], FOUND])
def test_sarif_fits_its_schema(found: list[Finding]) -> None:
    SARIF.validate(json.loads("".join(findings_text(found, "sarif"))))


BROKEN_SARIF = [
    ('"2.1.0"', '"2.2"'),
    ('"runs"', '"other": 1, "runs"'),
    ('"error"', '"fatal"'),
    ('"startLine": 3', '"startLine": 0'),
    ('"ruleIndex": 0', '"ruleIndex": "0"'),
    ('"fullyQualifiedName"', '"name of all"'),
    ('"driver"', '"drivers"'),
    ('"message": {\n      "text"', '"message": {\n      "markdown"'),
]


@pytest.mark.parametrize(("text", "other"), BROKEN_SARIF)
def test_schema_of_sarif_refuses_other_logs(text: str, other: str) -> None:
    log = "".join(findings_text(FOUND, "sarif"))
    assert text in log
    assert not SARIF.is_valid(json.loads(log.replace(text, other, 1)))


@pytest.mark.parametrize("found", [[], FOUND])
def test_junit_fits_its_schema(found: list[Finding]) -> None:
    JUNIT.validate("".join(findings_text(found, "junit", ["good.onnx"])))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (' failures="1"', ""),
        ("system-out", "output"),
        ("classname", "class"),
        ("testcase", "case"),
        ("<testcase name=", "<testcase file="),
        ("failure", "fault"),
    ],
)
def test_schema_of_junit_refuses_other_reports(text: str, other: str) -> None:
    report = "".join(findings_text(FOUND, "junit", ["good.onnx"]))
    assert text in report
    assert not JUNIT.is_valid(report.replace(text, other))
