"""One graph while it is edited: its nodes by number, who makes and takes each value, and where everything ends up.

A number of a node stays its own through all edits; nodes that were there have their position as their number, new ones
follow. `finish` sorts what is left and says where each number went.
"""

import heapq
import random
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.document import Attribute, Function, Graph, Node, Tensor
from onnxjson.model.index import Scope


class Workbench:
    """A graph or function body that is being edited."""

    def __init__(self, scope: Scope, children: "Sequence[Workbench]") -> None:
        self.address = scope.address
        """Where the graph stands in the model before all edits."""
        self.owner: int = -1 if scope.owner is None else scope.owner.position
        """The node of the graph around it that has this one; -1 where there is none."""
        self._graph = scope.graph
        self._children = children
        self.nodes: list[Node | None] = list(scope.graph.node)
        """By number; None for what was removed."""
        self._keys: list[float] = [float(position) for position in range(len(self.nodes))]
        """By number: an order in which every value is made before it is taken."""
        self.initializers: list[Tensor | None] = list(getattr(scope.graph, "initializer", ()))
        self.count = len(self.nodes)
        """Nodes that were there at first; higher numbers are new."""
        self.owners = {child.owner for child in children}
        """Nodes that have subgraphs."""
        self.captured = {name for child in children for name in child.free_names()}
        """Names that subgraphs take from here or from further out."""
        self.outputs = {name for name in scope.output_names if name}
        self.inputs = set(scope.inputs)
        self.touched: set[int] = set()
        """Nodes that an edit was about; others keep off."""
        self.makers: dict[str, int] = {}
        self.takers: dict[str, list[int]] = {}
        for number, node in enumerate(scope.graph.node):
            self._register(number, node)
        self.tensors: dict[str, int] = {
            tensor.name: place for place, tensor in enumerate(self.initializers) if tensor and tensor.name
        }
        self._gone: set[str] = set()
        self.position: dict[int, int] = {}
        """By number: the position after `finish`."""
        self.tensor_position: dict[int, int] = {}
        self.final_address = ""
        """Where the graph stands after `finish`."""

    def free_names(self) -> set[str]:
        """Names that this graph takes from around it."""
        taken = {name for node in self.nodes if node for name in node.input} | self.outputs | self.captured
        return {
            name
            for name in taken
            if name and name not in self.makers and name not in self.inputs and name not in self.tensors
        }

    def _register(self, number: int, node: Node) -> None:
        for name in node.output:
            if name:
                self.makers[name] = number
        for name in set(node.input):
            if name:
                self.takers.setdefault(name, []).append(number)

    def _forget(self, number: int, node: Node) -> None:
        for name in node.output:
            if self.makers.get(name) == number:
                del self.makers[name]
        for name in set(node.input):
            if name:
                self.takers[name].remove(number)

    def node(self, number: int) -> Node:
        """The node of a number that is there."""
        node = self.nodes[number]
        assert node is not None
        return node

    def key(self, number: int) -> float:
        """Its place in an order in which every value is made before it is taken."""
        return self._keys[number]

    def change(self, number: int, node: Node) -> None:
        """Another node in the place of one; it may take only what is made before it."""
        self._forget(number, self.node(number))
        self.nodes[number] = node
        self._register(number, node)

    def remove(self, number: int) -> None:
        """Take a node away, and the initializers that only it took."""
        node = self.node(number)
        self._forget(number, node)
        self.nodes[number] = None
        self._gone.update(node.output)
        for name in set(node.input):
            self.drop_unused(name)

    def drop_unused(self, name: str) -> None:
        """Take an initializer away that nobody takes any more."""
        unused = not self.takers.get(name) and name not in self.outputs and name not in self.captured
        if name in self.tensors and unused and name not in self.inputs:
            self.initializers[self.tensors.pop(name)] = None
            self._gone.add(name)

    def add(self, node: Node, after: float, before: float, share: float = 0.5) -> int:
        """A new node between two places of the order -> its number."""
        self.nodes.append(node)
        self._keys.append(after + (before - after) * share)
        number = len(self.nodes) - 1
        self._register(number, node)
        self.touched.add(number)
        return number

    def add_tensor(self, tensor: Tensor) -> int:
        """A new initializer -> its number."""
        self.initializers.append(tensor)
        self.tensors[tensor.name or ""] = len(self.initializers) - 1
        return len(self.initializers) - 1

    def reconnect(self, numbers: Sequence[int], old: str, new: str) -> None:
        """Let nodes take another value wherever they took `old`."""
        for number in numbers:
            node = self.node(number)
            self.change(number, replace(node, input=tuple([new if name == old else name for name in node.input])))

    def is_constant(self, name: str) -> bool:
        """Whether a value is an initializer or the output of a Constant node."""
        if name in self.tensors:
            return True
        maker = self.makers.get(name)
        return maker is not None and self.node(maker).op_type == "Constant"

    def living(self) -> Iterator[int]:
        """The numbers of the nodes that are there."""
        return (number for number, node in enumerate(self.nodes) if node is not None)

    def finish(self, address: str, shuffle: random.Random | None) -> Graph | Function:
        """The graph as it now is, at an address; nodes in a random order that is valid, and tensors, if asked for."""
        self.final_address = address
        order = self._order(shuffle)
        self.position = {number: place for place, number in enumerate(order)}
        tensors = [number for number, tensor in enumerate(self.initializers) if tensor is not None]
        if shuffle is not None:
            shuffle.shuffle(tensors)
        self.tensor_position = {number: place for place, number in enumerate(tensors)}
        for child in sorted(self._children, key=lambda child: child.address):
            self._finish_child(child, shuffle)
        nodes = tuple([self.node(number) for number in order])
        infos = tuple([info for info in self._graph.value_info if info.name not in self._gone])
        if isinstance(self._graph, Function):
            return replace(self._graph, node=nodes, value_info=infos)
        kept = tuple([tensor for number in tensors if (tensor := self.initializers[number]) is not None])
        return replace(self._graph, node=nodes, initializer=kept, value_info=infos)

    def _finish_child(self, child: "Workbench", shuffle: random.Random | None) -> None:
        owner = self.node(child.owner)
        at = f"{self.final_address}/node/{self.position[child.owner]}/attribute/"
        before = f"{self.address}/node/{child.owner}/attribute/"
        attributes: list[Attribute] = []
        for part, attribute in zip(attribute_segments(owner.attribute), owner.attribute, strict=True):
            inside = f"{escape(part)}/"
            if child.address == f"{before}{inside}g":
                graph = child.finish(f"{at}{inside}g", shuffle)
                attribute = replace(attribute, g=graph)
            elif child.address.startswith(f"{before}{inside}graphs/"):
                place = int(child.address.rpartition("/")[2])
                graphs = list(attribute.graphs)
                finished = child.finish(f"{at}{inside}graphs/{place}", shuffle)
                assert isinstance(finished, Graph)
                graphs[place] = finished
                attribute = replace(attribute, graphs=tuple(graphs))
            attributes.append(attribute)
        self.nodes[child.owner] = replace(owner, attribute=tuple(attributes))

    def _order(self, shuffle: random.Random | None) -> list[int]:
        living = list(self.living())
        if shuffle is None:
            return sorted(living, key=self._keys.__getitem__)
        waits = dict.fromkeys(living, 0)
        followers: dict[int, list[int]] = {}
        for number in living:
            for before in self._before(number):
                waits[number] += 1
                followers.setdefault(before, []).append(number)
        ready = [(shuffle.random(), number) for number in living if not waits[number]]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            number = heapq.heappop(ready)[1]
            order.append(number)
            for follower in followers.get(number, ()):
                waits[follower] -= 1
                if not waits[follower]:
                    heapq.heappush(ready, (shuffle.random(), follower))
        assert len(order) == len(living), "the graph has a cycle"
        return order

    def _before(self, number: int) -> set[int]:
        names: set[str] = set(self.node(number).input)
        if number in self.owners:
            for child in self._children:
                if child.owner == number:
                    names |= child.free_names()
        return {self.makers[name] for name in names if name in self.makers}
