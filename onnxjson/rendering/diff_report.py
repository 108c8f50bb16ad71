"""A diff as everybody who shows one needs it: counts before and after, the events to show, nodes by their address."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from onnxjson.diffing.events import Event, Kind, Member, Verdict
from onnxjson.index import Index, NodeRef
from onnxjson.matching.alignment import Alignment, GraphPair
from onnxjson.operators import operator_name
from onnxjson.rendering.constants import constants, weights
from onnxjson.rendering.tables import size

Effect = Literal["added", "removed", "rewritten", "changed", "quiet"]
"""What an event does to a model, for those who read it: which colour it has."""

EFFECTS: Final[Mapping[Kind, Effect]] = {
    "inserted": "added",
    "function-outlined": "rewritten",
    "eliminated": "removed",
    "dead-code-removed": "removed",
    "folded": "rewritten",
    "fused": "rewritten",
    "decomposed": "rewritten",
    "replaced": "rewritten",
    "merged": "rewritten",
    "quantized": "rewritten",
    "cast-inserted": "rewritten",
    "layout-changed": "rewritten",
    "function-inlined": "rewritten",
    "attribute-changed": "changed",
    "retyped": "changed",
    "reshaped": "changed",
    "rewired": "changed",
    "weights-changed": "changed",
    "weights-re-laid": "changed",
    "io-changed": "changed",
    "opset-changed": "changed",
    "field-changed": "changed",
    "renamed": "quiet",
    "reordered": "quiet",
    "metadata-changed": "quiet",
    "value-info-changed": "quiet",
    "storage-changed": "quiet",
    "info-changed": "quiet",
}
"""By kind; "quiet" is what leaves every result as it was."""

NODE_KINDS: Final[frozenset[Kind]] = frozenset({
    "attribute-changed", "retyped", "reshaped", "rewired", "inserted", "eliminated", "folded", "fused", "decomposed",
    "replaced", "merged", "dead-code-removed", "quantized", "cast-inserted", "layout-changed", "function-inlined",
    "function-outlined",
})  # fmt: skip
"""What happens to nodes and to what they compute, names and order aside."""

VERDICTS: Final[Mapping[Verdict, str]] = {
    "equal": "verified equal",
    "within-tolerance": "equal within tolerance",
    "different": "DIFFERENT RESULTS",
    "not-run": "not verified",
}
"""What a person reads of a verdict."""

_NODE: Final = re.compile(r"(.*)/node/(0|[1-9][0-9]*)(/.*)?", re.DOTALL)


class Difference(Protocol):
    """What a renderer takes of `onnxjson.diffing.difference.Diff`."""

    @property
    def alignment(self) -> Alignment:
        """Which node is which."""

    @property
    def events(self) -> Sequence[Event]:
        """What happened, in topological order."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""

    @property
    def incomplete(self) -> Sequence[str]:
        """What could not be compared, for a person."""


class Count(NamedTuple):
    """How many there are of something in both models."""

    what: str
    before: int
    after: int

    @property
    def change(self) -> int:
        """How many more there are after."""
        return self.after - self.before

    @property
    def change_text(self) -> str:
        """``+1,234``; "" where there are as many as before."""
        return f"{self.change:+,}" if self.change else ""

    @property
    def bytes_change_text(self) -> str:
        """The same of bytes: ``+1.2 kB``."""
        sign = "+" if self.change > 0 else "-"
        return f"{sign}{size(abs(self.change))}" if self.change else ""


class Report(NamedTuple):
    """A diff to show."""

    base_name: str
    target_name: str
    alignment: Alignment
    events: tuple[Event, ...]
    equal: bool
    incomplete: tuple[str, ...]
    nodes: Count
    """In all graphs."""
    matched: int
    """Nodes of the base that have a counterpart."""
    operators: tuple[Count, ...]
    """Operators with their domain; those of which the number changed first, by how much."""
    parameters: Count
    """Elements of initializers."""
    bytes: Count
    """Of initializers, as they are stored."""

    @property
    def places(self) -> Counter[Kind]:
        """At how many places each kind of event happened, the first event first."""
        places = Counter[Kind]()
        for event in self.events:
            places[event.kind] += event.count
        return places


