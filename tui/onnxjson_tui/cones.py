"""The nodes of a graph that others depend on, and those that depend on others."""

from collections.abc import Iterator
from typing import Literal

from onnxjson.index import Index, Scope

Way = Literal["in", "out"]
"""Up to what a node depends on, or down to what depends on it."""


def cone(index: Index, scope: Scope, start: int, way: Way) -> list[int]:
    """The positions of the nodes of one graph from which a value leads to a node, or to which one leads from it.

    What graphs inside a node take from this graph, the node takes.

    Args:
        index: has the graph.
        scope: the graph.
        start: the position of the node, which is one of them.
        way: whether to go up or down.
    """
    inner = captured(index, scope)
    takers: dict[str, list[int]] = {}
    if way == "out":
        for position, names in inner.items():
            for name in names:
                takers.setdefault(name, []).append(position)
    nodes = scope.graph.node
    seen, pending = {start}, [start]
    while pending:
        position = pending.pop()
        node = nodes[position]
        following: list[int] = []
        if way == "in":
            for name in (*node.input, *inner.get(position, ())):
                maker = scope.makers.get(name)
                if maker is not None and name not in scope.inputs and name not in scope.initializers:
                    following.append(maker[0])
        else:
            for name in node.output:
                following += [taker for taker, _ in scope.takers.get(name, ()) if taker is not None]
                following += takers.get(name, ())
        for each in following:
            if each not in seen:
                seen.add(each)
                pending.append(each)
    return sorted(seen)


def captured(index: Index, scope: Scope) -> dict[int, list[str]]:
    """The names of a graph that graphs inside its nodes take, by the positions of those nodes."""
    found: dict[int, list[str]] = {}
    for owner, inner in _inside(scope):
        names = [name for name in inner.takers if not inner.defines(name) and index.home(inner, name) is scope]
        found.setdefault(owner, []).extend(names)
    return found


def _inside(scope: Scope) -> Iterator[tuple[int, Scope]]:
    """Every graph inside a graph, and the position of the node of that graph which has it."""
    for child in scope.children:
        if child.owner is None:
            continue
        pending = [child]
        while pending:
            inner = pending.pop()
            yield child.owner.position, inner
            pending += inner.children
