"""float16 and mixed-precision: onnxruntime's converter to half precision, and a search for nodes that need float32.

The converter adds two Casts around every operator that stays float32, also between two such operators, where the value
would be rounded, or overflow, needlessly. Where two of them consume one value, it adds the same Cast twice, which makes
the model invalid. Both are corrected here.

Olive's OrtMixedPrecision is documented to find the minimal set of operators, but keeps a fixed list; this one searches.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from onnxjson.codecs import serde
from onnxjson.editing.parameters import about
from onnxjson.model.display import visible
from onnxjson.model.document import Graph, Node
from onnxjson.model.walking import walk
from onnxjson.optimizing.passes.declaration import (
    consumed_names,
    dtypes_and_operators,
    proto_of,
    refill,
    remark,
    require,
    require_converted,
    sorted_model,
    subgraphs,
)
from onnxjson.optimizing.passes.float16_range import GREATEST, described, large_constants, large_values
from onnxjson.optimizing.passes.float32_nodes import constants_for, operators_without_float16
from onnxjson.optimizing.passes.measuring import Comparing, MeasuredPass, cost_lines, one_line, rounded
from onnxjson.optimizing.passes.minimal_sets import Found, minimal
from onnxjson.running.comparisons import TOLERANCES, Tolerance

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_SMALLEST: Final = 5.96e-08

_SHOWN: Final = 12
"""Maximum number of float32 nodes whose names are reported."""

_PROBES: Final = 16
"""Number of nodes that are tried one by one before a search that takes hundreds of models."""


def convert(
    model: bytes, block_nodes: Collection[str] = (), block_operators: Collection[str] = (), **options: Any
) -> bytes:
    """Convert a serialized model to float16.

    Args:
        block_nodes: names of nodes that stay float32.
        block_operators: operators that stay float32, instead of the list of onnxruntime; those that cannot be float16
            at the operator set of the model always do.
        options: further options of the converter.
    """
    from onnx import helper
    from onnxruntime.transformers import float16

    # That of the converter makes an array of the elements for this.
    float16.make_value_info_from_tensor = lambda tensor: helper.make_tensor_value_info(
        tensor.name, tensor.data_type, tensor.dims
    )
    proto = proto_of(model)
    known = {name for node in proto.graph.node for name in node.output}
    operators = {*(block_operators or float16.DEFAULT_OP_BLOCK_LIST), *operators_without_float16(proto)}
    names = named(proto)
    blocked = {*block_nodes, *[fresh for fresh, name in names.items() if name in block_nodes]}
    # A constant that becomes float16 on its way to a float32 node would lose precision, or all that is above 65504.
    blocked.update(constants_for(proto, lambda node: node.op_type in operators or node.name in blocked))
    converted = float16.convert_float_to_float16(
        proto, node_block_list=list(blocked), op_block_list=list(operators), **options
    )
    for node in converted.graph.node:
        node.name = names.get(node.name, node.name)
    _remove_duplicates(converted.graph, known)
    _remove_round_trips(converted, known)
    return sorted_model(bytes(converted.SerializeToString()))


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


class Float16(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="float16"):
    """Convert float32 to float16, with Cast around operators that do not support it.

    Weights too small or too large for float16 become the smallest or largest float16 number. The error of each output
    is measured with every float16 value rounded, as an accelerator rounds it.
    """

    packages: ClassVar = ("onnxruntime",)
    constants: ClassVar = "tokens"

    keep_io_types: Annotated[bool, about("Keep inputs and outputs float32, with a Cast at each.")] = False
    keep_io: Annotated[tuple[str, ...], about("Keep only these inputs and outputs float32.")] = ()
    block_operators: Annotated[
        tuple[str, ...], about("Operators that stay float32, instead of the list of onnxruntime (TopK and others).")
    ] = ()
    block_nodes: Annotated[tuple[str, ...], about("Names of nodes that stay float32.")] = ()
    infer_shapes: Annotated[bool, about("Infer types with onnx first; required if the model has none.")] = True
    force_initializers: Annotated[bool, about("Also convert initializers of operators that stay float32.")] = False
    min_positive: Annotated[float, about("Raise smaller positive weights to this value.")] = _SMALLEST
    max_finite: Annotated[float, about("Reduce larger weights to this value.")] = GREATEST
    bfloat16: Annotated[bool, about("Use bfloat16 instead of float32 for operators that stay.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        self._check_names(model)
        large = large_constants(proto_of(model))
        if large:
            remark(f"beyond float16, so reduced for float16 nodes: {described(large)}")
        return convert(
            model,
            self.block_nodes,
            self.block_operators,
            min_positive_val=self.min_positive,
            max_finite_val=self.max_finite,
            keep_io_types=list(self.keep_io) or self.keep_io_types,
            disable_shape_infer=not self.infer_shapes,
            force_fp16_initializers=self.force_initializers,
            use_bfloat16_as_blocked_nodes_dtype=self.bfloat16,
        )

    def converted(self, elements: bytes) -> bytes:
        """See `Pass.converted`; the same as the converter of onnxruntime."""
        import numpy

        values = numpy.frombuffer(elements, "<f4").copy()
        finite = numpy.isfinite(values)
        sizes = numpy.abs(values)
        for wrong, size in (((sizes > 0) & (sizes < self.min_positive), self.min_positive),
                            (finite & (sizes > self.max_finite), self.max_finite)):  # fmt: skip
            values[wrong] = numpy.copysign(size, values[wrong])
        return values.astype("<f2").tobytes()

    def _check_names(self, model: bytes) -> None:
        parsed = serde.parse(model).model
        require(self.block_nodes, [node.name or "" for node in walk(parsed, Node)], "node")
        graph = parsed.graph or Graph()
        require(self.keep_io, [value.name or "" for value in (*graph.input, *graph.output)], "input or output")


class MixedPrecision(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="mixed-precision"):
    """Convert float32 to float16, except for a minimal set of nodes that need float32.

    The search removes smaller and smaller parts of the set, and runs each model on the samples with every float16 value
    rounded, as an accelerator rounds it; the number of runs is reported.
    """

    packages: ClassVar = ("onnxruntime",)
    needs_constants: ClassVar = "it runs the model many times"

    relative: Annotated[float, about("Tolerance of an output, relative to the element.", ge=0)] = 1e-2
    of_scale: Annotated[float, about("Tolerance relative to the largest element; added to the first.", ge=0)] = 5e-3
    absolute: Annotated[float, about("Absolute tolerance; added to both.", ge=0)] = 0.0
    keep_io_types: Annotated[bool, about("Keep inputs and outputs float32, with a Cast at each.")] = True
    block_operators: Annotated[
        tuple[str, ...],
        about("Operators that always stay float32, instead of the list of onnxruntime (TopK and others)."),
    ] = ()
    evaluations: Annotated[int, about("Maximum number of models to run; then the best set so far is used.", ge=2)] = (
        2000
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            RuntimeError: the outputs are too far off even if every node of the graph stays float32, no node can be
                float16, or the model has no float32.
        """
        search = _Search(self, model)
        settled = Found((), 1, is_minimal=True)
        if not search.is_close(frozenset()):
            large = search.large()
            if large:
                remark(f"beyond float16 ({GREATEST:.0f}): {described(large)}")
            settled = self._found(search, large)
        converted = search.converted(settled.items)
        require_converted(dtypes_and_operators(proto_of(model)), proto_of(converted), "float32 that could be float16")
        _report(settled, search)
        return search.with_names(converted)

    def _found(self, search: "_Search", large: Mapping[str, float]) -> Found:
        """Return the nodes that need float32, if some can be float16; `large` are values that float16 does not hold."""
        count = len(search.names)
        if not search.is_close(frozenset(range(count))):
            why = "the outputs exceed the tolerance even with all nodes in float32"
        elif not search.is_promising():
            why = f"nothing was converted: each of {_PROBES} sampled nodes alone in float16 exceeds the tolerance"
        else:
            found = minimal(count, search.is_close, self.evaluations, search.touching(large))
            if found is not None and len(found.items) < count:
                return found
            why = "nothing was converted: every node needs float32"
        beyond = f"; beyond float16 ({GREATEST:.0f}): {described(large)}" if large else ""
        raise RuntimeError(f"{why}: {search.problem}{beyond}")


