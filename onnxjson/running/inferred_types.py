"""The types of values: what a model says, and what onnx infers where it says nothing."""

from functools import cached_property
from typing import Final

import msgspec

from onnxjson import serde
from onnxjson.document import Dimension, Model, Tensor, TensorShape, TensorType, Type, ValueInfo
from onnxjson.elements import element_count
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Index, Scope
from onnxjson.payloads import Digest
from onnxjson.tensors import is_external
from onnxjson.wire.writing import message_bytes
from onnxjson.worker import Worker

_MOST_ELEMENTS: Final = 1024
"""Of constants that shape inference gets to see; larger ones tell it nothing about shapes."""


class InferredTypes:
    """The types of the values of one model; onnx is asked once, when it is first needed."""

    def __init__(self, index: Index, worker: Worker) -> None:
        self._index = index
        self._worker = worker

    def type_of(self, scope: Scope, name: str) -> Type | None:
        """The type of a value that is used in a graph of the model, with a shape where anybody knows it."""
        said = self._index.type_of(scope, name) or self._of_constant(scope, name)
        if said is not None and (said.tensor_type is None or said.tensor_type.shape is not None):
            return said
        inferred = self._inferred.get(scope.address)
        found = None if inferred is None else Index.type_of(inferred, name)
        return found or said

    @staticmethod
    def _of_constant(scope: Scope, name: str) -> Type | None:
        home = Index.home(scope, name)
        tensor = None if home is None else home.initializer(name)
        return _type_of_tensor(tensor) if isinstance(tensor, Tensor) else None

    @cached_property
    def _inferred(self) -> dict[str, Scope]:
        """The graphs of the model as onnx completes it, by address; without any where onnx does not take it."""
        try:
            inferred = self._worker.infer_shapes(message_bytes(_without_weights(self._index.model)))
            return {scope.address: scope for scope in Index(serde.parse(inferred).model).scopes}
        except OnnxJsonError:
            return {}


def _type_of_tensor(tensor: Tensor) -> Type:
    dims = tuple([Dimension(dim_value=dim) for dim in tensor.dims])
    return Type(tensor_type=TensorType(elem_type=tensor.data_type, shape=TensorShape(dim=dims)))


def _without_weights(model: Model) -> Model:
    """The model with inputs in place of the large constants of its main graph."""
    graph = model.graph
    if graph is None:
        return model
    large = [tensor for tensor in graph.initializer if _is_large(tensor)]
    names = {value.name for value in graph.input}
    added = [ValueInfo(name=each.name, type=_type_of_tensor(each)) for each in large if each.name not in names]
    kept = tuple([each for each in graph.initializer if not _is_large(each)])
    changed = msgspec.structs.replace(graph, initializer=kept, input=(*graph.input, *added))
    return msgspec.structs.replace(model, graph=changed)


def _is_large(tensor: Tensor) -> bool:
    """Whether a tensor is too large to be a shape, or not here."""
    return element_count(tensor.dims) > _MOST_ELEMENTS or is_external(tensor) or isinstance(tensor.raw_data, Digest)
