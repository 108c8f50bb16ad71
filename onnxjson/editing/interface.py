"""Edits of the inputs and outputs of a model; a value of a subgraph is passed out through the nodes around it."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from msgspec.structs import replace

from onnxjson.editing.cleaning import Prune
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.name_changes import matching
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.rewiring import dtype_of
from onnxjson.editing.sandbox import worker
from onnxjson.editing.tensor_values import constant_node
from onnxjson.editing.type_relations import with_shape, without_invented_names
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Dimension, Graph, Node, Tensor, TensorType, Type, ValueInfo
from onnxjson.model.dtypes import STRING
from onnxjson.model.elements import byte_length
from onnxjson.model.errors import EditError, ParameterError
from onnxjson.model.index import Scope
from onnxjson.model.operators import plain_domain
from onnxjson.model.types import TypeSyntaxError, format_data_type, parse_type
from onnxjson.model.walking import Body, rebuild
from onnxjson.running.inferred_types import InferredTypes

__all__ = ["AddInput", "AddOutput", "RemoveInput", "RemoveOutput"]

_SHOWN = 5

_PASSED_ON: Final = {"Loop": 1, "Scan": 0}
"""Operators that iterate over a subgraph -> outputs of the subgraph that are not outputs of the node."""


class AddInput(Edit, frozen=True, kw_only=True, eq=False, tag="add-input"):
    """Add an input after the others."""

    group: ClassVar = "interface"
    words: ClassVar = ("tensor", "type")
    examples: ClassVar = ('{"edit": "add-input", "tensor": "mask", "type": "float32[N,128]"}',)

    tensor: Annotated[str, about("The name of the input; no other value may have it.", min_length=1)]
    type: Annotated[str, Role("type"), about("Its type, such as float32[N,3,224,224].")]

    def change(self, workspace: Workspace) -> Outcome:
        index, main = workspace.index, workspace.main
        value = ValueInfo(name=self.tensor, type=type_of_text(self.type, "add-input"))
        for scope in index.scopes:
            if scope.kind != "function" and scope.defines(self.tensor):
                raise EditError(f'{scope.address} already has a value "{visible(self.tensor)}"; choose another name')
        graph = workspace.graph
        workspace.replace_graph(main, replace(graph, input=(*graph.input, value)))
        unused = () if main.consumers.get(self.tensor) else ("nothing uses it yet; connect it with rewire",)
        return Outcome(1, unused)


class RemoveInput(Edit, frozen=True, kw_only=True, eq=False, tag="remove-input"):
    """Remove an input that nothing uses; an input with a default becomes a constant."""

    group: ClassVar = "interface"
    words: ClassVar = ("tensor",)
    examples: ClassVar = ('{"edit": "remove-input", "tensor": "mask"}',)

    tensor: Annotated[str, Role("input"), about("The input: a name, a wildcard, or re: and a regular expression.")]

    def change(self, workspace: Workspace) -> Outcome:
        main, graph = workspace.main, workspace.graph
        removed = set(matching(self.tensor, [each.name or "" for each in graph.input], "input"))
        version = workspace.model.ir_version
        for name in removed:
            if main.initializer(name) is not None:
                if version is not None and version < 4:
                    raise EditError(
                        f'"{visible(name)}" is a constant, which must be an input in models of IR version {version}'
                    )
                continue
            uses = workspace.index.consumers(main, name)
            if uses:
                shown = listed([each.address for each in uses], _SHOWN)
                raise EditError(
                    f'"{visible(name)}" is used by {shown}; first rewire them, or give the input a value with '
                    "set-tensor"
                )
        kept = tuple([each for each in graph.input if each.name not in removed])
        workspace.replace_graph(main, replace(graph, input=kept))
        return Outcome(len(graph.input) - len(kept))


class AddOutput(Edit, frozen=True, kw_only=True, eq=False, tag="add-output"):
    """Make any value an output of the model; a value in an If, Loop or Scan is passed out through that node.

    For a value in a loop, the output stacks the values of all iterations. If another branch of an If runs, the output
    is empty (zero for a scalar).
    """

    group: ClassVar = "interface"
    words: ClassVar = ("tensor",)
    examples: ClassVar = (
        '{"edit": "add-output", "tensor": "/layer4/Relu_output_0"}',
        '{"edit": "add-output", "tensor": "hidden", "type": "float32[N,512]"}',
    )

    tensor: Annotated[str, Role("tensor"), about("A name or a selector; a wildcard may match several values.")]
    type: Annotated[str | None, Role("type"), about("Its type; by default the declared or inferred type.")] = None
    name: Annotated[str | None, about("The name of the output, for a value in a subgraph.", min_length=1)] = None

    def change(self, workspace: Workspace) -> Outcome:
        values = workspace.values(self.tensor)
        if len(values) > 1 and self.name is not None:
            raise EditError(f"one name for {len(values)} outputs; rename them afterwards", place="add-output")
        notes = [note for address, name in values for note in self._add(workspace, workspace.scope(address), name)]
        return Outcome(len(values), tuple(notes))

    def _add(self, workspace: Workspace, scope: Scope, name: str) -> list[str]:
        if scope.root.kind != "main":
            raise EditError(f'"{visible(name)}" belongs to {scope.address}, whose values cannot be outputs')
        main = workspace.main
        if scope is main:
            if self.name not in (None, name):
                raise EditError(f'an output has the name of its value, "{visible(name)}"; use rename to change it')
            if name in main.output_names:
                raise EditError(f'"{visible(name)}" is already an output')
        value = ValueInfo(name=name, type=self._type(workspace, scope, name))
        notes: list[str] = []
        if scope is not main:
            value = pass_out(workspace, scope, value, self.name)
            notes.append(f'the output is called "{visible(value.name or "")}"')
        graph = workspace.graph
        stated = next((each for each in graph.value_info if each.name == name), None)
        if scope is main and stated is not None and stated.type == value.type:
            # Its entry in value_info becomes the output.
            value = stated
            graph = replace(graph, value_info=tuple([each for each in graph.value_info if each is not stated]))
        with_output = replace(graph, output=(*graph.output, value))
        if scope is main and (self.type is None or value.type == self._known_type(workspace, scope, name)):
            # Its type follows from the same nodes.
            workspace.replace_equivalent(replace(workspace.model, graph=with_output))
        else:
            workspace.replace_graph(main, with_output)
        return notes

    def _type(self, workspace: Workspace, scope: Scope, name: str) -> Type:
        if self.type is not None:
            given = type_of_text(self.type, "add-output")
            known = dtype_of(workspace, scope, name)
            dtype = None if given.tensor_type is None else given.tensor_type.elem_type
            if known and dtype and known != dtype:
                is_other = f"{format_data_type(known)}, not {format_data_type(dtype)}"
                raise EditError(f'add-output: "{visible(name)}" is {is_other}; add a Cast with add-node')
            return given
        known_type = self._known_type(workspace, scope, name)
        if known_type is None:
            raise EditError(f'the type of "{visible(name)}" is not known; give a type such as float32[N,512]')
        return known_type

    def _known_type(self, workspace: Workspace, scope: Scope, name: str) -> Type | None:
        found = InferredTypes(workspace.index, worker(), workspace.model_folder).type_of(scope, name)
        return None if found is None else without_invented_names(found)


class RemoveOutput(Edit, frozen=True, kw_only=True, eq=False, tag="remove-output"):
    """Remove an output, but not the last one; the nodes that compute it stay unless `prune` is set."""

    group: ClassVar = "interface"
    words: ClassVar = ("tensor",)
    examples: ClassVar = ('{"edit": "remove-output", "tensor": "aux"}',)

    tensor: Annotated[str, Role("output"), about("The output: a name, a wildcard, or re: and a regular expression.")]
    prune: Annotated[bool, about("Also remove what no other output depends on.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        main, graph = workspace.main, workspace.graph
        removed = set(matching(self.tensor, [each.name or "" for each in graph.output], "output"))
        kept = tuple([each for each in graph.output if each.name not in removed])
        if not kept:
            raise EditError(f"{visible(self.tensor)} selects all outputs; at least one output must be left")
        stated = {each.name for each in graph.value_info}
        # Keep its type in value_info.
        unstated = (removed - stated) & main.producers.keys()
        moved = [each for each in graph.output if each.name in unstated and each.type is not None]
        count = len(graph.output) - len(kept)
        infos = graph.value_info if self.prune else (*graph.value_info, *moved)
        workspace.replace_graph(main, replace(graph, output=kept, value_info=infos))
        notes = Prune().change(workspace).notes if self.prune else ()
        return Outcome(count, notes)


def type_of_text(text: str, edit: str) -> Type:
    """Parse a type for an edit.

    Raises:
        ParameterError: it is not a type.
    """
    try:
        return parse_type(text)
    except TypeSyntaxError as error:
        raise ParameterError(
            f'type: "{visible(text)}" is not a type (character {error.position}): {error}', place=edit
        ) from None


@dataclass
class _Addition:
    outputs: list[ValueInfo] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    """New nodes before all others."""
    last_nodes: list[Node] = field(default_factory=list)
    """New nodes after all others."""
    node_outputs: dict[int, str] = field(default_factory=dict)
    """New last output of nodes, by their positions."""


def pass_out(workspace: Workspace, scope: Scope, value: ValueInfo, name: str | None) -> ValueInfo:
    """Pass a value of a subgraph out to the main graph, called `name` if given, and return it as defined there.

    Raises:
        EditError: a node on the way is not an If, Loop or Scan, or the value is not a tensor.
    """
    taken: list[str] = []
    additions: dict[Scope, _Addition] = {}

    def fresh(wanted: str) -> str:
        taken.append(workspace.fresh_name(wanted, taken))
        return taken[-1]

    base = name or value.name or "value"
    while scope.outer is not None:
        owner = scope.owner
        kind = owner.node.op_type if owner is not None and plain_domain(owner.node.domain) == "" else None
        if owner is None or (kind != "If" and kind not in _PASSED_ON):
            what = visible(owner.node.op_type or "") if owner is not None else scope.address
            raise EditError(f"{what} cannot pass out a value; only If, Loop and Scan can", scope.address)
        if value.type is None or value.type.tensor_type is None:
            raise EditError(f'"{visible(value.name or "")}" is not a tensor, so it cannot be passed out', scope.address)
        outer_name = fresh(base)
        if outer_name != name and name is not None and scope.outer.outer is None:
            raise EditError(f'"{visible(name)}" is the name of another value; choose another name')
        addition, given = additions.setdefault(scope, _Addition()), value
        if value.name in scope.output_names or value.name in scope.inputs:
            # Outputs of a graph have different names. If an input is also an output, onnxruntime returns the value that
            # the Scan writes there for the next iteration (seen in 1.31).
            again = fresh(f"{base}_again")
            addition.last_nodes.append(Node(op_type="Identity", input=(value.name or "",), output=(again,)))
            given = replace(value, name=again)
        addition.outputs.append(given)
        additions.setdefault(scope.outer, _Addition()).node_outputs[owner.position] = outer_name
        if kind == "If":
            for other in scope.outer.children:
                if other is not scope and other.owner == owner:
                    absent, tensor = fresh(f"{base}_absent"), _placeholder(value.type.tensor_type)
                    addition = additions.setdefault(other, _Addition())
                    addition.nodes.append(constant_node(absent, tensor))
                    addition.outputs.append(ValueInfo(name=absent, type=type_of_constant(tensor)))
        value = ValueInfo(name=outer_name, type=_type_outside(value.type, is_stacked=kind != "If"))
        scope = scope.outer

    def change(scope: Scope, graph: Body) -> Body:
        addition = additions.get(scope)
        if addition is None or not isinstance(graph, Graph):
            return graph
        nodes = list(graph.node)
        for position, output in addition.node_outputs.items():
            nodes[position] = _with_output(nodes[position], output)
        outputs = (*graph.output, *addition.outputs)
        return replace(graph, node=(*addition.nodes, *nodes, *addition.last_nodes), output=outputs)

    workspace.replace_model(rebuild(workspace.index, change))
    return value


def _with_output(node: Node, name: str) -> Node:
    """Add a last output to a node, for the last output of its subgraph, which exists already."""
    graphs = [attribute.g for attribute in node.attribute if attribute.g is not None]
    position = len(graphs[0].output) - 1 - _PASSED_ON.get(node.op_type or "", 0)
    outputs = (*node.output, *[""] * (position - len(node.output)), name)
    stacked = ("scan_output_axes", "scan_output_directions") if node.op_type == "Scan" else ()
    attributes = [replace(each, ints=(*each.ints, 0)) if each.name in stacked else each for each in node.attribute]
    return replace(node, output=outputs, attribute=tuple(attributes))


def _placeholder(tensor_type: TensorType) -> Tensor:
    """Return a tensor without elements of the same rank; zero for a scalar."""
    kind = tensor_type.elem_type or 0
    dims = (0,) if tensor_type.shape is None else (0,) * len(tensor_type.shape.dim)
    if kind == STRING:
        return Tensor(dims=dims, data_type=kind, string_data=() if dims else (b"",))
    return Tensor(dims=dims, data_type=kind, raw_data=b"" if dims else bytes(byte_length(kind, 1) or 0))


def _type_outside(value: Type, *, is_stacked: bool) -> Type:
    """Return the type that a value has outside: stacked by iteration, or of unknown sizes, since a branch has none."""
    shape = None if value.tensor_type is None else value.tensor_type.shape
    if shape is None:
        return value
    dims = (Dimension(), *shape.dim) if is_stacked else (Dimension(),) * len(shape.dim)
    return with_shape(value, replace(shape, dim=dims))
