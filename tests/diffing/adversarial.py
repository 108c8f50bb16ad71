"""Graphs in which almost nothing tells one node from another, or one node touches almost everything."""

import random
from collections.abc import Callable
from typing import Final

from onnxjson.model.document import Model
from tests.diffing.stacks import Builder, with_weights


def parallel_chains(count: int) -> Model:
    """`count` equal chains of five nodes on one input, their ends summed."""
    builder = Builder()
    ends = []
    for chain in range(count):
        value = "x"
        for place, operator in enumerate(("Relu", "Neg", "Exp", "Tanh", "Abs")):
            value = builder.call(operator, [value], f"chain.{chain}/{operator}_{place}")
        ends.append(value)
    return builder.model(builder.call("Sum", ends, "Sum"))


def weighted_chains(count: int) -> Model:
    """The same with a weight in each chain, of which nothing but the size is known."""
    builder = Builder()
    ends = []
    for chain in range(count):
        value = builder.call("Relu", ["x"], f"chain.{chain}/Relu")
        value = builder.call(
            "MatMul", [value, builder.weight(f"chain.{chain}.weight", (4, 4))], f"chain.{chain}/MatMul"
        )
        ends.append(builder.call("Tanh", [value], f"chain.{chain}/Tanh"))
    return with_weights(builder.model(builder.call("Sum", ends, "Sum")), "stripped")


def chain(count: int) -> Model:
    """One operator after another, all the same."""
    builder = Builder()
    value = "x"
    for place in range(count):
        value = builder.call("Relu", [value], f"Relu_{place}")
    return builder.model(value)


def bipartite(width: int, depth: int = 6) -> Model:
    """Layers of `width` nodes, each of which takes all nodes of the layer before."""
    builder = Builder()
    values = [builder.call("Relu", ["x"], f"layer.0/Relu_{place}") for place in range(width)]
    for layer in range(1, depth):
        values = [builder.call("Sum", values, f"layer.{layer}/Sum_{place}") for place in range(width)]
    return builder.model(builder.call("Sum", values, "Sum"))


def fan_out(count: int) -> Model:
    """One value with `count` consumers that are all the same."""
    builder = Builder()
    value = builder.call("Tanh", ["x"], "Tanh")
    ends = [builder.call("Relu", [value], f"Relu_{place}") for place in range(count)]
    return builder.model(builder.call("Concat", ends, "Concat"))


def wide_concat(count: int) -> Model:
    """One node of `count` inputs, every one the same operator with a constant of its own."""
    builder = Builder()
    ends = [
        builder.call("Gather", ["x", builder.integers(f"index{place}", (place,))], f"Gather_{place}")
        for place in range(count)
    ]
    return builder.model(builder.call("Concat", ends, "Concat"))


def random_graph(count: int, seed: int = 0) -> Model:
    """`count` Adds of any two of the 1000 values before them."""
    builder = Builder(seed)
    numbers = random.Random(seed)
    values = ["x", "mask"]
    for place in range(count):
        inputs = (
            [values[-1], numbers.choice(values[-1000:])] if place % 7 == 0 else numbers.choices(values[-1000:], k=2)
        )
        values.append(builder.call("Add", inputs, f"Add_{place}"))
    return builder.model(builder.call("Sum", values[-1000:], "Sum"))


def grid(count: int) -> Model:
    """A square of about `count` Maxes, each of its upper and left neighbour."""
    builder = Builder()
    side = int(count**0.5)
    above = ["x"] * side
    for row in range(side):
        left = "mask"
        for column in range(side):
            left = above[column] = builder.call("Max", [above[column], left], f"Max_{row}_{column}")
    return builder.model(builder.call("Sum", above, "Sum"))


ADVERSARIAL: Final[dict[str, tuple[Callable[[int], Model], int]]] = {
    "identical parallel chains": (parallel_chains, 100),
    "parallel chains, weights stripped": (weighted_chains, 100),
    "one identical chain": (chain, 500),
    "complete bipartite layers": (bipartite, 12),
    "one value, many consumers": (fan_out, 500),
    "a wide Concat": (wide_concat, 1000),
    "a random graph of one operator": (random_graph, 500),
    "a grid of one operator": (grid, 500),
}
"""By name: how it is made, and the count that it is tested with."""
