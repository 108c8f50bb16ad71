"""Whether what is gone computed what something else computes, too: common subexpressions that became one."""

from onnxjson.diffing.columns import is_commutative
from onnxjson.diffing.comparing import BASE, GraphComparison, operator_key
from onnxjson.diffing.regions import Region
from onnxjson.document import Node

_DEEPEST = 200
"""Nodes in a row that are compared."""


def is_duplicate(graph: GraphComparison, region: Region) -> bool:
    """Whether everything that the base nodes of a region made is now made by nodes that did the same before."""
    inside = set(region.base)
    for old, new in region.outputs:
        kept = graph.translate_back(new)
        if not kept or not _same_value(graph, old, kept, inside, _DEEPEST):
            return False
    return bool(region.outputs)


def _same_value(graph: GraphComparison, one: str, other: str, inside: set[int], depth: int) -> bool:
    if one == other:
        return True
    makers = graph.pair.base.makers
    if depth == 0 or one not in makers or other not in makers:
        return False
    (position, slot), (its_position, its_slot) = makers[one], makers[other]
    if position not in inside or slot != its_slot:
        return False
    nodes = graph.nodes(BASE)
    return _same_call(graph, nodes[position], nodes[its_position], inside, depth - 1)


def _same_call(graph: GraphComparison, one: Node, other: Node, inside: set[int], depth: int) -> bool:
    if operator_key(one) != operator_key(other) or len(one.input) != len(other.input):
        return False
    if one.attribute != other.attribute and sorted(one.attribute, key=_name) != sorted(other.attribute, key=_name):
        return False
    orders = [other.input]
    if is_commutative(one.domain, one.op_type):
        orders.append(other.input[::-1])
    return any(
        all(_same_value(graph, mine, its, inside, depth) for mine, its in zip(one.input, order, strict=True))
        for order in orders
    )


def _name(attribute: object) -> str:
    return str(getattr(attribute, "name", ""))
