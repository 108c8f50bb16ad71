"""The names of a model that the lines of `output_cases` take as variables of the shell."""

from collections import Counter
from pathlib import Path

import onnx


def names_of(path: Path, other: Path) -> dict[str, str]:
    """Variables for the model in the file `path`, and the input of the `other` one of its sessions.

    They are chosen so that most edits find something to change.

    ``OP`` is the most frequent operator but Constant, ``NODE`` the one in the middle of its nodes, ``VALUE`` what that
    makes; ``ATTRIBUTE_NODE``, ``ATTRIBUTE`` and ``ATTRIBUTE_VALUE`` are an attribute and another value for it. What the
    model has none of is a name that it does not have.
    """
    model = onnx.load(path)
    nodes = [node for node in model.graph.node if node.op_type != "Constant"] or list(model.graph.node)
    constants = [node for node in model.graph.node if node.op_type == "Constant"]
    operator = Counter(node.op_type for node in nodes).most_common(1)[0][0]
    alike = [node for node in nodes if node.op_type == operator]
    node = alike[len(alike) // 2]
    first_input = model.graph.input[0]
    biggest = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data), default=None)
    dims = [dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param]
    shape = [str(dim.dim_value) if dim.HasField("dim_value") else "2" for dim in first_input.type.tensor_type.shape.dim]
    return {
        "OP": operator,
        "NODE": _selector(model, node),
        "FIRST_NODE": _selector(model, nodes[0]),
        "LAST_NODE": _selector(model, nodes[-1]),
        "VALUE": node.output[0],
        "INPUT": first_input.name,
        "OUTPUT": model.graph.output[0].name,
        "WEIGHT": biggest.name if biggest is not None else "no weight",
        "CONSTANT": constants[0].output[0] if constants else "no constant",
        "DIM": dims[0] if dims else "no_dim",
        "SHAPE": ",".join(shape),
        "OTHER_INPUT": onnx.load(other).graph.input[0].name,
        **_attribute(model),
    }


def _selector(model: onnx.ModelProto, node: onnx.NodeProto) -> str:
    """The name of a node where only it has that, else its address."""
    if node.name and sum(other.name == node.name for other in model.graph.node) == 1:
        return str(node.name)
    return f"@/graph/node/{list(model.graph.node).index(node)}"


def _attribute(model: onnx.ModelProto) -> dict[str, str]:
    found = [
        (node, attribute)
        for node in model.graph.node
        for attribute in node.attribute
        if attribute.type in (onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT)
    ]
    if not found:
        return {"ATTRIBUTE_NODE": _selector(model, model.graph.node[0]), "ATTRIBUTE": "axis", "ATTRIBUTE_VALUE": "1"}
    floats = [pair for pair in found if pair[1].type == onnx.AttributeProto.FLOAT]  # fewer of them break the model
    node, attribute = (floats or found)[-1]
    value = "0.5" if attribute.type == onnx.AttributeProto.FLOAT else str(1 - attribute.i)
    return {"ATTRIBUTE_NODE": _selector(model, node), "ATTRIBUTE": attribute.name, "ATTRIBUTE_VALUE": value}
