"""Payloads are in every string position, and valid models can be run."""

from collections.abc import Iterator
from pathlib import Path

import onnx.checker
import onnxruntime
import pytest

from tests.hostile.canary.payloads import PAYLOADS
from tests.hostile.canary.planting import Planter
from tests.hostile.canary.positions import complete_model, external_model, string_fields, valid_model
from tests.hostile.canary.tripwires import Tripwires


@pytest.fixture
def planter(tmp_path: Path) -> Iterator[Planter]:
    with Tripwires(tmp_path / "wires") as wires:
        yield Planter(wires)


def test_every_string_field_of_the_descriptors_is_planted(planter: Planter) -> None:
    fields = string_fields()
    assert {"NodeProto.op_type", "TensorProto.raw_data", "StringStringEntryProto.key", "Opaque.domain"} <= fields
    assert complete_model(planter)[1] == fields
    external_model(planter)
    positions = {each.position for each in planter.planted.values()}
    assert {"external location", "external key", "graph.node.attribute.g.node.op_type"} <= positions


@pytest.mark.parametrize("attempt", range(3))
def test_a_valid_model_is_accepted_by_checker_and_runtime(planter: Planter, attempt: int) -> None:
    for _ in range(attempt + 1):
        model = valid_model(planter, 3)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_in_as_many_rounds_as_there_are_payloads_each_is_in_every_position(planter: Planter) -> None:
    for _ in range(len(PAYLOADS)):
        external_model(planter)
    positions = {position for _, position in planter.pairs}
    assert len(planter.pairs) == len(positions) * len(PAYLOADS)
