"""Jobs of the guarded process: native analysis by onnx with its messages as findings, passes and tasks.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.running.worker_server`.
"""

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.running.worker_protocol import Answer, Job, Request

if TYPE_CHECKING:
    from onnx import ModelProto

MESSAGE_LENGTH: Final = 1000

MAX_FINDINGS: Final = 1000

_INFERENCE_ERROR: Final = re.compile(r"(?=\(op_type:)")


def prepare(request: Request) -> None:
    """Import the modules of a job once, before children are forked; a child imports its optimizer itself."""
    import onnx.checker
    import onnx.inliner
    import onnx.shape_inference
    import onnx.version_converter  # noqa: F401

    if request.module is not None:
        import_module(request.module)


def check(model: bytes | str) -> tuple[Answer, bytes]:
    """Run onnx.checker on a serialized model, or on a file (for external data and models over 2 GB)."""
    from onnx import checker

    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        return _findings("check-model", [str(error)])
    return Answer(outcome="done"), b""


def check_shapes(model: bytes | str) -> tuple[Answer, bytes]:
    """Run the strict shape inference of onnx for its findings alone."""
    from onnx import checker, shape_inference

    try:
        if isinstance(model, str):
            checker.check_model(model, full_check=True)
        else:
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except checker.ValidationError:
        return Answer(outcome="done"), b""  # `check` has reported it.
    except shape_inference.InferenceError as error:
        head, *each = _INFERENCE_ERROR.split(str(error))
        return _findings("check-shapes", each or [head])
    return Answer(outcome="done"), b""


def infer_shapes(model: bytes | str) -> tuple[Answer, bytes]:
    """Run the shape inference of onnx as far as it gets; the result is the serialized model with value_info."""
    from onnx import shape_inference

    assert isinstance(model, bytes), "only checks read from a path"
    inferred: ModelProto = shape_inference.infer_shapes(model, data_prop=True)
    return Answer(outcome="done"), inferred.SerializeToString()


def infer_types(model: bytes | str) -> tuple[Answer, bytes]:
    """Run the strict shape inference of onnx, and the other one where it fails; the result has the types alone."""
    from onnx import shape_inference

    assert isinstance(model, bytes), "only checks read from a path"
    answer = Answer(outcome="done")
    try:
        inferred: ModelProto = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        known = {each.name for each in inferred.graph.value_info if each.type.tensor_type.HasField("shape")}
        if any(name not in known for node in inferred.graph.node for name in node.output):
            # With known values, the inference sometimes gives up where it continues without them.
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except shape_inference.InferenceError as error:
        head, *each = _INFERENCE_ERROR.split(str(error))
        answer, _ = _findings("check-shapes", each or [head])
        inferred = shape_inference.infer_shapes(model, data_prop=True)
    around = [node for node in inferred.graph.node if any(each.HasField("g") or each.graphs for each in node.attribute)]
    del inferred.graph.node[:], inferred.graph.initializer[:], inferred.functions[:]
    inferred.graph.node.extend(around)
    return answer, inferred.SerializeToString()


def inline_functions(model: bytes | str) -> tuple[Answer, bytes]:
    """Run the inliner of onnx, which replaces each call of a function of the model by its body."""
    from onnx import ModelProto, inliner

    assert isinstance(model, bytes), "only checks read from a path"
    inlined = inliner.inline_local_functions(ModelProto.FromString(model))
    return Answer(outcome="done"), inlined.SerializeToString()


def convert_version(model: bytes | str, version: int) -> tuple[Answer, bytes]:
    """Run the version converter of onnx to a version of the default operator set."""
    from onnx import ModelProto

    from onnxjson.running import opset_conversion

    assert isinstance(model, bytes), "only checks read from a path"
    converted = opset_conversion.convert_version(ModelProto.FromString(model), version)
    return Answer(outcome="done"), converted.SerializeToString()


def run_pass(model: bytes | str, module: str, declaration: str) -> tuple[Answer, bytes]:
    """Run a pass, with the module that runs passes."""
    assert isinstance(model, bytes), "only checks read from a path"
    executing = import_module(module)
    made, remarks = executing.executed(declaration, model)
    return Answer(outcome="done", remarks=tuple([one_line(each) for each in remarks])), made


def pass_stages(model: bytes | str, module: str, declaration: str) -> tuple[Answer, bytes]:
    """Run a pass part by part; the module that runs passes encodes the result."""
    assert isinstance(model, bytes), "only checks read from a path"
    return Answer(outcome="done"), import_module(module).staged(declaration, model)


def run_task(task: bytes | str) -> tuple[Answer, bytes]:
    """Execute a task of `onnxjson.running.tasks`, which writes its reports to a file in the current folder."""
    assert isinstance(task, bytes), "only checks read from a path"
    from onnxjson.running import executing

    executing.execute_task(task, one_line)
    return Answer(outcome="done"), b""


JOBS: Final[dict[Job, Callable[[bytes | str], tuple[Answer, bytes]]]] = {
    "check": check,
    "check_shapes": check_shapes,
    "infer_shapes": infer_shapes,
    "infer_types": infer_types,
    "inline_functions": inline_functions,
    "run": run_task,
}
"""Jobs whose only argument is a model."""


def run(request: Request, subject: bytes | str) -> tuple[Answer, bytes]:
    """Run the job of a request on a serialized model, or on a file."""
    if request.job == "convert_version":
        assert request.version is not None, "the request has a version"
        return convert_version(subject, request.version)
    if request.job in ("pass", "pass_stages"):
        assert request.module is not None, "the request has a module"
        assert request.declaration is not None, "the request has a declaration"
        job = run_pass if request.job == "pass" else pass_stages
        try:
            return job(subject, request.module, request.declaration)
        except OnnxJsonError as error:  # Its message is complete without the name of its class.
            return Answer(outcome="failed", detail=one_line(str(error))), b""
    return JOBS[request.job](subject)


def one_line(text: str) -> str:
    """Turn a message of native code into one line that is safe to print."""
    return visible(" ".join(text[: MESSAGE_LENGTH * 4].split()), MESSAGE_LENGTH)


def _findings(code: str, messages: list[str]) -> tuple[Answer, bytes]:
    findings = [Finding(severity="error", code=code, message=one_line(text)) for text in messages[:MAX_FINDINGS]]
    return Answer(outcome="done", findings=tuple(findings)), b""
