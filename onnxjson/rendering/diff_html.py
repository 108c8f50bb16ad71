"""A structural diff as one self-contained HTML file: no network, no data in scripts, readable on a phone and on paper.

Every text of a model is made visible, then escaped, and only appears between tags or in quoted attributes. The content
security policy allows one style sheet and one script, by their sha256, and nothing else.
"""

import hashlib
import html
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pybase64

from onnxjson.diffing.details import node_label
from onnxjson.diffing.events import KIND_PROPERTIES, Detail, Event, Kind, Member
from onnxjson.diffing.matching.alignment import UNMATCHED, GraphPair
from onnxjson.model.display import counted, visible
from onnxjson.model.index import NodeRef, Scope
from onnxjson.rendering.diff_report import EFFECTS, VERDICTS, Count, Nodes, Report, operator_of
from onnxjson.rendering.diff_text import is_about_parts, nodes_text, not_verified, place_text, verdict_style
from onnxjson.rendering.drawings import Picture, pictures, svg
from onnxjson.rendering.tables import size

STYLE: Final = "\n" + Path(__file__).with_name("page.css").read_text(encoding="utf-8")
SCRIPT: Final = "\n" + Path(__file__).with_name("page.js").read_text(encoding="utf-8")
"""Style sheet and script of all pages; the script searches the table of nodes by words and by kind of change."""

State = Literal["same", "changed", "removed", "added"]

STATES: Final[tuple[State, ...]] = ("changed", "removed", "added", "same")


_ELEMENTS: Final[dict[State, str]] = {"removed": "del", "added": "ins", "changed": "span", "same": "span"}


class NodeRow(NamedTuple):
    """A node, or a pair of matched nodes. Texts of models, not yet made visible."""

    state: State
    operator: str
    name: str
    """Name of the node, or of its first output."""
    base: str | None
    target: str | None
    """Addresses in the base and in the target."""
    events: tuple[int, ...]
    """Positions of the events of the report that affect it."""


def node_rows(report: Report) -> Iterator[NodeRow]:
    """Yield every node of both models: in paired graphs in the order of the target, removed ones in their old place."""
    happened = _events_of_nodes(report)
    paired_base = {pair.base.address for pair in report.alignment.graphs}
    paired_target = {pair.target.address for pair in report.alignment.graphs}
    for pair in report.alignment.graphs:
        for base, target in _in_order(pair):
            yield _row(
                NodeRef(pair.base, base) if base != UNMATCHED else None,
                NodeRef(pair.target, target) if target != UNMATCHED else None,
                happened,
            )
    for scope in report.alignment.base.scopes:
        if scope.address not in paired_base:
            yield from (_row(ref, None, happened) for ref in _refs(scope))
    for scope in report.alignment.target.scopes:
        if scope.address not in paired_target:
            yield from (_row(None, ref, happened) for ref in _refs(scope))


def _refs(scope: Scope) -> Iterator[NodeRef]:
    return (NodeRef(scope, position) for position in range(len(scope.graph.node)))


def _in_order(pair: GraphPair) -> Iterator[tuple[int, int]]:
    removed = iter([position for position, other in enumerate(pair.target_of) if other == UNMATCHED])
    waiting = next(removed, None)
    for target, base in enumerate(pair.base_of):
        while waiting is not None and waiting < base:
            yield waiting, UNMATCHED
            waiting = next(removed, None)
        yield base, target
    while waiting is not None:
        yield waiting, UNMATCHED
        waiting = next(removed, None)


_Happened = dict[NodeRef | None, dict[int, None]]
"""Positions of events by node, of both models."""


def _events_of_nodes(report: Report) -> _Happened:
    nodes = Nodes(report.alignment)
    happened: _Happened = {}
    for position, event in enumerate(report.events):
        for member in event.members:
            for ref in itertools.chain(*nodes.of(member)):
                happened.setdefault(ref, {})[position] = None
    return happened


