"""Compare constants of a pair of graphs: initializers and Constant nodes; paired, changed, moved, or unpaired."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import astuple

from onnxjson.diffing.changes import Change, one_sided, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, DiffContext, GraphComparison
from onnxjson.diffing.details import field_details, tensor_value_text, type_text, unknown_field_details
from onnxjson.diffing.events import Detail
from onnxjson.diffing.list_changes import Bulk, finish_list, pair_by_name, unpaired
from onnxjson.diffing.weight_changes import TensorChange
from onnxjson.model.constants import has_quantized_weights, quantized_weight
from onnxjson.model.document import Function, SparseTensor, Tensor
from onnxjson.model.messages import FIELDS
from onnxjson.model.operators import operator_name

_NAME: Final = Tensor.__struct_fields__.index("name")
_LOCATION: Final = Tensor.__struct_fields__.index("data_location")
_DESCRIPTIVE: Final = ("name", "doc_string", "metadata_props")
_ELEMENT_FIELDS: Final = tuple(f"/{each.name}" for each in FIELDS[Tensor] if each.name not in _DESCRIPTIVE)


def compare_constants(graph: GraphComparison, bulk: Bulk) -> None:
    """Compare paired constants, and record the pairs."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if not isinstance(base, Function) and not isinstance(target, Function):
        _initializers(graph, bulk, base.initializer, target.initializer)
        if base.sparse_initializer or target.sparse_initializer:
            _sparse(graph, base.sparse_initializer, target.sparse_initializer)
    _report_moved(graph)


def _initializers(graph: GraphComparison, bulk: Bulk, base: tuple[Tensor, ...], target: tuple[Tensor, ...]) -> None:
    get, places = graph.values.get, graph.pair.target.initializers
    pairs: dict[int, int] = {}
    different: list[int] = []
    skip = graph.context.weights.mode == "skip"
    for name, position in graph.pair.base.initializers.items():
        place = places.get(get(name) or "")
        if place is None:
            continue
        pairs[position] = place
        one, other = base[position], target[place]
        if one is other and one.data_location is None:
            continue
        fields, other_fields = astuple(one), astuple(other)
        is_same = fields[:_NAME] == other_fields[:_NAME] and fields[_NAME + 1 :] == other_fields[_NAME + 1 :]
        if skip or fields[_LOCATION] or not is_same:
            different.append(position)
    if len(pairs) < min(len(base), len(target)):
        known = set(pairs)
        pair_by_name([get(each.name or "") or each.name for each in base], [each.name for each in target], pairs)
        different += pairs.keys() - known
    is_quantized = bool(different) and all(
        [has_quantized_weights(side) for side in (graph.pair.base, graph.pair.target)]
    )
    for position in different:
        _pair(graph, bulk, position, pairs[position], base[position], target[pairs[position]], is_quantized)
    finish_list(graph, "initializer", "initializers", pairs.items())


def _pair(
    graph: GraphComparison, bulk: Bulk, position: int, place: int, one: Tensor, other: Tensor, is_quantized: bool
) -> None:
    paths = f"/initializer/{position}", f"/initializer/{place}"
    weights = graph.context.weights
    changed = weights.compare(one, other)
    if changed is not None:
        pair = graph.pair
        sides = ((pair.base, one.name or ""), (pair.target, other.name or "")) if is_quantized else ()
        old, new = [quantized_weight(*side) for side in sides] or [None, None]
        # Of a weight whose elements changed, its scales say no more.
        if old and new and (old.elements == new.elements or one.name == old.elements.name):
            changed = changed._replace(details=(*weights.through_scales(old, new), *changed.details))
        _change(graph, changed, one.name or "", paths, _ELEMENT_FIELDS)
    elif weights.mode in ("exact", "rank"):
        fields = [field for field in _ELEMENT_FIELDS if getattr(one, field[1:]) != getattr(other, field[1:])]
        if fields:
            details = [Detail(field[1:]) for field in fields]
            graph.report("field-changed", "initializer", paths, details, place=one.name, fields=fields)
    if one.name != other.name and (not one.name or graph.values.get(one.name) != other.name):
        bulk.add(graph, "renamed", "tensors", ("initializer", "name"), [Detail("tensor", one.name, other.name)])
    bulk.add_documentation(graph, "initializer", "initializers", one, other)
    if unknown := unknown_field_details(one, other):
        pattern, fields = "initializer.unknown_fields", ["/unknown_fields"]
        graph.report("field-changed", pattern, paths, unknown, place=one.name, fields=fields)


def _change(
    graph: GraphComparison, found: TensorChange, name: str, paths: tuple[str, str], fields: tuple[str, ...] = ("",)
) -> Change:
    change = graph.report(found.kind, found.pattern, paths, found.details, place=name, fields=fields)
    graph.context.changed_constants.append((graph, name, change))
    return change


def _sparse(graph: GraphComparison, base: tuple[SparseTensor, ...], target: tuple[SparseTensor, ...]) -> None:
    places = graph.pair.target.sparse_initializers
    pairs = {
        position: places[target_name]
        for name, position in graph.pair.base.sparse_initializers.items()
        if (target_name := graph.values.get(name, "")) in places
    }
    names = [[each.values.name if each.values is not None else None for each in side] for side in (base, target)]
    pair_by_name([graph.values.get(name or "") or name for name in names[0]], names[1], pairs)
    for position, place in sorted(pairs.items()):
        one, other = base[position], target[place]
        paths = f"/sparse_initializer/{position}", f"/sparse_initializer/{place}"
        if one.values and other.values and graph.values.get(one.values.name or "") == other.values.name:
            # A renaming is reported with the other names.
            one = msgspec.structs.replace(one, values=msgspec.structs.replace(one.values, name=other.values.name))
        if details := _sparse_details(graph, one, other):
            _change(graph, TensorChange("weights-changed", "", tuple(details)), names[0][position] or "", paths)
        elif one != other:
            details = list(field_details(one, other, "sparse initializer"))
            graph.report("field-changed", "sparse initializer", paths, details, place=names[0][position])
    finish_list(graph, "sparse_initializer", "sparse initializers", pairs.items())


