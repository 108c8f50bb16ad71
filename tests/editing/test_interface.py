"""add-input, add-output, remove-output, remove-input: acceptance of what soa4onnx and sod4onnx are for."""

import numpy
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.editing.applying import apply, run
from onnxjson.editing.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.editing.shapes import SetShape
from onnxjson.model.document import Graph, Model, TrainingInfo, ValueInfo
from onnxjson.model.errors import EditError, ParameterError, SelectorError
from onnxjson.model.types import format_type, parse_type
from tests.editing.graphs import exported, model_of, require_valid, sample_inputs
from tests.editing.graphs import run as computed

CHAIN = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> {
   a = Mul(x, w)
   b = Shape(a)
   y = Relu(a)
}"""


def _outputs(model: Model) -> list[tuple[str | None, str | None]]:
    assert model.graph is not None
    return [(each.name, format_type(each.type) if each.type else None) for each in model.graph.output]


def test_soa4onnx_any_value_becomes_an_output_with_its_type() -> None:
    model = apply(model_of(CHAIN), [AddOutput(tensor="a"), AddOutput(tensor="b"), AddOutput(tensor="w")])
    assert _outputs(model) == [("y", "float32[N,4]"), ("a", "float32[N,4]"), ("b", "int64[2]"), ("w", "float32[4]")]
    require_valid(model)
    y, a, b, _ = computed(model, {"x": numpy.array([[1, -1, 1, -1]], numpy.float32)})
    assert a.tolist() == [[1, -2, 3, -4]]
    assert b.tolist() == [1, 4]
    assert y.tolist() == [[1, 0, 3, 0]]


def test_soa4onnx_a_pattern_makes_several_outputs_and_leaves_the_types_of_others() -> None:
    body = "{ a_1 = Mul(x, a_w) a_2 = Abs(a_1) y = Neg(a_2) }"
    text = "g (float[N,4] x) => (float[M,4] y) <float[4] a_w = {1,2,3,4}>" + body
    result = run(model_of(text), AddOutput(tensor="a_*"))
    assert _outputs(result.model) == [("y", "float32[M,4]"), ("a_1", "float32[N,4]"), ("a_2", "float32[N,4]")]
    assert result.outcomes[0].matches == 2
    require_valid(result.model)
    with pytest.raises(EditError, match="one name for 2 outputs"):
        apply(model_of(text), AddOutput(tensor="a_*", name="b"))
    with pytest.raises(SelectorError, match="only constants, inputs and outputs"):
        apply(model_of("g (float[4] p1, float[4] p2) => (float[4] y) { y = Mul(p1, p2) }"), AddOutput(tensor="p*"))


def test_values_become_outputs_beside_an_input_of_size_minus_one() -> None:
    proto = onnxjson.to_proto(model_of(
        """g (float[?,4] x) => (float[?,4] y) {
           a = Relu(x) s = Shape(x) i = Abs(s) r = Reshape(a, i) y = Relu(r)
        }"""
    ))  # fmt: skip
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    model = apply(onnxjson.from_proto(proto), AddOutput(tensor="a"))
    assert len(computed(model, {"x": numpy.ones((2, 4), numpy.float32)})) == 2


def test_outputs_without_a_shape_are_remarked() -> None:
    before = model_of("g (float[N,4] x, int64[K] s) => (float[N,4] y) { r = Reshape(x, s) y = Relu(x) }")
    result = run(before, AddOutput(tensor="r"))
    (note,) = result.outcomes[0].notes
    assert 'that of "r" is not known; set-shape states it' in note
    require_valid(apply(result.model, SetShape(tensor="r", shape=("N", 4))))
    assert not run(result.model, RemoveOutput(tensor="y")).outcomes[0].notes


def test_soa4onnx_unknown_and_double_outputs_are_refused() -> None:
    with pytest.raises(SelectorError, match="nothing is called"):
        apply(model_of(CHAIN), AddOutput(tensor="nowhere"))
    with pytest.raises(EditError, match="is already an output"):
        apply(model_of(CHAIN), AddOutput(tensor="y"))


def test_soa4onnx_type_can_be_given_and_must_be_where_nobody_knows_it() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { a = custom.Op(x) y = Relu(a) }".replace("custom.Op", "local.Op"))
    with pytest.raises(EditError, match='type of "a" is not known'):
        apply(model, AddOutput(tensor="a"))
    assert _outputs(apply(model, AddOutput(tensor="a", type="float32[2]")))[1] == ("a", "float32[2]")
    with pytest.raises(ParameterError, match="is not a type"):
        apply(model, AddOutput(tensor="a", type="float33[2]"))


IF = """g (bool c, float[2] x) => (float[2] y) {
   y = If (c) <then_branch = t () => (float[2] r) { n = Neg(x) r = Abs(n) },
               else_branch = e () => (float[2] r) { s = ReduceSum<keepdims = 0>(x) r = Add(x, s) }>
}"""


def test_soa4onnx_value_inside_a_branch_is_handed_out() -> None:
    result = run(model_of(IF), [AddOutput(tensor="n"), AddOutput(tensor="s", name="total")])
    require_valid(result.model)
    assert [name for name, _ in _outputs(result.model)] == ["y", "n_1", "total"]
    assert result.outcomes[0].notes == ('the output is called "n_1"',)
    x = numpy.array([1, -2], numpy.float32)
    y, n, total = computed(result.model, {"c": numpy.array(True), "x": x})
    assert (y.tolist(), n.tolist(), total.tolist()) == ([1, 2], [-1, 2], 0)
    y, n, total = computed(result.model, {"c": numpy.array(False), "x": x})
    assert (y.tolist(), n.tolist(), total.tolist()) == ([0, -3], [], -1)


def test_soa4onnx_value_inside_a_loop_is_handed_out_round_by_round() -> None:
    model = exported("branches_ts.onnx")
    before = computed(model, {"numbers": numpy.array([1, 2, 3], numpy.float32), "rounds": numpy.array(3)})
    inner = next(
        node.output[0]
        for attribute in model.graph.node[-1].attribute  # type: ignore[union-attr]
        if attribute.g is not None
        for node in attribute.g.node
        if node.op_type not in ("If", "Constant", "Cast", "Identity")
    )
    after = apply(model, AddOutput(tensor=inner))
    require_valid(after)
    results = computed(after, {"numbers": numpy.array([1, 2, 3], numpy.float32), "rounds": numpy.array(3)})
    assert results[0].tobytes() == before[0].tobytes()
    assert len(results[1]) == 3


def test_scan_hands_out_with_its_axes() -> None:
    model = model_of(
        """g (float[2] s, float[3,2] x) => (float[2] z, float[3,2] y) {
           z, y = Scan <num_scan_inputs = 1, scan_output_axes = [0],
                        body = b (float[2] a, float[2] e) => (float[2] t, float[2] o)
                               { t = Add(a, e) k = Neg(t) o = Identity(t) }> (s, x)
        }"""
    )
    after = apply(model, AddOutput(tensor="k"))
    require_valid(after)
    values = {"s": numpy.zeros(2, numpy.float32), "x": numpy.ones((3, 2), numpy.float32)}
    assert computed(after, values)[2].tolist() == [[-1, -1], [-2, -2], [-3, -3]]
    for carried in ("t", "o", "a", "e"):
        # What its subgraph gives already, and what that gets from round to round, too.
        again = apply(model, AddOutput(tensor=carried))
        require_valid(again)
        rounds = {"a": [[0, 0], [1, 1], [2, 2]], "e": [[1, 1]] * 3}.get(carried, [[1, 1], [2, 2], [3, 3]])
        assert computed(again, values)[2].tolist() == rounds


def test_values_of_functions_and_training_cannot_be_handed_out() -> None:
    function = model_of(
        """g (float[2] x) => (float[2] y) { y = local.f(x) }
        <domain: "local", opset_import: ["" : 20]> f (a) => (b) { c = Neg(a) b = Abs(c) }"""
    )
    with pytest.raises(EditError, match="/functions/0"):
        apply(function, AddOutput(tensor="c"))
    step = Graph(name="s", input=(ValueInfo("given", parse_type("float32[2]")),))
    trained = replace(function, training_info=(TrainingInfo(algorithm=step),))
    with pytest.raises(EditError, match="training_info"):
        apply(trained, AddOutput(tensor="given"))


def test_sod4onnx_output_goes_and_the_last_one_stays() -> None:
    model = apply(model_of(CHAIN), AddOutput(tensor="b"))
    without = apply(model, RemoveOutput(tensor="y"))
    assert _outputs(without) == [("b", "int64[2]")]
    assert len(without.graph.node) == 3  # type: ignore[union-attr]
    require_valid(without)
    with pytest.raises(EditError, match="one output must be left"):
        apply(without, RemoveOutput(tensor="b"))
    with pytest.raises(EditError, match="one output must be left"):
        apply(model, RemoveOutput(tensor="re:.*"))


def test_sod4onnx_dead_code_goes_only_if_asked() -> None:
    model = apply(model_of(CHAIN), AddOutput(tensor="b"))
    pruned = apply(model, RemoveOutput(tensor="y", prune=True))
    assert [node.op_type for node in pruned.graph.node] == ["Mul", "Shape"]  # type: ignore[union-attr]
    require_valid(pruned)


def test_sod4onnx_unknown_output_is_refused() -> None:
    with pytest.raises(SelectorError, match='no output is called "yy"'):
        apply(model_of(CHAIN), RemoveOutput(tensor="yy"))


@pytest.mark.parametrize("name", ["mobile_dynamo.onnx", "mobile_ts.onnx", "encoder_ts.onnx"])
def test_soa4onnx_and_sod4onnx_undo_each_other_on_exports(name: str) -> None:
    before = exported(name)
    assert before.graph is not None
    inner = before.graph.node[len(before.graph.node) // 2].output[0]
    after = apply(before, AddOutput(tensor=inner))
    require_valid(after)
    values = sample_inputs(before, {"batch": 2, "length": 5})
    assert computed(after, values)[0].tobytes() == computed(before, values)[0].tobytes()
    back = apply(after, RemoveOutput(tensor=inner))
    assert back.graph is not None
    assert replace(back.graph, value_info=()) == replace(before.graph, value_info=())


def test_input_comes_and_goes() -> None:
    model = apply(model_of(CHAIN), AddInput(tensor="extra", type="int64[N]"))
    assert [each.name for each in model.graph.input] == ["x", "extra"]  # type: ignore[union-attr]
    require_valid(model)
    assert apply(model, RemoveInput(tensor="extra")) == model_of(CHAIN)
    for name in ("a", "w", "x", "y"):
        with pytest.raises(EditError, match="already"):
            apply(model, AddInput(tensor=name, type="float32"))


def test_input_that_is_used_stays() -> None:
    with pytest.raises(EditError, match="/graph/node/0/input/0"):
        apply(model_of(CHAIN), RemoveInput(tensor="x"))
    with pytest.raises(EditError, match="then_branch"):
        apply(model_of(IF), RemoveInput(tensor="x"))


def test_default_of_an_input_becomes_a_constant() -> None:
    model = model_of(CHAIN)
    graph = model.graph
    assert graph is not None
    model = replace(model, graph=replace(graph, input=(*graph.input, ValueInfo("w", parse_type("float32[4]")))))
    assert apply(model, RemoveInput(tensor="w")) == model_of(CHAIN)
    with pytest.raises(EditError, match="IR version 3"):
        apply(replace(model, ir_version=3), RemoveInput(tensor="w"))
