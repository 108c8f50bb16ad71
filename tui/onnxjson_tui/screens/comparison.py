"""The diff of two models: of a session and the saved file, another file, a revision, or the output of a pass."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, cast

from onnxjson.model.display import counted, visible
from onnxjson.rendering.tables import Line, Span, cells, plain, shortened
from onnxjson_tui.rows.difference import Compared, Side, compared, compared_edits, of_diff, opened_side
from onnxjson_tui.screens.difference_view import DIFFERENCE_KEYS, DifferenceScreen
from onnxjson_tui.session.opening import Unreadable
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, screen_key
from onnxjson_tui.shell.terminal import Terminal, opened, program
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.widgets.lines import TextRows

WhichSide = Literal["base", "target"]

FORMS = {".md": "markdown", ".json": "json", ".html": "html", ".htm": "html"}
"""Forms of a report by file extension; text for all others."""


class ComparisonScreen(DifferenceScreen):
    """Computes and shows a diff; returns an address to go to in the workbench, or None."""

    KEYS = (
        screen_key(("a",), "apply the result of the pass as one step", "_accept", "apply"),
        screen_key(("v",), "both models side by side, to take single changes", "_show_panes", "side by side"),
        screen_key(("q", "escape", "ctrl+c"), "leave", "_leave", "back"),
        HELP,
        *DIFFERENCE_KEYS,
        screen_key(("ctrl+e",), "write to a file: text, Markdown, JSON or HTML", "_export", "export"),
        screen_key(("p",), "run both sides of every rewrite", "_prove", "prove"),
        *FIRST_AND_LAST,
    )

    def __init__(
        self,
        doing: str,
        work: Callable[[], Compared],
        terminal: Terminal,
        *,
        bench: Bench | None = None,
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
        self._bench, self._side, self._stop, self._apply = bench, side, stop, accept
        self._compare = compare

    def on_mount(self) -> None:
        """Start the work."""
        self.jobs.start("compare", self._doing, self._work, self._found, self.refuse)
        self.rows.show(TextRows([(Span(f" {visible(self._doing, 500)} ...   esc cancels", "changed"),)]))

    def _found(self, found: Compared) -> None:
        self.can_prove = found.diff is not None
        self.show(found)

    def title_line(self) -> tuple[Line, str]:
        """Return both names."""
        found = self.compared
        if found is None:
            doing = shortened(visible(self._doing, 500), max(self.size.width - 2, 20))
            return (Span(f" {doing}", "title"),), ""
        base, target = (visible(side.name, 500) for side in (found.base, found.target))
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
        if key.id == "_accept":
            return self.compared is not None and self._apply is not None and not self.compared.equal
        return self.compared is not None or key.id == "_leave" or key is HELP

    def refuse(self, error: BaseException) -> None:
        """Show an error in the list, and how to leave."""
        super().refuse(error)
        self.say("q leaves", "plain")

    # Keys

    def _leave(self, arguments: Arguments) -> None:
        if self.about.has_focus:
            self.rows.focus()
            return
        self._end(None)

    def _end(self, address: str | None) -> None:
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
        mine = 0 if self._side == "base" else 1
        result = await self.app.push_screen_wait(PanesScreen(self.compared, self._compare, self.terminal, mine=mine))
        if result.compared is not self.compared:
            self.show(result.compared)
        bench, changed = self._bench, result.changed.get(mine)
        if bench is not None and changed is not None:
            bench.changed(changed._replace(is_restructured=True))
        if result.address is not None and bench is not None and result.side == mine:
            self._end(result.address)
        elif result.address is not None:
            self._open((self.compared.base, self.compared.target)[result.side].name, result.address)

    def _go_to(self, arguments: Arguments) -> None:
        found = self.at_cursor()
        if found is None or self.compared is None:
            return
        _, member = found
        addresses = member.target if self._side == "target" else member.base
        if not addresses:
            self._shows_text = True
            self.show_details()
            self.say("it was removed; this is its former text" if self._side == "target" else "it is new")
        elif self._bench is not None:
            self._end(addresses[0])
        else:
            self._open(self.compared.target.name, addresses[0])

    def _open(self, name: str, address: str) -> None:
        """Open the target in a workbench."""

        def shown(found: Session | Unreadable) -> None:
            screen = program(self.app).screen_for(found, readonly=False)
            self.app.push_screen(screen)
            if isinstance(found, Session):
                bench = cast(Bench, screen)
                bench.call_after_refresh(bench.go, address)

        self.jobs.start("open", f"opening {visible(name)}", lambda: opened(name, readonly=False), shown)

    def _accept(self, arguments: Arguments) -> None:
        if self._apply is None or (self.compared is not None and self.compared.equal):
            self.say("there is nothing to apply here", "changed")
        elif self.compared is not None:
            accept, found = self._apply, self.compared
            self._end(None)
            accept(found)

    def _prove(self, arguments: Arguments) -> None:
        now = self.compared
        if now is None or now.diff is None:
            self.say("there is no rewrite to run", "changed")
            return
        diff, base, target, notes = now.diff, now.base, now.target, now.notes

        def work() -> Compared:
            from onnxjson.running.proof import prove

            return of_diff(prove(diff), base, target, notes)

        def proved(found: Compared) -> None:
            row, shown = self.row, self.shown
            self.compared, self.shown = found, shown
            self.build(row.event if row is not None else -1, row.member if row is not None else -1)
            ran = [event for event in found.events if event.verdict not in (None, "not-run")]
            different = sum(event.verdict == "different" for event in ran)
            if different:
                self.say(f"{different:,} of {counted(len(ran), 'rewrite')} changed results", "bad")
            else:
                self.say(f"{counted(len(ran), 'rewrite')} verified equal", "good" if ran else "changed")

        self.jobs.start("prove", "running both sides of the rewrites", work, proved)

    async def _export(self, arguments: Arguments) -> None:
        found = self.compared
        if found is None or found.report is None:
            self.say("there is nothing to write yet", "changed")
            return
        name = await self.ask("write to (.txt .md .json .html) ")
        if name is None or not name.strip():
            return
        path = Path(name.strip())
        if path.exists() and not await self.confirm_replacing([visible(str(path), None)]):
            return

        def done(length: int) -> None:
            self.say(f"wrote {path}, {length:,} bytes", "good")

        self.jobs.start("export", f"writing {path}", lambda: write_difference(found, path), done)


def write_difference(found: Compared, path: Path) -> int:
    """Write a diff to a file in the form of its extension; return the number of bytes.

    Raises:
        OutputError, AccessDeniedError, FileError: it cannot be written.
    """
    from onnxjson.storage.saving import save_file

    text = difference_text(found, FORMS.get(path.suffix.lower(), "text")).encode()
    save_file(path, lambda sink: sink.write(text))
    return len(text)


def difference_text(found: Compared, form: str) -> str:
    """Return a diff as Markdown, JSON, HTML, or text with all places."""
    assert found.report is not None
    match form:
        case "markdown":
            from onnxjson.rendering.markdown_reports import diff_markdown

            return diff_markdown(found.report)
        case "json":
            from onnxjson.rendering.reports import diff_json

            return "".join(diff_json(found.report))
        case "html":
            from onnxjson.rendering.diff_html import diff_html

            return "".join(diff_html(found.report))
    from onnxjson.rendering.diff_text import diff_lines

    return "".join([f"{plain(line).rstrip()}\n" for line in diff_lines(found.report, 100, details=True)])


def comparison_of_files(base: str, target: str, terminal: Terminal) -> ComparisonScreen:
    """Return the screen that reads and compares two models, each a file or ``REV:path``."""
    resources = ExitStack()

    def work() -> Compared:
        return compared(opened_side(base, resources), opened_side(target, resources))

    return ComparisonScreen(f"comparing {base} and {target}", work, terminal)


def comparison_with(bench: Bench, other: str) -> ComparisonScreen:
    """Return the screen that compares the session with another model, a file or ``REV:path``."""
    session, resources = bench.session, ExitStack()
    mine = Side(session.opened.name, session.model, session.opened.path, session=session)

    def work() -> Compared:
        side = opened_side(other, resources)
        is_same = side.session is not None and side.session.opened.key == session.opened.key
        return compared(side._replace(session=None) if is_same else side, mine)

    return ComparisonScreen(f"comparing {other} and {mine.name}", work, bench.terminal, bench=bench)


def comparison_unsaved(bench: Bench) -> ComparisonScreen:
    """Return the screen of changes since the model was opened or saved."""
    preview, path = bench.session.unsaved(), bench.session.opened.path
    name = bench.session.opened.name
    base = Side(f"{name} as saved", preview.base, path)
    target = Side("current", preview.model, path, session=bench.session)
    doing, work = "comparing with the saved model", lambda: compared_edits(base, target)
    return ComparisonScreen(doing, work, bench.terminal, bench=bench, compare=compared_edits)
