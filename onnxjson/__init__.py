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
    from onnxjson import edits as edits
    from onnxjson.api import dumps as dumps
    from onnxjson.api import from_proto as from_proto
    from onnxjson.api import load as load
    from onnxjson.api import loads as loads
    from onnxjson.api import save as save
    from onnxjson.api import to_proto as to_proto
    from onnxjson.checking import Finding as Finding
    from onnxjson.diffing.difference import Diff as Diff
    from onnxjson.diffing.difference import diff as diff
    from onnxjson.diffing.events import Event as Event
    from onnxjson.document import Attribute as Attribute
    from onnxjson.document import DeviceConfiguration as DeviceConfiguration
    from onnxjson.document import Dimension as Dimension
    from onnxjson.document import Function as Function
    from onnxjson.document import Graph as Graph
    from onnxjson.document import IntIntListEntry as IntIntListEntry
    from onnxjson.document import MapType as MapType
    from onnxjson.document import Model as Model
    from onnxjson.document import Node as Node
    from onnxjson.document import NodeDeviceConfiguration as NodeDeviceConfiguration
    from onnxjson.document import OpaqueType as OpaqueType
    from onnxjson.document import OperatorSetId as OperatorSetId
    from onnxjson.document import OptionalType as OptionalType
    from onnxjson.document import Segment as Segment
    from onnxjson.document import SequenceType as SequenceType
    from onnxjson.document import ShardedDim as ShardedDim
    from onnxjson.document import ShardingSpec as ShardingSpec
    from onnxjson.document import SimpleShardedDim as SimpleShardedDim
    from onnxjson.document import SparseTensor as SparseTensor
    from onnxjson.document import SparseTensorType as SparseTensorType
    from onnxjson.document import StringStringEntry as StringStringEntry
    from onnxjson.document import Tensor as Tensor
    from onnxjson.document import TensorAnnotation as TensorAnnotation
    from onnxjson.document import TensorShape as TensorShape
    from onnxjson.document import TensorType as TensorType
    from onnxjson.document import TrainingInfo as TrainingInfo
    from onnxjson.document import Type as Type
    from onnxjson.document import ValueInfo as ValueInfo
    from onnxjson.edits.applying import apply as apply
    from onnxjson.errors import AccessDeniedError as AccessDeniedError
    from onnxjson.errors import AddressError as AddressError
    from onnxjson.errors import ChangedUnderneathError as ChangedUnderneathError
    from onnxjson.errors import ConflictError as ConflictError
    from onnxjson.errors import DecodeError as DecodeError
    from onnxjson.errors import DifferenceError as DifferenceError
    from onnxjson.errors import EditError as EditError
    from onnxjson.errors import EncodeError as EncodeError
    from onnxjson.errors import EvaluationError as EvaluationError
    from onnxjson.errors import FeedError as FeedError
    from onnxjson.errors import FileError as FileError
    from onnxjson.errors import LimitError as LimitError
    from onnxjson.errors import MissingInputError as MissingInputError
    from onnxjson.errors import OnnxJsonError as OnnxJsonError
    from onnxjson.errors import OutputError as OutputError
    from onnxjson.errors import ParameterError as ParameterError
    from onnxjson.errors import PassError as PassError
    from onnxjson.errors import PatchError as PatchError
    from onnxjson.errors import SelectorError as SelectorError
    from onnxjson.errors import UntrustedError as UntrustedError
    from onnxjson.errors import WeightsMissingError as WeightsMissingError
    from onnxjson.errors import WireError as WireError
    from onnxjson.errors import WorkerError as WorkerError
    from onnxjson.patching.patch import Patch as Patch
    from onnxjson.running.model_run import RunResult as RunResult
    from onnxjson.running.model_run import run as run
    from onnxjson.running.tolerances import Tolerance as Tolerance
    from onnxjson.running.verification import Verification as Verification
    from onnxjson.running.verification import verify as verify

    __version__: str

_NAMES: Final = {
    "onnxjson.api": "load save loads dumps from_proto to_proto",
    "onnxjson.checking": "Finding",
    "onnxjson.diffing.difference": "Diff diff",
    "onnxjson.diffing.events": "Event",
    "onnxjson.document": (
        "Model Graph Node Attribute Tensor SparseTensor ValueInfo Type TensorType SparseTensorType SequenceType "
        "MapType OptionalType OpaqueType TensorShape Dimension Function OperatorSetId StringStringEntry "
        "TensorAnnotation Segment TrainingInfo DeviceConfiguration NodeDeviceConfiguration ShardingSpec ShardedDim "
        "SimpleShardedDim IntIntListEntry"
    ),
    "onnxjson.edits.applying": "apply",
    "onnxjson.errors": (
        "OnnxJsonError ConflictError DecodeError WireError EncodeError MissingInputError LimitError OutputError "
        "FileError ChangedUnderneathError WorkerError AccessDeniedError UntrustedError SelectorError AddressError "
        "WeightsMissingError PatchError EditError ParameterError PassError "
        "EvaluationError FeedError DifferenceError"
    ),
    "onnxjson.patching.patch": "Patch",
    "onnxjson.running.model_run": "RunResult run",
    "onnxjson.running.tolerances": "Tolerance",
    "onnxjson.running.verification": "Verification verify",
}
"""The module of every public name; a test holds it against the imports above."""

_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_MODULES, "__version__", "edits"]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A public name, from the module that defines it."""
        import importlib

        if name == "__version__":
            from importlib.metadata import version

            value = version("onnxjson")
        elif name == "edits":
            value = importlib.import_module("onnxjson.edits")
        elif module := _MODULES.get(name):
            value = getattr(importlib.import_module(module), name)
        else:
            raise AttributeError(f"module 'onnxjson' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, loaded or not."""
        return sorted({*globals(), *__all__})
