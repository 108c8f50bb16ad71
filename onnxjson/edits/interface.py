"""Edits of what goes in and out of a model."""

from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.document import Dimension, SparseTensor, Tensor, TensorShape, TensorType, Type, ValueInfo
from onnxjson.edits.dead_code import Prune
from onnxjson.edits.declaration import Edit
from onnxjson.edits.inference import inferred_types
from onnxjson.edits.lifting import lifted
from onnxjson.edits.name_changes import matching
from onnxjson.edits.operator_checks import dtype_of
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError, ParameterError
from onnxjson.index import Index, Scope, Use
from onnxjson.types import TypeSyntaxError, format_data_type, parse_type

_SHOWN = 5


class AddInput(Edit, frozen=True, kw_only=True, eq=False, tag="add-input"):
    """Give the model another input, after the others."""

    words: ClassVar = ("tensor", "type")
    examples: ClassVar = ('{"edit": "add-input", "tensor": "mask", "type": "float32[N,128]"}',)

    tensor: Annotated[str, Meta(min_length=1, description="The name of the input; no value may have it.")]
    type: Annotated[str, Role("type"), Meta(description="Its type, such as float32[N,3,224,224].")]

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        index, main = workspace.index, workspace.main
        value = ValueInfo(name=self.tensor, type=type_of_text(self.type, "add-input"))
        for scope in index.scopes:
            if scope.kind != "function" and scope.defines(self.tensor):
                raise EditError(f'{scope.address} has a value "{visible(self.tensor)}" already; choose another name')
        graph = workspace.graph
        workspace.replace_graph(main, replace(graph, input=(*graph.input, value)))
        unused = () if main.takers.get(self.tensor) else ("nothing uses it yet; rewire connects it",)
        return Outcome(1, unused)


class RemoveInput(Edit, frozen=True, kw_only=True, eq=False, tag="remove-input"):
    """Take away an input that nothing uses; one with a default becomes a constant."""

    words: ClassVar = ("tensor",)
    examples: ClassVar = ('{"edit": "remove-input", "tensor": "mask"}',)

    tensor: Annotated[str, Role("input"), Meta(description="The input: a name, wildcards, or re: and a pattern.")]

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        main, graph = workspace.main, workspace.graph
        gone = set(matching(self.tensor, [each.name or "" for each in graph.input], "input"))
        version = workspace.model.ir_version
        for name in gone:
            if main.initializer(name) is not None:
                if version is not None and version < 4:
                    raise EditError(
                        f'"{visible(name)}" is a constant, which must be an input in models of IR version {version}'
                    )
                continue
            uses = workspace.index.consumers(main, name)
            if uses:
                raise EditError(
                    f'"{visible(name)}" is used by {_uses(uses)}; rewire them, or give the input a value with '
                    "set-tensor, first"
                )
        kept = tuple([each for each in graph.input if each.name not in gone])
        workspace.replace_graph(main, replace(graph, input=kept))
        return Outcome(len(graph.input) - len(kept))


