"""Output of commands: results on standard output, messages on standard error, nothing that moves a terminal's cursor.

Strings of models are made visible where messages are built; `line` is the last safeguard.
"""

import functools
import io
import itertools
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TypeVar

import click

from onnxjson.model.display import ELLIPSIS, unprintable, visible
from onnxjson.model.display import counted as counted
from onnxjson.model.system import memory_bytes, show_colours

if TYPE_CHECKING:  # loaded where it is needed: --help is printed without msgspec
    from onnxjson.model.document import Model
    from onnxjson.model.errors import Finding

PATIENCE: Final = 1.0
QUIET: Final = "onnxjson.cli.output.quiet"
"""Key under which a context of click records ``--quiet``."""

VERBOSE: Final = "onnxjson.cli.output.verbose"
"""The same for ``--verbose``, where a command has no meaning of its own for it."""

RECORD: Final = "onnxjson.cli.output.record"
"""The same for what a command reports, with ``--json``."""

_REFRESH: Final = 0.25
_MANY_BYTES: Final = 10_000_000
"""Bytes from which a line of progress says how many were read or written."""
_CLEAR: Final = "\r\x1b[2K"
_drawing: Final = threading.RLock()
_shown: Final[list[str]] = []
_COLOURS: Final = {"error": "red", "warning": "yellow"}

typed: Final[list[str]] = []
"""The words of the command line, for messages that say what to write instead."""

_counters: Final[list[str]] = []
"""Prefixes with the number of the current file, pass and so on."""

_Item = TypeVar("_Item")


SHOWN: Final = 20
"""Maximum number of findings printed before the line of the failure; `onnxjson check` prints all."""


def make_robust() -> None:
    """Let both streams print any character that the terminal's encoding lacks as an escape, not as an exception.

    A closed standard input is empty, a closed standard error discards; a closed standard output stays closed, since it
    is for the result. No file that is opened later gets the descriptor of one of them.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for name in ("stdin", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    show_colours()


def line(text: str) -> str:
    """Return `text` without anything that a terminal would interpret."""
    if text.isascii() and text.isprintable():
        return text
    return unprintable().sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text)


def quoted(name: object) -> str:
    """A name from the user or a file, for the middle of a sentence."""
    return f"'{visible(str(name), None)}'"


def _echo(text: str, **settings: Any) -> None:
    """Print a line, replacing the line that shows what is in progress."""
    with _drawing:
        _clear()
        if settings.get("err") and sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()  # so that both streams have one order, on a terminal and in a pipe
        click.echo(text, **settings)


def _clear() -> None:
    """Remove the text in progress from the terminal."""
    with _drawing:
        if _shown:
            _shown.clear()
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def record() -> dict[str, list[Any]] | None:
    """What the command has reported, if ``--json`` collects it: files, remarks and findings."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(RECORD)


def data(text: str) -> None:
    """One line of a command's result, on standard output."""
    if (reported := record()) is not None:
        reported["remarks"].append(text)
    else:
        _echo(line(text))


def talk(text: str, *, always: bool = False) -> None:
    """One line of progress or advice, on standard error; not with ``--quiet``, unless `always` is true."""
    if (reported := record()) is not None:
        reported["remarks"].append(text)
    elif always or not is_quiet():
        _echo(line(text), err=True, color=None)


def is_quiet() -> bool:
    """Whether the user has given ``--quiet``."""
    context = click.get_current_context(silent=True)
    return context is not None and QUIET in context.meta


def is_terminal(stream: object) -> bool:
    """Whether `stream` is a terminal; a closed one is None."""
    return bool(getattr(stream, "isatty", bool)())


def wrote(path: os.PathLike[str]) -> None:
    """Report a file that was written."""
    if (reported := record()) is not None:
        reported["written"].append(os.fspath(path))
        return
    talk(f"wrote {os.fspath(path)} ({size(path)})")


def undo(path: os.PathLike[str]) -> str:
    """How to undo a change in place, for the end of its line."""

    return f"to undo: onnxjson undo-save {shlex.quote(os.fspath(path))}"


def warn(text: str) -> None:
    """Print a warning on standard error."""
    _echo(click.style("onnxjson: warning", fg="yellow") + ": " + line(text), err=True, color=_colour())


def failure(code: int, text: str) -> None:
    """The last line of every failure."""
    _echo(click.style(f"onnxjson: error[{code}]", fg="red") + ": " + line(text), err=True, color=_colour())


def finding_line(finding: "Finding") -> str:
    """``file:line:column: severity[code]: message; hint``, in the colours of the severity."""
    place = finding.file
    if finding.line:
        place = f"{finding.file or 'text'}:{finding.line}:{finding.column}"
    elif finding.address:
        place = f"{finding.file}: {finding.address}" if finding.file else finding.address
    severity = click.style(f"{finding.severity}[{finding.code}]", fg=_COLOURS[finding.severity])
    hint = f"; {finding.hint}" if finding.hint else ""
    outline = f" (in the line {quoted(finding.outline)})" if finding.outline else ""
    return (f"{line(place)}: " if place else "") + severity + ": " + line(finding.message + hint + outline)


def findings(shown: "Sequence[Finding]", *, limit: int | None = None) -> None:
    """A line for each, on standard error, at most `limit`."""
    if (reported := record()) is not None:
        names = ("severity", "code", "message", "hint", "file", "line", "column", "address")
        reported["findings"] += [{name: getattr(finding, name) for name in names} for finding in shown]
        return
    for finding in shown[:limit]:
        _echo(finding_line(finding), err=True, color=_colour())
    if limit is not None and len(shown) > limit:
        talk(f"... and {len(shown) - limit:,} more; `onnxjson check` lists all")


