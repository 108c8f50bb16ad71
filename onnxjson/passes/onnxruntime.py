"""onnxruntime: the optimizer inside its sessions, run offline.

https://onnxruntime.ai/docs/performance/model-optimizations/graph-optimizations.html
"""

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.passes.declaration import Pass
from onnxjson.passes.known_names import require
from onnxjson.passes.onnxruntime_sessions import Level, Sessions
from onnxjson.passes.stages import PartStage, remark

_FEATURES: Final = ("avx512f", "avx2", "avx", "sse4_1", "asimd", "sve")
"""What the processor has that decides on layouts, as Linux says it."""

_LAYOUT_DOMAIN: Final = "com.microsoft.nchwc"


class Onnxruntime(Pass, frozen=True, kw_only=True, eq=False, tag="onnxruntime"):
    """Run the graph optimizations of onnxruntime, as its sessions do when they load a model.

    The levels layout and all may give a model for the processor of this machine alone; it is said when they do.
    """

    packages: ClassVar = ("onnxruntime",)

    level: Annotated[
        Level,
        Meta(
            description="basic: what holds for every runtime. extended: also operators that only onnxruntime has. "
            "layout: also the layouts of this machine's processor. all: everything."
        ),
    ] = "basic"
    disable: Annotated[
        tuple[str, ...], Meta(description="Graph transformers and rules to leave out, such as ConvBNFusion.")
    ] = ()
    gelu_approximation: Annotated[bool, Meta(description="Also put FastGelu, which is not exact, for Gelu.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            ValueError: there is no such graph transformer or rule at this level.
        """
        if self.disable:
            known = self._sessions(model, folder, disabled=()).names()
            require(self.disable, known, f"graph transformer or rule of level {self.level}")
        made = self._sessions(model, folder, self.disable).optimized()
        if self.level in ("layout", "all") and _has_layouts(made):
            remark(f"made for this machine ({machine()}); another processor may refuse it, or run it slowly")
        return made

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: each graph transformer that changed something, and each rule within one made of rules."""
        return self._sessions(model, folder, self.disable).stages()

    def _sessions(self, model: bytes, folder: Path, disabled: tuple[str, ...]) -> Sessions:
        settings = {"optimization.enable_gelu_approximation": "1"} if self.gelu_approximation else {}
        return Sessions(model, folder, self.level, disabled, settings)


def machine() -> str:
    """The processor of this machine, as far as layouts depend on it: ``x86_64 with avx512f, avx2``."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    flags = next((set(line.split()) for line in lines if line.startswith(("flags", "Features"))), set())
    found = [each for each in _FEATURES if each in flags]
    return platform.machine() + (f" with {', '.join(found)}" if found else "")


def _has_layouts(model: bytes) -> bool:
    from onnx import ModelProto

    return any(node.domain == _LAYOUT_DOMAIN for node in ModelProto.FromString(model).graph.node)
