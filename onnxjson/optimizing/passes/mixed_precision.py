"""mixed-precision: float16 except for the nodes that need float32, which are found by measuring.

Olive's OrtMixedPrecision is documented to find the minimal set of operators, but keeps a fixed list; this one searches.
The search is the reduction to complements of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input"
(2002).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta

from onnxjson.model.display import visible
from onnxjson.optimizing.passes.declaration import proto_of, remark
from onnxjson.optimizing.passes.float16 import convert
from onnxjson.optimizing.passes.measuring import Comparing, MeasuredPass, cost_lines, one_line, rounded
from onnxjson.running.comparison import TOLERANCES, Tolerance

if TYPE_CHECKING:
    from onnx import ModelProto


MOST: Final = 10_000


class Found(NamedTuple):
    """Result of a search."""

    items: tuple[int, ...]
    """Remaining positions, in order."""
    evaluations: int
    is_minimal: bool
    """Whether each of them is known to be needed; False if the search reached its maximum first."""


def minimal(count: int, is_enough: Callable[[frozenset[int]], bool], most: int = MOST) -> Found | None:
    """Return positions that are sufficient and of which none can be omitted; None if all together are not sufficient.

    For ``k`` needed positions out of ``n`` it takes about ``2 k log2(n / k)`` evaluations. It does not assume that a
    superset of a sufficient set is sufficient.

    Args:
        is_enough: evaluates a set; each set is evaluated once.
        most: maximum number of evaluations; then the best set so far is returned.
    """
    known: dict[frozenset[int], bool] = {}

    def evaluated(items: Sequence[int]) -> bool:
        key = frozenset(items)
        if key not in known:
            known[key] = is_enough(key)
        return known[key]

    left = list(range(count))
    if evaluated(()):
        return Found((), len(known), is_minimal=True)
    if not evaluated(left):
        return None
    piece = max(len(left) // 2, 1)
    while True:
        is_changed = False
        place = 0
        while place < len(left):
            if len(known) >= most:
                return Found(tuple(left), len(known), is_minimal=False)
            rest = left[:place] + left[place + piece :]
            if evaluated(rest):
                left, is_changed = rest, True
            else:
                place += piece
        if piece == 1 and not is_changed:
            return Found(tuple(left), len(known), is_minimal=True)
        piece = max(piece // 2, 1)


_SHOWN: Final = 12
"""Maximum number of float32 nodes whose names are reported."""


class MixedPrecision(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="mixed-precision"):
    """Convert float32 to float16, except for a minimal set of nodes that need float32.

    The search removes smaller and smaller parts of the set, and runs each model on the samples with every float16 value
    rounded, as an accelerator rounds it; the number of runs is reported.
    """

    packages: ClassVar = ("onnxruntime",)
    texts: ClassVar = "moved"

    relative: Annotated[float, Meta(ge=0, description="Tolerance of an output, relative to the element.")] = 1e-2
    of_scale: Annotated[
        float, Meta(ge=0, description="Tolerance relative to the largest element; added to the first.")
    ] = 5e-3
    absolute: Annotated[float, Meta(ge=0, description="Absolute tolerance; added to both.")] = 0.0
    keep_io_types: Annotated[bool, Meta(description="Keep inputs and outputs float32, with a Cast at each.")] = True
    block_operators: Annotated[
        tuple[str, ...],
        Meta(description="Operators that always stay float32, instead of the list of onnxruntime (TopK and others)."),
    ] = ()
    evaluations: Annotated[
        int, Meta(ge=2, description="Maximum number of models to run; then the best set so far is used.")
    ] = 2000

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            RuntimeError: the outputs are too far off even if every node of the graph stays float32.
        """
        search = _Search(self, model)
        found = minimal(len(search.names), search.is_close, self.evaluations)
        if found is None:
            raise RuntimeError(f"even with all nodes in float32 the outputs are too far off: {search.problem}")
        made = search.converted(found.items)
        _report(found, search)
        return search.with_names(made)


class _Search:
    """Models in which some nodes stay float32."""

    def __init__(self, subject: MixedPrecision, model: bytes) -> None:
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

        self._subject = subject
        proto = proto_of(model)
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
        """Return the model in which these nodes stay float32."""
        return convert(
            self._model,
            [self.names[place] for place in kept],
            keep_io_types=self._subject.keep_io_types,
            op_block_list=list(self._subject.block_operators) or None,
        )

    def is_close(self, kept: frozenset[int]) -> bool:
        """Whether the model with these float32 nodes runs and is close enough."""
        try:
            found = self._comparing.run(rounded(self.converted(sorted(kept))), self._tolerances)
        except MemoryError:
            raise
        except Exception as error:
            self.problem = one_line(error)
            return False
        self.problem = "; ".join(cost_lines(found))
        return all(each.worst.close for each in found)

    def with_names(self, made: bytes) -> bytes:
        """Return the model with the original names of its nodes."""
        proto = proto_of(made)
        for node in proto.graph.node:
            node.name = self._names.get(node.name, node.name)
        return bytes(proto.SerializeToString())

    def label(self, place: int) -> str:
        """Return a readable label of a node."""
        node = self.nodes[place]
        name = self._names.get(node.name, node.name) or f"produces {node.output[0]}"
        return visible(f"{node.op_type} ({name})", 100)


def _named(model: "ModelProto") -> dict[str, str]:
    """Give every node of the graph a unique name; return the new names with the original ones."""
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


def _report(found: Found, search: _Search) -> None:
    count = len(found.items)
    share = f"{count:,} of {len(search.names):,} nodes stay float32"
    ran = f"{found.evaluations:,} model{'s' * (found.evaluations != 1)} run to find them"
    if not found.is_minimal:
        ran += "; the search ended before each was shown to be needed"
    elif count:
        ran += "; none of them can be omitted"
    remark(f"{share}; {ran}")
    for place in found.items[:_SHOWN]:
        remark(f"float32: {search.label(place)}")
    if count > _SHOWN:
        remark(f"float32: {count - _SHOWN:,} more nodes")
