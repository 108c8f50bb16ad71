"""The same graphs, nodes and values in two versions of a model, recognised by what nodes produce and by their names.

An edit or native code made the newer version. For models that were made separately, `onnxjson.diffing.matching` finds
what corresponds by structure; for a patch, `Patch.where` knows it.
"""

from collections.abc import Iterator

from onnxjson.model.index import Index, NodeRef, Scope


class Correspondence:
    """What corresponds in two versions of a model."""

    def __init__(self, old: Index, new: Index) -> None:
        self.old = old
        self.new = new
        before = {key: scope for scope, key in _keys(old)}
        self.twins = {scope: before[key] for scope, key in _keys(new) if key in before}
        """The graph before, by each graph; subgraphs correspond if the nodes around them produce the same value."""

    def counterpart(self, scope: Scope, position: int) -> NodeRef | None:
        """Return the old node that produces the same values, or has the same name."""
        old_scope, node = self.twins.get(scope), scope.graph.node[position]
        if old_scope is None:
            return None
        old = old_scope.graph.node[position] if position < len(old_scope.graph.node) else None
        if old is node or (old is not None and node.output and old.output == node.output):
            return NodeRef(old_scope, position)
        place = next((old_scope.producers[name][0] for name in node.output if name in old_scope.producers), None)
        if place is None and node.name:
            place = next(
                (each.position for each in self.old.nodes_with("name", node.name) if each.scope is old_scope), None
            )
        return None if place is None else NodeRef(old_scope, place)

    def former_name(self, scope: Scope, name: str) -> str:
        """Return the name that a value had before."""
        there = self.twins.get(scope)
        if there is not None and name not in there.producers and name in scope.producers:
            position, slot = scope.producers[name]
            twin = self.counterpart(scope, position)
            if twin is not None and slot < len(twin.node.output):
                return twin.node.output[slot]
        return name


def _keys(index: Index) -> Iterator[tuple[Scope, object]]:
    keys: dict[Scope, object] = {}
    for scope in index.scopes:
        key: object = scope.address
        if scope.owner is not None:
            around, node = scope.owner.scope, scope.owner.node
            key = (keys[around], *node.output[:1], scope.address.removeprefix(scope.owner.address))
        keys[scope] = key
        yield scope, key
