"""A value of a subgraph, handed out through the nodes around it to the main graph."""

from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.document import (
    Attribute,
    Dimension,
    Graph,
    Node,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.workspace import Workspace
from onnxjson.elements import byte_length
from onnxjson.errors import EditError
from onnxjson.index import Scope
from onnxjson.names import ATTRIBUTE_TYPES, STRING
from onnxjson.operators import plain_domain

_PASSED_ON: Final = {"Loop": 1, "Scan": 0}
"""Operators that run a subgraph many times -> outputs of the subgraph that are no outputs of the node."""


@dataclass
class _Addition:
    """What one graph gets."""

    outputs: list[ValueInfo] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    """Before all others."""
    last_nodes: list[Node] = field(default_factory=list)
    """After all others."""
    node_outputs: dict[int, str] = field(default_factory=dict)
    """By position of a node: its new last output."""


def lifted(workspace: Workspace, scope: Scope, value: ValueInfo, name: str | None) -> ValueInfo:
    """Hands a value of a subgraph out, so that the main graph has it; gives it as the main graph knows it.

    Args:
        workspace: gets the changed graphs; the main graph's outputs stay.
        scope: the graph that defines the value.
        value: with its type.
        name: what the main graph shall call it; one like its name if None.

    Raises:
        EditError: a node on the way is none of If, Loop and Scan, or the value is no tensor.
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
            raise EditError(f"{what} cannot hand out a value of its subgraph; If, Loop and Scan can", scope.address)
        if value.type is None or value.type.tensor_type is None:
            raise EditError(f'"{visible(value.name or "")}" is no tensor; only tensors are handed out', scope.address)
        outer_name = fresh(base)
        if outer_name != name and name is not None and scope.outer.outer is None:
            raise EditError(f'"{visible(name)}" is the name of another value; choose one that is free')
        addition, given = additions.setdefault(scope, _Addition()), value
        if value.name in scope.output_names or value.name in scope.inputs:
            # No graph has two outputs of one name; and of an input that is an output, onnxruntime gives what the Scan
            # puts there for the next round (seen in 1.31).
            again = fresh(f"{base}_again")
            addition.last_nodes.append(Node(op_type="Identity", input=(value.name or "",), output=(again,)))
            given = replace(value, name=again)
        addition.outputs.append(given)
        additions.setdefault(scope.outer, _Addition()).node_outputs[owner.position] = outer_name
        if kind == "If":
            for other in scope.outer.children:
                if other is not scope and other.owner == owner:
                    placeholder = _placeholder(fresh(f"{base}_absent"), value.type.tensor_type)
                    addition = additions.setdefault(other, _Addition())
                    addition.nodes.append(placeholder)
                    addition.outputs.append(ValueInfo(name=placeholder.output[0], type=_type_of(placeholder)))
            new_type = _loose(value.type)
        else:
            new_type = _stacked(value.type)
        value = ValueInfo(name=outer_name, type=new_type)
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

    workspace.replace_model(rebuilt(workspace.index, change))
    return value


def _with_output(node: Node, name: str) -> Node:
    """A node with another output, the last one, for the last output of its subgraph, which is there already."""
    graphs = [attribute.g for attribute in node.attribute if attribute.g is not None]
    position = len(graphs[0].output) - 1 - _PASSED_ON.get(node.op_type or "", 0)
    outputs = (*node.output, *[""] * (position - len(node.output)), name)
    attributes = []
    for attribute in node.attribute:
        if node.op_type == "Scan" and attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute = replace(attribute, ints=(*attribute.ints, 0))
        attributes.append(attribute)
    return replace(node, output=outputs, attribute=tuple(attributes))


def _placeholder(name: str, tensor_type: TensorType) -> Node:
    """A Constant without elements, of the rank of a tensor; of a scalar, zero."""
    kind = tensor_type.elem_type or 0
    dims = (0,) if tensor_type.shape is None else (0,) * len(tensor_type.shape.dim)
    payload: dict[str, Any]
    if kind == STRING:
        payload = {"string_data": () if dims else (b"",)}
    else:
        payload = {"raw_data": b"" if dims else bytes(byte_length(kind, 1) or 0)}
    tensor = Tensor(dims=dims, data_type=kind, **payload)
    value = Attribute(name="value", type=ATTRIBUTE_TYPES["TENSOR"], t=tensor)
    return Node(op_type="Constant", output=(name,), attribute=(value,))


def _type_of(placeholder: Node) -> Type:
    tensor = placeholder.attribute[0].t
    assert tensor is not None
    shape = TensorShape(dim=tuple([Dimension(dim_value=dim) for dim in tensor.dims]))
    return Type(tensor_type=TensorType(elem_type=tensor.data_type, shape=shape))


def _loose(value: Type) -> Type:
    """The type of an output of If of which one branch has no elements: the sizes are open."""
    tensor = value.tensor_type
    assert tensor is not None
    if tensor.shape is None:
        return value
    shape = TensorShape(dim=tuple([Dimension() for _ in tensor.shape.dim]))
    return replace(value, tensor_type=replace(tensor, shape=shape))


def _stacked(value: Type) -> Type:
    """The type of all rounds of a loop together: one dimension more, before the others."""
    tensor = value.tensor_type
    assert tensor is not None
    if tensor.shape is None:
        return value
    shape = replace(tensor.shape, dim=(Dimension(), *tensor.shape.dim))
    return replace(value, tensor_type=replace(tensor, shape=shape))
