"""convert-opset to older versions: exported models, and what each operator may and may not become."""

import itertools

import numpy as np
import onnx
import pytest

from onnxjson.editing.edits import apply
from onnxjson.editing.opsets import ConvertOpset
from onnxjson.model.errors import EditError
from onnxjson.running import opset_conversion
from tests.editing.graphs import EXPORTED, exported, model_of, require_valid, sample_inputs
from tests.editing.graphs import run as computed

DOWN = {17: 13, 21: 17}


@pytest.mark.parametrize("name", [each.removesuffix(".onnx") for each in EXPORTED])
@pytest.mark.parametrize("version", DOWN)
def test_exports_are_converted_to_older_versions_and_compute_the_same(name: str, version: int) -> None:
    before = exported(f"{name}.onnx")
    newer = apply(before, ConvertOpset(version=version))
    if (name, version) == ("encoder_dynamo", 17):
        # Its sizes are computed, and may be zero for all that is known.
        with pytest.raises(EditError, match='cannot express the node of "view": Reshape has no attribute "allowzero"'):
            apply(newer, ConvertOpset(version=13))
        return
    after = apply(newer, ConvertOpset(version=DOWN[version]))
    require_valid(after)
    inputs = sample_inputs(before)
    for one, other in zip(computed(before, inputs), computed(after, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_newer_versions_of_extended_operators_only_extend_them() -> None:
    """Every node that an older version accepts has the same meaning there, as far as schemas say it."""
    versions: dict[str, dict[int, onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain and schema.name in opset_conversion.EXTENDED:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    assert versions.keys() == opset_conversion.EXTENDED
    for name, known in versions.items():
        numbers = sorted(known)
        for old, new in [pair for pair in itertools.pairwise(numbers) if pair[1] > opset_conversion.OLDEST]:
            before, after = known[old], known[new]
            assert not after.deprecated
            for attribute, formal in before.attributes.items():
                now = after.attributes[attribute]
                assert (now.type, now.default_value) == (formal.type, formal.default_value), (name, attribute)
            assert not [
                each for key, each in after.attributes.items() if key not in before.attributes and each.required
            ]
            for one, other in zip(before.inputs, after.inputs, strict=False):
                assert one.option == other.option or other.option == onnx.defs.OpSchema.FormalParameterOption.Optional
            more = after.inputs[len(before.inputs) :]
            assert all(each.option == onnx.defs.OpSchema.FormalParameterOption.Optional for each in more), name


@pytest.mark.parametrize(
    ("line", "out", "version", "operators"),
    [
        ("s = Shape <start = -1> (x) y = Cast <to = 1> (s)", "float[1]", 14, ["Shape", "Slice", "Cast"]),
        (
            "s = Constant <value_ints = [4, 2]> () y = Reshape <allowzero = 0> (x, s)",
            "float[4,2]",
            13,
            ["Constant", "Reshape"],
        ),
        (
            "s = Constant <value = int64[2] {4, 2}> () y = Reshape <allowzero = 1> (x, s)",
            "float[4,2]",
            13,
            ["Constant", "Reshape"],
        ),
        (
            "a, b = Split <axis = 1, num_outputs = 2> (x) y = Concat <axis = 1> (b, a)",
            "float[2,4]",
            17,
            ["Split", "Concat"],
        ),
        ("y = Gelu (x)", "float[2,4]", 19, ["Constant"]),
        ("y = HardSwish (x)", "float[2,4]", 13, ["HardSigmoid", "Mul"]),
    ],
)
def test_nodes_that_an_older_version_lacks_are_adapted(line: str, out: str, version: int, operators: list[str]) -> None:
    before = model_of(f"g (float[2,4] x) => ({out} y) {{ {line} }}")
    after = apply(before, ConvertOpset(version=version))
    assert after.graph is not None
    assert set(operators) <= {node.op_type for node in after.graph.node}
    require_valid(after)
    x = {"x": np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)}
    np.testing.assert_allclose(computed(before, x)[0], computed(after, x)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "version", "message"),
    [
        ("a, b, y = Split <axis = 0, num_outputs = 3> (x)", 17, 'Split has no attribute "num_outputs"'),
        (
            'p = Constant <value_ints = [1, 1, 1, 1]> () y = Pad <mode = "wrap"> (x, p)',
            18,
            "version 18 of the operators has no Pad with wrap",
        ),
        ("s = Cast <to = 8> (x) e = Equal (s, s) y = Cast <to = 1> (e)", 13, "input 0 of Equal must be"),
    ],
)
def test_what_an_older_version_cannot_express_is_refused(line: str, version: int, message: str) -> None:
    with pytest.raises(EditError, match=message):
        apply(model_of(f"g (float[4,4] x) => (float[A,B] y) {{ {line} }}"), ConvertOpset(version=version))
