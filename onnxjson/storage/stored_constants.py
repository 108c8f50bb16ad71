"""Constants of a model, found by selectors, and their elements, wherever they are stored."""

from typing import Final

import msgspec

from onnxjson.model import addresses, elements, tensors
from onnxjson.model.constants import attribute_tensor, is_constant_node
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Graph, Model, Node, SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.errors import DecodeError, MissingInputError, SelectorError
from onnxjson.model.index import Index
from onnxjson.model.selectors import select_tensor
from onnxjson.model.tensors import tensor_mistakes
from onnxjson.storage.external import Resolver
from onnxjson.storage.weights import require_whole

_INT: Final = 7
_FLOAT: Final = 1


def find_tensor(model: Model, selector: str) -> Tensor:
    """Find the one constant that a selector names, in any graph or function.

    Args:
        model: the model.
        selector: see `onnxjson.model.selectors`. The output of a Constant selects its value. An address can also be
            that of an attribute whose value is a tensor, a number, a string or a list of those, such as
            ``@/graph/node/0/attribute/pads``.

    Returns:
        The tensor as it is stored; numbers, strings and lists of attributes as tensors of float32, int64 and string. A
        tensor without a name is named after the selector.

    Raises:
        MissingInputError: the selector finds no constant, or several.
        AddressError: nothing is at the address.
    """
    if selector.startswith("@"):
        address = selector[1:]
        found = addresses.resolve(model, address)
        tensor = _dense(found) if isinstance(found, Tensor | Attribute) else None
        if tensor is None:
            raise MissingInputError(f"{visible(address, 200)} is not a tensor{_sparse_hint(found, address)}")
        return _named(tensor, address)
    try:
        ref = select_tensor(model, Index(model), selector)
    except SelectorError as error:
        raise MissingInputError(str(error)) from error
    if isinstance(ref.tensor, SparseTensor):
        raise MissingInputError(f"{visible(selector)} is sparse{_sparse_hint(ref.tensor, ref.address)}")
    tensor = ref.tensor or _value_of_constant(model, ref.address)
    if tensor is None:
        raise MissingInputError(f"{visible(selector)} is not a constant: its values are known only when the model runs")
    return _named(tensor, ref.name)


def _named(tensor: Tensor, name: str) -> Tensor:
    return tensor if tensor.name else msgspec.structs.replace(tensor, name=name)


def _sparse_hint(found: object, address: str) -> str:
    if not isinstance(found, SparseTensor):
        return ""
    shown = visible(address, 200)
    return f"; select @{shown}/values and @{shown}/indices"


def _value_of_constant(model: Model, address: str) -> Tensor | None:
    """The value of a Constant whose output is at an address; None for the output of any other node."""
    owner, _, position = address.rpartition("/output/")
    node = addresses.resolve(model, owner) if position else None
    if not isinstance(node, Node) or not is_constant_node(node):
        return None
    return attribute_tensor(node.attribute[0]) if len(node.attribute) == 1 else None


def _dense(held: Tensor | Attribute) -> Tensor | None:
    return held if isinstance(held, Tensor) else attribute_tensor(held)


def with_elements(tensor: Tensor, resolver: Resolver) -> Tensor:
    """Return a tensor with its elements in ``raw_data`` (strings: in ``string_data``), wherever they are stored.

    Args:
        tensor: a tensor of a model.
        resolver: opens external data; bytes stay in their file until they are used.

    Raises:
        DecodeError: the elements do not fit dtype and dims.
        WeightsMissingError: only the sha256 of the elements is available.
        MissingInputError, UntrustedError, AccessDeniedError, FileError: external data cannot be used.
    """
    require_whole(Model(graph=Graph(initializer=(tensor,))))
    plain = Tensor(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name)
    named = f"tensor {visible(tensor.name or '')!r}"
    if tensors.is_external(tensor):
        if tensor.data_type not in BITS or any(dim < 0 for dim in tensor.dims):
            raise DecodeError(f"{named} is in another file, but its dtype and dims do not determine its size")
        needed = elements.byte_length(tensor.data_type, elements.element_count(tensor.dims))
        data = resolver.resolve(tensor.external_data, needed, tensor=tensor.name or "")
        return msgspec.structs.replace(plain, raw_data=data)
    if tensor.data_type == STRING:
        mistake = next(tensor_mistakes(tensor), None)
        if mistake is None:
            return msgspec.structs.replace(plain, string_data=tensor.string_data)
    else:
        stored = tensors.raw_bytes(msgspec.structs.replace(tensor, data_location=None))
        if stored is not None:
            return msgspec.structs.replace(plain, raw_data=stored[0])
        mistake = next(tensor_mistakes(tensor), None)
    raise DecodeError(f"{named} cannot be read: {mistake[1] if mistake else 'its elements do not fit dtype and dims'}")
