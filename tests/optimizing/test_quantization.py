"""quantize-dynamic and quantize-static: what they make, from which values, and what they say it costs."""

import re
from pathlib import Path

import numpy
import pytest
from msgspec.structs import replace
from onnx import TensorProto, helper

from onnxjson.model.document import Graph, Model, OperatorSetId
from onnxjson.model.errors import PassError
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.optimizing.passes import PassResult, Pipeline, parse_step
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.running.input_files import message_of_value
from onnxjson.storage import api
from tests.optimizing.number_models import model_of

GENERATOR = numpy.random.default_rng(0)
NEW = (OperatorSetId(domain="", version=21),)
DATA = GENERATOR.uniform(-3.0, 3.0, (5, 2, 16)).astype(numpy.float32)


@pytest.fixture(scope="module")
def model() -> Model:
    weights = {name: GENERATOR.standard_normal((16, 16)).astype(numpy.float32) for name in ("v", "w")}
    weights["w"][:, 0] *= 50  # one channel that is much larger than the others
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "v"], ["y"], "second"),
    ]
    return model_of(nodes, weights, columns=16)


def made_by(model: Model, spelled: str) -> PassResult:
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(spelled)])
    return made


def graph_of(made: PassResult) -> Graph:
    graph = made.after.model.graph
    assert graph is not None
    return graph


def operators(made: PassResult) -> list[str]:
    return [node.op_type or "" for node in graph_of(made).node]


def error(made: PassResult) -> float:
    found = [re.match(r"y .*: largest error ([^\s,]+)", note) for note in made.notes]
    return float(next(match[1] for match in found if match))


def test_dynamic_makes_integers_of_weights_and_tells_the_cost(model: Model) -> None:
    results = made_by(model, "quantize-dynamic")
    assert operators(results).count("MatMulInteger") == 2
    assert any(re.fullmatch(r"[\d,]+ bytes (saved|more) \(\d+%\)", note) for note in results.notes)
    assert any(re.fullmatch(r"y \(float32\): largest error \S+, \S+ of the largest value, cosine 0.\d+", note)
               for note in results.notes)  # fmt: skip


@pytest.mark.parametrize(("options", "operator"), [
    ("", "MatMulNBits"), ("{method=rtn}", "MatMulNBits"), ("{format=qdq}", "DequantizeLinear"),
])  # fmt: skip
def test_weights_are_packed_in_blocks(model: Model, options: str, operator: str) -> None:
    made = made_by(replace(model, opset_import=NEW), f"quantize-weights{options}")
    assert operators(made).count(operator) == 2
    assert 0 < error(made) < 200  # some outputs are near 1,000


def test_more_bits_lose_less_and_named_nodes_stay(model: Model) -> None:
    four, eight = made_by(model, "quantize-weights"), made_by(model, "quantize-weights{bits=8,symmetric=false}")
    assert error(eight) < error(four) / 4
    assert operators(made_by(model, "quantize-weights{skip_nodes=[first]}")) == ["MatMul", "Relu", "MatMulNBits"]


@pytest.mark.parametrize(("options", "said"), [
    ("bits=6", "2, 4 or 8"), ("method=rtn,bits=8", "4 bits"), ("method=rtn,format=qdq", "MatMulNBits"),
    ("skip_nodes=[third]", 'no node "third"'), ("method=hqq", "needs torch"),
])  # fmt: skip
def test_what_the_quantizer_of_weights_cannot_do_is_said(model: Model, options: str, said: str) -> None:
    if "hqq" in options and is_installed("torch"):
        pytest.skip("it tests the message about torch where that is not installed")
    with pytest.raises(PassError, match=said):
        made_by(replace(model, opset_import=NEW), f"quantize-weights{{{options}}}")


def test_blocks_of_other_runtimes_need_the_operator_set(model: Model) -> None:
    with pytest.raises(PassError, match="qdq needs opset 21, not 17"):
        made_by(model, "quantize-weights{format=qdq}")


def test_static_puts_pairs_around_operators_or_takes_other_operators(model: Model) -> None:
    pairs, others = made_by(model, "quantize-static"), made_by(model, "quantize-static{format=qoperator}")
    assert {"QuantizeLinear", "DequantizeLinear", "MatMul"} <= set(operators(pairs))
    assert "QLinearMatMul" in operators(others)
    assert "MatMul" not in operators(others)


@pytest.mark.parametrize("kind", ["quantize-dynamic", "quantize-static"])
def test_a_scale_for_each_channel_loses_less(model: Model, kind: str) -> None:
    assert error(made_by(model, f"{kind}{{per_channel=true}}")) < error(made_by(model, kind))


def test_the_same_again_is_the_same_bytes(model: Model) -> None:
    assert made_by(model, "quantize-static").after.data == made_by(model, "quantize-static").after.data
    assert made_by(model, "quantize-static{seed=1}").after.data != made_by(model, "quantize-static").after.data


def scale_of_input(made: PassResult) -> float:
    graph = graph_of(made)
    node = next(node for node in graph.node if node.op_type == "QuantizeLinear" and node.input[0] == "x")
    tensor = next(each for each in graph.initializer if each.name == node.input[1])
    return float(to_numpy(tensor))


def archive_of_samples(folder: Path) -> Path:
    numpy.savez(folder / "data.npz", x=DATA)
    return folder / "data.npz"


def archives(folder: Path) -> Path:
    numpy.savez(folder / "one.npz", x=DATA.reshape(-1, 16)[:2])
    return folder / "one.npz"


