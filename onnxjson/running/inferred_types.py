"""Types of the values of a model: stated, of constants, or inferred by onnx."""

from collections.abc import Callable, Hashable
from functools import cached_property
from pathlib import Path

from onnxjson.codecs import serde
from onnxjson.model.constants import type_of_constant
from onnxjson.model.document import Model, Node, Type
from onnxjson.model.errors import Finding, MissingInputError, OnnxJsonError
from onnxjson.model.index import Index, Scope
from onnxjson.running.light_model import LightModel
from onnxjson.running.random_values import indexed_axis_size
from onnxjson.running.value_types import AxisSize, tensor_type
from onnxjson.running.worker import Worker

AxisSizeOf = Callable[[Node], int | None]
"""Function that returns the size of the axis along which a node uses indices, if it is known."""


def inferred_scopes(model: Model, folder: Path | None, worker: Worker) -> tuple[dict[str, Scope], tuple[Finding, ...]]:
    """Infer the types of a model by onnx: return its graphs by address, with the types alone, and what is wrong.

    Small constants in files that are missing count as big.

    Raises:
        WorkerError: the inference crashed, hung or refused the model.
        EditError, UntrustedError: see `LightModel`.
    """
    try:
        light = LightModel(model, folder, "typed")
    except MissingInputError:
        light = LightModel(model, None, "typed")
    types, findings = worker.infer_types(light.data)
    return Index(serde.parse(types).model).by_address, findings


class InferredTypes:
    """Types of the values of one model; shape inference of onnx runs once, when it is first needed."""

    def __init__(self, index: Index, worker: Worker, folder: Path | None = None) -> None:
        self._index = index
        self._worker = worker
        self._folder = folder

    def type_of(self, scope: Scope, name: str) -> Type | None:
        """Return the type of a value used in a graph of the model, with its shape if that is known."""
        declared = self._index.type_of(scope, name)
        if declared is None and (defining := Index.defining_scope(scope, name)) is not None:
            constant = defining.initializer(name)
            declared = None if constant is None else type_of_constant(constant)
        if declared is not None and (declared.tensor_type is None or declared.tensor_type.shape is not None):
            return declared
        inferred = self._inferred.get(scope.address)
        found = None if inferred is None else Index.type_of(inferred, name)
        return found or declared

    def axis_size(self, scope: Scope, owner: Hashable, size_of: Callable[[AxisSize], int | None]) -> AxisSizeOf:
        """Return a function for the size of the axis along which a node uses indices, None if unknown."""

        def size(node: Node) -> int | None:
            data_type_and_shape = tensor_type(self.type_of(scope, node.input[0]), owner, node.input[0])
            if data_type_and_shape is None or not data_type_and_shape[1]:
                return None
            return indexed_axis_size(node, [size_of(each) or 0 for each in data_type_and_shape[1]])

        return size

    @cached_property
    def _inferred(self) -> dict[str, Scope]:
        """Graphs of the model after shape inference, by address; none if inference fails."""
        try:
            return inferred_scopes(self._index.model, self._folder, self._worker)[0]
        except OnnxJsonError:
            return {}
