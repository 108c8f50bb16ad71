"""Marks of changed and new nodes in the list of nodes."""

from typing import Protocol

from onnxjson.model.document import Node
from onnxjson.model.index import NodeRef, Scope
from onnxjson_tui.session.saved_nodes import SavedModel, SavedNodes, is_as_saved, path_of_graph
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.jobs import Jobs


class MarkedList(Protocol):
    """The list of nodes that is marked."""

    session: Session
    jobs: Jobs

    @property
    def is_big(self) -> bool:
        """Whether work on all nodes is done in a thread."""
        ...

    def draw_marks(self) -> None:
        """Draw the marks again."""

    def settle(self) -> None:
        """Show the node under the cursor in the inspector and on the page of the drawer."""


class NodeMarks:
    """Finds the saved counterparts of the graphs that are shown."""

    def __init__(self, bench: MarkedList) -> None:
        self._bench = bench
        self._saved: SavedModel | None = None
        self._wanted: tuple[SavedModel, str] | None = None
        """The graph that a thread is indexing."""

    def of(self, scope: Scope | None) -> SavedNodes | None:
        """Return the counterpart of a graph; None if nothing changed, or until a thread has found it.

        Args:
            scope: the current graph.
        """
        bench = self._bench
        if scope is None or not bench.session.is_changed:
            return None
        base = bench.session.unsaved().base
        if self._saved is None or self._saved.model is not base:
            self._saved = SavedModel(base)
        saved, path = self._saved, path_of_graph(scope)
        if not bench.is_big:
            return saved.find(path)
        found = saved.find(path, may_wait=False)
        wanted = (saved, scope.address)
        if found is None and (wanted != self._wanted or all(job.group != "marks" for job in bench.jobs.running)):
            self._wanted = wanted
            label = "finding changed nodes"
            bench.jobs.start("marks", label, lambda: saved.find(path), lambda _: self._draw())
        return found

    def was(self, ref: NodeRef) -> Node | None:
        """Return the saved version of a node; None if it is unchanged or new, or until a thread has found it.

        Args:
            ref: the current node.
        """
        saved = self.of(ref.scope)
        found = None if saved is None else saved.counterpart(ref.scope.graph.node, ref.position)
        return None if found is None or is_as_saved(found, ref.node) else found

    def positions(self, scope: Scope) -> list[int]:
        """Return the positions of marked nodes of a graph, ascending; compares all nodes, so call it in a thread.

        Args:
            scope: the current graph.
        """
        base, known, nodes = self._bench.session.unsaved().base, self._saved, scope.graph.node
        model = known if known is not None and known.model is base else SavedModel(base)
        saved = model.find(path_of_graph(scope))
        return [] if saved is None else [each for each in range(len(nodes)) if saved.mark(nodes, each)]

    def _draw(self) -> None:
        self._bench.draw_marks()
        self._bench.settle()
