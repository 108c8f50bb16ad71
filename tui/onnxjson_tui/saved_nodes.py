"""Which nodes differ from those of the saved model: a look at one node, never at all of them.

The nodes of a saved graph are put in order once, by what they make and by their names. Then a node of the model as it
is now is told from its counterpart when its row is drawn, and undo has nothing to do but to draw again.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from onnxjson.addresses import attribute_segments, parse_address
from onnxjson.document import Attribute, Function, Model, Node
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Scope
from onnxjson.operators import function_key

Mark = Literal["", "~", "+"]
"""As it is saved, changed, new."""

_NEAR: Final = 16
"""Nodes on either side between which one is looked for that has another name and makes another value."""

_SEVERAL: Final = -1
"""Stands for the places of several nodes."""

_BIG: Final = 4096
"""Bytes of a constant from which they are not compared."""

_TWINS: Final = 16
"""Nodes that claim to make one value, of which that many are looked at: a model with such nodes is wrong."""


class SavedNodes:
    """The nodes of one graph as they are saved."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Puts them in order, which takes some 50 ms for 100,000 nodes."""
        self.nodes = nodes
        self._makers = _places([_made(node) for node in nodes])
        self._names = _places([node.name for node in nodes])
        self._twins: dict[str, list[int]] = {}
        if _SEVERAL in self._makers.values():
            for at, node in enumerate(nodes):
                made = _made(node)
                if made and self._makers[made] == _SEVERAL:
                    self._twins.setdefault(made, []).append(at)

    def mark(self, nodes: Sequence[Node], position: int) -> Mark:
        """How a node differs from its counterpart.

        The counterpart makes the same value, or has the same name, or, if there is none, the same operator at the
        same place between others. Of a node that makes nothing and has no name nobody knows which it was.

        Args:
            nodes: of the graph as it is now.
            position: of the node in it.
        """
        node = nodes[position]
        made = _made(node)
        if made in self._twins:
            near = [self.nodes[each] for each in self._twins[made][:_TWINS]]
            return "" if any(is_as_saved(each, node) for each in near) else "~"
        saved = self.counterpart(nodes, position)
        if saved is None:
            return "+" if made or node.name else ""
        return "" if is_as_saved(saved, node) else "~"

    def counterpart(self, nodes: Sequence[Node], position: int) -> Node | None:
        """The saved node for one of now; None where there is none, or there are several."""
        place = self._place(nodes[position])
        if place is None:
            place = self._between(nodes, position)
        return None if place is None or place == _SEVERAL else self.nodes[place]

    def _place(self, node: Node) -> int | None:
        """Where a node stands that makes the same value or has the same name."""
        made = _made(node)
        place = self._makers.get(made) if made else None
        if place is None and node.name:
            place = self._names.get(node.name)
            # A name that several have says nothing.
            return None if place == _SEVERAL else place
        return place

    def _between(self, nodes: Sequence[Node], position: int) -> int | None:
        """The place of a node of the same operator, if as many nodes stood there between others as do now."""
        before, after = self._neighbour(nodes, position, -1), self._neighbour(nodes, position, 1)
        if before is None or after is None:
            # Nothing around is known, as where all have other names; where none came or went, each is where it was.
            before, after = (-1, -1), (len(nodes), len(self.nodes))
        if after[0] - before[0] != after[1] - before[1]:
            return None
        place = before[1] + position - before[0]
        return place if self.nodes[place].op_type == nodes[position].op_type else None

    def _neighbour(self, nodes: Sequence[Node], position: int, step: Literal[1, -1]) -> tuple[int, int] | None:
        """The places, now and before, of the nearest node that is known, or of the end of the graph."""
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
    """Whether a node is what it is saved as.

    Of big constants no byte is read, since this is asked for each row that is drawn: other objects hold other bytes.
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
        return False  # The file that the bytes stand in was changed.


def _made(node: Node) -> str | None:
    return next((each for each in node.output if each), None)


def _places(texts: Iterable[str | None]) -> dict[str, int]:
    """Where each text stands; `_SEVERAL` for what stands more than once."""
    found: dict[str, int] = {}
    for at, text in enumerate(texts):
        if text:
            found[text] = _SEVERAL if text in found else at
    return found


class GraphPath(NamedTuple):
    """How a graph is reached, in terms that hold for the saved model, too."""

    graph: str
    """Address of the outermost graph, or that of a function."""
    function: tuple[str, str, str] | None
    """What a function is known by."""
    steps: tuple[tuple[Sequence[Node], int, str], ...]
    """From outside in: the nodes of a graph, the position of one, and the field of it that holds the next graph."""


def path_of_graph(scope: Scope) -> GraphPath:
    """How a graph of the model as it is now is reached."""
    steps: list[tuple[Sequence[Node], int, str]] = []
    while (owner := scope.owner) is not None:
        steps.append((owner.scope.graph.node, owner.position, scope.address[len(owner.address) :]))
        scope = owner.scope
    function = function_key(scope.graph) if isinstance(scope.graph, Function) else None
    return GraphPath(scope.address, function, tuple(reversed(steps)))


class SavedModel:
    """The graphs of a saved model, each put in order when it is first asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._graphs: dict[int, SavedNodes] = {}

    def find(self, path: GraphPath, *, may_wait: bool = True) -> SavedNodes | None:
        """The counterpart of a graph, without any nodes where there is none.

        Args:
            path: see `path_of_graph`.
            may_wait: whether graphs are put in order that are not yet; otherwise the answer is None then.
        """
        found = self._ordered(self._outermost(path), may_wait)
        for nodes, position, field in path.steps:
            if found is None:
                return None
            owner = found.counterpart(nodes, position)
            found = self._ordered(() if owner is None else _inner(owner, field), may_wait)
        return found

    def _outermost(self, path: GraphPath) -> Sequence[Node]:
        if path.function is not None:
            return next((each.node for each in self.model.functions if function_key(each) == path.function), ())
        if path.graph == "/graph":
            return () if self.model.graph is None else self.model.graph.node
        _, kind, number, field = (*path.graph.split("/"), "", "", "")[:4]
        trained = self.model.training_info[int(number) : int(number) + 1] if kind == "training_info" else ()
        graph = getattr(trained[0], field, None) if trained else None
        return () if graph is None else graph.node

    def _ordered(self, nodes: Sequence[Node], may_wait: bool) -> SavedNodes | None:
        # By identity: the model holds them for as long as this does.
        found = self._graphs.get(id(nodes))
        if found is None and may_wait:
            found = self._graphs[id(nodes)] = SavedNodes(nodes)
        return found


def _inner(owner: Node, field: str) -> Sequence[Node]:
    """The nodes of the graph in a field of a node, such as ``/attribute/body/g``."""
    _, name, kind, *number = parse_address(field)
    for segment, attribute in zip(attribute_segments(owner.attribute), owner.attribute, strict=True):
        if segment == name:
            if kind == "g":
                return () if attribute.g is None else attribute.g.node
            return next((each.node for each in attribute.graphs[int(number[0]) : int(number[0]) + 1]), ())
    return ()
