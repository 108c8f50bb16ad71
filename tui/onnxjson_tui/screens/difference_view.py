"""The base of screens that show a diff: its rows above, details of the row under the cursor below."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from msgspec.structs import replace
from textual import events, getters
from textual.app import ComposeResult

from onnxjson.diffing.events import Event, Member
from onnxjson.model.display import visible
from onnxjson.rendering.diff_text import event_lines
from onnxjson.rendering.tables import GAP, Line, Span, clipped, wrapped
from onnxjson_tui.rows.difference import Compared, DifferenceRows, Row, Shown
from onnxjson_tui.rows.side_texts import Pair, pair_lines, side_by_side_lines, text_of, unified_lines
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.shell.keyed import OTHER_LIST, KeyedScreen, screen_key
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.widgets.lines import LineList, Rows, TextRows

_T = TypeVar("_T")

_MOST_LINES: Final = 600  # of the places of an event

SIDE_BY_SIDE: Final = 140  # columns from which both sides of a text are shown next to each other


DIFFERENCE_KEYS: Final = (
    screen_key(("enter",), "unfold or fold an event; on a place go there", "_open_row", "unfold"),
    screen_key(("o",), "go to the node", "_go_to"),
    screen_key(("l", "right"), "unfold", "_unfold"),
    screen_key(("h", "left"), "fold", "_fold"),
    screen_key(("z R", "+"), "unfold everything", lambda screen, _: screen.show_again(opened=screen.all_events)),
    screen_key(("z M", "_"), "fold everything", lambda screen, _: screen.show_again(opened=frozenset())),
    screen_key(("] c", "}"), "next change", lambda screen, given: screen.to_change(given.number or 1), "next"),
    screen_key(("[ c", "{"), "previous change", lambda screen, given: screen.to_change(-(given.number or 1))),
    screen_key(("t",), "show the text of both sides, or details", "_toggle_text", "text"),
    screen_key(("f",), "filter events, such as kind:fused op:Conv -Cast", "_filter", "filter"),
    screen_key(
        (".",), "hide what changes no result",
        lambda screen, _: screen.show_again(without_quiet=not screen.shown.without_quiet),
    ),
    screen_key(
        ("s",), "list all operators", lambda screen, _: screen.show_again(all_operators=not screen.shown.all_operators)
    ),
    OTHER_LIST,
)  # fmt: skip
"""Keys of every screen that shows a diff."""


class RowsScreen(KeyedScreen[_T]):
    """Rows, and below them details of the one under the cursor."""

    AUTO_FOCUS = "#rows"

    def body(self) -> ComposeResult:
        """The rows, and details of one."""
        yield LineList(id="rows")
        yield LineList(id="about", has_cursor=False)

    rows = getters.query_one("#rows", LineList)  # the rows
    about = getters.query_one("#about", LineList)  # details of the row under the cursor

    def show_details(self) -> None:
        """Show details of the row under the cursor."""

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Update the lower list when the cursor rests."""
        if event.lines is self.rows:
            self.after_rest(self.show_details)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines at the bottom to the new width, unless there is only a message above."""
        super().on_resize(event)
        if not isinstance(self.rows.rows, TextRows):
            self.call_after_refresh(self.show_details)


class DifferenceScreen(RowsScreen[Any]):
    """Shows the events of a diff, and details of the one under the cursor."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self.compared: Compared | None = None  # the diff; None until it is computed
        self.shown = Shown()
        self.can_prove = False  # whether the screen can run both sides of every rewrite
        self._shows_text = False

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
        made = DifferenceRows(self.compared, self.shown, glyphs=self.terminal.glyphs)
        self.rows.show(made, made.row_of(event, member) if event >= 0 else None)
        self.show_details()
        self.draw_bars()
        return made

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
        found, compared = self.at_cursor(), self.compared
        width = max(self.about.size.width - 1, 20)
        if found is None or compared is None:
            self.about.show(TextRows(list(self.about_all(width))), 0)
            return
        event, member = found
        if not self._shows_text:
            is_event = self.row is not None and self.row.kind == "event"
            shown = event if is_event else replace(event, members=(member,))
            self.about.show(TextRows(details_of(shown, width, can_prove=self.can_prove)), 0)
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
        """Show an error in the list, where a long one can be read."""
        self.failed(error)
        width = max(self.rows.size.width - 2, 40)
        self.rows.show(TextRows([(Span(f" {text}", "bad"),) for text in wrapped(error_text(error), width, indent=0)]))

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

    def _go_to(self, arguments: Arguments) -> None:
        """Go to the node of the row."""

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

    def to_change(self, count: int) -> None:
        """Move the cursor by a number of events, up for a negative count."""
        found, here = self.difference, self.rows.cursor
        if found is None or not found.starts:
            return
        if count > 0:
            later = [number for number in found.starts if number > here]
            target = later[min(count, len(later)) - 1] if later else None
        else:
            earlier = [number for number in found.starts if number < here]
            target = earlier[max(len(earlier) + count, 0)] if earlier else None
        if target is None:
            self.say("that was the last change" if count > 0 else "that was the first change")
        else:
            self.rows.move_to(target)

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


def texts(compared: Compared, member: Member) -> list[Pair]:
    """Return the text of a place on both sides, paired line by line."""
    return pair_lines(text_of(compared.base.model, member.base), text_of(compared.target.model, member.target))


def text_rows(member: Member, pairs: list[Pair], width: int) -> Rows:
    """Return both sides of a place, side by side if the screen is wide enough."""
    if width < SIDE_BY_SIDE - 1:
        return TextRows(list(unified_lines(pairs, width)))
    named = Pair(" ", *("nothing" if not side else _named(side) for side in (member.base, member.target)))
    head = [tuple(Span(span.text, "quiet") for span in line) for line in side_by_side_lines([named], width)]
    return TextRows([*head, *side_by_side_lines(pairs, width)])


def _named(addresses: Sequence[str]) -> str:
    return " ".join(f"@{visible(address, None)}" for address in addresses[:4]) + (" ..." if len(addresses) > 4 else "")


def details_of(event: Event, width: int, *, can_prove: bool) -> list[Line]:
    """Return an event with its places, unabridged, and the key that finds its verdict."""
    found = event_lines(event, len(event.kind) + GAP, max(width, 60), details=True, says_not_run=True)
    lines = list(islice(found, _MOST_LINES))
    if event.verdict == "not-run" and not event.evidence and can_prove:
        lines.append((Span("p runs both sides", "quiet"),))
    return lines
