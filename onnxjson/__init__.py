"""ONNX models as text: lossless, canonical JSON.

::

    import onnxjson

    model = onnxjson.load("model.onnx")          # or a .onnx.json
    onnxjson.save(model, "model.onnx.json")
    text = onnxjson.dumps(model)
    proto = onnxjson.to_proto(model)             # an onnx.ModelProto

The names below are resolved on first use: importing the package loads neither numpy nor onnx.
"""

# ruff: noqa: I001 - a list of names is easier to read with several on a line

from typing import TYPE_CHECKING, Final

# fmt: off
if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff as Diff, diff as diff
    from onnxjson.diffing.events import Event as Event
    from onnxjson.editing import edits as edits
    from onnxjson.editing.applying import Change as Change, apply as apply
    from onnxjson.editing.attributes import node as node, tensor as tensor, value as value
    from onnxjson.editing.places import Editor as Editor, Place as Place, Places as Places, TensorPlace as TensorPlace
    from onnxjson.merging.merge import Merged as Merged, merge as merge
    from onnxjson.merging.resolving import resolve as resolve
    from onnxjson.model.document import (
        Attribute as Attribute, DeviceConfiguration as DeviceConfiguration, Dimension as Dimension,
        Function as Function, Graph as Graph, IntIntListEntry as IntIntListEntry, MapType as MapType, Model as Model,
        Node as Node, NodeDeviceConfiguration as NodeDeviceConfiguration, OpaqueType as OpaqueType,
        OperatorSetId as OperatorSetId, OptionalType as OptionalType, Segment as Segment, SequenceType as SequenceType,
        ShardedDim as ShardedDim, ShardingSpec as ShardingSpec, SimpleShardedDim as SimpleShardedDim,
        SparseTensor as SparseTensor, SparseTensorType as SparseTensorType, StringStringEntry as StringStringEntry,
        Tensor as Tensor, TensorAnnotation as TensorAnnotation, TensorShape as TensorShape, TensorType as TensorType,
        TrainingInfo as TrainingInfo, Type as Type, ValueInfo as ValueInfo,
    )
    from onnxjson.model.conflicts import ConflictError as ConflictError
    from onnxjson.model.errors import (
        AccessDeniedError as AccessDeniedError, AddressError as AddressError, BrokenNodesError as BrokenNodesError,
        ChangedUnderneathError as ChangedUnderneathError, DecodeError as DecodeError,
        DifferenceError as DifferenceError, EditError as EditError, EncodeError as EncodeError,
        EvaluationError as EvaluationError, FeedError as FeedError, FileError as FileError, Finding as Finding,
        LimitError as LimitError, MissingFileError as MissingFileError,
        MissingInputError as MissingInputError, NoMatchError as NoMatchError,
        OnnxJsonError as OnnxJsonError, OtherJsonError as OtherJsonError, OutputError as OutputError,
        ParameterError as ParameterError, PassError as PassError, PatchError as PatchError,
        SelectorError as SelectorError, UnloadableError as UnloadableError,
        UntrustedError as UntrustedError, WeightsMissingError as WeightsMissingError,
        WireError as WireError, WorkerError as WorkerError,
    )
    from onnxjson.model.index import Index as Index, index_of as index_of
    from onnxjson.model.messages import value_of as value_of
    from onnxjson.model.types import format_data_type as format_data_type, format_type as format_type
    from onnxjson.optimizing.trace_records import Trace as Trace, optimize as optimize
    from onnxjson.optimizing.trace_storing import load_trace as load_trace, write_trace as write_trace
    from onnxjson.outline.lines import Line as Line, Outline as Outline, outline_of as outline_of
    from onnxjson.patching.patch import Patch as Patch
    from onnxjson.patterns.finding import Match as Match
    from onnxjson.patterns.misses import Miss as Miss, nearest_misses as nearest_misses
    from onnxjson.patterns.searching import find as find
    from onnxjson.rendering.reports import report_text as report_text
    from onnxjson.running.checking import Findings as Findings, check as check
    from onnxjson.running.comparisons import Tolerance as Tolerance
    from onnxjson.running.model_run import RunResult as RunResult, run as run
    from onnxjson.running.verdicts import Verification as Verification
    from onnxjson.running.verification import verify as verify
    from onnxjson.storage.api import (
        convert as convert, dumps as dumps, from_ir as from_ir, from_proto as from_proto, load as load, loads as loads,
        save as save, to_ir as to_ir, to_proto as to_proto,
    )
    from onnxjson.storage.constant_reading import array_of as array_of

    __version__: str
