"""The benchmarks of the structural diff work, and measure what they say. No test asserts how fast anything is."""

import re
import sys
from pathlib import Path

import pytest

import onnxjson
from tests.benchmarks import diff_cases, diff_quality
from tests.benchmarks.diff_environment import Environment, MissingError
from tests.benchmarks.tools import HERE
from tests.diffing.stacks import STYLES, WEIGHTS

MODELS = HERE.parent / "models"


@pytest.mark.exhaustive
def test_quality_is_one_table_with_every_row_and_what_is_missing_says_so(tmp_path: Path) -> None:
    output = tmp_path / "out.md"
    few = tmp_path / "models"
    few.mkdir()
    (few / "mobile.onnx").write_bytes((MODELS / "mobile_ts.onnx").read_bytes())
    arguments = ["--quick", "--models", str(few), "--output", str(output)]
    assert diff_quality.main([*arguments, "--only", "exports", "--only", "optimizers", "--python", sys.executable]) == 0
    text = output.read_text(encoding="utf-8")
    table, goals = text.split("## ")[1:]
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.splitlines()[4:] if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1
    assert [row[0].split()[0] for row in rows][:3] == ["edits,"] * 3
    assert rows[0][2].count("/") == rows[0][4].count("/") == 1
    assert "reached" in goals
    for optimizer in ("onnxsim", "onnxoptimizer", "onnxslim"):
        (row,) = (row for row in rows if row[0].startswith(f"{optimizer} "))
        assert "not installed" in row[0] or (row[1] and row[3])
        assert row[1] or f"refused: {optimizer}, mobile: " in text


def test_quality_of_single_edits_counts_their_events() -> None:
    models = diff_cases.planted_models([], 200)
    assert len(models) == len(STYLES) * len(WEIGHTS)
    row = diff_quality.measured("planted", "one edit: insert", diff_cases.planted("insert", models, 1))
    assert row.events == 2 * len(models) >= row.events_right >= row.events_alone > 0
    assert row.total.wanted > 200 * len(models)


def test_optimizer_outputs_are_kept_and_what_is_not_there_is_named(tmp_path: Path) -> None:
    environment = Environment(Path(sys.executable), tmp_path)
    model = MODELS / "branches_ts.onnx"
    output = environment.optimized("ort-basic", model)
    assert output.parent == tmp_path
    written = output.stat().st_mtime_ns
    assert environment.optimized("ort-basic", model).stat().st_mtime_ns == written
    assert onnxjson.load(output).graph
    environment.versions.pop("onnxoptimizer", None)
    with pytest.raises(MissingError, match="onnxoptimizer is not installed"):
        environment.optimized("onnxoptimizer", model)
    (tmp_path / "no.onnx").write_bytes(b"no model")
    with pytest.raises(MissingError):
        environment.optimized("ort-basic", tmp_path / "no.onnx")
