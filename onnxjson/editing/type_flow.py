"""Types that an edit changes, found while it is typed: those of the first nodes that it affects, in one inference."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.editing.model_difference import Difference, first_followers, results
from onnxjson.editing.partial_inference import InferredPart, Part, complaint
from onnxjson.model.document import Model, Type
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.types import format_type

_MOST: Final = 96  # nodes that are inferred; more would not be seen


class Flow(NamedTuple):
    """What an edit changes in the nodes after it, by address of the node before the edit."""

    types: Mapping[str, tuple[Type | None, Type]] = {}
    """Types of the first output before and after, where they differ."""
    complaints: Mapping[str, str] = {}
    """New mistakes: nodes that cannot have their inputs."""


class TypeFlow:
    """Predicts changes of the types in the main graph of one model."""

    def __init__(self, before: Index, folder: Path | None) -> None:
        self.model = before.model
        self._before, self._folder = before, folder
        self._known: dict[tuple[int, ...], InferredPart] = {}  # Most edits that are typed affect the same nodes.

    def to(self, after: Model) -> Flow:
        """Return how an edit that leads to `after` changes the types of the first nodes that it affects.

        Raises:
            WorkerError, EditError, UntrustedError: see `Part.infer`.
        """
        difference = Difference(self._before, Index(after))
        main = difference.new.main
        if main is None or main not in difference.twins or not difference.around[main]:
            return Flow()
        positions = sorted(first_followers(difference.new, difference.around[main], _MOST)[0])
        twins = {position: difference.counterpart(main, position) for position in positions}
        old = tuple([twin.position for twin in twins.values() if twin is not None])
        if old not in self._known:
            self._known = {old: self._inferred(self._before, old)}
        was, now = self._known[old], self._inferred(difference.new, positions)
        types: dict[str, tuple[Type | None, Type]] = {}
        complaints: dict[str, str] = {}
        for position, twin in twins.items():
            outputs = main.graph.node[position].output
            if twin is None or not outputs:
                continue
            new = now.types.get(main.address, {}).get(outputs[0])
            name = difference.former_name(main, outputs[0])
            former = was.types.get(twin.scope.address, {}).get(name) or twin.scope.types.get(name)
            if new is not None and format_type(new) != (former and format_type(former)):
                types[twin.address] = former, new
            text = complaint(now, NodeRef(main, position))
            if text is not None and complaint(was, twin) is None:
                complaints[twin.address] = text.rpartition("InferenceError] ")[2]
        return Flow(types, complaints)

    def _inferred(self, index: Index, positions: Sequence[int]) -> InferredPart:
        names = {scope.address: names for scope, names in results(index, set(positions)).items()}
        return Part(index, positions, {}).infer(names, {}, self._folder)
