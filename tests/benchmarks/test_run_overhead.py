"""The benchmark of timed runs works. No test asserts how fast anything is."""

import pytest

from tests.benchmarks import run_overhead


def test_ratios_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_overhead.main(["--runs", "20", "--rounds", "1"]) == 0
    rows = [line.split("|")[1:4] for line in capsys.readouterr().out.splitlines()[4:]]
    assert [row[0].strip() for row in rows] == ["bare", "run", "bench"]
    assert float(rows[0][2]) == 1
