"""The constants of a pair of graphs: initializers and Constant nodes, paired, changed, moved from one to the other."""

from typing import Final

import msgspec
from msgspec.structs import astuple

from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison
from onnxjson.diffing.events import Detail
from onnxjson.diffing.fields import field_details, unknown_fields
from onnxjson.diffing.ordering_changes import note_order, pair_rest
from onnxjson.diffing.weight_changes import TensorChange, type_text
from onnxjson.document import Function, SparseTensor, Tensor
from onnxjson.messages import FIELDS

_NAME: Final = Tensor.__struct_fields__.index("name")
_LOCATION: Final = Tensor.__struct_fields__.index("data_location")
_SAYS_NOTHING: Final = ("name", "doc_string", "metadata_props")
_ELEMENT_FIELDS: Final = tuple(f"/{each.name}" for each in FIELDS[Tensor] if each.name not in _SAYS_NOTHING)


def compare_constants(context: Context, graph: GraphComparison, bulk: Bulk) -> None:
    """Compare the constants that are pairs, and note which are not."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if not isinstance(base, Function) and not isinstance(target, Function):
        _initializers(context, graph, bulk, base.initializer, target.initializer)
        if base.sparse_initializer or target.sparse_initializer:
            _sparse(context, graph, base.sparse_initializer, target.sparse_initializer)
    _moved(context, graph)


def _initializers(
    context: Context, graph: GraphComparison, bulk: Bulk, base: tuple[Tensor, ...], target: tuple[Tensor, ...]
) -> None:
    get, places = graph.values.get, graph.pair.target.initializers
    pairs: list[tuple[int, int]] = []
    skip = context.weights.mode == "skip"
    for name, position in graph.pair.base.initializers.items():
        there = places.get(get(name) or "")
        if there is None:
            continue
        pairs.append((position, there))
        one, other = base[position], target[there]
        if one is other and one.data_location is None:
            continue
        fields, its = astuple(one), astuple(other)
        if (
            not skip
            and not fields[_LOCATION]
            and fields[:_NAME] == its[:_NAME]
            and fields[_NAME + 1 :] == its[_NAME + 1 :]
        ):
            continue
        _pair(context, graph, bulk, position, there, one, other)
    if len(pairs) < min(len(base), len(target)):
        found = dict(pairs)
        pair_rest([get(each.name or "") or each.name for each in base], [each.name for each in target], found)
        for position in found.keys() - {position for position, _ in pairs}:
            _pair(context, graph, bulk, position, found[position], base[position], target[found[position]])
        pairs = sorted(found.items())
    context.pairs[f"{graph.address}/initializer"] = pairs
    note_order(context, graph, "initializer", "initializers", pairs)


def _pair(
    context: Context, graph: GraphComparison, bulk: Bulk, position: int, there: int, one: Tensor, other: Tensor
) -> None:
    address, its_address = f"{graph.address}/initializer/{position}", f"{graph.target_address}/initializer/{there}"
    found = context.weights.compare(one, other)
    if found is not None:
        change = _change(context, graph, found, one.name or "", address, its_address)
        fields = [address + field for field in _ELEMENT_FIELDS]
        context.ledger.claim(change, fields, [its_address + field for field in _ELEMENT_FIELDS])
    elif context.weights.mode == "exact":
        _other_fields(context, graph, one, other, (address, its_address))
    if one.name != other.name and (not one.name or graph.values.get(one.name) != other.name):
        bulk.add(graph, "renamed", "tensors", ("initializer", "name"), [Detail("tensor", one.name, other.name)])
    bulk.add_documentation(graph, "initializer", "initializers", one, other)
    if details := unknown_fields(one, other):
        change = Change(
            "field-changed", "initializer.unknown_fields", (address,), (its_address,), one.name or "", details,
            order=(graph.number, -1),
        )  # fmt: skip
        context.ledger.add(change, [f"{address}/unknown_fields"])


def _other_fields(
    context: Context, graph: GraphComparison, one: Tensor, other: Tensor, addresses: tuple[str, str]
) -> None:
    """What is different where a tensor holds more, or less, than its elements."""
    names = [field.removeprefix("/") for field in _ELEMENT_FIELDS]
    differing = [name for name in names if getattr(one, name) != getattr(other, name)]
    if differing:
        details = tuple([Detail(name) for name in differing])
        base, target = (addresses[0],), (addresses[1],)
        change = Change("field-changed", "initializer", base, target, one.name or "", details, order=(graph.number, -1))
        claims = [[f"{address}/{name}" for name in differing] for address in addresses]
        context.ledger.add(change, *claims)


def _change(
    context: Context, graph: GraphComparison, found: TensorChange, name: str, address: str, its_address: str
) -> Change:
    change = Change(
        found.kind, found.pattern, (address,), (its_address,), name, found.details, order=(graph.number, -1)
    )
    context.ledger.add(change)
    context.constants_changed(graph, name, change)
    return change


def _sparse(
    context: Context, graph: GraphComparison, base: tuple[SparseTensor, ...], target: tuple[SparseTensor, ...]
) -> None:
    places = graph.pair.target.sparse_initializers
    found = {
        position: places[its_name]
        for name, position in graph.pair.base.sparse_initializers.items()
        if (its_name := graph.values.get(name, "")) in places
    }
    names = [[each.values.name if each.values is not None else None for each in side] for side in (base, target)]
    pair_rest([graph.values.get(name or "") or name for name in names[0]], names[1], found)
    pairs = sorted(found.items())
    for position, there in pairs:
        name = names[0][position] or ""
        one, other = base[position], target[there]
        address, its_address = [
            f"{scope}/sparse_initializer/{place}"
            for scope, place in ((graph.address, position), (graph.target_address, there))
        ]
        details: list[Detail] = []
        if one.dims != other.dims:
            details.append(Detail("dims", str(list(one.dims)), str(list(other.dims))))
        for part in ("values", "indices"):
            mine, its = getattr(one, part), getattr(other, part)
            changed = context.weights.compare(mine, its) if mine is not None and its is not None else None
            if changed is not None:
                details += [Detail(f"{part}: {each.what}", each.base, each.target) for each in changed.details]
            elif (mine is None) != (its is None):
                details.append(Detail(part, mine and type_text(mine), its and type_text(its)))
        if details:
            found_change = TensorChange("weights-changed", "", tuple(details))
            change = _change(context, graph, found_change, name, address, its_address)
            context.ledger.claim(change, [address], [its_address])
        elif one != other:
            _sparse_fields(context, graph, one, other, (address, its_address))
    context.pairs[f"{graph.address}/sparse_initializer"] = pairs
    note_order(context, graph, "sparse_initializer", "sparse initializers", pairs)


def _sparse_fields(
    context: Context, graph: GraphComparison, one: SparseTensor, other: SparseTensor, addresses: tuple[str, str]
) -> None:
    """What else can be different: names, documentation, unknown fields."""
    name = one.values.name if one.values is not None else None
    its_name = other.values.name if other.values is not None else None
    if one.values is not None and name != its_name and graph.values.get(name or "") == its_name:
        renamed = msgspec.structs.replace(one.values, name=its_name)
        if msgspec.structs.replace(one, values=renamed) == other:
            return  # told with the other names
    details = field_details(one, other, "sparse initializer")
    base, target = (addresses[0],), (addresses[1],)
    change = Change("field-changed", "sparse initializer", base, target, name or "", details, order=(graph.number, -1))
    context.ledger.add(change, base, target)


def _moved(context: Context, graph: GraphComparison) -> None:
    """Constants that are a node in one model and an initializer (or another node) in the other."""
    scopes = graph.scopes
    for name, position in graph.loose[BASE].items():
        there = graph.values.get(name)
        if there is not None:
            place = graph.loose[TARGET].get(there)
            if place is not None:
                _move(context, graph, name, there, graph.node_address(position), graph.node_address(place, TARGET))
            elif there in scopes[TARGET].initializers:
                its_address = f"{graph.target_address}/initializer/{scopes[TARGET].initializers[there]}"
                _move(context, graph, name, there, graph.node_address(position), its_address)
    for there, position in graph.loose[TARGET].items():
        name = graph.inverse.get(there, "")
        if name in scopes[BASE].initializers:
            address = f"{graph.address}/initializer/{scopes[BASE].initializers[name]}"
            _move(context, graph, name, there, address, graph.node_address(position, TARGET))


def _move(context: Context, graph: GraphComparison, name: str, its_name: str, address: str, its_address: str) -> None:
    one, other = graph.constant(BASE, name), graph.constant(TARGET, its_name)
    if one is None or other is None:
        return
    texts = ["Constant node" if "/node/" in each.removeprefix(start) else "initializer"
             for each, start in ((address, graph.address), (its_address, graph.target_address))]  # fmt: skip
    moved = Detail("stored as", texts[0], texts[1])
    found = None
    if isinstance(one.tensor, Tensor) and isinstance(other.tensor, Tensor):
        found = context.weights.compare(one.tensor, other.tensor)
    if found is None or found.kind == "storage-changed":
        found = TensorChange("storage-changed", f"{texts[0]} -> {texts[1]}", (moved,))
    else:
        found = TensorChange(found.kind, found.pattern, (moved, *found.details))
    change = _change(context, graph, found, name, address, its_address)
    graph.moved_constants.add(name)
    context.explained_names[graph, name] = change
    context.ledger.claim(change, [address], [its_address])
