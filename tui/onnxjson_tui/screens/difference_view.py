"""The base of screens that show a difference: its rows, what there is to say of one of them, and the keys for both."""

from collections.abc import Sequence
from typing import Any, Final

from textual.app import ComposeResult

from onnxjson.diffing.events import Event, Member
from onnxjson.display import visible
from onnxjson.rendering.diff_report import EFFECTS, VERDICTS
from onnxjson.rendering.diff_text import detail_text, place_of, title_of, verdict_style
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import clipped, wrapped
from onnxjson_tui.action import Given
from onnxjson_tui.comparing import Compared
from onnxjson_tui.rows.difference import DifferenceRows, Row, Shown
from onnxjson_tui.rows.element_text import Pair, beside_lines, paired, text_of, unified_lines
from onnxjson_tui.screens.keyed import KeyedScreen, ScreenKey
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.widgets.lines import LineList, Rows, TextRows

SETTLES: Final = 0.12
"""Seconds that the cursor rests on a row before what there is to say of it is shown."""

BESIDE: Final = 140
"""Columns from which both sides of a text stand beside each other."""


class DifferenceScreen(KeyedScreen[Any]):
    """Rows above, what there is to say of the row under the cursor below."""

    DEFAULT_CSS = """
    DifferenceScreen #rows { height: 2fr; }
    DifferenceScreen #about { height: 1fr; min-height: 5; border-top: solid $panel; padding: 0 0 0 1; }
    """
    AUTO_FOCUS = "#rows"

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self.compared: Compared | None = None
        """What is shown; None until it is known."""
        self.shown = Shown()
        self._sought = ""
        self.can_prove = False
        """Whether a key runs both sides of every rewrite."""
        self._shows_text = False
        self._settling: Any = None

    def body(self) -> ComposeResult:
        """The rows, and what there is to say of one."""
        yield LineList(id="rows")
        yield LineList(id="about", has_cursor=False)

    @property
    def rows(self) -> LineList:
        """The list of what happened."""
        return self.query_one("#rows", LineList)

    @property
    def about(self) -> LineList:
        """What there is to say of the row under the cursor."""
        return self.query_one("#about", LineList)

    @property
    def difference(self) -> DifferenceRows | None:
        """The rows of what is shown; None until it is known."""
        rows = self.rows.rows
        return rows if isinstance(rows, DifferenceRows) else None

    @property
    def row(self) -> Row | None:
        """What the row under the cursor is about; None where there is none."""
        found = self.difference
        number = self.rows.cursor
        return found.rows[number] if found is not None and number < len(found.rows) else None

    def at_cursor(self) -> tuple[Event, Member] | None:
        """The event under the cursor, and the place, which is the first one of the event where the row is its own."""
        row = self.row
        if row is None or row.event < 0 or self.compared is None:
            return None
        event = self.compared.events[row.event]
        return event, event.members[max(row.member, 0)]

    def show(self, compared: Compared) -> None:
        """Shows a difference, the cursor on the first thing that happened."""
        self.compared = compared
        self.shown = Shown(
            frozenset(range(len(compared.events))) if compared.is_short else frozenset(),
            without_quiet=self.shown.without_quiet,
            all_operators=self.shown.all_operators,
        )
        found = self.build()
        self.rows.move_to(found.starts[0] if found.starts else 0)
        self.settle()

    def build(self, event: int = -1, member: int = -1) -> DifferenceRows:
        """Makes the rows anew, the cursor on an event or one of its places."""
        assert self.compared is not None
        made = DifferenceRows(self.compared, self.shown, glyphs=self.terminal.glyphs)
        number = made.row_of(event, member) if event >= 0 else None
        self.rows.show(made, number)
        self.settle()
        self.draw_chrome()
        return made

    # What there is to say of a row

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The lower list follows when the cursor rests."""
        if event.lines is self.rows:
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(SETTLES, self.settle)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Twice with the mouse is enter."""
        if event.lines is self.rows:
            self.choose(Given())

    def word_of(self, key: ScreenKey) -> str:
        """What enter does with the row under the cursor."""
        if key.run.__name__ != "choose":
            return super().word_of(key)
        row = self.row
        if row is None or row.event < 0:
            return ""
        if row.kind != "event":
            return "go there"
        return "fold" if row.event in self.shown.opened else "unfold"

    def settle(self) -> None:
        """Says what there is to say of the row under the cursor."""
        self.draw_chrome()
        found, compared = self.at_cursor(), self.compared
        width = max(self.about.size.width - 1, 20)
        if found is None or compared is None:
            self.about.show(TextRows(list(self.said_of_all(width))), 0)
            return
        event, member = found
        if not self._shows_text:
            row = self.row
            is_event = row is not None and row.kind == "event" and len(event.members) > 1
            verdict = verdict_lines(event, width, can_prove=self.can_prove)
            lines = about_event(event, verdict, width) if is_event else about_member(event, member, verdict, width)
            self.about.show(TextRows(lines), 0)
            return

        def made(pairs: list[Pair]) -> None:
            self.about.show(text_rows(member, pairs, width), 0)

        # The digest of a tensor of gigabytes takes seconds.
        self.jobs.start("text", "reading both sides", lambda: texts(compared, member), made)

    def said_of_all(self, width: int) -> Sequence[Line]:
        """What the lower list says where the cursor is on no event."""
        if self.compared is None:
            return ()
        names = [("from  ", self.compared.base.name), ("to    ", self.compared.target.name)]
        lines = [(Span(label, "quiet"), Span(clipped(visible(name, None), width - 6))) for label, name in names]
        for note in (*self.compared.notes, *self.compared.incomplete):
            lines += [(Span(text, "changed"),) for text in wrapped(note, width, indent=0)]  # type: ignore[misc]
        return lines

    # Keys

    def choose(self, given: Given) -> None:
        """Unfolds or folds an event; goes to a place."""
        row = self.row
        if row is None or row.event < 0:
            return
        if row.kind == "event":
            self._fold(row.event, open_it=row.event not in self.shown.opened)
        else:
            self.go_to(given)

    def go_to(self, given: Given) -> None:
        """Goes to the node of the row."""

    def unfold(self, given: Given) -> None:
        """Shows the places of an event."""
        row = self.row
        if row is not None and row.kind == "event" and row.event not in self.shown.opened:
            self._fold(row.event, open_it=True)
        else:
            self.rows.move_by(1)

    def fold(self, given: Given) -> None:
        """Hides the places of an event."""
        row = self.row
        if row is not None and row.event >= 0:
            self._fold(row.event, open_it=False)

    def unfold_all(self, given: Given) -> None:
        """Shows every place."""
        self._fold_all(open_them=True)

    def fold_all(self, given: Given) -> None:
        """Hides every place."""
        self._fold_all(open_them=False)

    def _fold(self, event: int, *, open_it: bool) -> None:
        opened = set(self.shown.opened)
        (opened.add if open_it else opened.discard)(event)
        self.shown = self.shown._replace(opened=frozenset(opened))
        self.build(event)

    def _fold_all(self, *, open_them: bool) -> None:
        if self.compared is None:
            return
        row = self.row
        everything = frozenset(range(len(self.compared.events)))
        self.shown = self.shown._replace(opened=everything if open_them else frozenset())
        self.build(row.event if row is not None else -1)

    def next_change(self, given: Given) -> None:
        """To the next thing that happened."""
        self._to_change(given.number or 1)

    def previous_change(self, given: Given) -> None:
        """To the one before."""
        self._to_change(-(given.number or 1))

    def _to_change(self, count: int) -> None:
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

    def toggle_quiet(self, given: Given) -> None:
        """Leaves out what changes no result, or shows it again."""
        self.shown = self.shown._replace(without_quiet=not self.shown.without_quiet)
        self._rebuild()

    def toggle_operators(self, given: Given) -> None:
        """A row for every operator, or no longer."""
        self.shown = self.shown._replace(all_operators=not self.shown.all_operators)
        self._rebuild()

    def toggle_text(self, given: Given) -> None:
        """The text of both sides below, or words again."""
        self._shows_text = not self._shows_text
        self.settle()

    def switch(self, given: Given) -> None:
        """The focus goes to the other list."""
        (self.rows if self.about.has_focus else self.about).focus()

    def filter(self, given: Given) -> None:
        """Asks for words that what is shown must have."""

        def narrowed(text: str) -> None:
            self.shown = self.shown._replace(wanted=text.strip())
            self._rebuild()

        self.ask("filter ", narrowed, text=self.shown.wanted, complete=self._words)

    def _words(self, typed: str) -> Sequence[str]:
        if self.compared is None:
            return ()
        before, _, last = typed.rpartition(" ")
        kinds = dict.fromkeys(f"kind:{event.kind}" for event in self.compared.events)
        operators = dict.fromkeys(f"op:{each.what}" for each in self.compared.operators)
        found = [word for word in (*kinds, *operators) if word.startswith(last) or last in word.partition(":")[2]]
        return [f"{before} {visible(word)}".lstrip() for word in found]

    def _rebuild(self) -> None:
        if self.compared is None:
            return
        row = self.row
        made = self.build(row.event if row is not None else -1)
        if made.shown.wanted and not made.visible_events:
            self.say(f"nothing that happened has {made.shown.wanted}; f and an empty line shows everything", "changed")

    def search(self, given: Given) -> None:
        """Asks for a text."""

        def sought(text: str) -> None:
            self._sought = text or self._sought
            self._find(1)

        self.ask("/", sought)

    def next_match(self, given: Given) -> None:
        """To the next row that has what was searched for."""
        self._find(1)

    def previous_match(self, given: Given) -> None:
        """To the row before that has it."""
        self._find(-1)

    def _find(self, step: int) -> None:
        compared, here, wanted = self.compared, self.row, self._sought.lower()
        if compared is None or not wanted:
            return
        # Places that are folded count too, so every row there could be is searched.
        everything = self.shown._replace(opened=frozenset(range(len(compared.events))))
        glyphs = self.terminal.glyphs

        def work() -> Row | None:
            full = DifferenceRows(compared, everything, glyphs=glyphs)
            start = full.rows.index(here) if here in full.rows else 0
            for distance in range(1, len(full.rows) + 1):
                number = (start + step * distance) % len(full.rows)
                if wanted in full.text(number).lower():
                    return full.rows[number]
            return None

        self.jobs.start("search", "searching", work, self._found_row)

    def _found_row(self, row: Row | None) -> None:
        if row is None:
            self.say(f"{self._sought} is nowhere here", "changed")
            return
        if row.kind != "event":
            self.shown = self.shown._replace(opened=frozenset({*self.shown.opened, row.event}))
        made = self.build()
        self.rows.move_to(made.rows.index(row))


