"""ONNX models as text: lossless, canonical JSON.

::

    import onnxjson

    model = onnxjson.load("model.onnx")          # or a .onnx.json
    onnxjson.save(model, "model.onnx.json")
    text = onnxjson.dumps(model)
    proto = onnxjson.to_proto(model)             # an onnx.ModelProto

The names below are resolved on first use: importing the package loads neither numpy nor onnx.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff as Diff
    from onnxjson.diffing.difference import diff as diff
    from onnxjson.diffing.events import Event as Event
    from onnxjson.editing import edits as edits
    from onnxjson.editing.applying import Change as Change
    from onnxjson.editing.applying import apply as apply
    from onnxjson.editing.making import node as node
    from onnxjson.editing.making import tensor as tensor
    from onnxjson.editing.making import value as value
    from onnxjson.editing.places import Editor as Editor
    from onnxjson.editing.places import Place as Place
    from onnxjson.editing.places import Places as Places
    from onnxjson.editing.places import TensorPlace as TensorPlace
    from onnxjson.editing.places import select as select
    from onnxjson.editing.places import select_one as select_one
    from onnxjson.editing.places import select_value as select_value
    from onnxjson.model.document import Attribute as Attribute
    from onnxjson.model.document import DeviceConfiguration as DeviceConfiguration
    from onnxjson.model.document import Dimension as Dimension
    from onnxjson.model.document import Function as Function
    from onnxjson.model.document import Graph as Graph
    from onnxjson.model.document import IntIntListEntry as IntIntListEntry
    from onnxjson.model.document import MapType as MapType
    from onnxjson.model.document import Model as Model
    from onnxjson.model.document import Node as Node
    from onnxjson.model.document import NodeDeviceConfiguration as NodeDeviceConfiguration
    from onnxjson.model.document import OpaqueType as OpaqueType
    from onnxjson.model.document import OperatorSetId as OperatorSetId
    from onnxjson.model.document import OptionalType as OptionalType
    from onnxjson.model.document import Segment as Segment
    from onnxjson.model.document import SequenceType as SequenceType
    from onnxjson.model.document import ShardedDim as ShardedDim
    from onnxjson.model.document import ShardingSpec as ShardingSpec
    from onnxjson.model.document import SimpleShardedDim as SimpleShardedDim
    from onnxjson.model.document import SparseTensor as SparseTensor
    from onnxjson.model.document import SparseTensorType as SparseTensorType
    from onnxjson.model.document import StringStringEntry as StringStringEntry
    from onnxjson.model.document import Tensor as Tensor
    from onnxjson.model.document import TensorAnnotation as TensorAnnotation
    from onnxjson.model.document import TensorShape as TensorShape
    from onnxjson.model.document import TensorType as TensorType
    from onnxjson.model.document import TrainingInfo as TrainingInfo
    from onnxjson.model.document import Type as Type
    from onnxjson.model.document import ValueInfo as ValueInfo
    from onnxjson.model.errors import AccessDeniedError as AccessDeniedError
    from onnxjson.model.errors import AddressError as AddressError
    from onnxjson.model.errors import ChangedUnderneathError as ChangedUnderneathError
    from onnxjson.model.errors import ConflictError as ConflictError
    from onnxjson.model.errors import DecodeError as DecodeError
    from onnxjson.model.errors import DifferenceError as DifferenceError
    from onnxjson.model.errors import EditError as EditError
    from onnxjson.model.errors import EncodeError as EncodeError
    from onnxjson.model.errors import EvaluationError as EvaluationError
    from onnxjson.model.errors import FeedError as FeedError
    from onnxjson.model.errors import FileError as FileError
    from onnxjson.model.errors import Finding as Finding
    from onnxjson.model.errors import LimitError as LimitError
    from onnxjson.model.errors import MissingInputError as MissingInputError
    from onnxjson.model.errors import NoMatchError as NoMatchError
    from onnxjson.model.errors import OnnxJsonError as OnnxJsonError
    from onnxjson.model.errors import OutputError as OutputError
    from onnxjson.model.errors import ParameterError as ParameterError
    from onnxjson.model.errors import PassError as PassError
    from onnxjson.model.errors import PatchError as PatchError
    from onnxjson.model.errors import SelectorError as SelectorError
    from onnxjson.model.errors import UntrustedError as UntrustedError
    from onnxjson.model.errors import WeightsMissingError as WeightsMissingError
    from onnxjson.model.errors import WireError as WireError
    from onnxjson.model.errors import WorkerError as WorkerError
    from onnxjson.model.index import Index as Index
    from onnxjson.model.index import index_of as index_of
    from onnxjson.model.messages import value_of as value_of
    from onnxjson.model.types import format_data_type as format_data_type
    from onnxjson.model.types import format_type as format_type
    from onnxjson.patching.patch import Patch as Patch
    from onnxjson.running.comparison import Tolerance as Tolerance
    from onnxjson.running.model_run import RunResult as RunResult
    from onnxjson.running.model_run import run as run
    from onnxjson.running.verification import Verification as Verification
    from onnxjson.running.verification import verify as verify
    from onnxjson.storage.api import dumps as dumps
    from onnxjson.storage.api import from_proto as from_proto
    from onnxjson.storage.api import load as load
    from onnxjson.storage.api import loads as loads
    from onnxjson.storage.api import save as save
    from onnxjson.storage.api import to_proto as to_proto
    from onnxjson.storage.constant_reading import array_of as array_of

    __version__: str

_NAMES: Final = {
    "onnxjson.storage.api": "load save loads dumps from_proto to_proto",
    "onnxjson.diffing.difference": "Diff diff",
    "onnxjson.diffing.events": "Event",
    "onnxjson.model.document": (
        "Model Graph Node Attribute Tensor SparseTensor ValueInfo Type TensorType SparseTensorType SequenceType "
        "MapType OptionalType OpaqueType TensorShape Dimension Function OperatorSetId StringStringEntry "
        "TensorAnnotation Segment TrainingInfo DeviceConfiguration NodeDeviceConfiguration ShardingSpec ShardedDim "
        "SimpleShardedDim IntIntListEntry"
    ),
    "onnxjson.editing.applying": "apply",
    "onnxjson.editing.making": "node tensor value",
    "onnxjson.editing.places": "Editor Place Places TensorPlace",
    "onnxjson.model.index": "Index",
    "onnxjson.model.errors": (
        "OnnxJsonError ConflictError DecodeError WireError EncodeError MissingInputError LimitError OutputError "
        "FileError ChangedUnderneathError WorkerError AccessDeniedError UntrustedError SelectorError AddressError "
        "NoMatchError WeightsMissingError PatchError EditError ParameterError PassError "
        "EvaluationError FeedError DifferenceError Finding"
    ),
    "onnxjson.patching.patch": "Patch",
    "onnxjson.running.model_run": "RunResult run",
    "onnxjson.running.comparison": "Tolerance",
    "onnxjson.running.verification": "Verification verify",
}
"""The module of every public name; a test compares it with the imports above."""

_BEHIND_METHODS: Final = {
    "onnxjson.editing.applying": "Change",
    "onnxjson.editing.places": "select select_one select_value",
    "onnxjson.model.index": "index_of",
    "onnxjson.model.messages": "value_of",
    "onnxjson.model.types": "format_data_type format_type",
    "onnxjson.storage.constant_reading": "array_of",
}
"""Functions that only the methods of records call (`onnxjson.model.document`)."""


def _by_name(names: dict[str, str]) -> dict[str, str]:
    return {name: module for module, its in names.items() for name in its.split()}


_MODULES: Final = _by_name(_NAMES) | _by_name(_BEHIND_METHODS)

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
            raise AttributeError(f"module 'onnxjson' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, loaded or not."""
        return sorted({*globals(), *__all__})
