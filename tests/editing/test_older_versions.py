"""convert-opset to older versions: exported models, and what each operator may and may not become."""

import itertools

import numpy as np
import onnx
import pytest

from onnxjson.editing.edits import apply
from onnxjson.editing.opsets import ConvertOpset
from onnxjson.editing.workspace import Workspace
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index
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
        with pytest.raises(EditError, match=r'the node of "view" \(/graph/.*\): Reshape has no attribute "allowzero"'):
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
        (
            "y = Bernoulli (x)",
            13,
            r"\(/graph/node/0\): it has no Bernoulli, .* other random numbers; convert to version 15 or",
        ),
        (
            "y = Add (x, x)",
            12,
            r"\(/graph/node/0\): onnx has no conversion of Add to it; convert to version 13 or newer",
        ),
        (
            "a = Mish (x) b = Gelu (a) y = Mish (b)",
            8,
            r"of Mish to it; Mish \(2\) needs version 13, Gelu \(1\) needs .*13",
        ),
        (
            "s = Size (x) o = Constant <value = int64 {1}> () z = Sub (o, o) a = Range (z, o, o) y = ReduceMean (x, a)",
            17,
            r"\(/graph/node/4\): ReduceMean has an attribute there instead of this input, .*; .*18",
        ),
    ],
)
def test_what_an_older_version_cannot_express_is_refused(line: str, version: int, message: str) -> None:
    with pytest.raises(EditError, match=message):
        apply(model_of(f"g (float[4,4] x) => (float[A,B] y) {{ {line} }}"), ConvertOpset(version=version))


NEWEST = '<ir_version: 11, opset_import: ["" : 24]>'
SWISH = "g (float[2,4] x) => (float[2,4] y) { y = Swish (x) }"
NORMALIZED = """g (float[2,4] x) => (float[2,4] y) {
    s = Constant <value = float[4] {1, 2, 3, 4}> ()
    y = RMSNormalization (x, s)
}"""
WINDOW = "g (float[2,4] x) => (float[2,4] y) { n = Constant <value_int = 4> () w = HannWindow (n) y = Mul (x, w) }"
ROTATED = """g (float[1,2,2,2] x) => (float[1,2,2,2] y) {
    c = Constant <value = float[1,2,1] {0.1, 0.2}> ()
    s = Constant <value = float[1,2,1] {0.3, 0.4}> ()
    y = RotaryEmbedding (x, c, s)
}"""
BRANCHES = """g (bool t, float[2,4] x) => (float[2,1] y) {
    axis = Constant <value = int64[1] {1}> ()
    y = If (t) <
        then_branch = g () => (float[2,1] r) { b = Abs (x) r = ReduceMean (b, axis) },
        else_branch = h () => (float[2,1] s) {
            c = Constant <value = int64[1] {1}> ()
            s = If (t) <
                then_branch = i () => (float[2,1] p) { p = ReduceMax (x, c) },
                else_branch = j () => (float[2,1] q) { n = Neg (x) q = ReduceMin (n, axis) }
            >
        }
    >
}"""
DRAWN = """g (bool t, float[2,4] x) => (float[2,4] y) {
    y = If (t) <
        then_branch = g () => (float[2,4] r) { r = Bernoulli (x) },
        else_branch = h () => (float[2,4] s) { s = Abs (x) }
    >
}"""


@pytest.mark.parametrize("version", [17, 13])
@pytest.mark.parametrize("text", [SWISH, NORMALIZED, WINDOW, ROTATED, BRANCHES])
def test_definitions_and_subgraphs_are_converted_as_a_whole(text: str, version: int) -> None:
    before = model_of(f"{NEWEST}\n{text}")
    after = apply(before, ConvertOpset(version=version))
    require_valid(after)
    assert after.graph is not None
    assert before.graph is not None
    assert after.graph.output == before.graph.output
    for taken in (True, False):
        inputs = {**sample_inputs(before), **({"t": np.array(taken)} if text is BRANCHES else {})}
        np.testing.assert_allclose(computed(before, inputs)[0], computed(after, inputs)[0], rtol=1e-5, atol=1e-6)


def test_subgraphs_are_converted_to_newer_versions_and_back() -> None:
    older = apply(model_of(f"{NEWEST}\n{BRANCHES}"), ConvertOpset(version=13))
    newer = apply(older, ConvertOpset(version=21))
    require_valid(newer)
    inputs = {**sample_inputs(newer), "t": np.array(False)}
    np.testing.assert_allclose(computed(older, inputs)[0], computed(newer, inputs)[0])


def test_a_node_in_a_subgraph_that_cannot_be_converted_is_named() -> None:
    place = r'the node of "r" \(/graph/node/0/attribute/then_branch/g/node/0\): it has no Bernoulli'
    with pytest.raises(EditError, match=place):
        apply(model_of(f"{NEWEST}\n{DRAWN}"), ConvertOpset(version=13))


def test_declared_sizes_that_still_hold_stay() -> None:
    text = """g (float[2,6] x) => (float[2,6] y) <float[2,6] m> {
        s = Constant <value = float[6] {1, 1, 1, 1, 1, 1}> ()
        m = LayerNormalization (x, s)
        n = Shape (m)
        y = Reshape (m, n)
    }"""
    before = model_of(text)
    after = apply(before, ConvertOpset(version=13))
    assert before.graph is not None
    assert after.graph is not None
    assert (after.graph.output, after.graph.value_info) == (before.graph.output, before.graph.value_info)


