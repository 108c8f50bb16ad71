"""A structural diff as lines of text: counts, the table of operators, the changes, and on request all their places.

Lines consist of styled spans; the caller that prints them decides what a style looks like. Every text is visible.
"""

import itertools
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from onnxjson.diffing.details import node_label
from onnxjson.diffing.events import KIND_PROPERTIES, RANK, THROUGH_SCALES, Detail, Event, Member
from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.model.display import ELLIPSIS, counted, is_whole, visible
from onnxjson.rendering.diff_report import EFFECTS, NODE_KINDS, VERDICTS, Report, places_of, size_rows
from onnxjson.rendering.tables import GAP, Line, Span, cells, padded, paragraph, shortened, shortened_name, table

_INDENT: Final = "  "
_MOST_OPERATORS: Final = 12
_MOST_MEMBERS: Final = 4
_MOST_STATED: Final = 12  # maximum number of weights with details that are specific to weights
_MOST_PLACE_LINES: Final = 2
_MOST_DETAILS: Final = 4
_MOST_DETAIL_LINES: Final = 3
_LONG_START: Final = 6  # minimum length of a common prefix that is omitted, in characters
_MOST_TITLE_LINES: Final = 2
_MOST_EVIDENCE_LINES: Final = 2


def diff_lines(report: Report, width: int, *, details: bool = False) -> Iterator[Line]:
    """Yield the lines of a diff, at most `width` columns (60 or more); `details`: every place and every operator."""
    base, target = visible(report.base_name, None), visible(report.target_name, None)
    if report.equal:
        yield (Span(f"{base} and {target} are the same: {counted(report.nodes.after, 'node')}"),)
        return
    yield (Span(f"{base} -> {target}", "title"),)
    for text in headline(report, width):
        yield (Span(text),)
    for problem in report.incomplete:
        yield from paragraph(f"! {problem}", width, "bad")
    for change in report.interface:
        yield from paragraph(f"{change.word}: {change.text}", width, "bad" if change.is_breaking else "plain")
    for layers in report.layers:
        yield from paragraph(f"{layers.text}: {layers.name}".removesuffix(": "), width)
    for number, line in enumerate(table(list(_sizes(report, details=details)), width, right=(1, 2, 3), indent=0)):
        yield from () if number else [()]
        yield (Span(line, "plain" if number else "title"),)
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
        yield (
            Span(f"{counted(unverified, 'rewrite')} not verified; --test-rewrites runs both sides of each", "quiet"),
        )


def match_lines(report: Report) -> Iterator[Line]:
    """Yield a line for each pair of nodes: operator, name, both addresses."""
    yield ()
    yield (Span(f"matches {report.matched:,}", "title"),)
    for pair in report.alignment.graphs:
        nodes, others = pair.base.graph.node, pair.target.graph.node
        for position, counterpart in enumerate(pair.target_of):
            if counterpart == UNMATCHED:
                continue
            node = nodes[position]
            names = dict.fromkeys([node_label(node), node_label(others[counterpart])])
            base, target = f"@{pair.base.address}/node/{position}", f"@{pair.target.address}/node/{counterpart}"
            texts = [node.op_type or "", " -> ".join(names), base if base == target else f"{base} -> {target}"]
            yield (Span(_INDENT + "  ".join(visible(text, None) for text in texts)),)


def headline(report: Report, width: int) -> Iterator[str]:
    """Yield ``119 nodes before, 107 after, 100 matched``, and ``7 changes, 3 without effect: ...`` if any."""
    yield nodes_text(report)
    places = places_of(report.events)
    if not places:
        return
    line = f"{report.count_text}:"
    for position, (kind, number) in enumerate(places.items(), 1):
        text = f"{number:,} {kind}" + ("," if position < len(places) else "")
        if len(line) + 1 + len(text) > width:
            yield line
            line = text
        else:
            line += f" {text}"
    yield line


def nodes_text(report: Report) -> str:
    """Return ``119 nodes before, 107 after, 100 matched``."""
    matched = "all" if report.matched == report.nodes.before == report.nodes.after else f"{report.matched:,}"
    return f"{counted(report.nodes.before, 'node')} before, {report.nodes.after:,} after, {matched} matched"


def _sizes(report: Report, *, details: bool) -> Iterator[tuple[str, ...]]:
    rows = size_rows(report, None if details else _MOST_OPERATORS, with_all=details, with_costs=True)
    yield from [("operators", "before", "after", "change")] if rows else ()
    for row in rows:
        numbers = ["." if each == "0" else each for each in (row.before, row.after)]
        yield _INDENT * row.is_part + row.label, *numbers, row.change


def not_verified(report: Report) -> int:
    """Return the number of rewrites if none was run; else 0, as each shows its own verdict."""
    rewrites = [event for event in report.events if event.verdict is not None]
    return len(rewrites) if all(event.verdict == "not-run" and not event.evidence for event in rewrites) else 0


