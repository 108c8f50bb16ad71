"""float16: onnxruntime's converter from float32 to half precision, and corrections of its result.

The converter adds two Casts around every operator that stays float32, also between two such operators, where the value
would be rounded, or overflow, needlessly. Where two of them consume one value, it adds the same Cast twice, which makes
the model invalid.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from msgspec import Meta

from onnxjson.codecs import serde
from onnxjson.model.document import Graph, Node
from onnxjson.model.walking import walk
from onnxjson.optimizing.passes.declaration import consumed_names, proto_of, refill, require, subgraphs
from onnxjson.optimizing.passes.measuring import MeasuredPass

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def convert(model: bytes, block_nodes: Collection[str] = (), **options: Any) -> bytes:
    """Convert a serialized model to float16."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    proto = proto_of(model)
    known = {name for node in proto.graph.node for name in node.output}
    made = convert_float_to_float16(proto, node_block_list=list(block_nodes), **options)
    _remove_duplicates(made.graph, known)
    _remove_round_trips(made, known)
    _sort(made)
    return bytes(made.SerializeToString())


def _remove_duplicates(graph: "GraphProto", known: Collection[str]) -> None:
    """Keep one of equal Casts that the converter added, and one type for each value."""
    seen: set[str] = set()
    nodes: list[NodeProto] = []
    for node in graph.node:
        name = node.output[0] if node.output else ""
        if node.op_type == "Cast" and name not in known and name in seen:
            continue
        seen.update(node.output)
        nodes.append(node)
    refill(graph.node, nodes)
    refill(graph.value_info, {value.name: value for value in graph.value_info}.values())


def _remove_round_trips(model: "ModelProto", known: Collection[str]) -> None:
    """Remove Casts from float32 to float16 and back that the converter added."""
    from onnx import TensorProto

    graph = model.graph
    outputs = {value.name for value in graph.output}
    added = [node for node in graph.node if node.op_type == "Cast" and _is_added(node, known, outputs)]
    down = {node.output[0]: node.input[0] for node in added if node.attribute[0].i == TensorProto.FLOAT16}
    fixed = outputs | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names: dict[str, str] = {}
    removed: set[str] = set()
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
        removed.add(name)
    _remove_casts(graph, removed)
    # An output may get the name of the input of another removed Cast.
    _rename(graph, {old: names.get(new, new) for old, new in names.items()})
    _remove_casts(graph, set(down).difference(consumed_names(graph)))
    made = {name for node in graph.node for name in node.output} - outputs
    refill(graph.value_info, [value for value in graph.value_info if value.name in made])


def _remove_casts(graph: "GraphProto", outputs: Collection[str]) -> None:
    refill(graph.node, [node for node in graph.node if not (node.op_type == "Cast" and node.output[0] in outputs)])


def _is_added(node: "NodeProto", known: Collection[str], outputs: Collection[str]) -> bool:
    name = node.output[0]
    if name in outputs:
        return node.name.startswith("graph_output_cast")
    # If a node stays float32, its output is renamed, and the Cast to float16 gets the original name.
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


def _sort(model: "ModelProto") -> None:
    """Move the Casts at the end before their consumers."""
    from onnxruntime.transformers.onnx_model import OnnxModel

    made = {name for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if any([name in made for name in node.input]):
            OnnxModel(model).topological_sort()
            return
        made.difference_update(node.output)


_SMALLEST: Final = 5.96e-08
_GREATEST: Final = 65504.0


class Float16(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="float16"):
    """Convert float32 to float16, with Cast around operators that do not support it.

    Weights too small or too large for float16 become its smallest or largest number. The error of each output is
    measured with every float16 value rounded, as an accelerator rounds it.
    """

    packages: ClassVar = ("onnxruntime",)
    texts: ClassVar = "moved"

    keep_io_types: Annotated[bool, Meta(description="Keep inputs and outputs float32, with a Cast at each.")] = False
    keep_io: Annotated[tuple[str, ...], Meta(description="Keep only these inputs and outputs float32.")] = ()
    block_operators: Annotated[
        tuple[str, ...],
        Meta(description="Operators that stay float32, instead of the list of onnxruntime (TopK and others)."),
    ] = ()
    block_nodes: Annotated[tuple[str, ...], Meta(description="Names of nodes that stay float32.")] = ()
    infer_shapes: Annotated[bool, Meta(description="Infer types with onnx first; required if the model has none.")] = (
        True
    )
    force_initializers: Annotated[
        bool, Meta(description="Also convert initializers of operators that stay float32.")
    ] = False
    min_positive: Annotated[float, Meta(description="Raise smaller positive weights to this value.")] = _SMALLEST
    max_finite: Annotated[float, Meta(description="Reduce larger weights to this value.")] = _GREATEST
    bfloat16: Annotated[bool, Meta(description="Use bfloat16 instead of float32 for operators that stay.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            ValueError: a node, input or output does not exist.
        """
        self._check_names(model)
        return convert(
            model,
            self.block_nodes,
            min_positive_val=self.min_positive,
            max_finite_val=self.max_finite,
            keep_io_types=list(self.keep_io) or self.keep_io_types,
            disable_shape_infer=not self.infer_shapes,
            op_block_list=list(self.block_operators) or None,
            force_fp16_initializers=self.force_initializers,
            use_bfloat16_as_blocked_nodes_dtype=self.bfloat16,
        )

    def _check_names(self, model: bytes) -> None:
        parsed = serde.parse(model).model
        require(self.block_nodes, [node.name or "" for node in walk(parsed, Node)], "node")
        graph = parsed.graph or Graph()
        require(self.keep_io, [value.name or "" for value in (*graph.input, *graph.output)], "input or output")
