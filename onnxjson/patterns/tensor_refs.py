"""Tensors of a model by their name in a graph, or by their address."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxjson.model.addresses import find_element
from onnxjson.model.constants import is_constant_node
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Function, Model, SparseTensor, Tensor, ValueInfo
from onnxjson.model.errors import SelectorError
from onnxjson.model.index import Index, Scope


@dataclass(frozen=True, slots=True)
class TensorRef:
    """One tensor: a constant, an input, or a value that the model computes."""

    name: str
    address: str
    """The address of the constant if there is one, else of the input or of the output of a node."""
    tensor: Tensor | SparseTensor | None
    """The constant; None for other values."""
    scope: Scope | None
    """The graph in which the name is defined; None for a constant inside an attribute."""


def value_refs(scope: Scope, names: Sequence[str]) -> Iterator[TensorRef]:
    """Yield the tensors with names that a graph defines; all of them if several constants have one name by mistake."""
    several = _constants_of_one_name(scope) if names else {}
    for name in names:
        if name not in several:
            yield value_ref(scope, name)
        for address, tensor in several.get(name, ()):
            yield TensorRef(name, address, tensor, scope)


def _constants_of_one_name(scope: Scope) -> dict[str, list[tuple[str, Tensor | SparseTensor]]]:
    """Return the constants of a graph that share a name, dense before sparse, with their addresses."""
    found: dict[str, list[tuple[str, Tensor | SparseTensor]]] = {}
    if isinstance(scope.graph, Function):
        return found
    dense, sparse_ones = scope.initializers, scope.sparse_initializers
    counts = (len(scope.graph.initializer), len(scope.graph.sparse_initializer))
    if counts != (len(dense), len(sparse_ones)) or not dense.keys().isdisjoint(sparse_ones):
        for position, tensor in enumerate(scope.graph.initializer):
            found.setdefault(tensor.name or "", []).append((f"{scope.address}/initializer/{position}", tensor))
        for position, sparse in enumerate(scope.graph.sparse_initializer):
            name = sparse.values.name if sparse.values is not None else None
            found.setdefault(name or "", []).append((f"{scope.address}/sparse_initializer/{position}", sparse))
    return {name: constants for name, constants in found.items() if len(constants) > 1}


def value_ref(scope: Scope, name: str) -> TensorRef:
    """Return the tensor that a graph defines under a name."""
    constant = scope.initializer(name)
    if constant is not None:
        kind, positions = "initializer", scope.initializers
        if name not in positions:
            kind, positions = "sparse_initializer", scope.sparse_initializers
        return TensorRef(name, f"{scope.address}/{kind}/{positions[name]}", constant, scope)
    if name in scope.inputs:
        return TensorRef(name, f"{scope.address}/input/{scope.inputs[name]}", None, scope)
    position, slot = scope.producers[name]
    address = f"{scope.address}/node/{position}"
    node = scope.graph.node[position]
    if is_constant_node(node):
        for attribute in node.attribute:
            if attribute.name in ("value", "sparse_value") and (found := attribute.t or attribute.sparse_tensor):
                field = "t" if attribute.t is not None else "sparse_tensor"
                return TensorRef(name, f"{address}/attribute/{attribute.name}/{field}", found, scope)
    return TensorRef(name, f"{address}/output/{slot}", None, scope)


def tensor_at(model: Model, index: Index, wanted: str) -> TensorRef:
    """Return the tensor at an address: a constant, an input or output of a graph, an output of a node."""
    address, value = find_element(model, wanted)
    if isinstance(value, Attribute) and (value.t or value.sparse_tensor):
        address += "/t" if value.t is not None else "/sparse_tensor"
        value = value.t or value.sparse_tensor
    owner, _, _ = address.rpartition("/")
    parent, _, field = owner.rpartition("/")
    scopes = index.by_address
    if isinstance(value, Tensor | SparseTensor):
        named = value.values if isinstance(value, SparseTensor) else value
        name = (named.name if named is not None else None) or ""
        scope = scopes.get(parent) if field in ("initializer", "sparse_initializer") else None
        return TensorRef(name, address, value, scope if scope is not None and scope.defines(name) else None)
    scope, name = None, ""
    if isinstance(value, ValueInfo):
        scope, name = scopes.get(parent), value.name or ""
    elif isinstance(value, str) and field in ("input", "output"):
        scope, name = scopes.get(parent) or scopes.get(parent.rpartition("/node/")[0]), value
    defining_scope = Index.defining_scope(scope, name) if scope is not None else None
    if defining_scope is None:
        raise SelectorError(f"@{visible(wanted)} is {kind_of(value)}; the address of a node or tensor is expected")
    return value_ref(defining_scope, name)


def kind_of(value: object) -> str:
    """Return what is at an address: ``a Node``, ``a list of 3``."""
    if isinstance(value, tuple):
        return f"a list of {len(value):,}"
    if isinstance(value, str | bytes | int):
        return "a value"
    name = type(value).__name__
    return ("an " if name[0] in "AIO" else "a ") + name
