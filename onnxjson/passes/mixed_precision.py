"""mixed-precision: float16 but for the nodes that need float32, which are found by measuring.

Olive's OrtMixedPrecision says that it finds the least set of operators, and keeps a fixed list of them; this searches.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.display import visible
from onnxjson.passes.float16_conversion import converted
from onnxjson.passes.measuring import Comparing, Measured, MeasuredPass, cost_lines, rounded, said, won
from onnxjson.passes.minimal_sets import Found, minimal
from onnxjson.passes.stages import remark
from onnxjson.running.tolerances import TOLERANCES, Tolerance

if TYPE_CHECKING:
    from onnx import ModelProto

_SHOWN: Final = 12
"""Nodes that stay float32 of which the names are told."""


class MixedPrecision(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="mixed-precision"):
    """Make float16 of float32 but for nodes that need it: a set from which no single one can be taken.

    The set is found by leaving out ever smaller pieces of all nodes, and running each model on the samples with every
    float16 value rounded, as an accelerator rounds it; how many were run is told.
    """

    packages: ClassVar = ("onnxruntime",)

    relative: Annotated[float, Meta(ge=0, description="How far an output may be off, of the element.")] = 1e-2
    of_scale: Annotated[float, Meta(ge=0, description="The same, of the largest element; added to it.")] = 5e-3
    absolute: Annotated[float, Meta(ge=0, description="The same in itself; added to both.")] = 0.0
    keep_io_types: Annotated[bool, Meta(description="Inputs and outputs stay float32, with a Cast at each.")] = True
    block_operators: Annotated[
        tuple[str, ...],
        Meta(description="Operators that stay float32 anyway, instead of those that onnxruntime names, such as TopK."),
    ] = ()
    evaluations: Annotated[int, Meta(ge=2, description="Models to run at most; then it takes what it has.")] = 2000

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            RuntimeError: not even a model in which every node of the graph stays float32 is close enough.
        """
        search = _Search(self, model)
        found = minimal(len(search.names), search.is_close, self.evaluations)
        if found is None:
            raise RuntimeError(f"even with all nodes in float32 the outputs are too far off: {search.problem}")
        made = search.converted(found.items)
        _say(found, search)
        remark(won(model, made))
        for line in cost_lines(search.measured(made)):
            remark(line)
        return search.with_names(made)


class _Search:
    """Models in which some nodes stay float32."""

    def __init__(self, subject: MixedPrecision, model: bytes) -> None:
        from onnx import ModelProto
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

        self._subject = subject
        proto = ModelProto.FromString(model)
        self._names = _named(proto)
        self._model = bytes(proto.SerializeToString())
        blocked = set(subject.block_operators or DEFAULT_OP_BLOCK_LIST)
        self.nodes = [node for node in proto.graph.node if node.op_type not in blocked and node.op_type != "Constant"]
        self.names = [node.name for node in self.nodes]
        tolerance = Tolerance(relative=subject.relative, of_scale=subject.of_scale, absolute=subject.absolute)
        self._tolerances = dict.fromkeys(TOLERANCES, tolerance)
        self._comparing = Comparing(subject, model, self.converted(()))
        self.problem = ""

    def converted(self, kept: Sequence[int] | frozenset[int]) -> bytes:
        """The model in which these nodes stay float32."""
        return converted(
            self._model,
            [self.names[place] for place in kept],
            keep_io_types=self._subject.keep_io_types,
            op_block_list=list(self._subject.block_operators) or None,
        )

    def measured(self, made: bytes) -> tuple[Measured, ...]:
        """How far its outputs are off."""
        return self._comparing.run(rounded(made), self._tolerances)

    def is_close(self, kept: frozenset[int]) -> bool:
        """Whether a model is close enough; one that does not run is not."""
        try:
            found = self.measured(self.converted(sorted(kept)))
        except MemoryError:
            raise
        except Exception as error:
            self.problem = said(error)
            return False
        self.problem = "; ".join(cost_lines(found))
        return all(each.worst.close for each in found)

    def with_names(self, made: bytes) -> bytes:
        """The model with the names that its nodes had."""
        from onnx import ModelProto

        proto = ModelProto.FromString(made)
        for node in proto.graph.node:
            node.name = self._names.get(node.name, node.name)
        return bytes(proto.SerializeToString())

    def label(self, place: int) -> str:
        """A node for a person."""
        node = self.nodes[place]
        name = self._names.get(node.name, node.name) or f"makes {node.output[0]}"
        return visible(f"{node.op_type} ({name})", 100)


def _named(model: "ModelProto") -> dict[str, str]:
    """Gives every node of the graph a name of its own; new names -> what they were."""
    seen: set[str] = set()
    taken = {node.name for node in model.graph.node}
    changed: dict[str, str] = {}
    for number, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            name = f"node@{number}"
            while name in taken:
                name += "@"
            changed[name] = node.name
            node.name = name
        seen.add(node.name)
    return changed


def _say(found: Found, search: _Search) -> None:
    count = len(found.items)
    share = f"{count:,} of {len(search.names):,} nodes stay float32"
    ran = f"{found.evaluations:,} model{'s' * (found.evaluations != 1)} run to find them"
    if not found.is_minimal:
        ran += "; the search ended before each was known to be needed"
    elif count:
        ran += "; none of them can be left out"
    remark(f"{share}; {ran}")
    for place in found.items[:_SHOWN]:
        remark(f"float32: {search.label(place)}")
    if count > _SHOWN:
        remark(f"float32: {count - _SHOWN:,} nodes more")


__all__ = ["MixedPrecision"]
