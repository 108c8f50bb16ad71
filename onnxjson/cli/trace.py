"""``onnxjson trace``: what a pipeline of passes did, shown again."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from onnxjson.cli import output, paging
from onnxjson.cli.paths import DestinationPath, FilePath

if TYPE_CHECKING:
    from onnxjson.index import NodeRef
    from onnxjson.rendering.spans import Line
    from onnxjson.rendering.trace_text import Subject
    from onnxjson.tracing import Provenance, Trace

Form = Literal["text", "json", "markdown", "html"]

_ENDINGS: Final[dict[str, Form]] = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


@click.command("trace")
@click.argument("folder", metavar="DIR", type=FilePath())
@click.option(
    "--node",
    "selector",
    metavar="SELECTOR",
    help="Where nodes of the result came from and where nodes of the first model went, and through which passes.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown", "html"]),
    help="text: for a person (the default). json: onnxjson-trace/1. markdown: for a pull request. html: a page with "
    "drawings.",
)
@click.option("-v", "--details", is_flag=True, help="text: also passes that changed nothing, every event and place.")
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="FILE",
    type=DestinationPath(),
    help="Write to FILE; without --format its ending says what: .html, .md, .json, else text.",
)
@paging.options
def command(
    folder: Path,
    *,
    selector: str | None,
    form: Form | None,
    details: bool,
    destination: Path | None,
    color: paging.Colour,
    no_pager: bool,
) -> None:
    """Show what passes did to a model, from the folder of a trace.

    `onnxjson optimize --trace DIR` makes the folder.

    \b
    onnxjson trace DIR
    onnxjson trace DIR --node op:FusedConv
    onnxjson trace DIR -o report.html
    """
    ending = destination.suffix.lower() if destination is not None else ""
    form = form or _ENDINGS.get(ending, "text")
    if details and form != "text":
        raise click.UsageError("--details is for --format text; the others show everything")
    if form == "html" and selector is not None:
        raise click.UsageError("--node is for --format text, json and markdown; a page has a search of its own")
    if form == "html" and destination is None and sys.stdout.isatty():
        raise click.UsageError("a page is not for a terminal; write it with -o report.html")
    from onnxjson.tracing import load_trace

    with output.working(f"reading {folder}"):
        trace = load_trace(folder)
    if form == "text":
        coloured = destination is None and paging.is_coloured(color)
        lines = (paging.styled(line, coloured=coloured) for line in _text(trace, selector, details=details))
        if destination is None:
            paging.show(lines, pager=not no_pager)
            return
        pieces: Iterable[str] = (f"{line}\n" for line in lines)
    else:
        pieces = _pieces(trace, form, selector)
    _write(pieces, destination)


def _text(trace: "Trace", selector: str | None, *, details: bool) -> "Iterator[Line]":
    from onnxjson.rendering.trace_text import story_lines, trace_lines

    width = paging.width()
    if selector is None:
        yield from trace_lines(trace, width, details=details)
    else:
        yield from story_lines(trace, _subjects(trace, _provenance(trace), selector), width)


def _pieces(trace: "Trace", form: Form, selector: str | None) -> Iterable[str]:
    from onnxjson.rendering.trace_html import trace_html
    from onnxjson.rendering.trace_json import trace_json
    from onnxjson.rendering.trace_markdown import trace_markdown

    if form == "markdown" and selector is None:
        return [trace_markdown(trace)]
    found = _provenance(trace)
    subjects = None if selector is None else _subjects(trace, found, selector)
    if form == "markdown":
        return [trace_markdown(trace, subjects)]
    return trace_json(trace, found, subjects) if form == "json" else trace_html(trace, found)


def _provenance(trace: "Trace") -> "Provenance":
    from onnxjson.tracing import provenance

    with output.working("following the nodes"):
        return provenance(trace)


def _subjects(trace: "Trace", found: "Provenance", selector: str) -> "list[Subject]":
    """The nodes that a selector finds, in the result or in the first model.

    Raises:
        SelectorError: it finds none in both.
    """
    from onnxjson.errors import SelectorError
    from onnxjson.index import Index
    from onnxjson.rendering.trace_text import subjects_of
    from onnxjson.selectors import select_nodes

    refs: list[tuple[NodeRef, ...]] = []
    failure: SelectorError | None = None
    for model in (trace.first, trace.last):
        try:
            refs.append(select_nodes(model, Index(model), selector))
        except SelectorError as error:
            failure = error
            refs.append(())
    if not any(refs) and failure is not None:
        raise failure
    return list(subjects_of(trace, found, refs[0], refs[1]))


def _write(pieces: Iterable[str], destination: Path | None) -> None:
    if destination is None:
        stream = output.Stdout()
        for piece in pieces:
            stream.write(piece.encode())
        return
    from onnxjson.saving import save_file
    from onnxjson.sinks import Sink

    def written(sink: Sink) -> None:
        for piece in pieces:
            sink.write(piece.encode())

    save_file(destination, written)
    output.talk(f"wrote {destination} ({output.size(destination)})")
