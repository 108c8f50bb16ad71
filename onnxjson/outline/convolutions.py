"""Convolutions with the normalization, constants and activation that follow them, as one block."""

import re
from typing import Final

from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit, Units, called, window

_ACTIVATIONS: Final = {
    "Elu": "elu", "Gelu": "gelu", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "LeakyRelu": "leakyrelu",
    "Mish": "mish", "PRelu": "prelu", "QuickGelu": "quickgelu", "Relu": "relu", "SiLU": "silu", "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}  # fmt: skip
_NORM: Final = ("bn", "")

_CONVOLUTIONS: Final = ("Conv", "ConvTranspose")


def merge_convolutions(graph: Units) -> None:
    """Make one block of each convolution and what follows it alone: BatchNorms, sums, products, one activation.

    And of each product with weights and its bias.
    """
    flow, units = graph.flow, graph.units
    for number, unit in enumerate(units):
        if unit.block == "Linear":
            follower = graph.only_user(unit.outputs[0])
            if follower >= 0 and _is_bias(flow, unit, units[follower]):
                graph.merge([number, follower], unit._replace(outputs=units[follower].outputs))
            continue
        if unit.head not in _CONVOLUTIONS:
            continue
        chain, marks = [number], [*unit.keywords]
        while (follower := graph.only_user(units[chain[-1]].outputs[0])) >= 0 and follower not in graph.changes:
            if chain == [number] and _is_channel_bias(flow, unit, units[follower]):
                chain.append(follower)
                continue
            mark = _mark(flow, units[follower])
            if mark is None or (mark[0] == "act" and any([name == "act" for name, _ in marks])):
                break
            chain.append(follower)
            # A BatchNorm that the weights could absorb is not shown, like the bias, which optimizers make of it.
            marks += [mark] if [mark] != marks[-1:] and (mark != _NORM or len(marks) > len(unit.keywords)) else []
        outputs, operands = units[chain[-1]].outputs, unit.operands
        padding = graph.producer(operands[0])
        if (
            padding >= 0
            and len(unit.nodes) == 1
            and graph.uses[operands[0]] == 1
            and (pads := _pads(flow, units[padding])) is not None
        ):
            chain.insert(0, padding)
            operands = (*units[padding].operands[:1], *operands[1:])
            keywords = window(flow, flow.nodes[unit.nodes[-1]], pads)
            computed = [each for each in keywords if each[0] != "pad"] + [("pad", "[...]")]
            marks[: len(unit.keywords)] = keywords if pads else computed
        if len(chain) > 1:
            graph.merge(chain, unit._replace(outputs=outputs, operands=operands, keywords=tuple(marks)))


def _is_bias(flow: Flow, product: Unit, follower: Unit) -> bool:
    """Whether a unit adds a number to each column of a product with weights."""
    columns = (flow.dims(product.operands[1]) or (None,))[-1]
    return follower.head == "+" and any([flow.is_row(name, columns) for name in follower.operands])


def _is_channel_bias(flow: Flow, convolution: Unit, follower: Unit) -> bool:
    """Whether a unit adds a number to each channel of a convolution that has no bias."""
    node, channels = flow.nodes[convolution.nodes[-1]], dict(convolution.keywords).get("out", "")
    rank = len(flow.dims(node.input[1]) or ())
    sizes = [flow.dims(name) or () for name in follower.operands if flow.is_weight(name)]
    along = [dict(enumerate(map(str, dims), -len(dims))) for dims in sizes]
    is_each = any([each.pop(1 - rank, "") == channels and {*each.values()} <= {"1"} for each in along])
    return follower.head == "+" and not any(node.input[2:]) and is_each


def _pads(flow: Flow, unit: Unit) -> list[int] | None:
    """What a unit pads with zeros, as a convolution can do by itself: none if it is computed from sizes.

    None if the unit does anything else.
    """
    numbers = [flow.elements(name) for name in unit.operands[1:] if name]
    if unit.head != "Pad" or len(unit.keywords) != 1 or any([number is None or any(number) for number in numbers]):
        return None
    key, text = unit.keywords[0]
    pads = [int(each) for each in re.findall(r"-?\d+", text)]
    channels = [*pads[:2], *pads[len(pads) // 2 : len(pads) // 2 + 2]]
    is_usual = key in ("", "pads") and not any(channels) and min(pads, default=0) >= 0
    return pads if is_usual else None


def _mark(flow: Flow, unit: Unit) -> tuple[str, str] | None:
    """The keyword of a unit after a convolution; None if it is no part of it."""
    if len([name for name in unit.outputs if name]) != 1:
        return None
    if unit.head == "BatchNorm":
        return _NORM if len(unit.operands) == 1 and all([key == "eps" for key, _ in unit.keywords]) else None
    if unit.head in ("*", "+"):
        return ("affine", "") if any([flow.is_weight(name) for name in unit.operands]) else None
    if unit.head == "Clip":
        bounds = [items[0] for name in unit.operands[1:] if (items := flow.elements(name)) and len(items) == 1]
        return ("act", "relu6") if bounds == [0, 6] else None
    is_alone = all([flow.is_weight(name) for name in unit.operands[1:]])
    return ("act", called(unit, _ACTIVATIONS[unit.head])) if unit.head in _ACTIVATIONS and is_alone else None
