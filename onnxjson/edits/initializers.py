"""Constants in other places: as initializers, as nodes Constant, as inputs."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.constants.stored import attribute_tensor, with_elements
from onnxjson.display import visible
from onnxjson.document import (
    Attribute,
    Dimension,
    Function,
    Graph,
    Node,
    SparseTensor,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.edits.declaration import Edit
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.external import Resolver
from onnxjson.index import Scope
from onnxjson.names import ATTRIBUTE_TYPES
from onnxjson.operators import plain_domain
from onnxjson.tensors import is_external

_FIRST_WITH_OWN_INITIALIZERS: Final = 4
"""The IR version from which an initializer need not be an input."""

_SPARSE_SINCE: Final = 11
"""The opset from which a Constant may be sparse."""


class ConstantsToInitializers(Edit, frozen=True, kw_only=True, eq=False, tag="constants-to-initializers"):
    """Make initializers of the outputs of nodes Constant, under the names that these have.

    Functions have no initializers, so their nodes stay. A node whose value is an output of its graph, or that a
    function's attribute gives, stays too. Doc string and metadata of a node go over to its constant.
    """

    words: ClassVar = ("node",)
    examples: ClassVar = ('{"edit": "constants-to-initializers"}',)

    node: Annotated[str | None, Role("nodes"), Meta(description="The nodes; all nodes Constant if left out.")] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        version = workspace.model.ir_version
        if version is not None and version < _FIRST_WITH_OWN_INITIALIZERS:
            raise EditError(
                f"models of IR version {version} have no initializers that are not inputs; they need IR version 4"
            )
        if self.node is None:
            refs = [ref for ref in workspace.index.nodes() if _is_constant(ref.node)]
        else:
            refs = list(workspace.select(self.node))
            for ref in refs:
                if not _is_constant(ref.node):
                    raise EditError(f"{ref.address} is no Constant but {visible(ref.node.op_type or '')}", ref.address)
        moved: dict[Scope, dict[int, Tensor | SparseTensor]] = {}
        kept: dict[str, int] = {}
        for ref in refs:
            reason = _reason_to_stay(ref.scope, ref.node)
            constant = None if reason else _constant(ref.node)
            if constant is None:
                reason = reason or "has no value of its own"
                kept[reason] = kept.get(reason, 0) + 1
            else:
                moved.setdefault(ref.scope, {})[ref.position] = constant
        count = sum(map(len, moved.values()))
        notes = [f"{number:,} Constant stay{'s' * (number == 1)}: it {reason}" for reason, number in kept.items()]
        if not count:
            if self.node is not None:
                raise EditError(f"{refs[0].address} cannot become an initializer: it {next(iter(kept))}")
            return Outcome(0, (*notes, "there is no node Constant that can become an initializer"))

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

        workspace.replace_model(rebuilt(workspace.index, change))
        return Outcome(count, tuple(notes))


class InitializersToConstants(Edit, frozen=True, kw_only=True, eq=False, tag="initializers-to-constants"):
    """Make nodes Constant of initializers, before all other nodes of their graphs.

    Inputs with a default stay, and so do constants in other files, which few runtimes look for in nodes.
    """

    words: ClassVar = ("tensor",)
    examples: ClassVar = ('{"edit": "initializers-to-constants", "tensor": "axes"}',)

    tensor: Annotated[str | None, Role("tensor"), Meta(description="The initializer; all of them if left out.")] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        index = workspace.index
        wanted: dict[Scope, set[str]] | None = None
        if self.tensor is not None:
            scope, name = workspace.value(self.tensor)
            if scope.initializer(name) is None:
                raise EditError(f'"{visible(name)}" is no initializer, so no Constant can be made of it')
            wanted = {scope: {name}}
        opset = workspace.opset(None, "")
        stays: dict[str, list[str]] = {}
        made: dict[Scope, list[Node]] = {}
        for scope in index.scopes:
            if wanted is not None and scope not in wanted:
                continue
            names = (*scope.initializers, *scope.sparse_initializers)
            for name in [each for each in names if wanted is None or each in wanted[scope]]:
                constant = scope.initializer(name)
                assert constant is not None
                reason = _reason_against_node(scope, name, constant, opset)
                if reason:
                    stays.setdefault(reason, []).append(name)
                else:
                    made.setdefault(scope, []).append(_constant_node(name, constant))
        count = sum(map(len, made.values()))
        if not count and wanted is not None:
            reason, names_kept = next(iter(stays.items()))
            raise EditError(f'"{visible(names_kept[0])}" cannot become a node: it {reason}')
        notes = [
            f'{len(names):,} initializers stay, such as "{visible(names[0])}": it {reason}'
            for reason, names in stays.items()
        ]
        if not count:
            return Outcome(0, (*notes, "there is no initializer that can become a node"))

        def change(scope: Scope, graph: Body) -> Body:
            if scope not in made or not isinstance(graph, Graph):
                return graph
            gone = {node.output[0] for node in made[scope]}
            return _without_constants(replace(graph, node=(*made[scope], *graph.node)), gone)

        workspace.replace_model(rebuilt(index, change))
        return Outcome(count, tuple(notes))


class InitializersToInputs(Edit, frozen=True, kw_only=True, eq=False, tag="initializers-to-inputs"):
    """Make inputs of constants of the main graph, which a caller then has to give; their values can be saved.

    An input whose default a constant is loses the default.
    """

    words: ClassVar = ("tensor",)
    examples: ClassVar = (
        '{"edit": "initializers-to-inputs", "tensor": "fc.weight"}',
        '{"edit": "initializers-to-inputs", "tensor": "fc.weight", "save": "fc.weight.npy"}',
    )

    tensor: Annotated[str, Role("tensor"), Meta(description="The constant: an initializer of the main graph.")]
    save: Annotated[str | None, Role("file"), Meta(min_length=1, description="The .npy file that gets its values.")] = (
        None
    )

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        scope, name = workspace.value(self.tensor)
        constant = scope.initializer(name)
        if not isinstance(constant, Tensor):
            what = "a sparse constant" if constant is not None else "no initializer"
            raise EditError(f'"{visible(name)}" is {what}; an initializer with plain values can become an input')
        if scope.kind != "main":
            raise EditError(
                f'"{visible(name)}" belongs to {scope.address}; only the main graph has inputs of the model'
            )
        if self.save is not None:
            if not self.save.endswith(".npy"):
                raise EditError(f'"{visible(self.save)}" is no name of a .npy file')
            workspace.write_later(workspace.file(self.save), _elements(constant, workspace.model_folder))
        graph = _without_constants(workspace.graph, {name})
        if name not in scope.inputs:
            graph = replace(graph, input=(*graph.input, input_for(constant)))
        # What is said of its type is said by the input now.
        infos = tuple([value for value in graph.value_info if value.name != name])
        workspace.replace_graph(
            scope, graph if len(infos) == len(graph.value_info) else replace(graph, value_info=infos)
        )
        return Outcome(1, (f'"{visible(name)}" must be given from now on',))


def _is_constant(node: Node) -> bool:
    return node.op_type == "Constant" and plain_domain(node.domain) == ""


def _reason_to_stay(scope: Scope, node: Node) -> str:
    if isinstance(scope.graph, Function):
        return "is in a function, which has no initializers"
    if len(node.output) != 1 or not node.output[0]:
        return "has no output"
    if node.output[0] in scope.output_names:
        return "is an output of its graph"
    if any([attribute.ref_attr_name for attribute in node.attribute]):
        return "gets its value from an attribute of its function"
    return ""


def _constant(node: Node) -> Tensor | SparseTensor | None:
    """The constant that a node makes, under the name of its output."""
    if len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    name = node.output[0]
    if attribute.sparse_tensor is not None:
        sparse = attribute.sparse_tensor
        return None if sparse.values is None else replace(sparse, values=replace(sparse.values, name=name))
    tensor = attribute_tensor(attribute)
    if tensor is None:
        return None
    docs = {"doc_string": node.doc_string} if tensor.doc_string is None and node.doc_string is not None else {}
    return replace(tensor, name=name, metadata_props=(*tensor.metadata_props, *node.metadata_props), **docs)


def _reason_against_node(scope: Scope, name: str, constant: Tensor | SparseTensor, opset: int | None) -> str:
    if name in scope.inputs:
        return "is an input with a default"
    if name in scope.makers:
        return "has the name of an output of a node"
    if isinstance(constant, SparseTensor):
        return "" if opset is None or opset >= _SPARSE_SINCE else "is sparse, which a Constant is from opset 11 on"
    return "stands in another file" if is_external(constant) else ""


def _constant_node(name: str, constant: Tensor | SparseTensor) -> Node:
    if isinstance(constant, SparseTensor):
        kind = ATTRIBUTE_TYPES["SPARSE_TENSOR"]
        value = Attribute(name="sparse_value", type=kind, sparse_tensor=constant)
    else:
        value = Attribute(name="value", type=ATTRIBUTE_TYPES["TENSOR"], t=constant)
    return Node(op_type="Constant", output=(name,), attribute=(value,))


def _without_constants(graph: Graph, gone: set[str]) -> Graph:
    """The graph without the initializers of some names."""
    updates: dict[str, Any] = {"initializer": tuple([each for each in graph.initializer if each.name not in gone])}
    if graph.sparse_initializer:
        kept = [each for each in graph.sparse_initializer if each.values is None or each.values.name not in gone]
        updates["sparse_initializer"] = tuple(kept)
    return replace(graph, **updates)


def input_for(tensor: Tensor) -> ValueInfo:
    """The input that takes values like a tensor."""
    shape = TensorShape(dim=tuple([Dimension(dim_value=dim) for dim in tensor.dims]))
    return ValueInfo(
        name=tensor.name,
        type=Type(tensor_type=TensorType(elem_type=tensor.data_type, shape=shape)),
        doc_string=tensor.doc_string,
    )


def _elements(tensor: Tensor, folder: Path | None) -> Tensor:
    return with_elements(tensor, Resolver(folder or Path()))
