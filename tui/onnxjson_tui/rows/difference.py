"""Two models compared, and the rows of their difference: a summary, then the events, folded or with their places."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from onnxjson.diffing.events import Effect, Event, Kind
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError
from onnxjson.rendering.diff_report import EFFECTS, VERDICTS, Count, Report, report
from onnxjson.rendering.diff_text import addresses_of, detail_text, place_of, title_of, verdict_style
from onnxjson.rendering.tables import Line, Span, Style, cells, clipped, padded, shortened, shortened_name, size
from onnxjson.rendering.trace_text import nodes_change
from onnxjson.storage.urls import is_url
from onnxjson_tui.rows.nodes import short_type
from onnxjson_tui.session.opening import Unreadable, open_model
from onnxjson_tui.session.session import Session

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff


FEW: Final = 12  # maximum rows of places and details that are all unfolded
MATCHED: Final = 3_000  # number of nodes below which matching two models takes less than a second

SIGNS: Final[dict[Effect, str]] = {"added": "+", "removed": "-", "rewritten": ">", "changed": "~", "quiet": "="}
"""Signs of events: added, removed, rewritten, changed, and those without effect on results."""

_FOLDS: Final = ("▸", "▾")

_MOST_PLACES: Final = 1_000  # maximum places of an event that a filter searches

_MOST_ADDRESSES: Final = 20  # of each side of a place

_LEAST: Final = 16  # minimum columns for the change after the name of a place

_WORD: Final = re.compile(r"[\w.:]+")

RowKind = Literal["number", "operator", "note", "blank", "event", "member", "detail", "more"]


class Side(NamedTuple):
    """One of the two compared models."""

    name: str  # name that the user gave; control characters are not escaped
    model: Model
    path: Path | None = None  # its file; weights are searched in the same folder
    problems: tuple[str, ...] = ()  # problems with files that it depends on, a sentence each
    session: Session | None = None  # the session that can change it
    ends: bool = False  # whether the session ends with the comparison


class Compared(NamedTuple):
    """Everything that is shown of a difference."""

    base: Side
    target: Side
    events: tuple[Event, ...]
    nodes: Count
    matched: int | None  # number of nodes with a counterpart; None if not counted
    operators: tuple[Count, ...]  # Operators, those with a changed count first
    parameters: Count
    bytes: Count
    equal: bool
    incomplete: tuple[str, ...] = ()  # what could not be compared, in sentences
    notes: tuple[str, ...] = ()  # other notes for the user, without control characters
    diff: "Diff | None" = None
    report: Report | None = None  # the report, for writing it to a file

    @property
    def places(self) -> int:
        """Number of changed places."""
        return sum([event.count for event in self.events])

    @property
    def is_short(self) -> bool:
        """Whether everything fits on a screen when unfolded."""
        return sum([1 + len(member.details) for event in self.events for member in event.members]) <= FEW


def opened_side(name: str, resources: ExitStack) -> Side:
    """Open a model for a comparison: a file, or ``REV:path``.

    Raises:
        DecodeError: it is not a model.
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
    """
    opened = open_model(name, resources)
    if isinstance(opened, Unreadable):
        raise DecodeError(opened.message, opened.findings)
    session = Session(opened, readonly=opened.path is None or is_url(name))
    return Side(name, opened.model, opened.path, opened.problems, session, ends=True)


def compared(base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Compare two models; this takes seconds for big ones."""
    from onnxjson.diffing.difference import diff_models

    found = diff_models(base.model, target.model, paths=(base.path, target.path), names=(base.name, target.name))
    return of_diff(found, base, target, notes)


def compared_edits(base: Side, target: Side) -> Compared:
    """Compare a model with its edited version; unchanged nodes of a big model are not matched again."""
    from onnxjson.diffing.difference import diff_models

    if base.model.graph is None or len(base.model.graph.node) < MATCHED:
        return compared(base, target)
    paths, names = (target.path, target.path), (base.name, target.name)
    return of_diff(diff_models(base.model, target.model, paths=paths, names=names, is_edited=True), base, target)


