"""One tensor, as data and as lines: dtype, shape, storage, statistics, histogram, values, consumers."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from onnxjson.model.constants import quantized_weight
from onnxjson.model.display import visible
from onnxjson.model.document import SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.elements import element_count
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.model.tensor_statistics import (
    Histogram,
    Statistics,
    StringStatistics,
    first_tokens,
    statistics,
    statistics_of,
    string_statistics,
)
from onnxjson.model.tensors import location_of
from onnxjson.model.types import format_data_type
from onnxjson.model.walking import stored_bytes
from onnxjson.patterns.names import TensorRef
from onnxjson.rendering import values
from onnxjson.rendering.node import consumer_lines
from onnxjson.rendering.tables import number, padded, size, wrapped
from onnxjson.rendering.values import Json
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver

VALUES: Final = 16
_FIELDS: Final = ("raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_BAR: Final = 30
_HERE: Final = Resolver(Path())


class Storage(msgspec.Struct, frozen=True):
    """Storage of the elements of a tensor."""

    fields: tuple[str, ...]  # fields of the TensorProto that contain elements; empty for external data
    bytes: int
    location: str | None  # file of external data, with offset and length as declared
    offset: str | None
    length: str | None


class TensorView(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor: a constant, or a value computed when the model runs."""

    kind: str = "tensor"
    file: str
    address: str
    name: str
    type: str | None
    dtype: str | None = None
    dims: tuple[int, ...] | None = None
    elements: int | None = None
    storage: Storage | None = None
    """Storage of a constant; None for other values."""
    indices: str | None = None  # type of the indices of a sparse tensor; all other fields describe its values
    source: values.Source | None
    """Producer of the value; None for a constant inside an attribute."""
    consumers: tuple[values.Consumer, ...] = ()
    doc_string: str | None = None
    metadata: tuple[values.Pair, ...] = ()
    statistics: Statistics | StringStatistics | None = None
    values: tuple[object, ...] | None = None  # first elements as in JSON (docs/format.md, section 3)
    quantized: str | None = None  # how the elements stand for numbers, of which the statistics are
    problem: str | None = None  # why statistics and values of a constant are missing


def view_tensor(
    index: Index, ref: TensorRef, file: str, resolver: Resolver | None, *, most: int = VALUES
) -> TensorView:
    """Return all data about a tensor with `most` values; elements are read in pieces, external ones with a resolver."""
    tensor = ref.tensor.values if isinstance(ref.tensor, SparseTensor) else ref.tensor
    from_graph = values.source(index, ref.scope, ref.name) if ref.scope is not None and ref.name else None
    constant_type = None if ref.tensor is None else values.constant_type_text(ref.tensor)
    view = TensorView(
        file=file,
        address=ref.address,
        name=ref.name,
        type=constant_type if tensor is not None else from_graph.type if from_graph is not None else None,
        source=from_graph,
        consumers=values.consumers(index, ref.scope, ref.name) if ref.scope is not None and ref.name else (),
    )
    if ref.tensor is not None:
        view = replace(view, dims=ref.tensor.dims, elements=element_count(ref.tensor.dims))
    if isinstance(ref.tensor, SparseTensor) and ref.tensor.indices is not None:
        view = replace(view, indices=values.tensor_type_text(ref.tensor.indices))
    if tensor is None:
        return view
    dtype, metadata = format_data_type(tensor.data_type or 0), values.pairs(tensor.metadata_props)
    view = replace(view, dtype=dtype, storage=storage_of(tensor), doc_string=tensor.doc_string, metadata=metadata)
    try:
        view = replace(view, **_contents(tensor, resolver, most))
        weight = quantized_weight(ref.scope, ref.name) if ref.scope is not None and ref.name else None
        if weight is None or weight.elements.name != tensor.name or view.statistics is None:
            return view
        its_type = f"{format_data_type(weight.scales.data_type or 0)}[{','.join(map(str, weight.shape))}]"
        scheme = f"{weight.text}, through {weight.scales.name}: {its_type}"
        found = statistics_of(partial(weight.arrays, lambda each: with_elements(each, resolver or _HERE).raw_data))
        return replace(view, quantized=scheme, statistics=found) if found.elements else view
    except OnnxJsonError as error:
        return replace(view, problem=str(error))


