"""prune, strip, deduplicate-initializers and constants in other places: acceptance of scs4onnx, sde4onnx and others."""

from pathlib import Path

import numpy
import onnx
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.codecs.wire_writing import message_size
from onnxjson.editing.applying import apply, plan, run
from onnxjson.editing.cleaning import Prune, Strip
from onnxjson.editing.deduplication import DeduplicateInitializers
from onnxjson.editing.initializers import ConstantsToInitializers, InitializersToConstants, InitializersToInputs
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    OperatorSetId,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TensorAnnotation,
    TrainingInfo,
    ValueInfo,
)
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.tensors import from_numpy
from onnxjson.model.types import parse_type
from onnxjson.model.walking import tensors_of, walk
from tests.editing.graphs import EXPORTED, exported, model_of, require_same_results, require_valid, sample_inputs


def _graph(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def _constants(model: Model) -> list[str | None]:
    return [tensor.name for tensor in tensors_of(model) if tensor.name]


def _with_constants(*tensors: Tensor, **fields: object) -> Model:
    """A model that adds all of its constants to its input, one after another."""
    nodes = []
    name = "x"
    for position, tensor in enumerate(tensors):
        nodes.append(Node(op_type="Add", input=(name, tensor.name or ""), output=(f"v{position}",)))
        name = f"v{position}"
    graph = Graph(
        node=tuple(nodes),
        name="g",
        input=(ValueInfo("x", parse_type("float32[2]")),),
        output=(ValueInfo(name, parse_type("float32[2]")),),
        initializer=tensors,
    )
    graph = replace(graph, **fields)
    return Model(ir_version=10, graph=graph, opset_import=(OperatorSetId("", 20),))


def _floats(name: str, *values: float) -> Tensor:
    return from_numpy(numpy.array(values, numpy.float32), name)


def test_scs4onnx_equal_constants_are_kept_once() -> None:
    before = _with_constants(_floats("a", 1, 2), _floats("b", 3, 4), _floats("c", 1, 2), _floats("d", 1, 2))
    result = run(before, DeduplicateInitializers())
    assert _constants(result.model) == ["a", "b"]
    assert result.outcomes[0] == (2, ("2 of 4 constants removed, 16 bytes saved",))
    require_valid(result.model)
    require_same_results(before, result.model, sample_inputs(before))


def test_scs4onnx_zeros_of_both_signs_stay_two_and_equal_nans_become_one() -> None:
    nan = Tensor((2,), 1, raw_data=bytes.fromhex("0100a07f0000c07f"))
    before = _with_constants(
        _floats("zero", 0.0, 0.0), _floats("minus", -0.0, 0.0), replace(nan, name="n1"), replace(nan, name="n2")
    )
    assert _constants(apply(before, DeduplicateInitializers())) == ["zero", "minus", "n1"]


def test_scs4onnx_dtypes_shapes_and_bytes_all_count() -> None:
    tensors = [
        Tensor((2,), 6, raw_data=bytes(8), name="i"),
        Tensor((2,), 1, raw_data=bytes(8), name="f"),
        Tensor((2, 1), 1, raw_data=bytes(8), name="column"),
        Tensor((2,), 1, float_data=bytes(8), name="typed"),
        Tensor((2,), 8, string_data=(b"a", b"\xff"), name="s1"),
        Tensor((2,), 8, string_data=(b"a", b"\xff"), name="s2"),
        Tensor((), 7, raw_data=bytes(8), name="scalar"),
    ]
    after = apply(_with_constants(*tensors), DeduplicateInitializers())
    assert _constants(after) == ["i", "f", "column", "s1", "scalar"]


def test_scs4onnx_subgraph_uses_the_constant_of_the_graph_around_it() -> None:
    before = model_of(
        """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1,2}> {
           a = Mul(x, w)
           y = If (c) <then_branch = t () => (float[2] r) <float[2] v = {1,2}> { r = Add(a, v) },
                       else_branch = e () => (float[2] r) <float[2] u = {3,2}> { r = Add(a, u) }>
        }"""
    )
    after = apply(before, DeduplicateInitializers())
    assert sorted(filter(None, _constants(after))) == ["u", "w"]
    require_valid(after)
    for choice in (True, False):
        require_same_results(before, after, {"c": numpy.array(choice), "x": numpy.array([5, 6], numpy.float32)})


def test_scs4onnx_equal_constants_of_both_branches_move_to_the_graph_around_them() -> None:
    before = model_of(
        """g (bool c, float[2] x) => (float[2] y) {
           a = Relu(x)
           y = If (c) <then_branch = t () => (float[2] r) <float[2] v = {1,2}, float[2] w = {1,2}>
                                  { s = Add(a, v) r = Sub(s, w) },
                       else_branch = e () => (float[2] r) <float[2] u = {1,2}> { r = Mul(a, u) }>
        }"""
    )
    result = run(before, DeduplicateInitializers())
    assert result.matches == 2
    assert [tensor.dims for tensor in _graph(result.model).initializer] == [(2,)]
    assert len(_constants(result.model)) == 1
    require_valid(result.model)
    for choice in (True, False):
        values = {"c": numpy.array(choice), "x": numpy.array([5, 6], numpy.float32)}
        require_same_results(before, result.model, values)


def test_name_that_a_subgraph_hides_is_not_used_in_it() -> None:
    inner = Graph(
        node=(Node(op_type="Add", input=("b", "a"), output=("r",)),),
        name="t",
        input=(),
        output=(ValueInfo("r"),),
        initializer=(_floats("a", 7, 7),),
    )
    graph = Graph(
        node=(
            Node(
                op_type="If", input=("c",), output=("y",), attribute=(Attribute(name="then_branch", type=5, g=inner),)
            ),
            Node(op_type="Add", input=("a", "b"), output=("z",)),
        ),
        name="g",
        initializer=(_floats("a", 1, 2), _floats("b", 1, 2)),
    )
    model = Model(ir_version=10, graph=graph)
    assert run(model, DeduplicateInitializers()).matches == 0


def test_constants_that_mean_more_than_their_values_stay() -> None:
    same = [_floats(name, 1, 2) for name in ("default", "trained", "annotated", "output", "plain", "other")]
    before = _with_constants(*same)
    graph = _graph(before)
    graph = replace(
        graph,
        input=(*graph.input, ValueInfo("default", parse_type("float32[2]"))),
        output=(*graph.output, ValueInfo("output", parse_type("float32[2]"))),
        quantization_annotation=(TensorAnnotation("annotated", (StringStringEntry("SCALE_TENSOR", "plain"),)),),
    )
    training = TrainingInfo(update_binding=(StringStringEntry("trained", "n"),))
    after = apply(replace(before, graph=graph, training_info=(training,)), DeduplicateInitializers())
    assert _constants(after) == ["default", "trained", "annotated", "output"]
    assert _graph(after).quantization_annotation[0].quant_parameter_tensor_names[0].value == "output"


def test_external_data_is_compared_where_it_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(range(16)) + bytes(range(8)))

    def outside(name: str, offset: int) -> Tensor:
        pairs = {"location": "w.bin", "offset": str(offset), "length": "8"}
        entries = tuple([StringStringEntry(key, value) for key, value in pairs.items()])
        return Tensor((2,), 1, name=name, external_data=entries, data_location=1)

    before = _with_constants(outside("a", 0), outside("b", 8), outside("c", 16), outside("d", 8))
    assert _constants(apply(before, DeduplicateInitializers(), folder=tmp_path)) == ["a", "b"]
    assert _constants(apply(before, DeduplicateInitializers())) == ["a", "b", "c"]


