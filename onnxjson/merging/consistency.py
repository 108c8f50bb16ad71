"""Checks of a merged model for conflicts that no single slot shows: changes that are possible alone, but not together.

`Consistency` finds undefined and duplicate names, cycles, disputed types, calls of removed functions and the like, and
names the units that cause each of them; operators are not checked. `keeps_interface` checks inputs and outputs. Nodes
are paired by structure, and the same structure may occur at another output; but the value that other programs read
under a name must be one that a side computes for it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson.merging.additions import Sizes, dimension_problems, layer_problems, version_problems
from onnxjson.merging.records import Keys, Origins, TreeMerge
from onnxjson.merging.sides import Defects, Side, interface_names
from onnxjson.merging.slots import added_key, three_way
from onnxjson.model import document as d
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import OperatorKey, function_key, operator_key, plain_domain
from onnxjson.model.walking import walk
from onnxjson.patching.changes import Fields
from onnxjson.patching.listing import change_at

_MAIN: Final = "/graph"
_COMPUTATION: Final = frozenset({"op_type", "domain", "overload", "attribute", "input"})
"""The fields of a node that decide what it computes."""


class Consistency:
    """The checks of one merged model that still has the names of the base."""

    def __init__(self, base: d.Model, sides: tuple[Side, Side], merged: d.Model, tree: TreeMerge, sizes: Sizes) -> None:
        self.index = Index(merged)
        self.origins = Origins(sides[0].alignment.base, tree)
        self._models = (base, sides[0].model, sides[1].model)
        self._sides = sides
        self._merged = merged
        self._tree = tree
        self._sizes = sizes

    def problems(self) -> Iterator[Keys]:
        """Yield the units of each problem that neither side has; an empty list if the cause is unknown."""
        yield from self._defects()
        yield from self._no_outputs()
        yield from self._calls()
        yield from self._imports()
        yield from layer_problems(self._sides, self.index, self.origins)
        yield from dimension_problems(self._models[0], self._merged, self._sizes, self.origins)
        yield from self._configurations()
        yield from version_problems(self._sides, self.index, self.origins)

    def _defects(self) -> Iterator[Keys]:
        defects = Defects(self.index)
        for scope, name in defects.undefined.values():
            if not any(name in side.defects.undefined for side in self._sides):
                yield [*self._uses(scope, name), *self._lost_definers(scope, name)]
        for scope, name in defects.duplicates.values():
            if not any(name in side.defects.duplicates for side in self._sides):
                address, key = self.origins.of_graph(scope)
                yield self._added_definers(address, name) if address is not None else [key] if key is not None else []
        for scope, name in defects.disputed.values():
            if not any(name in side.defects.disputed for side in self._sides):
                yield self._declarations(scope, name)
        if defects.cycles and not any(side.defects.cycles for side in self._sides):
            for scope, positions in defects.cycles:
                yield [key for each in positions for key in self.origins.changes_of(NodeRef(scope, each))]

    def _uses(self, scope: Scope, name: str) -> Keys:
        keys: Keys = []
        address, key = self.origins.of_graph(scope)
        for position, slot in scope.uses(name):
            if position is not None:
                keys += self.origins.changes_of(NodeRef(scope, position), name)
            elif address is None:
                keys += [] if key is None else [key]
            elif isinstance(scope.graph, d.Function):
                keys.append(f"{address}/output/{slot}")
            else:
                keys += self.origins.output_change(address, slot, name)
        return keys

    def _no_outputs(self) -> Iterator[Keys]:
        counts = [0 if model.graph is None else len(model.graph.output) for model in (*self._models, self._merged)]
        if all(counts[:3]) and not counts[3]:
            yield [f"/graph/output/{place}" for place in range(counts[0])]

    def _lost_definers(self, scope: Scope, name: str) -> Keys:
        """Return the units that defined a value in the base, or would define it if they were kept."""
        address, _ = self.origins.of_graph(scope)
        while address is None and scope.outer is not None:
            scope = scope.outer
            address, _ = self.origins.of_graph(scope)
        base_scope: Scope | None = self.origins.graphs.get(address or "")
        keys: Keys = []
        while base_scope is not None:
            at = base_scope.address
            if name in base_scope.producers:
                node, slot = base_scope.producers[name]
                items = self._tree.origins.get(f"{at}/node")
                is_there = items is None or node in items
                keys.append(f"{at}/node/{node}/output/{slot}" if is_there else f"{at}/node/{node}")
            for field, places in (("initializer", base_scope.initializers), ("input", base_scope.inputs)):
                if name in places:
                    keys.append(f"{at}/{field}/{places[name]}")
            keys += self._added_definers(at, name)
            base_scope = base_scope.outer
        return keys

    def _added_definers(self, address: str, name: str) -> Keys:
        """Return the units of members that a side added to a graph and that define or declare a value."""
        return [
            added_key(f"{address}/{field}", side, number)
            for field in ("node", "initializer", "input")
            for side, records in enumerate(self._tree.added.get(f"{address}/{field}", ()))
            for number, record in enumerate(records)
            if name in getattr(record, "output", ())
            or (getattr(record, "name", None) == name and type(record) is not d.Node)
        ]

    def _declarations(self, scope: Scope, name: str) -> Keys:
        """Return the units that declare the type of a value and that a side changed."""
        address, key = self.origins.of_graph(scope)
        base = self.origins.graphs.get(address or "")
        if address is None or base is None:
            return [] if key is None else [key]
        keys: Keys = []
        for field in ("input", "output", "value_info", "initializer"):
            before = getattr(base.graph, field, ())
            for position, member in enumerate(getattr(scope.graph, field, ())):
                if getattr(member, "name", None) != name:
                    continue
                origin = self.origins.of_member(f"{address}/{field}", position)
                if not isinstance(origin, int):
                    keys.append(added_key(f"{address}/{field}", *origin))
                elif before[origin] != member:
                    keys.append(f"{address}/{field}/{origin}" + ("" if field == "initializer" else "/type"))
        return keys

    def _calls(self) -> Iterator[Keys]:
        keys = [{function_key(each): place for place, each in enumerate(model.functions)} for model in self._models]
        here = {function_key(each) for each in self._merged.functions}
        for name in sorted({key for model in keys for key in model} - here):
            users = [ref for ref in self.index.node_refs if operator_key(ref.node) == name]
            if users:
                found = [f"/functions/{keys[0][name]}"] if name in keys[0] else []
                yield [*found, *self._operators(users)]

    def _operators(self, refs: list[NodeRef]) -> Keys:
        keys: Keys = []
        for ref in refs:
            address, key = self.origins.of_node(ref)
            if key is not None:
                keys.append(key)
            elif address is not None and operator_key(self.origins.base_node(address)) != operator_key(ref.node):
                keys.append(address)
        return keys

    def _imports(self) -> Iterator[Keys]:
        base, *sides = [{plain_domain(opset.domain) for opset in model.opset_import} for model in self._models]
        lost = (base | sides[0] | sides[1]) - {plain_domain(opset.domain) for opset in self._merged.opset_import}
        for domain in sorted(lost):
            users = [
                ref
                for ref in self.index.node_refs
                if plain_domain(ref.node.domain) == domain and ref.scope.root.kind != "function"
            ]
            if users:
                imports = enumerate(self._models[0].opset_import)
                positions = [place for place, opset in imports if plain_domain(opset.domain) == domain]
                yield [*[f"/opset_import/{place}" for place in positions], *self._operators(users)]

    def _configurations(self) -> Iterator[Keys]:
        """Yield the units of nodes whose device configuration the other side removed or renamed."""
        base, *sides = [{entry.name: at for at, entry in enumerate(model.configuration)} for model in self._models]
        lost = (base.keys() | sides[0].keys() | sides[1].keys()) - {entry.name for entry in self._merged.configuration}
        if not lost:
            return
        for side, names in zip(self._sides, sides, strict=True):
            lost -= {entry.configuration_id for entry in walk(side.model, d.NodeDeviceConfiguration)} - names.keys()
        for ref in self.index.node_refs:
            for position, entry in enumerate(ref.node.device_configurations):
                if entry.configuration_id in lost:
                    at = f"/configuration/{base.get(entry.configuration_id)}"
                    yield [at, *self._configuration_change(ref, position)]

    def _configuration_change(self, ref: NodeRef, position: int) -> Keys:
        """Return the unit that added a device configuration of a node, or changed its identifier."""
        address, key = self.origins.of_node(ref)
        if address is None:
            return [] if key is None else [key]
        at = f"{address}/device_configurations"
        origin = self.origins.of_member(at, position)
        return [f"{at}/{origin}/configuration_id"] if isinstance(origin, int) else [added_key(at, *origin)]


class _Producer(NamedTuple):
    position: int
    """Position in the base; -1 if it is not there."""
    operator: OperatorKey


_NONE: Final = _Producer(-1, ("", "", ""))
"""The producer of an output that is an input or a constant as well."""


class _Producers(NamedTuple):
    """The producers of one output in each of the four models."""

    name: str
    """Name of the output in the base."""
    base: _Producer
    ours: _Producer
    theirs: _Producer
    merged: _Producer

    def is_swapped(self, base: d.Graph, sides: tuple[Side, Side]) -> bool:
        """Whether the output has a producer that neither side chose for it."""
        if self._has_another_output(base):
            # One side gave the output the node of another output, and the other side changed what that node computes.
            for producer, other in ((self.ours, sides[1]), (self.theirs, sides[0])):
                if producer.position == self.merged.position and _changes_computation(other, self.merged.position):
                    return True
        four = self.base, self.ours, self.theirs, self.merged
        is_chosen = _is_chosen(*[each.position for each in four]) or _is_chosen(*[each.operator for each in four])
        return not is_chosen

    def _has_another_output(self, base: d.Graph) -> bool:
        """Whether the merged producer is a different node, one that computes another output in the base."""
        position = self.merged.position
        if position < 0 or position == self.base.position:
            return False
        outputs = {info.name or "" for info in base.output} - {self.name}
        return not outputs.isdisjoint(base.node[position].output)


def keeps_interface(base: d.Model, sides: tuple[Side, Side], checked: Consistency, final: d.Model) -> bool:
    """Whether a merge without conflicts has the expected inputs and outputs."""
    graphs = [graph for graph in (base.graph, *[side.original.graph for side in sides], final.graph) if graph]
    if len(graphs) < 4:
        return True
    for field in ("input", "output"):
        lists = [[info.name or "" for info in getattr(graph, field)] for graph in graphs]
        if any(len(set(names)) < len(names) for names in lists):
            continue
        known = [_kept_names(lists[0], names, side) for names, side in zip(lists[1:3], sides, strict=True)]
        expected = {three_way(name, known[0][name], known[1][name]) for name in known[0].keys() & known[1].keys()}
        for names, there in zip(lists[1:3], known, strict=True):
            expected |= set(names) - set(there.values())
        if expected != set(lists[3]):
            return False
    return not any(each.is_swapped(graphs[0], sides) for each in _producers(graphs[0], sides, checked, graphs[3]))


def _kept_names(base: list[str], names: list[str], side: Side) -> dict[str, str]:
    """Map the inputs or outputs of the base that a side keeps to their names on that side."""
    values = side.values.get(_MAIN, {})
    present = frozenset(names)
    mapping = {name: name for name in base if name in present}
    for name in base:
        other = values.get(name, name)
        if name not in mapping and other in present and other not in mapping:
            mapping[name] = other
    return mapping


def _producers(base: d.Graph, sides: tuple[Side, Side], checked: Consistency, final: d.Graph) -> Iterator[_Producers]:
    """Yield the producers of each output that all four models have."""
    matches = [match for side in sides for match in side.matches if match.base.address == _MAIN]
    merged = next((scope for scope in checked.index.scopes if scope.address == _MAIN), None)
    if merged is None or len(matches) < 2:
        return
    names = {info.name or "": place for place, info in enumerate(final.output)}
    side_outputs = [interface_names(side.original, "output") for side in sides]
    for name in [info.name or "" for info in base.output]:
        side_names = [side.values.get(_MAIN, {}).get(name, name) for side in sides]
        present = [name if name in outputs else other for outputs, other in zip(side_outputs, side_names, strict=True)]
        place = names.get(three_way(name, present[0], present[1]))
        if place is not None:
            yield _Producers(
                name,
                _producer(matches[0].base, name, None),
                _producer(matches[0].target, present[0], matches[0].base_of),
                _producer(matches[1].target, present[1], matches[1].base_of),
                _merged_producer(merged, merged.output_names[place] or "", checked),
            )


def _producer(scope: Scope, name: str, base_of: list[int] | None) -> _Producer:
    place = scope.producers.get(name)
    if place is None:
        return _NONE
    return _Producer(place[0] if base_of is None else base_of[place[0]], operator_key(scope.graph.node[place[0]]))


def _merged_producer(scope: Scope, name: str, checked: Consistency) -> _Producer:
    place = scope.producers.get(name)
    if place is None:
        return _NONE
    address, _ = checked.origins.of_node(NodeRef(scope, place[0]))
    position = -1 if address is None else int(address.rpartition("/")[2])
    return _Producer(position, operator_key(scope.graph.node[place[0]]))


def _is_chosen(base: object, ours: object, theirs: object, merged: object) -> bool:
    """Whether the merged value is the choice of both sides, or of one of them if they differ."""
    if ours == base:
        return merged == theirs
    return merged in (ours, theirs) if theirs != base else merged == ours


def _changes_computation(side: Side, position: int) -> bool:
    node = change_at(side.changes, f"/graph/node/{position}")
    return type(node) is Fields and not _COMPUTATION.isdisjoint(node.changes)
