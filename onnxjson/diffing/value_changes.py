"""Compare declared values: inputs, outputs and value_info of graphs with types and order; signatures of functions."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from onnxjson.diffing.changes import Change, one_sided_addresses, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, ChangedSlot, DiffContext, GraphComparison
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.fields import field_details, unknown_field_details
from onnxjson.diffing.list_changes import Bulk, add_reordering, compare_order, pair_by_name
from onnxjson.diffing.matching.alignment import pair_outputs
from onnxjson.diffing.texts import info_text, value_type_text
from onnxjson.model.document import Function, ValueInfo


def compare_outputs(context: DiffContext, graph: GraphComparison) -> dict[int, int]:
    """Pair the outputs of the graphs, and record those with other producers."""
    names = [scope.output_names for scope in graph.scopes]
    pairs = pair_outputs(*graph.scopes)
    for position, there in pairs.items():
        old, new = names[BASE][position] or "", names[TARGET][there] or ""
        if not graph.is_same_name(old, new):
            graph.slots.append(ChangedSlot(graph, None, None, position, there, old, new))
    return pairs


def compare_interface(context: DiffContext, graph: GraphComparison, bulk: Bulk, outputs: dict[int, int]) -> None:
    """Compare the inputs and outputs of the graphs: added, removed, and their types."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(base, Function) or isinstance(target, Function):
        _signature(context, graph)
        return
    places = graph.pair.target.inputs
    inputs = {
        position: places[there]
        for name, position in graph.pair.base.inputs.items()
        if (there := graph.values.get(name)) is not None and there in places
    }
    for field, mine, its, pairs in (
        ("input", base.input, target.input, inputs),
        ("output", base.output, target.output, outputs),
    ):
        _InterfaceComparison(context, graph, bulk, field, mine, its).run(pairs)


class _InterfaceComparison:
    """The inputs or the outputs of a pair of graphs."""

    def __init__(
        self,
        context: DiffContext,
        graph: GraphComparison,
        bulk: Bulk,
        field: str,
        base: Sequence[ValueInfo],
        target: Sequence[ValueInfo],
    ) -> None:
        self._context = context
        self._graph = graph
        self._bulk = bulk
        self._field = field
        self._base = base
        self._target = target

    def run(self, pairs: dict[int, int]) -> None:
        translate = self._graph.translate
        names = [translate(value.name or "") or value.name for value in self._base]
        pair_by_name(names, [value.name for value in self._target], pairs)
        for position, there in pairs.items():
            one, other = self._base[position], self._target[there]
            if one is not other and one != other:
                self._pair(position, there, one, other)
        its = set(pairs.values())
        for position, value in enumerate(self._base):
            if position not in pairs:
                self._alone(position, value, BASE)
        for position, value in enumerate(self._target):
            if position not in its:
                self._alone(position, value, TARGET)
        address = f"{self._graph.address}/{self._field}"
        self._context.pairs[address] = sorted(pairs.items())
        compare_order(self._context, self._graph, self._field, f"{self._field}s", self._context.pairs[address])

    def _pair(self, position: int, there: int, one: ValueInfo, other: ValueInfo) -> None:
        graph = self._graph
        address = f"{graph.address}/{self._field}/{position}"
        its_address = f"{graph.target_address}/{self._field}/{there}"
        report = partial(self._context.ledger.report, place=one.name, order=(graph.number, -2, position))
        if one.type != other.type:
            texts = value_type_text(one.type), value_type_text(other.type)
            if texts[0] == texts[1]:
                details = field_details(one.type, other.type, "type")
            else:
                details = (Detail("type", *texts),)
            report("io-changed", f"{self._field} type", address, its_address, details, fields=["/type"])
        self._bulk.add_documentation(graph, self._field, f"{self._field}s", one, other)
        if details := unknown_field_details(one, other):
            pattern, fields = f"{self._field}.unknown_fields", ["/unknown_fields"]
            report("field-changed", pattern, address, its_address, details, fields=fields)
        # Outputs with other producers are reported as rewired, with their names.
        has_slot = self._field == "output" and bool(one.name or other.name)
        if one.name != other.name and not has_slot and (not one.name or graph.translate(one.name) != other.name):
            self._bulk.add(
                graph, "renamed", f"{self._field}s", (self._field, "name"), [Detail("name", one.name, other.name)]
            )

    def _alone(self, position: int, value: ValueInfo, side: int) -> None:
        graph = self._graph
        address = f"{graph.scopes[side].address}/{self._field}/{position}"
        is_weight = self._field == "input" and value.name in graph.scopes[side].initializers
        noun = f"initializers as {self._field}s" if is_weight else self._field
        pattern = f"{noun} {'removed' if side == BASE else 'added'}"
        detail = one_sided_detail(side, self._field, info_text(value))
        base, target = (address, None) if side == BASE else (None, address)
        order = (graph.number, -2, position)
        self._context.ledger.report("io-changed", pattern, base, target, [detail], place=value.name, order=order)


