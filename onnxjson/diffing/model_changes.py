"""Compare everything except nodes and values: versions, opsets, metadata, functions, training, annotations."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec

from onnxjson.diffing.changes import Change, one_sided, one_sided_addresses, one_sided_detail
from onnxjson.diffing.comparing import DiffContext, GraphComparison
from onnxjson.diffing.details import field_details, graph_text, unknown_field_details
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.list_changes import add_reordering, count_order_breaks, finish_list, pair_by_name, unpaired
from onnxjson.model.display import counted
from onnxjson.model.document import Function, Graph, Model, OperatorSetId, TensorAnnotation, TrainingInfo
from onnxjson.model.operators import OperatorKey, function_key, operator_key, operator_name, plain_domain

INFO = ("ir_version", "producer_name", "producer_version", "domain", "model_version")
"""Fields of a model with a text or number that no other field depends on."""


def compare_models(context: DiffContext, base: Model, target: Model) -> None:
    """Compare all fields of the models except their main graphs."""
    for name in INFO:
        old, new = getattr(base, name), getattr(target, name)
        if old != new:
            texts = [None if value is None else str(value) for value in (old, new)]
            _add(context, "info-changed", name, f"/{name}", (Detail(name, *texts),))
    for name in ("doc_string", "metadata_props"):
        _metadata(context, name, getattr(base, name), getattr(target, name))
    if details := unknown_field_details(base, target):
        _add(context, "field-changed", "model.unknown_fields", "/unknown_fields", details)
    if (base.graph is None) != (target.graph is None):
        texts = [None if model.graph is None else graph_text(model.graph) for model in (base, target)]
        _add(context, "field-changed", "model.graph", "/graph", (Detail("graph", *texts),))
    compare_opsets(context, ("", ""), base.opset_import, target.opset_import, "", _calls(context))
    if base.configuration != target.configuration:
        details = field_details(base.configuration, target.configuration, "configuration")
        details = details or (Detail("order of configurations"),)
        _add(context, "field-changed", "device configurations", "/configuration", details)
    _functions(context, base.functions, target.functions)
    _training(context, base.training_info, target.training_info)


def _add(context: DiffContext, kind: Kind, pattern: str, address: str, details: Sequence[Detail]) -> None:
    context.ledger.report(kind, pattern, address, address, details)


def _metadata(context: DiffContext, name: str, old: Any, new: Any) -> None:
    if old == new:
        return
    details = (Detail(name, old, new),) if name == "doc_string" else field_details(old, new, "metadata")
    if not details and sorted(old, key=repr) == sorted(new, key=repr):
        add_reordering(context, f"/{name}", f"/{name}", name, 1, -1)
    else:
        _add(context, "metadata-changed", f"model {name}", f"/{name}", details or (Detail("metadata"),))


def compare_opsets(
    context: DiffContext,
    addresses: tuple[str, str],
    base: Sequence[OperatorSetId],
    target: Sequence[OperatorSetId],
    place: str,
    calls: Mapping[OperatorKey, Change] = MappingProxyType({}),
) -> None:
    """Compare operator set imports of models or functions; the default domain has three spellings.

    An import that only a removed or added call of a function needs belongs to the change of that call (`calls`).
    """
    if base == target:
        return
    paths = [f"{address}/opset_import" for address in addresses]
    report = partial(context.ledger.report, place=place)
    counterparts: dict[int, int] = {}
    domains = [[plain_domain(opset.domain) for opset in opsets] for opsets in (base, target)]
    pair_by_name(domains[0], domains[1], counterparts)
    pairs = list(counterparts.items())
    for position, target_position in pairs:
        one, other = base[position], target[target_position]
        domain = plain_domain(one.domain)
        pair_paths = f"{paths[0]}/{position}", f"{paths[1]}/{target_position}"
        if one.version != other.version:
            pattern = f"{domain or 'ai.onnx'} {one.version} -> {other.version}"
            report("opset-changed", pattern, *pair_paths, [Detail("version", str(one.version), str(other.version))])
        elif one != other:
            kind: Kind = "storage-changed" if one.domain != other.domain else "field-changed"
            report(kind, "domain of an opset", *pair_paths, [Detail("domain", one.domain, other.domain)])
    by_domain = {key[0]: change for key, change in calls.items() if change.kind.startswith("function-")}
    for side, position, opset in unpaired(base, target, pairs):
        domain = plain_domain(opset.domain)
        address = f"{paths[side]}/{position}"
        if domain in by_domain:
            context.ledger.claim(by_domain[domain], *one_sided_addresses(side, address))
        else:
            detail = one_sided_detail(side, "version", str(opset.version))
            pattern = f"{domain or 'ai.onnx'} {'added' if side else 'removed'}"
            report("opset-changed", pattern, *one_sided(side, address), [detail])
    context.pairs[paths[0]] = pairs
    if count := count_order_breaks([target_position for _, target_position in pairs]):
        add_reordering(context, paths[0], paths[1], "opset imports", count, -1)


def _functions(context: DiffContext, base: Sequence[Function], target: Sequence[Function]) -> None:
    pairs = list(context.alignment.functions)
    for position, target_position in pairs:
        one, other = base[position], target[target_position]
        address, target_address = f"/functions/{position}", f"/functions/{target_position}"
        report = partial(context.ledger.report, place=one.name)
        if function_key(one) != function_key(other):
            _renamed_function(context, address, target_address, one, other)
        for name in ("domain", "overload"):
            if function_key(one) == function_key(other) and getattr(one, name) != getattr(other, name):
                detail = Detail(name, getattr(one, name), getattr(other, name))
                report(
                    "storage-changed", f"{name} of functions", f"{address}/{name}", f"{target_address}/{name}", [detail]
                )
        for name in ("attribute", "attribute_proto"):
            old, new = getattr(one, name), getattr(other, name)
            if old != new:
                details = field_details(old, new, f"function {name}") or (Detail(f"order of function {name}"),)
                report("field-changed", f"function {name}", f"{address}/{name}", f"{target_address}/{name}", details)
        compare_opsets(context, (address, target_address), one.opset_import, other.opset_import, one.name or "")
    calls = _calls(context)
    for side, position, function in unpaired(base, target, pairs):
        # A function that only one model has is part of the rewrite of its calls if there is one.
        address = f"/functions/{position}"
        if (call := calls.get(function_key(function))) is not None:
            context.ledger.claim(call, *one_sided_addresses(side, address))
            continue
        detail = one_sided_detail(side, "function", f"{function.name} ({counted(len(function.node), 'node')})")
        kind: Kind = "inserted" if side else "dead-code-removed"
        context.ledger.report(kind, "function", *one_sided(side, address), [detail], place=function.name)
    context.pairs["/functions"] = pairs
    if count := count_order_breaks([target_position for _, target_position in sorted(pairs)]):
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


def _renamed_function(context: DiffContext, address: str, target_address: str, one: Function, other: Function) -> None:
    keys = function_key(one), function_key(other)
    detail = Detail("function", *[operator_name(*key) for key in keys])
    fields = ["/name", "/domain", "/overload"]
    report, claim = context.ledger.report, context.ledger.claim
    change = report("renamed", "functions", address, target_address, [detail], place=one.name, fields=fields)
    for graph in context.graphs:
        calls = [place for place in graph.suspects if (graph.nodes(0)[place].op_type or "") == keys[0][1]]
        for place in calls:
            claim(change, [f"{graph.node_address(place)}/{name}" for name in ("op_type", "domain", "overload")])


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
    pairs = [(position, position) for position in range(min(len(base), len(target)))]
    for side, position, _ in unpaired(base, target, pairs):
        pattern = f"training step {'added' if side else 'removed'}"
        context.ledger.report("field-changed", pattern, *one_sided(side, f"/training_info/{position}"))
    context.pairs["/training_info"] = pairs


def graph_fields(graph: GraphComparison) -> None:
    """Compare the fields of the graphs themselves: name, documentation, metadata."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(base, Function) != isinstance(target, Function):
        return

    def report(kind: Kind, pattern: str, field: str, details: Sequence[Detail]) -> None:
        graph.report(kind, pattern, (f"/{field}", f"/{field}"), details, order=(-3,))

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
    graph: GraphComparison, counterparts: Mapping[GraphComparison, Mapping[str, tuple[str, Change]]]
) -> None:
    """Compare quantization annotations by their tensors, which rewrites may have replaced (`counterparts`)."""
    bodies = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(bodies[0], Function) or isinstance(bodies[1], Function):
        return
    base, target = bodies[0].quantization_annotation, bodies[1].quantization_annotation
    if base == target:
        return
    field, pattern = "quantization_annotation", "quantization annotation"
    places = {annotation.tensor_name: position for position, annotation in enumerate(target)}
    pairs: dict[int, int] = {}
    for position, one in enumerate(base):
        name, rewrite = _counterpart(graph, counterparts, one.tensor_name or "")
        place = places.pop(name or one.tensor_name, None)
        if place is None:
            continue
        pairs[position] = place
        other = target[place]
        if rewrite is not None and one.tensor_name != other.tensor_name:
            graph.context.ledger.claim(rewrite, [f"{graph.address}/{field}/{position}/tensor_name"])
        renamed = _renamed_annotation(graph, one, other)
        if renamed != other:
            details, paths = field_details(renamed, other, "annotation"), (f"/{field}/{position}", f"/{field}/{place}")
            graph.report("field-changed", pattern, paths, details, place=one.tensor_name)
    for side, position, annotation in unpaired(base, target, pairs.items()):
        detail = one_sided_detail(side, "annotation", annotation.tensor_name)
        where = one_sided(side, f"/{field}/{position}")
        graph.report("field-changed", pattern, where, [detail], place=annotation.tensor_name)
    finish_list(graph, field, f"{pattern}s", pairs.items())


def _counterpart(
    graph: GraphComparison, counterparts: Mapping[GraphComparison, Mapping[str, tuple[str, Change]]], name: str
) -> tuple[str | None, Change | None]:
    """Return the name of a value in the target, and the rewrite that replaced the value, if any."""
    for enclosing in graph.chain():
        if (target_name := enclosing.values.get(name)) is not None:
            return target_name, None
        if name in counterparts.get(enclosing, {}):
            return counterparts[enclosing][name]
    return None, None


def _renamed_annotation(graph: GraphComparison, one: TensorAnnotation, other: TensorAnnotation) -> TensorAnnotation:
    """Return an annotation of the base with the tensor names of the target; an equal name is not translated.

    If a name stays but refers to another tensor, then the tensors changed names.
    """
    new = {entry.key: entry.value for entry in other.quant_parameter_tensor_names}
    entries = []
    for entry in one.quant_parameter_tensor_names:
        value = entry.value if entry.value == new.get(entry.key) else graph.translate(entry.value or "") or entry.value
        entries.append(msgspec.structs.replace(entry, value=value))
    return msgspec.structs.replace(one, tensor_name=other.tensor_name, quant_parameter_tensor_names=tuple(entries))
