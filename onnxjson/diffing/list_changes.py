"""Changes of whole lists of a graph: many changes of one kind, counted with examples; members in another order."""

from collections.abc import Sequence
from operator import gt

from onnxjson.diffing.changes import EXAMPLES, ORDER, Change, limit_details
from onnxjson.diffing.comparing import DiffContext, GraphComparison
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.fields import field_details
from onnxjson.model.document import Tensor, ValueInfo
from onnxjson.patching.changes import Unit


class Bulk:
    """Collects changes at very many places of a graph, such as all node names, and explains units of the patch.

    A place is a list of a graph and a field of its members, ``("node", "name")``; instead of a field it has "added" or
    "removed" for members, or "" for the whole list. So nothing is stored for each member.
    """

    def __init__(self, context: DiffContext) -> None:
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
        """Add changes of one kind.

        Args:
            graph: the graphs.
            kind: kind of the event.
            pattern: the changed elements, such as ``nodes``.
            place: the list and the field whose changes this explains, unless another change explains them.
            details: details of the first places at least.
            count: number of places; None for the number of details.
        """
        key = (graph, kind, pattern)
        found = self._found.setdefault(key, [])
        found += details[: EXAMPLES - len(found)]
        self._counts[key] = self._counts.get(key, 0) + (len(details) if count is None else count)
        self._fields.setdefault((graph, *place), key)

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
        """Let the first of `patterns` that has changes explain another place, unless something else does."""
        found = [pattern for pattern in patterns if (graph, kind, pattern) in self._counts]
        if found:
            self._fields.setdefault((graph, *place), (graph, kind, found[0]))

    def prefer(self, graph: GraphComparison, kind: Kind, pattern: str, place: tuple[str, str]) -> None:
        """Let a pattern explain a place, even if something else does."""
        self._fields[graph, *place] = (graph, kind, pattern)

    def finish(self) -> None:
        """Add the collected changes to the ledger."""
        for key, count in self._counts.items():
            graph, kind, pattern = key
            self._changes[key] = self._context.ledger.add(
                Change(
                    kind,
                    pattern,
                    base=(graph.address,),
                    target=(graph.target_address,),
                    details=limit_details(self._found[key], count, pattern),
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
            # A subgraph uses the names of the outer graph for the values that it captures.
            for place in ((parts[0], field), (parts[0], "*")):
                key = self._fields.get((each, *place))
                if key in self._changes:
                    return self._changes[key]
            if parts[0] != "node" or field != "input":
                return None
        return None


def count_order_breaks(positions: Sequence[int]) -> int:
    """Count the members that directly precede a member that was before them."""
    return sum(map(gt, positions, positions[1:]))


def pair_by_name(base: Sequence[str | None], target: Sequence[str | None], pairs: dict[int, int]) -> None:
    """Pair the remaining members of two lists by equal names, in their order.

    Args:
        base: the names of the base members, translated to names of the target.
        target: the names of the target members.
        pairs: positions in base -> positions in target; new pairs are added.
    """
    taken = set(pairs.values())
    left: dict[str, list[int]] = {}
    for position, name in enumerate(target):
        if position not in taken:
            left.setdefault(name or "", []).append(position)
    for position, name in enumerate(base):
        if position not in pairs and left.get(name or ""):
            pairs[position] = left[name or ""].pop(0)


def compare_order(
    context: DiffContext, graph: GraphComparison, field: str, noun: str, pairs: Sequence[tuple[int, int]]
) -> None:
    """Report a change if the pairs of a list of the graphs have another order."""
    count = count_order_breaks([place for _, place in sorted(pairs)])
    if count and getattr(graph.pair.base.graph, field) != getattr(graph.pair.target.graph, field):
        add_reordering(
            context, f"{graph.address}/{field}", f"{graph.target_address}/{field}", noun, count, graph.number
        )


def add_reordering(context: DiffContext, address: str, its_address: str, noun: str, count: int, number: int) -> None:
    """Add a change of the order of a list."""
    detail = Detail(f"{noun} that precede one that was before them", None, f"{count:,}")
    context.ledger.report("reordered", noun, address, its_address, [detail], order=(number, -1), fields=[ORDER])
