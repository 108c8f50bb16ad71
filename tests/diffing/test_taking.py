"""Single changes of a diff, taken into either model."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson.diffing.difference import diff_models
from onnxjson.diffing.taking import Taking
from onnxjson.model.document import Model
from onnxjson.model.structure import check_structure

PAIRS = Path(__file__).parents[1] / "models" / "pairs"


def taken_one_by_one(model: Model, other: Model, into: int) -> Model:
    """Take the first event that is left, until nothing differs."""
    for _ in range(60):
        difference = diff_models(*((other, model) if into else (model, other)))
        if not difference.events:
            break
        model, _ = Taking(difference, into).take({(0, member) for member in range(len(difference.events[0].members))})
        assert not check_structure(model)
    return model


@pytest.mark.parametrize("into", [0, 1])
@pytest.mark.parametrize("name", [pytest.param("plain", marks=pytest.mark.exhaustive), "activated"])
def test_all_changes_one_by_one_lead_to_the_other_model(name: str, into: int) -> None:
    sides = [onnxjson.load(PAIRS / f"{name}_{each}.onnx") for each in ("ts", "dynamo")]
    assert not diff_models(taken_one_by_one(sides[into], sides[1 - into], into), sides[1 - into]).events


def test_an_operator_of_a_newer_opset_is_taken_with_the_opset() -> None:
    sides = [onnxjson.load(PAIRS / f"plain_{each}.onnx") for each in ("ts", "dynamo")]
    difference = diff_models(*sides)
    gelu = next(number for number, event in enumerate(difference.events) if event.pattern.endswith("-> Gelu"))
    model, taken = Taking(difference, 0).take({(gelu, 0)})
    assert {difference.events[event].kind for event, _ in taken} == {"fused", "opset-changed"}
    assert model.opset_import[0].version == 20
