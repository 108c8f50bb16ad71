"""Constants from text (JSON values or base64, and the type that the user names) and from a model, by selectors."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from onnxjson.codecs.reading.strings import base64_bytes
from onnxjson.model import addresses, elements, tensors
from onnxjson.model.constants import attribute_tensor, is_constant_node
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Graph, Model, Node, SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, BOOL, COMPLEX_PARTS, DATA_TYPE_NAMES, STRING
from onnxjson.model.errors import DecodeError, EncodeError, LimitError, MissingInputError, SelectorError
from onnxjson.model.index import Index
from onnxjson.model.scalars import found_text
from onnxjson.model.tensors import tensor_mistakes
from onnxjson.model.types import parse_data_type, parse_tensor_type
from onnxjson.patterns.selectors import select_tensor, select_tensors
from onnxjson.storage.constant_values import BeyondBinary64, pack
from onnxjson.storage.external import Resolver, file_of
from onnxjson.storage.weights import require_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Kind(NamedTuple):
    """The type of a constant: a dtype and, if they are given, dims."""

    data_type: int
    """Number of TensorProto.DataType: string or one with a size."""
    dims: tuple[int, ...] | None = None

    def __str__(self) -> str:
        name = DATA_TYPE_NAMES[self.data_type]
        return name if self.dims is None else f"{name}[{','.join(map(str, self.dims))}]"


class Encoded(NamedTuple):
    """A constant, and the values that were changed."""

    tensor: Tensor
    changed: int = 0
    """Number of values that differ from the given ones."""
    first: str = ""
    """The first of those: its place, the given value, the new one."""


def parse_kind(text: str) -> Kind:
    """Parse dtype and dims, as in ``float32[2,3]``, or a dtype; raise TypeSyntaxError or EncodeError for any other."""
    data_type, dims = parse_tensor_type(text) if "[" in text else (parse_data_type(text.strip(" ")), None)
    if data_type not in BITS and data_type != STRING:
        raise EncodeError(f"elements of the dtype {visible(text)} are not known")
    return Kind(data_type, dims)


def parse_json(text: str | bytes, source: str = "the values") -> object:
    """Parse JSON, with numbers as exact as `elements.pack` needs them; the words NaN and Infinity are allowed."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        return json.loads(decoded, parse_float=_decimal, parse_int=_integer, parse_constant=str)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        hint = "; write words such as true in lower case, strings in double quotes, lists in brackets"
        raise DecodeError(f"{source}: {where}: this is not JSON ({error.msg}){hint}") from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"{source}: byte {error.start:,} is not UTF-8; JSON is text") from None
    except RecursionError:
        raise LimitError(f"{source}: lists nest too deep") from None


def _decimal(text: str) -> float | str:
    number = float(text)
    if math.isinf(number) or (number == 0 and text.partition("e")[0].partition("E")[0].strip("-0.")):
        return BeyondBinary64(text)
    return number


def _integer(text: str) -> int | float | str:
    if text == "-0":
        return -0.0
    return int(text) if len(text) <= 400 else BeyondBinary64(text)


def from_json(tree: object, kind: Kind, *, name: str | None = None, lossy: bool = False) -> Encoded:
    """Build a constant from JSON values, nested or, if `kind` has dims, flat; EncodeError if they do not fit.

    With `lossy`, a value that the dtype cannot represent becomes the nearest finite one.
    """
    flat, dims = _flatten(tree, is_complex=kind.data_type in COMPLEX_PARTS)
    count = len(flat)
    if kind.dims is not None and kind.dims != dims:
        if len(dims) > 1 or math.prod(kind.dims) != count:
            shape = ",".join(map(str, dims))
            raise EncodeError(f"found {counted(count, 'value')} of the shape [{shape}], expected {kind}")
        dims = kind.dims
    place = place_in(dims)
    if kind.data_type == STRING:
        texts = tuple(_string(item, place(index)) for index, item in enumerate(flat))
        return Encoded(Tensor(dims=dims, data_type=STRING, string_data=texts, name=name))
    packed = pack(kind.data_type, flat, place, lossy=lossy)
    tensor = Tensor(dims=dims, data_type=kind.data_type, raw_data=packed.data, name=name)
    return Encoded(tensor, packed.changed, packed.first)


def _flatten(tree: object, *, is_complex: bool) -> tuple[list[object], tuple[int, ...]]:
    """The elements of nested lists in order, and their shape; EncodeError if lists differ in length or kind."""
    dims: list[int] = []
    level: list[object] = [tree]
    while level and isinstance(level[0], list) and not (is_complex and _is_pair(level[0])):
        length = len(level[0])
        below: list[object] = []
        for index, member in enumerate(level):
            if not isinstance(member, list) or len(member) != length:
                where = place_in(tuple(dims))(index)
                fits = f"a list of {length:,}, as the first one is"
                raise EncodeError(f"{where}: found {found_text(member)}, expected {fits}")
            below += member
        dims.append(length)
        level = below
    for index, member in enumerate(level):
        if isinstance(member, list) and not is_complex:
            where = place_in(tuple(dims))(index)
            raise EncodeError(f"{where}: found {found_text(member)}, expected a value, as the first one is")
    return level, tuple(dims)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and not any(isinstance(part, list) for part in value)


