"""onnxoptimizer, pass by pass."""

import pytest

from onnxjson.codecs import serde
from onnxjson.model.document import Model
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer
from tests.optimizing.sweep import EXPORTS, Case, cases, swept

pytestmark = pytest.mark.skipif(not is_installed("onnxoptimizer"), reason="onnxoptimizer is not installed")

NODE_MODELS = 32
BATCHES = 16

REFUSED = {"lift_lexical_references", "split_init", "split_predict"}
"""Passes that fail on some models, or leave them in pieces; they are known for it."""


def test_every_pass_of_the_installed_version_is_declared() -> None:
    import onnxoptimizer

    assert set(Onnxoptimizer.parts) == set(onnxoptimizer.get_available_passes())
    assert len(Onnxoptimizer.parts) == 48
    assert len(onnxoptimizer.get_fuse_and_elimination_passes()) == 39


@pytest.mark.parametrize(
    "batch", [pytest.param(at, marks=pytest.mark.exhaustive if at % 8 else ()) for at in range(BATCHES)]
)
def test_every_pass_runs_on_exported_and_node_models_and_the_parent_lives(batch: int) -> None:
    names = [f"onnxoptimizer:{part}" for part in Onnxoptimizer.parts]
    failed: list[str] = []
    with Pipeline(keep_going=True, seconds=20) as pipeline:
        for case in list(cases(EXPORTS, NODE_MODELS))[batch::BATCHES]:
            made = list(swept(case, names, pipeline))
            assert [each.name for each in made] == names
            failed += [each.name for each in made if each.failure is not None]
    assert set(failed) <= {f"onnxoptimizer:{part}" for part in REFUSED}


@pytest.fixture(scope="module")
def conv_bn_relu_reshape() -> Model:
    import numpy
    from onnx import TensorProto, helper, numpy_helper

    rng = numpy.random.default_rng(5)
    shapes = {"w": (4, 3, 3, 3), "scale": (4,), "bias": (4,), "mean": (4,), "var": (4,)}
    weights = [numpy_helper.from_array(rng.random(shape, numpy.float32), name) for name, shape in shapes.items()]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
            helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["b"], "bn"),
            helper.make_node("Relu", ["b"], ["r"], "relu"),
            helper.make_node("Reshape", ["r", "shape"], ["y"], "reshape"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 144))],
        [*weights, numpy_helper.from_array(numpy.array([1, 144]), "shape")],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    return serde.from_proto(model)


def test_fusing_batch_normalization_alone_is_shown_as_nine_more_nodes(conv_bn_relu_reshape: Model) -> None:
    from onnxjson.rendering.pass_list import lines

    with Pipeline() as pipeline:
        fused, folded = pipeline.run(
            conv_bn_relu_reshape, [parse_step("onnxoptimizer:fuse_bn_into_conv"), parse_step("onnxsim")]
        )
    assert lines(fused)[0].startswith("onnxoptimizer:fuse_bn_into_conv: 4 -> 13 nodes, ")
    assert lines(fused)[1].startswith("  the model grew by ")
    assert lines(folded)[0].startswith("onnxsim: 13 -> 3 nodes, ")


def test_what_it_drops_without_a_word_is_reported() -> None:
    from onnx import ModelProto

    proto = ModelProto.FromString((EXPORTS / "mobile_ts.onnx").read_bytes())
    for node in proto.graph.node[:3]:
        node.metadata_props.add(key="k", value="v")
    name = proto.graph.node[0].output[0]
    annotation = proto.graph.quantization_annotation.add(tensor_name=name)
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=proto.graph.initializer[0].name)
    model = serde.from_proto(proto)
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step("onnxoptimizer:nop")])
    assert made.is_changed
    names = ", ".join([node.name or node.output[0] for node in proto.graph.node[:3]])
    assert f"3 remaining nodes lost their metadata: {names}" in made.notes
    assert "quantization annotations of 1 value are lost" in made.notes


def test_versions_are_left_as_they_are() -> None:
    case = Case("branches", (EXPORTS / "branches_ts.onnx").read_bytes())
    with Pipeline() as pipeline:
        (made,) = swept(case, ["onnxoptimizer"], pipeline)
    assert made.is_changed
    assert made.after.model.ir_version == made.before.model.ir_version
    assert not any(["operator sets" in note for note in made.notes])
