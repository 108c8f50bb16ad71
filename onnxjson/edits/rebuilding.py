"""A model with some of its graphs made anew, the inner before the outer; everything else is shared."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from onnxjson.document import Attribute, Function, Graph, Model, Node, Record
from onnxjson.index import Index, Scope
from onnxjson.walking import fields_leading_to

Kind = TypeVar("Kind", bound=Record)
Whole = TypeVar("Whole", bound=Record)

Body = Graph | Function
"""A graph, or the body of a function."""


def rebuilt(index: Index, change: Callable[[Scope, Body], Body]) -> Model:
    """The model of an index with `change` applied to all of its graphs and functions.

    Args:
        index: of the model, which stays as it is.
        change: is given each graph, those inside it already changed (positions of nodes are as they were), and gives
            the graph itself where nothing is to change.
    """
    new: dict[Scope, Body] = {}
    for scope in reversed(index.scopes):
        graph = scope.graph
        if any([new[child] is not child.graph for child in scope.children]):
            graph = _with_children(scope, new)
        new[scope] = change(scope, graph)
    return _assembled(index, new)


def _with_children(scope: Scope, new: Mapping[Scope, Body]) -> Body:
    """The graph of a scope in which the graphs of its attributes are the new ones."""
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
    """The attributes with the next graphs in the places of theirs, in the order in which an index finds them."""
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
    """The graph with `change` applied to its nodes; itself where none changes."""
    nodes = tuple([change(node) for node in graph.node])
    if all([a is b for a, b in zip(nodes, graph.node, strict=True)]):
        return graph
    return msgspec.structs.replace(graph, node=nodes)


def replace_records(
    root: Whole, kind: type[Kind] | tuple[type[Kind], ...], change: Callable[[Kind], Kind], *, shared: bool = True
) -> Whole:
    """A record with `change` applied to every record of a kind in it, the inner before the outer.

    Args:
        root: stays as it is.
        kind: of the records that may change, or several kinds; `root` itself may be one.
        change: gives the record itself where nothing changes.
        shared: whether `change` is asked once for a list that several records share; else each time.
    """
    kinds: tuple[type[Record], ...] = kind if isinstance(kind, tuple) else (kind,)
    seen: dict[int, tuple[Any, ...]] = {}
    plans: dict[type[Record], tuple[tuple[str, bool], ...]] = {}

    def members(values: tuple[Any, ...]) -> tuple[Any, ...]:
        # Identity stands for the list, and is stable because the root keeps all of them alive.
        known = seen.get(id(values))
        if known is None:
            new = [visited(value) for value in values]
            same = all([a is b for a, b in zip(new, values, strict=True)])
            known = values if same else tuple(new)
            if shared or same:
                seen[id(values)] = known
        return known

    def visited(record: Any) -> Any:
        updates: dict[str, Any] = {}
        message: type[Record] = type(record)
        plan = plans.get(message)
        if plan is None:
            fields = [field for each in kinds for field in fields_leading_to(message, each)]
            plan = plans[message] = tuple(dict.fromkeys(fields))
        for name, repeated in plan:
            value = getattr(record, name)
            if not value:
                continue
            new = members(value) if repeated else visited(value)
            if new is not value:
                updates[name] = new
        if updates:
            record = msgspec.structs.replace(record, **updates)
        return change(record) if isinstance(record, kinds) else record  # type: ignore[arg-type]

    result: Whole = visited(root)
    return result