class _Search:
    """Models in which some nodes stay float32."""

    def __init__(self, subject: MixedPrecision, model: bytes) -> None:
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

        self._subject = subject
        proto = proto_of(model)
        self._names = named(proto)
        self._model = bytes(proto.SerializeToString())
        blocked = {*(subject.block_operators or DEFAULT_OP_BLOCK_LIST), *operators_without_float16(proto)}
        self.nodes = [node for node in proto.graph.node if node.op_type not in blocked and node.op_type != "Constant"]
        self.names = [node.name for node in self.nodes]
        tolerance = Tolerance(relative=subject.relative, of_scale=subject.of_scale, absolute=subject.absolute)
        self._tolerances = dict.fromkeys(TOLERANCES, tolerance)
        self._comparing = Comparing(subject, model, self.converted(()))
        self.problem = ""
        self._known: dict[frozenset[int], bool] = {}

    def converted(self, kept: Sequence[int] | frozenset[int]) -> bytes:
        return convert(
            self._model,
            [self.names[place] for place in kept],
            self._subject.block_operators,
            keep_io_types=self._subject.keep_io_types,
        )

    def is_close(self, kept: frozenset[int]) -> bool:
        if kept not in self._known:
            self._known[kept] = self._measured(kept)
        return self._known[kept]

    @property
    def runs(self) -> int:
        """Number of models that were run."""
        return len(self._known)

    def _measured(self, kept: frozenset[int]) -> bool:
        try:
            measured = self._comparing.run(rounded(self.converted(sorted(kept))), self._tolerances)
        except MemoryError:
            raise
        except Exception as error:
            self.problem = one_line(error)
            return False
        self.problem = "; ".join(cost_lines(measured))
        return all(each.worst.close for each in measured) and any(each.worst.conclusive for each in measured)

    def large(self) -> dict[str, float]:
        """Return the constants and values that float16 does not hold, with their largest magnitudes."""
        proto = proto_of(self._model)
        return large_constants(proto) | large_values(proto, [feed for feed, _ in self._comparing.feeds])

    def touching(self, values: Collection[str]) -> list[int]:
        """Return the positions of the nodes that consume or produce some values."""
        return [place for place, node in enumerate(self.nodes)
                if any([name in values for name in (*node.input, *node.output)])]  # fmt: skip

    def is_promising(self) -> bool:
        """Whether the outputs are close with one of `_PROBES` nodes in float16, if there are many more."""
        count = len(self.names)
        if count <= 2 * _PROBES:
            return True
        alone = [number * count // _PROBES for number in range(_PROBES)]
        return any(self.is_close(frozenset(range(count)) - {place}) for place in alone)

    def with_names(self, made: bytes) -> bytes:
        proto = proto_of(made)
        for node in proto.graph.node:
            node.name = self._names.get(node.name, node.name)
        return bytes(proto.SerializeToString())

    def label(self, place: int) -> str:
        node = self.nodes[place]
        name = self._names.get(node.name, node.name) or f"produces {node.output[0]}"
        return visible(f"{node.op_type} ({name})", 100)


def named(model: "ModelProto") -> dict[str, str]:
    """Give every node of the graph a unique name; return the new names with the original ones."""
    seen: set[str] = set()
    taken = {node.name for node in model.graph.node}
    changed: dict[str, str] = {}
    for number, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            name = f"node@{number}"
            while name in taken:
                name += "@"
            changed[name] = node.name
            node.name = name
        seen.add(node.name)
    return changed


def _report(settled: Found, search: _Search) -> None:
    count = len(settled.items)
    share = f"{count:,} of {len(search.names):,} nodes stay float32"
    ran = f"{search.runs:,} model{'s' * (search.runs != 1)} run to find them"
    if not settled.is_minimal:
        ran += "; the search ended before it tested whether each is needed"
    elif count:
        ran += "; none of them can be omitted"
    remark(f"{share}; {ran}")
    for place in settled.items[:_SHOWN]:
        remark(f"float32: {search.label(place)}")
    if count > _SHOWN:
        remark(f"float32: {count - _SHOWN:,} more nodes")
