"""Long results for a person: with colours and a pager on a terminal, plain anywhere else."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

import click

from onnxjson.cli import output, processes

if TYPE_CHECKING:
    from onnxjson.rendering.spans import Line
    from onnxjson.rendering.unified import DiffLine

Colour = Literal["auto", "always", "never"]

_STYLES: Final[Mapping[str, Mapping[str, object]]] = {
    "file": {"bold": True},
    "hunk": {"fg": "cyan"},
    "removed": {"fg": "red"},
    "added": {"fg": "green"},
}
"""As git colours a diff."""

_SPAN_STYLES: Final[Mapping[str, Mapping[str, object]]] = {
    "title": {"bold": True},
    "quiet": {"dim": True},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
    "rewritten": {"fg": "magenta"},
    "changed": {"fg": "yellow"},
    "good": {"fg": "green"},
    "bad": {"fg": "red", "bold": True},
}
"""What the styles of a structural diff look like."""


def options(command: Callable[..., None]) -> Callable[..., None]:
    """The options ``--color`` and ``--no-pager``, as the parameters `color` and `no_pager`."""
    for option in (
        click.option("--no-pager", is_flag=True, help="Print all at once, also on a terminal."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="auto: on a terminal, unless NO_COLOR is set.",
        ),
    ):
        command = option(command)
    return command


def is_coloured(color: Colour, stream: object = None) -> bool:
    """Whether what goes to `stream`, standard output if it is None, has colours."""
    if color != "auto":
        return color == "always"
    return (
        is_terminal(sys.stdout if stream is None else stream)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def width(widest: int = 120) -> int:
    """Columns for what a person reads: those of the terminal, at least 60, at most `widest`."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, 60), widest)


def is_terminal(stream: object) -> bool:
    """Whether a person reads `stream`; a closed one is None."""
    return bool(getattr(stream, "isatty", bool)())


def diff_line(found: "DiffLine", *, coloured: bool) -> str:
    """One line of a diff for a person or a program, without its line feed."""
    style = _STYLES.get(found.kind)
    return click.style(found.text, **style) if coloured and style else found.text  # type: ignore[arg-type]


def styled(line: "Line", *, coloured: bool) -> str:
    """One line of a structural diff, without its line feed."""
    if not coloured:
        return "".join(span.text for span in line).rstrip()
    styles = [(span.text, _SPAN_STYLES.get(span.style)) for span in line]
    return "".join(click.style(text, **style) if style else text for text, style in styles)  # type: ignore[arg-type]


def show(lines: Iterable[str], *, pager: bool = True) -> None:
    """Lines on standard output, UTF-8; through the pager where it is a terminal and `pager` is true."""
    pieces = (f"{line}\n".encode() for line in lines)
    if pager and is_terminal(sys.stdout):
        processes.page(pieces)
        return
    stream = output.Stdout()
    for piece in pieces:
        stream.write(piece)
