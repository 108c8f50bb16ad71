"""Findings in the forms of other programs."""

import re
from xml.etree import ElementTree

import junitparser
import pydantic
import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

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


@pytest.mark.parametrize("found", [[], FOUND])
def test_sarif_fits_its_schema(found: list[Finding]) -> None:
    log = SarifLog.model_validate_json("".join(findings_text(found, "sarif")), strict=True)
    assert all(result.message.text for result in log.runs[0].results or [])


BROKEN_SARIF = [
    ('"2.1.0"', '"2.2"'),
    ('"runs"', '"other": 1, "runs"'),
    ('"error"', '"fatal"'),
    ('"startLine": 3', '"startLine": 0'),
    ('"ruleIndex": 0', '"ruleIndex": "0"'),
    ('"fullyQualifiedName"', '"name of all"'),
    ('"driver"', '"drivers"'),
]


@pytest.mark.parametrize(("text", "other"), BROKEN_SARIF)
def test_schema_of_sarif_refuses_other_logs(text: str, other: str) -> None:
    log = "".join(findings_text(FOUND, "sarif"))
    assert text in log
    with pytest.raises(pydantic.ValidationError):
        SarifLog.model_validate_json(log.replace(text, other, 1), strict=True)


def _read_and_written(text: str) -> str:
    """Return a JUnit report that junitparser writes anew from all that it reads in another, with its own counts."""
    report = junitparser.JUnitXml()
    for suite in junitparser.JUnitXml.fromstring(text.encode()):
        suite_copy = junitparser.TestSuite(suite.name)
        for case in suite:
            case_copy = junitparser.TestCase(case.name, case.classname)
            for result in case.result:
                result_copy = type(result)(result.message, result.type)
                result_copy.text = result.text
                case_copy.result = [*case_copy.result, result_copy]
            if case.system_out is not None:
                case_copy.system_out = case.system_out
            suite_copy.add_testcase(case_copy)
        report.add_testsuite(suite_copy)
    return ElementTree.tostring(report._elem, encoding="unicode")


def _elements(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Return the elements of a report: tags, attributes but for skipped cases and times, which are optional, texts."""
    return [
        (
            element.tag,
            {name: value for name, value in element.attrib.items() if name not in {"skipped", "time"}},
            (element.text or "").strip(),
        )
        for element in ElementTree.fromstring(text).iter()
    ]


def test_junit_is_what_another_program_reads_and_writes() -> None:
    report = "".join(findings_text(FOUND, "junit", ["good.onnx"]))
    assert _elements(report) == _elements(_read_and_written(report))


@pytest.mark.parametrize(
    ("text", "other"),
    [('failures="1"', 'failures="2"'), ("system-out", "output"), ("classname", "class"), ("testcase", "case")],
)
def test_other_program_does_not_read_other_reports(text: str, other: str) -> None:
    report = "".join(findings_text(FOUND, "junit", ["good.onnx"]))
    assert text in report
    broken = report.replace(text, other)
    assert _elements(broken) != _elements(_read_and_written(broken))
