"""Edits that move constants between initializers, nodes Constant and inputs."""

from typing import Annotated, Any, ClassVar, Final

from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.tensor_values import constant_node
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import is_constant_node, value_of_node
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Function, Graph, Node, SparseTensor, Tensor
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import Body, rebuild
from onnxjson.running.light_model import input_for

__all__ = ["ConstantsToInitializers", "InitializersToConstants", "InitializersToInputs"]

_FIRST_WITH_OWN_INITIALIZERS: Final = 4
"""First IR version in which an initializer need not be an input."""

_SPARSE_SINCE: Final = 11
"""First opset in which a Constant may be sparse."""


class ConstantsToInitializers(Edit, frozen=True, kw_only=True, eq=False, tag="constants-to-initializers"):
    """Replace Constant nodes with initializers, named after the nodes' outputs.

    Functions have no initializers, so their nodes stay. Nodes also stay if their value is an output of the graph or
    comes from an attribute of a function. Doc string and metadata of a node move to the initializer.
    """

    group: ClassVar = "constants"
    words: ClassVar = ("node",)
    examples: ClassVar = ('{"edit": "constants-to-initializers"}',)

    node: Annotated[str | None, Role("nodes"), about("The nodes; all Constant nodes by default.")] = None

    def change(self, workspace: Workspace) -> Outcome:
        if self.node is None:
            refs = [ref for ref in workspace.index.nodes() if is_constant_node(ref.node)]
        else:
            refs = list(workspace.select(self.node))
            for ref in refs:
                if not is_constant_node(ref.node):
                    raise EditError(f"{ref.address} is {visible(ref.node.op_type or '')}, not a Constant", ref.address)
        version = workspace.model.ir_version
        if refs and version is not None and version < _FIRST_WITH_OWN_INITIALIZERS:
            raise EditError(
                f"models of IR version {version} have no initializers that are not inputs; IR version 4 has them"
            )
        moved: dict[Scope, dict[int, Tensor | SparseTensor]] = {}
        kept: dict[str, int] = {}
        for ref in refs:
            reason = _reason_to_stay(ref.scope, ref.node)
            constant = None if reason else _constant(ref.node)
            if constant is None:
                reason = reason or "has no value"
                kept[reason] = kept.get(reason, 0) + 1
            else:
                moved.setdefault(ref.scope, {})[ref.position] = constant
        count = sum(map(len, moved.values()))
        notes = [
            f"{counted(number, 'Constant node')} {'stays: it' if number == 1 else 'stay: each'} {reason}"
            for reason, number in kept.items()
        ]
        if not count:
            if self.node is not None:
                raise EditError(f"{refs[0].address} cannot become an initializer: it {next(iter(kept))}")
            return Outcome(0, (*notes, "no Constant node can become an initializer"))

        def change(scope: Scope, graph: Body) -> Body:
            if scope not in moved or isinstance(graph, Function):
                return graph
            constants = moved[scope]
            dense = [each for each in constants.values() if isinstance(each, Tensor)]
            sparse = [each for each in constants.values() if isinstance(each, SparseTensor)]
            return replace(
                graph,
                node=tuple([node for position, node in enumerate(graph.node) if position not in constants]),
                initializer=(*graph.initializer, *dense),
                sparse_initializer=(*graph.sparse_initializer, *sparse),
            )

        workspace.replace_model(rebuild(workspace.index, change))
        return Outcome(count, tuple(notes))


class InitializersToConstants(Edit, frozen=True, kw_only=True, eq=False, tag="initializers-to-constants"):
    """Replace initializers with Constant nodes at the beginning of their graphs.

    Inputs with a default stay, and so do constants in external files, which few runtimes support in nodes.
    """

    group: ClassVar = "constants"
    words: ClassVar = ("tensor",)
    examples: ClassVar = ('{"edit": "initializers-to-constants", "tensor": "axes"}',)

    tensor: Annotated[str | None, Role("tensor"), about("The initializer; all of them by default.")] = None

    def change(self, workspace: Workspace) -> Outcome:
        index = workspace.index
        wanted: dict[Scope, set[str]] | None = None
        if self.tensor is not None:
            scope, name = workspace.value(self.tensor)
            if scope.initializer(name) is None:
                raise EditError(f'"{visible(name)}" is not an initializer')
            wanted = {scope: {name}}
        opset = workspace.opset(None, "")
        stays: dict[str, list[str]] = {}
        nodes_of: dict[Scope, list[Node]] = {}
        for scope in index.scopes if wanted is None else wanted:
            names = (*scope.initializers, *scope.sparse_initializers) if wanted is None else wanted[scope]
            for name in names:
                constant = scope.initializer(name)
                assert constant is not None
                reason = _reason_against_node(scope, name, constant, opset)
                if reason:
                    stays.setdefault(reason, []).append(name)
                else:
                    nodes_of.setdefault(scope, []).append(_constant_node(name, constant))
        count = sum(map(len, nodes_of.values()))
        if not count and wanted is not None:
            reason, names_kept = next(iter(stays.items()))
            raise EditError(f'"{visible(names_kept[0])}" cannot become a node: it {reason}')
        notes = [
            f'{len(names):,} initializers stay, such as "{visible(names[0])}", which {reason}'
            for reason, names in stays.items()
        ]
        if not count:
            return Outcome(0, (*notes, "no initializer can become a node"))

        def change(scope: Scope, graph: Body) -> Body:
            if scope not in nodes_of or not isinstance(graph, Graph):
                return graph
            removed = {node.output[0] for node in nodes_of[scope]}
            return _without_constants(replace(graph, node=(*nodes_of[scope], *graph.node)), removed)

        workspace.replace_model(rebuild(index, change))
        return Outcome(count, tuple(notes))


