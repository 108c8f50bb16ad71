"""Other processes that commands start: parts of their work, steps of the demonstration, the user's editor and pager."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from onnxjson.cli import output
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError

T = TypeVar("T")
R = TypeVar("R")

TIMEOUT: Final = 300.0
_PAGER_SETTINGS: Final = {"LESS": "FRX", "LV": "-c"}
"""Settings of pagers unless the user has some: quit for a short text, show colours, leave the screen as it is."""

_WAKES: Final = 0.5

_SLOW: Final = 0.5
"""Seconds of one item from which the others are spread."""

_MOST: Final = 4
"""Maximum number of processes."""

_VIM: Final = ("+normal! {line}G{column}|", "{path}")
_IN_NAME: Final = "{path}:{line}:{column}"


class ProgramError(OnnxJsonError):
    """A program that the user chose cannot be started, or failed."""

    exit_code = 74


def run_module(module: str, arguments: list[str], folder: Path) -> "subprocess.CompletedProcess[bytes]":
    """Run ``python -m module arguments`` in `folder`, with this Python and without modules of the folder."""
    command = [sys.executable, "-I", "-m", module, *arguments]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{module} {' '.join(arguments)} did not end within {TIMEOUT:.0f} seconds") from error


def spread(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return a result for each item; if the first one takes long, the others are computed in several processes.

    What fails there, also for lack of memory, is computed again here. Function, items and results must be picklable.
    """
    start = time.monotonic()
    computed = [work(each) for each in items[:1]]
    rest = items[1:]
    count = min(len(rest), _fitting())
    if time.monotonic() - start < _SLOW or count < 2:
        return computed + [work(each) for each in rest]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    os.environ["PYTHONSAFEPATH"] = "1"  # the current folder may be a repository of strangers
    with ProcessPoolExecutor(count, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            futures = [pool.submit(work, each) for each in rest]
            for each, future in zip(rest, futures, strict=True):
                computed.append(future.result() if future.exception() is None else work(each))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise
    return computed


def _fitting() -> int:
    """Number of processes for which there are processors and, at twice the size of this one, memory; 1 if not known."""
    with suppress(OSError, ImportError, AttributeError, LookupError, ValueError):  # as on other systems than Linux
        from resource import RUSAGE_SELF, getrusage

        memory = dict([line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines()])
        room = int(memory["MemAvailable:"]) // (2 * getrusage(RUSAGE_SELF).ru_maxrss)
        return min(_MOST, len(os.sched_getaffinity(0)), room)
    return 1


def words_of(command: str, variable: str) -> list[str]:
    """The words of a command line in an environment variable, split as a shell would."""
    try:
        if os.sep == "\\":  # of a path, not an escape
            return [word.strip('"') for word in shlex.split(command, posix=False)]
        return shlex.split(command)
    except ValueError as error:
        raise ProgramError(f"{variable} is not a command line ({error}): {visible(command)}") from error


def run_editor(words: Sequence[str]) -> None:
    """Run an editor in this terminal until it ends; a failure of any kind is a ProgramError."""
    name = visible(words[0], None)
    with _interrupts_left_to_the_child():
        try:
            with subprocess.Popen(words) as process:
                code = _ended(process)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            message = f"the editor {name} cannot be started ({reason}); set VISUAL or EDITOR to an installed one"
            raise ProgramError(message) from error
    if code < 0:
        names = {each.value: each.name for each in signal.Signals}
        raise ProgramError(f"the editor {name} was killed by the signal {names.get(-code, -code)}")
    if code:
        raise ProgramError(f"the editor {name} exited with {code}")


def page(pieces: Iterable[bytes], command: str | None = None) -> None:
    """Show a text on a terminal with a pager (`command` for a shell, else $PAGER, else less), or print it."""
    words = ["/bin/sh", "-c", command] if command else words_of(os.environ.get("PAGER", "less"), "PAGER")
    try:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, env=_PAGER_SETTINGS | dict(os.environ))
    except (OSError, ValueError, IndexError):
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    with _interrupts_left_to_the_child(), process:
        assert process.stdin is not None
        # The user may quit the pager before the end.
        with suppress(BrokenPipeError):
            for piece in pieces:
                process.stdin.write(piece)
        with suppress(BrokenPipeError):
            process.stdin.close()


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait until a program ends; return its exit code.

    A signal to this process may reach another of its threads, and a wait without a timeout would then never return to
    handle it: a dropped line sends two signals, one of which does that.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_WAKES)


@contextmanager
def _interrupts_left_to_the_child() -> Iterator[None]:
    """Leave Ctrl-C and Ctrl-\\ to the program that has the terminal, and wait for it."""
    # A handler that does nothing, unlike SIG_IGN, is not inherited by the child.
    former = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class _Kind(NamedTuple):
    place: tuple[str, ...]
    """The words that open a file at a line and a column."""
    waiting: tuple[str, ...] = ()
    """Spellings of the option that makes it return only when the file is closed; the first is added if none is set."""


_KINDS: Final = {
    name: kind
    for names, kind in (
        ("vim nvim vimx", _Kind(_VIM)),
        ("gvim mvim", _Kind(_VIM, ("-f", "--nofork"))),
        ("vi view nvi elvis ex mg jed joe ne pico gedit", _Kind(("+{line}", "{path}"))),
        ("nano rnano", _Kind(("+{line},{column}", "{path}"))),
        ("emacs emacsclient micro kak kate", _Kind(("+{line}:{column}", "{path}"))),
        ("hx helix", _Kind((_IN_NAME,))),
        ("subl zed", _Kind((_IN_NAME,), ("--wait", "-w"))),
        ("code code-insiders codium vscodium cursor windsurf", _Kind(("--goto", _IN_NAME), ("--wait", "-w"))),
    )
    for name in names.split()
}
"""Arguments for a place, by the name of the program; other programs get only the file."""


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
        if place is None:
            return [*words, str(path)]
        return words + [word.format(path=path, line=place[0], column=place[1]) for word in kind.place]


def chosen_editor() -> Editor:
    """The editor that $VISUAL or $EDITOR names, else vi or notepad on a terminal; else a ProgramError."""
    for variable in ("VISUAL", "EDITOR"):
        command = os.environ.get(variable, "")
        if command.strip():
            words = words_of(command, variable)
            if not words or shutil.which(words[0]) is None:
                program = output.quoted(words[0] if words else "")
                raise ProgramError(f"the editor {program} is not installed; set {variable} to one that is")
            return Editor(tuple(words))
    default = "notepad" if os.sep == "\\" else "vi"
    if sys.stdin.isatty() and shutil.which(default):
        return Editor((default,))
    raise ProgramError("no editor is set; set VISUAL or EDITOR, such as EDITOR=nano")
