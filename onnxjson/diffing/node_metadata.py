"""Documentation and metadata of paired nodes: one change for each field of a graph, however many nodes it is."""

from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.changes import EXAMPLES
from onnxjson.diffing.comparing import BASE, TARGET, GraphComparison
from onnxjson.diffing.events import Detail
from onnxjson.diffing.places import called
from onnxjson.document import StringStringEntry


def compare_metadata(graph: GraphComparison, bulk: Bulk) -> None:
    """Note what differs in the documentation and metadata of the suspects."""
    nodes, its_nodes, target_of = graph.nodes(BASE), graph.nodes(TARGET), graph.pair.target_of
    for field in ("doc_string", "metadata_props"):
        details: list[Detail] = []
        count = 0
        for position in graph.suspects:
            node, other = nodes[position], its_nodes[target_of[position]]
            old, new = getattr(node, field), getattr(other, field)
            if old == new:
                continue
            count += 1
            if len(details) < EXAMPLES:
                name = called(node)
                details += [Detail(name, old, new)] if field == "doc_string" else _entries(name, old, new)
        if count:
            bulk.add(graph, "metadata-changed", f"{field} of nodes", ("node", field), details, count)


def _entries(name: str, old: tuple[StringStringEntry, ...], new: tuple[StringStringEntry, ...]) -> list[Detail]:
    mine, its = {each.key: each.value for each in old}, {each.key: each.value for each in new}
    return [
        Detail(f"{name} {key}", mine.get(key), its.get(key))
        for key in dict.fromkeys((*mine, *its))
        if mine.get(key) != its.get(key)
    ][:1]
