"""A diff prepared for all renderers: counts before and after, events to show, nodes by address."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from onnxjson.checking.cost import Cost
from onnxjson.diffing.events import KIND_PROPERTIES, Effect, Event, Kind, Member, Verdict
from onnxjson.diffing.interface_changes import InterfaceChange, interface_changes
from onnxjson.diffing.matching.alignment import Alignment, GraphPair
from onnxjson.model.display import counted
from onnxjson.model.index import NodeRef
from onnxjson.model.operators import operator_name
from onnxjson.model.weights import weight_tensors
from onnxjson.rendering.cost_text import cost_rows
from onnxjson.rendering.diff_where import Layers, with_places
from onnxjson.rendering.tables import size
from onnxjson.rendering.values import weights

EFFECTS: Final[Mapping[Kind, Effect]] = {kind: properties.effect for kind, properties in KIND_PROPERTIES.items()}
"""The effect of each kind of event."""

NODE_KINDS: Final = frozenset({kind for kind, properties in KIND_PROPERTIES.items() if properties.about_nodes})
"""Kinds of events that change nodes or what they compute."""

VERDICTS: Final[Mapping[Verdict, str]] = {
    "equal": "verified equal",
    "within-tolerance": "equal within tolerance",
    "different": "DIFFERENT RESULTS",
    "not-run": "not verified",
}

_NODE: Final = re.compile(r"(.*)/node/(0|[1-9][0-9]*)(/.*)?", re.DOTALL)


class _Difference(Protocol):
    """Part of `onnxjson.diffing.difference.Diff` that renderers use."""

    @property
    def alignment(self) -> Alignment: ...
    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def equal(self) -> bool: ...
    @property
    def incomplete(self) -> Sequence[str]: ...


class Count(NamedTuple):
    """Number of something in both models."""

    what: str
    before: int
    after: int

    @property
    def change(self) -> int:
        """Increase from before to after."""
        return self.after - self.before

    @property
    def change_text(self) -> str:
        """``+1,234``; "" if the number is unchanged."""
        return f"{self.change:+,}" if self.change else ""

    @property
    def bytes_change_text(self) -> str:
        """``+1.2 kB``; "" if the number of bytes is unchanged."""
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
    matched: int
    operators: tuple[Count, ...]  # operators with their domain; those with the largest changes first
    parameters: Count
    bytes: Count
    costs: tuple[Cost, Cost] | None = None  # cost of both models, where it was asked for
    interface: tuple[InterfaceChange, ...] = ()  # what callers of the model notice
    layers: tuple[Layers, ...] = ()  # what was added or removed

    @property
    def changes(self) -> int:
        """Number of places of all events."""
        return sum([event.count for event in self.events])

    @property
    def without_effect(self) -> int:
        """Number of those that leave all results unchanged."""
        return sum([event.count for event in self.events if self._is_quiet(event)])

    def _is_quiet(self, event: Event) -> bool:
        return EFFECTS[event.kind] == "quiet" and not (self.interface and is_of_interface(event))

    @property
    def count_text(self) -> str:
        """``427 changes, 231 without effect``, the same in all forms."""
        quiet = self.without_effect
        return counted(self.changes, "change") + (f", {quiet:,} without effect" if quiet else "")

    @property
    def by_weight(self) -> tuple[list[Event], list[Event]]:
        """Events that can change results, those that do first, then rewrites; and events that leave all unchanged."""
        quiet = [event for event in self.events if self._is_quiet(event)]
        loud = [event for event in self.events if not self._is_quiet(event)]
        return sorted(loud, key=_weight), quiet


def is_of_interface(event: Event) -> bool:
    """Whether `Report.interface` can say the same."""
    return event.kind == "io-changed" or (event.kind == "renamed" and event.pattern in ("inputs", "outputs"))


def is_cleanup(event: Event) -> bool:
    """Whether an event merges, folds or drops what changes no result, or adds or removes an operator set."""
    if event.kind == "opset-changed":
        return not any(detail.base and detail.target for member in event.members for detail in member.details)
    return event.kind in ("merged", "folded", "dead-code-removed") or event.pattern == "Identity"


class SizeTexts(NamedTuple):
    """A row of the table of operators and sizes."""

    label: str
    is_operator: bool  # whether the label is the name of an operator, not yet made visible
    before: str
    after: str
    change: str
    is_part: bool = False  # whether it is a part of the first row below that is not


def size_rows(
    report: Report, most: int | None = None, *, with_all: bool = False, with_costs: bool = False
) -> list[SizeTexts]:
    """Return the rows of `most` operators, changed ones unless `with_all`, and sizes.

    None if all are unchanged, unless `with_costs` and there are costs.
    """
    shown = [each for each in report.operators if with_all or each.change][:most]
    costs = cost_rows(*report.costs)[2:] if report.costs is not None else []
    is_changed = any(each.change for each in report.operators)
    costs_differ = any([with_costs or row[1] != row[2] for row in costs])
    if not (costs_differ or is_changed or report.nodes.change or report.parameters.change or report.bytes.change):
        return []
    counts = [(each, each.what) for each in shown]
    if others := report.operators[len(shown) :]:
        rest = Count("", sum(each.before for each in others), sum(each.after for each in others))
        counts.append((rest, counted(len(others), "other") + ("" if rest.change else " as before")))
    rows = [
        SizeTexts(
            label, place < len(shown), f"{each.before:,}", f"{each.after:,}", each.change_text, place < len(counts)
        )
        for place, (each, label) in enumerate([*counts, (report.nodes, "nodes"), (report.parameters, "parameters")])
    ]
    stored = report.bytes
    rows.append(SizeTexts("bytes", False, size(stored.before), size(stored.after), stored.bytes_change_text))
    return rows + [SizeTexts(each.label, False, each.before, each.after, each.change) for each in costs]


def _weight(event: Event) -> int:
    """Position in a report: quantizations, changes of results, rewrites that may preserve them, cleanup."""
    if is_cleanup(event):
        return 3
    if event.kind == "opset-changed":
        return 2
    if event.kind == "quantized":
        return 0
    return 1 if EFFECTS[event.kind] == "changed" or event.verdict == "different" else 2


def places_of(events: Iterable[Event]) -> Counter[Kind]:
    """Return the number of places by kind of event, in the order of the first event."""
    places = Counter[Kind]()
    for event in events:
        places[event.kind] += event.count
    return places


def report(diff: _Difference, base_name: str, target_name: str, *, nodes_only: bool = False) -> Report:
    """Prepare a diff for renderers; `nodes_only` omits changes of other kinds than `NODE_KINDS`."""
    events = tuple(event for event in diff.events if not nodes_only or event.kind in NODE_KINDS)
    equal = diff.equal or (nodes_only and not events and not diff.incomplete)
    alignment = diff.alignment
    events, layers = with_places(events, alignment)
    base, target = alignment.base, alignment.target
    if [id(scope.graph) for scope in base.scopes] == [id(scope.graph) for scope in target.scopes]:
        target = base  # counted once
    sizes = {side: weights(weight_tensors(side)) for side in {base, target}}
    operators = {side: side.operator_counts() for side in sizes}
    return Report(
        base_name=base_name,
        target_name=target_name,
        alignment=alignment,
        events=events,
        equal=equal,
        incomplete=tuple(diff.incomplete),
        nodes=Count("nodes", operators[base].total(), operators[target].total()),
        matched=alignment.matched,
        operators=operator_counts(operators[base], operators[target]),
        parameters=Count("parameters", sizes[base].elements, sizes[target].elements),
        bytes=Count("bytes", sizes[base].bytes, sizes[target].bytes),
        interface=() if nodes_only else tuple(interface_changes(alignment)),
        layers=layers,
    )


def operator_of(ref: NodeRef) -> str:
    """Return the operator, with its domain unless that is ai.onnx."""
    return operator_name(ref.node.domain, ref.node.op_type)


def operator_counts(before: Counter[str], after: Counter[str]) -> tuple[Count, ...]:
    """Return the number of nodes of each operator, those with the largest changes first."""
    counts = [Count(name, before[name], after[name]) for name in sorted(before.keys() | after.keys())]
    return tuple(sorted(counts, key=lambda each: (-abs(each.change), -each.after, each.what)))


class Nodes:
    """Index of nodes by address, on both sides."""

    def __init__(self, alignment: Alignment) -> None:
        self.pairs = {scope: pair for pair in alignment.graphs for scope in (pair.base, pair.target)}
        """The pair of each graph of either side that has a counterpart."""
        self._names_back: dict[str, dict[str, str]] = {}
        self._scopes = [side.by_address for side in (alignment.base, alignment.target)]

    def base(self, address: str) -> NodeRef | None:
        """Return the innermost node of the base at or around an address."""
        return self._find(address, 0)

    def target(self, address: str) -> NodeRef | None:
        """Return the innermost node of the target at or around an address."""
        return self._find(address, 1)

    def of(self, member: Member) -> tuple[list[NodeRef], list[NodeRef]]:
        """Return the nodes that a member of an event affects, in order, without duplicates."""
        return _distinct(map(self.base, member.base)), _distinct(map(self.target, member.target))

    def names_back(self, pair: GraphPair) -> Mapping[str, str]:
        """Return the names of the base by the names of the target."""
        if pair.target.address not in self._names_back:
            self._names_back[pair.target.address] = {new: old for old, new in pair.values.items()}
        return self._names_back[pair.target.address]

    def _find(self, address: str, side: int) -> NodeRef | None:
        while match := _NODE.fullmatch(address):
            scope = self._scopes[side].get(match[1])
            if scope is not None and int(match[2]) < len(scope.graph.node):
                return NodeRef(scope, int(match[2]))
            address = match[1]
        return None


def _distinct(found: Iterator[NodeRef | None]) -> list[NodeRef]:
    return sorted({ref for ref in found if ref is not None}, key=lambda ref: (ref.scope.address, ref.position))
