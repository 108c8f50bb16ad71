"""schemas/patch-1.schema.json accepts the patches that are written, and refuses what the reader refuses."""

import json
from random import Random
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from onnxjson.model import document as d
from onnxjson.patching.changes import ExternalFile
from onnxjson.patching.patch import Patch
from tests.generation.messages import generate
from tests.laws.test_patches import model_of
from tests.patching.mutating import mutated
from tests.patching.test_deriving import attributes_of, number
from tests.schemas.patches import patch_schema


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = patch_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_patches_of_every_kind_of_change_are_valid(validator: Draft202012Validator) -> None:
    for seed in range(150):
        base = model_of(generate(seed, 120))
        patch = Patch.between(base, mutated(base, Random(seed), 8))
        found = [f"{list(each.path)}: {each.message}" for each in validator.iter_errors(json.loads(patch.dumps()))]
        assert not found, (seed, found)


def test_a_patch_with_everything_is_valid(validator: Draft202012Validator) -> None:
    base = attributes_of(number("\udcff", 1))
    target = attributes_of(number("\udcff", 2), d.Attribute(name="t", t=d.Tensor(raw_data=b"0" * 300)))
    patch = Patch.between(base, target).with_hashes(base)
    files = (ExternalFile("w.data", "0" * 64), ExternalFile("v.data", None, "base"))
    patch = msgspec.structs.replace(patch, external=files)
    validator.validate(json.loads(patch.dumps()))


def _patch(**changes: Any) -> dict[str, Any]:
    return {"format": "onnxjson-patch/1", "operations": [], **changes}


def _operation(**operation: Any) -> dict[str, Any]:
    return _patch(operations=[operation])


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"format": "onnxjson-patch/1"},
        _patch(format="onnxjson/1"),
        _patch(more=1),
        _patch(base="abc"),
        _patch(payloads={"abc": {"base64": ""}}),
        _patch(payloads={"0" * 64: "YQ=="}),
        _patch(external=[{"sha256": "0" * 64}]),
        _patch(external=[{"location": "a", "side": "both"}]),
        _operation(),
        _operation(set="/domain"),
        _operation(set="domain", new="a"),
        _operation(set="/domain", new=3),
        _operation(set="/domain", new="a", more=1),
        _operation(set="/graph/node/0/input", new="a"),
        _operation(set="/graph/initializer/0/raw_data", new={"sha256": "0" * 64}),
        _operation(list="/graph/node"),
        _operation(list="/graph/node", sequence=[3]),
        _operation(list="/graph/node", sequence=[[0]]),
        _operation(list="/graph/node", sequence=[[0, -1]]),
        _operation(list="/graph/node", sequence=[{"add": {"op": "Relu"}}]),
        _operation(list="/graph/node", sequence=[], removed={"x": {}}),
        _operation(list="/graph/node", sequence=[], removed={"0": 3}),
    ],
)
def test_what_is_no_patch_is_refused(validator: Draft202012Validator, patch: dict[str, Any]) -> None:
    assert not validator.is_valid(patch)


def test_values_are_those_of_the_field(validator: Draft202012Validator) -> None:
    assert validator.is_valid(_operation(set="/domain", old="a"))
    assert validator.is_valid(_operation(set="/graph/node/0/attribute/a/f", old=1, new="NaN(0x7fc00001)"))
    assert validator.is_valid(_operation(set="/graph/input/0/type", new="float32[1,2]"))
    assert validator.is_valid(_operation(list="/functions", sequence=[{"add": {"name": "f"}}]))
