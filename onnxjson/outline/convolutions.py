"""Convolutions with the normalization and the activation that follow them, as one block."""

from collections.abc import Sequence
from typing import Final

from onnxjson.outline.attention import Units
from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit

_ACTIVATIONS: Final = {
    "Elu": "elu", "Gelu": "gelu", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "LeakyRelu": "leakyrelu",
    "Mish": "mish", "PRelu": "prelu", "QuickGelu": "quickgelu", "Relu": "relu", "SiLU": "silu", "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}  # fmt: skip
_NAMES: Final = {mark: name for name, mark in _ACTIVATIONS.items()}
_GATE: Final = 6
"""Units of a gate."""

_CONVOLUTIONS: Final = ("Conv", "ConvTranspose")


def with_convolutions(flow: Flow, units: Sequence[Unit]) -> list[Unit]:
    """Return the units with each convolution and what follows it alone, in this order: BatchNorm, activation."""
    graph = Units(flow, units)
    replaced: dict[int, Unit | None] = {}
    for number, unit in enumerate(units):
        if unit.head not in _CONVOLUTIONS:
            continue
        last, nodes, marks = number, list(unit.nodes), []
        for is_wanted in (lambda head: head == "BatchNorm", lambda head: head in _ACTIVATIONS or head == "Clip"):
            follower = graph.only_user(units[last].outputs[0])
            if follower < 0 or follower in replaced or not is_wanted(head := units[follower].head):
                continue
            mark = (
                "bn" if head == "BatchNorm" else _clip(flow, units[follower]) if head == "Clip" else _ACTIVATIONS[head]
            )
            if mark:
                last, nodes = follower, [*nodes, *units[follower].nodes]
                marks.append((mark, "") if mark == "bn" else ("act", mark))
        if last != number:
            kept = (*unit.keywords, *marks)
            replaced.update({number: None, **{at: None for at in (graph.only_user(unit.outputs[0]),)}})
            replaced[last] = unit._replace(nodes=tuple(nodes), outputs=units[last].outputs, keywords=kept)
    return [block for number, unit in enumerate(units) if (block := replaced.get(number, unit)) is not None]


def with_excitations(flow: Flow, units: Sequence[Unit]) -> list[Unit]:
    """Return the units with squeeze and excitation as one block: a value times a gate from its means."""
    graph = Units(flow, units)
    replaced: dict[int, Unit | None] = {}
    for number, unit in enumerate(units):
        for gate, value in (unit.operands, unit.operands[::-1]) if unit.head == "*" else ():
            inner = _gate(graph, gate, value)
            if inner and not any([each in replaced for each in inner]):
                nodes = [node for each in inner for node in units[each].nodes]
                replaced.update(dict.fromkeys(inner))
                replaced[number] = Unit((*nodes, *unit.nodes), unit.outputs, "SqueezeExcite", (value,), is_block=True)
                break
    return [block for number, unit in enumerate(units) if (block := replaced.get(number, unit)) is not None]


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


def _clip(flow: Flow, unit: Unit) -> str:
    bounds = [elements[0] for name in unit.operands[1:] if (elements := flow.elements(name)) and len(elements) == 1]
    return "relu6" if bounds == [0, 6] else ""
