"""Reports for continuous integration: findings in the forms of other programs, and the verdict of the gate.

The forms are SARIF 2.1.0, GitHub annotations and JUnit; Markdown for a pull request, a page and
JSON. In findings, texts of models are visible already (`Finding.message`); file names are not. In reports of the gate,
all text of a model or a file name is in code spans, or escaped; see `onnxjson.rendering.markdown_reports`.
"""

import hashlib
import html
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import msgspec

from onnxjson.checking.catalogue import RULES, family_of
from onnxjson.checking.judging import COMPATIBLE, FORMAT, GateResult, Judged, ModelResult
from onnxjson.checking.linting import Rule
from onnxjson.checking.policy import NUMBERS, Verdict
from onnxjson.model.display import ELLIPSIS, counted, visible
from onnxjson.model.errors import Finding
from onnxjson.rendering.change_words import Part, Words
from onnxjson.rendering.cost_text import amount, cost_totals, problems, short_text
from onnxjson.rendering.diff_html import html_page, page_code, page_number, page_table, page_text, words_html
from onnxjson.rendering.tables import size

FORMS: Final = ("sarif", "github", "junit")

_RULES: Final = {rule.code: rule for rule in RULES}

_SIGNS: Final = {"error": "✗", "warning": "⚠", "over": "✗", "unknown": "⚠", "ok": "✓"}
"""Marks in a page, from fonts without pictures."""

_IN_ROW: Final = 2
"""Number of changes in the row of a model, before the line that counts the others."""

_LONGEST_AMOUNT: Final = 24
"""Characters of an amount in a cell of the page."""

_OVERVIEW: Final = ("nodes", "parameters", "weights", "MACs", "peak", "findings")


def findings_text(findings: Sequence[Finding], form: str, files: Sequence[str] = ()) -> Iterator[str]:
    """Yield the text of findings in a form of `FORMS`; `files` are all that were checked."""
    match form:
        case "sarif":
            yield json.dumps(sarif(findings), indent=1, ensure_ascii=True) + "\n"
        case "github":
            yield from map(_github, findings)
        case _:
            yield from _junit(findings, files)


def _sentence(finding: Finding) -> str:
    where = f" (@{visible(finding.address, None)})" if finding.address else ""
    return finding.message + (f"; {finding.hint}" if finding.hint else "") + where


