"""Compare declared values: inputs, outputs and value_info of graphs with types and order; signatures of functions."""

from collections.abc import Iterator, Sequence
from functools import partial

from onnxjson.diffing.changes import Change, one_sided, one_sided_addresses, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, ChangedSlot, GraphComparison
from onnxjson.diffing.details import field_details, info_text, unknown_field_details, value_type_text
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.list_changes import Bulk, add_reordering, finish_list, pair_by_name, unpaired
from onnxjson.diffing.matching.alignment import pair_outputs
from onnxjson.model.document import Function, ValueInfo

_CAUSES: frozenset[Kind] = frozenset({"attribute-changed", "rewired", "field-changed"})
"""Kinds of changes of a node that can change the types of its outputs."""


def compare_outputs(graph: GraphComparison) -> dict[int, int]:
    """Pair the outputs of the graphs, and record those with other producers."""
    names = [scope.output_names for scope in graph.scopes]
    pairs = pair_outputs(*graph.scopes)
    for position, place in pairs.items():
        old, new = names[BASE][position] or "", names[TARGET][place] or ""
        if not graph.is_same_name(old, new):
            graph.slots.append(ChangedSlot(graph, None, None, position, place, old, new))
    return pairs


def compare_interface(graph: GraphComparison, bulk: Bulk, outputs: dict[int, int]) -> None:
    """Compare the inputs and outputs of the graphs: added, removed, and their types."""
    base, target = [scope.graph for scope in graph.scopes]
    if isinstance(base, Function) and isinstance(target, Function):
        _signature(graph, base, target)
    if isinstance(base, Function) or isinstance(target, Function):
        return
    places = graph.pair.target.inputs
    inputs = {
        position: places[there]
        for name, position in graph.pair.base.inputs.items()
        if (there := graph.values.get(name)) is not None and there in places
    }
    _interface(graph, bulk, "input", inputs)
    _interface(graph, bulk, "output", outputs)


def _interface(graph: GraphComparison, bulk: Bulk, field: str, pairs: dict[int, int]) -> None:
    base, target = [getattr(scope.graph, field) for scope in graph.scopes]
    names = [graph.translate(value.name or "") or value.name for value in base]
    pair_by_name(names, [value.name for value in target], pairs)
    for position, place in pairs.items():
        one, other = base[position], target[place]
        if one is not other and one != other:
            _declaration(graph, bulk, field, (position, place), one, other)
    for side, position, value in unpaired(base, target, pairs.items()):
        is_weight = field == "input" and value.name in graph.scopes[side].initializers
        pattern = f"{f'initializers as {field}s' if is_weight else field} {'added' if side else 'removed'}"
        detail = one_sided_detail(side, field, info_text(value))
        paths, order = one_sided(side, f"/{field}/{position}"), (-2, position)
        graph.report("io-changed", pattern, paths, [detail], place=value.name, order=order)
    finish_list(graph, field, f"{field}s", pairs.items())


def _declaration(
    graph: GraphComparison, bulk: Bulk, field: str, places: tuple[int, int], one: ValueInfo, other: ValueInfo
) -> None:
    paths = f"/{field}/{places[0]}", f"/{field}/{places[1]}"
    report = partial(graph.report, paths=paths, place=one.name, order=(-2, places[0]))
    if one.type != other.type:
        texts = value_type_text(one.type), value_type_text(other.type)
        details = (Detail("type", *texts),) if texts[0] != texts[1] else field_details(one.type, other.type, "type")
        report("io-changed", f"{field} type", details=details, fields=["/type"])
    bulk.add_documentation(graph, field, f"{field}s", one, other)
    if details := unknown_field_details(one, other):
        report("field-changed", f"{field}.unknown_fields", details=details, fields=["/unknown_fields"])
    # Outputs with other producers are reported as rewired, with their names.
    has_slot = field == "output" and bool(one.name or other.name)
    if one.name != other.name and not has_slot and (not one.name or graph.translate(one.name) != other.name):
        bulk.add(graph, "renamed", f"{field}s", (field, "name"), [Detail("name", one.name, other.name)])


def _signature(graph: GraphComparison, base: Function, target: Function) -> None:
    """Compare signatures of functions; inputs and outputs are positional, so a renaming is not a change."""
    ledger = graph.context.ledger
    for field in ("input", "output"):
        old, new = getattr(base, field), getattr(target, field)
        mapped = tuple([graph.translate(name) or name for name in old])
        same_names = sorted(mapped) == sorted(new)
        address, target_address = f"{graph.address}/{field}", f"{graph.target_address}/{field}"
        is_renamed = field == "output" and len(old) == len(new) and not same_names
        if mapped == new or is_renamed or ledger.claimed(address) is not None:
            continue
        if same_names:
            add_reordering(graph.context, address, target_address, f"function {field}s", 1, graph.number)
            ledger.take(ledger.changes[-1], [address])
            continue
        details, paths = field_details(mapped, new, f"function {field}"), (f"/{field}", f"/{field}")
        graph.report("field-changed", f"function {field}s", paths, details, place=base.name, order=(-2,))


