"""Dtypes that an edit makes others than the model says, followed from node to node before anything is changed.

Runtimes refuse a model whose value_info or outputs have another dtype than its nodes make, so what is said of such
values goes or follows. Shapes are not followed: `onnxjson rewrite infer-shapes --overwrite` puts them right.
"""

from collections import Counter, deque
from collections.abc import Mapping

from onnxjson.display import visible
from onnxjson.document import Node
from onnxjson.edits.operator_checks import Known, dtype_conflict, dtype_made, dtype_of
from onnxjson.edits.rewiring import Changes
from onnxjson.edits.workspace import NodeChange, Workspace
from onnxjson.errors import EditError
from onnxjson.index import Index, Scope, Use
from onnxjson.types import format_data_type

Value = tuple[Scope, str]
"""The graph that defines a value, and its name."""


class ResultTypes:
    """The values whose dtype a change makes another one.

    Args:
        workspace: has the model before the change.
        edit: what messages begin with.
        nodes: the nodes that change, by their graphs and positions.
        values: values in whose place others are taken, and the dtypes of those.

    Raises:
        EditError: a node, or a graph inside another one, is known to need the dtype that was there.
    """

    def __init__(
        self,
        workspace: Workspace,
        edit: str,
        nodes: Mapping[Scope, Mapping[int, NodeChange]],
        values: Mapping[Value, int | None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._edit = edit
        self._nodes = nodes
        self._given = dict(values or {})
        self._dtypes: dict[Value, int] = {}
        self._known: Known = {}
        self._pending: deque[tuple[Scope, int]] = deque()
        self._takers: dict[tuple[Scope, int], None] = {}
        self._times: Counter[Value] = Counter()
        # What a node makes has the dtype of one of its inputs, so only these can change it again.
        self._most_times = 1 + len(self._given) + sum(map(len, nodes.values()))
        self.notes: list[str] = []
        """What a person should hear of outputs of the model."""
        for (scope, name), dtype in self._given.items():
            self._found(scope, name, dtype)
        self._pending.extend([(scope, position) for scope, changed in nodes.items() for position in changed])
        self._follow()
        self._check_takers()

    def put(self, changes: Changes, *, without: Value | None = None) -> None:
        """Has what is said of the values follow, but for one that stays what it is."""
        for (scope, name), dtype in self._dtypes.items():
            if (scope, name) != without:
                changes.of(scope).dtypes[name] = dtype

    def make(self, *, without: Value | None = None) -> None:
        """Changes what is said of the values, and nothing else; no node moves."""
        if self._dtypes:
            changes = Changes(self._workspace)
            self.put(changes, without=without)
            changes.make()

    def _follow(self) -> None:
        while self._pending:
            scope, position = self._pending.popleft()
            node = self._node(scope, position)
            for slot, name in enumerate(() if node is None else node.output):
                if name and node is not None and not self._is_as_before(scope, position, node, slot):
                    self._found(scope, name, self._made(scope, node, slot))

    def _node(self, scope: Scope, position: int) -> Node | None:
        changed = self._nodes.get(scope, {})
        if position not in changed:
            return scope.graph.node[position]
        node = changed[position]
        return node if isinstance(node, Node) else None

    def _is_as_before(self, scope: Scope, position: int, node: Node, slot: int) -> bool:
        """Whether a node that changes makes the dtype that it made, which is quicker to see than what that is."""
        old = scope.graph.node[position]
        if node is old or self._dtypes:
            return False
        return dtype_made(self._workspace, scope, node, slot) == dtype_made(self._workspace, scope, old, slot)

    def _made(self, scope: Scope, node: Node, slot: int) -> int | None:
        found = dtype_made(self._workspace, scope, node, slot)
        if not isinstance(found, str):
            return found
        home = Index.home(scope, found)
        known = None if home is None else self._dtypes.get((home, found))
        return known or dtype_of(self._workspace, scope, found, self._known)

    def _found(self, scope: Scope, name: str, dtype: int | None) -> None:
        """Notes that a value has a dtype, if it had another one, and has those who take it looked at."""
        before = self._dtypes.get((scope, name)) or dtype_of(self._workspace, scope, name, self._known)
        if dtype is None or dtype == before:
            return
        self._times[scope, name] += 1
        if self._times[scope, name] > self._most_times:
            return  # a circle of nodes, in a model that is wrong
        self._dtypes[scope, name] = dtype
        for use in self._workspace.index.consumers(scope, name):
            if use.position is None:
                self._check_result(use, name, before, dtype)
            else:
                self._pending.append((use.scope, use.position))
                self._takers[use.scope, use.position] = None

    def _check_result(self, use: Use, name: str, before: int | None, dtype: int) -> None:
        if before is None:
            return
        if use.scope.kind == "main":
            self.notes.append(f'the output "{visible(name)}" is {format_data_type(dtype)} now')
        elif use.scope.kind == "subgraph":
            raise EditError(
                f'{self._edit}: {visible(use.address)}: "{visible(name)}" would be {format_data_type(dtype)}, and what '
                f"is around this graph takes {format_data_type(before)}; add-node puts a Cast between",
                use.address,
            )

    def _check_takers(self) -> None:
        names = {name: dtype for (_, name), dtype in self._dtypes.items()}
        for scope, position in self._takers:
            node = self._node(scope, position)
            if node is None:
                continue
            old = scope.graph.node[position]
            conflict = dtype_conflict(self._workspace, scope, node, names, self._known)
            if conflict is None or dtype_conflict(self._workspace, scope, old, None, self._known) is not None:
                continue
            place = f"{scope.address}/node/{position}"
            raise EditError(f"{self._edit}: {place}: {conflict}; add-node puts a Cast between", place)


def replace_nodes(
    workspace: Workspace, changes: Mapping[Scope, Mapping[int, NodeChange]], edit: str
) -> tuple[str, ...]:
    """Puts other nodes in the place of some, and what is said of the dtypes of what they make right.

    Returns:
        What a person should hear.

    Raises:
        EditError: see `ResultTypes`.
    """
    made_of = {scope: scope.graph.node for scope in changes}
    found = ResultTypes(workspace, edit, changes)
    found.make()
    workspace.replace_nodes_in(changes, made_of)
    return tuple(found.notes)


__all__ = ["ResultTypes", "Value", "replace_nodes"]
