"""Sizes of the inputs of a node that do not fit each other, where the shape inference of onnx does not compare them."""

import math
from collections.abc import Callable

from onnxjson.editing.tensor_values import integer_constant
from onnxjson.editing.type_relations import Dims
from onnxjson.model.display import visible
from onnxjson.model.document import Node
from onnxjson.model.index import Scope
from onnxjson.model.operators import plain_domain


def size_conflict(scope: Scope, node: Node, dims: Callable[[str], Dims | None]) -> str | None:
    """Describe sizes of inputs of a node that do not fit each other; None if there are none."""
    if plain_domain(node.domain) or len(node.input) < 2:
        return None
    first = dims(node.input[0])
    numbers = {each.name: each.i for each in node.attribute}
    if node.op_type == "Reshape":
        constant = integer_constant(scope, node.input[1])
        return None if first is None or constant is None else _reshape(first, constant, bool(numbers.get("allowzero")))
    second = dims(node.input[1])
    if first is None or second is None:
        return None
    if node.op_type == "Gemm" and len(first) == len(second) == 2:
        sides = (first[0 if numbers.get("transA") else 1], second[1 if numbers.get("transB") else 0])
        if _differ(*sides):
            return f"it multiplies {_text(first)} by {_text(second)}, {sides[0]} elements by {sides[1]}"
    if node.op_type == "Conv" and len(first) > 2 and len(second) > 2:
        group = numbers.get("group") or 1
        weights = second[1]
        if isinstance(weights, int) and _differ(first[1], weights * group):
            return f"it expects {weights * group} channels, and its input has {first[1]}"
    if node.op_type in ("LSTM", "GRU", "RNN") and len(first) == len(second) == 3 and _differ(first[2], second[2]):
        return f"it expects {second[2]} features, and its input has {first[2]}"
    return None


def _reshape(given: Dims, constant: tuple[int, ...], keeps_zero: bool) -> str | None:
    target: list[int | str | None] = list(constant)
    if not keeps_zero:
        target = [given[axis] if dim == 0 and axis < len(given) else dim for axis, dim in enumerate(target)]
    if None in given or None in target:
        return None
    one, other = _product(given), _product(tuple(target))
    is_open = -1 in target
    if one[1] == other[1]:
        fits = one[0] == other[0] if not is_open else not one[0] % max(1, abs(other[0]))
    else:
        # Names on one side only fit only into a -1.
        fits = is_open and all([other[1].count(name) <= one[1].count(name) for name in other[1]])
    return None if fits else f"its constant shape {list(constant)} does not have the elements of {_text(given)}"


def _product(dims: Dims) -> tuple[int, list[str]]:
    """Return the product of the sizes without -1, and the names."""
    sizes = [each for each in dims if isinstance(each, int) and each != -1]
    return math.prod(sizes), sorted([each for each in dims if isinstance(each, str)])


def _differ(one: int | str | None, other: int | str | None) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _text(dims: Dims) -> str:
    return "[" + ",".join(["?" if each is None else visible(str(each)) for each in dims]) + "]"
