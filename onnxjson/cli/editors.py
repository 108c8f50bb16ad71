"""The user's editor: which one, how it opens a file at a line, and how it is made to wait."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.cli import output, processes

_Words = Callable[[str, int, int], list[str]]


def _vim(path: str, line: int, column: int) -> list[str]:
    return [f"+normal! {line}G{column}|", path]


def _line(path: str, line: int, _column: int) -> list[str]:
    return [f"+{line}", path]


def _line_comma_column(path: str, line: int, column: int) -> list[str]:
    return [f"+{line},{column}", path]


def _line_colon_column(path: str, line: int, column: int) -> list[str]:
    return [f"+{line}:{column}", path]


def _in_name(path: str, line: int, column: int) -> list[str]:
    return [f"{path}:{line}:{column}"]


def _goto(path: str, line: int, column: int) -> list[str]:
    return ["--goto", f"{path}:{line}:{column}"]


class _Kind(NamedTuple):
    """How a kind of editor is started."""

    place: _Words
    waiting: tuple[str, ...] = ()
    """Spellings of the option that makes it return only when the file is closed; the first is added if none is set."""


_KINDS: Final = {
    **dict.fromkeys(("vim", "nvim", "vimx"), _Kind(_vim)),
    **dict.fromkeys(("gvim", "mvim"), _Kind(_vim, ("-f", "--nofork"))),
    **dict.fromkeys(("vi", "view", "nvi", "elvis", "ex", "mg", "jed", "joe", "ne", "pico", "gedit"), _Kind(_line)),
    **dict.fromkeys(("nano", "rnano"), _Kind(_line_comma_column)),
    **dict.fromkeys(("emacs", "emacsclient", "micro", "kak", "kate"), _Kind(_line_colon_column)),
    **dict.fromkeys(("hx", "helix"), _Kind(_in_name)),
    **dict.fromkeys(("subl", "zed"), _Kind(_in_name, ("--wait", "-w"))),
    **dict.fromkeys(
        ("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"), _Kind(_goto, ("--wait", "-w"))
    ),
}
"""By the name of the program; others get the file alone."""


class Editor(NamedTuple):
    """The program that edits a text."""

    words: tuple[str, ...]
    """Its command line, without the file."""

    def command(self, path: Path, place: tuple[int, int] | None) -> list[str]:
        """The words that open a file, at a line and a column (from 1) if the editor supports that."""
        words = list(self.words)
        kind = _KINDS.get(Path(words[0]).name.removesuffix(".exe"))
        if kind is None:
            return [*words, str(path)]
        if kind.waiting and not set(kind.waiting) & set(words):
            words.append(kind.waiting[0])
        return [*words, *([str(path)] if place is None else kind.place(str(path), *place))]


def chosen() -> Editor:
    """The editor that $VISUAL or $EDITOR names, else vi on a terminal.

    Raises:
        ProgramError: neither names one, or it is not installed.
    """
    for variable in ("VISUAL", "EDITOR"):
        command = os.environ.get(variable, "")
        if command.strip():
            return Editor(_found(processes.words_of(command, variable), variable))
    if sys.stdin.isatty() and shutil.which("vi"):
        return Editor(("vi",))
    raise processes.ProgramError("no editor is set; set VISUAL or EDITOR, such as EDITOR=nano")


def _found(words: Sequence[str], variable: str) -> tuple[str, ...]:
    if not words or shutil.which(words[0]) is None:
        program = output.quoted(words[0] if words else "")
        raise processes.ProgramError(f"the editor {program} is not installed; set {variable} to one that is")
    return tuple(words)
