"""``onnxjson check``: what is wrong with models, and where."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from onnxjson.checking import Finding, Severity
from onnxjson.cli import failures, findings, output
from onnxjson.cli.paths import FilePath
from onnxjson.errors import DecodeError, OnnxJsonError, WorkerError

if TYPE_CHECKING:
    from onnxjson.worker import Worker

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning")

_UNFINISHED: Final = "check-unfinished"


@click.command("check")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=FilePath())
@click.option("--deep", is_flag=True, help="Also ask onnx: its checker and its shape inference.")
@click.option("--strict", is_flag=True, help="Exit 1 for warnings, too.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of findings.")
@click.pass_context
def command(ctx: click.Context, paths: tuple[Path, ...], *, deep: bool, strict: bool, as_json: bool) -> None:
    """Say what is wrong with models, and where.

    Looks at every file to its end. Exits 1 if there are errors; warnings alone count only with --strict.

    \b
    onnxjson check m.onnx.json
    onnxjson check --deep --json models/*.onnx
    """
    found: list[Finding] = []
    listed: list[Finding] = []
    code = looked_at = 0
    with _native_analysis() if deep else nullcontext() as worker:
        for path in paths:
            try:
                with output.working(f"checking {path}"):
                    of_file = _findings(path, worker)
            except OnnxJsonError as error:
                code = failures.report(error)
                not_checked = Finding(severity="error", code="not-checked", message=str(error), file=str(path))
                listed.append(not_checked)
                continue
            looked_at += 1
            found += of_file
            listed += of_file
            if not as_json:
                output.findings_data(of_file)
            if not code and _stopped_unexplained(of_file):
                code = WorkerError.exit_code
    if as_json:
        _print_json(listed)
    severities = Counter(finding.severity for finding in found)
    if looked_at:
        output.talk(_summary(looked_at, severities))
    if not code and (severities["error"] or (strict and severities["warning"])):
        code = 1
    ctx.exit(code)


def _native_analysis() -> "Worker":
    from onnxjson.worker import Worker

    return Worker()


def _findings(path: Path, worker: "Worker | None") -> list[Finding]:
    """Everything that is found in one file.

    Raises:
        OnnxJsonError: the file could not be looked at; that it is no model is a finding.
    """
    from onnxjson import files
    from onnxjson.reading.comments import CODE as COMMENTS_CODE

    try:
        # Blobs that are not there are findings; nothing else ends with the first of them.
        loaded = files.load(path, bind=False)
    except DecodeError as error:
        return _of_unreadable(path, error)
    # Comments are nothing wrong; they matter only to commands that write.
    found = [finding for finding in loaded.warnings if finding.code != COMMENTS_CODE]
    found += findings.of_structure(path, loaded)
    of_blobs = findings.of_blobs(path, loaded)
    found += of_blobs
    if worker is not None and of_blobs:
        message = "onnx was not asked, since bytes of weights are missing"
        found.append(Finding(severity="warning", code=_UNFINISHED, message=message, file=str(path)))
    elif worker is not None:
        try:
            found += findings.of_native_analysis(path, loaded, worker)
        except WorkerError as error:
            found.append(Finding(severity="warning", code=_UNFINISHED, message=str(error), file=str(path)))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def _stopped_unexplained(found: list[Finding]) -> bool:
    """Whether native analysis came to no end, and nothing that was found says why."""
    return any(finding.code == _UNFINISHED for finding in found) and all(
        finding.severity != "error" for finding in found
    )


def _of_unreadable(path: Path, error: DecodeError) -> list[Finding]:
    if not error.findings:
        return [Finding(severity="error", code="not-a-model", message=str(error), file=str(path))]
    return [msgspec.structs.replace(finding, file=finding.file or str(path)) for finding in error.findings]


def _print_json(found: list[Finding]) -> None:
    """One object a line, ASCII, exactly what was found."""
    lines = [json.dumps(msgspec.structs.asdict(finding)) for finding in found]
    output.Stdout().write(("[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n").encode("ascii"))


def _summary(files: int, severities: Mapping[Severity, int]) -> str:
    counts = [output.counted(severities[severity], severity) for severity in SEVERITIES if severities[severity]]
    return f"{output.counted(files, 'file')}: {', '.join(counts) or 'nothing wrong'}"
