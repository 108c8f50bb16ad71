"""A trace as Markdown for a comment on a pull request, in GitHub's dialect; see `onnxjson.rendering.diff_markdown`."""

from collections.abc import Iterator
from typing import Final

from onnxjson.model.display import counted
from onnxjson.optimizing.trace_records import Size, Step, Trace
from onnxjson.rendering.diff_markdown import LARGEST, code
from onnxjson.rendering.diff_text import place_text
from onnxjson.rendering.stage_table import bytes_change, table_rows
from onnxjson.rendering.trace_text import Subject, columns, headline, loud, node_text, notes_of, part_text, size_before

_MOST_ROWS: Final = 300
"""Maximum number of rows of a table."""

_MOST_OPERATORS: Final = 40
_LONGEST: Final = 200
_CUT: Final = "\n*Shortened to fit into a comment; `onnxjson trace DIR --format html` shows everything.*\n"


def trace_markdown(trace: Trace, subjects: list[Subject] | None = None) -> str:
    """Return the report, at most `LARGEST` characters; a longer one is shortened with a note."""
    text = ""
    for piece in _stories(trace, subjects) if subjects is not None else _pieces(trace):
        if len(text) + len(piece) > LARGEST - len(_CUT):
            return text + _CUT
        text += piece
    return text


def _pieces(trace: Trace) -> Iterator[str]:
    yield f"### {code(headline(trace), None)}\n\n"
    yield "| pass | nodes | parameters | bytes | seconds |\n|---|--:|--:|--:|--:|\n"
    for step in trace.steps:
        before = size_before(trace, step)
        after = step.parts[-1].after if step.parts else before
        state = " ❌" if step.failure is not None else "" if step.parts else " (changed nothing)"
        numbers = [_number(before.nodes, after.nodes), _number(before.parameters, after.parameters)]
        bytes_text = bytes_change(before.bytes, after.bytes).replace("->", "→")
        yield f"| {code(step.name)}{state} | {numbers[0]} | {numbers[1]} | {bytes_text} | {step.seconds:.2g} |\n"
    for step in trace.steps:
        yield from _step(step, size_before(trace, step))
    yield from _table(trace)


def _number(before: int, after: int) -> str:
    return f"{after:,}" if before == after else f"{before:,} → {after:,}"


def _step(step: Step, before: Size) -> Iterator[str]:
    if step.failure is not None:
        yield f"\n❌ {code(step.failure, 400)}\n"
    rows = []
    for part in step.parts:
        for event in loud(part.events):
            places = ", ".join([code(place_text(member)) for member in event.members[:3]])
            left = len(event.members) - 3
            more = f" and {left:,} more" if left > 0 else ""
            times = f"{event.count:,}× " if event.count > 1 else ""
            pattern = code(event.pattern, _LONGEST)
            rows.append(
                f"| {code(part.name) if part.name else ''} | {event.kind} | {times}{pattern} | {places}{more} |\n"
            )
    notes = notes_of(step, before)
    if not rows and not notes:
        return
    yield f"\n#### {code(step.name)}\n\n"
    yield from (f"- {code(note, 400)}\n" for note in notes)
    if rows:
        yield "\n| part | kind | what | where |\n|---|---|---|---|\n"
        yield from rows[:_MOST_ROWS]
        if len(rows) > _MOST_ROWS:
            yield f"\n*{counted(len(rows) - _MOST_ROWS, 'more row')} omitted.*\n"


def _table(trace: Trace) -> Iterator[str]:
    found = columns(trace)
    yield "\n<details><summary>operators and sizes</summary>\n\n"
    text = "".join([f"| {code(column.name)} " for column in found])
    text = f"| {text}|\n|---{'|--:' * len(found)}|\n"
    for row in table_rows(found, most=_MOST_OPERATORS):
        label = code(row.what) if row.is_operator else f"**{row.what}**"
        text += f"| {label} {''.join([f'| {row.text(place)} ' for place in range(len(found))])}|\n"
    yield f"{text}\n</details>\n"


def _stories(trace: Trace, subjects: list[Subject]) -> Iterator[str]:
    for subject in subjects:
        whose = "after" if subject.is_of_result else "before"
        yield f"#### {code(node_text(subject.ref))} ({whose} all passes, {code('@' + subject.ref.address)})\n\n"
        verb = "from" if subject.is_of_result else "is in"
        nodes = ", ".join([code(f"@{address}") for address in subject.story.nodes[:40]])
        yield f"{verb} {nodes}\n\n" if nodes else ("from no node\n\n" if subject.is_of_result else "removed\n\n")
        for touch in subject.story.touches:
            yield f"- {code(part_text(trace, touch))}: {touch.kind} {code(touch.pattern, _LONGEST)}\n"
        yield "\n"
