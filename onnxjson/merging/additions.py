"""Additions of one side that must be adapted to a change that the other side made everywhere.

Three changes reach beyond the slots that they touch. A side inserts a layer after a value by moving all its consumers:
a consumer that the other side adds would bypass the layer. A side replaces the name of a dimension, such as ``batch``,
by a size: the name may be in types that the other side adds. A side imports another version of an operator set and
adapts the nodes to it: nodes of the other side were written for the earlier version (ONNX IR, "Operator sets").
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.merging.lists import label
from onnxjson.merging.pairing import GraphMatch
from onnxjson.merging.records import Keys, Origins
from onnxjson.merging.sides import Side
from onnxjson.merging.slots import Clash, added_key
from onnxjson.model import document as d
from onnxjson.model.dimensions import IDENTIFIER, names_within, with_dimension_names
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain, since_version
from onnxjson.patching.changes import Change, Fields, Members
from onnxjson.patching.listing import change_at

_LISTS: Final = ("input", "output", "value_info")
"""The lists of a graph that declare types of values."""

Sizes = Mapping[str, int | str | None]
"""Names of dimensions that one side removed -> their replacement; None if that is not the same everywhere."""

_OPERATOR: Final = ("op_type", "domain", "overload")

_Versions = Mapping[str, int | None]
"""Versions of operator sets by domain."""


class _Layer(NamedTuple):
    """A new node of one side, inserted between a value and all its consumers."""

    value: str
    node: d.Node
    moved: tuple[str, ...]
    """The slots that consume the node's output instead of the value, below the address of the graph in the base."""


class _Consumers(NamedTuple):
    """The slots of the base that consumed a value and no longer do."""

    by_value: dict[str, list[str]]
    """Slots of nodes, by the value that they consume now."""
    outputs: list[str]

    def moved_to(self, node: d.Node, outputs: frozenset[str | None]) -> tuple[str, ...]:
        """Return the slots that now consume the node; `outputs` are those of the graph, if their names matter."""
        found = [slot for name in dict.fromkeys(node.output) for slot in self.by_value.get(name, ())]
        return tuple(found if outputs.isdisjoint(node.output) else found + self.outputs)


class _AddedNodes:
    """Nodes that a side adds to a graph, to find them in a merged one: a node that both add is in it only once."""

    def __init__(self, nodes: Sequence[d.Record]) -> None:
        self._nodes = nodes
        self._places: dict[Any, list[int]] = {}
        for place, node in enumerate(nodes):
            self._places.setdefault(label(node), []).append(place)

    def place(self, node: d.Node) -> int | None:
        """Return the position of an equal node, or None."""
        return next((place for place in self._places.get(label(node), ()) if self._nodes[place] == node), None)


def layer_problems(sides: tuple[Side, Side], merged: Index, origins: Origins) -> Iterator[Keys]:
    """Yield the units of consumers that one side adds to a value after which the other side inserted a layer."""
    layers: dict[tuple[str, str, int], list[_Layer]] = {}
    inserted: dict[tuple[str, str], list[d.Record]] = {}
    for number, side in enumerate(sides):
        for match, scope in side.grown_graphs():
            at = match.base.address
            for layer in _inserted(match, scope):
                layers.setdefault((at, layer.value, number), []).append(layer)
                inserted.setdefault((at, layer.value), []).append(layer.node)
    graphs = {origins.of_graph(scope)[0]: scope for scope in merged.scopes} if layers else {}
    additions: dict[tuple[str, int], _AddedNodes] = {}
    for (at, value, number), those in layers.items():
        if at not in graphs:
            continue
        if (at, number) not in additions:
            additions[at, number] = _AddedNodes(origins.added(f"{at}/node", number))
        added_nodes = additions[at, number]
        # Two layers after one value are a conflict about its former consumers.
        if keys := _new_consumers(graphs[at], value, (added_nodes, _AddedNodes(inserted[at, value])), origins):
            places = [added_nodes.place(layer.node) for layer in those]
            keys += [added_key(f"{at}/node", number, place) for place in places if place is not None]
            yield [*keys, *[f"{at}/{slot}" for layer in those for slot in layer.moved]]


def _inserted(match: GraphMatch, scope: Scope) -> Iterator[_Layer]:
    """Yield the layers that a side inserts into a graph; `scope` is the counterpart with the names of the base."""
    outputs = frozenset(scope.output_names if match.base.kind == "main" else ())
    known: dict[str, _Consumers | None] = {}
    for there, node in enumerate(scope.graph.node):
        if match.base_of[there] >= 0:
            continue
        for value in dict.fromkeys(node.input):
            if value not in known:
                known[value] = _moved_consumers(match, scope, value) if match.base.defines(value) else None
            if (consumers := known[value]) and (moved := consumers.moved_to(node, outputs)):
                yield _Layer(value, node, moved)


