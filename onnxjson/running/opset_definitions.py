"""Replace operators that an older version of the default operator set lacks by their definitions.

onnx has the definitions and an inliner. The inliner knows neither defaults of attributes nor types of values in
subgraphs, and some definitions compute what older operators have as attributes; that is added here.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from onnxjson.model.constants import RANDOM
from onnxjson.model.operators import operator_signature, since_version

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

_ROUNDS: Final = 8
"""How deep definitions may use operators that have definitions."""

_REDEFINED: Final = frozenset({"GroupNormalization"})
"""Operators that mean something else in a newer version, for which onnx has no conversion."""

_CAST_LIKE: Final = "CastLike"


def expand(model: "ModelProto", old: int, version: int) -> "ModelProto":
    """Replace nodes whose operators do not exist in an older version by their definitions, except random ones.

    A definition may use such operators again: that of Gelu uses CastLike, which becomes a Cast where the type is known.
    """
    from onnx import inliner

    before = {name for node in nodes_of(model.graph) for name in node.output}
    casts = operator_signature("", _CAST_LIKE, version) is None
    for _ in range(_ROUNDS):
        model = typed(model)
        is_cast = casts and _cast(model.graph, {})
        missing = _missing(model, old, version)
        if missing:
            inner = _inner_types(model.graph)
            count = len(model.graph.value_info)
            model.graph.value_info.extend(inner)
            model = inliner.inline_selected_functions(model, missing, inline_schema_functions=True)
            del model.graph.value_info[count : count + len(inner)]
        elif not is_cast:
            break
    if any(name not in before for node in nodes_of(model.graph) for name in node.output):
        _split_evenly(model.graph, before, version)
        _know_axes(model.graph, before, {})
    return model


def _inner_types(graph: "GraphProto") -> "list[ValueInfoProto]":
    """Return the types of values in subgraphs, which the inliner reads from the main graph only.

    A name with several types is left out: the inliner then refuses the model.
    """
    known = {each.name for each in (*graph.input, *graph.value_info, *graph.output)}
    types_by_name: dict[str, list[ValueInfoProto]] = {}
    for node in nodes_of(graph):
        for inner in bodies_of(node):
            for each in (*inner.input, *inner.value_info, *inner.output):
                types_by_name.setdefault(each.name, []).append(each)
    return [
        types[0]
        for name, types in types_by_name.items()
        if name not in known and len({each.type.SerializeToString(deterministic=True) for each in types}) == 1
    ]


def typed(model: "ModelProto") -> "ModelProto":
    """Add the types of all values to the main graph, also of initializers: adapters and the inliner read only these."""
    from onnx import helper, shape_inference

    model = shape_inference.infer_shapes(model)
    known = {each.name for each in (*model.graph.input, *model.graph.value_info)}
    missing = [each for each in model.graph.initializer if each.name not in known]
    model.graph.value_info.extend(
        [helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in missing]
    )
    return model


def nodes_of(graph: "GraphProto") -> "Iterator[NodeProto]":
    """Yield the nodes of a graph and of its subgraphs."""
    for node in graph.node:
        yield node
        for inner in bodies_of(node):
            yield from nodes_of(inner)


def bodies_of(node: "NodeProto") -> "list[GraphProto]":
    """Return the subgraphs of a node."""
    graphs = []
    for attribute in node.attribute:
        graphs += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
    return graphs


def constants_of(graph: "GraphProto") -> "dict[str, TensorProto]":
    """Return the constants of a graph, without those of its subgraphs."""
    found = {each.name: each for each in graph.initializer}
    nodes = [node for node in graph.node if node.op_type == "Constant" and not node.domain]
    return found | {node.output[0]: each.t for node in nodes for each in node.attribute if each.name == "value"}


def _missing(model: "ModelProto", old: int, version: int) -> list[tuple[str, str]]:
    """Return the operators with a definition that an older version lacks or has otherwise; state their attributes."""
    from onnx import defs

    functions = {each.name for each in model.functions if not each.domain}
    removed = []
    for name in sorted(
        {node.op_type for node in nodes_of(model.graph) if not node.domain}.difference(functions, RANDOM)
    ):
        if operator_signature("", name, old) is None or (
            operator_signature("", name, version) is not None
            and (name not in _REDEFINED or since_version("", name, old) == since_version("", name, version))
        ):
            continue
        schema = defs.get_schema(name, old, "")
        if name == _CAST_LIKE or not (schema.has_function or schema.has_context_dependent_function):  # type: ignore[attr-defined]
            continue
        removed.append(("", name))
        defaults = {key: each.default_value for key, each in schema.attributes.items() if each.default_value.name}
        for node in nodes_of(model.graph):
            if node.op_type == name and not node.domain:
                given = {each.name for each in node.attribute}
                node.attribute.extend([each for key, each in defaults.items() if key not in given])
    return removed


def _cast(graph: "GraphProto", around: Mapping[str, int]) -> bool:
    """Make each CastLike a Cast, if the type of its second input is known; return whether there was one."""
    from onnx import helper

    typed_values = (*graph.input, *graph.value_info, *graph.output)
    dtypes = {**around, **{each.name: each.type.tensor_type.elem_type for each in typed_values}}
    dtypes |= {each.name: each.data_type for each in graph.initializer}
    converted = False
    for node in graph.node:
        if node.op_type == _CAST_LIKE and not node.domain and (dtype := dtypes.get(node.input[1])):
            node.CopyFrom(helper.make_node("Cast", [node.input[0]], [node.output[0]], node.name or None, to=dtype))
            dtypes[node.output[0]] = dtype
            converted = True
        for inner in bodies_of(node):
            converted = _cast(inner, dtypes) or converted
    return converted


def _split_evenly(graph: "GraphProto", before: set[str], version: int) -> None:
    """Remove ``num_outputs`` where an older Split lacks it: the definitions of onnx split into equal parts."""
    signature = operator_signature("", "Split", version)
    if signature is None or "num_outputs" in signature.attributes:
        return
    types = {each.name: each for each in (*graph.input, *graph.value_info)}
    for node in nodes_of(graph):
        if node.op_type == "Split" and not node.domain and node.output[0] not in before:
            size = size_split(node, types.get(node.input[0]))
            if size % len(node.output) == 0:  # A branch that is never taken may have another size.
                remove_attributes(node, ["num_outputs"])


def size_split(node: "NodeProto", value: "ValueInfoProto | None") -> int:
    """Return the size of the dimension that a Split divides, 0 if it is not known."""
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    dims = () if value is None else value.type.tensor_type.shape.dim
    return dims[axis].dim_value if -len(dims) <= axis < len(dims) else 0


def remove_attributes(node: "NodeProto", names: list[str]) -> None:
    """Remove attributes of a node."""
    kept = [each for each in node.attribute if each.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _know_axes(graph: "GraphProto", before: set[str], around: Mapping[str, int]) -> None:
    """Replace axes that a definition computes from the rank of a value by constants, which adapters need.

    `around` has the ranks of the values around a subgraph.
    """
    import numpy
    from onnx import helper, numpy_helper

    inputs = (*graph.input, *graph.value_info)
    ranks = dict(around) | {
        each.name: len(each.type.tensor_type.shape.dim) for each in inputs if each.type.tensor_type.HasField("shape")
    }
    known: dict[str, numpy.ndarray] = {}
    shapes: dict[str, int] = {}
    for node in graph.node:
        for inner in bodies_of(node):
            _know_axes(inner, before, ranks)
        output = node.output[0] if node.output else ""
        if node.domain or output in before:
            continue
        given = [known.get(name) for name in node.input]
        values = [each for each in given if each is not None]
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[output] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Shape" and node.input[0] in ranks and not node.attribute:
            shapes[output] = ranks[node.input[0]]
        elif node.op_type == "Size" and node.input[0] in shapes:
            known[output] = numpy.array(shapes[node.input[0]])
        elif node.op_type == "Add" and len(values) == 2:
            known[output] = numpy.asarray(values[0] + values[1])
        elif node.op_type == "Range" and len(values) == 3:
            known[output] = numpy.arange(*[int(each) for each in values])
            node.CopyFrom(helper.make_node("Constant", [], [output], value=numpy_helper.from_array(known[output])))
    _remove_unused(graph, before)


def _remove_unused(graph: "GraphProto", before: set[str]) -> None:
    """Remove nodes of definitions whose results nothing uses."""
    used = {each.name for each in graph.output} | {name for node in nodes_of(graph) for name in node.input}
    used |= {each.name for node in graph.node for inner in bodies_of(node) for each in inner.output}
    kept = [node for node in graph.node if not used.isdisjoint(node.output) or not before.isdisjoint(node.output)]
    if len(kept) < len(graph.node):
        copies = [type(each).FromString(each.SerializeToString()) for each in kept]
        del graph.node[:]
        graph.node.extend(copies)
        _remove_unused(graph, before)
