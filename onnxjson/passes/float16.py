"""float16: the converter of onnxruntime from float32 to half precision."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.passes.declaration import Pass

if TYPE_CHECKING:
    from onnx import ModelProto

_SMALLEST: Final = 5.96e-08
"""The smallest positive float16."""
_GREATEST: Final = 65504.0
"""The greatest finite one."""


class Float16(Pass, frozen=True, kw_only=True, eq=False, tag="float16"):
    """Make float16 of float32, with Cast around operators that do not take it.

    Weights that are too small or too great for float16 become its smallest or greatest number.
    """

    packages: ClassVar = ("onnxruntime",)

    keep_io_types: Annotated[bool, Meta(description="Inputs and outputs stay float32, with a Cast at each.")] = False
    keep_io: Annotated[tuple[str, ...], Meta(description="Only these inputs and outputs stay float32.")] = ()
    block_operators: Annotated[
        tuple[str, ...],
        Meta(description="Operators that stay float32, instead of those that onnxruntime names, such as TopK."),
    ] = ()
    block_nodes: Annotated[tuple[str, ...], Meta(description="Names of nodes that stay float32.")] = ()
    infer_shapes: Annotated[bool, Meta(description="Infer types with onnx first, which is needed without them.")] = True
    force_initializers: Annotated[bool, Meta(description="Convert initializers of operators that stay, too.")] = False
    min_positive: Annotated[float, Meta(description="Positive weights below this become this.")] = _SMALLEST
    max_finite: Annotated[float, Meta(description="Weights above this become this.")] = _GREATEST
    bfloat16: Annotated[bool, Meta(description="Operators that stay get bfloat16 instead of float32.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        from onnx import ModelProto
        from onnxruntime.transformers.float16 import convert_float_to_float16
        from onnxruntime.transformers.onnx_model import OnnxModel

        made = convert_float_to_float16(
            ModelProto.FromString(model),
            min_positive_val=self.min_positive,
            max_finite_val=self.max_finite,
            keep_io_types=list(self.keep_io) or self.keep_io_types,
            disable_shape_infer=not self.infer_shapes,
            op_block_list=list(self.block_operators) or None,
            node_block_list=list(self.block_nodes) or None,
            force_fp16_initializers=self.force_initializers,
            use_bfloat16_as_blocked_nodes_dtype=self.bfloat16,
        )
        if _is_out_of_order(made):
            # The casts that it adds stand at the end, wherever their results are taken.
            sorted_model = OnnxModel(made)
            sorted_model.topological_sort()
            made = sorted_model.model
        return bytes(made.SerializeToString())


def _is_out_of_order(model: "ModelProto") -> bool:
    made = {name for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if any(name in made for name in node.input):
            return True
        made.difference_update(node.output)
    return False
