"""Cut nodes without counterparts into regions, and explain inputs whose values are not counterparts."""

from collections.abc import Iterable
from typing import NamedTuple

from onnxjson.diffing.changes import Change, Region
from onnxjson.diffing.comparing import BASE, TARGET, ChangedSlot, DiffContext, GraphComparison, GraphConstant
from onnxjson.diffing.details import place_of
from onnxjson.diffing.events import Detail
from onnxjson.model.document import Tensor
from onnxjson.model.operators import operator_name


class RegionDraft(NamedTuple):
    """A region before its classification."""

    graph: GraphComparison
    region: Region
    slots: tuple[ChangedSlot, ...]
    """Inputs of paired nodes outside the region that consume its outputs."""
    change: Change


class RegionFinder:
    """Cuts the unmatched nodes of all graphs into regions."""

    def __init__(self, context: DiffContext) -> None:
        self._context = context
        self._outputs: dict[GraphComparison, list[ChangedSlot]] = {graph: [] for graph in context.graphs}
        self.plain: list[ChangedSlot] = []
        """Inputs with another value, where paired nodes, inputs or constants produce both values."""

    def find(self) -> list[RegionDraft]:
        """Return all regions, ordered by graph and first node."""
        self._find_cuts()
        for graph in self._context.graphs:
            self._join_neighbours(graph)
        for graph in self._context.graphs:
            for slot in graph.slots:
                self._place(slot)
        return [draft for graph in self._context.graphs for draft in self._drafts(graph)]

    def _find_cuts(self) -> None:
        """Find the ends of rewrites: values that paired nodes consume, even if another rewrite continues there."""
        candidates: dict[GraphComparison, list[dict[str, set[str]]]] = {}
        for graph in self._context.graphs:
            for slot in graph.slots:
                old = graph.unmatched_producer(BASE, slot.old)
                new = graph.unmatched_producer(TARGET, slot.new)
                if old is not None and new is not None and old[0] is new[0]:
                    partners = candidates.setdefault(old[0], [{}, {}])
                    partners[BASE].setdefault(slot.old, set()).add(slot.new)
                    partners[TARGET].setdefault(slot.new, set()).add(slot.old)
        for graph, (names, target_names) in candidates.items():
            for name, others in names.items():
                other = min(others)
                if len(others) == len(target_names[other]) == 1:
                    graph.cuts[BASE][name] = other
                    graph.cuts[TARGET][other] = name
        for graph in self._context.graphs:
            for side in (BASE, TARGET):
                for name in graph.produced[side]:
                    source = graph.source(side, name)
                    alike = graph.translate_back(source) if side else graph.translate(source)
                    if source != name and (alike or graph.constant(side, source)):
                        graph.cuts[side].setdefault(name, alike or "")

    @staticmethod
    def _join_neighbours(graph: GraphComparison) -> None:
        components = graph.components
        for side in (BASE, TARGET):
            for position in graph.unmatched[side]:
                components.add((side, position))
            produced = graph.produced[side]
            for position in graph.unmatched[side]:
                for name in graph.consumed(side, position):
                    if name in produced and name not in graph.cuts[side]:
                        components.join((side, position), (side, produced[name]))
        for name, other in graph.cuts[BASE].items():
            ends = graph.produced[BASE].get(name), graph.produced[TARGET].get(other)
            if ends[BASE] is not None and ends[TARGET] is not None:
                components.join((BASE, ends[BASE]), (TARGET, ends[TARGET]))
        for position in graph.replaced:
            partner = graph.pair.target_of[position]
            components.add((BASE, position))
            components.add((TARGET, partner))
            components.join((BASE, position), (TARGET, partner))

    def _place(self, slot: ChangedSlot) -> None:
        old = slot.graph.unmatched_producer(BASE, slot.old)
        new = slot.graph.unmatched_producer(TARGET, slot.new)
        if old is not None and new is not None and old[0] is new[0]:
            old[0].components.join((BASE, old[1]), (TARGET, new[1]))
        maker = new or old
        (self.plain if maker is None else self._outputs[maker[0]]).append(slot)

    def _drafts(self, graph: GraphComparison) -> list[RegionDraft]:
        slots: dict[tuple[int, int], list[ChangedSlot]] = {}
        components = graph.components
        self._join_dead_ends(graph)
        for slot in self._outputs[graph]:
            for side, name in ((TARGET, slot.new), (BASE, slot.old)):
                if name in graph.produced[side]:
                    slots.setdefault(components.find((side, graph.produced[side][name])), []).append(slot)
                    break
        drafts = []
        for base, target in components.sets():
            if self._is_nothing(graph, base, target):
                continue
            node = (BASE, base[0]) if base else (TARGET, target[0])
            region_slots = tuple(slots.get(components.find(node), ()))
            replaced = [position for position in base if position in graph.replaced]
            pairs = [pair for position in replaced for pair in graph.output_pairs(position)]
            region = cut_region(graph, base, target, region_slots, pairs)
            anchor = base[0] if base else self._anchor(graph, region, region_slots, target[0])
            change = Change(
                "replaced",
                "",
                tuple([graph.node_address(position) for position in base]),
                tuple([graph.node_address(position, TARGET) for position in target]),
                order=(graph.number, anchor, 0 if base else 1),
                region=region,
            )
            members = [(graph, side, place) for side, places in enumerate((base, target)) for place in places]
            self._context.region_changes.update(dict.fromkeys(members, change))
            drafts.append(RegionDraft(graph, region, region_slots, change))
        return drafts

    @staticmethod
    def _is_nothing(graph: GraphComparison, base: list[int], target: list[int]) -> bool:
        """Whether the region is a single node, equal in both models, in equal lists of nodes."""
        nodes, target_nodes = graph.nodes(BASE), graph.nodes(TARGET)
        return base == target and len(base) == 1 and nodes[base[0]] == target_nodes[target[0]] and nodes == target_nodes

    def _join_dead_ends(self, graph: GraphComparison) -> None:
        """Join regions without consumers, one of each side, that consume the same values."""
        used = {slot.old for slot in self._outputs[graph]}, {slot.new for slot in self._outputs[graph]}
        ends: dict[tuple[str | None, ...], tuple[list[int], list[int]]] = {}
        for base, target in graph.components.sets():
            side, positions = (BASE, base) if base else (TARGET, target)
            nodes = graph.nodes(side)
            outputs = {name for position in positions for name in nodes[position].output if name}
            if (base and target) or outputs & used[side]:
                continue
            taken = [name for position in positions for name in graph.consumed(side, position) if name not in outputs]
            names = [graph.translate(name) for name in taken] if side == BASE else list(taken)
            key = tuple(sorted(map(str, names)))
            ends.setdefault(key, ([], []))[side].append(positions[0])
        for bases, targets in ends.values():
            if len(bases) == len(targets) == 1:
                graph.components.join((BASE, bases[0]), (TARGET, targets[0]))

    @staticmethod
    def _anchor(graph: GraphComparison, region: Region, slots: tuple[ChangedSlot, ...], position: int) -> int:
        """Return the base position next to new nodes, to order events."""
        places = [slot.base for slot in slots if slot.base is not None and slot.graph is graph]
        if places:
            return min(places) - 1
        before = [each for each in graph.pair.base_of[max(0, position - 64) : position] if each >= 0]
        return before[-1] if before else position


