"""Diffs and traces as Markdown for a comment on a pull request, in GitHub's dialect.

Text from a model is always in a code span, where GitHub does not interpret markup, links, mentions or issue numbers,
and without ``|``, which would end a table cell even there.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from onnxjson.diffing.events import KIND_PROPERTIES, Event, Member, Verdict
from onnxjson.model.display import counted, listed, visible
from onnxjson.optimizing.trace_records import Trace
from onnxjson.rendering import trace_text
from onnxjson.rendering.change_words import Words, first_words
from onnxjson.rendering.diff_report import EFFECTS, Report, places_of, size_rows
from onnxjson.rendering.diff_text import detail_text, nodes_text, not_verified, place_text

LARGEST: Final = 60_000
"""Maximum length of a report in characters; GitHub accepts comments of 65,536."""

_TABLE: Final = 30_000  # number of characters after which the table of events ends
_MOST_PLACES: Final = 3
_MOST_VALUES: Final = 3
_MOST_QUIET: Final = 10  # maximum number of listed changes of one kind that leave all results unchanged
_MOST_MEMBERS: Final = 40  # maximum number of members of an event in the details, to leave room for other events
_MOST_OPERATORS: Final = 40
_LONGEST: Final = 120
_LONGEST_DETAIL: Final = 240
_VERDICTS: Final[dict[Verdict, str]] = {
    "equal": "✅ equal",
    "within-tolerance": "✅ equal within tolerance",
    "different": "❌ **different results**",
    "not-run": "",
}
_MARKED: Final[dict[str, Callable[[str], str]]] = {"word": str, "strong": "**{}**".format}
"""How parts of words are marked that are not code."""

_CUT: Final = "\n*Shortened to fit into a comment; `onnxjson diff --format html` shows everything.*\n"
_HEAD: Final = "| kind | what | where |\n|---|---|---|\n"
_END: Final = "\n</details>\n"

_MOST_ROWS: Final = 300
_LONGEST_PATTERN: Final = 200
_TRACE_CUT: Final = "\n*Shortened to fit into a comment; `onnxjson trace DIR --format html` shows everything.*\n"


def diff_markdown(report: Report) -> str:
    """Return the report, at most `LARGEST` characters; a longer one is shortened with a note."""
    text = _Capped()
    text.add(f"### {code(report.base_name)} → {code(report.target_name)}\n\n")
    if report.equal:
        text.add(f"The same: {counted(report.nodes.after, 'node')}.\n")
        return text.all()
    loud, quiet = report.by_weight
    text.add(f"{nodes_text(report)}.")
    if report.events:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in places_of(loud).items())
        text.add(f" **{report.count_text}**{kinds and ': '}{kinds}.")
    text.add("\n")
    first = [f"\n- {words_markdown(words)}" for words in first_words(report)[:20]]
    text.add("".join(first) + ("\n" if first else ""))
    for problem in report.incomplete[:20]:
        text.add(f"\n⚠️ {code(problem, 400)}\n")
    with_verdicts = any(map(_verdict, loud))
    head = "| kind | what | where | verdict |\n|---|---|---|---|\n" if with_verdicts else _HEAD
    text.rows(f"\n{head}", (_row(event, with_verdict=with_verdicts) for event in loud), _TABLE)
    if unverified := not_verified(report):
        text.add(f"\n*{counted(unverified, 'rewrite')} not verified: `--test-rewrites` runs both sides of each.*\n")
    if quiet:
        text.add(f"\nNo effect on results: {', '.join(_quiet(quiet))}.\n")
    text.folded("operators and sizes", _operators(report))
    text.folded("details", _details([*loud, *quiet]))
    return text.all()


def code(text: str, limit: int | None = _LONGEST) -> str:
    """Return a code span with `text` made visible; a bar is escaped, too."""
    return code_span(visible(text, limit))


def code_span(shown: str) -> str:
    """Return a code span of a text that is already visible."""
    shown = shown.replace("|", "\\u{7c}")
    if not shown:
        return "(empty)"
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    # Markdown strips one space at both ends, except from a span of spaces only.
    space = " " if shown.strip(" ") and (shown[0] in " `" or shown[-1] in " `") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def words_markdown(words: Words) -> str:
    """Return ``**breaking**: output `382` renamed to `logits` ``."""
    return "".join([_MARKED.get(part.mark, code_span)(part.text) for part in words])


class _Capped:
    """A text that ends before it is too long, with all elements closed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._is_cut = False

    def add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def rows(self, head: str, rows: Iterator[str], largest: int) -> None:
        """Add a table with the rows that fit into `largest` characters, and the number of omitted rows."""
        first = next(rows, None)
        if first is None:
            return
        self.add(head + first)
        for row in rows:
            if self._length + len(row) > largest:
                self.add(f"\n*{counted(1 + sum(1 for _ in rows), 'more row')} omitted.*\n")
                self._is_cut = True
                return
            self.add(row)

    def folded(self, title: str, lines: Iterable[str]) -> None:
        """Add collapsed lines, as many as fit."""
        room = LARGEST - len(_CUT) - len(_END)
        head = f"\n<details><summary>{title}</summary>\n\n"
        opened = False
        for line in lines:
            if self._length + len(line) + (0 if opened else len(head)) > room:
                self._is_cut = True
                break
            if not opened:
                self.add(head)
                opened = True
            self.add(line)
        if opened:
            self.add(_END)

    def all(self) -> str:
        return "".join(self._parts) + (_CUT if self._is_cut else "")


