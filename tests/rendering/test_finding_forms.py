"""Findings in the forms of other programs."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

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


FOLDER = Path(__file__).parent


def _sarif_schema() -> Any:
    """The part of https://docs.oasis-open.org/sarif/sarif/v2.1.0 that the log uses; nothing else is allowed."""
    return json.loads((FOLDER / "sarif-2.1.0-part.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("found", [[], FOUND])
def test_sarif_fits_its_schema(found: list[Finding]) -> None:
    jsonschema.Draft7Validator(_sarif_schema()).validate(json.loads("".join(findings_text(found, "sarif"))))


@pytest.mark.parametrize("change", [{"version": "2.2"}, {"runs": [{}]}, {"other": 1}])
def test_schema_of_sarif_refuses_other_logs(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(_sarif_schema()).validate(sarif(FOUND) | change)


JUNIT = {
    "testsuites": (set(), {"testsuite"}, set()),
    "testsuite": ({"name"}, {"testcase"}, {"tests", "failures", "errors"}),
    "testcase": ({"name"}, {"failure", "system-out"}, {"classname"}),
    "failure": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}
"""Required attributes, children and other attributes of elements in the schema of Jenkins, junit-10.xsd."""


def test_junit_fits_its_schema() -> None:
    for element in ElementTree.fromstring("".join(findings_text(FOUND, "junit", ["good.onnx"]))).iter():
        required, children, others = JUNIT[element.tag]
        assert required <= set(element.attrib) <= required | others
        assert {child.tag for child in element} <= children