def storage_of(tensor: Tensor) -> Storage:
    """Return where the elements of a tensor are stored."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = location_of(tensor)
    if location is not None:
        return Storage((), stored_bytes(tensor), location, entries.get("offset"), entries.get("length"))
    filled = tuple([field for field in _FIELDS if getattr(tensor, field) not in (None, b"", ())])
    return Storage(filled, stored_bytes(tensor), None, None, None)


def _contents(tensor: Tensor, resolver: Resolver | None, most: int) -> dict[str, object]:
    if resolver is None and location_of(tensor) is not None:
        return {}
    held = with_elements(tensor, resolver or _HERE)
    if held.data_type == STRING:
        values = tuple([each.decode("utf-8", "surrogateescape") for each in held.string_data[:most]])
        return {"statistics": string_statistics(held), "values": values}
    if held.data_type not in BITS:
        return {}
    values_of = tuple([Json(token) for token in first_tokens(held, most)]) if most else ()
    return {"statistics": statistics(held), "values": values_of}


def tensor_lines(view: TensorView, width: int) -> list[str]:
    """Return the lines for one tensor, visible; only names longer than `width` are wider."""
    rows = [
        ("address", f"@{view.address}"),
        ("type", view.type or ("no type" if view.storage is None else view.dtype or "")),
        ("indices", view.indices or ""),
        ("elements", "" if view.elements is None else f"{view.elements:,}"),
        ("weights", view.quantized or ""),
        ("storage", "" if view.storage is None else storage_text(view.storage)),
    ]
    lines = [f"tensor    {visible(view.name or '(no name)', 500)}"]
    lines += [f"{label:<8}  {visible(text, 500)}" for label, text in rows if text]
    if view.source is not None and view.source.produced_by != "initializer":
        lines.append(f"producer  {producer_text(view.source)}")
    if view.storage is not None and view.problem is not None:
        lines += ["", *wrapped(f"values cannot be read: {view.problem}", width, indent=0)]
    if isinstance(view.statistics, Statistics):
        lines += ["", *_statistics_lines(view.statistics, view.dtype or "")]
    elif view.statistics is not None:
        texts = [f"  {label:<9}  {text}" for label, text in string_rows(view.statistics)]
        lines += ["", "statistics", *(texts or ["  no strings"])]
    if view.values:
        lines += ["", "values", *_value_lines(view.values, view.statistics, width)]
    if view.source is not None:
        lines += ["", "consumers", *consumer_lines(view.consumers, indent=2)]
    if view.doc_string:
        lines += ["", "doc_string", *wrapped(view.doc_string, width)]
    return lines


def producer_text(source: values.Source) -> str:
    """Return operator and name of the producer of a value, or what else makes it."""
    if source.node is None:
        return "the caller, as an input" if source.produced_by == "input" else "nothing"
    name = visible(source.node.name, 500) if source.node.name else f"@{visible(source.node.address, 500)}"
    return f"{visible(source.node.op_type)} {name}"


def storage_text(storage: Storage) -> str:
    """Return fields and size, or size and file with offset; not escaped."""
    stored = size(storage.bytes)
    if storage.location is None:
        return f"{' and '.join(storage.fields) or 'no field'}, {stored}"
    place = f", at byte {storage.offset}" if storage.offset else ""
    return f"{stored} in {storage.location}{place}"


def statistics_rows(stats: Statistics, dtype: str) -> list[tuple[str, str]]:
    """Return labels and values of numeric statistics."""
    about = " of magnitudes" if dtype.startswith("complex") else ""
    ends, spread = (("minimum", stats.minimum), ("maximum", stats.maximum)), ("std", stats.standard_deviation)
    numbers = (*ends, ("mean", stats.mean), spread)
    rows = [(f"{label}{about}", number(value)) for label, value in numbers if value is not None]
    rows.append(("zero", _share(stats.zero, stats.elements)))
    counts = ("NaN", stats.nan), ("Infinity", stats.positive_infinity), ("-Infinity", stats.negative_infinity)
    return rows + [(label, _share(count, stats.elements)) for label, count in counts if count]


def _statistics_lines(stats: Statistics, dtype: str) -> list[str]:
    rows = statistics_rows(stats, dtype)
    widest = max(len(label) for label, _ in rows)
    lines = ["statistics", *(f"  {label:<{widest}}  {text}" for label, text in rows)]
    return lines if stats.histogram is None else [*lines, "", "histogram", *_histogram_lines(stats.histogram)]


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({count / whole:.1%})" if count and whole else f"{count:,}"


def _histogram_lines(histogram: Histogram) -> list[str]:
    edges = [number(int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge) for edge in histogram.edges]
    widest = max(map(len, edges))
    counts = [f"{count:,}" for count in histogram.counts]
    most, room = max(histogram.counts), max(map(len, counts))
    lines = []
    for edge, text, count in zip(edges, counts, histogram.counts, strict=False):
        bar = "#" * (max(round(count / most * _BAR), 1) if count else 0)
        lines.append(f"  from {padded(edge, widest, right=True)}  {text:>{room}}  {bar}".rstrip())
    return [*lines, f"  to   {padded(edges[-1], widest, right=True)}"]


def string_rows(stats: StringStatistics) -> list[tuple[str, str]]:
    """Return labels and values of the statistics of strings; none without strings."""
    if stats.shortest is None:
        return []
    rows = [
        ("lengths", f"{stats.shortest:,} to {stats.longest:,} bytes"),
        ("empty", _share(stats.empty, stats.elements)),
    ]
    return [*rows, ("not UTF-8", _share(stats.not_utf8, stats.elements))] if stats.not_utf8 else rows


def _value_lines(values: Sequence[object], found: Statistics | StringStatistics | None, width: int) -> list[str]:
    texts = [each.text if isinstance(each, Json) else f'"{each}"' for each in values]
    left = found is not None and found.elements > len(values)
    return wrapped(", ".join(visible(text, 200) for text in texts) + (", ..." if left else ""), width)
