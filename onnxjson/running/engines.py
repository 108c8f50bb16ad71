"""Engines that evaluate models: onnxruntime, else the reference evaluator of onnx."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import STRING
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.limits import EXPANDED_RUN_NODES
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import from_numpy, raw_bytes, to_numpy
from onnxjson.running.expansion import ExpansionError, refuse_expansion
from onnxjson.running.tasks import Engine, Settings, Subject
from onnxjson.running.values import Dictionary, Value, Values, as_array

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue, SessionOptions

_OF_NUMPY: Final = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
"""Dtypes of arrays that onnxruntime uses without a copy."""

_MANY: Final = 256
"""Number of values above which they are bound to the session: otherwise a run needs the square of it."""

INFERENCE_ERROR: Final = "InferenceError]"
"""Part of the messages of onnxruntime about nodes whose inputs have wrong types or shapes."""


OUT_OF_MEMORY: Final = "it needs more memory than the limit (--memory)"
"""Beginning of the message about a run that the limit ended, which says nothing about the model."""

_DEVICES: Final = dict.fromkeys(("CUDAExecutionProvider", "TensorrtExecutionProvider"), "cuda")
"""Devices whose memory holds bound outputs, by provider; others use that of the processor."""


class UnsupportedError(Exception):
    """An engine does not support a model or a value."""


def message_of(error: Exception, sanitize: Callable[[str], str]) -> str:
    """Return why a model fails, on one line."""
    if "allocate memory" in str(error):  # onnxruntime reports it as any other failure
        return sanitize(f"{OUT_OF_MEMORY}: {error}")
    return sanitize(str(error) if isinstance(error, UnsupportedError) else f"{type(error).__name__}: {error}")


def open_model(
    subject: Subject, settings: Settings, sanitize: Callable[[str], str], added: Sequence[str] = ()
) -> "OpenModel":
    """Open a model with the first engine that supports it.

    Raises:
        UnsupportedError: no engine supports it; the message has the reasons.
    """
    try:
        refuse_expansion(subject.model, EXPANDED_RUN_NODES)
    except ExpansionError as error:
        raise UnsupportedError(f"{error}; `onnxjson rewrite inline-functions` replaces the calls") from None
    problems = []
    for engine in settings.engines:
        try:
            return _OPENERS[engine](subject, settings, added)
        except MemoryError:
            raise
        except Exception as error:
            problems.append(f"{engine}: {sanitize(str(error))}")
            if INFERENCE_ERROR in str(error):
                break  # the model is wrong, which another engine might overlook
    raise UnsupportedError("; ".join(problems))


def _with_outputs(model: bytes, added: Sequence[str]) -> bytes:
    from onnx import ModelProto, ValueInfoProto

    if not added:
        return model
    proto = ModelProto.FromString(model)
    known = {value.name for value in proto.graph.output}
    proto.graph.output.extend([ValueInfoProto(name=name) for name in added if name not in known])
    return proto.SerializeToString()


class Onnxruntime:
    """A session of onnxruntime.

    Args:
        profiled: prefix of the files that the profiler writes; None to run without profiler.
    """

    engine: Engine = "onnxruntime"

    def __init__(
        self, subject: Subject, settings: Settings, added: Sequence[str], profiled: Path | None = None
    ) -> None:
        import onnxruntime

        onnxruntime.disable_telemetry_events()
        onnxruntime.set_default_logger_severity(4)
        onnxruntime.set_seed(subject.seed)
        names, provider_options = split_providers(settings.providers)
        _require_providers(names, onnxruntime.get_available_providers(), "offers")
        model = _with_outputs(subject.model, added)
        options = session_options(settings, subject.data_folder)
        if profiled is not None:
            options.enable_profiling = True
            options.profile_file_prefix = str(profiled)
        self._session: InferenceSession = onnxruntime.InferenceSession(
            model, options, providers=names, provider_options=provider_options
        )
        self.providers = tuple(self._session.get_providers())
        _require_providers(names, self.providers, "could open only")
        self._binds = settings.binding
        self._names = [output.name for output in self._session.get_outputs()]
        # Python has one type of floats; the elements of tensors in sequences keep theirs.
        self._float32 = {output.name for output in self._session.get_outputs() if "tensor(float)" in output.type}
        self._has_tensors = all(output.type.startswith("tensor(") for output in self._session.get_outputs())

    def run(self, values: Values, names: Sequence[str] | None = None) -> dict[str, Value]:
        """Return the outputs, or some of them, by name."""
        if names is not None and not names:
            return {}  # onnxruntime would return all outputs
        names = self._names if names is None else list(names)
        call, is_plain = self._call(values, names)
        results = zip(names, call(), strict=True)
        if is_plain:
            return {name: from_ort_value(name, value) for name, value in results}
        return {name: _value(name, value, is_float32=name in self._float32) for name, value in results}

    def repeated(self, values: Values) -> Callable[[], object]:
        """Return a function that runs the model on these values without any overhead, for timing."""
        if self._binds:
            return self._call(values, self._names, _DEVICES.get(self.providers[0], "cpu"))[0]
        arrays = {name: as_array(value) for name, value in values.items()}
        if len(arrays) <= _MANY and all([getattr(each, "dtype", None) in _OF_NUMPY for each in arrays.values()]):
            return partial(self._session.run, self._names, arrays)  # costs less than run_with_ort_values
        return self._call(values, self._names)[0]

    def _call(self, values: Values, names: Sequence[str], device: str | None = None) -> tuple[Callable[[], Any], bool]:
        """Return the function that runs the model on values, and whether all of them are tensors of numbers.

        With a device, inputs and outputs stay in its buffers.
        """
        feeds = {name: _to_python(value) for name, value in values.items()}
        # Strings, sequences and maps are passed as Python objects only.
        is_plain = self._has_tensors and all(_is_plain(value) for value in values.values())
        if device is not None and not is_plain:
            raise UnsupportedError("only tensors of numbers can be bound to buffers")
        if not is_plain or (device is None and len(feeds) + len(names) <= _MANY):
            return partial(self._session.run_with_ort_values if is_plain else self._session.run, names, feeds), is_plain
        binding = self._session.io_binding()
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, value)
        for name in names:
            binding.bind_output(name, device or "cpu")
        if device is not None:
            return partial(self._session.run_with_iobinding, binding), True

        def bound() -> Any:
            self._session.run_with_iobinding(binding)
            return binding.get_outputs()

        return bound, True

    def events(self) -> bytes:
        """End the profiler of onnxruntime and return its events, in the JSON format of chrome://tracing."""
        path = Path(self._session.end_profiling())
        found = path.read_bytes()
        path.unlink()
        return found


