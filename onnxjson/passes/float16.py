"""float16: the converter of onnxruntime from float32 to half precision."""

from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson import serde
from onnxjson.document import Graph, Node
from onnxjson.passes.float16_conversion import converted
from onnxjson.passes.known_names import require
from onnxjson.passes.measuring import MeasuredPass
from onnxjson.walking import walk

_SMALLEST: Final = 5.96e-08
"""The smallest positive float16."""
_GREATEST: Final = 65504.0
"""The greatest finite one."""


class Float16(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="float16"):
    """Make float16 of float32, with Cast around operators that do not take it.

    Weights that are too small or too great for float16 become its smallest or greatest number. What each output loses
    is measured with every float16 value rounded, as an accelerator rounds it.
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
        """See `Pass.run`.

        Raises:
            ValueError: there is no such node, input or output.
        """
        self._check_names(model)
        made = converted(
            model,
            self.block_nodes,
            min_positive_val=self.min_positive,
            max_finite_val=self.max_finite,
            keep_io_types=list(self.keep_io) or self.keep_io_types,
            disable_shape_infer=not self.infer_shapes,
            op_block_list=list(self.block_operators) or None,
            force_fp16_initializers=self.force_initializers,
            use_bfloat16_as_blocked_nodes_dtype=self.bfloat16,
        )
        self.cost(model, made)
        return made

    def _check_names(self, model: bytes) -> None:
        parsed = serde.parse(model).model
        require(self.block_nodes, [node.name or "" for node in walk(parsed, Node)], "node")
        graph = parsed.graph or Graph()
        require(self.keep_io, [value.name or "" for value in (*graph.input, *graph.output)], "input or output")
