"""What differs outside graphs: versions, producer, opsets, metadata, functions, training, device configurations."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from onnxjson.diffing.changes import Change, one_sided, one_sided_detail
from onnxjson.diffing.comparing import Context
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.fields import field_details, unknown_fields
from onnxjson.diffing.ordering_changes import breaks, note
from onnxjson.diffing.texts import graph_text
from onnxjson.display import counted
from onnxjson.document import Function, Model, OperatorSetId, TrainingInfo
from onnxjson.operators import OperatorKey, function_key, operator_key, operator_name, plain_domain

_INFO = ("ir_version", "producer_name", "producer_version", "domain", "model_version")


def compare_models(context: Context, base: Model, target: Model) -> None:
    """Compare the fields of the models, all but their main graphs."""
    for name in _INFO:
        old, new = getattr(base, name), getattr(target, name)
        if old != new:
            texts = [None if each is None else str(each) for each in (old, new)]
            _add(context, "info-changed", name, f"/{name}", (Detail(name, *texts),))
    for name in ("doc_string", "metadata_props"):
        _metadata(context, f"model {name}", f"/{name}", f"/{name}", getattr(base, name), getattr(target, name))
    if details := unknown_fields(base, target):
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
    context: Context,
    kind: Kind,
    pattern: str,
    address: str,
    details: Sequence[Detail],
    place: str = "",
    its_address: str | None = None,
) -> Change:
    target = address if its_address is None else its_address
    change = Change(kind, pattern, (address,), (target,), place, tuple(details), order=(-1,))
    return context.ledger.add(change, [address], [target])


def _metadata(context: Context, pattern: str, address: str, its_address: str, old: object, new: object) -> None:
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
            note(context, address, its_address, "metadata_props", 1, -1)
            return
        details = details or (Detail("metadata"),)
    _add(context, "metadata-changed", pattern, address, details, its_address=its_address)


def compare_opsets(
    context: Context,
    address: str,
    its_address: str,
    base: Sequence[OperatorSetId],
    target: Sequence[OperatorSetId],
    place: str,
    calls: Mapping[OperatorKey, Change] = MappingProxyType({}),
) -> None:
    """Compare imports of operator sets, of models or of functions; the default domain has three spellings.

    Args:
        context: what is shared.
        address: of the model or function in the base.
        its_address: and in the target.
        base: the imports.
        target: their counterparts.
        place: what the function is called.
        calls: what took calls of functions away or made them; an import only for these belongs to that.
    """
    if base == target:
        return
    path, its_path = f"{address}/opset_import", f"{its_address}/opset_import"
    places: dict[str, int] = {}
    for position, each in enumerate(target):
        places.setdefault(plain_domain(each.domain), position)
    pairs = []
    by_domain = {key[0]: change for key, change in calls.items() if change.kind.startswith("function-")}
    for position, one in enumerate(base):
        domain = plain_domain(one.domain)
        there = places.pop(domain, None)
        if there is None and domain in by_domain:
            context.ledger.claim(by_domain[domain], [f"{path}/{position}"])
        elif there is None:
            _opset(
                context, f"{domain or 'ai.onnx'} removed", (f"{path}/{position}",), (), place, (str(one.version), None)
            )
        if there is None:
            continue
        pairs.append((position, there))
        other = target[there]
        addresses = (f"{path}/{position}",), (f"{its_path}/{there}",)
        if one.version != other.version:
            pattern = f"{domain or 'ai.onnx'} {one.version} -> {other.version}"
            _opset(context, pattern, *addresses, place, (str(one.version), str(other.version)))
        elif one != other:
            detail = Detail("domain", one.domain, other.domain)
            kind: Kind = "storage-changed" if one.domain != other.domain else "field-changed"
            change = Change(kind, "domain of an opset", *addresses, place, (detail,), order=(-1,))
            context.ledger.add(change, *addresses)
    its = {there for _, there in pairs}
    for position, other in enumerate(target):
        domain = plain_domain(other.domain) or "ai.onnx"
        if position not in its and domain in by_domain:
            context.ledger.claim(by_domain[domain], [], [f"{its_path}/{position}"])
        elif position not in its:
            _opset(context, f"{domain} added", (), (f"{its_path}/{position}",), place, (None, str(other.version)))
    context.pairs[path] = pairs
    if count := breaks([there for _, there in pairs]):
        note(context, path, its_path, "opset imports", count, -1)


def _opset(
    context: Context,
    pattern: str,
    base: tuple[str, ...],
    target: tuple[str, ...],
    place: str,
    versions: tuple[str | None, str | None],
) -> None:
    change = Change("opset-changed", pattern, base, target, place, (Detail("version", *versions),), order=(-1,))
    context.ledger.add(change, base, target)


def _functions(context: Context, base: Sequence[Function], target: Sequence[Function]) -> None:
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
    if count := breaks([there for _, there in sorted(pairs)]):
        note(context, "/functions", "/functions", "functions", count, -1)


def _calls(context: Context) -> dict[OperatorKey, Change]:
    """The changes that took calls of functions away, or made them, by what is called."""
    calls: dict[OperatorKey, Change] = {}
    keys = context.function_keys | context.target_function_keys
    if keys:
        for (graph, side, position), change in context.region_changes.items():
            key = operator_key(graph.nodes(side)[position])
            if key in keys:
                calls.setdefault(key, change.cause())
    return calls


def _lone_function(context: Context, address: str, function: Function, call: Change | None, *, is_base: bool) -> None:
    """A function that only one model has belongs to the rewrite of its calls."""
    side = 0 if is_base else 1
    addresses = one_sided(side, address)
    if call is not None:
        context.ledger.claim(call, *addresses)
        return
    text = f"{function.name} ({counted(len(function.node), 'node')})"
    kind: Kind = "dead-code-removed" if is_base else "inserted"
    detail = one_sided_detail(side, "function", text)
    change = Change(kind, "function", *addresses, function.name or "", (detail,), order=(-1,))
    context.ledger.add(change, *addresses)


def _renamed_function(context: Context, address: str, its_address: str, one: Function, other: Function) -> None:
    keys = function_key(one), function_key(other)
    detail = Detail("function", *[operator_name(*key) for key in keys])
    change = Change("renamed", "functions", (address,), (its_address,), one.name or "", (detail,), order=(-1,))
    claims = [f"{address}/{name}" for name in ("name", "domain", "overload")]
    for graph in context.graphs:
        for position in graph.suspects:
            node = graph.nodes(0)[position]
            if (node.op_type or "") == keys[0][1] and graph.pair.target_of[position] >= 0:
                place = graph.node_address(position)
                claims += [f"{place}/{name}" for name in ("op_type", "domain", "overload")]
    context.ledger.add(change, claims)


def _training(context: Context, base: Sequence[TrainingInfo], target: Sequence[TrainingInfo]) -> None:
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
        address = f"/training_info/{position}"
        change = Change("field-changed", "training step removed", (address,), (), "", (), order=(-1,))
        context.ledger.add(change, [address])
    for position in range(len(base), len(target)):
        address = f"/training_info/{position}"
        change = Change("field-changed", "training step added", (), (address,), "", (), order=(-1,))
        context.ledger.add(change, [], [address])
    context.pairs["/training_info"] = [(position, position) for position in range(min(len(base), len(target)))]