def _sparse_details(graph: GraphComparison, one: SparseTensor, other: SparseTensor) -> list[Detail]:
    details: list[Detail] = []
    if one.dims != other.dims:
        details.append(Detail("dims", str(list(one.dims)), str(list(other.dims))))
    for part in ("values", "indices"):
        before, after = getattr(one, part), getattr(other, part)
        changed = graph.context.weights.compare(before, after) if before is not None and after is not None else None
        if changed is not None:
            details += [Detail(f"{part}: {each.what}", each.base, each.target) for each in changed.details]
        elif (before is None) != (after is None):
            details.append(Detail(part, before and type_text(before), after and type_text(after)))
    return details


def _report_moved(graph: GraphComparison) -> None:
    """Report constants that are a node in one model and an initializer (or an unpaired node) in the other."""
    lone, initializers = graph.lone_constants, [scope.initializers for scope in graph.scopes]
    for name, position in lone[BASE].items():
        target_name = graph.values.get(name, "")
        if target_name in lone[TARGET]:
            _move(graph, name, target_name, (f"/node/{position}", f"/node/{lone[TARGET][target_name]}"))
        elif target_name in initializers[TARGET]:
            _move(graph, name, target_name, (f"/node/{position}", f"/initializer/{initializers[TARGET][target_name]}"))
    for target_name, position in lone[TARGET].items():
        name = graph.inverse.get(target_name, "")
        if name in initializers[BASE]:
            _move(graph, name, target_name, (f"/initializer/{initializers[BASE][name]}", f"/node/{position}"))


def _move(graph: GraphComparison, name: str, target_name: str, paths: tuple[str, str]) -> None:
    one, other = graph.constant(BASE, name), graph.constant(TARGET, target_name)
    if one is None or other is None:
        return
    texts = ["Constant node" if path.startswith("/node/") else "initializer" for path in paths]
    moved = Detail("stored as", *texts)
    change = None
    if isinstance(one.tensor, Tensor) and isinstance(other.tensor, Tensor):
        change = graph.context.weights.compare(one.tensor, other.tensor)
    if change is None or change.kind == "storage-changed":
        change = TensorChange("storage-changed", " -> ".join(texts), (moved,))
    else:
        change = TensorChange(change.kind, change.pattern, (moved, *change.details))
    graph.moved_constants.add(name)
    graph.context.explained_names[graph, name] = _change(graph, change, name, paths)


def name_changed_constants(context: DiffContext, graph: GraphComparison) -> None:
    """Name events about changed constants after their consumers: ``Conv input 1``."""
    wanted: dict[str, list[Change]] = {}
    for defining_graph, name, change in context.changed_constants:
        if defining_graph is graph and not change.pattern and change.into is None:
            wanted.setdefault(name, []).append(change)
    uses: dict[str, tuple[str, int]] = {}
    is_elsewhere = wanted.keys().isdisjoint
    for each in context.graphs if wanted else ():
        for node in each.nodes(BASE) if graph in each.chain() else ():
            for place, name in enumerate(() if is_elsewhere(node.input) else node.input):
                if name in wanted:
                    use = (operator_name(node.domain, node.op_type), place)
                    uses[name] = min(uses.get(name, use), use)
    for name, changes in wanted.items():
        operator, place = uses.get(name, ("", 0))
        for change in changes:
            change.pattern = f"{operator} input {place}" if operator else "unused constant"


def compare_unpaired_constants(graph: GraphComparison) -> None:
    """Report constants that only one graph has and that no rewrite explains: they are unused."""
    for side, path, text in _unpaired_constants(graph):
        if graph.context.ledger.claimed(graph.scopes[side].address + path, side) is None:
            noun = "Constant" if path.startswith("/node/") else "initializer"
            detail = one_sided_detail(side, noun, text)
            graph.report("inserted" if side else "dead-code-removed", noun, one_sided(side, path), [detail])


def _unpaired_constants(graph: GraphComparison) -> Iterator[tuple[int, str, str]]:
    """Yield side, path and text of unpaired constants: the name, for initializers with the value."""
    moved = graph.moved_constants, {graph.values[name] for name in graph.moved_constants}
    for field in ("initializer", "sparse_initializer"):
        lists = [getattr(scope.graph, field, ()) for scope in graph.scopes]
        known = graph.context.pairs.get(f"{graph.address}/{field}", ())
        for side, position, constant in unpaired(lists[0], lists[1], known):
            if isinstance(constant, SparseTensor):
                yield side, f"/{field}/{position}", (constant.values.name if constant.values else None) or ""
            elif constant.name not in moved[side]:
                yield side, f"/{field}/{position}", f"{constant.name or ''}: {tensor_value_text(constant)}"
    for side, nodes in enumerate(graph.lone_constants):
        yield from [(side, f"/node/{place}", name) for name, place in nodes.items() if name not in moved[side]]
