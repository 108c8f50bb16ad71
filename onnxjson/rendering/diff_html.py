"""A structural diff as one self-contained HTML file: no network, no data in scripts, readable on a phone and on paper.

Every text of a model is made visible, then escaped, and only appears between tags or in quoted attributes. The content
security policy allows one style sheet and one script, by their sha256, and nothing else.
"""

import hashlib
import html
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pybase64

from onnxjson.diffing.details import node_label
from onnxjson.diffing.events import KIND_PROPERTIES, Detail, Event, Member
from onnxjson.diffing.matching.alignment import UNMATCHED, GraphPair
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.rendering.change_words import Words, first_words
from onnxjson.rendering.diff_report import EFFECTS, VERDICTS, Nodes, Report, operator_of, places_of, size_rows
from onnxjson.rendering.diff_text import is_about_parts, nodes_text, not_verified, place_text, verdict_style
from onnxjson.rendering.drawings import Picture, pictures, svg

STYLE: Final = "\n" + Path(__file__).with_name("page.css").read_text(encoding="utf-8")
SCRIPT: Final = "\n" + Path(__file__).with_name("page.js").read_text(encoding="utf-8")
"""Style sheet and script of all pages; the script searches the table of nodes by words and by kind of change."""

State = Literal["same", "changed", "removed", "added"]

_ELEMENTS: Final[dict[State, str]] = {"changed": "span", "removed": "del", "added": "ins", "same": "span"}

_MARKED: Final = {"word": "{}", "strong": "<b>{}</b>", "code": "<code>{}</code>", "name": "<code>{}</code>"}

_Happened = dict[NodeRef | None, dict[int, None]]  # positions of events by node, of both models

MOST_EVENTS: Final = 1_000
MOST_ROWS: Final = 4_000  # maximum number of rows of the table of nodes; larger models show changed nodes only
MOST_DRAWINGS: Final = 60
_MOST_MEMBERS: Final = 200
_MOST_ADDRESSES: Final = 20
_LONGEST_PATTERN: Final = 200
_MOST_OPEN: Final = 3
_MOST_ROWS_OPEN: Final = 8
_LONGEST: Final = 400
DRAWN: Final = frozenset({kind for kind, properties in KIND_PROPERTIES.items() if properties.is_drawn})
"""Kinds of events that change a drawing."""


class NodeRow(NamedTuple):
    """A node, or a pair of matched nodes. Texts of models, not yet made visible."""

    state: State
    operator: str
    name: str
    base: str | None
    target: str | None  # addresses in the base and in the target
    events: tuple[int, ...]  # positions of the events of the report that affect it


def node_rows(report: Report) -> Iterator[NodeRow]:
    """Yield every node of both models: in paired graphs in the order of the target, removed ones in their old place."""
    happened = _events_of_nodes(report)
    graphs = report.alignment.graphs
    for pair in graphs:
        for base, target in _in_order(pair):
            yield _row(
                NodeRef(pair.base, base) if base != UNMATCHED else None,
                NodeRef(pair.target, target) if target != UNMATCHED else None,
                happened,
            )
    for ref in _unpaired(report.alignment.base, [pair.base for pair in graphs]):
        yield _row(ref, None, happened)
    for ref in _unpaired(report.alignment.target, [pair.target for pair in graphs]):
        yield _row(None, ref, happened)


def _unpaired(side: Index, paired: Iterable[Scope]) -> Iterator[NodeRef]:
    addresses = {scope.address for scope in paired}
    return (ref for ref in side.nodes() if ref.scope.address not in addresses)


def _in_order(pair: GraphPair) -> Iterator[tuple[int, int]]:
    removed = deque([position for position, other in enumerate(pair.target_of) if other == UNMATCHED])
    for target, base in enumerate(pair.base_of):
        while removed and removed[0] < base:
            yield removed.popleft(), UNMATCHED
        yield base, target
    yield from ((base, UNMATCHED) for base in removed)


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
    addresses = base and base.address, target and target.address
    return NodeRow(state, operator_of(ref), node_label(ref.node), *addresses, tuple(events))


def diff_html(report: Report) -> Iterator[str]:
    """Yield the page of one diff in pieces."""
    return html_page(f"{report.base_name} → {report.target_name}", diff_section(report), "onnxjson diff")