def _row(base: NodeRef | None, target: NodeRef | None, happened: _Happened) -> NodeRow:
    ref = target or base
    assert ref is not None
    events = sorted({*happened.get(base, ()), *happened.get(target, ())})
    state: State = "added" if base is None else "removed" if target is None else "changed" if events else "same"
    return NodeRow(
        state=state,
        operator=operator_of(ref),
        name=node_label(ref.node),
        base=base.address if base is not None else None,
        target=target.address if target is not None else None,
        events=tuple(events),
    )


MOST_EVENTS: Final = 1_000
MOST_ROWS: Final = 4_000
"""Maximum number of rows of the table of nodes; larger models show changed nodes only."""

MOST_DRAWINGS: Final = 60
_MOST_MEMBERS: Final = 200
_MOST_ADDRESSES: Final = 20
_LONGEST_PATTERN: Final = 200
_MOST_OPEN: Final = 3
"""Number of members that are always shown."""

_LONGEST: Final = 400
DRAWN: Final = frozenset({kind for kind, properties in KIND_PROPERTIES.items() if properties.is_drawn})
"""Kinds of events that change a drawing."""


def diff_html(report: Report) -> Iterator[str]:
    """Yield the page in pieces."""
    yield page_head(f"{report.base_name} → {report.target_name}")
    yield "<body>\n"
    yield f"<h1>{page_code(report.base_name)} → {page_code(report.target_name)}</h1>\n"
    if report.equal:
        yield f"<p>The same: {counted(report.nodes.after, 'node')}.</p>\n"
    else:
        yield f"<p>{nodes_text(report)}</p>\n"
        yield from (f'<p class="problem">{page_text(problem)}</p>\n' for problem in report.incomplete)
        yield _badges(report)
        yield from _operators(report)
        yield from _events(report)
    yield from _nodes(report)
    yield page_end("onnxjson diff")


def page_text(text: str, limit: int | None = _LONGEST) -> str:
    """Return a text of a model for a page, visible and escaped."""
    return html.escape(visible(text, limit))


def page_code(text: str, limit: int | None = _LONGEST) -> str:
    """Return a name of a model for a page."""
    return f"<code>{page_text(text, limit)}</code>"


def _hash(content: str) -> str:
    return f"'sha256-{pybase64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page_head(title: str) -> str:
    """Return the head of a page with one style sheet and one script."""
    policy = (
        f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{page_text(title)}</title>\n"
        f"<style>{STYLE}</style>\n</head>\n"
    )


def page_end(command: str) -> str:
    """Return the end of a page, which states the command that writes it."""
    return f"<footer>{command}</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


def _badges(report: Report) -> str:
    first: dict[Kind, int] = {}
    for position, event in enumerate(report.events):
        first.setdefault(event.kind, position)
    items = [f"<li>{_badge(kind, first[kind], f'{number:,} {kind}')}</li>" for kind, number in report.places.items()]
    return f'<ul class="badges">{"".join(items)}</ul>\n'


def _operators(report: Report) -> Iterator[str]:
    changed = [each for each in report.operators if each.change]
    others = [each for each in report.operators if not each.change]
    if not changed and not report.parameters.change and not report.bytes.change:
        return
    yield '<h2>Operators</h2>\n<table id="operators"><thead><tr><th></th><th class="number">before</th>'
    yield '<th class="number">after</th><th class="number">change</th></tr></thead><tbody>\n'
    yield from (_count_row(page_code(each.what), each) for each in changed)
    if others:
        number = sum(each.before for each in others)
        yield _count_row(f"{counted(len(others), 'other')} as before", Count("", number, number))
    yield _count_row("nodes", report.nodes, is_sum=True)
    yield _count_row("parameters", report.parameters, is_sum=True)
    stored = report.bytes
    texts = size(stored.before), size(stored.after), stored.bytes_change_text
    yield _cells("bytes", *texts, _way(stored), is_sum=True)
    yield "</tbody></table>\n"


def _way(count: Count) -> str:
    return "more" if count.change > 0 else "less" if count.change < 0 else ""


