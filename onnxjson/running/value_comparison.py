"""How far two values are apart, tensors or not; see `onnxjson.running.tolerances` for tensors."""

from collections.abc import Mapping, Sequence

import msgspec

from onnxjson.document import Tensor
from onnxjson.running.tolerances import TOLERANCES, Comparison, Tolerance, compare, tolerance_for
from onnxjson.running.values import Dictionary, Value, leaves
from onnxjson.tensors import to_numpy
from onnxjson.types import format_data_type


def dtype_of(value: Value) -> str:
    """What a value is, in short: ``float32``, ``seq(int64)``, ``map``; "" for nothing."""
    if isinstance(value, Tensor):
        return format_data_type(value.data_type or 0)
    if isinstance(value, Dictionary):
        return "map"
    return "" if value is None else f"seq({dtype_of(value[0]) if value else ''})"


def compare_values(base: Value, target: Value, tolerances: Mapping[str, Tolerance] | None = None) -> Comparison:
    """How far two values are apart. Of several tensors the one that is furthest apart gives the figures.

    Args:
        base: any value.
        target: its counterpart.
        tolerances: by name of a dtype, in place of those of `TOLERANCES`.
    """
    one, other = list(leaves(base)), list(leaves(target))
    if [path for path, _ in one] != [path for path, _ in other] or (base is None) != (target is None):
        said = f"{_described(base)} against {_described(target)}"
        return Comparison(elements=max(len(one), 1), unequal=max(len(one), 1), outside=max(len(one), 1), problem=said)
    allowed = {**TOLERANCES, **(tolerances or {})}
    found = [_tensors(first, second, allowed) for (_, first), (_, second) in zip(one, other, strict=True)]
    if len(found) == 1:
        return found[0]
    return _together(found)


def _tensors(base: Tensor, target: Tensor, tolerances: Mapping[str, Tolerance]) -> Comparison:
    arrays = to_numpy(base), to_numpy(target)
    return compare(*arrays, tolerance_for(arrays[0].dtype, arrays[1].dtype, tolerances=tolerances))


def _together(found: Sequence[Comparison]) -> Comparison:
    if not found:
        return Comparison(elements=0, exact=True)
    worst = max(found, key=badness)
    cosines = [each.cosine for each in found if each.cosine is not None]
    return msgspec.structs.replace(
        worst,
        elements=sum(each.elements for each in found),
        unequal=sum(each.unequal for each in found),
        outside=sum(each.outside for each in found),
        cosine=min(cosines, default=None),
    )


def badness(comparison: Comparison) -> tuple[bool, bool, bool, float]:
    """Greater for what is further apart."""
    return (
        comparison.problem is not None,
        not comparison.close,
        not comparison.equal,
        comparison.largest_absolute or 0.0,
    )


def error_share(comparison: Comparison) -> float:
    """The greatest difference among the size of the values; infinite where they cannot be compared."""
    if comparison.problem is not None or (comparison.unequal and comparison.largest_absolute is None):
        return float("inf")
    if not comparison.largest_absolute:
        return float("inf") if comparison.outside else 0.0
    return comparison.largest_absolute / (comparison.scale or comparison.largest_absolute)


def _described(value: Value) -> str:
    if value is None:
        return "no value"
    if isinstance(value, Tensor):
        return f"a tensor of {dtype_of(value)}"
    return "a map" if isinstance(value, Dictionary) else f"a sequence of {len(value)}"
