"""The interface of a merged model: its inputs and outputs, which others know by their names, and who makes an output.

Nodes are paired by structure, and a structure may be found again at another output. What another program gets under a
name must still be what one of the sides gives it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson import document as d
from onnxjson.index import NodeRef, Scope
from onnxjson.merging.sides import Side
from onnxjson.merging.soundness import Soundness
from onnxjson.operators import OperatorKey, operator_key
from onnxjson.patching.changes import Fields, Members

_MAIN: Final = "/graph"
_COMPUTATION: Final = frozenset({"op_type", "domain", "overload", "attribute", "input"})
"""The fields of a node that say what it computes."""


class _Maker(NamedTuple):
    """Who makes an output."""

    position: int
    """Of the node in the base; -1 for one that is not there."""
    operator: OperatorKey


_NOBODY: Final = _Maker(-1, ("", "", ""))
"""The maker of what is an input or a constant, too."""


def keeps_interface(base: d.Model, sides: tuple[Side, Side], sound: Soundness, final: d.Model) -> bool:
    """Whether a merge without conflicts has the inputs and outputs that it must have.

    Args:
        base: what both sides began with.
        sides: ours and theirs.
        sound: the look at the merged model with names of the base.
        final: the merged model with its own names.
    """
    graphs = base.graph, sides[0].original.graph, sides[1].original.graph, final.graph
    if any(graph is None for graph in graphs):
        return True
    for field in ("input", "output"):
        lists = [[info.name or "" for info in getattr(graph, field)] for graph in graphs]
        if any(len(set(names)) < len(names) for names in lists):
            continue
        known = [_known(lists[0], names, side) for names, side in zip(lists[1:3], sides, strict=True)]
        expected = {_of_three(name, known[0][name], known[1][name]) for name in known[0].keys() & known[1].keys()}
        for names, there in zip(lists[1:3], known, strict=True):
            expected |= set(names) - set(there.values())
        if expected != set(lists[3]):
            return False
    outputs = frozenset(_outputs(base))
    return not any(_is_crossed(*makers, sides, outputs) for makers in _makers(base, sides, sound, final))


def interface_names(model: d.Model | None) -> frozenset[str | None]:
    """The names of the inputs and outputs of the main graph."""
    graph = None if model is None else model.graph
    return frozenset() if graph is None else frozenset([info.name for info in (*graph.input, *graph.output)])


def _known(base: list[str], names: list[str], side: Side) -> dict[str, str]:
    """Inputs or outputs of the base that are still there -> their names on a side."""
    values = side.values.get(_MAIN, {})
    there = frozenset(names)
    found = {name: name for name in base if name in there}
    for name in base:
        other = values.get(name, name)
        if name not in found and other in there and other not in found:
            found[name] = other
    return found


def _of_three(base: str, ours: str, theirs: str) -> str:
    return theirs if ours == base else ours


def _outputs(model: d.Model) -> list[str]:
    return [] if model.graph is None else [info.name or "" for info in model.graph.output]


def _makers(
    base: d.Model, sides: tuple[Side, Side], sound: Soundness, final: d.Model
) -> Iterator[tuple[_Maker, _Maker, _Maker, _Maker, str]]:
    """For each output that all have, the makers in the base, ours, theirs and the merged model, and its name."""
    matches = [next((match for match in side.matches if match.base.address == _MAIN), None) for side in sides]
    merged = sound.main
    if merged is None or matches[0] is None or matches[1] is None:
        return
    names = {name: place for place, name in enumerate(_outputs(final))}
    now = merged.output_names
    there = [frozenset(_outputs(side.original)) for side in sides]
    for name in _outputs(base):
        its = [side.values.get(_MAIN, {}).get(name, name) for side in sides]
        present = [name if name in outputs else other for outputs, other in zip(there, its, strict=True)]
        place = names.get(_of_three(name, present[0], present[1]))
        if place is None:
            continue
        yield (
            _maker(matches[0].base, name, None),
            _maker(matches[0].target, present[0], matches[0].base_of),
            _maker(matches[1].target, present[1], matches[1].base_of),
            _merged_maker(merged, now[place] or "", sound),
            name,
        )


def _maker(scope: Scope, name: str, base_of: list[int] | None) -> _Maker:
    found = scope.makers.get(name)
    if found is None:
        return _NOBODY
    return _Maker(found[0] if base_of is None else base_of[found[0]], operator_key(scope.graph.node[found[0]]))


def _merged_maker(scope: Scope, name: str, sound: Soundness) -> _Maker:
    found = scope.makers.get(name)
    if found is None:
        return _NOBODY
    address, _ = sound.node_home(NodeRef(scope, found[0]))
    position = -1 if address is None else int(address.rpartition("/")[2])
    return _Maker(position, operator_key(scope.graph.node[found[0]]))


def _is_crossed(
    base: _Maker,
    ours: _Maker,
    theirs: _Maker,
    merged: _Maker,
    name: str,
    sides: tuple[Side, Side],
    outputs: frozenset[str],
) -> bool:
    """Whether an output has got a maker that no side gives it."""
    is_other = (
        merged.position >= 0
        and merged.position != base.position
        and any(
            each != name and each in outputs
            for each in sides[0].alignment.base.model.graph.node[merged.position].output  # type: ignore[union-attr]
        )
    )
    if is_other:
        # One side gave the output the node of another output, and the other side changed what that node computes.
        for one, other in ((ours, sides[1]), (theirs, sides[0])):
            if one.position == merged.position and _changes_computation(other, merged.position):
                return True
    if _is_either(base.position, ours.position, theirs.position, merged.position):
        return False
    return not _is_either(base.operator, ours.operator, theirs.operator, merged.operator)


def _is_either(base: object, ours: object, theirs: object, merged: object) -> bool:
    """Whether something is what ours and theirs make of it, or what one of them does where they differ."""
    if ours == base:
        return merged == theirs
    return merged in (ours, theirs) if theirs != base else merged == ours


def _changes_computation(side: Side, position: int) -> bool:
    graph = None if side.changes is None else side.changes.changes.get("graph")
    nodes = graph.changes.get("node") if type(graph) is Fields else None
    node = nodes.changes.get(position) if type(nodes) is Members else None
    return node is not None and not _COMPUTATION.isdisjoint(node.changes)
