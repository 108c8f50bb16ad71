"""Description of a tensor without reading its elements."""

from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.model.document import SparseTensor, Tensor
from onnxjson.model.dtypes import STORAGE
from onnxjson.model.elements import element_count
from onnxjson.model.index import Index
from onnxjson.model.selectors import TensorRef
from onnxjson.model.tensors import location_of
from onnxjson.model.types import format_data_type
from onnxjson.rendering.constants import stored_bytes, tensor_type_text
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, shortened, size
from onnxjson.rendering.values import consumers, source

_MOST_LISTED: Final = 3
"""Maximum number of consumers, or of tensors with the same bytes, that are listed."""


def title_line(ref: TensorRef, width: int) -> Line:
    """Return name, type, number of elements and size."""
    name = visible(ref.name or "(no name)", 500)
    tensor = ref.tensor.values if isinstance(ref.tensor, SparseTensor) else ref.tensor
    if tensor is None:
        return (Span(f" {shortened(name, width - 2)}", "title"),)
    assert ref.tensor is not None
    kind = tensor_type_text(tensor) or f"{format_data_type(tensor.data_type or 0)}{list(tensor.dims)}"
    if isinstance(ref.tensor, SparseTensor):
        kind = f"sparse {kind} of {list(ref.tensor.dims)}"
    kind = shortened(visible(kind, 200), max(width // 3, 10))
    detail = f"  {counted(element_count(ref.tensor.dims), 'element')}, {size(stored_bytes(tensor))}"
    room = max(width - 4 - cells(kind) - cells(detail), 8)
    return (Span(f" {shortened(name, room)}", "title"), Span(f"  {kind}"), Span(detail, "quiet"))


def place_text(index: Index, ref: TensorRef) -> str:
    """Describe where a tensor is stored, its producer and its consumers."""
    tensor = ref.tensor.values if isinstance(ref.tensor, SparseTensor) else ref.tensor
    parts = []
    if tensor is not None:
        location = location_of(tensor)
        entries = {entry.key: entry.value or "" for entry in tensor.external_data}
        if location is not None:
            offset = f", from byte {entries['offset']}" if "offset" in entries else ""
            parts.append(f"in the file {visible(location, 200)}{visible(offset, 60)}")
        else:
            fields = [each for each in STORAGE.values() if len(getattr(tensor, each, b"") or b"")]
            parts.append("in " + (next(iter(fields), None) or ("string_data" if tensor.string_data else "raw_data")))
        parts += _shared(index, tensor)
    if ref.scope is not None and ref.name:
        made = source(index, ref.scope, ref.name)
        if made.node is not None:
            parts.append(f"produced by {visible(made.node.op_type, 60)} {visible(made.node.name or '', 100)}".rstrip())
        elif made.made_by == "input":
            parts.append("an input of the graph")
        users = consumers(index, ref.scope, ref.name)
        names = [
            "the output of the graph"
            if each.node is None
            else f"{visible(each.node.op_type, 60)} {visible(each.node.name or '', 60)}".rstrip()
            for each in users[:_MOST_LISTED]
        ]
        more = f" and {len(users) - _MOST_LISTED:,} more" if len(users) > _MOST_LISTED else ""
        parts.append(f"consumed by {len(users):,}: {', '.join(names)}{more}" if users else "not consumed")
    else:
        parts.append(visible(f"@{ref.address}", 200))
    return "; ".join(parts)


def _shared(index: Index, tensor: Tensor) -> list[str]:
    """Return other constants that refer to the same bytes of a file."""
    if not tensor.external_data:
        return []
    names = [
        visible(each.name or "?", 60)
        for scope in index.scopes
        for each in getattr(scope.graph, "initializer", ())
        if each is not tensor and each.external_data == tensor.external_data
    ]
    return [f"the same bytes as {', '.join(names[:_MOST_LISTED])}"] if names else []
