"""``onnxjson check``: findings about models."""

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click
import msgspec

from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import FilePath
from onnxjson.model.errors import Finding, OnnxJsonError, Severity, WorkerError
from onnxjson.running import checking

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning")

_NOT_CHECKED: Final = "not-checked"


@options.command("check")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@options.option("--deep", "Also run onnx's checker and shape inference.")
@options.option("--strict", "Exit 1 for warnings too.")
@options.drop_orphans
@reports.view_options("text", "json")
@click.pass_context
def check_command(
    ctx: click.Context, paths: tuple[Path, ...], *, deep: bool, strict: bool, drop_orphans: bool, view: reports.View
) -> None:
    """Check models for errors.

    Prints every finding with file, line and column. Exits 1 if there are errors; with --strict also for warnings.

    \b
    onnxjson check m.onnx.json
    onnxjson check --deep models/*.onnx --json
    """
    found: list[Finding] = []
    code = checked = 0
    with checking.new_worker() if deep else nullcontext() as worker:
        for path in paths:
            try:
                with output.working(f"checking {path}"):
                    of_file = checking.of_file(path, worker, drop_orphans=drop_orphans)
            except OnnxJsonError as error:
                failure = output.leave_or_report(path, error)
                if not failure:
                    continue
                code = failure
                found.append(Finding(severity="error", code=_NOT_CHECKED, message=str(error), file=str(path)))
                continue
            checked += 1
            found += of_file
            if view.form == "text":
                output.findings_data(of_file, coloured=view.coloured)
            if not code and _is_unexplained(of_file):
                code = WorkerError.exit_code
    if view.form == "json":
        view.write_objects([msgspec.structs.asdict(each) for each in found])
    severities = Counter(each.severity for each in found if each.code != _NOT_CHECKED)
    if checked:
        counts = [output.counted(severities[each], each) for each in SEVERITIES if severities[each]]
        output.talk(f"{output.counted(checked, 'file')}: {', '.join(counts) or 'no errors'}")
    if not code and (severities["error"] or (strict and severities["warning"])):
        code = 1
    ctx.exit(code)


def _is_unexplained(found: list[Finding]) -> bool:
    """Whether native analysis did not finish, and no other finding explains why."""
    return any(finding.code == checking.UNFINISHED for finding in found) and all(
        finding.severity != "error" for finding in found
    )
