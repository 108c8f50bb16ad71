"""A model on which every edit of the vocabulary has something to do, and an edit of each kind."""

from pathlib import Path

import numpy
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.editing.declaration import Edit
from onnxjson.model.document import Model, StringStringEntry
from tests.editing.graphs import model_of

TEXT = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[N,4] x, float[N,4] spare) => (float[N,4] y, float[N,4] z)
<float[4] w = {1, 2, 3, 4}, float[4] same = {1, 2, 3, 4}, float[2] unused = {1, 2}> {
    a = Relu(x)
    b = Add(a, w)
    k = Constant<value = float[4] {4, 3, 2, 1}>()
    c = LeakyRelu<alpha = 0.25>(b)
    d = Mul(c, k)
    e = local.twice(d)
    y = Sub(a, e)
    z = Add(e, same)
    dead = Neg(e)
}
<domain: "local", opset_import: ["" : 17]> twice (s) => (t) { u = Relu(s) t = Add(u, u) }"""


def model() -> Model:
    """Nine nodes, the second one with a name; a function; metadata."""
    model = model_of(TEXT)
    graph = model.graph
    assert graph is not None
    nodes = tuple([replace(node, name="sum") if node.output == ("b",) else node for node in graph.node])
    graph = replace(graph, node=nodes, doc_string="a comment")
    return replace(model, graph=graph, metadata_props=(StringStringEntry("author", "Ada"),))


def other() -> Model:
    """What can be put behind the model."""
    return model_of("""<ir_version: 8, opset_import: ["" : 17]>
    h (float[N,4] p) => (float[N,4] q) { q = Sigmoid(p) }""")


def edits_for(folder: Path) -> tuple[Edit, ...]:
    """An edit of every kind; files that they name are made in a folder."""
    onnxjson.save(other(), folder / "other.onnx")
    numpy.save(folder / "w.npy", numpy.zeros(4, numpy.float32))
    return (
        edits.AddNode(op_type="LeakyRelu", input=("a",), output=("new",), attribute={"alpha": 0.5}, insert=True),
        edits.DeleteNode(node="output:c"),
        edits.ReplaceNode(node="output:a", op_type="Sigmoid"),
        edits.Rewire(node="sum", input=0, tensor="x"),
        edits.SwapInputs(node="op:Sub"),
        edits.ReplacePattern(pattern="LeakyRelu($x)", replacement="Relu($x)"),
        edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5),
        edits.RemoveAttribute(node="op:LeakyRelu", attribute="alpha"),
        edits.SetTensor(tensor="w", file=str(folder / "w.npy")),
        edits.CastTensor(tensor="unused", dtype="float64", expect=1),
        edits.InferShapes(overwrite=True),
        edits.InlineFunctions(),
        edits.ConvertOpset(version=18),
        edits.StampOpset(version=2, domain="local"),
        edits.SetIrVersion(version=12),
        edits.SetMetadata(key="stage", value="second", node="op:Relu"),
        edits.SetDoc(text="the sum of both", node="sum"),
        edits.Extract(inputs=("x",), outputs=("c",)),
        edits.Combine(with_=str(folder / "other.onnx"), join=("y=p",)),
        edits.Rename(kind="node", from_="sum", to="plus"),
        edits.SetName(node="output:d", name="product"),
        edits.NameNodes(prefix="n_"),
        edits.Prefix(prefix="p/", kinds=("node", "tensor")),
        edits.DeduplicateInitializers(),
        edits.Prune(what=("nodes",)),
        edits.Strip(what=("doc_strings",)),
        edits.ConstantsToInitializers(node="op:Constant"),
        edits.InitializersToConstants(tensor="w"),
        edits.InitializersToInputs(tensor="w"),
        edits.AddInput(tensor="mask", type="float32[N,4]"),
        edits.AddOutput(tensor="c", type="float32[N,4]"),
        edits.RemoveOutput(tensor="z", prune=True),
        edits.RemoveInput(tensor="spare"),
        edits.TransposeInput(tensor="spare", perm=(1, 0)),
        edits.SetShape(tensor="x", shape=("batch", 4), propagate=False),
        edits.SetDim(dim="N", size=2),
        edits.SetBatchSize(size=3),
    )