def split_providers(texts: Sequence[str]) -> tuple[list[str], list[dict[Any, Any]]]:
    """Return names of providers and their options, from texts such as ``CUDAExecutionProvider:device_id=1``."""
    parts = [text.partition(":") for text in texts]
    options = [dict(pair.split("=", 1) for pair in rest.split(",") if "=" in pair) for _, _, rest in parts]
    return [name for name, _, _ in parts], options


def placement(subject: Subject, settings: Settings) -> tuple[tuple[str, str, str], ...] | None:
    """Return name, operator and execution provider of each node, as after the basic optimizations.

    None if this version of onnxruntime does not report them; 1.31 does.
    """
    import onnxruntime

    if not hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        return None
    options = session_options(msgspec.structs.replace(settings, level="basic"), subject.data_folder)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    names, more = split_providers(settings.providers)
    session = onnxruntime.InferenceSession(subject.model, options, providers=names, provider_options=more)
    groups = session.get_provider_graph_assignment_info()
    return tuple([(node.name, node.op_type, group.ep_name) for group in groups for node in group.get_nodes()])


def _require_providers(wanted: Sequence[str], available: Sequence[str], what: str) -> None:
    """Raise UnsupportedError unless all wanted providers are available; onnxruntime would silently use others."""
    for name in wanted:
        if name not in available:
            raise UnsupportedError(f"there is no {name} here; it {what} {', '.join(available)}")


