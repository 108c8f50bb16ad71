"""The process in which native code of onnx runs, and what its results keep of a model.

The libraries convert a model to their own form and back. They lose metadata of nodes, quantization annotations, sparse
initializers and unknown fields, sort attributes, and add types that are not wanted. `reconcile` restores all of it:
nodes are recognised by the names of their outputs, which native code keeps; a node that stays keeps its record, or all
of it except for the changed computation.
"""

import atexit
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

from msgspec.structs import replace

from onnxjson.model.correspondence import Correspondence
from onnxjson.model.document import Attribute, Graph, Model, Node, Tensor, Type, ValueInfo
from onnxjson.model.errors import Finding
from onnxjson.model.index import Index, Scope
from onnxjson.model.tensors import is_external, raw_bytes
from onnxjson.running.light_model import LightModel
from onnxjson.running.worker import Worker

Counts = Counter[Literal["changed", "added", "removed"]]
"""Number of nodes that changed, including those in subgraphs; changed: with another computation than before."""


@cache
def worker() -> Worker:
    """Return the sandbox process of this program, which its first job starts."""
    found = Worker()
    atexit.register(found.close)
    return found


def check(model: Model) -> tuple[Finding, ...]:
    """Return the findings of onnx's checker for a model; big constants and shapes are not checked.

    Raises:
        WorkerError: the checker crashed or hung.
        EditError: even without its big constants the model has more bytes than native code can read.
    """
    return worker().check(LightModel(model, None, "empty").data)


def reconcile(before: Graph, after: Graph, counts: Counts) -> Graph:
    """Return what native code made of a graph, with all that it does not affect; count the changed nodes."""
    return _Reconciliation(Index(Model(graph=before)), Index(Model(graph=after)), counts).graph(before, after)


class _Reconciliation(Correspondence):
    """A model with all that native code does not affect."""

    def __init__(self, old: Index, new: Index, counts: Counts) -> None:
        super().__init__(old, new)
        self._counts = counts

    def graph(self, before: Graph, after: Graph, scope: Scope | None = None) -> Graph:
        """Return a graph that native code made, `scope` if it is not the main one, with the records before."""
        scope = scope or self.new.scopes[0]
        nodes: list[Node] = []
        kept: set[int] = set()
        for position, node in enumerate(after.node):
            old = self.counterpart(scope, position)
            if old is None or old.position in kept or not _is_same_operator(old.node, node):
                nodes.append(node)
                self._counts["added"] += 1
                continue
            kept.add(old.position)
            nodes.append(self._node(old.node, node, {id(each.graph): each for each in scope.bodies.get(position, ())}))
            self._counts["changed"] += nodes[-1] is not old.node
        self._counts["removed"] += len(before.node) - len(kept)
        if [id(each) for each in nodes] == [id(each) for each in before.node]:
            return before
        return replace(
            before,
            node=tuple(nodes),
            initializer=_initializers(before.initializer, after.initializer),
            output=_typed(before.output, after),
            value_info=_value_info(before, after, nodes),
        )

    def _node(self, old: Node, new: Node, inner: Mapping[int, Scope]) -> Node:
        by_name = {each.name: each for each in new.attribute}
        attributes: list[Attribute] = []
        for attribute in old.attribute:
            now = by_name.pop(attribute.name, None)
            if now is not None:
                attributes.append(self._attribute(attribute, now, inner))
        # Attribute names are unique in a valid node; attributes that the libraries removed stay removed.
        attributes += [each for each in new.attribute if each.name in by_name]
        same = [id(each) for each in attributes] == [id(each) for each in old.attribute]
        inputs = new.input if _used(new.input) != _used(old.input) else old.input
        outputs = new.output if _used(new.output) != _used(old.output) else old.output
        if same and inputs is old.input and outputs is old.output:
            return old
        fields = {"input": inputs, "output": outputs, "attribute": old.attribute if same else tuple(attributes)}
        return replace(old, **fields)

    def _attribute(self, old: Attribute, new: Attribute, inner: Mapping[int, Scope]) -> Attribute:
        if old.g is not None and new.g is not None:
            graph = self.graph(old.g, new.g, inner[id(new.g)])
            return old if graph is old.g else replace(old, g=graph)
        if old.graphs and len(old.graphs) == len(new.graphs):
            pairs = zip(old.graphs, new.graphs, strict=True)
            graphs = [self.graph(before, after, inner[id(after)]) for before, after in pairs]
            same = all(graph is each for graph, each in zip(graphs, old.graphs, strict=True))
            return old if same else replace(old, graphs=tuple(graphs))
        if _plain(old) == _plain(new):
            return old
        return replace(new, doc_string=old.doc_string, unknown_fields=old.unknown_fields)


def _is_same_operator(one: Node, other: Node) -> bool:
    same = one.op_type == other.op_type and (one.overload or "") == (other.overload or "")
    return same and (one.domain or "") == (other.domain or "")


def _used(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without empty ones at the end."""
    end = len(names)
    while end and not names[end - 1]:
        end -= 1
    return tuple(names[:end])


def _plain(attribute: Attribute) -> Attribute:
    """Return an attribute without the fields that do not affect the computation."""
    tensor = attribute.t and replace(attribute.t, name=None, doc_string=None, metadata_props=(), unknown_fields=b"")
    return replace(attribute, doc_string=None, unknown_fields=b"", t=tensor, type=None)


def _initializers(before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the initializers that are still there, in their order and with their metadata, then new ones."""
    added = {each.name: each for each in after}
    kept = []
    for tensor in before:
        current = added.pop(tensor.name, None)
        if current is None:
            continue
        kept.append(tensor if tensor is current or _is_same_tensor(tensor, current) else current)
    initializers = (*kept, *[each for each in after if each.name in added])
    return before if initializers == before else initializers


def _is_same_tensor(one: Tensor, other: Tensor) -> bool:
    same_kind = one.dims == other.dims and one.data_type == other.data_type
    return same_kind and _payload(one) == _payload(other)


def _payload(tensor: Tensor) -> tuple[object, ...]:
    """Return the content of a tensor, inline or external."""
    if is_external(tensor):
        return ("file", tensor.external_data)
    found = raw_bytes(tensor)
    return ("bytes", found[0]) if found is not None else ("strings", tensor.string_data)


def _typed(before: tuple[ValueInfo, ...], after: Graph) -> tuple[ValueInfo, ...]:
    """Replace types that are wrong now; types that the libraries added are left out."""
    stated = {each.name: each.type for each in (*after.value_info, *after.output)}
    return tuple([_with_type(each, stated.get(each.name)) for each in before])


def _with_type(value: ValueInfo, now: Type | None) -> ValueInfo:
    dtypes = [each.tensor_type.elem_type if each and each.tensor_type else None for each in (value.type, now)]
    return replace(value, type=now) if all(dtypes) and dtypes[0] != dtypes[1] else value


def _value_info(before: Graph, after: Graph, nodes: Sequence[Node]) -> tuple[ValueInfo, ...]:
    """Return value_info of the values that still exist."""
    made = {name for node in nodes for name in node.output}
    removed = {name for node in before.node for name in node.output} - made
    return _typed(tuple([each for each in before.value_info if each.name not in removed]), after)
