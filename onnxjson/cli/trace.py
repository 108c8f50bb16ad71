"""``onnxjson trace``: a recorded run of passes."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import FilePath
from onnxjson.optimizing.provenance import Provenance, provenance
from onnxjson.optimizing.trace_records import Trace
from onnxjson.optimizing.trace_storing import load_trace
from onnxjson.rendering.markdown_reports import trace_markdown
from onnxjson.rendering.reports import trace_json
from onnxjson.rendering.tables import Line
from onnxjson.rendering.trace_html import trace_html
from onnxjson.rendering.trace_text import story_lines, subjects_named, trace_lines


@options.command("trace")
@click.argument("folder", metavar="DIR", type=FilePath())
@options.option(
    "--node SELECTOR",
    "Show where these nodes of the result came from, or what became of these nodes of the first model, pass by pass.",
    "selector",
)
@options.option(
    "-v, --verbose",
    "text: also show passes that changed nothing, and every change at every place.",
    callback=options.be_verbose,
)
@reports.view_options("text", "json", "markdown", "html", about=" json: onnxjson-trace/1. html: page with drawings.")
def trace_command(folder: Path, *, selector: str | None, verbose: bool, view: reports.View) -> None:
    """Show what each pass of a recorded run changed.

    DIR is the folder that `onnxjson optimize --trace DIR` writes.

    \b
    onnxjson trace steps
    onnxjson trace steps --node op:Gemm
    onnxjson trace steps -o report.html
    """
    if verbose and view.form != "text":
        raise click.UsageError("--verbose is for --format text; the other formats are complete")
    if view.form == "html" and selector is not None:
        raise click.UsageError("--node is for --format text, json and markdown; the HTML page has a search field")
    with output.working(f"reading {folder}"):
        trace = load_trace(folder)
    if view.form == "text":
        view.show(_text(trace, selector, verbose=verbose))
    else:
        view.write(_pieces(trace, view.form, selector))


def _text(trace: Trace, selector: str | None, *, verbose: bool) -> Iterator[Line]:
    width = reports.width()
    if selector is None:
        yield from trace_lines(trace, width, details=verbose)
    else:
        yield from story_lines(trace, subjects_named(trace, _provenance(trace), selector), width)


def _pieces(trace: Trace, form: str, selector: str | None) -> Iterable[str]:
    if form == "markdown" and selector is None:
        return [trace_markdown(trace)]
    provenance = _provenance(trace)
    subjects = None if selector is None else subjects_named(trace, provenance, selector)
    if form == "markdown":
        return [trace_markdown(trace, subjects)]
    return trace_json(trace, provenance, subjects) if form == "json" else trace_html(trace, provenance)


def _provenance(trace: Trace) -> Provenance:
    with output.working("following the nodes"):
        return provenance(trace)
