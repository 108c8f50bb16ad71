"""Findings in the forms of other programs: SARIF 2.1.0, GitHub annotations, GitLab code quality, JUnit.

Texts of models are visible already (`Finding.message`); file names are not.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from onnxjson.checking.catalogue import RULES, family_of
from onnxjson.checking.linting import Rule
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding

FORMS: Final = ("sarif", "github", "gitlab", "junit")

_RULES: Final = {rule.code: rule for rule in RULES}


def findings_text(found: Sequence[Finding], form: str, files: Sequence[str] = ()) -> Iterator[str]:
    """Yield the text of findings in a form of `FORMS`; `files` are all that were checked."""
    match form:
        case "sarif":
            yield json.dumps(sarif(found), indent=1, ensure_ascii=True) + "\n"
        case "gitlab":
            yield json.dumps([_gitlab(each) for each in found], indent=1, ensure_ascii=True) + "\n"
        case "github":
            yield from map(_github, found)
        case _:
            yield from _junit(found, files)


def _sentence(finding: Finding) -> str:
    where = f" (@{visible(finding.address, None)})" if finding.address else ""
    return finding.message + (f"; {finding.hint}" if finding.hint else "") + where


def rule_text(rule: Rule) -> str:
    """Return the message of a rule, with dots for its details."""
    return rule.message.replace("{:s}", "...").replace("{}", "...")


def sarif(found: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as a SARIF 2.1.0 log."""
    codes = list(dict.fromkeys([each.code for each in found]))
    rules = [
        {
            "id": code,
            "shortDescription": {"text": rule_text(_RULES[code]) if code in _RULES else code},
            "properties": {"tags": [family_of(code)]},
        }
        for code in codes
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "onnxjson", "rules": rules}},
                "results": [_sarif_result(each, codes.index(each.code)) for each in found],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _sarif_result(finding: Finding, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file)}}
    if finding.line:
        place["region"] = {"startLine": finding.line, "startColumn": max(finding.column, 1)}
    location: dict[str, Any] = {"physicalLocation": place}
    if finding.address:
        location["logicalLocations"] = [{"fullyQualifiedName": visible(finding.address, None)}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": _sentence(finding)},
        "locations": [location],
        "partialFingerprints": {"onnxjson/v1": _fingerprint(finding)},
    }


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(file.encode("utf-8", "surrogateescape"), safe="/")


def _fingerprint(finding: Finding) -> str:
    parts = (finding.code, finding.file, finding.address, finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _gitlab(finding: Finding) -> dict[str, Any]:
    return {
        "description": _sentence(finding),
        "check_name": finding.code,
        "fingerprint": _fingerprint(finding),
        "severity": "major" if finding.severity == "error" else "minor",
        "location": {"path": visible(finding.file, None), "lines": {"begin": max(finding.line, 1)}},
    }


def _github(finding: Finding) -> str:
    """Return a workflow command; https://github.com/actions/toolkit escapes data and properties this way."""
    place = f",line={finding.line},col={max(finding.column, 1)}" if finding.line else ""
    title = _property(f"onnxjson {finding.code}")
    file = _property(visible(finding.file, None))
    return f"::{finding.severity} file={file}{place},title={title}::{_data(_sentence(finding))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _junit(found: Sequence[Finding], files: Sequence[str]) -> Iterator[str]:
    names = list(dict.fromkeys([*files, *[each.file for each in found]]))
    failures = len({each.file for each in found if each.severity == "error"})
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites>\n<testsuite name="onnxjson check" tests="{len(names)}" failures="{failures}" errors="0">\n'
    for name in names:
        its = [each for each in found if each.file == name]
        shown = quoteattr(visible(name, None))
        yield f'<testcase name={shown} classname="onnxjson">\n'
        errors, warnings = [[each for each in its if each.severity == kind] for kind in ("error", "warning")]
        if errors:
            first = quoteattr(f"{errors[0].code}: {errors[0].message}")
            yield f"<failure type={quoteattr(errors[0].code)} message={first}>{escape(_lines(errors))}</failure>\n"
        if warnings:
            yield f"<system-out>{escape(_lines(warnings))}</system-out>\n"
        yield "</testcase>\n"
    yield "</testsuite>\n</testsuites>\n"


def _lines(found: Sequence[Finding]) -> str:
    return "\n".join([f"{each.severity} {each.code}: {_sentence(each)}" for each in found])