def compare_value_infos(graph: GraphComparison, bulk: Bulk, counterparts: dict[str, tuple[str, Change]]) -> None:
    """Compare the value_info of the graphs; rewrites may have replaced its values (`counterparts`)."""
    base, target = graph.pair.base.graph.value_info, graph.pair.target.graph.value_info
    if base == target:
        return
    pairs = _value_info_pairs(graph, counterparts)
    changed = []
    for position, target_position in pairs.items():
        value, other = base[position], target[target_position]
        if value is other or value == other:
            continue
        if value.type != other.type:
            changed.append((position, target_position))
        bulk.add_documentation(graph, "value_info", "value_info", value, other)
        if details := unknown_field_details(value, other, value.name or ""):
            place = ("value_info", "unknown_fields")
            bulk.add(graph, "field-changed", "unknown fields of value_info", place, list(details))
        if (not value.name or not other.name) and value.name != other.name:
            bulk.add(graph, "renamed", "tensors", ("value_info", "name"), [Detail("tensor", value.name, other.name)])
    for side, position, value in unpaired(base, target, pairs.items()):
        _unpaired_value_info(graph, bulk, position, value, side)
    if changed:
        _changed_types(graph, bulk, changed)
    finish_list(graph, "value_info", "value_info", pairs.items())


def _value_info_pairs(graph: GraphComparison, counterparts: dict[str, tuple[str, Change]]) -> dict[int, int]:
    base, target = graph.pair.base.graph.value_info, graph.pair.target.graph.value_info
    places: dict[str | None, int] = {}
    for position, value in enumerate(target):
        places.setdefault(value.name, position)
    get = graph.values.get
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for position, value in enumerate(base):
        name = value.name or ""
        paired, rewrite = get(name), None
        # If a value is now computed twice, the value_info may belong to either of the two.
        if name in counterparts and places.get(paired) is None:
            paired, rewrite = counterparts[name]
        place = places.get(paired) if paired else None
        if place is None or place in taken:
            continue
        taken.add(place)
        pairs[position] = place
        if rewrite is not None and name != paired:
            graph.context.ledger.claim(rewrite, [f"{graph.address}/value_info/{position}/name"])
    if len(pairs) < min(len(base), len(target)):
        pair_by_name([value.name for value in base], [value.name for value in target], pairs)
    return pairs


def _changed_types(graph: GraphComparison, bulk: Bulk, changed: Sequence[tuple[int, int]]) -> None:
    """Report changed types: as consequences of the nearest upstream change if there is one, else on their own."""
    base, target = graph.pair.base.graph.value_info, graph.pair.target.graph.value_info
    names = {base[position].name for position, _ in changed}
    same = {value.name for value in base if value.name and value.name not in names}
    causes: dict[str, Change | None] = dict.fromkeys(same)
    for position, place in changed:
        one, other = base[position], target[place]
        _find(graph, one.name or "", causes)
        if (cause := causes.get(one.name or "")) is not None:
            addresses = f"{graph.address}/value_info/{position}/type", f"{graph.target_address}/value_info/{place}/type"
            graph.context.ledger.claim(cause, addresses[:1], addresses[1:])
            continue
        texts = value_type_text(one.type), value_type_text(other.type)
        detail = Detail(one.name or "", *texts)
        bulk.add(graph, "value-info-changed", "types of values", ("value_info", "type"), [detail])


def _unpaired_value_info(graph: GraphComparison, bulk: Bulk, position: int, value: ValueInfo, side: int) -> None:
    """Report value_info that only one graph has: as part of a rewrite of its value, else on its own."""
    context = graph.context
    found = graph.unmatched_producer(side, value.name or "")
    address = f"{graph.scopes[side].address}/value_info/{position}"
    change = None if found is None else context.region_changes.get((found[0], side, found[1]))
    if change is None and value.name:
        constant = graph.constant(side, value.name)
        if constant is not None and not constant.is_paired(side):
            change = context.ledger.claimed(constant.address, side)
    if change is not None:
        context.ledger.claim(change, *one_sided_addresses(side, address))
        return
    what = "removed" if side == BASE else "added"
    details = [one_sided_detail(side, "value", info_text(value))]
    bulk.add(graph, "value-info-changed", f"value_info {what}", ("value_info", what), details)


def _find(graph: GraphComparison, start: str, causes: dict[str, Change | None]) -> None:
    """Find the nearest upstream change, up to values that are in `causes`.

    Depth first, without recursion, since chains can be as long as the graph.
    """
    if start in causes:
        return
    pending = [(start, _before(graph, start, causes))]
    while pending:
        name, before = pending[-1]
        source = next(before, None)
        if source is None:
            pending.pop()
            if pending and causes[pending[-1][0]] is None:
                causes[pending[-1][0]] = causes[name]
        elif causes[name] is not None:
            pending[-1] = (name, iter(()))
        elif source in causes:
            causes[name] = causes[source]
        else:
            pending.append((source, _before(graph, source, causes)))


def _before(graph: GraphComparison, name: str, causes: dict[str, Change | None]) -> Iterator[str]:
    """Record the own cause of a value; return the values that it is computed from, none if there is a cause."""
    producer = graph.producer(BASE, name)
    causes[name] = _own_cause(graph, name, None if producer is None else producer[0])
    if causes[name] is not None or producer is None:
        return iter(())
    return iter(list(dict.fromkeys(filter(None, graph.nodes(BASE)[producer[0]].input))))


def _own_cause(graph: GraphComparison, name: str, position: int | None) -> Change | None:
    context, base = graph.context, graph.pair.base
    claimed = context.ledger.claimed
    if position is not None:
        region = context.region_changes.get((graph, BASE, position)) or context.slot_changes.get((graph, position))
        if region is not None:
            return region.cause()
        changes = graph.changes.get(position, ())
        return next((change.cause() for change in changes if change.kind in _CAUSES), None)
    if name in base.initializers:
        address = f"{graph.address}/initializer/{base.initializers[name]}"
        return claimed(f"{address}/raw_data") or claimed(address)
    if name in base.inputs:
        return claimed(f"{graph.address}/input/{base.inputs[name]}/type")
    return None
