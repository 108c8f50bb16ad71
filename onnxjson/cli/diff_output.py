"""A comparison of two models, printed or written in the requested form."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from onnxjson.cli import output, reports
from onnxjson.cli.paths import Side
from onnxjson.diffing import difference
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import WeightsComparison
from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.model.errors import MissingInputError
from onnxjson.rendering.diff_report import Report, report
from onnxjson.rendering.diff_text import diff_lines, match_lines
from onnxjson.rendering.tables import Line

if TYPE_CHECKING:
    from onnxjson.diffing.matching.columns import Integers

Form = Literal["text", "unified", "json", "markdown", "html", "patch"]

INCOMPLETE: Final = MissingInputError.exit_code
"""The exit code if something could not be compared."""


@dataclass(frozen=True)
class Options:
    """Options of a comparison and of its report."""

    view: reports.View
    verbose: bool
    context: int
    matches: bool
    nodes_only: bool
    ignore: frozenset[str]
    weights: WeightsComparison
    tests_rewrites: bool
    trust_links: bool
    with_cost: bool = False
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes of dimensions for the cost."""
    reports: list[Report] | None = None
    """For a table of several models: takes the report of each."""
    prefix: str = ""
    """Start of the ids of a section of an HTML page."""

    @property
    def form(self) -> str:
        """The form of the report, a `Form`."""
        return self.view.form


def compare(one: Side, other: Side, options: Options) -> tuple[bool, list[str]]:
    """Print what differs; return whether anything does, and what could not be compared."""
    return (_unified if options.form == "unified" else _structural)(one, other, options)


def _unified(one: Side, other: Side, options: Options) -> tuple[bool, list[str]]:
    from onnxjson.diffing import unified

    with output.working("comparing weights in other files"):
        places = [unified.Place(side.model, side.path, side.name) for side in (one, other)]
        weights = unified.compare_external(places[0], places[1], trust_links=options.trust_links)
    texts = unified.diff_models(one.model, other.model, one.name, other.name, context=options.context)
    outside = [f"{side.name} (external data)" for side in (one, other)]
    lines = itertools.chain(
        texts, unified.diff_texts(weights.old, weights.new, outside[0], outside[1], context=options.context)
    )
    first = next(lines, None)
    if first is not None:
        options.view.show(itertools.chain([first], lines))
    return first is not None, [*one.problems, *other.problems, *weights.problems]


def _structural(one: Side, other: Side, options: Options) -> tuple[bool, list[str]]:
    seen: list[Integers] = []
    with output.working(
        f"comparing {one.name} and {other.name}",
        lambda: output.weight_bytes(one.model, other.model),
        counted=lambda: _matched(seen),
    ):
        diff = difference.diff_models(
            one.model,
            other.model,
            paths=(one.path, other.path),
            names=(one.name, other.name),
            ignore=options.ignore,
            weights=options.weights,
            trust_links=options.trust_links,
            progress=seen,
        )
    if options.tests_rewrites:
        from onnxjson.running.proof import prove

        with output.working("running both sides of the rewrites"):
            diff = prove(diff)
    problems = [*one.problems, *other.problems, *diff.incomplete]
    if options.form == "patch":
        _write_patch(one, other, diff, options)
        # A patch contains records: weights in other files may differ although all records are the same.
        return bool(diff.patch) or bool(diff.events), problems
    shown = report(diff, one.name, other.name, nodes_only=options.nodes_only)
    if options.with_cost:
        from onnxjson.checking.cost import costs_of

        with output.working("computing the cost"):
            costs = costs_of([one.model, other.model], [one.path.parent, other.path.parent], options.dims)
        shown = shown._replace(costs=(costs[0], costs[1]))
    shown = shown._replace(incomplete=tuple(problems), equal=shown.equal and not problems)
    if options.reports is not None:
        options.reports.append(shown)
    _show(shown, options)
    return not shown.equal, problems


def _matched(seen: "Sequence[Integers]") -> str:
    now, total = [sum([int((each >= least).sum()) for each in seen]) for least in (0, UNMATCHED)]
    return f", {now:,} of {total:,} nodes matched" if now else ""


def _show(report: Report, options: Options) -> None:
    # A text starts faster without the modules of the other forms, some of which import all passes (0.2 s).
    view = options.view
    match options.form:
        case "json":
            from onnxjson.rendering.reports import diff_json

            view.write(diff_json(report, with_matches=options.matches))
        case "markdown":
            from onnxjson.rendering.markdown_reports import diff_markdown

            view.write([diff_markdown(report)])
        case "html":
            from onnxjson.rendering.diff_html import diff_html, diff_section

            view.write(diff_html(report) if view.collected is None else diff_section(report, options.prefix))
        case _ if report.equal and view.destination is None and not options.matches:
            for line in _lines(report, options) if options.reports is None else ():
                output.talk(reports.styled(line, coloured=view.coloured))
        case _:
            view.show(_lines(report, options))


def _lines(report: Report, options: Options) -> Iterator[Line]:
    yield from diff_lines(report, reports.width(), details=options.verbose)
    if options.matches:
        yield from match_lines(report)


def _write_patch(one: Side, other: Side, diff: Diff, options: Options) -> None:
    from onnxjson.patching.patch_text import write_patch
    from onnxjson.storage.saving import save_file

    with output.working("creating the patch", lambda: output.weight_bytes(one.model, other.model)):
        patch = diff.patch.with_hashes(one.model, other.model)
        patch = patch.with_external(one.model, one.path, other.model, other.path)
    destination = options.view.destination
    if destination is None:
        write_patch(patch, output.stdout().write)
        return
    with output.working(f"writing {destination}"):
        save_file(destination, lambda sink: write_patch(patch, sink.write))
    output.wrote(destination)
