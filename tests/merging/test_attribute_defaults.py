"""Functions whose attributes have graphs as defaults merge like any others."""

from itertools import product

from msgspec.structs import replace

from onnxjson.merging.merge import merge
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, OperatorSetId, ValueInfo
from tests.editing.graphs import model_of

BASE = model_of(
    """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
    g (float[N] x) => (float[N] y) { y = local.twice(x) }
    <domain: "local", opset_import: ["" : 20]> twice (i) => (o) { o = Add(i, i) }"""
)


def body(op_type: str, consumed: str = "x", **fields: Graph) -> Graph:
    """A graph of one node."""
    attributes = tuple([Attribute(name=name, type=5, g=graph) for name, graph in fields.items()])
    node = Node(op_type=op_type, input=(consumed,), output=("y",), name=op_type, attribute=attributes)
    return Graph(name="body", node=(node,), output=(ValueInfo(name="y"),))


def default(name: str | None, *graphs: Graph) -> Attribute:
    """A default that is a list of graphs."""
    return Attribute(name=name, type=10, graphs=graphs)


def with_defaults(*defaults: Attribute, first: bool = False, version: int = 20, name: str | None = None) -> Model:
    """The base with one more function, which has these defaults."""
    assert BASE.graph is not None
    function = replace(BASE.functions[0], name="more", attribute_proto=defaults)
    functions: tuple[Function, ...] = (function, *BASE.functions) if first else (*BASE.functions, function)
    node = replace(BASE.graph.node[0], name=name)
    imports = (OperatorSetId(version=version), OperatorSetId(domain="local", version=1))
    return replace(BASE, functions=functions, graph=replace(BASE.graph, node=(node,)), opset_import=imports)


VARIANTS = (
    BASE,
    with_defaults(),
    with_defaults(default("a", body("Relu")), name="renamed"),
    with_defaults(default("a", body("Abs"), body("Relu")), first=True),
    with_defaults(default("b", body("Neg")), default("a", body("Relu")), version=18),
    with_defaults(Attribute(name="a", type=5, g=body("Relu", "undefined")), name="other"),
    with_defaults(default(None, body("If", then=body("Abs"))), default(None, body("Relu")), version=19),
)


def test_graphs_in_defaults_that_only_one_side_has_are_merged() -> None:
    added = VARIANTS[2]
    merged = merge(BASE, added, replace(BASE, producer_name="theirs"))
    assert merged.is_clean
    assert merged.model == replace(added, producer_name="theirs")


def test_every_combination_of_defaults_merges_and_mirrors() -> None:
    for base, ours, theirs in product(VARIANTS[:2], VARIANTS, VARIANTS):
        merged, mirrored = merge(base, ours, theirs), merge(base, theirs, ours)
        assert merged.is_clean == mirrored.is_clean
        if merged.is_clean:
            assert merged.model == mirrored.model
