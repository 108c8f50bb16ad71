"""The benchmarks of the structural diff work, and measure what they say. No test asserts how fast anything is."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onnxjson
from onnxjson.diffing.matching.alignment import UNMATCHED
from tests.benchmarks import diff_cases, diff_quality, diff_speed, diff_timing
from tests.benchmarks.diff_baselines import pairs_but, pairs_by_names, pairs_by_text
from tests.benchmarks.diff_environment import Environment, MissingError
from tests.benchmarks.diff_mistakes import described
from tests.benchmarks.measuring import run_process
from tests.benchmarks.tools import HERE, python
from tests.diffing.adversarial import ADVERSARIAL
from tests.diffing.judging import Judge
from tests.diffing.mutations import mutated
from tests.diffing.stacks import STYLES, WEIGHTS, stack

MODELS = HERE.parent / "models"


@pytest.mark.exhaustive
def test_quality_is_one_table_with_every_row_and_what_is_missing_says_so(tmp_path: Path) -> None:
    output, mistakes = tmp_path / "out.md", tmp_path / "mistakes.txt"
    few = tmp_path / "models"
    few.mkdir()
    (few / "mobile.onnx").write_bytes((MODELS / "mobile_ts.onnx").read_bytes())
    arguments = ["--quick", "--models", str(few), "--output", str(output), "--mistakes", str(mistakes)]
    assert diff_quality.main([*arguments, "--only", "exports", "--only", "optimizers", "--python", sys.executable]) == 0
    text = output.read_text(encoding="utf-8")
    table, goals = text.split("## ")[1:]
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.splitlines()[4:] if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1
    assert [row[0].split()[0] for row in rows][:3] == ["edits,"] * 3
    assert rows[0][2].count("/") == rows[0][3].count("/") == 1
    assert "reached" in goals
    for optimizer in ("onnxsim", "onnxoptimizer", "onnxslim"):
        (row,) = (row for row in rows if row[0].startswith(f"{optimizer} "))
        assert "not installed" in row[0] or row[1]
        assert row[1] or f"refused: {optimizer}, mobile: " in text


def test_quality_of_single_edits_counts_their_events(tmp_path: Path) -> None:
    environment = Environment(None, tmp_path)
    measuring = diff_quality.Measuring(environment, None, baselines=False)
    models = diff_cases.planted_models([], 200)
    assert len(models) == len(STYLES) * len(WEIGHTS)
    row = measuring.row("planted", "one edit: insert", diff_cases.planted("insert", models, 1))
    assert row.events == 2 * len(models) >= row.events_right >= row.events_alone > 0
    assert row.total.wanted > 200 * len(models)


def test_text_diff_finds_nodes_by_their_names_and_loses_them_with_the_names() -> None:
    model = stack("mixed", 300)
    plain, hidden = mutated(model, ["insert", "delete"], 1, rename=False, shuffle=False), mutated(model, (), 1)
    score = Judge.of_mutation(plain).score(pairs_by_text(plain.base, plain.target))
    assert score.precision == score.recall == 1
    assert Judge.of_mutation(hidden).score(pairs_by_text(hidden.base, hidden.target)).recall < 0.5
    by_names = [
        Judge.of_mutation(each).score(pairs_by_names(each.base, each.target)).recall for each in (plain, hidden)
    ]
    assert by_names == [1, 0]
    removed = [node.output for node in model.graph.node[:2]]  # type: ignore[union-attr]
    (graph,) = pairs_but(model, model, removed)
    assert list(graph.target_of[:3]) == [UNMATCHED, UNMATCHED, 2]


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


def test_mistakes_are_told_with_their_surroundings() -> None:
    mutation = mutated(stack("mixed", 300), ["insert"], 1)
    text = "\n".join(described(*mutation[:2], Judge.of_mutation(mutation), [], 3))
    assert text.count("true, but not said") == 3
    assert text.count("paired with nothing") == 6


def test_speed_prints_a_row_for_each_case(tmp_path: Path) -> None:
    output = tmp_path / "out.md"
    command = python("-m", "tests.benchmarks.diff_speed", "--quick", "--only", "identical", "--output", output)
    run = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    assert output.read_text(encoding="utf-8") == run.stdout
    rows = [line for line in run.stdout.splitlines() if line.startswith("| mixed")]
    assert len(rows) == 2
    assert rows[0].count("1.00000") == 2


def test_identical_models_are_found_so_in_a_process_of_its_own(tmp_path: Path) -> None:
    for edits in (diff_timing.SAME, 5):
        diff_timing.make("transformer", 200, "equal", edits, tmp_path)
        found = diff_timing.measure(tmp_path)
        assert found["empty"] == (edits == diff_timing.SAME) == (found["members"] == 0)
        assert found["nodes"] >= 200
        assert found["peak"] >= found["loaded"] > 0
    same = [(tmp_path / name).read_bytes() for name in ("base.onnx", "target.onnx")]
    diff_timing.make("transformer", 200, "equal", diff_timing.SAME, tmp_path)
    assert same[0] == (tmp_path / "target.onnx").read_bytes() != same[1]


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_graphs_have_the_size_that_they_say_and_end(name: str, tmp_path: Path) -> None:
    make, count = ADVERSARIAL[name]
    assert diff_speed.ADVERSARIAL[name] == count
    diff_timing.make(name, max(12, count // 100), "", 3, tmp_path)
    assert json.dumps(diff_timing.measure(tmp_path))
    nodes = make(50).graph.node  # type: ignore[union-attr]
    assert len(nodes) >= 40


def test_process_that_measures_the_diff_imports_nothing_big() -> None:
    script = "import sys, tests.benchmarks.diff_speed; print({'numpy', 'onnx', 'onnxjson'} & set(sys.modules))"
    assert run_process(python("-c", script), {"PYTHONPATH": str(HERE.parent.parent)}).printed.strip() == "set()"
