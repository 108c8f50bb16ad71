"""Constants of rewrites: changes that belong to a rewrite, nodes fused into constants, new places of constants."""

from collections.abc import Iterable
from typing import Final

from onnxjson.diffing.changes import Change, Region
from onnxjson.diffing.comparing import BASE, TARGET, ChangedSlot, DiffContext, GraphComparison, GraphConstant
from onnxjson.diffing.events import Detail
from onnxjson.diffing.region_changes import RegionDraft, cut_region
from onnxjson.model.document import Tensor
from onnxjson.model.operators import operator_name

Owned = dict[tuple[GraphComparison, str], RegionDraft]
"""Regions by the graph that defines the constant and its name in the base."""

_MOST_TRACED: Final = 32
"""Maximum number of traced constants of one region."""

_SCALING: Final = frozenset({"Mul", "Div"})

_WEIGHTED: Final = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def claim_constants(context: DiffContext, drafts: list[RegionDraft]) -> None:
    """Make changes of constants that only a region consumes, with their names, consequences of that region."""
    wanted = _find_own_constants(context, drafts)
    if not wanted:
        return
    _leave_out_shared(context, wanted)
    for (graph, name), draft in wanted.items():
        context.explained_names[graph, name] = draft.change
    for graph, name, change in context.changed_constants:
        found = wanted.get((graph, name))
        if found is not None and change.into is None and change is not found.change:
            change.into = found.change


def _find_own_constants(context: DiffContext, drafts: list[RegionDraft]) -> Owned:
    changed: set[tuple[GraphComparison, str]] = {(graph, name) for graph, name, _ in context.changed_constants}
    owned: Owned = {}
    for draft in drafts:
        if not draft.region.base or not draft.region.target:
            continue
        for name in draft.region.base_constants:
            constant = draft.graph.constant(BASE, name)
            if constant is None or not constant.is_paired(BASE):
                continue
            key = constant.graph, name
            renamed = constant.graph.values[name] != name and not constant.graph.mostly_renamed
            if key in changed or renamed:
                owned.setdefault(key, draft)
    return owned


def _leave_out_shared(context: DiffContext, wanted: Owned) -> None:
    for side in (BASE, TARGET):
        names: dict[str, list[GraphComparison]] = {}
        origin: dict[tuple[GraphComparison, str], tuple[GraphComparison, str]] = {}
        for graph, name in wanted:
            there = graph.values[name] if side else name
            names.setdefault(there, []).append(graph)
            origin[graph, there] = (graph, name)
        is_elsewhere = names.keys().isdisjoint
        for graph in context.graphs:
            for position, node in enumerate(graph.nodes(side)):
                if is_elsewhere(node.input):
                    continue
                for name in node.input:
                    defining_graph = next((each for each in graph.chain() if each in names.get(name, ())), None)
                    if defining_graph is None:
                        continue
                    draft = wanted.get(origin[defining_graph, name])
                    if draft is not None and not (graph is draft.graph and position in draft.region.nodes(side)):
                        del wanted[origin[defining_graph, name]]