def _verdict(event: Event) -> str:
    return _VERDICTS[event.verdict] if event.verdict is not None else ""


def _row(event: Event, *, with_verdict: bool) -> str:
    return f"| {_cells(event, _LONGEST_DETAIL)} |" + (f" {_verdict(event)} |\n" if with_verdict else "\n")


def _cells(event: Event, longest: int) -> str:
    """Return the kind of an event, its pattern with the values, and its places."""
    places = list(dict.fromkeys([code(place_text(member)) for member in event.members]))
    if event.where:
        places = [code(event.where, 2 * _LONGEST)]
    values = _values(event)
    return f"{event.kind} | {_title(event, longest)}{values and ': '}{values} | {listed(places, _MOST_PLACES)}"


def _title(event: Event, longest: int) -> str:
    return (f"{event.count:,}× " if event.count > 1 else "") + code(event.pattern, longest)


def _values(event: Event) -> str:
    """Return old and new values, a few different ones; a rewrite has none."""
    if KIND_PROPERTIES[event.kind].is_drawn and event.kind != "rewired":
        return ""
    found = list(dict.fromkeys([detail for member in event.members for detail in member.details]))
    texts = [code_span(detail_text(event, each, _LONGEST).removeprefix("attribute ")) for each in found[:_MOST_VALUES]]
    return listed([*texts, *[""] * (len(found) - len(texts))], _MOST_VALUES)


def _quiet(events: Iterable[Event]) -> Iterator[str]:
    """Yield ``renamed (354× `nodes`, 395× `tensors`)``."""
    for kind, of_kind in itertools.groupby(events, key=lambda event: event.kind):
        yield f"{kind} ({listed([_title(event, _LONGEST) for event in of_kind], _MOST_PLACES)})"


def _operators(report: Report) -> Iterator[str]:
    rows = size_rows(report, _MOST_OPERATORS)
    yield from ["| | before | after | change |\n|---|--:|--:|--:|\n"] if rows else ()
    for row in rows:
        label = code(row.label) if row.is_operator else row.label if row.is_part else f"**{row.label}**"
        yield f"| {label} | {amount_cell(row.before)} | {amount_cell(row.after)} | {row.change} |\n"


def amount_cell(text: str) -> str:
    """Return a number, or a formula as a code span: the names in it are those of dimensions."""
    return code(text) if "(" in text or "*" in text else text


