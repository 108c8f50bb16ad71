"""Fields of graphs that are no structure: name, documentation, metadata, quantization annotations."""

from collections.abc import Callable, Iterable

import msgspec

from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import Context, GraphComparison
from onnxjson.diffing.events import Detail
from onnxjson.diffing.fields import field_details, unknown_fields
from onnxjson.diffing.ordering_changes import breaks, note_order
from onnxjson.document import Function, Graph, TensorAnnotation


def graph_fields(context: Context, graph: GraphComparison) -> None:
    """The fields of the graphs themselves: name, documentation, metadata."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(base, Function) != isinstance(target, Function):
        return
    if isinstance(base, Graph) and base.name != target.name:
        detail = Detail("graph name", base.name, target.name)
        addresses = (f"{graph.address}/name",), (f"{graph.target_address}/name",)
        change = Change("info-changed", "graph name", *addresses, details=(detail,), order=(graph.number, -3))
        context.ledger.add(change, change.base)
    for name in ("doc_string", "metadata_props"):
        old, new = getattr(base, name), getattr(target, name)
        if old != new:
            pairs = [Detail("doc_string", old, new)] if name == "doc_string" else list(field_details(old, new, name))
            addresses = (f"{graph.address}/{name}",), (f"{graph.target_address}/{name}",)
            change = Change(
                "metadata-changed", f"graph {name}", *addresses, details=tuple(pairs), order=(graph.number, -3)
            )
            context.ledger.add(change, change.base, change.target)
    if details := unknown_fields(base, target):
        addresses = (f"{graph.address}/unknown_fields",), (f"{graph.target_address}/unknown_fields",)
        change = Change("field-changed", "graph.unknown_fields", *addresses, details=details, order=(graph.number, -3))
        context.ledger.add(change, change.base)


def compare_annotations(context: Context, graph: GraphComparison) -> None:
    """Compare quantization annotations, by the tensors that they are about."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if (
        isinstance(base, Function)
        or isinstance(target, Function)
        or base.quantization_annotation == target.quantization_annotation
    ):
        return
    places = {each.tensor_name: position for position, each in enumerate(target.quantization_annotation)}
    pairs = []
    taken: set[int] = set()
    address, its_address = f"{graph.address}/quantization_annotation", f"{graph.target_address}/quantization_annotation"

    def add(details: Iterable[Detail], mine: int | None, its: int | None, name: str | None) -> None:
        bases = () if mine is None else (f"{address}/{mine}",)
        targets = () if its is None else (f"{its_address}/{its}",)
        change = Change(
            "field-changed",
            "quantization annotation",
            bases,
            targets,
            name or "",
            tuple(details),
            order=(graph.number, -1),
        )
        context.ledger.add(change, bases, targets)

    for position, one in enumerate(base.quantization_annotation):
        there = places.get(graph.translate(one.tensor_name or "") or one.tensor_name)
        if there is None or there in taken:
            add([Detail("annotation", one.tensor_name, None)], position, None, one.tensor_name)
            continue
        taken.add(there)
        pairs.append((position, there))
        other = target.quantization_annotation[there]
        if _translated(one, graph.translate) != _translated(other, lambda name: name):
            add(field_details(_translated(one, graph.translate), other, "annotation"), position, there, one.tensor_name)
    for position, other in enumerate(target.quantization_annotation):
        if position not in taken:
            add([Detail("annotation", None, other.tensor_name)], None, position, other.tensor_name)
    context.pairs[address] = pairs
    if breaks([there for _, there in pairs]):
        note_order(context, graph, "quantization_annotation", "quantization annotations", pairs)


def _translated(one: TensorAnnotation, translate: Callable[[str], str | None]) -> TensorAnnotation:
    entries = tuple(
        [
            msgspec.structs.replace(entry, value=translate(entry.value or "") or entry.value)
            for entry in one.quant_parameter_tensor_names
        ]
    )
    return msgspec.structs.replace(
        one, tensor_name=translate(one.tensor_name or "") or one.tensor_name, quant_parameter_tensor_names=entries
    )