def _moved_consumers(match: GraphMatch, scope: Scope, value: str) -> _Consumers | None:
    """Return the consumers of a value in the base; None if one of them still consumes the value itself."""
    for position, _ in scope.uses(value):
        if position is None or match.base_of[position] >= 0:
            return None
    consumers = _Consumers({}, [])
    for consumer, slot in match.base.uses(value):
        if consumer is None:
            consumers.outputs.append(f"output/{slot}/name")
            continue
        counterpart = match.target_of[consumer]
        inputs = scope.graph.node[counterpart].input if counterpart >= 0 else ()
        if slot < len(inputs) and inputs[slot]:
            consumers.by_value.setdefault(inputs[slot], []).append(f"node/{consumer}/input/{slot}")
    return consumers


def _new_consumers(scope: Scope, name: str, without: tuple[_AddedNodes, ...], origins: Origins) -> Keys:
    """Return the units that consume a value and did not in the base, except those of some nodes."""
    keys: Keys = []
    for position, slot in scope.uses(name):
        if position is not None:
            if all(each.place(scope.graph.node[position]) is None for each in without):
                keys += origins.changes_of(NodeRef(scope, position), name)
        elif (address := origins.of_graph(scope)[0]) and isinstance(scope.graph, d.Graph):
            keys += origins.output_change(address, slot, name)
    return keys


def replaced_names(base: d.Model, sides: tuple[Side, Side]) -> Sizes:
    """Return the replacements of dimension names that exactly one side replaced everywhere in the main graph."""
    replacements: dict[str, int | str | None] = {}
    for side, other in (sides, sides[::-1]):
        candidates = set(_changed_names(base, side.changes))
        if not candidates or side.model.graph is None or other.model.graph is None or base.graph is None:
            continue
        removed = candidates - names_within(side.model.graph)
        if removed := removed & names_within(other.model.graph):
            replacements.update(_replacements(base.graph, side.model.graph, removed))
    return replacements


def _changed_names(base: d.Model, changes: Fields | None) -> Iterator[str]:
    for field in _LISTS:
        members = change_at(changes, f"/graph/{field}")
        if type(members) is not Members:
            continue
        records = getattr(base.graph, field)
        for position, below in members.changes.items():
            if "type" in below.changes:
                yield from [each for each in _shape(records[position]) if isinstance(each, str)]


def _shape(info: d.ValueInfo) -> list[int | str | None]:
    shape = info.type and info.type.tensor_type and info.type.tensor_type.shape
    return [each.dim_param or each.dim_value for each in shape.dim] if shape else []


def _replacements(base: d.Graph, graph: d.Graph, names: set[str]) -> dict[str, int | str | None]:
    by_name: dict[str, set[int | str | None]] = {}
    for field in _LISTS:
        infos = {each.name: each for each in getattr(graph, field)}
        for info in getattr(base, field):
            if info.name in infos:
                old, new = _shape(info), _shape(infos[info.name])
                for name, size in zip(old, new, strict=False) if len(old) == len(new) else ():
                    if name in names:
                        by_name.setdefault(str(name), set()).add(size)
    return {name: sizes.pop() if len(sizes) == 1 else None for name, sizes in by_name.items()}


def with_sizes(model: d.Model, sizes: Sizes) -> d.Model:
    """Return the model with the replacements of dimension names in its main graph."""
    if not _known(sizes) or model.graph is None:
        return model
    return msgspec.structs.replace(model, graph=_with_replacements(model.graph, sizes))


def replace_in_clashes(clashes: list[Clash], sizes: Sizes) -> None:
    """Apply the replacements of dimension names to the values of the sides in conflicts."""
    if _known(sizes):
        for clash in clashes:
            if not clash.owner.startswith("/functions"):
                clash.ours, clash.theirs = [_with_replacements(each, sizes) for each in (clash.ours, clash.theirs)]


def _known(sizes: Sizes) -> dict[str, int | str]:
    return {name: size for name, size in sizes.items() if size is not None}


def _with_replacements(value: Any, sizes: Sizes) -> Any:
    if isinstance(value, tuple):
        return tuple([_with_replacements(each, sizes) for each in value])
    if not isinstance(value, d.Record) or isinstance(value, d.Function):
        return value
    return with_dimension_names(value, _known(sizes))


def dimension_problems(base: d.Model, merged: d.Model, sizes: Sizes, origins: Origins) -> Iterator[Keys]:
    """Yield the units that use a dimension name which one side replaced in several ways."""
    for name in [name for name, size in sizes.items() if size is None]:
        keys: Keys = []
        for field in _LISTS:
            at = f"/graph/{field}"
            for position, info in enumerate(getattr(merged.graph, field, ())):
                if _uses_name(info, name):
                    origin = origins.of_member(at, position)
                    keys.append(f"{at}/{origin}/type" if isinstance(origin, int) else added_key(at, *origin))
            if keys:
                before = getattr(base.graph, field, ())
                keys += [f"{at}/{place}/type" for place, info in enumerate(before) if _uses_name(info, name)]
        if keys:
            yield keys