RESIZED = 'g (float[1,1,4,4] x) => (float[1,1,n,m] y) <float[4] s = {1., 1., SCALES}> { y = OP <mode = "MODE"> (x, s) }'


@pytest.mark.parametrize("operator", ["Resize", "Upsample"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("scales", ["2., 2.", "1.7, 2.6", "0.6, 0.4"])
@pytest.mark.parametrize("version", [11, 18])
def test_newer_versions_resize_as_opset_10_did(operator: str, mode: str, scales: str, version: int) -> None:
    if operator == "Upsample" and scales.startswith("0"):
        return
    header = f'<ir_version: 5, opset_import: ["" : {10 if operator == "Resize" else 9}]>'
    text = RESIZED.replace("SCALES", scales).replace("OP", operator).replace("MODE", mode)
    before = model_of(f"{header}\n{text}")
    after = apply(before, ConvertOpset(version=version))
    for seed in range(3):
        inputs = sample_inputs(before, seed=seed)
        np.testing.assert_allclose(computed(before, inputs)[0], computed(after, inputs)[0], rtol=1e-5, atol=1e-6)


def test_a_result_that_computes_something_else_is_refused() -> None:
    # One node cannot round up along one axis and down along the other.
    header = '<ir_version: 5, opset_import: ["" : 10]>'
    text = RESIZED.replace("SCALES", "0.6, 1.7").replace("OP", "Resize").replace("MODE", "nearest")
    with pytest.raises(EditError, match='other outputs: "y" differs on random inputs'):
        apply(model_of(f"{header}\n{text}"), ConvertOpset(version=13))


@pytest.mark.parametrize(
    ("line", "reason"),
    [("r = RandomNormalLike (x) y = HardSwish (r)", "/graph/node/0 draws random numbers"), ("y = HardSwish (x)", "")],
)
def test_that_results_could_not_be_compared_is_said(line: str, reason: str) -> None:
    workspace = Workspace(model_of(f"g (float[2,4] x) => (float[2,4] y) {{ {line} }}"))
    notes = ConvertOpset(version=22).change(workspace).notes
    assert [each for each in notes if "not compared" in each] == [
        f"the results were not compared with those before: {reason}" for _ in [reason] if reason
    ]


LOOPED = """g (float[2,4] x) => (float[2,4] y) {
    n = Constant <value = int64 {2}> ()
    y = Loop (n, , x) <body = b (int64 i, bool c, float[2,4] v) => (bool d, float[2,4] w) {
        d = Identity (c) a = Abs (v) w = Gelu (a)
    }>
}"""
SCANNED = """g (float[2,4] x) => (float[2,4] y) {
    h = Constant <value = float[4] {0, 1, 2, 3}> ()
    s, y = Scan (h, x) <num_scan_inputs = 1, body = b (float[4] v, float[4] e) => (float[4] w, float[4] o) {
        k = Constant <value = float[4] {1, 2, 3, 4}> ()
        g = Gelu (e) w = Add (v, g) o = LayerNormalization (w, k)
    }>
}"""
CHOSEN = """g (float[2,4] x) => (float[2,4] y) {
    t = Constant <value = bool {1}> ()
    y = If (t) <
        then_branch = g () => (float[2,4] r) { a = Abs (x) r = Gelu (a) },
        else_branch = h () => (float[2,4] s) { m = Neg (x) s = Mish (m) }
    >
}"""
GROUPED = """g (float[2,4,3] x) => (float[2,4,3] y) {
    s = Constant <value = float[4] {1, 2, 3, 4}> ()
    b = Constant <value = float[4] {0, 1, 0, 2}> ()
    y = GroupNormalization <num_groups = 2, epsilon = 0.1> (x, s, b)
}"""


@pytest.mark.parametrize(
    ("text", "version"),
    [(text, version) for text in (LOOPED, SCANNED, CHOSEN) for version in (17, 13)]
    + [(GROUPED, version) for version in (20, 18, 17)],
)
def test_definitions_replace_operators_in_bodies_and_those_that_are_redefined(text: str, version: int) -> None:
    before = model_of(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')
    workspace = Workspace(before)
    notes = ConvertOpset(version=version).change(workspace).notes
    assert not [each for each in notes if "not compared" in each]
    require_valid(workspace.model)
    kinds = {ref.node.op_type for ref in Index(workspace.model).nodes()}
    assert not kinds & {"Gelu", "Mish", "LayerNormalization", "GroupNormalization"} - (
        {"LayerNormalization"} if version == 17 else set()
    )
    inputs = sample_inputs(before)
    np.testing.assert_allclose(computed(before, inputs)[0], computed(workspace.model, inputs)[0], rtol=1e-4, atol=1e-5)


def test_nodes_that_an_older_version_cannot_express_are_listed_at_their_addresses_before() -> None:
    model = model_of("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,4] x, int64[2] s) => (float[M,N] y) <float[4] w = {1, 1, 1, 1}> {
            n = LayerNormalization (x, w)
            a = Reshape <allowzero = 1> (n, s)
            y = Reshape <allowzero = 1> (a, s)
        }""")
    with pytest.raises(EditError, match=r'"a" \(/graph/node/1\).*at 2 nodes \(/graph/node/1, /graph/node/2\)'):
        apply(model, ConvertOpset(version=13))
