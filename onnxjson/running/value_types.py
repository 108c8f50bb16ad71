"""Types of values: declared in the model, or inferred by onnx; sizes for dimensions that are open."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Dimension, Model, Tensor, TensorShape, TensorType, Type, ValueInfo
from onnxjson.model.elements import element_count
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, Scope
from onnxjson.model.payloads import Digest
from onnxjson.model.tensors import is_external
from onnxjson.running.worker import Worker

AxisSize = int | Hashable
"""A size, or a key for a size that is not known."""

SIZES: Final[tuple[tuple[int, ...], ...]] = ((2, 3, 5, 4), (2,), (1,))
"""Sizes of open dimensions, in turn: different sizes reveal more, equal ones fit where two dimensions must agree."""


class Dimensions:
    """Dimensions of several values: which ones are the same, and the sizes that are known."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}
        self._sizes: dict[Hashable, int] = {}

    def join(self, one: AxisSize, other: AxisSize) -> bool:
        """Record that two dimensions are the same; return False if their sizes differ."""
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        if isinstance(one, int):
            one, other = other, one
        first = self._root(one)
        if isinstance(other, int):
            return self._sizes.setdefault(first, other) == other
        second = self._root(other)
        if first != second:
            size = self._sizes.get(second)
            self._above[second] = first
            return size is None or self._sizes.setdefault(first, size) == size
        return True

    def _root(self, dimension: Hashable) -> Hashable:
        while (above := self._above.get(dimension, dimension)) != dimension:
            dimension = above
        return dimension

    def open_in(self, shapes: Iterable[Sequence[AxisSize]]) -> list[Hashable]:
        """Return the dimensions without a size, each once, in order of appearance."""
        found: dict[Hashable, None] = {}
        for shape in shapes:
            for dimension in shape:
                if not isinstance(dimension, int) and (root := self._root(dimension)) not in self._sizes:
                    found[root] = None
        return list(found)

    def sized(self, shape: Sequence[AxisSize], given: Mapping[Hashable, int]) -> tuple[int, ...]:
        """Return a shape in numbers, with sizes `given` for open dimensions.

        Raises:
            KeyError: a dimension has no size.
        """
        sizes = []
        for dimension in shape:
            if isinstance(dimension, int):
                sizes.append(dimension)
            else:
                root = self._root(dimension)
                sizes.append(self._sizes[root] if root in self._sizes else given[root])
        return tuple(sizes)


def tensor_type(declared: Type | None, owner: Hashable, name: str) -> tuple[int, tuple[AxisSize, ...] | None] | None:
    """Return the data type and shape of a tensor; None if the data type is unknown or it is not a tensor type.

    Args:
        declared: the type, if it is known.
        owner: key of the model, in which equal names of dimensions mean equal sizes.
        name: name of the value, which distinguishes dimensions without a name.

    Returns:
        The shape is None if the rank is not known.
    """
    tensor = None if declared is None else declared.tensor_type
    if tensor is None or not tensor.elem_type:
        return None
    if tensor.shape is None:
        return tensor.elem_type, None
    shape: list[AxisSize] = []
    for axis, each in enumerate(tensor.shape.dim):
        if each.dim_value is not None and each.dim_value >= 0:
            shape.append(each.dim_value)
        else:
            shape.append((owner, each.dim_param) if each.dim_param else (owner, name, axis))
    return tensor.elem_type, tuple(shape)


_MOST_ELEMENTS: Final = 1024
"""Maximum size of constants passed to shape inference; larger ones are not shapes."""


class InferredTypes:
    """Types of the values of one model; shape inference of onnx runs once, when it is first needed."""

    def __init__(self, index: Index, worker: Worker) -> None:
        self._index = index
        self._worker = worker

    def type_of(self, scope: Scope, name: str) -> Type | None:
        """Return the type of a value used in a graph of the model, with its shape if that is known."""
        declared = self._index.type_of(scope, name) or self._of_constant(scope, name)
        if declared is not None and (declared.tensor_type is None or declared.tensor_type.shape is not None):
            return declared
        inferred = self._inferred.get(scope.address)
        found = None if inferred is None else Index.type_of(inferred, name)
        return found or declared

    @staticmethod
    def _of_constant(scope: Scope, name: str) -> Type | None:
        home = Index.defining_scope(scope, name)
        tensor = None if home is None else home.initializer(name)
        return _type_of_tensor(tensor) if isinstance(tensor, Tensor) else None

    @cached_property
    def _inferred(self) -> dict[str, Scope]:
        """Graphs of the model after shape inference, by address; none if inference fails."""
        try:
            inferred = self._worker.infer_shapes(message_bytes(_without_weights(self._index.model)))
            return Index(serde.parse(inferred).model).by_address
        except OnnxJsonError:
            return {}


def _type_of_tensor(tensor: Tensor) -> Type:
    dims = tuple([Dimension(dim_value=dim) for dim in tensor.dims])
    return Type(tensor_type=TensorType(elem_type=tensor.data_type, shape=TensorShape(dim=dims)))


def _without_weights(model: Model) -> Model:
    """Return the model with inputs instead of the large constants of its main graph."""
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
    """Whether a tensor is too large to be a shape, or its elements are elsewhere."""
    return element_count(tensor.dims) > _MOST_ELEMENTS or is_external(tensor) or isinstance(tensor.raw_data, Digest)
