"""A trace as one HTML file, built like the page of a diff; see `onnxjson.rendering.diff_html`.

Drawings need matched nodes, so the models around drawn events are compared again.
"""

from collections.abc import Iterator
from typing import Final

from onnxjson.diffing.details import node_label
from onnxjson.diffing.difference import diff_models
from onnxjson.model.display import counted, listed
from onnxjson.model.document import Model
from onnxjson.model.index import Index, NodeRef
from onnxjson.optimizing.provenance import Provenance, Story
from onnxjson.optimizing.trace_records import Part, Size, Step, Trace
from onnxjson.rendering import diff_html, trace_text
from onnxjson.rendering.diff_report import EFFECTS, Nodes, operator_of
from onnxjson.rendering.drawings import pictures

_MOST_EVENTS: Final = 200  # maximum number of events of one part
_MOST_NODES: Final = 12  # maximum number of addresses in a row of the table of nodes


def trace_html(trace: Trace, found: Provenance) -> Iterator[str]:
    """Yield the page in pieces."""
    return diff_html.html_page(f"{trace.source}: trace", _content(trace, found), "onnxjson trace")


def _content(trace: Trace, provenance: Provenance) -> Iterator[str]:
    totals = diff_html.page_text(_arrows(trace_text.totals(trace)), None)
    yield f"<h1>{diff_html.page_code(trace.source)}</h1>\n<p>{totals}</p>\n"
    shown = trace_text.columns(trace)
    yield "<h2>Side by side</h2>\n"
    yield from diff_html.page_table(
        [diff_html.page_code(column.name, 60) for column in shown],
        (
            (
                diff_html.page_label(row.what, is_operator=row.is_operator),
                [diff_html.page_number(row.text(place), differs=row.change(place) != 0) for place in range(len(shown))],
            )
            for row in trace_text.table_rows(shown)
        ),
    )
    yield from _Steps(trace).pieces()
    yield from _nodes(trace, provenance)


class _Steps:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._models = trace.models()
        self._model = next(self._models)
        self._drawn = 0
        self._events = 0

    def pieces(self) -> Iterator[str]:
        for number, stage in enumerate(trace_text.stages(self._trace), 1):
            step, before, after = stage
            numbers = _change(before, after) if step.parts else trace_text.outcome(step)
            yield f'<h2 id="p{number}">{number}. {diff_html.page_code(step.name)}</h2>\n'
            yield f'<p class="soft">{numbers}, {step.seconds:.2g} s</p>\n'
            if step.failure is not None:
                yield f'<p class="problem">{diff_html.page_text(step.failure, 2000)}</p>\n'
            for note in stage.notes:
                yield f'<p class="soft">{diff_html.page_text(note, 2000)}</p>\n'
            yield from self._parts(step, before)

    def _parts(self, step: Step, before: Size) -> Iterator[str]:
        for part in step.parts:
            base, self._model = self._model, next(self._models)
            if part.name:
                yield f"<h3>{diff_html.page_code(part.name)}: {_change(before, part.after)}</h3>\n"
            before = part.after
            for problem in part.incomplete:
                yield f'<p class="problem">{diff_html.page_text(problem, 2000)}</p>\n'
            yield from self._articles(part, base)

    def _articles(self, part: Part, base: Model) -> Iterator[str]:
        events = trace_text.loud(part.events)
        shown = events[:_MOST_EVENTS]
        nodes = None
        if self._drawn < diff_html.MOST_DRAWINGS and any(event.kind in diff_html.DRAWN for event in shown):
            nodes = Nodes(diff_models(base, self._model).alignment)
        for event in shown:
            is_drawn = nodes is not None and event.kind in diff_html.DRAWN and self._drawn < diff_html.MOST_DRAWINGS
            pair = pictures(event.members[0], nodes) if nodes is not None and is_drawn else None
            self._drawn += pair is not None
            yield from diff_html.event_article(f"e{self._events}", event, pair, says_verdict=False)
            self._events += 1
        if len(events) > len(shown):
            yield f'<p class="soft">{counted(len(events) - len(shown), "more pattern")} not shown</p>\n'
        quiet = dict.fromkeys(event.kind for event in part.events if event not in events)
        if quiet:
            yield f'<p class="soft">also: {", ".join(quiet)}</p>\n'


def _change(before: Size, after: Size) -> str:
    return _arrows(
        f"{trace_text.nodes_change(before.nodes, after.nodes)}, {trace_text.bytes_change(before.bytes, after.bytes)}"
    )


def _arrows(text: str) -> str:
    return text.replace("->", "→")


def _nodes(trace: Trace, provenance: Provenance) -> Iterator[str]:
    """Yield the origins of every node of the result, then the removed nodes."""
    rows: list[tuple[diff_html.State, NodeRef, Story]] = []
    for ref in Index(trace.last).nodes():
        story = provenance.origins[ref.address]
        rows.append(("added" if not story.is_linked else "changed" if story.touches else "same", ref, story))
    fates = [(ref, provenance.fates[ref.address]) for ref in Index(trace.first).nodes()]
    rows += [("removed", ref, story) for ref, story in fates if not story.is_linked]
    note = f"{len(rows):,}"
    if len(rows) > diff_html.MOST_ROWS:
        rows = [row for row in rows if row[0] != "same"][: diff_html.MOST_ROWS]
        note = f"changed nodes of {note}, at most {diff_html.MOST_ROWS:,} rows"
    note += "; origins of the nodes of the result, then removed nodes"
    shown = (_row(trace, *row) for row in rows)
    yield "<h2>Nodes</h2>\n"
    yield from diff_html.page_nodes(note, ("pass", "from"), shown)


def _row(trace: Trace, state: diff_html.State, ref: NodeRef, story: Story) -> str:
    badges = [
        f'<a class="kind {EFFECTS[touch.kind]}" href="#p{touch.step + 1}" '
        f'title="{diff_html.page_text(trace_text.part_text(trace, touch))}">{touch.kind}</a>'
        for touch in dict.fromkeys(story.touches)
    ]
    came = listed([diff_html.page_text(f"@{address}") for address in story.nodes], _MOST_NODES, " ")
    came += f" some of {story.among:,} (ambiguous)" if story.among else ""
    here = diff_html.page_text(f"@{ref.address}")
    way = f"{came or '—'} → {here}" if state != "removed" else f"{here} → —"
    return diff_html.page_row(state, badges, operator_of(ref), node_label(ref.node), way)
