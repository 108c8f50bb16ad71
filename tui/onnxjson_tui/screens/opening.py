"""Where no model is open: files that were opened last, the members of a folder, a path to type."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Input

from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded, shortened, size
from onnxjson_tui.entering import enter, failure_said, opened
from onnxjson_tui.jobs import Jobs, said
from onnxjson_tui.path_completion import expanded, members
from onnxjson_tui.recent import recent_files
from onnxjson_tui.screens.dialog import Dialog
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.field import Field
from onnxjson_tui.widgets.lines import LineList

_RECENT: Final = 8
"""Recent files that are offered before anything is typed."""


class Offer(NamedTuple):
    """Something that can be opened, or gone into."""

    path: str
    """As it would be typed; a folder ends with a slash."""
    detail: str

    @property
    def is_folder(self) -> bool:
        """Whether it is gone into."""
        return self.path.endswith("/")


def offers(typed: str, folder: Path) -> list[Offer]:
    """What fits the text so far: recent files, then the members of a folder.

    Args:
        typed: a path, or a part of one.
        folder: whose members are shown before anything is typed.
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
    """The shortest way to write a path: from here, from home, or whole."""
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
    """Offers as rows: the path, its size at the right."""

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
    """Asks for a file; gives what was typed or chosen, None where the person gave up."""

    def __init__(self, folder: Path | None = None, *, typed: str = "", message: str = "") -> None:
        """Prepares the question.

        Args:
            folder: whose members are shown first; the current one if None.
            typed: what stands in the field at first.
            message: why it is asked again.
        """
        super().__init__()
        self._folder = folder or Path.cwd()
        self._typed = typed
        self._message = message

    def compose(self) -> ComposeResult:
        """Title, field, list, what is wrong, hint."""
        with Vertical(classes="dialog tall wide"):
            yield Bar(id="dialog-title")
            yield Field(self._typed, id="dialog-input")
            yield LineList(id="dialog-rows")
            yield Bar(id="dialog-message")
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """The field has the focus, the keys that move go to the list."""
        self._jobs = Jobs(self, lambda error: self._say(failure_said(self.app, error)), lambda: None)
        self.query_one("#dialog-title", Bar).show((Span("Open a model: .onnx, .onnx.json, or REV:path", "title"),))
        hint = "enter open   tab take into the field   arrows choose   esc leave"
        self.query_one("#dialog-hint", Bar).show((Span(hint, "quiet"),))
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
        """Look for what fits."""
        event.stop()
        if event.value != self._typed:
            self._say("")
        self._typed = event.value
        self._find(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the row of the cursor, unless what was typed is a file itself."""
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

    def on_key(self, event: Key) -> None:
        """Keys of the list while the field has the focus."""
        match event.key:
            case "escape" | "ctrl+c" | "ctrl+q":
                self.dismiss(None)
            case "tab":
                offer = self._offer()
                if offer is not None:
                    self._put(offer.path)
            case key if not self.query_one(LineList).take_key(key, is_typing=True):
                return
        event.stop()
        event.prevent_default()


class StartScreen(Screen[int]):
    """The program without a model: asks for one until there is one, or the person leaves."""

    def __init__(self, *, readonly: bool) -> None:
        super().__init__()
        self._readonly = readonly

    def compose(self) -> ComposeResult:
        """A title, so that it is clear what is running."""
        yield Bar(id="title")

    def on_mount(self) -> None:
        """Ask."""
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
                message = said(error)
                continue
            enter(self.app, found, readonly=self._readonly)
            return
