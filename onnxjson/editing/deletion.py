"""delete-node, the edit that removes nodes and connects their consumers to one of their inputs."""

from typing import Annotated, ClassVar, Final

from onnxjson.editing.declaration import Edit, Outcome, name_of
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.rewiring import Changes, Known, ResultTypes, Value, dtype_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import find_constant, is_constant
from onnxjson.model.display import listed, visible
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, NodeRef, Scope, Use
from onnxjson.model.types import format_data_type

__all__ = ["DeleteNode"]

_SHOWN: Final = 4


class DeleteNode(Edit, frozen=True, kw_only=True, eq=False, tag="delete-node"):
    """Delete nodes, and connect the consumers of their outputs to one of their inputs.

    If a node has only one input, or only one that is not a constant, that input replaces the node; otherwise, set
    `bypass`. A node whose outputs have no consumers needs no `bypass`. An output of the graph keeps its name: the
    producer of the input then produces it.
    """

    group: ClassVar = "nodes"
    words = ("node", "bypass")
    examples = (
        '{"edit": "delete-node", "node": "op:Identity"}',
        '{"edit": "delete-node", "node": "/head/Add", "bypass": 0}',
    )

    node: Annotated[str, Role("nodes"), about("The nodes: a name or a selector.")]
    bypass: Annotated[int | None, about("The position of the input that replaces the node, from 0.", ge=0)] = None

    def change(self, workspace: Workspace) -> Outcome:
        return _Deletion(workspace, workspace.select(self.node), self.bypass, name_of(self)).make()


