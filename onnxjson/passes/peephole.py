"""peephole: small local rewrites of several optimizers, the set of Olive's OnnxPeepholeOptimizer.

https://microsoft.github.io/Olive/reference/pass.html; what is underneath is called directly, Olive is not needed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.passes.declaration import Pass
from onnxjson.passes.stages import PartStage

_MICROSOFT: Final = "com.microsoft"


class Peephole(Pass, frozen=True, kw_only=True, eq=False, tag="peephole"):
    """Run the optimizers of onnxscript and onnxoptimizer, fuse chains of Reshape and Cast, as Olive does."""

    packages: ClassVar = ("onnxscript", "onnxoptimizer")
    extra: ClassVar = "passes"

    onnxscript: Annotated[bool, Meta(description="Run the optimizer of onnxscript.")] = True
    onnxoptimizer: Annotated[bool, Meta(description="Run the default set of onnxoptimizer.")] = True
    fuse_reshape: Annotated[bool, Meta(description="Make one Reshape of two.")] = True
    fix_microsoft_opset: Annotated[
        bool, Meta(description="Import com.microsoft 1 where its operators are used and it is not imported.")
    ] = False
    fuse_cast: Annotated[bool, Meta(description="Make one Cast of two where that is exact.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        for stage in self.stages(model, folder):
            model = stage.model
        return model

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: one for each option that is on."""
        if self.onnxscript:
            model = _by_onnxscript(model)
            yield PartStage("onnxscript", model)
        if self.onnxoptimizer:
            model = _by_onnxoptimizer(model)
            yield PartStage("onnxoptimizer", model)
        if self.fuse_reshape:
            model = _by_rule(model, "reshape_reshape_rule")
            yield PartStage("fuse_reshape", model)
        if self.fix_microsoft_opset:
            model = _with_microsoft_opset(model)
            yield PartStage("fix_microsoft_opset", model)
        if self.fuse_cast:
            model = _by_rule(model, "cast_cast_rule")
            yield PartStage("fuse_cast", model)


def _by_onnxscript(model: bytes) -> bytes:
    from onnx import ModelProto
    from onnxscript import optimizer

    return bytes(optimizer.optimize(ModelProto.FromString(model)).SerializeToString())


def _by_onnxoptimizer(model: bytes) -> bytes:
    import onnxoptimizer
    from onnx import ModelProto

    return bytes(onnxoptimizer.optimize(ModelProto.FromString(model)).SerializeToString())


def _by_rule(model: bytes, rule: str) -> bytes:
    from onnx import ModelProto
    from onnxscript import rewriter
    from onnxscript.rewriter.rules import common

    made = rewriter.rewrite(ModelProto.FromString(model), pattern_rewrite_rules=[getattr(common, rule)])
    return bytes(made.SerializeToString())


def _with_microsoft_opset(model: bytes) -> bytes:
    from onnx import ModelProto

    proto = ModelProto.FromString(model)
    is_used = any(node.domain == _MICROSOFT for node in proto.graph.node)
    if not is_used or any(each.domain == _MICROSOFT for each in proto.opset_import):
        return model
    proto.opset_import.add(domain=_MICROSOFT, version=1)
    return bytes(proto.SerializeToString())