def _details(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        yield f"\n**{event.kind}** {_title(event, _LONGEST_DETAIL)}\n\n"
        if event.evidence:
            yield f"{code(event.evidence, _LONGEST_DETAIL)}\n\n"
        is_common = len({member.details for member in event.members}) == 1 < len(event.members)
        if is_common:
            yield "".join(f"{each}\n\n" for each in _detail_lines(event, event.members[0]))
        for member in event.members[:_MOST_MEMBERS]:
            base, target = (" ".join(code(f"@{each}") for each in side[:20]) for side in (member.base, member.target))
            addresses = base if base == target else f"{base or 'nothing'} → {target or 'nothing'}"
            yield f"- {code(place_text(member))} ({addresses})\n"
            if not is_common:
                yield from (f"  - {each}\n" for each in _detail_lines(event, member))
        left = len(event.members) - _MOST_MEMBERS
        if left > 0:
            yield f"- and {left:,} more\n"


def _detail_lines(event: Event, member: Member) -> Iterator[str]:
    most = _MOST_QUIET if EFFECTS[event.kind] == "quiet" else len(member.details)
    yield from (code_span(detail_text(event, detail, _LONGEST_DETAIL)) for detail in member.details[:most])
    left = max(member.count, len(member.details)) - most
    if left > 0 and most < len(member.details):
        yield f"and {left:,} more"


def trace_markdown(trace: Trace, subjects: list[trace_text.Subject] | None = None) -> str:
    """Return the report, at most `LARGEST` characters; a longer one is shortened with a note."""
    text = ""
    for piece in _stories(trace, subjects) if subjects is not None else _pieces(trace):
        if len(text) + len(piece) > LARGEST - len(_TRACE_CUT):
            return text + _TRACE_CUT
        text += piece
    return text


def _pieces(trace: Trace) -> Iterator[str]:
    yield f"### {code(trace_text.headline(trace), None)}\n\n"
    yield "| pass | nodes | parameters | bytes | seconds |\n|---|--:|--:|--:|--:|\n"
    for step, before, after in trace_text.stages(trace):
        state = " ❌" if step.failure is not None else "" if step.parts else " (changed nothing)"
        numbers = [_change(before.nodes, after.nodes), _change(before.parameters, after.parameters)]
        bytes_text = trace_text.bytes_change(before.bytes, after.bytes).replace("->", "→")
        yield f"| {code(step.name)}{state} | {numbers[0]} | {numbers[1]} | {bytes_text} | {step.seconds:.2g} |\n"
    for stage in trace_text.stages(trace):
        yield from _step(stage)
    yield from _sizes(trace)


def _change(before: int, after: int) -> str:
    return f"{after:,}" if before == after else f"{before:,} → {after:,}"


def _step(stage: trace_text.Stage) -> Iterator[str]:
    step, notes = stage.step, stage.notes
    if step.failure is not None:
        yield f"\n❌ {code(step.failure, 400)}\n"
    has_parts = any(part.name for part in step.parts)
    names = {part.name: f"{code(part.name) if part.name else ''} | " if has_parts else "" for part in step.parts}
    rows = [
        f"| {names[part.name]}{_cells(event, _LONGEST_PATTERN)} |\n"
        for part in step.parts
        for event in trace_text.loud(part.events)
    ]
    if not rows and not notes:
        return
    yield f"\n#### {code(step.name)}\n\n"
    yield from (f"- {code(note, 400)}\n" for note in notes)
    if rows:
        yield f"\n| part {_HEAD[:-1]}---|\n" if has_parts else f"\n{_HEAD}"
        yield from rows[:_MOST_ROWS]
        if len(rows) > _MOST_ROWS:
            yield f"\n*{counted(len(rows) - _MOST_ROWS, 'more row')} omitted.*\n"


def _sizes(trace: Trace) -> Iterator[str]:
    columns = trace_text.columns(trace)
    yield "\n<details><summary>operators and sizes</summary>\n\n"
    text = "".join([f"| {code(column.name)} " for column in columns])
    text = f"| {text}|\n|---{'|--:' * len(columns)}|\n"
    for row in trace_text.table_rows(columns, most=_MOST_OPERATORS):
        label = code(row.what) if row.is_operator else f"**{row.what}**"
        text += f"| {label} {''.join([f'| {row.text(place)} ' for place in range(len(columns))])}|\n"
    yield f"{text}\n</details>\n"


def _stories(trace: Trace, subjects: list[trace_text.Subject]) -> Iterator[str]:
    for subject in subjects:
        whose = "after" if subject.is_of_result else "before"
        node, address = trace_text.node_text(subject.ref), f"@{subject.ref.address}"
        yield f"#### {code(node)} ({whose} all passes, {code(address)})\n\n"
        nodes = ", ".join([code(f"@{address}") for address in subject.story.nodes[:40]])
        yield f"{trace_text.summary(subject)} {nodes}".rstrip() + "\n\n"
        for touch in subject.story.touches:
            part = code(trace_text.part_text(trace, touch))
            yield f"- {part}: {touch.kind} {code(touch.pattern, _LONGEST_PATTERN)}\n"
        yield "\n"
