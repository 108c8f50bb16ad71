"""Passes: optimizers of models, run one after the other, each in a sandboxed process.

::

    from onnxjson.optimizing.passes import Pipeline, parse_step

    with Pipeline() as pipeline:
        for made in pipeline.run(model, [parse_step("onnxoptimizer"), parse_step("onnxsim*")]):
            print(made.name, made.is_changed, made.notes)
    model = made.after.model

Here: the optimizers by family, their declarations and catalogue, recipes, bisecting, and `executing`,
which runs inside the sandboxed process. Not here: traces and benchmarks, which use the passes.

Read first: `declaration` (base of all passes), `catalogue` (all passes), `pipeline` (runs them).
"""

from onnxjson.optimizing.passes.big_constants import Stage
from onnxjson.optimizing.passes.catalogue import PASSES, Step, parse_step, spell
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.pipeline import PassResult, Pipeline
from onnxjson.storage.external_files import NewFile, files_written

__all__ = [
    "PASSES", "NewFile", "Pass", "PassResult", "Pipeline", "Stage", "Step", "files_written", "parse_step", "spell",
]  # fmt: skip
