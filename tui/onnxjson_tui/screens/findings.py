"""A file that is not a valid model: its errors, the text or bytes around each, and keys to fix it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from textual.app import ComposeResult

from onnxjson.model.display import counted, visible
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, clipped, shortened, size, wrapped
from onnxjson_tui.screens.opening import OpeningScreen
from onnxjson_tui.session.opening import Unreadable
from onnxjson_tui.shell import programs
from onnxjson_tui.shell.dialogs import ListScreen
from onnxjson_tui.shell.jobs import Jobs, error_text
from onnxjson_tui.shell.programs import enter, failure_text, opened
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.lines import LineList, TextRows

_AROUND: Final = 3
"""Lines of text, or rows of bytes, before and after a finding."""

_MOST_READ: Final = 64 * 2**20
"""Size in bytes of a text up to which the lines around a finding are shown."""

_ROW: Final = 16
"""Bytes in a row."""


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
    found: list[Line] = []
    for number in range(first, min(finding.line + _AROUND, len(lines))):
        is_here = number == finding.line - 1
        shown, column = _part(lines[number].decode("utf-8", "replace"), finding.column if is_here else 1, width - 8)
        found.append((Span(f"{number + 1:>6}  ", "title" if is_here else "quiet"), Span(shown)))
        if is_here:
            found.append((Span(" " * (8 + column) + "^", "bad"),))
    return [*found, *explained(finding, width)]


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


def bytes_around(path: Path, offset: int) -> list[Line]:
    """Return rows of bytes around an offset, in hexadecimal and as text, with a mark under it.

    Raises:
        OSError: the file cannot be read.
    """
    first = max(offset // _ROW - _AROUND, 0) * _ROW
    with path.open("rb") as file:
        file.seek(first)
        data = file.read((2 * _AROUND + 1) * _ROW)
    found: list[Line] = []
    for start in range(0, len(data), _ROW):
        row = data[start : start + _ROW]
        is_here = first + start <= offset < first + start + _ROW
        shown = "".join(chr(each) if 32 <= each < 127 else "." for each in row)
        found.append(
            (Span(f"{first + start:>12,}  ", "title" if is_here else "quiet"), Span(f"{row.hex(' '):<48} {shown}"))
        )
        if is_here:
            found.append((Span(" " * (14 + 3 * (offset - first - start)) + "^^", "bad"),))
    if offset >= first + len(data):
        found.append((Span(f"{first + len(data):>12,}  the file ends here", "bad"),))
    return found


class FindingsScreen(ListScreen[int]):
    """Shows the errors; E opens an editor at the place of one, after which the file is read again."""

    AUTO_FOCUS = LIST = "#findings"

    def __init__(self, found: Unreadable, *, readonly: bool) -> None:
        super().__init__()
        self._found = found
        self._readonly = readonly
        self._text = b""
        self._rows: Sequence[Finding] = ()

    def compose(self) -> ComposeResult:
        """Title, findings, text around one, footer."""
        yield Bar(id="title")
        yield LineList(id="findings")
        yield LineList(id="around", has_cursor=False)
        yield Bar(id="footer")

    def on_mount(self) -> None:
        """Show the findings."""
        self.jobs = Jobs(self, lambda error: self._say(failure_text(self.app, error), bad=True), lambda: None)
        self._show(self._found)

    @property
    def lines(self) -> LineList:
        """The list of findings."""
        return self.query_one("#findings", LineList)

    def _show(self, found: Unreadable) -> None:
        self._found = found
        listed = sorted(found.findings, key=lambda each: (each.severity != "error", each.line, each.column))
        self._rows = listed or [Finding(severity="error", code="unreadable", message=found.message)]
        self._text = self._read() if found.is_text else b""
        errors = counted(sum(each.severity == "error" for each in self._rows), "error")
        title = f" {shortened(found.name, max(self.app.size.width - 32, 20))}"
        self.query_one("#title", Bar).show((Span(title, "title"), Span("  is not a model", "bad")), f"{errors} ")
        self.lines.show(FindingRows(self._rows), 0)
        self._show_place()
        self._say("")

    def _read(self) -> bytes:
        try:
            with self._found.path.open("rb") as file:
                return file.read(_MOST_READ)
        except OSError:
            return b""

    def _show_place(self) -> None:
        finding = self._rows[self.lines.cursor]
        width = max(self.size.width - 2, 40)
        around: list[Line] = []
        if finding.line and self._text:
            around = text_around(self._text, finding, width)
        else:
            around += explained(finding, width)
            if self._found.offset is not None and not self._found.is_text:
                try:
                    around += bytes_around(self._found.path, self._found.offset)
                except OSError as error:
                    around.append((Span(visible(error_text(error), 500), "bad"),))
        self.query_one("#around", LineList).show(TextRows(around))

    def _say(self, text: str, *, bad: bool = False) -> None:
        keys = "E editor   " if self._found.is_text and not self._readonly else ""
        hint = f" {keys}r read again   ctrl+l open another   q leave"
        self.query_one("#footer", Bar).show(
            (Span(f" {visible(text, 500)}", "bad" if bad else "good"),) if text else (Span(hint, "quiet"),)
        )

    def on_resize(self) -> None:
        """Show the part of a line that fits the new width."""
        if self._rows:
            self._show_place()

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show the text around another finding."""
        if event.lines is self.lines:
            self._show_place()

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Leave, edit, read again, open another file."""
        return {
            **dict.fromkeys(("q", "ctrl+q"), lambda: self.app.exit(self._found.exit_code)),
            **dict.fromkeys(("E", "e", "enter"), self._edit),
            "r": lambda: self.run_worker(self._again(), exit_on_error=False),
            **dict.fromkeys(("ctrl+l", "o"), lambda: self.run_worker(self._open(), exit_on_error=False)),
            "ctrl+z": self.app.action_suspend_process,
        }

    def ignored_key(self) -> None:
        """Show the keys again."""
        self._say("")

    def _edit(self) -> None:
        if not self._found.is_text:
            self._say(f"a binary file of {size(self._found.path.stat().st_size)} cannot be edited as text", bad=True)
            return
        if self._readonly:
            self._say("the file is open read-only; start without --readonly to change it", bad=True)
            return
        finding = self._rows[self.lines.cursor]
        try:
            programs.edit_file(self.app, self._found.path, (finding.line, finding.column) if finding.line else None)
        except OnnxJsonError as error:
            self._say(error_text(error), bad=True)
            return
        self.run_worker(self._again(), exit_on_error=False)

    async def _again(self) -> None:
        name = str(self._found.path)
        try:
            found = await self.jobs.awaited("open", "reading", lambda: opened(name, readonly=self._readonly))
        except (OnnxJsonError, OSError) as error:
            self._say(error_text(error), bad=True)
            return
        if isinstance(found, Unreadable):
            self._show(found)
        else:
            enter(self.app, found, readonly=self._readonly)

    async def _open(self) -> None:
        name = await self.app.push_screen_wait(OpeningScreen(self._found.path.parent))
        if name is None:
            return
        try:
            found = await self.jobs.awaited("open", "reading", lambda: opened(name, readonly=self._readonly))
        except (OnnxJsonError, OSError) as error:
            self._say(error_text(error), bad=True)
            return
        enter(self.app, found, readonly=self._readonly)
