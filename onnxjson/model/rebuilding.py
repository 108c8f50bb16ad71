"""Rebuild a model with some of its graphs changed, the inner before the outer; everything else is shared."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from onnxjson.model.document import Attribute, Function, Graph, Model, Node
from onnxjson.model.index import Index, Scope

Body = Graph | Function
"""A graph, or the body of a function."""


def rebuild(index: Index, change: Callable[[Scope, Body], Body]) -> Model:
    """Return the model of an index with `change` applied to all of its graphs and functions.

    Args:
        index: of the model, which stays as it is.
        change: is called with each graph, in which inner graphs are already changed and nodes have their old positions;
            it returns the graph itself where nothing changes.
    """
    new: dict[Scope, Body] = {}
    for scope in reversed(index.scopes):
        graph = scope.graph
        if any([new[child] is not child.graph for child in scope.children]):
            graph = _with_children(scope, new)
        new[scope] = change(scope, graph)
    return _assembled(index, new)


def _with_children(scope: Scope, new: Mapping[Scope, Body]) -> Body:
    """Return the graph of a scope with the new graphs in its attributes."""
    by_owner: dict[int | None, list[Scope]] = {}
    for child in scope.children:
        by_owner.setdefault(None if child.owner is None else child.owner.position, []).append(child)
    nodes = list(scope.graph.node)
    updates: dict[str, Any] = {}
    for position, children in by_owner.items():
        graphs = iter([new[child] for child in children])
        if position is None:
            assert isinstance(scope.graph, Function)
            updates["attribute_proto"] = _with_graphs(scope.graph.attribute_proto, graphs)
        else:
            attributes = _with_graphs(nodes[position].attribute, graphs)
            if attributes is not nodes[position].attribute:
                nodes[position] = msgspec.structs.replace(nodes[position], attribute=attributes)
    return msgspec.structs.replace(scope.graph, node=tuple(nodes), **updates)


def _with_graphs(attributes: tuple[Attribute, ...], graphs: Iterator[Any]) -> tuple[Attribute, ...]:
    """Replace the graphs in attributes by the next ones, in the order of an index."""
    changed = []
    for attribute in attributes:
        if attribute.g is None and not attribute.graphs:
            changed.append(attribute)
            continue
        first = None if attribute.g is None else next(graphs)
        more = tuple([next(graphs) for _ in attribute.graphs])
        same = first is attribute.g and all([a is b for a, b in zip(more, attribute.graphs, strict=True)])
        changed.append(attribute if same else msgspec.structs.replace(attribute, g=first, graphs=more))
    same = all([a is b for a, b in zip(changed, attributes, strict=True)])
    return attributes if same else tuple(changed)


def _assembled(index: Index, new: Mapping[Scope, Body]) -> Model:
    model = index.model
    updates: dict[str, Any] = {}
    functions: list[Any] = list(model.functions)
    steps = list(model.training_info)
    for scope in index.scopes:
        if scope.kind == "subgraph" or new[scope] is scope.graph:
            continue
        if scope.kind == "main":
            updates["graph"] = new[scope]
        elif scope.kind == "function":
            functions[int(scope.address.rpartition("/")[2])] = new[scope]
            updates["functions"] = functions
        else:
            _, _, position, field = scope.address.split("/")
            steps[int(position)] = msgspec.structs.replace(steps[int(position)], **{field: new[scope]})
            updates["training_info"] = steps
    if not updates:
        return model
    for field in ("functions", "training_info"):
        if field in updates:
            updates[field] = tuple(updates[field])
    return msgspec.structs.replace(model, **updates)


def with_nodes(graph: Body, change: Callable[[Node], Node]) -> Body:
    """Return the graph with `change` applied to its nodes, or itself where none changes."""
    nodes = tuple([change(node) for node in graph.node])
    if all([a is b for a, b in zip(nodes, graph.node, strict=True)]):
        return graph
    return msgspec.structs.replace(graph, node=nodes)
