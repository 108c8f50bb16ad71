"""Inputs of paired nodes that take another value, or another constant, although no rewrite is behind it."""

from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, TARGET, Constant, Context, GraphComparison, Slot
from onnxjson.diffing.events import Detail
from onnxjson.diffing.places import place_of
from onnxjson.document import Tensor
from onnxjson.operators import operator_name


def plain_slots(context: Context, slots: list[Slot]) -> None:
    """Inputs that take another value: rewired, or with another constant than before."""
    by_node: dict[tuple[GraphComparison, int | None], list[Slot]] = {}
    for slot in slots:
        by_node.setdefault((slot.graph, slot.base), []).append(slot)
    for (graph, position), found in by_node.items():
        rewired = [slot for slot in found if not _constants(context, slot)]
        if not rewired:
            continue
        if position is None:
            for slot in rewired:
                _add_rewired(context, graph, "graph output", slot.address, [slot], "")
        else:
            node = graph.nodes(BASE)[position]
            places = ", ".join(str(slot.place) for slot in rewired)
            pattern = f"{operator_name(node.domain, node.op_type)} input{'s' if len(rewired) > 1 else ''} {places}"
            change = _add_rewired(context, graph, pattern, graph.node_address(position), rewired, place_of(node))
            graph.changes.setdefault(position, []).append(change)


def _add_rewired(
    context: Context, graph: GraphComparison, pattern: str, address: str, slots: list[Slot], place: str
) -> Change:
    slot = slots[0]
    if slot.base is None or slot.target is None:
        its_address = f"{graph.target_address}/output/{slot.other_place}"
    else:
        its_address = graph.node_address(slot.target, TARGET)
    details = tuple(
        [
            Detail(
                f"output {each.place}" if each.base is None else f"input {each.place}",
                source_text(graph, BASE, each.old),
                source_text(graph, TARGET, each.new),
            )
            for each in slots
        ]
    )
    position = -1 if slot.base is None else slot.base
    change = Change("rewired", pattern, (address,), (its_address,), place, details, order=(graph.number, position))
    claims: list[str] = []
    its_claims: list[str] = []
    for each in slots:
        for side, name, addresses in ((BASE, each.old, claims), (TARGET, each.new, its_claims)):
            constant = graph.constant(side, name) if name else None
            if constant is not None and not constant.is_paired(side):
                addresses.append(constant.address)
    context.ledger.add(change, claims, its_claims)
    context.rewired_slots += [(each, change) for each in slots]
    context.ledger.take(change, [each.claim for each in slots])
    return change


def source_text(graph: GraphComparison, side: int, name: str) -> str | None:
    """What makes a value, for a person; None for nothing."""
    if not name:
        return None
    home = graph.home(side, name)
    if home is None:
        return name
    scope = home.scopes[side]
    if graph.constant(side, name) is not None:
        return f"{name} (constant)"
    if name in scope.inputs:
        return f"{name} (input)"
    maker = home.maker(side, name)
    if maker is None:
        return name
    made_by = scope.graph.node[maker[0]]
    return f"{name} ({operator_name(made_by.domain, made_by.op_type)})"


def _constants(context: Context, slot: Slot) -> bool:
    """Whether an input takes a constant as before, one of them without a counterpart; that is noted."""
    graph = slot.graph
    old, new = graph.constant(BASE, slot.old), graph.constant(TARGET, slot.new)
    if old is None or new is None or (old.is_paired(BASE) and new.is_paired(TARGET)):
        return False
    claims = [(each, side) for side, each in enumerate((old, new)) if not each.is_paired(side)]
    known = next(filter(None, [context.ledger.claimed(each.address, side) for each, side in claims]), None)
    claim = slot.claim
    if known is not None:
        context.ledger.claim(known, [claim])
        return True
    change = _constant_change(context, graph, old, new)
    change.base, change.target = (old.address,), (new.address,)
    change.place = old.name
    change.order = (graph.number, -1)
    context.ledger.add(
        change,
        [claim] + ([] if old.is_paired(BASE) else [old.address]),
        [] if new.is_paired(TARGET) else [new.address],
    )
    context.constants_changed(graph, old.name, change)
    return True


def _constant_change(context: Context, graph: GraphComparison, old: Constant, new: Constant) -> Change:
    detail = Detail("constant", old.name, new.name)
    if not isinstance(old.tensor, Tensor) or not isinstance(new.tensor, Tensor):
        return Change("weights-changed", "", details=(detail,))
    if not context.weights.equal(old.tensor, new.tensor):
        found = context.weights.compare(old.tensor, new.tensor)
        if found is not None:
            return Change(found.kind, found.pattern, details=(detail, *found.details))
        return Change("storage-changed", "constants", details=(detail,))
    if old.is_paired(BASE):
        return Change("storage-changed", "a constant of its own instead of a shared one", details=(detail,))
    if new.is_paired(TARGET):
        return Change("merged", "constants", details=(detail,))
    return Change("storage-changed", "constants", details=(detail,))
