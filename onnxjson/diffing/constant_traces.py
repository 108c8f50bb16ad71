"""Where the constants of a rewrite went: kept as they are, re-laid, or computed into others."""

from typing import Final

from onnxjson.diffing.comparing import BASE, TARGET, Constant, Context, GraphComparison
from onnxjson.diffing.events import Detail
from onnxjson.diffing.regions import Region
from onnxjson.document import Tensor
from onnxjson.operators import operator_name

_MOST: Final = 32
"""Constants of one region that are traced."""


def constant_details(context: Context, graph: GraphComparison, region: Region) -> list[Detail]:
    """A detail for each constant that the base nodes took: what is called so, what it was, where it is now."""
    if not region.base:
        return []
    before = _uses(graph, BASE, region.base, region.base_constants)
    after = _uses(graph, TARGET, region.target, region.target_constants)
    details = []
    computed: list[tuple[Constant, str]] = []
    left = list(after)
    for constant, use in before[:_MOST]:
        found = _find(context, graph, constant, left)
        if found is None:
            computed.append((constant, use))
            continue
        left.remove(found)
        if (constant.name, use) != (found[0].name, found[1]):
            details.append(Detail(f"constant {constant.name}", use, found[1]))
    into = ", ".join(use for _, use in left)
    for constant, use in computed:
        details.append(Detail(f"constant {constant.name}", use, f"in {into}" if into else None))
    return details


def _find(
    context: Context, graph: GraphComparison, constant: Constant, candidates: list[tuple[Constant, str]]
) -> tuple[Constant, str] | None:
    """The constant of the target that has the same elements, as they are or in another order."""
    tensor = constant.tensor
    if not isinstance(tensor, Tensor):
        return None
    counterpart = graph.translate(constant.name)
    ordered = sorted(candidates, key=lambda each: each[0].name != counterpart)
    for compare in (context.weights.equal, context.weights.re_laid):
        for each in ordered:
            its = each[0].tensor
            if isinstance(its, Tensor) and compare(tensor, its):
                return each
    return None


def _uses(
    graph: GraphComparison, side: int, positions: tuple[int, ...], names: tuple[str, ...]
) -> list[tuple[Constant, str]]:
    """The constants that nodes take, and as what: ``input 1 of Conv``."""
    found = []
    known = set(names)
    for position in positions:
        node = graph.nodes(side)[position]
        for place, name in enumerate(node.input):
            if name in known:
                known.discard(name)
                constant = graph.constant(side, name)
                if constant is not None:
                    found.append((constant, f"input {place} of {operator_name(node.domain, node.op_type)}"))
    return found
