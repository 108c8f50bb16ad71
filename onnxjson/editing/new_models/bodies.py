"""Subgraphs for operators that need them: minimal ones that pass values through."""

import math
from collections.abc import Mapping, Sequence

from onnxjson.editing.new_models.input_specs import innermost, static_shape, with_shape
from onnxjson.model.document import (
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
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.messages import ATTRIBUTE_TYPES

_INT64, _BOOL = 7, 9


def bodies(op_type: str, given: Sequence[Type], outputs: int, bound: Mapping[str, Type]) -> tuple[Attribute, ...]:
    """Return the subgraphs that an operator needs for inputs of these types; none for other operators."""
    match op_type:
        case "If":
            branch = bound.get("V") or Type(tensor_type=TensorType(elem_type=1))
            return tuple([_attribute(name, _branch(name, branch, outputs)) for name in ("then_branch", "else_branch")])
        case "Loop":
            return (_attribute("body", _loop(given[2:])),)
        case "Scan":
            return (_attribute("body", _scan(given)),)
        case "SequenceMap":
            return (_attribute("body", _mapped(given)),)
    return ()


def _attribute(name: str, graph: Graph) -> Attribute:
    return Attribute(name=name, g=graph, type=ATTRIBUTE_TYPES["GRAPH"])


def zeros(name: str, data_type: int, dims: tuple[int, ...]) -> Tensor:
    """Return a constant of zeros, or of empty strings."""
    count = math.prod(dims)
    if data_type == STRING:
        return Tensor(dims=dims, data_type=data_type, name=name, string_data=(b"",) * count)
    return Tensor(dims=dims, data_type=data_type, name=name, raw_data=bytes((BITS[data_type] * count + 7) // 8))


def _branch(name: str, value: Type, outputs: int) -> Graph:
    """Build a branch whose outputs depend on no input."""
    tensor = innermost(value)
    data_type = (tensor.elem_type if tensor is not None else None) or 1
    nodes, infos = [], []
    prefix = name.partition("_")[0]
    for number in range(outputs):
        made = f"{prefix}_value_{number}"
        node = Node(op_type="Identity", input=(f"{prefix}_constant",), output=(made,))
        if value.sequence_type is not None:
            node = Node(op_type="SequenceConstruct", input=(f"{prefix}_constant",), output=(made,))
        elif value.optional_type is not None:
            inside = value.optional_type.elem_type
            if inside is not None and inside.sequence_type is not None:
                inner = f"{prefix}_sequence_{number}"
                nodes.append(Node(op_type="SequenceConstruct", input=(f"{prefix}_constant",), output=(inner,)))
                node = Node(op_type="Optional", input=(inner,), output=(made,))
            else:
                node = Node(op_type="Optional", input=(f"{prefix}_constant",), output=(made,))
        nodes.append(node)
        infos.append(ValueInfo(name=made, type=with_shape(value, static_shape((2, 3)))))
    constant = zeros(f"{prefix}_constant", data_type, (2, 3))
    return Graph(node=tuple(nodes), name=name, initializer=(constant,), output=tuple(infos))


def _loop(carried: Sequence[Type]) -> Graph:
    """Build a body that passes on every carried value, and stacks the first one if it is a tensor."""
    inputs = [_info("iteration", _scalar(_INT64)), _info("go_on", _scalar(_BOOL))]
    nodes = [Node(op_type="Identity", input=("go_on",), output=("go_on_out",))]
    outputs = [_info("go_on_out", _scalar(_BOOL))]
    for number, value in enumerate(carried):
        inputs.append(_info(f"state_{number}", value))
        nodes.append(Node(op_type="Identity", input=(f"state_{number}",), output=(f"state_{number}_out",)))
        outputs.append(_info(f"state_{number}_out", value))
    if carried and carried[0].tensor_type is not None:
        nodes.append(Node(op_type="Identity", input=("state_0",), output=("gathered",)))
        outputs.append(_info("gathered", carried[0]))
    return Graph(node=tuple(nodes), name="body", input=tuple(inputs), output=tuple(outputs))


def _scan(given: Sequence[Type]) -> Graph:
    """Build a body that returns the element before the current one."""
    state, scanned = given[-2], given[-1]
    element = with_shape(scanned, TensorShape(dim=_dims(state)))
    return Graph(
        node=(
            Node(op_type="Identity", input=("element",), output=("state_out",)),
            Node(op_type="Identity", input=("state",), output=("gathered",)),
        ),
        name="body",
        input=(_info("state", _with_dims(state)), _info("element", element)),
        output=(_info("state_out", element), _info("gathered", _with_dims(state))),
    )


def _dims(value: Type) -> tuple[Dimension, ...]:
    """Return the dimensions inside the body; in version 8 without the batch."""
    tensor = value.tensor_type
    return tensor.shape.dim[-1:] if tensor is not None and tensor.shape is not None else ()


def _with_dims(value: Type) -> Type:
    return with_shape(value, TensorShape(dim=_dims(value)))


def _mapped(given: Sequence[Type]) -> Graph:
    """Build a body that passes on each element."""
    inputs = [
        value.sequence_type.elem_type if value.sequence_type is not None and value.sequence_type.elem_type else value
        for value in given
    ]
    names = [f"element_{number}" for number in range(len(inputs))]
    return Graph(
        node=(Node(op_type="Identity", input=("element_0",), output=("result",)),),
        name="body",
        input=tuple([_info(name, value) for name, value in zip(names, inputs, strict=True)]),
        output=(_info("result", inputs[0]),),
    )


def _info(name: str, value: Type) -> ValueInfo:
    return ValueInfo(name=name, type=value)


def _scalar(data_type: int) -> Type:
    return Type(tensor_type=TensorType(elem_type=data_type, shape=TensorShape()))
