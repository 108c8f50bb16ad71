"""The sweep of every pass over every model, as its documentation writes it."""

import onnx
import pytest

from onnxjson import example
from onnxjson.optimizing.passes import parse_step
from tests.optimizing import sweep


def test_every_pass_that_runs_without_options_is_swept() -> None:
    names = sweep.all_passes()
    for name in names:
        parse_step(name)
    assert {"onnxruntime", "extract-adapters"} <= set(names)


def test_the_command_runs_every_pass_and_counts_what_failed(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path_factory.mktemp("models")
    onnx.save(example.make_example(), folder / "digits.onnx")
    passes = ("onnxruntime", "extract-adapters", "quantize-dynamic")
    assert sweep.main(["--models", str(folder), "--nodes", "0", *passes]) == 0
    shown = capsys.readouterr().out
    assert "digits.onnx: extract-adapters: no weight belongs to a lora adapter" in shown
    assert "3 runs in " in shown
    assert "; 1 failed, all contained" in shown
    assert sweep.main(["--models", str(folder), "--minutes", "0", *passes]) == 0
    assert "0 runs in 0 s" in capsys.readouterr().out