def rule_text(rule: Rule) -> str:
    """Return the message of a rule, with dots for its details."""
    return rule.message.replace("{:s}", "...").replace("{}", "...")


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as a SARIF 2.1.0 log."""
    codes = list(dict.fromkeys([each.code for each in findings]))
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
                "results": [_sarif_result(each, codes.index(each.code)) for each in findings],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _sarif_result(finding: Finding, rule: int) -> dict[str, Any]:
    uri = quote(finding.file.encode("utf-8", "surrogateescape"), safe="/")
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if finding.line:
        place["region"] = {"startLine": finding.line, "startColumn": max(finding.column, 1)}
    location: dict[str, Any] = {"physicalLocation": place}
    if finding.address:
        location["logicalLocations"] = [{"fullyQualifiedName": visible(finding.address, None)}]
    return {
        "ruleId": finding.code, "ruleIndex": rule, "level": finding.severity, "message": {"text": _sentence(finding)},
        "locations": [location], "partialFingerprints": {"onnxjson/v1": _fingerprint(finding)},
    }  # fmt: skip


def _fingerprint(finding: Finding) -> str:
    parts = (finding.code, finding.file, finding.address, finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


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


def _junit(findings: Sequence[Finding], files: Sequence[str]) -> Iterator[str]:
    names = list(dict.fromkeys([*files, *[each.file for each in findings]]))
    failures = len({each.file for each in findings if each.severity == "error"})
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites>\n<testsuite name="onnxjson check" tests="{len(names)}" failures="{failures}" errors="0">\n'
    for name in names:
        of_file = [each for each in findings if each.file == name]
        shown = quoteattr(visible(name, None))
        yield f'<testcase name={shown} classname="onnxjson">\n'
        errors, warnings = [[each for each in of_file if each.severity == kind] for kind in ("error", "warning")]
        if errors:
            first = quoteattr(f"{errors[0].code}: {errors[0].message}")
            yield f"<failure type={quoteattr(errors[0].code)} message={first}>{escape(_lines(errors))}</failure>\n"
        if warnings:
            yield f"<system-out>{escape(_lines(warnings))}</system-out>\n"
        yield "</testcase>\n"
    yield "</testsuite>\n</testsuites>\n"


def _lines(found: Sequence[Finding]) -> str:
    return "\n".join([f"{each.severity} {each.code}: {_sentence(each)}" for each in found])


def headline(result: GateResult) -> str:
    """Return the verdict in one sentence."""
    if not result.models:
        return "No models changed."
    bad = sum([not each.passes for each in result.models])
    breaking = sum([any([change.is_breaking for change in each.interface]) for each in result.models])
    compared = [each.outputs for each in result.models if each.outputs is not None]
    verdicts = Counter([each.verdict for each in compared])
    partly = sum([each.verdict == "not-compared" and each.words != "not compared" for each in compared])
    close = sum([each.verdict == "equal" and bool(each.largest) for each in compared])
    is_single = len(result.models) == 1
    facts = [
        alone if is_single else f"{number:,} {several}"
        for number, alone, several in (
            (breaking, "it breaks callers", "breaking for callers"),
            (verdicts["different"], "outputs differ", "with other outputs"),
            (verdicts["inconclusive"], "comparing outputs was inconclusive", "compared without a conclusion"),
            (verdicts["not-compared"] - partly, "outputs were not compared", "not compared"),
            (partly, "only the outputs that remain were compared", "compared without removed outputs"),
            (close, "outputs are equal within the tolerance", "with outputs equal within the tolerance"),
            (verdicts["equal"] - close, "outputs are equal", "with equal outputs"),
        )
        if number
    ]
    text = f"{counted(len(result.models), 'model')} changed" + (f": {', '.join(facts)}" if facts else "")
    return (
        f"{text}." if not bad else f"{text}. The check fails." if is_single else f"{text}. The check fails for {bad:,}."
    )


def urgency(each: ModelResult) -> tuple[bool, bool]:
    """Position in a report: failures first, then warnings."""
    return each.passes, state_of(each) == "ok"


def state_of(model: ModelResult) -> str:
    """Return "error", "warning" or "ok"; what stays compatible is no reason to look twice."""
    if not model.passes:
        return "error"
    is_uncompared = model.outputs is not None and model.outputs.verdict == "not-compared"
    is_noted = any([finding.code != COMPATIBLE for finding in model.findings])
    return "warning" if is_noted or model.problems or is_uncompared else "ok"


def _numbers(each: ModelResult, cell: Callable[[str], str]) -> list[str]:
    """Return the number of each column before and after, as cells; "" where there is no model."""
    pairs = zip(columns_of(each.before), columns_of(each.after), strict=True)
    return [cell(new) if new == old or not old else f"{cell(old)} → {cell(new)}" for old, new in pairs]


def columns_of(judged: Judged | None) -> Sequence[str]:
    """Return the numbers of a model, as `_OVERVIEW` names them."""
    if judged is None or judged.cost is None:
        return [""] * 5
    cost = judged.cost
    texts = (f"{judged.values['nodes']:,}", amount(cost.parameters), size(cost.weight_bytes))
    costs = (short_text(cost, "macs"), short_text(cost, "peak_activation_bytes"))
    return (*texts, *costs)


def row_words(model: ModelResult, changes: Sequence[Words]) -> list[Words]:
    """Return the status of a model unless it is changed, its first changes, and the number of the others."""
    shown = list(changes[: in_row(changes)])
    if len(changes) > len(shown):
        shown.append((Part(f"and {len(changes) - len(shown):,} more, below"),))
    if model.status != "changed":
        return [(Part(model.status),), *shown]
    is_compared = model.before is not None and model.after is not None
    return shown or [(Part("nothing that the model has, only its file" if is_compared else "not compared"),)]


def in_row(changes: Sequence[Words]) -> int:
    """Return the number of changes in the row of a model: all where the others would be one."""
    return _IN_ROW if len(changes) > _IN_ROW + 1 else len(changes)


def by_severity(found: Iterable[Finding]) -> list[Finding]:
    """Return errors first."""
    return sorted(found, key=lambda each: each.severity != "error")


def _cost_problems(each: ModelResult) -> list[str]:
    return problems(each.after.cost) if each.after is not None and each.after.cost is not None else []


def gate_html(result: GateResult, changes: Mapping[str, Sequence[Words]], diffs: Mapping[str, str]) -> Iterator[str]:
    """Yield the page of all models in pieces; `changes` has by name what changed in words, `diffs` the section."""
    return html_page(f"gate: {result.base} → {result.head}", _page(result, changes, diffs), "onnxjson gate")


def _page(result: GateResult, changes: Mapping[str, Sequence[Words]], diffs: Mapping[str, str]) -> Iterator[str]:
    yield f"<h1>{headline(result)}</h1>\n<p>{page_code(result.base)} → {page_code(result.head)}</p>\n"
    ordered = sorted(enumerate(result.models), key=lambda pair: urgency(pair[1]))
    rows = []
    for number, model in ordered:
        link = f'{_SIGNS[state_of(model)]} <a href="#m{number}">{page_code(model.name)}</a>'
        words = "<br>".join(map(words_html, row_words(model, changes.get(model.name, ()))))
        rows.append((f"{link}<p>{words}</p>{_page_outputs(model)}", _page_row(model)))
    yield from page_table(_OVERVIEW, rows) if rows else ()
    for number, model in ordered:
        yield f'<section id="m{number}">\n<h1>{page_code(model.name)} {model.status}</h1>\n'
        yield _page_outputs(model)
        yield from (f'<p class="problem">{html.escape(problem)}</p>\n' for problem in model.problems)
        yield from _page_list("Findings", map(_page_finding, by_severity(model.findings)))
        yield from _page_list("Budgets", map(_page_verdict, model.verdicts))
        yield from _page_list("Not counted", map(page_text, _cost_problems(model)))
        yield diffs.get(model.name, "") + "</section>\n"


def _page_outputs(model: ModelResult) -> str:
    if model.outputs is None:
        return ""
    style = {"equal": "good", "different": "bad"}.get(model.outputs.verdict, "open")
    return f'<p class="verdict {style}">{html.escape(model.outputs.text)}</p>\n'


def _page_row(model: ModelResult) -> list[str]:
    return [
        *map(page_number, _numbers(model, _page_amount)),
        page_number(f"{len(model.findings):,}", differs=not model.passes),
    ]


def _page_amount(text: str) -> str:
    """Return an amount that is not broken into lines; names of sizes can be long."""
    short = text if len(text) <= _LONGEST_AMOUNT else text[:_LONGEST_AMOUNT] + ELLIPSIS
    return page_text(short).replace(" ", "&nbsp;")


def _page_list(title: str, items: Iterable[str]) -> Iterator[str]:
    lines = [f"<li>{item}</li>\n" for item in items]
    yield f"<h2>{title}</h2>\n<ul>\n{''.join(lines)}</ul>\n" if lines else ""


def _page_finding(finding: Finding) -> str:
    where = f" {page_code('@' + finding.address)}" if finding.address else ""
    hint = html.escape(f"; {finding.hint}") if finding.hint else ""
    return f"{_SIGNS[finding.severity]} {page_code(finding.code)} {html.escape(finding.message)}{hint}{where}"


def _page_verdict(verdict: Verdict) -> str:
    return f"{_SIGNS[verdict.status]} <b>{html.escape(verdict.name)}</b> {html.escape(verdict.message)}"


def gate_data(result: GateResult) -> dict[str, Any]:
    """Return the verdict as data."""
    return {
        "format": FORMAT,
        "verdict": "pass" if result.passes else "fail",
        "base": result.base,
        "head": result.head,
        "models": [_model_data(each) for each in result.models],
    }


def _model_data(model: ModelResult) -> dict[str, Any]:
    return {
        "name": model.name,
        "status": model.status,
        "verdict": "pass" if model.passes else "fail",
        "before": _side_data(model.before),
        "after": _side_data(model.after),
        "findings": [msgspec.structs.asdict(finding) for finding in model.findings],
        "known_findings": model.known,
        "ignored_findings": model.ignored,
        "budgets": [msgspec.structs.asdict(verdict) for verdict in model.verdicts],
        "not_compared": [visible(problem, None) for problem in model.problems],
        "interface": [{"breaking": change.is_breaking, "text": change.text} for change in model.interface],
        "outputs": None if model.outputs is None else model.outputs._asdict(),
    }


def _side_data(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    found: dict[str, Any] = {name: value for name, value in judged.values.items() if name in NUMBERS}
    return found | ({} if judged.cost is None else {"cost": cost_totals(judged.cost)})


def summary_line(model: ModelResult) -> str:
    """Return one line about a model, for a terminal; it does not begin with the name, which may be ``::command::``."""
    errors = sum([finding.severity == "error" for finding in model.findings])
    texts: Sequence[str] = [counted(errors, "error"), counted(len(model.findings) - errors, "warning")]
    state = "pass" if model.passes else "FAIL"
    compared = "" if model.outputs is None else f"; {model.outputs.text}"
    return f"{state}  {visible(model.name, None)} {model.status}: {', '.join(texts)}{compared}"