def cut_region(
    graph: GraphComparison,
    base: list[int],
    target: list[int],
    slots: tuple[ChangedSlot, ...],
    pairs: Iterable[tuple[str, str]] = (),
) -> Region:
    """Cut out the region of some nodes, with the values that cross its border.

    `slots` are inputs outside that consume their outputs, `pairs` further outputs, in pairs, that are consumed outside.
    """
    ends = [
        (graph.cuts[TARGET][name], name) if side else (name, graph.cuts[BASE][name])
        for side, positions in ((BASE, base), (TARGET, target))
        for position in positions
        for name in graph.nodes(side)[position].output
        if name in graph.cuts[side] and not graph.near_consumers[side][name] <= set(positions)
    ]
    crossing = [*((slot.old, slot.new) for slot in slots), *ends, *pairs]
    outputs = dict.fromkeys([(old, new) for old, new in crossing if old and new])
    inputs: dict[tuple[str | None, str | None], None] = {}
    constants: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for side, positions in ((BASE, base), (TARGET, target)):
        produced = {name for position in positions for name in graph.nodes(side)[position].output}
        taken = [name for position in positions for name in graph.consumed(side, position)]
        for name in dict.fromkeys((*taken, *[pair[side] for pair in outputs])):
            if not name or name in produced:
                continue
            if graph.constant(side, graph.source(side, name)) is not None:
                constants[side][graph.source(side, name)] = None
            elif side == BASE:
                inputs[name, graph.cuts[BASE].get(name) or graph.translate(name)] = None
            else:
                inputs[graph.cuts[TARGET].get(name) or graph.translate_back(name), name] = None
    values, results = tuple(inputs), tuple(outputs)
    return Region(graph.pair, tuple(base), tuple(target), values, results, tuple(constants[0]), tuple(constants[1]))


def claim_region(draft: RegionDraft) -> None:
    """Claim everything that a region explains: its nodes, its constants, the inputs around it."""
    graph, region, change = draft.graph, draft.region, draft.change
    claims, target_claims = [], list(change.target)
    for position in region.base:
        # A node that stays belongs to the region only in the parts that the region changes.
        if graph.pair.target_of[position] < 0 or position in graph.replaced:
            claims.append(graph.node_address(position))
    for side, addresses in ((BASE, claims), (TARGET, target_claims)):
        for name in region.constants(side):
            constant = graph.constant(side, name)
            if constant is not None and not constant.is_paired(side):
                addresses.append(constant.address)
    claims += [slot.claim for slot in draft.slots]
    graph.context.ledger.add(change, claims, target_claims)


