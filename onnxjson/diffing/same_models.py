"""The alignment of models that are equal: everything is its own counterpart."""

from onnxjson.document import Model
from onnxjson.index import Index
from onnxjson.matching.alignment import Alignment, GraphPair


def same_alignment(base: Model, target: Model) -> Alignment:
    """Every graph, node and value paired with the one at the same place."""
    indexes = Index(base), Index(target)
    pairs = []
    for one, other in zip(indexes[0].scopes, indexes[1].scopes, strict=True):
        places = range(len(one.graph.node))
        values = {name: name for name in (*one.inputs, *one.initializers, *one.sparse_initializers, *one.makers)}
        pairs.append(GraphPair(one, other, places, places, values, {}, {}))
    functions = tuple([(position, position) for position in range(len(base.functions))])
    return Alignment(*indexes, tuple(pairs), {pair.base.address: pair for pair in pairs}, functions, None)