def _signature(context: DiffContext, graph: GraphComparison) -> None:
    """Compare signatures of functions; inputs and outputs are positional, so a renaming is not a change."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if not isinstance(base, Function) or not isinstance(target, Function):
        return
    for field in ("input", "output"):
        old, new = getattr(base, field), getattr(target, field)
        mapped = tuple([graph.translate(name) or name for name in old])
        same_names = sorted(mapped) == sorted(new)
        if mapped == new or (field == "output" and len(old) == len(new) and not same_names):
            continue
        address = f"{graph.address}/{field}"
        if context.ledger.claimed(address) is not None:
            continue
        if same_names:
            add_reordering(context, address, f"{graph.target_address}/{field}", f"function {field}s", 1, graph.number)
            context.ledger.take(context.ledger.changes[-1], [address])
            continue
        details = field_details(mapped, new, f"function {field}")
        addresses, order = (address, f"{graph.target_address}/{field}"), (graph.number, -2)
        context.ledger.report("field-changed", f"function {field}s", *addresses, details, place=base.name, order=order)


def compare_value_infos(
    context: DiffContext, graph: GraphComparison, bulk: Bulk, counterparts: dict[str, tuple[str, Change]]
) -> None:
    """Compare the value_info of the graphs.

    Args:
        context: the comparison.
        graph: the graphs.
        bulk: collects the changes.
        counterparts: values that rewrites replaced: name -> new name and the rewrite.
    """
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if base.value_info == target.value_info:
        return
    pairs = _value_info_pairs(context, graph, counterparts)
    changed = []
    for position, there in pairs.items():
        value, other = base.value_info[position], target.value_info[there]
        if value is other or value == other:
            continue
        if value.type != other.type:
            changed.append((position, there))
        if value.doc_string != other.doc_string or value.metadata_props != other.metadata_props:
            bulk.add_documentation(graph, "value_info", "value_info", value, other)
        if details := unknown_field_details(value, other, value.name or ""):
            place = ("value_info", "unknown_fields")
            bulk.add(graph, "field-changed", "unknown fields of value_info", place, list(details))
        if (not value.name or not other.name) and value.name != other.name:
            bulk.add(graph, "renamed", "tensors", ("value_info", "name"), [Detail("tensor", value.name, other.name)])
    taken = set(pairs.values())
    for position, value in enumerate(base.value_info):
        if position not in pairs:
            _unpaired_value_info(context, graph, bulk, position, value, BASE)
    for position, value in enumerate(target.value_info):
        if position not in taken:
            _unpaired_value_info(context, graph, bulk, position, value, TARGET)
    _changed_types(context, graph, bulk, changed)
    context.pairs[f"{graph.address}/value_info"] = sorted(pairs.items())
    compare_order(context, graph, "value_info", "value_info", context.pairs[f"{graph.address}/value_info"])


def _value_info_pairs(
    context: DiffContext, graph: GraphComparison, counterparts: dict[str, tuple[str, Change]]
) -> dict[int, int]:
    """Pair the positions of value_info of paired values; the rest is paired by name."""
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
        there = places.get(paired) if paired else None
        if there is None or there in taken:
            continue
        taken.add(there)
        pairs[position] = there
        if rewrite is not None and name != paired:
            context.ledger.claim(rewrite, [f"{graph.address}/value_info/{position}/name"])
    if len(pairs) < min(len(base), len(target)):
        pair_by_name([value.name for value in base], [value.name for value in target], pairs)
    return pairs


def _changed_types(
    context: DiffContext, graph: GraphComparison, bulk: Bulk, changed: Sequence[tuple[int, int]]
) -> None:
    """Report changed types: as consequences of another change where possible, else on their own."""
    if not changed:
        return
    base, target = graph.pair.base.graph.value_info, graph.pair.target.graph.value_info
    names = {base[position].name or "" for position, _ in changed}
    same = {value.name for value in base if value.name and value.name not in names}
    causes = causes_of(context, graph, [base[position].name or "" for position, _ in changed], same)
    for position, there in changed:
        one, other = base[position], target[there]
        cause = causes.get(one.name or "")
        if cause is not None:
            places = (
                [f"{graph.address}/value_info/{position}/type"],
                [f"{graph.target_address}/value_info/{there}/type"],
            )
            context.ledger.claim(cause, *places)
            continue
        texts = value_type_text(one.type), value_type_text(other.type)
        detail = Detail(one.name or "", *texts)
        bulk.add(graph, "value-info-changed", "types of values", ("value_info", "type"), [detail])


def _unpaired_value_info(
    context: DiffContext, graph: GraphComparison, bulk: Bulk, position: int, value: ValueInfo, side: int
) -> None:
    """Report value_info that only one graph has: as part of a rewrite of its value, else on its own."""
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


_CAUSES: frozenset[Kind] = frozenset({"attribute-changed", "rewired", "field-changed"})
"""Kinds of changes of a node that can change the types of its outputs."""


def causes_of(
    context: DiffContext, graph: GraphComparison, names: Collection[str], same: Collection[str]
) -> dict[str, Change]:
    """Return the nearest upstream change of each value.

    Args:
        context: the comparison.
        graph: the graphs.
        names: names in the base of values whose types changed.
        same: names of values with unchanged types, where the search stops.
    """
    found: dict[str, Change | None] = dict.fromkeys(set(same) - set(names))
    for start in names:
        _find(context, graph, start, found)
    return {name: cause for name in names if (cause := found.get(name)) is not None}


def _find(context: DiffContext, graph: GraphComparison, start: str, found: dict[str, Change | None]) -> None:
    """Follow the inputs depth first, without recursion, since chains can be as long as the graph."""
    if start in found:
        return
    pending = [(start, _before(context, graph, start, found))]
    while pending:
        name, before = pending[-1]
        each = next(before, None)
        if each is None:
            pending.pop()
            if pending and found[pending[-1][0]] is None:
                found[pending[-1][0]] = found[name]
        elif found[name] is not None:
            pending[-1] = (name, iter(()))
        elif each in found:
            found[name] = found[each]
        else:
            pending.append((each, _before(context, graph, each, found)))


def _before(context: DiffContext, graph: GraphComparison, name: str, found: dict[str, Change | None]) -> Iterator[str]:
    """Record the own cause of a value; return the values that it is computed from, none if there is a cause."""
    producer = graph.producer(BASE, name)
    found[name] = _own_cause(context, graph, name, None if producer is None else producer[0])
    if found[name] is not None or producer is None:
        return iter(())
    return iter(list(dict.fromkeys(filter(None, graph.nodes(BASE)[producer[0]].input))))


def _own_cause(context: DiffContext, graph: GraphComparison, name: str, position: int | None) -> Change | None:
    """Return the change of the producer of a value."""
    claimed = context.ledger.claimed
    base = graph.pair.base
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