def report_rewiring(slots: list[ChangedSlot]) -> None:
    """Report inputs that consume another value, or another constant, without a rewrite."""
    by_node: dict[tuple[GraphComparison, int | None], list[ChangedSlot]] = {}
    for slot in slots:
        by_node.setdefault((slot.graph, slot.base), []).append(slot)
    for (graph, position), found in by_node.items():
        rewired = [slot for slot in found if not _take_other_constant(slot)]
        if position is None:
            for slot in rewired:
                _add_rewired(graph, "graph output", slot.address, [slot], "")
        elif rewired:
            node = graph.nodes(BASE)[position]
            places = ", ".join(str(slot.place) for slot in rewired)
            pattern = f"{operator_name(node.domain, node.op_type)} input{'s' if len(rewired) > 1 else ''} {places}"
            change = _add_rewired(graph, pattern, graph.node_address(position), rewired, place_of(node))
            graph.changes.setdefault(position, []).append(change)


def _add_rewired(graph: GraphComparison, pattern: str, address: str, slots: list[ChangedSlot], place: str) -> Change:
    slot, context = slots[0], graph.context
    if slot.base is None or slot.target is None:
        target_address = f"{graph.target_address}/output/{slot.other_place}"
    else:
        target_address = graph.node_address(slot.target, TARGET)
    details = []
    claims: tuple[list[str], list[str]] = ([], [])
    for rewired in slots:
        texts = source_text(graph, BASE, rewired.old), source_text(graph, TARGET, rewired.new)
        details.append(Detail(f"{'output' if rewired.base is None else 'input'} {rewired.place}", *texts))
        for side, name in enumerate((rewired.old, rewired.new)):
            constant = graph.constant(side, name) if name else None
            if constant is not None and not constant.is_paired(side):
                claims[side].append(constant.address)
    order = (graph.number, -1 if slot.base is None else slot.base)
    change = Change("rewired", pattern, (address,), (target_address,), place, tuple(details), order=order)
    context.ledger.add(change, *claims)
    context.rewired_slots += [(rewired, change) for rewired in slots]
    context.ledger.take(change, [rewired.claim for rewired in slots])
    return change


def source_text(graph: GraphComparison, side: int, name: str) -> str | None:
    """Return a readable text for the source of a value; None for no value."""
    if not name:
        return None
    defining_graph = graph.defining_graph(side, name)
    if defining_graph is None:
        return name
    if graph.constant(side, name) is not None:
        return f"{name} (constant)"
    producer = defining_graph.scopes[side].producer(name)
    return f"{name} ({operator_name(producer.node.domain, producer.node.op_type) if producer else 'input'})"


def _take_other_constant(slot: ChangedSlot) -> bool:
    """Report an input that consumes an unpaired constant before or after; False if it is not such an input."""
    graph, context = slot.graph, slot.graph.context
    old, new = graph.constant(BASE, slot.old), graph.constant(TARGET, slot.new)
    if old is None or new is None or (old.is_paired(BASE) and new.is_paired(TARGET)):
        return False
    claims = [[] if each.is_paired(side) else [each.address] for side, each in enumerate((old, new))]
    known = [context.ledger.claimed(address, side) for side, addresses in enumerate(claims) for address in addresses]
    change = next(filter(None, known), None)
    if change is not None:
        context.ledger.claim(change, [slot.claim])
        return True
    change = _constant_change(graph, old, new)
    change.base, change.target = (old.address,), (new.address,)
    change.place, change.order = old.name, (graph.number, -1)
    context.ledger.add(change, [slot.claim, *claims[BASE]], claims[TARGET])
    context.changed_constants.append((graph, old.name, change))
    return True


def _constant_change(graph: GraphComparison, old: GraphConstant, new: GraphConstant) -> Change:
    detail, weights = Detail("constant", old.name, new.name), graph.context.weights
    if not isinstance(old.tensor, Tensor) or not isinstance(new.tensor, Tensor):
        return Change("weights-changed", "", details=(detail,))
    if not weights.equal(old.tensor, new.tensor):
        found = weights.compare(old.tensor, new.tensor)
        if found is not None:
            return Change(found.kind, found.pattern, details=(detail, *found.details))
    elif old.is_paired(BASE):
        return Change("storage-changed", "a separate constant instead of a shared one", details=(detail,))
    elif new.is_paired(TARGET):
        return Change("merged", "constants", details=(detail,))
    return Change("storage-changed", "constants", details=(detail,))
