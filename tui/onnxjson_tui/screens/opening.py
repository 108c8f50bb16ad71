"""Open a model: the dialog that asks for a file, the start screen, and the errors of a file that is not a model."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from textual import events, getters
from textual.app import ComposeResult
from textual.widgets import Input

from onnxjson.model.display import counted, visible
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.rendering.tables import Line, Span, cells, clipped, shortened, size, wrapped
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.session.opening import Unreadable, expanded, path_members, recent_files
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell import terminal
from onnxjson_tui.shell.dialogs import PickerScreen
from onnxjson_tui.shell.jobs import Jobs, error_text
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, KeyedScreen, screen_key
from onnxjson_tui.shell.terminal import Terminal, enter, failure_text, opened
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.widgets.lines import LineList, TextRows

_RECENT: Final = 8  # recent files that are offered
_AROUND: Final = 3  # lines of text before and after a finding
_MOST_READ: Final = 64 * 2**20  # size in bytes of a text up to which the lines around a finding are shown


def offers(typed: str, folder: Path) -> list[Choice]:
    """Return what completes a path: recent files, then the members of a folder, of `folder` for an empty text."""
    wanted = typed.lower()
    choices: list[Choice] = []
    for path in recent_files():
        short = _short(path)
        if wanted in short.lower() and len(choices) < _RECENT:
            choices.append(_choice(short, f"recent  {_size(path)}"))
    prefix = "" if "/" in typed else _prefix(folder)
    members = path_members(prefix + typed, Path())
    if not typed or typed.endswith("/"):
        choices.append(_choice(f"{prefix}{typed}../", "folder above"))
    known = {each.key for each in choices}
    for path_text, each in members:
        if path_text not in known:
            choices.append(_choice(path_text, "folder" if each.is_folder else size(each.size)))
    return choices


def _choice(path: str, detail: str) -> Choice:
    """Return a file, or a folder, whose path ends with a slash, as the user would type it."""
    return Choice(path, visible(path, None), detail)


def _short(path: Path) -> str:
    """Return a path relative to the current folder or the home folder if it is inside, else the whole path."""
    text = str(path)
    for start, word in ((f"{Path.cwd()}/", ""), (f"{os.path.expanduser('~')}/", "~/")):
        if text.startswith(start) and start != "/":
            return word + text[len(start) :]
    return text


def _prefix(folder: Path) -> str:
    if folder.resolve() == Path.cwd():
        return ""
    short = _short(folder.resolve())
    return short if short.endswith("/") else f"{short}/"


def _size(path: Path) -> str:
    try:
        return size(path.stat().st_size)
    except OSError:
        return ""


class OpeningScreen(PickerScreen):
    """Asks for a file; returns the typed or chosen path, or None."""

    def __init__(self, folder: Path | None = None, *, typed: str = "", message: str = "") -> None:
        """Prepare the question; `folder` is offered first, `message` is the reason why it is asked again."""
        hint = "enter open   tab complete   arrows choose   esc cancel"
        super().__init__("Open a model: .onnx, .onnx.json, or REV:path", (), typed=typed, hint=hint, is_wide=True)
        self._folder = folder or Path.cwd()
        self._message = message

    @cached_property
    def _jobs(self) -> Jobs:
        return Jobs(self, self._failed, lambda: None)

    def _failed(self, error: BaseException) -> None:
        self._message = failure_text(self.app, error)
        self._show(())

    def _find(self, typed: str) -> None:
        if typed != self._typed:
            self._typed, self._message = typed, ""
        folder = self._folder
        self._jobs.start("folder", "reading the folder", lambda: offers(typed, folder), self._show)

    def _show(self, found: Sequence[Choice]) -> None:
        super()._show(found)
        message = Span(visible(self._message, 500), "bad") if self._message else Span(self._hint, "quiet")
        self.show_hint(message)

    def _submit(self, typed: str) -> None:
        """Open the typed file if it exists, else the row under the cursor."""
        typed, cursor = typed.strip(), self.query_one(LineList).cursor
        if typed and (expanded(typed).is_file() or self.choice_at(cursor) is None):
            self.dismiss(typed)
        else:
            self._choose(cursor)

    def _choose(self, number: int) -> None:
        choice = self.choice_at(number)
        if choice is not None and choice.key.endswith("/"):
            self._complete()
        else:
            super()._choose(number)

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Complete, cancel."""
        return {**super().keys(), "tab": self._complete, "ctrl+q": partial(self.dismiss, None)}

    def _complete(self) -> None:
        choice = self.choice_at(self.query_one(LineList).cursor)
        if choice is not None:
            field = self.query_one(Input)
            field.value = choice.key
            field.cursor_position = len(choice.key)


