"""Values of inputs and outputs: tensors, sequences and maps, and absent optional values.

Between processes, values are passed as bytes: the tensors as a serialized model with only initializers, so that every
dtype is exact, and the structure of the values as MessagePack.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Graph, Model, Tensor
from onnxjson.model.errors import DecodeError, WireError
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.model.types import format_data_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_DEPTH: Final = 50

Value: TypeAlias = "Tensor | Dictionary | tuple[Value, ...] | None"
"""A sequence is a tuple; an absent optional value is None."""

Values = Mapping[str, Value]


class Dictionary(NamedTuple):
    """Map of ONNX: its keys and their values, one-dimensional and in the same order."""

    keys: Tensor
    values: Tensor


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    """Named values: for each name its structure, in which a number refers to a tensor."""

    forms: dict[str, Any]
    tensors: bytes


def leaves(value: Value, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a value, each with its path: "", "[0]", ".keys", "[2].values"."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Dictionary):
        yield f"{path}.keys", value.keys
        yield f"{path}.values", value.values
    elif value is not None:
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")


def as_array(value: Value) -> Any:
    """Convert a value to a numpy array, a list, a dictionary or None."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return to_numpy(value)
    if isinstance(value, Dictionary):
        return dict(zip(to_numpy(value.keys).tolist(), to_numpy(value.values).tolist(), strict=True))
    return [as_array(item) for item in value]


def as_value(given: "NDArray[Any] | Value | Sequence[Any]") -> Value:
    """Convert a numpy array, a list of arrays, or None to a value."""
    if given is None or isinstance(given, Tensor | Dictionary):
        return given
    if isinstance(given, list | tuple):
        return tuple([as_value(item) for item in given])
    return from_numpy(given)  # type: ignore[arg-type] # anything that numpy converts to an array


def packed_values(values: Values) -> bytes:
    """Encode named values as bytes."""
    tensors: list[Tensor] = []

    def form(value: Value) -> Any:
        if value is None:
            return None
        if isinstance(value, Tensor):
            tensors.append(msgspec.structs.replace(value, name=None))
            return len(tensors) - 1
        if isinstance(value, Dictionary):
            return {"keys": form(value.keys), "values": form(value.values)}
        return [form(item) for item in value]

    # MessagePack rejects names with invalid UTF-8.
    forms = {name.encode("utf-8", "surrogateescape").decode("latin-1"): form(value) for name, value in values.items()}
    return msgspec.msgpack.encode(_Packed(forms, message_bytes(Model(graph=Graph(initializer=tuple(tensors))))))


def unpacked_values(data: bytes) -> dict[str, Value]:
    """Decode the bytes of `packed_values`.

    Raises:
        DecodeError: the bytes are invalid.
    """
    try:
        packed = msgspec.msgpack.decode(data, type=_Packed)
        graph = serde.parse(packed.tensors).model.graph
    except (msgspec.MsgspecError, WireError) as error:
        raise DecodeError(f"these bytes do not encode values: {error}") from error
    tensors: Sequence[Tensor] = () if graph is None else graph.initializer

    def value(form: Any, depth: int = 0) -> Value:
        match form:
            case None:
                return None
            case int() if 0 <= form < len(tensors):
                return tensors[form]
            case {"keys": int(keys), "values": int(items)}:
                return Dictionary(tensors[keys], tensors[items])
            case list() if depth < _MAX_DEPTH:
                return tuple([value(item, depth + 1) for item in form])
        raise DecodeError("these bytes do not encode values")

    names = {name: name.encode("latin-1").decode("utf-8", "surrogateescape") for name in packed.forms}
    return {names[name]: value(form) for name, form in packed.forms.items()}


def dtype_of(value: Value) -> str:
    """Return the type of a value: ``float32``, ``seq(int64)``, ``map(string,float32)``, ``nothing``."""
    if isinstance(value, Tensor):
        return format_data_type(value.data_type or 0)
    if isinstance(value, Dictionary):
        return f"map({dtype_of(value.keys)},{dtype_of(value.values)})"
    return "nothing" if value is None else f"seq({dtype_of(value[0]) if value else ''})"