def test_scs4onnx_thousands_of_constants_become_what_differs() -> None:
    model = _with_constants(*[_floats(f"c{number}", number % 1400, 1) for number in range(4_000)])
    after = apply(model, DeduplicateInitializers())
    assert len(_graph(after).initializer) == 1400


@pytest.mark.parametrize("name", ["encoder_dynamo.onnx", "mobile_dynamo.onnx", "encoder_ts.onnx", "mobile_ts.onnx"])
def test_clean_export_computes_the_same(name: str) -> None:
    before = exported(name)
    edits = [ConstantsToInitializers(), DeduplicateInitializers(), Prune(), Strip(what=("doc_strings", "metadata"))]
    result = run(before, edits)
    require_valid(result.model)
    require_same_results(before, result.model, sample_inputs(before, {"batch": 2, "length": 5}))
    assert message_size(result.model) < message_size(before)
    assert plan(before, edits).invert().apply(result.model) == before


DEAD = """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] unused = {1,2}, float[2] inner = {3,4}> {
   a = Mul(x, w)
   dead = Neg(a)
   deader = Abs(dead)
   y = If (c) <then_branch = t () => (float[2] r) <float[2] u = {1,2}> { q = Neg(a) r = Add(a, inner) },
               else_branch = e () => (float[2] s) { s = Relu(x) }>
}"""