DIFFERENCE_KEYS: Final = (
    ScreenKey(("enter",), "unfold or fold what happened; on a place go there", DifferenceScreen.choose, "unfold"),
    ScreenKey(("o",), "go to the node", DifferenceScreen.go_to),
    ScreenKey(("l", "right"), "unfold", DifferenceScreen.unfold),
    ScreenKey(("h", "left"), "fold", DifferenceScreen.fold),
    ScreenKey(("z R", "+"), "unfold everything", DifferenceScreen.unfold_all),
    ScreenKey(("z M", "_"), "fold everything", DifferenceScreen.fold_all),
    ScreenKey(("] c", "}"), "next change", DifferenceScreen.next_change, "next"),
    ScreenKey(("[ c", "{"), "change before", DifferenceScreen.previous_change),
    ScreenKey(("t",), "the text of both sides, or words", DifferenceScreen.toggle_text, "text"),
    ScreenKey(("f",), "only what has words, such as kind:fused op:Conv -Cast", DifferenceScreen.filter, "filter"),
    ScreenKey((".",), "leave out what changes no result", DifferenceScreen.toggle_quiet),
    ScreenKey(("s",), "a row for every operator", DifferenceScreen.toggle_operators),
    ScreenKey(("/",), "search", DifferenceScreen.search),
    ScreenKey(("n",), "next match", DifferenceScreen.next_match),
    ScreenKey(("N",), "match before", DifferenceScreen.previous_match),
    ScreenKey(("tab", "shift+tab"), "to the other list", DifferenceScreen.switch),
)
"""Keys of every screen that shows a difference."""


