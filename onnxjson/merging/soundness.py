"""What no slot shows: changes that can each be had and do not go together, and the units that they consist of.

Operators are not looked at; what a model with names, an order, types that are declared and functions must have is.
"""

from collections.abc import Iterator

from onnxjson import document as d
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.merging.broken import Broken
from onnxjson.merging.dimensions import LISTS, Sizes, uses_name
from onnxjson.merging.layers import Additions, Layer, inserted
from onnxjson.merging.records import TreeMerge
from onnxjson.merging.sides import Side
from onnxjson.merging.slots import added_key
from onnxjson.merging.versions import version_problems
from onnxjson.operators import function_key, operator_key, plain_domain
from onnxjson.walking import walk

Keys = list[str]
"""The keys of units that do not go together; an empty list where nobody can tell."""


class Soundness:
    """The look at one merged model that still has names of the base."""

    def __init__(self, base: d.Model, sides: tuple[Side, Side], merged: d.Model, tree: TreeMerge, sizes: Sizes) -> None:
        self._base = {scope.address: scope for scope in Index(base).scopes}
        self._models = (base, sides[0].model, sides[1].model)
        self._sides = sides
        self._merged = merged
        self._tree = tree
        self._sizes = sizes
        self._index = Index(merged)
        self._scopes = {scope.address: scope for scope in self._index.scopes}

    def problems(self) -> Iterator[Keys]:
        """The units of each problem that neither side has."""
        broken = Broken(self._index)
        for scope, name in broken.undefined.values():
            if not any(name in side.broken.undefined for side in self._sides):
                yield [*self._uses(scope, name), *self._lost_definers(scope, name)]
        for scope, name in broken.duplicates.values():
            if not any(name in side.broken.duplicates for side in self._sides):
                yield self._definers(scope, name)
        for scope, name in broken.disputed.values():
            if not any(name in side.broken.disputed for side in self._sides):
                yield self._declarations(scope, name)
        if broken.has_cycle and not any(side.broken.has_cycle for side in self._sides):
            for scope, positions in broken.rings:
                yield [key for position in positions for key in self._changes_of(NodeRef(scope, position))]
        yield from self._no_outputs()
        yield from self._calls()
        yield from self._imports()
        yield from self._passed_layers()
        yield from self._dimensions()
        yield from self._configurations()
        yield from version_problems(self._sides, self._index, self)

    @property
    def main(self) -> Scope | None:
        """The main graph of the merged model."""
        return self._scopes.get("/graph")

    def home(self, scope: Scope) -> tuple[str | None, str | None]:
        """The address of a merged graph in the base; or the key of the member, added by a side, that has it."""
        if scope.owner is None:
            list_address, _, position = scope.address.rpartition("/")
            if not position.isdigit():
                return (scope.address if scope.address in self._base else None), None
            origin = self._origin(list_address, int(position))
            if isinstance(origin, int):
                return f"{list_address}/{origin}", None
            return None, added_key(list_address, *origin)
        address, key = self.node_home(scope.owner)
        if address is None:
            return None, key
        below = scope.address[len(scope.owner.address) :]
        if address + below in self._base:
            return address + below, None
        name = below.split("/")[2]
        for side, records in enumerate(self._tree.added.get(f"{address}/attribute", ())):
            for number, record in enumerate(records):
                if isinstance(record, d.Attribute) and record.name == name:
                    return None, added_key(f"{address}/attribute", side, number)
        return None, None

    def node_home(self, ref: NodeRef) -> tuple[str | None, str | None]:
        """The address of a merged node in the base; or the key of what added it."""
        address, key = self.home(ref.scope)
        if address is None:
            return None, key
        origin = self._origin(f"{address}/node", ref.position)
        if isinstance(origin, int):
            # Where one side put another graph in the place of the base's, its nodes come from nowhere there.
            is_known = origin < len(self._base[address].graph.node)
            return (f"{address}/node/{origin}" if is_known else None), None
        return None, added_key(f"{address}/node", *origin)

    def _origin(self, list_address: str, position: int) -> int | tuple[int, int]:
        items = self._tree.origins.get(list_address)
        return position if items is None else items[position]

    def _base_node(self, address: str) -> d.Node:
        graph, _, position = address.rpartition("/node/")
        return self._base[graph].graph.node[int(position)]

    def _changes_of(self, ref: NodeRef, name: str | None = None) -> Keys:
        """The units by which a node takes a value, or anything, that it did not take in the base."""
        address, key = self.node_home(ref)
        if address is None:
            return [] if key is None else [key]
        before = self._base_node(address).input
        return [
            f"{address}/input/{slot}"
            for slot, each in enumerate(ref.node.input)
            if (name is None or each == name) and (slot >= len(before) or before[slot] != each)
        ]

    def _uses(self, scope: Scope, name: str) -> Keys:
        keys: Keys = []
        for position, slot in scope.uses(name):
            if position is not None:
                keys += self._changes_of(NodeRef(scope, position), name)
                continue
            address, key = self.home(scope)
            if address is None:
                keys += [] if key is None else [key]
            elif isinstance(scope.graph, d.Function):
                keys.append(f"{address}/output/{slot}")
            else:
                keys += self._output_keys(address, slot, name)
        return keys

    def _output_keys(self, address: str, slot: int, name: str) -> Keys:
        """The unit of an output that was added, or takes another value; none for one that was there."""
        origin = self._origin(f"{address}/output", slot)
        if not isinstance(origin, int):
            return [added_key(f"{address}/output", *origin)]
        before = self._base[address].graph.output[origin]
        is_there = isinstance(before, d.ValueInfo) and before.name == name
        return [] if is_there else [f"{address}/output/{origin}/name"]

    def _no_outputs(self) -> Iterator[Keys]:
        """All outputs of the main graph, where each side takes away those that the other one keeps."""
        counts = [0 if model.graph is None else len(model.graph.output) for model in (*self._models, self._merged)]
        if all(counts[:3]) and not counts[3]:
            yield [f"/graph/output/{place}" for place in range(counts[0])]

    def _lost_definers(self, scope: Scope, name: str) -> Keys:
        """What defined a value in the base, or would define it if it had been taken."""
        address, _ = self.home(scope)
        while address is None and scope.outer is not None:
            scope = scope.outer
            address, _ = self.home(scope)
        found: Scope | None = self._base.get(address or "")
        keys: Keys = []
        while found is not None:
            at = found.address
            if name in found.makers:
                node, slot = found.makers[name]
                items = self._tree.origins.get(f"{at}/node")
                is_there = items is None or node in items
                keys.append(f"{at}/node/{node}/output/{slot}" if is_there else f"{at}/node/{node}")
            for field, places in (("initializer", found.initializers), ("input", found.inputs)):
                if name in places:
                    keys.append(f"{at}/{field}/{places[name]}")
            for field in ("node", "initializer", "input"):
                keys += self._added(f"{at}/{field}", name)
            found = found.outer
        return keys

    def _added(self, list_address: str, name: str) -> Keys:
        """The units of members that sides add to a list and that define, or declare, a value."""
        return [
            added_key(list_address, side, number)
            for side, records in enumerate(self._tree.added.get(list_address, ()))
            for number, record in enumerate(records)
            if name in getattr(record, "output", ())
            or (getattr(record, "name", None) == name and type(record) is not d.Node)
        ]

    def _definers(self, scope: Scope, name: str) -> Keys:
        address, key = self.home(scope)
        if address is None:
            return [] if key is None else [key]
        return [each for field in ("node", "initializer", "input") for each in self._added(f"{address}/{field}", name)]

    def _declarations(self, scope: Scope, name: str) -> Keys:
        """The units that say something of the type of a value and that a side changed."""
        address, key = self.home(scope)
        base = self._base.get(address or "")
        if address is None or base is None:
            return [] if key is None else [key]
        keys: Keys = []
        for field in ("input", "output", "value_info", "initializer"):
            was = getattr(base.graph, field, ())
            for position, each in enumerate(getattr(scope.graph, field, ())):
                if getattr(each, "name", None) != name:
                    continue
                origin = self._origin(f"{address}/{field}", position)
                if not isinstance(origin, int):
                    keys.append(added_key(f"{address}/{field}", *origin))
                elif was[origin] != each:
                    keys.append(f"{address}/{field}/{origin}" + ("" if field == "initializer" else "/type"))
        return keys

    def _calls(self) -> Iterator[Keys]:
        """Functions that are called and gone."""
        keys = [{function_key(each): place for place, each in enumerate(model.functions)} for model in self._models]
        here = {function_key(each) for each in self._merged.functions}
        gone = {key for model in keys for key in model} - here
        for name in sorted(gone) if gone else ():
            users = [ref for ref in self._index.node_refs if operator_key(ref.node) == name]
            if users:
                found = [f"/functions/{keys[0][name]}"] if name in keys[0] else []
                yield [*found, *self._operators(users)]

    def _operators(self, refs: list[NodeRef]) -> Keys:
        """The units by which nodes came, or got their operator."""
        found: Keys = []
        for ref in refs:
            address, key = self.node_home(ref)
            if key is not None:
                found.append(key)
            elif address is not None and operator_key(self._base_node(address)) != operator_key(ref.node):
                found.append(address)
        return found

    def _imports(self) -> Iterator[Keys]:
        """Domains that are used and that nobody imports any more."""
        base, *sides = [{plain_domain(each.domain) for each in model.opset_import} for model in self._models]
        lost = (base | sides[0] | sides[1]) - {plain_domain(each.domain) for each in self._merged.opset_import}
        for domain in sorted(lost):
            users = [
                ref
                for ref in self._index.node_refs
                if plain_domain(ref.node.domain) == domain and _top(ref.scope).kind != "function"
            ]
            if users:
                positions = [
                    place
                    for place, each in enumerate(self._models[0].opset_import)
                    if plain_domain(each.domain) == domain
                ]
                yield [*[f"/opset_import/{place}" for place in positions], *self._operators(users)]

    def _passed_layers(self) -> Iterator[Keys]:
        """Takers that one side adds to a value which the other put a layer behind."""
        layers: dict[tuple[str, str, int], list[Layer]] = {}
        behind: dict[tuple[str, str], list[d.Record]] = {}
        for number, side in enumerate(self._sides):
            for match, scope in side.grown_graphs():
                at = match.base.address
                for layer in inserted(match, scope):
                    layers.setdefault((at, layer.value, number), []).append(layer)
                    behind.setdefault((at, layer.value), []).append(layer.node)
        homes = {self.home(scope)[0]: scope for scope in self._index.scopes} if layers else {}
        additions: dict[tuple[str, int], Additions] = {}
        for (at, value, number), those in layers.items():
            if at not in homes:
                continue
            if (at, number) not in additions:
                additions[at, number] = Additions(self._tree.added.get(f"{at}/node", ([], []))[number])
            own = additions[at, number]
            # Two layers behind one value are a conflict of what stood behind it.
            if keys := self._takers(homes[at], value, (own, Additions(behind[at, value]))):
                places = [own.place(layer.node) for layer in those]
                keys += [added_key(f"{at}/node", number, place) for place in places if place is not None]
                yield [*keys, *[f"{at}/{slot}" for layer in those for slot in layer.moved]]

    def _takers(self, scope: Scope, name: str, but: tuple[Additions, ...]) -> Keys:
        """The units by which a value is taken now, and was not in the base, without those of some nodes."""
        found: Keys = []
        for position, slot in scope.uses(name):
            if position is None:
                found += self._uses_at_outputs(scope, slot, name)
            elif all(each.place(scope.graph.node[position]) is None for each in but):
                found += self._changes_of(NodeRef(scope, position), name)
        return found

    def _uses_at_outputs(self, scope: Scope, slot: int, name: str) -> Keys:
        address, _ = self.home(scope)
        return self._output_keys(address, slot, name) if address and isinstance(scope.graph, d.Graph) else []

    def _dimensions(self) -> Iterator[Keys]:
        """Names of dimensions that one side replaced by several things, and that the other side uses anew."""
        for name in [name for name, size in self._sizes.items() if size is None]:
            keys: Keys = []
            for field in LISTS:
                at = f"/graph/{field}"
                for position, info in enumerate(getattr(self._merged.graph, field, ())):
                    if uses_name(info, name):
                        origin = self._origin(at, position)
                        keys.append(f"{at}/{origin}/type" if isinstance(origin, int) else added_key(at, *origin))
                if keys:
                    was = getattr(self._models[0].graph, field, ())
                    keys += [f"{at}/{place}/type" for place, info in enumerate(was) if uses_name(info, name)]
            if keys:
                yield keys

    def _configurations(self) -> Iterator[Keys]:
        """Nodes that are put on devices of a configuration which the other side took away, or gave another name."""
        base, *sides = [{each.name: at for at, each in enumerate(model.configuration)} for model in self._models]
        lost = (base.keys() | sides[0].keys() | sides[1].keys()) - {each.name for each in self._merged.configuration}
        if not lost:
            return
        for side, names in zip(self._sides, sides, strict=True):
            lost -= {each.configuration_id for each in walk(side.model, d.NodeDeviceConfiguration)} - names.keys()
        for ref in self._index.node_refs:
            for position, each in enumerate(ref.node.device_configurations):
                if each.configuration_id in lost:
                    at = f"/configuration/{base.get(each.configuration_id)}"
                    yield [at, *self._member_keys(ref, "device_configurations", position, "configuration_id")]

    def _member_keys(self, ref: NodeRef, field: str, position: int, scalar: str) -> Keys:
        """The unit by which a member of a list of a node came, or got another value of a field."""
        address, key = self.node_home(ref)
        if address is None:
            return [] if key is None else [key]
        origin = self._origin(f"{address}/{field}", position)
        if isinstance(origin, int):
            return [f"{address}/{field}/{origin}/{scalar}"]
        return [added_key(f"{address}/{field}", *origin)]


def _top(scope: Scope) -> Scope:
    while scope.outer is not None:
        scope = scope.outer
    return scope
