"""What runs inside the guarded process: the native analysis of onnx, its complaints turned into findings.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError
from onnxjson.worker_protocol import Answer, Job, Request

if TYPE_CHECKING:
    from onnx import ModelProto

MESSAGE_LENGTH: Final = 1000
"""Characters of a finding's message."""

FINDINGS: Final = 1000
"""Findings of one job."""

_PASSES: Final = "onnxjson.passes.executing"
"""What runs passes; it stands above the worker and is loaded only where a pass is to run."""

_INFERENCE_ERROR: Final = re.compile(r"(?=\(op_type:)")


def prepare(job: Job) -> None:
    """Import what a job needs, once for all jobs of its kind; optimizers themselves are for the child to import.

    Raises:
        ImportError: it is not installed for this Python.
    """
    import onnx.checker
    import onnx.inliner
    import onnx.shape_inference
    import onnx.version_converter  # noqa: F401

    if job in ("pass", "pass_stages"):
        import_module(_PASSES)


def check(model: bytes | str) -> tuple[Answer, bytes]:
    """onnx.checker on a serialised model, or on the file at a path (which it needs for external data and over 2 GB)."""
    from onnx import checker

    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        return _found("check-model", [str(error)])
    return Answer(outcome="done"), b""


def check_shapes(model: bytes | str) -> tuple[Answer, bytes]:
    """Strict shape inference of onnx, for its complaints alone."""
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
        return _found("check-shapes", each or [head])
    return Answer(outcome="done"), b""


def infer_shapes(model: bytes | str) -> tuple[Answer, bytes]:
    """Shape inference of onnx as far as it comes; the answer holds the serialised model with value_info."""
    from onnx import shape_inference

    assert isinstance(model, bytes), "only checks read from a path"
    inferred: ModelProto = shape_inference.infer_shapes(model, data_prop=True)
    return Answer(outcome="done"), inferred.SerializeToString()


def inline_functions(model: bytes | str) -> tuple[Answer, bytes]:
    """The inliner of onnx: every call of a function of the model gives way to its body."""
    from onnx import ModelProto, inliner

    assert isinstance(model, bytes), "only checks read from a path"
    inlined = inliner.inline_local_functions(ModelProto.FromString(model))
    return Answer(outcome="done"), inlined.SerializeToString()


def convert_version(model: bytes | str, version: int) -> tuple[Answer, bytes]:
    """The version converter of onnx, to a version of the default operator set."""
    from onnx import ModelProto, version_converter

    assert isinstance(model, bytes), "only checks read from a path"
    converted = version_converter.convert_version(ModelProto.FromString(model), version)
    return Answer(outcome="done"), converted.SerializeToString()


def evaluate(model: bytes | str) -> tuple[Answer, bytes]:
    """Evaluations, one after the other; what comes and goes is `onnxjson.worker_tasks.packed`."""
    from onnxjson.worker_evaluation import evaluated
    from onnxjson.worker_tasks import packed, unpacked_evaluations

    assert isinstance(model, bytes), "only checks read from a path"
    return Answer(outcome="done"), packed([evaluated(each, one_line) for each in unpacked_evaluations(model)])


def run_pass(model: bytes | str, declaration: str) -> tuple[Answer, bytes]:
    """One pass of `onnxjson.passes`."""
    assert isinstance(model, bytes), "only checks read from a path"
    executing = import_module(_PASSES)
    made, remarks = executing.executed(declaration, model)
    return Answer(outcome="done", remarks=tuple([one_line(each) for each in remarks])), made


def pass_stages(model: bytes | str, declaration: str) -> tuple[Answer, bytes]:
    """What each part of a pass did, as `onnxjson.passes.stages.packed` writes it."""
    assert isinstance(model, bytes), "only checks read from a path"
    return Answer(outcome="done"), import_module(_PASSES).staged(declaration, model)


def run_task(task: bytes | str) -> tuple[Answer, bytes]:
    """One task of `onnxjson.running`; what comes of it goes to a file in the current folder, as it comes."""
    assert isinstance(task, bytes), "only checks read from a path"
    executing = import_module("onnxjson.running.executing")
    executing.executed(task, one_line)
    return Answer(outcome="done"), b""


JOBS: Final[dict[Job, Callable[[bytes | str], tuple[Answer, bytes]]]] = {
    "check": check,
    "check_shapes": check_shapes,
    "infer_shapes": infer_shapes,
    "inline_functions": inline_functions,
    "evaluate": evaluate,
    "run": run_task,
}
"""Those that need nothing but a model."""


def run(request: Request, subject: bytes | str) -> tuple[Answer, bytes]:
    """The job of a request on a serialised model, or on the file at a path."""
    if request.job == "convert_version":
        assert request.version is not None, "it says where to"
        return convert_version(subject, request.version)
    if request.job in ("pass", "pass_stages"):
        assert request.declaration is not None, "it says which"
        job = run_pass if request.job == "pass" else pass_stages
        try:
            return job(subject, request.declaration)
        except OnnxJsonError as error:  # It says all that is to be said.
            return Answer(outcome="failed", detail=one_line(str(error))), b""
    return JOBS[request.job](subject)


def one_line(text: str) -> str:
    """A message of native code on one line, safe to print."""
    return visible(" ".join(text[: MESSAGE_LENGTH * 4].split()), MESSAGE_LENGTH)


def _found(code: str, messages: list[str]) -> tuple[Answer, bytes]:
    findings = [Finding(severity="error", code=code, message=one_line(text)) for text in messages[:FINDINGS]]
    return Answer(outcome="done", findings=tuple(findings)), b""
