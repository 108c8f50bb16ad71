"""Provenance of nodes: where each came from and what became of it, over all passes of a trace.

The patch of a part states which nodes stay and at which address; its events state which nodes replaced which.
One event may rewrite thousands of nodes at once. Most optimizers keep the names of consumed values, so the ancestors of
a new node are then the old nodes between the values of its name: those that computed its outputs, back to its inputs.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from onnxjson.diffing.events import KIND_PROPERTIES, Event, Kind
from onnxjson.model.document import Model, Node
from onnxjson.model.index import Index
from onnxjson.optimizing.trace_records import Part, Trace

_MOST_ANCESTORS: Final = 64
"""Maximum number of old nodes of a new node; with more, its inputs were renamed, and nothing is known."""

_WIDE: Final = 1_000
"""Number of pairs of old and new nodes of a rewrite above which names decide which replaced which."""

_NODE: Final = re.compile(r".*/node/(?:0|[1-9][0-9]*)(?![^/])")
"""Matches an address up to its innermost node."""

_IN_GRAPH: Final = re.compile(r"/attribute/[^/]+/(?:g|graphs/[0-9]+)(?![^/])")
"""Follows the address of a node in addresses inside one of its subgraphs."""


class Touch(NamedTuple):
    """A change of a node by one part of a pass."""

    step: int
    part: int
    """The position of the part among those of its pass."""
    kind: Kind
    pattern: str
    """Pattern of the event; "" if no event names the node."""


class Story(NamedTuple):
    """Origins or fate of a node."""

    nodes: tuple[str, ...]
    touches: tuple[Touch, ...]
    """Parts of passes that changed it, in order, without duplicates."""
    among: int = 0
    """Number of nodes that one rewrite replaced, or made, at once, if it is not known which of them belong to it."""

    @property
    def is_linked(self) -> bool:
        """Whether the other model has nodes that belong to it."""
        return bool(self.nodes or self.among)


class Provenance(NamedTuple):
    """Links between the nodes of the first and the last model, in both directions."""

    origins: dict[str, Story]
    """Nodes of the first model that each node of the last model originates from."""
    fates: dict[str, Story]
    """Nodes of the last model that originate from each node of the first; empty if it was removed."""


@dataclass(slots=True)
class _Sources:
    """Origins of a node up to the current pass; dicts keep the order."""

    nodes: dict[str, None]
    touches: dict[Touch, None]
    among: int = 0


class _Change(NamedTuple):
    """A part, at its position in the trace, with the models before and after it."""

    position: tuple[int, int]
    part: Part
    before: Model
    after: Model


def provenance(trace: Trace) -> Provenance:
    """Follow every node of a trace through all of its passes.

    Raises:
        PatchError: the patches do not fit; the trace was changed.
    """
    first = [ref.address for ref in Index(trace.first).nodes()]
    known = {address: _Sources({address: None}, {}) for address in first}
    fates = {address: _Sources({}, {}) for address in first}
    models = trace.models()
    before = next(models)
    for step, recorded in enumerate(trace.steps):
        for number, part in enumerate(recorded.parts):
            after = next(models)
            known = _after(known, _Change((step, number), part, before, after), fates)
            before = after
    origins = {ref.address: _found(known, ref.address) for ref in Index(before).nodes()}
    for address, sources in origins.items():
        for original in sources.nodes:
            fates[original].nodes[address] = None
    return Provenance(
        *[
            {address: Story(tuple(each.nodes), tuple(each.touches), each.among) for address, each in found.items()}
            for found in (origins, fates)
        ]
    )


def _after(known: dict[str, _Sources], change: _Change, fates: dict[str, _Sources]) -> dict[str, _Sources]:
    """Return the origins after a part; touches of every original node are added to `fates`."""
    origins: dict[str, _Sources] = {}

    def add(address: str, sources: _Sources, touches: Iterable[Touch] = ()) -> None:
        entry = origins.setdefault(address, _Sources({}, {}))
        entry.nodes.update(sources.nodes)
        entry.touches.update(sources.touches)
        entry.touches.update(dict.fromkeys(touches))
        entry.among = max(entry.among, sources.among)

    touched: dict[str, list[Touch]] = {}
    for event, base, target in _members(change.part.events):
        touch = Touch(*change.position, event.kind, event.pattern)
        is_wide = len(base) * len(target) > _WIDE
        old_nodes = _ancestors_by_name(change, base, target) if is_wide else dict.fromkeys(target, base)
        known_old = {source for sources in old_nodes.values() for source in sources} if is_wide else set(base)
        for address in base:
            touched.setdefault(address, []).append(touch)
            if address not in known_old and target:
                for original in _found(known, address).nodes:
                    fates[original].among = max(fates[original].among, len(target))
        for address in target:
            for source in old_nodes.get(address, ()):
                add(address, _found(known, source))
            add(address, _Sources({}, {}, 0 if old_nodes.get(address) else len(base)), (touch,))
    for address, sources in known.items():
        place = change.part.patch.where(address)
        if place is not None:
            add(place, sources, touched.get(address, ()))
        elif address not in touched:
            # A constant removed together with its consumers: no event names it.
            touched[address] = [Touch(*change.position, "eliminated", "")]
        for original in sources.nodes:
            fates[original].touches.update(sources.touches)
            fates[original].touches.update(dict.fromkeys(touched.get(address, ())))
    return origins


def _ancestors_by_name(change: _Change, base: Iterable[str], target: Iterable[str]) -> dict[str, list[str]]:
    """Return the old nodes that each new node replaced, as far as names show it; all by address."""
    old, new = _nodes_at(change.before, base), _nodes_at(change.after, target)
    producers = {name: address for address, node in old.items() for name in node.output if name}
    return {address: _ancestors_of(node, old, producers) for address, node in new.items()}


def _nodes_at(model: Model, addresses: Iterable[str]) -> dict[str, Node]:
    wanted = set(addresses)
    return {ref.address: ref.node for ref in Index(model).nodes() if ref.address in wanted}


def _ancestors_of(node: Node, old: dict[str, Node], producers: dict[str, str]) -> list[str]:
    ancestors: dict[str, None] = {}
    pending = [name for name in node.output if name]
    while pending:
        address = producers.get(pending.pop())
        if address is None or address in ancestors:
            continue
        ancestors[address] = None
        if len(ancestors) > _MOST_ANCESTORS:
            return []
        pending += [name for name in old[address].input if name and name not in node.input]
    return list(ancestors)


def _members(events: Iterable[Event]) -> Iterator[tuple[Event, list[str], list[str]]]:
    """Yield each event member about nodes, with the addresses on both sides."""
    for event in events:
        for member in event.members:
            base, target = _nodes(member.base), _nodes(member.target)
            if bool(base) != bool(target) or (base and KIND_PROPERTIES[event.kind].touches_nodes):
                yield event, base, target


def _nodes(addresses: Iterable[str]) -> list[str]:
    matches = [match for address in addresses if (match := _NODE.match(address))]
    return list(dict.fromkeys([match[0] for match in matches if not _IN_GRAPH.match(match.string, match.end())]))


def _found(known: dict[str, _Sources], address: str) -> _Sources:
    """Return the origins of a node; for an unknown node in a subgraph, those of the enclosing node."""
    while address:
        if address in known:
            return known[address]
        match = _NODE.match(address.rpartition("/node/")[0])
        address = match[0] if match else ""
    return _Sources({}, {})
