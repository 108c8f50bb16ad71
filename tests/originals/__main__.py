"""``python -m tests.originals``: the same jobs by the original tools and by onnxjson, and the table of rows.

``--install`` makes the environments of the tools first. Each job runs in a folder of its own. Exits 1 if onnxjson fails
at a job, or does it otherwise than an original that does it right. ``--idle`` replaces onnxjson by a program that does
nothing and succeeds: then every row must be "partly".
"""

import argparse
import datetime
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import onnx

from tests.originals import environment
from tests.originals.comparing import agree
from tests.originals.export_jobs import EXPORT_JOBS
from tests.originals.jobs import JOBS, Job
from tests.originals.judging import Outcome, WrongError, refused
from tests.originals.option_jobs import OPTION_JOBS

ALL: Final = (*JOBS, *OPTION_JOBS, *EXPORT_JOBS)
"""Every job; a tool may have several."""

SECONDS: Final = 120
_LONGEST: Final = 110
_ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = _ROOT / "docs" / "original-tools.md"
_MARKS: Final = ("<!-- jobs -->\n", "<!-- /jobs -->\n")
_IDLE: Final = [sys.executable, "-I", "-c", "pass"]
_ONNXJSON: Final = [sys.executable, "-I", "-m", "onnxjson"]


class Verdict(NamedTuple):
    """How one program did one job."""

    word: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


class Done(NamedTuple):
    """How both programs did one job."""

    job: Job
    original: Verdict
    ours: Verdict
    common: str
    """What the results have in common, or how they differ; "" if there are not two right results to compare."""
    differs: bool = False

    @property
    def is_fine(self) -> bool:
        """Whether onnxjson did the job, and as the original if that did it."""
        return self.ours.word == "works" and not self.differs


class Row(NamedTuple):
    """All jobs of one tool."""

    tool: str
    version: str
    done: Sequence[Done]

    @property
    def state(self) -> str:
        """ "ok", "partly" with the first reason, or what the original did not do."""
        wrong = next((each for each in self.done if not each.is_fine), None)
        if wrong is not None:
            return f"partly: {wrong.job.what}: {wrong.common if wrong.differs else wrong.ours}"
        if not self.version:
            return "original does not install"
        return "ok" if any(each.original.word == "works" for each in self.done) else "original fails"


