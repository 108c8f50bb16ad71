"""Passes that are made of onnxruntime: what they do to small models, and that no model harms this process."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from msgspec.structs import replace
from onnx import TensorProto, helper, numpy_helper

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Model
from onnxjson.model.errors import PassError
from onnxjson.model.index import Index
from onnxjson.optimizing.passes import PassResult, Pipeline, files_written, parse_step
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.optimizing.passes.onnxruntime import RULES, machine
from onnxjson.storage import files
from tests.optimizing.networks import convolution
from tests.optimizing.sweep import EXPORTS, cases, swept

LEVELS = [f"onnxruntime{{level={level}}}" for level in ("basic", "extended", "layout", "all")]
NODE_MODELS = 40
BATCHES = 4

needs_sympy = pytest.mark.skipif(not is_installed("sympy"), reason="sympy is not installed")


def made_by(model: Model, spelling: str) -> PassResult:
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(spelling)])
    return made


def operators(made: PassResult) -> list[str]:
    return [ref.node.op_type or "" for ref in Index(made.after.model).nodes()]


def named(*dims: str | int) -> Model:
    """An input twice, one after the other, and Relu."""
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["f"], "twice", axis=0),
        helper.make_node("Relu", ["f"], ["y"], "relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return serde.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


def test_functions_that_onnxruntime_inlines_wrongly_are_an_error() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "my" : 1]>
        g (float[N] x, bool c) => (float[N] y) { y = my.outer(x, c) }
        <domain: "my", opset_import: ["" : 18]> inner (x) => (y) { t = Tanh(x) y = Neg(t) }
        <domain: "my", opset_import: ["" : 18, "my" : 1]> outer (x, c) => (z) {
          a = my.inner(x)
          z = If (c) <then_branch = one () => (b) { b = my.inner(a) }, else_branch = two () => (d) { d = Neg(a) }>
        }"""
    with pytest.raises(PassError, match="run inline-functions first"):
        made_by(serde.from_proto(onnx.parser.parse_model(text)), "onnxruntime")


