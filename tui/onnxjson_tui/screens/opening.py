"""The dialog that asks for a file, and the screen of the program before a model is open."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input

from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded, shortened, size
from onnxjson_tui.names.completion import expanded, members
from onnxjson_tui.session.opening import recent_files
from onnxjson_tui.shell.dialogs import Dialog
from onnxjson_tui.shell.jobs import Jobs, error_text
from onnxjson_tui.shell.programs import enter, failure_text, opened
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.widgets.prompt import Field

_RECENT: Final = 8
"""Recent files that are offered."""


class Offer(NamedTuple):
    """A file that can be opened, or a folder."""

    path: str
    """As the user would type it; a folder ends with a slash."""
    detail: str

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.endswith("/")


def offers(typed: str, folder: Path) -> list[Offer]:
    """Return what completes a text: recent files, then the members of a folder.

    Args:
        typed: a path, or a part of one.
        folder: the folder whose members are offered for an empty text.
    """
    wanted = typed.lower()
    found: list[Offer] = []
    for path in recent_files():
        short = _short(path)
        if wanted in short.lower() and len(found) < _RECENT:
            found.append(Offer(short, f"recent  {_size(path)}"))
    head, slash, beginning = typed.rpartition("/")
    start = head + slash
    here = Path(start).expanduser() if start else folder
    prefix = start or _prefix(folder)
    try:
        there = members(here)
    except (OSError, RuntimeError):
        return found
    if not beginning:
        found.append(Offer(f"{prefix}../", "folder above"))
    known = {each.path for each in found}
    for each in there:
        path_text = f"{prefix}{each.name}{'/' if each.is_folder else ''}"
        is_hidden = each.name.startswith(".") and not beginning.startswith(".")
        if each.name.lower().startswith(beginning.lower()) and not is_hidden and path_text not in known:
            found.append(Offer(path_text, "folder" if each.is_folder else size(each.size)))
    return found


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


class OfferRows:
    """Rows of offers: the path, and its size at the right."""

    def __init__(self, found: Sequence[Offer]) -> None:
        self.offers = found

    def __len__(self) -> int:
        return len(self.offers)

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        offer = self.offers[number]
        detail = shortened(offer.detail, 20)
        label = shortened(visible(offer.path, None), max(width - cells(detail) - 3, 10))
        room = max(width - cells(label) - 1, 0)
        return Span(label, "title" if offer.is_folder else "plain"), Span(padded(detail, room, right=True), "quiet")


class OpeningScreen(Dialog[str | None]):
    """Asks for a file; returns the typed or chosen path, or None."""

    HAS_FIELD = True

    def __init__(self, folder: Path | None = None, *, typed: str = "", message: str = "") -> None:
        """Prepare the question.

        Args:
            folder: the folder whose members are offered first; the current one if None.
            typed: the initial text.
            message: the reason why the question is asked again.
        """
        super().__init__()
        self._folder = folder or Path.cwd()
        self._typed = typed
        self._message = message

    def compose(self) -> ComposeResult:
        """Title, field, list, error, keys."""
        with Vertical(classes="dialog tall wide"):
            yield Bar(id="dialog-title")
            yield Field(self._typed, id="dialog-input")
            yield LineList(id="dialog-rows")
            yield Bar(id="dialog-message")
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """Focus the field."""
        self._jobs = Jobs(self, lambda error: self._say(failure_text(self.app, error)), lambda: None)
        self.show_title("Open a model: .onnx, .onnx.json, or REV:path")
        self.show_hint(Span("enter open   tab complete   arrows choose   esc cancel", "quiet"))
        self.query_one(LineList).can_focus = False
        self.query_one(Input).focus()
        self._say(self._message)
        self._find(self._typed)

    def _say(self, text: str) -> None:
        self.query_one("#dialog-message", Bar).show((Span(visible(text, 500), "bad"),))

    def _find(self, typed: str) -> None:
        folder = self._folder
        self._jobs.start("folder", "reading the folder", lambda: offers(typed, folder), self._show)

    def _show(self, found: list[Offer]) -> None:
        self.query_one(LineList).show(OfferRows(found), 0)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Offer what completes the text."""
        event.stop()
        if event.value != self._typed:
            self._say("")
        self._typed = event.value
        self._find(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the typed file if it exists, else the row under the cursor."""
        event.stop()
        typed = event.value.strip()
        if typed and (expanded(typed).is_file() or not self._offer()):
            self.dismiss(typed)
        else:
            self._choose()

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Choose with the mouse."""
        self._choose()

    def _offer(self) -> Offer | None:
        lines = self.query_one(LineList)
        rows = lines.rows
        return rows.offers[lines.cursor] if isinstance(rows, OfferRows) and len(rows) else None

    def _choose(self) -> None:
        offer = self._offer()
        if offer is None:
            return
        if offer.is_folder:
            self._put(offer.path)
        else:
            self.dismiss(offer.path)

    def _put(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Complete, cancel."""
        return {"tab": self._complete, **dict.fromkeys(("escape", "ctrl+c", "ctrl+q"), partial(self.dismiss, None))}

    def _complete(self) -> None:
        offer = self._offer()
        if offer is not None:
            self._put(offer.path)


class StartScreen(Screen[int]):
    """The program without a model: asks for one until it is open, or the user leaves."""

    def __init__(self, *, readonly: bool) -> None:
        super().__init__()
        self._readonly = readonly

    def compose(self) -> ComposeResult:
        """A title that names the program."""
        yield Bar(id="title")

    def on_mount(self) -> None:
        """Ask for a model."""
        self.query_one(Bar).show((Span(" onnxjson", "title"),))
        self.jobs = Jobs(self, lambda error: None, lambda: None)
        self.run_worker(self._ask(), exit_on_error=False)

    async def _ask(self) -> None:
        name, message = "", ""
        while True:
            answer = await self.app.push_screen_wait(OpeningScreen(typed=name, message=message))
            if answer is None:
                self.app.exit(0)
                return
            name = answer
            wanted = str(expanded(name)) if name.startswith("~") else name
            try:
                found = await self.jobs.awaited("open", "opening", partial(opened, wanted, readonly=self._readonly))
            except (OnnxJsonError, OSError) as error:
                message = error_text(error)
                continue
            enter(self.app, found, readonly=self._readonly)
            return
