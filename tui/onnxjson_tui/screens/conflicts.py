"""The conflicts of a merge: above, a list or the models side by side; below, the sides of one conflict."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from onnxjson.merging.conflicted_files import ResolutionSession, ShownConflict
from onnxjson.model.addresses import Choice
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.rendering.tables import Line, Span, cells, shortened
from onnxjson_tui.rows.merge_panes import MergePanes, MergeRows, column_width
from onnxjson_tui.rows.side_texts import ConflictRows, alike_key, conflict_title, place_rows
from onnxjson_tui.screens.rows_screen import CHANGE_KEYS, RowsScreen
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, OTHER_LIST, screen_key
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Arguments
from onnxjson_tui.widgets.lines import TextRows


class ConflictsScreen(RowsScreen[None]):
    """Resolves conflicts; leaving it ends the program."""

    KEYS = (
        screen_key(("b",), "choose the base; also 1", lambda screen, _: screen.choose_side("base"), "base"),
        screen_key(("o",), "choose ours; also 2", lambda screen, _: screen.choose_side("ours"), "ours"),
        screen_key(("t",), "choose theirs; also 3", lambda screen, _: screen.choose_side("theirs"), "theirs"),
        screen_key(("O",), "ours for all conflicts of this kind", lambda screen, _: screen.choose_alike("ours")),
        screen_key(("T",), "theirs for all conflicts of this kind", lambda screen, _: screen.choose_alike("theirs")),
        screen_key(("u",), "undo the last choice", "_undo", "undo"),
        screen_key(("x", "delete"), "undo the choice for this conflict", "_forget"),
        screen_key(("n",), "next unresolved conflict", lambda screen, _: screen.to_change(1), "next"),
        screen_key(("N",), "previous unresolved conflict", lambda screen, _: screen.to_change(-1)),
        screen_key(("v",), "show the base and both sides next to each other, or the list", "_turn", "side by side"),
        *CHANGE_KEYS,
        OTHER_LIST,
        screen_key(("w", "ctrl+s"), "save", "_save", "save"),
        *FIRST_AND_LAST,
        screen_key(("q", "escape", "ctrl+c"), "leave", "_leave", "leave"),
        HELP,
    )
    SAME_KEYS: ClassVar = {"1": "b", "2": "o", "3": "t"}

    def __init__(self, resolution: ResolutionSession, terminal: Terminal) -> None:
        super().__init__(terminal)
        self.resolution = resolution
        self._order: list[str] = []  # ids of resolved conflicts, in the order of the choices
        self._list = ConflictRows(resolution)
        self._panes: MergePanes | None = None

    def on_mount(self) -> None:
        """Show the first conflict."""
        self.rows.show(self._list)
        self._show(self._list)
        self.call_after_refresh(self.show_details)

    @property
    def conflict_rows(self) -> ConflictRows | MergeRows:
        """The list of conflicts, or the rows of the models."""
        rows = self.rows.rows
        assert isinstance(rows, ConflictRows | MergeRows)
        return rows

    @property
    def starts(self) -> Sequence[int]:
        """The rows of unresolved conflicts."""
        conflicts, choices = self.resolution.conflicts, self.resolution.choices
        return sorted(
            {self.conflict_rows.row_of(each) for each in self.conflict_rows.order if conflicts[each].id not in choices}
        )

    @property
    def here(self) -> ShownConflict | None:
        """The conflict under the cursor."""
        number = self.conflict_rows.conflict_at(self.rows.cursor)
        return None if number is None else self.resolution.conflicts[number]

    def _show(self, rows: ConflictRows | MergeRows) -> None:
        """Replace the upper rows; the cursor stays on the same conflict."""
        conflict = self.conflict_rows.conflict_at(self.rows.cursor)
        part = 2 if isinstance(rows, ConflictRows) else 3
        self.rows.styles.height = min(len(rows), max(self.app.size.height * part // 5, 3)) + 1
        self.rows.show(rows, rows.row_of(conflict if conflict is not None else next(iter(rows.order), 0)))
        self.draw_bars()
        self.show_details()

    def _turn(self, arguments: Arguments) -> None:
        if isinstance(self.rows.rows, MergeRows):
            self._show(self._list)
        elif self._panes is not None:
            self.fold(folded=True)
        else:
            work = partial(MergePanes.of, self.resolution)

            def aligned(panes: MergePanes) -> None:
                self._panes = panes
                self.fold(folded=True)
                self.infer_types(panes.nodes, self._models)

            self.jobs.start("panes", "aligning the models", work, aligned, holds_keys=True)

    def _models(self) -> list[tuple[Model | None, Path]]:
        models, _ = self.resolution.sides()
        return [(models.get(side), self.resolution.path) for side in ("base", "ours", "theirs")]

    def fold(self, *, folded: bool) -> None:
        """Show the models side by side, with equal rows folded or not."""
        if self._panes is None:
            self.say("v shows the models side by side")
            return
        self._show(MergeRows(self._panes, self.resolution, folded=folded))

    def show_details(self) -> None:
        """Show the three sides of the conflict under the cursor."""
        conflict = self.here
        if not self.is_mounted:
            return
        width = max(self.about.size.width - 1, 20)
        if conflict is None:
            self.about.show(TextRows([(Span("no conflict in this row; n goes to the next one", "quiet"),)]), 0)
        else:
            self.about.show(TextRows(place_rows(conflict, self.resolution.choices.get(conflict.id), width)), 0)

    def title_line(self) -> tuple[Line, str]:
        """Return the file, and the number of unresolved conflicts."""
        resolution = self.resolution
        left = resolution.remaining
        text = f"{counted(left, 'conflict')} of {len(resolution.conflicts):,} left" if left else "no conflict is left"
        path, changed = visible(str(resolution.path), 1000), Span(" *" if resolution.is_changed else "", "changed")
        if isinstance(self.rows.rows, MergeRows):
            column = column_width(self.size.width - 1)
            ours = Span(f"{'ours':<{column}} ", "title")
            name = shortened(f"base of {path}", column - len(changed.text))
            return (
                Span(f"  {name}", "title"),
                changed,
                Span(" " * (column + 1 - cells(name + changed.text))),
                ours,
                Span("theirs", "title"),
            ), f"{left:,} of {len(resolution.conflicts):,} left "
        name = shortened(path, max(self.size.width - len(text) - 6, 10))
        return (Span(f" {name}", "title"), changed), f"{text} "

    # Keys

    def choose_side(self, choice: Choice) -> None:
        """Resolve the conflict under the cursor, and go to the next one."""
        conflict = self.here
        if conflict is None:
            return
        try:
            self.resolution.choose(conflict.id, choice)
        except OnnxJsonError as error:
            self.failed(error)
            return
        self._order = [*[each for each in self._order if each != conflict.id], conflict.id]
        self._drawn()
        self.say(f"{choice} for {conflict_title(conflict)}", "good")
        now = self.here  # another conflict of the same row
        if self.starts and (now is None or now.id in self.resolution.choices):
            self.to_change(1)

    def choose_alike(self, choice: Choice) -> None:
        """Resolve all open conflicts like the one under the cursor: of the same kind, in nodes of the same operator."""
        conflict = self.here
        if conflict is None:
            return
        kind, choices = alike_key(conflict), self.resolution.choices
        alike = [each for each in self.resolution.conflicts if alike_key(each) == kind and each.id not in choices]
        for each in alike:
            self.resolution.choose(each.id, choice)
            self._order.append(each.id)
        self._drawn()
        self.say(f"{choice} for {counted(len(alike), 'conflict')} like {conflict_title(conflict)}", "good")
        if self.starts:
            self.to_change(1)

    def _undo(self, arguments: Arguments) -> None:
        if not self._order:
            self.say("no choice to undo")
            return
        self._take_back(self._order[-1])

    def _forget(self, arguments: Arguments) -> None:
        here = self.here
        if here is not None and here.id in self.resolution.choices:
            self._take_back(here.id)

    def _take_back(self, key: str) -> None:
        try:
            self.resolution.undo_choice(key)
        except OnnxJsonError as error:
            self.failed(error)
            return
        self._order.remove(key)
        number = next(number for number, each in enumerate(self.resolution.conflicts) if each.id == key)
        self._drawn()
        self.rows.move_to(self.conflict_rows.row_of(number))
        self.say(f"{conflict_title(self.resolution.conflicts[number])} is unresolved again", "changed")

    def _drawn(self) -> None:
        self.rows.refresh()
        self.show_details()

    def to_change(self, count: int) -> None:
        """Move the cursor to the next unresolved conflict, or the previous one, wrapping around at the end."""
        starts, cursor = self.starts, self.rows.cursor
        if not starts:
            self.say("no conflict is left; w saves", "good")
            return
        ahead = [row for row in starts[::count] if (row - cursor) * count > 0]
        self.rows.move_to((ahead or starts[::count])[0])

    async def _save(self, arguments: Arguments) -> None:
        if self.resolution.remaining:
            left = counted(self.resolution.remaining, "conflict")
            question = f"{left} left. The file keeps them, and is not a model until they are resolved."
            if await self.confirm(question, [("s", "stay", "stay"), ("w", "write it with them", "save")]) != "save":
                return
        await self._write()

    async def _write(self, *, then_leave: bool = False) -> None:
        resolution = self.resolution
        # Keys wait, since a choice that is made while the file is written would be missing in it.
        await self.jobs.awaited("save", f"saving {visible(str(resolution.path))}", resolution.save)
        if resolution.errors:
            first = visible(resolution.errors[0].message)
            count = counted(len(resolution.errors), "error")
            self.say(f"saved, with {count}: {first}; the choices contradict each other, u undoes the last", "bad")
            return
        left = f", {counted(resolution.remaining, 'conflict')} left in it" if resolution.remaining else ""
        self.say(f"saved {resolution.path}{left}", "good")
        if then_leave:
            self.app.exit(0)

    async def _leave(self, arguments: Arguments) -> None:
        question, may_save = self._reason_to_stay()
        answer = "leave"
        if question:
            more = [("w", "save and leave", "save")] if may_save else []
            answers = [("s", "stay", "stay"), *more, ("l", "leave without saving", "leave")]
            answer = await self.confirm(question, answers)
        if answer == "leave":
            self.app.exit(0)
        elif answer == "save":
            await self._write(then_leave=True)

    def _reason_to_stay(self) -> tuple[str, bool]:
        """Return what the user would lose by leaving, or "", and whether saving helps."""
        resolution = self.resolution
        left = counted(resolution.remaining, "conflict")
        if not resolution.is_changed:
            if resolution.errors and resolution.is_under_git:
                return "The model has errors: git restores the file.", False
            if resolution.remaining and resolution.is_under_git and resolution.choices:
                return "git restores the file while a conflict is left.", False
            return "", False
        if not resolution.remaining:
            return "All conflicts are resolved, and the file is not saved.", True
        if resolution.is_under_git:
            # Even if saved: git restores the file when the command reports conflicts.
            return f"{left} left: git restores the file and discards the choices.", False
        return f"{left} left, and the choices are not saved.", True
