"""Fields of graphs that are no structure: name, documentation, metadata, quantization annotations."""

from collections.abc import Iterable, Mapping

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


def compare_annotations(
    context: Context, graph: GraphComparison, counterparts: Mapping[GraphComparison, Mapping[str, tuple[str, Change]]]
) -> None:
    """Compare quantization annotations, by the tensors that they are about.

    Args:
        context: what is shared.
        graph: the graphs.
        counterparts: for each pair of graphs the names of values that rewrites gave away, the names that are taken
            instead, and the rewrite.
    """
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
        name, rewrite = _counterpart(graph, counterparts, one.tensor_name or "")
        there = places.get(name or one.tensor_name)
        if there is None or there in taken:
            add([Detail("annotation", one.tensor_name, None)], position, None, one.tensor_name)
            continue
        taken.add(there)
        pairs.append((position, there))
        other = target.quantization_annotation[there]
        if rewrite is not None and one.tensor_name != other.tensor_name:
            context.ledger.claim(rewrite, [f"{address}/{position}/tensor_name"])
        renamed = _renamed(graph, one, other)
        if renamed != other:
            add(field_details(renamed, other, "annotation"), position, there, one.tensor_name)
    for position, other in enumerate(target.quantization_annotation):
        if position not in taken:
            add([Detail("annotation", None, other.tensor_name)], None, position, other.tensor_name)
    context.pairs[address] = pairs
    if breaks([there for _, there in pairs]):
        note_order(context, graph, "quantization_annotation", "quantization annotations", pairs)


def _counterpart(
    graph: GraphComparison,
    counterparts: Mapping[GraphComparison, Mapping[str, tuple[str, Change]]],
    name: str,
) -> tuple[str | None, Change | None]:
    """What a name is called in the target; where a rewrite made its value anew, with that."""
    for each in graph.chain():
        if (found := each.values.get(name)) is not None:
            return found, None
        if name in counterparts.get(each, {}):
            return counterparts[each][name]
    return None, None


def _renamed(graph: GraphComparison, one: TensorAnnotation, other: TensorAnnotation) -> TensorAnnotation:
    """An annotation of the base as the target calls its tensors; a name that is the same in both is no difference.

    Where a name stays and means another tensor, it is the tensors that changed names.
    """
    its = {entry.key: entry.value for entry in other.quant_parameter_tensor_names}
    entries = tuple(
        [
            entry
            if entry.value == its.get(entry.key)
            else msgspec.structs.replace(entry, value=graph.translate(entry.value or "") or entry.value)
            for entry in one.quant_parameter_tensor_names
        ]
    )
    return msgspec.structs.replace(one, tensor_name=other.tensor_name, quant_parameter_tensor_names=entries)
