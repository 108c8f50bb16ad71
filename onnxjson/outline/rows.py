"""Products of rows: a Reshape to rows before them and one back after them say nothing, and are not shown.

Optimizers write a product with a weight of rank 2 and its bias as Gemm, which needs a matrix.
"""

from collections.abc import Sequence
from typing import Final

from onnxjson.outline.attention import Units
from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit

_ROW_WISE: Final = frozenset(
    {"Elu", "Erf", "Gelu", "HardSwish", "LayerNorm", "Mish", "QuickGelu", "RMSNorm", "Relu", "SiLU", "Sigmoid", "Tanh"}
)
"""Blocks and operators that compute each row by itself."""


def with_rows(flow: Flow, units: Sequence[Unit]) -> list[Unit]:
    """Return the units without each Reshape to rows and back around products with weights."""
    graph = Units(flow, units)
    replaced: dict[int, Unit | None] = {}
    for number, unit in enumerate(units):
        if unit.head == "Reshape" and (chain := _chain(graph, unit)):
            first, last = chain[-1], chain[0]
            before = graph.producer(graph.units[first].operands[0])
            start = replaced.get(first) or units[first]
            if units[before].head == "Reshape":
                operands = (units[before].operands[0], *start.operands[1:])
                replaced[first] = start._replace(nodes=(*units[before].nodes, *start.nodes), operands=operands)
                replaced[before] = None
            end = replaced.get(last) or units[last]
            replaced[last] = end._replace(nodes=(*end.nodes, *unit.nodes), outputs=unit.outputs)
            replaced[number] = None
    return [block for number, unit in enumerate(units) if (block := replaced.get(number, unit)) is not None]


def _chain(graph: Units, reshape: Unit) -> list[int]:
    """The units between a Reshape to rows, or an attention, and one back, with a product; the last one first."""
    chain: list[int] = []
    name, has_product = reshape.operands[0], False
    while (number := graph.producer(name)) >= 0 and graph.uses[name] == 1:
        unit = graph.units[number]
        if (unit.head == "Reshape" and _is_matrix(unit)) or unit.block == "Attention":
            return chain if has_product else []
        if unit.block != "Linear" and unit.head not in _ROW_WISE:
            return []
        has_product |= unit.block == "Linear"
        chain.append(number)
        name = unit.operands[0]
    return []


def _is_matrix(reshape: Unit) -> bool:
    return reshape.keywords[0][1].count(",") == 1