def report(diff: Difference, base_name: str, target_name: str, *, nodes_only: bool = False) -> Report:
    """What to show of a diff.

    Args:
        diff: the diff.
        base_name: what the first model is called, such as its path.
        target_name: what the second one is called.
        nodes_only: leave out whatever is not about nodes and what they compute (`NODE_KINDS`).
    """
    events = tuple(event for event in diff.events if not nodes_only or event.kind in NODE_KINDS)
    equal = diff.equal or (nodes_only and not events and not diff.incomplete)
    alignment = diff.alignment
    sizes = [weights(each.tensor for each in constants(side) if each.is_weight) for side in _sides(alignment)]
    return Report(
        base_name=base_name,
        target_name=target_name,
        alignment=alignment,
        events=events,
        equal=equal,
        incomplete=tuple(diff.incomplete),
        nodes=Count("nodes", *(sum(len(scope.graph.node) for scope in side.scopes) for side in _sides(alignment))),
        matched=alignment.matched,
        operators=_operators(alignment),
        parameters=Count("parameters", *(each.elements for each in sizes)),
        bytes=Count("bytes", *(each.bytes for each in sizes)),
    )


def _sides(alignment: Alignment) -> tuple[Index, Index]:
    return alignment.base, alignment.target


def operator_of(ref: NodeRef) -> str:
    """The operator with its domain, where that is not the default one."""
    return operator_name(ref.node.domain, ref.node.op_type)


def _operators(alignment: Alignment) -> tuple[Count, ...]:
    numbers = [side.operator_counts() for side in _sides(alignment)]
    counts = [Count(name, numbers[0][name], numbers[1][name]) for name in sorted(numbers[0].keys() | numbers[1].keys())]
    return tuple(sorted(counts, key=lambda each: (-abs(each.change), -each.after, each.what)))


class Nodes:
    """Nodes by their addresses, on both sides."""

    def __init__(self, alignment: Alignment) -> None:
        self._pairs = {pair.target.address: pair for pair in alignment.graphs}
        self._by_base = alignment.by_base
        self._names_back: dict[str, dict[str, str]] = {}
        self._scopes = [{scope.address: scope for scope in side.scopes} for side in _sides(alignment)]

    def base(self, address: str) -> NodeRef | None:
        """The innermost node of the base at or around an address."""
        return self._find(address, 0)

    def target(self, address: str) -> NodeRef | None:
        """The innermost node of the target at or around an address."""
        return self._find(address, 1)

    def of(self, member: Member) -> tuple[list[NodeRef], list[NodeRef]]:
        """The nodes that a member of an event is about, in their order, each once."""
        return _distinct(map(self.base, member.base)), _distinct(map(self.target, member.target))

    def pair_of_base(self, address: str) -> GraphPair | None:
        """The pair of graphs in which the base graph at an address is."""
        return self._by_base.get(address)

    def pair_of_target(self, address: str) -> GraphPair | None:
        """The pair of graphs in which the target graph at an address is."""
        return self._pairs.get(address)

    def names_back(self, pair: GraphPair) -> Mapping[str, str]:
        """Names of the target -> names of the base."""
        found = self._names_back.get(pair.target.address)
        if found is None:
            found = self._names_back[pair.target.address] = {new: old for old, new in pair.values.items()}
        return found

    def _find(self, address: str, side: int) -> NodeRef | None:
        while found := _NODE.fullmatch(address):
            scope = self._scopes[side].get(found[1])
            if scope is not None and int(found[2]) < len(scope.graph.node):
                return NodeRef(scope, int(found[2]))
            address = found[1]
        return None


def _distinct(found: Iterator[NodeRef | None]) -> list[NodeRef]:
    kept = dict.fromkeys(ref for ref in found if ref is not None)
    return sorted(kept, key=lambda ref: (ref.scope.address, ref.position))
