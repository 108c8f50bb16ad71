"""The converter of onnxruntime from float32 to float16, and what is to be put right after it.

It puts two Casts around every operator that stays float32, also between two such operators, where the value would be
rounded, or overflow, for nothing; where two of them take one value, it makes the same Cast twice, which is no model.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from onnxjson.passes.proto_graphs import subgraphs, taken_names

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def converted(model: bytes, block_nodes: Collection[str] = (), **options: Any) -> bytes:
    """A serialised model in float16.

    Args:
        model: serialised.
        block_nodes: names of nodes that stay float32.
        options: of `onnxruntime.transformers.float16.convert_float_to_float16`.

    Raises:
        Exception: whatever the converter raises.
    """
    from onnx import ModelProto
    from onnxruntime.transformers.float16 import convert_float_to_float16

    proto = ModelProto.FromString(model)
    known = {name for node in proto.graph.node for name in node.output}
    made = convert_float_to_float16(proto, node_block_list=list(block_nodes), **options)
    _remove_doubles(made.graph, known)
    _remove_round_trips(made, known)
    _sort(made)
    return bytes(made.SerializeToString())


def _remove_doubles(graph: "GraphProto", known: Collection[str]) -> None:
    """Leaves one of equal Casts that the converter added, and one type for each value."""
    seen: set[str] = set()
    nodes: list[NodeProto] = []
    for node in graph.node:
        name = node.output[0] if node.output else ""
        if node.op_type == "Cast" and name not in known and name in seen:
            continue
        seen.update(node.output)
        nodes.append(node)
    if len(nodes) < len(graph.node):
        _replace(graph.node, nodes)
    values = {value.name: value for value in graph.value_info}
    if len(values) < len(graph.value_info):
        _replace(graph.value_info, list(values.values()))


def _remove_round_trips(model: "ModelProto", known: Collection[str]) -> None:
    """Takes out Casts from float32 to float16 and back that the converter added."""
    from onnx import TensorProto

    graph = model.graph
    outputs = {value.name for value in graph.output}
    added = [node for node in graph.node if node.op_type == "Cast" and _is_added(node, known, outputs)]
    down = {node.output[0]: node.input[0] for node in added if node.attribute[0].i == TensorProto.FLOAT16}
    fixed = outputs | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names: dict[str, str] = {}
    gone: set[str] = set()
    for node in added:
        source, name = node.input[0], node.output[0]
        if node.attribute[0].i != TensorProto.FLOAT or source not in down:
            continue
        exact = down[source]
        if name not in outputs:
            names[name] = exact
        elif exact in fixed or exact in names:
            node.input[0] = exact
            continue
        else:
            names[exact] = name
        gone.add(name)
    _replace(graph.node, [node for node in graph.node if not (node.op_type == "Cast" and node.output[0] in gone)])
    # An output may take the name of what another Cast stood for.
    _rename(graph, {old: names.get(new, new) for old, new in names.items()})
    used = set(taken_names(graph))
    unused = {name for name in down if name not in used}
    _replace(graph.node, [node for node in graph.node if not (node.op_type == "Cast" and node.output[0] in unused)])
    made = {name for node in graph.node for name in node.output}
    _replace(
        graph.value_info, [value for value in graph.value_info if value.name in made and value.name not in outputs]
    )


def _is_added(node: "NodeProto", known: Collection[str], outputs: Collection[str]) -> bool:
    name = node.output[0]
    if name in outputs:
        return node.name.startswith("graph_output_cast")
    # Where a node stays float32, its result gets another name, and the Cast to float16 the one that was known.
    return name not in known or node.name == f"{name}_cast_to_fp16_node"


def _rename(graph: "GraphProto", names: dict[str, str]) -> None:
    for node in graph.node:
        for values in (node.input, node.output):
            for place, name in enumerate(values):
                values[place] = names.get(name, name)
        for inner in subgraphs(node):
            _rename(inner, names)
            for value in inner.output:
                value.name = names.get(value.name, value.name)


def _replace(values: Any, others: Sequence[Any]) -> None:
    copies = [type(each).FromString(each.SerializeToString()) for each in others]
    del values[:]
    values.extend(copies)


def _sort(model: "ModelProto") -> None:
    """Put the Casts that stand at the end where their results are taken."""
    from onnxruntime.transformers.onnx_model import OnnxModel

    made = {name for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if any([name in made for name in node.input]):
            OnnxModel(model).topological_sort()
            return
        made.difference_update(node.output)


__all__ = ["converted"]
