"""What onnx knows about operators."""

import pytest

from onnxjson.model.operator_signatures import typed_signature
from onnxjson.model.operators import documentation


def test_documentation_is_that_of_the_newest_version_up_to_the_opset() -> None:
    old, new = documentation("", "Softmax", 12), documentation("ai.onnx", "Softmax", 13)
    assert old is not None
    assert new is not None
    assert (old.since_version, new.since_version) == (11, 13)
    assert [(each.name, each.type, each.default) for each in old.attributes] == [("axis", "INT", "1")]
    assert new.attributes[0].default == "-1"
    assert new.inputs[0].name == "input"
    assert new.inputs[0].types == "T"


def test_required_and_absent_defaults_are_told_apart() -> None:
    found = documentation(None, "Cast", None)
    assert found is not None
    to = next(each for each in found.attributes if each.name == "to")
    assert (to.required, to.default) == (True, None)
    relu = documentation("", "LeakyRelu", 17)
    assert relu is not None
    assert relu.attributes[0].default == "0.01"


@pytest.mark.parametrize(
    ("domain", "op_type", "opset"),
    [
        ("", "Nope", 17),
        ("nowhere", "Conv", 17),
        ("", "Gelu", 3),
        ("\udcff", "Conv", 1),
        ("", "\udcff", 1),
        (None, None, 0),
    ],
)
def test_what_onnx_does_not_know_has_none(domain: str | None, op_type: str | None, opset: int) -> None:
    assert documentation(domain, op_type, opset) is None


def test_opset_of_any_size_is_no_trouble() -> None:
    for opset in (-(2**63), 0, 2**31, 2**63 - 1):
        assert documentation("", "Relu", opset) is not None


@pytest.mark.parametrize("opset", [1 << 40, -1, -(1 << 62)])
def test_signatures_of_opsets_that_no_onnx_has(opset: int) -> None:
    found = typed_signature("", "Relu", opset)
    assert (found is not None) == (opset > 0)
