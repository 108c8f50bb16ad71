"""What regions have in common, whatever their names and wherever their nodes stand: operators, wiring."""

from collections import Counter
from collections.abc import Hashable

from onnxjson.diffing.comparing import BASE, TARGET, GraphComparison
from onnxjson.diffing.regions import Region
from onnxjson.operators import is_commutative, operator_name


def ordered_operators(graph: GraphComparison, side: int, region: Region) -> list[str]:
    """The operators of one side, each after those whose values it takes; ties in alphabetical order."""
    depths = _depths(graph, side, region)
    nodes = [(depth, graph.nodes(side)[position]) for position, depth in depths.items()]
    return [name for _, name in sorted((depth, operator_name(node.domain, node.op_type)) for depth, node in nodes)]


def _by_dependence(graph: GraphComparison, side: int, region: Region) -> tuple[list[int], dict[str, tuple[int, int]]]:
    """The nodes of one side, producers first; and what they make: name -> position and output slot."""
    positions = region.nodes(side)
    nodes = graph.nodes(side)
    made = {
        name: (position, slot) for position in positions for slot, name in enumerate(nodes[position].output) if name
    }
    order: list[int] = []
    state: dict[int, bool] = {}
    for start in positions:
        pending = [start]
        while pending:
            position = pending[-1]
            if position in state:
                if not state[position]:
                    state[position] = True
                    order.append(position)
                pending.pop()
                continue
            state[position] = False
            for name in graph.taken(side, position):
                if name in made and made[name][0] not in state:
                    pending.append(made[name][0])
    return order, made


def _depths(graph: GraphComparison, side: int, region: Region) -> dict[int, int]:
    order, made = _by_dependence(graph, side, region)
    depths: dict[int, int] = {}
    for position in order:
        before = [depths.get(made[name][0], -1) for name in graph.taken(side, position) if name in made]
        depths[position] = 1 + max(before, default=-1)
    return depths


def signature(graph: GraphComparison, region: Region, known: dict[Hashable, int]) -> Hashable:
    """Equal for regions with the same operators, wired in the same way, on both sides; attributes aside.

    Args:
        graph: the graphs.
        region: a region of them.
        known: numbers of what was met before; the same mapping for all regions that are compared.
    """
    return _side_signature(graph, BASE, region, known), _side_signature(graph, TARGET, region, known)


def _side_signature(graph: GraphComparison, side: int, region: Region, known: dict[Hashable, int]) -> Hashable:
    order, made = _by_dependence(graph, side, region)
    nodes = graph.nodes(side)
    labels: dict[int, int] = {}
    constants = set(region.constants(side))
    for position in order:
        node = nodes[position]
        parts: list[tuple[int, int]] = []
        for name in node.input:
            if name in made:
                maker, slot = made[name]
                parts.append((labels.get(maker, -4), slot))
            else:
                parts.append((-3 if not name else -2 if name in constants else -1, 0))
        if is_commutative(node.domain, node.op_type):
            parts.sort()
        label = (operator_name(node.domain, node.op_type), tuple(parts))
        labels[position] = known.setdefault(label, len(known))
    return frozenset(Counter(labels.values()).items())
