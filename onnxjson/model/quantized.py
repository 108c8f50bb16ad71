"""Quantized weights: the numbers that their elements stand for, through the scales of the node that uses them.

Known are MatMulNBits and GatherBlockQuantized of onnxruntime, and DequantizeLinear: for a tensor, an axis, or blocks.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from onnxjson.model import tensors
from onnxjson.model.constants import find_constant
from onnxjson.model.display import counted
from onnxjson.model.document import Node, Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.operators import plain_domain
from onnxjson.model.payloads import Data
from onnxjson.model.scopes import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[Tensor], Data | None]
"""Function that returns the elements of a tensor as ``raw_data`` would have them; None if they are not available."""

_UINT8: Final = DATA_TYPES["uint8"]
_SLOTS: Final = {"MatMulNBits": (1, 2, 3), "GatherBlockQuantized": (0, 2, 3), "DequantizeLinear": (0, 1, 2)}
"""Inputs of operators: the elements, their scales and their zero points."""


class QuantizedWeight(NamedTuple):
    """A quantized weight."""

    node: Node
    """The node that uses it."""
    elements: Tensor
    """Its elements, with their own dtype instead of packed bytes; blocks are filled up."""
    scales: Tensor
    zeros: Tensor | None
    zero: float
    """Zero point without `zeros`."""
    shape: tuple[int, ...]
    axis: int
    block: int
    """Elements along the axis with the same scale; 0 if each index along the axis, or the tensor, has one."""

    @property
    def text(self) -> str:
        """Return ``4 bits, block 32``."""
        bits = counted(BITS[self.elements.data_type or 0], "bit")
        return f"{bits}, block {self.block}" if self.block else bits

    def arrays(self, read: Read) -> Iterator["NDArray[Any]"]:
        """Yield the numbers that the elements stand for, in pieces of float64; none if bytes are not available."""
        import numpy

        data, scales, zeros = read(self.elements), _numbers(self.scales, read), self._zeros(read)
        if data is None or scales is None or zeros is None:
            return
        length, stored = self.shape[self.axis], self.elements.dims[self.axis]
        inner = element_count(self.shape[self.axis + 1 :])
        start = 0
        for array in tensors.arrays(self.elements.data_type or 0, data, element_count(self.elements.dims)):
            place = numpy.arange(start, start + array.size)
            start += array.size
            along = place // inner % stored
            group = along
            if self.block:
                blocks = -(-stored // self.block)
                group = (place // (inner * stored) * blocks + along // self.block) * inner + place % inner
            each = [values[group] if values.size > 1 else values for values in (zeros, scales)]
            yield ((array.astype(numpy.float64) - each[0]) * each[1])[along < length]

    def _zeros(self, read: Read) -> "NDArray[Any] | None":
        import numpy

        if self.zeros is None:
            return numpy.array([self.zero])
        bits = BITS[self.elements.data_type or 0]
        if self.zeros.data_type != _UINT8 or bits == 8:
            return _numbers(self.zeros, read)
        # Several in a byte; each row begins with a new byte.
        blocks = -(-self.elements.dims[-1] // self.block)
        rows, width = element_count(self.elements.dims[:-1]), -(-blocks * bits // 8) * 8 // bits
        found = _numbers(replace(self.zeros, data_type=self.elements.data_type, dims=(rows, width)), read)
        return None if found is None else found.reshape(rows, width)[:, :blocks].reshape(-1)


def _numbers(tensor: Tensor, read: Read) -> "NDArray[Any] | None":
    import numpy

    data, count = read(tensor), element_count(tensor.dims)
    if data is None or not count:
        return None
    pieces = tensors.arrays(tensor.data_type or 0, data, count)
    return numpy.concatenate([each.astype(numpy.float64) for each in pieces])


def has_quantized_weights(scope: Scope) -> bool:
    """Whether `quantized_weight` can find any."""
    return any([node.op_type in _SLOTS for node in scope.graph.node])


def quantized_weight(scope: Scope, name: str) -> QuantizedWeight | None:
    """Return the weight of which a constant is the elements, the scales or the zero points; None for others."""
    for position, slot in scope.uses(name):
        node = scope.graph.node[position] if position is not None else Node()
        slots = _SLOTS.get(node.op_type or "", ())
        if slot not in slots or bool(plain_domain(node.domain)) == (node.op_type == "DequantizeLinear"):
            continue
        names = [node.input[each] if each < len(node.input) else "" for each in slots]
        held = [find_constant(scope, each) if each else None for each in names]
        elements, scales, zeros = [None if each is None else each.tensor for each in held]
        if elements is not None and scales is not None and (zeros is not None or not names[2]):
            found = _weight(node, elements, scales, zeros)
            if found is not None and tensors.needed_bytes(found.elements) == tensors.needed_bytes(elements):
                return found
    return None


def _weight(node: Node, elements: Tensor, scales: Tensor, zeros: Tensor | None) -> QuantizedWeight | None:
    given = {each.name: each.i or 0 for each in node.attribute}
    shape, zero, bits = elements.dims, 0, given.get("bits", 4)
    if node.op_type == "DequantizeLinear":
        axis, block = given.get("axis", 1), given.get("block_size", 0)
    else:
        default = 0 if node.op_type == "MatMulNBits" else 128
        axis, block = given.get("quantize_axis", 1), given.get("block_size", default)
        if not block or not shape or bits not in (2, 4, 8):
            return None
        if elements.data_type == _UINT8:
            zero = 1 << (bits - 1)
            shape = (*shape[:-1], shape[-1] * 8 // bits)
            if node.op_type == "MatMulNBits":
                rows, length = given.get("N", 0), given.get("K", 0)
                shape, axis = (rows, -(-length // block) * block), 1
            elements = replace(elements, data_type=DATA_TYPES[f"uint{bits}"], dims=shape)
            shape = (rows, length) if node.op_type == "MatMulNBits" else shape
    axis = axis + len(shape) if axis < 0 else axis
    if not 0 <= axis < len(shape):
        axis, shape, elements = 0, (element_count(shape),), replace(elements, dims=(element_count(shape),))
    groups = [1, shape[axis]] if not block else [element_count(_scaled(elements.dims, axis, block))]
    known = BITS.get(elements.data_type or 0, 0)
    if not known or element_count(scales.dims) not in groups:
        return None
    return QuantizedWeight(node, elements, scales, zeros, zero, shape, axis, block)


def _scaled(dims: tuple[int, ...], axis: int, block: int) -> tuple[int, ...]:
    return (*dims[:axis], -(-dims[axis] // block), *dims[axis + 1 :])
