"""Long vectors, which are no shapes, do not take memory in the shape inference of onnx."""

import resource
from multiprocessing import get_context

from onnx import ModelProto, helper, parser

from onnxjson.running.shape_inference import inferred_shapes

SIZE = 8_000_000

TEXT = f"""<ir_version: 9, opset_import: ["" : 19]>
g (float[{SIZE}] x, int64[1] at, bool c, int64[N] other) => (float y, float[K] z, int64[A, B] t)
<int64[1] zero = {{0}}, int64[1] ten = {{10}}> {{
    sum = Add(x, x)
    wide = Unsqueeze(sum, zero)
    y = ReduceSum<keepdims = 0>(wide)
    z = If(c) <then_branch = a () => (float[?] p) {{ p = Gather(sum, at) }},
               else_branch = b () => (float[?] q) {{ q = Slice(sum, zero, ten) }}>
    shape = Shape(sum)
    twice = Concat<axis = 0>(shape, zero)
    t = Expand(at, twice)
}}"""


def _infer(strict: bool) -> tuple[bytes, int]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    inferred = inferred_shapes(parser.parse_model(TEXT).SerializeToString(), strict=strict)
    return inferred.SerializeToString(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def test_long_vectors_take_no_memory_and_their_nodes_are_inferred() -> None:
    with get_context("spawn").Pool(1) as pool:
        for strict in (False, True):
            data, kilobytes = pool.apply(_infer, (strict,))
            assert kilobytes < 100_000
            model = ModelProto.FromString(data)
            shapes = {
                each.name: [size.dim_value for size in each.type.tensor_type.shape.dim]
                for each in (*model.graph.value_info, *model.graph.output)
            }
            assert shapes["sum"] == [SIZE]
            assert shapes["wide"] == [1, SIZE]
            assert shapes["t"] == [SIZE, 0]
            # Nothing of what was hidden is left.
            before = parser.parse_model(TEXT).graph
            assert list(model.graph.initializer) == list(before.initializer)
            assert [list(node.input) for node in model.graph.node] == [list(node.input) for node in before.node]
            branch = helper.get_node_attr_value(model.graph.node[3], "then_branch")
            assert list(branch.node[0].input) == ["sum", "at"]
            assert not branch.initializer
            assert branch.output[0].type.tensor_type.shape.dim[0].dim_value == 1
