"""What the gate says of the outputs of a model beside those of its base."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson.checking.judging import GateResult, ModelResult, compare_outputs
from onnxjson.rendering.ci_reports import headline, state_of
from tests.editing.graphs import model_of

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
