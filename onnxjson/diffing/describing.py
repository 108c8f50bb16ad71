"""Find all changes between two aligned models: this is the only place that defines the order of the search."""

from onnxjson.diffing.changes import Change
from onnxjson.diffing.classifying import classify, find_layout_transposes
from onnxjson.diffing.comparing import DiffContext, GraphComparison
from onnxjson.diffing.constant_changes import compare_constants, compare_unpaired_constants, name_changed_constants
from onnxjson.diffing.list_changes import Bulk, add_reordering, count_order_breaks
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.diffing.model_changes import compare_annotations, compare_models, graph_fields
from onnxjson.diffing.naming import compare_names
from onnxjson.diffing.node_changes import compare_metadata, compare_nodes, join_attributes
from onnxjson.diffing.region_changes import RegionDraft, RegionFinder, claim_region, report_rewiring
from onnxjson.diffing.region_constants import absorb_neighbours, claim_constants
from onnxjson.diffing.value_changes import compare_interface, compare_outputs, compare_value_infos
from onnxjson.diffing.weight_changes import ConstantComparer


def describe(alignment: Alignment, weights: ConstantComparer) -> DiffContext:
    """Find all changes; they are in the ledger of the returned comparison."""
    context = DiffContext(alignment, weights)
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
    claim_constants(context, drafts)
    plain = join_attributes(context, plain)
    for draft in drafts:
        for slot in draft.slots:
            if slot.base is not None:
                context.slot_changes.setdefault((slot.graph, slot.base), draft.change)
        classify(context, draft)
        claim_region(context, draft)
    find_layout_transposes(drafts)
    report_rewiring(context, plain)
    counterparts = _counterparts(drafts)
    for graph in context.graphs:
        name_changed_constants(context, graph)
        compare_unpaired_constants(context, graph)
        compare_interface(context, graph, bulk, outputs[graph])
        compare_annotations(context, graph, counterparts)
        graph_fields(context, graph)
    for graph in context.graphs:
        compare_value_infos(context, graph, bulk, counterparts.get(graph, {}))
        compare_names(context, graph, bulk, outputs[graph])
        _node_order(context, graph)
    compare_models(context, alignment.base.model, alignment.target.model)
    bulk.finish()
    return context


def _node_order(context: DiffContext, graph: GraphComparison) -> None:
    places = [place for place in graph.pair.target_of if place >= 0]
    if count := count_order_breaks(places):
        add_reordering(context, f"{graph.address}/node", f"{graph.target_address}/node", "nodes", count, graph.number)


def _counterparts(drafts: list[RegionDraft]) -> dict[GraphComparison, dict[str, tuple[str, Change]]]:
    """Return the values that rewrites replaced: base name -> target name and the rewrite."""
    found: dict[GraphComparison, dict[str, tuple[str, Change]]] = {}
    for draft in drafts:
        for old, new in draft.region.outputs:
            found.setdefault(draft.graph, {}).setdefault(old, (new, draft.change))
    return found