def _uses_name(info: Any, name: str) -> bool:
    return isinstance(info, d.ValueInfo) and any(
        isinstance(each, str) and name in (each, *IDENTIFIER.findall(each)) for each in _shape(info)
    )


def version_problems(sides: tuple[Side, Side], merged: Index, origins: Origins) -> Iterator[Keys]:
    """Yield the import of an operator set together with the nodes that a side wrote for another version of it."""
    base = sides[0].alignment.base.model
    before = _imports(base, {place: f"/functions/{place}" for place in range(len(base.functions))})
    ours, theirs = [
        _imports(side.model, {place: f"/functions/{position}" for position, place in side.alignment.functions})
        for side in sides
    ]
    if before == ours == theirs:
        return
    lists = _lists_of_scopes(merged, origins)
    functions = {
        int(scope.address.rpartition("/")[2]): at for scope, at in lists.items() if at and scope.kind == "function"
    }
    now = _imports(merged.model, {place: address.rpartition("/")[0] for place, address in functions.items()})
    for address in before:
        imported, versions = [each.get(address, {}) for each in (ours, theirs)], now.get(address, {})
        differing = {
            domain
            for domain, version in versions.items()
            if any(each.get(domain, version) != version for each in imported)
        }
        by_domain: dict[str, Keys] = {}
        for ref in merged.node_refs if differing else ():
            domain = plain_domain(ref.node.domain)
            if lists[ref.scope] != address or domain not in differing:
                continue
            at, key = origins.of_node(ref)
            for number, side in enumerate(sides):
                was, is_now = imported[number].get(domain), versions[domain]
                is_its = _added_by(key) == number if at is None else _changes_meaning(side.changes, at)
                if is_its and was is not None and was != is_now and _is_redefined(ref.node, was, is_now):
                    by_domain.setdefault(domain, []).append(at or key or address)
        for domain, nodes in by_domain.items():
            yield [*_import_keys(base, address, domain), *nodes]


def _imports(model: d.Model, functions: Mapping[int, str]) -> dict[str, _Versions]:
    """Return the versions of operator sets by the address, in the base, of the list that imports them."""
    lists = {"": model.opset_import} | {at: model.functions[place].opset_import for place, at in functions.items()}
    return {
        f"{at}/opset_import": {plain_domain(each.domain): each.version for each in records}
        for at, records in lists.items()
    }


def _lists_of_scopes(merged: Index, origins: Origins) -> dict[Scope, str | None]:
    """The address, in the base, of the list that imports the versions for a graph; None in functions that are new."""
    lists: dict[Scope, str | None] = {}
    for scope in merged.scopes:
        if scope.outer is not None:
            lists[scope] = lists[scope.outer]
        elif scope.kind == "function":
            address = origins.of_graph(scope)[0]
            lists[scope] = None if address is None else f"{address}/opset_import"
        else:
            lists[scope] = "/opset_import"
    return lists


def _import_keys(base: d.Model, address: str, domain: str) -> Keys:
    function = address.split("/")[2] if address.startswith("/functions/") else ""
    records = base.functions[int(function)].opset_import if function else base.opset_import
    return [f"{address}/{place}" for place, each in enumerate(records) if plain_domain(each.domain) == domain]


def _added_by(key: str | None) -> int | None:
    return None if key is None else int(key.rpartition("+")[2].partition(".")[0])


def _changes_meaning(change: Fields | None, address: str) -> bool:
    below = change_at(change, address)
    if type(below) is not Fields:
        return below is not None  # the graph around the node was replaced as a whole
    changes, inputs = below.changes, below.changes.get("input")
    new, old = getattr(inputs, "new", None), getattr(inputs, "old", None)
    has_other_count = new is not None and old is not None and len(new) != len(old)
    return (
        has_other_count or any(field in changes for field in _OPERATOR) or _has_other_values(changes.get("attribute"))
    )


def _has_other_values(change: Change | None) -> bool:
    """Whether attributes were added, removed or changed; changes inside their graphs belong to the nodes there."""
    if type(change) is not Members:
        return change is not None
    if change.removed or any(isinstance(member, d.Attribute) for member in change.sequence or ()):
        return True
    return any(
        type(inner) not in (Fields, Members) for fields in change.changes.values() for inner in fields.changes.values()
    )


def _is_redefined(node: d.Node, then: int, now: int | None) -> bool:
    return since_version(node.domain, node.op_type, then) != since_version(node.domain, node.op_type, now)