def _count_row(label: str, count: Count, *, is_sum: bool = False) -> str:
    texts = f"{count.before:,}", f"{count.after:,}", count.change_text
    return _cells(label, *texts, _way(count), is_sum=is_sum)


def _cells(label: str, before: str, after: str, change: str, way: str, *, is_sum: bool) -> str:
    row = '<tr class="sum">' if is_sum else "<tr>"
    numbers = f'<td class="number">{before}</td><td class="number">{after}</td>'
    return f'{row}<td>{label}</td>{numbers}<td class="number {way}">{change}</td></tr>\n'


def _events(report: Report) -> Iterator[str]:
    if not report.events:
        return
    yield "<h2>Changes</h2>\n"
    unverified = not_verified(report)
    if unverified:
        rewrites = counted(unverified, "rewrite")
        yield f'<p class="soft">{rewrites} not verified; --test-rewrites runs both sides of each</p>\n'
    nodes, drawn = Nodes(report.alignment), 0
    for position, event in enumerate(report.events[:MOST_EVENTS]):
        pair = pictures(event.members[0], nodes) if event.kind in DRAWN and drawn < MOST_DRAWINGS else None
        drawn += pair is not None
        yield from event_article(position, event, pair, says_verdict=not unverified)
    left = len(report.events) - MOST_EVENTS
    if left > 0:
        yield f'<p class="soft">{counted(left, "more pattern")} not shown; --format json has all of them</p>\n'


def event_article(
    position: int, event: Event, pair: tuple[Picture, Picture] | None, *, says_verdict: bool
) -> Iterator[str]:
    """Yield one event: the change, its drawing if there is a pair of pictures, and its places."""
    times = f"{event.count:,}× " if event.count > 1 else ""
    long = ' class="long"' if len(event.members) > _MOST_OPEN else ""
    yield f'<article id="e{position}"{long}>\n<header><span class="kind {EFFECTS[event.kind]}">{event.kind}</span>'
    yield f"<h3>{times}{page_code(event.pattern, _LONGEST_PATTERN)}</h3>"
    if event.verdict is not None and says_verdict:
        yield f'<span class="verdict {verdict_style(event)}">{VERDICTS[event.verdict]}</span>'
    yield "</header>\n"
    if event.evidence:
        yield f'<p class="soft">{page_text(event.evidence, 2000)}</p>\n'
    if pair is not None:
        yield '<div class="pair">\n'
        yield from (_figure(picture, side) for picture, side in zip(pair, ("before", "after"), strict=True))
        yield "</div>\n"
    common = {member.details for member in event.members}
    if len(event.members) > 1 and len(common) == 1:
        yield _details(event, event.members[0])
    members = "".join(
        _member(event, member, with_details=len(event.members) == 1 or len(common) > 1)
        for member in event.members[:_MOST_MEMBERS]
    )
    left = len(event.members) - _MOST_MEMBERS
    if left > 0:
        members += f'<li class="soft">... and {left:,} more</li>\n'
    members = f'<ul class="members">\n{members}</ul>\n'
    if len(event.members) > _MOST_OPEN:
        members = f"<details><summary>{counted(len(event.members), 'place')}</summary>\n{members}</details>\n"
    yield f"{members}</article>\n"


def _figure(picture: Picture, side: str) -> str:
    nodes = [shape.title for shape in picture.shapes if shape.status in ("removed", "added", "changed")]
    label = f"{side}: {', '.join(nodes) or 'none of its nodes'}"
    drawing = svg(picture, label) if picture.shapes else '<span class="soft">nothing</span>'
    left = f", {counted(picture.left_out, 'more node')} not drawn" if picture.left_out else ""
    return f'<figure><figcaption>{side}{left}</figcaption><div class="scroll">{drawing}</div></figure>\n'


def _details(event: Event, member: Member) -> str:
    rows = "".join(_detail(event, detail) for detail in member.details)
    return f'<table class="details"><tbody>\n{rows}</tbody></table>\n' if rows else ""


