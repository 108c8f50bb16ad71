"""Changes of whole lists of a graph: many changes of one kind, counted with examples; orders; names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import gt, ne
from typing import Final, TypeVar

from onnxjson.diffing.changes import EXAMPLES, ORDER, Change
from onnxjson.diffing.comparing import BASE, TARGET, DiffContext, GraphComparison
from onnxjson.diffing.details import field_details
from onnxjson.diffing.events import Detail, Kind
from onnxjson.model.document import Function, Tensor, ValueInfo
from onnxjson.patching.changes import Unit

T = TypeVar("T")

_NAMED_PLACES: Final = (
    ("node", "output"), ("node", "input"), ("value_info", "name"), ("initializer", "name"), ("input", "name"),
    ("output", "name"), ("input", ""), ("output", ""), ("quantization_annotation", "*"), ("sparse_initializer", "*"),
    ("node", "device_configurations"),
)  # fmt: skip
"""All places of names of values."""


class Bulk:
    """Collects changes at very many places of a graph, such as all node names, and explains units of the patch.

    A place is a list of a graph and a field of its members, ``("node", "name")``; instead of a field it has "added" or
    "removed" for members, or "" for the whole list. So nothing is stored for each member.
    """

    def __init__(self, context: DiffContext) -> None:
        self._context = context
        self._by_target = {graph.target_address: graph for graph in context.graphs}
        self._changes: dict[tuple[GraphComparison, Kind, str], Change] = {}
        self._places: dict[tuple[GraphComparison, str, str], Change] = {}

    def add(
        self,
        graph: GraphComparison,
        kind: Kind,
        pattern: str,
        place: tuple[str, str],
        details: list[Detail],
        count: int | None = None,
    ) -> None:
        """Add changes of one kind, with details of the first places at least; `count` is None for one place a detail.

        They explain a list and a field of its members (`place`), unless another change explains them.
        """
        change = self._changes.get((graph, kind, pattern))
        if change is None:
            change = Change(kind, pattern, (graph.address,), (graph.target_address,), order=(graph.number, -1), count=0)
            self._changes[graph, kind, pattern] = change
        change.details += tuple(details[: EXAMPLES - len(change.details)])
        change.count += len(details) if count is None else count
        self._places.setdefault((graph, *place), change)

    def add_documentation(
        self, graph: GraphComparison, field: str, noun: str, one: Tensor | ValueInfo, other: Tensor | ValueInfo
    ) -> None:
        """Add the changes in documentation and metadata of a pair of members of a list, `noun`."""
        for name in ("doc_string", "metadata_props"):
            old, new = getattr(one, name), getattr(other, name)
            if old != new:
                called = one.name or ""
                details = (Detail(called, old, new),) if name == "doc_string" else field_details(old, new, called)
                self.add(graph, "metadata-changed", f"{name} of {noun}", (field, name), list(details), 1)

    def cover(self, graph: GraphComparison, kind: Kind, patterns: Sequence[str], place: tuple[str, str]) -> None:
        """Let the first of `patterns` that has changes explain another place, unless another change explains it."""
        changed = [pattern for pattern in patterns if (graph, kind, pattern) in self._changes]
        if changed:
            self._places.setdefault((graph, *place), self._changes[graph, kind, changed[0]])

    def prefer(self, graph: GraphComparison, kind: Kind, pattern: str, place: tuple[str, str]) -> None:
        """Let a pattern explain a place, even if another change explains it."""
        self._places[graph, *place] = self._changes[graph, kind, pattern]

    def finish(self) -> None:
        """Add the collected changes to the ledger."""
        for change in self._changes.values():
            if (more := change.count - len(change.details)) > 0:
                change.details = (*change.details, Detail(f"and {more:,} more {change.pattern}"))
            self._context.ledger.add(change)
        self._context.ledger.fallback = self._explains

    def _explains(self, unit: Unit) -> Change | None:
        address, graphs = unit.target, self._by_target
        if unit.base is not None:
            address, graphs = unit.base, self._context.by_base
        end = len(address or "")
        while address is not None and (end := address.rfind("/", 0, end)) > 0:
            graph = graphs.get(address[:end])
            if graph is not None:
                return self._in_graph(graph, address[end + 1 :].split("/"), unit)
        return None

    def _in_graph(self, graph: GraphComparison, parts: list[str], unit: Unit) -> Change | None:
        field = parts[2] if len(parts) > 2 else "" if len(parts) == 1 else "removed" if unit.base else "added"
        for enclosing in graph.chain():
            # A subgraph uses the names of the outer graph for the values that it captures.
            for place in ((parts[0], field), (parts[0], "*")):
                if (change := self._places.get((enclosing, *place))) is not None:
                    return change
            if parts[0] != "node" or field != "input":
                return None
        return None


def count_order_breaks(positions: Sequence[int]) -> int:
    """Count the members that directly precede a member that was before them."""
    return sum(map(gt, positions, positions[1:]))


def pair_by_name(base: Sequence[str | None], target: Sequence[str | None], pairs: dict[int, int]) -> None:
    """Pair the remaining members of two lists by equal names, in their order; `base` has the names of the target."""
    taken = set(pairs.values())
    left: dict[str, list[int]] = {}
    for position, name in enumerate(target):
        if position not in taken:
            left.setdefault(name or "", []).append(position)
    for position, name in enumerate(base):
        if position not in pairs and left.get(name or ""):
            pairs[position] = left[name or ""].pop(0)


def unpaired(base: Sequence[T], target: Sequence[T], pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, T]]:
    """Yield the members of two lists that are in no pair: side, position and member; those of the base first."""
    known = list(pairs)
    for side, members in enumerate((base, target)):
        paired = {pair[side] for pair in known}
        yield from [(side, position, each) for position, each in enumerate(members) if position not in paired]


def finish_list(graph: GraphComparison, field: str, noun: str, pairs: Iterable[tuple[int, int]]) -> None:
    """Record the pairs of a list of the graphs, and report a change if they have another order."""
    context = graph.context
    context.pairs[f"{graph.address}/{field}"] = sorted_pairs = sorted(pairs)
    count = count_order_breaks([place for _, place in sorted_pairs])
    if count and getattr(graph.pair.base.graph, field) != getattr(graph.pair.target.graph, field):
        addresses = f"{graph.address}/{field}", f"{graph.target_address}/{field}"
        add_reordering(context, *addresses, noun, count, graph.number)


def add_reordering(context: DiffContext, address: str, target_address: str, noun: str, count: int, number: int) -> None:
    """Add a change of the order of a list."""
    detail = Detail(f"{noun} that precede one that was before them", None, f"{count:,}")
    context.ledger.report("reordered", noun, address, target_address, [detail], order=(number, -1), fields=[ORDER])


def compare_names(graph: GraphComparison, bulk: Bulk, outputs: Mapping[int, int]) -> None:
    """Report renamed nodes and values; a renaming that follows from a rewrite becomes part of that change."""
    nodes, target_nodes, target_of = graph.nodes(BASE), graph.nodes(TARGET), graph.pair.target_of
    replaced = set(graph.replaced)
    renamed_nodes = [position for position in graph.renamed if position not in replaced] if replaced else graph.renamed
    if renamed_nodes:
        details = [
            Detail("node", nodes[position].name, target_nodes[target_of[position]].name)
            for position in renamed_nodes[:EXAMPLES]
        ]
        bulk.add(graph, "renamed", "nodes", ("node", "name"), details, len(renamed_nodes))
    values = graph.pair.values
    total = sum(map(ne, values, values.values()))
    if not total:
        return
    explained = _consequences(graph).keys() | graph.moved_constants
    total -= sum(values.get(name, name) != name for name in explained)
    base = graph.pair.base
    inputs = {name for name in base.inputs if name not in base.initializers}
    passed = _passed_out(graph, outputs) - inputs
    for noun, names in (("inputs", inputs), ("outputs", passed)):
        renamed = [name for name in names if values.get(name, name) != name and name not in explained]
        total -= len(renamed)
        if renamed:
            renamed.sort(key=base.inputs.__getitem__ if noun == "inputs" else list(base.output_names).index)
            _note_values(graph, bulk, noun, renamed, len(renamed))
    if total:
        skipped = explained | inputs | passed
        rest = (name for name, new in values.items() if name != new and name not in skipped)
        _note_values(graph, bulk, "tensors", list(islice(rest, EXAMPLES)), total)
    for place in _NAMED_PLACES:
        bulk.cover(graph, "renamed", ("tensors", "outputs", "inputs"), place)


def _passed_out(graph: GraphComparison, outputs: Mapping[int, int]) -> set[str]:
    names, target_names = [scope.output_names for scope in graph.scopes]
    get = graph.pair.values.get
    return {
        name for position, place in outputs.items() if (name := names[position]) and get(name) == target_names[place]
    }


def _note_values(graph: GraphComparison, bulk: Bulk, noun: str, names: Sequence[str], count: int) -> None:
    details = [Detail(noun[:-1], name, graph.pair.values[name]) for name in names[:EXAMPLES]]
    list_name = noun[:-1] if noun != "tensors" else "node"
    bulk.add(graph, "renamed", noun, (list_name, "name" if noun != "tensors" else "output"), details, count)
    for field in ("name", "") if noun != "tensors" else ():
        bulk.prefer(graph, "renamed", noun, (list_name, field))


def _consequences(graph: GraphComparison) -> dict[str, Change]:
    """Return renamed values whose renaming follows from a rewrite that reuses or replaces their name, with it."""
    context = graph.context
    causes: dict[str, Change] = {}
    for (defining_graph, name), change in context.explained_names.items():
        if defining_graph is graph and graph.pair.values.get(name, name) != name:
            causes.setdefault(name, change)
    for slot, change in context.rewired_slots:
        # If an input keeps its name but consumes another value, then the values changed names.
        if slot.old != slot.new or graph not in slot.graph.chain():
            continue
        taken = graph.inverse.get(slot.new, slot.new)
        renamed = next((name for name in (slot.old, taken) if graph.pair.values.get(name, name) != name), None)
        if renamed is not None:
            first = causes.setdefault(renamed, change)
            if first is not change and change.cause() is not first.cause() and _keeps_names(context, change):
                change.into = first
    for side in () if graph.mostly_renamed else (BASE, TARGET):
        for name, position in graph.produced[side].items():
            old = graph.inverse.get(name, "") if side == BASE else name
            rewrite = context.region_changes.get((graph, side, position))
            if rewrite is not None and old and graph.pair.values.get(old, old) != old:
                causes.setdefault(old, rewrite)
    if causes:
        _claim_names(graph, causes)
    return causes


def _keeps_names(context: DiffContext, change: Change) -> bool:
    """Whether all inputs of a change keep their names, so the change explains nothing by itself."""
    return all(slot.old == slot.new for slot, each in context.rewired_slots if each is change)


def _claim_names(graph: GraphComparison, causes: dict[str, Change]) -> None:
    """Let the rewrite explain the new name wherever it is used, unless another change does."""
    base = graph.pair.base
    claim = graph.context.ledger.claim
    for name, change in causes.items():
        if (producer := graph.producer(BASE, name)) is not None:
            claim(change, [f"{graph.node_address(producer[0])}/output"])
        if name in base.initializers:
            claim(change, [f"{graph.address}/initializer/{base.initializers[name]}/name"])
        if name in base.inputs:
            claim(change, [f"{graph.address}/input/{base.inputs[name]}/name"])
    is_elsewhere = causes.keys().isdisjoint
    for inner in graph.context.graphs:
        if graph not in inner.chain():
            continue
        for position, node in enumerate(inner.nodes(BASE)):
            if is_elsewhere(node.input):
                continue
            name = next(name for name in node.input if name in causes)
            claim(causes[name], [f"{inner.node_address(position)}/input"])
        _claim_annotations(inner, causes)
        for position, output in enumerate(inner.pair.base.output_names):
            if output in causes:
                claim(causes[output], [f"{inner.address}/output/{position}/name"])
    for position, value in enumerate(graph.pair.base.graph.value_info):
        if value.name in causes:
            claim(causes[value.name], [f"{graph.address}/value_info/{position}/name"])
    for name in base.sparse_initializers.keys() & causes.keys():
        claim(causes[name], [f"{graph.address}/sparse_initializer/{base.sparse_initializers[name]}/values/name"])


def _claim_annotations(graph: GraphComparison, causes: dict[str, Change]) -> None:
    """Let the rewrite explain the new name in quantization annotations and in the sharding of nodes."""
    claim = graph.context.ledger.claim
    body = graph.pair.base.graph
    for place, annotation in enumerate(() if isinstance(body, Function) else body.quantization_annotation):
        address = f"{graph.address}/quantization_annotation/{place}"
        if annotation.tensor_name in causes:
            claim(causes[annotation.tensor_name], [f"{address}/tensor_name"])
        for entry, parameter in enumerate(annotation.quant_parameter_tensor_names):
            if parameter.value in causes:
                claim(causes[parameter.value], [f"{address}/quant_parameter_tensor_names/{entry}/value"])
    for position, (node, place) in enumerate(zip(body.node, graph.pair.target_of, strict=True)):
        specs = [spec.tensor_name for each in node.device_configurations for spec in each.sharding_spec]
        name = next((name for name in specs if name in causes), None)
        if name is not None and place >= 0:
            # Members of these lists are recognised by the tensor name, so a new name replaces the member.
            path = "device_configurations"
            targets = [f"{graph.node_address(place, TARGET)}/{path}"]
            claim(causes[name], [f"{graph.node_address(position)}/{path}"], targets)
