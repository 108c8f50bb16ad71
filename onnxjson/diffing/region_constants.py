"""Constants that only a rewrite takes: what changed in them, their names too, is part of it."""

from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison
from onnxjson.diffing.region_changes import Draft

Owned = dict[tuple[GraphComparison, str], Draft]
"""By the graph that has the constant and its name in the base."""


def own_constants(context: Context, drafts: list[Draft]) -> None:
    """Make changes of such constants consequences of their regions."""
    wanted = _wanted(context, drafts)
    if not wanted:
        return
    _leave_out_shared(context, wanted)
    for (graph, name), draft in wanted.items():
        context.explained_names[graph, name] = draft.change
    for graph, name, change in context.changed_constants:
        found = wanted.get((graph, name))
        if found is not None and change.into is None and change is not found.change:
            change.into = found.change


def _wanted(context: Context, drafts: list[Draft]) -> Owned:
    changed: set[tuple[GraphComparison, str]] = {(graph, name) for graph, name, _ in context.changed_constants}
    found: Owned = {}
    for draft in drafts:
        if not draft.region.base or not draft.region.target:
            continue
        for name in draft.region.base_constants:
            constant = draft.graph.constant(BASE, name)
            if constant is None or not constant.is_paired(BASE):
                continue
            key = constant.graph, name
            renamed = constant.graph.values[name] != name and not constant.graph.mostly_renamed
            if key in changed or renamed:
                found.setdefault(key, draft)
    return found


def _leave_out_shared(context: Context, wanted: Owned) -> None:
    """Those that nodes outside of their region take, too."""
    for side in (BASE, TARGET):
        names: dict[str, list[GraphComparison]] = {}
        origin: dict[tuple[GraphComparison, str], tuple[GraphComparison, str]] = {}
        for graph, name in wanted:
            there = graph.values[name] if side else name
            names.setdefault(there, []).append(graph)
            origin[graph, there] = (graph, name)
        is_elsewhere = names.keys().isdisjoint
        for graph in context.graphs:
            for position, node in enumerate(graph.nodes(side)):
                if is_elsewhere(node.input):
                    continue
                for name in node.input:
                    home = next((each for each in graph.chain() if each in names.get(name, ())), None)
                    key = None if home is None else origin[home, name]
                    if key in wanted and not _is_inside(wanted[key], graph, side, position):
                        del wanted[key]


def _is_inside(draft: Draft, graph: GraphComparison, side: int, position: int) -> bool:
    return graph is draft.graph and position in draft.region.nodes(side)