class _Deletion:
    def __init__(self, workspace: Workspace, refs: tuple[NodeRef, ...], bypass: int | None, edit: str) -> None:
        self._workspace = workspace
        self._index = workspace.index
        self._bypass = bypass
        self._edit = edit
        self._refs = refs
        self._gone = set(refs)
        self._changes = Changes(workspace)
        self._known: Known = {}
        self._results: dict[tuple[Scope, str], str] = {}
        """Values that get the name of a graph output: their graph and old name -> the new name."""

    def make(self) -> Outcome:
        """Delete the nodes.

        Raises:
            EditError: the replacement of a node is ambiguous, or nothing can replace it.
        """
        remaining: list[tuple[Use, Scope, str]] = []
        refs = [ref for ref in self._refs if not self._is_inside_deleted(ref.scope)]
        for ref in refs:
            graph = self._changes.of(ref.scope)
            graph.nodes[ref.position] = None
            for name in ref.node.output:
                # In an invalid model the name may also be that of another value, which keeps its consumers.
                if name and self._index.producer(ref.scope, name) == ref:
                    graph.removed.add(name)
                    remaining += [(use, ref.scope, name) for use in self._remaining(ref.scope, name)]
        # Outputs of graphs first: they determine the names of values.
        for use, scope, name in remaining:
            if use.position is None:
                self._keep_result(use, scope, name)
        dtypes: dict[Value, int | None] = {}
        for use, scope, name in remaining:
            if use.position is not None:
                defining_scope, other = self._resolved(scope, name, use)
                self._changes.take(use, self._results.get((defining_scope, other), other))
                dtypes[scope, name] = dtype_of(self._workspace, defining_scope, other, self._known)
        removed = {ref.scope: self._changes.of(ref.scope).nodes for ref in refs}
        retyped = ResultTypes(self._workspace, self._edit, removed, dtypes)
        retyped.put(self._changes)
        self._rename_others({(use.scope, use.position, use.slot) for use, _, _ in remaining})
        self._changes.make()
        return Outcome(len(self._refs))

    def _is_inside_deleted(self, scope: Scope) -> bool:
        return any(each.owner in self._gone for each in scope.chain() if each.owner is not None)

    def _remaining(self, scope: Scope, name: str) -> list[Use]:
        """Return the uses of a value by elements that stay."""
        return [
            use
            for use in self._index.consumers(scope, name)
            if not self._is_inside_deleted(use.scope)
            and (use.position is None or NodeRef(use.scope, use.position) not in self._gone)
        ]

    def _resolved(self, scope: Scope, name: str, use: Use) -> tuple[Scope, str]:
        """Return the replacement of a value of a deleted node: the graph that defines it, and its name."""
        passed: set[NodeRef] = set()
        while (producer := self._index.producer(scope, name)) is not None and producer in self._gone:
            if producer in passed:
                raise self._refused(producer, "it is in a cycle of deleted nodes, so nothing can replace it")
            passed.add(producer)
            slot = self._bypassed(producer, name, use)
            other = producer.node.input[slot]
            self._check_dtypes(producer, name, other)
            defining_scope = Index.defining_scope(producer.scope, other)
            if defining_scope is None:
                break
            scope, name = defining_scope, other
        return scope, name

    def _bypassed(self, ref: NodeRef, name: str, use: Use) -> int:
        """Return the slot of the input that replaces an output of a node."""
        node = ref.node
        operator = visible(node.op_type or "")
        taken = f'"{visible(name)}" is used by {use.address}'
        if node.output[0] != name:
            slot = node.output.index(name)
            raise self._refused(
                ref, f"{taken}, and only the first output of {operator} can be replaced by an input, not output {slot}"
            )
        if self._bypass is not None:
            if self._bypass < len(node.input) and node.input[self._bypass]:
                return self._bypass
            raise self._refused(ref, f"{operator} has no input {self._bypass}; its inputs are {_listed(node.input)}")
        slots = [slot for slot, each in enumerate(node.input) if each]
        if len({node.input[slot] for slot in slots}) > 1:
            slots = [slot for slot in slots if find_constant(ref.scope, node.input[slot]) is None]
            # Where all are constants, the one that is computed takes the place.
            slots = [slot for slot in slots if not is_constant(ref.scope, node.input[slot])] or slots
        # The outputs of an If or a Loop come from its subgraphs, and are unrelated to its inputs.
        has_graphs = any([each.g is not None or each.graphs for each in node.attribute])
        if len({node.input[slot] for slot in slots}) == 1 and not has_graphs:
            return slots[0]
        if not any(node.input):
            raise self._refused(ref, f"{taken}, but {operator} has no input that could replace it; rewire that first")
        raise self._refused(
            ref, f"{taken}, and {operator} has the inputs {_listed(node.input)}; choose one with bypass"
        )

    def _check_dtypes(self, ref: NodeRef, output: str, other: str) -> None:
        """Raise if the dtypes of an output and its replacement are known to differ and the user gave no bypass."""
        produced, taken = (dtype_of(self._workspace, ref.scope, each, self._known) for each in (output, other))
        if self._bypass is None and produced and taken and produced != taken:
            raise self._refused(
                ref,
                f"it changes {format_data_type(taken)} to {format_data_type(produced)}; consumers of "
                f'"{visible(output)}" would get another dtype; give bypass=0 to allow it',
            )

    def _keep_result(self, use: Use, scope: Scope, name: str) -> None:
        """Give the replacement of a graph output the name of that output."""
        defining_scope, other = self._resolved(scope, name, use)
        producer = self._index.producer(defining_scope, other)
        is_taken = (defining_scope, other) in self._results or other in defining_scope.output_names
        if use.scope is not scope or defining_scope is not scope or producer is None or is_taken:
            ref = self._index.producer(scope, name)
            assert ref is not None
            raise self._refused(
                ref,
                f'its output "{visible(name)}" is an output of the graph, and "{visible(other)}" cannot get that name; '
                "replace-node can make the node an Identity",
            )
        self._results[defining_scope, other] = name

    def _rename_others(self, done: set[tuple[Scope, int | None, int]]) -> None:
        """Rename the producers and consumers of values that get another name."""
        for (scope, name), new in self._results.items():
            position, slot = scope.producers[name]
            graph = self._changes.of(scope)
            graph.outputs.setdefault(position, {})[slot] = new
            # The graph output states its type itself.
            graph.removed.discard(new)
            graph.removed.add(name)
            graph.renamed[name] = new
            for use in self._remaining(scope, name):
                if (use.scope, use.position, use.slot) not in done:
                    self._changes.take(use, new)

    def _refused(self, ref: NodeRef, why: str) -> EditError:
        name = f' "{visible(ref.node.name)}"' if ref.node.name else ""
        return EditError(f"{ref.address}{name}: {why}", ref.address, place=self._edit)


def _listed(names: tuple[str, ...]) -> str:
    shown = [f'{slot} "{visible(name)}"' for slot, name in enumerate(names) if name]
    return listed(shown, _SHOWN)
