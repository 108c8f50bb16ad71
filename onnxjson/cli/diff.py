"""``onnxjson diff``: what differs between two models."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import click

from onnxjson.cli import output, paging, revisions, sides
from onnxjson.cli.paths import DestinationPath, refuse_sources
from onnxjson.diffing.options import IGNORABLE, WEIGHTS_COMPARISONS, WeightsComparison
from onnxjson.errors import MissingInputError

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff
    from onnxjson.rendering.diff_report import Report
    from onnxjson.sinks import Sink

Form = Literal["text", "unified", "json", "markdown", "html", "patch", "script"]

_ENDINGS: Final[dict[str, Form]] = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
"""The form of a file by its ending, where nobody says one."""

BEHIND: Final = "onnxjson.cli.diff.behind"
"""Under which a context keeps the words behind ``--``."""

INCOMPLETE: Final = MissingInputError.exit_code
"""The exit code where something could not be compared."""


@dataclass(frozen=True)
class Options:
    """What the person wants to see."""

    form: Form
    details: bool
    context: int
    matches: bool
    nodes_only: bool
    ignore: frozenset[str]
    weights: WeightsComparison
    prove: bool
    trust_links: bool
    destination: Path | None
    coloured: bool
    pager: bool
    collected: list[str] | None = None
    """Where the text goes that others put together; None where it goes to the destination at once."""


class _WithPathsBehind(click.Command):
    """A command that tells apart what stands before ``--`` and what behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[BEHIND] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command("diff", cls=_WithPathsBehind)
@click.argument("words", metavar="A B | [REV[..REV]] [-- PATH...]", nargs=-1, type=sides.SidePath())
@click.option(
    "--git", "in_git", is_flag=True, help="Compare as `git diff` does: models of revisions, index, work tree."
)
@click.option("--staged", "--cached", is_flag=True, help="git: compare what is staged, with HEAD or REV.")
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Form)),
    help="text: what happened, for a person (the default). unified: the line diff of the two texts, weights as sha256. "
    "json: onnxjson-diff/1. markdown: for a pull request. html: a page with drawings. patch: to `onnxjson apply`. "
    "script: the same as edits, to make on other models too; a patch where edits cannot say it.",
)
@click.option("-v", "--details", is_flag=True, help="text: every place with its address, and all that changed there.")
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="FILE",
    type=DestinationPath(allow_dash=True),
    help="Write to FILE; without --format its ending says what: .html, .md, .json, else text. - is standard output.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="WHAT,...",
    type=sides.WordList(IGNORABLE),
    help=f"Leave out {', '.join(IGNORABLE)}.",
)
@click.option("--nodes-only", is_flag=True, help="Only what happened to nodes and what they compute.")
@click.option(
    "--weights",
    type=click.Choice(WEIGHTS_COMPARISONS),
    default="exact",
    show_default=True,
    help="How elements of tensors are compared: by bits, as equal when close, or not at all.",
)
@click.option("--prove", is_flag=True, help="Run both sides of each rewrite on random inputs and compare the results.")
@click.option("--matches", is_flag=True, help="text, json: also list which node is which.")
@click.option(
    "-U",
    "--unified",
    "context",
    metavar="N",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="unified: lines shown around a change.",
)
@click.option(
    "--trust-links",
    is_flag=True,
    help="Follow links to weights in other files, within the folder of a model or of the file that it links to.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 for models that differ, too.")