def session_options(settings: Settings, data_folder: str | None = None) -> "SessionOptions":
    """Return the options of a session of onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = max(settings.parallel, 1)
    modes = onnxruntime.ExecutionMode
    options.execution_mode = modes.ORT_PARALLEL if settings.parallel else modes.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    levels = onnxruntime.GraphOptimizationLevel
    level = "DISABLE_ALL" if settings.level == "off" else f"ENABLE_{settings.level.upper()}"
    options.graph_optimization_level = getattr(levels, f"ORT_{level}")
    # Otherwise a producer name that starts with ORTM is mistaken for the mark of onnxruntime's own format.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    for key, value in settings.session:
        options.add_session_config_entry(key, value)
    if data_folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", data_folder)
    return options


def write_optimized(subject: Subject, settings: Settings, path: Path) -> None:
    """Write a model as onnxruntime optimizes it before a run.

    Raises:
        Exception: onnxruntime does not support the model, or cannot write it.
    """
    import onnxruntime

    options = session_options(settings, subject.data_folder)
    options.optimized_model_filepath = str(path)
    names, provider_options = split_providers(settings.providers)
    onnxruntime.InferenceSession(subject.model, options, providers=names, provider_options=provider_options)


def _is_plain(value: Value) -> bool:
    return isinstance(value, Tensor) and value.data_type != STRING


def to_ort_value(tensor: Tensor) -> "OrtValue":
    """Copy a tensor, of any dtype but string, bit by bit to a value of onnxruntime.

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


def from_ort_value(name: str, value: "OrtValue") -> Tensor:
    """Copy an output of onnxruntime bit by bit to a tensor."""
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


def _to_python(value: Value) -> Any:
    if value is None:
        return None
    if isinstance(value, Tensor):
        return to_numpy(value) if value.data_type == STRING else to_ort_value(value)
    return as_array(value)


def _value(name: str, result: Any, *, is_float32: bool = False) -> Value:
    """Convert a result of an engine to a value; raise UnsupportedError if ONNX has no such type."""
    import numpy

    if result is None:
        return None
    if isinstance(result, Mapping):
        keys, values = list(result), list(result.values())
        kinds = [object if any(isinstance(item, str) for item in each) else None for each in (keys, values)]
        kinds[1] = numpy.float32 if is_float32 else kinds[1]
        return Dictionary(from_numpy(numpy.array(keys, kinds[0])), from_numpy(numpy.array(values, kinds[1])))
    if isinstance(result, list | tuple):
        return tuple([_value(name, item, is_float32=is_float32) for item in result])
    if isinstance(result, numpy.ndarray | numpy.generic | int | float | bool | str):
        return from_numpy(numpy.asarray(result))
    raise UnsupportedError(f"output {name!a} is a {type(result).__name__}, which is not a type of ONNX")


class _Reference:
    engine: Engine = "reference"
    providers: tuple[str, ...] = ()

    def __init__(self, subject: Subject, settings: Settings, added: Sequence[str]) -> None:
        from onnx import ModelProto, defs
        from onnx.reference import ReferenceEvaluator

        model = ModelProto.FromString(_with_outputs(subject.model, added))
        if subject.data_folder is not None:
            raise UnsupportedError("the reference evaluator supports no external data of this size")
        newest = defs.onnx_opset_version()
        for each in model.opset_import:
            if each.domain in ("", "ai.onnx") and each.version > newest:  # it would be treated as the newest one
                raise UnsupportedError(f"operator set {each.version} is not known, only those up to {newest}")
        self._evaluator = ReferenceEvaluator(model)

    def run(self, values: Values, names: Sequence[str] | None = None) -> dict[str, Value]:
        import numpy

        wanted = self._evaluator.output_names if names is None else list(names)
        feeds = {name: as_array(value) for name, value in values.items()}
        with numpy.errstate(all="ignore"):
            found = self._evaluator.run(wanted, feeds)
        return {name: _value(name, value) for name, value in zip(wanted, found, strict=True)}

    def repeated(self, values: Values) -> Callable[[], object]:
        feeds = {name: as_array(value) for name, value in values.items()}
        return lambda: self._evaluator.run(None, feeds)


OpenModel: TypeAlias = Onnxruntime | _Reference
_OPENERS: Final[dict[Engine, type[OpenModel]]] = {"onnxruntime": Onnxruntime, "reference": _Reference}
