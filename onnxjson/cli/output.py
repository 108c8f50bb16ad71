"""What commands print: data on standard output, talk on standard error, nothing that moves a terminal's cursor.

Strings of models are made visible where messages are built; `line` is the last gate, for whatever still gets through.
"""

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final, Literal

import click

from onnxjson import characters
from onnxjson.checking import Finding
from onnxjson.display import counted as counted
from onnxjson.display import visible
from onnxjson.errors import OutputError
from onnxjson.rendering import tables

PATIENCE: Final = 1.0
"""Seconds after which work that is still going on says so."""

_REFRESH: Final = 0.25
"""Seconds between two looks at what is said."""

_COLOURS: Final = {"error": "red", "warning": "yellow"}


def make_robust() -> None:
    """Let both streams print any character that the terminal's encoding lacks as an escape, not as an exception.

    Streams that are closed get nothing to read and nobody to talk to; a closed standard output stays closed, since
    what goes there is the result. No file that is opened later takes the number of one of them.
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


def line(text: str) -> str:
    """`text` without anything that a terminal would obey."""
    return characters.UNPRINTABLE.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text)


def quoted(name: object) -> str:
    """A name from a person or a file, for the middle of a sentence."""
    return f"'{visible(str(name), None)}'"


def data(text: str) -> None:
    """One line of a command's result, on standard output."""
    click.echo(line(text))


def talk(text: str) -> None:
    """One line for a person, on standard error."""
    click.echo(line(text), err=True, color=None)


def warn(text: str) -> None:
    """One line that deserves a look, on standard error."""
    click.echo(click.style("onnxjson: warning", fg="yellow") + ": " + line(text), err=True, color=_colour())


def failure(code: int, text: str) -> None:
    """The line that every failure ends with."""
    click.echo(click.style(f"onnxjson: error[{code}]", fg="red") + ": " + line(text), err=True, color=_colour())


def finding_line(finding: Finding) -> str:
    """``file:line:column: severity[code]: what was found; what fits``, with the colours of the severity."""
    place = finding.file
    if finding.line:
        place = f"{finding.file or 'text'}:{finding.line}:{finding.column}"
    elif finding.address:
        place = f"{finding.file}: {finding.address}" if finding.file else finding.address
    severity = click.style(f"{finding.severity}[{finding.code}]", fg=_COLOURS[finding.severity])
    hint = f"; {finding.hint}" if finding.hint else ""
    return (f"{line(place)}: " if place else "") + severity + ": " + line(finding.message + hint)


def findings(found: Sequence[Finding], *, limit: int | None = None) -> None:
    """A line for each, on standard error, at most `limit`."""
    for finding in found[:limit]:
        click.echo(finding_line(finding), err=True, color=_colour())
    if limit is not None and len(found) > limit:
        talk(f"... and {len(found) - limit:,} more; `onnxjson check` lists all")


def findings_data(found: Sequence[Finding]) -> None:
    """A line for each, on standard output."""
    for finding in found:
        click.echo(finding_line(finding), color=_colour())


def size(path: os.PathLike[str]) -> str:
    """The size of a file for a person: ``1.2 kB``, decimal units."""
    return tables.size(os.stat(path).st_size)


class Stdout:
    """Standard output for bytes.

    Raises:
        OutputError: it is closed.
    """

    def __init__(self) -> None:
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            raise OutputError("standard output is closed; redirect it to a file or a program")
        self._stream: BinaryIO = buffer

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Hand on all of `data`."""
        self._stream.write(data)


def abandon_stdout() -> None:
    """Nobody reads standard output any more: let Python's own flush at exit go nowhere instead of complaining."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Say on a terminal what goes on, once it has taken a second; wipe it away afterwards.

    Gives a function that says something else from then on; any thread may call it.
    """
    said = [line(text)]

    def say(other: str) -> None:
        said[0] = line(other)

    if not sys.stderr.isatty():
        yield say
        return
    done = threading.Event()
    thread = threading.Thread(target=_say_after_a_second, args=(said, done), daemon=True)
    thread.start()
    try:
        yield say
    finally:
        done.set()
        thread.join()


def _say_after_a_second(said: list[str], done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(said[0])) as status:
        while not done.wait(_REFRESH):
            status.update(Text(said[0]))


def _colour() -> Literal[False] | None:
    """Whether to colour: `False` where the person asked for none, else click decides by the terminal."""
    return False if os.environ.get("NO_COLOR") else None
