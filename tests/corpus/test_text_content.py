"""The text carries the model, not the file: of the binary it holds payloads, byte strings and unknown fields only."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import ModelProto, TensorProto, numpy_helper

from tests.corpus.collection import corpus, proto, texts
from tests.generation.descriptors import MessageShape, messages
from tests.generation.wire_encoding import LENGTH, fields, length_payload

Path = tuple[str | int, ...]
ALLOWED = {
    "TensorProto.raw_data",
    "TensorProto, elements as raw_data",
    "TensorProto.string_data",
    "AttributeProto.s",
    "AttributeProto.strings",
}
"""Fields that may stand as base64 in the text of a model whose strings are UTF-8."""
LONG = 64
"""Characters from which a string of the text must be a string of the model."""


def strings_with_paths(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every string value of a parsed document and where it stands."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings_with_paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from strings_with_paths(item, (*path, index))


def byte_values(data: bytes, shape: MessageShape) -> Iterator[tuple[str, bytes]]:
    """Every string and bytes field of a serialised message and of the messages in it: path of the field, value."""
    for number, wire_type, _, payload, end in fields(data):
        field = shape.by_number.get(number)
        if field is None or wire_type != LENGTH:
            continue
        value = length_payload(data, payload, end)
        if field.message is None:
            yield field.path, value
        else:
            if field.message.name == "TensorProto":
                yield "TensorProto, elements as raw_data", raw_layout(value)
            yield from byte_values(value, field.message)


def raw_layout(data: bytes) -> bytes:
    """The bytes that raw_data would hold for a serialised tensor; b"" where numpy has no such array."""
    tensor = TensorProto.FromString(data)
    if tensor.HasField("raw_data") or tensor.data_type == TensorProto.STRING or tensor.external_data:
        return tensor.raw_data
    return numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data


def test_every_base64_of_the_corpus_is_a_field_that_may_hold_bytes() -> None:
    """Each is named by the field whose value it is; a base64 that is no field's value fails."""
    named: Counter[str] = Counter()
    for model in corpus():
        document = json.loads(texts()[model.name])
        by_value = {value: path for path, value in byte_values(model.data, messages()["ModelProto"])}
        for path, text in strings_with_paths(document):
            if path[-1] == "base64":
                named[by_value[base64.b64decode(text, validate=True)]] += 1
            elif path[-1] == "unknown_fields":
                named["unknown fields"] += 1
    assert set(named) <= ALLOWED
    assert named["TensorProto.raw_data"] + named["TensorProto, elements as raw_data"] > 20


def test_no_model_of_the_corpus_has_unknown_fields_so_none_stand_in_its_text() -> None:
    for model in corpus():
        assert len(UnknownFieldSet(proto(model))) == 0
        assert '"unknown_fields"' not in texts()[model.name]


def test_every_long_string_of_the_text_is_a_string_of_the_model_or_a_payload() -> None:
    for model in corpus():
        document = json.loads(texts()[model.name])
        known = {value.decode() for _, value in byte_values(model.data, messages()["ModelProto"]) if is_text(value)}
        lines = {line for text in known for line in text.split("\n")}
        for path, text in strings_with_paths(document):
            if len(text) >= LONG and path[-1] not in ("base64", "type"):
                assert text in known or text in lines, (model.name, path)


def is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_the_bytes_of_the_file_do_not_stand_in_the_text() -> None:
    """Neither the file nor a node nor a graph stands in the text as base64."""
    for model in corpus():
        text = texts()[model.name]
        parsed = ModelProto.FromString(model.data)
        whole = [parsed.SerializeToString(), parsed.graph.SerializeToString()]
        for data in whole + [node.SerializeToString() for node in parsed.graph.node]:
            assert base64.b64encode(data[: len(data) // 3 * 3]).decode() not in text, model.name
