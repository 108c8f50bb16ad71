"""The benchmark of the workbench's stalls measures what it says."""

import asyncio
from pathlib import Path

import pytest

import onnxjson
from tests.benchmarks.tui_rows import transformer
from tests.benchmarks.tui_stalls import Flow, stalls


def test_a_flow_that_does_not_edit_the_model_ends_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    onnxjson.save(transformer(140), tmp_path / "small.onnx")
    flows = (Flow("delete", ("D",), steps=1, row="/mlp/act/Relu"), Flow("undo, misspelled", ("j",), steps=1))
    with pytest.raises(RuntimeError, match="undo, misspelled: 0 changes of the model instead of 1"):
        asyncio.run(stalls(tmp_path / "small.onnx", flows, only="nothing else"))
