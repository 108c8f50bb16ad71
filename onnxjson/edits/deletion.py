"""Nodes taken out of a model; whoever took what they made takes what they took."""

from typing import Annotated, Final

from msgspec import Meta

from onnxjson.display import visible
from onnxjson.document import Type
from onnxjson.edits.constant_types import type_of_constant
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.operator_checks import Known, dtype_of
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.result_types import ResultTypes, Value
from onnxjson.edits.rewiring import Changes
from onnxjson.edits.workspace import NodeChange, Workspace
from onnxjson.errors import EditError
from onnxjson.index import Index, NodeRef, Scope, Use
from onnxjson.operators import plain_domain
from onnxjson.types import format_data_type, format_type

_SHOWN: Final = 4


class DeleteNode(Edit, frozen=True, kw_only=True, eq=False, tag="delete-node"):
    """Delete nodes; whoever took what they made takes one of their inputs instead.

    Which one is clear where a node has only one input that is no constant; else bypass says it. A node whose outputs
    nobody takes needs none. An output of the graph keeps its name: what makes the input gets it.
    """

    words = ("node", "bypass")
    examples = (
        '{"edit": "delete-node", "node": "op:Identity"}',
        '{"edit": "delete-node", "node": "/head/Add", "bypass": 0}',
    )

    node: Annotated[str, Role("nodes"), Meta(description="The nodes: a name or a selector.")]
    bypass: Annotated[
        int | None, Meta(ge=0, description="The position of the input that takes the node's place, from 0.")
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        return _Deletion(workspace, workspace.select(self.node), self.bypass, name_of(self)).make()


class _Deletion:
    """Nodes of one model that are deleted together."""

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
        """Values that get the name of an output of the graph: their graph and old name -> the new name."""

    def make(self) -> Outcome:
        """Makes the deletion.

        Raises:
            EditError: it is not clear what takes the place of a node, or nothing can.
        """
        remaining: list[tuple[Use, Scope, str]] = []
        refs = [ref for ref in self._refs if not self._is_inside_deleted(ref.scope)]
        for ref in refs:
            graph = self._changes.of(ref.scope)
            graph.nodes[ref.position] = None
            for name in ref.node.output:
                # In a wrong model the name may be that of an input or of another node, which whoever takes it means.
                if name and self._index.producer(ref.scope, name) == ref:
                    graph.gone.add(name)
                    remaining += [(use, ref.scope, name) for use in self._remaining(ref.scope, name)]
        # The outputs of graphs first: they say which names values get.
        for use, scope, name in remaining:
            if use.position is None:
                self._keep_result(use, scope, name)
        dtypes: dict[Value, int | None] = {}
        for use, scope, name in remaining:
            if use.position is not None:
                home, other = self._resolved(scope, name, use)
                self._changes.take(use, self._final(home, other))
                dtypes[scope, name] = dtype_of(self._workspace, home, other, self._known)
        gone: dict[Scope, dict[int, NodeChange]] = {}
        for ref in refs:
            gone.setdefault(ref.scope, {})[ref.position] = None
        retyped = ResultTypes(self._workspace, self._edit, gone, dtypes)
        retyped.put(self._changes)
        self._rename_others({(use.scope, use.position, use.slot) for use, _, _ in remaining})
        self._changes.make()
        return Outcome(len(self._refs), tuple(retyped.notes))

    def _is_inside_deleted(self, scope: Scope) -> bool:
        return any(each.owner in self._gone for each in scope.chain() if each.owner is not None)

    def _remaining(self, scope: Scope, name: str) -> list[Use]:
        """The places that take a value and stay."""
        found = []
        for use in self._index.consumers(scope, name):
            if self._is_inside_deleted(use.scope):
                continue
            if use.position is not None and NodeRef(use.scope, use.position) in self._gone:
                continue
            found.append(use)
        return found

    def _resolved(self, scope: Scope, name: str, use: Use) -> tuple[Scope, str]:
        """The value that takes the place of one that goes: the graph that defines it, and its name."""
        passed: set[NodeRef] = set()
        while (producer := self._index.producer(scope, name)) is not None and producer in self._gone:
            if producer in passed:
                raise self._refused(producer, "it is in a circle of nodes that go, so nothing can take its place")
            passed.add(producer)
            slot = self._bypassed(producer, name, use)
            other = producer.node.input[slot]
            self._check_dtypes(producer, name, other)
            home = Index.home(producer.scope, other)
            if home is None:
                break
            scope, name = home, other
        return scope, name

    def _bypassed(self, ref: NodeRef, name: str, use: Use) -> int:
        """The input of a node that takes the place of one of its outputs.

        Raises:
            EditError: there is none, or several could.
        """
        node = ref.node
        operator = visible(node.op_type or "")
        taken = f'"{visible(name)}" is taken by {use.address}'
        if node.output[0] != name:
            slot = node.output.index(name)
            raise self._refused(
                ref, f"{taken}, and only the first output of {operator} has an input in its place, not output {slot}"
            )
        if self._bypass is not None:
            if self._bypass < len(node.input) and node.input[self._bypass]:
                return self._bypass
            raise self._refused(ref, f"{operator} has no input {self._bypass}; it takes {_listed(node.input)}")
        slots = [slot for slot, each in enumerate(node.input) if each and not self._is_constant(ref.scope, each)]
        # What an If or a Loop makes comes from its subgraphs; a condition is nothing like it.
        has_graphs = any([each.g is not None or each.graphs for each in node.attribute])
        if len({node.input[slot] for slot in slots}) == 1 and not has_graphs:
            return slots[0]
        if not any(node.input):
            raise self._refused(ref, f"{taken}, and {operator} has no input to put in its place; rewire that first")
        raise self._refused(
            ref,
            f"{taken}, and {operator} takes {_listed(node.input)}; bypass says which of them takes its place",
        )

    def _is_constant(self, scope: Scope, name: str) -> bool:
        home = Index.home(scope, name)
        if home is None:
            return False
        if name in home.initializers or name in home.sparse_initializers:
            return True
        producer = self._index.producer(home, name)
        return producer is not None and producer.node.op_type == "Constant" and not plain_domain(producer.node.domain)

    def _check_dtypes(self, ref: NodeRef, output: str, other: str) -> None:
        """Do nothing if an input can stand for an output, as far as their dtypes are known, or the person chose it."""
        made, taken = (dtype_of(self._workspace, ref.scope, each, self._known) for each in (output, other))
        if self._bypass is None and made and taken and made != taken:
            raise self._refused(
                ref,
                f'it makes {format_data_type(made)} of {format_data_type(taken)}, and who takes "{visible(output)}" '
                "would get another dtype; bypass=0 says that this is meant",
            )

    def _keep_result(self, use: Use, scope: Scope, name: str) -> None:
        """Gives the value that takes the place of an output of a graph the name of that output."""
        home, other = self._resolved(scope, name, use)
        producer = self._index.producer(home, other)
        is_taken = (home, other) in self._results or other in home.output_names
        if use.scope is not scope or home is not scope or producer is None or is_taken:
            ref = self._index.producer(scope, name)
            assert ref is not None
            raise self._refused(
                ref,
                f'its output "{visible(name)}" is an output of the graph, and "{visible(other)}" cannot get that name; '
                "replace-node puts an Identity in its place",
            )
        self._check_result(scope, name, home, other)
        self._results[home, other] = name

    def _check_result(self, scope: Scope, name: str, home: Scope, other: str) -> None:
        """Do nothing if a value can be the output of a graph, as far as their types are known.

        Raises:
            EditError: it is of another dtype or shape.
        """
        said = Index.type_of(scope, name)
        dtype = dtype_of(self._workspace, home, other, self._known)
        elem_type = said.tensor_type.elem_type if said is not None and said.tensor_type is not None else None
        known = Index.type_of(home, other)
        constant = home.initializer(other)
        if constant is not None:
            known = type_of_constant(constant)
        is_other_shape = said is not None and known is not None and not fits(said, known)
        if is_other_shape or (elem_type and dtype and elem_type != dtype):
            ref = self._index.producer(scope, name)
            assert ref is not None
            shown = f" ({format_type(known)})" if known is not None else ""
            wanted = f" ({format_type(said)})" if said is not None else ""
            raise self._refused(
                ref,
                f'the output "{visible(name)}"{wanted} would be "{visible(other)}"{shown}, of another type; '
                "set-shape or remove-output comes first",
            )

    def _final(self, scope: Scope, name: str) -> str:
        return self._results.get((scope, name), name)

    def _rename_others(self, done: set[tuple[Scope, int | None, int]]) -> None:
        """Has everything that makes or takes a value that gets another name follow."""
        for (scope, name), new in self._results.items():
            position, slot = scope.makers[name]
            graph = self._changes.of(scope)
            graph.outputs.setdefault(position, {})[slot] = new
            # The output of the graph says its type itself.
            graph.gone.discard(new)
            graph.gone.add(name)
            graph.renamed[name] = new
            for use in self._remaining(scope, name):
                if (use.scope, use.position, use.slot) not in done:
                    self._changes.take(use, new)

    def _refused(self, ref: NodeRef, why: str) -> EditError:
        name = f' "{visible(ref.node.name)}"' if ref.node.name else ""
        return EditError(f"{self._edit}: {ref.address}{name}: {why}", ref.address)


def fits(one: Type, other: Type) -> bool:
    """Whether two types of tensors can be one: the same rank, and no two sizes that differ."""
    shapes = [each.tensor_type.shape if each.tensor_type is not None else None for each in (one, other)]
    if shapes[0] is None or shapes[1] is None:
        return True
    if len(shapes[0].dim) != len(shapes[1].dim):
        return False
    sizes = [(a.dim_value, b.dim_value) for a, b in zip(shapes[0].dim, shapes[1].dim, strict=True)]
    return all(a is None or b is None or a == b for a, b in sizes)


def _listed(names: tuple[str, ...]) -> str:
    shown = [f'{slot} "{visible(name)}"' for slot, name in enumerate(names) if name]
    return ", ".join(shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "")
