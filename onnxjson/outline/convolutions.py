"""Convolutions with the normalization, constants and activation that follow them, as one block; gates of channels."""

import re
from typing import Final

from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit, Units, called, window

_ACTIVATIONS: Final = {
    "Elu": "elu", "Gelu": "gelu", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "LeakyRelu": "leakyrelu",
    "Mish": "mish", "PRelu": "prelu", "QuickGelu": "quickgelu", "Relu": "relu", "SiLU": "silu", "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}  # fmt: skip
_GATE: Final = 6
"""Units of a gate."""

_NORM: Final = ("bn", "")

_CONVOLUTIONS: Final = ("Conv", "ConvTranspose")


def merge_convolutions(graph: Units) -> None:
    """Make one block of each convolution and what follows it alone: BatchNorms, sums, products, one activation.

    And of each product with weights, its bias and its factors.
    """
    flow, units = graph.flow, graph.units
    for number, unit in enumerate(units):
        if unit.block in ("Linear", "InstanceNorm"):
            product = [number]
            while (follower := graph.only_user(units[product[-1]].outputs[0])) >= 0:
                if not _is_absorbed(flow, unit, units[follower]):
                    break
                product.append(follower)
            if product[1:]:
                graph.merge(product, unit._replace(outputs=units[product[-1]].outputs))
            continue
        if unit.head not in _CONVOLUTIONS:
            continue
        chain, marks = [number], [*unit.keywords]
        while (follower := graph.only_user(units[chain[-1]].outputs[0])) >= 0 and follower not in graph.changes:
            if len(marks) == len(unit.keywords) and _is_absorbed(flow, unit, units[follower]):
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


def _is_absorbed(flow: Flow, unit: Unit, follower: Unit) -> bool:
    """Whether a unit adds a number to each column or channel of another, or multiplies it, as weights could do."""
    constants = [name for name in follower.operands if flow.is_weight(name)] if follower.head in ("+", "*") else []
    if unit.block == "Linear":
        columns = (flow.dims(unit.operands[1]) or (None,))[-1]
        return any([flow.is_row(name, columns) for name in constants])
    keywords, dims = dict(unit.keywords), flow.dims(unit.operands[0]) or ("",)
    rank, channels = len(dims), str(dims[min(1, len(dims) - 1)])
    if unit.head != "InstanceNorm":
        rank, channels = keywords.get("", "").count("x") + 3, keywords.get("out", "")
    along = [dict(enumerate(map(str, sizes), -len(sizes))) for sizes in map(flow.dims, constants) if sizes]
    return any([each.pop(1 - rank, None) == channels and {*each.values()} <= {"1"} for each in along])


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


def merge_excitations(graph: Units) -> None:
    """Make one block of each squeeze and excitation: a value times a gate from its means."""
    for number, unit in enumerate(graph.units):
        for gate, value in (unit.operands, unit.operands[::-1]) if unit.head == "*" else ():
            inner, keywords = _gate(graph, gate, value)
            if inner and not any([each in graph.changes for each in inner]):
                block = Unit(
                    (), unit.outputs, "SqueezeExcite", (value,), keywords, block="SqueezeExcite", has_options=True
                )
                graph.merge([*inner, number], block)
                break


def _gate(graph: Units, name: str, value: str) -> tuple[list[int], tuple[tuple[str, str], ...]]:
    """The units from the mean of a value to a gate between 0 and 1, over two convolutions of one point, and their acts.

    None if it is not that. An activation is part of its convolution, or follows it.
    """
    chain: list[int] = []
    steps: list[str] = []
    while len(chain) < _GATE and (number := graph.producer(name)) >= 0 and graph.uses[name] == 1:
        unit = graph.units[number]
        chain.insert(0, number)
        keywords = dict(unit.keywords)
        if unit.operands[:1] == (value,) and _is_mean(unit):
            reduced, first, raised, second = steps[::-1] if len(steps) == 4 else [""] * 4
            is_gate = reduced == raised == "Conv" and second.startswith(("sigmoid", "hardsigmoid"))
            acts = [("act", first)] * (first != "relu") + [("gate", second)] * (second != "sigmoid")
            return (chain, tuple(acts)) if is_gate else ([], ())
        if unit.head == "Conv" and len(unit.operands) == 1 and set(keywords) <= {"", "out", "act"}:
            steps += [each for each in (keywords.get("act", ""), "Conv") if each]
        elif unit.head in _ACTIVATIONS and len(unit.operands) == 1:
            steps.append(called(unit, _ACTIVATIONS[unit.head]))
        else:
            break
        name = unit.operands[0]
    return [], ()


def _is_mean(unit: Unit) -> bool:
    """Whether a unit takes the mean of each channel of a picture."""
    axes = dict(unit.keywords).get("axes") in ("[2,3]", "[-2,-1]", "[-1,-2]") and len(unit.keywords) == 1
    return unit.head == "GlobalAveragePool" or (unit.head == "ReduceMean" and axes)


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
