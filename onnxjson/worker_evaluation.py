"""Evaluating models inside the guarded process: by onnxruntime, else by the reference evaluator of onnx.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`. Values go in and come out
as the bytes of their elements, so no dtype is converted on the way.
"""

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from onnxjson.document import Tensor
from onnxjson.elements import byte_length, element_count
from onnxjson.names import STRING
from onnxjson.payloads import whole
from onnxjson.tensors import from_numpy, raw_bytes, to_numpy
from onnxjson.worker_tasks import Engine, Evaluated, Evaluation, Run, packed_values, unpacked_values

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue

INFERENCE_ERROR: Final = "InferenceError]"
"""What onnxruntime says of nodes that do not take the types or shapes of their inputs."""

Values = Mapping[str, Tensor]

Evaluator = Callable[[Values], dict[str, Tensor]]
"""The values of the inputs -> those of the outputs."""


class UnsupportedError(Exception):
    """An engine cannot take or give these values."""


def evaluated(evaluation: Evaluation, told: Callable[[str], str]) -> Evaluated:
    """The outputs of a model for each run.

    Args:
        evaluation: what to evaluate.
        told: makes a message of native code safe to print, on one line.
    """
    problems = []
    for engine in evaluation.engines:
        try:
            evaluate = _EVALUATORS[engine](evaluation)
        except MemoryError:
            raise
        except Exception as error:
            problems.append(f"{engine}: {told(str(error))}")
            if INFERENCE_ERROR in str(error):
                break  # the model is wrong, which another engine might overlook
            continue
        return Evaluated(engine=engine, runs=tuple([_run(evaluate, values, told) for values in evaluation.runs]))
    return Evaluated(problem="; ".join(problems))


def _run(evaluate: Evaluator, values: bytes, told: Callable[[str], str]) -> Run:
    try:
        return Run(values=packed_values(evaluate(unpacked_values(values))))
    except MemoryError:
        raise
    except Exception as error:
        return Run(problem=told(f"{type(error).__name__}: {error}"))


def _by_onnxruntime(evaluation: Evaluation) -> Evaluator:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a guarded process cannot make more
    options.use_deterministic_compute = True
    options.add_session_config_entry("session.load_model_format", "ONNX")
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if evaluation.optimize else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(evaluation.model, options, providers=["CPUExecutionProvider"])
    return lambda values: _session_outputs(session, values)


def _session_outputs(session: "InferenceSession", values: Values) -> dict[str, Tensor]:
    names = [output.name for output in session.get_outputs()]
    # Strings go in as numpy arrays only, and then everything comes out as numpy arrays, which some dtypes have not.
    if any(tensor.data_type == STRING for tensor in values.values()):
        feeds = {
            name: to_numpy(tensor) if tensor.data_type == STRING else given(tensor) for name, tensor in values.items()
        }
        arrays = session.run(names, feeds)
        return {name: from_numpy(array) for name, array in zip(names, arrays, strict=True)}
    found = session.run_with_ort_values(names, {name: given(tensor) for name, tensor in values.items()})
    return {name: taken(name, value) for name, value in zip(names, found, strict=True)}


def given(tensor: Tensor) -> "OrtValue":
    """A tensor of any dtype but string as onnxruntime takes it, bit by bit.

    Raises:
        UnsupportedError: its elements do not fit its type and shape.
    """
    from onnxruntime import OrtValue

    stored = raw_bytes(tensor)
    if stored is None or tensor.data_type is None:
        raise UnsupportedError(f"the value of {tensor.name!a} does not fit its type and shape")
    data = whole(stored[0])
    value = OrtValue.ortvalue_from_shape_and_type(list(tensor.dims), tensor.data_type)
    if value.tensor_size_in_bytes() != len(data):
        raise UnsupportedError(f"onnxruntime lays out {tensor.name!a} in another way")
    if data:
        ctypes.memmove(value.data_ptr(), data, len(data))
    return value


def taken(name: str, value: "OrtValue") -> Tensor:
    """An output of onnxruntime as a tensor, bit by bit.

    Raises:
        UnsupportedError: it is none.
    """
    if not value.has_value() or not value.is_tensor():
        raise UnsupportedError(f"output {name!a} is a {value.data_type()}, not a tensor")
    if (data_type := value.element_type()) == STRING:
        return from_numpy(value.numpy())
    dims = tuple(value.shape())
    size = byte_length(data_type, element_count(dims))
    if size != value.tensor_size_in_bytes():
        raise UnsupportedError(f"onnxruntime lays out {name!a} in another way")
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return Tensor(dims=dims, data_type=data_type, raw_data=data)


def _by_reference(evaluation: Evaluation) -> Evaluator:
    from onnx import ModelProto, defs
    from onnx.reference import ReferenceEvaluator

    model = ModelProto.FromString(evaluation.model)
    newest = defs.onnx_opset_version()
    for each in model.opset_import:
        if each.domain in ("", "ai.onnx") and each.version > newest:  # it would be taken for the newest one
            raise UnsupportedError(f"operator set {each.version} is not known, only those up to {newest}")
    evaluator = ReferenceEvaluator(model)
    return lambda values: _reference_outputs(evaluator, values)


def _reference_outputs(evaluator: Any, values: Values) -> dict[str, Tensor]:
    import numpy

    feeds = {name: to_numpy(tensor) for name, tensor in values.items()}
    with numpy.errstate(all="ignore"):
        found = evaluator.run(None, feeds)
    outputs = {}
    for name, value in zip(evaluator.output_names, found, strict=True):
        if not isinstance(value, numpy.ndarray | numpy.generic):
            raise UnsupportedError(f"output {name!a} is a {type(value).__name__}, not a tensor")
        outputs[name] = from_numpy(numpy.asarray(value))
    return outputs


_EVALUATORS: Final[dict[Engine, Callable[[Evaluation], Evaluator]]] = {
    "onnxruntime": _by_onnxruntime,
    "reference": _by_reference,
}
