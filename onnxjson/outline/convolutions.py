"""Convolutions with what is around them alone, and products with their bias, each as one block."""

from collections.abc import Sequence
from typing import Final

from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit, Units, called, window

ACTIVATIONS: Final = frozenset((
    "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "QuickGelu", "Relu", "SiLU", "Sigmoid",
    "Tanh",
))  # fmt: skip
_NORM: Final = ("bn", "")


def merge_convolutions(graph: Units) -> None:
    """Make one block of each convolution with its Pad and what follows it, of each product with bias and factors."""
    flow, units = graph.flow, graph.units
    for number, unit in enumerate(units):
        chain = [number]
        if unit.block in ("Linear", "InstanceNorm"):
            while (follower := graph.only_user(units[chain[-1]].outputs[0])) >= 0:
                if not _is_absorbed(flow, unit, units[follower]):
                    break
                chain.append(follower)
        elif unit.head in ("Conv", "ConvTranspose"):
            chain, marks = _followers(graph, number)
            padding = graph.producer(unit.operands[0])
            is_alone = padding >= 0 and len(unit.nodes) == 1 and graph.uses[unit.operands[0]] == 1
            if is_alone and (pads := _pads(flow, units[padding])):
                chain.insert(0, padding)
                unit = unit._replace(
                    operands=(units[padding].operands[0], *unit.operands[1:]),
                    keywords=tuple(window(flow, flow.nodes[unit.nodes[-1]], pads)),
                )
            unit = unit._replace(keywords=(*unit.keywords, *marks))
        if len(chain) > 1:
            graph.merge(chain, unit._replace(outputs=units[chain[-1]].outputs))


def _followers(graph: Units, number: int) -> tuple[list[int], list[tuple[str, str]]]:
    """A convolution and what follows it alone, with keywords: BatchNorms, sums, products, one activation."""
    chain, marks = [number], list[tuple[str, str]]()
    while (follower := graph.only_user(graph.units[chain[-1]].outputs[0])) >= 0 and follower not in graph.changes:
        unit = graph.units[follower]
        if marks or not _is_absorbed(graph.flow, graph.units[number], unit):
            mark = _mark(graph.flow, unit)
            if mark is None or (mark[0] == "act" and "act" in dict(marks)):
                break
            # A BatchNorm that the weights could absorb is not shown, like the bias, which optimizers make of it.
            marks += [mark] if [mark] != marks[-1:] and (mark != _NORM or marks) else []
        chain.append(follower)
    return chain, marks


def _is_absorbed(flow: Flow, unit: Unit, follower: Unit) -> bool:
    """Whether a unit adds a number to each column or channel of another, or multiplies it, as weights could do."""
    size: int | str | None
    if unit.block == "Linear":
        size, axis, rank = flow.sizes(unit.operands[1]).get(-1), -1, 1
    else:
        rank, channels = dict(unit.keywords).get("", "").count("x") + 3, dict(unit.keywords).get("out", "")
        size = int(channels) if channels.isdecimal() else None
        if unit.head == "InstanceNorm":
            rank, size = len(flow.sizes(unit.operands[0])), flow.size(unit.operands[0], 1)
        axis = 1 - rank
    return follower.head in ("+", "*") and any([flow.is_each(each, size, axis, rank) for each in follower.operands])


def _pads(flow: Flow, unit: Unit) -> Sequence[int]:
    """What a unit pads with zeros, as a convolution can do by itself; nothing for other units."""
    pads = flow.numbers(flow.nodes[unit.nodes[-1]], 1, "pads") or ()
    values = [list(flow.elements(name) or ()) for name in unit.operands[1:]]
    channels = [*pads[:2], *pads[len(pads) // 2 :][:2]]
    is_plain = unit.head == "Pad" and [key for key, _ in unit.keywords] == [""] and values in ([], [[0]])
    return pads if is_plain and not any(channels) and min(pads, default=0) >= 0 else ()


def _mark(flow: Flow, unit: Unit) -> tuple[str, str] | None:
    """The keyword of a unit after a convolution; None if it is no part of it."""
    weights = [flow.is_weight(name) for name in unit.operands]
    if len([name for name in unit.outputs if name]) != 1:
        return None
    if unit.head == "BatchNorm":
        return _NORM if len(unit.operands) == 1 and {key for key, _ in unit.keywords} <= {"eps"} else None
    if unit.head in ("*", "+"):
        return ("affine", "") if any(weights) else None
    if unit.head == "Clip":
        bounds = [list(flow.elements(name) or ()) for name in unit.operands[1:]]
        return ("act", "relu6") if bounds == [[0], [6]] else None
    return ("act", called(unit).lower()) if unit.head in ACTIVATIONS and all(weights[1:]) else None
