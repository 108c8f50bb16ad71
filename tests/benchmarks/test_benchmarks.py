"""The benchmark command works, and measures what it says. No test asserts how fast anything is."""

import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import onnxjson
from onnxjson.model.structure import check_structure
from tests.benchmarks import cases, graphs, rows
from tests.benchmarks.measuring import Figures, Run, run_process
from tests.benchmarks.report import Results, report
from tests.benchmarks.tools import HERE, TOOLS, python


def test_quick_run_prints_every_table_and_every_model_comes_back(tmp_path: Path) -> None:
    names = ("nodes-1k", "replace")
    command: list[str | Path] = [
        sys.executable, "-m", "tests.benchmarks", "--quick", "--repeat", "1", "--output", tmp_path / "out.md",
    ]  # fmt: skip
    for name in names:
        command += ["--only", name]
    run = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out.md").read_text(encoding="utf-8") == run.stdout
    titles = re.findall("^## (.*)$", run.stdout, re.M)
    assert titles == ["File to file, whole processes", "A file that is there is replaced"]
    for tool in TOOLS[:2]:
        (row,) = re.findall(rf"^\|[^|]*\| {tool.name} .* yes +\|$", run.stdout, re.M)
        assert "skipped" not in row


def test_rows_of_other_jobs_are_measured(tmp_path: Path) -> None:
    found = rows.measured(cases.Setting(tmp_path, repeat=1, quick=True))
    assert len(found) == len(rows.MISTAKES) + 6
    assert all((row.measured or 0) > 0 for row in found)
    text = report(Results(rows=found), goals=True)
    assert text.count("at most") == len(found)
    assert re.search(r"^\d+ s by the clock, \d+ s of the processor$", text, re.M)


def test_peak_memory_is_that_of_the_process_measured() -> None:
    script = "import sys; data = bytearray(int(sys.argv[1])); data[::4096] = b'x' * len(data[::4096])"
    measured = [
        run_process([sys.executable, HERE / "others.py"], {}),  # fails
        run_process(python("-c", script, str(200 << 20)), {}),
    ]
    assert measured[0].exit_code
    assert "IndexError" in measured[0].error
    assert measured[1].peak_bytes > 200 << 20


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_model_of_a_case_is_valid_and_the_same_every_time(case: cases.Case, tmp_path: Path) -> None:
    paths = tmp_path / "one.onnx", tmp_path / "two.onnx"
    for path in paths:
        graphs.write(case.kind, path, case.quick_count)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    model = onnx.load(paths[0])
    assert len(model.graph.node) >= case.quick_count
    assert not check_structure(onnxjson.load(paths[0])), "warnings would be part of the time"
    onnx.checker.check_model(model)


def test_goals_say_what_is_reached_and_what_is_not() -> None:
    def figures(seconds: float, megabytes: float) -> Figures:
        return Figures([Run(seconds, seconds, int(megabytes * 1e6), 0, "", "")])

    names = [tool.name for tool in TOOLS]
    rest = [figures(30, 100), figures(0.1, 9)]
    to_text = dict(zip(names, [figures(1, 20), figures(20, 100), *rest, figures(2, 50)], strict=True))
    to_onnx = dict(zip(names, [figures(1, 50), figures(10, 100), *rest, Figures([], "no")], strict=True))
    case = cases.CASES[0]
    text = report(Results([cases.Comparison(case, "many nodes", 1, to_text, to_onnx)]), goals=True)
    goals = [re.split(r" *\| *", line)[1:-1] for line in text.partition("## Goals")[2].splitlines()[4:-2]]
    beside = ["20.00 / 1.00 s; 100 / 20 MB", "2.00 / 1.00 s; 50 / 20 MB", "10.00 / 1.00 s; 100 / 50 MB"]
    assert goals == [
        ["nodes-100k to text: seconds, json_format / ours", "at least 12", "20.0", "20.0", "yes", beside[0]],
        ["nodes-100k to text: seconds, onnx.printer or parser / ours", "at least 1", "2", "2", "yes", beside[1]],
        ["nodes-100k to .onnx: seconds, json_format / ours", "at least 11", "10.0", "10.0", "no", beside[2]],
    ]
    assert "skipped: many nodes, onnx.printer, parser: no" in text