def main(arguments: Sequence[str] | None = None) -> int:
    """Install the tools, or run the jobs and print the table; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.originals", description=__doc__)
    parser.add_argument("--environment", type=Path, default=_ROOT / ".originals", help="folder of the environments")
    parser.add_argument("--install", action="store_true", help="make the environments, which needs a package index")
    parser.add_argument("--only", metavar="TOOL", nargs="*", help="the rows of these tools")
    parser.add_argument("--idle", action="store_true", help="a program that does nothing instead of onnxjson")
    parser.add_argument("--page", action="store_true", help=f"write the tables to {_PAGE.relative_to(_ROOT)}")
    options = parser.parse_args(arguments)
    if options.install:
        failed = environment.install(options.environment.absolute())
        print("\n".join([f"not installed: {each}" for each in failed]) or "all tools are installed")
        return bool(failed)
    jobs = [job for job in ALL if not options.only or job.tool in options.only]
    rows = rows_of(jobs, options.environment.absolute(), _IDLE if options.idle else _ONNXJSON)
    print("\n".join(table(rows)))
    for each in [done for row in rows for done in row.done if not done.is_fine]:
        print(f"{each.job.tool}: {each.job.what}: {each.ours} {each.common}")
    if options.page:
        write_page(rows, options.environment)
    return any(row.state.startswith("partly") for row in rows)


def rows_of(jobs: Sequence[Job], place: Path, ours: Sequence[str]) -> list[Row]:
    """Run jobs, several at a time, and return a row for each tool."""
    known = {name: version for each in environment.TOOLS for name, version in environment.versions(place / each).items()
             if name in [tool.partition("==")[0] for tool in environment.TOOLS[each]]}  # fmt: skip
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda job: by_both(job, environment.programs(place, job.tool), ours), jobs))
    tools = dict.fromkeys(job.tool for job in jobs)
    return [Row(tool, known.get(tool, ""), [each for each in done if each.job.tool == tool]) for tool in tools]


def by_both(job: Job, program: Sequence[str | os.PathLike[str]] | None, ours: Sequence[str]) -> Done:
    """Do a job with both programs and compare the results."""
    with tempfile.TemporaryDirectory(prefix="originals-") as name:
        places = [Path(name, each) for each in ("original", "ours")]
        for place in places:
            place.mkdir()
            job.make(place)
        original = Verdict("not installed")
        if program is not None:
            original = run(job, places[0], [[*program, *shlex.split(job.original)]])
        result = run(job, places[1], commands(job, ours))
        models = [place / "out.onnx" for place in places]
        if original.word != "works" or result.word != "works":
            return Done(job, original, result, "")
        if not all(each.exists() for each in models):
            return Done(job, original, result, "both refuse it" if job.judge is refused else "what is expected")
        try:
            return Done(job, original, result, agree(onnx.load(models[0]), onnx.load(models[1]), job.demand))
        except WrongError as error:
            return Done(job, original, result, str(error), differs=True)
        except Exception as error:
            # onnxruntime raises what it likes.
            return Done(job, original, result, plain(str(error), places[1]), differs=True)


def commands(job: Job, ours: Sequence[str] = _ONNXJSON) -> list[list[str]]:
    """The commands of onnxjson for a job; "&&" is between two of them."""
    words = [*shlex.split(job.ours), "&&"]
    ends = [position for position, word in enumerate(words) if word == "&&"]
    return [[*ours, *words[start:end]] for start, end in zip([0, *[each + 1 for each in ends]], ends, strict=False)]


def run(job: Job, folder: Path, lines: Sequence[Sequence[str | os.PathLike[str]]]) -> Verdict:
    """How a program does a job in a folder, by commands of which the first that fails is the last."""
    code, output = 0, ""
    for line in lines:
        try:
            result = subprocess.run(
                line,
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
        code, output = result.returncode, output + result.stdout
        if code:
            break
    return judged(job, Outcome(code, output, folder))


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


def cell(text: object) -> str:
    """A text as it stands in a table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(rows: Sequence[Row]) -> list[str]:
    """The table of rows, in Markdown."""
    lines = ["| tool | jobs | original works | onnxjson works | same result | state |", "|---|---|---|---|---|---|"]
    for row in rows:
        works = [sum(each.word == "works" for each in verdicts)
                 for verdicts in ([each.original for each in row.done], [each.ours for each in row.done])]  # fmt: skip
        same = sum(bool(each.common) and not each.differs for each in row.done)
        cells = (f"{row.tool} {row.version}".strip(), len(row.done), *works, same, row.state)
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    return lines


def write_page(rows: Sequence[Row], place: Path) -> None:
    """Replace the tables of the page."""
    text = _PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_MARKS[0])
    after = rest.partition(_MARKS[1])[2]
    here, there = environment.versions(None), environment.versions(place / "new")
    around = ", ".join(f"{name} {there.get(name, 'missing')}" for name in ("onnx", "onnxruntime", "numpy"))
    lines = [
        "",
        f"{datetime.datetime.now(tz=datetime.UTC).date()}, onnxjson {here.get('onnxjson', '')}; both with {around}.",
        "sed4onnx and sam4onnx do not start with numpy 2, so they run with numpy 1.26.",
        "",
        *table(rows),
        "",
        "## The jobs",
        "",
        "| tool | job | original | onnxjson | in common |",
        "|---|---|---|---|---|",
    ]
    for each in [done for row in rows for done in row.done]:
        cells = (each.job.tool, each.job.what, each.original, each.ours, each.common)
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    _PAGE.write_text(before + _MARKS[0] + "\n".join([*lines, "", ""]) + _MARKS[1] + after, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
