"""What graphs say about the types of values between nodes: changed, added, removed, or following from a change."""

from collections.abc import Sequence

from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.causes import causes_of
from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison
from onnxjson.diffing.events import Detail
from onnxjson.diffing.interface_changes import documentation
from onnxjson.diffing.ordering_changes import note_order
from onnxjson.diffing.texts import info_text, value_type_text
from onnxjson.document import ValueInfo


def compare_value_infos(
    context: Context, graph: GraphComparison, bulk: Bulk, counterparts: dict[str, tuple[str, Change]]
) -> None:
    """Compare what the graphs say about the values in between.

    Args:
        context: what is shared.
        graph: the graphs.
        bulk: takes the changes.
        counterparts: names of values that rewrites gave away, the names that are taken instead, and the rewrite.
    """
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if base.value_info == target.value_info:
        return
    places: dict[str | None, int] = {}
    for position, value in enumerate(target.value_info):
        places.setdefault(value.name, position)
    get = graph.values.get
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    changed: list[tuple[int, int]] = []
    alone = []
    for position, value in enumerate(base.value_info):
        name = value.name or ""
        paired, rewrite = get(name), None
        if paired is None and name in counterparts:
            paired, rewrite = counterparts[name]
        there = places.get(paired) if paired else None
        if there is None and graph.translate(name) is None and not graph.pair.base.defines(name):
            there = places.get(name)  # about a value that is not there
        if there is None or there in taken:
            alone.append(position)
            continue
        if rewrite is not None and value.name != paired:
            context.ledger.claim(rewrite, [f"{graph.address}/value_info/{position}/name"])
        taken.add(there)
        pairs.append((position, there))
        other = target.value_info[there]
        if value is not other and value.type != other.type:
            changed.append((position, there))
        if value is not other and (
            value.doc_string != other.doc_string or value.metadata_props != other.metadata_props
        ):
            documentation(bulk, graph, "value_info", "value_info", value, other)
        if value.unknown_fields != other.unknown_fields:
            detail = Detail(name, value.unknown_fields.hex() or None, other.unknown_fields.hex() or None)
            bulk.add(graph, "field-changed", "unknown fields of value_info", ("value_info", "unknown_fields"), [detail])
    for position in alone:
        value = base.value_info[position]
        there = places.get(value.name)
        if there is not None and there not in taken:
            # Another value has that name now; what is said of it stays.
            taken.add(there)
            pairs.append((position, there))
            if value.type != target.value_info[there].type:
                changed.append((position, there))
            continue
        _alone(context, graph, bulk, position, base.value_info[position], BASE)
    for position, value in enumerate(target.value_info):
        if position not in taken:
            _alone(context, graph, bulk, position, value, TARGET)
    _types(context, graph, bulk, changed)
    context.pairs[f"{graph.address}/value_info"] = pairs
    note_order(context, graph, "value_info", "value_info", pairs)


def _types(context: Context, graph: GraphComparison, bulk: Bulk, changed: Sequence[tuple[int, int]]) -> None:
    """Types that changed: with the change that they follow from, else on their own."""
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
            context.ledger.claim(cause, [f"{graph.address}/value_info/{position}/type"])
            continue
        texts = value_type_text(one.type), value_type_text(other.type)
        detail = Detail(one.name or "", *texts)
        bulk.add(graph, "value-info-changed", "types of values", ("value_info", "type"), [detail])


def _alone(context: Context, graph: GraphComparison, bulk: Bulk, position: int, value: ValueInfo, side: int) -> None:
    """What only one graph says: of a value of a rewrite it belongs to that, else it is a change of its own."""
    found = graph.maker_without_counterpart(side, value.name or "")
    address = f"{graph.scopes[side].address}/value_info/{position}"
    change = None if found is None else context.region_changes.get((found[0], side, found[1]))
    if change is None and value.name:
        constant = graph.constant(side, value.name)
        if constant is not None and not constant.is_paired(side):
            change = (context.ledger.claimed if side == BASE else context.ledger.claimed_in_target)(constant.address)
    if change is not None:
        context.ledger.claim(change, *(([address], []) if side == BASE else ([], [address])))
        return
    text = info_text(value)
    if side == BASE:
        bulk.add(
            graph, "value-info-changed", "value_info removed", ("value_info", "removed"), [Detail("value", text, None)]
        )
    else:
        bulk.add(
            graph, "value-info-changed", "value_info added", ("value_info", "added"), [Detail("value", None, text)]
        )