def _member(event: Event, member: Member, *, with_details: bool) -> str:
    base, target = _addresses(member.base), _addresses(member.target)
    addresses = base if base == target else f"{base or '—'} → {target or '—'}"
    place = f"{page_code(place_text(member))} " if member.place else ""
    details = _details(event, member) if with_details else ""
    return f'<li>{place}<span class="address">{addresses}</span>{details}</li>\n'


def _addresses(addresses: Sequence[str]) -> str:
    shown = [page_text(f"@{each}") for each in addresses[:_MOST_ADDRESSES]]
    left = len(addresses) - _MOST_ADDRESSES
    return " ".join(shown) + (f" and {left:,} more" if left > 0 else "")


def _detail(event: Event, detail: Detail) -> str:
    sides = [(detail.base, "del"), (detail.target, "ins")]
    if (detail.base is None or detail.target is None) and not is_about_parts(event):
        sides = [(side, "span") for side, _ in sides]  # a fact, not something removed or added
    cells = "".join(
        f"<td><{element}>{page_code(side, 2000)}</{element}></td>" if side is not None else "<td></td>"
        for side, element in sides
    )
    return f"<tr><td>{page_text(detail.what)}</td>{cells}</tr>\n"


def _nodes(report: Report) -> Iterator[str]:
    rows: Iterator[NodeRow] = node_rows(report)
    total = report.nodes.before + report.nodes.after - report.matched
    note = f"{total:,}"
    if total > MOST_ROWS:
        rows = (row for row in rows if row.state != "same")
        note = f"changed nodes of {total:,}, at most {MOST_ROWS:,} rows"
    shown = (_node_row(row, report) for row in itertools.islice(rows, MOST_ROWS))
    yield from page_nodes(note, ("event", "address"), STATES, shown)


def page_nodes(note: str, words: tuple[str, str], states: Iterable[State], rows: Iterable[str]) -> Iterator[str]:
    """Yield the table of nodes with its search field.

    Args:
        note: about the rows; already escaped.
        words: what can be searched in addition to operators, names and addresses; the heading of the last column.
        states: the changes that can be searched.
        rows: see `page_row`.
    """
    options = "".join(f'<option value="{state}">{state}</option>' for state in states)
    yield f'<h2>Nodes</h2>\n<p class="soft">{note}</p>\n'
    yield '<div class="search" hidden><input id="words" type="search" '
    yield f'placeholder="operator, name, address, {words[0]}" aria-label="Search nodes" autocomplete="off">'
    yield '<select id="state" aria-label="Kind of change">'
    yield f'<option value="">all</option>{options}</select><span id="found" class="soft" aria-live="polite"></span>'
    headings = f"<th></th><th>operator</th><th>name</th><th>{words[1]}</th>"
    yield f'</div>\n<table id="nodes"><thead><tr>{headings}</tr></thead><tbody>\n'
    yield from rows
    yield "</tbody></table>\n"


def page_row(state: State, badges: Iterable[str], operator: str, name: str, place: str) -> str:
    """Return a row of the table of nodes; badges and place are already escaped."""
    element = _ELEMENTS[state]
    return (
        f'<tr data-state="{state}"><td>{" ".join(badges)}</td><td><{element}>{page_code(operator)}</{element}></td>'
        f'<td>{page_code(name)}</td><td class="address">{place}</td></tr>\n'
    )


def _node_row(row: NodeRow, report: Report) -> str:
    kinds = [(report.events[position].kind, position) for position in row.events]
    badges = [_badge(kind, position, kind) for kind, position in kinds]
    if not badges and row.state != "same":
        badges.append(f'<span class="kind {row.state}">{row.state}</span>')
    addresses = [each for each in dict.fromkeys((row.base, row.target)) if each is not None]
    shown = " → ".join(page_text(f"@{each}") for each in addresses)
    return page_row(row.state, badges, row.operator, row.name, shown)


def _badge(kind: Kind, position: int, text: str) -> str:
    if position >= MOST_EVENTS:
        return f'<span class="kind {EFFECTS[kind]}">{text}</span>'
    return f'<a class="kind {EFFECTS[kind]}" href="#e{position}">{text}</a>'