@paging.options
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[Path, ...],
    *,
    in_git: bool,
    staged: bool,
    form: Form | None,
    details: bool,
    destination: Path | None,
    ignore: tuple[tuple[str, ...], ...],
    nodes_only: bool,
    weights: WeightsComparison,
    prove: bool,
    matches: bool,
    context: int,
    trust_links: bool,
    exit_zero: bool,
    color: paging.Colour,
    no_pager: bool,
) -> None:
    """Say what differs between two models.

    A and B are .onnx, .onnx.json or proto-JSON, in any combination, or REV:path for a file in git. Nodes are matched by
    structure: names and order do not matter, only what is computed. Exits 0 if the models are the same, 1 if they
    differ, 66 if something, such as weights in other files, could not be compared, with another code if a model cannot
    be read.

    With one revision or a range (A..B, or A...B for what B has since it left A), or with --git, all models that git
    finds changed are compared, or those of PATH.

    \b
    onnxjson diff before.onnx after.onnx
    onnxjson diff HEAD~1:m.onnx.json m.onnx.json --details
    onnxjson diff main...HEAD -- models --format markdown
    onnxjson diff before.onnx after.onnx -o report.html
    onnxjson diff before.onnx after.onnx --ignore names,order --format json
    """
    if destination == Path("-"):
        destination = None
    ending = destination.suffix.lower() if destination is not None else ""
    options = Options(
        form=form or _ENDINGS.get(ending, "text"),
        details=details,
        context=context,
        matches=matches,
        nodes_only=nodes_only,
        ignore=frozenset(itertools.chain.from_iterable(ignore)),
        weights=weights,
        prove=prove,
        trust_links=trust_links,
        destination=destination,
        coloured=destination is None and paging.is_coloured(color),
        pager=not no_pager,
    )
    _check_usage(options)
    request = revisions.request_of(words, ctx.meta.get(BEHIND), in_git=in_git, staged=staged)
    if request is not None:
        from onnxjson.cli import diff_git

        if color == "auto" and destination is None:
            options = replace(options, coloured=diff_git.is_coloured())
        code = diff_git.run(request, options)
        ctx.exit(0 if code == 1 and exit_zero else code)
    one, other = words or [Path(word) for word in ctx.meta[BEHIND]]
    with ExitStack() as stack:
        found = [stack.enter_context(sides.opened(path, bind=options.form != "unified")) for path in (one, other)]
        if destination is not None:
            for side in found:
                refuse_sources(destination, side.path, side.model, None)
        differs, problems = compare(found[0], found[1], options)
    for problem in problems:
        output.warn(problem)
    if problems:
        ctx.exit(INCOMPLETE)
    ctx.exit(1 if differs and not exit_zero else 0)


def compare(one: sides.Side, other: sides.Side, options: Options) -> tuple[bool, list[str]]:
    """Print what differs; whether anything does, and what could not be compared."""
    return (_unified if options.form == "unified" else _structural)(one, other, options)


def _check_usage(options: Options) -> None:
    """Do nothing if all options mean something together.

    Raises:
        click.UsageError: one would have no effect, or a page would be printed on a terminal.
    """
    whole: tuple[tuple[str, bool], ...] = (
        ("--ignore", bool(options.ignore)),
        ("--nodes-only", options.nodes_only),
        ("--prove", options.prove),
        ("--weights", options.weights != "exact"),
    )
    for name, given in whole:
        if given and options.form in ("unified", "patch", "script"):
            raise click.UsageError(f"{name} has no effect on --format {options.form}, which shows every difference")
    if options.matches and options.form not in ("text", "json"):
        raise click.UsageError("--matches is for --format text and json")
    if options.details and options.form != "text":
        raise click.UsageError("--details is for --format text")
    if options.form == "html" and options.destination is None and paging.is_terminal(sys.stdout):
        raise click.UsageError("a page is not for a terminal; write it with -o report.html")


def _unified(one: sides.Side, other: sides.Side, options: Options) -> tuple[bool, list[str]]:
    """The line diff; whether there is a difference, and what could not be compared."""
    from onnxjson.rendering import external_weights, unified
    from onnxjson.rendering.external_weights import Place

    with output.working("comparing weights in other files"):
        places = [Place(side.model, side.path, side.name) for side in (one, other)]
        weights = external_weights.compare(places[0], places[1], trust_links=options.trust_links)
    texts = unified.diff_models(one.model, other.model, one.name, other.name, context=options.context)
    outside = [f"{side.name} (external data)" for side in (one, other)]
    lines = itertools.chain(
        texts, unified.diff_texts(weights.old, weights.new, outside[0], outside[1], context=options.context)
    )
    first = next(lines, None)
    if first is not None:
        _print((paging.diff_line(line, coloured=options.coloured) for line in itertools.chain([first], lines)), options)
    return first is not None, [*one.problems, *other.problems, *weights.problems]


