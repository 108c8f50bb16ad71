"""Where nodes came from and where they went, over all passes of a trace.

The patch of a part says which nodes stay and where they stand afterwards, its events which nodes were made of which.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from onnxjson.diffing.events import Event, Kind
from onnxjson.document import Model
from onnxjson.index import Index
from onnxjson.tracing.cones import cones
from onnxjson.tracing.records import Part, Trace

_NODE: Final = re.compile(r".*/node/(?:0|[1-9][0-9]*)(?![^/])")
"""The innermost node of an address: as far as this matches, from the start."""

_IN_GRAPH: Final = re.compile(r"/attribute/[^/]+/(?:g|graphs/[0-9]+)(?![^/])")
"""What follows the address of a node where something of a graph within it is meant, and not the node."""

_WIDE: Final = 1_000
"""Pairs of old and new nodes of one rewrite from which names decide which was made of which."""

_UNTOUCHING: Final[frozenset[Kind]] = frozenset({"reordered", "value-info-changed", "storage-changed", "opset-changed"})
"""Events that do nothing to a node that stays."""


class Touch(NamedTuple):
    """One part of a pass that did something to a node."""

    step: int
    """The position of the pass."""
    part: int
    """The position of the part among those of its pass."""
    kind: Kind
    pattern: str
    """As in the event; "" where no event names the node."""


class Story(NamedTuple):
    """What became of a node, or what it was made of."""

    nodes: tuple[str, ...]
    """Addresses on the other side, in their order."""
    touches: tuple[Touch, ...]
    """Who had a hand in it, in turn, each once."""


class Provenance(NamedTuple):
    """Both ways between the first model and the last one."""

    origins: dict[str, Story]
    """For each node of the last model the nodes of the first one that it was made of."""
    fates: dict[str, Story]
    """For each node of the first model the nodes of the last one that were made of it; none where it is gone."""


class _Sources(NamedTuple):
    """What is known of a node while the passes are followed; both as dicts for their order."""

    nodes: dict[str, None]
    touches: dict[Touch, None]


def provenance(trace: Trace) -> Provenance:
    """Follows every node of a trace through all of its passes.

    Raises:
        PatchError: the patches do not fit; the trace was changed.
    """
    first = [ref.address for ref in Index(trace.first).nodes()]
    known = {address: _Sources({address: None}, {}) for address in first}
    gone: dict[str, dict[Touch, None]] = {}
    models = trace.models()
    before = next(models)
    for step, each in enumerate(trace.steps):
        for part, what in enumerate(each.parts):
            after = next(models)
            known = _after(known, _Change(what, before, after), step, part, gone)
            before = after
    last = [ref.address for ref in Index(before).nodes()]
    origins = {address: _story(_found(known, address)) for address in last}
    return Provenance(origins, _fates(first, origins, gone))


class _Change(NamedTuple):
    """A part, and the models around it."""

    part: Part
    before: Model
    after: Model

    def links(self) -> "Iterator[tuple[Event, list[str], list[str], dict[str, list[str]]]]":
        """Every member of an event that is about nodes: those of both sides, and for each new one the old ones."""
        for event, base, target in _members(self.part.events):
            if len(base) * len(target) > _WIDE:
                yield event, base, target, cones(self.before, self.after, base, target)
            else:
                yield event, base, target, dict.fromkeys(target, base)


def _after(
    known: dict[str, _Sources], change: _Change, step: int, number: int, gone: dict[str, dict[Touch, None]]
) -> dict[str, _Sources]:
    """What is known after a part; the original nodes that it left without any trace are put into `gone`."""
    made: dict[str, _Sources] = {}

    def add(address: str, sources: _Sources, touches: Iterable[Touch] = ()) -> None:
        entry = made.setdefault(address, _Sources({}, {}))
        entry.nodes.update(sources.nodes)
        entry.touches.update(sources.touches)
        entry.touches.update(dict.fromkeys(touches))

    touched: dict[str, list[Touch]] = {}
    for event, base, target, made_of in change.links():
        touch = Touch(step, number, event.kind, event.pattern)
        for address in base:
            touched.setdefault(address, []).append(touch)
        for address in target:
            for source in made_of.get(address, ()):
                add(address, _found(known, source))
            add(address, _Sources({}, {}), (touch,))
    for address, sources in known.items():
        place = change.part.patch.where(address)
        if place is not None:
            add(place, sources, touched.get(address, ()))
        elif address not in touched:
            # A constant that went with the nodes that took it: no event names it.
            touched[address] = [Touch(step, number, "eliminated", "")]
        for original in sources.nodes:
            history = gone.setdefault(original, {})
            history.update(sources.touches)
            history.update(dict.fromkeys(touched.get(address, ())))
    return made


def _members(events: Iterable[Event]) -> Iterator[tuple[Event, list[str], list[str]]]:
    """Every member of an event that is about nodes, with those of both sides."""
    for event in events:
        for member in event.members:
            base, target = _nodes(member.base), _nodes(member.target)
            if bool(base) != bool(target) or (base and event.kind not in _UNTOUCHING):
                yield event, base, target


def _nodes(addresses: Iterable[str]) -> list[str]:
    found = []
    for address in addresses:
        match = _NODE.match(address)
        if match and not _IN_GRAPH.match(address, match.end()):
            found.append(match[0])
    return list(dict.fromkeys(found))


def _found(known: dict[str, _Sources], address: str) -> _Sources:
    """What is known of a node; of one in a subgraph that nobody spoke of, what is known of the node around it."""
    while address:
        if address in known:
            return known[address]
        match = _NODE.match(address.rpartition("/node/")[0])
        address = match[0] if match else ""
    return _Sources({}, {})


def _story(sources: _Sources) -> Story:
    return Story(tuple(sources.nodes), tuple(sources.touches))


def _fates(first: list[str], origins: dict[str, Story], gone: dict[str, dict[Touch, None]]) -> dict[str, Story]:
    nodes: dict[str, dict[str, None]] = {address: {} for address in first}
    for address, story in origins.items():
        for original in story.nodes:
            nodes[original][address] = None
    return {address: Story(tuple(found), tuple(gone.get(address, ()))) for address, found in nodes.items()}
