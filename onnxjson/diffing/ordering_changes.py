"""Lists whose members stand in another order."""

from collections.abc import Sequence
from operator import gt

from onnxjson.diffing.changes import ORDER, Change
from onnxjson.diffing.comparing import Context, GraphComparison
from onnxjson.diffing.events import Detail


def breaks(positions: Sequence[int]) -> int:
    """How often a member stands before the one that it stood behind."""
    return sum(map(gt, positions, positions[1:]))


def pair_rest(base: Sequence[str | None], target: Sequence[str | None], pairs: dict[int, int]) -> None:
    """Pair what is left of two lists by equal names, in their order: what has no name of its own.

    Args:
        base: what the members are called, as the target calls it.
        target: what its members are called.
        pairs: positions in base -> positions in target; what is left is added.
    """
    taken = set(pairs.values())
    left: dict[str, list[int]] = {}
    for position, name in enumerate(target):
        if position not in taken:
            left.setdefault(name or "", []).append(position)
    for position, name in enumerate(base):
        if position not in pairs and left.get(name or ""):
            pairs[position] = left[name or ""].pop(0)


def note_order(
    context: Context, graph: GraphComparison, field: str, noun: str, pairs: Sequence[tuple[int, int]]
) -> None:
    """A change where the pairs of a list of the graphs do not stand in one order."""
    count = breaks([place for _, place in sorted(pairs)])
    if count and getattr(graph.pair.base.graph, field) != getattr(graph.pair.target.graph, field):
        note(context, f"{graph.address}/{field}", f"{graph.target_address}/{field}", noun, count, graph.number)


def note(context: Context, address: str, its_address: str, noun: str, count: int, number: int) -> None:
    """A change of the order of a list."""
    detail = Detail(f"{noun} that stand before one that stood before them", None, f"{count:,}")
    change = Change("reordered", noun, (address,), (its_address,), "", (detail,), order=(number, -1))
    context.ledger.add(change, [address + ORDER])
