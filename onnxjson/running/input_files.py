"""Values of inputs and outputs in files: .npz, .npy, .pb, and folders of test data as ONNX's own tests have them.

A folder of test data holds ``input_0.pb``, ``input_1.pb`` ... for the inputs in their order, and may hold
``output_0.pb`` ... as recorded results; each is a TensorProto, SequenceProto or OptionalProto (onnx-data.proto).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson import serde
from onnxjson.constants.arrays import from_array, read_array, unreadable
from onnxjson.constants.values import Kind
from onnxjson.display import counted, visible
from onnxjson.document import Tensor, Type
from onnxjson.elements import BITS
from onnxjson.errors import DecodeError, EncodeError, FeedError, MissingInputError, WireError
from onnxjson.identity import reading_error
from onnxjson.names import STRING
from onnxjson.running.input_shapes import unknown
from onnxjson.running.values import Dictionary, Value
from onnxjson.tensors import from_numpy, to_numpy
from onnxjson.wire.varints import read_loose_varint, signed, size_text
from onnxjson.wire.writing import message_bytes

_DATA_SET: Final = "test_data_set_*"
_NUMBERED: Final = re.compile(r"(input|output)_(\d+)\.pb")


class DataSet(NamedTuple):
    """Values for one run, and what it gave when it was recorded."""

    name: str
    """Where it comes from; made visible."""
    inputs: dict[str, Value]
    outputs: dict[str, Value]
    """Empty where nothing was recorded."""


def read_value(path: Path, said: Type | None) -> Value:
    """The value in a .npy, .npz (with one array, or as FILE.npz:NAME) or .pb file.

    Args:
        path: the file.
        said: the type that is wanted; values of numpy are converted to its dtype where that is exact.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it holds no such value.
        EncodeError: an element is none of the dtype that is wanted.
    """
    if path.suffix == ".pb":
        return _value_of_pb(path, said)
    return _converted(path, said)


def _converted(path: Path, said: Type | None) -> Tensor:
    """The array in a file as a tensor.

    Raises:
        EncodeError: an element is none of the dtype that is wanted; the text names the file.
    """
    array = read_array(path)
    try:
        return from_array(array, _kind(said)).tensor
    except EncodeError as error:
        name = visible(str(path), None)
        reason = str(error).removesuffix(", which --lossy allows")
        hint = "" if "convert it" in reason else "; convert it with astype first"
        raise EncodeError(f"{name}: {reason}{hint}") from error


def read_archive(path: Path, types: Mapping[str, Type | None]) -> dict[str, Value]:
    """The arrays of a .npz file by name; arrays without a name (arr_0 ...) stand for the inputs in their order."""
    import numpy

    read_array(path) if not path.is_file() else None
    try:
        with path.open("rb") as opened, numpy.load(opened, allow_pickle=False) as archive:
            names = list(archive.files)
    except OSError as error:
        raise reading_error(path, error) from error
    except (ValueError, TypeError, EOFError, AttributeError) as error:
        raise DecodeError(f"{visible(str(path), None)} is no .npz that can be read: {unreadable(error)}") from error
    order = list(types)
    found: dict[str, Value] = {}
    for name in names:
        place = re.fullmatch(r"arr_(\d+)", name)
        wanted = name
        if name not in types and place is not None and int(place[1]) < len(order):
            wanted = order[int(place[1])]
        if wanted not in types:
            raise FeedError(f"{visible(str(path), None)}: {unknown('input', name, types)}")
        found[wanted] = _converted(Path(f"{path}:{name}"), types[wanted])
    if not found:
        raise FeedError(f"{visible(str(path), None)} holds no arrays")
    return found


def data_sets(folder: Path) -> list[Path]:
    """The folders of test data in, or at, a folder, in their order.

    Raises:
        MissingInputError: there are none.
    """
    if any(_NUMBERED.fullmatch(each.name) for each in folder.iterdir()):
        return [folder]
    found = [each for each in folder.glob(_DATA_SET) if each.is_dir()]
    if not found:
        raise MissingInputError(f"{visible(str(folder), None)} has no input_0.pb and no {_DATA_SET}")
    return sorted(found, key=lambda each: (len(each.name), each.name))


def read_data_set(
    folder: Path, inputs: Sequence[tuple[str, Type | None]], outputs: Sequence[tuple[str, Type | None]]
) -> DataSet:
    """One folder of test data.

    Args:
        folder: of files such as ``input_0.pb``.
        inputs: names and types of the free inputs of the model.
        outputs: those of its outputs.

    Raises:
        FeedError: it has values for more inputs than there are.
        MissingInputError, AccessDeniedError, FileError, DecodeError: a file cannot be read.
    """
    found: tuple[dict[str, Value], dict[str, Value]] = ({}, {})
    for path in sorted(folder.iterdir()):
        match = _NUMBERED.fullmatch(path.name)
        if match is None:
            continue
        side, number = 0 if match[1] == "input" else 1, int(match[2])
        known = (inputs, outputs)[side]
        if number >= len(known):
            there = counted(len(known), match[1])
            raise FeedError(f"{visible(str(path), None)} has no counterpart: the model has {there}")
        name, said = known[number]
        found[side][name] = _value_of_pb(path, said)
    return DataSet(visible(folder.name), *found)


def _kind(said: Type | None) -> Kind | None:
    data_type = None if said is None or said.tensor_type is None else said.tensor_type.elem_type
    return Kind(data_type) if data_type in BITS or data_type == STRING else None


def _value_of_pb(path: Path, said: Type | None) -> Value:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise reading_error(path, error) from error
    try:
        return value_of_message(data, said)
    except (WireError, IndexError) as error:
        raise DecodeError(f"{visible(str(path), None)} holds no value that can be read: {error}") from error


def value_of_message(data: bytes, said: Type | None) -> Value:
    """The value in a serialised TensorProto, or, as its type says, SequenceProto, MapProto or OptionalProto.

    Raises:
        WireError, IndexError: it is none.
    """
    if said is not None and said.sequence_type is not None:
        return _sequence(data, said.sequence_type.elem_type)
    if said is not None and said.optional_type is not None:
        return _optional(data, said.optional_type.elem_type)
    if said is not None and said.map_type is not None:
        return _dictionary(data)
    return _tensor(data)


def message_of_value(value: Value) -> bytes:
    """The serialised TensorProto, SequenceProto or OptionalProto of a value; the inverse of `value_of_message`.

    Raises:
        EncodeError: it is a map, whose values such a message holds one tensor each.
        FileError, WeightsMissingError: the bytes of a tensor cannot be read.
    """
    if value is None:
        return _field(2, 0)  # OptionalProto.elem_type = UNDEFINED
    if isinstance(value, Tensor):
        return message_bytes(value)
    if isinstance(value, Dictionary):
        raise EncodeError("a map is not written to a .pb; write the outputs to a .npz")
    if all(isinstance(item, Tensor) for item in value):
        return _field(2, 1) + b"".join([_field(3, message_of_value(item)) for item in value])
    return _field(2, 3) + b"".join([_field(5, message_of_value(item)) for item in value])


def _field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2]) + size_text(len(content)).encode("latin-1") + content


def _tensor(data: bytes) -> Tensor:
    # A model that has this tensor as its only initializer.
    graph = b"\x2a" + size_text(len(data)).encode("latin-1") + data
    model = serde.parse(b"\x3a" + size_text(len(graph)).encode("latin-1") + graph).model
    assert model.graph is not None
    return model.graph.initializer[0]


def _fields(data: bytes) -> list[tuple[int, bytes | int]]:
    """The fields of a message in order: number, and bytes or a number."""
    found: list[tuple[int, bytes | int]] = []
    position = 0
    while position < len(data):
        tag, position = read_loose_varint(data, position)
        if tag & 7 == 0:
            number, position = read_loose_varint(data, position)
            found.append((tag >> 3, number))
        elif tag & 7 == 2:
            size, position = read_loose_varint(data, position)
            if position + size > len(data):
                raise WireError("a field runs past the end", position)
            found.append((tag >> 3, data[position : position + size]))
            position += size
        else:
            raise WireError("a field of a kind that does not belong here", position)
    return found


def _sequence(data: bytes, said: Type | None) -> Value:
    # SequenceProto: tensor_values = 3, sequence_values = 5, map_values = 6, optional_values = 7.
    return tuple([
        value_of_message(item, said if number != 3 else None)
        for number, item in _fields(data)
        if number in (3, 5, 6, 7) and isinstance(item, bytes)
    ])  # fmt: skip


def _optional(data: bytes, said: Type | None) -> Value:
    # OptionalProto: tensor_value = 3, sequence_value = 5, map_value = 6, optional_value = 7.
    for number, item in _fields(data):
        if number in (3, 5, 6, 7) and isinstance(item, bytes):
            return value_of_message(item, said if number != 3 else None)
    return None


def _dictionary(data: bytes) -> Value:
    # MapProto: key_type = 2, keys = 3 (packed or not), string_keys = 4, values = 5, a SequenceProto.
    import numpy

    keys: list[int] = []
    texts: list[bytes] = []
    items: Value = ()
    for number, item in _fields(data):
        if number == 3 and isinstance(item, int):
            keys.append(signed(item))
        elif number == 3 and isinstance(item, bytes):
            position = 0
            while position < len(item):
                key, position = read_loose_varint(item, position)
                keys.append(signed(key))
        elif number == 4 and isinstance(item, bytes):
            texts.append(item)
        elif number == 5 and isinstance(item, bytes):
            items = _sequence(item, None)
    if not isinstance(items, tuple) or not all(isinstance(each, Tensor) for each in items):
        raise WireError("values of a map that are no tensors", 0)
    arrays = [to_numpy(each).reshape(-1) for each in items if isinstance(each, Tensor)]
    values = numpy.concatenate(arrays) if arrays else numpy.zeros(0, numpy.float32)
    found = numpy.array(texts, object) if texts else numpy.array(keys, numpy.int64)
    return Dictionary(from_numpy(found), from_numpy(values))
