"""``onnxjson bench``."""

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from onnxruntime import get_available_providers

import onnxjson
from onnxjson.rendering.bench_report import TIME_COLUMNS
from tests.cli.interrupting import interrupted
from tests.cli.running import run, run_process
from tests.running.small_models import scaled

MODELS = Path(__file__).parent.parent / "models"
QUICK = ("-n", "2", "--warm-up", "0", "--samples", "1")


def rows_without_times(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    for row in rows:
        assert row.pop("time")["median"] > 0
    return rows


@pytest.mark.exhaustive
def test_the_table_of_the_seed_for_two_exports_differs_only_in_its_times(tmp_path: Path) -> None:
    models = [MODELS / "mobile_ts.onnx", MODELS / "mobile_dynamo.onnx"]
    results = []
    for number in range(2):
        outs = [tmp_path / f"{number}.{ending}" for ending in ("json", "csv")]
        arguments = [word for out in outs for word in ("-o", out)]
        results.append(run_process("bench", *models, "--preset", "baseline", *QUICK, *arguments))
        assert results[-1].exit_code == 0, results[-1].stderr + results[-1].stdout
    first, second = [rows_without_times(tmp_path / f"{number}.json") for number in range(2)]
    assert first == second
    assert len(first) == 2 * 11
    assert all(row["compared_runs"] == 1 and row["problem"] == "" for row in first)
    for row in first:
        assert row["verdict"] in (("same", "close") if row["exact"] else ("close", "differs"))
        assert row["max_abs"] is not None
    one, other = [list(csv.DictReader((tmp_path / f"{number}.csv").read_text().splitlines())) for number in range(2)]
    assert [{key: row[key] for key in row if key not in TIME_COLUMNS} for row in one] == [
        {key: row[key] for key in row if key not in TIME_COLUMNS} for row in other
    ]
    assert all(len(line) <= 80 for line in results[0].stdout.splitlines())


def test_forms_say_the_same(binary: Path, tmp_path: Path) -> None:
    score = tmp_path / "score.py"
    score.write_text("def evaluate(run):\n    return 0.25, 0.75\n")
    outs = [tmp_path / f"r.{ending}" for ending in ("csv", "json", "md", "svg", "txt")]
    arguments = [word for out in outs for word in ("-o", out)]
    result = run(
        "bench",
        binary,
        "--variant",
        "pruned <&|=prune",
        *QUICK,
        "--score",
        score,
        *arguments,
        "--keep",
        tmp_path / "kept",
    )
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(outs[0].read_text().splitlines()))
    data = json.loads(outs[1].read_text())
    assert data["format"] == "onnxjson-bench/1"
    assert (
        [row["optimization"] for row in rows] == [row["variant"] for row in data["rows"]] == ["original", "pruned <&|"]
    )
    for row, found in zip(rows, data["rows"], strict=True):
        assert (float(row["loss"]), float(row["metric"])) == (0.25, 0.75)
        assert found["scores"] == {"loss": 0.25, "metric": 0.75}
        assert float(row["size_kb"]) == found["bytes"] / 1000
        assert float(row["median_ms"]) == pytest.approx(found["time"]["median"] * 1000, rel=1e-4)
    assert "| pruned &lt;&amp;\\| | onnxruntime" in outs[2].read_text()
    tree = ElementTree.parse(outs[3])
    assert len(tree.findall("{http://www.w3.org/2000/svg}rect")) == 2
    assert "pruned <&|" in [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "pruned <&|" in outs[4].read_text()
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == [f"{binary.stem}-{variant}.onnx" for variant in ("original", "pruned")]


def test_words_after_tune_are_its_grid(binary: Path) -> None:
    tuned = ("--tune", "threads=1,2", "--tune", "mode=sequential,parallel", "--tune", "level=basic,all")
    result = run("bench", binary, *tuned, *QUICK, "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert len(rows) == 8
    assert sum(row["best"] for row in rows) == 1
    shown = run("bench", binary, "--tune", "threads=1,2 level=all", *QUICK, "--format", "text").stdout
    assert "best of original: --threads " in shown


def test_costs_are_a_column(binary: Path) -> None:
    result = run("bench", binary, "--cost", *QUICK, "--format", "json")
    assert isinstance(json.loads(result.stdout)["rows"][0]["macs"], int)
    assert "MACs" in run("bench", binary, "--cost", *QUICK).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["threads=1"], 66, "does not exist"),
        (["--tune", "speed=1"], 2, "is not NAME=VALUE"),
        (["--variant", "onnxsim"], 2, "is not a variant"),
        (["--variant", "a=prune", "--variant", "a=onnxsim"], 2, "two variants have the name 'a'"),
        (["-o", "report.pdf"], 2, "end the name with one of .csv"),
        (["--dim", "N=1,2"], 2, "several sizes"),
        (["--dim", "M=1"], 65, "dynamic dimension"),
        (["--score", "none.py"], 66, "does not exist"),
        (["--tune", "threads="], 2, "has no value to try"),
        (["-o", "/none/report.csv"], 73, "create it first"),
    ],
)
def test_what_cannot_be_is_said(binary: Path, arguments: list[str], code: int, said: str) -> None:
    result = run("bench", binary, *arguments)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


