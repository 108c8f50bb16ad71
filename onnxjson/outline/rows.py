"""Layout: Reshapes around products of rows say nothing, and are not shown; longer chains are one Rearrange.

Optimizers write a product with a weight of rank 2 and its bias as Gemm, which needs a matrix.
"""

from typing import Final

from onnxjson.outline.convolutions import ACTIVATIONS
from onnxjson.outline.flow import operator
from onnxjson.outline.units import Unit, Units

_ROW_WISE: Final = (ACTIVATIONS - {"PRelu"}) | {"Erf", "LayerNorm", "RMSNorm"}
"""Blocks and operators that compute each row by itself."""

_LAYOUT: Final = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"})


def merge_layout(graph: Units) -> None:
    """Make one unit of chains of layout operators: a Reshape, or a Rearrange if the order changes."""
    for number, unit in enumerate(graph.units):
        chain: list[int] = []
        at = number
        while at >= 0 and at not in graph.changes and (last := graph.units[at]).head in _LAYOUT:
            if len(last.operands) != 1:
                break
            chain.append(at)
            at = graph.only_user(last.outputs[0])
        moves = any([graph.units[each].head == "Transpose" for each in chain])
        if len(chain) >= (3 if moves else 2):
            last = graph.units[chain[-1]]
            shape = last.keywords[0] if last.head == "Reshape" else ("", graph.flow.shape_text(last.outputs[0], ()))
            graph.merge(chain, Unit((), last.outputs, "Rearrange" if moves else "Reshape", unit.operands, (shape,)))


def merge_rows(graph: Units) -> None:
    """Leave out each Reshape to rows and back around products with weights."""
    units = graph.units
    for number, unit in enumerate(units):
        if unit.head == "Reshape" and (chain := _chain(graph, unit)):
            first, last = chain[-1], chain[0]
            before = graph.producer(units[first].operands[0])
            start = graph.changes.get(first) or units[first]
            if units[before].head == "Reshape":
                graph.merge([before, first], start._replace(operands=(units[before].operands[0], *start.operands[1:])))
            end = graph.changes.get(last) or units[last]
            graph.merge([number, last], end._replace(outputs=unit.outputs))


def _chain(graph: Units, reshape: Unit) -> list[int]:
    """The units between a Reshape to rows, or an attention, and one back, with a product; the last one first."""
    chain: list[int] = []
    name, has_product = reshape.operands[0], False
    while (number := graph.producer(name)) >= 0 and graph.uses[name] == 1:
        unit = graph.units[number]
        if is_matrix(graph, unit) or unit.block == "Attention":
            return chain if has_product and _is_back(graph, unit, reshape) else []
        is_row_wise = unit.block == "Linear" or unit.head in _ROW_WISE
        if not is_row_wise or any([key in ("axis", "axes") for key, _ in unit.keywords]):
            return []
        has_product |= unit.block == "Linear"
        chain.append(number)
        name = unit.operands[0]
    return []


def is_matrix(graph: Units, unit: Unit) -> bool:
    """Whether a unit is a Reshape to the rows of a value, which has the same last axis."""
    dims = (graph.flow.dims(unit.operands[0]) if unit.head == "Reshape" else None) or ()
    return bool(dims) and unit.keywords[0][1].strip("[]").split(",")[1:] == [str(dims[-1])]


def _is_back(graph: Units, start: Unit, reshape: Unit) -> bool:
    """Whether a Reshape of rows gives them the axes that they had before."""
    if start.block == "Attention":  # its heads have been joined; one head may be where it was split
        name = graph.flow.nodes[start.nodes[-1]].input[0]
        is_moved = operator(graph.flow.nodes[graph.flow.producer(name)]) == "Transpose"
        before = tuple([each for at, each in enumerate(graph.flow.dims(name) or ()) if at != (2 if is_moved else 1)])
    else:
        before = graph.flow.dims(start.operands[0]) or ()
    after = reshape.keywords[0][1].strip("[]").split(",")
    columns = (graph.flow.dims(reshape.operands[0]) or (None,))[-1]
    sizes = [(str(one or "..."), two) for one, two in zip((*before[:-1], columns), after, strict=False)]
    differing = [pair for pair in sizes if "..." in pair or pair[0] != pair[1]]
    # One unknown size follows from the others.
    return len(before) == len(after) > 2 and (not differing or (len(differing) == 1 and "..." in differing[0]))
