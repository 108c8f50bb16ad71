"""A valid model cannot make a library evaluate its texts as code."""

from pathlib import Path

import pytest
from onnx import checker

from onnxjson.codecs import serde
from onnxjson.model.errors import PassError
from onnxjson.optimizing.passes import Pipeline, parse_step
from tests.hostile.box_lifted import box_lifted
from tests.hostile.evaluated_texts import MAKERS, payload

PASSES = ["onnxscript", "onnxsim", "onnxslim", "symbolic-shapes", "transformers{level=none}", "transformers"]


@pytest.mark.parametrize("name", MAKERS)
def test_the_models_are_valid_and_their_text_would_run(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    checker.check_model(MAKERS[name](payload(marker)))
    eval(payload(marker))
    assert marker.exists()


@pytest.mark.parametrize("name", MAKERS)
def test_no_pass_runs_the_text(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    model = serde.from_proto(MAKERS[name](payload(marker)))
    with box_lifted(), Pipeline() as pipeline:
        for step in PASSES:
            try:
                list(pipeline.run(model, [parse_step(step)]))
            except PassError:
                continue  # some passes refuse what onnxruntime does not run
            finally:
                assert not marker.exists(), step
