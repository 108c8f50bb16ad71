"""``onnxjson run``: reports, files, exit codes, and what is kept when it is interrupted."""

import json
from pathlib import Path

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest
from onnx import TensorProto, helper

import onnxjson
from tests.cli.interrupting import interrupted
from tests.cli.running import run
from tests.running.small_models import model, scaled


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.onnx"
    onnxjson.save(scaled(2), path)
    return path


def test_report_says_what_went_in_and_out(saved: Path) -> None:
    result = run("run", saved, "--dim", "N=3", "--fill", "1")
    assert result.exit_code == 0, result.stderr
    assert "onnxruntime (CPU), level all, 1 thread" in result.stdout
    assert "N=3" in result.stdout
    assert "float32[3,4]  1" in result.stdout
    assert "float32[3,4]  3" in result.stdout
    assert max(map(len, result.stdout.replace(str(saved), "m").splitlines())) <= 80


def test_json_has_figures_and_times(saved: Path) -> None:
    result = run("run", saved, "--json", "-n", "20", "--profile", "2")
    data = json.loads(result.stdout)
    assert (data["ok"], data["engine"], data["sizes"]) == (True, "onnxruntime", {"N": 1})
    assert data["timed"]["runs"] == 20
    assert 0 < data["timed"]["least"] <= data["timed"]["p50"] <= data["timed"]["p95"] <= data["timed"]["greatest"]
    assert data["profile"][0]["calls"] == 2
    assert [each["name"] for each in data["runs"][0]["outputs"]] == ["y"]


def test_events_of_the_profile_are_those_of_onnxruntime(saved: Path, tmp_path: Path) -> None:
    there = tmp_path / "events.json"
    assert run("run", saved, "--profile", "3", "--profile-events", there).exit_code == 0
    events = json.loads(there.read_text())
    assert sum(each["name"] == "model_run" for each in events) == 4  # the first is not counted
    assert {"cat", "ts", "dur", "args"} <= events[0].keys()
    refused = run("run", saved, "--profile-events", there)
    assert (refused.exit_code, "needs --profile N" in refused.stderr) == (2, True)


def test_session_entries_and_options_of_providers_reach_onnxruntime(saved: Path) -> None:
    # It only refuses values, and only of some keys.
    refused = run("run", saved, "--session", "session.intra_op_thread_affinities=x", "--threads", "2")
    assert refused.exit_code == 76, refused.stdout
    assert "Processor id must consist of only digits" in refused.stderr
    assert run("run", saved, "--session", "session.disable_prepacking=1").exit_code == 0
    assert run("run", saved, "--provider", "cpu:use_arena=0").exit_code == 0
    absent = run("run", saved, "--provider", "cuda:enable_cuda_graph=1")
    assert "there is no CUDAExecutionProvider here" in absent.stderr
    mistaken = run("run", saved, "--provider", "cuda:graph")
    assert (mistaken.exit_code, "OPTION=VALUE" in mistaken.stderr) == (2, True)


def test_times_and_the_profile_fit_80_columns(saved: Path) -> None:
    result = run("run", saved, "-n", "5", "--profile", "2")
    lines = result.stdout.splitlines()
    assert any(line.startswith("5 runs: p50 ") for line in lines)
    assert any("operator" in line and "share" in line for line in lines)
    assert max(map(len, lines[1:])) <= 80


@pytest.mark.parametrize("ending", ["npz", "npy", "pb"])
def test_outputs_are_written_and_read_again(saved: Path, tmp_path: Path, ending: str) -> None:
    there = tmp_path / f"y.{ending}"
    assert run("run", saved, "--fill", "2", "-o", there).exit_code == 0
    if ending == "npz":
        assert np.load(there)["y"].tolist() == [[5.0] * 4]
    again = run("run", saved, "--input", there if ending != "npz" else f"x={there}", "--json")
    assert json.loads(again.stdout)["runs"][0]["inputs"][0]["minimum"] == 5


def test_a_folder_of_test_data_is_written_and_held_against(saved: Path, tmp_path: Path) -> None:
    there = tmp_path / "recorded"
    assert run("run", saved, "-o", there).exit_code == 0
    assert sorted(each.name for each in there.iterdir()) == ["input_0.pb", "output_0.pb"]
    same = run("run", saved, "--input", there)
    assert same.exit_code == 0
    assert "y: as recorded" in same.stdout
    other = tmp_path / "other.onnx"
    onnxjson.save(scaled(2.5), other)
    different = run("run", other, "--input", there)
    assert different.exit_code == 1
    assert "4 of 4 elements are not as recorded" in different.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--dim", "M=2"], 65, 'no dynamic dimension "M"; there is N'),
        (["--dim", "N"], 2, "write N=4"),
        (["--dim", "N=1,2"], 2, "verify"),
        (["--range", "2:1"], 2, "LOW must not exceed HIGH"),
        (["--input", "none.npy"], 66, "does not exist"),
        (["--provider", "cuda"], 76, "CUDA"),
        (["--provider", "cpu", "--engine", "reference"], 2, "--provider is for onnxruntime"),
        (["-o", "out.json"], 2, "write outputs to a .npz"),
        (["--fill", "1e300"], 65, '"x" is float32, which does not have 1e+300'),
        (["--threads", "-1"], 2, "0<=x<=1024"),
    ],
)
def test_what_cannot_be_is_said_with_its_code(saved: Path, arguments: list[str], code: int, said: str) -> None:
    result = run("run", saved, *arguments)
    assert result.exit_code == code, result.stderr
    assert said in result.stderr + result.stdout