def event_lines(event: Event, column: int, width: int, *, details: bool, says_not_run: bool) -> Iterator[Line]:
    """Yield the lines of an event, its change at `column`; `details`: every place, `says_not_run`: that verdict."""
    says_verdict = event.verdict is not None and (says_not_run or event.verdict != "not-run")
    verdict = VERDICTS[event.verdict] if event.verdict is not None and says_verdict else ""
    room = width - column - (cells(verdict) + GAP if verdict else 0)
    inline = "" if details else _inline_detail(event)
    is_short = inline and cells(title_of(event)) + cells(inline) + 3 <= room
    title, *rest = [f"{title_of(event)} ({inline})"] if is_short else _folded(title_of(event), room)
    yield (
        Span(padded(event.kind, column - GAP) + " " * GAP, EFFECTS[event.kind]),
        Span(padded(title, room) + " " * GAP if verdict else title, "title"),
        *([Span(verdict, verdict_style(event))] if verdict else []),
    )
    yield from ((Span(" " * column), Span(text, "title")) for text in rest)
    if event.where:
        yield from paragraph(event.where, width, indent=column)
    if event.evidence and (details or event.verdict in (None, "different", "not-run")):
        evidence = paragraph(event.evidence, width, "quiet", indent=column)
        yield from itertools.islice(evidence, None if details else _MOST_EVIDENCE_LINES)
    if details:
        for member in event.members:
            yield from _member_in_full(event, member, column, width)
    elif not is_short:
        for text in _members(event, width - column):
            yield (Span(" " * column + text),)


def _inline_detail(event: Event) -> str:
    """Return the change if it is a single detail at a single place that needs no name; else ""."""
    if event.count != 1 or len(event.members[0].details) != 1 or event.evidence or not _is_nameless(event):
        return ""
    return detail_text(event, event.members[0].details[0], 10_000)


def _is_nameless(event: Event) -> bool:
    """Whether the place of an event is just an address, which adds nothing to the pattern."""
    member = event.members[0]
    return event.kind not in NODE_KINDS and member.place in ("", *member.base, *member.target)


def _folded(text: str, width: int) -> list[str]:
    """Wrap a pattern between operators into `_MOST_TITLE_LINES` lines; shortened in the middle to fit."""
    if is_whole():
        return [text]
    short = shortened(text, width * _MOST_TITLE_LINES - _MOST_TITLE_LINES)
    lines = re.findall(rf".{{1,{width}}}(?:(?<=[+ ])|\Z)|.{{1,{width}}}", short) or [""]
    last = _MOST_TITLE_LINES - 1
    return [shortened(line.rstrip(), width) for line in [*lines[:last], "".join(lines[last:])] if line]


def title_of(event: Event) -> str:
    """Return ``4x MatMul+Add -> Gemm``, visible."""
    return (f"{event.count:,}x " if event.count > 1 else "") + visible(event.pattern, 1000)


def verdict_style(event: Event) -> Literal["good", "bad", "quiet"]:
    """Return the style for the verdict of an event."""
    if event.verdict in ("equal", "within-tolerance"):
        return "good"
    return "bad" if event.verdict == "different" else "quiet"


def _members(event: Event, width: int) -> Iterator[str]:
    """Yield the places of an event and the changes there, as briefly as possible."""
    members = event.members
    is_common = len({member.details for member in members}) == 1
    firsts = [member.details[0] for member in members if member.details]
    is_stated = len(members) > 1 and any([detail.what in (RANK, THROUGH_SCALES) for detail in firsts])
    if len(members) > 1 and (is_common or (len(members) > _MOST_MEMBERS and not is_stated)):
        if not event.where:
            yield from _places(members, width)
        distinct = tuple(dict.fromkeys([detail for member in members for detail in member.details]))
        if is_common or len(distinct) < _MOST_DETAILS:
            yield from _details(event, members[0] if is_common else Member((), (), details=distinct), width)
        return
    for member in members[:_MOST_STATED]:
        if is_stated:
            member = replace(member, details=member.details[:1])
        if _is_nameless(event):
            yield from (text.removeprefix(_INDENT) for text in _details(event, member, width + len(_INDENT)))
        else:
            yield from _member(event, member, width, 1 if len(members) > 1 else _MOST_DETAILS)
    if len(members) > _MOST_STATED:
        yield f"... and {len(members) - _MOST_STATED:,} more"


def _member(event: Event, member: Member, width: int, most: int) -> Iterator[str]:
    place, left = place_of(member), _detail_count(member) - 1
    if len(member.details) == 1 or most == 1:
        more = f" (and {left:,} more)" if left > 0 else ""
        text = f"{place}: {detail_text(event, member.details[0], None)}{more}" if member.details else place
        if cells(text) <= width or is_whole():
            yield text
            return
    yield shortened_name(place, width)
    yield from _details(event, member, width, most)


