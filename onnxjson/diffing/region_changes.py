"""From nodes without a counterpart to regions, and from inputs that take something else to what explains them."""

from collections.abc import Iterable
from typing import NamedTuple

from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison, Slot
from onnxjson.diffing.regions import Region


class Draft(NamedTuple):
    """A region that has not been told apart yet."""

    graph: GraphComparison
    region: Region
    slots: tuple[Slot, ...]
    """Inputs of paired nodes outside that take what the region makes."""
    change: Change


class RegionFinder:
    """Cuts the unmatched nodes of all graphs into regions."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._outputs: dict[GraphComparison, list[Slot]] = {graph: [] for graph in context.graphs}
        self.plain: list[Slot] = []
        """Inputs that take something else although paired nodes, inputs or constants make both."""

    def find(self) -> list[Draft]:
        """All regions, by graph and first node."""
        self._find_cuts()
        for graph in self._context.graphs:
            self._join_neighbours(graph)
        for graph in self._context.graphs:
            for slot in graph.slots:
                self._place(slot)
        return [draft for graph in self._context.graphs for draft in self._drafts(graph)]

    def _find_cuts(self) -> None:
        """A rewrite ends where paired nodes take what it makes, though another rewrite may go on from there."""
        found: dict[GraphComparison, list[dict[str, set[str]]]] = {}
        for graph in self._context.graphs:
            for slot in graph.slots:
                old = graph.maker_without_counterpart(BASE, slot.old)
                new = graph.maker_without_counterpart(TARGET, slot.new)
                if old is not None and new is not None and old[0] is new[0]:
                    there = found.setdefault(old[0], [{}, {}])
                    there[BASE].setdefault(slot.old, set()).add(slot.new)
                    there[TARGET].setdefault(slot.new, set()).add(slot.old)
        for graph, (names, its_names) in found.items():
            for name, others in names.items():
                other = min(others)
                if len(others) == len(its_names[other]) == 1:
                    graph.cuts[BASE][name] = other
                    graph.cuts[TARGET][other] = name

    @staticmethod
    def _join_neighbours(graph: GraphComparison) -> None:
        components = graph.components
        for side in (BASE, TARGET):
            for position in graph.unmatched[side]:
                components.add((side, position))
            made = graph.made[side]
            for position in graph.unmatched[side]:
                for name in graph.taken(side, position):
                    if name in made and name not in graph.cuts[side]:
                        components.join((side, position), (side, made[name]))
        for position in graph.replaced:
            partner = graph.pair.target_of[position]
            components.add((BASE, position))
            components.add((TARGET, partner))
            components.join((BASE, position), (TARGET, partner))

    def _place(self, slot: Slot) -> None:
        """Join what made a value with what makes the value that took its place."""
        old = slot.graph.maker_without_counterpart(BASE, slot.old)
        new = slot.graph.maker_without_counterpart(TARGET, slot.new)
        if old is not None and new is not None and old[0] is new[0]:
            old[0].components.join((BASE, old[1]), (TARGET, new[1]))
            self._outputs[old[0]].append(slot)
        elif new is not None:
            self._outputs[new[0]].append(slot)
        elif old is not None:
            self._outputs[old[0]].append(slot)
        else:
            self.plain.append(slot)

    def _drafts(self, graph: GraphComparison) -> list[Draft]:
        slots: dict[tuple[int, int], list[Slot]] = {}
        components = graph.components
        self._join_dead_ends(graph)
        for slot in self._outputs[graph]:
            for side, name in ((TARGET, slot.new), (BASE, slot.old)):
                if name in graph.made[side]:
                    slots.setdefault(components.find((side, graph.made[side][name])), []).append(slot)
                    break
        drafts = []
        for base, target in components.sets():
            if self._is_nothing(graph, base, target):
                continue
            node = (BASE, base[0]) if base else (TARGET, target[0])
            mine = tuple(slots.get(components.find(node), ()))
            own = [
                pair
                for position in base
                if position in graph.replaced
                for pair in zip(
                    graph.nodes(BASE)[position].output,
                    graph.nodes(TARGET)[graph.pair.target_of[position]].output,
                    strict=False,
                )
            ]
            region = cut_out(graph, base, target, mine, own)
            anchor = base[0] if base else self._anchor(graph, region, mine, target[0])
            change = Change(
                "replaced",
                "",
                tuple([graph.node_address(position) for position in base]),
                tuple([graph.node_address(position, TARGET) for position in target]),
                order=(graph.number, anchor, 0 if base else 1),
                region=region,
            )
            for side, positions in ((BASE, base), (TARGET, target)):
                for position in positions:
                    self._context.region_changes[graph, side, position] = change
            drafts.append(Draft(graph, region, mine, change))
        return drafts

    @staticmethod
    def _is_nothing(graph: GraphComparison, base: list[int], target: list[int]) -> bool:
        """Whether it is one and the same node at the same place of lists that are the same."""
        nodes, its_nodes = graph.nodes(BASE), graph.nodes(TARGET)
        return base == target and len(base) == 1 and nodes[base[0]] == its_nodes[target[0]] and nodes == its_nodes

    def _join_dead_ends(self, graph: GraphComparison) -> None:
        """Regions that nothing takes anything of: one of each side that take the same values are one."""
        used = {slot.old for slot in self._outputs[graph]}, {slot.new for slot in self._outputs[graph]}
        ends: dict[tuple[str | None, ...], tuple[list[int], list[int]]] = {}
        for base, target in graph.components.sets():
            side, positions = (BASE, base) if base else (TARGET, target)
            nodes = graph.nodes(side)
            made = {name for position in positions for name in nodes[position].output if name}
            if (base and target) or made & used[side]:
                continue
            taken = [name for position in positions for name in graph.taken(side, position) if name not in made]
            names = [graph.translate(name) for name in taken] if side == BASE else list(taken)
            key = tuple(sorted(map(str, names)))
            ends.setdefault(key, ([], []))[side].append(positions[0])
        for bases, targets in ends.values():
            if len(bases) == len(targets) == 1:
                graph.components.join((BASE, bases[0]), (TARGET, targets[0]))

    @staticmethod
    def _anchor(graph: GraphComparison, region: Region, slots: tuple[Slot, ...], position: int) -> int:
        """The base position that new nodes stand before or behind, to tell events in their order."""
        places = [slot.base for slot in slots if slot.base is not None and slot.graph is graph]
        if places:
            return min(places) - 1
        before = [each for each in graph.pair.base_of[max(0, position - 64) : position] if each >= 0]
        return before[-1] if before else position


def cut_out(
    graph: GraphComparison,
    base: list[int],
    target: list[int],
    slots: tuple[Slot, ...],
    own: Iterable[tuple[str, str]] = (),
) -> Region:
    """The region of some nodes: what it takes from around it, what is taken of it.

    Args:
        graph: the graphs.
        base: positions of nodes in the base.
        target: positions of nodes in the target.
        slots: inputs outside that take what these nodes make.
        own: pairs of values that these nodes make and that are taken under their own name.
    """
    made = [
        {name for position in positions for name in graph.nodes(side)[position].output if name}
        for side, positions in ((BASE, base), (TARGET, target))
    ]
    outputs: dict[tuple[str, str], None] = {(slot.old, slot.new): None for slot in slots if slot.old and slot.new}
    outputs.update(dict.fromkeys([(old, new) for old, new in own if old and new]))
    inputs: dict[tuple[str | None, str | None], None] = {}
    constants: tuple[dict[str, None], dict[str, None]] = ({}, {})
    passed = [old for old, _ in outputs], [new for _, new in outputs]
    for side, positions in ((BASE, base), (TARGET, target)):
        taken = [name for position in positions for name in graph.taken(side, position)]
        for name in dict.fromkeys((*taken, *passed[side])):
            if not name or name in made[side]:
                continue
            if graph.constant(side, name) is not None:
                constants[side][name] = None
            elif side == BASE:
                inputs[name, graph.cuts[BASE].get(name) or graph.translate(name)] = None
            else:
                inputs[graph.cuts[TARGET].get(name) or graph.translate_back(name), name] = None
    base_constants, target_constants = tuple(constants[BASE]), tuple(constants[TARGET])
    pair = graph.pair
    return Region(pair, tuple(base), tuple(target), tuple(inputs), tuple(outputs), base_constants, target_constants)


def claim_region(context: Context, draft: Draft) -> None:
    """What a region explains: its nodes, its constants, the inputs around it."""
    graph, region, change = draft.graph, draft.region, draft.change
    claims, its_claims = [], list(change.target)
    for position in region.base:
        # Of nodes that stay only what the region changes is its own.
        if graph.pair.target_of[position] < 0 or position in graph.replaced:
            claims.append(graph.node_address(position))
    for side, names, addresses in (
        (BASE, region.base_constants, claims),
        (TARGET, region.target_constants, its_claims),
    ):
        for name in names:
            constant = graph.constant(side, name)
            if constant is not None and not constant.is_paired(side):
                addresses.append(constant.address)
    for slot in draft.slots:
        claims.append(slot.claim)
    context.ledger.changes.append(change)
    context.ledger.claim(change, claims, its_claims)
