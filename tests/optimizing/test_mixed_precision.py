"""mixed-precision and float16: which nodes stay float32, what is measured, what the models are."""

import random
import re

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.shape_inference import infer_shapes

from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Model
from onnxjson.model.errors import ParameterError, PassError
from onnxjson.optimizing.passes import PassResult, Pipeline, parse_step
from onnxjson.optimizing.passes.measuring import CannotEmulateError, emulate, one_line
from onnxjson.optimizing.passes.minimal_sets import minimal
from onnxjson.running.comparisons import Tolerance
from onnxjson.running.verification import verify
from onnxjson.storage import api
from tests.optimizing.number_models import model_of, perceptron, with_overflow


def made_by(model: Model, spelled: str) -> PassResult:
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(spelled)])
    return made


def kept(made: PassResult) -> list[str]:
    return [found[1] for note in made.notes if (found := re.fullmatch(r"float32: \w+ \((.*)\)", note))]


def evaluated(data: bytes, x: numpy.ndarray) -> numpy.ndarray:
    from onnxruntime import InferenceSession, SessionOptions, set_default_logger_severity

    set_default_logger_severity(4)
    session = InferenceSession(data, SessionOptions(), providers=["CPUExecutionProvider"])
    given = x.astype(numpy.float16) if session.get_inputs()[0].type == "tensor(float16)" else x
    return numpy.asarray(session.run(None, {"x": given})[0])


@pytest.mark.parametrize("at", [(), (0,), (1,), (3,), (0, 2)])
def test_exactly_the_nodes_that_overflow_stay_float32(at: tuple[int, ...]) -> None:
    results = made_by(with_overflow(at), "mixed-precision")
    assert kept(results) == [name for number in at for name in (f"up{number}", f"down{number}")]
    count, nodes = 2 * len(at), 9 + 2 * len(at)
    (note,) = [note for note in results.notes if "nodes stay float32" in note]
    assert re.match(rf"{count} of {nodes} nodes stay float32; \d+ models? run to find them", note)
    assert ("none of them can be omitted" in note) == bool(at)


def test_the_result_computes_the_same_where_plain_float16_is_infinite() -> None:
    model = with_overflow((1,))
    mixed, plain = made_by(model, "mixed-precision"), made_by(model, "float16")
    loose = {"float32": Tolerance(relative=1e-2, of_scale=5e-3)}
    assert verify(model, mixed.after.model, tolerances=loose).equal
    x = numpy.random.default_rng(1).standard_normal((2, 4)).astype(numpy.float32)
    base = evaluated(message_bytes(model), x)
    assert numpy.abs(evaluated(emulate(mixed.after.data), x) - base).max() < 0.01
    assert not numpy.isclose(evaluated(emulate(plain.after.data), x), base, atol=0.01).all()
    assert any("of the largest" in note for note in plain.notes)


def test_between_two_nodes_in_float32_nothing_is_rounded() -> None:
    made = made_by(with_overflow((1,)), "mixed-precision")
    graph = made.after.model.graph
    assert graph is not None
    makers = {name: node for node in graph.node for name in node.output}
    down = next(node for node in graph.node if node.name == "down1")
    up = next(node for node in graph.node if node.name == "up1")
    assert makers[str(down.input[0])] is up
    assert [node.op_type for node in graph.node].count("Cast") == 4  # two at the ends, two around the pair


def test_an_output_that_overflows_stays_float32_to_its_end() -> None:
    nodes, weights = perceptron(2)
    weights["up"] = numpy.full(1, 1e6, numpy.float32)
    nodes.append(helper.make_node("Mul", ["t1", "up"], ["y"], "up"))
    results = made_by(model_of(nodes, weights), "mixed-precision")
    assert kept(results) == ["up"]
    x = numpy.ones((2, 4), numpy.float32)
    assert numpy.isfinite(evaluated(emulate(results.after.data), x)).all()


def test_two_nodes_in_float32_may_take_one_value() -> None:
    nodes, weights = perceptron(1)
    weights |= {"up": numpy.full(1, 1e6, numpy.float32), "down": numpy.full(1, 1e-6, numpy.float32)}
    for name in ("a", "b"):
        nodes.append(helper.make_node("Mul", ["t0", "up"], [f"{name}0"], f"{name}0"))
        nodes.append(helper.make_node("Mul", [f"{name}0", "down"], [f"{name}1"], f"{name}1"))
    nodes.append(helper.make_node("Sub", ["a1", "b1"], ["zero"], "sub"))
    nodes.append(helper.make_node("Add", ["zero", "a1"], ["y"], "add"))
    made = made_by(model_of(nodes, weights), "mixed-precision")
    assert set(kept(made)) == {"a0", "a1", "b0", "b1"}


