"""``onnxjson verify`` and ``optimize --verify``: reports, counts, exit codes."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from tests.cli.interrupting import interrupted
from tests.cli.running import run
from tests.running.small_models import model, scaled


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx.json"
    for path, factor in zip(paths, (2.0, 2.5), strict=True):
        onnxjson.save(scaled(factor), path)
    return paths


def test_equal_models_exit_0_and_different_ones_1(pair: tuple[Path, Path]) -> None:
    same = run("verify", pair[0], pair[0])
    assert same.exit_code == 0
    assert "the same values in 3 of 3 runs" in same.stdout
    different = run("verify", *pair, "--samples", "10")
    assert different.exit_code == 1
    assert "outputs differ in 10 of 10 runs" in different.stdout
    assert max(map(len, different.stdout.splitlines()[1:])) <= 80


def test_json_counts_and_measures(pair: tuple[Path, Path]) -> None:
    result = run("verify", *pair, "--samples", "10", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (data["equal"], data["runs"], data["failed"]) == (False, 10, 10)
    (output,) = data["outputs"]
    assert output["name"] == "y"
    assert output["failed"] == 10
    assert output["max_abs"] > 0.1
    assert output["max_rel"] > 0.01
    assert -1 <= output["cosine"] <= 1
    assert json.loads(run("verify", pair[0], pair[0], "--json").stdout)["equal"] is True


def test_locate_names_the_node(pair: tuple[Path, Path]) -> None:
    result = run("verify", *pair, "--locate")
    assert "the values diverge at" in result.stdout
    assert "Mul mul  @/graph/node/0" in result.stdout
    assert "constant factor has different elements" in result.stdout
    data = json.loads(run("verify", *pair, "--locate", "--json").stdout)
    assert data["location"]["places"][0]["base"] == ["/graph/node/0"]
    (line,) = data["location"]["places"][0]["lines"]
    assert line.startswith("y = ")
    assert f"in the line: {line}" in result.stdout


def test_a_wider_tolerance_takes_more(pair: tuple[Path, Path]) -> None:
    assert run("verify", *pair, "--tolerance", "float32=1,1").exit_code == 0


@pytest.mark.parametrize("said", ["text=1", "string=1", "float32=nan", "float32=-1", "float32=", "float32=1,-1"])
def test_what_is_no_tolerance_is_refused(pair: tuple[Path, Path], said: str) -> None:
    assert run("verify", *pair, "--tolerance", said).exit_code == 2


def test_integers_may_be_given_a_tolerance(tmp_path: Path) -> None:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, scale in zip(paths, (0.01, 0.0101), strict=True):
        quantized = model(
            [helper.make_node("QuantizeLinear", ["x", "s"], ["y"])],
            {"x": (TensorProto.FLOAT, [64])},
            ["y"],
            {"s": np.float32(scale)},
        )
        onnxjson.save(quantized, path)
    exact = run("verify", *paths, "--range", "0:2")
    assert exact.exit_code == 1
    assert "differ, but must be equal" in exact.stdout
    assert run("verify", *paths, "--range", "0:2", "--tolerance", "uint8=0,3").exit_code == 0


def test_reasons_that_are_alike_are_told_once(pair: tuple[Path, Path], tmp_path: Path) -> None:
    broken = model(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        {"x": (TensorProto.FLOAT, ["N", 4])},
        ["y"],
        {"s": np.array([7, 7])},
    )
    onnxjson.save(broken, tmp_path / "broken.onnx")
    result = run("verify", pair[0], tmp_path / "broken.onnx", "--samples", "10")
    assert "10 of 10 runs failed" in result.stdout
    assert result.stdout.count("cannot be reshaped") == 1
    assert "and 9 more runs like it" in " ".join(result.stdout.split())


def test_nan_on_one_side_is_said_to_be_that(tmp_path: Path) -> None:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, nodes in zip(paths, (["Log"], ["Abs", "Log"]), strict=True):
        names = ["x", *[f"v{place}" for place in range(len(nodes) - 1)], "y"]
        chain = [helper.make_node(op, [names[place]], [names[place + 1]]) for place, op in enumerate(nodes)]
        onnxjson.save(model(chain, {"x": (TensorProto.FLOAT, [64])}, ["y"]), path)
    assert "are NaN or infinite in only one model" in " ".join(run("verify", *paths).stdout.split())
    (output,) = json.loads(run("verify", *paths, "--json").stdout)["outputs"]
    assert output["nonfinite"] == output["outside"] > 0


def test_several_sizes_are_tried_with_every_seed(pair: tuple[Path, Path]) -> None:
    data = json.loads(run("verify", pair[0], pair[0], "--dim", "N=1,7", "--samples", "2", "--json").stdout)
    assert [each["sizes"]["N"] for each in data["each_run"]] == [1, 1, 7, 7]


def test_a_model_that_does_not_run_is_an_error_and_no_difference(pair: tuple[Path, Path], tmp_path: Path) -> None:
    broken = onnxjson.to_proto(onnxjson.load(pair[0]))
    broken.graph.node[0].op_type = "Frobnicate"
    onnxjson.save(onnxjson.from_proto(broken), tmp_path / "c.onnx")
    result = run("verify", pair[0], tmp_path / "c.onnx")
    assert result.exit_code == 76
    assert "no engine runs the target" in result.stderr


def test_optimize_writes_what_was_verified_and_nothing_else(pair: tuple[Path, Path], tmp_path: Path) -> None:
    there = tmp_path / "small.onnx"
    fine = run("optimize", pair[0], "-p", "onnxoptimizer", "-p", "onnxruntime", "-o", there, "--verify")
    assert fine.exit_code == 0
    assert "verified: the outputs are equal" in fine.stderr
    there.unlink()
    script = tmp_path / "change.json"
    script.write_text(
        '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "prune"},'
        '{"edit": "replace-node", "node": "mul", "op_type": "Div"}]}',
        encoding="utf-8",
    )
    wrong = run("optimize", pair[0], "-p", "onnxoptimizer", "-p", script, "-o", there, "--bisect")
    assert wrong.exit_code == 1, wrong.stderr
    assert "change.json" in wrong.stderr
    assert "right before 2: replace-node" in " ".join(wrong.stderr.split())
    assert not there.exists()


def test_an_interrupt_keeps_what_was_compared(pair: tuple[Path, Path], tmp_path: Path) -> None:
    code, data, stderr = interrupted(
        tmp_path, 5, b"compared", "verify", *pair, "--samples", "5000", "--dim", "N=50", "--json"
    )
    assert code == 130
    assert data["interrupted"]
    assert 5 <= data["runs"] == data["failed"] < 5000
    assert "interrupted" in stderr


@pytest.fixture
def undefined(tmp_path: Path) -> Path:
    """A model with an output that is NaN everywhere, and one that is not."""
    nodes = [("Exp", "x", "e"), ("Neg", "e", "n"), ("Log", "n", "y"), ("Identity", "x", "i"), ("Relu", "i", "z")]
    made = model(
        [helper.make_node(name, [given], [output]) for name, given, output in nodes],
        {"x": (TensorProto.FLOAT, ["N", 4])},
        ["y", "z"],
    )
    onnxjson.save(made, tmp_path / "undefined.onnx")
    return tmp_path / "undefined.onnx"


def test_what_is_nan_everywhere_is_not_the_same_in_any_report(undefined: Path) -> None:
    result = run("verify", undefined, undefined)
    assert result.exit_code == 1
    assert 'nothing of "y" could be compared' in result.stdout
    assert "same" not in result.stdout
    data = json.loads(run("verify", undefined, undefined, "--json").stdout)
    assert (data["equal"], data["failed"], data["not_compared"]) == (False, 0, ["y"])
    assert [each["runs"] > 0 for each in data["outputs"]] == [False, True]


def test_optimize_writes_what_it_could_not_verify_and_exits_1(undefined: Path) -> None:
    made = undefined.with_name("made.onnx")
    result = run("optimize", undefined, "-p", "onnxoptimizer:eliminate_identity", "--verify", "-q", "-o", made)
    assert result.exit_code == 1
    assert 'not verified: nothing of "y" could be compared' in " ".join(result.stderr.split())
    assert made.exists()


@pytest.mark.parametrize("name", ["float16", "mixed-precision"])
def test_passes_that_measure_do_not_call_nan_the_same(undefined: Path, name: str) -> None:
    result = run("optimize", undefined, "-p", name, "-o", undefined.with_name("made.onnx"))
    words = " ".join(result.stderr.split())
    assert "not compared: NaN or infinite everywhere on these values" in words
    assert ") : the same" not in words.partition(" z ")[0]


def test_mixed_precision_refuses_to_judge_by_nan_alone(undefined: Path) -> None:
    loaded = onnxjson.load(undefined)
    assert loaded.graph is not None
    alone = msgspec.structs.replace(loaded, graph=msgspec.structs.replace(loaded.graph, output=loaded.graph.output[:1]))
    onnxjson.save(alone, undefined)
    result = run("optimize", undefined, "-p", "mixed-precision", "-o", undefined.with_name("made.onnx"))
    assert result.exit_code == 76
    assert "not compared: NaN or infinite everywhere" in " ".join(result.stderr.split())


def test_bench_does_not_call_nan_the_same(undefined: Path) -> None:
    result = run("bench", undefined, "-n", "1")
    assert result.exit_code == 1
    assert "outputs of 0 of 1 row are equal within the tolerance, 1 not compared" in " ".join(result.stdout.split())


def test_names_that_are_not_utf_8_are_an_error_of_the_model(undefined: Path) -> None:
    data = undefined.read_bytes()
    undefined.write_bytes(data.replace(b"\x0a\x01z", b"\x0a\x01\xff").replace(b"\x12\x01z", b"\x12\x01\xff"))
    for words in (("verify", undefined, undefined), ("bench", undefined, "-n", "1", "--format", "csv")):
        result = run(*words)
        assert result.exit_code == (76 if words[0] == "verify" else 1), result.stderr
        assert "which is not UTF-8" in " ".join((result.stdout + result.stderr).split())


@pytest.mark.parametrize("dims", [[10**12, 4], [2, 4]])
def test_values_that_do_not_fit_are_an_error_of_their_file(pair: tuple[Path, Path], dims: list[int]) -> None:
    tensor = numpy_helper.from_array(np.ones((1, 4), np.float32), "x")
    tensor.dims[:] = dims
    folder = pair[0].with_name("set")
    folder.mkdir()
    (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
    result = run("verify", pair[0], pair[0], "--input", folder)
    assert result.exit_code == 65
    assert "input_0.pb does not contain a readable value" in " ".join(result.stderr.split())
