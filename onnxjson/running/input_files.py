"""Values of inputs and outputs in files: .npz, .npy, .pb, and folders of test data in the format of ONNX's tests.

A folder of test data contains ``input_0.pb``, ``input_1.pb`` ... for the inputs in their order, and may contain
``output_0.pb`` ... as recorded results; each is a TensorProto, SequenceProto or OptionalProto (onnx-data.proto).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from onnxjson.codecs import serde
from onnxjson.codecs.wire_format import fields, size_text
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.document import Model, Tensor, Type
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.errors import DecodeError, EncodeError, FeedError, MissingInputError, OnnxJsonError, WireError
from onnxjson.model.tensors import to_numpy
from onnxjson.running.inputs import all_inputs, free_inputs, outputs_of
from onnxjson.running.value_types import unknown
from onnxjson.running.values import Dictionary, Value, leaves
from onnxjson.storage.constant_reading import Kind
from onnxjson.storage.constant_values import InexactError
from onnxjson.storage.identity import open_source
from onnxjson.storage.numpy_constants import from_array, opened_arrays, read_array

_DATA_SET: Final = "test_data_set_*"
_NUMBERED: Final = re.compile(r"(input|output)_(\d+)\.pb")


class DataSet(NamedTuple):
    """Input values for one run, and recorded outputs."""

    name: str
    """Its source; made visible."""
    inputs: dict[str, Value]
    outputs: dict[str, Value]
    """Empty if nothing was recorded."""


def read_value(path: Path, declared: Type | None) -> Value:
    """Read the value in a .npy, .npz (with one array, or as FILE.npz:NAME) or .pb file.

    Args:
        declared: the wanted type; numpy arrays are converted to its dtype if that is exact.

    Raises:
        DecodeError: it does not contain such a value.
        EncodeError: the wanted dtype cannot represent an element.
    """
    if path.suffix == ".pb":
        return _value_of_pb(path, declared)
    return _converted(path, declared)


def _converted(path: Path, declared: Type | None) -> Tensor:
    """Read the array in a file as a tensor."""
    array = read_array(path)
    name = visible(str(path), None)
    try:
        return from_array(array, _kind(declared)).tensor
    except InexactError as error:  # --lossy is not an option here
        advice = f"it would become {error.nearest}; convert it with astype first"
        raise EncodeError(f"{name}: {error.loss}; {advice}") from error
    except EncodeError as error:
        raise EncodeError(f"{name}: {error}") from error


def read_archive(path: Path, types: Mapping[str, Type | None]) -> dict[str, Value]:
    """Read the arrays of a .npz file by name; unnamed arrays (arr_0 ...) are the inputs in their order."""
    import numpy

    with opened_arrays(path) as opened, numpy.load(opened, allow_pickle=False) as archive:
        names = list(archive.files)
    order = list(types)
    values: dict[str, Value] = {}
    for name in names:
        place = re.fullmatch(r"arr_(\d+)", name)
        wanted = name
        if name not in types and place is not None and int(place[1]) < len(order):
            wanted = order[int(place[1])]
        if wanted not in types:
            raise FeedError(f"{visible(str(path), None)}: {unknown('input', name, types)}")
        values[wanted] = _converted(Path(f"{path}:{name}"), types[wanted])
    if not values:
        raise FeedError(f"{visible(str(path), None)} contains no arrays")
    return values


def data_sets(folder: Path) -> list[Path]:
    """Return the folder of test data itself, or those inside a folder, in their order."""
    if any(_NUMBERED.fullmatch(each.name) for each in folder.iterdir()):
        return [folder]
    folders = [each for each in folder.glob(_DATA_SET) if each.is_dir()]
    if not folders:
        raise MissingInputError(f"{visible(str(folder), None)} has no input_0.pb and no {_DATA_SET}")
    return sorted(folders, key=lambda each: (len(each.name), each.name))


def read_data_set(
    folder: Path, inputs: Sequence[tuple[str, Type | None]], outputs: Sequence[tuple[str, Type | None]]
) -> DataSet:
    """Read a folder of test data.

    Raises:
        FeedError: it has values for more inputs or outputs than the model.
    """
    values: tuple[dict[str, Value], dict[str, Value]] = ({}, {})
    for path in sorted(folder.iterdir()):
        match = _NUMBERED.fullmatch(path.name)
        if match is None:
            continue
        side, number = 0 if match[1] == "input" else 1, int(match[2])
        known = (inputs, outputs)[side]
        if number >= len(known):
            there = counted(len(known), match[1])
            raise FeedError(f"{visible(str(path), None)} has no counterpart: the model has {there}")
        name, declared = known[number]
        values[side][name] = _value_of_pb(path, declared)
    return DataSet(visible(folder.name), *values)


def _kind(declared: Type | None) -> Kind | None:
    data_type = None if declared is None or declared.tensor_type is None else declared.tensor_type.elem_type
    return Kind(data_type) if data_type in BITS or data_type == STRING else None


def _value_of_pb(path: Path, declared: Type | None) -> Value:
    source = open_source(path)
    data = source.read_at(0, source.size)
    try:
        value = value_of_message(data, declared)
        for _, tensor in leaves(value):
            to_numpy(tensor)
        return value
    except (OnnxJsonError, LookupError, ValueError) as error:
        raise DecodeError(f"{visible(str(path), None)} does not contain a readable value: {error}") from error


def value_of_message(data: bytes, declared: Type | None) -> Value:
    """Decode a TensorProto, or, depending on the type, a SequenceProto or OptionalProto."""
    if declared is not None and declared.sequence_type is not None:
        return _items(data, declared.sequence_type.elem_type)
    if declared is not None and declared.optional_type is not None:
        return next(iter(_items(data, declared.optional_type.elem_type)), None)
    if declared is not None and declared.map_type is not None:
        raise WireError("a map is not read from a .pb", 0)
    return _tensor(data)


def message_of_value(value: Value) -> bytes:
    """Encode a value as TensorProto, SequenceProto or OptionalProto; the inverse of `value_of_message`."""
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
    # Wrap the tensor in a model with one initializer.
    graph = b"\x2a" + size_text(len(data)).encode("latin-1") + data
    model = serde.parse(b"\x3a" + size_text(len(graph)).encode("latin-1") + graph).model
    assert model.graph is not None
    return model.graph.initializer[0]


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of the fields of a message that have a length."""
    return ((tag >> 3, data[start:end]) for tag, start, end in fields(data, 0, len(data)) if tag & 7 == 2)