def test_nodes_without_a_name_get_none() -> None:
    nodes, weights = perceptron(2)
    for node in nodes:
        node.name = "same" if node.op_type == "MatMul" else ""
    nodes.append(helper.make_node("Relu", ["t1"], ["y"]))
    graph = made_by(model_of(nodes, weights), "mixed-precision").after.model.graph
    assert graph is not None
    assert [node.name or "" for node in graph.node if node.op_type != "Cast"] == ["same", "", "same", "", ""]


def test_a_tolerance_that_nothing_meets_is_told() -> None:
    model = with_overflow((1,))
    with pytest.raises(PassError, match="the outputs exceed the tolerance even with all nodes in float32"):
        made_by(model, "mixed-precision{relative=0,of_scale=0,keep_io_types=false}")


def test_sizes_that_are_too_big_together_do_not_hide_why_the_model_fails() -> None:
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "wrong",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*"NTCHW"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [7, 11])],
        [numpy_helper.from_array(numpy.array([7, 11]), "shape")],
    )
    model = api.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))
    with pytest.raises(PassError, match="running Reshape node"):
        made_by(model, "mixed-precision")
    assert "running Reshape node" in made_by(model, "float16").notes[-1]


def test_float16_tells_what_is_not_finite_any_more() -> None:
    nodes, weights = perceptron(1)
    weights["up"] = numpy.full(1, 6e4, numpy.float32)
    nodes.append(helper.make_node("Mul", ["t0", "up"], ["once"], "once"))
    nodes.append(helper.make_node("Mul", ["once", "up"], ["y"], "twice"))
    made = made_by(model_of(nodes, weights), "float16{keep_io_types=true}")
    assert any(re.search(r"\d+ elements are no longer finite", note) for note in made.notes), made.notes


def test_the_emulation_rounds_as_float16_does() -> None:
    nodes, weights = perceptron(3)
    nodes.append(helper.make_node("Relu", ["t2"], ["y"], "last"))
    model = model_of(nodes, weights)
    half = made_by(model, "float16").after.data
    x = numpy.random.default_rng(2).standard_normal((2, 4)).astype(numpy.float32)
    value = x.astype(numpy.float16)
    for number in range(3):
        value = (value.astype("f") @ weights[f"w{number}"].astype(numpy.float16).astype("f")).astype(numpy.float16)
        value = numpy.tanh(value.astype("f")).astype(numpy.float16)
    found = evaluated(emulate(half), x)
    assert found.dtype == numpy.float16
    assert numpy.array_equal(found, numpy.maximum(value, 0))


def test_a_model_without_float16_is_its_own_emulation() -> None:
    data = message_bytes(with_overflow())
    assert emulate(data) is data


def test_what_cannot_be_emulated_says_so() -> None:
    model = api.to_proto(with_overflow())
    model.functions.add().name = "f"
    with pytest.raises(CannotEmulateError, match="functions"):
        emulate(model.SerializeToString())


def test_a_minimal_set_is_enough_and_nothing_of_it_can_be_left_out() -> None:
    generator = random.Random(0)
    for _ in range(60):
        count = generator.randrange(1, 60)
        needed = [frozenset(generator.sample(range(count), generator.randrange(min(4, count) + 1))) for _ in range(3)]

        def is_enough(items: frozenset[int], needed: list[frozenset[int]] = needed) -> bool:
            return any(each <= items for each in needed)

        model = minimal(count, is_enough)
        assert model is not None
        items = frozenset(model.items)
        assert model.is_minimal
        assert is_enough(items)
        assert not any(is_enough(items - {each}) for each in items)


def test_a_minimal_set_is_found_where_more_is_not_always_better() -> None:
    def is_enough(items: frozenset[int]) -> bool:
        return {7, 20} <= items and len(items) % 3 != 1

    model = minimal(32, is_enough)
    assert model is not None
    assert is_enough(frozenset(model.items))
    assert not any(is_enough(frozenset(model.items) - {each}) for each in model.items)


def test_few_evaluations_find_a_few_of_many() -> None:
    model = minimal(1024, lambda items: {3, 500, 501} <= items)
    assert model is not None
    assert model.items == (3, 500, 501)
    assert model.evaluations < 60


def test_a_search_that_is_cut_short_gives_what_it_has() -> None:
    model = minimal(1024, lambda items: {3, 500, 501} <= items, most=10)
    assert model is not None
    assert {3, 500, 501} <= set(model.items)
    assert not model.is_minimal
    assert minimal(4, lambda items: False) is None


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ("mixed-precision{relative=-1}", "found the number -1, expected a number from 0"),
        ("mixed-precision{absolute=-0.5}", "expected a number from 0"),
        ("mixed-precision{evaluations=1}", "expected an integer from 2"),
        ("quantize-static{samples=0}", "expected an integer from 1"),
        ("quantize-static{dims={N: -1}}", "expected an integer from 0"),
    ],
)
def test_figures_that_are_none_are_refused(spelled: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        parse_step(spelled)


def quantized(opset: int) -> Model:
    """A perceptron of one layer whose weight is int8 with a scale, and whose input is quantized while it runs."""
    nodes, weights = perceptron(1)
    scale = numpy.float32(3e-7)
    weights |= {"w0": numpy.full((4, 4), 0.5, numpy.float32), "q": numpy.full((4, 4), 100, numpy.int8)}
    constant = helper.make_node("Constant", [], ["scale"], value=numpy_helper.from_array(numpy.array(scale)))
    made = [
        constant,
        helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["w"]),
        helper.make_node("MatMul", ["xd", "w"], ["tiny"]),
        *nodes,
        helper.make_node("Add", ["t0", "tiny"], ["y"]),
    ]
    model = api.to_proto(model_of(made, weights))
    model.opset_import[0].version = opset
    return api.from_proto(model)