def html_page(
    title: str, content: Iterable[str], command: str, style: str = STYLE, script: str = SCRIPT
) -> Iterator[str]:
    """Yield a page with one style sheet and one script, in pieces; `command` is what writes it."""
    policy = f"style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; {policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{page_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )
    yield from content
    yield f"<footer>{command}</footer>\n<script>{script}</script>\n</body>\n</html>\n"


def diff_section(report: Report, prefix: str = "") -> Iterator[str]:
    """Yield one diff for a page; `prefix` makes its ids unique on a page with several."""
    page = _Section(report, prefix)
    yield f"<h1>{page_code(report.base_name)} → {page_code(report.target_name)}</h1>\n"
    if report.equal:
        yield f"<p>The same: {counted(report.nodes.after, 'node')}.</p>\n"
    else:
        if not prefix:  # a page with several diffs has verdicts of its own
            text, style = _verdict(report)
            yield f'<p class="verdict {style}">{html.escape(text)}</p>\n'
        yield f"<p>{nodes_text(report)}; {report.count_text}</p>\n"
        yield from (f"<p>{words_html(words)}</p>\n" for words in first_words(report))
        yield from (f'<p class="problem">{page_text(problem)}</p>\n' for problem in report.incomplete)
        yield page.badges()
        yield from page.changes()
        yield from _operators(report)
    yield "<details><summary>all nodes</summary>\n"
    yield from page.nodes()
    yield "</details>\n"


def _verdict(report: Report) -> tuple[str, str]:
    """Return whether results may change, as a sentence, and its class."""
    loud, _ = report.by_weight
    if broken := [change for change in report.interface if change.is_breaking]:
        return f"Callers must change: {broken[0].text}", "bad"
    if different := sum([event.count for event in loud if event.verdict == "different"]):
        return f"Results change in {counted(different, 'place')}", "bad"
    if not loud:
        return "Nothing changes what the model computes", "good"
    if all([event.verdict in ("equal", "within-tolerance") for event in loud]):
        return "Both sides of every change were run, and agree", "good"
    number = sum([event.count for event in loud if event.verdict in (None, "not-run")])
    return f"{counted(number, 'change')} may change the results; onnxjson verify compares the outputs", "open"


def page_text(text: str, limit: int | None = _LONGEST) -> str:
    """Return a text of a model for a page, visible and escaped."""
    return html.escape(visible(text, limit))


def page_code(text: str, limit: int | None = _LONGEST) -> str:
    """Return a name of a model for a page."""
    return f"<code>{page_text(text, limit)}</code>"


def words_html(words: Words) -> str:
    """Return ``<b>breaking</b>: output <code>382</code> renamed to <code>logits</code>``."""
    return "".join([_MARKED[part.mark].format(html.escape(part.text)) for part in words])


