"""The generator of test messages makes what the tests on it claim to cover."""

from collections import Counter
from random import Random

import pytest
from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto

from tests.generation import tensors
from tests.generation.descriptors import messages
from tests.generation.likelihood import PAYLOADS
from tests.generation.messages import DEEPEST, Generator, generate, size_of
from tests.generation.observation import Facet, observed
from tests.generation.operators import operators

MODELS = 8000
LARGEST = 1000
"""Bytes; many small models show more than a few big ones."""


@pytest.fixture(scope="module")
def seen() -> Counter[Facet]:
    return observed(
        [
            ModelProto.FromString(generate(seed, min(size_of(seed), LARGEST))).SerializeToString()
            for seed in range(MODELS)
        ]
    )


FIELDS = [field for shape in messages().values() for field in shape.fields]
SCALARS = [field for field in FIELDS if field.message is None]
STRINGS = [field for field in SCALARS if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)]
FLOATS = [field for field in SCALARS if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)]
INTEGERS = [field for field in SCALARS if field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64)]


def missing(seen: Counter[Facet], what: str, places: list[str]) -> list[str]:
    return [place for place in places if not seen[what, place]]


def test_every_field_of_every_message_is_generated(seen: Counter[Facet]) -> None:
    assert len(messages()) >= 28
    assert len(FIELDS) >= 134
    assert not missing(seen, "field", [field.path for field in FIELDS])


def test_every_scalar_field_is_generated_with_its_default_value(seen: Counter[Facet]) -> None:
    assert not missing(seen, "explicit default", [field.path for field in SCALARS])


def test_every_message_is_generated_with_unknown_fields_and_empty(seen: Counter[Facet]) -> None:
    assert not missing(seen, "unknown field", list(messages()))
    assert not missing(seen, "empty message", list(messages()))
    assert not missing(seen, "unknown wire type", ["0", "1", "2", "3", "5"])


@pytest.mark.parametrize("what", ["not UTF-8", "not ASCII", "astral", "line feed", "digits only"])
def test_every_string_field_is_generated_with_strings_that_are(what: str, seen: Counter[Facet]) -> None:
    assert not missing(seen, what, [field.path for field in STRINGS if field.name != "raw_data"])


@pytest.mark.parametrize("what", ["signalling NaN", "quiet NaN", "negative zero"])
def test_every_float_field_is_generated_with(what: str, seen: Counter[Facet]) -> None:
    assert not missing(seen, what, [field.path for field in FLOATS])


def test_every_field_of_64_bits_is_generated_at_its_limits(seen: Counter[Facet]) -> None:
    assert not missing(seen, "limit", [field.path for field in INTEGERS])


def test_every_dtype_is_generated_in_every_storage_field_that_fits_it(seen: Counter[Facet]) -> None:
    for _, name in tensors.DATA_TYPES:
        if name in tensors.LAYOUTS:
            assert seen["raw_data of dtype", name], name
            assert seen[f"{tensors.LAYOUTS[name].typed_field} of dtype", name], name
    assert seen["string_data of dtype", "STRING"]


def test_every_dtype_of_the_installed_onnx_has_a_layout_here() -> None:
    assert {name for _, name in tensors.DATA_TYPES} - set(tensors.LAYOUTS) == {"UNDEFINED", "STRING"}


def test_every_attribute_type_of_the_installed_onnx_has_its_payload_here() -> None:
    enum = messages()["AttributeProto"].by_name["type"].enum_numbers
    assert set(enum) - {0} == set(PAYLOADS)
    assert {kind for operator in operators() for _, kind in operator.attributes} <= set(enum)


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert [generate(seed, 300) for seed in range(50)] == [generate(seed, 300) for seed in range(50)]
    assert len({generate(seed, 300) for seed in range(50)}) == 50


def test_sizes_run_from_one_byte_to_ten_thousand() -> None:
    sizes = [size_of(seed) for seed in range(MODELS)]
    lengths = sorted(len(generate(seed, size_of(seed))) for seed in range(500))
    assert min(sizes) <= 2
    assert 9_000 < max(sizes) <= 10_000
    assert lengths[0] < 10
    assert 5_000 < lengths[-1] < 30_000


def test_the_generator_holds_back_nothing_by_name() -> None:
    """A field that a new release adds is drawn like any other: no field is left out of the walk."""
    shape = messages()["NodeProto"]
    drawn = {number for seed in range(3000) for number, _, _ in Generator(Random(seed)).walk(shape, 50, DEEPEST)}
    assert drawn == {field.number for field in shape.fields if field.message is None}
