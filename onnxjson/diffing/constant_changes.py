"""Compare constants of a pair of graphs: initializers and Constant nodes; paired, changed, moved, or unpaired."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import astuple

from onnxjson.diffing.changes import Change, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, DiffContext, GraphComparison
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.fields import field_details, unknown_field_details
from onnxjson.diffing.list_changes import Bulk, compare_order, pair_by_name
from onnxjson.diffing.texts import tensor_value_text
from onnxjson.diffing.weight_changes import TensorChange, type_text
from onnxjson.model.document import Function, SparseTensor, Tensor
from onnxjson.model.messages import FIELDS
from onnxjson.model.operators import operator_name

_NAME: Final = Tensor.__struct_fields__.index("name")
_LOCATION: Final = Tensor.__struct_fields__.index("data_location")
_DESCRIPTIVE: Final = ("name", "doc_string", "metadata_props")
_ELEMENT_FIELDS: Final = tuple(f"/{each.name}" for each in FIELDS[Tensor] if each.name not in _DESCRIPTIVE)


def compare_constants(context: DiffContext, graph: GraphComparison, bulk: Bulk) -> None:
    """Compare paired constants, and record the pairs."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if not isinstance(base, Function) and not isinstance(target, Function):
        _initializers(context, graph, bulk, base.initializer, target.initializer)
        if base.sparse_initializer or target.sparse_initializer:
            _sparse(context, graph, base.sparse_initializer, target.sparse_initializer)
    _report_moved(context, graph)