def test_prune_takes_what_leads_nowhere_in_all_graphs() -> None:
    before = model_of(DEAD)
    result = run(before, Prune())
    assert [node.op_type for node in walk(result.model, Node)] == ["Mul", "If", "Add", "Relu"]
    assert _constants(result.model) == ["w", "inner"]
    assert result.outcomes[0] == (5, ("3 nodes removed", "2 constants removed, 16 bytes saved"))
    require_valid(result.model)
    for choice in (True, False):
        require_same_results(before, result.model, {"c": numpy.array(choice), "x": numpy.array([1, -2], numpy.float32)})
    assert run(result.model, Prune()) == (result.model, ((0, ("everything is used",)),), {})


def test_prune_takes_only_what_it_is_asked_for() -> None:
    nodes = apply(model_of(DEAD), Prune(what=("nodes",)))
    assert len(_constants(nodes)) == 4
    constants = apply(model_of(DEAD), Prune(what=("initializers",)))
    assert len(list(walk(constants, Node))) == 7


def test_prune_works_whatever_the_order_of_nodes() -> None:
    nodes = (
        Node(op_type="Relu", input=("b",), output=("y",)),
        Node(op_type="Neg", input=("x",), output=("dead",)),
        Node(op_type="Abs", input=("x",), output=("b",)),
    )
    model = Model(ir_version=10, graph=Graph(node=nodes, output=(ValueInfo("y"),), input=(ValueInfo("x"),)))
    assert [node.op_type for node in walk(apply(model, Prune()), Node)] == ["Relu", "Abs"]


def test_prune_keeps_what_training_and_annotations_use() -> None:
    before = _with_constants(_floats("a", 1, 2))
    graph = replace(
        _graph(before),
        initializer=(*_graph(before).initializer, _floats("s", 1, 1), _floats("t", 1, 1), _floats("u", 1, 1)),
        quantization_annotation=(TensorAnnotation("a", (StringStringEntry("SCALE_TENSOR", "s"),)),),
        value_info=(ValueInfo("u", parse_type("float32[2]")),),
    )
    step = Graph(node=(Node(op_type="Neg", input=("t",), output=("n",)),), name="s", output=(ValueInfo("n"),))
    after = apply(replace(before, graph=graph, training_info=(TrainingInfo(algorithm=step),)), Prune())
    assert _constants(after) == ["a", "s", "t"]
    assert _graph(after).value_info == ()


def test_prune_takes_functions_that_nobody_calls_if_asked() -> None:
    def function(name: str, calls: str) -> Function:
        node = Node(op_type=calls, domain="local" if calls[0].islower() else None, input=("x",), output=("y",))
        return Function(name=name, domain="local", input=("x",), output=("y",), node=(node,))

    graph = Graph(node=(Node(op_type="f", domain="local", input=("x",), output=("y",)),), output=(ValueInfo("y"),))
    functions = (function("f", "g"), function("g", "Relu"), function("h", "h"))
    model = Model(ir_version=10, graph=graph, functions=functions)
    assert apply(model, Prune()).functions == functions
    assert [each.name for each in apply(model, Prune(what=("functions",))).functions] == ["f", "g"]


