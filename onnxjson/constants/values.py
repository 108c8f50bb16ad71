"""Constants as JSON: the type that a person names, the shape that nested lists have, and the values."""

import json
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from onnxjson import elements
from onnxjson.constants.exactness import COMPLEX_PARTS, BeyondBinary64, pack
from onnxjson.display import visible
from onnxjson.document import Tensor
from onnxjson.errors import DecodeError, EncodeError, LimitError
from onnxjson.names import DATA_TYPE_NAMES, STRING
from onnxjson.scalars import found_text
from onnxjson.types import LARGEST_DIM, parse_data_type, parse_tensor_type


class Kind(NamedTuple):
    """What a constant is to be: a dtype and, if it was said, dims."""

    data_type: int
    """Number of TensorProto.DataType: string or one with a size."""
    dims: tuple[int, ...] | None = None

    def __str__(self) -> str:
        name = DATA_TYPE_NAMES[self.data_type]
        return name if self.dims is None else f"{name}[{','.join(map(str, self.dims))}]"


class Encoded(NamedTuple):
    """A constant, and what it lost."""

    tensor: Tensor
    changed: int = 0
    """How many values are not those that were given."""
    first: str = ""
    """Where the first of those is, what it was and what it is."""


def parse_kind(text: str) -> Kind:
    """The dtype and dims in ``float32[2,3]``, or the dtype in ``float32``.

    Raises:
        TypeSyntaxError: it is not in the grammar of types.
        EncodeError: the dtype has no elements.
    """
    data_type, dims = parse_tensor_type(text) if "[" in text else (parse_data_type(text.strip(" ")), None)
    if data_type not in elements.BITS and data_type != STRING:
        raise EncodeError(f"constants of the dtype {visible(text)} have no elements that are known")
    return Kind(data_type, dims)


def parse_shape(text: str) -> tuple[int, ...]:
    """The dims in ``2,3``, ``[2,3]`` or ``[]``.

    Raises:
        EncodeError: that is no shape.
    """
    inner = text.strip(" ").removeprefix("[").removesuffix("]").strip(" ")
    try:
        dims = tuple(_dim(part.strip(" ")) for part in inner.split(",")) if inner else ()
    except ValueError:
        raise EncodeError(f"{visible(text)!r} is no shape; write the dims with commas, such as 2,3") from None
    return dims


def _dim(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > LARGEST_DIM:
        raise ValueError(text)
    return int(text)


def parse_json(text: str | bytes, source: str = "the values") -> object:
    """The JSON value in a text, its numbers as exact as `elements.pack` takes them; the words NaN and Infinity too.

    Raises:
        DecodeError: it is not JSON, or not UTF-8.
        LimitError: it nests too deep.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        return json.loads(decoded, parse_float=_decimal, parse_int=_integer, parse_constant=str)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        hint = "; words such as true stand in small letters, texts in double quotes, lists in brackets"
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
    """The constant of nested or flat JSON values.

    Args:
        tree: what `parse_json` gives. Without dims in `kind` it is nested as the shape of the constant is; with them it
            may also be the flat list of all elements.
        kind: what the constant is to be.
        name: its name.
        lossy: take the nearest finite value for one that the dtype does not hold.

    Raises:
        EncodeError: the values do not have that shape, or are not of that dtype.
    """
    flat, dims = _flatten(tree, is_complex=kind.data_type in COMPLEX_PARTS)
    count = len(flat)
    if kind.dims is not None and kind.dims != dims:
        if len(dims) > 1 or math.prod(kind.dims) != count:
            shape = ",".join(map(str, dims))
            raise EncodeError(f"{count:,} values of the shape [{shape}] stand where {kind} is to be")
        dims = kind.dims
    place = place_in(dims)
    if kind.data_type == STRING:
        texts = tuple(_string(item, place(index)) for index, item in enumerate(flat))
        return Encoded(Tensor(dims=dims, data_type=STRING, string_data=texts, name=name))
    packed = pack(kind.data_type, flat, place, lossy=lossy)
    tensor = Tensor(dims=dims, data_type=kind.data_type, raw_data=packed.data, name=name)
    return Encoded(tensor, packed.changed, packed.first)


def _flatten(tree: object, *, is_complex: bool) -> tuple[list[object], tuple[int, ...]]:
    """The elements of nested lists in order, and their shape.

    Raises:
        EncodeError: lists of one level differ in length, or values stand beside lists.
    """
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
    """What to call an element of a tensor of this shape: ``element [1,2]`` by its index in the flat list."""

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
    """A string element: a text, or ``{"base64": ...}`` where it is not UTF-8."""
    if isinstance(item, str) and type(item) is str:
        try:
            return item.encode()
        except UnicodeEncodeError:
            raise EncodeError(f"{where}: found half of a surrogate pair, which is no text") from None
    if isinstance(item, dict) and item.keys() == {"base64"} and isinstance(item["base64"], str):
        from onnxjson.constants.encoded import base64_bytes

        return base64_bytes(item["base64"], where)
    raise EncodeError(f'{where}: found {found_text(item)}, expected a text or {{"base64": "..."}}')