def test_bound_runs_are_timed_and_compute_the_same(binary: Path) -> None:
    result = run("bench", binary, "--tune", "binding=off,on", "-n", "3", "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [row["session"]["binding"] for row in rows] == [False, True]
    assert all(row["verdict"] in ("same", "close") and row["time"]["median"] for row in rows), rows


@pytest.mark.skipif("CUDAExecutionProvider" not in get_available_providers(), reason="onnxruntime finds no NVIDIA GPU")
def test_a_cuda_graph_is_timed(binary: Path) -> None:
    graph = ("--provider", "cuda:enable_cuda_graph=1", "--tune", "binding=on")
    assert run("bench", binary, *graph, "-n", "3").exit_code == 0


def test_a_model_that_is_named_twice_is_refused(binary: Path) -> None:
    result = run("bench", binary, binary, *QUICK)
    assert (result.exit_code, "named twice" in result.stderr) == (2, True)


def test_a_value_of_an_input_is_for_the_model_that_has_it(binary: Path, tmp_path: Path) -> None:
    onnxjson.save(scaled(2), tmp_path / "scaled.onnx")
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    result = run("bench", binary, tmp_path / "scaled.onnx", "--input", f"x={tmp_path / 'x.npy'}", *QUICK,
                 "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert [list(sizes.values()) for sizes in json.loads(result.stdout)["sizes"].values()] == [[1], [3]]


def test_models_of_one_name_and_variants_alike_are_kept_apart(binary: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / binary.name
    other.parent.mkdir()
    other.write_bytes(binary.read_bytes())
    variants = ["--variant", "a b=prune", "--variant", "a-b=prune"]
    result = run("bench", binary, other, *variants, *QUICK, "--keep", tmp_path / "kept")
    assert "wrote 6 models" in result.stderr
    assert len(list((tmp_path / "kept").iterdir())) == 6


def test_a_variant_that_differs_and_should_not_is_exit_code_1(binary: Path) -> None:
    wrong = "wrong=set-attribute{node=op:LeakyRelu,attribute=alpha,value=0.5}"
    result = run("bench", binary, "--variant", wrong, *QUICK)
    assert result.exit_code == 1
    assert "wrong: its outputs differ" in result.stdout
    assert run("bench", binary, "--variant", "int8=quantize-dynamic", *QUICK).exit_code == 0


def test_an_interruption_keeps_what_was_measured(binary: Path, tmp_path: Path) -> None:
    long = ("-n", "1000000", "--seconds", "90", "--format", "json")
    code, data, stderr = interrupted(tmp_path, 50, b"timed", "bench", binary, *long)
    assert code == 130
    assert data["interrupted"]
    assert 10 < data["rows"][0]["time"]["runs"] < 1_000_000
    assert data["rows"][0]["verdict"] in ("same", "close")
    assert "interrupted" in stderr