def _documented() -> Model:
    """A model with a doc string and metadata wherever there can be one."""
    entries = (StringStringEntry("key", "a value"),)
    said = {"doc_string": "what it is", "metadata_props": entries}
    tensor = Tensor((1,), 1, raw_data=bytes(4), name="w", **said)  # type: ignore[arg-type]
    value = ValueInfo("x", parse_type("float32[1]"), **said)  # type: ignore[arg-type]
    inner = Graph(
        node=(Node(op_type="Neg", input=("x",), output=("r",), name="n", **said),),  # type: ignore[arg-type]
        name="t",
        output=(replace(value, name="r"),),
        **said,  # type: ignore[arg-type]
    )
    branches = tuple(
        [Attribute(name=f"{which}_branch", type=5, g=inner, doc_string="why") for which in ("then", "else")]
    )
    graph = Graph(
        node=(Node(op_type="If", input=("c",), output=("y",), attribute=branches, **said),),  # type: ignore[arg-type]
        name="g",
        initializer=(tensor,),
        input=(value, ValueInfo("c", parse_type("bool[]"))),
        output=(replace(value, name="y"),),
        value_info=(replace(value, name="w"),),
        sparse_initializer=(
            SparseTensor(values=replace(tensor, name="s"), indices=Tensor((1,), 7, raw_data=bytes(8))),
        ),
        **said,  # type: ignore[arg-type]
    )
    function = Function(name="f", domain="local", value_info=(value,), **said)  # type: ignore[arg-type]
    return Model(ir_version=10, graph=graph, functions=(function,), opset_import=(OperatorSetId("", 20),), **said)  # type: ignore[arg-type]


def test_sde4onnx_every_doc_string_goes_at_once_and_the_bytes_are_told() -> None:
    before = _documented()
    assert onnxjson.dumps(before).count('"what it is"') == 16
    result = run(before, Strip())
    assert "what it is" not in onnxjson.dumps(result.model)
    assert '"why"' not in onnxjson.dumps(result.model)
    assert onnxjson.dumps(result.model).count("a value") == onnxjson.dumps(before).count("a value")
    assert result.matches == 18
    saved = message_size(before) - message_size(result.model)
    assert abs(saved - 16 * 12 - 2 * 5) < 20


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (("metadata",), ["a value"]),
        (("value_info",), []),
        (("names",), ['"n"']),
        (("doc_strings", "names"), ["what it"]),
    ],
)
def test_strip_takes_what_it_is_asked_for(what: tuple[str, ...], words: list[str]) -> None:
    after = apply(_documented(), Strip(what=what))  # type: ignore[arg-type]
    text = onnxjson.dumps(after)
    assert not [word for word in words if word in text]
    assert bool(_graph(after).value_info) == ("value_info" not in what)


def test_sde4onnx_strip_can_be_limited_to_elements_and_to_a_place() -> None:
    only_nodes = apply(_documented(), Strip(of=("node",)))
    assert onnxjson.dumps(only_nodes).count("what it is") == 13
    below = apply(_documented(), Strip(below="/graph/node/0/attribute/then_branch"))
    assert onnxjson.dumps(below).count("what it is") == 13
    assert run(below, Strip(below="/graph/node/0/attribute/then_branch")).matches == 0
    with pytest.raises(SelectorError):
        apply(_documented(), Strip(below="/graph/node/7"))


@pytest.mark.parametrize("name", EXPORTED)
def test_stripping_an_export_can_be_undone(name: str) -> None:
    before = exported(name)
    after = apply(before, Strip(what=("doc_strings", "metadata", "value_info", "names")))
    require_valid(after)
    assert plan(before, Strip(what=("names",))).invert().apply(apply(before, Strip(what=("names",)))) == before


CONSTANTS = """g (float[2] x) => (float[2] y, float[2] k) {
   [one] a = Constant <value = float[2] {1, 2}> ()
   b = Constant <value_float = 2.5> ()
   i = Constant <value_ints = [1, 2]> ()
   k = Constant <value_floats = [1.5, 2.5]> ()
   f = Cast <to = 1> (i)
   s = Add(a, f)
   t = Mul(s, b)
   y = Add(x, t)
}"""


