"""The jobs of the original tools, done by onnxjson; and the page that compares them."""

from pathlib import Path

import pytest

from tests.benchmarks.original_jobs import JOBS, Job
from tests.benchmarks.original_judging import Outcome, WrongError, require
from tests.benchmarks.original_tools import Verdict, by_onnxjson, cell, judged, plain
from tests.docs.sessions import programs

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("job", [job for job in JOBS if job.ours], ids=lambda job: f"{job.tool}: {job.what}")
def test_onnxjson_does_the_job(job: Job) -> None:
    assert by_onnxjson(job, [str(programs() / "onnxjson")]) == Verdict("works")


def _job(judge: object) -> Job:
    return JOBS[0]._replace(judge=judge)  # type: ignore[arg-type]


def _wrong(_: Outcome) -> None:
    require(fact=False, what="something else")


def test_outcomes_are_told_apart(tmp_path: Path) -> None:
    traceback = "Traceback (most recent call last):\n  File\nKeyError: 9"
    good = Outcome(0, "", tmp_path)
    assert judged(_job(lambda _: None), good) == Verdict("works")
    assert judged(_job(_wrong), good) == Verdict("wrong", "something else")
    assert judged(_job(_wrong), Outcome(1, "ERROR: no", tmp_path)) == Verdict("refuses", "ERROR: no")
    assert judged(_job(_wrong), Outcome(1, traceback, tmp_path)) == Verdict("crashes", "KeyError: 9")
    assert judged(_job(lambda _: None), Outcome(1, traceback, tmp_path)).word == "crashes"
    with pytest.raises(WrongError):
        good.model()


def test_a_cell_has_no_colours_no_places_and_no_bars(tmp_path: Path) -> None:
    assert plain(f"\x1b[31mERROR\x1b[0m {tmp_path}/a /home/x/lib/y.py", tmp_path) == "ERROR ./a y.py"
    assert cell(Verdict("wrong", "a | b")) == "wrong: a \\| b"


def test_the_page_has_a_row_for_every_job() -> None:
    page = (ROOT / "docs" / "original-tools.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| s")]
    assert [row.split(" | ")[1] for row in rows] == [job.what for job in JOBS]
    assert all(row.endswith("| works |") for row, job in zip(rows, JOBS, strict=True) if job.ours)