def texts(compared: Compared, member: Member) -> list[Pair]:
    """What stands at a place on both sides, line by line."""
    return paired(text_of(compared.base.model, member.base), text_of(compared.target.model, member.target))


def text_rows(member: Member, pairs: list[Pair], width: int) -> Rows:
    """Both sides of a place: beside each other where there is room, else below each other."""
    if width < BESIDE - 1:
        return TextRows(list(unified_lines(pairs, width)))
    named = Pair(" ", *("nothing" if not side else _named(side) for side in (member.base, member.target)))
    head = [tuple(Span(span.text, "quiet") for span in line) for line in beside_lines([named], width)]
    return TextRows([*head, *beside_lines(pairs, width)])


def _named(addresses: Sequence[str]) -> str:
    return " ".join(f"@{visible(address, None)}" for address in addresses[:4]) + (" ..." if len(addresses) > 4 else "")


def about_event(event: Event, verdict: Sequence[Line], width: int) -> list[Line]:
    """What there is to say of something that happened at several places."""
    lines: list[Line] = [(Span(f"{event.kind}  ", EFFECTS[event.kind]), Span(clipped(title_of(event), width), "title"))]
    lines += verdict
    for member in event.members[:200]:
        lines.append((Span(clipped(f"  {place_of(member)}", width)),))
    if len(event.members) > 200:
        lines.append((Span(f"  and {len(event.members) - 200:,} more places", "quiet"),))
    return lines