def _structural(one: sides.Side, other: sides.Side, options: Options) -> tuple[bool, list[str]]:
    """Which node is which and what happened; whether anything did, and what could not be compared."""
    from onnxjson.rendering.diff_report import report

    with output.working(f"comparing {one.name} and {other.name}"):
        diff = _compared(one, other, options)
    if options.prove:
        diff = _proved(diff)
    problems = [*one.problems, *other.problems, *diff.incomplete]
    if options.form == "patch" or (options.form == "script" and not _write_script(diff, options)):
        _write_patch(one, other, diff, options)
    if options.form in ("patch", "script"):
        # A patch holds records: weights in other files may differ where all of these are the same.
        return bool(diff.patch) or bool(diff.events), problems
    shown = report(diff, one.name, other.name, nodes_only=options.nodes_only)
    shown = shown._replace(incomplete=tuple(problems), equal=shown.equal and not problems)
    _show(shown, options)
    return not shown.equal, problems


def _compared(one: sides.Side, other: sides.Side, options: Options) -> "Diff":
    from onnxjson.diffing import difference

    return difference.diff_models(
        one.model,
        other.model,
        paths=(one.path, other.path),
        names=(one.name, other.name),
        ignore=options.ignore,
        weights=options.weights,
        trust_links=options.trust_links,
    )


def _proved(diff: "Diff") -> "Diff":
    from onnxjson.running.proof import prove

    with output.working("running both sides of the rewrites"):
        return prove(diff)


def _show(report: "Report", options: Options) -> None:
    match options.form:
        case "json":
            from onnxjson.rendering.diff_json import diff_json

            write(diff_json(report, with_matches=options.matches), options)
        case "markdown":
            from onnxjson.rendering.diff_markdown import diff_markdown

            write([diff_markdown(report)], options)
        case "html":
            from onnxjson.rendering.diff_html import diff_html

            write(diff_html(report), options)
        case _ if report.equal and options.destination is None and not options.matches:
            for line in _text_lines(report, options):
                output.talk(line)
        case _:
            _print(_text_lines(report, options), options)


def _text_lines(report: "Report", options: Options) -> Iterator[str]:
    from onnxjson.rendering.diff_text import diff_lines, match_lines

    width = paging.width()
    lines = diff_lines(report, width, details=options.details)
    for line in itertools.chain(lines, match_lines(report) if options.matches else ()):
        yield paging.styled(line, coloured=options.coloured)


def _print(lines: Iterable[str], options: Options) -> None:
    """Lines for a person, or to the file."""
    if options.destination is None and options.collected is None:
        paging.show(lines, pager=options.pager)
    else:
        write((f"{line}\n" for line in lines), options)


def write(pieces: Iterable[str], options: Options) -> None:
    """Pieces of a text, to the file or to standard output."""
    if options.collected is not None:
        options.collected.extend(pieces)
        return
    if options.destination is None:
        stream = output.Stdout()
        for piece in pieces:
            stream.write(piece.encode())
        return
    from onnxjson.saving import save_file

    def written(sink: "Sink") -> None:
        for piece in pieces:
            sink.write(piece.encode())

    save_file(options.destination, written)
    output.talk(f"wrote {options.destination} ({output.size(options.destination)})")


def _write_script(diff: "Diff", options: Options) -> bool:
    """The change as a rewrite script; False where edits cannot say it, which is said."""
    from onnxjson.edits.expressing import express
    from onnxjson.edits.script import write_script

    with output.working("finding edits"):
        found = express(diff.base, diff.target, diff.alignment)
    if found.reason:
        output.talk(f"no script makes this change: {found.reason}; this is a patch")
        return False
    for what in found.left_out:
        output.talk(f"the script leaves out what nobody computes with: {what}")
    write([write_script(found.edits)], options)
    return True


def _write_patch(one: sides.Side, other: sides.Side, diff: "Diff", options: Options) -> None:
    from onnxjson.patching.storing import write_patch
    from onnxjson.saving import save_file

    with output.working("making the patch"):
        patch = diff.patch.with_hashes(one.model, other.model)
        patch = patch.with_external(one.model, one.path, other.model, other.path)
    if options.destination is None:
        write_patch(patch, output.Stdout().write)
        return
    save_file(options.destination, lambda sink: write_patch(patch, sink.write))
    output.talk(f"wrote {options.destination} ({output.size(options.destination)})")
