"""Nodes that went into the constants of a neighbour, or came out of them: a BatchNormalization in a Conv's weights.

The neighbour itself has a counterpart, so it is in no region; but where its constants changed and the region beside it
had constants of its own, the two are one rewrite.
"""

from collections.abc import Iterable

from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison, Slot
from onnxjson.diffing.region_changes import Draft, cut_out


def absorb_neighbours(context: Context, drafts: list[Draft], plain: list[Slot]) -> tuple[list[Draft], list[Slot]]:
    """The regions with such neighbours in them, and the inputs that these do not explain."""
    return _Absorption(context, plain).run(drafts)


class _Absorption:
    def __init__(self, context: Context, plain: list[Slot]) -> None:
        self._context = context
        self._plain = plain
        self._absorbed: set[tuple[GraphComparison, int]] = set()
        self._changes: dict[tuple[GraphComparison, str], Change] = {}
        for graph, name, change in context.changed_constants:
            if change.kind in ("weights-changed", "weights-re-laid", "reshaped"):
                self._changes[graph, name] = change
        self._new_constants: dict[tuple[GraphComparison, int], list[Slot]] = {}
        for slot in plain:
            if slot.base is not None and self._is_constant_only(slot):
                self._new_constants.setdefault((slot.graph, slot.base), []).append(slot)

    @staticmethod
    def _is_constant_only(slot: Slot) -> bool:
        """Whether the input took nothing or a constant, and takes the other of them."""
        mine = not slot.old or slot.graph.constant(BASE, slot.old) is not None
        its = not slot.new or slot.graph.constant(TARGET, slot.new) is not None
        return mine and its

    def run(self, drafts: list[Draft]) -> tuple[list[Draft], list[Slot]]:
        if self._changes or self._new_constants:
            drafts = [self._with_neighbour(draft) for draft in drafts]
        plain = [slot for slot in self._plain if (slot.graph, slot.base) not in self._absorbed]
        return drafts, plain

    def _with_neighbour(self, draft: Draft) -> Draft:
        region, graph = draft.region, draft.graph
        if bool(region.base) == bool(region.target) or not region.outputs:
            return draft
        side = BASE if region.base else TARGET
        if not self._all_have_constants(graph, side, region.base or region.target):
            return draft
        for position in self._neighbours(draft, side):
            if (graph, position) not in self._absorbed and self._has_other_constants(graph, position):
                return self._joined(draft, position)
        return draft

    @staticmethod
    def _all_have_constants(graph: GraphComparison, side: int, positions: Iterable[int]) -> bool:
        """Whether every node takes a constant that the other model does not have."""
        for position in positions:
            constants = [graph.constant(side, name) for name in graph.taken(side, position)]
            if not any(each is not None and not each.is_paired(side) for each in constants):
                return False
        return True

    def _neighbours(self, draft: Draft, side: int) -> Iterable[int]:
        """Base positions of the paired nodes that alone feed the region, or that alone take of it."""
        graph, region = draft.graph, draft.region
        scope = graph.scopes[side]
        inside = set(region.base or region.target)
        for pair in region.inputs:
            name = pair[side]
            maker = graph.maker(side, name or "")
            if maker is None or name in scope.output_names:
                continue
            if any(taker not in inside for taker, _ in scope.takers.get(name or "", ())):
                continue
            position = maker[0] if side == BASE else graph.pair.base_of[maker[0]]
            if position >= 0 and len(graph.nodes(BASE)[position].output) == 1:
                yield position
        takers = {(slot.graph, slot.base) for slot in draft.slots}
        if len(takers) == 1:
            home, position_or_none = next(iter(takers))
            if home is graph and position_or_none is not None:
                yield position_or_none

    def _has_other_constants(self, graph: GraphComparison, position: int) -> bool:
        node = graph.nodes(BASE)[position]
        if position in graph.replaced or node.op_type is None:
            return False
        return (graph, position) in self._new_constants or any((graph, name) in self._changes for name in node.input)

    def _joined(self, draft: Draft, position: int) -> Draft:
        graph, region, change = draft.graph, draft.region, draft.change
        partner = graph.pair.target_of[position]
        base, target = sorted({*region.base, position}), sorted({*region.target, partner})
        slots = tuple([slot for slot in draft.slots if slot.base != position or slot.graph is not graph])
        node, its = graph.nodes(BASE)[position], graph.nodes(TARGET)[partner]
        # The neighbour's own output is one of the region's where the region stands before it.
        own = list(zip(node.output, its.output, strict=False)) if len(slots) < len(draft.slots) else []
        joined = cut_out(graph, base, target, slots, own)
        change.base = tuple([graph.node_address(each) for each in base])
        change.target = tuple([graph.node_address(each, TARGET) for each in target])
        change.region = joined
        self._absorbed.add((graph, position))
        self._context.region_changes[graph, BASE, position] = change
        self._context.region_changes[graph, TARGET, partner] = change
        for name in node.input:
            found = self._changes.get((graph, name))
            if found is not None and found.into is None:
                found.into = change
        for found in graph.changes.get(position, ()):
            found.into = change
        claims = [slot.address for slot in draft.slots if slot not in slots]
        claims += [slot.address for slot in self._new_constants.get((graph, position), ())]
        self._context.ledger.claim(change, claims)
        return Draft(graph, joined, slots, change)
