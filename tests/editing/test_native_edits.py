"""Edits by native code: what they are about changes, and nothing else."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson.editing.edits import apply, plan, run
from onnxjson.editing.inference import InferShapes
from onnxjson.editing.inlining import InlineFunctions
from onnxjson.editing.opsets import ConvertOpset
from onnxjson.model.document import Model, StringStringEntry, TensorAnnotation
from onnxjson.model.errors import EditError
from onnxjson.model.types import format_type
from tests.editing.graphs import model_of

MODELS = Path(__file__).parent.parent / "models"
EXPORTS = sorted(path.stem for path in MODELS.glob("*.onnx"))


def exported(name: str) -> Model:
    return onnxjson.load(MODELS / f"{name}.onnx")


def made(*nodes: onnx.NodeProto, opset: int = 11, **options: object) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "g", [x], [y])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=imports, **options)


def squeezing() -> onnx.ModelProto:
    """A model in which every field stands that the version converter of onnx loses."""
    first = helper.make_node("Relu", ["x"], ["r"], "relu")
    node = helper.make_node("Squeeze", ["r"], ["y"], "squeeze", axes=[1])
    for each in (first, node):
        each.doc_string = "why"
        each.metadata_props.add(key="from", value="here")
        each.MergeFromString(b"\xf2\x7f\x01z")  # a field that nobody knows
    model = made(first, node)
    model.graph.metadata_props.add(key="graph", value="yes")
    model.graph.quantization_annotation.add(tensor_name="r")
    model.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [2, 1, 3]))
    model.MergeFromString(b"\xf2\x7f\x01q")
    return model


def test_conversion_changes_the_nodes_that_became_others_and_nothing_else() -> None:
    before = onnxjson.from_proto(squeezing())
    result = run(before, ConvertOpset(version=13))
    after = result.model
    assert after.graph is not None
    assert before.graph is not None
    assert [node.op_type for node in after.graph.node] == ["Relu", "Constant", "Squeeze"]
    assert after.graph.node[0] is before.graph.node[0]
    old, new = before.graph.node[1], after.graph.node[2]
    assert new == msgspec.structs.replace(old, input=new.input, attribute=())
    restored = msgspec.structs.replace(after.graph, node=before.graph.node)
    assert restored == before.graph
    assert msgspec.structs.replace(after, graph=before.graph, opset_import=before.opset_import) == before
    assert [(each.domain, each.version) for each in after.opset_import] == [("", 13), ("local", 1)]
    assert result.outcomes[0].notes == (
        "1 node changed, 1 added, 0 removed; now defined by opset 13: Relu (1), Squeeze (1)",
    )


def test_the_patch_of_a_conversion_inverts() -> None:
    before = onnxjson.from_proto(squeezing())
    patch = plan(before, ConvertOpset(version=13))
    assert patch.invert().apply(patch.apply(before)) == before


def test_converted_model_computes_the_same() -> None:
    import numpy

    before = onnxjson.from_proto(squeezing())
    after = apply(before, ConvertOpset(version=18))
    x = numpy.arange(6, dtype=numpy.float32).reshape(2, 1, 3) - 2
    outputs = [
        onnxruntime.InferenceSession(onnxjson.to_proto(each).SerializeToString()).run(None, {"x": x})[0]
        for each in (before, after)
    ]
    assert outputs[0].tobytes() == outputs[1].tobytes()


@pytest.mark.parametrize("name", EXPORTS)
def test_conversion_keeps_every_metadata_entry_of_exports(name: str) -> None:
    before = exported(name)
    after = apply(before, ConvertOpset(version=21))
    assert before.graph is not None
    assert after.graph is not None
    counts = [sum(len(node.metadata_props) for node in each.node) for each in (before.graph, after.graph)]
    assert counts[0] == counts[1]
    if name.endswith("dynamo"):
        assert counts[0] > len(before.graph.node)
        assert after.graph == before.graph
    assert after.ir_version == before.ir_version
    assert after.graph.initializer == before.graph.initializer


def test_attributes_that_an_operator_has_no_more_go_where_they_say_what_is_so_without_them() -> None:
    after = apply(exported("mobile_dynamo"), ConvertOpset(version=16))
    assert after.graph is not None
    (mean,) = [node for node in after.graph.node if node.op_type == "ReduceMean"]
    assert [attribute.name for attribute in mean.attribute] == ["keepdims", "axes"]
    assert len(mean.metadata_props) == 5


def test_operators_without_an_adapter_are_all_listed() -> None:
    text = """g (float[1,4,9] x, float[1,1,4,4] y) => (float[1,1,4,4] a, float[1,1,4,4] b, float[1,1,4,4] c) {
        size = Constant<value_ints = [4, 4]>()
        block = Constant<value_ints = [2, 2]>()
        a = Col2Im (x, size, block)
        grid = Constant<value = float[1,4,4,2] {0.0}>()
        b = GridSample (y, grid)
        c = Col2Im (x, size, block)
    }"""
    with pytest.raises(EditError) as caught:
        apply(model_of(text), ConvertOpset(version=15))
    assert str(caught.value) == (
        'version 15 of the operators cannot express the node of "a" (/graph/node/2): onnx has no conversion of Col2Im '
        "to it; Col2Im (2) needs version 18, GridSample (1) needs version 20; convert to version 20 or newer, or "
        "replace the node first"
    )


def test_where_no_operator_changed_only_the_import_does() -> None:
    before = exported("mobile_dynamo")
    result = run(before, ConvertOpset(version=18))
    assert result.model.graph is before.graph
    assert result.outcomes[0].notes == ("no operator of the model differs in version 18; only opset_import changes",)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (ConvertOpset(version=999), r"the default domain has versions 1 to \d+; 999 is not one of them"),
        (ConvertOpset(version=2, domain="local"), 'onnx does not know the operators of the domain "local"'),
        (
            ConvertOpset(version=2, domain="other"),
            'the model does not import the domain "other"; it imports the default',
        ),
    ],
)
def test_conversion_that_means_nothing_is_refused(edit: ConvertOpset, message: str) -> None:
    with pytest.raises(EditError, match=message):
        apply(onnxjson.from_proto(squeezing()), edit)


def test_nodes_in_functions_are_refused_and_say_what_to_do() -> None:
    body = helper.make_function(
        "local", "F", ["a"], ["b"], [helper.make_node("Squeeze", ["a"], ["b"], axes=[1])], [helper.make_opsetid("", 11)]
    )
    model = onnxjson.from_proto(made(helper.make_node("F", ["x"], ["y"], domain="local"), functions=[body]))
    with pytest.raises(EditError, match=r"Squeeze \(1\) changed .* in bodies of functions.*; inline them first"):
        apply(model, ConvertOpset(version=13))
    converted = apply(model, [InlineFunctions(), ConvertOpset(version=13)])
    assert converted.graph is not None
    assert [node.op_type for node in converted.graph.node] == ["Constant", "Squeeze"]


def test_subgraphs_are_converted_too() -> None:
    then, other = [
        helper.make_graph(
            [helper.make_node("Squeeze", ["x"], [name], axes=[1])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        )
        for name in ("one", "other")
    ]
    model = made(helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other))
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    after = apply(onnxjson.from_proto(model), ConvertOpset(version=13))
    assert after.graph is not None
    bodies = [attribute.g for attribute in after.graph.node[0].attribute]
    assert [[node.op_type for node in body.node] for body in bodies if body] == [["Constant", "Squeeze"]] * 2
    assert [attribute.name for attribute in after.graph.node[0].attribute] == ["else_branch", "then_branch"]


def test_a_constant_in_a_file_is_read_and_never_taken_for_nothing(tmp_path: Path) -> None:
    # The converter of onnx 1.23 takes axes that stand in a file for no axes at all.
    model = made(helper.make_node("Squeeze", ["x", "axes"], ["y"]), opset=13)
    tensor = model.graph.initializer.add(name="axes", data_type=TensorProto.INT64, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes((1).to_bytes(8, "little"))
    before = onnxjson.from_proto(model)
    after = apply(before, ConvertOpset(version=11), folder=tmp_path)
    assert after.graph is not None
    assert [attribute.ints for attribute in after.graph.node[0].attribute] == [(1,)]
    with pytest.raises(EditError, match=r"onnx cannot convert Squeeze to it .* convert to version 13"):
        apply(before, ConvertOpset(version=11))


def test_sparse_constants_survive_the_converter() -> None:
    model = made(
        helper.make_node("Squeeze", ["x"], ["s"], axes=[1]), helper.make_node("Add", ["s", "w"], ["y"]), opset=11
    )
    sparse = model.graph.sparse_initializer.add(dims=[3])
    sparse.values.CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]))
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [1], [2]))
    before = onnxjson.from_proto(model)
    after = apply(before, ConvertOpset(version=13))
    assert after.graph is not None
    assert before.graph is not None
    assert after.graph.sparse_initializer is before.graph.sparse_initializer
    assert after.graph.initializer == ()


@pytest.mark.parametrize("name", EXPORTS)
def test_inference_fills_in_what_is_not_said_and_keeps_the_rest(name: str) -> None:
    before = exported(name)
    result = run(before, InferShapes())
    after = result.model
    assert before.graph is not None
    assert after.graph is not None
    assert after.graph.node is before.graph.node or not name.endswith("dynamo")
    assert [node.metadata_props for node in after.graph.node] == [node.metadata_props for node in before.graph.node]
    assert after.graph.value_info[: len(before.graph.value_info)] == before.graph.value_info
    typed = {each.name for each in (*after.graph.value_info, *after.graph.output)}
    assert {output for node in after.graph.node for output in node.output if output} <= typed
    restored = msgspec.structs.replace(after.graph, value_info=before.graph.value_info, node=before.graph.node)
    assert restored == before.graph
    assert apply(after, InferShapes()) == after


def test_inference_reports_what_cannot_be_and_replaces_it_only_when_asked() -> None:
    model = made(helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["y"]))
    model.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [2, 1, 4]))
    before = onnxjson.from_proto(model)
    result = run(before, InferShapes())
    assert result.model.graph is not None
    assert format_type(result.model.graph.value_info[0].type or onnxjson.Type()) == "float32[2,1,4]"


def test_inference_gives_dimensions_no_invented_names() -> None:
    model = made(helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Cast", ["n"], ["y"], to=1))
    after = apply(onnxjson.from_proto(model), InferShapes())
    assert after.graph is not None
    assert [format_type(each.type or onnxjson.Type()) for each in after.graph.value_info] == ["int64[3,?]"]


def test_weights_are_not_shown_to_native_code() -> None:
    """A model of more bytes than protobuf reads has its types inferred and is converted."""
    from onnxjson.model.payloads import Payload

    class Endless(Payload):
        """A payload that nobody may read."""

        __slots__ = ()

        def chunks(self):  # type: ignore[no-untyped-def]
            raise AssertionError("it is read")

    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    small = onnxjson.from_proto(made(node, opset=17))
    weight = onnxjson.Tensor(name="w", data_type=1, dims=(3, 2**30), raw_data=Endless(12 * 2**30))
    assert small.graph is not None
    big = msgspec.structs.replace(small, graph=msgspec.structs.replace(small.graph, initializer=(weight,)))
    for edit in (InferShapes(), ConvertOpset(version=13), InlineFunctions()):
        after = apply(big, edit)
        assert after.graph is not None
        assert after.graph.initializer[0] is weight


def test_functions_are_inlined_with_the_metadata_of_their_nodes() -> None:
    inner = helper.make_node("Relu", ["a"], ["t"], "inner")
    inner.metadata_props.add(key="layer", value="1")
    body = helper.make_function(
        "local", "F", ["a"], ["b"], [inner, helper.make_node("Neg", ["t"], ["b"])], [helper.make_opsetid("", 17)]
    )
    kept = helper.make_node("Abs", ["x"], ["u"], "abs")
    kept.metadata_props.add(key="k", value="v")
    kept.MergeFromString(b"\xf2\x7f\x01z")
    model = made(
        kept,
        helper.make_node("F", ["u"], ["w"], domain="local"),
        helper.make_node("F", ["w"], ["y"], domain="local"),
        opset=17,
        functions=[body],
    )
    before = onnxjson.from_proto(model)
    assert before.graph is not None
    annotated = msgspec.structs.replace(
        before.graph,
        quantization_annotation=(
            TensorAnnotation(
                tensor_name="w", quant_parameter_tensor_names=(StringStringEntry(key="SCALE_TENSOR", value="u"),)
            ),
        ),
    )
    before = msgspec.structs.replace(before, graph=annotated)
    result = run(before, InlineFunctions())
    after = result.model
    assert after.graph is not None
    assert after.functions == ()
    assert Counter(node.op_type for node in after.graph.node) == {"Abs": 1, "Relu": 2, "Neg": 2}
    assert after.graph.node[0] is annotated.node[0]
    assert [len(node.metadata_props) for node in after.graph.node] == [1, 1, 0, 1, 0]
    assert after.graph.quantization_annotation is annotated.quantization_annotation
    assert after.ir_version == before.ir_version
    assert result.outcomes[0].notes == ("2 calls were replaced by 4 nodes",)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("before", "after"), [(13, 21), (21, 13)])
def test_conversion_keeps_what_every_operator_computes_or_is_refused(before: int, after: int) -> None:
    import numpy

    from onnxjson.editing.new_models.operator_model import OperatorSpec, make_operator
    from onnxjson.model.errors import OnnxJsonError
    from onnxjson.model.operators import all_operators, operator_signature
    from tests.editing.test_operator_model import random_value

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1

    def results(model: Model, inputs: dict[str, Any]) -> list[Any]:
        session = onnxruntime.InferenceSession(onnxjson.to_proto(model).SerializeToString(), options)
        generator = numpy.random.default_rng(0)
        for value in session.get_inputs():
            inputs.setdefault(value.name, random_value(value, generator))
        found: list[Any] = session.run(None, inputs)
        return found

    compared = 0
    for name in sorted({name for domain, name, _ in all_operators() if not domain}):
        signature = operator_signature("", name, before)
        if signature is None or signature.deprecated:
            continue
        model = make_operator(OperatorSpec(name, "", before))
        inputs: dict[str, Any] = {}
        with suppress(OnnxJsonError):
            converted = apply(model, ConvertOpset(version=after))
            for one, other in zip(results(model, inputs), results(converted, inputs), strict=True):
                numpy.testing.assert_equal(numpy.shape(one), numpy.shape(other), name)
                if numpy.asarray(one).dtype.kind == "f":
                    numpy.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=name)
                else:
                    assert numpy.array_equal(one, other), name
            compared += 1
    assert compared >= 140


def test_inlined_functions_compute_with_the_defaults_of_their_attributes() -> None:
    """The inliner of onnx forgets them, and LeakyRelu then has its own default."""

    def local(name: str, *nodes: onnx.NodeProto, opset: int, alpha: float) -> onnx.FunctionProto:
        imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
        default = [helper.make_attribute("alpha", alpha)]
        return helper.make_function("local", name, ["a"], ["b"], nodes, imports, [], default)

    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT))
    call = helper.make_node("Leaky", ["a"], ["b"], domain="local")
    functions = [
        local("Leaky", leaky, opset=18, alpha=0.25),
        local("Outer", call, opset=18, alpha=0.5),
        local("Stays", leaky, opset=11, alpha=0.75),
    ]
    nodes = [
        helper.make_node("Outer", ["x"], ["a"], domain="local"),
        helper.make_node("Leaky", ["a"], ["b"], domain="local"),
        helper.make_node("Leaky", ["b"], ["c"], domain="local", alpha=0.125),
        helper.make_node("Stays", ["c"], ["y"], domain="local"),
    ]
    before = onnxjson.from_proto(made(*nodes, opset=18, functions=functions))
    after = apply(before, InlineFunctions())
    assert after.graph is not None
    assert before.graph is not None
    assert [node.op_type for node in after.graph.node] == ["LeakyRelu"] * 3 + ["Stays"]
    assert after.graph.node[3] == before.graph.node[3]
    found = [float(helper.get_attribute_value(node.attribute[0])) for node in onnxjson.to_proto(after).graph.node[:3]]
    assert found == [0.25, 0.25, 0.125]


@pytest.mark.parametrize("version", [13, 14])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_an_operator_whose_definition_uses_newer_ones_becomes_old_ones(version: int, approximate: str) -> None:
    before = onnxjson.from_proto(made(helper.make_node("Gelu", ["x"], ["y"], approximate=approximate), opset=20))
    after = apply(before, ConvertOpset(version=version))
    assert after.graph is not None
    assert not {node.op_type for node in after.graph.node} & {"Gelu", "CastLike"}
    assert onnxjson.verify(before, after).equal
