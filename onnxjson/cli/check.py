"""``onnxjson check``: findings about models, the rules and budgets of a policy, and their forms."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec

from onnxjson.cli import changing, failures, options, output, reports
from onnxjson.cli.paths import FilePath, Side, open_revision, open_side
from onnxjson.model.errors import Finding, MissingInputError, OnnxJsonError, Severity, WorkerError
from onnxjson.running import checking
from onnxjson.storage import files
from onnxjson.storage.files import Loaded

if TYPE_CHECKING:
    from onnxjson.checking.policy import Policy

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning")

FORMS: Final = ("text", "json", "sarif", "github", "junit")

_NOT_CHECKED: Final = "not-checked"


class _Wanted(NamedTuple):
    """What to check, besides the model itself."""

    policy: "Policy | None"
    base: str | None
    """A revision, or a file: what relative budgets are compared with."""
    new_since: str | None
    """A revision, or a file, whose findings are left out."""
    fix: bool


@options.command("check")
@click.argument("paths", metavar="MODEL...", nargs=-1, type=FilePath())
@options.option("--deep", "Also run onnx's checker and shape inference, and load the model in onnxruntime.")
@options.limits_of_analysis
@options.option("--strict", "Also exit 1 if there are warnings.")
@options.option(
    "--policy FILE", "Also apply the rules and budgets of a policy: .toml, .json, or pyproject.toml.", "policy_file"
)
@options.option("--select NAME,...", "Run these rules instead of those of the policy: codes, families, or `all`.")
@options.option("--base REV", "Compare budgets and interface with the model in a git revision or a file.")
@options.option("--new-since REV", "Omit findings that the model already has in a git revision or a file.")
@options.option("--explain CODE", "Describe a rule; check nothing.")
@options.option("--fix", "Fix in place what can be fixed automatically; keep a backup.")
@options.drop_orphans
@reports.view_options(*FORMS)
@click.pass_context
def check_command(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    *,
    deep: bool,
    strict: bool,
    policy_file: Path | None,
    select: str | None,
    explain: str | None,
    drop_orphans: bool,
    view: reports.View,
    **given: Any,
) -> None:
    """Check models for errors, and against rules and budgets.

    Prints every finding with file, line and column. Exits 1 if there are errors; with --strict, also if there are
    warnings. Rules run only with --policy or --select.

    \b
    onnxjson check m.onnx.json
    onnxjson check --deep models/*.onnx --json
    onnxjson check m.onnx --select all
    onnxjson check m.onnx --policy policy.toml --new-since main --format sarif
    onnxjson check --explain ONJ501
    """
    if explain is not None:
        view.show(_explanation(explain))
        return
    if not paths:
        raise click.UsageError("Missing argument 'MODEL...'.")
    from onnxjson.checking.policy import chosen_policy

    wanted = _Wanted(chosen_policy(policy_file, select), **given)
    if wanted.policy is None and any(given.values()):
        raise click.UsageError("--base, --new-since and --fix are for rules and budgets: add --policy or --select")
    all_findings: list[Finding] = []
    code = checked = 0
    with checking.new_worker() if deep else nullcontext() as worker:
        for path in output.numbered(paths):
            try:
                with output.working(f"checking {path}"):
                    of_file, loaded = checking.read_file(path, worker, drop_orphans=drop_orphans)
                if loaded is not None:
                    of_file = _judged(path, loaded, of_file, wanted)
                    of_file = checking.outlined(loaded.model, of_file, infer=deep)
            except OnnxJsonError as error:
                failure = failures.leave_or_report(path, error)
                if not failure:
                    continue
                code = failure
                all_findings.append(Finding(severity="error", code=_NOT_CHECKED, message=str(error), file=str(path)))
                continue
            checked += 1
            all_findings += of_file
            if view.form == "text" and view.destination is None:
                output.findings_data(of_file, coloured=view.coloured)
            has_errors = any(finding.severity == "error" for finding in of_file)
            if not code and not has_errors and any(finding.code == checking.UNFINISHED for finding in of_file):
                code = WorkerError.exit_code
    if view.form == "json":
        view.write_objects([msgspec.structs.asdict(each) for each in all_findings])
    elif view.form == "text":
        if view.destination is not None:
            view.write(click.unstyle(output.finding_line(each)) + "\n" for each in all_findings)
    else:
        from onnxjson.rendering.ci_reports import findings_text

        view.write(findings_text(all_findings, view.form, [str(path) for path in paths]))
    severities = Counter(each.severity for each in all_findings if each.code != _NOT_CHECKED)
    if checked:
        counts = [output.counted(severities[each], each) for each in SEVERITIES if severities[each]]
        output.talk(f"{output.counted(checked, 'file')}: {', '.join(counts) or 'no errors'}")
    if not code and (severities["error"] or (strict and severities["warning"])):
        code = 1
    ctx.exit(code)


def _judged(path: Path, loaded: Loaded, others: list[Finding], wanted: _Wanted) -> list[Finding]:
    """Return the findings by the policy; those of the model itself if there is none."""
    if wanted.policy is None:
        return others
    from onnxjson.checking.judging import (
        align_layouts,
        budget_findings,
        change_findings,
        findings_of,
        fixes_of,
        judged,
        measure,
        new_findings,
        verdicts_of,
    )
    from onnxjson.diffing.interface_changes import interface_changes

    policy = wanted.policy
    name = path.as_posix()
    model = loaded.model
    with suppress(OnnxJsonError):  # missing blobs are findings already
        model = files.bind_digests(model, folder=path.parent, weights_from=None)
    target = judged(policy, name, model, path.parent, loaded.identity.size)
    of_policy, ignored = findings_of(policy, target, others)
    if wanted.fix and (edits := fixes_of(policy.rules_for(name), of_policy)):
        _fix(path, edits)
        others, fixed = checking.read_file(path, None)
        return _judged(path, fixed or loaded, others, wanted._replace(fix=False))
    before = None
    with open_base(wanted.base or wanted.new_since, path) as side:
        if side is not None:
            before = judged(policy, name, side.model, side.path.parent, os.stat(side.path).st_size)
            before, _ = measure(policy, before, side.path, None)
            alignment = align_layouts(side.model, model)
            if wanted.new_since is not None:
                codes = {each.code for each in of_policy}
                of_base = findings_of(policy, before, checking.check(side.model), codes)[0]
                of_policy = new_findings(of_policy, of_base, alignment)
            of_policy = [*of_policy, *change_findings(policy, name, interface_changes(alignment))]
        target, problems = measure(policy, target, path, None if side is None else side.path)
    verdicts = verdicts_of(policy, target, before)
    for problem in problems:
        output.warn(f"{path}: not measured: {problem}")
    if ignored:
        output.talk(f"{path}: {output.counted(ignored, 'finding')} ignored with a reason")
    of_rules = checking.located(path, loaded, [each for each in of_policy if not each.line])
    return [*[each for each in of_policy if each.line], *of_rules, *budget_findings(verdicts, str(path))]


@contextmanager
def open_base(base: str | None, path: Path) -> Iterator[Side | None]:
    """Open the model of a path at a revision, or `base` if it is a file; None if the revision has no such file."""
    if base is None:
        yield None
        return
    from onnxjson.git.commands import Git

    with ExitStack() as stack:
        if os.path.isfile(base):
            yield stack.enter_context(open_side(Path(base), bind=True))
            return
        if Git(Path.cwd()).named(base, "commit") is None:
            raise MissingInputError(f"{output.quoted(base)} is neither a file nor a revision of this repository")
        spec = f"{base}:./{os.path.relpath(path)}"
        side: Side | None = None
        try:
            side = stack.enter_context(open_revision(spec, spec))
        except MissingInputError as error:
            output.talk(f"{path} has no base: {error}")
        yield side


def _fix(path: Path, edits: list[Any]) -> None:
    from onnxjson.editing.applying import run as run_edits
    from onnxjson.editing.script import parse_edit

    parsed = [parse_edit(json.dumps(each)) for each in edits]
    request = changing.Request((path,), None, True, None, None, False, reports.View(), unloadable=None)
    changing.run(
        request,
        lambda its, loaded: changing.Changed(run_edits(loaded.model, parsed, model_folder=its.parent).model),
    )


def _explanation(code: str) -> Iterator[str]:
    from onnxjson.checking.catalogue import RULES
    from onnxjson.rendering.ci_reports import rule_text

    rule = next((each for each in RULES if each.code == code.upper()), None)
    if rule is None:
        raise click.BadParameter(
            f"there is no rule {output.quoted(code)}; codes are {RULES[0].code} to {RULES[-1].code}"
        )
    yield f"{rule.code}  {rule_text(rule)}"
    yield f"family    {rule.family}"
    yield f"severity  {rule.level}" + (" unless a policy selects it" if rule.level == "off" else "")
    if rule.hint:
        yield f"hint      {rule.hint}"
    if rule.fix is not None:
        yield f"fix       {json.dumps(rule.fix)}"