def folder_of_test_data(folder: Path) -> Path:
    for number, array in enumerate(DATA):
        (folder / f"test_data_set_{number}").mkdir()
        (folder / f"test_data_set_{number}" / "input_0.pb").write_bytes(message_of_value(from_numpy(array)))
    return folder


@pytest.mark.parametrize(("write", "used"), [
    (archive_of_samples, DATA), (archives, DATA.reshape(-1, 16)[:2]), (folder_of_test_data, DATA),
])  # fmt: skip
def test_ranges_come_from_the_values_that_are_given(model: Model, tmp_path: Path, write, used) -> None:  # type: ignore[no-untyped-def]
    made = made_by(model, f'quantize-static{{data=["{write(tmp_path)}"]}}')
    span = max(used.max(), 0) - min(used.min(), 0)
    assert scale_of_input(made) == pytest.approx(span / 255, rel=1e-3)


def test_nodes_that_are_named_stay_as_they_are(model: Model) -> None:
    assert operators(made_by(model, "quantize-dynamic{skip_nodes=[first]}")).count("MatMulInteger") == 1
    assert operators(made_by(model, "quantize-dynamic{nodes=[second]}")).count("MatMulInteger") == 1
    with pytest.raises(PassError, match='there is no node "third"'):
        made_by(model, "quantize-dynamic{nodes=[third]}")


def test_a_file_of_values_that_is_none_is_named(model: Model, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1")
    with pytest.raises(PassError, match=r"is not a \.npz file and not a folder of test data"):
        made_by(model, f"quantize-static{{data=[{tmp_path / 'data.txt'}]}}")


def test_metadata_and_versions_are_those_of_the_model(model: Model) -> None:
    proto = api.to_proto(model)
    proto.metadata_props.add(key="mine", value="1")
    made = made_by(api.from_proto(proto), "quantize-dynamic").after.model
    assert [each.key for each in made.metadata_props] == ["mine"]
    assert [(each.domain or "", each.version) for each in made.opset_import] == [("", 17)]


def test_open_dimensions_get_the_sizes_that_are_named(model: Model) -> None:
    proto = api.to_proto(model)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    open_model = api.from_proto(proto)
    for spelled in ("quantize-static", "quantize-static{dims={N: 3}}"):
        assert error(made_by(open_model, spelled)) > 0
    with pytest.raises(PassError, match='no dynamic dimension "M"'):
        made_by(open_model, "quantize-static{dims={M: 3}}")


def test_open_dimensions_get_sizes_that_the_model_takes() -> None:
    """A softmax along an axis of size 1 would show nothing; two inputs that are added must be alike."""
    proto = api.to_proto(
        model_of(
            [
                helper.make_node("MatMul", ["x", "w"], ["h"], "matmul"),
                helper.make_node("Add", ["h", "z"], ["s"], "add"),
                helper.make_node("Softmax", ["s"], ["y"], "softmax", axis=0),
            ],
            {"w": GENERATOR.standard_normal((16, 16)).astype(numpy.float32)},
            columns=16,
        )
    )
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    proto.graph.input.add().CopyFrom(proto.graph.input[0])
    proto.graph.input[1].name = "z"
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "M"
    assert error(made_by(api.from_proto(proto), "quantize-static")) > 0


@pytest.mark.parametrize("kind", ["qdq", "qoperator"])
def test_a_bias_that_others_take_too_is_quantized_for_each(kind: str) -> None:
    generator = numpy.random.default_rng(3)  # its products stay in int16, to which some processors saturate
    weights = {name: generator.standard_normal((16, 16)).astype(numpy.float32) for name in ("v", "w")}
    weights["w"] *= 100
    weights["b"] = generator.standard_normal(16).astype(numpy.float32)
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "v", "b"], ["g"], "first"),
        helper.make_node("Gemm", ["g", "w", "b"], ["h"], "second"),
        helper.make_node("Add", ["h", "b"], ["y"], "add"),
    ]
    made = made_by(model_of(nodes, weights, columns=16), f"quantize-static{{format={kind}}}")
    text = next(note for note in made.notes if note.startswith("y "))
    assert float(re.findall(r"([0-9.e-]+) of the largest", text)[0]) < 0.1


def test_a_node_whose_subgraph_uses_a_quantized_value_comes_after_it() -> None:
    """The quantizer of onnxruntime sorts by inputs of nodes alone."""
    value = helper.make_tensor_value_info
    branches = [
        helper.make_graph([helper.make_node("Relu", ["h"], [name])], name, [], [value(name, TensorProto.FLOAT, None)])
        for name in ("a", "b")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
        helper.make_node("If", ["yes"], ["y"], "if", then_branch=branches[0], else_branch=branches[1]),
    ]
    weights = {"w": GENERATOR.standard_normal((16, 16)).astype(numpy.float32), "yes": numpy.array(True)}
    made = made_by(model_of(nodes, weights, columns=16), "quantize-dynamic{preprocess=false}")
    assert operators(made)[-1] == "If"
    assert "MatMulInteger" in operators(made)


@pytest.mark.parametrize("kind", ["quantize-dynamic", "quantize-static", "quantize-weights"])
def test_a_model_of_which_nothing_is_quantized_is_refused(kind: str) -> None:
    relu = model_of([helper.make_node("Relu", ["x"], ["y"])], {}, columns=16)
    with pytest.raises(PassError, match="nothing to convert: the model has no"):
        made_by(relu, kind)