class AddOutput(Edit, frozen=True, kw_only=True, eq=False, tag="add-output"):
    """Make an output of any value, with its type; one inside an If, Loop or Scan is handed out through those.

    Of a loop the output has what each round computes, one after another. Where another branch of an If is taken, the
    output is empty (zero for a scalar).
    """

    words: ClassVar = ("tensor",)
    examples: ClassVar = (
        '{"edit": "add-output", "tensor": "/layer4/Relu_output_0"}',
        '{"edit": "add-output", "tensor": "hidden", "type": "float32[N,512]"}',
    )

    tensor: Annotated[str, Role("tensor"), Meta(description="The value: a name or a selector.")]
    type: Annotated[
        str | None, Role("type"), Meta(description="Its type; what the model says, or onnx infers, if left out.")
    ] = None
    name: Annotated[
        str | None, Meta(min_length=1, description="The name of the output, for a value inside a subgraph.")
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        scope, name = workspace.value(self.tensor)
        top = [*scope.chain()][-1]
        if top.kind != "main" or scope.kind == "training":
            raise EditError(f'"{visible(name)}" belongs to {scope.address}, whose values cannot be handed out')
        main = workspace.main
        if scope is main:
            if self.name not in (None, name):
                raise EditError(f'an output has the name of its value, "{visible(name)}"; rename gives it another one')
            if name in main.output_names:
                raise EditError(f'"{visible(name)}" is an output already')
        value = ValueInfo(name=name, type=self._type(workspace, scope, name))
        notes: list[str] = []
        if scope is not main:
            value = lifted(workspace, scope, value, self.name)
            notes.append(f'the output is called "{visible(value.name or "")}"')
        graph = workspace.graph
        said = next((each for each in graph.value_info if each.name == name), None)
        if scope is main and said is not None and said.type == value.type:
            # What is said of the value goes with it.
            value = said
            graph = replace(graph, value_info=tuple([each for each in graph.value_info if each is not said]))
        workspace.replace_graph(workspace.main, replace(graph, output=(*graph.output, value)))
        return Outcome(1, tuple(notes))

    def _type(self, workspace: Workspace, scope: Scope, name: str) -> Type:
        if self.type is not None:
            given = type_of_text(self.type, "add-output")
            known = dtype_of(workspace, scope, name)
            dtype = None if given.tensor_type is None else given.tensor_type.elem_type
            if known and dtype and known != dtype:
                is_other = f"{format_data_type(known)}, not {format_data_type(dtype)}"
                raise EditError(f'add-output: "{visible(name)}" is {is_other}; add-node puts a Cast behind it')
            return given
        found = _constant_type(scope.initializer(name)) or workspace.index.type_of(scope, name)
        if found is None or (found.tensor_type is not None and found.tensor_type.shape is None):
            inferred = Index(inferred_types(workspace.model, workspace.model_folder))
            there = next((each for each in inferred.scopes if each.address == scope.address), None)
            found = (there.types.get(name) if there is not None else None) or found
        if found is None:
            raise EditError(f'the type of "{visible(name)}" is not known; give it, such as type float32[N,512]')
        return without_invented_names(found)


class RemoveOutput(Edit, frozen=True, kw_only=True, eq=False, tag="remove-output"):
    """Take away an output; the nodes that make it stay, unless they are to be pruned. One output must be left."""

    words: ClassVar = ("tensor",)
    examples: ClassVar = ('{"edit": "remove-output", "tensor": "aux"}',)

    tensor: Annotated[str, Role("output"), Meta(description="The output: a name, wildcards, or re: and a pattern.")]
    prune: Annotated[bool, Meta(description="Take away what then leads to no output, too.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        main, graph = workspace.main, workspace.graph
        gone = set(matching(self.tensor, [each.name or "" for each in graph.output], "output"))
        kept = tuple([each for each in graph.output if each.name not in gone])
        if not kept:
            raise EditError(f"{visible(self.tensor)} is all that the model computes; one output must be left")
        said = {each.name for each in graph.value_info}
        # Its type is still worth knowing.
        moved = [
            each
            for each in graph.output
            if each.name in gone and each.name not in said and each.name in main.makers and each.type is not None
        ]
        count = len(graph.output) - len(kept)
        infos = graph.value_info if self.prune else (*graph.value_info, *moved)
        workspace.replace_graph(main, replace(graph, output=kept, value_info=infos))
        notes = Prune().change(workspace).notes if self.prune else ()
        return Outcome(count, notes)


def type_of_text(text: str, edit: str) -> Type:
    """The type that a text stands for.

    Raises:
        ParameterError: it is none.
    """
    try:
        return parse_type(text)
    except TypeSyntaxError as error:
        raise ParameterError(
            f'{edit}: type: "{visible(text)}" is no type (character {error.position}): {error}'
        ) from None


def without_invented_names(found: Type) -> Type:
    """A type without the names of dimensions that the shape inference makes up."""
    tensor = found.tensor_type
    if tensor is None or tensor.shape is None:
        return found
    dims = [Dimension() if (each.dim_param or "").startswith("unk__") else each for each in tensor.shape.dim]
    if tuple(dims) == tensor.shape.dim:
        return found
    return replace(found, tensor_type=replace(tensor, shape=replace(tensor.shape, dim=tuple(dims))))


def _constant_type(constant: Tensor | SparseTensor | None) -> Type | None:
    if constant is None:
        return None
    kind = constant.values.data_type if isinstance(constant, SparseTensor) and constant.values else None
    if isinstance(constant, Tensor):
        kind = constant.data_type
    shape = TensorShape(dim=tuple([Dimension(dim_value=dim) for dim in constant.dims]))
    return Type(tensor_type=TensorType(elem_type=kind, shape=shape))


def _uses(uses: tuple[Use, ...]) -> str:
    shown = ", ".join([each.address for each in uses[:_SHOWN]])
    return shown + (f" and {len(uses) - _SHOWN:,} more" if len(uses) > _SHOWN else "")


__all__ = ["AddInput", "AddOutput", "RemoveInput", "RemoveOutput", "type_of_text"]
