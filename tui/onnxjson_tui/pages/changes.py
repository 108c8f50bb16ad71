"""What was changed since the model was opened or saved."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from onnxjson.display import visible
from onnxjson.rendering.spans import Span
from onnxjson_tui.comparing import Compared, Side, compared_edits
from onnxjson_tui.pages.declaration import Page
from onnxjson_tui.rows.difference import DifferenceRows, Shown, StaleRows
from onnxjson_tui.rows.element_text import paired, text_of, unified_lines
from onnxjson_tui.screens.choosing import TextScreen
from onnxjson_tui.widgets.lines import Rows, TextRows

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


class ChangesPage(Page):
    """Enter unfolds what happened, and goes to a place; what is gone is shown as it was."""

    name = "diff"
    title = "Diff"
    hints = (("enter", "unfold, go there"), ("}", "next"), ("{", "previous"), ("c", "whole screen"))

    def __init__(self, bench: "Workbench") -> None:
        super().__init__(bench)
        self._known: DifferenceRows | None = None
        self._revision = -1
        """Of the session, for which the rows are right."""
        self._saved: object = None
        """The model that they are about what differs from."""
        self._is_seen = False

    @property
    def is_stale(self) -> bool:
        """Whether the model, or what is saved, is another one than that which was compared."""
        session = self.bench.session
        return self._revision != session.revision or self._saved is not session.unsaved().base

    @property
    def rows(self) -> Rows:
        """What happened; quiet while it is about a model that is no longer there."""
        if not self.bench.session.is_changed:
            return TextRows([(Span(" nothing is changed since the model was saved", "quiet"),)])
        if self._known is None:
            return TextRows([(Span(" comparing with what is saved ...", "quiet"),)])
        return StaleRows(self._known) if self.is_stale else self._known

    @property
    def note(self) -> str:
        """At how many places."""
        if self._known is None or not self.bench.session.is_changed:
            return ""
        return "..." if self.is_stale else f"{self._known.compared.places:,}"

    def shown(self) -> None:
        """Compare, if that was not done."""
        self._is_seen = True
        self._look()

    def hidden(self) -> None:
        """Nobody waits any more."""
        self._is_seen = False
        self.bench.jobs.drop("diff")

    def model_changed(self) -> None:
        """Compare anew, if somebody looks."""
        if self._is_seen:
            self._look()
            self.redraw()
        else:
            self.bench.drawer.draw_tabs()

    def _look(self) -> None:
        if self.is_stale and self.bench.session.is_changed:
            self.find_out(lambda found: None)

    def find_out(self, then: Callable[[Compared], None]) -> None:
        """Compares the model with what is saved, and goes on with what is found."""
        session = self.bench.session
        if self._known is not None and not self.is_stale:
            then(self._known.compared)
            return
        preview, path, revision = session.unsaved(), session.opened.path, session.revision
        sides = Side("as it is saved", preview.base, path), Side("as it is now", preview.model, path)

        def found(result: Compared) -> None:
            self._revision, self._saved = revision, preview.base
            opened = range(len(result.events)) if result.is_short else ()
            self._known = DifferenceRows(result, Shown(frozenset(opened)), glyphs=self.bench.terminal.glyphs)
            self.redraw(self._known.starts[0] if self._known.starts else 0)
            then(result)

        self.bench.jobs.start("diff", "comparing with what is saved", lambda: compared_edits(*sides), found)

    def choose(self, number: int) -> None:
        """Unfolds or folds; goes to a place."""
        known = self._known
        if known is None or not self.bench.session.is_changed or number >= len(known.rows):
            return
        row = known.rows[number]
        if row.event < 0:
            return
        event = known.compared.events[row.event]
        if row.kind == "event":
            opened = set(known.shown.opened) ^ {row.event}
            shown = known.shown._replace(opened=frozenset(opened))
            self._known = DifferenceRows(known.compared, shown, glyphs=self.bench.terminal.glyphs)
            self.redraw(self._known.row_of(row.event))
            return
        member = event.members[max(row.member, 0)]
        if member.target:
            self.bench.go(member.target[0])
            return
        lines = list(unified_lines(paired(text_of(known.compared.base.model, member.base), []), 70))
        title = f"{visible(' '.join(member.base), 200)} as it was"
        self.bench.app.push_screen(TextScreen(title, lines))

    def next_node(self, count: int) -> None:
        """The cursor of the nodes goes to a changed node further on, or back for a negative count."""

        bench = self.bench
        scope = bench.scope

        def go(places: list[int]) -> None:
            here = bench.here
            if scope is None or here is None or here.scope is not scope:
                return
            if not places:
                bench.say("no node of this graph is changed since the model was saved; f6 says what is")
                return
            later = bisect_right(places, here.position) - 1
            at = later + count if count > 0 else bisect_left(places, here.position) + count
            number = at % len(places)
            bench.go(f"{scope.address}/node/{places[number]}")
            around = "" if 0 <= at < len(places) else ", around the end"
            bench.say(f"change {number + 1:,} of {len(places):,}{around}")

        if scope is None or not bench.session.is_changed:
            bench.say("nothing is changed since the model was saved")
        elif bench.is_big:
            bench.jobs.start("next", "finding out which nodes are changed", lambda: bench.marks.positions(scope), go)
        else:
            go(bench.marks.positions(scope))
