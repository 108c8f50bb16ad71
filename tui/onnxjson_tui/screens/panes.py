"""Two models side by side, as vimdiff shows two files: rows of nodes that correspond, and changes that are taken."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.difference import Diff
from onnxjson.diffing.taking import Taking
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import AccessDeniedError, EditError, OnnxJsonError
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of
from onnxjson.rendering.diff_report import EFFECTS
from onnxjson.rendering.diff_text import place_of
from onnxjson.rendering.tables import Line, Span, cells, clipped, shortened_name
from onnxjson_tui.rows.difference import Compared, Side
from onnxjson_tui.rows.panes import PaneRow, PaneRows, Panes
from onnxjson_tui.rows.side_texts import Pair, pair_lines, side_by_side_lines, text_of
from onnxjson_tui.screens.rows_screen import CHANGE_KEYS, RowsScreen
from onnxjson_tui.session.history import Changed, Preview
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, screen_key
from onnxjson_tui.shell.terminal import Terminal, program
from onnxjson_tui.widgets.actions import Arguments
from onnxjson_tui.widgets.lines import TextRows

_NAMED: Final = 20  # changes of a row that are named


class Result(NamedTuple):
    """What the user did with two models."""

    compared: Compared  # their difference now
    changed: dict[int, Changed]  # by side, the last change of its session
    address: str | None = None  # a node to go to, in the model of `side`
    side: int = 0


class PanesScreen(RowsScreen[Result]):
    """Shows two models locked by their structure; changes are taken from one into the other."""

    KEYS = (
        screen_key(
            ("d o",), "take the change of the other model", lambda screen, _: screen.change(screen.active), "take"
        ),
        screen_key(
            ("d p",), "put the change into the other", lambda screen, _: screen.change(1 - screen.active), "put"
        ),
        *CHANGE_KEYS,
        screen_key(("tab", "h", "l", "left", "right"), "the other model", "_turn", "other side"),
        screen_key(("u",), "undo the last step", lambda screen, _: screen.repeat("undone"), "undo"),
        screen_key(("ctrl+r", "U"), "redo a step", lambda screen, _: screen.repeat("redone")),
        screen_key(("ctrl+s",), "save the changed models", "_save", "save"),
        screen_key(
            (".",),
            "hide what changes no result, or show it",
            lambda screen, _: screen.show_quiet(shown=not screen.quiet),
        ),
        screen_key(("enter", "o"), "go to the node in the workbench", "_go_to"),
        *FIRST_AND_LAST,
        screen_key(("q", "escape", "ctrl+c"), "leave", "_leave", "back"),
        HELP,
    )

    def __init__(
        self, compared: Compared, compare: Callable[[Side, Side], Compared], terminal: Terminal, *, active: int = 1
    ) -> None:
        """Show a difference, which `compare` finds again after changes; `active` is the active side, 0 for the base."""
        super().__init__(terminal)
        self.compared = compared
        self.active = active
        self._compare = compare
        self._known: Panes | None = None
        self._is_folded = True
        self.quiet = not any(EFFECTS[event.kind] != "quiet" for event in compared.events)
        """Whether changes without effect on results count as changes."""
        self._steps: list[int] = []  # the side of each step that was made here
        self._undone: list[int] = []
        self._changed: dict[int, Changed] = {}

    @property
    def sides(self) -> tuple[Side, Side]:
        """The two models."""
        return self.compared.base, self.compared.target

    @property
    def panes(self) -> PaneRows | None:
        """The rows; None until they are known."""
        return self.rows.rows if isinstance(self.rows.rows, PaneRows) else None

    @property
    def row(self) -> PaneRow | None:
        """The row under the cursor."""
        found = self.panes
        return found.rows[self.rows.cursor] if found is not None and self.rows.cursor < len(found) else None

    def on_mount(self) -> None:
        """Keep edits of both models when the program is ended, and align the rows."""
        known = program(self.app).sessions
        known += [each.session for each in self.sides if each.session is not None and each.session not in known]
        self._align(first=True)

    def _align(self, *, first: bool = False) -> None:
        compared = self.compared

        def aligned(panes: Panes) -> None:
            self._known = panes
            self.fold(folded=self._is_folded, first=first)
            self.infer_types(panes.nodes, lambda: [(side.model, side.path) for side in self.sides])

        work = partial(Panes.of, _diff(compared))
        self.jobs.start("panes", "aligning both models", work, aligned, holds_keys=True)

    def fold(self, *, folded: bool, first: bool = False) -> None:
        """Fold equal rows, or show them, with the cursor on the same row, or on the first change."""
        row, self._is_folded, known, quiet = self.row, folded, self._known, self.quiet
        if known is None:
            return

        def made(rows: PaneRows) -> None:
            same = rows.rows.index(row) if row is not None and row in rows.rows else None
            self.rows.show(rows, rows.first if first else same)
            self.call_after_refresh(self.show_details)

        work = partial(PaneRows, known, folded=folded, quiet=quiet)
        self.jobs.start("fold", "folding rows", work, made, holds_keys=True)

    def show_quiet(self, *, shown: bool) -> None:
        """Count changes without effect on results as changes, or as equal rows."""
        self.quiet = shown
        self.say("changes without effect on results are shown" if shown else "changes of results only")
        self.fold(folded=self._is_folded)

    # What is shown

    def title_line(self) -> tuple[Line, str]:
        """Return both names above their panes; that of the active model is in brackets."""
        half = (self.size.width - 3) // 2
        spans = []
        ends = [side.name.rpartition("/")[2] for side in self.sides]
        for number, side in enumerate(self.sides):
            mark = " *" if side.session is not None and side.session.is_changed else ""
            name = side.name if ends[0] == ends[1] else ends[number]
            name = shortened_name(visible(name, 500), max(half - len(mark) - 3, 8))
            is_active = number == self.active
            text = f"[{name}]" if is_active else f" {name} "
            spans += [Span(text, "title" if is_active else "quiet"), Span(mark, "changed")]
            if not number:
                spans.append(Span(" " * max(half + 3 - cells(text + mark), 1)))
        return tuple(spans), ""

    def show_details(self) -> None:
        """Show the changes of the row under the cursor, and its lines that differ."""
        self.draw_bars()
        panes, row, width = self.panes, self.row, max(self.about.size.width - 1, 20)
        if panes is None or row is None or not row.places:
            events = self.compared.events
            hidden = [] if self.quiet else [each for each in events if EFFECTS[each.kind] == "quiet"]
            more = f"; . shows {len(hidden):,} without effect on results" if hidden else ""
            text = "" if panes is None else f"{counted(len(panes.starts), 'change')}{more}"
            self.about.show(TextRows([(Span(text, "quiet"),)]), 0)
            return
        heads: list[Line] = []
        for event, member in panes.members(row)[:_NAMED]:
            text = f"{event.kind}  {visible(event.pattern, 1000)}  {place_of(member)}"
            heads.append((Span(clipped(text, width), "title"),))
        if len(row.places) > _NAMED:
            heads.append((Span(f"and {len(row.places) - _NAMED:,} more; zR shows each", "quiet"),))
        base, target = panes.addresses(row)
        models = self.compared.base.model, self.compared.target.model

        def read() -> list[Pair]:
            pairs = pair_lines(text_of(models[0], base), text_of(models[1], target))
            return [pair for pair in pairs if pair.mark != " "]

        def show(pairs: list[Pair]) -> None:
            self.about.show(TextRows([*heads, *side_by_side_lines(pairs, width)]), 0)

        # The digest of a tensor of gigabytes takes seconds.
        self.jobs.start("text", "reading both sides", read, show)

    def _turn(self, arguments: Arguments) -> None:
        self.active = 1 - self.active
        self.draw_bars()

    # Changes

    def change(self, into: int) -> None:
        """Take the change under the cursor into the model of a side."""
        panes, row, side, other = self.panes, self.row, self.sides[into], self.sides[1 - into]
        if panes is None or row is None or not row.places:
            self.say("there is no change in this row; } goes to the next one")
            return
        session = self._session(into)
        if session.model is not side.model or panes.diff is not self.compared.diff:
            self.say("the rows are from before the last change; leave, and compare again", "changed")
            return
        event, _ = panes.members(row)[0]
        title = f"take {event.kind} {visible(event.pattern, 100)} from {visible(other.name, 100)}"
        diff, places = _diff(self.compared), row.places

        def make() -> tuple[Preview, int]:
            model, taken = Taking(diff, into).take(places)
            require_weights(side, other, model)
            preview = session.preview_model(session.with_types(model), title)
            assert preview.to_saved is not None
            return preview, len(taken) - len(places)

        def made(result: tuple[Preview, int]) -> None:
            preview, more = result
            changed = session.accept(preview)
            if changed is None:
                self.say("nothing changes", "changed")
                return
            self._steps.append(into)
            self._undone.clear()
            needed = f", with {counted(more, 'change')} that it needs" if more else ""
            self._follow(into, changed, f"{title}{needed}")

        self.jobs.start("edit", f"changing {visible(side.name, 200)}", make, made, holds_keys=True)

    def _session(self, number: int) -> Session:
        side = self.sides[number]
        if side.session is None:
            raise AccessDeniedError(f"{visible(side.name, 200)} cannot be changed; tab, then d o changes the other one")
        return side.session

    def _follow(self, number: int, changed: Changed, message: str) -> None:
        """Compare again after a change of one side."""
        self._changed[number] = changed
        self.say(message, "good")
        sides = list(self.sides)
        session = self._session(number)
        sides[number] = sides[number]._replace(model=session.model)
        base, target = sides

        def found(result: Compared) -> None:
            self.compared = result
            self._align()

        self.jobs.start("compare", "comparing again", lambda: self._compare(base, target), found, holds_keys=True)

    def repeat(self, word: Literal["undone", "redone"]) -> None:
        """Undo or redo a step that was made here."""
        done, others = (self._steps, self._undone) if word == "undone" else (self._undone, self._steps)
        if not done:
            self.say("there is no step of these panes left")
            return
        session = self._session(done[-1])
        changed = session.undo() if word == "undone" else session.redo()
        others.append(done.pop())
        if changed is not None:
            self._follow(others[-1], changed, f"{word}: {changed.step.title}")

    async def _save(self, arguments: Arguments) -> None:
        await self._save_all()

    async def _save_all(self) -> bool:
        changed = [each.session for each in self.sides if each.session is not None and each.session.is_changed]
        if not changed:
            self.say("there are no changes to save")
        for session in changed:
            answer = await self.jobs.awaited("save", "saving", session.save, holds_keys=False)
            if answer.kind != "saved":
                self.say(f"not saved: {answer.message}", "bad")
                return False
            self.say(f"saved {answer.path}", "good")
        return True

    async def _go_to(self, arguments: Arguments) -> None:
        found, row = self.panes, self.row
        addresses = () if found is None or row is None else found.addresses(row)[self.active]
        if addresses:
            await self._end(addresses[0])

    async def _leave(self, arguments: Arguments) -> None:
        await self._end(None)

    async def _end(self, address: str | None) -> None:
        sessions = [each.session for each in self.sides if each.session is not None and each.ends]
        unsaved = [each for each in sessions if each.is_changed]
        if unsaved:
            names = " and ".join([visible(each.opened.name, 60) for each in unsaved])
            answers = [("s", "stay", "stay"), ("w", "save", "save"), ("D", "discard the changes", "discard")]
            answer = await self.confirm(f"{names}: changes are not saved", answers)
            if answer == "stay" or (answer == "save" and not await self._save_all()):
                return
            for session in unsaved if answer == "discard" else ():
                while session.is_changed and session.undo() is not None:
                    pass
            if answer == "discard":
                base, target = [
                    each if each.session is None else each._replace(model=each.session.model) for each in self.sides
                ]
                self.compared = await self.jobs.run("compare", "comparing again", lambda: self._compare(base, target))
        self.dismiss(Result(self.compared, self._changed, address, self.active))


def _diff(compared: Compared) -> Diff:
    if compared.diff is None:
        raise OnnxJsonError("the two models were not compared node by node")
    return compared.diff


def require_weights(side: Side, other: Side, model: Model) -> None:
    """Refuse a model with a change of the other one that needs weights in files next to that one.

    Raises:
        EditError: its own folder does not have them.
    """
    folders = [None if each.path is None else each.path.resolve().parent for each in (side, other)]
    known = {each.external_data for each in tensors_of(side.model)}
    needed = [each for each in tensors_of(model) if is_external(each) and each.external_data not in known]
    if needed and folders[0] != folders[1]:
        name = visible(needed[0].name or "a constant", 100)
        raise EditError(f"{name} of this change is in an external file of the other model; convert --internalize first")
