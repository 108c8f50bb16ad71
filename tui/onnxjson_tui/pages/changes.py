"""Pages about changes: the diff with the saved model, and the steps of the session."""

from bisect import bisect_left, bisect_right

from onnxjson.model.display import counted, visible
from onnxjson.rendering.tables import Line, Span, cells, shortened
from onnxjson_tui.rows.difference import Compared, DifferenceRows, Shown, Side, compared_edits
from onnxjson_tui.rows.side_texts import pair_lines, text_of, unified_lines
from onnxjson_tui.session.history import History, Step
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.dialogs import TextScreen
from onnxjson_tui.widgets.drawer import Drawer, Page
from onnxjson_tui.widgets.lines import Rows, TextRows


class ChangesPage(Page[Bench]):
    """The diff of the model with its saved state; enter unfolds an event or goes to a place."""

    name = "diff"
    title = "Diff"
    hints = (("enter", "unfold, go there"), ("}", "next"), ("{", "previous"), ("c", "whole screen"))

    def __init__(self, bench: Bench, drawer: Drawer) -> None:
        super().__init__(bench, drawer)
        self._known: DifferenceRows | None = None
        self._revision = -1  # the revision of the session that the rows describe
        self._saved: object = None  # the saved model that they compare with
        self._is_seen = False

    @property
    def is_stale(self) -> bool:
        """Whether the model or its saved state has changed since the comparison."""
        session = self.bench.session
        return self._revision != session.revision or self._saved is not session.unsaved().base

    @property
    def rows(self) -> Rows:
        """The events; dimmed while they are outdated."""
        if not self.bench.session.is_changed:
            return TextRows([(Span(" no changes since the last save", "quiet"),)])
        if self._known is None:
            return TextRows([(Span(" comparing with the saved model ...", "quiet"),)])
        return StaleRows(self._known) if self.is_stale else self._known

    @property
    def note(self) -> str:
        """The number of changed places."""
        if self._known is None or not self.bench.session.is_changed:
            return ""
        return "..." if self.is_stale else f"{self._known.compared.places:,}"

    def shown(self) -> None:
        """Compare if necessary."""
        self._is_seen = True
        self._look()

    def hidden(self) -> None:
        """Cancel the comparison."""
        self._is_seen = False
        self.bench.jobs.drop("diff")

    def model_changed(self) -> None:
        """Compare again if the page is open."""
        if self._is_seen:
            self._look()
            self.redraw()
        else:
            self.drawer.draw_tabs()

    def _look(self) -> None:
        session = self.bench.session
        if not self.is_stale or not session.is_changed:
            return
        preview, path, revision = session.unsaved(), session.opened.path, session.revision
        sides = Side("saved", preview.base, path), Side("current", preview.model, path)

        def found(result: Compared) -> None:
            self._revision, self._saved = revision, preview.base
            opened = range(len(result.events)) if result.is_short else ()
            self._known = DifferenceRows(result, Shown(frozenset(opened)), glyphs=self.bench.terminal.glyphs)
            self.redraw(self._known.starts[0] if self._known.starts else 0)

        self.bench.jobs.start("diff", "comparing with the saved model", lambda: compared_edits(*sides), found)

    def choose(self, number: int) -> None:
        """Unfold or fold an event; go to a place; show a removed one."""
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
        lines = list(unified_lines(pair_lines(text_of(known.compared.base.model, member.base), []), 70))
        title = f"{visible(' '.join(member.base), 200)} before the change"
        self.bench.app.push_screen(TextScreen(title, lines))

    def next_node(self, count: int) -> None:
        """Move the cursor of the nodes by a number of changed nodes, backwards for a negative count."""
        bench, here, scope = self.bench, self.bench.here, self.bench.scope
        saved = bench.saved_nodes(scope)
        if saved is None or scope is None or here is None:
            bench.say("no changes since the last save")
            return
        places = saved.marked()
        if not places:
            bench.say("no node of this graph changed since the last save; f6 shows all changes")
            return
        at = (bisect_right(places, here.position) - 1 if count > 0 else bisect_left(places, here.position)) + count
        number = at % len(places)
        bench.go(f"{scope.address}/node/{places[number]}")
        around = "" if 0 <= at < len(places) else ", wrapped around"
        bench.say(f"change {number + 1:,} of {len(places):,}{around}")


class StaleRows:
    """Dimmed rows of an outdated difference."""

    def __init__(self, rows: DifferenceRows) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        return tuple([Span(span.text, "quiet") for span in self.rows.line(number, width)])


class HistoryRows:
    """Rows of steps, the newest first, then the opened model; undone steps are dimmed, above the mark."""

    def __init__(self, history: History) -> None:
        self._steps: tuple[Step, ...] = tuple(history)
        self._position = history.position
        self._saved = history.saved

    def __len__(self) -> int:
        return len(self._steps) + 1

    def number(self, row: int) -> int:
        """Return the number of steps that lead to the model of a row."""
        return len(self._steps) - row

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        made = self.number(number)
        mark = ">" if made == self._position else " "
        saved = "  saved" if made == self._saved else ""
        head = f"{mark}{made:>4} "
        if made == 0:
            text, notes = "as opened", ""
        else:
            step = self._steps[made - 1]
            text, notes = visible(step.title, None), f"  {visible('; '.join(step.notes), 200)}" if step.notes else ""
        room = width - cells(head) - cells(saved)
        shown = shortened(text, max(room, 10))
        rest = room - cells(shown)
        remark = shortened(notes, rest) if rest > 8 else ""
        is_here = made <= self._position
        return (
            Span(head, "title" if made == self._position else "quiet"),
            Span(shown, "plain" if is_here and made else "quiet"),
            Span(remark, "quiet"),
            Span(saved, "good"),
        )


class HistoryPage(Page[Bench]):
    """The steps; enter restores the model after a step, y copies the commands that repeat it."""

    name = "history"
    title = "History"
    hints = (("enter", "go there"), ("y", "copy the command"), ("u", "undo"))

    @property
    def rows(self) -> Rows:
        """The steps."""
        return HistoryRows(self.bench.session.history)

    @property
    def note(self) -> str:
        """The number of steps."""
        return str(len(self.bench.session.history) or "")

    def model_changed(self) -> None:
        """Draw the steps again."""
        self.redraw()

    def choose(self, number: int) -> None:
        """Undo or redo until the step of the row is the newest."""
        history = self.bench.session.history
        last, done = self.bench.step(len(history) - number - history.position)
        if last is None:
            self.bench.say("this is the current step")
        else:
            self.bench.say(f"{counted(done, 'step')} {'undone' if last.kind == 'undone' else 'redone'}")

    def copied(self, number: int) -> str:
        """Return the commands of a step, one per line; its title if it has none."""
        steps = tuple(self.bench.session.history)
        made = len(steps) - number
        if made < 1:
            return ""
        return "\n".join(steps[made - 1].commands) or steps[made - 1].title
