"""onnxoptimizer: the C++ passes of the ONNX project, one by one or as its default set.

https://github.com/onnx/optimizer; the names are those of version 0.4.2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.passes.declaration import Pass
from onnxjson.passes.stages import READING, PartStage

PARTS: Final[dict[str, str]] = {
    "adjust_add": "Puts the constant of an Add on its right.",
    "adjust_slice_and_matmul": "Moves a Slice behind the MatMul that takes it.",
    "eliminate_common_subexpression": "Computes equal things once.",
    "eliminate_consecutive_idempotent_ops": "Removes the second of two operators that change nothing the second time.",
    "eliminate_deadend": "Removes nodes that lead to no output.",
    "eliminate_duplicate_initializer": "Keeps one of equal initializers.",
    "eliminate_identity": "Removes Identity.",
    "eliminate_if_with_const_cond": "Puts the branch of an If in its place whose condition is constant.",
    "eliminate_nop_cast": "Removes a Cast to the type that is there.",
    "eliminate_nop_concat": "Removes a Concat of one value.",
    "eliminate_nop_dropout": "Removes Dropout that drops nothing.",
    "eliminate_nop_expand": "Removes an Expand to the shape that is there.",
    "eliminate_nop_flatten": "Removes a Flatten of what is flat.",
    "eliminate_nop_monotone_argmax": "Removes monotone operators before ArgMax.",
    "eliminate_nop_pad": "Removes a Pad by nothing.",
    "eliminate_nop_reshape": "Removes a Reshape to the shape that is there.",
    "eliminate_nop_split": "Removes a Split into one piece.",
    "eliminate_nop_transpose": "Removes a Transpose that keeps the order.",
    "eliminate_nop_with_unit": "Removes adding 0, multiplying by 1 and the like.",
    "eliminate_shape_gather": "Makes a constant of a dimension that is known.",
    "eliminate_shape_op": "Makes a constant of a shape that is known.",
    "eliminate_slice_after_shape": "Makes a constant of dimensions that are known.",
    "eliminate_unused_initializer": "Removes initializers that nothing uses.",
    "extract_constant_to_initializer": "Makes initializers of Constant nodes.",
    "fuse_add_bias_into_conv": "Makes an Add after a Conv its bias.",
    "fuse_bn_into_conv": "Makes a BatchNormalization part of the Conv before it; leaves the arithmetic as nodes.",
    "fuse_concat_into_reshape": "Makes a constant shape of a Concat that a Reshape takes.",
    "fuse_consecutive_concats": "Makes one Concat of two along one axis.",
    "fuse_consecutive_log_softmax": "Makes LogSoftmax of Softmax and Log.",
    "fuse_consecutive_reduce_unsqueeze": "Makes a reduction and its Unsqueeze one that keeps dimensions.",
    "fuse_consecutive_slices": "Makes one Slice of two.",
    "fuse_consecutive_squeezes": "Makes one Squeeze of two.",
    "fuse_consecutive_transposes": "Makes one Transpose of two.",
    "fuse_consecutive_unsqueezes": "Makes one Unsqueeze of two.",
    "fuse_matmul_add_bias_into_gemm": "Makes Gemm of MatMul and Add.",
    "fuse_pad_into_conv": "Makes a Pad the padding of the Conv after it.",
    "fuse_pad_into_pool": "Makes a Pad the padding of the pooling after it.",
    "fuse_qkv": "Makes one MatMul of the three before an attention.",
    "fuse_transpose_into_gemm": "Makes a Transpose a flag of the Gemm after it.",
    "lift_lexical_references": "Writes down what subgraphs take from outside; the result is not what ONNX allows.",
    "nop": "Reads the model and writes it again.",
    "rename_input_output": "Renames inputs and outputs by position, input_0 and output_0.",
    "replace_einsum_with_matmul": "Makes MatMul and Transpose of Einsum.",
    "rewrite_input_dtype": "Makes int32 of int64 inputs, with a Cast after them.",
    "rewrite_where": "Swaps the branches of a Where instead of Not before it.",
    "set_unique_name_for_nodes": "Gives every node a name of its own.",
    "split_init": "Keeps what only needs to be computed once.",
    "split_predict": "Keeps what is computed for each input, the rest as inputs.",
}
"""Every pass of onnxoptimizer 0.4.2 with what it does."""


class Onnxoptimizer(Pass, frozen=True, kw_only=True, eq=False, tag="onnxoptimizer"):
    """Run the passes of onnxoptimizer: its default set of 39, those that are listed, or one, as onnxoptimizer:PASS."""

    packages: ClassVar = ("onnxoptimizer",)
    extra: ClassVar = "passes"
    part: ClassVar = "passes"
    parts: ClassVar = PARTS

    passes: Annotated[tuple[str, ...], Meta(description="These passes in this order instead of the default set.")] = ()
    fixed_point: Annotated[bool, Meta(description="Run the set again and again until it changes nothing.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        import onnx
        import onnxoptimizer

        proto = onnx.ModelProto.FromString(model)
        made = onnxoptimizer.optimize(proto, list(self.passes) or None, self.fixed_point)
        return bytes(made.SerializeToString())

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: each pass that changed something, in the order in which they run."""
        import onnxoptimizer

        read = _optimized(model, "nop")
        if read != model:
            yield PartStage(READING, read)
        model = read
        names = self.passes or onnxoptimizer.get_fuse_and_elimination_passes()
        while True:
            before = model
            for name in names:
                made = _optimized(model, name)
                if made != model:
                    model = made
                    yield PartStage(name, model)
            if not self.fixed_point or model == before:
                return


def _optimized(model: bytes, name: str) -> bytes:
    import onnx
    import onnxoptimizer

    return bytes(onnxoptimizer.optimize(onnx.ModelProto.FromString(model), [name]).SerializeToString())
