"""What the gate says of the outputs of a model beside those of its base."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson.checking.judging import GateResult, ModelResult
from onnxjson.checking.outputs import compare_outputs
from onnxjson.rendering.ci_reports import headline, state_of
from tests.editing.graphs import model_of

OTHERS = "g (float[1,4] x) => (float[1,4] y, float[1,4] z) <float s = {2}> { y = Mul(x, s) z = Neg(x) }"
FEWER = "g (float[1,4] x) => (float[1,4] y) <float s = {%s}> { y = Mul(x, s) }"

GRAPH = "g (float[N,4] x) => (float[N,4] y) <float s = {%s}> { y = Mul(x, s) }"


def _compared(folder: Path, base: str, target: str) -> ModelResult:
    for name, factor in (("a.onnx", base), ("b.onnx", target)):
        onnxjson.save(model_of(GRAPH % factor), folder / name)
    outputs = compare_outputs(folder / "a.onnx", folder / "b.onnx", {}, 30)
    return ModelResult("m.onnx", "changed", None, None, outputs=outputs)


@pytest.mark.parametrize(
    ("base", "target", "verdict", "words", "said"),
    [
        ("2", "2", "equal", "identical in 3 runs with N = ", "outputs are equal"),
        ("2", "2.00001", "equal", "equal within the tolerance in 3 runs", "outputs are equal within the tolerance"),
        ("2", "3", "different", "differ in 3 of 3 runs with N = ", "outputs differ"),
        ("2e-20", "3e-20", "inconclusive", "inconclusive in 3 runs with N = ", "comparing outputs was inconclusive"),
    ],
)
def test_outputs_that_all_vanish_say_little(
    tmp_path: Path, base: str, target: str, verdict: str, words: str, said: str
) -> None:
    result = _compared(tmp_path, base, target)
    assert result.outputs is not None
    assert result.outputs.verdict == verdict
    assert result.outputs.words.startswith(words)
    assert ("all values are below" in result.outputs.detail) == (verdict == "inconclusive")
    if verdict != "equal":
        assert "50 % of the largest value" in result.outputs.detail
    assert headline(GateResult("a", "b", (result,))) == f"1 model changed: {said}."
    assert state_of(result) == "ok"  # a finding, not the comparison, makes it a warning


def test_a_difference_within_the_tolerance_has_its_size(tmp_path: Path) -> None:
    outputs = _compared(tmp_path, "2", "2.00001").outputs
    assert outputs is not None
    assert ", largest difference " in outputs.words
    assert outputs.words.endswith(" % of the largest value")


@pytest.mark.parametrize(
    ("factor", "verdict", "words"),
    [("2", "not-compared", "the others are identical in 3 runs"), ("3", "different", "differ in 3 of 3 runs")],
)
def test_outputs_that_remain_are_compared_where_one_was_removed(
    tmp_path: Path, factor: str, verdict: str, words: str
) -> None:
    onnxjson.save(model_of(OTHERS), tmp_path / "a.onnx")
    onnxjson.save(model_of(FEWER % factor), tmp_path / "b.onnx")
    outputs = compare_outputs(tmp_path / "a.onnx", tmp_path / "b.onnx", {}, 30)
    assert (outputs.verdict, outputs.words, outputs.largest) == (verdict, words, None)
    if factor == "2":
        assert outputs.detail == 'the head has no "z"'
        result = ModelResult("m.onnx", "changed", None, None, outputs=outputs)
        assert (
            headline(GateResult("a", "b", (result,))) == "1 model changed: only the outputs that remain were compared."
        )
        assert state_of(result) == "warning"


@pytest.mark.parametrize(
    ("shape", "dims", "verdict", "said"),
    [
        ("-1, 2, 2", {}, "equal", "; the head also runs with N = 2"),
        ("1, 2, 2", {}, "inconclusive", ", but the head did not run with N = 2"),
        ("1, 2, 2", {"N": 1}, "equal", ""),
    ],
)
def test_a_batch_made_variable_has_to_run_with_two(
    tmp_path: Path, shape: str, dims: dict[str, int], verdict: str, said: str
) -> None:
    text = "g (float[%s,4] x) => (float[%s,2,2] y) <int64[3] s = {%s}> { y = Reshape(x, s) }"
    for name, size in (("a.onnx", "1"), ("b.onnx", "N")):
        onnxjson.save(model_of(text % (size, size, shape)), tmp_path / name)
    outputs = compare_outputs(tmp_path / "a.onnx", tmp_path / "b.onnx", dims, 30, {"N"})
    assert (outputs.verdict, outputs.words) == (verdict, f"identical in 3 runs with N = 1{said}")
    assert bool(outputs.detail) == (verdict == "inconclusive")
