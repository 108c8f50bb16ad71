"""Compare everything besides nodes and values: versions, opsets, metadata, functions, training, annotations."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from onnxjson.diffing.changes import Change, one_sided_addresses, one_sided_detail
from onnxjson.diffing.comparing import DiffContext, GraphComparison
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.fields import field_details, unknown_field_details
from onnxjson.diffing.list_changes import add_reordering, compare_order, count_order_breaks
from onnxjson.diffing.texts import graph_text
from onnxjson.model.display import counted
from onnxjson.model.document import Function, Graph, Model, OperatorSetId, TensorAnnotation, TrainingInfo
from onnxjson.model.operators import OperatorKey, function_key, operator_key, operator_name, plain_domain

_INFO = ("ir_version", "producer_name", "producer_version", "domain", "model_version")


def compare_models(context: DiffContext, base: Model, target: Model) -> None:
    """Compare all fields of the models except their main graphs."""
    for name in _INFO:
        old, new = getattr(base, name), getattr(target, name)
        if old != new:
            texts = [None if each is None else str(each) for each in (old, new)]
            _add(context, "info-changed", name, f"/{name}", (Detail(name, *texts),))
    for name in ("doc_string", "metadata_props"):
        _metadata(context, f"model {name}", f"/{name}", f"/{name}", getattr(base, name), getattr(target, name))
    if details := unknown_field_details(base, target):
        _add(context, "field-changed", "model.unknown_fields", "/unknown_fields", details)
    if (base.graph is None) != (target.graph is None):
        texts = [None if each.graph is None else graph_text(each.graph) for each in (base, target)]
        _add(context, "field-changed", "model.graph", "/graph", (Detail("graph", *texts),))
    compare_opsets(context, "", "", base.opset_import, target.opset_import, "", _calls(context))
    if base.configuration != target.configuration:
        details = field_details(base.configuration, target.configuration, "configuration")
        if not details:
            details = (Detail("order of configurations"),)
        _add(context, "field-changed", "device configurations", "/configuration", details)
    _functions(context, base.functions, target.functions)
    _training(context, base.training_info, target.training_info)


def _add(
    context: DiffContext,
    kind: Kind,
    pattern: str,
    address: str,
    details: Sequence[Detail],
    place: str = "",
    its_address: str | None = None,
) -> None:
    context.ledger.report(kind, pattern, address, its_address or address, details, place=place)


def _metadata(context: DiffContext, pattern: str, address: str, its_address: str, old: object, new: object) -> None:
    if old == new:
        return
    if isinstance(old, str | None) and isinstance(new, str | None):
        details: tuple[Detail, ...] = (Detail("doc_string", old, new),)
    else:
        details = field_details(old, new, "metadata")
        if (
            not details
            and isinstance(old, tuple)
            and isinstance(new, tuple)
            and sorted(old, key=repr) == sorted(new, key=repr)
        ):
            add_reordering(context, address, its_address, "metadata_props", 1, -1)
            return
        details = details or (Detail("metadata"),)
    _add(context, "metadata-changed", pattern, address, details, its_address=its_address)


def compare_opsets(
    context: DiffContext,
    address: str,
    its_address: str,
    base: Sequence[OperatorSetId],
    target: Sequence[OperatorSetId],
    place: str,
    calls: Mapping[OperatorKey, Change] = MappingProxyType({}),
) -> None:
    """Compare operator set imports of models or functions; the default domain has three spellings.

    Args:
        context: the comparison.
        address: address of the model or function in the base.
        its_address: address in the target.
        base: the imports of the base.
        target: the imports of the target.
        place: name of the function.
        calls: changes that removed or added calls of functions; an import for only these belongs to such a change.
    """
    if base == target:
        return
    path, its_path = f"{address}/opset_import", f"{its_address}/opset_import"
    places: dict[str, int] = {}
    for position, each in enumerate(target):
        places.setdefault(plain_domain(each.domain), position)
    pairs = []
    report = context.ledger.report
    by_domain = {key[0]: change for key, change in calls.items() if change.kind.startswith("function-")}
    for position, one in enumerate(base):
        domain = plain_domain(one.domain)
        there = places.pop(domain, None)
        if there is None and domain in by_domain:
            context.ledger.claim(by_domain[domain], [f"{path}/{position}"])
        elif there is None:
            detail = Detail("version", str(one.version), None)
            pattern = f"{domain or 'ai.onnx'} removed"
            report("opset-changed", pattern, f"{path}/{position}", None, [detail], place=place)
        if there is None:
            continue
        pairs.append((position, there))
        other = target[there]
        addresses = f"{path}/{position}", f"{its_path}/{there}"
        if one.version != other.version:
            pattern = f"{domain or 'ai.onnx'} {one.version} -> {other.version}"
            detail = Detail("version", str(one.version), str(other.version))
            report("opset-changed", pattern, *addresses, [detail], place=place)
        elif one != other:
            detail = Detail("domain", one.domain, other.domain)
            kind: Kind = "storage-changed" if one.domain != other.domain else "field-changed"
            report(kind, "domain of an opset", *addresses, [detail], place=place)
    its = {there for _, there in pairs}
    for position, other in enumerate(target):
        domain = plain_domain(other.domain) or "ai.onnx"
        if position not in its and domain in by_domain:
            context.ledger.claim(by_domain[domain], [], [f"{its_path}/{position}"])
        elif position not in its:
            detail = Detail("version", None, str(other.version))
            report("opset-changed", f"{domain} added", None, f"{its_path}/{position}", [detail], place=place)
    context.pairs[path] = pairs
    if count := count_order_breaks([there for _, there in pairs]):
        add_reordering(context, path, its_path, "opset imports", count, -1)


def _functions(context: DiffContext, base: Sequence[Function], target: Sequence[Function]) -> None:
    pairs = list(context.alignment.functions)
    for position, there in pairs:
        one, other = base[position], target[there]
        address, its_address = f"/functions/{position}", f"/functions/{there}"
        if function_key(one) != function_key(other):
            _renamed_function(context, address, its_address, one, other)
        for name in ("domain", "overload"):
            if function_key(one) == function_key(other) and getattr(one, name) != getattr(other, name):
                detail = Detail(name, getattr(one, name), getattr(other, name))
                _add(context, "storage-changed", f"{name} of functions", f"{address}/{name}", (detail,), one.name or "")
        for name in ("attribute", "attribute_proto"):
            old, new = getattr(one, name), getattr(other, name)
            if old != new:
                details = field_details(old, new, f"function {name}") or (Detail(f"order of function {name}"),)
                path, its_path = f"{address}/{name}", f"{its_address}/{name}"
                _add(context, "field-changed", f"function {name}", path, details, one.name or "", its_path)
        compare_opsets(context, address, its_address, one.opset_import, other.opset_import, one.name or "")
    bases, targets = {position for position, _ in pairs}, {there for _, there in pairs}
    calls = _calls(context)
    for position, one in enumerate(base):
        if position not in bases:
            _lone_function(context, f"/functions/{position}", one, calls.get(function_key(one)), is_base=True)
    for position, other in enumerate(target):
        if position not in targets:
            _lone_function(context, f"/functions/{position}", other, calls.get(function_key(other)), is_base=False)
    context.pairs["/functions"] = pairs
    if count := count_order_breaks([there for _, there in sorted(pairs)]):
        add_reordering(context, "/functions", "/functions", "functions", count, -1)


def _calls(context: DiffContext) -> dict[OperatorKey, Change]:
    """Return the changes that removed or added calls of functions, by the called function."""
    calls: dict[OperatorKey, Change] = {}
    keys = context.function_keys | context.target_function_keys
    if keys:
        for (graph, side, position), change in context.region_changes.items():
            key = operator_key(graph.nodes(side)[position])
            if key in keys:
                calls.setdefault(key, change.cause())
    return calls


def _lone_function(
    context: DiffContext, address: str, function: Function, call: Change | None, *, is_base: bool
) -> None:
    """Report a function that only one model has, as part of the rewrite of its calls if there is one."""
    side = 0 if is_base else 1
    if call is not None:
        context.ledger.claim(call, *one_sided_addresses(side, address))
        return
    text = f"{function.name} ({counted(len(function.node), 'node')})"
    kind: Kind = "dead-code-removed" if is_base else "inserted"
    detail = one_sided_detail(side, "function", text)
    base, target = (address, None) if is_base else (None, address)
    context.ledger.report(kind, "function", base, target, [detail], place=function.name)


def _renamed_function(context: DiffContext, address: str, its_address: str, one: Function, other: Function) -> None:
    keys = function_key(one), function_key(other)
    detail = Detail("function", *[operator_name(*key) for key in keys])
    fields = ["/name", "/domain", "/overload"]
    change = context.ledger.report(
        "renamed", "functions", address, its_address, [detail], place=one.name, fields=fields
    )
    claims: list[str] = []
    for graph in context.graphs:
        for position in graph.suspects:
            node = graph.nodes(0)[position]
            if (node.op_type or "") == keys[0][1] and graph.pair.target_of[position] >= 0:
                place = graph.node_address(position)
                claims += [f"{place}/{name}" for name in ("op_type", "domain", "overload")]
    context.ledger.claim(change, claims)


def _training(context: DiffContext, base: Sequence[TrainingInfo], target: Sequence[TrainingInfo]) -> None:
    for position, (one, other) in enumerate(zip(base, target, strict=False)):
        address = f"/training_info/{position}"
        for name in ("initialization", "algorithm"):
            old, new = getattr(one, name), getattr(other, name)
            if (old is None) != (new is None) or (old != new and f"{address}/{name}" not in context.by_base):
                texts = [None if each is None else graph_text(each) for each in (old, new)]
                _add(context, "field-changed", f"training {name}", f"{address}/{name}", (Detail(name, *texts),))
        for name in ("initialization_binding", "update_binding", "unknown_fields"):
            old, new = getattr(one, name), getattr(other, name)
            if old != new:
                details = field_details(old, new, name) or (Detail(f"order of {name}"),)
                _add(context, "field-changed", f"training {name}", f"{address}/{name}", details)
    for position in range(len(target), len(base)):
        context.ledger.report("field-changed", "training step removed", f"/training_info/{position}", None)
    for position in range(len(base), len(target)):
        context.ledger.report("field-changed", "training step added", None, f"/training_info/{position}")
    context.pairs["/training_info"] = [(position, position) for position in range(min(len(base), len(target)))]


def graph_fields(context: DiffContext, graph: GraphComparison) -> None:
    """Compare the fields of the graphs themselves: name, documentation, metadata."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(base, Function) != isinstance(target, Function):
        return

    def report(kind: Kind, pattern: str, field: str, details: Sequence[Detail]) -> None:
        addresses = f"{graph.address}/{field}", f"{graph.target_address}/{field}"
        context.ledger.report(kind, pattern, *addresses, details, order=(graph.number, -3))

    if isinstance(base, Graph) and base.name != target.name:
        report("info-changed", "graph name", "name", [Detail("graph name", base.name, target.name)])
    for name in ("doc_string", "metadata_props"):
        old, new = getattr(base, name), getattr(target, name)
        if old != new:
            details = (Detail(name, old, new),) if name == "doc_string" else field_details(old, new, name)
            report("metadata-changed", f"graph {name}", name, details)
    if details := unknown_field_details(base, target):
        report("field-changed", "graph.unknown_fields", "unknown_fields", details)