class Absorption:
    """Joins regions with a neighbour whose constants absorbed their nodes: a BatchNormalization in a Conv's weights.

    The neighbour itself has a counterpart, so it is in no region. But if its constants changed and the adjacent region
    had its own constants, the two are one rewrite. `plain` are inputs that consume another value, outside of rewrites.
    """

    def __init__(self, context: DiffContext, plain: list[ChangedSlot]) -> None:
        self._context = context
        self._plain = plain
        self._absorbed: set[tuple[GraphComparison, int]] = set()
        self._changes: dict[tuple[GraphComparison, str], Change] = {}
        for graph, name, change in context.changed_constants:
            if change.kind in ("weights-changed", "weights-re-laid", "reshaped"):
                self._changes[graph, name] = change
        self._new_constants: dict[tuple[GraphComparison, int], list[ChangedSlot]] = {}
        for slot in plain:
            # The input has a constant or no value, before and after, and not the same elements.
            old, new = [slot.graph.constant(side, name) for side, name in enumerate((slot.old, slot.new))]
            if old and new and isinstance(old.tensor, Tensor) and isinstance(new.tensor, Tensor):
                is_other = not context.weights.equal(old.tensor, new.tensor)
            else:
                is_other = bool((old or not slot.old) and (new or not slot.new))
            if slot.base is not None and is_other:
                self._new_constants.setdefault((slot.graph, slot.base), []).append(slot)

    def run(self, drafts: list[RegionDraft]) -> tuple[list[RegionDraft], list[ChangedSlot]]:
        """Return the regions and the remaining inputs."""
        drafts = [self._with_neighbour(draft) for draft in drafts]
        return drafts, [slot for slot in self._plain if (slot.graph, slot.base) not in self._absorbed]

    def _with_neighbour(self, draft: RegionDraft) -> RegionDraft:
        region, graph = draft.region, draft.graph
        if bool(region.base) == bool(region.target) or not region.outputs:
            return draft
        if not self._changes and not self._new_constants:
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
        """Whether every node consumes a constant that the other model does not have."""
        for position in positions:
            constants = [graph.constant(side, name) for name in graph.consumed(side, position)]
            if not any(each is not None and not each.is_paired(side) for each in constants):
                return False
        return True

    def _neighbours(self, draft: RegionDraft, side: int) -> Iterable[int]:
        """Yield base positions of paired nodes that only feed the region, or that are its only consumers."""
        graph, region = draft.graph, draft.region
        scope = graph.scopes[side]
        inside = set(region.base or region.target)
        for pair in region.inputs:
            name = pair[side]
            producer = graph.producer(side, name or "")
            if producer is None or name in scope.output_names:
                continue
            if not graph.near_consumers[side].get(name or "", set()) <= inside:
                continue
            position = producer[0] if side == BASE else graph.pair.base_of[producer[0]]
            if position >= 0 and len(graph.nodes(BASE)[position].output) == 1:
                yield position
        consumers = {(slot.graph, slot.base) for slot in draft.slots}
        if len(consumers) == 1:
            defining_graph, position_or_none = next(iter(consumers))
            if defining_graph is graph and position_or_none is not None:
                yield position_or_none

    def _has_other_constants(self, graph: GraphComparison, position: int) -> bool:
        node = graph.nodes(BASE)[position]
        if position in graph.replaced or node.op_type is None:
            return False
        return (graph, position) in self._new_constants or any((graph, name) in self._changes for name in node.input)

    def _joined(self, draft: RegionDraft, position: int) -> RegionDraft:
        graph, region, change = draft.graph, draft.region, draft.change
        partner = graph.pair.target_of[position]
        base, target = sorted({*region.base, position}), sorted({*region.target, partner})
        slots = tuple([slot for slot in draft.slots if slot.base != position or slot.graph is not graph])
        node = graph.nodes(BASE)[position]
        # If the region feeds the neighbour, the output of the neighbour is an output of the joined region.
        pairs = graph.output_pairs(position) if len(slots) < len(draft.slots) else []
        joined = cut_region(graph, base, target, slots, pairs)
        change.base = tuple([graph.node_address(each) for each in base])
        change.target = tuple([graph.node_address(each, TARGET) for each in target])
        change.region = joined
        self._absorbed.add((graph, position))
        self._context.region_changes[graph, BASE, position] = change
        self._context.region_changes[graph, TARGET, partner] = change
        for name in node.input:
            absorbed = self._changes.get((graph, name))
            if absorbed is not None and absorbed.into is None:
                absorbed.into = change
        for absorbed in graph.changes.get(position, ()):
            absorbed.into = change
        claims = [slot.address for slot in draft.slots if slot not in slots]
        claims += [slot.address for slot in self._new_constants.get((graph, position), ())]
        self._context.ledger.claim(change, claims)
        return RegionDraft(graph, joined, slots, change)


def constant_details(graph: GraphComparison, region: Region, *, is_scaling_only: bool = False) -> list[Detail]:
    """Return a detail for each constant of the base nodes: its name, its old use, its new use.

    With `is_scaling_only`, only for factors that became part of the weights of another node.
    """
    if not region.base:
        return []
    before = _uses(graph, BASE, region.base, region.base_constants)
    after = _uses(graph, TARGET, region.target, region.target_constants)
    details = []
    computed: list[tuple[GraphConstant, str]] = []
    left = list(after)
    for constant, use in before[:_MOST_TRACED]:
        counterpart = _find_counterpart(graph, constant, left)
        if counterpart is None:
            computed.append((constant, use))
        else:
            left.remove(counterpart)
            if not is_scaling_only and (constant.name, use) != (counterpart[0].name, counterpart[1]):
                details.append(Detail(f"constant {constant.name}", use, counterpart[1]))
    into = ", ".join(use for _, use in left)
    for constant, use in computed:
        operator = use.partition(" of ")[2]
        scaled = [place for _, place in left if place.endswith(_WEIGHTED)]
        if scaled and operator in _SCALING:
            operators = ", ".join(dict.fromkeys([place.partition(" of ")[2] for place in scaled]))
            text = f"{operator} folded into weights of {operators}"
            details.append(Detail(text, constant.name, ", ".join(dict.fromkeys(scaled))))
        elif not is_scaling_only:
            details.append(Detail(f"constant {constant.name}", use, f"in {into}" if into else None))
    return details


def _find_counterpart(
    graph: GraphComparison, constant: GraphConstant, candidates: list[tuple[GraphConstant, str]]
) -> tuple[GraphConstant, str] | None:
    """Return the constant of the target with equal elements, in the same or in another order."""
    tensor = constant.tensor
    if not isinstance(tensor, Tensor):
        return None
    counterpart = graph.translate(constant.name)
    ordered = sorted(candidates, key=lambda candidate: candidate[0].name != counterpart)
    for compare in (graph.context.weights.equal, graph.context.weights.re_laid):
        for candidate in ordered:
            other = candidate[0].tensor
            if isinstance(other, Tensor) and compare(tensor, other):
                return candidate
    return None


def _uses(
    graph: GraphComparison, side: int, positions: tuple[int, ...], names: tuple[str, ...]
) -> list[tuple[GraphConstant, str]]:
    """Return the constants that nodes consume with their use: ``input 1 of Conv``."""
    uses: dict[str, tuple[GraphConstant, str]] = {}
    known = set(names)
    for position in positions:
        node = graph.nodes(side)[position]
        for place, name in enumerate([graph.source(side, name) for name in node.input]):
            if name in known and name not in uses and (constant := graph.constant(side, name)) is not None:
                uses[name] = constant, f"input {place} of {operator_name(node.domain, node.op_type)}"
    return list(uses.values())
