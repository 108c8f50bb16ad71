"""A structural diff as lines for a person: counts, the table of operators, what happened, and on request where exactly.

The lines are made of spans with a style; what a style looks like is for those who print them. Every text is visible.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.events import Detail, Event, Kind, Member
from onnxjson.diffing.places import called
from onnxjson.display import ELLIPSIS, counted, visible
from onnxjson.matching.alignment import UNMATCHED
from onnxjson.rendering.diff_report import EFFECTS, NODE_KINDS, VERDICTS, Count, Report
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import GAP, cells, padded, shortened, size, wrapped

_INDENT: Final = "  "
_MOST_OPERATORS: Final = 12
_MOST_MEMBERS: Final = 4
"""Members that have lines of their own where the details are not asked for."""

_MOST_PLACE_LINES: Final = 2
_MOST_DETAILS: Final = 4
_LONG_START: Final = 6
"""Characters of a common start from which it is left out."""

_MOST_TITLE_LINES: Final = 2
_MOST_EVIDENCE_LINES: Final = 2
_PARTS: Final[frozenset[Kind]] = frozenset({
    "attribute-changed", "io-changed", "opset-changed", "metadata-changed", "value-info-changed", "storage-changed",
    "info-changed", "field-changed",
})  # fmt: skip
"""Kinds whose details are about parts that a model has or has not; those of the others say what was found."""


def diff_lines(report: Report, width: int, *, details: bool = False) -> Iterator[Line]:
    """The lines of a diff, at most `width` columns each, but for what cannot be shortened.

    Args:
        report: the diff.
        width: columns of the terminal, at least 60.
        details: every member of every event with its addresses, and every operator, instead of what fits a screen.
    """
    base, target = visible(report.base_name, None), visible(report.target_name, None)
    if report.equal:
        yield (Span(f"{base} and {target} are the same: {counted(report.nodes.after, 'node')}"),)
        return
    yield (Span(f"{base} -> {target}", "title"),)
    for text in headline(report, width):
        yield (Span(text),)
    for problem in report.incomplete:
        for text in wrapped(f"! {problem}", width, indent=0):
            yield (Span(text, "bad"),)
    if rows := list(_counts(report, details=details)):
        yield ()
        yield from _table(rows, width)
    column = max((len(event.kind) for event in report.events), default=0) + GAP
    unverified = not_verified(report)
    kind = None
    for event in report.events:
        if event.kind != kind:
            yield ()
        kind = event.kind
        yield from event_lines(event, column, width, details=details, says_not_run=not unverified)
    if unverified:
        yield ()
        yield (Span(f"{counted(unverified, 'rewrite')} not verified; --prove runs both sides of each", "quiet"),)


def match_lines(report: Report) -> Iterator[Line]:
    """Every pair of nodes, a line each: operator, name, the two addresses."""
    yield ()
    yield (Span(f"matches {report.matched:,}", "title"),)
    for pair in report.alignment.graphs:
        nodes, others = pair.base.graph.node, pair.target.graph.node
        for position, counterpart in enumerate(pair.target_of):
            if counterpart == UNMATCHED:
                continue
            node = nodes[position]
            names = dict.fromkeys([called(node), called(others[counterpart])])
            base, target = f"@{pair.base.address}/node/{position}", f"@{pair.target.address}/node/{counterpart}"
            said = [node.op_type or "", " -> ".join(names), base if base == target else f"{base} -> {target}"]
            yield (Span(_INDENT + "  ".join(visible(text, None) for text in said)),)


def headline(report: Report, width: int) -> Iterator[str]:
    """``119 nodes before, 107 after, 100 matched``, and ``7 changes: 4 fused, 3 renamed`` if there are some."""
    yield nodes_text(report)
    places = report.places
    if not places:
        return
    line = f"{counted(sum(places.values()), 'change')}:"
    for position, (kind, number) in enumerate(places.items(), 1):
        text = f"{number:,} {kind}" + ("," if position < len(places) else "")
        if len(line) + 1 + len(text) > width:
            yield line
            line = text
        else:
            line += f" {text}"
    yield line


def nodes_text(report: Report) -> str:
    """``119 nodes before, 107 after, 100 matched``."""
    matched = "all" if report.matched == report.nodes.before == report.nodes.after else f"{report.matched:,}"
    return f"{counted(report.nodes.before, 'node')} before, {report.nodes.after:,} after, {matched} matched"


class _Row(NamedTuple):
    """One line of the table of operators."""

    number: Count
    text: tuple[str, str, str, str]


def _counts(report: Report, *, details: bool) -> Iterator[_Row]:
    changed = [each for each in report.operators if each.change]
    shown = list(report.operators) if details else changed[:_MOST_OPERATORS]
    sums = [each for each in (report.nodes, report.parameters) if each.change]
    stored = [report.bytes] if report.bytes.change else []
    if not (shown or sums or stored):
        return
    for each in shown:
        yield _Row(each, (f"{_INDENT}{each.what}", _number(each.before), _number(each.after), each.change_text))
    others = report.operators[len(shown) :]
    if others:
        rest = Count("", sum(each.before for each in others), sum(each.after for each in others))
        label = f"{_INDENT}{counted(len(others), 'other')}" + ("" if rest.change else " as before")
        yield _Row(rest, (label, _number(rest.before), _number(rest.after), rest.change_text))
    for each in (report.nodes, report.parameters):
        yield _Row(each, (each.what, _number(each.before), _number(each.after), each.change_text))
    each = report.bytes
    yield _Row(each, (each.what, size(each.before), size(each.after), each.bytes_change_text))


def _number(value: int) -> str:
    return f"{value:,}" if value else "."


def _table(rows: Sequence[_Row], width: int) -> Iterator[Line]:
    header = ("operators", "before", "after", "change")
    texts = [[visible(cell, 1000) for cell in row.text] for row in rows]
    widths = [max(map(cells, column)) for column in zip(header, *texts, strict=True)]
    widths[0] = min(widths[0], width - sum(widths[1:]) - 3 * GAP)
    yield (Span(_joined(header, widths), "title"),)
    for row, text in zip(rows, texts, strict=True):
        style: Style = "added" if row.number.change > 0 else "removed" if row.number.change < 0 else "plain"
        line = _joined([shortened(text[0], widths[0]), *text[1:]], widths).rstrip()
        if text[3]:
            yield Span(line.removesuffix(text[3])), Span(text[3], style)
        else:
            yield (Span(line),)


def _joined(texts: Sequence[str], widths: Sequence[int]) -> str:
    columns = [
        padded(text, each, right=place > 0) for place, (text, each) in enumerate(zip(texts, widths, strict=True))
    ]
    return (" " * GAP).join(columns)


def not_verified(report: Report) -> int:
    """Kinds of rewrites that nobody ran, if nobody ran any; else 0, and each says so itself."""
    rewrites = [event for event in report.events if event.verdict is not None]
    return len(rewrites) if all(event.verdict == "not-run" and not event.evidence for event in rewrites) else 0


def event_lines(event: Event, column: int, width: int, *, details: bool, says_not_run: bool) -> Iterator[Line]:
    """The lines of one event: its kind, in `column` columns, what happened, and where.

    Args:
        event: the event.
        column: where what happened begins.
        width: columns of the terminal.
        details: every member with its addresses.
        says_not_run: whether "not verified" is worth saying.
    """
    says_verdict = event.verdict is not None and (says_not_run or event.verdict != "not-run")
    verdict = VERDICTS[event.verdict] if event.verdict is not None and says_verdict else ""
    room = width - column - (cells(verdict) + GAP if verdict else 0)
    at_once = "" if details else _said_at_once(event)
    is_short = at_once and cells(title_of(event)) + cells(at_once) + 3 <= room
    title, *rest = [f"{title_of(event)} ({at_once})"] if is_short else _folded(title_of(event), room)
    yield (
        Span(padded(event.kind, column - GAP) + " " * GAP, EFFECTS[event.kind]),
        Span(padded(title, room + GAP) if verdict else title, "title"),
        *([Span(verdict, verdict_style(event))] if verdict else []),
    )
    yield from ((Span(" " * column), Span(text, "title")) for text in rest)
    if event.evidence and (details or event.verdict in (None, "different", "not-run")):
        for text in wrapped(event.evidence, width, indent=column)[: None if details else _MOST_EVIDENCE_LINES]:
            yield (Span(text, "quiet"),)
    if details:
        for member in event.members:
            yield from _member_in_full(event, member, column, width)
    elif not is_short:
        for text in _members(event, width - column):
            yield (Span(" " * column + text),)


def _said_at_once(event: Event) -> str:
    """What happened at an only place that needs no name, if it is one thing; else ""."""
    if event.count != 1 or len(event.members[0].details) != 1 or event.evidence or not _is_nameless(event):
        return ""
    return detail_text(event, event.members[0].details[0], 10_000)


def _is_nameless(event: Event) -> bool:
    """Whether the only place of an event is no more than an address, which is for programs: the pattern says it all."""
    member = event.members[0]
    return event.kind not in NODE_KINDS and member.place in ("", *member.base, *member.target)


def _folded(text: str, width: int) -> list[str]:
    """A pattern in at most `_MOST_TITLE_LINES` lines, broken between operators; shortened in its middle to fit."""
    lines = [""]
    for part in re.findall(r"[^+ ]*[+ ]?", shortened(text, width * _MOST_TITLE_LINES - _MOST_TITLE_LINES)):
        if cells(lines[-1] + part.rstrip()) <= width or not lines[-1]:
            lines[-1] += part
        elif len(lines) < _MOST_TITLE_LINES:
            lines.append(part)
        else:
            return [lines[0].rstrip(), shortened(lines[-1] + part + ELLIPSIS, width)]
    return [shortened(line.rstrip(), width) for line in lines]


def title_of(event: Event) -> str:
    """``4x MatMul+Add -> Gemm``, visible."""
    return (f"{event.count:,}x " if event.count > 1 else "") + visible(event.pattern, 1000)


def verdict_style(event: Event) -> Literal["good", "bad", "quiet"]:
    """Whether the verdict of an event is good news."""
    if event.verdict in ("equal", "within-tolerance"):
        return "good"
    return "bad" if event.verdict == "different" else "quiet"


def _members(event: Event, width: int) -> Iterator[str]:
    """Where an event happened and what changed there, as little as says it."""
    members = event.members
    if len(members) == 1:
        yield from _member(event, members[0], width)
        return
    common = {member.details for member in members}
    if len(common) == 1 or len(members) > _MOST_MEMBERS:
        yield from _places(members, width)
        if len(common) == 1:
            yield from _details(event, members[0], width)
        return
    for member in members:
        place, said = place_of(member), member.details
        if not said:
            yield shortened(place, width)
            continue
        place = shortened(place, width // 2)
        left = _number_said(member) - 1
        more = f" (and {left:,} more)" if left else ""
        yield f"{place}: {detail_text(event, said[0], width - cells(place) - 2 - len(more))}{more}"


def _member(event: Event, member: Member, width: int) -> Iterator[str]:
    place = shortened(place_of(member), width)
    if _is_nameless(event):
        yield from (text.removeprefix(_INDENT) for text in _details(event, member, width + len(_INDENT)))
        return
    if len(member.details) == 1:
        text = detail_text(event, member.details[0], 10_000)
        if cells(place) + 2 + cells(text) <= width:
            yield f"{place}: {text}"
            return
    yield place
    yield from _details(event, member, width)


def _details(event: Event, member: Member, width: int) -> Iterator[str]:
    for detail in member.details[:_MOST_DETAILS]:
        yield _INDENT + detail_text(event, detail, width - len(_INDENT))
    left = _number_said(member) - _MOST_DETAILS
    if left > 0:
        yield f"{_INDENT}... and {left:,} more"


def _number_said(member: Member) -> int:
    """How many details a member has, those with it that stand for very many places and are left out."""
    return max(member.count, len(member.details))


def _places(members: Sequence[Member], width: int) -> Iterator[str]:
    """The places after one another in at most `_MOST_PLACE_LINES` lines."""
    lines, shown = [""], 0
    for position, member in enumerate(members):
        left = len(members) - position - 1
        text = shortened(place_of(member), width - 1) + ("," if left else "")
        joined = f"{lines[-1]} {text}".lstrip()
        more = len(f" ... and {left:,} more") if left and len(lines) == _MOST_PLACE_LINES else 0
        if cells(joined) + more <= width or not lines[-1]:
            lines[-1] = joined
        elif len(lines) < _MOST_PLACE_LINES:
            lines.append(text)
        else:
            break
        shown += 1
    if shown < len(members):
        lines[-1] += f" ... and {len(members) - shown:,} more"
        lines[-1] = shortened(lines[-1], width)
    yield from lines


def _member_in_full(event: Event, member: Member, column: int, width: int) -> Iterator[Line]:
    if member.place:
        yield (Span(" " * column + place_of(member)),)
    base, target = (" ".join(f"@{visible(address, None)}" for address in side) for side in (member.base, member.target))
    addresses = base if base == target else " -> ".join((base or "nothing", target or "nothing"))
    for text in wrapped(addresses, width, indent=column + len(_INDENT), whole_words=True):
        yield (Span(text, "quiet"),)
    for detail in member.details:
        for text in wrapped(detail_text(event, detail, None), width, indent=column + len(_INDENT)):
            yield (Span(text),)


def place_of(member: Member) -> str:
    """Where a member is, for a person; visible."""
    return visible(place_text(member), 400)


def place_text(member: Member) -> str:
    """The same as a text of the model, not yet made visible."""
    return member.place or next(iter((*member.target, *member.base)), "the model")


def detail_text(event: Event, detail: Detail, room: int | None) -> str:
    """``pads: [1, 1] -> [0, 0]``, visible; shortened to `room` columns, in full if it is None."""
    limit = None if room is None else 2000
    what = visible(detail.what, limit)
    base, target = (None if side is None else visible(side, limit) or '""' for side in (detail.base, detail.target))
    text = _put_together(event, what, base, target)
    if room is None or cells(text) <= room:
        return text
    if base is not None and target is not None:
        base, target = _from_where_they_differ(base, target)
    sides = [side for side in (base, target) if side is not None]
    if not sides:
        return shortened(text, room)
    free = room - cells(_put_together(event, "", "" if base is not None else None, "" if target is not None else None))
    what = shortened(what, max(free // 2, free - sum(map(cells, sides))))
    free -= cells(what)
    short = min(*map(cells, sides), free // 2) if len(sides) == 2 else 0
    base, target = (None if side is None else shortened(side, max(free - short, 1)) for side in (base, target))
    if base is not None and target is not None:
        base, target = (side if cells(side) <= short else shortened(side, free - short) for side in (base, target))
        if cells(base) + cells(target) > free:
            target = shortened(target, max(free - cells(base), 1))
    return shortened(_put_together(event, what, base, target), room)


def _from_where_they_differ(base: str, target: str) -> tuple[str, str]:
    """Two long texts without the names of scopes with which both begin: where they are cut, what differs must stay."""
    start = os.path.commonprefix([base, target])  # noqa: RUF071 - characters are meant
    cut = max(start.rfind("/"), start.rfind(".")) + 1
    return (base, target) if cut < _LONG_START else (ELLIPSIS + base[cut:], ELLIPSIS + target[cut:])


def _put_together(event: Event, what: str, base: str | None, target: str | None) -> str:
    if base is None and target is None:
        return what
    if base is not None and target is not None:
        return f"{what}: {base} -> {target}"
    if base is not None:
        return f"{what}: {'removed' if is_about_parts(event) else 'was'} {base}"
    return f"{what}: added {target}" if is_about_parts(event) else f"{what}: {target}"


def is_about_parts(event: Event) -> bool:
    """Whether a detail without an old value was added; else it says what was found."""
    return event.kind in _PARTS
