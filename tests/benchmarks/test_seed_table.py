"""The check that a second benchmark differs in its times only."""

from pathlib import Path

import pytest

from tests.benchmarks import seed_table
from tests.benchmarks.seed_table import differing, problems

ROW = {"model": "m", "optimization": "a", "median_ms": "1", "nodes": "2", "verified": "same", "problem": ""}


def test_columns_that_differ_are_counted() -> None:
    other = {**ROW, "median_ms": "2"}
    assert differing([ROW, ROW], [other, other]) == {"median_ms": 2}
    assert differing([ROW], [{**ROW, "nodes": "3"}]) == {"nodes": 1}


@pytest.mark.parametrize(("verified", "problem"), [("", ""), ("fails", "it crashed"), ("same", "no score")])
def test_rows_that_were_not_verified_are_told(verified: str, problem: str) -> None:
    assert problems([ROW, {**ROW, "verified": "differs"}]) == []
    assert len(problems([{**ROW, "verified": verified, "problem": problem}])) == 1


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_the_command_prints_the_table_and_what_differs(
    again: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not again:
        only = seed_table.table(seed_table.DEFAULT[:1], 2, tmp_path)
        monkeypatch.setattr(seed_table, "table", lambda *_: only)
    assert seed_table.main([str(seed_table.DEFAULT[0]), "-n", "2"]) == 0
    said = capsys.readouterr().out
    assert "11 of 11 rows verified" in said
    assert "columns that are not time and differ: none" in said