# fmt: on

_NAMES: Final = {
    "onnxjson.storage.api": "load save loads dumps convert from_proto to_proto from_ir to_ir",
    "onnxjson.diffing.difference": "Diff diff",
    "onnxjson.diffing.events": "Event",
    "onnxjson.model.document": (
        "Model Graph Node Attribute Tensor SparseTensor ValueInfo Type TensorType SparseTensorType SequenceType "
        "MapType OptionalType OpaqueType TensorShape Dimension Function OperatorSetId StringStringEntry "
        "TensorAnnotation Segment TrainingInfo DeviceConfiguration NodeDeviceConfiguration ShardingSpec ShardedDim "
        "SimpleShardedDim IntIntListEntry"
    ),
    "onnxjson.editing.applying": "apply",
    "onnxjson.editing.attributes": "node tensor value",
    "onnxjson.editing.places": "Editor Place Places TensorPlace",
    "onnxjson.model.index": "Index",
    "onnxjson.model.conflicts": "ConflictError",
    "onnxjson.model.errors": (
        "OnnxJsonError DecodeError OtherJsonError WireError EncodeError MissingInputError MissingFileError LimitError "
        "OutputError FileError ChangedUnderneathError WorkerError AccessDeniedError UnloadableError UntrustedError "
        "SelectorError "
        "BrokenNodesError AddressError NoMatchError WeightsMissingError PatchError EditError ParameterError PassError "
        "EvaluationError FeedError DifferenceError Finding"
    ),
    "onnxjson.outline.lines": "Line Outline",
    "onnxjson.patching.patch": "Patch",
    "onnxjson.patterns.finding": "Match",
    "onnxjson.patterns.misses": "Miss nearest_misses",
    "onnxjson.patterns.searching": "find",
    "onnxjson.merging.merge": "Merged merge",
    "onnxjson.merging.resolving": "resolve",
    "onnxjson.optimizing.trace_records": "Trace optimize",
    "onnxjson.optimizing.trace_storing": "load_trace write_trace",
    "onnxjson.running.checking": "Findings check",
    "onnxjson.running.model_run": "RunResult run",
    "onnxjson.running.comparisons": "Tolerance",
    "onnxjson.running.verdicts": "Verification",
    "onnxjson.running.verification": "verify",
}
"""The module of every public name; a test compares it with the imports above."""

_FOR_METHODS: Final = {
    "onnxjson.editing.applying": "Change",
    "onnxjson.model.index": "index_of",
    "onnxjson.model.messages": "value_of",
    "onnxjson.model.types": "format_data_type format_type",
    "onnxjson.outline.lines": "outline_of",
    "onnxjson.rendering.reports": "report_text",
    "onnxjson.storage.constant_reading": "array_of",
}
"""Functions that only the methods of records call (`onnxjson.model.methods`)."""


def _by_name(names: dict[str, str]) -> dict[str, str]:
    return {name: module for module, its in names.items() for name in its.split()}


_MODULES: Final = _by_name(_NAMES) | _by_name(_FOR_METHODS)

__all__ = [*_by_name(_NAMES), "__version__", "edits"]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A public name, from the module that defines it."""
        import importlib

        if name == "__version__":
            from importlib.metadata import version

            value = version("onnxjson")
        elif name == "edits":
            value = importlib.import_module("onnxjson.editing.edits")
        elif module := _MODULES.get(name):
            value = getattr(importlib.import_module(module), name)
        else:
            known = importlib.import_module("onnxjson.model.foreign_words").meant("onnxjson", name)
            raise AttributeError(f"module 'onnxjson' has no attribute {name!r}{f'; write {known[0]}' if known else ''}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, loaded or not."""
        return sorted({*globals(), *__all__})
