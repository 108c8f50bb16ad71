"""Whether what is gone, or new, computes what something else computes, too: common subexpressions that became one."""

from onnxjson.diffing.comparing import GraphComparison
from onnxjson.diffing.regions import Region
from onnxjson.document import Node
from onnxjson.operators import is_commutative, operator_key

_DEEPEST = 200
"""Nodes in a row that are compared."""


def originals(graph: GraphComparison, side: int, region: Region) -> list[int]:
    """Nodes with counterparts that compute what the nodes of a region, all of one side, compute; [] for none.

    What the region makes is made by these in the other model, too.
    """
    search = _Search(graph, side, set(region.nodes(side)))
    for old, new in region.outputs:
        kept = graph.translate(old) if side else graph.translate_back(new)
        if not kept or not search.is_same_value(new if side else old, kept, _DEEPEST):
            return []
    return sorted(set(search.found.values())) if len(search.found) == len(region.base or region.target) else []


class _Search:
    def __init__(self, graph: GraphComparison, side: int, inside: set[int]) -> None:
        self._side = side
        self._nodes = graph.nodes(side)
        self._graph = graph
        self._partners = graph.pair.base_of if side else graph.pair.target_of
        self._inside = inside
        self.found: dict[int, int] = {}
        """Positions in the region -> those of the nodes that do the same."""

    def is_same_value(self, one: str, other: str, depth: int) -> bool:
        """Whether a value of the region is computed as another one is."""
        if one == other:
            return True
        mine, its = self._graph.maker(self._side, one), self._graph.maker(self._side, other)
        if depth == 0 or mine is None or its is None:
            return False
        (position, slot), (original, its_slot) = mine, its
        if position not in self._inside or slot != its_slot or self._partners[original] < 0:
            return False
        if self.found.get(position) == original:
            return True
        if not self._is_same_call(self._nodes[position], self._nodes[original], depth - 1):
            return False
        self.found[position] = original
        return True

    def _is_same_call(self, one: Node, other: Node, depth: int) -> bool:
        if operator_key(one) != operator_key(other) or len(one.input) != len(other.input):
            return False
        if one.attribute != other.attribute and sorted(one.attribute, key=_name) != sorted(other.attribute, key=_name):
            return False
        orders = [other.input]
        if is_commutative(one.domain, one.op_type):
            orders.append(other.input[::-1])
        return any(
            all(self.is_same_value(mine, its, depth) for mine, its in zip(one.input, order, strict=True))
            for order in orders
        )


def _name(attribute: object) -> str:
    return str(getattr(attribute, "name", ""))
