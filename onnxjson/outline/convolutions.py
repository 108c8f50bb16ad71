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


def with_convolutions(graph: Units) -> Units:
    """Return the units with each convolution and what follows it alone, in this order: BatchNorm, activation."""
    flow, units = graph.flow, graph.units
    replaced: dict[int, Unit | None] = {}
    for number, unit in enumerate(units):
        if unit.head not in _CONVOLUTIONS:
            continue
        chain, marks = [number], [*unit.keywords]
        for kind in _STEPS:
            follower = graph.only_user(units[chain[-1]].outputs[0])
            mark = _mark(flow, units[follower], kind) if follower >= 0 and follower not in replaced else None
            if mark:
                chain.append(follower)
                marks += [mark] if mark not in marks else []
        padding = graph.producer(unit.operands[0])
        operands = unit.operands
        if padding >= 0 and _is_padding(flow, units[padding]) and graph.uses[operands[0]] == 1:
            chain.insert(0, padding)
            operands = (units[padding].operands[0],)
        if len(chain) > 1:
            nodes = tuple([node for each in chain for node in units[each].nodes])
            replaced.update(dict.fromkeys(chain))
            outputs = units[chain[-1]].outputs
            replaced[chain[-1]] = unit._replace(nodes=nodes, outputs=outputs, operands=operands, keywords=tuple(marks))
    return graph.with_units(replaced)


def _is_padding(flow: Flow, unit: Unit) -> bool:
    """Whether a unit pads with zeros, as a convolution can do by itself."""
    numbers = [flow.elements(name) for name in unit.operands[2:3] if name]
    return (
        unit.head == "Pad" and not unit.keywords and all([number is not None and not any(number) for number in numbers])
    )


def with_excitations(graph: Units) -> Units:
    """Return the units with squeeze and excitation as one block: a value times a gate from its means."""
    units = graph.units
    replaced: dict[int, Unit | None] = {}
    for number, unit in enumerate(units):
        for gate, value in (unit.operands, unit.operands[::-1]) if unit.head == "*" else ():
            inner = _gate(graph, gate, value)
            if inner and not any([each in replaced for each in inner]):
                nodes = [node for each in inner for node in units[each].nodes]
                replaced.update(dict.fromkeys(inner))
                replaced[number] = Unit(
                    (*nodes, *unit.nodes), unit.outputs, "SqueezeExcite", (value,), block="SqueezeExcite"
                )
                break
    return graph.with_units(replaced)


def _gate(graph: Units, name: str, value: str) -> list[int]:
    """The units from the mean of a value to a gate between 0 and 1, over two convolutions; none if it is not one."""
    found: list[int] = []
    activations: list[str] = []
    while len(found) < _GATE and (number := graph.producer(name)) >= 0 and graph.uses[name] == 1:
        unit = graph.units[number]
        found.insert(0, number)
        if unit.head in ("GlobalAveragePool", "ReduceMean") and unit.operands[0] == value:
            return found if activations[:1] in (["Sigmoid"], ["HardSigmoid"]) and "Conv" in activations else []
        if unit.head == "Conv":
            activations += [_NAMES[text] for key, text in unit.keywords if key == "act"]
        if unit.head not in ("Conv", *_NAMES.values()):
            return []
        activations.append(unit.head)
        name = unit.operands[0]
    return []


_STEPS: Final = ("BatchNorm", "*", "+", "activation", "*", "+")
"""What a convolution shows as keywords if it follows, in this order."""


def _mark(flow: Flow, unit: Unit, kind: str) -> tuple[str, str] | None:
    """The keyword of a unit after a convolution; None if it is not of the wanted kind."""
    if kind == "BatchNorm":
        return ("bn", "") if unit.head == kind else None
    if kind != "activation":
        is_affine = unit.head == kind and any([flow.is_weight(name) for name in unit.operands])
        return ("affine", "") if is_affine else None
    if unit.head == "Clip":
        bounds = [items[0] for name in unit.operands[1:] if (items := flow.elements(name)) and len(items) == 1]
        return ("act", "relu6") if bounds == [0, 6] else None
    return ("act", _ACTIVATIONS[unit.head]) if unit.head in _ACTIVATIONS else None