def _items(data: bytes, declared: Type | None) -> tuple[Value, ...]:
    # Both in SequenceProto and in OptionalProto: tensors = 3, sequences = 5, maps = 6, optional values = 7.
    return tuple([
        value_of_message(item, declared if number != 3 else None)
        for number, item in _fields(data)
        if number in (3, 5, 6, 7)
    ])  # fmt: skip


def given_sets(model: Model, words: Sequence[str]) -> list[DataSet]:
    """Read the inputs in files, ``NAME=FILE`` or FILE: one set for each folder of test data, else one if there are any.

    Raises:
        FeedError: the input that a file is for is not clear.
        MissingInputError, DecodeError, EncodeError: a file has no such values.
    """
    types = all_inputs(model)
    free = free_inputs(model)
    given: dict[str, Any] = {}
    folders: list[Path] = []
    for word in words:
        name, mark, rest = word.rpartition("=")
        path = Path(rest if mark and name in types else word)
        if mark and name in types:
            given[name] = read_value(path, types[name])
        elif path.is_dir():
            folders += data_sets(path)
        elif not os.path.lexists(path) and ".npz:" not in word:
            if mark and os.path.lexists(rest):
                hint = suggest(name, types) or f"inputs are {listed([visible(each) for each in types], 5)}"
                raise FeedError(f'there is no input "{visible(name)}"; {hint}')
            colon_name, _, file = word.rpartition(":")
            if colon_name in types:
                raise FeedError(f"'{visible(word, None)}' does not exist; write --input {colon_name}={file}")
            raise MissingInputError(f"'{visible(word, None)}' does not exist; without --input, values are random")
        elif path.suffix == ".npz":
            given.update(read_archive(path, {**free, **types}))
        else:
            open_names = [each for each in free if each not in given]
            if len(open_names) != 1:
                names = listed([f"'{visible(each, None)}'" for each in open_names], 5, word="or")
                raise FeedError(
                    f"{path} may be for {names or 'no input, since all have values'}; write --input NAME={path}"
                )
            given[open_names[0]] = read_value(path, types[open_names[0]])
    inputs, outputs = list(free.items()), list(outputs_of(model).items())
    sets = [read_data_set(folder, inputs, outputs) for folder in folders]
    if sets:
        return [each._replace(inputs={**each.inputs, **given}) for each in sets]
    return [DataSet("the given values", given, {})] if given else []
