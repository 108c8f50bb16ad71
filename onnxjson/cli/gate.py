"""``onnxjson gate``: checks of the models of a change, as reports for a pull request."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
from msgspec.structs import replace

from onnxjson.checking.cost import assumed_dims
from onnxjson.checking.judging import (
    GateResult,
    Judged,
    ModelResult,
    judge_change,
    judged,
    measure,
)
from onnxjson.checking.outputs import Outputs, compare_outputs, doubted
from onnxjson.checking.policy import Ignored, Policy, load_policy
from onnxjson.cli import options, output, reports
from onnxjson.cli.diff_git import open_version, path_of, status_of
from onnxjson.cli.paths import DestinationPath, Side
from onnxjson.cli.processes import spread
from onnxjson.diffing.difference import diff_models
from onnxjson.git.changed_models import Change, changed
from onnxjson.git.commands import Git
from onnxjson.model.errors import Finding, MissingInputError, OnnxJsonError, Severity
from onnxjson.rendering.change_words import Words, change_words
from onnxjson.rendering.ci_reports import findings_text, gate_data, gate_html, headline, summary_line
from onnxjson.rendering.diff_html import diff_section
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.gate_comment import gate_comment
from onnxjson.rendering.values import as_json
from onnxjson.running import checking
from onnxjson.storage.saving import make_folder


class _Texts(NamedTuple):
    """One model of the change, with its changes in words and its section of the page."""

    result: ModelResult
    changes: tuple[Words, ...] = ()
    page: str = ""


@options.command("gate")
@options.option("--base REV", "Revision to compare with, such as the target branch.", required=True)
@options.option("--head REV", "Revision with the change.", default="HEAD")
@options.option("--policy FILE", "Rules and budgets; default: all rules, no budgets.", "policy_file")
@options.out("Folder for gate.md, .html, .json, .sarif and .github.", parameter="folder", type=DestinationPath())
@options.option(
    "--verify-seconds SECONDS",
    "Compare outputs with those of the base on random inputs, each model for at most this time; 0: never.",
    "seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
)
@reports.form_options(("text", "markdown", "json"), "Format of the printed report; markdown: the comment.")
@options.renamed("--out", "-o")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.pass_context
def gate_command(
    ctx: click.Context,
    base: str,
    head: str,
    policy_file: Path | None,
    folder: Path | None,
    seconds: float,
    form: str | None,
    paths: tuple[str, ...],
) -> None:
    """Check every model that changed between two revisions of git.

    Compares HEAD with the commit where it branched off the base. Reports what changed (inputs and outputs first),
    whether outputs are equal, the cost before and after, budgets, and new findings. Writes a Markdown comment, a page,
    JSON, SARIF and GitHub annotations. Models run in a sandbox. Exits 1 if a model violates the policy or cannot be
    read.

    \b
    onnxjson gate --base main --policy policy.toml -o gate
    onnxjson gate --base origin/main --head HEAD -o gate models
    onnxjson gate --base main --verify-seconds 0 --format markdown
    """
    policy = Policy() if policy_file is None else load_policy(policy_file)
    git = Git(Path.cwd())
    with output.working("listing changed models"):
        changes = changed(git, (f"{base}...{head}",), paths)
    with output.working(f"judging {output.counted(len(changes), 'model')}"):
        texts = spread(partial(_judge, policy, seconds), list(enumerate(changes)))
    result = GateResult(base, head, tuple([each.result for each in texts]))
    words = {each.result.name: each.changes for each in texts}
    if folder is not None:
        _write(folder, result, texts, words, gate_comment(result, words, seconds))
    match form:
        case "json":
            lines = as_json(gate_data(result)).splitlines()
        case "markdown":
            lines = gate_comment(result, words, seconds).splitlines()
        case _:
            lines = [*map(summary_line, result.models), headline(result)]
    for line in lines:
        output.data(line)
    ctx.exit(0 if result.passes else 1)


def _write(
    folder: Path, result: GateResult, texts: Sequence[_Texts], words: Mapping[str, Sequence[Words]], comment: str
) -> None:
    """Write the reports."""
    make_folder(folder)
    pages = {model.result.name: model.page for model in texts}
    files: dict[str, Iterator[str]] = {
        "gate.md": iter([comment]),
        "gate.html": gate_html(result, words, pages),
        "gate.sarif": findings_text(result.findings, "sarif"),
        "gate.github": findings_text(result.findings, "github"),
        "gate.json": iter([as_json(gate_data(result)) + "\n"]),
    }
    for name, pieces in files.items():
        reports.save(pieces, folder / name)


def _judge(policy: Policy, seconds: float, numbered: tuple[int, Change]) -> _Texts:
    """Judge one model; one that cannot be read fails."""
    found = _judge_model(policy, seconds, numbered[1], f"m{numbered[0]}")
    before, after = [side and side.without_model() for side in (found.result.before, found.result.after)]
    return found._replace(result=found.result._replace(before=before, after=after))


def _judge_model(policy: Policy, seconds: float, change: Change, prefix: str) -> _Texts:
    """Judge one model; `prefix` begins the ids of its section of the page."""
    name, status = path_of(change), status_of(change)
    with ExitStack() as stack:
        try:
            new = None if change.new is None else stack.enter_context(open_version(change.new, bind=True))
        except OnnxJsonError as error:
            # The revision has the file, so Git LFS did not fetch it.
            is_pointer = isinstance(error, MissingInputError)
            severity: Severity = "warning" if is_pointer else "error"
            finding = Finding(severity=severity, code="not-checked", message=str(error), file=name)
            return _Texts(ModelResult(name, status, None, None, (finding,)))
        problems = [] if new is None else list(new.problems)
        old = None
        try:
            old = None if change.old is None else stack.enter_context(open_version(change.old, bind=True))
        except OnnxJsonError as error:
            problems.append(str(error))
        before, after = _judged(policy, name, old), _judged(policy, name, new)
        if before is not None and old is not None and after is not None:
            before, _ = measure(policy, before, old.path, None)
        outputs = None
        if old is not None and new is not None:
            outputs = Outputs("not-compared", "not compared", "switched off (--verify-seconds 0)")
            if seconds:
                opened = assumed_dims({}, new.model).keys() - assumed_dims({}, old.model).keys()
                outputs = compare_outputs(old.path, new.path, dict(policy.dims), seconds, opened)
        if after is not None and new is not None:
            place = None if old is None else old.path
            after, unmeasured = measure(policy, after, new.path, place, outputs if seconds else None)
            problems += unmeasured
        checks = [checking.check(side.model) if side is not None else () for side in (old, new)]
        result = ModelResult(name, status, before, after, problems=tuple(problems), outputs=outputs)
        if new is not None and new.problems and all(["Git LFS pointer" in each for each in new.problems]):
            known = Ignored("ONJ902", reason="weights that Git LFS did not fetch are listed as not compared")
            policy = replace(policy, ignored=(*policy.ignored, known))
        if old is None or new is None or before is None or after is None:
            return _Texts(judge_change(policy, result, checks, None))
        diff = diff_models(old.model, new.model, paths=(old.path, new.path), names=(old.name, new.name))
        shown = report(diff, old.name, new.name)
        result = result._replace(outputs=doubted(outputs, [event.kind for event in shown.by_weight[0]]))
        result = judge_change(policy, result, checks, diff.alignment)
        if before.cost is not None and after.cost is not None:
            shown = shown._replace(costs=(before.cost, after.cost))
        result = result._replace(problems=(*result.problems, *old.problems, *diff.incomplete))
        return _Texts(result, tuple(change_words(shown)), "".join(diff_section(shown, prefix)))


def _judged(policy: Policy, name: str, side: Side | None) -> Judged | None:
    if side is None:
        return None
    return judged(policy, name, side.model, side.path.parent, os.stat(side.path).st_size, with_cost=True)
