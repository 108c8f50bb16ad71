"""What onnx knows about operators."""

import pytest

from onnxjson.model.operators import operator_signature


def test_documentation_is_that_of_the_newest_version_up_to_the_opset() -> None:
    old, new = operator_signature("", "Softmax", 12), operator_signature("ai.onnx", "Softmax", 13)
    assert old is not None
    assert new is not None
    assert (old.since_version, new.since_version) == (11, 13)
    assert [(each.name, each.type, each.default) for each in old.attributes.values()] == [("axis", 2, "1")]
    assert new.attributes["axis"].default == "-1"
    assert new.inputs[0].name == "input"
    assert new.inputs[0].variable == "T"


def test_required_and_absent_defaults_are_told_apart() -> None:
    found = operator_signature(None, "Cast", None)
    assert found is not None
    to = found.attributes["to"]
    assert (to.required, to.default) == (True, None)
    relu = operator_signature("", "LeakyRelu", 17)
    assert relu is not None
    assert relu.attributes["alpha"].default == "0.01"


@pytest.mark.parametrize(
    ("domain", "op_type", "opset"),
    [
        ("", "Nope", 17), ("nowhere", "Conv", 17), ("", "Gelu", 3), ("\udcff", "Conv", 1), ("", "\udcff", 1),
        (None, None, 0),
    ],
)  # fmt: skip
def test_what_onnx_does_not_know_has_none(domain: str | None, op_type: str | None, opset: int) -> None:
    assert operator_signature(domain, op_type, opset) is None


def test_opset_of_any_size_is_no_trouble() -> None:
    for opset in (-(2**63), -1, 0, 2**31, 1 << 40, 2**63 - 1):
        assert operator_signature("", "Relu", opset) is not None
