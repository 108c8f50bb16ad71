"""Checks of nodes, stated types and tensors; the messages in `onnxjson.checking.catalogue` describe them."""

import math
import re
from typing import Final

from onnxjson.checking.linting import NodeSite, TensorSite, ValueSite
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.operators import operator_table, plain_domain
from onnxjson.model.tensors import location_of

HALF_SMALLEST: Final = 2.0**-24
"""The smallest positive float16; smaller numbers become zero."""

HALF_LARGEST: Final = 65504.0

_BIG: Final = 64 << 10

_INTEGERS: Final = {DATA_TYPES[name]: name for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")}


def without_effect(site: NodeSite) -> bool:
    node = site.node
    is_identity = node.op_type == "Identity" and not node.domain and node.output[:1] != ()
    return is_identity and not site.is_constant(0) and node.output[0] not in site.scope.output_names


def cast_to_the_same(site: NodeSite) -> object:
    dtype = site.dtype(0)
    return dtype is not None and DATA_TYPES.get(dtype) == site.attributes.get("to") and dtype


def bad_ratio(site: NodeSite) -> object:
    ratio = site.number(1) if site.opset >= 12 else site.attributes.get("ratio")
    return ratio is not None and not 0 <= ratio < 1 and ratio


def bad_block_size(site: NodeSite) -> object:
    size = site.attributes.get("block_size", 0)
    return size < 16 or (size & (size - 1) != 0 and (size,))


def rare_resize_mode(site: NodeSite) -> object:
    mode = site.attributes.get("coordinate_transformation_mode")
    return mode in ("tf_crop_and_resize", "half_pixel_symmetric") and mode


def unknown_rank(site: ValueSite) -> bool:
    return site.is_interface and site.value.dtype is not None and site.value.shape is None


def unnamed_dimension(site: ValueSite) -> bool:
    return site.is_interface and site.field == "input" and None in site.dims


def open_size(site: ValueSite) -> bool:
    return site.is_interface and site.field == "input" and not all(isinstance(size, int) for size in site.dims)


def wide_interface(site: ValueSite) -> object:
    return site.is_interface and site.value.dtype in ("float64", "int64", "uint64") and site.value.dtype


def has_strings(site: ValueSite) -> bool:
    return site.is_interface and site.value.dtype == "string"


def number_as_name(site: ValueSite) -> object:
    name = site.value.name or ""
    return site.is_interface and name.isdigit() and name


def no_identifier(site: ValueSite) -> object:
    name = site.value.name or ""
    return site.is_interface and re.search(r"[^\w./:-]", name) and name


def wide_weight(site: TensorSite) -> bool:
    return site.is_weight and site.tensor.dtype == "float64" and len(site.tensor.dims) > 0


def small_file(site: TensorSite) -> object:
    return location_of(site.tensor) is not None and 0 < site.bytes < 128 and site.bytes


def is_inverse(site: NodeSite) -> bool:
    before = site.before(0, "Transpose")
    one: tuple[int, ...] = before.attributes.get("perm", ()) if before is not None else ()
    return bool(one) and [one[axis] for axis in site.attributes.get("perm", ())] == list(range(len(one)))


def deprecated_since(site: NodeSite) -> object:
    rows = operator_table().rows("", site.node.op_type or "") if not plain_domain(site.node.domain) else ()
    return rows[0].since_version if rows and rows[0].deprecated else None


def epsilon(site: NodeSite) -> float:
    found = site.attributes.get("epsilon", 1e-5)
    return found if isinstance(found, float) else 1e-5


def not_finite(site: NodeSite) -> object:
    for name, value in site.attributes.items():
        values = value if isinstance(value, tuple) else (value,)
        if any([isinstance(each, float) and not math.isfinite(each) for each in values]):
            return name
    return None


def other_bias(site: NodeSite) -> object:
    """Return the sizes of a bias and of the channels that a Conv computes, where both are known and different."""
    weights, bias = site.shape(1), site.shape(2)
    if not weights or not bias or not (isinstance(weights[0], int) and isinstance(bias[0], int)):
        return None
    return (bias[0], weights[0]) if bias[0] != weights[0] else None


def clip_limits(site: NodeSite) -> object:
    low, high = site.attributes.get("min"), site.attributes.get("max")
    if site.opset >= 11:
        low, high = site.number(1), site.number(2)
    return low is not None and high is not None and low > high and (low, high)


def softmax_of_one(site: NodeSite) -> bool:
    shape = site.shape(0) if site.opset >= 13 else None
    return shape is not None and shape[site.attributes.get("axis", -1)] == 1


def lost_by_cast(site: NodeSite) -> object:
    import numpy

    array, to = site.array(0), site.attributes.get("to", 0)
    if array is None or not array.size or array.dtype.kind not in "iuf":
        return None
    if to == DATA_TYPES["float16"]:
        return int((abs(array[numpy.isfinite(array)]) > HALF_LARGEST).sum()) or None
    if to not in _INTEGERS or array.dtype.kind == "f":
        return None
    limits = numpy.iinfo(_INTEGERS[to])
    return int(((array < limits.min) | (array > limits.max)).sum()) or None


def count_not_finite(site: TensorSite) -> object:
    # A constant of one infinity is the value of a mask.
    return (site.is_weight and site.floats.size > 1 and site.floats.size - len(site.finite)) or None


def count_beyond_half(site: TensorSite) -> object:
    return (site.tensor.dtype == "float32" and int((abs(site.finite) > HALF_LARGEST).sum())) or None


def is_filled(site: TensorSite) -> bool:
    array = site.array if site.bytes >= _BIG else None
    return array is not None and bool((array == array.reshape(-1)[0]).all())


def fits_half(site: TensorSite) -> bool:
    if site.tensor.dtype != "float32" or site.bytes < _BIG or not 0 < len(site.finite) == site.floats.size:
        return False
    return bool(abs(site.finite).max() <= HALF_LARGEST and bool((site.finite.astype("float16") == site.finite).all()))


def fits_int32(site: TensorSite) -> bool:
    array = site.array if site.tensor.dtype == "int64" and site.bytes >= _BIG else None
    return array is not None and bool(abs(array).max() < 2**31)


def is_hidden(text: str) -> bool:
    return bool(re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]", text))


def huge_result(site: NodeSite) -> object:
    array = site.array(0 if site.node.op_type == "ConstantOfShape" else 1)
    count = 0 if array is None else math.prod([max(int(size), 0) for size in array.reshape(-1)])
    return count if count > 1 << 31 else None


def bad_scale(site: NodeSite) -> object:
    slots = (1, 4, 6) if (site.node.op_type or "").startswith("QLinear") else (1,)
    found = [(site.name(slot), site.array(slot)) for slot in slots]
    scales = [(name, each) for name, array in found if array is not None for each in array.reshape(-1).tolist()]
    return next((scale for scale in scales if not 0 < scale[1] < math.inf), None)


def zero_point_dtype(site: NodeSite) -> object:
    zero, data = site.dtype(2), site.dtype(0)
    if site.node.op_type == "QuantizeLinear":
        result = site.scope.types.get(site.node.output[0])
        data = None if result is None else result.dtype
    return zero is not None and bool(data) and zero != data and (zero, data)


def _channels(site: NodeSite) -> tuple[int, int, tuple[int | str | None, ...]] | None:
    """Return the number of scales for each channel, their axis, and the dims; None for one scale or blocks."""
    scale, shape = site.tensor(1), site.shape(0)
    if scale is None or len(scale.dims) != 1 or shape is None or site.attributes.get("block_size"):
        return None
    return None if scale.dims[0] == 1 else (scale.dims[0], site.attributes.get("axis", 1), shape)


def wrong_axis(site: NodeSite) -> object:
    found = _channels(site)
    return found is not None and not -len(found[2]) <= found[1] < len(found[2]) and (found[1], len(found[2]))


def wrong_channels(site: NodeSite) -> object:
    found = _channels(site)
    size = None if found is None or wrong_axis(site) else found[2][found[1]]
    return found is not None and isinstance(size, int) and found[0] != size and (found[0], size)


def back_and_forth(site: NodeSite, *, same: bool) -> bool:
    """Whether a node quantizes what was dequantized with the same, or with another, scale and zero point."""
    other = site.before(0, "DequantizeLinear")
    if other is None:
        return False
    if all([site.name(slot) == other.name(slot) for slot in (1, 2)]):
        return same
    pairs = [(site.array(slot), other.array(slot)) for slot in (1, 2) if site.name(slot) or other.name(slot)]
    known = [(one.tolist(), two.tolist()) for one, two in pairs if one is not None and two is not None]
    return len(known) == len(pairs) and all([one == two for one, two in known]) == same


def has_zero_point(site: NodeSite) -> bool:
    zeros = site.array(2)
    return site.is_constant(0) and site.dtype(0) == "int8" and zeros is not None and bool(zeros.any())


def half_quantized(site: NodeSite) -> bool:
    weights = site.before(1, "DequantizeLinear")
    return weights is not None and weights.is_constant(0) and site.before(0, "DequantizeLinear") is None


def invented_name(site: ValueSite) -> object:
    names = [each for each in site.dims if isinstance(each, str) and re.match(r"unk__|.*_dim_\d+$|s\d+$", each)]
    return names[0] if names and site.is_interface else None