def test_constants_become_initializers_and_nodes_again() -> None:
    before = model_of(CONSTANTS)
    result = run(before, ConstantsToInitializers())
    assert [(tensor.name, tensor.data_type, tensor.dims) for tensor in _graph(result.model).initializer] == [
        ("a", 1, (2,)),
        ("b", 1, ()),
        ("i", 7, (2,)),
    ]
    assert result.outcomes[0].notes == ("1 Constant node stays: it is an output of its graph",)
    require_valid(result.model)
    require_same_results(before, result.model, sample_inputs(before))
    back = apply(result.model, InitializersToConstants())
    assert [node.op_type for node in _graph(back).node][:3] == ["Constant"] * 3
    assert not _graph(back).initializer
    require_valid(back)
    require_same_results(before, back, sample_inputs(before))


def test_constants_of_functions_stay_and_that_is_said() -> None:
    before = model_of(
        """g (float[2] x) => (float[2] y) { y = local.f(x) }
        <domain: "local", opset_import: ["" : 20]> f (x) => (y) { c = Constant <value_float = 1.0> () y = Add(x, c) }"""
    )
    result = run(before, ConstantsToInitializers())
    assert result.model is before or result.model == before
    assert "functions" in result.outcomes[0].notes[0] or "function" in result.outcomes[0].notes[0]
    with pytest.raises(EditError, match="function"):
        apply(before, ConstantsToInitializers(node="output:c"))


def test_old_models_cannot_have_initializers_of_their_own() -> None:
    with pytest.raises(EditError, match="IR version 4"):
        apply(replace(model_of(CONSTANTS), ir_version=3), ConstantsToInitializers())


@pytest.mark.parametrize("name", ["mobile_ts.onnx", "encoder_ts.onnx"])
def test_constants_of_an_export_become_initializers(name: str) -> None:
    before = exported(name)
    after = apply(before, ConstantsToInitializers())
    assert not [node for node in _graph(after).node if node.op_type == "Constant"]
    require_valid(after)
    require_same_results(before, after, sample_inputs(before, {"batch": 2, "length": 5}))


def test_scs4onnx_constant_becomes_an_input_and_its_values_a_file(tmp_path: Path) -> None:
    before = _with_constants(_floats("a", 1, 2), _floats("b", 3, 4))
    edit = InitializersToInputs(tensor="b", save="b.npy")
    after = apply(before, edit, folder=tmp_path)
    require_valid(after)
    assert [each.name for each in _graph(after).input] == ["x", "b"]
    values = numpy.load(tmp_path / "b.npy")
    x = numpy.array([1, 1], numpy.float32)
    from tests.editing.graphs import run as computed

    assert computed(after, {"x": x, "b": values})[0].tobytes() == computed(before, {"x": x})[0].tobytes()
    with pytest.raises(EditError, match="exists"):
        apply(before, edit, folder=tmp_path)
    with pytest.raises(EditError, match="without a folder"):
        apply(before, edit)


def test_plan_writes_no_file(tmp_path: Path) -> None:
    before = _with_constants(_floats("a", 1, 2))
    assert plan(before, InitializersToInputs(tensor="a", save="a.npy"), folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_only_initializers_of_the_main_graph_become_inputs() -> None:
    model = model_of(DEAD)
    for name in ("u", "a", "x"):
        with pytest.raises(EditError):
            apply(model, InitializersToInputs(tensor=name))


def test_default_of_an_input_goes() -> None:
    before = _with_constants(_floats("a", 1, 2))
    graph = _graph(before)
    graph = replace(graph, input=(*graph.input, ValueInfo("a", parse_type("float32[2]"), doc_string="mine")))
    after = apply(replace(before, graph=graph), InitializersToInputs(tensor="a"))
    assert _graph(after).input == graph.input
    onnx.checker.check_model(onnxjson.to_proto(after))
