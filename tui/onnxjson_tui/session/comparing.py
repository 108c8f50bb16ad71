"""Comparison of two models for the screens, and of each node with the saved model: which are changed or new.

The nodes of a saved graph are indexed once, by output and by name. Then a node of the current model is compared with
its counterpart when its row is drawn, and undo only has to redraw.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec.structs import replace

from onnxjson.diffing.events import Event
from onnxjson.model.addresses import resolve
from onnxjson.model.document import Attribute, Function, Graph, Model, Node
from onnxjson.model.errors import AddressError, DecodeError, OnnxJsonError
from onnxjson.model.index import Scope
from onnxjson.model.operators import function_key
from onnxjson.optimizing.trace_records import Size
from onnxjson.rendering.diff_report import Count, Report, operator_counts, report
from onnxjson_tui.session.opening import Unreadable, open_model

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff


FEW: Final = 12  # maximum rows of places and details that are all unfolded
MATCHED: Final = 3_000  # number of nodes below which matching two models takes less than a second


class Side(NamedTuple):
    """One of the two compared models."""

    name: str  # name that the user gave; control characters are not escaped
    model: Model
    path: Path | None = None  # its file; weights are searched in the same folder
    problems: tuple[str, ...] = ()  # problems with files that it depends on, a sentence each


class Compared(NamedTuple):
    """Everything that is shown of a difference."""

    base: Side
    target: Side
    events: tuple[Event, ...]
    nodes: Count
    matched: int | None  # number of nodes with a counterpart; None if not counted
    operators: tuple[Count, ...]  # Operators, those with a changed count first
    parameters: Count
    bytes: Count
    equal: bool
    incomplete: tuple[str, ...] = ()  # what could not be compared, in sentences
    notes: tuple[str, ...] = ()  # other notes for the user, without control characters
    diff: "Diff | None" = None
    report: Report | None = None  # the report, for writing it to a file

    @property
    def places(self) -> int:
        """Number of changed places."""
        return sum([event.count for event in self.events])

    @property
    def is_short(self) -> bool:
        """Whether everything fits on a screen when unfolded."""
        return sum([1 + len(member.details) for event in self.events for member in event.members]) <= FEW


def opened_side(name: str, resources: ExitStack) -> Side:
    """Open a model for a comparison: a file, or ``REV:path``.

    Raises:
        DecodeError: it is not a model.
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
    """
    found = open_model(name, resources)
    if isinstance(found, Unreadable):
        raise DecodeError(found.message, found.findings)
    return Side(name, found.model, found.path, found.problems)


def compared(base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Compare two models; this takes seconds for big ones."""
    from onnxjson.diffing.difference import diff_models

    found = diff_models(base.model, target.model, paths=(base.path, target.path), names=(base.name, target.name))
    return of_diff(found, base, target, notes)


def compared_edits(base: Side, target: Side) -> Compared:
    """Compare a model with its edited version; unchanged nodes of a big model are not matched again."""
    from onnxjson.diffing.difference import diff_models

    if base.model.graph is None or len(base.model.graph.node) < MATCHED:
        return compared(base, target)
    paths, names = (target.path, target.path), (base.name, target.name)
    return of_diff(diff_models(base.model, target.model, paths=paths, names=names, is_edited=True), base, target)


