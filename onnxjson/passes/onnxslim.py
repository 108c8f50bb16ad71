"""onnxslim: fusions, constant folding and what else makes a graph smaller, in Python.

https://github.com/inisis/OnnxSlim, version 0.1.98.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from onnxjson.passes.declaration import Pass

Stage = Literal[
    "constant_folding", "graph_fusion", "dead_node_elimination", "subexpression_elimination", "weight_tying"
]
Pattern = Literal[
    "EliminationConcat",
    "EliminationReshape",
    "EliminationReshapeAs",
    "EliminationSlice",
    "EliminationTranspose",
    "EliminationTransposeAsReshape",
    "EliminationTransposeViewTranspose",
    "EliminationUnsqueeze",
    "FusionConcatReshape",
    "FusionConvAdd",
    "FusionConvBN",
    "FusionConvMul",
    "FusionConvTransposeAdd",
    "FusionConvTransposeBN",
    "FusionConvTransposeMul",
    "FusionGemm",
    "FusionGemmAdd",
    "FusionGemmMul",
    "FusionPadConv",
    "FusionReduce",
]


class Onnxslim(Pass, frozen=True, kw_only=True, eq=False, tag="onnxslim"):
    """Slim with onnxslim: fuse, fold constants, remove what is equal or dead, until nothing changes."""

    packages: ClassVar = ("onnxslim",)
    extra: ClassVar = "passes"

    infer_shapes: Annotated[bool, Meta(description="Infer shapes between the rounds.")] = True
    skip: Annotated[tuple[Stage, ...], Meta(description="What is left out.")] = ()
    skip_patterns: Annotated[tuple[Pattern, ...], Meta(description="Fusions and eliminations that are left out.")] = ()
    size_threshold: Annotated[
        int | None, Meta(ge=1, description="Nothing is folded that would have more bytes; all is, if left out.")
    ] = None
    input_shapes: Annotated[
        dict[str, tuple[int, ...]], Meta(description="Fixed shapes of inputs: {image:[1,3,224,224]}.")
    ] = field(default_factory=dict)

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        import onnx
        import onnxslim

        shapes = [f"{name}:{','.join(map(str, shape))}" for name, shape in self.input_shapes.items()]
        made = onnxslim.slim(
            onnx.ModelProto.FromString(model),
            input_shapes=shapes or None,
            no_shape_infer=not self.infer_shapes,
            skip_optimizations=list(self.skip) or None,
            skip_fusion_patterns=list(self.skip_patterns) or None,
            size_threshold=self.size_threshold,
        )
        return bytes(made.SerializeToString())
