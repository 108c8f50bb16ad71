"""All nodes of two models in one list, each with what happened to it."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.events import Event
from onnxjson.diffing.places import called
from onnxjson.index import NodeRef, Scope
from onnxjson.matching.alignment import UNMATCHED, GraphPair
from onnxjson.rendering.diff_report import Nodes, Report, operator_of

State = Literal["same", "changed", "removed", "added"]

STATES: Final[tuple[State, ...]] = ("changed", "removed", "added", "same")


class NodeRow(NamedTuple):
    """One node, or two that are counterparts. Texts of models, not yet made visible."""

    state: State
    operator: str
    name: str
    """Its own, else that of its first output."""
    base: str | None
    target: str | None
    """Addresses."""
    events: tuple[int, ...]
    """Which events of the report are about it, by position."""


def node_rows(report: Report) -> Iterator[NodeRow]:
    """Every node of both models: those of paired graphs in the order of the target, removed ones where they stood."""
    happened = _events_of_nodes(report)
    paired_base = {pair.base.address for pair in report.alignment.graphs}
    paired_target = {pair.target.address for pair in report.alignment.graphs}
    for pair in report.alignment.graphs:
        for base, target in _in_order(pair):
            yield _row(
                NodeRef(pair.base, base) if base != UNMATCHED else None,
                NodeRef(pair.target, target) if target != UNMATCHED else None,
                happened,
            )
    for scope in report.alignment.base.scopes:
        if scope.address not in paired_base:
            yield from (_row(ref, None, happened) for ref in _refs(scope))
    for scope in report.alignment.target.scopes:
        if scope.address not in paired_target:
            yield from (_row(None, ref, happened) for ref in _refs(scope))


def _refs(scope: Scope) -> Iterator[NodeRef]:
    return (NodeRef(scope, position) for position in range(len(scope.graph.node)))


def _in_order(pair: GraphPair) -> Iterator[tuple[int, int]]:
    removed = iter([position for position, other in enumerate(pair.target_of) if other == UNMATCHED])
    waiting = next(removed, None)
    for target, base in enumerate(pair.base_of):
        while waiting is not None and waiting < base:
            yield waiting, UNMATCHED
            waiting = next(removed, None)
        yield base, target
    while waiting is not None:
        yield waiting, UNMATCHED
        waiting = next(removed, None)


_Happened = tuple[dict[NodeRef, list[int]], dict[NodeRef, list[int]]]
"""Positions of events by the nodes of the base, and by those of the target."""


def _events_of_nodes(report: Report) -> _Happened:
    nodes = Nodes(report.alignment)
    happened: _Happened = ({}, {})
    for position, event in enumerate(report.events):
        for side, ref in _nodes_of(event, nodes):
            found = happened[side].setdefault(ref, [])
            if position not in found:
                found.append(position)
    return happened


def _nodes_of(event: Event, nodes: Nodes) -> Iterator[tuple[int, NodeRef]]:
    for member in event.members:
        for side, refs in enumerate(nodes.of(member)):
            yield from ((side, ref) for ref in refs)


def _row(base: NodeRef | None, target: NodeRef | None, happened: _Happened) -> NodeRow:
    ref = target or base
    assert ref is not None
    events = [
        *(happened[0].get(base, ()) if base is not None else ()),
        *(happened[1].get(target, ()) if target is not None else ()),
    ]
    state: State = "added" if base is None else "removed" if target is None else "changed" if events else "same"
    return NodeRow(
        state=state,
        operator=operator_of(ref),
        name=called(ref.node),
        base=base.address if base is not None else None,
        target=target.address if target is not None else None,
        events=tuple(sorted(set(events))),
    )
