"""The weights among the constants of a model: what was trained, not what states shapes, indices and masks.

A weight is an initializer or the value of a node Constant, of floating-point numbers or of at most 8 bits; 32-bit
integers only where a quantized operator uses them, such as the bias of QLinearConv. Sparse initializers count as their
values. All other constants of these places are counted apart.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from onnxjson.model.constants import is_constant_node, value_of_node
from onnxjson.model.document import Graph, SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPES, DTYPES
from onnxjson.model.elements import element_count
from onnxjson.model.index import Index, Scope
from onnxjson.model.walking import stored_bytes

_INT32: Final = DATA_TYPES["int32"]
_OF_WEIGHTS: Final = frozenset(
    number
    for number, dtype in DTYPES.items()
    if dtype.name.startswith(("float", "bfloat", "complex")) or (dtype.name != "bool" and BITS.get(number, 64) <= 8)
)


class Held(NamedTuple):
    """A constant of a model."""

    name: str
    """Of the initializer, or of the output of the node Constant."""
    tensor: Tensor
    is_weight: bool


def held_constants(index: Index) -> Iterator[Held]:
    """Yield the initializers and the values of nodes Constant of all graphs and functions."""
    for scope in index.scopes:
        graph = scope.graph
        if isinstance(graph, Graph):
            for tensor in graph.initializer:
                yield Held(tensor.name or "", tensor, _is_weight(scope, tensor.name or "", tensor))
            for sparse in graph.sparse_initializer:
                yield from _parts("" if sparse.values is None else sparse.values.name or "", sparse)
        for node in graph.node:
            if node.op_type == "Constant" and is_constant_node(node) and node.output:
                value = value_of_node(node)
                if isinstance(value, Tensor):
                    yield Held(node.output[0], value, _is_weight(scope, node.output[0], value))
                elif value is not None:
                    yield from _parts(node.output[0], value)


def weight_tensors(index: Index) -> Iterator[Tensor]:
    """Yield the weights of a model."""
    return (each.tensor for each in held_constants(index) if each.is_weight)


class WeightTotals(NamedTuple):
    """The constants of a model in numbers."""

    parameters: int
    """Elements of weights."""
    weight_bytes: int
    constant_bytes: int
    """Bytes of the other constants: shapes, indices, masks."""


def weight_totals(constants: Iterable[Held]) -> WeightTotals:
    """Count constants."""
    elements = weights = others = 0
    for constant in constants:
        if constant.is_weight:
            elements += element_count(constant.tensor.dims)
            weights += stored_bytes(constant.tensor)
        else:
            others += stored_bytes(constant.tensor)
    return WeightTotals(elements, weights, others)


def _parts(name: str, sparse: SparseTensor) -> Iterator[Held]:
    if sparse.values is not None:
        yield Held(name, sparse.values, sparse.values.data_type in _OF_WEIGHTS)
    if sparse.indices is not None:
        yield Held(name, sparse.indices, False)


def _is_weight(scope: Scope, name: str, tensor: Tensor) -> bool:
    if tensor.data_type != _INT32:
        return tensor.data_type in _OF_WEIGHTS
    users = [scope.graph.node[place].op_type or "" for place, _ in scope.uses(name) if place is not None]
    return any([each.startswith("Q") or each == "DequantizeLinear" for each in users])
