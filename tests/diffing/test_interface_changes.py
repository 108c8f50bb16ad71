"""What callers of a model notice of a change."""

from collections.abc import Sequence

import pytest
from onnx import TensorProto, ValueInfoProto, helper

from onnxjson.codecs.serde import from_proto
from onnxjson.diffing.difference import diff
from onnxjson.diffing.interface_changes import interface_changes
from onnxjson.model.document import Model

Dims = Sequence[str | int | None] | None


def _value(name: str, dims: Dims = ("N", 3), dtype: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def _model(inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto], *, has_bias: bool = False) -> Model:
    bias = [helper.make_tensor("bias", TensorProto.FLOAT, [1], [0.0])] if has_bias else []
    nodes = [helper.make_node("Relu" if number else "Neg", [inputs[0].name], [each.name])
             for number, each in enumerate(outputs)]  # fmt: skip
    values = [*inputs, *([_value("bias", [1])] if has_bias else [])]
    return from_proto(helper.make_model(helper.make_graph(nodes, "g", values, outputs, bias)))


def _changes(base: Model, target: Model) -> list[tuple[bool, str]]:
    return [(each.is_breaking, each.text) for each in interface_changes(diff(base, target).alignment)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (["N", 3], ["N", 3], []),
        ([1, 3], ["N", 3], [(False, 'input "x": axis 0 made variable, "1" -> "N"')]),
        ([1, 3], [None, 3], [(False, 'input "x": axis 0 made variable, "1" -> "?"')]),
        (["N", 3], ["batch", 3], [(False, 'input "x": axis 0 "N" -> "batch"')]),
        (["N", 3], [4, 3], [(True, 'input "x": axis 0 fixed, "N" -> "4"')]),
        ([None, 3], [4, 3], [(True, 'input "x": axis 0 fixed, "?" -> "4"')]),
        ([1, 3], [1, 4], [(True, 'input "x": axis 1 "3" -> "4"')]),
        ([1, 3], [1, 3, 1], [(True, 'input "x": rank "float32[1,3]" -> "float32[1,3,1]"')]),
        ([1, 3], None, [(False, 'input "x": "float32[1,3]" -> "float32"')]),
        (None, [1, 3], [(True, 'input "x": "float32" -> "float32[1,3]"')]),
        (["A", "B"], ["N", "N"], [(True, 'input "x": "float32[A,B]" -> "float32[N,N]"')]),
        (["A", "A"], ["N", "N"], [(False, 'input "x": "float32[A,A]" -> "float32[N,N]"')]),
        (["A", "B"], ["N", 3], [(True, 'input "x": "float32[A,B]" -> "float32[N,3]"')]),
    ],
)
def test_size_that_became_a_name_or_open_is_compatible(
    before: Dims, after: Dims, expected: list[tuple[bool, str]]
) -> None:
    output = [_value("y")]
    assert _changes(_model([_value("x", before)], output), _model([_value("x", after)], output)) == expected


def test_dtype_is_breaking_and_what_several_share_is_said_once() -> None:
    base = _model([_value("x", [1, 3])], [_value("y", [1, 3])])
    half = _model([_value("x", [1, 3], TensorProto.FLOAT16)], [_value("y", [1, 3], TensorProto.FLOAT16)])
    assert _changes(base, half) == [(True, 'input "x", output "y": dtype "float32" -> "float16"')]
    opened = _model([_value("x", ["N", 3])], [_value("y", ["N", 3])])
    assert _changes(base, opened) == [(False, 'input "x", output "y": axis 0 made variable, "1" -> "N"')]


def test_renamed_output_is_named_as_such_and_others_are_added_or_removed() -> None:
    base = _model([_value("x")], [_value("382")])
    assert _changes(base, _model([_value("x")], [_value("logits")])) == [(True, 'output "382" renamed to "logits"')]
    more = _model([_value("x")], [_value("382"), _value("z")])
    assert _changes(base, more) == [(False, 'output "z" added')]
    assert _changes(more, base) == [(True, 'output "z" removed')]
    turned = _model([_value("x")], [_value("z"), _value("382")])
    assert (True, 'order of outputs: "382, z" -> "z, 382"') in _changes(more, turned)


def test_new_input_is_compatible_only_if_it_has_a_default() -> None:
    base, output = _model([_value("x")], [_value("y")]), [_value("y")]
    assert _changes(base, _model([_value("x"), _value("m")], output)) == [
        (True, 'input "m" added, without a default')
    ]  # fmt: skip
    optional = _model([_value("x")], output, has_bias=True)
    assert _changes(base, optional) == [(False, 'optional input "bias" added')]
    assert _changes(optional, base) == [(True, 'optional input "bias" removed')]
    assert _changes(_model([_value("x"), _value("m")], output), base) == [(True, 'input "m" removed')]
