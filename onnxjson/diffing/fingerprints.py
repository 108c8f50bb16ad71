"""Fingerprints: hashes of a model that do not depend on names, to find equal models among many.

The structure is hashed bottom-up, as in Merkle trees: a value by its node and the values that the node consumes.
"""

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onnxjson.diffing.matching.contents import attributes_key, content
from onnxjson.model.document import Function, Graph, Model, Node, Tensor, Type, ValueInfo
from onnxjson.storage.external_files import internalize

_SMALL = 64
"""Elements up to which a constant belongs to the structure: shapes, axes, scalars."""


class Fingerprint(NamedTuple):
    """Three hexadecimal hashes of a model; equal ones mean, beyond doubt in practice, equal contents."""

    model: str
    """Structure and weights."""
    structure: str
    """Operators, attributes, connections, small constants, dtypes and shapes of weights; no names, no order."""
    weights: str
    """The elements of all weights with their dtypes and shapes, in any order; "" without weights."""


def fingerprint(model: Model, folder: Path) -> Fingerprint:
    """Return the fingerprint of a model in `folder`; errors as in `internalize`."""
    internal = internalize(model, folder)
    weights: list[str] = []
    functions = {(each.domain or "", each.name or "", each.overload or ""): each for each in internal.functions}
    bodies = sorted(repr((key, _graph(each, {}, weights))) for key, each in functions.items())
    opsets = sorted((each.domain or "", each.version or 0) for each in internal.opset_import)
    main = "" if internal.graph is None else _graph(internal.graph, {}, weights)
    structure, elements = _hash((tuple(opsets), tuple(bodies), main)), _hash(tuple(sorted(weights))) if weights else ""
    return Fingerprint(_hash((structure, elements)), structure, elements)


def _hash(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _graph(graph: Graph | Function, outer: Mapping[str, str], weights: list[str]) -> str:
    """The hash of a graph; `outer` has the hashes of outer values. Adds the hashes of weights to `weights`."""
    values = dict(outer)
    constants = {weight.name or "": weight for weight in graph.initializer} if isinstance(graph, Graph) else {}
    for name, tensor in constants.items():
        values[name] = _constant(tensor, weights)
    inputs: Sequence[str | ValueInfo] = graph.input
    for position, graph_input in enumerate(inputs):
        name = graph_input if isinstance(graph_input, str) else graph_input.name or ""
        kind = None if isinstance(graph_input, str) else graph_input.type
        if name not in constants:
            values[name] = _hash(("input", position, _type(kind)))
    if isinstance(graph, Graph):
        for sparse in graph.sparse_initializer:
            if sparse.values is not None:
                values[sparse.values.name or ""] = _hash(("sparse", sparse.dims, _constant(sparse.values, weights)))
    nodes = sorted([_node(node, values, weights) for node in graph.node])
    outputs = [values.get(output if isinstance(output, str) else output.name or "", "") for output in graph.output]
    return _hash((tuple(nodes), tuple(outputs)))


def _type(kind: Type | None) -> Hashable:
    """Element type and sizes of a tensor; names of dimensions do not count."""
    if kind is None or kind.tensor_type is None:
        return repr(kind)
    shape = kind.tensor_type.shape
    return kind.tensor_type.elem_type, None if shape is None else tuple([each.dim_value for each in shape.dim])


def _node(node: Node, values: dict[str, str], weights: list[str]) -> str:
    """The hash of a node; adds those of its outputs to `values`. A Constant has the hash of an initializer."""
    tensor = node.attribute[0].t if node.op_type == "Constant" and len(node.attribute) == 1 else None
    if tensor is not None and len(node.output) == 1:
        values[node.output[0]] = _constant(tensor, weights)
        return ""
    attributes = attributes_key(
        node.attribute, lambda tensor: _constant(tensor, weights), lambda graph: _graph(graph, values, weights)
    )
    inputs = [values.get(name, "") if name else None for name in node.input]
    digest = _hash((node.domain or "", node.op_type, node.overload or "", attributes, tuple(inputs)))
    for position, name in enumerate(node.output):
        values[name] = f"{digest}:{position}"
    return digest


def _constant(tensor: Tensor, weights: list[str]) -> str:
    elements = _hash((content(tensor),))
    if math.prod(tensor.dims) <= _SMALL:
        return elements
    weights.append(elements)
    return _hash(("weight", tensor.data_type, tensor.dims))