def _details(event: Event, member: Member, width: int, most: int = _MOST_DETAILS) -> Iterator[str]:
    for detail in member.details[:most]:
        yield from _indented(detail_text(event, detail, _MOST_DETAIL_LINES * (width - 3 * len(_INDENT))), width)
    left = _detail_count(member) - most
    if left > 0:
        yield f"{_INDENT}... and {left:,} more"


def _indented(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a visible text, indented; further lines more than the first."""
    if is_whole():
        yield _INDENT + text
        return
    room = width - 3 * len(_INDENT)
    words = " ".join([shortened(word, room) for word in text.split(" ")])
    for number, line in enumerate(textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False)):
        yield _INDENT * (3 if number else 1) + line


def _detail_count(member: Member) -> int:
    """Return the number of details of a member, including those omitted where it represents many places."""
    return max(member.count, len(member.details))


def _places(members: Sequence[Member], width: int) -> Iterator[str]:
    """Yield a list of places in at most `_MOST_PLACE_LINES` lines."""
    places = Counter(map(place_of, members))
    lines, shown, left = [""], 0, len(members)
    for place, count in places.items():
        left -= count
        times = f"{count:,}x " if count > 1 else ""
        text = times + shortened_name(place, width - len(times) - 1) + ("," if left else "")
        joined = f"{lines[-1]} {text}".lstrip()
        more = len(f" ... and {left:,} more") if left and len(lines) == _MOST_PLACE_LINES else 0
        if cells(joined) + more <= width or not lines[-1]:
            lines[-1] = joined
        elif len(lines) < _MOST_PLACE_LINES:
            lines.append(text)
        else:
            break
        shown += count
    if shown < len(members):
        lines[-1] += f" ... and {len(members) - shown:,} more"
        lines[-1] = shortened(lines[-1], width)
    yield from lines


def _member_in_full(event: Event, member: Member, column: int, width: int) -> Iterator[Line]:
    if member.place:
        yield (Span(" " * column + place_of(member)),)
    indent = column + len(_INDENT)
    yield from paragraph(addresses_of(member), width, "quiet", indent=indent, whole_words=True)
    for detail in member.details:
        yield from paragraph(detail_text(event, detail, None), width, indent=indent)


def addresses_of(member: Member, most: int | None = None) -> str:
    """Return ``@/graph/node/1 -> @/graph/node/2``, at most `most` of each side; one side if both are equal."""
    base, target = (
        " ".join(f"@{visible(each, None)}" for each in side[:most]) for side in (member.base, member.target)
    )
    return base if base == target else f"{base or 'nothing'} -> {target or 'nothing'}"


def place_of(member: Member) -> str:
    """Return the place of a member, visible."""
    return visible(place_text(member), 400)


def place_text(member: Member) -> str:
    """Return the place of a member as a text of the model, not yet made visible."""
    return member.place or next(iter((*member.target, *member.base)), "the model")


def detail_text(event: Event, detail: Detail, room: int | None) -> str:
    """Return ``pads: [1, 1] -> [0, 0]``, visible; shortened to `room` columns, in full if None."""
    limit = None if room is None else 2000
    what = visible(detail.what, limit)
    base, target = (None if side is None else visible(side, limit) or '""' for side in (detail.base, detail.target))
    text = _join_sides(event, what, base, target)
    if room is None or cells(text) <= room or is_whole():
        return text
    if base is None and target is None:
        return shortened(text, room)
    if base is not None and target is not None:
        base, target = _without_common_start(base, target)
    free = room - cells(_join_sides(event, "", base and "", target and ""))
    widths = [cells(base or ""), cells(target or "")]
    what = shortened(what, max(free // 2, free - sum(widths)))
    free -= cells(what)
    if base is not None:
        base = shortened(base, max(free // 2 if target is not None else free, free - widths[1]))
    if target is not None:
        target = shortened(target, max(free - cells(base or ""), 1))
    return shortened(_join_sides(event, what, base, target), room)


def _without_common_start(base: str, target: str) -> tuple[str, str]:
    """Remove the common scopes at the start of two long texts, so that shortening keeps the difference."""
    start = os.path.commonprefix([base, target])  # noqa: RUF071 - compares characters
    cut = max(start.rfind("/"), start.rfind(".")) + 1
    return (base, target) if cut < _LONG_START else (ELLIPSIS + base[cut:], ELLIPSIS + target[cut:])


def _join_sides(event: Event, what: str, base: str | None, target: str | None) -> str:
    if base is None and target is None:
        return what
    if base is not None and target is not None:
        return f"{what}: {base} -> {target}"
    if base is not None:
        return f"{what}: {'removed' if is_about_parts(event) else 'was'} {base}"
    return f"{what}: added {target}" if is_about_parts(event) else f"{what}: {target}"


def is_about_parts(event: Event) -> bool:
    """Whether a detail without an old value is an added part, rather than an observation."""
    return KIND_PROPERTIES[event.kind].lists_parts