def of_diff(diff: "Diff", base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Return everything that is shown of a diff."""
    shown = report(diff, base.name, target.name)
    problems = (*base.problems, *target.problems, *shown.incomplete)
    shown = shown._replace(incomplete=problems, equal=shown.equal and not problems)
    return Compared(
        base, target, shown.events, shown.nodes, shown.matched, shown.operators, shown.parameters, shown.bytes,
        shown.equal, problems, tuple(notes), diff, shown,
    )  # fmt: skip


# Rows


class Row(NamedTuple):
    """Kind and subject of a row."""

    kind: RowKind
    event: int = -1  # position of the event in the difference; -1 for other rows
    member: int = -1
    part: int = 0  # position in the details of the member, or in the numbers, operators or notes


class Shown(NamedTuple):
    """Which parts of a difference are visible."""

    opened: Collection[int] = frozenset()  # positions of unfolded events
    wanted: str = ""  # words of the filter; see `has_words`
    without_quiet: bool = False  # whether to hide events without effect on results
    all_operators: bool = False  # whether every operator has a row, instead of one line for all


class DifferenceRows:
    """The rows of one difference."""

    def __init__(self, compared: Compared, shown: Shown | None = None) -> None:
        self.compared = compared
        self.shown = shown or Shown()
        events = compared.events
        self._column = max([len(event.kind) for event in events], default=0) + 2
        self.visible_events = [
            number
            for number, event in enumerate(events)
            if not (self.shown.without_quiet and EFFECTS[event.kind] == "quiet") and has_words(event, self.shown.wanted)
        ]
        self._summary = list(self._summarised())
        incomplete = [Span(f" ! {visible(text, 1000)}", "bad") for text in compared.incomplete]
        self._notes = [*incomplete, *[Span(f" {text}", "changed") for text in compared.notes]]
        self.rows = [*self._head(), *[row for number in self.visible_events for row in self._event_rows(number)]]
        self.starts = [number for number, row in enumerate(self.rows) if row.kind == "event"]
        """The rows of events, ascending."""

    def _head(self) -> Iterator[Row]:
        yield from (Row("number", part=part) for part in range(len(self._summary)))
        if self.shown.all_operators and not self.compared.equal:
            yield from (Row("operator", part=part) for part in range(len(self.compared.operators)))
        yield from (Row("note", part=part) for part in range(len(self._notes)))
        if self.visible_events:
            yield Row("blank")

    def _event_rows(self, number: int) -> Iterator[Row]:
        yield Row("event", number)
        if number not in self.shown.opened:
            return
        event = self.compared.events[number]
        if event.evidence:
            yield Row("more", number)
        for place, member in enumerate(event.members):
            yield Row("member", number, place)
            yield from (Row("detail", number, place, part) for part in range(len(member.details)))
            if member.count > max(len(member.details), 1):
                yield Row("more", number, place)

    def __len__(self) -> int:
        return len(self.rows)

    def row_of(self, event: int, member: int = -1) -> int | None:
        """Return the row of an event, or of one of its places; None if it is not shown."""
        for number, row in enumerate(self.rows):
            if row.event == event and (member < 0 or row.member == member):
                return number
        return None

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        row = self.rows[number]
        match row.kind:
            case "number":
                groups, more = self._summary[row.part]
                return tuple(_fitting(groups, width, more))
            case "operator":
                return self._operator_line(row.part, width)
            case "note":
                text, style = self._notes[row.part]
                return (Span(clipped(text, width), style),)
            case "event":
                return self._event_line(row.event, width)
            case "member" | "detail" | "more":
                return self._place_line(row, width)
        return ()

    # Summary

    def _summarised(self) -> Iterator[tuple[list[list[Span]], str]]:
        """Yield the parts of each line of the summary, and the text for parts that do not fit."""
        compared = self.compared
        if compared.equal:
            yield [[Span(f"the same: {counted(compared.nodes.after, 'node')}", "good")]], ""
            return
        yield list(_sizes(compared)), " ..."
        changed = [each for each in compared.operators if each.change]
        if changed and not self.shown.all_operators:
            yield (
                [
                    [Span(f"{visible(each.what, 40)} "), Span(each.change_text, _change_style(each.change))]
                    for each in changed
                ],
                " and {} more (s)",
            )
        yield list(self._change_counts()), " and {} more"

    def _change_counts(self) -> Iterator[list[Span]]:
        counts = Counter[Kind]()
        for event in self.compared.events:
            counts[event.kind] += event.count
        hidden = len(self.compared.events) - len(self.visible_events)
        yield [Span(counted(self.compared.places, "change"))]
        if hidden:
            yield [Span(f"{counted(hidden, 'row')} left out", "changed")]
        yield [Span("interface changed", "changed") if "io-changed" in counts else Span("same interface", "quiet")]
        for kind, count in counts.items():
            effect = EFFECTS[kind]
            yield [Span(f"{SIGNS[effect]} {count:,} {kind}", effect)]

    def _operator_line(self, part: int, width: int) -> Line:
        operator = self.compared.operators[part]
        numbers = f"{operator.before:>9,} {operator.after:>9,} "
        name = padded(shortened(visible(operator.what, 200), max(width - 34, 8)), min(max(width - 34, 8), 34))
        return Span(f" {name}{numbers}"), Span(f"{operator.change_text:>9}", _change_style(operator.change))

    # Events

    def _event_line(self, number: int, width: int) -> Line:
        event = self.compared.events[number]
        is_open = number in self.shown.opened
        effect = EFFECTS[event.kind]
        verdict = VERDICTS[event.verdict] if event.verdict not in (None, "not-run") else ""
        start = f" {SIGNS[effect]} {_FOLDS[is_open]} {padded(event.kind, self._column)}"
        room = width - cells(start) - (cells(verdict) + 2 if verdict else 0)
        title = shortened(title_of(event), max(room, 1))
        rest = room - cells(title) - 2
        gist = "" if is_open or rest < 8 else _gist(event, rest)
        middle = title + (f"  {gist}" if gist else "")
        spans = [Span(start, effect), Span(title, "title" if effect != "quiet" else "plain")]
        spans.append(Span(f"  {gist}" if gist else "", "quiet"))
        if verdict:
            spans += [Span(" " * (room - cells(middle) + 2)), Span(verdict, verdict_style(event))]
        return tuple(spans)

    def _place_line(self, row: Row, width: int) -> Line:
        event = self.compared.events[row.event]
        if row.member < 0:
            return (Span(clipped(f"       {visible(event.evidence, 1000)}", width), "quiet"),)
        member = event.members[row.member]
        if row.kind == "detail":
            return (Span("         " + detail_text(event, member.details[row.part], max(width - 9, 8))),)
        if row.kind == "more":
            return (Span(f"         ... {member.count:,} places have this change", "quiet"),)
        addresses = addresses_of(member, _MOST_ADDRESSES)
        place = place_of(member)
        if place in (*member.base, *member.target):
            return (Span("     "), Span(clipped(addresses, width - 5)))
        room = width - 5
        # Addresses often differ only in their last numbers, so they are cut only if the place would be unreadable.
        place = shortened_name(place, max(room - cells(addresses) - 2, room // 3, 1))
        return Span(f"     {place}"), Span(f"  {shortened(addresses, max(room - cells(place) - 2, 1))}", "quiet")


def has_words(event: Event, wanted: str) -> bool:
    """Whether an event contains every word, and none of the words with a minus.

    A word is a part of the kind, the pattern or the name of a place; ``op:Conv`` is an operator in the pattern,
    ``kind:fused`` the kind.
    """
    text = ""
    for word in wanted.lower().split():
        is_unwanted = word.startswith("-") and len(word) > 1
        plain = word.removeprefix("-") if is_unwanted else word
        if plain.startswith("op:"):
            has_word = plain[3:] in map(str.lower, _WORD.findall(event.pattern))
        elif plain.startswith("kind:"):
            has_word = plain[5:] == event.kind
        else:
            places = [place_of(member) for member in event.members[:_MOST_PLACES]]
            text = text or " ".join([event.kind, visible(event.pattern, None), *places]).lower()
            has_word = plain in text
        if has_word == is_unwanted:
            return False
    return True


def _gist(event: Event, room: int) -> str:
    """Summarise the places of an event in `room` columns."""
    members = event.members
    if len(members) == 1:
        member = members[0]
        place = place_of(member)
        if not member.details:
            return shortened_name(place, room)
        start = "" if place in (*member.base, *member.target) else f"{place}: "
        more = f" and {len(member.details) - 1:,} more" if len(member.details) > 1 else ""
        left = room - cells(start) - len(more)
        if left < _LEAST:
            return shortened_name(place, room)
        kinds = short_type(detail_text(event, member.details[0], None))
        if kinds.startswith("type: ") and cells(kinds) <= left:
            return start + kinds + more
        return start + detail_text(event, member.details[0], left) + more
    distinct = {member.details for member in members}
    if len(distinct) == 1 and members[0].details:
        where = f" at {len(members):,} places"
        details = "; ".join([detail_text(event, detail, None) for detail in members[0].details[:3]])
        if cells(details) + len(where) <= room:
            return details + where
    shown = ""
    for number, member in enumerate(members):
        left = len(members) - number - 1
        more = f" and {left:,} more" if left else ""
        place = place_of(member)
        text = f"{shown}, {place}" if shown else shortened_name(place, max(room - len(more), 1))
        if cells(text) + len(more) > room:
            return f"{shown} and {left + 1:,} more"
        shown = text
    return shown


def _sizes(compared: Compared) -> Iterator[list[Span]]:
    nodes, matched = compared.nodes, compared.matched
    yield _count_spans(nodes_change(nodes.before, nodes.after), nodes.change_text, nodes.change)
    parameters = compared.parameters
    yield _count_spans(counted(parameters.after, "parameter"), parameters.change_text, parameters.change)
    weights = compared.bytes
    yield _count_spans(f"{size(weights.after)} of weights", weights.bytes_change_text, weights.change)
    if matched is not None:
        yield [Span("all matched" if matched == nodes.before == nodes.after else f"{matched:,} matched", "quiet")]


def _count_spans(text: str, change: str, number: int) -> list[Span]:
    if not number:
        return [Span(text, "quiet")]
    return [Span(f"{text} "), Span(f"({change})", _change_style(number))]


def _change_style(number: int) -> Style:
    return "added" if number > 0 else "removed" if number < 0 else "quiet"


def _fitting(groups: Sequence[Sequence[Span]], width: int, more: str = "") -> Iterator[Span]:
    """Yield as many groups of spans as fit, two spaces apart; the others are counted."""
    used = 0
    for number, group in enumerate(groups):
        length = sum([cells(span.text) for span in group]) + (2 if number else 1)
        left = len(groups) - number - 1
        if used + length + (len(more.format(left)) if left else 0) > width:
            if more and used + len(more.format(left + 1)) <= width:
                yield Span(more.format(left + 1), "quiet")
            return
        yield Span("  " if number else " ")
        yield from group
        used += length
