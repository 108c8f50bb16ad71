"""The gate's comment on a pull request: a row for each model, then findings and further changes, without folding.

All text of a model, a file or a revision is in code spans; see `onnxjson.rendering.markdown_reports`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from onnxjson.checking.judging import BREAKING, COMPATIBLE, DIFFERENT, GateResult, ModelResult
from onnxjson.diffing.events import KIND_PROPERTIES, Event
from onnxjson.model.display import counted, listed
from onnxjson.rendering.ci_reports import by_severity, columns_of, headline, state_of, urgency
from onnxjson.rendering.diff_report import Report, is_cleanup, is_of_interface
from onnxjson.rendering.diff_text import detail_text, place_text
from onnxjson.rendering.markdown_reports import LARGEST, amount_cell, code, code_span, interface_text

_ICONS: Final = {"error": "❌", "warning": "⚠️", "ok": "✅", "equal": "", "different": "⚠️ ", "not-compared": "⚠️ "}
_COSTS: Final = ("nodes", "parameters", "weights", "MACs", "peak")
_IN_ROW: Final = 2
"""Number of changes in the row of a model."""

_MOST_CHANGES: Final = 8
"""Maximum number of further changes of a model."""

_LONGEST: Final = 120
_LINES: Final = 60
"""Number of lines of a comment about up to 20 models."""

_IN_ROWS: Final = frozenset({BREAKING, COMPATIBLE, DIFFERENT})
"""Findings that the row of a model has already."""


def change_words(report: Report) -> list[str]:
    """Return the changes of a model in words, as Markdown, the most important first."""
    loud, _ = report.by_weight
    words = [f"**{each.word}**: {interface_text(each)}" for each in report.interface]
    words += [f"`{layers}`" for layers in report.layers]
    words += _together("quantized", [event for event in loud if event.kind == "quantized"])
    words += [
        _event(event)
        for event in loud
        if event.kind != "quantized" and not is_cleanup(event) and not (report.interface and is_of_interface(event))
    ]
    words += _together("cleanup", [event for event in loud if is_cleanup(event)])
    if report.without_effect:
        words.append(f"{counted(report.without_effect, 'change')} without effect")
    return words


def _together(title: str, events: Sequence[Event]) -> list[str]:
    """Return what happened in words; several events as ``quantized in 25 places, such as `Gemm -> ...```."""
    if len(events) < 2:
        return [_event(event) for event in events]
    places = counted(sum([event.count for event in events]), "place")
    example = max(events, key=lambda event: event.count)
    return [
        f"{title} in {places}, such as {'' if title == example.kind else example.kind + ' '}{code(example.pattern)}"
    ]


def _event(event: Event) -> str:
    """Return ```Softmax.axis -1 -> 1` `in all 4 layers```."""
    place, _, options = event.where.partition(": ")
    if options:
        parts = [sentence.partition(": ") for sentence in event.where.split("; ")]
        return ", ".join([" ".join([code(text) for text in (named, rounds) if text]) for rounds, _, named in parts])
    kind = "" if event.kind == "attribute-changed" else f"{event.kind} "
    pattern, values = event.pattern, ""
    details = list(dict.fromkeys([detail for member in event.members for detail in member.details]))
    if event.kind == "attribute-changed" and len(details) == 1:
        pattern = f"{pattern} {details[0].base or 'default'} -> {details[0].target or 'default'}"
    elif details and event.count == 1 and not (KIND_PROPERTIES[event.kind].is_drawn and event.kind != "rewired"):
        values = code_span(detail_text(event, details[0], _LONGEST))
    elif sizes := [float(each.target) for each in details if each.what == "max relative difference" and each.target]:
        values = f"by up to {100 * max(sizes):.3g} %"
    number = f"{event.count:,}× " if event.count > 1 else ""
    shown = code(place) if place else f"in {code(place_text(event.members[0]))}" if event.count == 1 else ""
    return " ".join(filter(None, (f"{kind}{number}{code(pattern)}", values, shown)))


def gate_comment(result: GateResult, changes: Mapping[str, Sequence[str]], seconds: float) -> str:
    """Return the comment, at most `LARGEST` characters.

    `changes` has the changes of each model in words (see `change_words`), by its name; `seconds` is the time for which
    the outputs of each model were compared, 0 if they were not.
    """
    ordered = sorted(result.models, key=urgency)
    states = [state_of(each) for each in ordered]
    icon = next((_ICONS[state] for state in ("error", "warning") if state in states), _ICONS["ok"])
    limit = f"outputs compared on random inputs, at most {seconds:g} s a model" if seconds else "outputs not compared"
    text = f"### {icon} {headline(result)}\n\n{code(result.base)} → {code(result.head)}; {limit}\n"
    rows = [_row(each, changes.get(each.name, ())) for each in ordered]
    if rows:
        text += "\n| |model|what changed|outputs|cost|\n|---|---|---|---|---|\n"
        kept = [row for end, row in enumerate(rows, 1) if sum(map(len, rows[:end])) < LARGEST * 2 // 3]
        text += "".join(kept) + (f"\n*{len(rows) - len(kept):,} more models.*\n" if len(kept) < len(rows) else "")
    lines = [line for each in ordered for line in _findings(each)]
    lines = [*sorted(lines, key=lambda line: _ICONS["error"] not in line[:5])]
    lines += [line for each in ordered for line in _further(each, changes.get(each.name, ()))]
    room = max(_LINES, text.count("\n") + 20) - text.count("\n") - 2
    shown: list[str] = []
    for line in lines[:room]:
        if len(text) + sum(map(len, shown)) + len(line) < LARGEST - 200:
            shown.append(line)
    left = len(lines) - len(shown)
    text += "\n" * bool(shown) + "".join(shown)
    return text + (f"- and {counted(left, 'more line')}; gate.html has everything\n" if left else "")


def _row(result: ModelResult, changes: Sequence[str]) -> str:
    words = [*changes[:_IN_ROW], *([f"and {len(changes) - _IN_ROW:,} more"] if len(changes) > _IN_ROW else [])]
    if not changes:
        words = [result.status if result.status != "changed" else "nothing that the model has, only its file"]
    elif result.status != "changed":
        words[0] = f"{result.status}; {words[0]}"
    before, after = columns_of(result.before), columns_of(result.after)
    costs = [
        f"{name} {amount_cell(old)} → {amount_cell(new)}"
        for name, old, new in zip(_COSTS, before, after, strict=True)
        if old != new and old and new
    ]
    outputs = ""
    if result.outputs is not None:
        detail = f": {code_span(result.outputs.detail)}" if result.outputs.detail else ""
        outputs = f"{_ICONS[result.outputs.verdict]}{result.outputs.words}{detail}"
    cells = (_ICONS[state_of(result)], code(result.name), "<br>".join(words), outputs, "<br>".join(costs))
    return f"| {' | '.join(cells)} |\n"


def _findings(result: ModelResult) -> Iterator[str]:
    """Yield a line for result finding and for what could not be compared."""
    for finding in by_severity(result.findings):
        if finding.code not in _IN_ROWS or finding.severity == "error":
            where = f" {code('@' + finding.address)}" if finding.address else ""
            hint = f"; {finding.hint}" if finding.hint else ""
            text = f"{code(result.name)}: {code(finding.code)} {code_span(finding.message + hint)}{where}"
            yield f"- {_ICONS[finding.severity]} {text}\n"
    for problem in result.problems:
        yield f"- {_ICONS['warning']} {code(result.name)}: not compared: {code_span(problem)}\n"


def _further(result: ModelResult, changes: Sequence[str]) -> Iterator[str]:
    """Yield the changes that the row has no room for, on one line."""
    if further := changes[_IN_ROW:]:
        yield f"- {code(result.name)} also: {listed(further, _MOST_CHANGES, '; ')}\n"