def of_diff(found: "Diff", base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Return everything that is shown of a diff."""
    shown = report(found, base.name, target.name)
    problems = (*base.problems, *target.problems, *shown.incomplete)
    shown = shown._replace(incomplete=problems, equal=shown.equal and not problems)
    return Compared(
        base, target, shown.events, shown.nodes, shown.matched, shown.operators, shown.parameters, shown.bytes,
        shown.equal, problems, tuple(notes), found, shown,
    )  # fmt: skip


def of_sizes(
    base: Side, target: Side, sizes: tuple[Size, Size], events: Sequence[Event], incomplete: Sequence[str] = ()
) -> Compared:
    """Return everything that is shown of given events, such as those of a trace."""
    before, after = sizes
    counts = [Count(each, getattr(before, each), getattr(after, each)) for each in ("nodes", "parameters", "bytes")]
    operators = operator_counts(Counter(before.operators), Counter(after.operators))
    is_equal = not events and not incomplete
    return Compared(
        base, target, tuple(events), counts[0], None, operators, counts[1], counts[2], is_equal, tuple(incomplete)
    )


Mark = Literal["", "~", "+"]  # Unchanged, changed, new
_NEAR: Final = 16  # maximum distance of the neighbours between which a node with another name and output is looked for
_SEVERAL: Final = -1  # represents several positions
_BIG: Final = 4096  # bytes above which constants are not compared


class SavedNodes:
    """The saved nodes of one graph."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Index the nodes, which takes about 50 ms for 100,000 nodes."""
        self.nodes = nodes
        self._producers = _places([_first_output(node) for node in nodes])
        self._names = _places([node.name for node in nodes])

    def mark(self, nodes: Sequence[Node], position: int) -> Mark:
        """Return how a node differs from its counterpart.

        The counterpart produces the same value, or has the same name, or, if no node does, the same operator at the
        same place between others. A node without outputs and name, or with an output that several nodes produce as in
        an invalid model, has no known counterpart.
        """
        node = nodes[position]
        output = _first_output(node)
        saved = self.counterpart(nodes, position)
        if saved is None:
            return "+" if (output or node.name) and self._place(node) != _SEVERAL else ""
        return "" if is_as_saved(saved, node) else "~"

    def counterpart(self, nodes: Sequence[Node], position: int) -> Node | None:
        """Return the saved node of a current one; None if there is none, or several."""
        place = self._place(nodes[position])
        if place is None:
            place = self._between(nodes, position)
        return None if place is None or place == _SEVERAL else self.nodes[place]

    def _place(self, node: Node) -> int | None:
        """Return the position of the saved node with the same output or name."""
        output = _first_output(node)
        place = self._producers.get(output) if output else None
        if place is None and node.name:
            place = self._names.get(node.name)
            # A name of several nodes identifies none of them.
            return None if place == _SEVERAL else place
        return place

    def _between(self, nodes: Sequence[Node], position: int) -> int | None:
        """Return the position of a node with the same operator, if as many nodes were between its neighbours as now."""
        before, after = self._neighbour(nodes, position, -1), self._neighbour(nodes, position, 1)
        if before is None or after is None:
            # No known neighbours, as if all nodes were renamed; if the number is unchanged, so are the positions.
            before, after = (-1, -1), (len(nodes), len(self.nodes))
        if after[0] - before[0] != after[1] - before[1]:
            return None
        place = before[1] + position - before[0]
        return place if self.nodes[place].op_type == nodes[position].op_type else None

    def _neighbour(self, nodes: Sequence[Node], position: int, step: Literal[1, -1]) -> tuple[int, int] | None:
        """Return the current and saved position of the nearest known node, or of the end of the graph."""
        for at in range(position + step, position + step * _NEAR, step):
            if at < 0:
                return -1, -1
            if at == len(nodes):
                return at, len(self.nodes)
            place = self._place(nodes[at])
            if place is not None and place != _SEVERAL:
                return at, place
        return None


def is_as_saved(saved: Node, node: Node) -> bool:
    """Whether a node equals its saved counterpart.

    Big constants are compared by identity, without reading their bytes, since this runs for each drawn row.
    """
    if saved is node:
        return True
    if len(saved.attribute) != len(node.attribute):
        return False
    if replace(saved, attribute=()) != replace(node, attribute=()):
        return False
    return all(map(_is_same, saved.attribute, node.attribute))


def _is_same(saved: Attribute, now: Attribute) -> bool:
    if saved is now:
        return True
    if saved.t is not None and now.t is not None:
        one, other = saved.t.raw_data, now.t.raw_data
        if one is not other and one is not None and other is not None and len(one) > _BIG:
            return False
    try:
        return saved == now
    except OnnxJsonError:
        return False  # The file with the bytes has changed.


def _first_output(node: Node) -> str | None:
    return next((each for each in node.output if each), None)


def _places(texts: Iterable[str | None]) -> dict[str, int]:
    """Return the position of each text; `_SEVERAL` for repeated ones."""
    found: dict[str, int] = {}
    for at, text in enumerate(texts):
        if text:
            found[text] = _SEVERAL if text in found else at
    return found


class GraphPath(NamedTuple):
    """Path to a graph that is valid in the saved model, too."""

    graph: str  # address of the outermost graph or of a function
    function: tuple[str, str, str] | None  # key of the function, if any
    steps: tuple[tuple[Sequence[Node], int, str], ...]
    """From the outside in: nodes of a graph, position of one, and its field with the next graph."""


def path_of_graph(scope: Scope) -> GraphPath:
    """Return the path to a graph of the current model."""
    steps: list[tuple[Sequence[Node], int, str]] = []
    while (owner := scope.owner) is not None:
        steps.append((owner.scope.graph.node, owner.position, scope.address[len(owner.address) :]))
        scope = owner.scope
    function = function_key(scope.graph) if isinstance(scope.graph, Function) else None
    return GraphPath(scope.address, function, tuple(reversed(steps)))


class SavedModel:
    """The graphs of a saved model, each indexed on first use."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._graphs: dict[int, SavedNodes] = {}

    def find(self, path: GraphPath, *, may_wait: bool = True) -> SavedNodes | None:
        """Return the counterpart of a graph; without nodes if there is none.

        New graphs are indexed; unless `may_wait`, None is returned for them.
        """
        found = self._indexed(self._outermost(path), may_wait)
        for nodes, position, field in path.steps:
            if found is None:
                return None
            owner = found.counterpart(nodes, position)
            # The field is an address inside the node.
            alone = Model(graph=Graph(() if owner is None else (owner,)))
            found = self._indexed(_nodes_of(alone, f"/graph/node/0{field}"), may_wait)
        return found

    def _outermost(self, path: GraphPath) -> Sequence[Node]:
        if path.function is not None:
            return next((each.node for each in self.model.functions if function_key(each) == path.function), ())
        return _nodes_of(self.model, path.graph)

    def _indexed(self, nodes: Sequence[Node], may_wait: bool) -> SavedNodes | None:
        # By identity: the model keeps the nodes alive.
        found = self._graphs.get(id(nodes))
        if found is None and may_wait:
            found = self._graphs[id(nodes)] = SavedNodes(nodes)
        return found


def _nodes_of(model: Model, address: str) -> Sequence[Node]:
    """Return the nodes of the graph at an address; none if there is none."""
    try:
        graph = resolve(model, address)
    except AddressError:
        return ()
    return graph.node if isinstance(graph, Graph) else ()
