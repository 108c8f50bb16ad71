"""Where nodes came from and where they went."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxjson.codecs import serde
from onnxjson.model.document import Model
from onnxjson.model.index import Index
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.optimizing.provenance import Provenance, provenance
from onnxjson.optimizing.trace_records import Trace
from onnxjson.rendering.markdown_reports import trace_markdown
from onnxjson.rendering.tables import plain
from onnxjson.rendering.trace_text import story_lines, subjects_of
from tests.optimizing.networks import branch, convolution
from tests.optimizing.test_traces import traced


def linear(count: int) -> ModelProto:
    """`count` nodes, MatMul and Add in turn, every pair of which onnxruntime fuses."""
    numbers = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for place in range(count // 2):
        names = f"W{place}", f"B{place}", f"m{place}", f"y{place}"
        weights.append(numpy_helper.from_array(numbers.standard_normal((8, 8), np.float32), names[0]))
        weights.append(numpy_helper.from_array(numbers.standard_normal(8, np.float32), names[1]))
        nodes.append(helper.make_node("MatMul", [last, names[0]], [names[2]], f"matmul{place}"))
        nodes.append(helper.make_node("Add", [names[2], names[1]], [names[3]], f"add{place}"))
        last = names[3]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8])] for name in ("x", last))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def by_name(model: Model) -> dict[str, str]:
    return {ref.node.name or "": ref.address for ref in Index(model).nodes()}


def followed(trace: Trace) -> tuple[Provenance, dict[str, str], dict[str, str]]:
    return provenance(trace), by_name(trace.first), by_name(trace.last)


def test_a_fused_node_is_made_of_all_that_were_fused_over_several_parts() -> None:
    trace, _ = traced(convolution(), "onnxruntime{level=extended}")
    found, first, _ = followed(trace)
    (fused,) = [ref for ref in Index(trace.last).nodes() if ref.node.op_type == "FusedConv"]
    story = found.origins[fused.address]
    assert set(story.nodes) == {first["conv"], first["bn"], first["relu"]}
    parts = [trace.steps[touch.step].parts[touch.part].name for touch in story.touches if touch.kind == "fused"]
    assert parts == ["ConvBNFusion", "ConvActivationFusion"]
    for name in ("conv", "bn", "relu"):
        assert fused.address in found.fates[first[name]].nodes


def test_what_nothing_touches_stays_what_it_is() -> None:
    trace, _ = traced(convolution(), "onnxruntime{level=extended}")
    found, first, last = followed(trace)
    assert found.origins[last["reshape"]].nodes == (first["reshape"],)
    assert found.fates[first["reshape"]].nodes == (last["reshape"],)


@pytest.mark.skipif(not is_installed("onnxsim"), reason="onnxsim is not installed")
def test_the_way_goes_through_several_passes() -> None:
    trace, _ = traced(convolution(), "onnxoptimizer:fuse_bn_into_conv", "onnxsim", "onnxruntime{level=extended}")
    found, first, _ = followed(trace)
    (fused,) = [ref for ref in Index(trace.last).nodes() if ref.node.op_type == "FusedConv"]
    assert {first["conv"], first["relu"]} <= set(found.origins[fused.address].nodes)
    gone = found.fates[first["bn"]]
    assert [touch.step for touch in gone.touches][:1] == [0]


def test_nodes_in_subgraphs_are_followed() -> None:
    trace, _ = traced(branch(), "onnxruntime")
    found, first, last = followed(trace)
    assert set(found.origins) == set(last.values())
    gone = [name for name, address in first.items() if not found.fates[address].nodes]
    assert {name for name in gone if "relu" in name} == set()
    for name in last:
        assert found.origins[last[name]].nodes


def test_a_node_that_a_pass_puts_in_has_no_origin_but_a_touch() -> None:
    trace, _ = traced(convolution(), "float16{keep_io_types=true}")
    found, _, _ = followed(trace)
    casts = [ref.address for ref in Index(trace.last).nodes() if ref.node.op_type == "Cast"]
    assert casts
    for address in casts:
        assert found.origins[address].touches


def test_a_rewrite_of_thousands_of_nodes_does_not_make_every_node_of_every_node() -> None:
    trace, _ = traced(serde.from_proto(linear(200)), "onnxruntime")
    found, first, last = followed(trace)
    gemms = [ref for ref in Index(trace.last).nodes() if ref.node.op_type == "Gemm"]
    assert len(gemms) == 100
    for ref in gemms:
        layer = ref.node.output[0].removeprefix("y")
        assert {first[f"matmul{layer}"], first[f"add{layer}"]} == set(found.origins[ref.address].nodes)
    assert len(last) == 100


def test_nodes_of_a_rewrite_that_are_not_told_apart_are_neither_made_of_nothing_nor_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace, _ = traced(convolution(), "onnxruntime{level=extended}")
    monkeypatch.setattr("onnxjson.optimizing.provenance._WIDE", 0)
    monkeypatch.setattr("onnxjson.optimizing.provenance._ancestors_by_name", lambda *_: {})
    found, first, last = followed(trace)
    (fused,) = [ref for ref in Index(trace.last).nodes() if ref.node.op_type == "FusedConv"]
    story = found.origins[fused.address]
    assert (story.nodes, story.among > 1) == ((), True)
    assert found.fates[first["conv"]].among == 1
    subjects = list(
        subjects_of(trace, found, [ref for ref in Index(trace.first).nodes() if ref.node.name == "conv"], [fused])
    )
    for text in ("\n".join(map(plain, story_lines(trace, subjects, 200))), trace_markdown(trace, subjects)):
        assert "ambiguous" in text
        assert "from no node" not in text
        assert "removed" not in text
    assert found.origins[last["reshape"]].among == 0
