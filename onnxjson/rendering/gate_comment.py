"""The gate's comment on a pull request: a row for each model, then findings and further changes, without folding.

All text of a model, a file or a revision is in code spans; see `onnxjson.rendering.markdown_reports`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from onnxjson.checking.judging import BREAKING, COMPATIBLE, DIFFERENT, GateResult, ModelResult
from onnxjson.model.display import counted, listed
from onnxjson.rendering.change_words import Words
from onnxjson.rendering.ci_reports import by_severity, columns_of, headline, in_row, row_words, state_of, urgency
from onnxjson.rendering.markdown_reports import LARGEST, amount_cell, code, code_span, words_markdown

_ICONS: Final = {"error": "❌", "warning": "⚠️", "ok": "✅"}
_OUTPUT_ICONS: Final = {"equal": "", "different": "⚠️ ", "inconclusive": "❔ ", "not-compared": "❔ "}
_COSTS: Final = ("nodes", "parameters", "weights", "MACs", "peak")
_MOST_CHANGES: Final = 8
"""Maximum number of further changes of a model."""

_MOST_ALIKE: Final = 3
"""Maximum number of messages of a rule about a model."""

_LINES: Final = 60
"""Number of lines of a comment about up to 20 models."""

_IN_ROWS: Final = frozenset({BREAKING, COMPATIBLE, DIFFERENT})
"""Findings that the row of a model has already."""


def gate_comment(result: GateResult, changes: Mapping[str, Sequence[Words]], seconds: float) -> str:
    """Return the comment, at most `LARGEST` characters.

    `changes` has the changes of each model in words, by its name; `seconds` is the time for which the outputs of each
    model were compared, 0 if they were not.
    """
    ordered = sorted(result.models, key=urgency)
    states = [state_of(each) for each in ordered]
    icon = next((_ICONS[state] for state in ("error", "warning") if state in states), _ICONS["ok"])
    how = "Outputs were not compared."
    if seconds:
        how = f"Outputs are those of random inputs (at most {seconds:g} s a model), which tell nothing of accuracy."
    text = f"### {icon} {headline(result)}\n\n{code(result.base)} → {code(result.head)}. {how}\n"
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


def _row(result: ModelResult, changes: Sequence[Words]) -> str:
    before, after = columns_of(result.before), columns_of(result.after)
    costs = [
        f"{name} {amount_cell(old)} → {amount_cell(new)}"
        for name, old, new in zip(_COSTS, before, after, strict=True)
        if old != new and old and new
    ]
    if not costs and all([*before, *after]):
        costs = ["unchanged"]
    outputs = ""
    if result.outputs is not None:
        detail = f": {code_span(result.outputs.detail)}" if result.outputs.detail else ""
        outputs = f"{_OUTPUT_ICONS[result.outputs.verdict]}{result.outputs.words}{detail}"
    words = "<br>".join(map(words_markdown, row_words(result, changes)))
    cells = (_ICONS[state_of(result)], code(result.name), words, outputs, "<br>".join(costs))
    return f"| {' | '.join(cells)} |\n"


def _findings(result: ModelResult) -> Iterator[str]:
    """Yield a line for each finding, with the number of those that say the same, and for what could not be compared."""
    alike: dict[tuple[str, str], dict[str, list[str]]] = {}
    for finding in by_severity(result.findings):
        if finding.code not in _IN_ROWS or finding.severity == "error":
            hint = f"; {finding.hint}" if finding.hint else ""
            of_code = alike.setdefault((finding.severity, finding.code), {})
            of_code.setdefault(finding.message + hint, []).append(finding.address)
    for (severity, name), messages in alike.items():
        start = f"- {_ICONS[severity]} {code(result.name)}: {code(name)}"
        shown = len(messages) if len(messages) <= _MOST_ALIKE + 1 else _MOST_ALIKE
        for message, addresses in [*messages.items()][:shown]:
            where = f" {code('@' + addresses[0])}" if addresses[0] else ""
            where += f" and {len(addresses) - 1:,} more" if len(addresses) > 1 else ""
            yield f"{start} {code_span(message)}{where}\n"
        if left := sum(map(len, [*messages.values()][shown:])):
            yield f"{start} {left:,} more\n"
    for problem in result.problems:
        yield f"- {_ICONS['warning']} {code(result.name)}: not compared: {code_span(problem)}\n"


def _further(result: ModelResult, changes: Sequence[Words]) -> Iterator[str]:
    """Yield the changes that the row has no room for, on one line."""
    if further := [words_markdown(words) for words in changes[in_row(changes) :]]:
        yield f"- {code(result.name)} also: {listed(further, _MOST_CHANGES, '; ')}\n"
