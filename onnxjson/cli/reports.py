"""Reports: one result in the requested form, to a file, a terminal with colours and a pager, or a pipe."""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import click

from onnxjson.cli import options, output
from onnxjson.model.display import is_whole, whole_texts
from onnxjson.rendering.tables import Line

Color = Literal["auto", "always", "never"]

ENDINGS: Final[Mapping[str, str]] = {
    ".csv": "csv", ".htm": "html", ".html": "html", ".json": "json", ".markdown": "markdown", ".md": "markdown",
    ".sarif": "sarif", ".svg": "svg", ".txt": "text", ".xml": "junit",
}  # fmt: skip
"""The form of a report by the ending of its file."""

_STYLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "file": {"bold": True}, "hunk": {"fg": "cyan"}, "title": {"bold": True}, "quiet": {"dim": True},
    "added": {"fg": "green"}, "removed": {"fg": "red"}, "rewritten": {"fg": "magenta"}, "changed": {"fg": "yellow"},
    "good": {"fg": "green"}, "bad": {"fg": "red", "bold": True},
}  # fmt: skip
"""Colours of the lines of a diff, those of git, and of the spans of a report."""

_WIDEST: Final = 120

color_options: Final = options.together(
    options.option(
        "--color",
        "Use colours; auto: on a terminal, unless NO_COLOR is set.",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
    ),
    options.option("--no-pager", "Print without a pager, even on a terminal."),
)


class View(NamedTuple):
    """Requested presentation of a report."""

    form: str = "text"
    destination: Path | None = None
    color: Color = "auto"
    pager: bool = True
    collected: list[str] | None = None
    """Receives the text instead of `destination`, for a report that is part of another."""

    @property
    def coloured(self) -> bool:
        """Whether the text has colours."""
        return self.destination is None and is_coloured(self.color)

    def show(self, lines: Iterable[str | Line | tuple[str, str]]) -> None:
        """Print or write the lines of a text."""
        coloured = self.coloured
        texts = (each if isinstance(each, str) else styled(each, coloured=coloured) for each in lines)
        if self.destination is None and self.collected is None:
            show(texts, pager=self.pager)
        else:
            self.write(f"{text}\n" for text in texts)

    def write(self, pieces: Iterable[str]) -> None:
        """Print or write the pieces of a report as they are."""
        if self.collected is not None:
            self.collected.extend(pieces)
        elif self.destination is None:
            stream = output.stdout()
            for piece in pieces:
                stream.write(_encoded(piece))
        else:
            with whole_texts():
                save(pieces, self.destination)

    def present(
        self, text: Callable[[], Iterable[str | Line]], json: Callable[[], object], **forms: Callable[[], Iterable[str]]
    ) -> None:
        """Print or write a report in the requested form: its lines, its data as exact JSON, or pieces of another."""
        if self.form == "text":
            with whole_texts(is_whole() or self.destination is not None):
                self.show(text())
        elif self.form == "json":
            from onnxjson.rendering.values import as_json

            self.write([as_json(json()) + "\n"])
        else:
            self.write(forms[self.form]())

    def write_objects(self, values: Sequence[Mapping[str, object]]) -> None:
        """Print or write a JSON array, an object on each line."""
        import json

        lines = ",\n".join([json.dumps(value) for value in values])
        self.write([f"[\n{lines}\n]\n" if values else "[]\n"])


def with_json(function: Callable[..., object]) -> Callable[..., object]:
    """Declare ``--json`` for a command without a report: the files that it wrote, its remarks and its findings."""

    @functools.wraps(function)
    def called(*positional: Any, as_json: bool, **given: Any) -> object:
        if not as_json:
            return function(*positional, **given)
        if str(given.get("destination")) == "-":
            raise click.UsageError("-o - writes the model to standard output, and --json a report; choose one of them")
        from onnxjson.rendering.values import as_json as written

        context, code = click.get_current_context(), 0
        report: dict[str, list[Any]] = {"written": [], "remarks": [], "findings": []}
        context.meta[output.RECORD] = report
        try:
            function(*positional, **given)
        except click.exceptions.Exit as end:
            code = end.exit_code
        View().write([written(report) + "\n"])
        context.exit(code)

    text = "Report as JSON: the files written, remarks and findings."
    return options.option("--json", text, "as_json")(called)


