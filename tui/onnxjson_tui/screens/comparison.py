"""The diff of two models: of a session and the saved file, another file, a revision, or the output of a pass."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast

from msgspec.structs import replace

from onnxjson.diffing.events import Event, Member
from onnxjson.model.display import counted, visible
from onnxjson.rendering.tables import Line, Span, cells, clipped, shortened, wrapped
from onnxjson_tui.rows.difference import (
    Compared,
    DifferenceRows,
    Row,
    Shown,
    Side,
    compared,
    compared_edits,
    of_diff,
)
from onnxjson_tui.rows.side_texts import Pair
from onnxjson_tui.screens.event_details import details_of, text_rows, texts
from onnxjson_tui.screens.rows_screen import CHANGE_KEYS, RowsScreen
from onnxjson_tui.session.opening import Unreadable
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, OTHER_LIST, screen_key
from onnxjson_tui.shell.terminal import Terminal, opened, program
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.widgets.lines import LineList, TextRows

WhichSide = Literal["base", "target"]
ANOTHER: Final = "another"  # result of the screen if the user wants to compare with another model


class ComparisonScreen(RowsScreen[Any]):
    """Computes and shows a diff; returns an address to go to in the workbench, or None."""

    KEYS = (
        screen_key(("a",), "apply the result of the pass as one step", "_accept", "apply"),
        screen_key(("v",), "both models side by side, to take single changes", "_show_panes", "side by side"),
        screen_key(("c",), "compare with another file or a revision", "_another", "other"),
        screen_key(("q", "escape", "ctrl+c"), "leave", "_leave", "back"),
        HELP,
        screen_key(("enter",), "unfold or fold an event; on a place go there", "_open_row", "unfold"),
        screen_key(("o",), "go to the node", "_go_to"),
        screen_key(("l", "right"), "unfold", "_unfold"),
        screen_key(("h", "left"), "fold", "_fold"),
        screen_key(("t",), "show the text of both sides, or details", "_toggle_text", "text"),
        screen_key(("f",), "filter events, such as kind:fused op:Conv -Cast", "_filter", "filter"),
        screen_key(
            (".",),
            "hide what changes no result",
            lambda screen, _: screen.show_again(without_quiet=not screen.shown.without_quiet),
        ),
        screen_key(
            ("s",),
            "list all operators",
            lambda screen, _: screen.show_again(all_operators=not screen.shown.all_operators),
        ),
        OTHER_LIST,
        *CHANGE_KEYS,
        screen_key(("p",), "run both sides of every rewrite", "_prove", "prove"),
        *FIRST_AND_LAST,
    )

    def __init__(
        self,
        doing: str,
        work: Callable[[], Compared],
        terminal: Terminal,
        *,
        workbench: Workbench | None = None,
        side: WhichSide = "target",
        stop: Callable[[], None] | None = None,
        accept: Callable[[Compared], None] | None = None,
        compare: Callable[[Side, Side], Compared] = compared,
    ) -> None:
        """Prepare the screen.

        `work` reads, runs and compares, in a thread; `stop` ends it early. `side` is the model of the workbench
        below. `accept` makes the target the model of the workbench; None if that is not possible. `compare` finds the
        difference again after one of the models was changed.
        """
        super().__init__(terminal)
        self._doing, self._work = doing, work
        self._workbench, self._side, self._stop, self._apply = workbench, side, stop, accept
        self._compare = compare
        self.compared: Compared | None = None  # the diff; None until it is computed
        self.shown = Shown()
        self._shows_text = False

    def on_mount(self) -> None:
        """Start the work."""
        self.jobs.start("compare", self._doing, self._work, self.show, self.refuse)
        self.rows.show(TextRows([(Span(f" {visible(self._doing, 500)} ...   esc cancels", "changed"),)]))

    @property
    def difference(self) -> DifferenceRows | None:
        """The rows of the diff; None until it is computed."""
        rows = self.rows.rows
        return rows if isinstance(rows, DifferenceRows) else None

    @property
    def all_events(self) -> frozenset[int]:
        """The positions of all events."""
        return frozenset(range(len(self.compared.events) if self.compared is not None else 0))

    @property
    def row(self) -> Row | None:
        """The row under the cursor, if there is one."""
        found = self.difference
        number = self.rows.cursor
        return found.rows[number] if found is not None and number < len(found.rows) else None

    def at_cursor(self) -> tuple[Event, Member] | None:
        """Return the event under the cursor and its place; on the row of the event itself, its first place."""
        row = self.row
        if row is None or row.event < 0 or self.compared is None:
            return None
        event = self.compared.events[row.event]
        return event, event.members[max(row.member, 0)]

    def show(self, compared: Compared) -> None:
        """Show a diff, the cursor on the first event."""
        self.compared = compared
        self.shown = Shown(
            self.all_events if compared.is_short else frozenset(),
            without_quiet=self.shown.without_quiet,
            all_operators=self.shown.all_operators,
        )
        self.rows.move_to(next(iter(self.build().starts), 0))
        self.show_details()

    def build(self, event: int = -1, member: int = -1) -> DifferenceRows:
        """Build the rows again, the cursor on an event or one of its places."""
        assert self.compared is not None
        rows = DifferenceRows(self.compared, self.shown)
        self.rows.show(rows, rows.row_of(event, member) if event >= 0 else None)
        self.show_details()
        self.draw_bars()
        return rows

    def title_line(self) -> tuple[Line, str]:
        """Return both names."""
        compared = self.compared
        if compared is None:
            doing = shortened(visible(self._doing, 500), max(self.size.width - 2, 20))
            return (Span(f" {doing}", "title"),), ""
        base, target = (visible(side.name, 500) for side in (compared.base, compared.target))
        room = max(self.size.width - 6, 20)
        base = shortened(base, max(room // 2, room - cells(target)))
        spans = [Span(f" {base}", "title"), Span(" -> "), Span(shortened(target, room - cells(base)), "title")]
        if self.shown.wanted:
            spans.append(Span(f"  filter {visible(self.shown.wanted)}", "changed"))
        if self.shown.without_quiet:
            spans.append(Span("  changes of results only", "changed"))
        return tuple(spans), ""

    def offered(self, key: Action[Any]) -> bool:
        """Return whether a key does something: until the diff is computed, the user can only leave."""
        if key.id == "_another":
            return self._compare is compared_edits
        if key.id == "_accept":
            return self.compared is not None and self._apply is not None and not self.compared.equal
        return self.compared is not None or key.id == "_leave" or key is HELP

    # Details of a row

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Treat a double click as enter."""
        if event.lines is self.rows:
            self._open_row(Arguments())

    def word_of(self, key: Action[Any]) -> str:
        """Return what enter does with the row under the cursor."""
        if key.id != "_open_row":
            return super().word_of(key)
        row = self.row
        if row is None or row.event < 0:
            return ""
        if row.kind != "event":
            return "go there"
        return "fold" if row.event in self.shown.opened else "unfold"

    def show_details(self) -> None:
        """Show details of the row under the cursor."""
        self.draw_bars()
        at_cursor, compared = self.at_cursor(), self.compared
        width = max(self.about.size.width - 1, 20)
        if at_cursor is None or compared is None:
            self.about.show(TextRows(list(self.about_all(width))), 0)
            return
        event, member = at_cursor
        if not self._shows_text:
            is_event = self.row is not None and self.row.kind == "event"
            shown = event if is_event else replace(event, members=(member,))
            self.about.show(TextRows(details_of(shown, width, can_prove=compared.diff is not None)), 0)
            return

        def made(pairs: list[Pair]) -> None:
            self.about.show(text_rows(member, pairs, width), 0)

        # The digest of a tensor of gigabytes takes seconds.
        self.jobs.start("text", "reading both sides", lambda: texts(compared, member), made)

    def about_all(self, width: int) -> Sequence[Line]:
        """Return the text of the lower list while the cursor is not on an event."""
        if self.compared is None:
            return ()
        names = [("from  ", self.compared.base.name), ("to    ", self.compared.target.name)]
        lines = [(Span(label, "quiet"), Span(clipped(visible(name, None), width - 6))) for label, name in names]
        for note in (*self.compared.notes, *self.compared.incomplete):
            lines += [(Span(text, "changed"),) for text in wrapped(note, width, indent=0)]  # type: ignore[misc]
        return lines

    def refuse(self, error: BaseException) -> None:
        """Show an error in the list, where a long one can be read, and how to leave."""
        self.failed(error)
        width = max(self.rows.size.width - 2, 40)
        self.rows.show(TextRows([(Span(f" {text}", "bad"),) for text in wrapped(error_text(error), width, indent=0)]))
        self.say("q leaves", "plain")

    # Keys

    def close(self, result: Any = None) -> None:
        """Go back to the previous screen; leave the program if there is none."""
        # Textual keeps an empty screen below the first one.
        if len(self.app.screen_stack) <= 2:
            self.app.exit(0)
        else:
            self.dismiss(result)

    def _open_row(self, arguments: Arguments) -> None:
        row = self.row
        if row is None or row.event < 0:
            return
        if row.kind == "event":
            self._set_open(row.event, open_it=row.event not in self.shown.opened)
        else:
            self._go_to(arguments)

    def _unfold(self, arguments: Arguments) -> None:
        row = self.row
        if row is not None and row.kind == "event" and row.event not in self.shown.opened:
            self._set_open(row.event, open_it=True)
        else:
            self.rows.move_by(1)

    def _fold(self, arguments: Arguments) -> None:
        row = self.row
        if row is not None and row.event >= 0:
            self._set_open(row.event, open_it=False)

    def _set_open(self, event: int, *, open_it: bool) -> None:
        opened = set(self.shown.opened)
        (opened.add if open_it else opened.discard)(event)
        self.shown = self.shown._replace(opened=frozenset(opened))
        self.build(event)

    def fold(self, *, folded: bool) -> None:
        """Fold all events, or unfold them."""
        self.show_again(opened=frozenset() if folded else self.all_events)

    def _toggle_text(self, arguments: Arguments) -> None:
        self._shows_text = not self._shows_text
        self.show_details()

    async def _filter(self, arguments: Arguments) -> None:
        text = await self.ask("filter ", text=self.shown.wanted, complete=self._words)
        if text is not None:
            self.show_again(wanted=text.strip())

    def _words(self, typed: str) -> Sequence[str]:
        if self.compared is None:
            return ()
        before, _, last = typed.rpartition(" ")
        kinds = dict.fromkeys(f"kind:{event.kind}" for event in self.compared.events)
        operators = dict.fromkeys(f"op:{each.what}" for each in self.compared.operators)
        found = [word for word in (*kinds, *operators) if word.startswith(last) or last in word.partition(":")[2]]
        return [f"{before} {visible(word)}".lstrip() for word in found]

    def show_again(self, **changes: Any) -> None:
        """Build the rows again after changes of what is shown."""
        self.shown = self.shown._replace(**changes)
        if self.compared is None:
            return
        row = self.row
        made = self.build(row.event if row is not None else -1)
        if made.shown.wanted and not made.visible_events:
            self.say(f"no event matches {made.shown.wanted}; f and an empty line show everything", "changed")

    def _leave(self, arguments: Arguments) -> None:
        if self.about.has_focus:
            self.rows.focus()
            return
        self.end(None)

    def end(self, address: str | None) -> None:
        """Close the screen and what only it uses, and return an address."""
        if self.jobs.drop_all() and self._stop is not None:
            self._stop()
        for side in () if self.compared is None else (self.compared.base, self.compared.target):
            if side.session is not None and side.ends:
                side.session.close()
        self.close(address)

    async def _show_panes(self, arguments: Arguments) -> None:
        from onnxjson_tui.screens.panes import PanesScreen

        if self.compared is None or self.compared.diff is None:
            self.say("there is nothing to show side by side", "changed")
            return
        side = 0 if self._side == "base" else 1
        result = await self.app.push_screen_wait(PanesScreen(self.compared, self._compare, self.terminal, active=side))
        if result.compared is not self.compared:
            self.show(result.compared)
        workbench, changed = self._workbench, result.changed.get(side)
        if workbench is not None and changed is not None:
            workbench.changed(changed._replace(is_restructured=True))
        if result.address is not None and workbench is not None and result.side == side:
            self.end(result.address)
        elif result.address is not None:
            self._open((self.compared.base, self.compared.target)[result.side].name, result.address)

    def _go_to(self, arguments: Arguments) -> None:
        at_cursor = self.at_cursor()
        if at_cursor is None or self.compared is None:
            return
        _, member = at_cursor
        addresses = member.target if self._side == "target" else member.base
        if not addresses:
            self._shows_text = True
            self.show_details()
            self.say("it was removed; this is its former text" if self._side == "target" else "it is new")
        elif self._workbench is not None:
            self.end(addresses[0])
        else:
            self._open(self.compared.target.name, addresses[0])

    def _open(self, name: str, address: str) -> None:
        """Open the target in a workbench."""

        def shown(opened_model: Session | Unreadable) -> None:
            screen = program(self.app).screen_for(opened_model, readonly=False)
            self.app.push_screen(screen)
            if isinstance(opened_model, Session):
                workbench = cast(Workbench, screen)
                workbench.call_after_refresh(workbench.go, address)

        self.jobs.start("open", f"opening {visible(name)}", lambda: opened(name, readonly=False), shown)

    def _another(self, arguments: Arguments) -> None:
        if self._compare is compared_edits:
            self.end(ANOTHER)
        else:
            self.say("c is for unsaved changes; leave this comparison first", "changed")

    def _accept(self, arguments: Arguments) -> None:
        if self._apply is None or (self.compared is not None and self.compared.equal):
            self.say("there is nothing to apply here", "changed")
        elif self.compared is not None:
            accept, found = self._apply, self.compared
            self.end(None)
            accept(found)

    def _prove(self, arguments: Arguments) -> None:
        compared = self.compared
        if compared is None or compared.diff is None:
            self.say("there is no rewrite to run", "changed")
            return
        diff, base, target, notes = compared.diff, compared.base, compared.target, compared.notes

        def work() -> Compared:
            from onnxjson.running.proof import prove

            return of_diff(prove(diff), base, target, notes)

        def proved(verified: Compared) -> None:
            row, shown = self.row, self.shown
            self.compared, self.shown = verified, shown
            self.build(row.event if row is not None else -1, row.member if row is not None else -1)
            ran = [event for event in verified.events if event.verdict not in (None, "not-run")]
            different = sum(event.verdict == "different" for event in ran)
            if different:
                self.say(f"{different:,} of {counted(len(ran), 'rewrite')} changed results", "bad")
            else:
                self.say(f"{counted(len(ran), 'rewrite')} verified equal", "good" if ran else "changed")

        self.jobs.start("prove", "running both sides of the rewrites", work, proved)
