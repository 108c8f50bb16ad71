"""Changes at very many places of one graph, such as the names of all nodes: one change, counts and examples."""

from collections.abc import Sequence

from onnxjson.diffing.changes import EXAMPLES, Change, some
from onnxjson.diffing.comparing import Context, GraphComparison
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.fields import field_details
from onnxjson.document import Tensor, ValueInfo
from onnxjson.patching.changes import Unit


class Bulk:
    """Gathers such changes, and says afterwards which of them explains a unit of the patch.

    A place is a list of a graph and a field of its members, ``("node", "name")``, or "added" or "removed" for members
    that come or go, or "" for all of the list. So nothing is kept for each member.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._by_base = {graph.address: graph for graph in context.graphs}
        self._by_target = {graph.target_address: graph for graph in context.graphs}
        self._found: dict[tuple[GraphComparison, Kind, str], list[Detail]] = {}
        self._counts: dict[tuple[GraphComparison, Kind, str], int] = {}
        self._changes: dict[tuple[GraphComparison, Kind, str], Change] = {}
        self._fields: dict[tuple[GraphComparison, str, str], tuple[GraphComparison, Kind, str]] = {}

    def add(
        self,
        graph: GraphComparison,
        kind: Kind,
        pattern: str,
        place: tuple[str, str],
        details: list[Detail],
        count: int | None = None,
    ) -> None:
        """Changes of one kind.

        Args:
            graph: where.
            kind: of the event.
            pattern: what changed, such as ``nodes``.
            place: the list and the field that this explains, as far as nothing else does.
            details: what changed, of the first places at least.
            count: how many places; as many as details where it is None.
        """
        key = (graph, kind, pattern)
        found = self._found.setdefault(key, [])
        found += details[: EXAMPLES - len(found)]
        self._counts[key] = self._counts.get(key, 0) + (len(details) if count is None else count)
        self._fields.setdefault((graph, *place), key)

    def add_documentation(
        self, graph: GraphComparison, field: str, noun: str, one: Tensor | ValueInfo, other: Tensor | ValueInfo
    ) -> None:
        """What differs in documentation and metadata of two members of a list, `noun`, that are counterparts."""
        for name in ("doc_string", "metadata_props"):
            old, new = getattr(one, name), getattr(other, name)
            if old != new:
                called = one.name or ""
                details = (Detail(called, old, new),) if name == "doc_string" else field_details(old, new, called)
                self.add(graph, "metadata-changed", f"{name} of {noun}", (field, name), list(details), 1)

    def cover(self, graph: GraphComparison, kind: Kind, patterns: Sequence[str], place: tuple[str, str]) -> None:
        """Another list and field that the first of these patterns explains that there are changes of."""
        found = [pattern for pattern in patterns if (graph, kind, pattern) in self._counts]
        if found:
            self._fields.setdefault((graph, *place), (graph, kind, found[0]))

    def prefer(self, graph: GraphComparison, kind: Kind, pattern: str, place: tuple[str, str]) -> None:
        """The same, whatever explains them otherwise."""
        self._fields[graph, *place] = (graph, kind, pattern)

    def finish(self) -> None:
        """Make the changes."""
        for key, count in self._counts.items():
            graph, kind, pattern = key
            self._changes[key] = self._context.ledger.add(
                Change(
                    kind,
                    pattern,
                    base=(graph.address,),
                    target=(graph.target_address,),
                    details=some(self._found[key], count, pattern),
                    order=(graph.number, -1),
                    count=count,
                )
            )
        self._context.ledger.add_fallback(self._explains)

    def _explains(self, unit: Unit) -> Change | None:
        address, graphs = (unit.base, self._by_base) if unit.base is not None else (unit.target, self._by_target)
        end = len(address or "")
        while address is not None and (end := address.rfind("/", 0, end)) > 0:
            graph = graphs.get(address[:end])
            if graph is not None:
                return self._in_graph(graph, address[end + 1 :].split("/"), unit)
        return None

    def _in_graph(self, graph: GraphComparison, parts: list[str], unit: Unit) -> Change | None:
        field = parts[2] if len(parts) > 2 else "" if len(parts) == 1 else "removed" if unit.base else "added"
        for each in graph.chain():
            # What a subgraph takes from around it has the names that it has there.
            for place in ((parts[0], field), (parts[0], "*")):
                key = self._fields.get((each, *place))
                if key in self._changes:
                    return self._changes[key]
            if parts[0] != "node" or field != "input":
                return None
        return None