class InitializersToInputs(Edit, frozen=True, kw_only=True, eq=False, tag="initializers-to-inputs"):
    """Replace constants of the main graph with inputs, which the caller must provide; optionally save their values.

    An input with the constant as its default loses the default.
    """

    group: ClassVar = "constants"
    words: ClassVar = ("tensor",)
    examples: ClassVar = (
        '{"edit": "initializers-to-inputs", "tensor": "fc.weight"}',
        '{"edit": "initializers-to-inputs", "tensor": "fc.weight", "save": "fc.weight.npy"}',
    )

    tensor: Annotated[str, Role("tensor"), about("The constant: an initializer of the main graph.")]
    save: Annotated[str | None, Role("file"), about("A new .npy file for its values.", min_length=1)] = None

    def change(self, workspace: Workspace) -> Outcome:
        scope, name = workspace.value(self.tensor)
        constant = scope.initializer(name)
        if not isinstance(constant, Tensor):
            what = "a sparse constant" if constant is not None else "not an initializer"
            raise EditError(f'"{visible(name)}" is {what}; only an initializer with plain values can become an input')
        if scope.kind != "main":
            raise EditError(
                f'"{visible(name)}" belongs to {scope.address}; only the main graph has inputs of the model'
            )
        if self.save is not None:
            if not self.save.endswith(".npy"):
                raise EditError(f'"{visible(self.save)}" is not the name of a .npy file')
            held = workspace.with_elements(constant)
            workspace.write_later(workspace.file(self.save), held)
        graph = _without_constants(workspace.graph, {name})
        if name not in scope.inputs:
            graph = replace(graph, input=(*graph.input, input_for(constant)))
        # The input states the type now.
        infos = tuple([value for value in graph.value_info if value.name != name])
        workspace.replace_graph(
            scope, graph if len(infos) == len(graph.value_info) else replace(graph, value_info=infos)
        )
        return Outcome(1, (f'"{visible(name)}" must be provided by the caller from now on',))


def _reason_to_stay(scope: Scope, node: Node) -> str:
    if isinstance(scope.graph, Function):
        return "is in a function, which has no initializers"
    if len(node.output) != 1 or not node.output[0]:
        return "has no output"
    if node.output[0] in scope.output_names:
        return "is an output of its graph"
    if any([attribute.ref_attr_name for attribute in node.attribute]):
        return "has its value from an attribute of its function"
    return ""


def _constant(node: Node) -> Tensor | SparseTensor | None:
    """Return the value of a node Constant, with the name of its output."""
    name = node.output[0]
    tensor = value_of_node(node)
    if isinstance(tensor, SparseTensor):
        return None if tensor.values is None else replace(tensor, values=replace(tensor.values, name=name))
    if tensor is None:
        return None
    docs = {"doc_string": node.doc_string} if tensor.doc_string is None and node.doc_string is not None else {}
    return replace(tensor, name=name, metadata_props=(*tensor.metadata_props, *node.metadata_props), **docs)


def _reason_against_node(scope: Scope, name: str, constant: Tensor | SparseTensor, opset: int | None) -> str:
    if name in scope.inputs:
        return "is an input with a default"
    if name in scope.producers:
        return "has the name of an output of a node"
    if isinstance(constant, SparseTensor):
        is_possible = opset is None or opset >= _SPARSE_SINCE
        return "" if is_possible else "is sparse, which a Constant can hold only from opset 11"
    return "is in an external file" if is_external(constant) else ""


def _constant_node(name: str, constant: Tensor | SparseTensor) -> Node:
    if isinstance(constant, SparseTensor):
        kind = ATTRIBUTE_TYPES["SPARSE_TENSOR"]
        value = Attribute(name="sparse_value", type=kind, sparse_tensor=constant)
        return Node(op_type="Constant", output=(name,), attribute=(value,))
    return constant_node(name, constant)


def _without_constants(graph: Graph, removed: set[str]) -> Graph:
    updates: dict[str, Any] = {"initializer": tuple([each for each in graph.initializer if each.name not in removed])}
    if graph.sparse_initializer:
        kept = [each for each in graph.sparse_initializer if each.values is None or each.values.name not in removed]
        updates["sparse_initializer"] = tuple(kept)
    return replace(graph, **updates)
