"""Which nodes use the weights of a model: each weight counts for the first node that uses it.

A node that computes from constants alone, such as an Identity or the DequantizeLinear of a weight, passes them on.
"""

from collections.abc import Iterable

from onnxjson.model.constants import constant_nodes
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.document import Model
from onnxjson.model.index import NodeRef, index_of
from onnxjson.model.walking import stored_bytes
from onnxjson.model.weights import Held


class WeightUse:
    """The bytes of weights that no node has used yet, while one asks for the nodes in their order.

    The sizes are those of the model as it is stored; nodes may be those of a copy with types, and without the elements
    of big constants. Both name their constants alike.
    """

    def __init__(self, model: Model, constants: Iterable[Held]) -> None:
        self._unused: dict[str, int] = {}
        for each in constants:
            if each.is_weight:
                self._unused[each.name] = self._unused.get(each.name, 0) + stored_bytes(each.tensor)
        self._sources: dict[str, tuple[str, ...]] = {}
        for scope in index_of(model).scopes:
            for position in constant_nodes(scope):
                node = scope.graph.node[position]
                self._sources.update(dict.fromkeys(node.output, node.input))

    @property
    def rest(self) -> int:
        """Bytes of the weights that no node has used."""
        return sum(self._unused.values())

    def take(self, ref: NodeRef) -> int:
        """Return the bytes of the weights that a node and its subgraphs are the first to use."""
        if not self._sources.keys().isdisjoint(ref.node.output):
            return 0
        pending = list(consumed_names(ref.node))
        bodies = ref.scope.bodies.get(ref.position, ())
        pending += [name for body in bodies for name in body.output_names if name]
        total = sum([self.take(each) for each in _inner_nodes(ref)])
        while pending:
            name = pending.pop()
            total += self._unused.pop(name, 0)
            pending += self._sources.pop(name, ())
        return total


def _inner_nodes(ref: NodeRef) -> list[NodeRef]:
    bodies = ref.scope.bodies.get(ref.position, ())
    return [NodeRef(body, place) for body in bodies for place in range(len(body.graph.node))]
