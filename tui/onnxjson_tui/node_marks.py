"""The marks of nodes that are not as they are saved, for the list that is shown."""

from typing import TYPE_CHECKING

from onnxjson.document import Node
from onnxjson.index import NodeRef, Scope
from onnxjson_tui.saved_nodes import SavedModel, SavedNodes, is_as_saved, path_of_graph

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


class NodeMarks:
    """Knows the saved counterparts of the graphs that were shown since something is changed."""

    def __init__(self, bench: "Workbench") -> None:
        self._bench = bench
        self._saved: SavedModel | None = None
        self._wanted: tuple[SavedModel, str] | None = None
        """What a thread puts in order."""

    def of(self, scope: Scope | None) -> SavedNodes | None:
        """The counterpart of a graph; None where nothing is changed, or until a thread has it: then no node is marked.

        Args:
            scope: the graph as it is now.
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
            label = "finding out which nodes are changed"
            bench.jobs.start("marks", label, lambda: saved.find(path), lambda _: self._draw())
        return found

    def was(self, ref: NodeRef) -> Node | None:
        """A node as it is saved; None where it still is that, where it is new, or until a thread has found it.

        Args:
            ref: the node as it is now.
        """
        saved = self.of(ref.scope)
        found = None if saved is None else saved.counterpart(ref.scope.graph.node, ref.position)
        return None if found is None or is_as_saved(found, ref.node) else found

    def positions(self, scope: Scope) -> list[int]:
        """The marked nodes of a graph, ascending; looks at all of them, so a thread is the place for it.

        Args:
            scope: the graph as it is now.
        """
        base, known, nodes = self._bench.session.unsaved().base, self._saved, scope.graph.node
        model = known if known is not None and known.model is base else SavedModel(base)
        saved = model.find(path_of_graph(scope))
        return [] if saved is None else [each for each in range(len(nodes)) if saved.mark(nodes, each)]

    def _draw(self) -> None:
        self._bench.draw_marks()
        self._bench.settle()
