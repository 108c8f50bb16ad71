"""Products and convolutions with weights of integers whose other operand is quantized when the model runs.

The dynamic quantization of onnxruntime writes DynamicQuantizeLinear, a product of integers, perhaps the sum with a bias
that is divided by the scales, a Cast, and the product with the scales. All of them are one block.
"""

from collections.abc import Iterator
from typing import Final

from onnxjson.outline.units import Unit, Units

_BIAS: Final = ("Reshape", "Cast", "Floor", "/")
"""What computes a bias of integers from one of floating point, the last first."""

_ZERO_POINT: Final = {"ConvInteger": 1, "MatMulInteger": 2}
"""By the product, the operand that is the zero point of the value; the zero point of the weights may follow."""


def merge_quantized(graph: Units) -> None:
    """Make one block of each such product; what several of them share belongs to the first."""
    blocks: dict[int, list[tuple[list[int], Unit]]] = {}
    for number, unit in enumerate(graph.units):
        for value, scale in (unit.operands, unit.operands[::-1]) if _is(unit, "*") else ():
            for source, inside, block in _blocks(graph, value, scale):
                blocks.setdefault(source, []).append(([*inside, number], block._replace(outputs=unit.outputs)))
    for source, products in blocks.items():
        results = {inside[-1] for inside, _ in products}
        inner = {source, *[number for inside, _ in products for number in inside]}
        values = [name for number in inner - results for name in graph.units[number].outputs]
        if inner.issuperset([user for name in values for user in graph.users.get(name, ())]) and not (
            graph.flow.outputs.keys() & {*values}
        ):
            for place, (inside, block) in enumerate(products):
                numbers = [source, *inside] if not place else inside
                graph.merge([each for each in dict.fromkeys(numbers) if each not in graph.changes], block)


def _blocks(graph: Units, value: str, scale: str) -> Iterator[tuple[int, list[int], Unit]]:
    """Yield what quantizes, the units after it before the product of a value and a scale, and the block of all."""
    units, flow = graph.units, graph.flow
    cast, scales = graph.producer(value), graph.producer(scale)
    if min(cast, scales) < 0 or units[cast].head != "Cast" or not units[cast].operands or not _is(units[scales], "*"):
        return
    if "float" not in dict(units[cast].keywords).get("to", ""):
        return
    total = graph.producer(units[cast].operands[0])
    sides = units[total].operands if total >= 0 and _is(units[total], "+") else (units[cast].operands[0], "")
    for result, bias in (sides, sides[::-1]):
        at = graph.producer(result)
        product = units[at] if at >= 0 else units[cast]
        place = _ZERO_POINT.get(product.head, 0)
        source = graph.producer(product.operands[0])
        if not place or source < 0 or units[source].head != "DynamicQuantizeLinear" or len(units[source].outputs) != 3:
            continue
        quantized, step, zero = units[source].outputs
        rest = [*product.operands[1:place], *product.operands[place + 1 :]]
        has_weights = [flow.is_weight(each) for each in units[scales].operands if each != step] == [True]
        has_weights &= all(map(flow.is_weight, rest))
        if not has_weights or (quantized, zero) != (product.operands[0], *product.operands[place : place + 1]):
            continue
        inside = [at, *_bias(graph, bias, units[scales]), *[total] * bool(bias), cast, scales]
        if not bias or len(inside) > 4:
            block = Unit(
                (), (), "@", (units[source].operands[0], *rest[:1]), (("q8", ""),), is_infix=True, block="Linear"
            )
            if product.head == "ConvInteger":
                block = product._replace(
                    head="Conv", operands=units[source].operands, keywords=(*product.keywords, ("q8", "")), block="Conv"
                )
            yield source, inside, block


def _bias(graph: Units, name: str, scales: Unit) -> list[int]:
    """The units that divide a constant by the scales and round it, in their order; none if it is anything else."""
    inside: list[int] = []
    for head in _BIAS:
        number = graph.producer(name)
        if number < 0 or graph.units[number].head != head or not graph.units[number].operands:
            return []
        inside.insert(0, number)
        name = graph.units[number].operands[-1]
    divisor = graph.producer(name)
    is_same = divisor >= 0 and {*graph.units[divisor].operands} == {*scales.operands}
    is_same &= graph.flow.is_weight(graph.units[inside[0]].operands[0])
    return [divisor, *inside] if is_same and _is(graph.units[divisor], "*") else []


def _is(unit: Unit, head: str) -> bool:
    return unit.head == head and unit.is_infix
