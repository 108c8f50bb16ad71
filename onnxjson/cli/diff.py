"""``onnxjson diff``: what changed between two models."""

import itertools
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import click

from onnxjson.cli import diff_git, options, output, reports
from onnxjson.cli.diff_output import INCOMPLETE, Form, Options, compare
from onnxjson.cli.paths import FilePath, open_side, refuse_sources
from onnxjson.codecs.wire_reading import sharing_graphs
from onnxjson.diffing.events import IGNORABLE, WEIGHTS_COMPARISONS

PATHS_AFTER: Final = "onnxjson.cli.diff.paths_after"
"""Key under which a context keeps the words after ``--``."""


class _WithPathsAfter(options.Command):
    """A command that distinguishes words before ``--`` and after it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[PATHS_AFTER] = args[at + 1 :] if at < len(args) else None
        return super().parse_args(ctx, args[:at])


@click.command("diff", cls=_WithPathsAfter)
@click.argument("words", metavar="OLD NEW... | [REV[..REV]] [-- PATH...]", nargs=-1, type=FilePath())
@options.option("--git", "Compare models in revisions, index and work tree, as `git diff` does.", "in_git")
@options.option("--staged, --cached", "Compare staged models with HEAD or REV.")
@options.option(
    "-v, --verbose", "text: show every place with its address, and all details.", callback=options.be_verbose
)
@options.option(
    "--ignore NAME,...", f"Ignore changes of {', '.join(IGNORABLE)}.", multiple=True, type=options.WordList(IGNORABLE)
)
@options.option("--nodes-only", "Show changes of nodes only.")
@options.option(
    "--compare-weights",
    "exact: compare weights bit by bit. tolerance: within a tolerance. rank: bit by bit, and compute the rank of each "
    "change. skip: not at all.",
    "weights",
    type=click.Choice(WEIGHTS_COMPARISONS),
    default="exact",
)
@options.option("--test-rewrites", "Run both sides of each rewrite on random inputs and compare.", "tests_rewrites")
@options.option("--matches", "text, json: also list each matched node with its address in OLD and in NEW.")
@options.option(
    "-U, --unified N", "unified: number of lines of context.", "context", type=click.IntRange(min=0), default=3
)
@options.option("--cost", "Also compare MACs, FLOPs and bytes of activations.", "with_cost")
@options.dims
@options.trust_links
@options.option("--exit-zero", "Exit 0 even if the models differ.")
@reports.view_options(
    *get_args(Form),
    about=" unified: line diff, weights as sha256. json: onnxjson-diff/1. markdown: for a pull request. html: page "
    "with drawings. patch: for `onnxjson apply`.",
)
@click.pass_context
def diff_command(
    ctx: click.Context,
    /,
    words: tuple[Path, ...],
    *,
    in_git: bool,
    staged: bool,
    exit_zero: bool,
    ignore: tuple[tuple[str, ...], ...],
    view: reports.View,
    **given: Any,
) -> None:
    """Show what changed between two models.

    OLD and NEW are .onnx, .onnx.json or proto-JSON, or REV:path for a file in git. With several NEW, compares each
    with OLD in one table, or with -o on one page. Matches nodes by structure, regardless of names and order; reports
    renames and moves unless --ignore excludes them. Exits 0 if the models are the same, 1 if they differ, 66 if
    something could not be compared, such as missing weights. With a revision or a range (A..B, or A...B for the
    changes of B since it branched off A), or with --git, compares all models that git reports as changed, or only
    those at PATH.

    \b
    onnxjson diff before.onnx after.onnx
    onnxjson diff before.onnx a.onnx b.onnx -o report.html
    onnxjson diff HEAD~1:m.onnx.json m.onnx.json --verbose
    onnxjson diff main...HEAD --format markdown -- models
    onnxjson diff before.onnx after.onnx -o report.html
    onnxjson diff before.onnx after.onnx --ignore names,order --json
    """
    wanted = Options(view=view, ignore=frozenset(itertools.chain.from_iterable(ignore)), **given)
    _check_usage(wanted)
    after: list[str] | None = ctx.meta.get(PATHS_AFTER)
    request = diff_git.request_of(words, after, in_git=in_git, staged=staged)
    if request is not None:
        if view.color == "auto" and view.destination is None:
            view = view._replace(color="always" if diff_git.is_coloured() else "never")
        code = diff_git.run(request, replace(wanted, view=view))
        ctx.exit(0 if code == 1 and exit_zero else code)
    one, other, *more = words or [Path(word) for word in after or ()]
    if more:
        if view.destination is not None and view.destination.exists():
            for path in (one, other, *more):
                with open_side(path, bind=False) as side:
                    refuse_sources(view.destination, side.path, side.model, None)
        code = diff_git.compare_all(diff_git.with_base(one, [other, *more]), replace(wanted, reports=[]))
        ctx.exit(0 if code == 1 and exit_zero else code)
    with ExitStack() as stack:
        with sharing_graphs():
            sides = [stack.enter_context(open_side(path, bind=view.form != "unified")) for path in (one, other)]
        if view.destination is not None:
            for side in sides:
                refuse_sources(view.destination, side.path, side.model, None)
        differs, problems = compare(sides[0], sides[1], wanted)
    for problem in problems:
        output.warn(problem)
    if problems:
        ctx.exit(INCOMPLETE)
    ctx.exit(1 if differs and not exit_zero else 0)


def _check_usage(wanted: Options) -> None:
    """Raise unless every option has an effect."""
    is_structural = wanted.form not in ("unified", "patch")
    for name, is_given in (
        ("--ignore", wanted.ignore), ("--nodes-only", wanted.nodes_only), ("--test-rewrites", wanted.tests_rewrites),
        ("--compare-weights", wanted.weights != "exact"), ("--cost", wanted.with_cost),
    ):  # fmt: skip
        if is_given and not is_structural:
            raise click.UsageError(f"{name} has no effect on --format {wanted.form}, which shows every difference")
    if wanted.dims and not wanted.with_cost:
        raise click.UsageError("--dim is for --cost")
    if wanted.matches and wanted.form not in ("text", "json"):
        raise click.UsageError("--matches is for --format text and json")
    if wanted.verbose and wanted.form != "text":
        raise click.UsageError("--verbose is for --format text")
