"""The outline of a text: graphs, the scopes in the names of their nodes, nodes with their subgraphs, and values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from onnxjson.codecs.reading.tree import Key
from onnxjson.model.display import counted
from onnxjson.serving.text_names import Named, graph_of

_DEEPEST: Final = 16
"""Parts of a name by which nodes are put under scopes; a longer name is hostile."""

_MOST: Final = 5_000
"""Nodes of a text that are all in the outline."""

_MOST_EACH: Final = 200


@dataclass
class Entry:
    """One line of the outline."""

    name: str
    kind: Literal["graph", "scope", "node", "value"]
    start: int
    end: int
    detail: str = ""
    children: "list[Entry]" = field(default_factory=list)

    @property
    def label(self) -> str:
        """Its name, or its operator without one."""
        return self.name or self.detail or "(no name)"

    def everything(self) -> "Iterator[Entry]":
        """Itself, and what is in it."""
        yield self
        for each in self.children:
            yield from each.everything()

    def operators(self) -> Iterator[str]:
        """The operators of all nodes in it."""
        return (each.detail for each in self.everything() if each.kind == "node")


def outline(names: Sequence[Named]) -> list[Entry]:
    """Return the graphs of a text with what is in them."""
    nodes: dict[tuple[Key, ...], Entry] = {}
    graphs: dict[tuple[Key, ...], Entry] = {}
    for each in names:
        graph = graph_of(each.path)
        top = graphs.setdefault(graph, Entry("/".join(map(str, graph)), "graph", each.start, each.end))
        top.end = max(top.end, each.end)
        inner = each.path[len(graph) :]
        if inner[:1] == ("node",):
            path = each.path[: len(graph) + 2]
            if path not in nodes:
                nodes[path] = Entry("", "node", each.start, each.end)
                top.children.append(nodes[path])
            node = nodes[path]
            node.end = max(node.end, each.end)
            if each.kind == "operator":
                node.detail = each.name
            elif each.kind == "node":
                node.name = each.name
        elif inner[-1:] == ("name",) and inner[0] != "value_info":
            top.children.append(Entry(each.name, "value", each.start, each.end, str(inner[0])))
    for path, graph_entry in sorted(graphs.items(), key=lambda each: -len(each[0])):
        graph_entry.children = _by_scope(graph_entry.children, 1)
        owner = next((nodes[path[:end]] for end in range(len(path), 1, -1) if path[:end] in nodes), None)
        if owner is not None:
            owner.children.append(graph_entry)
            owner.end = max(owner.end, graph_entry.end)
    if len(nodes) > _MOST:
        for entry in (*graphs.values(), *nodes.values()):
            _cut(entry)
    return [each for path, each in graphs.items() if not any(path[:end] in nodes for end in range(2, len(path)))]


def _cut(entry: Entry) -> None:
    """Keep the first entries at each level; the detail of a scope has its number of nodes."""
    more = len(entry.children) - _MOST_EACH
    if more > 0:
        last = entry.children[_MOST_EACH]
        entry.children[_MOST_EACH:] = [Entry(f"and {more:,} more", "scope", last.start, entry.end)]
    for each in entry.children:
        if each.kind == "scope":
            _cut(each)


def _by_scope(entries: list[Entry], depth: int) -> list[Entry]:
    """Nodes whose names begin with the same parts between slashes, under an entry of their own."""
    found: list[Entry] = []
    scopes: dict[str, Entry] = {}
    for each in entries:
        parts = each.name.split("/")
        if each.kind != "node" or not each.name.startswith("/") or not depth < len(parts) - 1 < _DEEPEST:
            found.append(each)
            continue
        name = "/".join(parts[: depth + 1])
        if name not in scopes:
            scopes[name] = Entry(name, "scope", each.start, each.end)
            found.append(scopes[name])
        scopes[name].end = max(scopes[name].end, each.end)
        scopes[name].children.append(each)
    seen: dict[tuple[str, ...], str] = {}
    for name, scope in scopes.items():
        operators = tuple(scope.operators())
        like = seen.setdefault(operators, name)
        same = f", as {like}" if like != name and len(operators) > 1 else ""
        scope.detail = counted(len(operators), "node") + same
        scope.children = _by_scope(scope.children, depth + 1)
    return found