def _hash(content: str) -> str:
    return f"'sha256-{pybase64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page_table(headings: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """Yield a table of numbers: escaped headings, and for each row its escaped label and its cells."""
    cells = "".join([f'<th class="number">{each}</th>' for each in headings])
    yield f'<div class="scroll"><table class="sizes"><thead><tr><th></th>{cells}</tr></thead><tbody>\n'
    yield from (f"<tr><td>{label}</td>{''.join(numbers)}</tr>\n" for label, numbers in rows)
    yield "</tbody></table></div>\n"


def page_number(text: str, *, differs: bool = False) -> str:
    """Return a cell with a number."""
    return f'<td class="number{" differs" if differs else ""}">{text}</td>'


def _operators(report: Report) -> Iterator[str]:
    if rows := size_rows(report):
        texts = [[page_text(each) for each in (row.before, row.after, row.change)] for row in rows]
        numbers = [map(page_number, each) for each in texts]
        labels = [page_label(row.label, is_operator=row.is_operator) for row in rows]
        yield "<h2>Operators and sizes</h2>\n"
        yield from page_table(("before", "after", "change"), zip(labels, numbers, strict=True))


def page_label(text: str, *, is_operator: bool) -> str:
    """Return the label of a row of a table of operators and sizes."""
    return page_code(text) if is_operator else f"<b>{page_text(text)}</b>"


class _Section:
    def __init__(self, report: Report, prefix: str) -> None:
        self._report = report
        self._prefix = f"{prefix}e"
        self._loud, self._quiet = report.by_weight
        self._places = {id(event): place for place, event in enumerate((*self._loud, *self._quiet))}
        """The events by identity: their places on the page."""

    def badges(self) -> str:
        first = {event.kind: event for event in reversed(self._report.events)}
        numbers = places_of((*self._loud, *self._quiet)).items()
        items = "".join([f"<li>{self._badge(first[kind], number)}</li>" for kind, number in numbers])
        return f'<ul class="badges">{items}</ul>\n'

    def _badge(self, event: Event, number: int | None = None) -> str:
        place, kind = self._places[id(event)], event.kind
        text = kind if number is None else f"{number:,} {kind}"
        if place >= MOST_EVENTS:
            return f'<span class="kind {EFFECTS[kind]}">{text}</span>'
        return f'<a class="kind {EFFECTS[kind]}" href="#{self._prefix}{place}">{text}</a>'

    def changes(self) -> Iterator[str]:
        unverified, drawn = not_verified(self._report), 0
        nodes = Nodes(self._report.alignment)
        if self._loud:
            yield "<h2>Changes</h2>\n"
        if unverified:
            rewrites = counted(unverified, "rewrite")
            yield f'<p class="soft">{rewrites} not verified; --test-rewrites runs both sides of each</p>\n'
        for place, event in enumerate(self._loud[:MOST_EVENTS]):
            pair = pictures(event.members[0], nodes) if event.kind in DRAWN and drawn < MOST_DRAWINGS else None
            drawn += pair is not None
            yield from event_article(f"{self._prefix}{place}", event, pair, says_verdict=not unverified)
        if quiet := self._quiet[: max(MOST_EVENTS - len(self._loud), 0)]:
            number = counted(sum(event.count for event in self._quiet), "change")
            yield f"<details><summary>{number} without effect on results</summary>\n"
            for place, event in enumerate(quiet, len(self._loud)):
                yield from event_article(f"{self._prefix}{place}", event, None, says_verdict=False)
            yield "</details>\n"
        left = len(self._report.events) - MOST_EVENTS
        if left > 0:
            yield f'<p class="soft">{counted(left, "more pattern")} not shown; --format json has all of them</p>\n'

    def nodes(self) -> Iterator[str]:
        report = self._report
        rows: Iterator[NodeRow] = node_rows(report)
        total = report.nodes.before + report.nodes.after - report.matched
        note = f"{total:,}"
        if total > MOST_ROWS:
            rows = (row for row in rows if row.state != "same")
            note = f"changed nodes of {total:,}, at most {MOST_ROWS:,} rows"
        shown = (self._row(row) for row in itertools.islice(rows, MOST_ROWS))
        yield from page_nodes(note, ("event", "address"), shown)

    def _row(self, row: NodeRow) -> str:
        badges = [self._badge(self._report.events[position]) for position in row.events]
        if not badges and row.state != "same":
            badges.append(f'<span class="kind {row.state}">{row.state}</span>')
        addresses = [each for each in dict.fromkeys((row.base, row.target)) if each is not None]
        shown = " → ".join(page_text(f"@{each}") for each in addresses)
        return page_row(row.state, badges, row.operator, row.name, shown)


def event_article(
    name: str, event: Event, pair: tuple[Picture, Picture] | None, *, says_verdict: bool
) -> Iterator[str]:
    """Yield one event with the id `name`: the change, its drawing if there is a pair of pictures, and its places."""
    times = f"{event.count:,}× " if event.count > 1 else ""
    long = ' class="long"' if len(event.members) > _MOST_OPEN else ""
    yield f'<article id="{name}"{long}>\n<header><span class="kind {EFFECTS[event.kind]}">{event.kind}</span>'
    yield f"<h3>{times}{page_code(event.pattern, _LONGEST_PATTERN)}</h3>"
    common = {member.details for member in event.members}
    is_common = len(common) == 1 and len(event.members[0].details) <= _MOST_ROWS_OPEN
    distinct = tuple(dict.fromkeys([detail for member in event.members for detail in member.details]))
    if is_common or len(distinct) <= _MOST_OPEN:
        yield _details(event, Member((), (), details=distinct))
    is_short = is_common and pair is None and len(event.members) == 1
    if is_short:
        yield _place(event.members[0])
    if event.verdict is not None and says_verdict:
        yield f'<span class="verdict {verdict_style(event)}">{VERDICTS[event.verdict]}</span>'
    yield "</header>\n"
    if event.where:
        yield f"<p>{page_text(event.where, 2000)}</p>\n"
    if event.evidence:
        yield f'<p class="soft">{page_text(event.evidence, 2000)}</p>\n'
    if pair is not None:
        yield '<div class="pair">\n'
        reasons = ("these nodes are new", "these nodes are gone")
        sides = zip(pair, ("before", "after"), reasons, strict=True)
        yield from (_figure(picture, side, reason) for picture, side, reason in sides)
        yield "</div>\n"
    shown = event.members[:_MOST_MEMBERS]
    members = "".join([f"<li>{_place(each)}{'' if is_common else _details(event, each)}</li>\n" for each in shown])
    left = len(event.members) - _MOST_MEMBERS
    if left > 0:
        members += f'<li class="soft">... and {left:,} more</li>\n'
    members = "" if is_short else f'<ul class="members">\n{members}</ul>\n'
    if len(event.members) > _MOST_OPEN:
        members = f"<details><summary>{counted(len(event.members), 'place')}</summary>\n{members}</details>\n"
    yield f"{members}</article>\n"


def _figure(picture: Picture, side: str, reason: str) -> str:
    nodes = [shape.title for shape in picture.shapes if shape.status in ("removed", "added", "changed")]
    label = f"{side}: {', '.join(nodes) or 'none of its nodes'}"
    drawing = svg(picture, label) if picture.shapes else f'<span class="soft">nothing: {reason}</span>'
    left = f", {counted(picture.left_out, 'more node')} not drawn" if picture.left_out else ""
    zoom = '<button type="button" hidden>full size</button>'
    return f'<figure><figcaption>{side}{left}{zoom}</figcaption><div class="scroll">{drawing}</div></figure>\n'


def _details(event: Event, member: Member) -> str:
    rows = "".join(_detail(event, detail) for detail in member.details)
    table = f'<table class="details"><tbody>\n{rows}</tbody></table>\n' if rows else ""
    if len(member.details) <= _MOST_ROWS_OPEN:
        return table
    return f"<details><summary>{counted(member.count, 'change')}</summary>\n{table}</details>\n"


def _place(member: Member) -> str:
    base, target = _addresses(member.base), _addresses(member.target)
    addresses = base if base == target else f"{base or '—'} → {target or '—'}"
    place = f"{page_code(place_text(member))} " if member.place else ""
    return f'<span>{place}<span class="address">{addresses}</span></span>'


def _addresses(addresses: Sequence[str]) -> str:
    return listed([page_text(f"@{each}") for each in addresses], _MOST_ADDRESSES, " ")


def _detail(event: Event, detail: Detail) -> str:
    sides = [("", detail.base, "del"), ("→ " if detail.base is not None else "", detail.target, "ins")]
    is_fact = (detail.base is None or detail.target is None) and not is_about_parts(event)
    cells = ""
    for arrow, side, element in sides:
        element = "span" if is_fact else element
        cells += "<td></td>" if side is None else f"<td>{arrow}<{element}>{page_code(side, 2000)}</{element}></td>"
    return f"<tr><td>{page_text(detail.what)}</td>{cells}</tr>\n"


def page_nodes(note: str, words: tuple[str, str], rows: Iterable[str]) -> Iterator[str]:
    """Yield the table of nodes; `words`: what else can be searched, heading of the last column. The note is escaped."""
    options = "".join(f'<option value="{state}">{state}</option>' for state in _ELEMENTS)
    yield f'<p class="soft">{note}</p>\n'
    yield (
        '<div class="search" hidden><input type="search" '
        f'placeholder="operator, name, address, {words[0]}" aria-label="Search nodes" autocomplete="off">'
        f'<select aria-label="Kind of change"><option value="">all</option>{options}</select>'
        '<span class="soft found" aria-live="polite"></span></div>\n<table class="nodes"><thead><tr>'
        f"<th></th><th>operator</th><th>name</th><th>{words[1]}</th></tr></thead><tbody>\n"
    )
    yield from rows
    yield "</tbody></table>\n"


def page_row(state: State, badges: Iterable[str], operator: str, name: str, place: str) -> str:
    """Return a row of the table of nodes; badges and place are already escaped."""
    element = _ELEMENTS[state]
    return (
        f'<tr data-state="{state}"><td>{" ".join(badges)}</td><td><{element}>{page_code(operator)}</{element}></td>'
        f'<td>{page_code(name)}</td><td class="address">{place}</td></tr>\n'
    )
