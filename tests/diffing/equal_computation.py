"""Nodes that provably compute the same: a forward numbering by exact equality, independent of the diff under test.

Two nodes of one model are in one class where they have the same operator, the same attributes and, slot by slot,
inputs of the same class. A constant is its type, dims and bytes; one without bytes equals only itself. What Identity,
or a Cast to the type that is there, makes is what it takes. Nodes of one class are interchangeable: a diff cannot be
asked which of them is which.
"""

import hashlib
from collections.abc import Hashable
from typing import Final

from onnxjson.model.document import Attribute, Model, Node, Tensor
from onnxjson.model.index import Index, Scope
from onnxjson.model.payloads import Payload
from onnxjson.model.tensors import raw_bytes

LONGEST_KEY: Final = 64
"""Bytes of a constant beyond which its digest stands for it."""

_MAKES: Final = {
    **dict.fromkeys(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Not", "IsNaN"), 9),
    **dict.fromkeys(("Shape", "Size"), 7),
}
"""Operators of the default domain whose output always has one type."""

Key = Hashable


class Classes:
    """The classes of the nodes of a model."""

    def __init__(self, model: Model) -> None:
        self._numbers: dict[Key, int] = {}
        self._values: dict[str, dict[str, Key]] = {}
        self.nodes: dict[str, list[int]] = {}
        """By the address of a graph: the class of each of its nodes."""
        self.scopes: dict[str, Scope] = {}
        """By address: all graphs but those of training."""
        for scope in Index(model).scopes:
            if scope.kind != "training":
                self.scopes[scope.address] = scope
                self._graph(scope)

    def value(self, address: str, name: str) -> Key:
        """The class of a value of a graph; equal for values that are provably equal."""
        return self._values[address].get(name, name)

    def names(self, address: str) -> set[str]:
        """What nodes of a graph make."""
        return set(self.scopes[address].producers)

    def makers(self, address: str) -> dict[Key, dict[str, int]]:
        """By the class of a value: the classes of the nodes of a graph that make it, by operator."""
        found: dict[Key, dict[str, int]] = {}
        for node, number in zip(self.scopes[address].graph.node, self.nodes[address], strict=True):
            for name in node.output:
                if name:
                    found.setdefault(self.value(address, name), {})[f"{node.domain or ''}:{node.op_type}"] = number
        return found

    def _graph(self, scope: Scope) -> None:
        around = {} if scope.outer is None else self._values[scope.outer.address]
        values: dict[str, Key] = dict(around)
        self._values[scope.address] = values
        for name, place in scope.inputs.items():
            values[name] = ("input", scope.address, place)
        for name in scope.initializers:
            if name not in scope.inputs:
                tensor = scope.initializer(name)
                values[name] = _constant(tensor) if isinstance(tensor, Tensor) else None
                if values[name] is None:
                    values[name] = ("unknown", scope.address, name)
        owners = {child.owner.position for child in scope.children if child.owner is not None}
        classes: list[int] = []
        for place, node in enumerate(scope.graph.node):
            key = (scope.address, place) if place in owners else self._key(node, values)
            number = self._numbers.setdefault(key, len(self._numbers))
            classes.append(number)
            self._define(scope, node, number, values)
        self.nodes[scope.address] = classes

    @staticmethod
    def _define(scope: Scope, node: Node, number: int, values: dict[str, Key]) -> None:
        if len(node.input) == len(node.output) == 1 and _changes_nothing(scope, node):
            values[node.output[0]] = values.get(node.input[0], node.input[0])
            return
        constant = None
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].t is not None:
            constant = _constant(node.attribute[0].t)
        for slot, name in enumerate(node.output):
            if name:
                values[name] = (number, slot) if constant is None else constant

    @staticmethod
    def _key(node: Node, values: dict[str, Key]) -> Key:
        attributes: Key = ()
        if node.attribute:
            attributes = tuple(sorted([(each.name or "", _attribute(each)) for each in node.attribute], key=_first))
        inputs = tuple([values.get(name, name) for name in node.input])
        return node.op_type, node.domain or "", node.overload or "", attributes, inputs, len(node.output)


def _changes_nothing(scope: Scope, node: Node) -> bool:
    """Whether a node is Identity, or a Cast to the type that its input is known to have."""
    if node.domain or node.op_type not in ("Identity", "Cast"):
        return False
    if node.op_type == "Identity":
        return True
    said = Index.type_of(scope, node.input[0])
    known = None if said is None or said.tensor_type is None else said.tensor_type.elem_type
    if known is None and node.input[0] in scope.producers:
        known = _MAKES.get(scope.graph.node[scope.producers[node.input[0]][0]].op_type or "")
    return known is not None and any([each.name == "to" and each.i == known for each in node.attribute])


def _first(pair: tuple[str, Key]) -> str:
    return pair[0]


def _attribute(attribute: Attribute) -> Key:
    if attribute.t is not None:
        constant = _constant(attribute.t)
        return id(attribute) if constant is None else constant
    return attribute


def _constant(tensor: Tensor) -> Key:
    """Type, dims and bytes of a tensor; None where the bytes are not here."""
    if tensor.string_data:
        return tensor.data_type, tensor.dims, tensor.string_data
    stored = raw_bytes(tensor)
    if stored is None:
        return None
    data = stored[0].read() if isinstance(stored[0], Payload) else stored[0]
    content = data if len(data) <= LONGEST_KEY else hashlib.sha256(data).digest()
    return tensor.data_type, tensor.dims, content
