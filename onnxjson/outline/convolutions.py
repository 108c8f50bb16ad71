"""Convolutions with the normalization, constants and activation that follow them, as one block; gates of channels."""

from typing import Final

from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit, Units

_ACTIVATIONS: Final = {
    "Elu": "elu", "Gelu": "gelu", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "LeakyRelu": "leakyrelu",
    "Mish": "mish", "PRelu": "prelu", "QuickGelu": "quickgelu", "Relu": "relu", "SiLU": "silu", "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}  # fmt: skip
_NAMES: Final = {mark: name for name, mark in _ACTIVATIONS.items()}
_GATE: Final = 6
"""Units of a gate."""

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
            mark = _mark(flow, units[follower])
            if mark is None or (mark[0] == "act" and any([name == "act" for name, _ in marks])):
                break
            chain.append(follower)
            marks += [mark] if mark not in marks else []
        outputs, operands = units[chain[-1]].outputs, unit.operands
        padding = graph.producer(operands[0])
        if padding >= 0 and _is_padding(flow, units[padding]) and graph.uses[operands[0]] == 1:
            chain.insert(0, padding)
            operands = units[padding].operands[:1]
        graph.merge(chain, unit._replace(outputs=outputs, operands=operands, keywords=tuple(marks)))


def _is_bias(flow: Flow, product: Unit, follower: Unit) -> bool:
    """Whether a unit adds a number to each column of a product with weights."""
    columns = (flow.dims(product.operands[1]) or (None,))[-1]
    return follower.head == "+" and any([flow.is_row(name, columns) for name in follower.operands])


def _is_padding(flow: Flow, unit: Unit) -> bool:
    """Whether a unit pads with zeros, as a convolution can do by itself."""
    numbers = [flow.elements(name) for name in unit.operands[2:3] if name]
    is_zero = all([number is not None and not any(number) for number in numbers])
    return unit.head == "Pad" and not unit.keywords and is_zero


def merge_excitations(graph: Units) -> None:
    """Make one block of each squeeze and excitation: a value times a gate from its means."""
    for number, unit in enumerate(graph.units):
        for gate, value in (unit.operands, unit.operands[::-1]) if unit.head == "*" else ():
            inner = _gate(graph, gate, value)
            if inner and not any([each in graph.changes for each in inner]):
                graph.merge([*inner, number], Unit((), unit.outputs, "SqueezeExcite", (value,), block="SqueezeExcite"))
                break


def _gate(graph: Units, name: str, value: str) -> list[int]:
    """The units from the mean of a value to a gate between 0 and 1, over two convolutions; none if it is not one."""
    chain: list[int] = []
    activations: list[str] = []
    while len(chain) < _GATE and (number := graph.producer(name)) >= 0 and graph.uses[name] == 1:
        unit = graph.units[number]
        chain.insert(0, number)
        if unit.head in ("GlobalAveragePool", "ReduceMean") and unit.operands[0] == value:
            return chain if activations[:1] in (["Sigmoid"], ["HardSigmoid"]) and "Conv" in activations else []
        if unit.head == "Conv":
            activations += [_NAMES[text] for key, text in unit.keywords if key == "act"]
        if unit.head not in ("Conv", *_NAMES.values()):
            return []
        activations.append(unit.head)
        name = unit.operands[0]
    return []


def _mark(flow: Flow, unit: Unit) -> tuple[str, str] | None:
    """The keyword of a unit after a convolution; None if it is no part of it."""
    if unit.head == "BatchNorm":
        return "bn", ""
    if unit.head in ("*", "+"):
        return ("affine", "") if any([flow.is_weight(name) for name in unit.operands]) else None
    if unit.head == "Clip":
        bounds = [items[0] for name in unit.operands[1:] if (items := flow.elements(name)) and len(items) == 1]
        return ("act", "relu6") if bounds == [0, 6] else None
    return ("act", _ACTIVATIONS[unit.head]) if unit.head in _ACTIVATIONS else None