def adapted() -> Model:
    """A linear layer with a LoRA adapter, as TorchScript names its nodes."""

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(np.ones(shape, np.float32), name)

    nodes = [
        helper.make_node("MatMul", ["x", "base"], ["b"], "/q_proj/base_layer/MatMul"),
        helper.make_node("MatMul", ["x", "onnx::MatMul_1"], ["a"], "/q_proj/lora_A/default/MatMul"),
        helper.make_node("MatMul", ["a", "onnx::MatMul_2"], ["d"], "/q_proj/lora_B/default/MatMul"),
        helper.make_node("Add", ["b", "d"], ["y"], "/q_proj/Add"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
        [weight("base", 8, 8), weight("onnx::MatMul_1", 8, 2), weight("onnx::MatMul_2", 2, 8)],
    )
    return serde.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


@pytest.mark.parametrize("batch", [0, 1, *[pytest.param(at, marks=pytest.mark.exhaustive) for at in range(2, BATCHES)]])
def test_every_level_runs_on_exported_and_node_models_and_the_parent_lives(batch: int) -> None:
    failed = []
    with Pipeline(keep_going=True, seconds=30) as pipeline:
        for case in list(cases(EXPORTS, NODE_MODELS))[batch::BATCHES]:
            made = list(swept(case, LEVELS, pipeline))
            assert [each.step for each in made] == [parse_step(level) for level in LEVELS]
            failed += [f"{case.name}: {each.failure}" for each in made if each.failure is not None]
    # onnxruntime refuses models that are newer than itself, of training and of types that it has no kernels for.
    assert all("onnxruntime" in each for each in failed)


def test_metadata_of_nodes_that_onnxruntime_loses_is_reported() -> None:
    made = made_by(convolution(with_metadata=True), "onnxruntime")
    assert any("metadata" in note for note in made.notes)


def test_a_producer_named_like_the_mark_of_another_format_is_a_name() -> None:
    # Its bytes 4 to 8 are ORTM, by which onnxruntime tells its own format.
    made = made_by(replace(named("N", 3), producer_name="ORTMODEL"), "onnxruntime")
    assert operators(made) == ["Concat", "Relu"]
    assert message_bytes(made.before.model)[4:8] == b"ORTM"


def test_every_rule_that_is_left_out_by_name_is_one_of_this_onnxruntime() -> None:
    import onnxruntime.capi

    folder = Path(onnxruntime.capi.__path__[0])
    library = next(folder.glob("onnxruntime_pybind11_state*.so")).read_bytes()
    assert [rule for rule in RULES if b"\0" + rule.encode() + b"\0" not in library] == []


def test_the_machine_is_said_with_what_decides_on_layouts() -> None:
    assert machine().split(" with ")[0]


def test_a_run_stops_after_a_named_transformer() -> None:
    model = files.load(EXPORTS / "mobile_ts.onnx").model
    folded, whole = made_by(model, "onnxruntime{until=ConstantFolding}"), made_by(model, "onnxruntime{level=extended}")
    assert "FusedConv" in operators(whole)
    assert "FusedConv" not in operators(folded)
    assert len(operators(folded)) < len(model.graph.node if model.graph else ())
    with pytest.raises(PassError, match=r'that changes this model "ConstantFoldin"; did you mean "ConstantFolding"'):
        made_by(model, "onnxruntime{until=ConstantFoldin}")


def test_the_configuration_of_a_session_reaches_the_optimizer() -> None:
    model = files.load(EXPORTS / "mobile_ts.onnx").model
    named = "onnxruntime{session={optimization.disable_specified_optimizers: ConstantFolding}}"
    assert len(operators(made_by(model, named))) > len(operators(made_by(model, "onnxruntime")))


@needs_sympy
def test_transformers_fuse_without_torch_and_say_what() -> None:
    results = made_by(files.load(EXPORTS / "encoder_ts.onnx").model, "transformers{model_type=bert}")
    (said,) = [note for note in results.notes if note.startswith("fused operators in the result: ")]
    assert "SkipLayerNormalization" in said
    assert "SkipLayerNormalization" in operators(results)


@needs_sympy
def test_a_fusion_of_transformers_can_be_left_out() -> None:
    model = files.load(EXPORTS / "encoder_ts.onnx").model
    made = made_by(model, "transformers{level=none,disable=[skip_layer_norm]}")
    assert "SkipLayerNormalization" not in operators(made)


def test_float16_makes_half_of_the_bytes_and_keeps_inputs_where_it_is_told() -> None:
    model = convolution()
    half, kept = made_by(model, "float16"), made_by(model, "float16{keep_io_types}")
    assert "inputs have other types: x" in half.notes
    assert "inputs have other types: x" not in kept.notes
    assert operators(kept)[0] == operators(kept)[-1] == "Cast"


@needs_sympy
def test_symbolic_shapes_calculate_with_names() -> None:
    made = made_by(named("N", 3, "H"), "symbolic-shapes")
    assert made.after.model.graph is not None
    (output,) = made.after.model.graph.output
    assert output.type is not None
    assert output.type.tensor_type is not None
    assert output.type.tensor_type.shape is not None
    assert [dim.dim_param or dim.dim_value for dim in output.type.tensor_type.shape.dim] == ["2*N", 3, "H"]


@pytest.mark.parametrize("is_big", [False, True])
def test_symbolic_shapes_that_cannot_be_inferred_are_refused_with_advice(
    is_big: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxjson.optimizing.passes import big_constants
    from onnxjson.storage.external_files import externalize
    from tests.benchmarks.llama import small

    model = externalize(serde.from_proto(small()), tmp_path / "w.data").model
    if is_big:
        monkeypatch.setattr(big_constants, "LIMIT", 4000)
        monkeypatch.setattr(big_constants, "VISIBLE", 1024)
    model = big_constants.InternalizedModel(model, tmp_path).model
    with pytest.raises(PassError, match="not every shape can be inferred; auto_merge=true"), Pipeline() as pipeline:
        list(pipeline.run(model, [parse_step("symbolic-shapes")], tmp_path))


def test_extract_adapters_makes_inputs_of_the_weights_and_saves_them(tmp_path: Path) -> None:
    place = tmp_path / "adapter.npz"
    results = made_by(adapted(), f"extract-adapters{{save={place}}}")
    assert results.after.model.graph is not None
    assert [each.name for each in results.after.model.graph.input] == ["x", "onnx::MatMul_1", "onnx::MatMul_2"]
    assert [each.name for each in results.after.model.graph.initializer] == ["base"]
    assert not place.exists()  # it is not known yet whether the model is saved
    with files_written(results.files):
        pass
    with np.load(place) as saved:
        assert {name: saved[name].shape for name in saved.files} == {"onnx::MatMul_1": (8, 2), "onnx::MatMul_2": (2, 8)}
    kept = made_by(adapted(), "extract-adapters{keep_defaults}").after.model.graph
    assert kept is not None
    assert len(kept.initializer) == len(kept.input) == 3
    with pytest.raises(PassError, match="no weight belongs to a loha adapter"):
        made_by(adapted(), "extract-adapters{kind=loha}")
    with pytest.raises(PassError, match="not a valid regular expression"):
        made_by(adapted(), 'extract-adapters{pattern="("}')
    with pytest.raises(PassError, match="exists"):
        made_by(adapted(), f"extract-adapters{{save={place}}}")


def test_qnn_preprocess_names_nodes_and_leaves_alone_what_has_names() -> None:
    model = convolution()
    assert not made_by(model, "qnn-preprocess").is_changed
    assert model.graph is not None
    made = made_by(named(2, 3, 4), "qnn-preprocess{inputs_channel_last=[x]}")
    assert "Transpose" in operators(made)
