"""All changes between two aligned models: the one place that knows the order in which they are found."""

from collections.abc import Iterator

from onnxjson.diffing.absorbing import absorb_neighbours
from onnxjson.diffing.attribute_inputs import join_attributes
from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.changes import Change, one_sided, one_sided_detail
from onnxjson.diffing.classifying import classify, settle_transposes
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison
from onnxjson.diffing.constant_changes import compare_constants
from onnxjson.diffing.events import Kind
from onnxjson.diffing.graph_fields import compare_annotations, graph_fields
from onnxjson.diffing.interface_changes import compare_interface, compare_outputs
from onnxjson.diffing.model_changes import compare_models
from onnxjson.diffing.naming import note_names
from onnxjson.diffing.node_changes import compare_nodes
from onnxjson.diffing.node_metadata import compare_metadata
from onnxjson.diffing.ordering_changes import breaks, note
from onnxjson.diffing.region_changes import Draft, RegionFinder, claim_region
from onnxjson.diffing.region_constants import own_constants
from onnxjson.diffing.rewiring import plain_slots
from onnxjson.diffing.texts import tensor_value_text
from onnxjson.diffing.value_infos import compare_value_infos
from onnxjson.diffing.weight_changes import Weights
from onnxjson.document import Function, Tensor
from onnxjson.matching.alignment import Alignment
from onnxjson.operators import operator_name


def describe(alignment: Alignment, weights: Weights) -> Context:
    """Find all changes; they are in the ledger of what is returned."""
    context = Context(alignment, weights)
    bulk = Bulk(context)
    outputs = {}
    for graph in context.graphs:
        graph.scan()
        compare_constants(context, graph, bulk)
    for graph in context.graphs:
        compare_metadata(graph, bulk)
        for position in graph.suspects:
            compare_nodes(context, graph, position)
        outputs[graph] = compare_outputs(context, graph)
    finder = RegionFinder(context)
    drafts, plain = absorb_neighbours(context, finder.find(), finder.plain)
    own_constants(context, drafts)
    plain = join_attributes(context, plain)
    for draft in drafts:
        for slot in draft.slots:
            if slot.base is not None:
                context.slot_changes.setdefault((slot.graph, slot.base), draft.change)
        classify(context, draft)
        claim_region(context, draft)
    settle_transposes(drafts)
    plain_slots(context, plain)
    counterparts = _counterparts(drafts)
    for graph in context.graphs:
        _name_constants(context, graph)
        _lone_constants(context, graph)
        compare_interface(context, graph, bulk, outputs[graph])
        compare_annotations(context, graph, counterparts)
        graph_fields(context, graph)
    for graph in context.graphs:
        compare_value_infos(context, graph, bulk, counterparts.get(graph, {}))
        note_names(context, graph, bulk, outputs[graph])
        _node_order(context, graph)
    compare_models(context, alignment.base.model, alignment.target.model)
    bulk.finish()
    return context


def _node_order(context: Context, graph: GraphComparison) -> None:
    places = [place for place in graph.pair.target_of if place >= 0]
    if count := breaks(places):
        note(context, f"{graph.address}/node", f"{graph.target_address}/node", "nodes", count, graph.number)


def _counterparts(drafts: list[Draft]) -> dict[GraphComparison, dict[str, tuple[str, Change]]]:
    """Values that are taken where rewrites were: base name -> target name, and the rewrite."""
    found: dict[GraphComparison, dict[str, tuple[str, Change]]] = {}
    for draft in drafts:
        for old, new in draft.region.outputs:
            found.setdefault(draft.graph, {}).setdefault(old, (new, draft.change))
    return found


def _name_constants(context: Context, graph: GraphComparison) -> None:
    """Events about constants that changed are told by what takes these: ``Conv input 1``."""
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


def _lone_constants(context: Context, graph: GraphComparison) -> None:
    """Constants that only one graph has and that no rewrite explains: nothing took them, or nothing takes them."""
    for side in (BASE, TARGET):
        for address, name, tensor in _unpaired_constants(context, graph, side):
            if context.ledger.claimed(address, side) is None:
                text = name if tensor is None else f"{name}: {tensor_value_text(tensor)}"
                _lone_constant(context, graph, side, address, text)


def _unpaired_constants(
    context: Context, graph: GraphComparison, side: int
) -> Iterator[tuple[str, str, Tensor | None]]:
    """Address, name and tensor of the constants of one side without a counterpart; None for sparse ones and nodes."""
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
    for name, position in graph.loose[side].items():
        if name not in moved:
            yield graph.node_address(position, side), name, None


def _lone_constant(context: Context, graph: GraphComparison, side: int, address: str, text: str) -> None:
    noun = "Constant" if f"{graph.scopes[side].address}/node/" in address else "initializer"
    detail = one_sided_detail(side, noun, text)
    base, target = one_sided(side, address)
    kind: Kind = "dead-code-removed" if side == BASE else "inserted"
    change = Change(kind, noun, base, target, "", (detail,), order=(graph.number, -1))
    context.ledger.add(change, base, target)
