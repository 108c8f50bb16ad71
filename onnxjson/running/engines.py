"""Models opened by what evaluates them: onnxruntime, else the reference evaluator of onnx.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from onnxjson.document import Tensor
from onnxjson.names import STRING
from onnxjson.running.tasks import Settings, Subject
from onnxjson.running.values import Dictionary, Value, Values, as_array
from onnxjson.tensors import from_numpy, to_numpy
from onnxjson.worker_evaluation import INFERENCE_ERROR, UnsupportedError, given, taken
from onnxjson.worker_tasks import Engine

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, SessionOptions


class OpenModel(Protocol):
    """A model that can be run."""

    engine: Engine
    providers: tuple[str, ...]

    def run(self, values: Values, names: Sequence[str] | None = None) -> dict[str, Value]:
        """The values of the outputs, or of some of them."""

    def repeated(self, values: Values) -> Callable[[], object]:
        """A function that runs the model on these values, with nothing around it that takes time."""


def opened(subject: Subject, settings: Settings, told: Callable[[str], str], added: Sequence[str] = ()) -> OpenModel:
    """The model, by the first engine that takes it.

    Args:
        subject: the model.
        settings: how it is to run.
        told: makes a message of native code safe to print, on one line.
        added: values inside its main graph that become outputs.

    Raises:
        UnsupportedError: no engine takes it; the message says why.
    """
    problems = []
    for engine in settings.engines:
        try:
            return _OPENERS[engine](subject, settings, added)
        except MemoryError:
            raise
        except Exception as error:
            problems.append(f"{engine}: {told(str(error))}")
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
    """A session of onnxruntime; see `OpenModel`.

    Args:
        subject: the model.
        settings: how it runs.
        added: values inside its main graph that become outputs.
        profiled: how the names of files begin that the profiler writes; None where nothing is profiled.
    """

    engine: Engine = "onnxruntime"

    def __init__(
        self, subject: Subject, settings: Settings, added: Sequence[str], profiled: Path | None = None
    ) -> None:
        import onnxruntime

        onnxruntime.disable_telemetry_events()
        onnxruntime.set_default_logger_severity(4)
        onnxruntime.set_seed(subject.seed)
        _require_providers(settings.providers, onnxruntime.get_available_providers(), "offers")
        model = _with_outputs(subject.model, added)
        options = session_options(settings, subject.data_folder)
        if profiled is not None:
            options.enable_profiling = True
            options.profile_file_prefix = str(profiled)
        self._session: InferenceSession = onnxruntime.InferenceSession(
            model, options, providers=list(settings.providers)
        )
        self.providers = tuple(self._session.get_providers())
        _require_providers(settings.providers, self.providers, "could open only")
        self._names = [output.name for output in self._session.get_outputs()]
        self._has_tensors = all(output.type.startswith("tensor(") for output in self._session.get_outputs())

    def run(self, values: Values, names: Sequence[str] | None = None) -> dict[str, Value]:
        """See `OpenModel.run`."""
        if names is not None and not names:
            return {}  # onnxruntime would give all outputs
        names = self._names if names is None else list(names)
        if self._has_tensors and all(_is_plain(value) for value in values.values()):
            feeds = {name: given(value) for name, value in values.items() if isinstance(value, Tensor)}
            found = self._session.run_with_ort_values(names, feeds)
            return {name: taken(name, value) for name, value in zip(names, found, strict=True)}
        # Strings, sequences and maps go in and come out as objects of Python only.
        arrays = self._session.run(names, {name: _fed(value) for name, value in values.items()})
        return {name: _value(name, value) for name, value in zip(names, arrays, strict=True)}

    def repeated(self, values: Values) -> Callable[[], object]:
        """See `OpenModel.repeated`."""
        session, names = self._session, self._names
        if self._has_tensors and all(_is_plain(value) for value in values.values()):
            feeds = {name: given(value) for name, value in values.items() if isinstance(value, Tensor)}
            return lambda: session.run_with_ort_values(names, feeds)
        objects = {name: _fed(value) for name, value in values.items()}
        return lambda: session.run(names, objects)

    def events(self) -> list[Mapping[str, Any]]:
        """What happened in all runs, as the profiler of onnxruntime says it, which ends with this."""
        path = Path(self._session.end_profiling())
        found: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        return found


def _require_providers(wanted: Sequence[str], found: Sequence[str], what: str) -> None:
    """Do nothing if all providers are there; onnxruntime would take others without a word.

    Raises:
        UnsupportedError: one is not.
    """
    for name in wanted:
        if name not in found:
            raise UnsupportedError(f"there is no {name} here; it {what} {', '.join(found)}")


def session_options(settings: Settings, data_folder: str | None = None) -> "SessionOptions":
    """What a session of onnxruntime is opened with."""
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
    options.add_session_config_entry("session.load_model_format", "ONNX")
    if data_folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", data_folder)
    return options


def write_optimized(subject: Subject, settings: Settings, path: Path) -> None:
    """Writes what onnxruntime makes of a model before it runs it.

    Raises:
        Exception: it does not take the model, or cannot write it.
    """
    import onnxruntime

    options = session_options(settings, subject.data_folder)
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(subject.model, options, providers=list(settings.providers))


def _is_plain(value: Value) -> bool:
    return isinstance(value, Tensor) and value.data_type != STRING


def _fed(value: Value) -> Any:
    """A value as `InferenceSession.run` takes it."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return to_numpy(value) if value.data_type == STRING else given(value)
    return as_array(value)


def _value(name: str, found: Any) -> Value:
    """What an engine gives, as a value.

    Raises:
        UnsupportedError: it is nothing that ONNX knows.
    """
    import numpy

    if found is None:
        return None
    if isinstance(found, Mapping):
        keys, values = list(found), list(found.values())
        texts = [numpy.array(each, object) if _has_texts(each) else numpy.array(each) for each in (keys, values)]
        return Dictionary(from_numpy(texts[0]), from_numpy(texts[1]))
    if isinstance(found, list | tuple):
        return tuple([_value(name, item) for item in found])
    if isinstance(found, numpy.ndarray | numpy.generic | int | float | bool | str):
        return from_numpy(numpy.asarray(found))
    raise UnsupportedError(f"output {name!a} is a {type(found).__name__}, which is no value that is known")


def _has_texts(items: Sequence[object]) -> bool:
    return any(isinstance(item, str) for item in items)


class _Reference:
    engine: Engine = "reference"
    providers: tuple[str, ...] = ()

    def __init__(self, subject: Subject, settings: Settings, added: Sequence[str]) -> None:
        from onnx import ModelProto, defs
        from onnx.reference import ReferenceEvaluator

        model = ModelProto.FromString(_with_outputs(subject.model, added))
        if subject.data_folder is not None:
            raise UnsupportedError("the reference evaluator takes no model with external data of this size")
        newest = defs.onnx_opset_version()
        for each in model.opset_import:
            if each.domain in ("", "ai.onnx") and each.version > newest:  # it would be taken for the newest one
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


_OPENERS: Final[dict[Engine, Callable[[Subject, Settings, Sequence[str]], OpenModel]]] = {
    "onnxruntime": Onnxruntime,
    "reference": _Reference,
}