def _initializers(
    context: DiffContext, graph: GraphComparison, bulk: Bulk, base: tuple[Tensor, ...], target: tuple[Tensor, ...]
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
        pair_by_name([get(each.name or "") or each.name for each in base], [each.name for each in target], found)
        for position in found.keys() - {position for position, _ in pairs}:
            _pair(context, graph, bulk, position, found[position], base[position], target[found[position]])
        pairs = sorted(found.items())
    context.pairs[f"{graph.address}/initializer"] = pairs
    compare_order(context, graph, "initializer", "initializers", pairs)


def _pair(
    context: DiffContext, graph: GraphComparison, bulk: Bulk, position: int, there: int, one: Tensor, other: Tensor
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
    if details := unknown_field_details(one, other):
        pattern, order = "initializer.unknown_fields", (graph.number, -1)
        addresses, fields = (address, its_address), ["/unknown_fields"]
        context.ledger.report("field-changed", pattern, *addresses, details, place=one.name, order=order, fields=fields)


def _other_fields(
    context: DiffContext, graph: GraphComparison, one: Tensor, other: Tensor, addresses: tuple[str, str]
) -> None:
    """Report differences of fields in tensors whose elements are equal."""
    fields = [field for field in _ELEMENT_FIELDS if getattr(one, field[1:]) != getattr(other, field[1:])]
    if fields:
        details, order = [Detail(field[1:]) for field in fields], (graph.number, -1)
        context.ledger.report(
            "field-changed", "initializer", *addresses, details, place=one.name, order=order, fields=fields
        )


def _change(
    context: DiffContext, graph: GraphComparison, found: TensorChange, name: str, address: str, its_address: str
) -> Change:
    addresses, order = (address, its_address), (graph.number, -1)
    change = context.ledger.report(
        found.kind, found.pattern, *addresses, found.details, place=name, order=order, fields=()
    )
    context.constants_changed(graph, name, change)
    return change


def _sparse(
    context: DiffContext, graph: GraphComparison, base: tuple[SparseTensor, ...], target: tuple[SparseTensor, ...]
) -> None:
    places = graph.pair.target.sparse_initializers
    found = {
        position: places[its_name]
        for name, position in graph.pair.base.sparse_initializers.items()
        if (its_name := graph.values.get(name, "")) in places
    }
    names = [[each.values.name if each.values is not None else None for each in side] for side in (base, target)]
    pair_by_name([graph.values.get(name or "") or name for name in names[0]], names[1], found)
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
    compare_order(context, graph, "sparse_initializer", "sparse initializers", pairs)


def _sparse_fields(
    context: DiffContext, graph: GraphComparison, one: SparseTensor, other: SparseTensor, addresses: tuple[str, str]
) -> None:
    """Report other differences: names, documentation, unknown fields."""
    name = one.values.name if one.values is not None else None
    its_name = other.values.name if other.values is not None else None
    if one.values is not None and name != its_name and graph.values.get(name or "") == its_name:
        renamed = msgspec.structs.replace(one.values, name=its_name)
        if msgspec.structs.replace(one, values=renamed) == other:
            return  # reported with the other names
    details = field_details(one, other, "sparse initializer")
    order = (graph.number, -1)
    context.ledger.report("field-changed", "sparse initializer", *addresses, details, place=name, order=order)


def _report_moved(context: DiffContext, graph: GraphComparison) -> None:
    """Report constants that are a node in one model and an initializer (or an unpaired node) in the other."""
    scopes = graph.scopes
    for name, position in graph.lone_constants[BASE].items():
        there = graph.values.get(name)
        if there is not None:
            place = graph.lone_constants[TARGET].get(there)
            if place is not None:
                _move(context, graph, name, there, graph.node_address(position), graph.node_address(place, TARGET))
            elif there in scopes[TARGET].initializers:
                its_address = f"{graph.target_address}/initializer/{scopes[TARGET].initializers[there]}"
                _move(context, graph, name, there, graph.node_address(position), its_address)
    for there, position in graph.lone_constants[TARGET].items():
        name = graph.inverse.get(there, "")
        if name in scopes[BASE].initializers:
            address = f"{graph.address}/initializer/{scopes[BASE].initializers[name]}"
            _move(context, graph, name, there, address, graph.node_address(position, TARGET))


def _move(
    context: DiffContext, graph: GraphComparison, name: str, its_name: str, address: str, its_address: str
) -> None:
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


def name_changed_constants(context: DiffContext, graph: GraphComparison) -> None:
    """Name events about changed constants after their consumers: ``Conv input 1``."""
    wanted: dict[str, list[Change]] = {}
    for home, name, change in context.changed_constants:
        if home is graph and not change.pattern and change.into is None:
            wanted.setdefault(name, []).append(change)
    if not wanted:
        return
    uses: dict[str, tuple[str, int]] = {}
    is_elsewhere = wanted.keys().isdisjoint
    for each in context.graphs:
        if graph not in each.chain():
            continue
        for node in each.nodes(BASE):
            if is_elsewhere(node.input):
                continue
            for place, name in enumerate(node.input):
                if name in wanted:
                    use = (operator_name(node.domain, node.op_type), place)
                    uses[name] = min(uses.get(name, use), use)
    for name, changes in wanted.items():
        operator, place = uses.get(name, ("", 0))
        for change in changes:
            change.pattern = f"{operator} input {place}" if operator else "unused constant"


def compare_unpaired_constants(context: DiffContext, graph: GraphComparison) -> None:
    """Report constants that only one graph has and that no rewrite explains: they are unused."""
    for side in (BASE, TARGET):
        for address, name, tensor in _unpaired_constants(context, graph, side):
            if context.ledger.claimed(address, side) is None:
                text = name if tensor is None else f"{name}: {tensor_value_text(tensor)}"
                _report_unpaired_constant(context, graph, side, address, text)


def _unpaired_constants(
    context: DiffContext, graph: GraphComparison, side: int
) -> Iterator[tuple[str, str, Tensor | None]]:
    """Yield address, name and tensor of the unpaired constants of one side; no tensor for sparse ones and nodes."""
    scope = graph.scopes[side]
    body = scope.graph
    moved = graph.moved_constants if side == BASE else {graph.values[name] for name in graph.moved_constants}
    if not isinstance(body, Function):
        paired = {pair[side] for pair in context.pairs.get(f"{graph.address}/initializer", ())}
        for position, tensor in enumerate(body.initializer):
            if position not in paired and tensor.name not in moved:
                yield f"{scope.address}/initializer/{position}", tensor.name or "", tensor
        paired = {pair[side] for pair in context.pairs.get(f"{graph.address}/sparse_initializer", ())}
        for position, sparse in enumerate(body.sparse_initializer):
            if position not in paired:
                name = sparse.values.name if sparse.values else None
                yield f"{scope.address}/sparse_initializer/{position}", name or "", None
    for name, position in graph.lone_constants[side].items():
        if name not in moved:
            yield graph.node_address(position, side), name, None


def _report_unpaired_constant(context: DiffContext, graph: GraphComparison, side: int, address: str, text: str) -> None:
    noun = "Constant" if f"{graph.scopes[side].address}/node/" in address else "initializer"
    detail = one_sided_detail(side, noun, text)
    base, target = (address, None) if side == BASE else (None, address)
    kind: Kind = "dead-code-removed" if side == BASE else "inserted"
    context.ledger.report(kind, noun, base, target, [detail], order=(graph.number, -1))