@pytest.mark.parametrize(("opset", "wide"), [(17, 3), (19, 1)])
@pytest.mark.parametrize("spelled", ["float16", "mixed-precision"])
def test_operators_without_float16_at_the_operator_set_stay_float32(spelled: str, opset: int, wide: int) -> None:
    results = made_by(quantized(opset), spelled)
    x = numpy.ones((2, 4), numpy.float32)
    assert numpy.isfinite(evaluated(results.after.data, x)).all()  # onnxruntime loads it
    proto = api.to_proto(results.after.model)
    types = {each.name: each.type.tensor_type.elem_type for each in infer_shapes(proto).graph.value_info}
    places = {"DynamicQuantizeLinear": 0, "DequantizeLinear": 1}
    inputs = [node.input[places[node.op_type]] for node in proto.graph.node if node.op_type in places]
    assert [types.get(name, TensorProto.FLOAT) for name in inputs].count(TensorProto.FLOAT) == wide
    (scale,) = [node for node in proto.graph.node if node.op_type == "Constant"]
    kept = numpy_helper.to_array(scale.attribute[0].t)
    assert (kept.dtype == numpy.float32 and kept == numpy.float32(3e-7)) == (opset == 17)
    assert [node.name for node in proto.graph.node if node.op_type == "DynamicQuantizeLinear"] == [""]


def sensitive(layers: int) -> Model:
    """A model of which no node can be float16: each rounds what the next ones multiply by 1e6 and subtract 1e6 from."""
    weights = {"up": numpy.full(1, 1e6, numpy.float32)}
    nodes, last = [], "x"
    for number in range(layers):
        nodes.append(helper.make_node("Mul", [last, "up"], [f"m{number}"], f"mul{number}"))
        nodes.append(helper.make_node("Div", [f"m{number}", "up"], [f"d{number}"], f"div{number}"))
        last = f"d{number}"
    nodes.append(helper.make_node("Sub", [last, "x"], ["y"], "sub"))
    return model_of(nodes, weights)


@pytest.mark.parametrize(
    ("layers", "why"), [(2, "every node needs float32"), (40, "each of 16 sampled nodes alone in float16")]
)
def test_nothing_converted_is_a_failure_that_names_what_is_too_large(layers: int, why: str) -> None:
    with pytest.raises(PassError, match=f"nothing was converted: {why}") as caught:
        made_by(sensitive(layers), "mixed-precision")
    assert "; beyond float16 (65504): up (1e+06), m0 (" in str(caught.value)
    assert "the model is unchanged" in str(caught.value)


def test_constants_that_float16_does_not_hold_are_named_and_stay_in_their_float32_nodes() -> None:
    """The variance of a normalization, in a Constant as exporters write it."""
    nodes, weights = perceptron(1)
    large = helper.make_node(
        "Constant", [], ["var"], value=numpy_helper.from_array(numpy.full(4, 9.8e7, numpy.float32))
    )
    weights |= {name: numpy.full(4, value, numpy.float32) for name, value in (("scale", 1e4), ("b", 0), ("mean", 0.1))}
    norm = helper.make_node("BatchNormalization", ["t0", "scale", "b", "mean", "var"], ["n"], "norm")
    model = model_of([large, *nodes, norm, helper.make_node("Relu", ["n"], ["y"], "last")], weights)
    results = made_by(model, "mixed-precision")
    assert "beyond float16 (65504): var (9.8e+07)" in results.notes
    assert kept(results) == ["norm"]
    results = made_by(model, "float16")
    assert any(note.startswith("beyond float16, so reduced for") and "var (9.8e+07)" in note for note in results.notes)


def test_a_long_error_keeps_its_end_with_the_cause() -> None:
    error = f"Load model failed: node {'/block' * 200}: the cause"
    assert one_line(error).startswith("Load model failed")
    assert one_line(error).endswith(" ... " + error[-300:])


def test_a_model_without_float32_is_refused() -> None:
    node = helper.make_node("Add", ["x", "x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, [2]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    with pytest.raises(PassError, match="nothing to convert: the model has no float32"):
        made_by(api.from_proto(helper.make_model(graph)), "mixed-precision")
