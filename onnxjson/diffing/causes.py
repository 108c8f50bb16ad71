"""Which change another one follows from: the type of a value changed since something before it did."""

from collections.abc import Collection, Iterator

from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, Context, GraphComparison
from onnxjson.diffing.events import Kind

_CAUSES: frozenset[Kind] = frozenset({"attribute-changed", "rewired", "field-changed"})
"""Kinds of changes of a node that can change the types of what it makes."""


def causes_of(
    context: Context, graph: GraphComparison, names: Collection[str], same: Collection[str]
) -> dict[str, Change]:
    """The nearest change before each value.

    Args:
        context: what is shared.
        graph: the graphs.
        names: names in the base of values whose types changed.
        same: names of values that are known to be what they were: nothing comes from beyond them.
    """
    found: dict[str, Change | None] = dict.fromkeys(set(same) - set(names))
    for start in names:
        _find(context, graph, start, found)
    return {name: cause for name in names if (cause := found.get(name)) is not None}


def _find(context: Context, graph: GraphComparison, start: str, found: dict[str, Change | None]) -> None:
    """Follow the inputs, depth first, without recursion: chains are as long as graphs are."""
    if start in found:
        return
    pending = [(start, _before(context, graph, start, found))]
    while pending:
        name, before = pending[-1]
        each = next(before, None)
        if each is None:
            pending.pop()
            if pending and found[pending[-1][0]] is None:
                found[pending[-1][0]] = found[name]
        elif found[name] is not None:
            pending[-1] = (name, iter(()))
        elif each in found:
            found[name] = found[each]
        else:
            pending.append((each, _before(context, graph, each, found)))


def _before(context: Context, graph: GraphComparison, name: str, found: dict[str, Change | None]) -> Iterator[str]:
    """The values that a value is made of, none where its own cause is known; notes that cause."""
    maker = graph.maker(BASE, name)
    found[name] = _own_cause(context, graph, name, None if maker is None else maker[0])
    if found[name] is not None or maker is None:
        return iter(())
    return iter(list(dict.fromkeys(filter(None, graph.nodes(BASE)[maker[0]].input))))


def _own_cause(context: Context, graph: GraphComparison, name: str, position: int | None) -> Change | None:
    """The change of what makes a value."""
    claimed = context.ledger.claimed
    base = graph.pair.base
    if position is not None:
        region = context.region_changes.get((graph, BASE, position)) or context.slot_changes.get((graph, position))
        if region is not None:
            return region.cause()
        changes = graph.changes.get(position, ())
        return next((change.cause() for change in changes if change.kind in _CAUSES), None)
    if name in base.initializers:
        address = f"{graph.address}/initializer/{base.initializers[name]}"
        return claimed(f"{address}/raw_data") or claimed(address)
    if name in base.inputs:
        return claimed(f"{graph.address}/input/{base.inputs[name]}/type")
    return None
