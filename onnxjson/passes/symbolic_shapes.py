"""symbolic-shapes: the shape inference of onnxruntime, which calculates with the names of dimensions."""

from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from onnxjson.passes.declaration import Pass


class SymbolicShapes(Pass, frozen=True, kw_only=True, eq=False, tag="symbolic-shapes"):
    """Infer shapes as expressions of dimensions that have a name, such as 2*N, for operators of onnxruntime, too.

    It takes opset 7 and later, and fails where it cannot come to an end for every value.
    """

    packages: ClassVar = ("onnxruntime", "sympy")
    extra: ClassVar = "passes"

    auto_merge: Annotated[bool, Meta(description="Take dimensions that must be equal as one.")] = False
    guess_output_rank: Annotated[
        bool, Meta(description="Take the shape of the first input for the output of operators that it does not know.")
    ] = False
    int_max: Annotated[int, Meta(ge=1, description="What counts as no bound, such as the end of a Slice.")] = 2**31 - 1

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        from onnx import ModelProto
        from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

        made = SymbolicShapeInference.infer_shapes(
            ModelProto.FromString(model),
            int_max=self.int_max,
            auto_merge=self.auto_merge,
            guess_output_rank=self.guess_output_rank,
        )
        if made is None:
            raise ValueError("it takes models of opset 7 and later")
        return bytes(made.SerializeToString())