def place_in(dims: Sequence[int]) -> Callable[[int], str]:
    """Return a function that names an element by its index in the flat list, such as ``element [1,2]``."""

    def place(index: int) -> str:
        if not dims:
            return "the value"
        position = []
        for dim in reversed(dims):
            index, inner = divmod(index, dim)
            position.append(inner)
        return f"element [{','.join(map(str, reversed(position)))}]"

    return place


def _string(item: object, where: str) -> bytes:
    """Encode a string element: a string, or ``{"base64": ...}`` if it is not UTF-8."""
    if isinstance(item, str) and type(item) is str:
        try:
            return item.encode()
        except UnicodeEncodeError:
            raise EncodeError(f"{where}: found half of a surrogate pair, which is not a character") from None
    if isinstance(item, dict) and item.keys() == {"base64"} and isinstance(item["base64"], str):
        return base64_bytes(item["base64"], where)
    raise EncodeError(f'{where}: found {found_text(item)}, expected a string or {{"base64": "..."}}')


def from_base64(text: str | bytes, kind: Kind, *, name: str | None = None) -> Tensor:
    """Build a constant from the base64 of its elements, laid out as ``raw_data``; DecodeError if they do not fit.

    Without dims the constant is one list, and elements of the dtype must fill whole bytes.
    """
    dtype = DATA_TYPE_NAMES[kind.data_type]
    data = base64_bytes(text)
    if kind.data_type == STRING:
        if math.prod(kind.dims or ()) != 1:
            raise DecodeError("only one string can be written as base64; use JSON values")
        return Tensor(dims=kind.dims or (), data_type=STRING, string_data=(data,), name=name)
    dims = kind.dims if kind.dims is not None else (_count(kind.data_type, len(data)),)
    needed = elements.byte_length(kind.data_type, math.prod(dims)) or 0
    if len(data) != needed:
        found, fits = counted(len(data), "byte"), counted(needed, "byte")
        raise DecodeError(f"the base64 has {found}, but {Kind(kind.data_type, dims)} needs {fits}")
    count = math.prod(dims)
    _check_padding(data, count, BITS[kind.data_type], dtype)
    if kind.data_type == BOOL and (other := data.translate(None, b"\0\1")):
        index = data.index(other[:1])
        raise DecodeError(f"{place_in(dims)(index)}: the byte is {other[0]}; a bool is 0 or 1")
    return Tensor(dims=dims, data_type=kind.data_type, raw_data=data, name=name)


def _count(data_type: int, length: int) -> int:
    size = BITS[data_type]
    name = DATA_TYPE_NAMES[data_type]
    if size < 8:
        raise DecodeError(f"the last byte of {name} may be padded; add the number of elements, such as {name}[3]")
    if length * 8 % size:
        raise DecodeError(
            f"the base64 has {counted(length, 'byte')}, which is not a whole number of {name} ({size // 8} each)"
        )
    return length * 8 // size


def _check_padding(data: bytes, count: int, size: int, dtype: str) -> None:
    padding = len(data) * 8 - count * size
    if padding and (bits := data[-1] >> (8 - padding)):
        raise DecodeError(
            f"the highest {padding} bits of the last byte (0x{data[-1]:02x}) are 0b{bits:0{padding}b}; "
            f"they only pad {count:,} elements of {dtype} and must be zero"
        )


def find_tensors(model: Model, selector: str) -> list[Tensor]:
    """Find the constants that a pattern matches, or the one of `find_tensor`."""
    if selector.startswith("@"):
        return [find_tensor(model, selector)]
    try:
        refs = select_tensors(model, Index(model), selector)
    except SelectorError as error:
        raise MissingInputError(str(error)) from error
    if len(refs) == 1:
        return [find_tensor(model, selector)]
    found = [(ref, ref.tensor or _value_of_constant(model, ref.address)) for ref in refs]
    return [_named(tensor, ref.name) for ref, tensor in found if isinstance(tensor, Tensor)]


def find_tensor(model: Model, selector: str) -> Tensor:
    """Find the one constant that a selector names, in any graph or function; MissingInputError if it is not one.

    The output of a Constant selects its value; an address can also be that of an attribute whose value is a tensor, a
    number, a string or a list of those. A tensor without a name is named after the selector.
    """
    if selector.startswith("@"):
        address = selector[1:]
        addressed = addresses.resolve(model, address)
        tensor = attribute_tensor(addressed) if isinstance(addressed, Attribute) else addressed

        if not isinstance(tensor, Tensor):
            raise MissingInputError(f"{visible(address, 200)} is not a tensor{_sparse_hint(addressed, address)}")
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


def array_of(tensor: Tensor, folder: str | Path | None = None) -> "NDArray[Any]":
    """Return the elements of a tensor as an array; see `onnxjson.Tensor.numpy`."""
    if not tensors.is_external(tensor):
        return tensors.to_numpy(with_elements(tensor, Resolver(Path())))
    file = file_of(tensor)
    if folder is None:
        if file is None:
            named = f"tensor {visible(tensor.name or '')!r}"
            raise DecodeError(f"{named} is in another file; give the folder of the model: numpy(folder)")
        folder = file.parent
    return tensors.to_numpy(with_elements(tensor, Resolver(Path(folder), model_file=file)))


def with_elements(tensor: Tensor, resolver: Resolver) -> Tensor:
    """Return a tensor with its elements in ``raw_data`` (strings: in ``string_data``), wherever they are stored.

    Raises:
        DecodeError: the elements do not fit dtype and dims.
        WeightsMissingError: only the sha256 of the elements is available.
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
