"""peephole: local rewrites of several optimizers, the same set as Olive's OnnxPeepholeOptimizer.

https://microsoft.github.io/Olive/reference/pass.html; the optimizers are called directly, Olive is not needed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.onnxoptimizer import Onnxoptimizer
from onnxjson.optimizing.passes.onnxscript import Onnxscript
from onnxjson.optimizing.passes.stages import PartStage

_MICROSOFT: Final = "com.microsoft"


class Peephole(Pass, frozen=True, kw_only=True, eq=False, tag="peephole"):
    """Run the optimizers of onnxscript and onnxoptimizer, and fuse chains of Reshape and Cast, like Olive."""

    packages: ClassVar = ("onnxscript", "onnxoptimizer")
    extra: ClassVar = "passes"

    onnxscript: Annotated[bool, Meta(description="Run the optimizer of onnxscript.")] = True
    onnxoptimizer: Annotated[bool, Meta(description="Run the default set of onnxoptimizer.")] = True
    fuse_reshape: Annotated[bool, Meta(description="Fuse two Reshape.")] = True
    fix_microsoft_opset: Annotated[
        bool, Meta(description="Import com.microsoft 1 if its operators are used and it is not imported.")
    ] = False
    fuse_cast: Annotated[bool, Meta(description="Fuse two Cast if that is exact.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        for stage in self.stages(model, folder):
            model = stage.model
        return model

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: one for each enabled option."""
        for name, run in self._rewrites():
            model = run(model, folder)
            yield PartStage(name, model)

    def _rewrites(self) -> Iterator[tuple[str, Callable[[bytes, Path], bytes]]]:
        if self.onnxscript:
            yield "onnxscript", Onnxscript().run
        if self.onnxoptimizer:
            yield "onnxoptimizer", Onnxoptimizer().run
        if self.fuse_reshape:
            yield "fuse_reshape", Onnxscript(rules=("reshape_reshape",)).run
        if self.fix_microsoft_opset:
            yield "fix_microsoft_opset", _with_microsoft_opset
        if self.fuse_cast:
            yield "fuse_cast", Onnxscript(rules=("cast_cast",)).run


def _with_microsoft_opset(model: bytes, _: Path) -> bytes:
    from onnx import ModelProto

    proto = ModelProto.FromString(model)
    is_used = any(node.domain == _MICROSOFT for node in proto.graph.node)
    if not is_used or any(each.domain == _MICROSOFT for each in proto.opset_import):
        return model
    proto.opset_import.add(domain=_MICROSOFT, version=1)
    return bytes(proto.SerializeToString())
