"""One optimizer on one model, as the least program that does it, with default options.

``python optimizing.py NAME SRC DST`` for the names in `OPTIMIZERS`; it runs in an environment that has the packages,
and needs nothing of this project.
"""

import sys
from collections.abc import Callable

import onnx
from onnx import ModelProto


def onnxsim(source: str) -> ModelProto:
    import onnxsim

    model: ModelProto
    model, holds = onnxsim.simplify(onnx.load(source))
    if not holds:
        raise SystemExit("onnxsim found its own output to differ")
    return model


def onnxoptimizer(source: str) -> ModelProto:
    import onnxoptimizer

    model: ModelProto = onnxoptimizer.optimize(onnx.load(source), onnxoptimizer.get_fuse_and_elimination_passes())
    return model


def onnxslim(source: str) -> ModelProto:
    import onnxslim

    model: ModelProto = onnxslim.slim(onnx.load(source))
    return model


def onnxscript(source: str) -> ModelProto:
    import onnxscript.optimizer

    model: ModelProto = onnxscript.optimizer.optimize(onnx.load(source))
    return model


def _onnxruntime(level: str) -> Callable[[str], ModelProto]:
    def optimize(source: str) -> ModelProto:
        import tempfile

        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.log_severity_level = 3
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            options.optimized_model_filepath = file.name
            onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
            return onnx.load(file.name)

    return optimize


OPTIMIZERS: dict[str, Callable[[str], ModelProto]] = {
    "onnxsim": onnxsim,
    "onnxoptimizer": onnxoptimizer,
    "onnxslim": onnxslim,
    "onnxscript": onnxscript,
    "ort-basic": _onnxruntime("ORT_ENABLE_BASIC"),
    "ort-extended": _onnxruntime("ORT_ENABLE_EXTENDED"),
    "ort-all": _onnxruntime("ORT_ENABLE_ALL"),
}


if __name__ == "__main__":
    result = OPTIMIZERS[sys.argv[1]](sys.argv[2])
    with open(sys.argv[3], "wb") as file:
        file.write(result.SerializeToString(deterministic=True))
