"""What graphs say about the types of values between nodes: changed, added, removed, or following from a change."""

from collections.abc import Sequence

from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.causes import causes_of
from onnxjson.diffing.changes import Change, one_sided, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison
from onnxjson.diffing.events import Detail
from onnxjson.diffing.fields import unknown_fields
from onnxjson.diffing.ordering_changes import note_order, pair_rest
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
    pairs = _pairs(context, graph, counterparts)
    changed = []
    for position, there in pairs.items():
        value, other = base.value_info[position], target.value_info[there]
        if value is other or value == other:
            continue
        if value.type != other.type:
            changed.append((position, there))
        if value.doc_string != other.doc_string or value.metadata_props != other.metadata_props:
            bulk.add_documentation(graph, "value_info", "value_info", value, other)
        if details := unknown_fields(value, other, value.name or ""):
            place = ("value_info", "unknown_fields")
            bulk.add(graph, "field-changed", "unknown fields of value_info", place, list(details))
        if (not value.name or not other.name) and value.name != other.name:
            bulk.add(graph, "renamed", "tensors", ("value_info", "name"), [Detail("tensor", value.name, other.name)])
    taken = set(pairs.values())
    for position, value in enumerate(base.value_info):
        if position not in pairs:
            _alone(context, graph, bulk, position, value, BASE)
    for position, value in enumerate(target.value_info):
        if position not in taken:
            _alone(context, graph, bulk, position, value, TARGET)
    _types(context, graph, bulk, changed)
    context.pairs[f"{graph.address}/value_info"] = sorted(pairs.items())
    note_order(context, graph, "value_info", "value_info", context.pairs[f"{graph.address}/value_info"])


def _pairs(context: Context, graph: GraphComparison, counterparts: dict[str, tuple[str, Change]]) -> dict[int, int]:
    """Positions of what is said about one and the same value; what is left goes by names."""
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
        # Of a value that is computed twice now, either may be the one that something is said about.
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
        pair_rest([value.name for value in base], [value.name for value in target], pairs)
    return pairs


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
            places = (
                [f"{graph.address}/value_info/{position}/type"],
                [f"{graph.target_address}/value_info/{there}/type"],
            )
            context.ledger.claim(cause, *places)
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
            change = context.ledger.claimed(constant.address, side)
    if change is not None:
        context.ledger.claim(change, *one_sided(side, address))
        return
    what = "removed" if side == BASE else "added"
    details = [one_sided_detail(side, "value", info_text(value))]
    bulk.add(graph, "value-info-changed", f"value_info {what}", ("value_info", what), details)
