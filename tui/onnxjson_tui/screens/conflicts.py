"""Conflicts of a merge, settled one by one: all of them above, the three sides of one below."""

from typing import ClassVar, Final

from textual.app import ComposeResult

from onnxjson.display import counted, visible
from onnxjson.errors import OnnxJsonError
from onnxjson.merging.resolving import Choice
from onnxjson.merging.settling import Settling, Shown
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import shortened
from onnxjson_tui.action import Given
from onnxjson_tui.rows.conflicts import ConflictRows, named, place_rows
from onnxjson_tui.screens.choosing import ConfirmScreen
from onnxjson_tui.screens.keyed import HELP, MOVING, KeyedScreen, ScreenKey
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.widgets.lines import LineList, TextRows

_SAVE: Final = ("w", "save and leave", "save")


class ConflictsScreen(KeyedScreen[None]):
    """Ends the program when the person leaves; what was saved by then is in the file."""

    DEFAULT_CSS = """
    ConflictsScreen #conflicts { height: auto; max-height: 40%; border-bottom: solid $panel; }
    """
    AUTO_FOCUS = "#conflicts"
    SAME_KEYS: ClassVar = {"1": "b", "2": "o", "3": "t"}

    def __init__(self, settling: Settling, terminal: Terminal) -> None:
        super().__init__(terminal)
        self.settling = settling
        self._order: list[str] = []
        """Ids of conflicts with a choice, in the order in which they got it."""

    def body(self) -> ComposeResult:
        """The conflicts, then the three sides."""
        yield LineList(ConflictRows(self.settling), id="conflicts")
        yield LineList(id="sides", has_cursor=False)

    def on_mount(self) -> None:
        """Show the first conflict."""
        self.conflicts.styles.height = min(len(self.settling.conflicts), max(self.app.size.height * 2 // 5, 3)) + 1
        self.call_after_refresh(self.settle)

    @property
    def conflicts(self) -> LineList:
        """The list of conflicts."""
        return self.query_one("#conflicts", LineList)

    @property
    def sides(self) -> LineList:
        """What each side has of one of them."""
        return self.query_one("#sides", LineList)

    @property
    def here(self) -> Shown | None:
        """The conflict under the cursor."""
        found = self.settling.conflicts
        return found[min(self.conflicts.cursor, len(found) - 1)] if found else None

    def settle(self) -> None:
        """Shows the three sides of the conflict under the cursor."""
        here = self.here
        if here is not None and self.is_mounted:
            width = max(self.sides.size.width - 1, 20)
            self.sides.show(TextRows(place_rows(here, self.settling.choices.get(here.id), width)), 0)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The sides follow the cursor."""
        if event.lines is self.conflicts:
            self.settle()

    def title_line(self) -> tuple[Line, str]:
        """The file, and how many conflicts stand."""
        settling = self.settling
        left = settling.remaining
        text = f"{counted(left, 'conflict')} of {len(settling.conflicts):,} left" if left else "no conflict is left"
        name = shortened(visible(str(settling.path), 1000), max(self.size.width - len(text) - 6, 10))
        return (Span(f" {name}", "title"), Span(" *" if settling.is_changed else "", "changed")), f"{text} "

    # Keys

    def take_base(self, given: Given) -> None:
        """What the base has."""
        self._choose("base")

    def take_ours(self, given: Given) -> None:
        """What our side has."""
        self._choose("ours")

    def take_theirs(self, given: Given) -> None:
        """What their side has."""
        self._choose("theirs")

    def _choose(self, choice: Choice) -> None:
        here = self.here
        if here is None:
            return
        try:
            self.settling.choose(here.id, choice)
        except OnnxJsonError as error:
            self.failed(error)
            return
        self._order = [*[each for each in self._order if each != here.id], here.id]
        self._drawn()
        self.say(f"{choice} for {named(here)}", "good")
        self._to_next()

    def undo(self, given: Given) -> None:
        """Takes the last choice back."""
        if not self._order:
            self.say("no choice to take back")
            return
        self._take_back(self._order[-1])

    def forget(self, given: Given) -> None:
        """The conflict under the cursor stands again."""
        here = self.here
        if here is not None and here.id in self.settling.choices:
            self._take_back(here.id)

    def _take_back(self, key: str) -> None:
        try:
            self.settling.take_back(key)
        except OnnxJsonError as error:
            self.failed(error)
            return
        self._order.remove(key)
        number = next(number for number, each in enumerate(self.settling.conflicts) if each.id == key)
        self._drawn()
        self.conflicts.move_to(number)
        self.say(f"{named(self.settling.conflicts[number])} stands again", "changed")

    def _drawn(self) -> None:
        self.conflicts.refresh()
        self.settle()

    def _to_next(self) -> None:
        """The cursor goes to the next conflict without a choice, around the end."""
        found, here = self.settling.conflicts, self.conflicts.cursor
        for step in range(1, len(found)):
            number = (here + step) % len(found)
            if found[number].id not in self.settling.choices:
                self.conflicts.move_to(number)
                return

    def next_conflict(self, given: Given) -> None:
        """To the next conflict that stands."""
        if not self.settling.remaining:
            self.say("no conflict is left; w saves", "good")
        self._to_next()

    def switch(self, given: Given) -> None:
        """The focus goes to the other list."""
        (self.conflicts if self.sides.has_focus else self.sides).focus()

    def save(self, given: Given) -> None:
        """Writes the file; with the conflicts that are left where there are some."""
        if not self.settling.remaining:
            self._save()
            return

        def answered(answer: str | None) -> None:
            if answer == "save":
                self._save()

        left = counted(self.settling.remaining, "conflict")
        question = f"{left} left. The file keeps them, and is no model until they are settled."
        answers = [("s", "stay", "stay"), ("w", "write it with them", "save")]
        self.app.push_screen(ConfirmScreen(question, answers), answered)

    def _save(self, *, then_leave: bool = False) -> None:
        settling = self.settling

        def saved(_: None) -> None:
            left = f", {counted(settling.remaining, 'conflict')} left in it" if settling.remaining else ""
            if settling.errors:
                first = visible(settling.errors[0].message)
                count = counted(len(settling.errors), "error")
                self.say(f"saved, with {count}: {first}; choices do not go together, u takes the last one back", "bad")
                return
            self.say(f"saved {settling.path}{left}", "good")
            if then_leave:
                self.app.exit(0)

        self.jobs.start("save", f"saving {visible(str(settling.path))}", settling.save, saved)

    def leave(self, given: Given) -> None:
        """Ends; asks where choices are not saved, or git would throw them away."""
        settling = self.settling
        if not settling.is_changed:
            if settling.errors and settling.is_under_git:
                self._ask_to_leave("The model has errors: git puts the file back as it was.", [])
            elif settling.remaining and settling.is_under_git and settling.choices:
                self._ask_to_leave("git puts the file back as it was while a conflict is left.", [])
            else:
                self.app.exit(0)
            return
        if not settling.remaining:
            self._ask_to_leave(
                "All conflicts are settled, and the file is not saved.", [("w", "save and leave", "save")]
            )
            return
        left = counted(settling.remaining, "conflict")
        if settling.is_under_git:
            # Whatever is saved: git takes it back when the command says that conflicts are left.
            self._ask_to_leave(f"{left} left: git puts the file back as it was, and forgets the choices.", [])
        else:
            self._ask_to_leave(f"{left} left, and the choices are not saved.", [_SAVE])

    def _ask_to_leave(self, question: str, more: list[tuple[str, str, str]]) -> None:
        def answered(answer: str | None) -> None:
            if answer == "leave":
                self.app.exit(0)
            elif answer == "save":
                self._save(then_leave=True)

        answers = [("s", "stay", "stay"), *more, ("l", "leave without", "leave")]
        self.app.push_screen(ConfirmScreen(question, answers), answered)


KEYS: Final = (
    ScreenKey(("b",), "take what the base has; also 1", ConflictsScreen.take_base, "base"),
    ScreenKey(("o",), "take what ours has; also 2", ConflictsScreen.take_ours, "ours"),
    ScreenKey(("t",), "take what theirs has; also 3", ConflictsScreen.take_theirs, "theirs"),
    ScreenKey(("u",), "take the last choice back", ConflictsScreen.undo, "undo"),
    ScreenKey(("x", "delete"), "the conflict under the cursor stands again", ConflictsScreen.forget),
    ScreenKey(("n", "] c", "}"), "next conflict that stands", ConflictsScreen.next_conflict, "next"),
    ScreenKey(("tab", "shift+tab"), "to the other list", ConflictsScreen.switch),
    ScreenKey(("w", "ctrl+s"), "save", ConflictsScreen.save, "save"),
    *MOVING,
    ScreenKey(("q", "escape", "ctrl+c"), "leave", ConflictsScreen.leave, "leave"),
    HELP,
)
ConflictsScreen.KEYS = KEYS