class StartScreen(KeyedScreen[int]):
    """The program without a model: asks for one until it is open, or the user leaves."""

    def __init__(self, terminal: Terminal, *, readonly: bool) -> None:
        super().__init__(terminal)
        self._readonly = readonly

    def title_line(self) -> tuple[Line, str]:
        """Return the name of the program."""
        return (Span(" onnxjson", "title"),), ""

    def on_mount(self) -> None:
        """Ask for a model."""
        self.begin(self._ask())

    async def _ask(self) -> None:
        name, message = "", ""
        while True:
            answer = await self.app.push_screen_wait(OpeningScreen(typed=name, message=message))
            if answer is None:
                self.app.exit(0)
                return
            name = answer
            try:
                opened_model = await self.jobs.awaited(
                    "open", "opening", partial(opened, name, readonly=self._readonly)
                )
            except (OnnxJsonError, OSError) as error:
                message = error_text(error)
                continue
            enter(self.app, opened_model, readonly=self._readonly)
            return


class FindingRows:
    """Rows of findings: place, severity, message."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings

    def __len__(self) -> int:
        return len(self._findings)

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        finding = self._findings[number]
        place = f"{finding.line:>6}:{finding.column:<4}" if finding.line else ""
        text = f"{finding.severity}: {finding.message}"
        return Span(f"{place} ", "title"), Span(shortened(visible(text, None), max(width - cells(place) - 1, 10)))


def text_around(text: bytes, finding: Finding, width: int) -> list[Line]:
    """Return the lines around a finding, with a mark under its column, and its hint."""
    lines = text.split(b"\n")
    first = max(finding.line - 1 - _AROUND, 0)
    shown_lines: list[Line] = []
    for number in range(first, min(finding.line + _AROUND, len(lines))):
        is_here = number == finding.line - 1
        shown, column = _part(lines[number].decode("utf-8", "replace"), finding.column if is_here else 1, width - 8)
        shown_lines.append((Span(f"{number + 1:>6}  ", "title" if is_here else "quiet"), Span(shown)))
        if is_here:
            shown_lines.append((Span(" " * (8 + column) + "^", "bad"),))
    return [*shown_lines, *explained(finding, width)]


def explained(finding: Finding, width: int) -> list[Line]:
    """Return the unabridged message of a finding, and its hint."""
    lines: list[Line] = [(Span(each, "bad"),) for each in wrapped(finding.message, width - 2, indent=1)]
    lines += [(Span(each, "good"),) for each in wrapped(finding.hint, width - 2, indent=1)]
    return lines


def _part(line: str, column: int, width: int) -> tuple[str, int]:
    """Return the part of a line around a column (from 1), and the position of the column in it."""
    start = max(column - 1 - width // 2, 0) if len(line) > width else 0
    before = visible(line[start : column - 1], None)
    shown = visible(line[start : start + 2 * width], None)
    mark = "…" if start else ""
    return clipped(mark + shown, width), cells(mark + before)


class FindingsScreen(KeyedScreen[int]):
    """A file that is not a valid model: its errors, and the text around one.

    E opens an editor at the place of an error, after which the file is read again.
    """

    AUTO_FOCUS = "#findings"
    KEYS = (
        screen_key(("E", "e", "enter"), "open the file in $EDITOR at the error", "_edit", "editor"),
        screen_key(("r",), "read the file again", "_read_again", "read again"),
        screen_key(("ctrl+l", "o"), "open another file", "_open_other", "open another"),
        screen_key(("ctrl+z",), "return to the shell until fg", lambda screen, _: screen.app.action_suspend_process()),
        screen_key(("q", "ctrl+q"), "leave", "_leave", "leave"),
        HELP,
        *FIRST_AND_LAST,
    )

    def __init__(self, unreadable: Unreadable, terminal: Terminal, *, readonly: bool) -> None:
        super().__init__(terminal)
        self._unreadable = unreadable
        self._readonly = readonly
        self._text = b""
        self._rows: Sequence[Finding] = ()

    def body(self) -> ComposeResult:
        """Findings, text around one."""
        yield LineList(id="findings")
        yield LineList(id="around", has_cursor=False)

    def on_mount(self) -> None:
        """Show the findings."""
        self._show(self._unreadable)

    def title_line(self) -> tuple[Line, str]:
        """Return the file, and the number of its errors."""
        errors = counted(sum(each.severity == "error" for each in self._rows), "error")
        title = f" {shortened(self._unreadable.name, max(self.app.size.width - 32, 20))}"
        return (Span(title, "title"), Span("  is not a model", "bad")), f"{errors} "

    def offered(self, key: Action[Any]) -> bool:
        """Return whether a key does something: only a text that may be changed can be edited."""
        return key.id != "_edit" or (self._unreadable.is_text and not self._readonly)

    findings = getters.query_one("#findings", LineList)  # the list of findings

    def _show(self, unreadable: Unreadable) -> None:
        self._unreadable = unreadable
        listed = sorted(unreadable.findings, key=lambda each: (each.severity != "error", each.line, each.column))
        self._rows = listed or [Finding(severity="error", code="unreadable", message=unreadable.message)]
        self._text = b""
        if unreadable.is_text:
            with suppress(OSError), unreadable.path.open("rb") as file:
                self._text = file.read(_MOST_READ)
        self.findings.show(FindingRows(self._rows), 0)
        self._show_place()
        self.draw_bars()

    def _show_place(self) -> None:
        finding = self._rows[self.findings.cursor]
        width = max(self.size.width - 2, 40)
        if finding.line and self._text:
            around = text_around(self._text, finding, width)
        else:
            around = explained(finding, width)
        self.query_one("#around", LineList).show(TextRows(around))

    def on_resize(self, event: events.Resize) -> None:
        """Show the part of a line that fits the new width."""
        if self._rows:
            self._show_place()

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show the text around another finding."""
        if event.lines is self.findings:
            self._show_place()

    # Keys

    def _leave(self, arguments: Arguments) -> None:
        self.app.exit(self._unreadable.exit_code)

    async def _edit(self, arguments: Arguments) -> None:
        if not self._unreadable.is_text:
            self.say(f"a binary file of {size(self._unreadable.path.stat().st_size)} cannot be edited as text", "bad")
        elif self._readonly:
            self.say("the file is open read-only; start without --readonly to change it", "bad")
        else:
            finding = self._rows[self.findings.cursor]
            place = (finding.line, finding.column) if finding.line else None
            terminal.edit_file(self.app, self._unreadable.path, place)
            await self._read_again(arguments)

    async def _read_again(self, arguments: Arguments) -> None:
        opened_model = await self._read(str(self._unreadable.path))
        if isinstance(opened_model, Unreadable):
            self._show(opened_model)
        else:
            enter(self.app, opened_model, readonly=self._readonly)

    async def _open_other(self, arguments: Arguments) -> None:
        name = await self.app.push_screen_wait(OpeningScreen(self._unreadable.path.parent))
        if name is not None:
            enter(self.app, await self._read(name), readonly=self._readonly)

    async def _read(self, name: str) -> Session | Unreadable:
        return await self.jobs.awaited("open", "reading", partial(opened, name, readonly=self._readonly))
