"""How far two values are apart, tensors or not; see `onnxjson.running.tolerances` for tensors."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from onnxjson.document import Tensor
from onnxjson.running.tolerances import EXACT, TOLERANCES, Comparison, Tolerance, compare, tolerance_for
from onnxjson.running.values import Dictionary, Value, leaves
from onnxjson.tensors import to_numpy
from onnxjson.types import format_data_type

_Number = TypeVar("_Number", int, float)

_WORD: Final = re.compile(r"\w+")


def dtype_of(value: Value) -> str:
    """What a value is, in short: ``float32``, ``seq(int64)``, ``map(string,float32)``, ``nothing``."""
    if isinstance(value, Tensor):
        return format_data_type(value.data_type or 0)
    if isinstance(value, Dictionary):
        return f"map({dtype_of(value.keys)},{dtype_of(value.values)})"
    return "nothing" if value is None else f"seq({dtype_of(value[0]) if value else ''})"


def tolerance_of(dtypes: Sequence[str], tolerances: Mapping[str, Tolerance]) -> Tolerance:
    """The tolerance of values that are, in short, this; that of the least precise one.

    Args:
        dtypes: as `dtype_of` says them; of sequences and maps the elements count.
        tolerances: by name of a dtype.
    """
    inner = [_WORD.findall(dtype)[-1:] for dtype in dtypes]
    return max([tolerances.get("".join(each), EXACT) for each in inner], key=lambda each: each.relative)


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
    return msgspec.structs.replace(
        furthest(found),
        elements=sum(each.elements for each in found),
        unequal=sum(each.unequal for each in found),
        outside=sum(each.outside for each in found),
        nonfinite=sum(each.nonfinite for each in found),
    )


def furthest(found: Sequence[Comparison]) -> Comparison:
    """The comparison that is furthest apart, with the greatest differences, and the least cosine, of any of them."""
    return msgspec.structs.replace(
        max(found, key=badness),
        largest_absolute=_greatest([each.largest_absolute for each in found]),
        largest_relative=_greatest([each.largest_relative for each in found]),
        largest_ulp=_greatest([each.largest_ulp for each in found]),
        cosine=min([each.cosine for each in found if each.cosine is not None], default=None),
    )


def _greatest(values: "Sequence[_Number | None]") -> "_Number | None":
    return max([value for value in values if value is not None], default=None)


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
