"""``python -m tests.benchmarks.original_tools``: the same jobs by the simple-onnx-processing-tools and by onnxjson.

The tools run in an environment of their own, that of ``--python``; each job in a folder of its own. Prints the page
docs/original-tools.md.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.original_jobs import JOBS, Job
from tests.benchmarks.original_judging import Outcome, WrongError

SECONDS: Final = 120
_LONGEST: Final = 110

_HEAD: Final = """# Equivalents of other tools

Every job of the [simple-onnx-processing-tools](https://github.com/PINTO0309/simple-onnx-processing-tools) that edits a
model is an [edit](edits.md) of onnxjson too. This page compares both on the same jobs: typical ones, and ones that are
known to go wrong. Results are checked by onnx's checker with strict shape inference, by onnxruntime, and against the
purpose of the job. The page is the output of

```sh
python -m tests.benchmarks.original_tools --python PYTHON_OF_THE_TOOLS
```

"works": the result is right, or an impossible job was refused. "wrong": another result, or none, with the exit code of
success. "refuses": an error message. "crashes": a traceback.
"""


class Verdict(NamedTuple):
    """How one program did one job."""

    word: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs and print the page; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.original_tools", description=__doc__)
    parser.add_argument("--python", type=Path, required=True, help="the Python of the environment that has the tools")
    parser.add_argument("--only", metavar="TOOL", nargs="*", help="the jobs of these tools")
    parser.add_argument("-o", "--output", type=Path, help="write the page there")
    options = parser.parse_args(arguments)
    jobs = [job for job in JOBS if not options.only or job.tool in options.only]
    text = page(jobs, options.python)
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


def page(jobs: Sequence[Job], python: Path) -> str:
    """The page: what ran, then a row for each job."""
    versions = installed(python)
    ours = installed(Path(sys.executable))
    around = ", ".join(f"{name} {versions.get(name, 'missing')}" for name in ("onnx", "onnxruntime", "numpy"))
    lines = [
        _HEAD,
        f"{datetime.datetime.now(tz=datetime.UTC).date()}, onnxjson {ours.get('onnxjson', '')}; both with {around}.",
        "",
        "| tool | job | original | onnxjson |",
        "|---|---|---|---|",
    ]
    for job in jobs:
        version = versions.get(job.tool)
        program = [os.fspath(python.parent / job.tool), *job.original]
        original = done(job, program) if version else Verdict("not installed")
        mine = by_onnxjson(job)
        lines.append(f"| {job.tool} {version or ''} | {job.what} | {cell(original)} | {cell(mine)} |")
    return "\n".join(lines) + "\n"


def by_onnxjson(job: Job, command: Sequence[str] = (sys.executable, "-I", "-m", "onnxjson")) -> Verdict:
    """How onnxjson, which `command` starts, does a job."""
    return done(job, [*command, *job.ours])


def cell(verdict: Verdict) -> str:
    """A verdict as it stands in a table."""
    return str(verdict).replace("|", "\\|").replace("\n", " ")


def done(job: Job, command: Sequence[str]) -> Verdict:
    """How a program does a job."""
    with tempfile.TemporaryDirectory(prefix="original-tools-") as name:
        folder = Path(name)
        job.make(folder)
        try:
            result = subprocess.run(
                command,
                cwd=folder,
                env=os.environ | {"NO_COLOR": "1", "COLUMNS": "200", "XDG_STATE_HOME": str(folder / "state")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verdict("wrong", f"no end within {SECONDS} s")
        return judged(job, Outcome(result.returncode, result.stdout, folder))


def judged(job: Job, outcome: Outcome) -> Verdict:
    """What an outcome is worth."""
    crashed = "Traceback (most recent call last)" in outcome.output
    last = plain(outcome.output.strip().splitlines()[-1] if outcome.output.strip() else "", outcome.folder)
    try:
        job.judge(outcome)
    except WrongError as error:
        if crashed:
            return Verdict("crashes", last)
        if outcome.code:
            return Verdict("refuses", last)
        return Verdict("wrong", plain(str(error), outcome.folder))
    except Exception as error:
        # The judges are onnx and onnxruntime: whatever they raise is what is wrong.
        if crashed:
            return Verdict("crashes", last)
        return Verdict("wrong", plain(f"invalid model: {error}", outcome.folder))
    return Verdict("crashes", last) if crashed else Verdict("works")


def plain(text: str, folder: Path) -> str:
    """One short line without colours, and without places of this machine."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).replace(str(folder), ".")
    text = re.sub(r"(?:/[\w.+-]+){2,}/", "", text)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def installed(python: Path) -> dict[str, str]:
    """The distributions of an environment with their versions."""
    code = (
        "import json; from importlib.metadata import distributions; "
        "print(json.dumps({d.metadata['Name'].lower().replace('-', '_'): d.version for d in distributions()}))"
    )
    result = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=SECONDS)
    found: dict[str, str] = json.loads(result.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
