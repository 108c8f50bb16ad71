"""``onnxjson gate``: checks of the models of a change, as reports for a pull request."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
from msgspec.structs import replace

from onnxjson.checking.judging import GateResult, Judged, ModelResult, judge_change, judged, measure
from onnxjson.checking.policy import Ignored, Policy, load_policy
from onnxjson.cli import options, output, reports
from onnxjson.cli.diff_git import open_version, path_of, status_of
from onnxjson.cli.paths import Side
from onnxjson.cli.processes import spread
from onnxjson.diffing.difference import diff_models
from onnxjson.git.changed_models import Change, changed
from onnxjson.git.commands import Git
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, MissingInputError, OnnxJsonError, Severity
from onnxjson.rendering.ci_reports import findings_text, gate_data, gate_html, gate_markdown, headline, summary_line
from onnxjson.rendering.diff_html import diff_section
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.markdown_reports import diff_markdown
from onnxjson.rendering.values import as_json
from onnxjson.running import checking
from onnxjson.running.verification import verify
from onnxjson.storage.saving import make_folder


class _Texts(NamedTuple):
    """One model of the change, with its difference in two forms."""

    result: ModelResult
    markdown: str = ""
    page: str = ""


@options.command("gate")
@options.option("--base REV", "Revision to compare with, such as the target branch.", required=True)
@options.option("--head REV", "Revision with the change.", default="HEAD")
@options.option("--policy FILE", "Rules and budgets; default: all rules, no budgets.", "policy_file")
@options.option("--out DIR", "Folder for gate.md, .html, .json, .sarif and .github.", "folder", required=True)
@options.option(
    "--verify-seconds SECONDS",
    "Also compare outputs with those of the base on random inputs, each model for at most this time.",
    "seconds",
    type=click.FloatRange(0, min_open=True),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.pass_context
def gate_command(
    ctx: click.Context,
    base: str,
    head: str,
    policy_file: Path | None,
    folder: Path,
    seconds: float | None,
    paths: tuple[str, ...],
) -> None:
    """Check every model that changed between two revisions of git.

    Compares HEAD with the commit where it branched off the base: what changed, the cost before and after, budgets, and
    new findings. Writes a Markdown comment, a page, JSON, SARIF and GitHub annotations.
    Exits 1 if a model breaks the policy, or cannot be read.

    \b
    onnxjson gate --base main --policy policy.toml --out gate
    onnxjson gate --base origin/main --head HEAD --out gate models
    """
    policy = Policy() if policy_file is None else load_policy(policy_file)
    git = Git(Path.cwd())
    with output.working("listing changed models"):
        changes = changed(git, (f"{base}...{head}",), paths)
    with output.working(f"judging {output.counted(len(changes), 'model')}"):
        texts = spread(partial(_judge, policy, seconds), list(enumerate(changes)))
    result = GateResult(base, head, tuple([each.result for each in texts]))
    make_folder(folder)
    markdown = {each.result.name: each.markdown for each in texts}
    pages = {each.result.name: each.page for each in texts}
    files: dict[str, Iterator[str]] = {
        "gate.md": iter([gate_markdown(result, markdown)]),
        "gate.html": gate_html(result, pages),
        "gate.sarif": findings_text(result.findings, "sarif"),
        "gate.github": findings_text(result.findings, "github"),
        "gate.json": iter([as_json(gate_data(result)) + "\n"]),
    }
    for name, pieces in files.items():
        reports.save(pieces, folder / name)
    for each in result.models:
        output.data(summary_line(each))
    output.data(headline(result))
    ctx.exit(0 if result.passes else 1)


def _judge(policy: Policy, seconds: float | None, numbered: tuple[int, Change]) -> _Texts:
    """Judge one model; one that cannot be read fails."""
    found = _judge_model(policy, seconds, numbered[1], f"m{numbered[0]}")
    before, after = [side and side.without_model() for side in (found.result.before, found.result.after)]
    return found._replace(result=found.result._replace(before=before, after=after))


def _judge_model(policy: Policy, seconds: float | None, change: Change, prefix: str) -> _Texts:
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
        if after is not None and new is not None:
            after, unmeasured = measure(policy, after, new.path, None if old is None else old.path)
            problems += unmeasured
        checks = [checking.check(side.model) if side is not None else () for side in (old, new)]
        result = ModelResult(name, status, before, after, problems=tuple(problems))
        if new is not None and new.problems and all(["Git LFS pointer" in each for each in new.problems]):
            known = Ignored("ONJ902", reason="weights that Git LFS did not fetch are listed as not compared")
            policy = replace(policy, ignored=(*policy.ignored, known))
        if old is None or new is None or before is None or after is None:
            return _Texts(judge_change(policy, result, checks, None))
        diff = diff_models(old.model, new.model, paths=(old.path, new.path), names=(old.name, new.name))
        result = judge_change(policy, result, checks, diff.alignment)
        if seconds is not None:
            found, unknown = _verify(name, old.path, new.path, dict(policy.dims), seconds)
            result = result._replace(findings=(*found, *result.findings), problems=(*result.problems, *unknown))
        shown = report(diff, old.name, new.name)
        if before.cost is not None and after.cost is not None:
            shown = shown._replace(costs=(before.cost, after.cost))
        result = result._replace(problems=(*result.problems, *old.problems, *diff.incomplete))
        return _Texts(result, diff_markdown(shown), "".join(diff_section(shown, prefix)))


def _verify(name: str, base: Path, head: Path, dims: dict[str, int], seconds: float) -> tuple[list[Finding], list[str]]:
    """Compare two models on random inputs; return the finding that outputs differ, and why it could not be decided."""
    try:
        result = verify(base, head, dims=dims, timeout=seconds)
    except OnnxJsonError as error:
        return [], [f"not verified: {error}"]
    worst = [each for each in result.outputs if each.failed and each.worst is not None]
    if not result.failed:
        doubt = result.doubt or "no run of both models ended"
        return [], [] if result.equal else [f"not verified: {doubt}"]
    problems = [each.problem for each in result.runs if each.problem]
    figures = [
        f'"{visible(each.name)}" by up to {each.worst.largest_absolute:.3g}'
        for each in worst
        if each.worst is not None and each.worst.largest_absolute is not None
    ]
    text = f"outputs differ from those of the base on random inputs: {', '.join(figures) or problems[0]}"
    return [Finding(severity="error", code="verify", message=text, file=name)], []


def _judged(policy: Policy, name: str, side: Side | None) -> Judged | None:
    if side is None:
        return None
    return judged(policy, name, side.model, side.path.parent, os.stat(side.path).st_size, with_cost=True)
