"""Contents of the bars: the model and its state at the top, keys and messages at the bottom."""

import textwrap
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, shortened
from onnxjson_tui.keys.key_list import key_hints, shown_keys
from onnxjson_tui.shell.graph_screen import GraphScreen
from onnxjson_tui.widgets.lines import Tone


def title_line(bench: GraphScreen) -> Line:
    """Return the title: name, changed or not, opset, graph, filter and selection."""
    session = bench.session
    changed = " *" if session.is_changed else ""
    opset = next((each.version for each in session.model.opset_import if not each.domain), None)
    name = shortened(visible(session.opened.name, 200), max(bench.size.width // 3, 12))
    spans = [Span(f" {name}", "title"), Span(changed, "changed")]
    if session.readonly:
        spans.append(Span("  read-only", "changed"))
    spans.append(Span(f"  opset {opset}" if opset is not None else "", "quiet"))
    spans.append(Span(f"  {' > '.join(graph_names(bench))}"))
    if bench.filter:
        spans.append(Span(f"  {counted(len(bench.nodes.rows), 'node')} of filter {visible(bench.filter)}", "changed"))
    if session.places.selected:
        spans.append(Span(f"  {len(session.places.selected):,} selected", "changed"))
    if session.trouble:
        spans.insert(2, Span("  EDITS ARE NOT KEPT", "bad"))
    return tuple(spans)


def graph_names(bench: GraphScreen) -> list[str]:
    """Return the names of the graphs from the outermost to the one that is shown."""
    scope = bench.scope
    if scope is None:
        return ["no graph"]
    names = []
    for each in scope.chain():
        if each.owner is not None:
            attribute = each.address.rpartition("/attribute/")[2].partition("/")[0]
            names.append(
                f"{visible(each.owner.node.name or each.owner.node.op_type or '?', 30)}.{visible(attribute, 20)}"
            )
        else:
            names.append(
                {"main": "main graph", "function": f"function {visible(each.graph.name or '?', 30)}"}.get(
                    each.kind, each.kind
                )
            )
    return names[::-1]


def scope_path(bench: GraphScreen) -> str:
    """Return the right side of the title: problems, and the number of steps that can be undone."""
    parts = []
    problems = bench.drawer.pages.get("problems")
    if problems is not None and problems.note:
        parts.append(problems.note)
    history = bench.session.history
    if len(history):
        parts.append(f"undo {history.position}" + (f"/{len(history)}" if len(history) > history.position else ""))
    return "  ".join(parts) + " " if parts else ""


def footer_line(bench: GraphScreen, message: str, tone: Tone, pending: str) -> tuple[Line, Line, tuple[Line, ...]]:
    """Return the footer: a message, job or keys; typed keys on the right; more lines below."""
    right: Line = (Span(f"{visible(pending, 20)} "),) if pending else _always(bench)
    used = sum([cells(span.text) for span in right])
    if message:
        # One space before the text, two after it.
        room = bench.size.width - used - 3
        first, *others = message_lines(message, tone, room)
        return _with_hints(bench, first, room) if not others else first, right, tuple(others)
    slow = next((job for job in bench.jobs.running if job.is_slow), None)
    if slow is not None:
        return (Span(f" {slow.status}", "changed"),), right, ()
    return hints(bench, bench.size.width - used - 2), right, ()


def _with_hints(bench: GraphScreen, message: Line, width: int) -> Line:
    """Return a short message, followed by as many keys as fit."""
    room = width - sum([cells(span.text) for span in message]) - _GAP
    return (*message, Span(" " * _GAP), *hints(bench, room)) if room > 0 else message


def _always(bench: GraphScreen) -> Line:
    """Return the keys that are always shown."""
    session = bench.session
    wanted = [("u", "undo")] if session.history.position and not session.readonly else []
    wanted += [("ctrl+s", "save")] if session.is_changed and not session.readonly else []
    return key_hints([*wanted, ("?", "keys")], bench.size.width)


_GAP: Final = 3
"""Columns between a message and the keys after it."""

_MOST_LINES: Final = 3
"""Maximum lines of a message in the footer."""


def message_lines(message: str, tone: Tone, width: int) -> list[Line]:
    """Return a message in a few lines; the rest can be read with :messages."""
    lines = textwrap.wrap(message, max(width, 20)) or [""]
    shown: list[Line] = [(Span(f" {line}", tone),) for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        more = "   :messages"
        last = " ".join(lines[_MOST_LINES - 1 :])
        shown[-1] = (Span(f" {shortened(last, max(width - len(more), 1))}", tone), Span(more, "quiet"))
    return shown


def hints(bench: GraphScreen, width: int) -> Line:
    """Return as many keys with a footer label as fit, those of the pane first."""
    wanted = list(bench.drawer.page.hints) if bench.pane == "drawer" and bench.drawer.page is not None else []
    wanted += [
        (shown_keys(each.keys[0]), each.footer)
        for scope in (bench.pane, "everywhere")
        for each in bench.actions
        if each.footer and each.scope == scope and not (each.changes and bench.session.readonly)
    ]
    # These are on the right if they have an effect.
    return key_hints(wanted, width, {"?", "u", "ctrl+s"} if bench.session.is_changed else {"?", "u"})
