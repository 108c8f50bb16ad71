"""What inputs and outputs hold: tensors, sequences and maps of them, and nothing where an optional value is absent.

Between processes values travel as bytes: the tensors as a serialised model that has initializers and nothing else, so
that every dtype passes exactly, and how they stand together as MessagePack.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from onnxjson import serde
from onnxjson.document import Graph, Model, Tensor
from onnxjson.errors import DecodeError, WireError
from onnxjson.tensors import from_numpy, to_numpy
from onnxjson.wire.writing import message_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEPTH: Final = 50
"""How deep sequences may nest."""


class Dictionary(NamedTuple):
    """A map of ONNX: keys and their values, one-dimensional and in the same order."""

    keys: Tensor
    values: Tensor


Value: TypeAlias = "Tensor | Dictionary | tuple[Value, ...] | None"
"""A sequence is a tuple; an optional value that is absent is None."""

Values = Mapping[str, Value]


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    """Named values: for each name its form, a number for each tensor in turn."""

    forms: dict[str, Any]
    tensors: bytes


def leaves(value: Value, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors of a value, each with its place: "", "[0]", ".keys", "[2].values"."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Dictionary):
        yield f"{path}.keys", value.keys
        yield f"{path}.values", value.values
    elif value is not None:
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")


def as_array(value: Value) -> Any:
    """A value as an array of numpy, a list, a dictionary or None."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return to_numpy(value)
    if isinstance(value, Dictionary):
        return dict(zip(to_numpy(value.keys).tolist(), to_numpy(value.values).tolist(), strict=True))
    return [as_array(item) for item in value]


def as_value(given: "NDArray[Any] | Value | Sequence[Any]") -> Value:
    """An array of numpy, a list of them, or None, as a value.

    Raises:
        TypeError: ONNX has no such data type.
    """
    if given is None or isinstance(given, Tensor | Dictionary):
        return given
    if isinstance(given, list | tuple):
        return tuple([as_value(item) for item in given])
    return from_numpy(given)  # type: ignore[arg-type] # anything that numpy takes for an array


def packed_values(values: Values) -> bytes:
    """Named values as bytes.

    Raises:
        WeightsMissingError, FileError: the bytes of a tensor cannot be read.
        LimitError: they are more than a message holds.
    """
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

    # Bad UTF-8 in a name is no text for MessagePack.
    forms = {name.encode("utf-8", "surrogateescape").decode("latin-1"): form(value) for name, value in values.items()}
    return msgspec.msgpack.encode(_Packed(forms, message_bytes(Model(graph=Graph(initializer=tuple(tensors))))))


def unpacked_values(data: bytes) -> dict[str, Value]:
    """The inverse of `packed_values`.

    Raises:
        DecodeError: these bytes are none.
    """
    try:
        packed = msgspec.msgpack.decode(data, type=_Packed)
        graph = serde.parse(packed.tensors).model.graph
    except (msgspec.MsgspecError, WireError) as error:
        raise DecodeError(f"these bytes are no values: {error}") from error
    tensors: Sequence[Tensor] = () if graph is None else graph.initializer

    def value(form: Any, depth: int = 0) -> Value:
        match form:
            case None:
                return None
            case int() if 0 <= form < len(tensors):
                return tensors[form]
            case {"keys": int(keys), "values": int(items)}:
                return Dictionary(tensors[keys], tensors[items])
            case list() if depth < _DEPTH:
                return tuple([value(item, depth + 1) for item in form])
        raise DecodeError("these bytes are no values")

    names = {name: name.encode("latin-1").decode("utf-8", "surrogateescape") for name in packed.forms}
    return {names[name]: value(form) for name, form in packed.forms.items()}