def findings_data(found: "Sequence[Finding]", *, coloured: bool) -> None:
    """A line for each, on standard output."""
    for finding in found:
        _echo(finding_line(finding), color=coloured)


def size(path: os.PathLike[str]) -> str:
    """The size of a file: ``1.2 kB``, decimal units."""
    from onnxjson.rendering import tables

    return tables.size(os.stat(path).st_size)


def stdout() -> BinaryIO:
    """Standard output for bytes; a closed one is an OutputError."""
    buffer: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        from onnxjson.model.errors import OutputError

        raise OutputError("standard output is closed; redirect it to a file or a program")
    return buffer


def abandon_stdout() -> None:
    """Discard what is left for standard output, after its reader closed it: the flush by Python at exit would fail."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


class _Work:
    """Work in progress: the bytes moved before it began, the bytes that it will read and write, and what it counts."""

    def __init__(self, text: str, counted: Callable[[], str], *totals: Callable[[], int] | None) -> None:
        self.text = line(text)
        self.before = _moved_bytes()
        self.counted = counted
        self._count = totals

    @functools.cached_property
    def totals(self) -> list[int]:
        """Approximate bytes that will be read and written; 0 if unknown."""
        return [0 if count is None else count() for count in self._count]

    def done(self, size: Callable[[int], str]) -> str:
        """Return what was counted, and the bytes read and written so far with the totals, each after a comma."""
        progress = self.counted()
        for count, old, total, what in zip(_moved_bytes(), self.before, self.totals, ("read", "written"), strict=False):
            moved = count - old
            if moved >= _MANY_BYTES:
                progress += f", {size(moved)}{f' of {size(total)}' if moved < total else ''} {what}"
        return progress


@contextmanager
def working(
    text: str,
    reads: Callable[[], int] | None = None,
    writes: Callable[[], int] | None = None,
    counted: Callable[[], str] = str,
) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is in progress, once it has lasted a second; remove it afterwards.

    `reads` and `writes` return the total bytes; `counted` returns other progress, with a leading comma. Yields a
    function that replaces the text; any thread may call it. Of nested calls, the innermost text is shown.
    """
    current = _Work(text, counted, reads, writes)

    def update(other: str) -> None:
        current.text = line(other)

    if not is_terminal(sys.stderr) or is_quiet() or os.environ.get("TERM") == "dumb":
        yield update
        return
    _in_progress.append(current)
    done = threading.Event()
    thread = threading.Thread(target=_show_after_a_second, args=(done,), daemon=True)
    if len(_in_progress) == 1:
        thread.start()
    try:
        yield update
    finally:
        done.set()
        if thread.ident is not None:
            thread.join()
        _in_progress[:] = [each for each in _in_progress if each is not current]


_in_progress: Final[list[_Work]] = []
"""Work in progress, innermost last; the last one is shown."""


def numbered(items: Sequence[_Item]) -> Iterator[_Item]:
    """Yield the items; if there are several, the text of work in progress begins with the number of the item."""
    place = len(_counters)
    try:
        for number, item in enumerate(items, 1):
            _counters[place:] = [f"{number:,} of {len(items):,}: "] if len(items) > 1 else []
            yield item
    finally:
        del _counters[place:]


def reading(path: Path) -> AbstractContextManager[Callable[[str], None]]:
    """Show that a file is read; see `working`."""
    return working(f"reading {path}", reads=lambda: path.stat().st_size if path.is_file() else 0)


def writing(path: Path, model: "Model") -> AbstractContextManager[Callable[[str], None]]:
    """Show that a model is written; see `working`."""
    thirds = 3 if path.suffix == ".onnx" else 4  # of base64
    return working(f"writing {path}", writes=lambda: weight_bytes(model, inside=True) * thirds // 3)


def weight_bytes(*models: "Model", inside: bool = False) -> int:
    """Return the bytes of the weights of models; with `inside`, without those in other files."""
    from onnxjson.model.tensors import is_external
    from onnxjson.model.walking import stored_bytes, tensors_of

    tensors = [each for model in models for each in tensors_of(model)]
    return sum([stored_bytes(each) for each in tensors if not (inside and is_external(each))])


def _show_after_a_second(done: threading.Event) -> None:
    import shutil  # here, since importing its archives takes longer than small work

    from onnxjson.rendering import tables

    started = time.monotonic()
    if done.wait(PATIENCE):
        return
    for frame in itertools.cycle("-\\|/"):
        with _drawing:
            work = _in_progress[-1]
            far = f" ({time.monotonic() - started:.0f} s{work.done(tables.size)})"
            width = shutil.get_terminal_size().columns - len("- x") - len(far)
            # The Linux console has no ellipsis.
            text = tables.cut("".join(_counters) + work.text, width).replace(ELLIPSIS, "~") + far
            _shown[:] = [text]
            sys.stderr.write(f"{_CLEAR}{frame} {text}")
            sys.stderr.flush()
        if done.wait(_REFRESH):
            break
    _clear()


def _moved_bytes() -> tuple[int, ...]:
    """Bytes that this process has read and written, which Linux counts; nothing on other systems."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return tuple([int(file.readline().split()[1]) for _ in range(2)])
    except (OSError, ValueError, IndexError):
        return ()


def tell_memory(models: "Sequence[Model]", what: str, copies: int = 1, *, inside: bool = False) -> None:
    """Warn if a number of copies of the weights of models needs more memory than the machine has."""
    from onnxjson.rendering import tables

    needed = copies * weight_bytes(*models, inside=inside)
    there = memory_bytes()
    if needed > there > 0:
        warn(f"{what} needs at least {tables.size(needed)} of memory, and this machine has {tables.size(there)}")


def _colour() -> Literal[False] | None:
    """False with NO_COLOR; None leaves it to click, which looks at the terminal."""
    return False if os.environ.get("NO_COLOR") else None