def compare_annotations(
    context: DiffContext,
    graph: GraphComparison,
    counterparts: Mapping[GraphComparison, Mapping[str, tuple[str, Change]]],
) -> None:
    """Compare quantization annotations by their tensors.

    Args:
        context: the comparison.
        graph: the graphs.
        counterparts: for each pair of graphs the values that rewrites replaced: name -> new name and the rewrite.
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
        base_address = None if mine is None else f"{address}/{mine}"
        target_address = None if its is None else f"{its_address}/{its}"
        addresses = base_address, target_address
        order = (graph.number, -1)
        context.ledger.report("field-changed", "quantization annotation", *addresses, details, place=name, order=order)

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
        renamed = _renamed_annotation(graph, one, other)
        if renamed != other:
            add(field_details(renamed, other, "annotation"), position, there, one.tensor_name)
    for position, other in enumerate(target.quantization_annotation):
        if position not in taken:
            add([Detail("annotation", None, other.tensor_name)], None, position, other.tensor_name)
    context.pairs[address] = pairs
    if count_order_breaks([there for _, there in pairs]):
        compare_order(context, graph, "quantization_annotation", "quantization annotations", pairs)


def _counterpart(
    graph: GraphComparison,
    counterparts: Mapping[GraphComparison, Mapping[str, tuple[str, Change]]],
    name: str,
) -> tuple[str | None, Change | None]:
    """Return the name of a value in the target, and the rewrite that replaced the value, if any."""
    for each in graph.chain():
        if (found := each.values.get(name)) is not None:
            return found, None
        if name in counterparts.get(each, {}):
            return counterparts[each][name]
    return None, None


def _renamed_annotation(graph: GraphComparison, one: TensorAnnotation, other: TensorAnnotation) -> TensorAnnotation:
    """Return an annotation of the base with the tensor names of the target; an equal name is not translated.

    If a name stays but refers to another tensor, then the tensors changed names.
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