def about_member(event: Event, member: Member, verdict: Sequence[Line], width: int) -> list[Line]:
    """What there is to say of one place, nothing shortened."""
    lines: list[Line] = [(Span(f"{event.kind}  ", EFFECTS[event.kind]), Span(place_of(member), "title"))]
    for label, side in (("was  ", member.base), ("is   ", member.target)):
        addresses = " ".join(f"@{visible(each, None)}" for each in side) or "nothing"
        first, *rest = wrapped(addresses, width, indent=5, whole_words=True)
        lines += [(Span(label, "quiet"), Span(first.lstrip(), "quiet")), *[(Span(text, "quiet"),) for text in rest]]
    pattern = [(Span(text),) for text in wrapped(event.pattern, width, indent=0)]
    lines += pattern if len(event.members) == 1 else []
    lines += verdict
    for detail in member.details:
        lines += [(Span(text),) for text in wrapped(detail_text(event, detail, None), width, indent=0)]
    if member.count > max(len(member.details), 1):
        lines.append((Span(f"{member.count:,} places are alike in this; these are the first", "quiet"),))
    return lines


def verdict_lines(event: Event, width: int, *, can_prove: bool) -> list[Line]:
    """Whether an event gives other results, what that is known from, or which key finds it out."""
    if event.verdict is None:
        return []
    unknown = event.verdict == "not-run" and not event.evidence and can_prove
    text = VERDICTS[event.verdict] + ("; p proves it" if unknown else "")
    return [
        (Span(text, verdict_style(event)),),
        *[(Span(each, "quiet"),) for each in wrapped(event.evidence, width, indent=0)],
    ]
