"""The benchmark of the workbench's lists runs."""

import pytest

from tests.benchmarks import tui_rows


def test_the_table_has_lists_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert tui_rows.main(["--nodes", "2800"]) == 0
    printed = capsys.readouterr().out
    assert "node list with lanes, prepared" in printed
    assert "lines, derived" in printed
    assert "one attribute: undo" in printed
