"""Passes: optimizers of models, run one by one, each in a guarded process.

::

    from onnxjson.passes import Pipeline, parse_step

    with Pipeline() as pipeline:
        for made in pipeline.run(model, [parse_step("onnxoptimizer"), parse_step("onnxsim*")]):
            print(made.name, made.is_changed, made.notes)
    model = made.after.model
"""

from onnxjson.passes.catalogue import PASSES
from onnxjson.passes.declaration import Pass
from onnxjson.passes.new_files import NewFile, files_written
from onnxjson.passes.pipeline import Made, Pipeline, Stage
from onnxjson.passes.spelling import Step, parse_step, spell

__all__ = [
    "PASSES", "Made", "NewFile", "Pass", "Pipeline", "Stage", "Step", "files_written", "parse_step",
    "spell",
]  # fmt: skip