def view_options(*forms: str, to_file: bool = True, about: str = "") -> options.Decorator:
    """The options of a report, which reach the command as `view`, a `View`; the first form is the default."""
    default = f"{'by the extension of OUT, else ' if to_file else ''}{forms[0]}"
    declared = options.together(
        form_options(forms, f"Format of the report; default: {default}.{about}"),
        color_options,
        *([options.out("Write the report to OUT; - is standard output.")] if to_file else []),
    )

    def gather(form: str | None, color: Color, no_pager: bool, destination: Path | None = None) -> View:
        if destination is not None and str(destination) == "-":
            destination = None
        chosen = form or form_of(destination, forms)
        if chosen == "html" and destination is None and output.is_terminal(sys.stdout):
            raise click.UsageError("an HTML page is not for a terminal; write it to a file: -o report.html")
        return View(chosen, destination, color, not no_pager)

    return options.gathered(declared, gather, "view")


def form_options(forms: Sequence[str], text: str) -> options.Decorator:
    """The options ``--format`` and ``--json``, which reach the command as `form`."""

    def chosen(ctx: click.Context, _param: click.Parameter, as_json: bool) -> None:
        form = ctx.params.get("form")
        if as_json and form not in (None, "json"):
            raise click.UsageError(f"--json is --format json, and --format {form} is given too; choose one of them")
        ctx.params["form"] = "json" if as_json else form

    return options.together(
        options.option("--format", text, "form", type=click.Choice(forms), is_eager=True),
        options.option("--json", "Same as --format json.", callback=chosen, expose_value=False),
    )


def form_of(destination: Path | None, forms: Sequence[str]) -> str:
    """Return the form for the ending of a file, by default the first; a form that is not in `forms` is a UsageError."""
    ending = "" if destination is None else destination.suffix.lower()
    form = ENDINGS.get(ending, forms[0])
    if form not in forms:
        raise click.UsageError(f"{destination}: there is no report in the format {form}; choose {', '.join(forms)}")
    return form


def is_coloured(color: Color) -> bool:
    """Whether standard output has colours."""
    if color != "auto":
        return color == "always"
    return output.is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(widest: int = _WIDEST, stream: object = None) -> int:
    """Columns of a text on `stream`, by default standard output: at least 60, at most `widest`; 80 off a terminal."""
    import shutil

    columns = shutil.get_terminal_size((80, 24)).columns if output.is_terminal(stream or sys.stdout) else 80
    return min(max(columns, 60), widest)


def styled(line: Line | tuple[str, str], *, coloured: bool) -> str:
    """One line, without its line feed."""
    if line and isinstance(line[0], str):  # of a line diff: its kind, and the text
        kind, text = line
        return _paint(str(text), str(kind)) if coloured else str(text)
    spans = [(span.text, span.style) for span in line]
    return "".join([_paint(*span) for span in spans]) if coloured else "".join([text for text, _ in spans]).rstrip()


def _paint(text: str, style: str) -> str:
    return click.style(text, **_STYLES[style]) if style in _STYLES else text


def show(lines: Iterable[str], *, pager: bool = True) -> None:
    """Print lines in UTF-8, through the pager if standard output is a terminal and `pager` is true."""
    if (reported := output.record()) is not None:
        reported["remarks"] += lines
        return
    pieces = (_encoded(f"{line}\n") for line in lines)
    if pager and output.is_terminal(sys.stdout):
        from onnxjson.cli import processes

        processes.page(pieces)
        return
    stream = output.stdout()
    for piece in pieces:
        stream.write(piece)


def save(pieces: Iterable[str], destination: Path) -> None:
    """Write a text to a file, all or nothing."""

    # `onnxjson completion`, which a shell runs when it starts, needs no files.
    from onnxjson.storage.saving import Sink, save_file

    def written(sink: Sink) -> None:
        for piece in pieces:
            sink.write(_encoded(piece))

    save_file(destination, written)
    output.wrote(destination)


def _encoded(piece: str) -> bytes:
    return piece.encode("utf-8", "backslashreplace")