def test_a_model_that_fails_on_its_values_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    made = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (TensorProto.FLOAT, ["N", "M"])},
        ["y"],
        {"w": np.ones((4, 4), np.float32)},
    )
    onnxjson.save(made, path)
    result = run("run", path)
    assert result.exit_code == 76
    assert "error[76]" in result.stderr
    assert run("run", path, "--dim", "M=4").exit_code == 0


def test_what_a_model_fails_with_fits_80_columns(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    shape = {"s": np.array([7, 7])}
    made = model([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (TensorProto.FLOAT, [2])}, ["y"], shape)
    onnxjson.save(made, path)
    result = run("run", path)
    assert result.exit_code == 76
    assert result.stdout.endswith("\nfailed\n")
    result = run("run", path, "--input", write_sets(tmp_path))
    assert result.exit_code == 76
    assert result.stdout.count("failed: ") == 2
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80


def write_sets(folder: Path) -> Path:
    """Two sets of test data for an input of two elements."""
    for number in range(2):
        (folder / "sets" / f"test_data_set_{number}").mkdir(parents=True)
        tensor = onnx.numpy_helper.from_array(np.ones(2, np.float32), "x")
        path = folder / "sets" / f"test_data_set_{number}" / "input_0.pb"
        path.write_bytes(tensor.SerializeToString())
    return folder / "sets"


def test_words_truth_and_nothing_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    absent = helper.make_node("Optional", [], ["n"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Not", ["b"], ["z"]), absent]
    types = {"x": (TensorProto.STRING, [5]), "b": (TensorProto.BOOL, [4])}
    made = onnxjson.to_proto(model(nodes, types, ["y", "z", "n"], opset=18))
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    made.graph.output[2].CopyFrom(helper.make_value_info("n", optional))
    onnxjson.save(onnxjson.from_proto(made), path)
    shown = run("run", path, "--seed", "3").stdout
    assert shown.count('"') >= 12
    assert "of 4 true" in shown
    assert "n  nothing" in shown
    outputs = json.loads(run("run", path, "--json").stdout)["runs"][0]["outputs"]
    assert [each["type"] for each in outputs] == ["string[5]", "bool[4]", "nothing"]


def test_outputs_that_are_no_tensors_are_written_to_what_holds_them(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    split = [helper.make_node("SplitToSequence", ["x"], ["y"], axis=1)]
    made = onnxjson.to_proto(model(split, {"x": (TensorProto.FLOAT, [2, 3])}, ["y"]))
    made.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None))
    onnxjson.save(onnxjson.from_proto(made), path)
    refused = run("run", path, "-o", tmp_path / "y.npy")
    assert refused.exit_code == 65
    assert "not a tensor; write it to a .pb" in refused.stderr
    assert run("run", path, "-o", tmp_path / "y.pb").exit_code == 0
    assert run("run", path, "-o", tmp_path / "recorded").exit_code == 0
    assert "y: as recorded" in run("run", path, "--input", tmp_path / "recorded").stdout


def test_the_reference_evaluator_says_that_it_has_no_profile(saved: Path) -> None:
    result = run("run", saved, "--engine", "reference", "--profile", "2")
    assert result.exit_code == 0
    assert "no profile: only onnxruntime" in result.stderr


def test_an_interrupt_keeps_what_was_profiled(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("MatMul", [f"x{place or ''}", "w"], [f"x{place + 1}"]) for place in range(8)]
    weight = {"w": np.full((256, 256), 1 / 256, np.float32)}
    onnxjson.save(model(nodes, {"x": (TensorProto.FLOAT, [256, 256])}, ["x8"], weight), path)
    code, data, stderr = interrupted(tmp_path, 2, b"profiled", "run", path, "--profile", "10000", "--json")
    assert code == 130
    assert 0 < data["profiled_runs"] < 10000
    assert sum(each["calls"] for each in data["profile"]) == data["profiled_runs"] * len(data["profile"])
    assert "interrupted" in stderr


def test_an_interrupt_keeps_what_was_measured(saved: Path, tmp_path: Path) -> None:
    code, data, stderr = interrupted(tmp_path, 200, b"timed", "run", saved, "-n", "1000000", "--json")
    assert code == 130
    assert data["interrupted"]
    assert 100 < data["timed"]["runs"] < 1_000_000
    assert "interrupted" in stderr


def test_a_failed_run_names_the_sizes_that_were_chosen_once(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[N,M] x, float[3,4] z) => (float[P,4] y) {
        y = Concat<axis=0>(x, z)
    }"""
    path = tmp_path / "m.onnx"
    onnxjson.save(onnxjson.from_proto(onnx.parser.parse_model(text)), path)
    failed = run("run", path, "--dim", "N=2")
    assert failed.exit_code == 76
    assert (failed.stdout + failed.stderr).count("Non-zero status code") == 1
    assert "these sizes were chosen: M=1; set others with --dim NAME=SIZE" in failed.stderr
    assert run("run", path, "--dim", "M=4").exit_code == 0
